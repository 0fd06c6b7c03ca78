"""The steps of a proof that a budget covers a policy, and columns of losses, each by hand or by trying every case."""

import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.errors import RecordError
from recordwise.exact.functions import x
from recordwise.policy import Measure, among, both, compare, constant, gaussian_sum, maximum
from recordwise.policy import atoms as of
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn, Truth
from recordwise.policy.conditions import EVERY, Null, in_band
from recordwise.policy.dominance import boxes, prove, regions
from recordwise.policy.dominance.boxes import Search, exact_bound, finite
from recordwise.policy.dominance.curves import Comparison, Term
from recordwise.policy.evaluate import tables
from recordwise.policy.evaluate.evaluator import BALLS, NumpyEvaluator, line_value

F = Fraction
M, H = Measure("m"), Measure("h", F(1, 2))
PIECES = of.Pieces(((M, F(5)), (H, F(3))))


# Terms of a proof.


def test_equal_terms_cancel_and_no_guarantee_does_not() -> None:
    out = of.Outside("a")
    spent: Any = {(EVERY, of.One()): F(3), (EVERY, of.Square(M)): F(1), (EVERY, out): F(1), (EVERY, of.Square(H)): F(2)}
    limit: Any = {(EVERY, of.One()): F(1), (EVERY, of.Square(M)): F(4), (EVERY, out): F(1), (EVERY, of.Square(H)): F(2)}
    gains, costs = prove._net(spent, limit)
    assert gains == {(EVERY, of.One()): 2, (EVERY, out): 1}
    assert costs == {(EVERY, of.Square(M)): 3, (EVERY, out): 1}


def test_gains_are_paid_by_costs_that_are_larger() -> None:
    # A square is at most 25 times the squared pieces of 5, and one piece is at least 1.
    left, rest = prove.cover({of.Square(M): F(2)}, {of.Pieces(((M, F(5)),)): F(60)})
    assert (left, rest) == ({}, {of.Pieces(((M, F(5)),)): 10})
    left, rest = prove.cover({of.Square(M): F(2)}, {of.Pieces(((M, F(5)),)): F(40)})
    assert (left, rest) == ({of.Square(M): F(2, 5)}, {})
    both_: Any = {of.One(): F(2), of.Square(M): F(1)}
    left, rest = prove.cover(both_, {of.Pieces(((M, F(5)),)): F(26), of.SelectionDelta((), ((1, F(1, 4)),)): F(4)})
    assert left == {}
    # The square takes 25 of the pieces; a count that only the delta can pay for is paid by it, the rest by the last piece.
    assert rest == {}
    left, rest = prove.cover({of.Square(M): F(1)}, {of.Square(H): F(9)})
    assert (left, rest) == ({of.Square(M): 1}, {of.Square(H): 9})


