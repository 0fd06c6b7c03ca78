"""Policies as JavaScript, for the page where losses are looked up.

Nothing typed there leaves the browser.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb

from recordwise.exact.arithmetic import REMAINDER_TERMS
from recordwise.exact.numbers import float_upper
from recordwise.policy.atoms import Atom
from recordwise.policy.bands import GAPS, BandTable
from recordwise.policy.columns import (
    FLOAT_SNAP,
    LINEAR_ERROR,
    MOST_SCALED_STEPS,
    MOST_STEPS,
    WRITTEN,
    ConditionColumn,
    Measure,
    Truth,
    Value,
    float_comparison,
    float_members,
)
from recordwise.policy.conditions import EVERY, AllOf, Among, AnyOf, Compare, Condition, InBand, Null
from recordwise.policy.evaluate.evaluator import Knots, Steps
from recordwise.policy.firms import NODES, PURE, CellKey, FirmPart, FirmPolicy
from recordwise.policy.policy import Maximum, Terms, with_plain_constants

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy


PRELUDE = f"""const remainder = y => {{
  if (y >= 1) return y + Math.expm1(-y);
  let s = 1;
  for (let k = {REMAINDER_TERMS}; k > 2; k--) s = 1 - y / k * s;
  return 0.5 * y * y * s;
}};
const pieces = (x, up, down, at) => {{
  const steps = x * up / down, below = Math.floor(steps);
  const few = up === down || steps < {MOST_SCALED_STEPS!r};
  const count = few ? below + (steps > below * {1 + FLOAT_SNAP!r} ? 1 : 0) : Math.ceil(steps * {1 + 2 * FLOAT_SNAP!r});
  return Math.ceil(count / at);
}};
const stepUp = (n, table, beyond) => {{
  for (const [count, level] of table) if (n <= count) return level;
  return beyond;
}};
const onLines = (x, knots, beyond) => {{
  const i = knots.findIndex(k => x <= k[0]);
  if (i < 1) return i < 0 ? beyond : knots[0][1];
  const [a, s] = knots[i - 1], [b, t] = knots[i];
  return s + (t - s) / (b - a) * (x - a);
}};
const own = (r, name, signed) => {{
  const v = r[name];
  const x = typeof v === "number" ? v : typeof v === "string" && v.trim() ? Number(v) : NaN;
  if (!Number.isFinite(x)) throw new Error("missing " + name);
  if (x < 0 && !signed) throw new Error("negative " + name);
  return x;
}};
const amount = (r, name, signed) => Math.abs(own(r, name, signed));
const linear = (r, parts, up, down) => {{
  let total = 0, size = 0, few = true;
  for (const [name, signed, above, below, many] of parts) {{
    const steps = own(r, name, signed) * above / below, near = Math.round(steps);
    const off = Math.abs(steps - near) > Math.abs(steps) * {FLOAT_SNAP!r}, part = many * (off ? steps : near);
    total += part, size += Math.abs(part), few = few && !off && Math.abs(steps) < {MOST_SCALED_STEPS!r};
  }}
  few = few && size * up < {MOST_STEPS};
  return [total * up / down, (Math.abs(total) + (few ? 0 : size * {LINEAR_ERROR!r})) * up / down];
}};
const cell = (r, name, length) => {{
  const v = r[name];
  if (v === undefined) throw new Error("missing " + name);
  if (v !== v) return null;
  return length && typeof v === "string" ? Array.from(v).slice(0, length).join("") : v;
}};
const ordered = (v, name) => {{
  if (v !== null && typeof v !== "number") throw new Error("no number in " + name);
  return v;
}};"""


DATES = f"""
const part = (r, name, what) => {{
  const v = cell(r, name, 0);
  if (v === null) return null;
  const m = typeof v === "string" ? /^{WRITTEN}$/.exec(v) : null;
  const [y, mo, d] = m ? v.slice(0, 10).split("-").map(Number) : [0, 0, 0];
  const day = new Date(0);
  day.setUTCFullYear(y, mo - 1, d);
  if (y < 1 || day.getUTCMonth() !== mo - 1 || day.getUTCDate() !== d) throw new Error("no date in " + name);
  if (what === "year") return y;
  if (what === "quarter") return Math.floor((mo + 2) / 3);
  if (what === "month") return mo;
  const n = day.getTime() / 864e5, thursday = n - ((n + 3) % 7 + 7) % 7 + 3;
  const year = new Date(thursday * 864e5).getUTCFullYear(), first = new Date(0);
  first.setUTCFullYear(year, 0, 1);
  return what === "isoyear" ? year : Math.floor((thursday - first.getTime() / 864e5) / 7) + 1;
}};"""
"""What a policy needs in addition to ``PRELUDE`` if it looks at parts of dates."""


BANDS = f"""
const banded = (columns, values, packed, gaps) => {{
  const read = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const cells = read(packed), long = read(gaps), places = new Float64Array(cells.length);
  const known = values.map(list => new Map(list.map((value, number) => [value, number])));
  let place = -1, next = 0;
  for (let i = 0; i < cells.length; i++) {{
    let gap = cells[i] % {GAPS};
    if (gap === {GAPS - 1}) {{
      let scale = 1;
      do {{ gap += (long[next] & 127) * scale; scale *= 128; }} while (long[next++] > 127);
    }}
    places[i] = place += gap + 1;
  }}
  return r => {{
    let wanted = 0;
    for (let i = 0; i < columns.length; i++) {{
      const number = known[i].get(columns[i](r));
      if (number === undefined) return 0;
      wanted = wanted * values[i].length + number;
    }}
    let low = 0, high = places.length;
    while (low < high) {{ const middle = (low + high) >> 1; if (places[middle] < wanted) low = middle + 1; else high = middle; }}
    return places[low] === wanted ? Math.floor(cells[low] / {GAPS}) : 0;
  }};
}};"""
"""What a policy needs in addition to ``PRELUDE`` if it looks at bands: a byte for each cell, as ``BandTable.pack`` makes them."""


def prelude_of(written: str, bands: Iterable[BandTable] = ()) -> str:
    """Return the helpers and band tables that a policy's text uses."""
    tables = "\n".join(map(band_table_js, bands))
    return PRELUDE + (DATES if "part(r, " in written + tables else "") + (f"{BANDS}\n{tables}" if tables else "")


