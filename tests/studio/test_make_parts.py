"""The parts of a trade file's computation, each on a few numbers."""

import importlib
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.errors import ParameterError, RecordError
from recordwise.mechanisms import Gaussian, GeneralizedGaussian, LogTransform, Sized
from recordwise.planning.search.fits import InfeasibleError
from recordwise.policy import constant, gaussian_sum
from recordwise.policy.meaning import power_gaussian
from recordwise.studio import places, profile
from recordwise.studio.make import Case, Reference, _together, ladder
from recordwise.studio.places import Drawn, Places, Shown
from recordwise.studio.profile import Profile, round_sizes
from recordwise.studio.trade import PointLosses, SampledRecord

Patch = pytest.MonkeyPatch
make: Any = importlib.import_module("recordwise.studio.make")


def table(totals: list[float], **more: Any) -> Any:
    """A table of the plan: the totals of its counted cells."""
    total = np.array(totals, np.float64)
    level = SimpleNamespace(names=lambda: more.pop("names", ()), share=Fraction(1))
    part = SimpleNamespace(level=level, total=total, number=more.get("number", 0))
    asked = SimpleNamespace(query=more.get("query", 0), place=more.get("place", (0, "sum_emp")))
    return SimpleNamespace(totals=total[total > 0], counted=total > 0, part=part, asked=asked, step=Fraction(1))


# Round numbers.


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(0, 1), (0.3, 1), (1, 1), (1.4, 1), (1.5, 2), (3.1, 2), (3.2, 5), (7.0, 5), (7.1, 10), (10, 10), (14, 10), (15, 20),
     (99, 100), (140, 100), (142, 200), (3_100_000, 2_000_000), (9_999, 10_000)],
)  # fmt: skip
def test_a_size_is_rounded_to_one_two_or_five(value: float, wanted: int) -> None:
    """On a scale of logarithms: between 1 and 2 at sqrt(2), between 2 and 5 at sqrt(10), between 5 and 10 at sqrt(50)."""
    assert make._round(value) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("0.5", "0.5"),
        ("0.12345", "0.124"),
        ("0.12301", "0.124"),
        ("0.123", "0.123"),
        ("0.1", "0.1"),
        ("0.10001", "0.101"),
        ("1.001", "1.01"),
        ("99.91", "100"),
    ],
)
def test_a_share_has_three_digits_and_is_rounded_up(value: str, wanted: str) -> None:
    assert float(make._digits(Fraction(value))) == pytest.approx(float(wanted), rel=1e-12)


def test_positions_are_round_numbers_around_todays() -> None:
    found = [float(100 * each) for each in ladder(Fraction("0.0837"))]
    above = [60, 50, 40, 30, 25, 20, 15, 12, 10]
    below = [6, 5, 4, 3, 2.5, 2, 1.5, 1.2, 1]
    assert found == pytest.approx([80, *above, 8.37, *below, 0.8][: len(found)])
    assert len(found) == 21


def test_positions_next_to_todays_differ_by_more_than_a_twentieth() -> None:
    """Of 10% neither 10% itself nor anything nearer than 9.5% and 10.5%: the next are 12% and 8%."""
    found = [float(100 * each) for each in ladder(Fraction("0.1"))]
    assert found[9:12] == pytest.approx([12, 10, 8])
    near = [float(100 * each) for each in ladder(Fraction(12, 100) / Fraction(21, 20))]
    assert near[9] == pytest.approx(15)
    just = [float(100 * each) for each in ladder(Fraction(12, 100) / Fraction(21, 20) - Fraction(1, 10**9))]
    assert just[9] == pytest.approx(12)
    below = [float(100 * each) for each in ladder(Fraction(8, 100) / Fraction(19, 20))]
    assert below[11] == pytest.approx(6)
    assert float(100 * ladder(Fraction(8, 100) / Fraction(19, 20) + Fraction(1, 10**9))[11]) == pytest.approx(8)


def test_positions_of_large_errors_go_up_a_decade() -> None:
    found = [float(100 * each) for each in ladder(Fraction(3))]
    assert found[:3] + found[10:13] == pytest.approx([3000, 2500, 2000, 300, 250, 200])
    assert found[-1] == pytest.approx(30)