RATIOS: list[tuple[Any, Any, Any]] = [
    (of.One(), PIECES, 1),
    (of.One(), of.SelectionDelta(((M, F(5)),), ((1, F(1, 4)),)), 4),
    (of.One(), of.SelectionDelta(((M, F(5)),), ((1, F(0)), (2, F(1)))), None),
    (of.SelectionDelta(((M, F(5)),), ((1, F(1, 4)),)), of.One(), 1),
    (of.Square(H), PIECES, 9),
    (of.Square(Measure("z")), PIECES, None),
    (of.ClampedSquare(M, F(4)), of.One(), 16),
    (of.ClampedSquare(M, F(4)), of.Square(M), 1),
    (of.ClampedSquare(M, F(4)), of.Square(H), None),
    (of.ClampedSquare(M, F(4)), of.ClampedSquare(M, F(3)), F(16, 9)),
    (of.ClampedSquare(M, F(4)), of.ClampedSquare(M, F(9)), 1),
    (of.ClampedSquare(M, F(4)), PIECES, 16),
    (of.ClampedSquare(M, F(9)), PIECES, 25),
    (of.ClampedSquare(Measure("z"), F(9)), PIECES, 81),
    (of.ClampedSquare(M, F(4)), of.PieceCount(((M, F(2)),)), 16),
    (of.PurePieces(((M, F(2)),), F(3), F(7)), PIECES, 7 * 9),
    (of.PurePieces(((M, F(2)),), F(3), F(7)), of.PieceCount(((M, F(5)),)), 3 * 3),
    (of.Pieces(((M, F(2)),)), PIECES, 9),
    (of.Pieces(((M, F(5)),)), PIECES, 1),
    (of.Pieces(((M, F(2)), (H, F(1)))), PIECES, 9),
    (of.Pieces(((Measure("z"), F(2)),)), PIECES, None),
    (of.PieceCount(((M, F(2)),)), PIECES, 3),
    (of.Additive(M, x / 4, "pure"), of.PieceCount(((M, F(6)),)), F(3, 2)),
    (of.Additive(H, x / 4, "pure"), of.PieceCount(((M, F(6)),)), None),
    (of.LaplaceSum(M, F(1), F(4)), of.PieceCount(((M, F(6)),)), F(3, 2)),
    (of.LaplaceSum(M, F(1), F(4)), of.Additive(M, x / 4, "pure"), 1),
    (of.LaplaceSum(M, F(1), F(4)), of.Additive(M, x / 5, "pure"), None),
    (of.LaplaceSum(M, F(1), F(4)), of.LaplaceSum(M, F(1), F(3)), F(3, 4)),
    (of.LaplaceSum(M, F(1), F(4)), of.LaplaceSum(M, F(1), F(5)), None),
    (of.LaplaceSum(M, F(1), F(4)), of.LaplaceSum(M, F(1, 2), F(3)), None),
    (of.LaplaceSum(M, F(1), F(4)), of.LaplaceSum(M, F(1, 2), F(2)), F(1, 2)),
    (of.Additive(M, x / 4, "tanh"), of.Additive(M, x / 4, "pure"), 1),
    (of.Additive(M, x / 4, "pure"), of.Additive(M, x / 4, "tanh"), None),
]


@pytest.mark.parametrize("atom, payer, ratio", RATIOS, ids=lambda each: getattr(each, "kind", str(each)))
def test_multiples_by_hand(atom: Any, payer: Any, ratio: Any) -> None:
    assert prove.ratio_upper(atom, payer) == ratio


def test_certified_losses_below_the_formula() -> None:
    one, two = (each * math.tanh(each / 2) for each in (1 / 8, 2 / 8))
    rows = ((1, F(0.99 * one)), (16, F(0.99 * two)))
    assert prove._below_tanh(M, x / 8, rows, None)
    assert not prove._below_tanh(M, x / 8, ((1, F(1.01 * one)),), None)
    assert not prove._below_tanh(M, x / 8, (rows[0], (16, F(1.01 * two))), None)
    # At 16 steps the rise is 2, and 4/(e^2 + 1) is 0.4768.
    assert prove._below_tanh(M, x / 8, rows, F(48, 100))
    assert not prove._below_tanh(M, x / 8, rows, F(47, 100))
    assert not prove._below_tanh(M, x / 8, (rows[0], (15, rows[1][1])), F(1))


def test_alternatives_take_one_choice_of_each_maximum() -> None:
    policy = maximum([constant(1), constant(F(1, 2)) + gaussian_sum(M, sigma=1)]) + constant(2)
    found = [dict(each) for each in prove.alternatives(policy.rho, {})]
    assert {tuple(sorted((atom.kind, coefficient) for atom, coefficient in each.items())) for each in found} == {
        (("one", 3),),
        (("one", F(5, 2)), ("square", F(1, 2))),
    }
    conditional = constant(1).where(among("a", ["x"]))
    assert list(prove.alternatives(conditional.rho, {"a": "y"})) == [{}]


