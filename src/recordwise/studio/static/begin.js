import {find, make, options, say, scrolling} from "./dom.js";
import {post} from "./server.js";

// From a file to a first plan: what its columns are, which public lists there are. No record is read.
const ROLES = [["unit", "identifies a record"], ["sum", "is summed"], ["group", "is grouped by"], ["none", "is not used"]];
const TUNED = [["public", "on public data"], ["synthetic", "on made-up data"], ["past", "on past releases"]];
const megabytes = bytes => bytes < 1e6 ? Math.ceil(bytes / 1000).toLocaleString("en-US") + " kB" : Math.round(bytes / 1e6).toLocaleString("en-US") + " MB";
const field = (id, label, control, hint = "") => make("div", {class: "field"}, make("label", {for: id}, label), control, hint ? make("span", {class: "hint"}, hint) : null);

export const openBegin = (about, begun) => {
  const host = find("#begin"), told = make("p", {role: "status", id: "cells-told", class: "told"}), tables = make("div"), rest = make("div"), text = make("pre", {id: "draft", tabindex: "0", role: "region", "aria-label": "The plan"});
  const file = make("select", {id: "records"}), headed = make("input", {type: "checkbox", id: "headed"}), go = make("button", {type: "submit", class: "primary", id: "go", disabled: true}, "Write the plan and go on");
  say("#intro", "Choose a file of records in this folder and say what its columns are. Only names and types of columns are read, and public lists.");
  if (!about.files.length) { say("#intro", "This folder has no file of records (Parquet or CSV). Start the studio in a folder that has one."); return; }
  options(file, about.files.map(each => [each.name, `${each.name} (${megabytes(each.bytes)})`]), about.files[0].name);
  let proposed = null, timer = 0, asked = 0, turn = 0;
  const value = id => find("#" + id)?.value.trim() ?? "";
  const roleOf = name => find(`[data-role="${CSS.escape(name)}"]`).value;
  const form = () => {
    const names = proposed.columns.map(each => each.name), of = role => names.filter(name => roleOf(name) === role);
    const lists = Object.fromEntries(Object.keys(proposed.lists).filter((_, at) => find("#list-" + at).checked).map(each => [each, value("levels-" + Object.keys(proposed.lists).indexOf(each))]));
    const held = Object.values(lists).flatMap(each => each.split(",").map(level => level.trim()));
    const typed = kind => Object.fromEntries(of("sum").map(name => [name, find(`[data-${kind}="${CSS.escape(name)}"]`).value.trim()]));
    return {records: file.value, headed: headed.checked, unit: of("unit"), sums: typed("large"), steps: typed("step"), by: of("group").filter(name => !held.includes(name)),
      codes: Object.fromEntries(of("group").filter(name => !held.includes(name)).map(name => [name, find(`[data-codes="${CSS.escape(name)}"]`).value])),
      lists, sizes: value("sizes"), size_columns: value("sizes") ? Object.fromEntries(of("sum").map(name => [name, find(`[data-size="${CSS.escape(name)}"]`)?.value ?? ""])) : {}, tuned_on: value("tuned")};
  };
  const shape = () => {
    const held = new Set(Object.keys(proposed.lists).flatMap((_, at) => find("#list-" + at).checked ? value("levels-" + at).split(",").map(level => level.trim()) : []));
    for (const {name} of proposed.columns) {
      const role = roleOf(name), line = find(`[data-line="${CSS.escape(name)}"]`);
      for (const at of line.querySelectorAll("[data-for]")) at.hidden = at.dataset.for !== role || (role === "group" && held.has(name));
    }
    const columns = proposed.sizes[value("sizes")] ?? [], sums = proposed.columns.map(each => each.name).filter(name => roleOf(name) === "sum"), before = Object.fromEntries(sums.map(name => [name, find(`[data-size="${CSS.escape(name)}"]`)?.value]));
    find("#size-columns").replaceChildren(...(columns.length ? sums.map((name, at) => {
      const select = make("select", {id: "size-" + at, "data-size": name});
      const guess = before[name] ?? columns.find(each => each === name) ?? columns.find(each => each.toLowerCase().startsWith(name.slice(0, 3).toLowerCase())) ?? columns[0];
      options(select, columns.map(each => [each, each]), guess);
      return field("size-" + at, "Size of a cell in " + name, select);
    }) : []));
  };
  const draft = async () => {
    const own = ++asked;
    try {
      const found = await post("/draft", {form: form()});
      if (own !== asked) return;
      say(text, found.text);
      say(told, found.problem ? "Left to say: " + found.problem : `${found.cells.toLocaleString("en-US")} cells would be published, in ${found.tables.length} tables.`);
      tables.replaceChildren(...found.tables.length ? [make("details", {}, make("summary", {}, "Table by table"), make("ul", {}, found.tables.map(each => make("li", {}, `${each.name}: ${each.cells.toLocaleString("en-US")} cells`))))] : []);
      go.disabled = Boolean(found.problem);
    } catch (problem) { if (own === asked) { say(told, "Left to say: " + problem.message); go.disabled = true; } }
  };
  const changed = () => { shape(); clearTimeout(timer); timer = setTimeout(draft, 250); };
  const column = each => {
    const role = make("select", {"data-role": each.name, "aria-label": each.name + ": what it is"});
    options(role, ROLES, each.role);
    const box = (kind, label, given) => make("label", {class: "small", "data-for": kind === "codes" ? "group" : "sum"}, label + " ", make("input", {type: "text", ["data-" + kind]: each.name, value: given, autocomplete: "off"}));
    return make("tr", {"data-line": each.name}, make("th", {scope: "row"}, each.name, make("span", {class: "fine"}, each.kind || "no type")), make("td", {class: "words"}, role),
      make("td", {class: "words"}, box("large", "a usual large value", ""), box("step", "in steps of", each.step), box("codes", "its published codes, with commas", "")));
  };
  const propose = async () => {
    const csv = /\.csv$/i.test(file.value), own = ++turn;
    find("#headed-field").hidden = !csv;
    if (csv && !headed.checked) {
      asked++; clearTimeout(timer);
      go.disabled = true;
      say(told, ""); say(text, ""); tables.replaceChildren();
      rest.replaceChildren(make("p", {}, "The first line of this file would be shown here and written into the plan. Say above that it holds names, and no record."));
      return;
    }
    let found = null;
    try {
      found = await post("/propose", {records: file.value, headed: headed.checked});
    } catch (problem) { if (own === turn) rest.replaceChildren(make("p", {role: "alert"}, problem.message)); return; }
    if (own !== turn) return;
    proposed = found;
    const sizes = make("select", {id: "sizes"}), tuned = make("select", {id: "tuned"});
    options(sizes, [["", "none"], ...Object.keys(proposed.sizes).map(each => [each, each])], Object.keys(proposed.sizes)[0] ?? "");
    options(tuned, TUNED, "public");
    rest.replaceChildren(
      make("h3", {}, "Its columns"), scrolling("The columns of the file", make("table", {class: "columns"}, make("caption", {class: "hidden"}, "The columns of the file"),
        make("thead", {}, make("tr", {}, ["column", "what it is", "more"].map(each => make("th", {scope: "col", class: "left"}, each)))), make("tbody", {}, proposed.columns.map(column)))),
      make("h3", {}, "Public lists of codes"),
      Object.keys(proposed.lists).length ? make("div", {}, Object.entries(proposed.lists).map(([name, levels], at) => make("div", {class: "field list"}, make("label", {}, make("input", {type: "checkbox", id: "list-" + at, checked: true}), " " + name), make("label", {class: "small", for: "levels-" + at}, "its levels, the coarsest first"), make("input", {type: "text", id: "levels-" + at, value: levels, autocomplete: "off"}))))
        : make("p", {class: "fine"}, "No CSV file of this folder has a column of the records after a coarser level, such as state before county."),
      make("div", {class: "controls"}, field("sizes", "Sizes of cells, from last year's table", sizes, "then noise follows the size of a cell"), make("div", {id: "size-columns", class: "controls"}), field("tuned", "Sizes and codes were chosen", tuned)));
    shape();
    draft();
  };
  host.replaceChildren(make("h2", {id: "begin-title"}, "A first plan"), make("form", {id: "begin-form"}, field("records", "File of records", file), make("div", {class: "field", id: "headed-field", hidden: true}, make("label", {}, headed, " Its first line holds the names of columns, and no record")), rest, told, tables, make("details", {}, make("summary", {}, "The plan as text"), text), go));
  host.hidden = false;
  file.addEventListener("change", () => { headed.checked = false; propose(); });
  headed.addEventListener("change", propose);
  rest.addEventListener("input", changed);
  rest.addEventListener("change", changed);
  find("#begin-form").addEventListener("submit", async event => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    try { await post("/begin", {form: form()}); } catch (problem) { say(told, problem.message); return; }
    host.hidden = true;
    begun();
  });
  propose();
};
