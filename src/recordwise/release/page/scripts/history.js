"use strict";
(() => {
  const {find, make, say} = window.recordwise.words, {cellText, intervalText, titleOf} = window.recordwise.cells;
  let picked = null;

  // One cell over the periods.
  const series = ({shown, row}, chosen) => {
    let at = shown.keys.length;
    for (const [, accurate, fitted, , status] of shown.variables.slice(0, chosen)) at += 1 + (accurate ? 3 : 0) + fitted + (status ? 1 : 0);
    const accurate = shown.variables[chosen][1], now = [shown.columns[at], accurate ? shown.columns[at + 1] : () => null, accurate ? shown.columns[at + 2] : () => null];
    return [...shown.past[chosen], now].map((three, number) => [shown.periods[number] ?? data.period, ...three.map(column => column(row))]);
  };
  const svg = (name, attributes, ...children) => {
    const made = document.createElementNS(find("#history-chart").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const ticks = (low, high) => {
    const raw = (high - low) / 4, power = Math.pow(10, Math.floor(Math.log10(raw))), step = [1, 2, 5, 10].map(each => each * power).find(each => each >= raw);
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(Math.abs(at) < step / 1e6 ? 0 : at);
    return found;
  };
  const draw = points => {
    const known = points.filter(([, value]) => value !== null), ends = known.flatMap(([, ...three]) => three.filter(each => each !== null));
    const low = Math.min(0, ...ends), high = Math.max(...ends, low + 1e-9), marks = ticks(low, high);
    const bottom = Math.min(low, marks[0]), top = Math.max(high, marks[marks.length - 1]);
    const x = number => 70 + 350 * (points.length > 1 ? number / (points.length - 1) : 0.5), y = value => 172 - 160 * (value - bottom) / (top - bottom || 1);
    const parts = marks.flatMap(mark => [svg("line", {class: "grid", x1: 58, x2: 432, y1: y(mark), y2: y(mark)}), svg("text", {x: 54, y: y(mark) + 4, "text-anchor": "end"}, cellText(mark))]);
    points.forEach(([period, value, from, to], number) => {
      parts.push(svg("text", {x: x(number), y: 192, "text-anchor": "middle"}, period));
      if (from !== null && to !== null) parts.push(svg("line", {class: "interval", x1: x(number), x2: x(number), y1: y(from), y2: y(to)}));
      if (value !== null) parts.push(svg("circle", {class: "you", cx: x(number), cy: y(value), r: 4.5}));
    });
    find("#history-chart").replaceChildren(...parts);
  };
  const follow = () => {
    find("#history").hidden = !picked;
    if (!picked) return;
    const {shown, row} = picked, choice = find("#history-of");
    if (choice.dataset.table !== shown.name) {
      choice.replaceChildren(...shown.variables.map(([, , , title], at) => make("option", {value: at}, title)));
      choice.dataset.table = shown.name;
    }
    const points = series(picked, +choice.value);
    say("#history-title", titleOf(shown, row) + ": " + shown.variables[+choice.value][3]);
    draw(points);
    // Where noise is carried on, the change is more accurate than both ends.
    const reach = shown.changes?.[+choice.value] ?? null, [[, before], [, now]] = points.slice(-2), moved = now - before;
    const change = reach === null || before === null || now === null ? [] : [make("tr", {class: "change"}, make("th", {scope: "row"}, "change"), make("td", {}, (moved > 0 ? "+" : "") + cellText(moved)), make("td", {class: "interval"}, intervalText(moved - reach, moved + reach)))];
    find("#history-table tbody").replaceChildren(...[...points.map(([period, value, low, high]) => make("tr", {}, make("th", {scope: "row"}, period), make("td", {}, cellText(value)), make("td", {class: "interval"}, value === null ? "" : intervalText(low, high)))), ...change]);
  };
  find("#history-of").addEventListener("change", follow);
  window.recordwise.pick = cell => { picked = cell; follow(); };
})();