def band_table() -> BandTable:
    return BandTable(
        (ConditionColumn("a"),), (F(1), F(2), F(4)), (("x", "y", "z"),), np.array([0, 1, 2]), np.array([0, 1, 2])
    )


def test_terms_of_the_worst_band_are_at_least_those_of_every_band() -> None:
    table = band_table()
    first, second, third = (in_band(table, [band]) for band in range(3))
    terms: Any = {
        (first, of.Square(M)): F(5),
        (second, of.Square(M)): F(3),
        (in_band(table, [1, 2]), of.Square(M)): F(4),
        (both(third, among("b", ["q"])), of.Square(M)): F(9),
        (EVERY, of.Square(M)): F(1),
    }
    assert prove._in_any_band(terms) == {(EVERY, of.Square(M)): 1 + 7, (among("b", ["q"]), of.Square(M)): 9}
    laplace: Any = {
        (band, of.LaplaceSum(M, grid, scale)): F(1)
        for band, grid, scale in ((first, F(1, 4), F(1)), (second, F(1, 2), F(2)), (third, F(1), F(3)))
    }
    (((condition, atom), coefficient),) = prove._in_any_band(laplace).items()
    assert (condition, coefficient) == (EVERY, 1)
    assert atom == of.LaplaceSum(M, F(1, 2), F(1))
    assert prove._divides(of.LaplaceSum(M, F(1, 4), F(1)), 4)
    assert not prove._divides(of.LaplaceSum(M, F(1, 4), F(1)), 8)


def test_words_for_a_witness() -> None:
    policy = gaussian_sum(M, sigma=1).where(among("a", ["x"])) + constant(1).where(
        among(ConditionColumn("b", 2), ["qr"])
    )
    record = prove.complete_witness({"a": "\u2022"}, policy)
    assert record == {"a": "\u2022", "b": None, "m": 0}
    told = prove.witness_words(record, {"a": "\u2022"}, policy)
    assert told == "a=(any that is not listed), any b, m=0"
    assert prove._value_words("qr\u2022", set()) == "(any that begins with qr and is not listed)"
    assert prove._value_words("q\u2022", {"\u2022"}) == "q\u2022"
    assert [prove._value_words(each, set()) for each in (None, 3, "abc")] == ["NULL", "3", "abc"]
    assert prove._plain(F(3)) == 3
    assert prove._plain(F(1, 10)) == 0.1
    assert prove._plain(F(1, 3)) == F(1, 3)
    assert prove._plain(Truth.TRUE) is True
    region = regions.Region({"a": "x", "m": F(-4)}, {})
    assert prove._record(region, {"m": F(4), "h": F(3, 2)}) == {"a": "x", "m": -4, "h": 1.5}


# Regions.


def test_every_answer_of_conditions_has_a_region() -> None:
    policy = constant(1).where(among("a", ["x", "y"])) + constant(2).where(compare("n", "<", 3))
    policy += gaussian_sum(M, sigma=1).where(compare("m", ">=", 7)) + constant(1).where(Null(ConditionColumn("c")))
    policy += constant(1).where(among(ConditionColumn("p", 1), ["q"]))
    found = list(regions.regions(policy.rho, [M]) or ())
    sizes = {name: {region.groups[name] for region in found} for name in ("a", "n", "c", "p")}
    assert {"x", "y", None} < sizes["a"]
    assert len(sizes["a"]) == 4
    numbers = {each for each in sizes["n"] if each is not None}
    assert any(each < 3 for each in numbers)  # type: ignore[operator]
    assert {F(3)} < numbers
    assert any(each > 3 for each in numbers)  # type: ignore[operator]
    assert None in sizes["n"]
    assert None in sizes["c"]
    assert len(sizes["c"]) == 2
    assert {str(each)[:1] == "q" for each in sizes["p"] if each is not None} == {True, False}
    assert {region.ranges["m"] for region in found} == {(0, 6), (7, 7), (8, None)}
    bounded = list(regions.regions(policy.rho, [M], {"m": F(15, 2)}) or ())
    assert {region.ranges["m"] for region in bounded} == {(0, 6), (7, 7)}
    assert {region.ranges["m"] for region in regions.regions({}, [M], {"m": F(9)}) or ()} == {(0, 9)}
    many: Any = {}
    for column in "abcdefgh":
        many |= constant(1).where(among(column, list("xyzuvw"))).rho
    assert regions.regions(many, []) is None


