"""Controlled rounding: whole numbers that add up in every table, and that stay near the fitted ones."""

import numpy as np
import pytest

from recordwise.release.rounding import OUTSIDE, Nesting, apportion, round_tables


def three_levels(parents: int, each: int, chance: np.random.Generator) -> tuple[list[np.ndarray], Nesting]:
    """A tree of cells, their parents and the total, with a rest in every coarser cell."""
    cells = chance.exponential(3.0, parents * each) * (chance.random(parents * each) < 0.7)
    up = np.repeat(np.arange(parents), each)
    middle = np.bincount(up, weights=cells) + chance.random(parents)
    fits = [cells, middle, np.array([middle.sum() + 0.4])]
    none = np.zeros(parents, np.int64)
    above = {0: {1: up, 2: np.zeros(len(cells), np.int64)}, 1: {2: none}, 2: {}}
    return fits, Nesting(sizes=tuple(map(len, fits)), above=above)


@pytest.mark.parametrize("seed", range(20))
def test_every_number_of_a_chain_is_rounded_up_or_down_and_rests_stay_nonnegative(seed: int) -> None:
    fits, nesting = three_levels(7, 11, np.random.default_rng(seed))
    fine, middle, (total,) = round_tables(fits, nesting, rests=True)
    for rounded, fit in zip((fine, middle, [total]), fits):
        assert np.all(np.abs(rounded - fit) < 1)
    assert np.all(np.bincount(nesting.above[0][1], weights=fine) <= middle)
    assert middle.sum() <= total
    assert min(fine.min(), middle.min()) >= 0


def test_complete_tables_add_up_exactly() -> None:
    chance = np.random.default_rng(1)
    fits, nesting = three_levels(50, 40, chance)
    fits[1] = np.bincount(nesting.above[0][1], weights=fits[0])
    fits[2] = np.array([fits[1].sum()])
    fine, middle, (total,) = round_tables(fits, nesting, rests=False)
    assert np.array_equal(np.bincount(nesting.above[0][1], weights=fine), middle)
    assert middle.sum() == total
    assert all(np.all(np.abs(rounded - fit) < 1) for rounded, fit in zip((fine, middle, [total]), fits))


def test_tables_that_cross_each_other_add_up_exactly_too() -> None:
    chance = np.random.default_rng(2)
    cells = chance.exponential(2.0, (30, 20))
    rows, columns = np.divmod(np.arange(600), 20)
    fits = [cells.ravel(), cells.sum(1), cells.sum(0), np.array([cells.sum()])]
    zeros = np.zeros(600, np.int64)
    above = {0: {1: rows, 2: columns, 3: zeros}, 1: {3: zeros[:30]}, 2: {3: zeros[:20]}, 3: {}}
    for rests in (False, True):
        whole = round_tables(fits, Nesting(sizes=(600, 30, 20, 1), above=above), rests=rests)
        table = whole[0].reshape(30, 20)
        if not rests:
            assert np.array_equal(table.sum(1), whole[1])
            assert np.array_equal(table.sum(0), whole[2])
            assert table.sum() == whole[3][0]
        assert np.max(np.abs(whole[1] - fits[1])) < 1


def test_a_cell_whose_parent_is_not_published_counts_in_the_next_table_above() -> None:
    fits = [np.array([1.4, 1.4, 1.4]), np.array([2.8]), np.array([4.2])]
    above = {0: {1: np.array([0, 0, OUTSIDE]), 2: np.zeros(3, np.int64)}, 1: {2: np.zeros(1, np.int64)}, 2: {}}
    fine, middle, total = round_tables(fits, Nesting(sizes=(3, 1, 1), above=above), rests=True)
    assert (sorted(fine[:2].tolist()), fine[2], middle[0], total[0]) == ([1, 2], 1, 3, 4)


def test_what_almost_adds_up_is_made_to_add_up() -> None:
    values, parents = [np.array([2.0 + 1e-9, 3.0 - 1e-9, 0.5])], [np.array([0, 0, OUTSIDE])]
    (found,) = apportion(values, parents, np.array([6]))
    assert found.tolist() == [2, 4, 0]
    (less,) = apportion(values, parents, np.array([4]))
    assert less.sum() == 4


def test_negative_numbers_are_rounded_up_or_down_as_well() -> None:
    values = np.array([-1.5, 2.25, -0.75])
    (found,) = apportion([values], [np.zeros(3, np.int64)], np.array([0]))
    assert found.sum() == 0
    assert np.all(np.abs(found - values) < 1)


@pytest.mark.slow
def test_a_million_cells_are_rounded_in_seconds() -> None:
    import time

    fits, nesting = three_levels(3_000, 334, np.random.default_rng(3))
    started = time.process_time()
    fine, middle, _ = round_tables(fits, nesting, rests=True)
    assert time.process_time() - started < 20
    assert np.all(np.bincount(nesting.above[0][1], weights=fine) <= middle)