# The cell that a control is about.


def test_the_usual_size_is_the_middle_one_or_larger_until_the_plan_is_close(monkeypatch: Patch) -> None:
    cells = table([80.0, 100.0, 120.0, 5000.0, 0.0])
    for within, wanted in ((25, 100), (26, 200), (50, 200), (51, 500), (10**9, 5000)):
        # An error in proportion to 1 / size: the share at 100 is the given percentage.
        monkeypatch.setattr(make, "_own_error", lambda _, size, within=within: within / float(size))
        assert make._usual_size(cells) == wanted


def test_a_statistic_is_about_cells_like_those_of_the_main_one() -> None:
    main = table([100.0, 40.0, 60.0, 210.0, 0.0])
    own = table([1000.0, 9.0, 3000.0, 9.0, 70.0])
    # Those in which the main one has 50 to 200: the first and the third.
    assert make._alike(own, main, 100.0) == 2000
    assert make._alike(own, main, 105.0) == 1000
    assert make._alike(own, main, 20.0) == 10
    assert make._alike(own, main, 1e9) == 50
    apart = table([1000.0, 9.0, 3000.0, 9.0, 70.0], query=1)
    assert make._alike(apart, main, 100.0) == 50
    other = table([1000.0, 9.0, 3000.0, 9.0, 70.0], number=1)
    assert make._alike(other, main, 100.0) == 50
    assert make._alike(own, table([100.0, 100, 100, 100, 100]), 100.0) == 50


def test_a_level_is_found_by_its_groups_or_the_finest_is_taken() -> None:
    few, many = table([1.0, 2.0]), table([1.0, 2.0, 3.0])
    few.part.level, many.part.level = (SimpleNamespace(names=lambda own=own: own) for own in (("a",), ("a", "b")))
    assert make._level([few, many], ("a",)) is few
    assert make._level([few, many], ("a", "b")) is many
    assert make._level([few, many], ("c",)) is many
    assert make._level([many, few], ("c",)) is many


def reached(sigma: float) -> int:
    """Within how many steps 95% of discrete Gaussian noise is, added up one by one."""
    weights = [math.exp(-(step**2) / (2 * sigma**2)) for step in range(2000)]
    whole, within = weights[0] + 2 * sum(weights[1:]), weights[0]
    for step in range(1, 2000):
        if within >= 0.95 * whole:
            return step - 1
        within += 2 * weights[step]
    raise AssertionError


def test_the_error_of_a_cell_is_relative_to_its_size() -> None:
    cells = table([100.0])
    cells.asked.statistic = SimpleNamespace(mechanism=Gaussian(sigma=8))
    assert make._own_error(cells, Fraction(100)) == reached(8) / 100
    assert make._own_error(cells, Fraction(1000)) == reached(8) / 1000
    assert make._own_error(cells, Fraction(100), Gaussian(sigma=80)) == reached(80) / 100
    cells.part.level.share = Fraction(1, 4)
    assert make._own_error(cells, Fraction(100)) == reached(16) / 100


def test_noise_is_told_by_its_amount() -> None:
    assert make.noise_of(Gaussian(sigma=8)) == 8.0
    assert make.noise_of(LogTransform(offset=10, sigma="0.5")) == 0.5
    assert make.is_adjustable(Gaussian(sigma=8))


def test_the_ratio_of_errors_is_kept_at_every_position() -> None:
    main, other = (
        Reference(place=(0, name), tables=(), level=None, size=Fraction(1), within=Fraction(within))  # type: ignore[arg-type]
        for name, within in (("a", "0.125"), ("b", "0.375"))
    )
    case: Any = SimpleNamespace(references=(other, main), main=1)
    positions = [Fraction("0.25"), Fraction("0.125"), Fraction("0.0625")]
    assert Case.withins(case, main, positions) == positions
    # Today's is kept as it is; the others are three times as large, of three digits.
    assert [float(each) for each in Case.withins(case, other, positions)] == [0.75, 0.375, 0.188]
    rough = replace(other, within=Fraction("0.37504"))
    assert Case.withins(case, rough, positions)[1] == Fraction("0.37504")
    assert [float(each) for each in Case.withins(case, rough, positions)] == [0.751, 0.37504, 0.188]