def test_texts_that_stand_for_all_others() -> None:
    assert regions._text_values({"a", "b"}, 0) == ["a", "b", "\u2022"]
    assert regions._text_values({"\u2022"}, 0) == ["\u2022", "\u2023"]
    found = regions._text_values({"ab"}, 2)
    assert {"", "a", "ab", "\u2022" * 3, "a" + "\u2022" * 3, "ab" + "\u2022" * 3} == set(found)
    column = ConditionColumn("p", 2)
    assert [regions._continue_prefix(each, column) for each in ("a", "ab", None)] == ["a", "ab\u2022", None]
    assert regions._continue_prefix("ab", ConditionColumn("p")) == "ab"


def test_combinations_of_bands_are_those_that_records_can_show() -> None:
    fine = BandTable(
        (ConditionColumn("a"),), (F(1), F(2)), (("xa", "xb", "ya"),), np.array([0, 1, 2]), np.array([0, 1, 1])
    )
    coarse = BandTable(
        (ConditionColumn("a", 1),), (F(1), F(2), F(3)), (("x", "z"),), np.array([0, 1]), np.array([1, 2])
    )
    assert regions._order_tables([coarse, fine]) == [fine, coarse]
    assert regions._is_chain([fine, coarse])
    assert not regions._is_chain([coarse, fine])
    assert regions._bands_in(fine, coarse).tolist() == [1, 1, 0]
    shown = {(each[fine.key], each[coarse.key]) for each in regions.combinations([coarse, fine])}
    tried = {
        (fine.band_of({"a": text}), coarse.band_of({"a": text})) for text in ("xa", "xb", "ya", "xc", "zz", "q", "yb")
    }
    assert shown == tried
    other = BandTable((ConditionColumn("b"),), (F(1), F(2)), (("u",),), np.array([0]), np.array([1]))
    assert len(regions._connected_tables([fine, other, coarse])) == 2
    crossing = BandTable(
        (ConditionColumn("a", 1), ConditionColumn("b")),
        (F(1), F(2)),
        (("x", "y"), ("u", "v")),
        np.array([0, 3]),
        np.array([1, 1]),
    )
    found = {(each[fine.key], each[crossing.key]) for each in regions.combinations([fine, crossing])}
    pairs = [{"a": a, "b": b} for a in ("xa", "xb", "ya", "xc", "yc", "q") for b in ("u", "v", "w")]
    assert found == {(fine.band_of(each), crossing.band_of(each)) for each in pairs}
    freely = {(each[fine.key], each[crossing.key]) for each in regions._freely([fine, crossing])}
    assert freely == {(0, 0), (0, 1), (1, 0), (1, 1)}


# Boxes.


def problem(gain: Any, *budgets: Any, spans: Any) -> Comparison:
    return Comparison(tuple(gain), tuple(tuple(each) for each in budgets), spans)


def parts(atom: Any) -> Any:
    return tuple((measure, of.Pieces(((measure, at),))) for measure, at in atom.at)


JOINT = Term(F(2), F(1), parts(PIECES))
SQUARES = [Term(F(1, 3), F(0), ((M, of.Square(M)),)), Term(F(1, 2), F(0), ((H, of.Square(H)),))]


def at(term: Term, point: dict[Measure, int]) -> Fraction:
    values = [atom.exactly({measure.name: measure.step * point[measure]}) or F(0) for measure, atom in term.parts]
    return term.coefficient * max([term.floor, *values])


