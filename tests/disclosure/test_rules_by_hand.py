"""Older rules, cells and bounds on tables that fit on a hand, each number computed beside the code."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from recordwise.disclosure import bounds
from recordwise.disclosure.bounds import LARGEST, TOLERANCE, Program, System, blocks, feasible_intervals, tighten, unit
from recordwise.disclosure.cells import Cells, Dimension
from recordwise.disclosure.rules import (
    EDGES,
    Coarsening,
    Contributions,
    PercentRule,
    Ranges,
    Rounding,
    Suppression,
    ThresholdRule,
    sensitive_cells,
)
from recordwise.disclosure.suppress import audit, complementary_suppression
from recordwise.errors import ParameterError

PLACE = Dimension.from_levels("place", [("n", "a"), ("n", "b"), ("s", "c"), ("s", "d")])
KIND = Dimension.from_levels("kind", [("x",), ("y",)])


def cells_of(*codes: tuple[str, ...], trees: tuple[Dimension, ...] = (PLACE, KIND)) -> Cells:
    columns = [tree.positions([code[at] for code in codes]) for at, tree in enumerate(trees)]
    return Cells.closed(trees, np.array(columns).T)


def contributors(number: Any, total: Any, largest: Any, second: Any, hidden: Any = None) -> Contributions:
    one, two, three, four = (np.array(each, float) for each in (number, total, largest, second))
    return Contributions(one, two, three, four, np.zeros(len(one), bool) if hidden is None else np.array(hidden))


# Cells.


def test_a_tree_knows_its_codes_their_parents_and_their_depths() -> None:
    assert PLACE.codes == ("", "n", "a", "b", "s", "c", "d")
    assert PLACE.trees[0].tolist() == [-1, 0, 1, 1, 0, 4, 4]
    assert PLACE.depth.tolist() == [0, 1, 2, 2, 1, 2, 2]
    uneven = Dimension.from_parents("place", {"a": "", "b": "a", "c": "b", "d": ""})
    assert uneven.depth.tolist() == [0, 1, 2, 3, 1]
    two = Dimension.from_levels("place", [("n", "a"), ("s", "b")], [("z", "a"), ("z", "b")])
    assert two.codes == ("", "n", "a", "s", "b", "z")
    assert [tree.tolist() for tree in two.trees] == [[-1, 0, 1, 0, 3, -1], [-1, -1, 5, -1, 5, 0]]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Dimension.from_levels("place", [("n", "a"), ("s", "a")]), "has the code 'a' below two others"),
        (lambda: Dimension.from_parents("place", {"a": "n"}), "has codes below 'n', which is below none"),
        (lambda: Dimension.from_parents("place", {"a": "a"}), "has a code that is above itself"),
        (lambda: Dimension.from_parents("place", {"a": "b", "b": "c", "c": "a"}), "has a code that is above itself"),
        (lambda: PLACE.positions(["a", "z"]), "has no code 'z'"),
        (lambda: cells_of(("a", "x"), ("b", "x"), ("a", "x")), "have a cell twice"),
    ],
)
def test_trees_and_cells_that_are_none_are_refused(make: Any, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        make()


def test_a_list_of_cells_is_closed_by_all_totals_above_them() -> None:
    cells = cells_of(("a", "x"), ("c", ""))
    names = [tuple(tree.codes[at] for tree, at in zip(cells.dimensions, row)) for row in cells.codes]
    assert names[:2] == [("a", "x"), ("c", "")]
    assert sorted(names[2:]) == [("", ""), ("", "x"), ("a", ""), ("n", ""), ("n", "x"), ("s", "")]
    assert cells.find(PLACE.positions(["c", "d"])[:, None] * [1, 0]).tolist() == [1, -1]
    assert len(set(cells.keys.tolist())) == len(cells) == 8


def test_cells_of_three_dimensions_have_different_numbers() -> None:
    trees = tuple(Dimension.from_levels(name, [(name + "1",), (name + "2",)]) for name in "pqr")
    codes = np.array(list(product(range(3), repeat=3)))
    cells = Cells.closed(trees, codes)
    assert sorted(cells.keys.tolist()) == list(range(27))
    equations = cells.equations(absent_is_zero=True).toarray()
    exact = np.random.default_rng(1).integers(0, 9, (2, 2, 2))
    whole = np.pad(exact, ((1, 0),) * 3)
    for axis in range(3):
        total: Any = [slice(None)] * 3
        total[axis] = 0
        whole[tuple(total)] = whole.sum(axis=axis)
    assert (equations @ whole[tuple(codes.T)] == 0).all()
    # Every cell that is a total along a dimension, with two children: nine along each.
    assert equations.shape == (27, 27)
    assert (np.sort(equations, axis=1)[:, [0, 1, -1]] == [-1, -1, 1]).all()


def test_what_is_not_listed_is_a_cell_of_its_own_unless_it_is_zero() -> None:
    """n has a and b, of which b is not listed; s has neither c nor d; all has n and s."""
    cells = cells_of(("",), ("n",), ("s",), ("a",), trees=(PLACE,))
    assert cells.equations(absent_is_zero=True).toarray().tolist() == [[1, -1, -1, 0], [0, 1, 0, -1]]
    assert cells.equations(absent_is_zero=False).toarray().tolist() == [[1, -1, -1, 0, 0], [0, 1, 0, -1, -1]]
    system = cells.system(np.zeros(4), np.ones(4), absent_is_zero=False)
    assert (system.low.tolist(), system.high.tolist()) == ([0] * 5, [1, 1, 1, 1, np.inf])
    assert len(cells.system(np.zeros(4), np.ones(4)).low) == 4


def test_totals_are_filled_in_once_all_their_children_have_values() -> None:
    cells = cells_of(("",), ("n",), ("s",), ("a",), ("b",), ("c",), trees=(PLACE,))
    values = np.array([np.nan, np.nan, 7.0, 1.0, 2.0, 4.0])
    cells.add_up(values)
    assert values == pytest.approx([np.nan, 3, 7, 1, 2, 4], nan_ok=True)
    cells.add_up(values)
    assert values.tolist() == [10, 3, 7, 1, 2, 4]
    # A cell without children keeps what it does not have.
    alone = np.array([np.nan, np.nan, 7.0, np.nan, 2.0, 4.0])
    cells.add_up(alone)
    assert alone == pytest.approx([np.nan, np.nan, 7, np.nan, 2, 4], nan_ok=True)
    found = Contributions.over(cells_of(("a",), ("b",), ("c",), trees=(PLACE,)), contributors(*[[1, 2, 3]] * 4))
    # Listed are a, b and c; n, s and all are added up over two levels and never published.
    assert sorted(found.total.tolist()) == [1, 2, 3, 3, 3, 6]
    assert found.hidden.tolist() == [False] * 3 + [True] * 3
    assert found.number.tolist() == found.largest.tolist() == found.second.tolist() == [1, 2, 3, 0, 0, 0]


# Rules.


def test_rules_have_the_defaults_they_are_known_by() -> None:
    assert (ThresholdRule().at_least, ThresholdRule().percent) == (3, 10.0)
    assert PercentRule().percent == 10
    assert (Rounding().base, Rounding().at_random) == (10, False)
    assert Suppression((ThresholdRule(),)).complementary
    assert Coarsening((ThresholdRule(),)).along is None
    assert EDGES == (1, 5, 10, 20, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000)
    assert Ranges((ThresholdRule(),)).edges == EDGES


def test_two_rules_withhold_what_either_does_with_the_larger_protection() -> None:
    """Cells with 0, 1, 2, 3 contributors and totals of 0, 50, 90, 105; the third has 80 and 10, the last 100 and 4."""
    found = contributors([0, 1, 2, 3], [0, 50, 90, 105], [0, 50, 80, 100], [0, 0, 10, 4])
    marked, distance = sensitive_cells((ThresholdRule(2, percent=40), PercentRule(15)), found)
    assert marked.tolist() == [False, True, True, True]
    # 40 % of 50 is 20, above 15 % of it; 15 % of 80; 15 % of 100 less the 1 that others have.
    assert distance == pytest.approx([0, 20, 12, 14])
    # Others have exactly 1 % of 100: that is enough.
    assert PercentRule(1).sensitive(found).tolist() == [False, True, True, False]
    assert ThresholdRule(3).sensitive(found).tolist() == [False, True, True, False]
    assert ThresholdRule(4).sensitive(found).tolist() == [False, True, True, True]


def test_rounding_takes_the_nearest_multiple_and_bounds_what_it_hides() -> None:
    totals = [0.0, 4, 5, 14, 15, 16, 25]
    cells = cells_of(*((each,) for each in PLACE.codes), trees=(PLACE,))
    hidden = [False] * 6 + [True]
    found = contributors(totals, totals, totals, totals, hidden)
    published = Rounding(10).publish(cells, found)
    assert published.value == pytest.approx([0, 0, 10, 10, 20, 20, np.nan], nan_ok=True)
    assert published.low.tolist() == [0, 0, 5, 5, 15, 15, 0]
    assert published.high.tolist() == [5, 5, 15, 15, 25, 25, np.inf]
    assert published.withheld.tolist() == hidden
    assert not len(published.unprotected)
    drawn = Rounding(10, at_random=True)
    values = np.array([drawn.publish(cells, found, seed).value[:6] for seed in range(200)])
    assert [sorted(set(column)) for column in values.T] == [[0], [0, 10], [0, 10], [10, 20], [10, 20], [10, 20]]
    # Up with a chance of 0.4, 0.5, 0.4, 0.5, 0.6: 200 draws are within 7 standard errors, false alarms below 1e-11.
    up = (values[:, 1:] % 20 == [10, 10, 0, 0, 0]).mean(axis=0)
    assert up == pytest.approx([0.4, 0.5, 0.4, 0.5, 0.6], abs=7 * 0.5 / np.sqrt(200))
    one = drawn.publish(cells, found)
    assert one.value[:6].tolist() == values[0].tolist()
    assert one.high[:6].tolist() == (one.value[:6] + 10).tolist()
    assert one.low[:6].tolist() == np.maximum(one.value[:6] - 10, 0).tolist()


def test_ranges_show_the_class_of_sensitive_cells_and_others_exactly() -> None:
    totals = [0.0, 1, 4, 5, 30, 31, 7]
    cells = cells_of(*((each,) for each in PLACE.codes), trees=(PLACE,))
    found = contributors([2, 2, 2, 2, 2, 3, 2], totals, totals, [0] * 7, [False] * 6 + [True])
    published = Ranges((ThresholdRule(3),), edges=(1.0, 5.0, 30.0)).publish(cells, found)
    assert published.low.tolist() == [0, 1, 1, 5, 30, 31, 0]
    assert published.high.tolist() == [1, 5, 5, 30, np.inf, 31, np.inf]
    assert published.value == pytest.approx([0.5, 3, 3, 17.5, 30, 31, np.nan], nan_ok=True)


@pytest.mark.parametrize("edges", [(0.0, 5.0), (-1.0,), (5.0, 4.0), (5.0, 5.0), ()])
def test_edges_that_do_not_rise_from_above_0_are_refused(edges: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match="must increase from above 0"):
        Ranges((ThresholdRule(),), edges=edges)
    assert Ranges((ThresholdRule(),), edges=(0.5,)).edges == (0.5,)


def test_coarsening_rolls_up_each_place_to_where_all_its_cells_pass() -> None:
    """By kind: x has a sensitive county, y a sensitive state, and all kinds none."""
    codes = [(place, kind) for place in PLACE.codes for kind in KIND.codes]
    cells = cells_of(*codes)
    few = {("a", "x"), ("s", "y")}
    number = [1 if code in few else 5 for code in codes]
    found = contributors(number, [8] * len(codes), [1] * len(codes), [1] * len(codes))
    for along in (None, "place"):
        published = Coarsening((ThresholdRule(3),), along=along).publish(cells, found)
        gone = {code for code, each in zip(codes, published.withheld) if each}
        below = {("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")}
        assert gone == below | {(place, "y") for place in ("n", "s", "a", "b", "c", "d")}
    published = Coarsening((ThresholdRule(3),), along="kind").publish(cells, found)
    assert {code for code, each in zip(codes, published.withheld) if each} == {
        (place, kind) for place in "as" for kind in "xy"
    }
    shown = ~published.withheld
    assert (published.low[shown] == 8).all()
    assert (published.high[shown] == 8).all()
    assert (published.high[~shown] == np.inf).all()


@pytest.mark.parametrize("rules", [(), [ThresholdRule()], (ThresholdRule(), 3), None])
def test_a_method_takes_a_tuple_of_rules_only(rules: Any) -> None:
    for make in (Suppression, Coarsening, Ranges):
        with pytest.raises(ParameterError, match="must be a tuple of rules"):
            make(rules)


# Suppression.


def test_a_cell_is_protected_by_the_cheapest_others_and_without_them_only_itself_is_withheld() -> None:
    """n is a and b; a is sensitive. With b next to nothing the parts of s cannot help."""
    codes = ("", "n", "a", "b", "s", "c", "d")
    cells = cells_of(*((each,) for each in codes), trees=(PLACE,))
    total = [100.0, 40, 10, 30, 60, 20, 40]
    found = contributors([9, 9, 1, 9, 9, 9, 9], total, total, [0] * 7)
    alone = Suppression((ThresholdRule(2),), complementary=False).publish(cells, found)
    assert alone.withheld.tolist() == [code == "a" for code in codes]
    both = Suppression((ThresholdRule(2),)).publish(cells, found)
    assert both.withheld.tolist() == [code in "ab" and code != "" for code in codes]
    assert not len(both.unprotected)
    assert (both.low[2], both.high[2]) == (0, np.inf)


def test_zeros_are_published_and_a_cell_among_zeros_alone_is_named_as_unprotected() -> None:
    """All is s of 0 and n; n is a of 10 and b of 0: only the totals can change with a."""
    equations = np.array([[1.0, -1, -1, 0, 0], [0, 0, 1, -1, -1]])
    values, primary = np.array([10.0, 0, 10, 10, 0]), np.array([False, False, False, True, False])
    one = np.ones(5)
    found = complementary_suppression(equations, values, primary, one, one)
    assert found.withheld.tolist() == [True, False, True, True, False]
    assert found.unprotected.tolist() == []
    # Beside nothing but a cell of 0, a cannot move.
    named = complementary_suppression(np.array([[0.0, 0, 0, 1, -1]]), values, primary, one, one)
    assert named.unprotected.tolist() == [3]
    assert named.primary.tolist() == primary.tolist()


def test_a_hidden_cell_protects_without_being_withheld_anew() -> None:
    """Of a total and two parts, one part is never published: the other is protected by it."""
    equations = np.array([[1.0, -1, -1, -1]])
    values, primary = np.array([30.0, 10, 10, 10]), np.array([False, True, False, False])
    one = np.ones(4)
    plain = complementary_suppression(equations, values, primary, one, one)
    assert plain.withheld.sum() == 2
    hidden = complementary_suppression(equations, values, primary, one, one, hidden=[False, False, True, False])
    assert hidden.withheld.tolist() == [False, True, True, False]


def test_protection_downward_is_at_most_the_value_and_both_sides_are_needed() -> None:
    """A part of 2 and one of 50 of a total of 52: the first can fall by 2 and rise by up to 50."""
    equations, values = np.array([[1.0, -1, -1]]), np.array([52.0, 2, 50])
    primary = np.array([False, True, False])
    for up, down in ((50.0, 100.0), (1.0, 2.0), (1.0, 3.0)):
        found = complementary_suppression(equations, values, primary, np.full(3, up), np.full(3, down))
        assert found.unprotected.tolist() == []
    system = System(np.array([52.0, 0, 0]), np.array([52.0, np.inf, np.inf]), equations)
    place = np.array([1])
    cases = {(50.0, 2.0): False, (50.0, 9.0): False, (50.1, 2.0): True, (49.9, 1.9): False}
    for (up, down), exposed in cases.items():
        assert audit(system, values, place, np.array([up]), np.array([down])).tolist() == [exposed]
    # From below: the other part is at most 51, so the first is at least 1.
    capped = System(np.array([52.0, 0, 0]), np.array([52.0, np.inf, 51.0]), equations)
    for down, exposed in ((1.0, False), (1.1, True), (5.0, True)):
        assert audit(capped, values, place, np.array([1.0]), np.array([down])).tolist() == [exposed]


# Bounds.


def test_the_unit_of_large_numbers_is_a_part_of_the_largest() -> None:
    assert unit(np.array([5.0, LARGEST]), np.zeros(0)) == 1
    assert unit(np.array([-3 * LARGEST, np.inf]), np.array([np.nan])) == 3
    assert unit(np.array([1.0]), np.array([2 * LARGEST])) == 2


def test_a_system_contains_what_is_within_the_tolerance_of_its_bounds_and_equations() -> None:
    system = System(np.array([5.0, 0, 0]), np.array([5.0, 9, 3]), np.array([[1.0, -1, -1]]))
    assert system.free.tolist() == [False, True, True]
    near, far = 0.9 * TOLERANCE, 1.5 * TOLERANCE
    for off, inside in ((near, True), (-near, True), (far, False), (-far, False)):
        assert system.contains(np.array([5 + off, 2.0, 3.0])) == inside
    assert system.contains(np.array([5.0, 2 - near, 3 + near]))
    assert not system.contains(np.array([5.0, 2 - far, 3 + far]))
    # The equation may be off by ten times as much.
    assert system.contains(np.array([5.0, 2 + 9 * TOLERANCE, 3.0]))
    assert not system.contains(np.array([5.0, 2 + 11 * TOLERANCE, 3.0]))
    assert not system.contains(np.array([5.0, -1.0, 6.0]))


def test_each_equation_alone_narrows_the_bounds_from_both_sides() -> None:
    """x = y + z with y in 2..5, z in 1..4 and x in 0..7; then x is 3..7, and nothing else changes."""
    low, high = np.array([0.0, 2, 1]), np.array([7.0, 5, 4])
    found = tighten(System(low, high, np.array([[1.0, -1, -1]])))
    assert (found.low.tolist(), found.high.tolist()) == ([3, 2, 1], [7, 5, 4])
    # With x at most 4: y is at most 3 and z at most 2.
    found = tighten(System(low, np.array([4.0, 5, 4]), np.array([[1.0, -1, -1]])))
    assert (found.low.tolist(), found.high.tolist()) == ([3, 2, 1], [4, 3, 2])
    # Weights other than one: 2 x = y, so that y is even to its bounds.
    found = tighten(System(np.array([0.0, 3]), np.array([4.0, 7]), np.array([[2.0, -1]])))
    assert (found.low.tolist(), found.high.tolist()) == ([1.5, 3], [3.5, 7])
    # One unknown without an end is told by the others, two are not.
    ends = np.array([10.0, np.inf, 4])
    found = tighten(System(np.array([10.0, 0, 4]), ends, np.array([[1.0, -1, -1]])))
    assert (found.low[1], found.high[1]) == (6, 6)
    found = tighten(System(np.array([0.0, 0, 4]), np.array([np.inf, np.inf, 4]), np.array([[1.0, -1, -1]])))
    assert (found.low.tolist(), found.high.tolist()) == ([4, 0, 4], [np.inf, np.inf, 4])


def test_a_chain_of_equations_is_followed_to_its_end() -> None:
    """Each of 30 cells equals the next; the last is known."""
    count = 30
    equations = np.eye(count - 1, count) - np.eye(count - 1, count, 1)
    low, high = np.zeros(count), np.full(count, np.inf)
    low[-1] = high[-1] = 7
    found = tighten(System(low, high, equations))
    assert (found.low == 7).all()
    assert (found.high == 7).all()


def test_contradictions_are_refused_beyond_the_tolerance_only() -> None:
    equations = np.array([[1.0, -1]])
    for off, refused in ((0.5 * TOLERANCE, False), (2 * TOLERANCE, True)):
        system = System(np.array([5.0, 5 + off]), np.array([5.0, 5 + off]), equations)
        if refused:
            with pytest.raises(ParameterError, match="contradict each other"):
                tighten(system)
        else:
            found = tighten(system)
            assert (found.low <= found.high).all()
    # Four cells in a ring of sums that no table has, though each equation alone has one.
    ring = np.array([[1.0, 1, 0, -1], [0, 1, 1, -1], [1, 0, 1, -1], [1, 1, 1, -1]])
    fixed = np.array([0.0, 0, 0, 2]), np.array([np.inf, np.inf, np.inf, 2])
    with pytest.raises(ParameterError, match="contradict each other"):
        feasible_intervals(System(*fixed, ring), np.arange(3))


def test_unknown_cells_that_share_no_equation_are_blocks_with_what_known_cells_leave_over() -> None:
    equations = np.array([[1.0, -1, -1, 0, 0, 0], [0, 0, 0, 1, -1, -1], [1, 0, 0, 1, 0, 0]])
    low, high = np.array([9.0, 0, 0, 4, 0, 0]), np.array([9.0, 9, 9, 4, 4, 4])
    found = blocks(System(low, high, equations))
    assert [each.cells.tolist() for each in found] == [[1, 2], [4, 5]]
    assert [each.right.tolist() for each in found] == [[-9], [-4]]
    assert [each.equations.toarray().tolist() for each in found] == [[[-1, -1]], [[-1, -1]]]
    alone = blocks(System(np.zeros(2), np.ones(2), np.zeros((1, 2))))
    assert [each.cells.tolist() for each in alone] == [[0], [1]]
    assert not blocks(System(np.ones(2), np.ones(2), np.array([[1.0, -1]])))


def test_feasible_intervals_are_given_for_the_targets_in_their_order() -> None:
    """a + b = 10, b + c = 4, a at most 8, d by itself: b is 2 to 4, c up to 2."""
    equations = np.array([[1.0, 1, 0, 0, -1, 0], [0, 1, 1, 0, 0, -1]])
    low, high = np.array([0.0, 0, 0, 1, 10, 4]), np.array([8.0, np.inf, np.inf, 3, 10, 4])
    found = feasible_intervals(System(low, high, equations), np.array([3, 1, 2, 0, 5]))
    assert found[0] == pytest.approx([1, 2, 0, 6, 4])
    assert found[1] == pytest.approx([3, 4, 2, 8, 4])
    # Without an end: a - b = 3.
    free = System(np.array([0.0, 0, 3]), np.array([np.inf, np.inf, 3]), np.array([[1.0, -1, -1]]))
    found = feasible_intervals(free, np.array([0, 1]))
    assert (found[0].tolist(), found[1].tolist()) == ([3, 0], [np.inf, np.inf])


def test_blocks_of_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    equations = np.array([[1.0, -1, -1, -1]])
    system = System(np.array([9.0, 0, 0, 0]), np.array([9.0, 5, 5, 5]), equations)
    monkeypatch.setattr(bounds, "LARGEST_BLOCK", 3)
    assert feasible_intervals(system, np.array([1]))[1] == pytest.approx([5])
    monkeypatch.setattr(bounds, "LARGEST_BLOCK", 2)
    with pytest.raises(ParameterError, match="have 3 withheld cells that depend on each other"):
        feasible_intervals(system, np.array([1]))


def test_a_program_finds_the_least_and_the_most_one_after_the_other() -> None:
    """x + y = 6, x - z = 1, with y up to 4 and z up to 9."""
    program = Program(np.array([[1.0, 1, 0], [1, 0, -1]]), np.array([6.0, 1]), np.zeros(3), np.array([np.inf, 4, 9]))
    ends = {(column, sign): program.least(column, sign)[0] for column in (0, 1, 2) for sign in (1.0, -1.0)}
    assert ends == pytest.approx({(0, 1.0): 2, (0, -1.0): -6, (1, 1.0): 0, (1, -1.0): -4, (2, 1.0): 1, (2, -1.0): -5})
    endless = Program(np.array([[1.0, -1]]), np.array([2.0]), np.zeros(2), np.full(2, np.inf))
    assert endless.least(0, 1.0)[0] == pytest.approx(2)
    assert endless.least(0, -1.0) == (-np.inf, None)


@pytest.mark.parametrize("factor", [1.0, 1e3, 1e9])
def test_intervals_grow_with_the_numbers_whatever_their_size(factor: float) -> None:
    """A table of 2 by 2 with rows of 5 and 9 and columns of 6 and 8, its cells up to 4, 5, 6 and 7; the second at least 2."""
    equations = np.array([[1.0, 1, 0, 0, -1, 0, 0, 0], [0, 0, 1, 1, 0, -1, 0, 0], [1, 0, 1, 0, 0, 0, -1, 0]])
    equations = np.vstack([equations, [0, 1, 0, 1, 0, 0, 0, -1]])
    low = factor * np.array([0.0, 2, 0, 0, 5, 9, 6, 8])
    high = factor * np.array([4.0, 5, 6, 7, 5, 9, 6, 8])
    found = feasible_intervals(System(low, high, equations), np.arange(4))
    # The first is t, then 5 - t, 6 - t and 3 + t: t is at most 3 by the second and at least 0 by the first and third.
    assert found[0] / factor == pytest.approx([0, 2, 3, 3], abs=1e-6)
    assert found[1] / factor == pytest.approx([3, 5, 6, 6], abs=1e-6)


def test_three_cells_in_a_ring_are_told_by_their_sums_of_two_at_any_size() -> None:
    """x + y, y + z and x + z are known: no equation alone tells more than bounds, all together tell everything."""
    for factor in (1.0, 1e7, 1e10):
        x, y, z = factor, 2 * factor, 4 * factor
        equations = np.array([[1.0, 1, 0, -1, 0, 0], [0, 1, 1, 0, -1, 0], [1, 0, 1, 0, 0, -1]])
        known = [x + y, y + z, x + z]
        system = System(np.array([0.0, 0, 0, *known]), np.array([np.inf] * 3 + known), equations)
        low, high = feasible_intervals(system, np.arange(3))
        assert low / factor == pytest.approx([1, 2, 4], abs=1e-5)
        assert high / factor == pytest.approx([1, 2, 4], abs=1e-5)