def test_a_goal_is_about_the_references_cell() -> None:
    level = SimpleNamespace(
        asked=SimpleNamespace(measure="emp"),
        goal=SimpleNamespace(query="query"),
        part=SimpleNamespace(number=2, level=SimpleNamespace(share=Fraction(1, 3))),
    )
    reference = Reference(place=(0, "sum_emp"), tables=(), level=level, size=Fraction(50), within=Fraction("0.1"))  # type: ignore[arg-type]
    assert reference.share == Fraction(1, 3)
    with pytest.MonkeyPatch.context() as patched:
        asked: list[Any] = []
        patched.setattr(make, "Goal", lambda *given, **more: asked.append((given, more)))
        reference.goal(Fraction("0.2"))
    more = {"within": Fraction("0.2"), "confidence": 0.95, "at_least": 50, "statistic": "sum_emp", "levels": [2]}
    assert asked == [(("emp", "query"), more)]


# Candidates at every position.


def test_where_no_noise_is_as_far_off_the_next_smaller_one_serves(monkeypatch: Patch) -> None:
    """From little noise to much; what cannot be had at the least error cannot be had at all."""
    reference: Any = SimpleNamespace(within=Fraction("0.1"))
    withins = [Fraction(each) for each in ("0.4", "0.2", "0.1", "0.05")]

    def calibrated(at: Any, mechanism: Any, within: Fraction) -> Any:
        assert (at, mechanism) == (reference, "m")
        if within in impossible:
            raise InfeasibleError("none")
        return f"m at {float(within)}"

    monkeypatch.setattr(make, "_calibrated", calibrated)
    impossible: set[Fraction] = set()
    found = make._at_positions(reference, "m", withins, keep=False)  # type: ignore[arg-type]
    assert found == ["m at 0.4", "m at 0.2", "m at 0.1", "m at 0.05"]
    assert make._at_positions(reference, "m", withins, keep=True)[2] == "m"  # type: ignore[arg-type]
    assert make._at_positions(reference, "m", withins, keep=True)[:2] == found[:2]  # type: ignore[arg-type]
    impossible = {withins[0], withins[1]}
    assert make._at_positions(reference, "m", withins, keep=False) == ["m at 0.1", "m at 0.1", "m at 0.1", "m at 0.05"]  # type: ignore[arg-type]
    impossible = {withins[3]}
    with pytest.raises(InfeasibleError):
        make._at_positions(reference, "m", withins, keep=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 4)])
@pytest.mark.parametrize("mechanism", [Gaussian(sigma=8), LogTransform(offset=100, sigma="0.1")])
def test_the_most_noise_meets_the_goal_and_a_hundredth_more_does_not(mechanism: Any, share: Fraction) -> None:
    level = SimpleNamespace(step=Fraction(1), part=SimpleNamespace(level=SimpleNamespace(share=share)))
    reference: Any = Reference(
        place=(0, "sum_emp"),
        tables=(),
        level=level,
        size=Fraction(1000),
        within=Fraction("0.1"),  # type: ignore[arg-type]
    )
    found = make._calibrated(reference, mechanism, Fraction("0.05")).at_share(share)

    def reach(own: Any) -> float:
        return float(own.error_quantiles(np.array([1000.0]), confidence=0.95, step=1)[0])

    assert reach(found) <= 50.001
    assert reach(found.with_amount(make.decimal(1.03 * make.amount(found)))) > 50