@pytest.mark.parametrize("span", [((0, 3), (0, 3)), ((2, 14), (3, 9)), ((6, 6), (1, 30))])
def test_bounds_of_a_box_are_those_of_its_corners_and_hold_inside(span: Any) -> None:
    spans = {M: span[0], H: span[1]}
    made = problem(SQUARES, [JOINT], [Term(F(9), F(1), ())], spans=spans)
    inside = [{M: m, H: h} for m in range(span[0][0], span[0][1] + 1) for h in range(span[1][0], span[1][1] + 1)]
    low, high = {M: span[0][0], H: span[1][0]}, {M: span[0][1], H: span[1][1]}
    gain = sum(at(term, high) for term in SQUARES)
    assert exact_bound(made, spans) == gain - max(at(JOINT, low), F(9))
    search = Search.of(made, spans)
    whole = np.zeros((1, 2), np.int64)
    most = max(sum(at(term, each) for term in SQUARES) for each in inside)
    least = min(max(at(JOINT, each), F(9)) for each in inside)
    assert most <= F(search._gain(whole, boxes.LAST, boxes.UP)[0]) <= most * F(1_000_000_001, 10**9)
    assert least * F(999_999_999, 10**9) <= F(search._budget(whole, boxes.FIRST, boxes.LOW)[0]) <= least
    excess = max(sum(at(term, each) for term in SQUARES) - max(at(JOINT, each), F(9)) for each in inside)
    assert float(search._by_lines(whole)[0]) >= float(excess)
    halves = search._halve(whole)
    assert halves is not None
    covered = [{axis.measure: axis.ends[place] for axis, place in zip(search.axes, row)} for row in halves.tolist()]
    count = sum(math.prod(last - first + 1 for first, last in each.values()) for each in covered)
    assert count == len(inside)


def flat(*values: Any) -> list[Term]:
    """Terms that are the same for every record."""
    return [Term(F(value), F(1), ()) for value in values]


WHOLE = np.zeros((1, 2), np.int64)


def test_lines_allow_four_roundings_for_each_term_and_sixteen_more() -> None:
    """Of lines with whole ends that leave exactly 0, so that all that is found is the allowance."""
    spans = {M: (2, 6), H: (0, 4)}
    squares = {measure: ((measure, of.Square(measure)),) for measure in (M, H)}
    gains = [Term(F(1), F(0), squares[M]), *flat(16)]
    budget = [Term(F(16), F(0), squares[H]), Term(F(1), F(0), squares[M]), *flat(36)]
    search = Search.of(problem(gains, budget, spans=spans), spans)
    # The chord of m^2 starts at 4 and rises by 32; tangents start at 0 and -1 and rise by 32 and 4.
    size = (4 + 32 + 16) + (16 * (1 + 4) + 32 + 36)
    assert float(search._by_lines(WHOLE)[0]) == size * (4 * (2 + 3) + 16) * 2.0**-52


