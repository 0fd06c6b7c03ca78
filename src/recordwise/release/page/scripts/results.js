"use strict";
(() => {
  const {find, all, make, say, grouped, percent} = window.recordwise.words, {tables, cells: {cellText, intervalText, titleOf, keyText, placeOf, numbersOf, codesOf, rowsMatching, summary}} = window.recordwise;
  const BARS = 15, MOST = 4000;
  const draw = (name, attributes, ...children) => {
    const made = document.createElementNS(find("svg").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const options = (selector, entries, chosen) => find(selector).replaceChildren(...entries.map(([value, text]) => make("option", {value, ...(value === chosen ? {selected: ""} : {})}, text)));

  // The largest cells of a column, with their noise and their reliability.
  const largest = (values, rows, count) => {
    const kept = [];
    for (const row of rows) {
      const value = values[row];
      if (Number.isNaN(value) || (kept.length === count && value <= values[kept[count - 1]])) continue;
      let at = kept.length === count ? count - 1 : kept.length;
      while (at && values[kept[at - 1]] < value) { kept[at] = kept[at - 1]; at--; }
      kept[at] = row;
    }
    return kept;
  };
  const bar = (value, low, high, scale, status) => {
    const x = number => 100 * Math.min(1, Math.max(0, number / scale));
    const parts = [draw("rect", {class: "bar s" + status, x: 0, y: 4, width: Math.max(0.4, x(value)), height: 12, rx: 1})];
    if (low !== null && high !== null) parts.push(draw("line", {class: "whisker", x1: x(low), x2: x(high), y1: 10, y2: 10}));
    return draw("svg", {class: "ranked", viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true"}, ...parts);
  };
  const ranked = () => {
    const shown = tables[+find("#rank-table").value], chosen = +find("#rank-of").value, at = placeOf(shown, chosen);
    const [, accurate, fitted, title, status] = shown.variables[chosen], text = find("#rank-find").value.trim();
    // Where numbers were made to add up, those are shown, with their own intervals.
    const own = at + (fitted ? 1 + (accurate ? 3 : 0) : 0), known = fitted ? fitted > 1 : accurate;
    const rows = largest(numbersOf(shown, own), rowsMatching(shown, text), BARS);
    const word = row => status ? shown.columns[at + 1 + (accurate ? 3 : 0) + fitted](row) : "";
    const ends = row => known ? [shown.columns[own + 1](row), shown.columns[own + 2](row)] : [null, null];
    const scale = Math.max(1e-300, ...rows.map(row => Math.max(shown.columns[own](row), ends(row)[1] ?? 0)));
    find("#ranking tbody").replaceChildren(...rows.map(row => {
      const value = shown.columns[own](row), [low, high] = ends(row), told = word(row);
      return make("tr", {}, make("th", {scope: "row"}, titleOf(shown, row, true)), make("td", {class: "drawn"}, bar(value, low, high, scale, Math.max(0, data.statuses.indexOf(told)))),
        make("td", {}, cellText(value)), make("td", {class: "interval"}, known ? intervalText(low, high) : ""), make("td", {class: "status s" + data.statuses.indexOf(told)}, told));
    }));
    find("#ranking caption").textContent = title + ": the largest";
    say("#rank-told", rows.length ? summary(shown, chosen) : "No such cell here.");
  };
  const startRanking = () => {
    if (!find("#rank-table")) return;
    const listed = tables.map((shown, at) => [at, shown]).filter(([, shown]) => shown.keys.length && shown.variables.length && shown.all > 1);
    const told = listed.some(([, shown]) => !shown.basic) ? listed.filter(([, shown]) => !shown.basic) : listed;
    const statistics = () => options("#rank-of", tables[+find("#rank-table").value].variables.map(([, , , title], at) => [at, title]), 0);
    options("#rank-table", told.map(([at, shown]) => [at, shown.title.replace(/, with intervals$/, "")]), data.results.ranked);
    statistics();
    find("#rank-table").addEventListener("change", () => { find("#rank-find").value = ""; statistics(); ranked(); });
    find("#rank-of").addEventListener("change", ranked);
    find("#rank-find").addEventListener("input", ranked);
    ranked();
    window.recordwise.ready.then(ranked);
  };

  // Sums of cells (T-ASK). In a tree: what the cells below a node say of its total and of the question, then its own number.
  const inTree = (tree, names, weights, asked) => {
    const parts = tree.tables.map((number, place) => {
      const shown = tables[number], at = placeOf(shown, names[place]), size = shown.size;
      return {y: numbersOf(shown, at), sd: numbersOf(shown, at + 3), w: number === asked ? weights : null, up: shown.parents, size, n: new Int32Array(size), ...Object.fromEntries([..."SAQEHG"].map(each => [each, new Float64Array(size)]))};
    });
    const starts = tree.tables.map((_, place) => parts.slice(0, place).reduce((sum, part) => sum + part.size, 1));
    const owner = code => { let place = starts.length - 1; while (starts[place] > code) place--; return [parts[place], code - starts[place]]; };
    const total = {value: 0, variance: 0, largest: 0};
    for (const part of parts) for (let row = 0; row < part.size; row++) {
      const v = part.sd[row] ** 2, w = part.w ? part.w[row] : 0, y = part.y[row];
      let [s, a, q, e, h] = [v, w * v, w * w * v, y, w * y];
      if (part.n[row]) {
        const S = part.S[row], E = part.E[row], A = part.A[row] + w * S, gain = 1 / (v + S);
        q = part.Q[row] + 2 * w * part.A[row] + w * w * S - A * A * gain;
        h = part.H[row] + w * E + A * (y - E) * gain;
        [s, a, e] = [S * v * gain, A * v * gain, E + S * (y - E) * gain];
      }
      if (part.up[row]) {
        const [above, at] = owner(part.up[row]);
        above.n[at]++; above.S[at] += s; above.A[at] += a; above.Q[at] += q; above.E[at] += e; above.H[at] += h;
      } else { total.value += h; total.variance += q; }
    }
    // The largest weight of a noisy number, for half a step of the lattice (T-HALFSTEP).
    for (const part of [...parts].reverse()) for (let row = 0; row < part.size; row++) {
      const v = part.sd[row] ** 2, w = part.w ? part.w[row] : 0, [above, at] = part.up[row] ? owner(part.up[row]) : [null, 0], g = above ? above.G[at] : 0;
      let own = w + g;
      if (part.n[row]) {
        const S = part.S[row], A = part.A[row] + w * S, gain = 1 / (v + S);
        own = (A + g * S) * gain;
        part.G[row] = w + g - own;
      }
      total.largest = Math.max(total.largest, Math.abs(own));
    }
    return total;
  };
  // A question about one published cell of tables that cross: its number that was made to add up, from all of them.
  const fittedCell = sums => {
    const single = sums.find(({shown, chosen, count}) => count === 1 && shown.variables[chosen][2] > 1);
    if (!single) return null;
    const {shown, chosen, weights} = single, [, accurate, , title] = shown.variables[chosen];
    const [value, low, high] = [0, 1, 2].map(end => shown.columns[placeOf(shown, chosen) + 1 + (accurate ? 3 : 0) + end](weights.indexOf(1)));
    return value === null || low === null || high === null ? null : {value, low, high, sd: shown.reaches[chosen] === null ? (high - low) / (2 * data.results.z) : null, count: 1, table: shown, title, exact: true, better: true, fitted: true};
  };
  const sumOf = (name, query, where) => {
    const columns = Object.keys(where), having = tables.map((shown, number) => ({shown, number, chosen: shown.variables.findIndex(([own]) => own === name)}))
      .filter(({shown, chosen}) => shown.query === query && chosen >= 0 && shown.halves[chosen] !== null);
    const without = spare => having.filter(({shown}) => columns.every(column => column === spare || shown.names.includes(column))), telling = without();
    if (!telling.length) {
      const spare = columns.filter(column => without(column).length).map(column => having.flatMap(({shown}) => shown.keys.filter((_, at) => shown.names[at] === column))[0]);
      return {problem: "No single table has all of these columns." + (spare.length ? " One has them without " + spare.join(", or without ") + ": remove those codes." : "")};
    }
    // Of tables that cross, where the keys list every cell, each adds up to the same, and the most accurate one is taken; else the coarsest.
    const sums = telling.map(({shown, number, chosen}) => {
      const at = placeOf(shown, chosen), weights = new Float64Array(shown.size).fill(1);
      for (const column of columns) {
        const place = shown.names.indexOf(column), {codes, values} = codesOf(shown, place), kept = values.map(value => where[column].has(value));
        for (let row = 0; row < shown.size; row++) if (!kept[codes[row]]) weights[row] = 0;
      }
      const raw = {value: 0, variance: 0, largest: 1}, y = numbersOf(shown, at), sd = numbersOf(shown, at + 3);
      let count = 0;
      for (let row = 0; row < shown.size; row++) if (weights[row]) { count++; raw.value += y[row]; raw.variance += sd[row] ** 2; }
      return {shown, number, chosen, weights, raw, count};
    });
    const coarsest = sums.reduce((one, other) => other.shown.all < one.shown.all ? other : one), whole = sums.filter(({shown, count}) => shown.size === shown.all && count);
    const tree = data.results.trees.find(each => each.tables.includes(coarsest.number) && each.names[name] && each.tables.every(one => tables[one].parents));
    const {shown, number, chosen, weights, raw, count} = tree || !data.results.complete || !whole.length ? coarsest
      : whole.reduce((one, other) => other.raw.variance < one.raw.variance ? other : one);
    if (shown.size < shown.all) return {problem: "This page does not hold all cells of the table; recordwise ask does."};
    if (!count) return {problem: "No cell has all of these codes."};
    const one = !tree && fittedCell(sums);
    if (one) return one;
    const found = tree ? inTree(tree, tree.names[name], weights, number) : raw, error = Math.sqrt(found.variance);
    const better = tree && found.variance < raw.variance * (1 - 1e-9), least = shown.reaches[chosen] !== null, reach = (least ? shown.reaches[chosen] : data.results.z) * error + shown.halves[chosen] * found.largest;
    // What was made to add up has the noise of all tables; its error is not known here, as such numbers are correlated.
    const [, accurate, fitted] = shown.variables[chosen], fits = fitted && !tree ? numbersOf(shown, placeOf(shown, chosen) + 1 + (accurate ? 3 : 0)).reduce((sum, each, row) => weights[row] ? sum + each : sum, 0) : null;
    return {value: found.value, sd: error, low: found.value - reach, high: found.value + reach, count, table: shown, title: shown.variables[chosen][3], exact: Boolean(tree), better, least, fits: Number.isNaN(fits) ? null : fits, asked: [name, ...Object.entries(where).map(([column, values]) => `--where "${column}=${[...values]}"`)].join(" ")};
  };
  const sumText = found => {
    const from = grouped(found.count, 0) + (found.count === 1 ? " cell" : " cells") + " of the table " + found.table.title;
    const how = found.fitted ? "The number that was made to add up with all other tables, of " + from + "." : found.better ? "The best estimate of " + from + ", from all tables that say something about it; recordwise ask gives the same."
      : found.exact ? "The sum of " + from + "; no other table says more, and recordwise ask gives the same."
      : "The sum of " + from + (data.results.complete ? ", the most accurate single table for it" : ", the coarsest that has these columns") + ". recordwise ask also uses the other tables.";
    const level = percent(data.level, 0), error = found.sd === null ? "" : ", with a standard error of " + cellText(found.sd) + " from noise";
    const least = found.least ? " The interval holds in at least " + level + " of cases, as noise is not normal; recordwise ask has a narrower one." : "";
    const named = found.title[0].toUpperCase() + found.title.slice(1), raw = cellText(found.value) + error + " (" + level + " interval: " + cellText(found.low) + " to " + cellText(found.high) + ").";
    // Of tables that cross, the sum as drawn is far less exact than that of numbers that were made to add up, whose error needs all tables.
    return found.fits == null ? [named + ": " + raw, how + least + " " + data.results.note]
      : [named + ": " + cellText(found.fits) + ", from numbers that were made to add up.",
        "recordwise ask FOLDER " + found.asked + " tells how exact it is. As drawn, one table alone " + (found.sd > Math.abs(found.fits) ? "is mostly noise here." : "gives " + raw + least) + " " + data.results.note];
  };
  // Codes by what may be typed for them: the code, its name, or both. A name of several codes means none.
  const knownOf = (shown, place) => codesOf(shown, place).values.filter(value => value !== null);
  const textsOf = (shown, place) => {
    const found = new Map(), known = knownOf(shown, place);
    for (const value of known) for (const text of [shown.labels[place]?.get(value) ?? value, keyText(shown, place, value)]) {
      const lower = text.toLowerCase();
      found.set(lower, (found.get(lower) ?? value) === value ? value : undefined);
    }
    for (const value of known) found.set(value.toLowerCase(), value);
    return found;
  };
  const listedAs = (column, text) => {
    const shown = tables.find(each => each.size === each.all && each.texts[each.names.indexOf(column)]);
    if (!text || !shown) return [text, true];
    const place = shown.names.indexOf(column), known = knownOf(shown, place), lower = text.toLowerCase();
    const named = !known.includes(text) && shown.labels[place] ? textsOf(shown, place).get(lower) : text, code = named?.toLowerCase() === lower ? text : named ?? text;
    // Codes are read as they are written; a longer one may begin with a published one.
    return [code, known.includes(code) || !/\s/.test(text) && known.some(each => text.startsWith(each))];
  };
  const startArea = () => {
    const form = find("#area-form");
    if (!form) return;
    const chosen = new Map();
    const statistic = () => data.results.statistics[+find("#area-of").value];
    const update = () => {
      const where = Object.fromEntries([...chosen].filter(([, values]) => values.size)), {name, query} = statistic();
      const found = sumOf(name, query, where), [told, how] = found.problem ? [found.problem, ""] : sumText(found);
      say("#area-told", told);
      say("#area-how", how);
    };
    const chips = (list, column, shown, place) => list.replaceChildren(...[...chosen.get(column)].map(value => {
      const text = keyText(shown, place, value), remove = make("button", {type: "button", class: "chip", "aria-label": "Remove " + text}, text + " ×");
      remove.addEventListener("click", () => { chosen.get(column).delete(value); chips(list, column, shown, place); update(); });
      return remove;
    }));
    const field = (column, shown, place, number) => {
      const known = knownOf(shown, place), texts = textsOf(shown, place), id = "area-" + number;
      const input = make("input", {type: "text", id, list: id + "-list", autocomplete: "off", "aria-describedby": id + "-hint"}), hint = make("span", {id: id + "-hint", class: "hint"}), list = make("div", {class: "chips"});
      const usual = grouped(known.length, 0) + " to choose from; all unless chosen. Several codes may be pasted.";
      const add = final => {
        const typed = input.value.trim().toLowerCase(), whole = texts.get(typed), words = typed.split(/[\s,;]+/).filter(Boolean);
        const found = whole !== undefined ? [whole] : words.map(word => texts.get(word)), missing = words.filter((_, at) => found[at] === undefined);
        if (!typed || (!final && whole === undefined)) return;
        for (const value of found) if (value !== undefined) chosen.get(column).add(value);
        hint.textContent = whole === undefined && missing.length ? "Not found: " + missing.slice(0, 5).join(", ") : usual;
        if (found.some(value => value !== undefined)) input.value = "";
        chips(list, column, shown, place);
        update();
      };
      chosen.set(column, new Set());
      hint.textContent = usual;
      input.addEventListener("change", () => add(true));
      input.addEventListener("input", event => { if (!input.value) hint.textContent = usual; if (event.inputType === "insertReplacementText" || event.inputType === undefined) add(false); });
      input.addEventListener("keydown", event => { if (event.key === "Enter") { event.preventDefault(); add(true); } });
      return make("div", {class: "field"}, make("label", {for: id}, shown.keys[place]), input, make("datalist", {id: id + "-list"}, ...known.slice(0, MOST).map(value => make("option", {value: keyText(shown, place, value)}))), hint, list);
    };
    const anew = () => {
      const {query, name} = statistic(), columns = new Map();
      for (const shown of tables) if (shown.query === query && shown.variables.some(([own], at) => own === name && shown.halves[at] !== null))
        shown.names.forEach((column, place) => { if (shown.texts[place] && !columns.has(column) && codesOf(shown, place).values.length > 1) columns.set(column, [shown, place]); });
      chosen.clear();
      find("#area-columns").replaceChildren(...[...columns].sort(([, [one, at]], [, [other, there]]) => codesOf(one, at).values.length - codesOf(other, there).values.length).map(([column, [shown, place]], number) => field(column, shown, place, number)));
      update();
    };
    options("#area-of", data.results.statistics.map(({title}, at) => [at, title]), 0);
    find("#area-of").addEventListener("change", anew);
    form.addEventListener("submit", event => event.preventDefault());
    window.recordwise.ready.then(anew);
  };

  // A tile for each state, where the codes of a table are states.
  const startMap = () => {
    const at = data.results.map;
    if (!at) return;
    const shown = tables[at.table], place = shown.names.indexOf(at.key);
    const redraw = () => {
      const chosen = +find("#map-of").value, column = placeOf(shown, chosen), values = numbersOf(shown, column), {codes, values: states} = codesOf(shown, place);
      const known = [...values.keys()].filter(row => at.tiles[states[codes[row]]]), sorted = known.map(row => values[row]).sort((one, other) => one - other);
      const rank = value => Math.min(4, Math.floor(5 * sorted.findIndex(each => each >= value) / sorted.length));
      find("#map").replaceChildren(...known.flatMap(row => {
        const [short, across, down] = at.tiles[states[codes[row]]], x = 40 * across, y = 40 * down;
        const words = titleOf(shown, row, true) + ": " + cellText(values[row]);
        return [draw("g", {class: "tile q" + rank(values[row])}, draw("title", {}, words), draw("rect", {x, y, width: 37, height: 37, rx: 3}), draw("text", {x: x + 18.5, y: y + 23, "text-anchor": "middle"}, short))];
      }));
    };
    options("#map-of", shown.variables.map(([, , , title], number) => [number, title]), 0);
    find("#map-of").addEventListener("change", redraw);
    redraw();
    window.recordwise.ready.then(redraw);
  };
  // Codes of an establishment are chosen by name: the lists of the tables' codes are offered.
  const offered = new Set();
  const offer = (control, column) => {
    const shown = tables.find(each => each.names.includes(column)), place = shown?.names.indexOf(column);
    if (!shown || !shown.labels[place]) return;
    const id = "codes-" + [...new Set(tables.flatMap(each => each.names))].indexOf(column);
    if (!offered.has(id)) {
      offered.add(id);
      document.body.append(make("datalist", {id}, ...codesOf(shown, place).values.filter(value => value !== null).slice(0, MOST).map(value => make("option", {value}, shown.labels[place].get(value) ?? ""))));
    }
    control.setAttribute("list", id);
  };
  const offerCodes = () => {
    data.fields.forEach((field, at) => { if (field.kind === "text") offer(find("#q" + at), field.name); });
    for (const control of all("#members input.place")) offer(control, control.dataset.name);
  };
  window.recordwise.ready.then(offerCodes);
  find("#add")?.addEventListener("click", offerCodes);
  startRanking();
  startArea();
  startMap();
  Object.assign(window.recordwise, {sumOf, listedAs});
})();