def test_what_cannot_be_calibrated_says_so() -> None:
    level = SimpleNamespace(step=Fraction(1), part=SimpleNamespace(level=SimpleNamespace(share=Fraction(1))))
    reference: Any = Reference(
        place=(0, "sum_emp"),
        tables=(),
        level=level,
        size=Fraction(1),
        within=Fraction("0.1"),  # type: ignore[arg-type]
    )

    class Offered:
        """A mechanism whose most noise is what it was made with."""

        is_sized, signed = False, False

        def __init__(self, most: Any) -> None:
            self.most = most

        def most_noise(self, *given: Any, **more: Any) -> Any:
            assert (given, more) == ((1.0, 0.25), {"confidence": 0.95, "step": 1})
            if isinstance(self.most, Exception):
                raise self.most
            return self.most

        def inside(self) -> list[Any]:
            return [self]

        def text(self) -> str:
            return "offered"

    signed = LogTransform(offset=100, sigma="0.3", signed=True)
    for most in (None, signed):
        with pytest.raises(InfeasibleError, match="offered"):
            make._calibrated(reference, Offered(most), Fraction(1, 4))  # type: ignore[arg-type]
    with pytest.raises(InfeasibleError, match="p is wrong"):
        make._calibrated(reference, Offered(ParameterError(parameter="p", problem="is wrong")), Fraction(1, 4))  # type: ignore[arg-type]
    assert make._calibrated(reference, Offered(Gaussian(sigma=3)), Fraction(1, 4)) == Gaussian(sigma=3)  # type: ignore[arg-type]


def test_noise_in_proportion_to_a_size_is_scaled_to_the_goal() -> None:
    """At a public size of 1,000 its standard deviation is a share of 800, the largest edge below."""
    sized = Sized(GeneralizedGaussian(shape=1, scale="0.1"), floor=100)
    cells = table([1000.0])
    cells.asked.statistic = SimpleNamespace(mechanism=sized)
    own = make._own_error(cells, Fraction(1000))
    edges = sized.edges(1000.0)
    edge = max(each for each in edges if each <= 1000)
    assert (edge, edges[0]) == (800, 100)
    # 95% of Laplace noise is within ln(20) of its scales.
    assert own == pytest.approx(math.log(20) * 0.1 * 800 / 1000, rel=0.02)
    assert make._own_error(cells, Fraction(50)) == pytest.approx(math.log(20) * 0.1 * 100 / 50, rel=0.1)
    reference: Any = Reference(
        place=(0, "sum_emp"),
        tables=(),
        level=cells,
        size=Fraction(1000),
        within=Fraction("0.1"),
    )
    for within in (Fraction("0.1"), Fraction("0.4")):
        found = make._calibrated(reference, sized, within)
        reach = make._own_error(cells, Fraction(1000), found)
        assert 0.98 * float(within) < reach <= float(within)
        assert make.noise_of(found) / make.noise_of(sized) == pytest.approx(float(within) / own, rel=0.02)
    assert make.is_adjustable(sized)


def test_a_transform_is_tried_at_the_offset_where_a_usual_record_loses_least(monkeypatch: Patch) -> None:
    asked: list[Any] = []

    def best(cost: Any, *, total: float, step: Fraction) -> Fraction:
        asked.append(([cost(Fraction(each)) for each in (100, 400, 7)], total, step))
        return Fraction(400)

    def calibrated(reference: Any, mechanism: Any, within: Fraction) -> Any:
        assert within == Fraction("0.1")
        if mechanism.offset == 7:
            raise InfeasibleError("none")
        return mechanism

    monkeypatch.setattr(make, "best_offset", best)
    monkeypatch.setattr(make, "_calibrated", calibrated)
    level = SimpleNamespace(step=Fraction(1), asked=SimpleNamespace(measure="emp"))
    reference: Any = SimpleNamespace(level=level, size=Fraction(1000), within=Fraction("0.1"))
    usual: Any = SimpleNamespace(usual=lambda measure: {"emp": 50.0}[measure])
    log = LogTransform(offset=100, sigma="0.5")
    case: Any = None
    assert make._with_best_offset(case, reference, log, usual) == LogTransform(offset=400, sigma="0.5")
    ((costs, total, step),) = asked
    # ln(1 + 50 / offset)^2 / (2 sigma^2), and something that nothing is worse than.
    assert costs[:2] == pytest.approx([math.log(1 + 50 / each) ** 2 / 0.5 for each in (100, 400)], rel=1e-3)
    assert (costs[2], total, step) == (1e300, 1000.0, 1)
    assert make._with_best_offset(case, reference, Gaussian(sigma=8), usual) == Gaussian(sigma=8)
    level.asked.measure = make.COUNT
    assert make._with_best_offset(case, reference, log, usual) is log
    assert len(asked) == 1


