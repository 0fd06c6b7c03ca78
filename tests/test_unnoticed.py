"""What bugs drawn at random showed to be untested: each test fails with the bug that survived."""

import contextlib
import importlib
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import acb

import build
import recordwise as rw
from disclosure.small_publications import made_cells
from recordwise.cli.options import load_with_parameters
from recordwise.disclosure.cells import Dimension
from recordwise.disclosure.suppress import audit
from recordwise.errors import ParameterError, RecordwiseError
from recordwise.exact import functions
from recordwise.exact.functions import MOST_NESTED, x
from recordwise.ledger.ledger import Ledger
from recordwise.mechanisms import Gaussian
from recordwise.mechanisms.combined import Carried
from recordwise.mechanisms.inference import ValueNumber, ValueWindow, _fat_losses, _law_of
from recordwise.noise import probabilities
from recordwise.plan.describe import _unnamed_type
from recordwise.plan.expressions import Case, Compare
from recordwise.plan.file import load_plan
from recordwise.plan.plan import Plan
from recordwise.plan.publication import Labels
from recordwise.plan.schema import DateFormat, Measure, Schema
from recordwise.plan.statistics.base import COUNT, _largest
from recordwise.plan.statistics.ratio import Ratio, is_nonnegative
from recordwise.plan.statistics.totals import BinCounts, ExactTable
from recordwise.planning.explain import _unit
from recordwise.planning.search import reliable, shares
from recordwise.planning.simulate.generate import MOST_ROWS, _by_rule
from recordwise.planning.simulate.rehearse import peak_memory
from recordwise.policy import Policy, constant, gaussian_sum, laplace_sum, split
from recordwise.policy.atoms import Additive, AdditiveTable, CertifiedSum
from recordwise.policy.columns import MOST_SCALED_STEPS, ConditionColumn
from recordwise.policy.columns import Measure as PolicyMeasure
from recordwise.policy.conditions import among, both, either
from recordwise.policy.dominance.prove import ratio_upper
from recordwise.policy.evaluate.evaluator import NumpyEvaluator
from recordwise.policy.loss_law import convolved
from recordwise.policy.policy import constants_of
from recordwise.release import change
from recordwise.release.draw import _scatter_rows
from recordwise.release.formats.csv import _to, round_digits
from recordwise.release.page.page import _stages
from recordwise.session.checks import _raised_at
from recordwise.studio.places import _is_place

releasing: Any = importlib.import_module("recordwise.cli.release")


def test_bins_of_cells_that_are_not_published_leave_with_them() -> None:
    wanted = object()
    bins = BinCounts(
        position=np.array([0, 0, 1, 2]), point=np.array([0, 3, 1, 2]), held=np.array([5, 6, 7, 8], dtype=object)
    )
    exact = ExactTable(cells=3, totals={}, bins={wanted: bins})  # type: ignore[dict-item]
    moved = _scatter_rows(exact, 4, np.array([0, 2]), np.array([3, 1])).bins[wanted]  # type: ignore[index]
    assert moved.position.tolist() == [1, 3, 3]
    assert moved.point.tolist() == [2, 0, 3]
    assert moved.held.tolist() == [8, 5, 6]


class OwnNoise(Gaussian):
    """A mechanism whose policy at a sum says nothing about several records together."""

    loss_of_sum = False


def test_one_group_whose_policy_says_nothing_about_sums_decides_for_the_table() -> None:
    own, plain = OwnNoise(sigma=5), Gaussian(sigma=5)
    assert rw.ByGroup("naics", {"11": plain, "22": plain}).loss_of_sum
    assert not rw.ByGroup("naics", {"11": own, "22": plain}).loss_of_sum


@pytest.mark.parametrize("missing", ["by", "values"])
def test_a_mechanism_by_group_needs_its_column_and_its_groups(missing: str, tmp_path: Path) -> None:
    build.write_records(tmp_path / "records.parquet", rows=10)
    entries = {"by": 'by = "county"', "values": 'values = { "01" = { kind = "Gaussian", sigma = 5 } }'}
    for left_out in ("", missing):
        held = ", ".join(text for name, text in entries.items() if name != left_out)
        text = build.PLAN.replace('{ kind = "UnitSplit", at = 20, rho = 0.5 }', f'{{ kind = "ByGroup", {held} }}')
        (tmp_path / "plan.toml").write_text(text)
        if not left_out:
            assert load_plan(tmp_path / "plan.toml").plan.queries
            continue
        with pytest.raises(RecordwiseError, match=f"(?s)sum.emp.*{missing}"):
            load_plan(tmp_path / "plan.toml")