@pytest.mark.theorem("T-BOXES")
@pytest.mark.parametrize("side", ["gains", "budget"])
def test_bounds_hold_where_every_addition_rounds_in_the_same_direction(side: str) -> None:
    """Beyond 2^53 each unit of a gain is lost, and each unit and a half of a budget becomes two."""
    spans, count, large = {M: (2, 6), H: (0, 4)}, 400, 2**53
    if side == "gains":
        gains, budget = flat(large, *[1] * count), flat(large + count - 2)
    else:
        gains, budget = flat(large + 3 * count // 2 + 2), flat(large, *[F(3, 2)] * count)
    search = Search.of(problem(gains, budget, spans=spans), spans)
    start, _, _ = search._lines(search.gains, WHOLE, above=True)
    low, _, _ = search._lines(search.budgets[0], WHOLE, above=False)
    # Floats alone would say that the budget covers gains which exceed it by 2.
    assert float(start[0]) - float(low[0]) < -count / 3
    assert float(search._by_lines(WHOLE)[0]) >= 2
    assert F(search._gain(WHOLE, boxes.LAST, boxes.UP)[0]) >= sum(term.coefficient for term in gains)
    assert F(search._budget(WHOLE, boxes.FIRST, boxes.LOW)[0]) <= sum(term.coefficient for term in budget)


def test_sums_at_corners_allow_two_roundings_for_each_term_and_two_more() -> None:
    spans = {M: (2, 6), H: (0, 4)}
    search = Search.of(problem(flat(32, 16, 16), flat(64, 64), flat(1, 1, 1, 1), spans=spans), spans)
    assert float(search._gain(WHOLE, boxes.LAST, boxes.UP)[0]) == 64 + 64 * 8 * 2.0**-52
    assert float(search._gain(WHOLE, boxes.LAST, boxes.LOW)[0]) == 64 - 64 * 8 * 2.0**-52
    assert float(search._budget(WHOLE, boxes.FIRST, boxes.LOW)[0]) == 128 - 128 * 6 * 2.0**-52


def test_a_search_of_boxes_finds_an_excess_or_proves_that_there_is_none() -> None:
    spans: Any = {M: (0, 40), H: (0, 40)}
    for budget, covers in ((F(40), True), (F(3), False)):
        made = problem(SQUARES, [Term(budget, F(1), parts(PIECES))], spans=spans)
        outcome = Search.of(made, spans).run(math.inf)
        assert outcome.certain == covers
        if not covers:
            point = {
                measure: int(amount / measure.step)
                for measure, amount in ((M, outcome.point["m"]), (H, outcome.point["h"]))
            }
            assert sum(at(term, point) for term in SQUARES) > at(made.budgets[0][0], point)
    stopped = Search.of(problem(SQUARES, [Term(F(9), F(1), parts(PIECES))], spans=spans), spans).run(
        math.inf, batches=0
    )
    assert not stopped.certain
    found = Search.of(problem(SQUARES, [Term(F(3), F(1), parts(PIECES))], spans=spans), spans).probe(
        {M: [1, 40], H: [1, 40]}
    )
    assert found is not None
    assert finite({M: (3, None), H: (2, 9)}, {M: 50, H: 5}) == {M: (3, 50), H: (2, 5)}
    assert finite({M: (3, None), H: (2, 9)}, {M: 1, H: 50}) == {M: (3, 3), H: (2, 9)}


def test_cuts_of_intervals_are_at_the_ends_of_pieces() -> None:
    axis = boxes.Axis(M, (0, 100), [of.Square(M)], [10])
    assert [axis._middle(*ends) for ends in ((0, 100), (0, 40), (10, 20), (10, 25), (11, 19), (3, 4), (50, 90))] == [
        10,
        10,
        10,
        20,
        15,
        3,
        70,
    ]


# Columns.


def test_amounts_are_rounded_away_from_0_where_floats_are_too_short() -> None:
    big = 2**53
    assert tables.absolute_upper(np.array([-3, 4])).tolist() == [3, 4]
    assert tables.absolute_upper(np.array([big - 1, -big + 1])).tolist() == [big - 1, big - 1]
    assert [int(each) for each in tables.absolute_upper(np.array([big, big + 1, -big - 1, 7]))] == [
        big,
        big + 2,
        big + 2,
        7,
    ]
    assert tables.absolute_upper(np.array([float(big), 2.0]))[0] > big
    assert tables.absolute_upper(np.array([], np.float64)).tolist() == []
    found = tables.measure_column({"m": [1, 2.5, Decimal("0.1"), F(1, 4), None]}, "m")
    assert found[:4].tolist() == [1, 2.5, 0.1, 0.25]
    assert math.isnan(found[4])
    large = tables.measure_column({"m": [big + 1, -big - 1, 10**400]}, "m")
    assert large[0] > big + 1
    assert large[1] < -big - 1
    assert large[2] == math.inf
    for bad in (["1"], [True], [1j], np.array(["a"]), np.zeros((2, 2))):
        with pytest.raises(RecordError):
            tables.measure_column({"m": bad}, "m")
    with pytest.raises(RecordError, match="missing"):
        tables.measure_column({"n": [1]}, "m")


def test_derived_amounts_are_exact_where_floats_can_be_and_above_elsewhere() -> None:
    rest = Measure.linear("rest", {Measure("pay", F(1, 10)): F(1), Measure("emp"): F(-3)})
    columns = {"pay": np.array([7.1, 0.3, 2.0**60]), "emp": np.array([2, 5, 1])}
    found = tables.absolute_measure_upper(rest, columns)
    assert found[:2].tolist() == [1.1, 14.7]
    assert F(found[2]) >= F(2) ** 60 - 3
    off = tables.absolute_measure_upper(rest, {"pay": np.array([7.15]), "emp": np.array([2])})
    assert 1.15 <= off[0] < 1.15 * (1 + 1e-12)
    with pytest.raises(RecordError):
        tables.check_amounts(np.array([1.0, -1.0]), M)
    with pytest.raises(RecordError):
        tables.check_amounts(np.array([math.nan]), M)
    tables.check_amounts(np.array([0.0, 1.0]), M)
    tables.check_amounts(np.array([-1]), Measure("m", signed=True))


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.int8, object])
def test_columns_answer_conditions_as_records_do(kind: Any) -> None:
    values = [0, 1, 2, 3, 4]
    column = tables.group_column({"n": np.array(values, kind) if kind is not object else values}, "n")
    for condition in (
        *(compare("n", order, bound) for order in ("<", "<=", ">", ">=") for bound in (2, "2.5", "-0.5", 300)),
        among("n", [1, 3, "5/2", 300]), among("n", [1, 3], inside=False),
        Null(ConditionColumn("n")), Null(ConditionColumn("n"), inside=False),
    ):  # fmt: skip
        expected = [bool(constant(1).where(condition).loss({"n": value})) for value in values]
        assert column.test(condition, "n").tolist() == expected
    assert column.numeric()
    assert column[1:3].test(compare("n", ">", 1), "n").tolist() == [False, True]
    assert len(column) == 5


