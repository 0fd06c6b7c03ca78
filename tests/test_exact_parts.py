"""Small functions of rooms that the guarantee rests on, against what pencil and paper or another library give."""

import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy.stats import ncx2

import recordwise as rw
from mechanisms.kept_parts import PARTS
from plan.test_identity import loaded
from policy.several_measures import FOUR
from recordwise.errors import ParameterError, PlanFileError
from recordwise.exact.numbers import ball, working_precision
from recordwise.ledger.chain import Event
from recordwise.ledger.entries import _may_be, _record_of, period_problem, unused_reserves
from recordwise.mechanisms.base import OUTSIDE
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.noise.laws import _root
from recordwise.plan.file.first import CodeList, Wishes, code_list, with_sizes
from recordwise.plan.file.node import _unescape
from recordwise.plan.schema import Measure as PlanMeasure
from recordwise.plan.statistics.base import NEAR, _radius
from recordwise.plan.statistics.quantile import _noisy_column
from recordwise.policy import ConditionColumn, Measure, constant
from recordwise.policy.atoms import SelectionDelta
from recordwise.policy.bands import BandTable, _from_varints, _varints
from recordwise.policy.dominance.curves import Difference, atom_growth
from recordwise.policy.dominance.regions import _amount_options
from recordwise.policy.evaluate.numpy import PRECISION
from recordwise.policy.firms import any_of, tail_at
from recordwise.policy.groups import GroupPair
from recordwise.policy.render.latex import measure_latex
from recordwise.policy.series import MOST_PARTS, Series
from recordwise.session.checks import _one_up
from recordwise.session.session import check_reserve
from recordwise.session.simulated import CellValues


@pytest.mark.parametrize(
    "text, period, may_be",
    [
        ("2025", "2025", True),
        ("FY 2024", "2025", False),
        ("2025Q1", "2025-Q2", False),
        ("2025 Q2", "2025-Q2", True),
        ("2025-Q02", "2025-Q2", True),
        ("2025 H1", "2025-Q1", True),
        ("2025/3", "2025-04", False),
        ("2025/03", "2025-03", True),
        ("March 2025", "2025-03", True),
        ("2O25", "2025", True),
        ("２０２４", "2025", False),
        ("no year", "2025", True),
        ("2024/2025", "2026", True),
        ("12025", "2026", True),
        ("2025é", "2026", True),
    ],
)
def test_a_period_of_an_earlier_version_may_be_one_of_today_s(text: str, period: str, may_be: bool) -> None:
    assert _may_be(text, period) == may_be


@pytest.mark.parametrize(
    "period, charged, before, told",
    [
        ("2026", {"2025"}, None, None),
        ("2025", {"2025"}, None, "before its periods had names"),
        ("2026-Q1", {"2025"}, None, "another length"),
        ("2025", {None}, "cbp 2024", None),
        ("2024", {None}, "cbp 2024", "before its periods had names"),
        ("2025", {None}, "cbp", "was charged without periods"),
        ("2025", {None}, "cbp 2023 2024", "was charged without periods"),
        ("2025", {None}, None, "was charged without periods"),
        ("2025", {None, "2023"}, "cbp", None),
        ("2025", {"FY25 (2025)"}, None, "written by an earlier version"),
        ("2026", {"FY25 (2025)"}, None, None),
    ],
)
def test_no_period_has_a_second_budget(
    period: str, charged: set[str | None], before: str | None, told: str | None
) -> None:
    found = period_problem(period, charged, before=before, dataset="cbp")
    assert (found is None) if told is None else (told in str(found))


def test_records_and_reserves_are_those_of_their_version_and_period() -> None:
    history: dict[str, dict[str, Any]] = {"2025": {"emp": 1}, "2025/2": {"emp": 3}, "2026": {"emp": 9}}
    found = [_record_of(history, "2025", revision) for revision in range(4)]
    assert found == [{"emp": 1}, {"emp": 1}, {"emp": 3}, {"emp": 3}]
    assert _record_of(history, "2024", 1) is None
    kept = [("2025", 2), ("2025", 1), ("2026", 1)]
    events = [
        Event(sequence=at, time="", kind="reserved", body={"period": period, "revisions": many}, digest="")
        for at, (period, many) in enumerate(kept, 3)
    ]
    assert unused_reserves(events, {}, "2025") == {3: 2, 4: 1}
    assert unused_reserves(events, {3: 1, 4: 1}, "2025") == {3: 1}
    assert unused_reserves(events, {}, None) == {}


