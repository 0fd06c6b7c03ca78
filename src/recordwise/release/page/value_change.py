"""The loss of a change in a record's values (T-VALUE).

When everything else about the record is known. The page's band is based on it: "cannot tell 4,800 from 5,200
employees". One formula is evaluated with error bounds in Python and as JavaScript on the page.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from flint import arb

from recordwise.errors import GroupLossError
from recordwise.exact.numbers import arb_float_upper, ball, constant_ball, float_upper, working_precision
from recordwise.mechanisms.inference import ValueNumber, ValuePolicy, furthest, gap
from recordwise.plan.statistics.base import COUNT, SUM
from recordwise.policy.atoms import (
    Additive,
    AdditiveTable,
    Atom,
    CertifiedSum,
    ClampedSquare,
    GaussianTransform,
    LaplaceSum,
    LaplaceTransform,
    Square,
    Transformed,
    laplace_zcdp,
)
from recordwise.policy.conditions import EVERY, holds
from recordwise.policy.evaluate.evaluator import BallEvaluator, Evaluator
from recordwise.policy.evaluate.javascript import JAVASCRIPT, absolute_js, condition_js, js_number, js_text, signed_js
from recordwise.policy.evaluate.numpy import signed_record
from recordwise.policy.policy import Maximum
from recordwise.release.tables import PagePart

T = TypeVar("T")
PRECISION = 192
BALLS = BallEvaluator()
BAND_LOSS = 0.8869
"""The largest loss, rounded down, at which the best test with a 5% false-positive rate is right at most half the time."""


def has_band(parts: Sequence[PagePart]) -> bool:
    """Return whether a change of value has a separate loss.

    It changes no cell, no key was selected with a delta, and the formula covers every statistic.
    """
    plain = all(part.stays and not part.policy.delta_terms for part in parts)
    return bool(parts) and plain and not any(isinstance(atom, Maximum) for part in parts for _, atom in part.policy.rho)


def change_upper(parts: Sequence[PagePart], record: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the loss between two records' measures, rounded up (T-VALUE)."""
    if not has_band(parts):
        raise GroupLossError(reason="a different value may mean a different cell, or keys were selected privately")
    with working_precision(PRECISION):
        return arb_float_upper(sum((_part_ball(part, record, other) for part in parts), arb(0)))


def _part_ball(part: PagePart, record: Mapping[str, Any], other: Mapping[str, Any]) -> arb:
    if part.kind == COUNT:
        return arb(0)
    groups, old = signed_record(part.policy.rho, record)
    _, new = signed_record(part.policy.rho, other)
    x, y = ({name: ball(value) for name, value in amounts.items()} for amounts in (old, new))
    terms = part.policy.rho.items()
    return sum(
        (ball(c) * changed_term(atom, part.kind, BALLS, x, y) for (where, atom), c in terms if holds(where, groups)),
        arb(0),
    )


def change_js(parts: Sequence[PagePart]) -> str:
    """Return ``(r, s) => loss`` as JavaScript source."""
    times = Counter(
        _term_js(part, condition_js(where) if where != EVERY else "", atom, coefficient)
        for part in parts
        if part.kind != COUNT
        for (where, atom), coefficient in part.policy.rho.items()
    )
    return f"(r, s) => {' + '.join(f'{many} * {text}' if many > 1 else text for text, many in times.items()) or '0'}"


def _term_js(part: PagePart, where: str, atom: Atom, coefficient: Fraction) -> str:
    x, y = (
        {m.name: signed_js(m, letter) if m.signed else absolute_js(m, letter) for m in atom.measures()}
        for letter in "rs"
    )
    value = f"{js_number(float_upper(coefficient))} * {changed_term(atom, part.kind, JAVASCRIPT, x, y)}"
    return f"({where} ? {value} : 0)" if where else value


def changed_term(atom: Atom, kind: str, evaluator: Evaluator[T], x: dict[str, T], y: dict[str, T]) -> T:
    """Return a policy term's loss for a change of values."""
    if kind == SUM and isinstance(atom, ClampedSquare) and not atom.measure.signed:
        old, new = (atom.clamp(evaluator, values[atom.measure.name]) for values in (x, y))
        return evaluator.power(gap(evaluator, old, new), Fraction(2))
    if kind == SUM and isinstance(atom, (Square, Additive, AdditiveTable, CertifiedSum, LaplaceSum)):
        return atom.value(evaluator, {name: gap(evaluator, x[name], y[name]) for name in x})
    if kind == SUM and isinstance(atom, Transformed) and not atom.measure.signed:
        return _transformed_term(atom, evaluator, x[atom.measure.name], y[atom.measure.name])
    four, signed = evaluator.constant(arb(4)), {measure.name for measure in atom.measures() if measure.signed}
    sizes = (
        {name: _absolute(evaluator, value) if name in signed else value for name, value in each.items()}
        for each in (x, y)
    )
    return evaluator.multiply(four, evaluator.maximum(*(atom.value(evaluator, each) for each in sizes)))


