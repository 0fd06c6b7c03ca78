"""What can be computed about cells equals what trying every table gives."""

import numpy as np
import pytest

from disclosure.small_publications import (
    by_leaves,
    contributions,
    enumerated,
    leaves,
    made_cells,
    sums_of_leaves,
    two_trees,
)
from recordwise.disclosure.bounds import System, blocks, feasible_intervals, tighten
from recordwise.disclosure.cells import Cells, Dimension
from recordwise.errors import ParameterError

MANY = (7, 22)
"""Seeds with so many possible tables that trying them all takes seconds."""
SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] * (seed in MANY)) for seed in range(25)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sampled
def test_intervals_of_two_crossed_lists_are_those_of_every_possible_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = (
        Dimension.from_levels("place", [("a",), ("b",)]),
        Dimension.from_levels("industry", [("x",), ("y",), ("z",)]),
    )
    cells = made_cells(trees)
    # Few enough tables to try them all.
    total = sums_of_leaves(cells) @ rng.integers(0, 6, len(leaves(cells))).astype(float)
    withheld = rng.random(len(cells)) < 0.6
    withheld[cells.find(np.zeros((1, 2), int))] = False
    low, high = np.where(withheld, 0, total), np.where(withheld, np.inf, total)
    every = enumerated(cells, low, high, int(total.max()))
    lower, upper = feasible_intervals(cells.system(low, high), np.arange(len(cells)))
    # Two crossed lists without sectors are a transport problem, whose corners are whole numbers.
    assert np.allclose(lower, every.min(axis=0), atol=1e-6)
    assert np.allclose(upper, every.max(axis=0), atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_intervals_over_sectors_are_those_of_another_formulation(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    cells = made_cells(two_trees(rng, 4, 5))
    total = contributions(rng, cells, most=4).total
    kind = rng.integers(0, 4, len(cells))
    low = np.select([kind == 0, kind == 1, kind == 2], [0.0 * total, np.floor(total / 10) * 10, total * 0.9], total)
    high = np.select(
        [kind == 0, kind == 1, kind == 2], [total + np.inf, np.floor(total / 10) * 10 + 10, total * 1.2], total
    )
    targets = rng.choice(len(cells), 6, replace=False)
    lower, upper = feasible_intervals(cells.system(low, high), targets)
    for at, target in enumerate(targets):
        assert (lower[at], upper[at]) == pytest.approx(by_leaves(cells, low, high, target), rel=1e-5, abs=1e-4)
    assert np.all((lower <= total[targets] + 1e-4) & (upper >= total[targets] - 1e-4))


def test_two_classifications_of_the_same_codes_are_used_together() -> None:
    """Old sectors less new sectors give a cell away that neither gives away."""
    industry = Dimension.from_levels(
        "industry", [("A", "1"), ("A", "2"), ("B", "3")], [("old", "1"), ("older", "2"), ("older", "3")]
    )
    codes = industry.positions(["", "A", "B", "old", "older", "1", "2", "3"])[:, None]
    cells = Cells.closed([industry], codes)
    exact = np.array([60.0, 30, 30, 10, 50, 10, 20, 30])
    shown = np.array([True, True, False, False, True, False, False, False])
    low, high = np.where(shown, exact, 0), np.where(shown, exact, np.inf)
    lower, upper = feasible_intervals(cells.system(low, high), np.arange(8))
    assert np.allclose(lower, exact)
    assert np.allclose(upper, exact)
    alone = Dimension.from_levels("industry", [("A", "1"), ("A", "2"), ("B", "3")])
    some = [0, 1, 2, 5, 6, 7]
    other = Cells.closed([alone], alone.positions(["", "A", "B", "1", "2", "3"])[:, None])
    lower, upper = feasible_intervals(other.system(low[some], high[some]), np.array([3]))
    assert (lower[0], upper[0]) == (0, 30)


def test_cells_that_are_not_listed_are_zero_only_if_that_is_said() -> None:
    place = Dimension.from_levels("place", [("a",), ("b",), ("c",)])
    cells = Cells.closed([place], place.positions(["", "a", "b"])[:, None])
    low, high = np.array([10.0, 4, 0]), np.array([10.0, 4, np.inf])
    assert feasible_intervals(cells.system(low, high), np.array([2])) == (6, 6)
    assert feasible_intervals(cells.system(low, high, absent_is_zero=False), np.array([2])) == (0, 6)


def test_a_total_that_no_table_lists_still_connects_what_is_above_and_below_it() -> None:
    place = Dimension.from_levels("place", [("s", "a"), ("s", "b"), ("t", "c")])
    cells = Cells.closed([place], place.positions(["", "a", "b", "c"])[:, None])
    assert len(cells) == 6
    low = np.array([10.0, 4, 0, 5, 0, 0])
    high = np.array([10.0, 4, np.inf, 5, np.inf, np.inf])
    assert feasible_intervals(cells.system(low, high), np.array([2])) == (1, 1)


def test_tables_that_contradict_each_other_are_refused() -> None:
    place = Dimension.from_levels("place", [("a",), ("b",)])
    cells = Cells.closed([place], np.array([[0], [1], [2]]))
    with pytest.raises(ParameterError, match="contradict each other"):
        feasible_intervals(cells.system(np.array([10.0, 8, 3]), np.array([10.0, 8, np.inf])), np.array([2]))


def test_cells_that_share_no_unknown_are_attacked_apart() -> None:
    place = Dimension.from_levels("place", [("s", "a"), ("s", "b"), ("t", "c"), ("t", "d")])
    cells = Cells.closed([place], np.arange(7)[:, None])
    exact = np.array([0.0, 3, 1, 2, 7, 3, 4])
    exact[0] = 10
    shown = cells.dimensions[0].depth < 2
    system = tighten(cells.system(np.where(shown, exact, 0), np.where(shown, exact, np.inf)))
    assert sorted(len(each.cells) for each in blocks(system)) == [2, 2]


def test_large_numbers_keep_their_last_digit() -> None:
    place = Dimension.from_levels("place", [("a",), ("b",), ("c",)])
    cells = Cells.closed([place], np.arange(4)[:, None])
    low, high = np.array([7e9 + 3, 7e9, 0, 0]), np.array([7e9 + 3, 7e9, np.inf, np.inf])
    lower, upper = feasible_intervals(cells.system(low, high), np.array([2, 3]))
    assert lower.tolist() == [0, 0]
    assert upper == pytest.approx([3, 3], abs=1e-3)


def test_a_system_knows_its_own_tables() -> None:
    place = Dimension.from_levels("place", [("a",), ("b",)])
    cells = Cells.closed([place], np.array([[0], [1], [2]]))
    system: System = cells.system(np.array([5.0, 0, 0]), np.array([5.0, 9, 9]))
    assert system.contains(np.array([5.0, 2, 3]))
    assert not system.contains(np.array([5.0, 2, 2]))
    assert not system.contains(np.array([6.0, 3, 3]))
