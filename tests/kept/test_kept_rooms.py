"""No number that a room of the package tells about a small input moves unseen (``kept_rooms``)."""

import json
import math
from typing import Any

import pytest

from kept.kept_rooms import KEPT, SUBJECTS
from kept.leaves import leaves
from kept.steady import told

HELD = json.loads(KEPT.read_text(encoding="utf-8"))
CLOSE = 2e-6
"""Relative; solvers and functions of the system's library differ by less."""
ANEW = "If it was meant to: PYTHONPATH=tests python tests/kept/kept_rooms.py"


def same(found: Any, kept: Any) -> bool:
    if isinstance(kept, dict):
        return found.keys() == kept.keys() and all(same(found[name], kept[name]) for name in kept)
    if isinstance(kept, list):
        return len(found) == len(kept) and all(map(same, found, kept))
    if isinstance(kept, str) or isinstance(found, str):
        return bool(found == kept)
    return math.isclose(found, kept, rel_tol=CLOSE, abs_tol=1e-7)


COSTLY = ("frontiers", "studio")
CASES = [pytest.param(each, marks=[pytest.mark.costly] * (each in COSTLY)) for each in SUBJECTS]


@pytest.mark.parametrize("subject", CASES)
@pytest.mark.costly
def test_a_room_tells_what_it_told(subject: str) -> None:
    found = json.loads(json.dumps(told(SUBJECTS[subject])))
    assert found.keys() == HELD[subject].keys()
    moved = {part: (found[part], kept) for part, kept in HELD[subject].items() if not same(found[part], kept)}
    assert not moved, ANEW


def test_nothing_that_is_kept_is_left_out() -> None:
    assert list(HELD) == list(SUBJECTS)


def test_a_number_that_moved_a_little_is_not_the_same() -> None:
    assert same([1.0, "a", {"b": 2.0}], [1.0 + 1e-7, "a", {"b": 2.0}])
    for moved in ([1.00001, "a", {"b": 2.0}], [1.0, "b", {"b": 2.0}], [1.0, "a", {"c": 2.0}], [1.0, "a"], ["nan"]):
        assert not same(moved, [1.0, "a", {"b": 2.0}])


def test_numbers_and_names_are_kept_and_sentences_are_not() -> None:
    assert leaves({"a": [1, True, None], "b c": math.inf, "d": "two words", "e": "2026-01-02"}) == [
        "a",
        1.0,
        "True",
        "None",
        "inf",
        "d",
        "e",
    ]