def _absolute(evaluator: Evaluator[T], x: T) -> T:
    return evaluator.maximum(x, evaluator.multiply(evaluator.constant(arb(-1)), x))


def _transformed_term(atom: Transformed, evaluator: Evaluator[T], x: T, y: T) -> T:
    rise = gap(evaluator, atom.function.increase(evaluator, x), atom.function.increase(evaluator, y))
    shift = evaluator.add(rise, evaluator.constant(constant_ball(atom.grid)))
    apart = gap(evaluator, x, y)
    if isinstance(atom, GaussianTransform):
        return evaluator.if_positive(apart, evaluator.power(shift, Fraction(2)))
    if isinstance(atom, LaplaceTransform):
        epsilon = evaluator.divide(shift, evaluator.constant(constant_ball(atom.scale)))
        return evaluator.if_positive(apart, laplace_zcdp(evaluator, epsilon, atom.grid / atom.scale))
    raise TypeError(type(atom).__name__)


def band(
    parts: Sequence[PagePart], record: Mapping[str, Any], name: str, step: Fraction, most_steps: int
) -> tuple[Fraction, Fraction]:
    """Return a maximal range around the record's value of a measure.

    Within its bound and, unless signed, from 0 on. It can be extended at neither end: its two ends, and so any
    two values in it (T-VALUE), cannot be reliably distinguished. It is widened on both sides alike, then on each.
    """
    own = int(Fraction(str(record[name])) / step)
    signed = any(each.signed for part in parts for each in part.policy.inputs() if each.name == name)
    least = -most_steps if signed else 0

    def hidden(low: int, high: int) -> bool:
        return change_upper(parts, {**record, name: step * low}, {**record, name: step * high}) <= BAND_LOSS

    alike = furthest(lambda away: hidden(max(least, own - away), own + away), max(0, most_steps - own))
    low, high = max(least, own - alike), own + alike
    low -= furthest(lambda away: hidden(low - away, high), low - least)
    high += furthest(lambda away: hidden(low, high + away), max(0, most_steps - high))
    return step * low, step * high


# What an attacker learns about a value (T-INFER), as the page computes it.


def numbers_js(values: ValuePolicy | None) -> str:
    """Return the numbers behind each measure as JavaScript source.

    Whether a record changes one, its gap between two records, how far it hides a value alone, its weight among others. Equal texts
    are written once.
    """
    if values is None:
        return "{}"
    texts: dict[str, int] = {}
    rows: dict[str, int] = {}
    members = []
    for name in values.bounds:
        found = []
        for number, reach in zip(values.of(name), values.reaches(name).single):
            where, apart = (texts.setdefault(text, len(texts)) for text in _number_js(number))
            row = f"[t[{where}],t[{apart}],{js_number(reach)},{js_number(number.weight())}]"
            found.append(rows.setdefault(row, len(rows)))
        members.append(f"{js_text(name)}: [{','.join(map(str, found))}].map(at=>n[at])")
    return f"(() => {{ const t = [{','.join(texts)}], n = [{','.join(rows)}]; return {{{', '.join(members)}}}; }})()"


def _number_js(number: ValueNumber) -> tuple[str, str]:
    """Return whether a record changes a number, and two records' gap."""
    measure = number.measure
    one, two = (signed_js(measure, each) if measure.signed else absolute_js(measure, each) for each in "rs")
    where = "true" if number.condition == EVERY else condition_js(number.condition)
    return f"r => {where}", f"(r, s) => {number.gap(JAVASCRIPT, one, two)}"


def reaches_json(values: ValuePolicy | None) -> dict[str, Any]:
    """Return what a measure's numbers hide together, for the page."""
    if values is None:
        return {}
    found = {name: values.reaches(name) for name in values.bounds}
    return {
        name: {"joint": {",".join(map(str, active)): reach for active, reach in each.joint.items()}}
        | {"squares": each.squares}
        for name, each in found.items()
    }