def band_table_js(table: BandTable) -> str:
    """A function from a record to the band of its cell."""
    columns = ", ".join(f"r => {column_js(column)}" for column in table.columns)
    values = ", ".join(f"[{', '.join(map(_value_js, held))}]" for held in table.values)
    packed, gaps = (base64.b64encode(each).decode() for each in table.pack())
    return f'const {table.key} = banded([{columns}], [{values}], "{packed}", "{gaps}");'


def _value_js(value: Value | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, Truth):
        return str(value.value).lower()
    return js_text(value) if isinstance(value, str) else js_number(float(value))


class JavaScriptEvaluator:
    """Formulas as expression text; the helpers are those of ``prelude_of``."""

    def constant(self, value: arb) -> str:
        return js_number(float(value))

    def add(self, left: str, right: str) -> str:
        return f"({left} + {right})"

    def multiply(self, left: str, right: str) -> str:
        return f"({left} * {right})"

    def divide(self, left: str, right: str) -> str:
        return f"({left} / {right})"

    def maximum(self, left: str, right: str) -> str:
        return f"Math.max({left}, {right})"

    def minimum(self, left: str, right: str) -> str:
        return f"Math.min({left}, {right})"

    def power(self, base: str, exponent: Fraction) -> str:
        return f"Math.sqrt({base})" if exponent == Fraction(1, 2) else f"Math.pow({base}, {js_number(float(exponent))})"

    def log1p(self, value: str) -> str:
        return f"Math.log1p({value})"

    def power_less_one(self, value: str, exponent: Fraction) -> str:
        return f"Math.expm1({js_number(float(exponent))} * Math.log1p({value}))"

    def tanh(self, value: str) -> str:
        return f"Math.tanh({value})"

    def exp_remainder(self, value: str) -> str:
        return f"remainder({value})"

    def if_positive(self, test: str, then: str) -> str:
        return f"({test} > 0 ? {then} : 0)"

    def pieces(self, value: str, measure: Measure, at: Fraction) -> str:
        up, down = float(measure.step.denominator), float(measure.step.numerator)
        return f"pieces({value}, {js_number(up)}, {js_number(down)}, {js_number(float(at / measure.step))})"

    def step_up(self, count: str, steps: Steps, beyond: str) -> str:
        table = json.dumps([[argument, float(level)] for argument, level in steps])
        return f"stepUp({count}, {table}, {beyond})"

    def on_lines(self, value: str, measure: Measure, knots: Knots, beyond: str) -> str:
        return f"onLines({self.pieces(value, measure, measure.step)}, {knots_js(knots)}, {beyond})"


