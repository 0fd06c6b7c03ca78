import {all, draw, find, make, options, put, say, scrolling} from "./dom.js";
import {dotChart, frontierChart, linear, logScale, stackChart, tileMap} from "./charts.js";
import {MOST_KEPT, firstState, stateDigest, stateOf, stateText, step} from "./state.js";
import {overall, points, ranked, totalLosses, view} from "./view.js";
import {TILES} from "./tiles.js";
import {screenNumber} from "./numbers.js";

// The page of a trade file. Every control sends an event, every event makes a new state, every state is drawn by one function.
export const LOSSES = [[0.001, "0.001"], [0.01, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"], [100, "100"], [1000, "≥ 1000"]];
export const ERRORS = [[0.001, "0.1%"], [0.01, "1%"], [0.1, "10%"], [1, "100%"], [10, "1000%"]];
const REST = 300, GRID = 8;
const capital = text => text.charAt(0).toUpperCase() + text.slice(1);
const keyed = (key, name = "span", given = {}) => make(name, {...given, "data-key": key});

export const openStudio = (trade, {initial = null, rest = () => {}, handOver = () => {}, fixed = false} = {}) => {
  let state = (initial && stateOf(initial, trade)) ?? firstState(trade), looked = trade.main, timer = 0, structure = "";
  const today = view(trade, firstState(trade).now);
  const act = event => {
    const next = step(state, event);
    if (next === state) return;
    state = next;
    say("#exact", "");
    show();
    clearTimeout(timer);
    timer = setTimeout(() => remember(), REST);
  };
  const remember = async () => {
    const digest = await stateDigest(state);
    try { sessionStorage.setItem("studio " + digest, stateText(state)); } catch { /* Without storage a reload begins again. */ }
    history.replaceState(null, "", "#" + digest);
    rest(state, digest);
  };

  // The main control and its headlines.
  const frontier = frontierChart(find("#frontier")), curves = new Map();
  const control = find("#control"), within = find("#within"), hint = find("#within-hint");
  control.max = trade.positions.length - 1;
  control.addEventListener("input", () => act({kind: "move", number: Number(control.value)}));
  const tell = (text, wrong = false) => {
    within.setAttribute("aria-invalid", String(wrong));
    hint.classList.toggle("hidden", !text);
    say(hint, text || "type a percentage");
  };
  const nearest = value => trade.positions.reduce((best, each, at) => Math.abs(Math.log(each.within / value)) < Math.abs(Math.log(trade.positions[best].within / value)) ? at : best, 0);
  within.addEventListener("change", () => {
    const value = Number(within.value.replace("%", "").trim());
    const fine = value > 0 && value < Infinity;
    if (!fine) { tell("Write a percentage above 0, such as 10 or 1.5.", true); return; }
    act({kind: "move", number: nearest(value)});
    within.value = view(trade, state.now).texts.within;
    tell(within.value === screenNumber(value) ? "" : `${within.value}% is the nearest choice to ${screenNumber(value)}%.`);
  });
  const main = trade.statistics[trade.main];
  find("#headlines").replaceChildren(
    headline(capital(trade.statuses[0]) + " cells", keyed(`all/${trade.main}/0`), main.label + ", all tables"),
    headline("A typical loss", keyed("side/now/typical"), make("span", {}, "half of the ", trade.about, " lose less; a test finds such a one in ", keyed("side/now/typical/chance"), " of cases, 5% by chance")),
    headline("A high loss", keyed("side/now/highest"), make("span", {}, "one in a hundred loses more; a test finds such a one in ", keyed("side/now/highest/chance"), " of cases")),
    headline("The budget lasts", make("span", {}, make("span", {id: "at-most"}, "at most "), keyed("years")), trade.budget ? trade.budget.noun + ": " + trade.budget.words : "the plan states none"));
  say("#key-cells", trade.statuses[0] + " cells (0 to 100%)");
  const drawFrontier = now => {
    const key = JSON.stringify(now.mechanisms);
    if (!curves.has(key)) {
      const found = trade.positions.map((_, at) => points(trade, at, now.mechanisms));
      curves.set(key, [found.map(each => each[trade.main].all_cells[0]), found.map(each => overall(trade, totalLosses(trade, each)).typical)]);
    }
    frontier.curves(...curves.get(key));
    frontier.at(now.position, trade.today, trade.positions.length);
    say("#frontier-told", `From left to right: more cells are ${trade.statuses[0]} (filled), and a typical loss is larger (line).`);
  };

  // A mechanism for each statistic, and reasons.
  const reasonBox = (key, label) => {
    const id = "reason-" + key.replace(/\W/g, "-"), box = make("textarea", {id, rows: 2, maxlength: 2000, placeholder: "for the committee", readonly: fixed});
    box.addEventListener("input", () => act({kind: "reason", key, text: box.value}));
    box.dataset.reason = key;
    return make("div", {class: "reason"}, make("label", {for: id}, label), box);
  };
  find("#choose").append(reasonBox("position", "Why this accuracy"));
  find("#statistics").replaceChildren(...trade.statistics.map((each, number) => {
    const id = "mechanism-" + number, select = make("select", {id, "aria-describedby": id + "-about"});
    options(select, each.candidates.map(own => [own.name, own.name + (own.name === each.today ? " (the plan's own)" : "")]), each.today);
    select.addEventListener("change", () => act({kind: "choose", key: each.key, text: select.value}));
    select.dataset.statistic = each.key;
    return make("div", {class: "card"}, make("h3", {}, capital(each.label)), make("label", {for: id}, "Mechanism"), select,
      make("p", {class: "fine about", id: id + "-about", "data-about": number}), make("p", {}, keyed("goal/" + number)), make("p", {class: "fine"}, keyed("mechanism/" + number)),
      reasonBox(each.key, "Why this mechanism"));
  }));

  // The charts.
  const charts = makeCharts(trade, () => looked, number => { looked = number; show(); });
  find("#charts").replaceChildren(...charts.figures);

  // Three places.
  find("#another").addEventListener("click", () => act({kind: "another_draw"}));
  find("#another").hidden = trade.draws < 2;
  say("#places-title", trade.label.startsWith("CONFIDENTIAL") ? "Three places, with noise" : "Three places, with and without noise");
  find("#draw-told").replaceChildren("draw ", keyed("draw"));
  const exactly = trade.label.startsWith("CONFIDENTIAL") ? "about" : "without noise";
  const noiseRows = [];
  find("#places-tables").replaceChildren(...trade.places.map((place, number) => make("div", {class: "card"}, make("h3", {}, place.name),
    make("table", {class: "chart-table place"}, make("caption", {class: "hidden"}, place.name),
      make("thead", {}, make("tr", {}, ["", exactly, "", "with noise"].map((text, at) => make("th", {scope: "col", class: at === 2 ? "drawn" : null}, text || make("span", {class: "hidden"}, at ? "drawn" : "number"))))),
      make("tbody", {}, place.cells.map((cell, at) => {
        const now = draw("line", {class: "dot now", y1: 10, y2: 10}), from = draw("line", {class: "from", x1: 50, y1: 10, y2: 10});
        noiseRows.push({now, from, number, at, cell});
        return make("tr", {}, make("th", {scope: "row"}, cell.name), keyed(`place/${number}/${at}/exact`, "td"),
          make("td", {class: "drawn"}, draw("svg", {class: "row", viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true"}, draw("line", {class: "grid", x1: 50, x2: 50, y1: 0, y2: 20}), from, now)),
          keyed(`place/${number}/${at}/drawn`, "td", {class: "value"}));
      }))))));
  const drawPlaces = ({chosen}, now) => noiseRows.forEach(({now: dot, from, number, at, cell}) => {
    const off = chosen[cell.statistic].drawn[now.draw][number][at] - cell.total, x = 50 + 48 * Math.max(-1, Math.min(1, off / Math.max(Math.abs(cell.total), 1)));
    put(dot, "x1", x); put(dot, "x2", x + 0.001); put(from, "x2", x);
  });

  // Settings side by side.
  find("#keep-form").addEventListener("submit", event => {
    event.preventDefault();
    const name = find("#keep-name");
    act({kind: "keep", text: name.value.trim() || "setting " + (state.now.kept.length + 1)});
    name.value = "";
  });
  const kept = () => {
    const names = ["now", ...state.now.kept.map((_, number) => String(number))], row = (title, key, className = null) =>
      make("tr", {class: className}, make("th", {scope: "row"}, title), names.map(name => typeof key === "function" ? make("td", {}, key(name)) : keyed(`side/${name}/${key}`, "td")));
    const both = rank => name => make("span", {}, keyed(`side/${name}/${rank}`), make("span", {class: "fine"}, "found in ", keyed(`side/${name}/${rank}/chance`)));
    const actions = name => name === "now" ? "" : make("span", {class: "actions"},
      make("button", {type: "button", onclick: () => act({kind: "show", number: Number(name)}), "aria-label": "Use " + state.now.kept[name].name}, "Use"),
      make("button", {type: "button", onclick: () => act({kind: "drop", number: Number(name)}), "aria-label": "Remove " + state.now.kept[name].name}, "Remove"));
    const table = make("table", {class: "sides"}, make("caption", {class: "hidden"}, "Settings side by side"),
      make("thead", {}, make("tr", {}, make("th", {scope: "col", class: "left"}, ""), names.map(name => name === "now" ? make("th", {scope: "col"}, "now") : keyed(`side/${name}/name`, "th", {scope: "col"})))),
      make("tbody", {}, row("goal", "goal", "text"), trade.statistics.map((each, number) => row(`${trade.statuses[0]} cells: ${each.label}`, "all/" + number)),
        row("typical loss", both("typical")), row("high loss (one in a hundred)", both("highest")), trade.examples.map((each, number) => row(each.name, "example/" + number)),
        trade.statistics.map((each, number) => row("mechanism: " + each.label, "mechanism/" + number, "text")), row(trade.budget ? trade.budget.noun + " in the budget, at most" : "budget", "years"),
        state.now.kept.length && !fixed ? make("tr", {class: "no-print"}, make("th", {scope: "row"}, make("span", {class: "hidden"}, "actions")), names.map(name => make("td", {}, actions(name)))) : null));
    find("#kept-table").replaceChildren(scrolling("Settings side by side", table), ...baselineTables(trade));
    say("#kept-told", state.now.kept.length >= MOST_KEPT ? "Four settings are kept: remove one to keep another." : `${state.now.kept.length} of ${MOST_KEPT} kept.`);
    find("#keep").disabled = state.now.kept.length >= MOST_KEPT;
  };

  // Everything that is on the screen, drawn from the state alone.
  const show = () => {
    const {now} = state, found = view(trade, now), {texts} = found;
    say("#goal", capital(texts.goal));
    control.value = now.position;
    control.setAttribute("aria-valuetext", texts.goal);
    if (document.activeElement !== within && within.value !== texts.within) { within.value = texts.within; tell(""); }
    drawFrontier(now);
    find("#at-most").hidden = !/^\d/.test(texts.years);
    for (const select of all("[data-statistic]")) select.value = now.mechanisms[select.dataset.statistic];
    for (const at of all("[data-about]")) {
      const each = trade.statistics[at.dataset.about];
      say(at, each.candidates.find(own => own.name === now.mechanisms[each.key]).about);
    }
    for (const box of all("[data-reason]")) {
      const text = now.reasons[box.dataset.reason] ?? "";
      if (box !== document.activeElement && box.value !== text) box.value = text;
    }
    charts.update(found, today);
    drawPlaces(found, now);
    const shape = JSON.stringify(now.kept.map(each => each.name));
    if (shape !== structure) { structure = shape; kept(); }
    find("#undo").disabled = !state.past.length;
    find("#redo").disabled = !state.future.length;
    // Reading a text back is slow; what was written is remembered.
    for (const at of all("[data-key]")) {
      const text = texts[at.dataset.key] ?? "";
      if (at.shownText !== text) at.textContent = at.shownText = text;
    }
  };
  find("#undo").addEventListener("click", () => act({kind: "undo"}));
  find("#redo").addEventListener("click", () => act({kind: "redo"}));
  document.addEventListener("keydown", event => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || /^(TEXTAREA|INPUT)$/.test(event.target.tagName) && event.target.type !== "range") return;
    const kind = event.key === "z" ? (event.shiftKey ? "redo" : "undo") : event.key === "y" ? "redo" : null;
    if (kind) { event.preventDefault(); act({kind}); }
  });

  say("#title", trade.title);
  document.title = trade.title + ": studio";
  say("#intro", `Move one control and see what it does to the accuracy of every table and to what ${trade.about} give away. ` + aboutRecords(trade));
  const label = find("#label");
  label.hidden = !trade.label.startsWith("CONFIDENTIAL");
  say(label, trade.label);
  find("#studio").hidden = find("#tools").hidden = false;
  find("#waiting").hidden = find("#begin").hidden = true;
  handOver(() => state, act);
  show();
  remember();
  const api = {trade, act, state: () => state, texts: () => view(trade, state.now).texts, load: content => { const found = stateOf(content, trade); if (found) { state = found; show(); } return Boolean(found); }};
  window.studio = api;
  return api;
};

const aboutRecords = trade => trade.generated ? "The records are generated: none of them is real." : trade.data === "confidential" ? "" : `The records are ${trade.data}.`;
const headline = (title, number, fine) => make("div", {}, make("dt", {}, title), make("dd", {}, make("span", {class: "number"}, number), make("span", {class: "fine"}, fine)));

const baselineTables = trade => {
  if (!trade.baselines.length) return [];
  const sizes = number => trade.statistics[trade.baselines[number].statistic].sizes;
  return [make("h3", {}, "Older rules on the same cells"), ...trade.baselines.map((each, number) => scrolling(each.name, make("table", {class: "sides older"},
    make("caption", {}, `${each.name}: ${trade.statistics[each.statistic].label}, withholds `, keyed(`baseline/${number}/withheld`), " of all cells"),
    make("thead", {}, make("tr", {}, ["cells of", "withheld", "error of the others"].map((text, at) => make("th", {scope: "col", class: at ? null : "left"}, text)))),
    make("tbody", {}, sizes(number).map((size, at) => make("tr", {}, make("th", {scope: "row"}, size.name), keyed(`baseline/${number}/${at}/withheld`, "td"), keyed(`baseline/${number}/${at}/error`, "td")))))))];
};

const makeCharts = (trade, looked, look) => {
  const figure = (title, fine, ...children) => make("figure", {class: "card"}, make("figcaption", {}, make("h3", {}, title), make("p", {class: "fine"}, fine)), children);
  const losses = dotChart({caption: `Loss of ${trade.about} by size`, headers: [trade.about, "loss", "found"], scale: logScale(0.001, 1000), ticks: LOSSES.filter((_, at) => at % 2 === 0), ends: ["almost nothing can be learned", "hardly any protection"]});
  const errors = dotChart({caption: "Error by size of cell", headers: ["cells of", "error"], scale: logScale(0.001, 10), ticks: ERRORS, ends: ["almost exact", "mostly noise"], lines: trade.limits.map(each => [1.96 * each])});
  const statuses = stackChart({caption: "Status of cells by size", headers: ["cells of"], names: trade.statuses});
  const tables = stackChart({caption: "Status of cells by table", headers: ["table"], names: trade.statuses});
  const select = make("select", {id: "looked"});
  options(select, trade.statistics.map((each, at) => [at, each.label]), looked());
  select.addEventListener("change", () => look(Number(select.value)));
  const chooser = make("div", {class: "field chooser"}, make("label", {for: "looked"}, "Cells of which statistic"), select);
  const hasStates = trade.statistics.some(each => each.states.length), states = hasStates ? stateCharts(trade) : null;
  const figures = [
    figure(`What ${trade.about} lose`, make("span", {}, "The privacy loss ρ of the middle one of each size; the bar reaches to the one in ten that loses most. “Found”: how often the best test finds that such a one is in the data, 5% by chance. ", legend()), scrolling(`What ${trade.about} lose`, losses.table)),
    figure("How far off cells are", make("span", {}, "The margin of error (95%) of a typical cell of each size. Dotted: the limits of ", trade.statuses.slice(0, -1).join(" and "), ". ", legend()), chooser, scrolling("How far off cells are", errors.table)),
    figure("Cells by status", make("span", {}, `The share of the cells of each size that would be ${trade.statuses.join(", ")}.`), scrolling("Cells by status", statuses.table), make("details", {}, make("summary", {}, "Table by table"), scrolling("Table by table", tables.table))),
    ...(states ? [figure("By state", make("span", {}, `The share of the cells of each state that would be ${trade.statuses[0]}; darker is more.`), states.host)] : []),
  ];
  return {figures, update: (found, today) => {
    const number = looked(), own = trade.statistics[number], {chosen, classes} = found, point = chosen[number], then = today.chosen[number];
    losses.update([
      ...trade.record_classes.map((each, at) => ({name: each.name, share: `loss/${at}/share`, value: classes[at].typical, low: classes[at].typical, high: classes[at].high, today: today.classes[at].typical, keys: [`loss/${at}/typical`, `loss/${at}/chance`]})),
      ...trade.examples.map((each, at) => ({name: each.name, fine: each.record, kind: "example", value: found.losses.examples[at], today: today.losses.examples[at], keys: [`example/${at}/loss`, `example/${at}/chance`]})),
      ...trade.firms.map((each, at) => ({name: each.name, fine: each.record, kind: "firm", value: found.losses.firms[at], today: today.losses.firms[at], keys: [`firm/${at}/loss`, `firm/${at}/chance`]}))]);
    errors.update(own.sizes.map((each, at) => ({name: each.name, value: point.errors[at], today: then.errors[at], keys: [`error/${number}/${at}`]})));
    const stacked = (classes_, shares, before, name) => classes_.map((each, at) => ({name: each.name, fine: each.cells.toLocaleString("en-US") + " cells", shares: shares[at], today: before[at][0], keys: trade.statuses.map((_, status) => `${name}/${number}/${at}/${status}`)}));
    statuses.update(stacked(own.sizes, point.statuses, then.statuses, "status"));
    tables.update(stacked(own.tables, point.by_table, then.by_table, "table"));
    states?.update(number, point.by_state);
  }};
};
const legend = () => make("span", {class: "legend-line"}, make("span", {class: "mark now", "aria-hidden": "true"}), "now ", make("span", {class: "mark today", "aria-hidden": "true"}), "the plan as it stands");

// The states: tiles where they have a place on the map of the policy page, else in rows; and the same as a ranked list.
const stateCharts = trade => {
  const host = make("div", {class: "states"});
  let shownFor = -1, map = null, list = [];
  const build = number => {
    const {states} = trade.statistics[number];
    const known = states.filter(each => TILES[each.code]).length >= states.length - 5 && states.length > 8;
    const side = Math.min(GRID, Math.ceil(Math.sqrt(states.length * 1.6)));
    const places = Object.fromEntries(states.map((each, at) => [each.code, known ? (TILES[each.code] ? [TILES[each.code][0], ...TILES[each.code].slice(2)] : null) : [each.code, at % side, Math.floor(at / side)]]).filter(([, place]) => place));
    map = tileMap(places, "Share of reliable cells by state, as tiles; the list has the same numbers");
    if (!known) map.svg.setAttribute("viewBox", `0 0 ${40 * side - 3} ${40 * Math.ceil(states.length / side) - 3}`);
    list = states.map((_, rank) => {
      const bar = draw("rect", {class: "k0", x: 0, y: 4, height: 12}), value = make("td", {class: "value"});
      return {bar, value, line: make("tr", {}, keyed(`rank/${number}/${rank}`, "th", {scope: "row"}), make("td", {class: "drawn"}, draw("svg", {class: "row", viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true"}, bar)), value)};
    });
    host.replaceChildren(map.svg, scrolling("States, the best first", make("table", {class: "chart-table ranks"}, make("caption", {class: "hidden"}, "States, the best first"),
      make("thead", {}, make("tr", {}, make("th", {scope: "col", class: "left"}, "state"), make("th", {scope: "col", class: "drawn"}, make("span", {class: "hidden"}, "drawn")), make("th", {scope: "col"}, trade.statuses[0]))), make("tbody", {}, list.map(each => each.line)))));
  };
  return {host, update: (number, shares) => {
    if (number !== shownFor) { shownFor = number; build(number); }
    const {states} = trade.statistics[number];
    ranked(shares).forEach((at, rank) => {
      put(list[rank].bar, "width", linear(shares[at]));
      put(list[rank].value, "data-key", `state/${number}/${at}`);
    });
    map.update(states.map((each, at) => ({code: each.code, share: shares[at], text: each.name})));
  }};
};