def test_columns_of_many_values_find_the_rows_of_a_list() -> None:
    texts = [f"{each:02}x" for each in range(40)] * 3 + [None]
    for column in (tables.group_column({"a": texts}, "a"), tables.group_column({"a": pa.array(texts)}, "a")):
        for condition in (among("a", ["03x", "17x", "zz"]), among(ConditionColumn("a", 1), ["2"]), among("a", ["zz"])):
            rows = sorted(column.rows_among(condition).tolist())  # type: ignore[arg-type]
            expected = [row for row, text in enumerate(texts) if constant(1).where(condition).loss({"a": text}) > 0]
            assert rows == expected
        assert not column.numeric()
    few = tables.group_column({"a": ["x", "y", None]}, "a")
    assert few.rows_among(among("a", ["y"])).tolist() == [1]  # type: ignore[arg-type]
    dates = tables.group_column({"d": np.array(["2025-03-04", "2024-02-01", "NaT"], "datetime64[ns]")}, "d")
    month = among(ConditionColumn("d", part="month"), [3])
    assert dates.test(month, "d").tolist() == [True, False, False]
    with pytest.raises(RecordError):
        tables.group_column({"n": np.array([math.inf])}, "n")
    with pytest.raises(RecordError):
        tables.group_column({"n": np.zeros((2, 2))}, "n")
    with pytest.raises(RecordError):
        tables.group_column({"n": pa.array([datetime(2025, 1, 1)], pa.timestamp("s", "UTC"))}, "n")


