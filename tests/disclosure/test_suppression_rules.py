"""Complementary suppression protects what the rules withhold; rounding, ranges and coarsening say what they leave known."""

from typing import Any

import numpy as np
import pytest

from disclosure.small_publications import by_leaves, contributions, made_cells, two_trees
from recordwise.disclosure.rules import (
    Coarsening,
    Contributions,
    PercentRule,
    Ranges,
    Rounding,
    Suppression,
    ThresholdRule,
    sensitive_cells,
)
from recordwise.disclosure.suppress import audit
from recordwise.errors import ParameterError

RULES = (PercentRule(15), ThresholdRule(3))


def protected_everywhere(seed: int) -> tuple[int, int]:
    """How many cells of a random table are withheld by the rules and beyond; fails where one can be computed too closely."""
    rng = np.random.default_rng(seed)
    cells = made_cells(two_trees(rng, int(rng.integers(2, 5)), int(rng.integers(2, 5))))
    found = contributions(rng, cells, most=5)
    marked, distance = sensitive_cells(RULES, found)
    published = Suppression(RULES).publish(cells, found)
    assert not published.value[marked & ~np.isnan(published.value)].size
    for cell in np.flatnonzero(marked):
        low, high = by_leaves(cells, published.low, published.high, cell)
        assert low <= found.total[cell] <= high
        if cell in published.unprotected:
            continue
        assert high >= found.total[cell] + distance[cell] - 1e-4
        assert low <= found.total[cell] - min(distance[cell], found.total[cell]) + 1e-4
    return int(marked.sum()), int(published.withheld.sum() - marked.sum())


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sampled
def test_no_withheld_cell_can_be_computed_within_its_protection(seed: int) -> None:
    protected_everywhere(seed)


@pytest.mark.slow
def test_no_withheld_cell_of_two_thousand_tables_can_be_computed() -> None:
    counts = np.array([protected_everywhere(10_000 + seed) for seed in range(2000)])
    assert (counts[:, 0] > 0).mean() > 0.8
    assert (counts[:, 1] > 0).mean() > 0.5


def test_a_planted_hole_is_found() -> None:
    """A complementary cell that is published after all gives primary cells away."""
    found_holes = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        cells = made_cells(two_trees(rng, 4, 4))
        found = contributions(rng, cells, most=5)
        marked, distance = sensitive_cells(RULES, found)
        published = Suppression(RULES).publish(cells, found)
        targets = np.setdiff1d(np.flatnonzero(marked), published.unprotected)
        extra = np.flatnonzero(published.withheld & ~marked)
        if not len(extra) or not len(targets):
            continue
        own = distance[targets]
        whole = cells.system(published.low, published.high)
        assert not audit(whole, found.total, targets, own, own).any()
        low, high = published.low.copy(), published.high.copy()
        low[extra] = high[extra] = found.total[extra]
        found_holes += bool(audit(cells.system(low, high), found.total, targets, own, own).any())
    assert found_holes >= 10


def test_a_cell_that_nothing_can_protect_is_named() -> None:
    trees = two_trees(np.random.default_rng(0), 1, 1)
    cells = made_cells(trees)
    one = np.ones(len(cells))
    found = Contributions(one, 7 * one, 7 * one, 0 * one, one == 0)
    published = Suppression((PercentRule(10),)).publish(cells, found)
    assert published.withheld.all()
    assert not len(published.unprotected)
    zero = Contributions(one, np.where(np.arange(len(cells)) == 0, 7.0, 7.0), 7 * one, 0 * one, one == 0)
    only = Suppression((_First(),)).publish(cells, zero)
    assert only.withheld.all()


class _First:
    """Withhold one cell only."""

    def sensitive(self, found: Contributions) -> Any:
        return np.arange(len(found.total)) == 1

    def protection(self, found: Contributions) -> Any:
        return np.where(self.sensitive(found), 1.0, 0.0)