def test_quoted_names_are_read_as_toml_reads_them() -> None:
    assert _unescape(r"a\u00e9b\tq\U0001F600\"\\") == 'a\u00e9b\tq\U0001f600"\\'
    assert _unescape("plain") == "plain"


def test_numbers_of_bands_are_written_seven_bits_at_a_time() -> None:
    numbers = [0, 1, 127, 128, 300, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**62]
    bits = [[(number >> shift) & 127 for shift in range(0, max(number.bit_length(), 1), 7)] for number in numbers]
    expected = bytes(part + 128 * (at + 1 < len(each)) for each in bits for at, part in enumerate(each))
    assert _varints(np.array(numbers)) == expected
    assert _from_varints(expected).tolist() == numbers
    assert _varints(np.zeros(0, np.int64)) == b""


def test_chances_of_several_keys_and_pieces() -> None:
    assert any_of(np.array([0.5, 0.5])) == pytest.approx(0.75)
    assert any_of(np.array([0.5, 0.5])) >= 0.75
    assert any_of(np.array([1e-9, 1e-9])) <= 2e-9
    assert any_of(np.array([0.2, 1.0])) == 1.0
    assert any_of(np.zeros(0)) == 0.0
    tails: Any = ((1, Fraction(1, 8)), (3, Fraction(1, 4)))
    assert tail_at(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), tails).tolist() == [0.0, 0.125, 0.25, 0.25, 1.0]


def test_a_pair_without_a_loss_has_the_power_of_its_delta() -> None:
    pair = GroupPair(rho=0.0, delta=0.01)
    assert [pair.power(share) for share in (0.05, 0.3, 0.995)] == pytest.approx([0.06, 0.31, 1.0], rel=1e-9)
    assert pair.delta_at(0.0) == pytest.approx(0.01)
    assert GroupPair(rho=math.inf, delta=0.0).power(0.05) == 1.0


def test_quantiles_of_cells_count_every_record() -> None:
    found = CellValues.of(np.array([1, 0, 1, 3]), np.array([5.0, 2.0, 1.0, 7.0]), np.array([1, 3, 2, 1]), 4)
    assert found.records.tolist() == [3, 3, 0, 1]
    for p, expected in ((0.5, [2, 1, math.nan, 7]), (2 / 3, [2, 1, math.nan, 7]), (0.7, [2, 5, math.nan, 7])):
        np.testing.assert_array_equal(found.quantile(p), expected)
    whole = found.with_zeros(np.array([4, 3, 2, 2]))
    for p, several in ((0.25, [0, 1, 0, 0]), (0.5, [2, 1, 0, 0]), (0.75, [2, 5, 0, 7])):
        np.testing.assert_array_equal(whole.quantile(p), several)


@pytest.mark.parametrize(
    "numbers, measure, options",
    [
        ([3], Measure("a"), [(0, (0, 2)), (3, (3, 3)), (4, (4, None))]),
        ([0], Measure("a"), [(0, (0, 0)), (1, (1, None))]),
        ([Fraction(5, 4)], Measure("a", Fraction(1, 2)), [(0, (0, 2)), (Fraction(3, 2), (3, None))]),
        (
            [-2, 3],
            Measure("a", Fraction(1), True),
            [(0, (0, 2)), (3, (3, 3)), (4, (4, None)), (-1, (1, 1)), (-2, (2, 2)), (-3, (3, None))],
        ),
        ([0], Measure("a", Fraction(1), True), [(0, (0, 0)), (1, (1, None)), (-1, (1, None))]),
    ],
)
def test_amounts_between_and_at_the_numbers_of_conditions(
    numbers: list[Any], measure: Measure, options: list[Any]
) -> None:
    assert _amount_options([Fraction(number) for number in numbers], measure) == options


