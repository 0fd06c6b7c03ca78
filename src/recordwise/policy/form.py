"""The saved form of a policy: JSON with a version. Whatever this version does not know is refused, never guessed."""

import json
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact import fraction_text, read_fraction
from recordwise.functions import from_json as function_from_json
from recordwise.policy.atoms import (
    Additive,
    AdditiveTable,
    Atom,
    GaussianTransform,
    LaplaceTransform,
    One,
    Outside,
    Pieces,
    SelectionDelta,
    Square,
    Thresholds,
)
from recordwise.policy.conditions import condition_from_json
from recordwise.policy.evaluators import Steps
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Maximum, Policy, Terms, merge

VERSION = 1


def policy_json(policy: Policy) -> dict[str, Any]:
    """A policy as JSON; equal policies give equal text."""
    return {
        "recordwise_policy": VERSION,
        "rho": _terms_json(policy.rho),
        "delta": _terms_json(policy.delta_terms),
        "near_gaussian": policy.near_gaussian,
    }


def _terms_json(terms: Terms) -> list[Any]:
    rows = [
        [fraction_text(coefficient), condition.to_json(), atom.to_json()]
        for (condition, atom), coefficient in terms.items()
    ]
    return sorted(rows, key=lambda row: json.dumps(row[1:], sort_keys=True))


def policy_from_json(form: Any) -> Policy:
    """Read a saved policy; malformed or unknown forms raise UnknownFormError."""
    if not isinstance(form, dict) or form.get("recordwise_policy") != VERSION:
        found = form.get("recordwise_policy") if isinstance(form, dict) else type(form).__name__
        raise UnknownFormError(what="policy version", found=found)
    match form:
        case {"recordwise_policy": _, "rho": [*rho], "delta": [*delta], "near_gaussian": bool(gaussian), **rest} if (
            not rest
        ):
            return Policy(_terms(rho), _terms(delta), gaussian)
        case _:
            raise UnknownFormError(what="policy fields", found=sorted(map(str, form)))


def _terms(rows: list[Any]) -> Terms:
    terms: Terms = {}
    for row in rows:
        match row:
            case [str(coefficient), condition, dict(atom)]:
                terms = merge(
                    terms, {(condition_from_json(condition), atom_from_json(atom)): _coefficient(coefficient)}
                )
            case _:
                raise UnknownFormError(what="policy term", found=type(row).__name__)
    return terms


def _coefficient(text: str) -> Fraction:
    value = _fraction(text)
    if value <= 0:
        raise UnknownFormError(what="coefficient", found=text)
    return value


def _fraction(text: Any) -> Fraction:
    try:
        if isinstance(text, str):
            return read_fraction(text)
    except (ValueError, ZeroDivisionError):
        pass
    raise UnknownFormError(what="number", found=text)


def _thresholds(rows: Any) -> Thresholds:
    match rows:
        case [*items] if all(isinstance(item, list) and len(item) == 4 for item in items):
            return tuple((Measure.from_json(item[:3]), _fraction(item[3])) for item in items)
        case _:
            raise UnknownFormError(what="thresholds", found=type(rows).__name__)


def _steps(rows: Any) -> Steps:
    match rows:
        case [*items] if all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], int) for item in items):
            return tuple((item[0], _fraction(item[1])) for item in items)
        case _:
            raise UnknownFormError(what="steps", found=type(rows).__name__)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UnknownFormError(what="text", found=type(value).__name__)
    return value


def _policies(rows: Any) -> tuple[Policy, ...]:
    if not isinstance(rows, list) or not rows:
        raise UnknownFormError(what="maximum", found=type(rows).__name__)
    return tuple(policy_from_json(row) for row in rows)


READERS: dict[str, Callable[[Any], Any]] = {
    "at": _thresholds,
    "bound": _text,
    "column": _text,
    "function": function_from_json,
    "grid": _fraction,
    "measure": Measure.from_json,
    "policies": _policies,
    "scale": _fraction,
    "steps": _steps,
}
KINDS: dict[str, tuple[type[Atom], frozenset[str]]] = {
    kind.kind: (kind, frozenset(field.name for field in fields(kind)))
    for kind in (
        One,
        Outside,
        Pieces,
        Square,
        Additive,
        AdditiveTable,
        GaussianTransform,
        LaplaceTransform,
        SelectionDelta,
        Maximum,
    )
}


def atom_from_json(form: dict[str, Any]) -> Atom:
    """One atom, checked as when it is built by hand."""
    given = {name: value for name, value in form.items() if name != "kind"}
    kind, expected = KINDS.get(form.get("kind", ""), (None, frozenset()))
    if kind is None or set(given) != expected:
        raise UnknownFormError(what="policy node", found=form.get("kind"))
    try:
        return kind(**{name: READERS[name](value) for name, value in given.items()})
    except ParameterError as error:
        raise UnknownFormError(what=f"policy node {form['kind']!r} ({error})", found=error.parameter) from None