# What the points say.


def test_margins_are_of_the_middle_cell_and_end_somewhere() -> None:
    assert make.margin(np.array([0.1, 0.2, 0.9])) == pytest.approx(0.2 * 1.959964, rel=1e-5)
    assert make.margin(np.array([1e9])) == 1e6


def test_shares_of_no_cells_are_none() -> None:
    rules = SimpleNamespace(names=lambda: ("a", "b", "c"))
    asked: list[Any] = []
    status = SimpleNamespace(shares=(1 / 3, 2 / 3, 0.0))
    cells: Any = SimpleNamespace(rules=rules, status=lambda name, ratios: asked.append(ratios.tolist()) or status)
    assert make._shares(cells, np.array([])) == (0.0, 0.0, 0.0)
    assert make._shares(cells, np.array([0.1])) == (0.333333, 0.666667, 0.0)
    assert asked == [[0.1]]


def test_errors_of_plain_noise_are_scaled_and_others_computed() -> None:
    asked: list[float] = []

    def errors(given: Any, factor: float) -> Any:
        asked.append(factor)
        return np.array([8.0, 16.0]) * factor

    for plain in (True, False):
        own = SimpleNamespace(totals=np.array([80.0, 40.0]), asked=SimpleNamespace(place="p"))
        scalable = SimpleNamespace(
            errors=errors,
            is_plain=lambda given, plain=plain: plain,
            drawn=lambda place: SimpleNamespace(mechanism=Gaussian(sigma=1)),
        )
        fitted: Any = SimpleNamespace(reference=SimpleNamespace(tables=(None, own)), scalable=scalable)
        kept: dict[int, Any] = {}
        asked.clear()
        found = [make._ratios(fitted, 1, factor, kept).tolist() for factor in (4.0, 0.25)]
        if plain:
            assert found == [pytest.approx([0.05, 0.2]), pytest.approx([0.2, 0.8])]
            assert asked == [1.0]
        else:
            assert found == [pytest.approx([0.4, 1.6]), pytest.approx([0.025, 0.1])]
            assert asked == [4.0, 0.25]


def test_chances_rise_from_five_and_a_half_to_ninety_eight_and_a_half_percent() -> None:
    found = make.chances()
    assert len(found) == 94
    assert [power_gaussian(found[at]) for at in (0, 1, 50, 93)] == pytest.approx([0.055, 0.065, 0.555, 0.985], rel=1e-4)


def group(cells: float, withheld: float, value: float) -> Any:
    return SimpleNamespace(cells=cells, withheld=withheld, value=value)


def test_groups_of_an_older_rule_are_taken_together_by_their_cells() -> None:
    """Of 10 cells half are withheld, of 30 none: 5 and 30 are shown, with errors of 0.2 and 0.4."""
    both = [group(10, 0.5, 0.2), group(30, 0.0, 0.4)]
    assert _together(both) == pytest.approx((0.125, (5 * 0.2 + 30 * 0.4) / 35), rel=1e-5)
    assert _together([]) == (0.0, None)
    assert _together([group(0, 1.0, 0.5)]) == (0.0, None)
    assert _together([group(4, 1.0, math.nan)]) == (1.0, None)
    assert _together([group(4, 1.0, math.nan), group(4, 0.0, 0.5)]) == (0.5, 0.5)
    assert _together([group(4, 1.0, 0.25)]) == (1.0, None)


def test_one_digit_of_an_error_is_left() -> None:
    assert [make._one_digit(each) for each in (None, 0.123, 0.96)] == [None, 0.1, 1.0]


# Records that stand for all.


@pytest.mark.parametrize(
    ("values", "step", "wanted"),
    [
        ([0, 1, 2, 3, 4, 6, 8, 9], 1, [0, 2, 2, 2, 5, 5, 10, 10]),
        ([14, 15, 31, 32, 70, 71, 99], 1, [10, 20, 20, 50, 50, 100, 100]),
        ([-14, -15, 0, 1], 1, [-10, -20, 0, 2]),
        ([0.3, 0.02, 0.7], 0.1, [0.2, 0.2, 0.5]),
        ([1234], 500, [1000]),
    ],
)
def test_sizes_are_rounded_to_one_two_or_five_and_at_least_two_steps(
    values: list[float], step: float, wanted: list[float]
) -> None:
    assert round_sizes(np.array(values), Fraction(str(step))).tolist() == pytest.approx(wanted)