def test_bands_of_columns_are_those_of_records() -> None:
    table = BandTable(
        (ConditionColumn("a", 1), ConditionColumn("n")), (F(1), F(2), F(3)), (("x", "y", None), (F(1, 2), F(3), None)),
        np.array([0, 4, 7, 8]), np.array([1, 2, 1, 2]),
    )  # fmt: skip
    rows = [("xa", 0.5), ("y", 3.0), (None, 3.0), (None, math.nan), ("y", 0.5), ("q", 3.0)]
    columns = {"a": [a for a, _ in rows], "n": np.array([n for _, n in rows])}
    found = tables.band_column(table, {name: tables.group_column(columns, name) for name in ("a", "n")})
    expected = [table.band_of({"a": a, "n": None if n != n else F(str(n))}) for a, n in rows]
    assert found.values.tolist() == expected == [1, 2, 1, 2, 0, 0]


def test_cells_of_records_are_read_in_one_form() -> None:
    read = {
        "a": "x", "b": True, "c": np.int8(3), "d": 0.1, "e": Decimal("2.5"), "f": None, "g": math.nan, "h": date(2025, 1, 2),
        "i": datetime(2025, 1, 2, 3), "j": np.datetime64("2025-01-02"), "k": np.bool_(False),
    }  # fmt: skip
    day = date(2025, 1, 2)
    assert [tables.cell_of(read, name) for name in read] == [
        "x", Truth.TRUE, F(3), F(1, 10), F(5, 2), None, None, day, day, day, Truth.FALSE,
    ]  # fmt: skip
    assert tables.amount_of({"m": np.float64(0.7)}, "m") == F(7, 10)
    for bad in (b"x", 1j, math.inf, object()):
        with pytest.raises(RecordError):
            tables.cell_of({"a": bad}, "a")
    for bad in ("x", None, math.nan):
        with pytest.raises(RecordError):
            tables.amount_of({"a": bad}, "a")
    one: list[Any] = [{"a": 1}, {"a": "xy"}, {"a": np.array(3)}, {}]
    assert all(tables.is_record(each) for each in one)
    assert not any(tables.is_record(each) for each in ({"a": [1]}, {"a": np.array([3])}, [1]))


# One formula in several number systems.


def test_pieces_steps_and_lines_are_the_same_in_floats_and_balls() -> None:
    from flint import arb

    numpy, tenth = NumpyEvaluator(), Measure("t", F(1, 10))
    for value in ("0", "0.1", "0.3", "2.1", "2.11", "29.99", "30", "30.05"):
        exact = -(-tenth.steps(F(value)) // 30)
        assert numpy.pieces(np.array([float(value)]), tenth, F(3))[0] == exact
        assert BALLS.pieces(arb(value), tenth, F(3)) == exact
    assert numpy.pieces(np.array([2.0**49 / 10]), tenth, F(1, 10))[0] >= 2.0**49
    far = np.array([2.0**53 + 2, 12.0])
    assert numpy.pieces(far, M, F(3)).tolist() == [math.ceil(F(2**53 + 2, 3)), 4] or numpy.pieces(far, M, F(3))[0] >= F(
        2**53 + 2, 3
    )
    steps = ((2, F(1, 4)), (5, F(1)), (9, F(3)))
    for count, level in ((0, 0.25), (2, 0.25), (3, 1), (5, 1), (6, 3), (9, 3), (10, 7)):
        assert numpy.step_up(np.array([float(count)]), steps, np.array([7.0]))[0] == level
        assert BALLS.step_up(arb(count), steps, arb(7)) == level
    for count, level in ((0, 0.25), (2, 0.25), (3, 0.5), (5, 1), (7, 2), (9, 3), (11, 3)):
        assert line_value(F(count), steps) == level
        expected = level if count <= 9 else 7
        assert numpy.on_lines(np.array([count / 10]), tenth, steps, np.array([7.0]))[0] == expected
        assert BALLS.on_lines(arb(count) / 10, tenth, steps, arb(7)).contains(arb(float(expected)))
