import {draw, make, put} from "./dom.js";

// A chart is a table with a picture in each row: names and numbers are text at any zoom, and what is drawn is never all there is.
// In a picture 0 to 100 runs from the low to the high end of the axis, whatever its width.
export const logScale = (low, high) => value => value <= low ? 0 : value >= high ? 100 : 100 * Math.log(value / low) / Math.log(high / low);
export const linear = value => 100 * Math.min(1, Math.max(0, value));
const picture = (...children) => draw("svg", {class: "row", viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true"}, children);
const upright = (className, x) => draw("line", {class: className, x1: x, x2: x, y1: 0, y2: 20});
const dot = (className, x) => draw("line", {class: className, x1: x, x2: x + 0.001, y1: 10, y2: 10});
const move = (line, x) => { put(line, "x1", x); put(line, "x2", x + 0.001); };

const nameOf = row => make("th", {scope: "row"}, row.name, row.fine ? make("span", {class: "fine"}, row.fine) : null, row.share ? make("span", {class: "fine"}, make("span", {"data-key": row.share}), " of all") : null);
const axisRow = (ticks, scale, ends) => {
  const marks = ticks.map(([value, text]) => {
    const mark = make("span", {class: "tick"}, text);
    mark.style.left = scale(value) + "%";
    return mark;
  });
  return make("div", {class: "axis", "aria-hidden": "true"}, make("div", {class: "ticks"}, marks), ends ? make("div", {class: "ends"}, ends.map(text => make("span", {}, text))) : null);
};

// Dots on an axis: where each row is now, and where the plan of today is.
export const dotChart = ({caption, headers, scale, ticks, ends = null, lines = []}) => {
  const body = make("tbody"), table = make("table", {class: "chart-table"},
    make("caption", {class: "hidden"}, caption),
    make("thead", {}, make("tr", {}, make("th", {scope: "col", class: "left"}, headers[0]), make("th", {scope: "col", class: "drawn"}, make("span", {class: "hidden"}, "drawn"), axisRow(ticks, scale, ends)), headers.slice(1).map(text => make("th", {scope: "col"}, text)))), body);
  let names = "", parts = [];
  const build = rows => {
    parts = rows.map(row => {
      const now = dot("dot now" + (row.kind ? " " + row.kind : ""), 0), today = upright("today", 0), from = draw("line", {class: "from", y1: 10, y2: 10});
      const spread = draw("line", {class: "spread", y1: 10, y2: 10}), texts = row.keys.map(key => make("td", {class: "value", "data-key": key}));
      const grid = [...ticks.map(([value]) => upright("grid", scale(value))), ...lines.map(([value]) => upright("limit", scale(value)))];
      return {now, today, from, spread, line: make("tr", {class: row.kind ?? null}, nameOf(row), make("td", {class: "drawn"}, picture(grid, spread, from, today, now)), texts)};
    });
    body.replaceChildren(...parts.map(each => each.line));
  };
  const update = rows => {
    const found = JSON.stringify(rows.map(({name, keys}) => [name, keys]));
    if (found !== names) { names = found; build(rows); }
    rows.forEach((row, at) => {
      const {now, today, from, spread} = parts[at], x = scale(row.value), then = scale(row.today);
      move(now, x); move(today, then);
      put(from, "x1", then); put(from, "x2", x);
      put(spread, "x1", row.low === undefined ? x : scale(row.low)); put(spread, "x2", row.high === undefined ? x : scale(row.high));
    });
  };
  return {table, update};
};

// Shares that add up to all, one stacked bar for each row.
export const stackChart = ({caption, headers, names: kinds}) => {
  const body = make("tbody"), table = make("table", {class: "chart-table stack"},
    make("caption", {class: "hidden"}, caption),
    make("thead", {}, make("tr", {}, make("th", {scope: "col", class: "left"}, headers[0]), make("th", {scope: "col", class: "drawn"}, make("ul", {class: "keys"}, kinds.map((name, at) => make("li", {}, make("span", {class: "swatch k" + at, "aria-hidden": "true"}), name)))),
      ...kinds.map((name, at) => make("th", {scope: "col", class: at ? "hidden" : null}, name)))), body);
  let names = "", parts = [];
  const build = rows => {
    parts = rows.map(row => {
      const bars = row.shares.map((_, at) => draw("rect", {class: "k" + at, y: 4, height: 12})), today = upright("today", 0), texts = row.keys.map((key, at) => make("td", {class: at ? "hidden" : "value", "data-key": key}));
      return {bars, today, line: make("tr", {}, nameOf(row), make("td", {class: "drawn"}, picture(bars, today)), texts)};
    });
    body.replaceChildren(...parts.map(each => each.line));
  };
  const update = rows => {
    const found = JSON.stringify(rows.map(({name, keys}) => [name, keys]));
    if (found !== names) { names = found; build(rows); }
    rows.forEach((row, at) => {
      const {bars, today} = parts[at];
      let start = 0;
      row.shares.forEach((share, kind) => {
        put(bars[kind], "x", start); put(bars[kind], "width", Math.max(0, 100 * share));
        start += 100 * share;
      });
      move(today, linear(row.today));
    });
  };
  return {table, update};
};

// A tile for each state, as on the policy page; darker where a larger share is reliable.
export const tileMap = (tiles, label) => {
  const svg = draw("svg", {class: "tiles", viewBox: "0 0 437 317", role: "img", "aria-label": label}), made = new Map();
  for (const [code, [short, across, down]] of Object.entries(tiles)) {
    const title = draw("title"), text = draw("text", {x: 40 * across + 18.5, y: 40 * down + 23, "text-anchor": "middle"}, short);
    const group = draw("g", {class: "tile"}, title, draw("rect", {x: 40 * across, y: 40 * down, width: 37, height: 37, rx: 3}), text);
    made.set(code, {group, title});
    svg.append(group);
  }
  const update = rows => {
    for (const {code, share, text} of rows) {
      const tile = made.get(code);
      if (!tile) continue;
      put(tile.group, "class", "tile q" + Math.min(4, Math.floor(5 * share)));
      if (tile.title.textContent !== text) tile.title.textContent = text;
    }
  };
  return {svg, update};
};

// The frontier: what is reliable and what a typical record loses, at each position of the control above which it is drawn.
export const frontierChart = svg => {
  const width = 1000, height = 120, area = draw("path", {class: "area"}), curve = draw("path", {class: "curve"}), loss = draw("path", {class: "loss"}), here = draw("line", {class: "here", y1: 0, y2: height}), today = draw("line", {class: "today", y1: 0, y2: height});
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren(area, curve, loss, today, here);
  const x = (at, count) => count > 1 ? width * at / (count - 1) : width / 2;
  return {
    curves: (shares, losses) => {
      const up = logScale(0.001, 1000), points = shares.map((share, at) => [x(at, shares.length), height - 4 - (height - 8) * share]);
      const line = points.map(([a, b]) => a.toFixed(1) + " " + b.toFixed(1)).join("L");
      put(curve, "d", "M" + line);
      put(area, "d", `M0 ${height}L${line}L${width} ${height}Z`);
      put(loss, "d", "M" + losses.map((each, at) => x(at, losses.length).toFixed(1) + " " + (height - 4 - (height - 8) * up(each) / 100).toFixed(1)).join("L"));
    },
    at: (position, planned, count) => { move(here, x(position, count)); move(today, x(planned, count)); },
  };
};
