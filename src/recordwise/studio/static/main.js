import {find, make, say, scrolling} from "./dom.js";
import {Refused, enter, get, post, watch} from "./server.js";
import {ERRORS, LOSSES, openStudio} from "./studio.js";
import {dotChart, logScale} from "./charts.js";
import {saved} from "./state.js";
import {showHandOver} from "./handover.js";
import {openBegin} from "./begin.js";

// The studio with its server: from the token to the page, and what the page keeps there.
const problem = text => {
  say("#intro", text);
  find("#waiting").hidden = true;
};
const stored = () => {
  const digest = location.hash.slice(1);
  try { return JSON.parse(sessionStorage.getItem("studio " + digest)); } catch { return null; }
};
// When the control rests: what the policy itself says, for every possible record.
const showExact = async (trade, state) => {
  say("#exact", "Computing exact numbers …");
  try {
    const {status, texts} = await post("/exact", {state: saved(state)});
    // The control may have moved on: these numbers are then not those of the page.
    if (status === "canceled" || window.studio.state() !== state) return;
    const examples = trade.examples.flatMap((each, at) => texts[`example/${at}/loss`] ? [each.name + " " + texts[`example/${at}/loss`]] : []);
    const noun = trade.budget && texts.years === "1" ? trade.budget.noun.replace(/^(\w+)s\b/, "$1") : trade.budget?.noun;
    const lasts = trade.budget && texts.years ? ` It lasts ${texts.years} ${noun}.` : "";
    say("#exact", status === "done" ? "From the policy itself: " + texts.budget + "." + lasts + (examples.length ? " Losses: " + examples.join(", ") + "." : "") : "");
  } catch { if (window.studio.state() === state) say("#exact", ""); }
};
const openTrade = async about => {
  const trade = await get("/trade");
  const keep = state => post("/keep", {state: saved(state)}).then(() => say("#saved", "kept"), () => say("#saved", "not kept: the studio has ended"));
  const resting = state => { keep(state); showExact(trade, state); };
  openStudio(trade, {initial: stored() ?? about.state, rest: resting, handOver: (state, act) => showHandOver(state, act, about)});
};
// What the plan itself says, while the trade file is made: it needs no record.
const showFirst = first => {
  if (!first || !find("#first").hidden) return;
  const card = (title, fine, chart, rows, key) => {
    chart.update(rows.map((each, at) => ({...each, today: each.value, keys: [`${key}/${at}`]})));
    rows.forEach((each, at) => say(find(`[data-key="${key}/${at}"]`, chart.table), each.text));
    return make("figure", {class: "card"}, make("figcaption", {}, make("h3", {}, title), make("p", {class: "fine"}, fine)), scrolling(title, chart.table));
  };
  const losses = dotChart({caption: "Loss of the plan's examples", headers: ["example", "loss"], scale: logScale(0.001, 1000), ticks: LOSSES.filter((_, at) => at % 2 === 0), ends: ["almost nothing can be learned", "hardly any protection"]});
  const errors = dotChart({caption: "Error by size of cell", headers: ["cells of", "error"], scale: logScale(0.001, 10), ticks: ERRORS, ends: ["almost exact", "mostly noise"]});
  const tables = make("table", {class: "sides"}, make("caption", {class: "hidden"}, "Tables and their cells"), make("thead", {}, make("tr", {}, make("th", {scope: "col", class: "left"}, "table"), make("th", {scope: "col"}, "cells"))),
    make("tbody", {}, first.tables.map(each => make("tr", {}, make("th", {scope: "row"}, each.name), make("td", {}, each.cells)))));
  find("#first").replaceChildren(make("h2", {}, "The plan as it stands"), make("div", {class: "pairs"},
    first.losses.length ? card(`What ${first.about} lose`, "The privacy loss ρ of the plan's examples, from its policy.", losses, first.losses, "first-loss") : null,
    first.errors.rows ? card("How far off cells are", `The margin of error (95%) of cells of ${first.errors.table}, as they are drawn.`, errors, first.errors.rows, "first-error") : null),
    make("details", {open: !first.losses.length}, make("summary", {}, "Tables and their cells"), scrolling("Tables and their cells", tables)));
  say("#title", first.title);
  find("#first").hidden = false;
};
const follow = about => {
  find("#waiting").hidden = false;
  say("#intro", "");
  showFirst(about.first);
  const events = watch(job => {
    if (job.kind === "first" && job.status === "done") get("/about").then(found => { if (found.stage === "working") showFirst(found.first); });
    if (job.kind !== "trade") return;
    say("#doing", job.doing);
    find("#share").value = job.share;
    find("#cancel").onclick = () => post("/cancel", {number: job.number});
    if (job.status === "done") { events.close(); get("/about").then(openTrade); }
    if (job.status === "failed") { events.close(); problem(job.problem); }
    if (job.status === "canceled") { events.close(); problem("Canceled. Start the command again to go on."); }
  }, () => problem("The studio has ended. Start the command again."));
};
const start = async () => {
  await enter();
  const about = await get("/about");
  say("#over", "recordwise studio · " + about.folder);
  find("#label").hidden = !about.label;
  say("#label", about.label);
  document.documentElement.dataset.ready = about.stage;
  if (about.stage === "trade") await openTrade(about);
  else if (about.stage === "working") follow(about);
  else if (about.stage === "failed") problem(about.problem);
  else openBegin(about, () => follow(about));
};
start().catch(found => problem(found instanceof Refused && found.status === 401
  ? "Open the address that the command printed: it is good for one window. The terminal shows a new one." : found.message));