def test_large_amounts_in_steps_other_than_one_are_counted_outward() -> None:
    """Next to the largest amounts whose steps floats tell apart, and far beyond."""
    for step in (Fraction(1), Fraction(2), Fraction(1, 10)):
        steps = np.array([float(MOST_SCALED_STEPS) * factor for factor in (0.5, 1, 3, 1000)])
        count = NumpyEvaluator().pieces(steps * float(step), PolicyMeasure("x", step), step)
        assert (count >= steps).all()
        assert count == pytest.approx(steps, rel=1e-14)
        if step == 1:
            assert count.tolist() == steps.tolist()


def test_the_largest_value_of_a_curve_is_found_between_the_points_first_tried() -> None:
    top = np.array([0.31, 0.702, 1.1])
    found = _largest(lambda at: 5 - 3 * (at - top) ** 2, np.full(3, 0.2))
    assert found == pytest.approx(np.full(3, 5.0), abs=1e-9)


@pytest.mark.parametrize(("factor", "never_below"), [("45", True), ("44", False), ("1/45", False), ("46", True)])
def test_a_combination_is_never_below_0_only_if_each_measure_is_counted_so(factor: str, never_below: bool) -> None:
    measures = {
        "emp": Measure.of("emp"),
        "payann": Measure.of("payann"),
        "rest": Measure.of("rest", derive="payann - 45 * emp"),
    }
    schema = Schema.of(unit="id", measures=measures)
    asked = rw.query().sum("emp", Gaussian(sigma=5)).sum("rest", Gaussian(sigma=5)).statistics
    terms = (("rest", Fraction(1)), ("emp", Fraction(factor)))
    assert is_nonnegative(terms, asked, schema) == never_below


def test_labels_of_a_case_are_plain_values_whoever_gave_them() -> None:
    case = Case(branches=((Compare("emp", ">", 5), np.int64(1)),), default=np.int64(0))
    assert [type(label) for label in case.labels()] == [Fraction, Fraction]


@pytest.mark.parametrize(
    ("value", "direction", "rounded"),
    [(1.26, np.floor, 1.2), (1.24, np.floor, 1.2), (1.26, np.ceil, 1.3), (1.24, np.ceil, 1.3), (1.3, np.ceil, 1.3)],
)
def test_ends_of_intervals_are_rounded_outward_from_both_sides(value: float, direction: object, rounded: float) -> None:
    assert round_digits(np.array([value]), np.array([1.0]), 1, direction).tolist() == [rounded]


def test_codes_above_themselves_are_refused() -> None:
    with pytest.raises(ParameterError, match="above itself"):
        Dimension.from_parents("place", {"a": "b", "b": "a", "c": ""})


def test_a_cell_that_can_be_bounded_from_below_alone_is_exposed() -> None:
    """The whole is 10; of the part of 9 a published 8 is in it, so it lies between 8 and 10."""
    cells = made_cells((Dimension.from_levels("place", [("a", "a1"), ("a", "a2"), ("b", "b1")]),))
    value = {"": 10.0, "a": 9.0, "a1": 8.0, "a2": 1.0, "b": 1.0, "b1": 1.0}
    exact = np.array([value[cells.dimensions[0].codes[code]] for (code,) in cells.codes])
    withheld = np.array([cells.dimensions[0].codes[code] in {"a", "a2", "b", "b1"} for (code,) in cells.codes])
    system = cells.system(np.where(withheld, 0.0, exact), np.where(withheld, np.inf, exact))
    place = np.flatnonzero(exact == 9.0)
    for down, exposed in ((0.5, False), (5.0, True)):
        assert audit(system, exact, place, np.array([0.5]), np.array([down])).tolist() == [exposed]


def test_generated_rows_of_a_unit_collapse_to_its_record() -> None:
    times = np.array([1, 3, 2, MOST_ROWS])
    unit, steps = np.repeat(np.arange(4), times), np.array([7, 100, 5, 1000])
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    rows = _by_rule("sum", steps[unit], np.arange(len(unit)) - first[unit], times[unit], np.full(len(unit), 0.5))
    assert np.bincount(unit, weights=rows).tolist() == steps.tolist()


def test_rooms_are_attributes_of_the_package_before_anyone_imports_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in rw.MODULES:  # type: ignore[attr-defined]
        monkeypatch.delattr(rw, name, raising=False)
        assert getattr(rw, name).__name__ == f"recordwise.{name}"