def test_a_few_factors_have_the_ends_and_todays() -> None:
    assert profile._few([4.0, 1.0, 2.0, 2.0]) == [1.0, 2.0, 4.0]
    many = [float(each) for each in range(1, 62)]
    assert profile._few(many) == [1.0, 11.0, 21.0, 31.0, 41.0, 51.0, 61.0]
    shifted = [each / 2 for each in range(1, 62)]
    assert profile._few(shifted) == [0.5, 1.0, 5.5, 10.5, 15.5, 20.5, 25.5, 30.5]
    assert profile._few([3.0]) == [3.0]


def test_losses_between_factors_are_those_of_a_power() -> None:
    """Losses of f and of f^2 are lines in logarithms; none is 0, and one factor alone says nothing of others."""
    tried = [1.0, 4.0, 16.0]
    known = np.array([[each, each**2, 0.0] for each in tried])
    found = profile._between([1.0, 2.0, 8.0, 16.0], tried, known)
    assert found.tolist() == [pytest.approx([each, each**2, 0.0]) for each in (1.0, 2.0, 8.0, 16.0)]
    assert profile._between([1.0, 2.0], [5.0], np.array([[7.0, 8.0]])).tolist() == [[7.0, 8.0]] * 2


def test_records_are_taken_evenly_over_their_losses(monkeypatch: Patch) -> None:
    sample: Any = SimpleNamespace(
        losses=np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0]), weights=np.array([1.0, 1, 1, 1, 1, 9])
    )
    rows = np.array([0, 1, 2, 3, 4])
    assert profile._even(sample, rows) == [1, 3, 4, 2, 0]
    monkeypatch.setattr(profile, "EACH", 2)
    # Shares of 1/4 and 3/4 of a weight of 5: the second and the fourth.
    assert profile._even(sample, rows) == [3, 2]
    heavy: Any = SimpleNamespace(losses=sample.losses, weights=np.array([10.0, 1, 1, 1, 1, 9]))
    assert profile._even(heavy, rows) == [2, 0]


def losses_of(records: list[float], weights: list[float]) -> Any:
    return SimpleNamespace(
        columns={"emp": np.array(records)},
        records=tuple(SampledRecord(size_class=0, weight=each, budget=None) for each in weights),
        schema=SimpleNamespace(measure=lambda name: SimpleNamespace(step=Fraction(3)) if name == "emp" else None),
    )


def test_the_usual_size_of_records_is_in_the_middle_of_their_weight() -> None:
    assert Profile.usual(losses_of([50.0, -10.0, 90.0], [1.0, 1.0, 1.0]), "emp") == 50.0
    assert Profile.usual(losses_of([50.0, 10.0, 90.0], [1.0, 1.0, 5.0]), "emp") == 90.0
    assert Profile.usual(losses_of([50.0, 10.0, 90.0], [1.0, 2.0, 1.0]), "emp") == 10.0
    assert Profile.usual(losses_of([1.0], [1.0]), "emp") == 3.0
    assert Profile.usual(losses_of([50.0], [1.0]), "pay") == 1.0


def test_the_largest_record_has_the_groups_of_another() -> None:
    measures = [SimpleNamespace(name="emp", step=Fraction(1, 2), bound_steps=10)]
    schema: Any = SimpleNamespace(record_measures=lambda: measures)
    assert profile._extreme(schema, {"emp": 1, "county": "01"}) == {"emp": 5, "county": "01"}


