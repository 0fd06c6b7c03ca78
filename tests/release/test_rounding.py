"""Controlled rounding: whole numbers that add up in every table, and that stay near the fitted ones."""

import time
from typing import Any

import numpy as np
import pytest

from recordwise.postprocess.rounding import OUTSIDE, Nesting, apportion, round_tables


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


def crossed(cells: np.ndarray, places: list[np.ndarray], industries: list[np.ndarray]) -> tuple[list, Nesting]:
    """Every combination of the levels of two hierarchies, each given by the labels of the finest codes, finest level first."""
    levels = [(place, industry) for place in places for industry in industries]
    sizes = tuple(int(place.max() + 1) * int(industry.max() + 1) for place, industry in levels)
    labels = [(place[:, None] * (industry.max() + 1) + industry).ravel() for place, industry in levels]
    fits = [np.bincount(label, weights=cells.ravel(), minlength=size) for label, size in zip(labels, sizes)]
    above: dict[int, dict[int, np.ndarray]] = {k: {} for k in range(len(levels))}
    for k, size in enumerate(sizes):
        for j in range(k + 1, len(levels)):
            if j // len(industries) >= k // len(industries) and j % len(industries) >= k % len(industries):
                above[k][j] = np.full(size, OUTSIDE)
                above[k][j][labels[k]] = labels[j]
    return fits, Nesting(sizes=sizes, above=above)