def test_a_policy_of_nothing_does_not_make_the_epsilon_of_others_larger() -> None:
    assert Policy().near_gaussian
    assert (Policy() + constant(1, near_gaussian=True)).near_gaussian
    assert not (Policy() + constant(1)).near_gaussian


def test_a_parameter_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"--set year.*twice"):
        load_with_parameters(tmp_path / "plan.toml", ["year=2025", "year=2026"])


def test_values_without_an_error_keep_six_digits() -> None:
    shown = _to(None, 1, np.rint)(np.array([123456.7, 1.23456789, 0.00123456789]))
    assert shown.tolist() == [123457.0, 1.23457, 0.00123457]


@pytest.mark.parametrize("order", [1, -1])
def test_rounding_of_a_convolution_is_bounded_by_the_law_with_the_largest_masses(order: int) -> None:
    """The bound on what a Fourier transform loses grows with the largest norm of the laws, in whichever order they come."""
    sharp, flat = (0, np.array([1.0]), 1), (0, np.full(4096, 1 / 4096), 1)
    _, masses, lost = convolved([sharp, flat][::order], 0.1)
    assert masses.sum() == pytest.approx(1, abs=1e-9)
    # Twelve doublings, two laws, and a norm of 1 for the sharp one.
    assert lost >= 8 * (2 + 2) * 13 * 2.0**-53 * 64


def test_masses_between_grid_points_are_no_smaller_than_the_law_s() -> None:
    """All blocks together hold everything, rounded up by less than a twentieth."""
    number = ValueNumber(part=0, measure=PolicyMeasure("emp"), lattice=Fraction(1), exponent=(x / 30) ** Fraction(1, 2))
    _, masses = _fat_losses(number, 7)
    assert 1 <= masses.sum() < 1.05


@pytest.mark.parametrize(("low", "high", "reach"), [(7, 14, 4), (7, 13, 3), (6, 14, 4), (5, 14, 5), (4, 14, None)])
def test_a_window_is_stated_as_plus_or_minus_within_one_step_of_the_middle(
    low: int, high: int, reach: int | None
) -> None:
    window = ValueWindow(
        measure="emp",
        value=Fraction(10),
        low=Fraction(low),
        high=Fraction(high),
        step=Fraction(1),
        least=Fraction(0),
        confidence=0.95,
    )
    assert window.reach == reach


def test_no_records_lose_nothing() -> None:
    for step in (1, 2):
        measure = PolicyMeasure("emp", Fraction(step))
        policy = gaussian_sum(measure, sigma=5) + split(1, {measure: 10})
        assert policy.loss({"emp": []}).shape == (0,)


def test_constants_inside_and_and_or_are_found() -> None:
    county, state = ConditionColumn("county"), ConditionColumn("state")
    some = either(among(county, ["01"]), both(among(state, ["02"]), among(county, ["03"])))
    assert set(constants_of(constant(1).where(some), "county")) == {"01", "03"}


def test_the_ledger_s_file_is_complete_after_a_release(tmp_path: Path) -> None:
    """A copy of the file alone, made while the ledger is open, has every entry."""
    path = tmp_path / "own.ledger"
    with build.session(build.records(50), ledger=path, budget=build.generous()) as session:
        release = session.run(build.question())
        (tmp_path / "copy.ledger").write_bytes(path.read_bytes())
    with contextlib.closing(Ledger.existing(tmp_path / "copy.ledger")) as copied:
        assert release.head is not None
        assert copied.history()[-1].digest == release.head.digest


@pytest.mark.parametrize("scale", [1, 20, Fraction(1, 4)])
def test_what_an_attacker_learns_under_laplace_noise_follows_its_scale(scale: Fraction) -> None:
    (((_, atom), coefficient),) = laplace_sum("emp", scale=scale, grid=Fraction(1, 100)).rho.items()
    law = _law_of(atom, coefficient, {})
    assert law is not None
    assert (law["lattice"], law["exponent"]) == (Fraction(1, 100), x / Fraction(scale))


def test_bands_are_not_raised_where_a_plan_has_none() -> None:
    with build.session(build.records(5)) as session:
        plan = Plan(schema=session.schema, queries=(build.question(),))
    assert _raised_at(plan, {"emp": 1}) is None
    assert _raised_at(plan, None) is None


def test_the_memory_of_a_rehearsal_is_in_bytes() -> None:
    """A process that has imported numpy and DuckDB takes between 30 MB and a terabyte."""
    pytest.importorskip("resource")
    found = peak_memory()
    assert found is not None
    assert 30_000_000 < found < 10**12


