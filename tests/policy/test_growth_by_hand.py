"""Envelopes, lines and comparisons behind a proof of dominance, each at the number that pencil and paper give."""

import math
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

from recordwise.exact.functions import log, x
from recordwise.exact.numbers import ball, working_precision
from recordwise.policy import Measure
from recordwise.policy import atoms as of
from recordwise.policy.dominance import curves
from recordwise.policy.dominance.curves import Difference, Growth, Lines, Term, curve
from recordwise.policy.evaluate.numpy import PRECISION

F = Fraction
M, HALVES = Measure("m"), Measure("h", F(1, 2))
START = 100.0
LOG = math.log(START)


@pytest.fixture(autouse=True)
def precise() -> Any:
    with working_precision(PRECISION):
        yield


def ends(growth: Growth | None) -> Any:
    if growth is None:
        return None
    return growth.power, growth.log, float(growth.lower.mid()), float(growth.upper.mid())


TANH = math.tanh(math.log(101) / 2)
GROWTHS: list[tuple[Any, Any]] = [
    (of.One(), (0, 0, 1, 1)),
    (of.Square(M), (2, 0, 1, 1)),
    (of.ClampedSquare(M, F(7)), (0, 0, 49, 49)),
    (of.ClampedSquare(M, F(100)), (0, 0, 10**4, 10**4)),
    (of.ClampedSquare(M, F(101)), None),
    (of.PieceCount(((M, F(5)),)), (1, 0, 0.2, 0.2 + (1 + 0.2) / START)),
    (of.PieceCount(((HALVES, F(5)),)), (1, 0, 0.2, 0.2 + (1 + 0.1) / START)),
    (of.Pieces(((M, F(5)),)), (2, 0, 0.04, (0.2 + (1 + 0.2) / START) ** 2)),
    (of.PurePieces(((M, F(5)),), F(5, 2), F(1, 8)), (1, 0, 0.2 * 2.5 * math.tanh(25), 2.5 * (0.2 + 1.2 / START))),
    (of.PurePieces(((M, F(5)),), F(1, 16), F(1, 8)), (1, 0, 0.2 / 16 * math.tanh(0.625), (0.2 + 1.2 / START) / 16)),
    (of.PurePieces(((M, F(5)),), F(5, 2), F(31, 250)), None),
    (of.SelectionDelta(((M, F(10)),), ((1, F(1, 8)), (8, F(1, 4)))), (0, 0, 1, 1)),
    (of.SelectionDelta(((M, F(10)),), ((1, F(1, 8)), (9, F(1, 4)))), None),
    (of.Additive(M, x / 4, "pure"), (1, 0, 0.25, 0.25)),
    (of.Additive(M, x / 4, "tanh"), (1, 0, 0.25 * math.tanh(12.5), 0.25)),
    (of.Additive(M, (x + 3) ** "1/2", "pure"), (F(1, 2), 0, 1 - 3**0.5 / 10, 1.03**0.5)),
    (of.Additive(M, log(x + 1), "pure"), (0, 1, 1, 1 + math.log(1.01) / LOG)),
    (of.Additive(M, log(x + 1), "tanh"), (0, 1, TANH, 1 + math.log(1.01) / LOG)),
    (of.Additive(M, log(x / 9 + 2), "pure"), (0, 1, 1 - math.log(9) / LOG - math.log(2) / LOG, 1)),
    (of.Additive(M, log(x / 9 + F(1, 2)), "pure"), (0, 1, 1 - math.log(9) / LOG, 1 + math.log(2) / LOG)),
    (of.LaplaceSum(M, F(1), F(3)), (1, 0, 1 / 3 - 1 / START, 1 / 3)),
    (of.LaplaceSum(HALVES, F(1, 4), F(3)), (1, 0, 1 / 3 - 1 / START, 1 / 3)),
    (of.GaussianTransform(M, x / 4, F(1, 2)), (2, 0, 1 / 16, (0.25 + 0.5 / START) ** 2)),
    (of.LaplaceTransform(M, x / 4, F(1, 2), F(3)), (1, 0, 1 / 12 - 1 / START, (0.25 + 0.5 / START) / 3)),
    (of.PureTransform(M, x / 4, F(1, 2), F(3)), (1, 0, 1 / 12, (0.25 + 0.5 / START) / 3)),
    (of.AdditiveTable(M, x / 4, ((1, F(1)), (98, F(20)))), (1, 0, 0.25 * math.tanh(12.5), 0.25)),
    (of.AdditiveTable(M, x / 4, ((1, F(1)), (99, F(20)))), None),
    (of.AdditiveTable(M, x / 4, ((1, F(1)), (98, F(26)))), None),
    (of.CertifiedSum(M, x / 4, ((1, F(1)), (99, F(20))), F(3)), (1, 0, 0.25 - 3 / START, 0.25)),
    (of.CertifiedSum(M, x / 4, ((1, F(1)), (100, F(20))), F(3)), None),
    (of.CertifiedSum(M, x / 4, ((1, F(1)), (99, F(23))), F(3)), None),
    (of.Additive(M, log(log(x + 3) + 1), "pure"), None),
    (of.Outside("a"), None),
]