JAVASCRIPT = JavaScriptEvaluator()


def knots_js(knots: Knots) -> str:
    return json.dumps([[count, float(level)] for count, level in knots])


def js_number(value: float) -> str:
    return "Infinity" if value == float("inf") else repr(value)


def policy_javascript(policy: "Policy") -> str:
    """``r => ({rho, delta})`` as self-contained source."""
    written = f"return r => ({{rho: {terms_js(policy.rho)}, delta: {terms_js(policy.delta_terms)}}});"
    return f"(() => {{\n{prelude_of(written, policy.bands().values())}\n{written}\n}})()"


def terms_js(terms: Terms) -> str:
    parts = []
    for (condition, atom), coefficient in with_plain_constants(terms).items():
        value = f"{js_number(float_upper(coefficient))} * {atom_js(atom)}"
        parts.append(value if condition == EVERY else f"({condition_js(condition)} ? {value} : 0)")
    return "(" + " + ".join(parts) + ")" if parts else "0"


def atom_js(atom: Atom) -> str:
    if isinstance(atom, Maximum):
        return "Math.max(" + ", ".join(terms_js(policy.rho) for policy in atom.policies) + ")"
    return atom.value(JAVASCRIPT, {measure.name: absolute_js(measure) for measure in atom.measures()})


def absolute_js(measure: Measure, record: str = "r") -> str:
    """The absolute value of a measure of a record."""
    if measure.derived:
        return f"{_linear_js(measure, record)}[1]"
    return f"amount({record}, {js_text(measure.name)}, {str(measure.signed).lower()})"


def signed_js(measure: Measure, record: str = "r") -> str:
    """The value of a measure of a record, with its sign."""
    if measure.derived:
        return f"{_linear_js(measure, record)}[0]"
    return f"own({record}, {js_text(measure.name)}, {str(measure.signed).lower()})"


def _linear_js(measure: Measure, record: str) -> str:
    parts = ", ".join(
        f"[{js_text(base.name)}, {str(base.signed).lower()}, {js_number(float(base.step.denominator))}, "
        f"{js_number(float(base.step.numerator))}, {js_number(float(multiple))}]"
        for base, multiple in measure.multiples()
    )
    up, down = js_number(float(measure.step.numerator)), js_number(float(measure.step.denominator))
    return f"linear({record}, [{parts}], {up}, {down})"


def condition_js(condition: Condition) -> str:
    match condition:
        case AllOf(parts):
            return "(" + " && ".join(condition_js(part) for part in parts) + ")" if parts else "true"
        case AnyOf(parts):
            return "(" + " || ".join(condition_js(part) for part in parts) + ")" if parts else "false"
        case Null(column, inside):
            return f"({column_js(column)} {'===' if inside else '!=='} null)"
        case InBand(table, bands):
            return f"{json.dumps(bands)}.includes({table.key}(r))"
        case Among(column, values, inside):
            listed = f"[{', '.join(values_js(values))}].includes({column_js(column)})"
            return listed if inside else f"({column_js(column)} !== null && !{listed})"
        case Compare(column, order, bound):
            order, near = float_comparison(order, bound)
            value = f"ordered({column_js(column)}, {js_text(column.name)})"
            return f"({value} !== null && {value} {order} {js_number(near)})"
        case _:
            raise TypeError(type(condition).__name__)