def test_round_sizes_stay_within_their_bounds() -> None:
    measures = [
        SimpleNamespace(name="emp", step=Fraction(1), bound_steps=80),
        SimpleNamespace(name="none", step=Fraction(1), bound_steps=1),
    ]
    schema: Any = SimpleNamespace(record_measures=lambda: measures)
    given: dict[str, Any] = {"emp": np.array([99, -99, 30], np.int64), "county": "as it is"}
    found: Any = profile._with_round_sizes(given, schema)
    assert (found["emp"].tolist(), found["emp"].dtype) == ([80, -80, 20], np.int64)
    assert found["county"] == "as it is"
    assert set(found) == {"emp", "county"}
    assert given["emp"].tolist() == [99, -99, 30]


def test_firms_are_made_of_the_examples() -> None:
    policy = gaussian_sum("emp", sigma=1)
    examples = {"big": {"emp": 9}, "small": {"emp": 1}, "middle": {"emp": 5}, "most": {"emp": 50}}
    found = profile._firms(examples, policy)
    assert [(name, units) for name, _, units in found] == [
        ("10 of 'middle' in one place", {"emp": [5] * 10}),
        ("all examples as one firm", {"emp": [9, 1, 5, 50]}),
    ]
    assert found[0][1].startswith("10 times ")
    assert found[1][1] == "big, small, middle, most"
    assert [each[0] for each in profile._firms({"one": {"emp": 9}}, policy)] == ["10 of 'one' in one place"]
    assert profile._firms({"one": {}}, policy) == []
    assert profile._firms({"one": {"emp": 1}, "two": {"emp": 1, "pay": 2}}, policy) == []


def test_what_is_left_of_a_budget_is_never_less_than_nothing() -> None:
    left = (constant(2) + gaussian_sum("emp", sigma=1), constant(1))
    assert profile._of_record(None, {"emp": 2}) is None
    assert profile._of_record(left, {"emp": 2}) == 3.0
    assert profile._of_record((constant(1), constant(3)), {}) == 0.0
    assert profile._of_record(left, {"pay": 2}) is None
    assert profile._of_columns(None, {}, 3) == [None] * 3
    assert profile._of_columns(left, {"emp": np.array([0, 2])}, 2) == [1.0, 3.0]
    assert profile._of_columns((constant(1), constant(3)), {}, 2) == [0.0, 0.0]
    assert profile._of_columns((constant(3), constant(1)), {"emp": np.array([0, 2])}, 2) == [2.0, 2.0]


def test_a_budget_is_for_a_period_or_for_years() -> None:
    one, many = (profile._budget(SimpleNamespace(series=series), 5.0) for series in (None, "s"))  # type: ignore[arg-type]
    assert (one.noun, many.noun) == ("years", "releases in a period")
    assert one.words.startswith("So many years")
    assert many.words.startswith("Each period has a budget of its own")
    assert one.extremes == many.extremes == (5.0,)
    assert profile._budget(SimpleNamespace(series=None), None).extremes == ()  # type: ignore[arg-type]


def test_examples_without_a_loss_are_left_out(monkeypatch: Patch) -> None:
    class Policy:
        def loss(self, record: Any) -> float:
            if record == "bad":
                raise RecordError.__new__(RecordError)
            return 1.0

    file: Any = object()
    monkeypatch.setattr(profile, "example_records", lambda *given: {"a": "good", "b": "bad"})
    assert profile._examples(file, Policy()) == {"a": "good"}  # type: ignore[arg-type]
    monkeypatch.setattr(profile, "example_records", lambda *given: {"b": "bad"})
    assert profile._examples(file, Policy()) == {"a record": {}}  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["records", "examples", "firms", "extremes"])
def test_one_loss_that_is_no_number_is_enough(where: str) -> None:
    lists = dict.fromkeys(("records", "examples", "firms", "extremes"), (1.0, 2.0))
    assert profile._is_finite(PointLosses(**lists))
    assert not profile._is_finite(PointLosses(**(lists | {where: (1.0, math.inf)})))


def test_losses_have_six_digits() -> None:
    found = profile._losses(np.array([1 / 3]), [2 / 3], [1 / 7], [1e9 / 7])
    assert found == PointLosses(records=(0.333333,), examples=(0.666667,), firms=(0.142857,), extremes=(142857000.0,))


# States and places.


def cells(columns: dict[str, list[str]]) -> Any:
    return SimpleNamespace(part=SimpleNamespace(cells=pa.table(columns)))