@pytest.mark.parametrize("given", [None, [], ["county=walk.csv"], ["county=walk.csv", "naics=codes.csv"]])
def test_crosswalks_of_a_release_are_passed_on(given: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    class PassedOnError(Exception):
        pass

    def noted(file: object, crosswalk: list[str]) -> None:
        raise PassedOnError(file, crosswalk)

    monkeypatch.setattr(releasing, "load_with_parameters", lambda plan, given, **more: "plan")
    monkeypatch.setattr(releasing, "with_stage", lambda file, *given, **more: file)
    monkeypatch.setattr(releasing, "with_crosswalk", noted)
    with pytest.raises(PassedOnError) as found:
        releasing.release.__wrapped__(Path("plan.toml"), Path("out"), crosswalk=given)
    assert found.value.args == ("plan", given or [])


@pytest.mark.parametrize(
    ("text", "two_digits"),
    [("%d.%m.%Y", False), ("%d1x%m-%Y", True), ("%d-%mx1%Y", False), ("%Y-%m-%d1", True), ("%d x1 %m-%Y", False)],
)
def test_a_day_next_to_a_digit_has_two_digits(text: str, two_digits: bool) -> None:
    """Otherwise "111x" could be the 11th before "1x", or the 1st before "11x"."""
    written = text.replace("%d", "3").replace("%m", "04").replace("%Y", "2026")
    pattern = DateFormat(text).pattern().replace(r"\z", r"\Z")
    assert (re.match(pattern, written) is None) == two_digits
    assert re.match(pattern, written.replace("3", "03", 1))


def test_the_unit_of_a_published_name_comes_before_that_of_its_measure() -> None:
    words = Labels(units={"payroll": "million dollars", "pay": "dollars"})
    assert _unit(words, SimpleNamespace(alias="payroll", of="pay")) == " (million dollars)"
    assert _unit(words, SimpleNamespace(alias="other", of="pay")) == " (dollars)"
    assert _unit(words, SimpleNamespace(alias="other", of=None)) == ""


def test_a_function_in_a_file_may_be_nested_to_its_limit_and_no_deeper():
    def powers(levels: int) -> Any:
        return {"power": powers(levels - 1), "exponent": "1"} if levels else "x"

    assert functions.from_json(powers(2 * MOST_NESTED + 1)) == x
    with pytest.raises(RecordwiseError, match="too deeply nested"):
        functions.from_json(powers(2 * MOST_NESTED + 2))


def test_the_boxes_under_a_sum_reach_the_radius_beyond_all_of_its_points(monkeypatch: Any) -> None:
    boxes: list[Any] = []
    weights: Any = SimpleNamespace(holomorphic=lambda box: boxes.append(box) or acb(1))
    monkeypatch.setattr(probabilities, "_box_width", lambda *_: 70)
    assert float(probabilities._sup_integral(weights, 40, 400, 10)) == 360
    assert len(boxes) == 6
    for number, box in enumerate(boxes):
        start, end = 40 + 70 * number, min(400, 110 + 70 * number)
        assert all(box.real.contains(each) for each in (start - 10, end + 10))
        assert not any(box.real.contains(each) for each in (start - 12, end + 12))
        assert all(box.imag.contains(each) for each in (-10, 10))


@pytest.mark.parametrize("kind", [tuple, list, set, frozenset])
def test_what_has_no_stable_text_is_found_in_every_kind_of_collection(kind: Any) -> None:
    assert _unnamed_type(kind(["named", 3])) is None
    assert _unnamed_type(kind(["named", object()])) == "object"


def test_a_certified_loss_is_covered_by_the_simple_one_once() -> None:
    measure, simple = PolicyMeasure("emp"), Additive(PolicyMeasure("emp"), x, "tanh")
    steps = ((1, Fraction(1, 4)), (20, Fraction(5, 4)))
    assert ratio_upper(AdditiveTable(measure, x, steps), simple) == 1
    assert ratio_upper(CertifiedSum(measure, x, steps, Fraction(1)), simple) == 1
    assert ratio_upper(CertifiedSum(measure, x, steps, Fraction(0)), simple) is None


def test_a_column_is_a_place_if_it_is_the_states_or_has_the_states_among_its_levels() -> None:
    listed = {"county": SimpleNamespace(levels=("nation", "state")), "naics": SimpleNamespace(levels=("sector",))}
    view = SimpleNamespace(schema=SimpleNamespace(hierarchy=listed.get))
    case: Any = SimpleNamespace(state=SimpleNamespace(name="state"), view=view)
    assert [name for name in ("state", "county", "naics", "size") if _is_place(name, case)] == ["state", "county"]
    case.state = None
    assert not _is_place("state", case)


@pytest.mark.parametrize(("kind", "stays"), [("start", False), ("carry", True), ("revise", True)])
def test_the_page_states_the_loss_of_units_that_stay_where_a_release_follows_another(kind: str, stays: bool) -> None:
    step = SimpleNamespace(kind=kind, follows=4, staying=lambda: constant("0.25"))
    published: Any = SimpleNamespace(refinement=None, step=step, tier_of=None, follows=("abc",))
    told = _stages(published)
    assert [name.startswith("Loss of units that stay") for name in told] == [False, True][: 1 + stays]
    assert all("0.25" in text for name, text in told.items() if name.startswith("Loss"))


def test_the_confidence_of_the_parts_of_a_ratio_is_shared_by_the_longer_side_twice() -> None:
    ratio = Ratio.read("a + b + c", "n", alias="r")
    assert ratio.confidence_of_parts(0.94) == pytest.approx(0.99, abs=1e-12)
    assert Ratio.read("a", "n + m", alias="r").confidence_of_parts(0.9) == pytest.approx(0.975, abs=1e-12)


def test_a_change_under_carried_noise_has_the_fresh_noise_and_what_is_not_carried() -> None:
    carried = Carried(more=Gaussian(sigma=3), before=Gaussian(sigma=5), carry="0.8")
    assert carried.noise_variance == 25
    assert carried.change_part == pytest.approx((10 / 25) ** 0.5, rel=1e-12)


def released(step: str) -> Any:
    asked = rw.query().group_by("county", keys=build.COUNTIES).sum("emp", rw.Gaussian(sigma=4))
    with build.employers(build.records(), "county", measures={"emp": step}) as opened:
        return opened.run(asked)


def test_two_releases_share_a_lattice_only_if_steps_are_equal_and_each_answer_is_one_draw(monkeypatch: Any) -> None:
    whole, halves = released("1"), released("0.5")

    def shared(now: Any, before: Any) -> list[bool]:
        return [each.one_lattice for each in change._variables(now, before, now.tables[0], before.tables[0], 0.95)]

    assert shared(whole, whole) == [True]
    assert shared(whole, halves) == [False]
    monkeypatch.setattr(change, "_several", lambda _: True)
    assert shared(whole, whole) == [False]
    seen = iter([False, True])
    monkeypatch.setattr(change, "_several", lambda _: next(seen))
    assert shared(whole, whole) == [False]


@pytest.mark.parametrize("listed", [True, False])
def test_fitted_goals_need_complete_levels_unless_a_code_list_says_that_they_are(listed: bool) -> None:
    schema = Schema.of(
        unit="id", measures={"emp": 1}, columns={"county": "text"}, hierarchies=[build.places()] if listed else []
    )
    coarse = "state" if listed else rw.prefix("county", 2)
    asked = rw.query().group_by(keys=rw.Keys.product(county=["01001", "02013"])).levels(coarse, "county")
    goal: Any = SimpleNamespace(query=asked.sum("emp", rw.Gaussian(sigma=4)))
    shares._check(goal, schema, complete=True)
    with contextlib.nullcontext() if listed else pytest.raises(ParameterError, match="needs complete levels"):
        shares._check(goal, schema, complete=False)


@pytest.mark.parametrize(
    ("mechanism", "planned_as", "tables", "expected"),
    [
        (rw.Gaussian(sigma=3), "pay", 2, True),
        (rw.GeneralizedGaussian(scale=3, shape="0.5"), "emp", 1, True),
        (rw.GeneralizedGaussian(scale=3, shape="0.5"), COUNT, 1, True),
        (rw.GeneralizedGaussian(scale=3, shape="0.5"), "pay", 1, False),
        (rw.GeneralizedGaussian(scale=3, shape="0.5"), "emp", 2, False),
    ],
)
def test_fat_tailed_noise_is_scaled_where_its_measure_is_known_and_it_has_one_table(
    mechanism: Any, planned_as: Any, tables: int, expected: bool
) -> None:
    own = SimpleNamespace(mechanism=mechanism, planned_as=planned_as)
    plan: Any = SimpleNamespace(drawn=lambda _: own, queries=[SimpleNamespace(tables=lambda: [None] * tables)])
    assert reliable._can_be_scaled(plan, (0, "x"), {"emp": 1}) is expected