@pytest.mark.parametrize("atom, expected", GROWTHS, ids=lambda each: getattr(each, "kind", ""))
def test_envelopes_by_hand(atom: Any, expected: Any) -> None:
    found = ends(curves.atom_growth(atom, ball(F(100))))
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found == pytest.approx(expected, rel=1e-9)
    assert curves.atom_growth(atom, arb(16)) is None


@pytest.mark.parametrize(
    "function, expected",
    [
        (x**2 / 8, (2, 0, 0.125, 0.125)),
        (x + 5, (1, 0, 1, 1.05)),
        (3 * x + 2 * (x + 1) ** "1/2", (1, 0, 3, 3 + 2 * 1.01**0.5 / 10)),
        (2 * x + 3 * x + 4, (1, 0, 5, 5.04)),
        (log(x) if False else log(x + 1) ** 2, (0, 2, 1, (1 + math.log(1.01) / LOG) ** 2)),
        (x ** "1/2" * 2 + log(x + 1), (F(1, 2), 0, 2, 2 + math.log(101) / 10)),
        (log((x + 1) * 5), (0, 1, 1, 1 + math.log(5.05) / LOG)),
        (log(log(x + 3) * 2 + 3), None),
        (log(x / 1000 + 2) + x / 10**6, (1, 0, 1e-6 - (math.log(1000) / LOG - 1) * LOG / 100, None)),
    ],
)
def test_envelopes_of_functions_by_hand(function: Any, expected: Any) -> None:
    found = ends(curves.function_growth(function, ball(F(100))))
    if expected is None:
        assert found is None
    elif expected[3] is None:
        assert found[:2] == expected[:2]
        assert found[2] == pytest.approx(expected[2], rel=1e-6)
    else:
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_logarithm_of_a_product_of_a_power_and_a_logarithm() -> None:
    inner = Growth(F(2), F(3), arb(5), arb(7))
    found = ends(curves._log_growth(inner, arb(100)))
    assert found == pytest.approx((0, 1, 2, 2 + 3 * math.log(LOG) / LOG + math.log(7) / LOG))
    low = ends(curves._log_growth(Growth(F(2), F(0), arb("0.5"), arb("0.7")), arb(100)))
    assert low == pytest.approx((0, 1, 2 + math.log(0.5) / LOG, 2))
    for bad in (
        None,
        Growth(F(0), F(1), arb(1), arb(1)),
        Growth(F(1), F(-1), arb(1), arb(1)),
        Growth(F(1), F(0), arb(0), arb(1)),
    ):
        assert curves._log_growth(bad, arb(100)) is None
    assert curves._log_growth(inner, arb(16)) is None
    assert float(inner.gauge(arb(100))) == pytest.approx(100**2 * LOG**3)
    assert ends(inner.to_power(F(1, 2))) == pytest.approx((1, 1.5, 5**0.5, 7**0.5))
    assert ends(inner.scale_by(arb(2), arb(3))) == pytest.approx((2, 3, 10, 21))


@pytest.mark.parametrize(
    "slow, fast, falls",
    [
        ((1, 2), (1, 2), True),
        ((1, 1), (1, 2), True),
        ((1, 2), (1, 1), False),
        ((2, 0), (1, 5), False),
        ((0, 5), (1, 0), False),
        ((0, 4), (1, 0), True),
        ((0, 5), (1, 1), True),
        ((0, 9), (2, 0), True),
        ((0, 10), (2, 0), False),
    ],
)
def test_which_gauge_falls_next_to_which(slow: Any, fast: Any, falls: bool) -> None:
    """ln 100 is 4.6."""
    assert curves.falls_from(tuple(map(F, slow)), tuple(map(F, fast)), arb(100)) == falls


def test_curves_and_lines_by_hand() -> None:
    square = curve(HALVES, of.Square(HALVES))
    assert square.bounds(6) == (9, 9)
    assert square.lines(2, 6) == Lines(F(1, 4) * (4 - 4), F(1, 4) * 8 * 4, F(1, 4) * 4, F(1, 4) * 8 * 4)
    stairs = curve(HALVES, of.PieceCount(((HALVES, F(5, 2)),)))
    assert [stairs.bounds(each)[0] for each in (0, 1, 5, 6, 10, 11)] == [1, 1, 1, 2, 2, 3]
    assert stairs.lines(3, 12) == Lines(F(1), F(0), F(3), F(0))
    assert stairs.lines(3, 13) == Lines(F(3, 5), F(2), F(7, 5), F(2))
    assert stairs.lines(0, 13) == Lines(F(1), F(0), F(3), F(0))
    squared = curve(HALVES, of.Pieces(((HALVES, F(5, 2)),)))
    assert [squared.bounds(each)[1] for each in (5, 6, 11)] == [1, 4, 9]
    assert squared.lines(3, 13) == Lines((9 - F(100, 4)) / 25, F(16 * 10, 25), F(49, 25), F(24 * 10, 25))
    bent = curve(M, of.Additive(M, x ** "1/2", "pure"))
    found = bent.lines(9, 16)
    assert [float(each) for each in found] == pytest.approx([3, 1, 3, (3 - 2**0.5) * 1])
    far = bent.lines(4, 16)
    assert [float(each) for each in far] == pytest.approx([2, 2, 2, 2 * 12 / 4])
    assert [float(each) for each in bent.lines(0, 16)] == [0, 0, 4, 0]
    plain = curve(M, of.Additive(M, x / 4, "tanh"))
    assert [float(each) for each in plain.lines(4, 8)] == pytest.approx([math.tanh(0.5), 0, 2 * math.tanh(1), 0])
    assert curves.outward(F(1, 3)) == (1 / 3, math.nextafter(1 / 3, 1))
    assert curves.outward(F(2, 3)) == (math.nextafter(2 / 3, 0), 2 / 3) or F(2 / 3) < F(2, 3)
    assert curves.outward(F(1, 4)) == (0.25, 0.25)
    assert curves.outward(F(10) ** 400) == (1.7976931348623157e308, math.inf)