def test_one_band_is_raised_and_no_other() -> None:
    def table(edges: list[int], bands: list[int]) -> BandTable:
        cells = [([f"c{at}" for at in range(len(bands))], np.arange(len(bands)))]
        return BandTable.of([ConditionColumn("a")], [Fraction(edge) for edge in edges], cells, np.array(bands))

    def raised(band: int) -> tuple[list[int], list[int]]:
        found = _one_up(table([1, 2, 4], [0, 1, 2, 1]), band)
        return [int(edge) for edge in found.edges], found.bands.tolist()

    assert raised(0) == ([2, 4], [0, 0, 1, 0])
    assert raised(1) == ([1, 2, 4], [0, 2, 2, 2])
    assert raised(2) == ([1, 2, 4, 8], [0, 1, 3, 1])
    assert [int(edge) for edge in _one_up(table([3], [0, 0]), 0).edges] == [6]


@pytest.mark.parametrize("start", [-40.0, 0.1, 2.0, 90.0])
def test_a_root_is_found_from_either_side(start: float) -> None:
    assert _root(lambda at: at**3 - 8, start) == pytest.approx(2, abs=1e-9)
    assert _root(lambda at: math.expm1(at / 50), start) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("bend", [0.0, 0.2, 1.0, 30.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_a_curve_is_covered_as_a_noncentral_chi_square_says(bend: float, confidence: float) -> None:
    miss = (1 - confidence - OUTSIDE) / 2
    found = _radius(bend, confidence)
    if bend == 0:
        assert found == NormalDist().inv_cdf(1 - miss)
        return
    size = 1 / bend
    assert ncx2.sf((size + found) ** 2, 2, size**2) <= miss
    assert ncx2.sf((size + found - 3 * NEAR) ** 2, 2, size**2) >= miss
    assert _radius(bend, 1.0) == math.inf


def test_quantiles_are_read_off_their_grid_with_open_ends() -> None:
    grid = Grid.linear(2, 8, bits=2)
    points = [float(each) for each in grid.steps(Fraction(1))]
    last = len(points) - 1
    positions = {
        "value": np.array([0, 1, last]),
        "low": np.array([-1, 0, 1]),
        "high": np.array([0, 1, last]),
        "spread_low": np.array([-1, 0, 0]),
        "spread_high": np.array([1, last, last]),
    }
    for bound, end in ((points[-1], points[-1]), (points[-1] + 1, math.nan)):
        found = _noisy_column("q", positions, TreeQuantile(grid=grid, rho=1), PlanMeasure.of("emp", bound=int(bound)))
        assert found.value.tolist() == [points[0], points[1], points[last]]
        assert found.low.tolist() == [0.0, points[0], points[1]]
        np.testing.assert_array_equal(found.high, [points[0], points[1], end])
        spread = [points[1] / 2, (points[last] - points[0]) / 2, (points[last] - points[0]) / 2]
        assert found.standard_error.tolist() == spread


@pytest.mark.parametrize("kept", [None, np.array([3.0, 4.0]), np.zeros((1, 2, 2))])
def test_the_error_of_a_signed_transform_needs_the_two_parts_of_each_total(kept: Any) -> None:
    signed = rw.LogTransform(offset=3, sigma="0.2", signed=True)
    with pytest.raises(ParameterError, match="kept"):
        signed.error_quantiles(np.array([3.0, 4.0]), confidence=0.9, kept=kept)


def test_a_difference_of_two_curves_is_bounded_closely_over_one_step() -> None:
    """Between two neighboring steps there is nothing, so that the ends decide."""
    atoms = [atom for part in PARTS for _, atom in part.rho]
    with working_precision(PRECISION):
        for at, atom in enumerate(atoms):
            for other in atoms[:at]:
                found = Difference({atom: Fraction(1), other: Fraction(-1, 3)}, FOUR[1])
                ends = max(found.lower(3), found.lower(4))
                assert 0 <= float(found.upper(3, 4) - ends) < 0.1


def test_the_delta_of_a_selection_is_constant_beyond_its_last_piece_and_not_before() -> None:
    measure = Measure("emp")
    atom = SelectionDelta(((measure, Fraction(10)),), ((1, Fraction(1, 8)), (3, Fraction(1, 4))))
    with working_precision(PRECISION):
        assert [atom_growth(atom, ball(Fraction(start))) is None for start in (10, 25, 35, 40)] == [True] * 4
        assert atom_growth(atom, ball(Fraction(41))) is not None


def test_a_reserve_is_a_number_of_revisions_within_a_budget() -> None:
    assert check_reserve(0, None) == 0
    assert check_reserve(2, constant(1)) == 2
    for reserve, budget in ((1, None), (-1, constant(1)), (True, constant(1)), (0.5, constant(1))):
        with pytest.raises(ParameterError, match="reserve"):
            check_reserve(reserve, budget)  # type: ignore[arg-type]


def test_noise_is_carried_in_up_to_a_thousand_parts() -> None:
    assert Series(name="s", period="2025", carry=Fraction(999, 1000)).carry == Fraction(999, 1000)
    for carry in (0, 1, Fraction(1, 1001), Fraction(1, MOST_PARTS + 1)):
        with pytest.raises(ParameterError, match="carry"):
            Series(name="s", period="2025", carry=carry)


@pytest.mark.parametrize(
    "grid, told",
    [
        ("{ bits = 6 }", "either log or linear"),
        ("{ log = [1, 9], linear = [1, 9] }", "either log or linear"),
        ("{ log = [1, 9, 80] }", "the two ends"),
        ("{ linear = [1] }", "the two ends"),
    ],
)
def test_a_grid_has_two_ends_in_one_way(grid: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(PlanFileError, match=told):
        loaded(tmp_path, ("grid = { log = [1, 1000], bits = 6 }", f"grid = {grid}"))


def test_derived_measures_are_written_with_their_signs() -> None:
    pay, emp = Measure("pay"), Measure("emp")
    written = {
        measure_latex(Measure.linear("x", {pay: first, emp: second})).replace("\\mathrm", "")
        for first, second in product((Fraction(1), Fraction(-2)), (Fraction(-45), Fraction(3)))
    }
    assert len(written) == 4
    assert any(text.startswith("-") for text in written)
    assert sum(" + " in text for text in written) == 1
    assert sum(" - " in text for text in written) == 3


def test_sizes_are_taken_from_the_column_named_like_the_sum(tmp_path: Path) -> None:
    out = tmp_path / "plan.toml"
    (tmp_path / "sizes.csv").write_text("county,jobs_emp,pay\n01,5,6\n")
    (tmp_path / "only.csv").write_text("county,jobs\n01,5\n")
    (tmp_path / "places.csv").write_text("state,county,name\n01,01001,x\n")
    said = Wishes(sums={"emp": "4", "pay": "9"}, by=("county",))
    found = with_sizes(said, tmp_path / "sizes.csv", out).sizes
    assert found is not None
    assert (found.path, dict(found.columns), found.all_keys) == ("sizes.csv", {"emp": "jobs_emp", "pay": "pay"}, True)
    alone = with_sizes(Wishes(sums={"emp": "4"}, by=("county", "naics")), tmp_path / "only.csv", out).sizes
    assert alone is not None
    assert (dict(alone.columns), alone.all_keys) == ({"emp": "jobs"}, False)
    with pytest.raises(ParameterError, match="sizes of other"):
        with_sizes(Wishes(sums={"other": ""}, by=("county",)), tmp_path / "sizes.csv", out)
    assert code_list(tmp_path / "places.csv", out, ["emp", "county"]) == CodeList(
        name="places", path="places.csv", levels=("state", "county")
    )
    for names in (["emp"], ["state"]):
        with pytest.raises(ParameterError, match="coarser level"):
            code_list(tmp_path / "places.csv", out, names)


def test_codes_have_the_declared_type_of_the_records() -> None:
    def listed(codes: list[Any]) -> rw.Hierarchy:
        return rw.Hierarchy.of(
            "p", {"all": ["a"] * len(codes), "code": codes}, levels=["all", "code"], source="public: x"
        )

    assert listed(["11", "12"]).in_record_type("text").codes.column("code").to_pylist() == ["11", "12"]
    whole = listed(["11", "12"]).in_record_type("integer")
    assert whole.codes.column("code").to_pylist() == [11, 12]
    assert whole.codes.column("all").to_pylist() == ["a", "a"]
    assert listed([11, 12]).in_record_type("integer").codes.column("code").to_pylist() == [11, 12]
    for codes, kind in ((["011"], "integer"), (["a1"], "integer"), ([11], "text"), (["11"], "date")):
        with pytest.raises(ParameterError, match="declared as"):
            listed(codes).in_record_type(kind)
