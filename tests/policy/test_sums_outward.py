"""Sums of bounds over boxes, in floats: never inside of the sum in fractions."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from recordwise.policy.dominance.boxes import LOW, UP, PlacedTerm, Search


@pytest.mark.parametrize("terms", [1, 2, 7, 40])
def test_sums_of_terms_are_rounded_outward(terms: int) -> None:
    """By no more than twice as many units in the last place as there are roundings; 3000 sums in either direction."""
    rng = np.random.default_rng(terms)
    boxes = np.zeros((3000, 1), np.int64)
    values = {each: rng.uniform(0.1, 10.0, (2, 3000)) for each in range(terms)}
    placed = [PlacedTerm(tuple(rng.uniform(0.1, 3.0, 2)), (0.0, 0.0), [(each, 0)]) for each in range(terms)]

    def largest(term: PlacedTerm, boxes: Any, end: int, side: int) -> Any:
        return values[term.places[0][0]][side]

    for side in (LOW, UP):
        found = Search._sum(SimpleNamespace(_largest=largest), placed, boxes, 0, side)  # type: ignore[arg-type]
        units = Fraction(4 * terms + 4, 2**52)
        for row in range(0, 3000, 1 + 10 * terms):
            parts = (
                Fraction(each.coefficient[side]) * Fraction(values[place][side, row])
                for place, each in enumerate(placed)
            )
            truth, own = sum(parts, Fraction(0)), Fraction(found[row])
            assert 0 <= (own - truth if side == UP else truth - own) <= truth * units


def test_a_term_is_the_largest_of_its_floor_and_its_parts() -> None:
    values = np.array([[[[1.0], [5.0]], [[2.0], [6.0]]], [[[3.0], [7.0]], [[4.0], [8.0]]]])
    axis = SimpleNamespace(values=values)
    search = SimpleNamespace(axes=[axis, axis])
    boxes = np.array([[0, 1], [0, 0]])
    for floor, places, end, side, wanted in (
        ((0.0, 0.0), [(0, 0), (1, 0)], 0, LOW, [5.0, 1.0]),
        ((0.0, 0.0), [(0, 0), (1, 0)], 1, UP, [8.0, 4.0]),
        ((2.5, 9.0), [(0, 0)], 0, LOW, [2.5, 2.5]),
        ((2.5, 9.0), [(0, 0)], 0, UP, [9.0, 9.0]),
        ((0.0, 0.0), [(1, 0)], 1, LOW, [7.0, 3.0]),
    ):
        term = PlacedTerm((1.0, 1.0), floor, places)
        assert Search._largest(search, term, boxes, end, side).tolist() == wanted  # type: ignore[arg-type]
