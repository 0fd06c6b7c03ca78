"""The terms of a policy: coefficients of conditions and atoms, added, scaled and restricted."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import chain
from typing import TypeAlias

from recordwise.policy.atoms import Atom, Outside
from recordwise.policy.conditions import NONE, Condition, both

Key: TypeAlias = tuple[Condition, Atom]
Terms: TypeAlias = Mapping[Key, Fraction]


def merge(*parts: Terms) -> Terms:
    """Add the coefficients of equal terms. "No guarantee" plus "no guarantee" is "no guarantee"."""
    merged: dict[Key, Fraction] = {}
    for key, coefficient in chain.from_iterable(part.items() for part in parts):
        merged[key] = Fraction(1) if isinstance(key[1], Outside) else merged.get(key, Fraction(0)) + coefficient
    return merged


def scaled(terms: Terms, factor: Fraction) -> Terms:
    """The terms times a constant; "no guarantee" is unchanged."""
    if not factor:
        return {}
    return {key: Fraction(1) if isinstance(key[1], Outside) else factor * c for key, c in terms.items()}


def guarded(terms: Terms, condition: Condition) -> Terms:
    """The terms, each also restricted to a condition."""
    narrowed = [{(both(old, condition), atom): coefficient} for (old, atom), coefficient in terms.items()]
    return {key: coefficient for key, coefficient in merge(*narrowed).items() if key[0] != NONE}