def hierarchy(codes: int, groups: int, *, levels: int) -> list[np.ndarray]:
    """The finest codes, their groups and one total; with two levels no groups, with one not even a total."""
    middle = [np.arange(codes) * groups // codes] if levels == 3 else []
    return [np.arange(codes), *middle, *([np.zeros(codes, np.int64)] if levels > 1 else [])]


def skewed(chance: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Cells of very different sizes, half of them empty."""
    sizes = np.exp(chance.normal(0, 1.5, (rows, 1))) * np.exp(chance.normal(0, 1, columns))
    return chance.exponential(0.7, (rows, columns)) * sizes * (chance.random((rows, columns)) < 0.5)


def check_sums(whole: list[np.ndarray], nesting: Nesting) -> None:
    for k, ups in nesting.above.items():
        for j, up in ups.items():
            assert np.array_equal(np.bincount(up, weights=whole[k], minlength=len(whole[j])), whole[j])


@pytest.mark.theorem("T-STRIPS")
@pytest.mark.parametrize("levels", [(2, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("seed", range(8))
def test_two_hierarchies_of_which_one_has_two_levels_are_rounded_up_or_down(levels, seed) -> None:
    chance = np.random.default_rng(seed)
    own = hierarchy(23, 4, levels=levels[0]), hierarchy(14, 3, levels=levels[1])
    fits, nesting = crossed(skewed(chance, 23, 14), *own)
    whole = round_tables(fits, nesting, rests=False)
    check_sums(whole, nesting)
    assert all(np.all(np.abs(rounded - fit) < 1) and rounded.min() >= 0 for rounded, fit in zip(whole, fits))
    # What is taken up instead of down is near the middle: the error hardly exceeds that of rounding each cell by itself.
    alone = np.abs(np.rint(fits[0]) - fits[0]).mean()
    assert np.abs(whole[0] - fits[0]).mean() < 1.5 * alone


@pytest.mark.theorem("T-STRIPS")
def test_five_cells_of_one_half_in_a_ring_cannot_all_be_rounded_up_or_down_but_add_up() -> None:
    cells = np.zeros((3, 3))
    cells[[0, 1, 2, 2, 0], [0, 1, 1, 2, 2]] = 0.5
    levels = [np.arange(3), np.array([0, 0, 1]), np.zeros(3, np.int64)]
    fits, nesting = crossed(cells, levels, levels)
    whole = round_tables(fits, nesting, rests=False)
    check_sums(whole, nesting)
    possible = 0
    for some in range(2**5):
        tried = np.zeros((3, 3))
        tried[[0, 1, 2, 2, 0], [0, 1, 1, 2, 2]] = [some >> k & 1 for k in range(5)]
        sums, _ = crossed(tried, levels, levels)
        possible += all(np.all(np.abs(each - fit) < 1) for each, fit in zip(sums, fits))
    assert possible == 0
    assert 1 <= max(np.max(np.abs(each - fit)) for each, fit in zip(whole, fits)) < 2


@pytest.mark.parametrize("seed", range(8))
def test_three_levels_by_three_add_up_and_move_by_less_than_two_units(seed) -> None:
    """Seeded; no number of these tables needs more, though the theorem allows it."""
    cells = skewed(np.random.default_rng(seed), 60, 25)
    fits, nesting = crossed(cells, hierarchy(60, 7, levels=3), hierarchy(25, 5, levels=3))
    whole = round_tables(fits, nesting, rests=False)
    check_sums(whole, nesting)
    assert all(np.all(np.abs(rounded - fit) < 2) and rounded.min() >= 0 for rounded, fit in zip(whole, fits))
    assert sum(int(np.sum(np.abs(rounded - fit) >= 1)) for rounded, fit in zip(whole, fits)) <= 5


def test_two_tables_that_cross_are_rounded_up_or_down_beside_their_rests() -> None:
    chance = np.random.default_rng(2)
    cells = chance.exponential(2.0, (30, 20))
    fits, nesting = crossed(cells, hierarchy(30, 1, levels=2), hierarchy(20, 1, levels=2))
    rests = [chance.random(size) * 0.9 for size in nesting.sizes[1:3]]
    fits[1] = fits[1] + rests[0]
    fits[2] = fits[2] + rests[1]
    fits[3] = fits[3] + rests[0].sum() + rests[1].sum() + 0.3
    whole = round_tables(fits, nesting, rests=True)
    assert all(np.all(np.abs(rounded - fit) < 1) for rounded, fit in zip(whole, fits))
    for j in (1, 2):
        assert np.all(np.bincount(nesting.above[0][j], weights=whole[0]) <= whole[j])
        assert whole[j].sum() <= whole[3][0]


def test_levels_of_one_list_that_cross_share_their_cells() -> None:
    """Regions and states, neither nested in the other: several counties connect the same two."""
    chance = np.random.default_rng(5)
    cells, state = chance.exponential(0.8, 200), np.arange(200) // 20
    region = chance.integers(0, 4, 200)
    fits = [cells, np.bincount(state, cells), np.bincount(region, cells), np.array([cells.sum()])]
    zeros = np.zeros(200, np.int64)
    above = {0: {1: state, 2: region, 3: zeros}, 1: {3: zeros[:10]}, 2: {3: zeros[:4]}, 3: {}}
    nesting = Nesting(sizes=(200, 10, 4, 1), above=above)
    whole = round_tables(fits, nesting, rests=False)
    check_sums(whole, nesting)
    assert all(np.all(np.abs(rounded - fit) < 1) for rounded, fit in zip(whole, fits))


def test_where_three_hierarchies_cross_all_tables_add_up() -> None:
    chance, shape = np.random.default_rng(4), (6, 5, 4)
    cells = chance.exponential(1.0, shape)
    kept = [(a, b, c) for a in (1, 0) for b in (1, 0) for c in (1, 0)]
    sizes = tuple(int(np.prod([n for n, on in zip(shape, each) if on])) for each in kept)
    labels = []
    for each in kept:
        label = np.zeros(shape, np.int64)
        for axis, on in enumerate(each):
            if on:
                label = label * shape[axis] + np.arange(shape[axis]).reshape(
                    [-1 if at == axis else 1 for at in range(3)]
                )
        labels.append(label.ravel())
    above: dict[int, dict[int, np.ndarray]] = {k: {} for k in range(8)}
    for k, finer in enumerate(kept):
        for j, coarser in enumerate(kept):
            if j != k and all(a >= b for a, b in zip(finer, coarser)):
                above[k][j] = np.zeros(sizes[k], np.int64)
                above[k][j][labels[k]] = labels[j]
    fits = [np.bincount(label, weights=cells.ravel()) for label in labels]
    nesting = Nesting(sizes=sizes, above=above)
    whole = round_tables(fits, nesting, rests=False)
    check_sums(whole, nesting)
    assert np.all(np.abs(whole[0] - fits[0]) < 2)


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


def processor_seconds(fits: Any, nesting: Any, *, rests: bool) -> tuple[float, Any]:
    started = time.process_time()
    rounded = round_tables(fits, nesting, rests=rests)
    return time.process_time() - started, rounded


@pytest.mark.slow
def test_a_million_cells_take_about_ten_times_as_long_as_a_hundred_thousand() -> None:
    """Processor time side by side: what grew with the square of the cells would take a hundred times it."""
    few, _ = processor_seconds(*three_levels(300, 334, np.random.default_rng(3)), rests=True)
    fits, nesting = three_levels(3_000, 334, np.random.default_rng(3))
    many, (fine, middle, _) = processor_seconds(fits, nesting, rests=True)
    assert many < 40 * few
    assert np.all(np.bincount(nesting.above[0][1], weights=fine) <= middle)


@pytest.mark.slow
def test_a_million_cells_of_three_levels_by_three_take_about_ten_times_as_long_as_a_hundred_thousand() -> None:
    """Processor time side by side, as above."""

    def made(counties: int) -> Any:
        cells = skewed(np.random.default_rng(6), counties, 320)
        return crossed(cells, hierarchy(counties, 51, levels=3), hierarchy(320, 20, levels=3))

    few, _ = processor_seconds(*made(314), rests=False)
    fits, nesting = made(3_142)
    many, whole = processor_seconds(fits, nesting, rests=False)
    assert many < 40 * few
    check_sums(whole, nesting)
    assert all(np.all(np.abs(rounded - fit) < 2) for rounded, fit in zip(whole, fits))
