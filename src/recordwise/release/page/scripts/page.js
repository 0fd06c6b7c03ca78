"use strict";
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const say = (selector, text) => { const at = find(selector); if (at && at.textContent !== text) at.textContent = text; };
  const fill = (name, values) => data.sentences[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);

  // Numbers as a person reads them.
  const grouped = (value, digits) => value.toLocaleString("en-US", {maximumFractionDigits: digits});
  const exactly = (value, digits) => value.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
  const short = value => value.toExponential(2).replace(/\.?0*e\+?(-?\d+)/, (_, power) => " × 10" + raised(power)).replace(/^1 × /, "");
  const raised = text => text.replace("-", "⁻").replace(/\d/g, digit => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
  const figure = value => {
    if (!Number.isFinite(value)) return "without limit";
    const size = Math.abs(value);
    if (size && (size >= 1e15 || size < 1e-4)) return short(value);
    return grouped(value, size ? Math.max(0, 3 - Math.floor(Math.log10(size))) : 0);
  };
  const chance = value => value >= 1e-4 ? String(Number(value.toPrecision(3))) : short(value).replace(/^10/, "1 × 10");
  const percent = (share, digits) => exactly(100 * share, digits) + "%";
  const places = field => field.step[1] === 1 ? 0 : Math.ceil(Math.log10(field.step[1]) - 1e-9);
  const amountText = (value, field) => exactly(value, places(field));
  const factor = logOdds => {
    if (logOdds > 14) return "10" + raised((logOdds / Math.LN10).toFixed(0));
    const value = Math.exp(logOdds);
    return value < 100 ? value.toFixed(2) : grouped(value, 0);
  };

  // What a loss means: the formulas of recordwise.policy.meaning and .conversions.
  const orders = Array.from({length: 400}, (_, i) => 1 + 1e-4 * Math.pow(1e8, i / 399));
  const within = (p, q, rho) => orders.every(order => {
    const hit = order * Math.log(p) + (1 - order) * Math.log(q);
    const miss = p < 1 ? order * Math.log1p(-p) + (1 - order) * Math.log1p(-q) : -Infinity;
    const top = Math.max(hit, miss);
    return (top + Math.log(Math.exp(hit - top) + Math.exp(miss - top))) / (order - 1) <= order * rho * (1 + 1e-12);
  });
  const powerAt = (rho, level) => {
    if (rho === Infinity) return 1;
    let low = level, high = 1;
    for (let i = 0; i < 60; i++) {
      const middle = (low + high) / 2;
      if (middle < 1 && within(middle, level, rho) && within(level, middle, rho)) low = middle; else high = middle;
    }
    return Math.min(1, high + 1e-9);
  };
  const power = (rho, own) => {
    const inside = own < 1 ? 0.05 / (1 - own) : 1;
    return inside >= 1 ? 1 : Math.min(1, own + (1 - own) * powerAt(rho, inside));
  };
  const epsilon = (rho, delta) => {
    if (rho === 0 || rho === Infinity) return rho;
    const at = t => {
      const less = Math.exp(t), order = 1 + less;
      return order * rho + (-Math.log(delta) - t + order * (t - Math.log1p(less))) / less;
    };
    let best = -25;
    for (let t = -25; t <= 60; t += 0.25) if (at(t) < at(best)) best = t;
    let low = best - 0.25, high = best + 0.25;
    for (let i = 0; i < 100; i++) {
      const left = low + (high - low) / 3, right = high - (high - low) / 3;
      if (at(left) < at(right)) high = right; else low = left;
    }
    return Math.max(0, at((low + high) / 2));
  };
  // Where all noise is Gaussian on a lattice: a table made in Python, its next entry taken; else the zCDP loss alone.
  const lookedUp = (record, {rho, delta}) => {
    const known = withPure({epsilon: epsilon(rho, data.delta), power: power(rho, delta)}, record);
    if (!data.meaning || delta > 0) return known;
    const {start, ratio, weights} = data.meaning, own = (weight, at) => Array.isArray(weight) ? weight[model.bands[at](record)] : weight;
    const smooth = weights.reduce((sum, weight, at) => weight ? sum + own(weight, at) * model.parts[at](record) : sum, 0);
    const mu = Math.sqrt(2 * smooth) * (1 + 1e-9);
    const at = mu === 0 ? 0 : 1 + Math.max(0, Math.ceil(Math.log(mu / start) / Math.log(ratio)));
    return at >= data.meaning.epsilon.length ? known : {epsilon: Math.min(known.epsilon, data.meaning.epsilon[at]), power: Math.min(known.power, data.meaning.power[at])};
  };
  const groupLoss = losses => Math.pow(losses.reduce((sum, loss) => sum + Math.sqrt(loss), 0), 2);

  // The band of values that cannot be distinguished from the record's own (T-VALUE).
  const furthest = (holds, most) => {
    let low = 0, high = most + 1;
    while (high - low > 1) {
      const middle = low ? Math.floor((low + high) / 2) : Math.min(high - 1, Math.max(1, Math.floor(high / 65536)));
      if (holds(middle)) low = middle; else high = middle;
    }
    return low;
  };
  const inSteps = (record, field) => {
    const [up, down] = field.step, value = steps => steps * up / down;
    const raw = record[field.name] * down / up;
    const own = raw < 0 ? Math.round(raw) : Math.floor(raw * (1 + 1e-15));
    const most = Math.min(Math.floor(field.bound * down / up), Number.MAX_SAFE_INTEGER - 1);
    const least = field.signed ? -most : 0;
    const between = (low, high) => {
      const reach = high < most && Math.abs(2 * own - low - high) <= 1 ? Math.max(own - low, high - own) : null;
      return {field, low: value(low), high: high >= most ? null : value(high), reach: reach === null ? null : value(reach), open: low === least && high >= most};
    };
    return {own, least, most, between, at: steps => ({...record, [field.name]: value(steps)})};
  };
  const band = (record, field) => {
    const {own, least, most, between, at} = inSteps(record, field);
    const hides = (low, high) => model.change(at(low), at(high)) <= data.bandLoss;
    const alike = furthest(away => hides(Math.max(least, own - away), own + away), Math.max(0, most - own));
    let low = Math.max(least, own - alike), high = own + alike;
    low -= furthest(away => hides(low - away, high), low - least);
    high += furthest(away => hides(low, high + away), Math.max(0, most - high));
    return between(low, high);
  };
  // What an attacker who knows all else can tell (T-INFER): recordwise.mechanisms.inference.is_hidden.
  const told = (record, field) => {
    const numbers = model.numbers[field.name], {joint, squares} = data.reaches[field.name];
    const places = numbers.map((_, at) => at).filter(at => numbers[at][0](record)), together = joint[places.join(",")];
    const [first] = places, gaussian = places.every(at => numbers[at][3] > 0);
    if (!places.length || (places.length > 1 && together === undefined && !gaussian)) return null;
    const {own, least, most, between, at} = inSteps(record, field);
    const alone = places.length === 1 ? numbers[first][2] : together;
    const hides = steps => alone !== undefined ? numbers[first][1](at(own), at(steps)) <= alone
      : places.reduce((sum, place) => sum + numbers[place][3] * Math.pow(numbers[place][1](at(own), at(steps)), 2), 0) <= squares;
    const found = between(own - furthest(away => hides(own - away), own - least), own + furthest(away => hides(own + away), Math.max(0, most - own)));
    return found.open ? null : found;
  };

  // What was typed.
  class Misread extends Error {}
  // 1.000 means one in some countries and a thousand in others, and 0,125 the reverse: neither is guessed.
  const twofold = /^[+-]?[1-9]\d{0,2}\.\d{3}$/;
  const grouping = /^[+-]?[1-9]\d{0,2}([, \u00a0\u202f'’])\d{3}(\1\d{3})*(\.\d+)?$/;
  const typed = value => { const text = grouped(value, 9); return twofold.test(text) ? text + "0" : text; };
  const number = (text, field) => {
    let plain = text.trim();
    if (twofold.test(plain)) throw new Misread("Write " + plain.replace(".", "") + " or " + plain + "0: this is ambiguous.");
    if (grouping.test(plain)) plain = plain.replace(/[, \u00a0\u202f'’]/g, "");
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) throw new Misread("Write a number such as 1200 or 1,200.5.");
    const value = Number(plain);
    if (value < 0 && field.kind === "amount" && !field.signed) throw new Misread("It cannot be below 0.");
    if (field.bound && Math.abs(value) > field.bound) throw new Misread("It can be at most " + grouped(field.bound, 2) + ".");
    const [up, down] = field.step ?? [0, 1], steps = value * down / up;
    if (up && Math.abs(steps - Math.round(steps)) > 1e-9 * Math.max(1, Math.abs(steps))) throw new Misread(up === down ? "Write a whole number." : "Write a multiple of " + grouped(up / down, 12) + ".");
    return value;
  };
  const day = text => {
    if (!text) return null;
    const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text), found = new Date(0);
    if (parts) found.setUTCFullYear(+parts[1], parts[2] - 1, +parts[3]);
    if (!parts || +parts[1] < 1 || found.getUTCDate() !== +parts[3] || found.getUTCMonth() !== parts[2] - 1)
      throw new Misread("Write a date such as 2024-12-31.");
    return text;
  };
  const read = (control, field) => {
    if (field.kind === "choice") return field.options[control.value][1];
    if (field.kind === "date") return day(control.value.trim());
    return field.kind === "text" ? listedAs(field.name, control.value)[0] || null : number(control.value, field);
  };
  // A code or its name; and whether that is published, where the page holds all codes.
  const listedAs = (column, text) => window.recordwise?.listedAs?.(column, text.trim()) ?? [text.trim(), true];
  const hintOf = (hint, text) => { if (hint) { hint.dataset.usual ??= hint.textContent; hint.textContent = text || hint.dataset.usual; } };
  const readAll = controls => {
    const record = {};
    let fine = true;
    data.fields.forEach((field, at) => {
      const control = controls[at], hint = control.parentElement.querySelector(".hint");
      try {
        record[field.name] = read(control, field);
        control.removeAttribute("aria-invalid");
        hintOf(hint, field.kind === "text" && !listedAs(field.name, control.value)[1] && "Not a published code: " + control.value.trim() + ". The loss shown is that of a code that is not listed.");
      } catch (problem) {
        if (!(problem instanceof Misread)) throw problem;
        fine = false;
        control.setAttribute("aria-invalid", "true");
        hintOf(hint, problem.message);
      }
    });
    return fine ? record : null;
  };

  // The answer.
  const amounts = data.fields.filter(field => field.kind === "amount");
  // What a number of a measure is a number of: its unit where one is declared, "66 employees" and not "66 employment".
  const inUnits = ({name, label}) => (/^\d/.test(data.units[name] ?? "") ? "× " : "") + (data.units[name] || label);
  const bandText = each => each.high === null
    ? fill("open band", {low: amountText(each.low, each.field), label: inUnits(each.field)})
    : fill("one band", {low: amountText(each.low, each.field), high: amountText(each.high, each.field), label: inUnits(each.field)});
  const toldText = each => {
    const label = each.field.label, unit = data.units[each.field.name] ? " (" + data.units[each.field.name] + ")" : "";
    if (each.low === each.high) return fill("told exactly", {label, unit});
    if (each.reach !== null) return fill("told within", {label, unit, reach: amountText(each.reach, each.field)});
    return each.high === null ? fill("told from", {label, unit, low: amountText(each.low, each.field)})
      : fill("told between", {label, unit, low: amountText(each.low, each.field), high: amountText(each.high, each.field)});
  };
  const listed = clauses => [clauses.slice(0, -1).join(", "), clauses[clauses.length - 1]].filter(Boolean).join(" or ");
  const leadText = (rho, bands, own = 0) => {
    if (rho === 0) return data.sentences.nothing;
    if (rho === Infinity) return data.sentences["no promise"];
    const odds = fill(rho > 100 ? "no limit" : rho > 14 ? "great odds" : "odds", {mean: factor(rho)}) + (own ? fill("but", {own: chance(own)}) : "");
    const hidden = bands.filter(each => each.low !== each.high).map(bandText);
    const exact = bands.filter(each => each.low === each.high).map(each => fill("exactly", {label: each.field.label}));
    return [odds, ...(hidden.length ? [fill("band", {bands: listed(hidden)})] : []), ...exact].join("; ") + ".";
  };
  const detailText = (rho, own, best, values, pure) => {
    const told = [fill("test", {power: percent(best, 1)})];
    if (values.length) told.push(fill("told", {values: values.map(toldText).join(" and ")}));
    if (own) told.push(fill("selected", {own: chance(own)}));
    const likely = rho + 2 * Math.sqrt(rho * Math.log(20));
    if (rho > 0 && rho <= 100) told.push(pure <= likely ? fill("never", {tail: factor(pure)}) : fill("tail", {tail: factor(likely)}));
    if (rho > 0 && data.whyNoBand && amounts.length) told.push(fill("no band", {reason: data.whyNoBand}));
    return told.join(" ");
  };
  const bandsOf = (record, rho) => model.change && rho > 0 && rho < Infinity ? amounts.map(field => band(record, field)) : [];
  const valuesOf = (record, rho) => rho > 0 && rho < Infinity ? amounts.filter(field => data.reaches[field.name]).map(field => told(record, field)).filter(Boolean) : [];
  const answer = (record, {rho, delta}) => {
    const bands = bandsOf(record, rho), exact = lookedUp(record, {rho, delta});
    say("#lead", leadText(rho, bands, delta));
    say("#details", detailText(rho, delta, exact.power, valuesOf(record, rho), exact.pure));
    find("#reliably").hidden = !bands.length;
    const rows = [["privacy loss ρ", figure(rho)]];
    if (data.hasDelta) rows.push(["its δ", figure(delta)], ["the pair (ρ, δ)", "(" + figure(rho) + ", " + figure(delta) + ")"]);
    rows.push(["ε at δ = " + figure(data.delta + delta), figure(exact.epsilon)], ["ε is computed from", exact.from ?? (data.meaning ? "the exact law of the noise" : "the zCDP loss ρ")]);
    if (exact.from) rows.push(["pure ε, at δ = 0", figure(exact.pure)]);
    const sizes = new Map();
    for (const [about, words] of model.sizes) sizes.set(about, (sizes.get(about) ?? new Set()).add(words(record)));
    const listed = pairs => pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    find("#numbers").replaceChildren(...listed(rows));
    find("#bands").hidden = !sizes.size;
    find("#bands dl").replaceChildren(...listed([...sizes].map(([about, found]) => ["public size of your cell (" + about + ")", [...found].join("; ")])));
    find("#gauge").setAttribute("cx", place([1e-3, 1e3, 12, 428], rho));
  };

  // Charts.
  const place = ([low, high, start, end], value) => {
    const share = Math.log(Math.max(value, 1e-300) / low) / Math.log(high / low);
    return start + (end - start) * Math.min(Math.max(share, low === 1e-3 && high === 1e3 ? 0 : -0.2), low === 1e-3 && high === 1e3 ? 1 : 1.2);
  };
  const charts = all("figure.measure").map((root, at) => {
    const drawn = data.figures[at], sizes = drawn.sizes, svg = find("svg", root), slider = find("input", root);
    const across = [sizes[0], sizes[sizes.length - 1], data.axes.left, data.axes.right];
    const chart = {root, drawn, across, slider, here: sizes.length >> 1, losses: [], field: data.fields.find(field => field.name === drawn.name)};
    const follow = () => {
      const here = chart.here, size = sizes[here], x = place(across, size);
      slider.value = 1000 * (x - across[2]) / (across[3] - across[2]);
      for (const line of all(".cursor", root)) for (const [end, value] of [["x1", x], ["x2", x], ["visibility", "visible"]]) line.setAttribute(end, value);
      const noises = drawn.noises.map(([name, shares]) => name + " " + (shares[here] === null ? "without variance" : shares[here] > 10 ? "over 1,000%" : grouped(100 * shares[here], shares[here] < 0.01 ? 2 : shares[here] < 0.1 ? 1 : 0) + "%"));
      const told = "At " + grouped(size, 6) + " " + inUnits(chart.field) + ": loss " + figure(chart.losses[here]) +
        (noises.length ? "; noise of a total: " + noises.join(", ") : "") + ".";
      find(".readout", root).textContent = told;
      slider.setAttribute("aria-valuetext", told);
    };
    slider.addEventListener("input", () => { chart.moved = true; goTo(across[2] + slider.value / 1000 * (across[3] - across[2])); });
    slider.addEventListener("keydown", event => {
      const step = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      chart.moved = true;
      chart.here = Math.min(sizes.length - 1, Math.max(0, chart.here + step));
      follow();
    });
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      chart.moved = true;
      goTo(x);
    });
    const goTo = x => {
      let nearest = 0;
      sizes.forEach((size, i) => { if (Math.abs(place(across, size) - x) < Math.abs(place(across, sizes[nearest]) - x)) nearest = i; });
      chart.here = nearest;
      follow();
    };
    chart.goTo = goTo;
    chart.follow = follow;
    return chart;
  });
  const lossAt = record => { try { return model.loss(record).rho; } catch { return Infinity; } };
  const redraw = (chart, record, rho) => {
    const {root, drawn, across} = chart, up = data.axes.loss;
    chart.losses = drawn.sizes.map(size => lossAt({...record, [drawn.name]: size}));
    const points = drawn.sizes.map((size, i) => [size, chart.losses[i]]).filter(([, loss]) => loss > 0 && loss < Infinity);
    const d = points.map(([size, loss]) => place(across, size).toFixed(1) + " " + place(up, loss).toFixed(1)).join("L");
    find("path.loss", root).setAttribute("d", d ? "M" + d : "M0 0");
    const y = rho > 0 && rho < Infinity ? place(up, rho) : -99;
    for (const end of ["y1", "y2"]) find("line.constant", root).setAttribute(end, y);
    const own = Math.abs(record[drawn.name]);
    find("circle.you", root).setAttribute("cx", own > 0 ? place(across, own) : -99);
    find("circle.you", root).setAttribute("cy", y);
    for (const cell of all("td.at", root)) cell.textContent = figure(chart.losses[+cell.dataset.at]);
    if (chart.moved || !(own > 0)) chart.follow(); else chart.goTo(place(across, own));
  };

  // One loss for everyone.
  const scaled = (record, times) => ({
    ...record,
    ...Object.fromEntries(amounts.map(({name, step: [up, down]}) => [name, Math.round(record[name] * times * down / up) * up / down])),
  });
  const compare = (record, rho) => {
    const sizes = amounts.map(field => amountText(record[field.name], field) + " " + inUnits(field)).join(" and ");
    say("#same-told", "If your loss of " + figure(rho) + " were guaranteed to everyone with the same noise, no establishment could count for more than " + sizes + ".");
    for (const row of all("#same-table tbody tr")) {
      const times = +row.dataset.factor, cells = row.querySelectorAll("td");
      cells[0].textContent = figure(lossAt(scaled(record, times)));
      cells[1].textContent = figure(rho);
      cells[2].textContent = percent(Math.min(1, 1 / times), times > 100 ? 1 : 0);
    }
  };

  // What the periods of a series add up to, for an establishment that stays the same.
  const addUp = record => {
    const losses = model.periods.map(loss => { try { return loss(record); } catch { return NaN; } });
    losses.push(losses.reduce((sum, loss) => sum + loss, 0));
    all("#years-table .own").forEach((cell, at) => { cell.textContent = isNaN(losses[at]) ? "?" : figure(losses[at]); });
  };

  // How the budget was spent.
  const spend = (record, rho) => {
    const shares = model.parts.map(part => { try { return part(record); } catch { return Infinity; } });
    all("#spending tr.part").forEach((row, at) => {
      const share = rho > 0 && rho < Infinity ? shares[at] / rho : 0;
      find(".own", row).textContent = figure(shares[at]);
      find(".bar", row).style.width = 100 * share + "%";
      find(".bar", row).title = percent(share, 1);
      find(".share", row).setAttribute("aria-label", percent(share, 1));
    });
    const allowed = model.budget ? (() => { try { return model.budget(record); } catch { return null; } })() : null;
    const cost = data.pureBudget ? "a pure ε of " + figure(model.pure(record)) : figure(rho);
    say("#budget-told", "This release costs a record like yours " + cost + (allowed === null
      ? ". No budget was set in advance, so the guarantee holds only if the list of queries was fixed in advance."
      : " of at most " + figure(allowed) + " that all releases from these data may ever cost it."));
  };

  // A firm.
  const members = find("#members tbody");
  const control = (field, value) => {
    const label = field.label + " of an establishment of the firm";
    if (field.kind !== "choice") return make("input", {type: "text", value: typeof value === "number" ? typed(value) : value ?? "", "aria-label": label, inputmode: ["text", "date"].includes(field.kind) ? null : "decimal"});
    const chosen = make("select", {"aria-label": label});
    field.options.forEach(([name, option], at) => chosen.append(make("option", {value: at, ...(option === value ? {selected: ""} : {})}, name)));
    return chosen;
  };
  const addMember = record => {
    const remove = make("button", {type: "button", "aria-label": "Remove this establishment"}, "Remove");
    const places = data.places.map(([name, label]) => make("td", {"data-label": label}, make("input", {type: "text", class: "place", value: "", "data-name": name, "aria-label": label + " of an establishment of the firm"})));
    const row = make("tr", {}, ...data.fields.map(field => make("td", {"data-label": field.label}, control(field, record[field.name]))), ...places, make("td", {class: "own", "data-label": "loss"}), make("td", {}, remove));
    remove.addEventListener("click", () => { row.remove(); together(); find("#add").focus(); });
    row.addEventListener("input", together);
    members.append(row);
  };
  // Where cells are known, the loss by cell; else that of all establishments wherever they are.
  const joined = (units, losses) => {
    try { if (model.firm) return model.firm(units); } catch { return {rho: NaN, delta: 0}; }
    return {rho: groupLoss(losses.map(loss => loss.rho)), delta: losses.some(loss => loss.delta > 0) ? 1 : 0};
  };
  const together = () => {
    if (!members) return;
    const units = [], losses = all("tr", members).map(row => {
      const record = readAll(all("input:not(.place), select", row));
      const loss = record ? model.loss(record) : {rho: NaN, delta: 0};
      find(".own", row).textContent = Number.isNaN(loss.rho) ? "" : figure(loss.rho);
      const asked = data.shared.map(name => [name, record?.[name] ?? ""]);
      units.push({record, place: withLevels(Object.fromEntries([...asked, ...all(".place", row).map(place => [place.dataset.name, listedAs(place.dataset.name, place.value)[0]])]))});
      return loss;
    });
    const filled = losses.every(loss => !Number.isNaN(loss.rho)), {rho, delta, epsilon: pure} = filled ? joined(units, losses) : {rho: NaN, delta: 0};
    say("#firm-told", !losses.length ? "Add an establishment." : Number.isNaN(rho) ? "Fill in every number."
      : delta >= 1 ? "Cells were selected privately, and nothing limits the probability that one is listed only because of the firm."
      : "The firm as a whole has a privacy loss of at most " + figure(rho) + (delta > 0 ? ", except for a probability of at most " + chance(delta) + " that a cell is listed only because of it" : "") + (pure ? " and a pure ε of at most " + figure(pure) : "")
      + ". " + leadText(rho, []).replace(/about you/g, "about the firm").replace(/you are in/, "it is in"));
  };
  if (members) {
    addMember(data.start);
    addMember(scaled(data.start, 10));
    find("#add").addEventListener("click", () => { addMember(data.start); together(); find("tr:last-child input, tr:last-child select", members).focus(); });
  }

  const controls = data.fields.map((_, at) => find("#q" + at));
  const update = () => {
    const record = readAll(controls);
    find(".answer").classList.toggle("stale", !record);
    if (!record) { say("#lead", "Please correct the highlighted answer."); return; }
    const loss = model.loss(record);
    answer(record, loss);
    charts.forEach(chart => redraw(chart, record, loss.rho));
    if (find("#same-told")) compare(record, loss.rho);
    spend(record, loss.rho);
    addUp(record);
  };
  const form = find("#question");
  if (form) {
    form.addEventListener("input", update);
    form.addEventListener("submit", event => event.preventDefault());
  }
  update();
  together();
  window.recordwise = {...model, lookedUp, power, epsilon, factor, groupLoss, band, told, reaches: data.reaches, leadText, fields: data.fields, words: {find, all, make, say, grouped, percent}};
})();