def column_js(column: ConditionColumn) -> str:
    if column.part:
        return f"part(r, {js_text(column.name)}, {js_text(column.part)})"
    return f"cell(r, {js_text(column.name)}, {column.length or 0})"


def values_js(values: tuple[Value, ...]) -> list[str]:
    truths = [str(value.value).lower() for value in values if isinstance(value, Truth)]
    texts = [js_text(value) for value in values if isinstance(value, str)]
    return truths + texts + [js_number(value) for value in float_members(values)]


def js_text(text: str) -> str:
    """Return a string literal that cannot end a page's script element."""
    return json.dumps(text).replace("<", "\\u003c")


# The joint loss of a firm as JavaScript: the bounds of ``policy/firms.py``, for establishments typed into the policy
# page.


FIRM_PRELUDE = """const squareOf = x => x * x;
const sumOf = values => values.reduce((total, each) => total + each, 0);
const placeIn = (unit, name, length) => {
  const typed = (unit.place[name] ?? "").trim();
  return !typed ? null : length ? Array.from(typed).slice(0, length).join("") : typed;
};
const firstCase = (unit, cases) => {
  try { const found = cases(unit.record).find(([holds]) => holds); return found ? found[1] : -1; } catch { return null; }
};
const inCells = (part, units) => {
  const cells = new Map();
  for (const unit of units) {
    const place = part.cells(unit);
    if (place.includes(null)) return null;
    const name = JSON.stringify(place);
    cells.set(name, [...(cells.get(name) ?? []), unit]);
  }
  return [...cells.values()];
};
const nodeLoss = (part, units) => {
  const {measure, points, levels} = part.joint, counted = Math.min(levels, Math.log2(points.length + 1));
  const leaves = units.map(({record}) => points.filter(point => point < record[measure]).length);
  let total = 0, squares = 0;
  for (let level = 1; level <= counted; level++) {
    const held = new Map();
    for (const leaf of leaves) { const node = leaf >> (counted - level); held.set(node, (held.get(node) ?? 0) + 1); }
    squares = sumOf([...held.values()].map(squareOf));
    total += squares;
  }
  return Math.max(...units.map(unit => part.loss(unit.record))) / levels * (total + (levels - counted) * squares);
};
const atSum = (part, units, sign) => {
  const {measure} = part.joint, values = units.map(({record}) => record[measure]);
  const sum = sumOf(sign ? values.map(value => Math.max(sign * value, 0)) : values);
  return sum === 0 ? 0 : part.loss({...units[0].record, [measure]: sum});
};
const pureLoss = (part, units) => {
  const epsilon = sumOf(units.map(unit => part.epsilon(unit.record)));
  return epsilon * Math.tanh(epsilon / 2);
};
const KNOWN = {
  roots: () => Infinity,
  firm: (part, units) => Math.max(...units.map(unit => part.loss(unit.record))),
  sums: (part, units) => atSum(part, units, 0),
  signs: (part, units) => atSum(part, units, 1) + atSum(part, units, -1),
  pure: pureLoss,
  nodes: nodeLoss,
};
const rootLoss = (part, units) => squareOf(sumOf(units.map(unit => Math.sqrt(part.loss(unit.record)))));
const piecesOf = (part, units) => sumOf(units.map(unit => Math.round(Math.sqrt(part.loss(unit.record) / part.piece))));
const anywhere = (pieces, tails) => {
  let most = 0, start = 1;
  for (const [count, level] of [...tails, [Infinity, 1]]) {
    if (start <= pieces) most = Math.max(most, level / start);
    start = count + 1;
  }
  return Math.min(1, pieces * most);
};
const partLoss = (part, units) => {
  const cells = inCells(part, units), tails = part.tails;
  if (!cells) return {rho: rootLoss(part, units), delta: tails ? anywhere(piecesOf(part, units), tails) : 0};
  const rho = sumOf(cells.map(inside => Math.min(rootLoss(part, inside), KNOWN[part.joint.kind](part, inside))));
  if (!tails) return {rho, delta: 0};
  const chances = cells.map(inside => stepUp(piecesOf(part, inside), tails, 1));
  const some = chances.some(chance => chance >= 1) ? 1 : -Math.expm1(sumOf(chances.map(chance => Math.log1p(-chance))));
  return {rho, delta: Math.min(sumOf(chances), some)};
};
const firmLoss = parts => units => {
  let rho = 0, delta = 0;
  for (const part of parts) {
    const own = units.filter(unit => part.takes(unit.record));
    if (own.length) { const here = partLoss(part, own); rho += here.rho; delta += here.delta; }
  }
  return {rho, delta: Math.min(1, delta)};
};"""


