"use strict";
(() => {
  const {find, all, make, say, grouped, percent} = window.recordwise.words;
  const ROWS = 12, DASH = "\u2013";
  let first = 0;

  // A table knows its columns as functions of the row: at first of the few rows in the script, later of all compressed cells.
  const tables = data.tables.map(table => ({...table, labels: table.keys.map(() => null), size: table.rows.length,
    columns: (table.rows[0] ?? []).map((_, at) => row => table.rows[row][at]), past: []}));
  // All values of a column at once, made when they are first needed: a whole number times or by a power of ten is rounded once.
  const kept = make => { let found = null; return () => found ??= make(); };
  const numbers = (raw, rows) => {
    const value = row => {
      const at = plane => raw[plane * rows + row];
      if (at(7) === 2) return null;
      let whole = 0;
      for (let plane = 6; plane >= 0; plane--) whole = whole * 256 + at(plane);
      const power = at(8) + 256 * at(9) - 1024, size = power > 22 || power < -22 ? Number(whole + "e" + power) : power < 0 ? whole / Number("1e" + -power) : whole * Number("1e" + power);
      return at(7) ? -size : size;
    };
    value.all = kept(() => Float64Array.from({length: rows}, (_, row) => value(row) ?? NaN));
    return value;
  };
  const codes = (raw, rows, planes, values) => {
    const code = row => {
      let found = 0;
      for (let plane = planes - 1; plane >= 0; plane--) found = found * 256 + raw[plane * rows + row];
      return found;
    };
    const value = row => values[code(row)];
    value.codes = kept(() => Uint32Array.from({length: rows}, (_, row) => code(row)));
    value.values = values;
    return value;
  };
  const unpack = async () => {
    const bytes = Uint8Array.from(atob(find("#packed").textContent), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const raw = new Uint8Array(await new Response(stream).arrayBuffer());
    const length = raw[0] + 256 * (raw[1] + 256 * (raw[2] + 256 * raw[3]));
    let at = 4 + length;
    const take = count => raw.subarray(at, at += count);
    JSON.parse(new TextDecoder().decode(raw.subarray(4, at))).forEach(({rows, keys, parents}, number) => {
      const table = tables[number], columns = keys.map(({values}) => codes(take(4 * rows), rows, 4, values));
      for (const [, accurate, fitted, , status] of table.variables) {
        for (let count = 1 + (accurate ? 3 : 0) + fitted; count; count--) columns.push(numbers(take(10 * rows), rows));
        if (status) columns.push(codes(take(rows), rows, 1, data.statuses));
      }
      const above = parents ? codes(take(4 * rows), rows, 4, []).codes() : null;
      const past = table.variables.map(() => table.periods.map(() => [0, 1, 2].map(() => numbers(take(10 * rows), rows))));
      const labels = keys.map(({values, labels: known}) => known && new Map(values.map((value, place) => [value, known[place]])));
      Object.assign(table, {columns, past, labels, size: rows, parents: above});
    });
  };

  // Words of a cell.
  const cellText = value => value === null ? "" : grouped(value, Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 ? 2 : 4);
  const cv = (value, sd) => value === null || sd === null || value === 0 ? null : Number((sd / Math.abs(value)).toPrecision(6));
  const cvText = value => value === null ? "" : value < 0.1 ? percent(value, 1) : value < 10 ? percent(value, 0) : "> 1000%";
  const intervalText = (low, high) => low === null && high === null ? DASH : low === null ? "at most " + cellText(high) : high === null ? "at least " + cellText(low) : cellText(low) + " to " + cellText(high);
  const keyText = ({labels}, at, value) => value === null ? "(missing)" : labels[at]?.get(value) ? value + " " + labels[at].get(value) : value;

  const titleOf = (shown, row, short = false) => shown.keys.map((_, at) => { const value = shown.columns[at](row); return short && !shown.telling[at] ? "" : short && shown.labels[at]?.get(value) || keyText(shown, at, value); }).filter(Boolean).join(", ");
  const placeOf = (shown, chosen) => shown.variables.slice(0, chosen).reduce((at, [, accurate, fitted, , status]) => at + 1 + (accurate ? 3 : 0) + fitted + (status ? 1 : 0), shown.keys.length);
  const numbersOf = (shown, at) => shown.columns[at].all?.() ?? Float64Array.from({length: shown.size}, (_, row) => shown.columns[at](row) ?? NaN);
  const codesOf = (shown, at) => {
    const column = shown.columns[at];
    if (column.codes) return {codes: column.codes(), values: column.values};
    const values = [...new Set(Array.from({length: shown.size}, (_, row) => column(row)))];
    return {values, codes: Uint32Array.from({length: shown.size}, (_, row) => values.indexOf(column(row)))};
  };

  // Finding and showing cells: a word is looked for in the different codes and names, not in every row.
  const table = () => tables[+find("#which").value];
  const rowsMatching = (shown, text) => {
    const wanted = text.trim().toLowerCase().split(/\s+/).filter(Boolean), every = Array.from({length: shown.size}, (_, row) => row);
    if (!wanted.length) return every;
    const columns = shown.keys.map((_, at) => { const {codes, values} = codesOf(shown, at); return {codes, texts: values.map(value => keyText(shown, at, value).toLowerCase())}; });
    const tests = wanted.map(word => columns.map(({codes, texts}) => ({codes, hits: Uint8Array.from(texts, each => each.includes(word))})));
    return every.filter(row => tests.every(each => each.some(({codes, hits}) => hits[codes[row]])));
  };
  const rowsFound = shown => rowsMatching(shown, find("#find").value);
  // How many of a table's values have which status.
  const summary = (shown, chosen) => {
    const [, accurate, fitted, , status] = shown.variables[chosen];
    if (!status || shown.size < 2) return "";
    const {codes, values} = codesOf(shown, placeOf(shown, chosen) + 1 + (accurate ? 3 : 0) + fitted), counts = values.map(() => 0);
    for (const code of codes) counts[code]++;
    const told = data.statuses.map(word => [word, counts[values.indexOf(word)] ?? 0]).filter(([, count]) => count).map(([word, count]) => grouped(count, 0) + " " + word);
    return "Of " + grouped(shown.size, 0) + (shown.size < shown.all ? " cells on this page" : " cells") + ": " + told.join(", ") + ".";
  };
  const rowOf = (shown, row) => {
    const {keys, variables, columns, past} = shown;
    const made = make("tr", {}, ...keys.flatMap((_, at) => shown.telling[at] ? [make("th", {scope: "row"}, keyText(shown, at, columns[at](row)))] : []));
    let at = keys.length;
    for (const [, accurate, fitted, , status] of variables) {
      const value = columns[at++](row);
      made.append(make("td", {class: "first"}, cellText(value)));
      if (accurate) made.append(make("td", {class: "interval"}, intervalText(columns[at++](row), columns[at++](row))), make("td", {}, cvText(cv(value, columns[at++](row)))));
      if (fitted) made.append(make("td", {}, cellText(columns[at++](row))));
      if (fitted > 1) made.append(make("td", {class: "interval"}, intervalText(columns[at++](row), columns[at++](row))));
      if (status) made.append(make("td", {class: "status"}, columns[at++](row)));
    }
    if (past.length && shown.periods.length) {
      const button = make("button", {type: "button", class: "over-time"}, "Over time");
      button.append(make("span", {class: "hidden"}, " of " + titleOf(shown, row)));
      button.addEventListener("click", () => { window.recordwise.pick({shown, row}); find("#history-title").focus(); });
      made.append(make("td", {}, button));
    }
    return made;
  };
  const headOf = ({keys, telling, variables, periods, past}) => {
    const groups = make("tr", {}, ...keys.filter((_, at) => telling[at]).map(key => make("th", {scope: "col", rowspan: 2}, key))), names = make("tr");
    for (const [, accurate, fitted, title, status] of variables) {
      const inner = ["value", ...(accurate ? [percent(data.level, 0) + " noise interval", "cv"] : []), ...(fitted ? ["made to add up"] : []), ...(fitted > 1 ? ["its interval"] : []), ...(status ? ["status"] : [])];
      groups.append(make("th", {scope: "colgroup", colspan: inner.length}, title));
      names.append(...inner.map((each, at) => make("th", {scope: "col", class: at ? each === "status" ? each : null : "first"}, each)));
    }
    if (past.length && periods.length) groups.append(make("th", {scope: "col", rowspan: 2}, "periods"));
    return [groups, names];
  };
  const browse = () => {
    const shown = table(), found = rowsFound(shown);
    first = Math.max(0, Math.min(first, Math.floor((found.length - 1) / ROWS) * ROWS));
    find("#cells thead").replaceChildren(...headOf(shown));
    find("#cells tbody").replaceChildren(...found.slice(first, first + ROWS).map(row => rowOf(shown, row)));
    find("#cells caption").textContent = shown.title;
    say("#place", found.length ? "Rows " + grouped(first + 1, 0) + " to " + grouped(Math.min(first + ROWS, found.length), 0) + " of " + grouped(found.length, 0) : "No such cell here");
    find("#previous").disabled = first === 0;
    find("#next").disabled = first + ROWS >= found.length;
    const ordered = shown.variables.length ? "largest first" : "in the order of the files";
    say("#held", shown.size < shown.all ? "The page holds only the " + grouped(shown.size, 0) + " " + (shown.variables.length ? "largest" : "first") + " of " + grouped(shown.all, 0) + " cells; the files beside it hold all." : shown.all === 1 ? "The table has one cell." : "All " + grouped(shown.all, 0) + " cells, " + ordered + ".");
    const flags = Object.entries(shown.flags).map(([name, why]) => name + ": " + why + ".").join(" ");
    const gaps = shown.gaps ? "A dash (" + DASH + ") in place of an interval means that the noise allows none, for example for an average in a cell that may be empty. " : "";
    say("#limit", "Numbers are rounded here; the files hold all digits. " + gaps + flags);
  };

  // As in the CSV files beside the page: no text begins as a spreadsheet's formula, and what is not private says so above.
  const guarded = text => /^['\t\r\n]|^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(text) ? "'" + text : text;
  const quoted = value => value === null ? "" : /[",\n\r]/.test(String(value)) ? '"' + String(value).replace(/"/g, '""') + '"' : String(value);
  const csv = () => {
    const shown = table(), {names: columns, variables, texts} = shown;
    const names = variables.flatMap(([name, accurate, fitted, , status]) => [name, ...(accurate ? ["_low", "_high", "_cv"].map(end => name + end) : []), ...["_fit", "_fit_low", "_fit_high"].slice(0, fitted).map(end => name + end), ...(status ? [name + "_status"] : [])]);
    const spreads = new Set();
    let place = texts.length;
    for (const [, accurate, fitted, , status] of variables) { if (accurate) spreads.add(place + 3); place += 1 + (accurate ? 3 : 0) + fitted + (status ? 1 : 0); }
    const cell = (row, at) => { const value = shown.columns[at](row); return spreads.has(at) ? cv(shown.columns[at - 3](row), value) : texts[at] && value !== null ? guarded(value) : value; };
    const rows = rowsFound(shown).map(row => shown.columns.map((_, at) => cell(row, at)));
    return (data.mark ? "# " + data.mark + "\n" : "") + [[...columns, ...names].map(guarded), ...rows].map(row => row.map(quoted).join(",")).join("\n") + "\n";
  };
  if (find("#which")) {
    const anew = () => { first = 0; browse(); window.recordwise.pick?.(null); };
    find("#which").addEventListener("change", anew);
    find("#find").addEventListener("input", anew);
    find("#find-table")?.addEventListener("input", event => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const button of all(".table-name")) button.parentElement.hidden = !words.every(word => button.textContent.toLowerCase().includes(word));
    });
    for (const button of all(".table-name")) button.addEventListener("click", () => { find("#which").value = button.dataset.table; find("#find").value = ""; anew(); find("#cells").scrollIntoView({block: "center"}); });
    find("#previous").addEventListener("click", () => { first -= ROWS; browse(); });
    find("#next").addEventListener("click", () => { first += ROWS; browse(); });
    find("#save").addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([csv()], {type: "text/csv"}));
      make("a", {href: address, download: table().name + "-rows.csv"}).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
    browse();
    window.recordwise.ready = unpack().then(browse, () => say("#held", "This browser is too old to open all cells here; the files beside the page hold them."));
  }
  window.recordwise.ready ??= Promise.resolve();
  Object.assign(window.recordwise, {csv, tables, cells: {cellText, intervalText, titleOf, keyText, placeOf, numbersOf, codesOf, rowsMatching, summary}});
})();
