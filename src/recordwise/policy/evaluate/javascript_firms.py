"""The joint loss of a firm as JavaScript: the bounds of ``evaluate.firms``, for establishments typed into the policy page."""

import json
from collections.abc import Sequence

from recordwise.policy.conditions import EVERY
from recordwise.policy.evaluate.javascript import condition_js, js_number, js_text, terms_js
from recordwise.policy.firms import NODES, PURE, CellKey, FirmPart, FirmPolicy

PRELUDE = """const squareOf = x => x * x;
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


def firm_js(firm: FirmPolicy, losses: Sequence[str]) -> str:
    """A function from units, each ``{record, place}``, to ``{rho, delta}``; it needs both preludes around it.

    ``losses`` are the functions of the parts' own losses, by name or in place.
    """
    return f"firmLoss([{', '.join(map(_part_js, firm.parts, losses))}])"


def _part_js(part: FirmPart, loss: str) -> str:
    cells = ", ".join(map(_key_js, part.cells))
    tails = [[count, float(level)] for count, level in part.tails()]
    members = {
        "loss": loss,
        "takes": "r => " + ("true" if part.condition == EVERY else condition_js(part.condition)),
        "cells": f"u => [{cells}]",
        "joint": _joint_js(part),
        "epsilon": f"r => {terms_js(part.pure())}" if part.joint.kind == PURE else "null",
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