PURE_PRELUDE = """
const pureOf = (part, units) => {
  const cells = inCells(part, units), kind = part.joint.kind, pure = {...part, loss: part.epsilon};
  const added = inside => sumOf(inside.map(unit => part.epsilon(unit.record)));
  if (!cells || !["firm", "sums", "signs"].includes(kind)) return added(units);
  return sumOf(cells.map(inside => Math.min(added(inside), KNOWN[kind](pure, inside))));
};
const pureFirm = parts => units => ({...firmLoss(parts)(units), epsilon: sumOf(parts.map(part => {
  const own = units.filter(unit => part.takes(unit.record));
  return own.length ? pureOf(part, own) : 0;
}))});"""
"""What ``firm_js`` needs as well where all noise has a pure loss."""


def firm_js(firm: FirmPolicy, losses: Sequence[str]) -> str:
    """Return a function from units to ``{rho, delta}``, with an ``epsilon`` where all noise has a pure loss.

    A unit is ``{record, place}``; the function needs the preludes around it. ``losses`` are the functions of
    the parts' losses, by name or inline.
    """
    is_pure = firm.pure() is not None
    parts = (
        _part_js(part, loss, is_pure or part.joint.kind == PURE) for part, loss in zip(firm.parts, losses, strict=True)
    )
    return f"{'pureFirm' if is_pure else 'firmLoss'}([{', '.join(parts)}])"


def _part_js(part: FirmPart, loss: str, is_pure: bool) -> str:
    cells = ", ".join(map(_key_js, part.cells))
    tails = [[count, float(level)] for count, level in part.tails()]
    members = {
        "loss": loss,
        "takes": "r => " + ("true" if part.condition == EVERY else condition_js(part.condition)),
        "cells": f"u => [{cells}]",
        "joint": _joint_js(part),
        "epsilon": f"r => {terms_js(part.pure().policy.rho)}" if is_pure else "null",
        "tails": json.dumps(tails) if tails else "null",
        "piece": js_number(float(part.piece_loss())) if tails else "1",
    }
    return "{" + ", ".join(f"{name}: {text}" for name, text in members.items()) + "}"


def _joint_js(part: FirmPart) -> str:
    joint = part.joint
    if joint.measure is None:
        return f"{{kind: {json.dumps(joint.kind)}}}"
    points = [float(point) for point in joint.points]
    more = f", points: {json.dumps(points)}, levels: {joint.levels}" if joint.kind == NODES else ""
    return f"{{kind: {json.dumps(joint.kind)}, measure: {js_text(joint.measure)}{more}}}"


def _key_js(key: CellKey) -> str:
    if key.column is not None:
        return f"placeIn(u, {js_text(key.column.name)}, {key.column.length or 0})"
    cases = ", ".join(f"[{condition_js(condition)}, {label}]" for condition, label in key.cases)
    return f"firstCase(u, r => [{cases}])"