def test_the_rules_withhold_what_they_say() -> None:
    found = Contributions(
        np.array([0.0, 1, 2, 3, 3]),
        np.array([0.0, 50, 90, 111, 116]),
        np.array([0.0, 50, 80, 100, 100]),
        np.array([0.0, 0, 10, 1, 1]),
        np.zeros(5, bool),
    )
    rule = PercentRule(15)
    assert rule.sensitive(found).tolist() == [False, True, True, True, False]
    # What the others have is 10 of the largest's 100; 5 more are needed until the second largest is off by 15.
    assert rule.protection(found).tolist() == [0, 7.5, 12, 5, 0]
    assert ThresholdRule(3).sensitive(found).tolist() == [False, True, True, False, False]
    assert ThresholdRule(3, percent=20).protection(found) == pytest.approx([0, 10, 18, 0, 0])


def test_rounding_and_ranges_bound_what_they_hide() -> None:
    rng = np.random.default_rng(5)
    cells = made_cells(two_trees(rng, 5, 6))
    found = contributions(rng, cells, most=6, size=30)
    for method in (Rounding(10), Rounding(5, at_random=True), Ranges(RULES)):
        published = method.publish(cells, found, 3)
        assert np.all((published.low <= found.total) & (found.total <= published.high))
        assert not published.withheld.any()
    nearest = Rounding(10).publish(cells, found)
    assert np.all(nearest.high - nearest.low <= 10)
    random = Rounding(10, at_random=True).publish(cells, found, 1)
    assert np.all(random.value % 10 == 0)
    assert np.all(np.abs(random.value - found.total) < 10)
    marked, _ = sensitive_cells(RULES, found)
    ranged = Ranges(RULES).publish(cells, found)
    assert np.all(ranged.value[~marked] == found.total[~marked])
    assert np.all(ranged.high[marked] > ranged.low[marked])


def test_rounding_at_random_is_right_on_average() -> None:
    """The mean of 400 roundings of 40 cells; a false alarm at six standard errors once in 10^9."""
    cells = made_cells(two_trees(np.random.default_rng(5), 5, 6))
    total = np.arange(len(cells), dtype=float)
    found = Contributions(total, total, total, total, total < 0)
    method = Rounding(10, at_random=True)
    mean = np.mean([method.publish(cells, found, seed).value for seed in range(400)], axis=0)
    assert np.abs(mean - total).mean() < 6 * 5 / np.sqrt(400 * len(cells)) + 0.8 * 5 / 20


def test_coarsening_publishes_down_to_the_level_at_which_all_pass() -> None:
    rng = np.random.default_rng(8)
    cells = made_cells(two_trees(rng, 6, 6))
    found = contributions(rng, cells, most=9)
    marked, _ = sensitive_cells(RULES, found)
    published = Coarsening(RULES, along="industry").publish(cells, found)
    assert published.withheld[marked].all()
    industry = cells.dimensions[1].depth[cells.codes[:, 1]]
    for place in np.unique(cells.codes[:, 0]):
        own = cells.codes[:, 0] == place
        levels = {level: set(published.withheld[own & (industry == level)]) for level in range(3)}
        assert all(len(each) == 1 for each in levels.values())
        assert sorted(levels, key=lambda level: (next(iter(levels[level])), level)) == [0, 1, 2]
    with pytest.raises(ParameterError, match="must be one of place, industry"):
        Coarsening(RULES, along="county").publish(cells, found)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Suppression(()),
        lambda: Suppression(PercentRule(10)),
        lambda: Coarsening((10,)),
        lambda: Ranges(RULES, edges=(5.0, 5.0)),
        lambda: Ranges(RULES, edges=()),
        lambda: Rounding(0),
        lambda: ThresholdRule(0),
        lambda: ThresholdRule(3, percent=0),
    ],
)
def test_rules_that_would_protect_nothing_are_refused(make: Any) -> None:
    with pytest.raises(ParameterError):
        make()