def test_a_difference_is_bounded_from_both_sides() -> None:
    made = Difference({of.Square(M): F(1), of.PieceCount(((M, F(5)),)): F(-3)}, M)
    assert made.lower(7) == made.upper(7, 7) == 49 - 6
    assert made.upper(3, 13) == min(169 - 3, 9 + 160 - 3 * F(3, 5) - 3 * 2)
    assert made.gains == {of.Square(M): 1}
    assert made.costs == {of.PieceCount(((M, F(5)),)): 3}
    low = Difference({of.PieceCount(((M, F(5)),)): F(3), of.Square(M): F(-1)}, M)
    assert low.tail_below(64, F(0))
    assert not made.tail_below(64, F(0))
    assert not Difference({of.PieceCount(((M, F(5)),)): F(3)}, M).tail_below(64, F(0))
    # 3 (0.2 x + 1.2) - x^2 at 64.
    level = 3 * (F(1, 5) * 64 + F(6, 5)) - 64**2
    assert low.tail_below(64, level + 1)
    assert not low.tail_below(64, level - 1)
    assert curves.tail_start(low, 0, F(0)) == 256
    assert curves.tail_start(low, 3, F(0)) == 3 * 256
    assert curves.tail_start(made, 0, F(0)) is None


def test_largest_differences_by_hand() -> None:
    net: Any = {of.PieceCount(((M, F(5)),)): F(3), of.Square(M): F(-1)}
    for span, upper, steps in (((0, None), 3, 0), ((2, None), -1, 2), ((2, 9), -1, 2), ((6, None), -30, 6)):
        found = curves.supremum(net, M, span, enough=None, deadline=math.inf)
        assert (found.upper, found.steps) == (upper, steps)
    found = curves.supremum(
        {of.PieceCount(((M, F(10)),)): F(40), of.Square(M): F(-1)}, M, (0, None), enough=None, deadline=math.inf
    )
    # At 11 there are two pieces, at 21 three, which pay no more.
    assert (found.upper, found.steps) == (40, 0)
    found = curves.supremum(
        {of.PieceCount(((M, F(10)),)): F(200), of.Square(M): F(-1)}, M, (0, None), enough=None, deadline=math.inf
    )
    best = max((200 * max(1, -(-n // 10)) - n * n, -n) for n in range(400))
    assert (found.upper, -found.steps) == best
    free = curves.supremum({of.Square(M): F(1)}, M, (3, None), enough=F(100), deadline=math.inf)
    assert free.upper is None
    assert free.steps**2 > 100
    none = curves.supremum({of.Square(M): F(-1)}, M, (3, None), enough=None, deadline=math.inf)
    assert (none.upper, none.steps) == (-9, 3)
    early = curves.supremum({of.Square(M): F(1)}, M, (0, 50), enough=F(2500), deadline=math.inf)
    assert early.upper == 2500
    stopped = curves.supremum({of.Square(M): F(1)}, M, (0, 50), enough=None, deadline=-1.0)
    assert (stopped.upper or 0) >= 2500


def test_terms_of_a_comparison_by_hand() -> None:
    joint = of.Pieces(((M, F(5)), (HALVES, F(5, 2))))
    parts = curves.maximands(joint)
    assert parts == ((M, of.Pieces(((M, F(5)),))), (HALVES, of.Pieces(((HALVES, F(5, 2)),))))
    assert curves.maximands(of.Square(M)) == ((M, of.Square(M)),)
    assert curves.maximands(of.One()) is None
    assert curves.constant_upper(of.PureOne(F(1), F(1, 7))) == F(1, 7)
    both = Term(F(2), F(0), parts or ())
    spans: Any = {M: (11, None), HALVES: (3, None)}
    opened = list(curves.openings((both, Term(F(1), F(3), ())), spans))
    assert [[len(term.parts) for term in each] for each in opened] == [[1, 0], [1, 0]]
    assert [each[0].parts[0][0] for each in opened] == [M, HALVES]
    many = list(curves.openings((both,) * 7, spans))
    assert len(many) == 1
    assert len(many[0]) == 21
    assert many[0][2] == Term(F(-2), F(1), ())
    assert len(list(curves.openings((both,) * 6, spans))) == 64
