import {find, say} from "./dom.js";
import {Refused, enter, get, post, watch} from "./server.js";
import {openStudio} from "./studio.js";
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
    if (status === "canceled") return;
    const examples = trade.examples.flatMap((each, at) => texts[`example/${at}/loss`] ? [each.name + " " + texts[`example/${at}/loss`]] : []);
    const lasts = trade.budget && texts.years ? ` It lasts ${texts.years} ${trade.budget.noun}.` : "";
    say("#exact", status === "done" ? "From the policy itself: " + texts.budget + "." + lasts + (examples.length ? " Losses: " + examples.join(", ") + "." : "") : "");
  } catch { say("#exact", ""); }
};
const openTrade = async about => {
  const trade = await get("/trade");
  const keep = state => post("/keep", {state: saved(state)}).then(() => say("#saved", "kept"), () => say("#saved", "not kept: the studio has ended"));
  const resting = state => { keep(state); showExact(trade, state); };
  openStudio(trade, {initial: stored() ?? about.state, rest: resting, handOver: (state, act) => showHandOver(state, act, about)});
};
const follow = about => {
  find("#waiting").hidden = false;
  say("#intro", "");
  const events = watch(job => {
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
  document.documentElement.dataset.ready = about.stage;
  if (about.stage === "trade") await openTrade(about);
  else if (about.stage === "working") follow(about);
  else if (about.stage === "failed") problem(about.problem);
  else openBegin(about, () => follow(about));
};
start().catch(found => problem(found instanceof Refused && found.status === 401
  ? "Open the address that the command printed: it is good for one window. The terminal shows a new one." : found.message));