def test_long_codes_are_many_and_of_digits() -> None:
    many = [f"{number:03}" for number in range(61)]
    assert places._has_long_codes([cells({"fips": many})], "fips")
    assert places._has_long_codes([cells({"other": many}), cells({"fips": many})], "fips")
    assert not places._has_long_codes([cells({"fips": many})], "other")
    assert not places._has_long_codes([cells({"fips": many[:60]})], "fips")
    assert not places._has_long_codes([cells({"fips": [*many[:60], "x12"]})], "fips")
    assert not places._has_long_codes([cells({"fips": [*many, "12"]})], "fips")


def test_codes_are_texts_whatever_they_are_stored_as() -> None:
    coded = pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array(["a"]).dictionary_encode()])
    assert places._texts(coded).to_pylist() == ["b", "a", "a"]
    assert places._texts(pa.array([1, 2])).to_pylist() == ["1", "2"]


def test_confidential_totals_are_shown_as_powers_of_ten() -> None:
    own: Any = SimpleNamespace(part=SimpleNamespace(total=np.array([0.0, 3.0, 4.0, 31.0, 32.0, 5e6])))
    for is_exact, wanted in ((True, [0.0, 3.0, 4.0, 31.0, 32.0, 5e6]), (False, [1.0, 1.0, 10.0, 10.0, 100.0, 1e7])):
        shown = Places(shown=(), tables=(), statistics=(), labels=(), is_exact=is_exact)
        assert [shown.total(own, row) for row in range(6)] == wanted


def test_values_are_laid_out_by_draw_place_and_cell() -> None:
    """Two tables side by side, of which the second was drawn; places of two cells and of one."""
    shown = tuple(Shown(name=name, rows=rows, cells=("x",) * len(rows)) for name, rows in (("a", (4, 5)), ("b", (7,))))
    drawn = Drawn(
        places=Places(shown=shown, tables=(1, 2), statistics=(0, 1), labels=("n", "m"), is_exact=True), seed=0
    )  # type: ignore[arg-type]
    values = np.array([[draw + 0.1, draw + 0.2, draw + 0.3] for draw in range(6)])
    for at, wanted in ((1, ((0.0, 2.1, 0.0, 2.2), (0.0, 2.3))), (0, ((2.1, 0.0, 2.2, 0.0), (2.3, 0.0)))):
        found = drawn._laid_out(values, at)
        assert len(found) == drawn.number == 6
        assert found[2] == wanted


def test_places_are_shown_cell_by_cell_with_every_statistic() -> None:
    tables = [SimpleNamespace(part=SimpleNamespace(total=np.array([10.0, 20.0, 30.0]) * times)) for times in (1, 100)]
    shown = (Shown(name="a", rows=(2, 0), cells=("x", "y")),)
    held = Places(shown=shown, tables=tuple(tables), statistics=(3, 5), labels=("n", "m"), is_exact=True)  # type: ignore[arg-type]
    (found,) = Drawn(places=held, seed=0).shown()
    assert found.name == "a"
    assert [(each.statistic, each.name, each.total) for each in found.cells] == [
        (3, "x: n", 30.0),
        (5, "x: m", 3000.0),
        (3, "y: n", 10.0),
        (5, "y: m", 1000.0),
    ]


def test_a_statistic_without_that_table_is_drawn_as_nothing() -> None:
    own = SimpleNamespace(asked=SimpleNamespace(place="p"), part=SimpleNamespace(total=np.array([1.0, 2.0])))
    shown = (Shown(name="a", rows=(0, 1), cells=("x", "y")),)
    held = Places(shown=shown, tables=(own,), statistics=(0,), labels=("n",), is_exact=True)  # type: ignore[arg-type]
    fitted: Any = SimpleNamespace(reference=SimpleNamespace(place="other"), mechanisms=("m", "m"))
    found = Drawn(places=held, seed=0).of(fitted)
    assert found == [(((0.0, 0.0),),) * 6] * 2
    empty = replace(held, shown=())
    fitted.reference.place = "p"
    assert Drawn(places=empty, seed=0).of(fitted) == [((),) * 6] * 2
