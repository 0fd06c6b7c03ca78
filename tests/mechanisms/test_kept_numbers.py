"""No number of a mechanism, a policy or a conversion moves unseen (``kept_numbers``)."""

import json
import math
from typing import Any

import pytest

from mechanisms import kept_numbers

KEPT = json.loads(kept_numbers.KEPT.read_text(encoding="utf-8"))
CLOSE = 1e-7
"""Relative; functions of the system's library differ by less."""


def same(found: Any, kept: Any) -> bool:
    if isinstance(kept, list):
        return len(found) == len(kept) and all(map(same, found, kept))
    if isinstance(kept, str):
        return bool(found == kept)
    return math.isclose(found, kept, rel_tol=CLOSE, abs_tol=1e-12) or (math.isnan(found) and math.isnan(kept))


def compare(name: str, found: dict[str, Any]) -> None:
    assert found.keys() == KEPT[name].keys()
    moved = {part: (found[part], kept) for part, kept in KEPT[name].items() if not same(found[part], kept)}
    assert not moved


@pytest.mark.parametrize("entry", kept_numbers.EVERY, ids=str)
@pytest.mark.costly
def test_mechanisms_tell_what_they_told(entry: Any) -> None:
    compare(kept_numbers.key_of(entry), dict(kept_numbers.of_mechanism(entry)))


@pytest.mark.parametrize("seed", kept_numbers.SEEDS)
def test_policies_tell_what_they_told(seed: int) -> None:
    compare(f"policy {seed}", dict(kept_numbers.of_policy(seed)))


@pytest.mark.parametrize("name", kept_numbers.LAWS)
@pytest.mark.costly
def test_laws_tell_what_they_told(name: str) -> None:
    compare(f"law {name}", dict(kept_numbers.of_law(kept_numbers.LAWS[name])))


@pytest.mark.parametrize("name", kept_numbers.OTHERS)
@pytest.mark.costly
def test_conversions_groups_and_goals_tell_what_they_told(name: str) -> None:
    compare(name, dict(kept_numbers.OTHERS[name]()))


def test_nothing_that_is_kept_is_left_out() -> None:
    mechanisms = set(map(kept_numbers.key_of, kept_numbers.EVERY))
    assert len(mechanisms) == len(kept_numbers.EVERY)
    policies = {f"policy {seed}" for seed in kept_numbers.SEEDS}
    laws = {f"law {name}" for name in kept_numbers.LAWS}
    assert {*mechanisms, *policies, *laws, *kept_numbers.OTHERS} == set(KEPT)


def test_a_number_that_moved_a_little_is_not_the_same() -> None:
    assert same([1.0, "a", math.nan, math.inf], [1.0 + 1e-9, "a", math.nan, math.inf])
    for moved in ([1.000001, "a"], [1.0, "b"], [1.0], [math.nan, "a"]):
        assert not same(moved, [1.0, "a"])
