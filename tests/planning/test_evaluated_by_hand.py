"""Evaluations, explanations and expected errors by hand: metrics, groups, means, baselines, classes, windows and words."""

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.disclosure.rules import PercentRule
from recordwise.errors import ParameterError
from recordwise.mechanisms.inference import ValueWindow
from recordwise.plan.expressions import Field, Prefix
from recordwise.plan.plan import Plan
from recordwise.plan.publication import Labels, StatusRules
from recordwise.plan.schema import Schema
from recordwise.planning.check import (
    EXAMPLE_SIZES,
    _example_amount,
    _parameter,
    _positive,
    _reference,
    _whole,
    error_text,
    expected_errors,
)
from recordwise.planning.explain import (
    Cells,
    Sample,
    _by_words,
    _from_size,
    _hardly,
    _records_word,
    _with_unit,
    and_list,
    called,
    class_ends,
    size_name,
    window_text,
)
from recordwise.planning.scope import TODAY
from recordwise.planning.simulate.baselines import (
    Disclosure,
    MultiplicativeNoise,
    at_cells,
    clamped,
    disclosure,
    published,
    read_rival,
)
from recordwise.planning.simulate.evaluate import (
    METRICS,
    EvaluatedGroup,
    Evaluation,
    _grouped,
    _means,
    _missing,
    by_words,
    column_of,
    labels_of,
    measured,
    read_metric,
    size_labels,
)
from recordwise.policy import constant, gaussian_sum
from recordwise.release.tables import ReleasedTable
from recordwise.session.owner import Contributors

# Metrics.


EXACT, PUBLISHED = np.array([10.0, 100.0, 0.0, -20.0]), np.array([11.0, 89.0, 3.0, -20.0])


@pytest.mark.parametrize(
    "name, expected",
    [
        ("relative_error", [0.1, 0.11, math.nan, 0.0]),
        ("absolute_error", [1.0, 11.0, 3.0, 0.0]),
        ("squared_error", [1.0, 121.0, 9.0, 0.0]),
        ("bias", [1.0, -11.0, 3.0, 0.0]),
        ("off_by_a_tenth", [0.0, 1.0, math.nan, 0.0]),
    ],
)
def test_metrics_are_functions_of_the_exact_and_the_published_value(name: str, expected: list[float]) -> None:
    np.testing.assert_allclose(METRICS[name](EXACT, PUBLISHED), expected)
    assert read_metric(name) == (name, METRICS[name])


def test_a_metric_is_taken_where_both_values_are_known() -> None:
    found = measured(METRICS["bias"], "bias", np.array([1.0, math.nan, 3.0]), np.array([2.0, 5.0, math.inf]))
    np.testing.assert_array_equal(found, [1.0, math.nan, math.nan])
    with pytest.raises(ParameterError, match="'own' failed with ZeroDivisionError"):
        measured(lambda exact, other: 1 / 0, "own", EXACT, PUBLISHED)
    with pytest.raises(ParameterError, match="does not return one number for each cell"):
        measured(lambda exact, other: exact[:1], "own", EXACT, PUBLISHED)
    with pytest.raises(ParameterError, match="is not known: 'rmse'"):
        read_metric("rmse")

    def own(exact: Any, other: Any) -> Any:
        return exact > other

    assert read_metric(own)[0] == "own"


# Groups of cells.


SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1},
    columns={"county": "text", "naics": "text"},
    hierarchies=[
        rw.Hierarchy.of(
            "place",
            {"state": ["1", "1", "2"], "county": ["a", "b", "c"]},
            levels=["state", "county"],
            source="public: x",
        )
    ],
)


def simulated(groups: tuple[Any, ...] = (), **columns: Any) -> Any:
    shape = SimpleNamespace(groups=groups)
    return SimpleNamespace(cells=pa.table(columns), table=SimpleNamespace(shape=shape), name="t", exact={})


def test_cells_are_grouped_by_a_column_a_level_a_prefix_a_function_or_not_at_all() -> None:
    table = simulated(county=["c", "a", "b", "a"])
    codes, names = labels_of(table, "county", SCHEMA)
    assert (codes.tolist(), names) == ([2, 0, 1, 0], ["a", "b", "c"])
    codes, names = labels_of(table, "state", SCHEMA)
    assert (codes.tolist(), names) == ([1, 0, 0, 0], ["1", "2"])
    codes, names = labels_of(table, lambda cells: [None, "x", "x", None], SCHEMA)
    assert (codes.tolist(), names) == ([0, 1, 1, 0], ["none", "x"])
    for by in (None, "size", "nothing"):
        codes, names = labels_of(table, by, SCHEMA)
        assert (codes.tolist(), names) == ([0] * 4, ["all cells"])
    codes, names = labels_of(simulated(), None, SCHEMA)
    assert (codes.tolist(), names) == ([0], ["all cells"])
    codes, names = labels_of(simulated(naics=["311", "322"]), Prefix("naics", 1), SCHEMA)
    assert (codes.tolist(), names) == ([0, 0], ["3"])
    assert column_of(table, Field("county"), SCHEMA).to_pylist() == ["c", "a", "b", "a"]
    group = SimpleNamespace(name="naics2", expression=Prefix("naics", 2))
    assert column_of(simulated((group,), naics2=["31"]), "naics", SCHEMA).to_pylist() == ["31"]
    with pytest.raises(ParameterError, match="does not return one label for each cell"):
        labels_of(table, lambda cells: ["x"], SCHEMA)
    assert [by_words(each) for each in (None, "size", "county", Prefix("naics", 2))] == [
        "group",
        "size class",
        "county",
        "naics2",
    ]


def test_classes_of_sizes_are_those_that_hold_cells() -> None:
    codes, names = size_labels(np.array([0.0, 5.0, -500.0, math.nan, 7.0]), "emp")
    assert (codes.tolist(), names) == ([0, 1, 2, 0, 1], ["emp 0", "emp 1 to below 10", "emp from 100"])
    codes, names = size_labels(np.zeros(2), "emp")
    assert (codes.tolist(), names) == ([0, 0], ["emp 0"])


def test_means_are_over_cells_and_draws_that_have_a_number() -> None:
    draws = [np.array([1.0, math.nan, 5.0, math.nan]), np.array([3.0, 4.0, math.nan, math.nan])]
    np.testing.assert_allclose(_means(draws, np.array([0, 0, 1, 2]), 3), [8 / 3, 5.0, math.nan])


def test_cells_are_withheld_where_they_could_have_been_published() -> None:
    nan = math.nan
    drawn = [np.array([1.0, nan, nan, nan])]
    possible = [np.array([0.0, 0.0, 0.0, nan])]
    codes, weight = np.array([0, 0, 1, 1]), np.array([30.0, 10.0, 5.0, 7.0])
    assert _missing(drawn, possible, codes, 3, np.ones(4)).tolist() == [0.5, 1.0, 0.0]
    assert _missing(drawn, possible, codes, 3, weight).tolist() == [0.25, 1.0, 0.0]
    twice = _missing([*drawn, np.zeros(4)], possible * 2, codes, 3, np.ones(4))
    assert twice.tolist() == [0.25, 0.5, 0.0]


def test_what_each_stage_adds_adds_up_to_the_metric() -> None:
    table = simulated(county=["a", "b", "a"])
    table.exact = {"n": np.array([100.0, 50.0, 100.0])}
    case: Any = SimpleNamespace(tables=[table])
    stages = {
        "possible": np.zeros(3),
        "no error": np.array([0.0, 0.0, math.nan]),
        "clamping": np.array([2.0, 1.0, math.nan]),
        "noise": np.array([7.0, 4.0, math.nan]),
        "post-processing": np.array([5.0, 4.0, math.nan]),
    }
    labels = {"t": (np.array([0, 1, 0]), ["a", "b"])}
    one, two = _grouped(case, ("t", "n"), "own", [stages], labels, "county")
    assert one.sources == {"clamping": 2.0, "noise": 5.0, "post-processing": -2.0}
    assert (one.value, one.cells, one.withheld, one.withheld_total, one.name) == (5.0, 2, 0.5, 0.5, "own")
    assert two.sources == {"clamping": 1.0, "noise": 3.0, "post-processing": 0.0}
    biased = stages | {"no error": np.array([1.0, 0.0, math.nan])}
    (first, _) = _grouped(case, ("t", "n"), "own", [biased], labels, "county")
    assert first.sources == {"no error": 1.0, "clamping": 1.0, "noise": 5.0, "post-processing": -2.0}
    sized = _grouped(case, ("t", "n"), "own", [stages], labels, "size")
    assert [(each.group, each.cells) for each in sized] == [("n 10 to below 100", 1), ("n from 100", 2)]


def group(name: str, label: str, value: float, **more: Any) -> EvaluatedGroup:
    given: dict[str, Any] = {
        "table": "t",
        "variable": "n",
        "cells": 1234,
        "withheld": 0.0,
        "withheld_total": 0.0,
    } | more
    return EvaluatedGroup(group=label, name=name, value=value, **given)


def test_an_evaluation_is_shown_group_by_group_with_rivals_and_stages() -> None:
    found = Evaluation(
        metric="bias",
        by="county",
        data="synthetic",
        draws=3,
        groups=(
            group(TODAY, "a", 1.5, sources={"noise": 1.5}),
            group(TODAY, "b", math.nan, sources={}),
            group("rule", "a", 0.5, withheld=0.25),
        ),
    )
    headers, rows = found.rows()
    assert headers == ["table", "variable", "county", "cells", TODAY, "rule", "rule: withheld", "of it noise"]
    assert rows[0] == ["t", "n", "a", "1,234", "1.5", "0.5", "25.0%", "1.5"]
    assert rows[1][2:4] == ["b", "1,234"]
    assert rows[1][5:] == ["", "", "0"]
    assert found.names == (TODAY, "rule")
    assert found.places() == (("t", "n"),)
    assert found.groups[1].to_json()["value"] is None
    with pytest.raises(ParameterError, match="is not among those that were evaluated"):
        found.plot("other")


# Baselines.


def contributors() -> Contributors:
    held = {
        "number": np.array([3, 1, 0, 2]),
        "total": np.array([100.0, 40.0, 0.0, 60.0]),
        "largest": np.array([50.0, 40.0, 0.0, 59.0]),
        "second": np.array([30.0, 0.0, 0.0, 1.0]),
        "squares": np.array([3800.0, 1600.0, 0.0, 3482.0]),
    }
    return Contributors(**held)


def test_traditional_rules_withhold_dominated_cells_and_distort_by_their_squares() -> None:
    noise = MultiplicativeNoise("0.1", "0.2")
    spread = (0.01 + 0.02 + 0.04) / 3
    expected = [math.sqrt(spread * s) / t for s, t in ((3800, 100), (1600, 40), (3482, 60))]
    assert noise.relative_deviations(contributors()) == pytest.approx(expected)
    found = disclosure(contributors(), PercentRule(15), noise)
    # A cell is withheld where what remains of the others is below 15 % of the largest.
    assert (found.cells, found.withheld, found.lone) == (3, 2, 1)
    assert found.withheld_value == pytest.approx(0.5)
    assert found.withheld_cells == pytest.approx(2 / 3)
    assert found.median_deviation == pytest.approx(float(np.median(expected)))
    assert found.p90_deviation == pytest.approx(float(np.quantile(expected, 0.9)))
    assert found.distorted == 1.0
    assert (found.percent, found.low, found.high) == (15.0, 0.1, 0.2)
    nobody = Contributors(**{name: np.zeros(1) for name in ("number", "total", "largest", "second", "squares")})
    empty = disclosure(nobody, PercentRule(15), noise)
    assert (empty.cells, empty.withheld_cells, empty.median_deviation, empty.withheld_value) == (0, 0.0, 0.0, 0.0)
    assert isinstance(empty, Disclosure)


@pytest.mark.parametrize(
    "low, high, accepted", [("0.1", "0.1", True), ("0.2", "0.1", False), ("0.1", 1, False), ("0.1", "0.99", True)]
)
def test_multiplicative_noise_is_between_two_parts_of_one(low: Any, high: Any, accepted: bool) -> None:
    if accepted:
        assert MultiplicativeNoise(low, high).low == Fraction(low)
    else:
        with pytest.raises(ParameterError, match="must satisfy low <= high < 1"):
            MultiplicativeNoise(low, high)
    assert (MultiplicativeNoise().low, MultiplicativeNoise().high) == (Fraction(1, 10), Fraction(1, 5))


def released(research: dict[str, Any], basic: dict[str, Any] | None = None) -> Any:
    tables = (ReleasedTable(name="t", keys=("k",), variables=("n",), data=pa.table(research)),)
    other = (
        () if basic is None else (ReleasedTable(name="t_basic", keys=("k",), variables=("n",), data=pa.table(basic)),)
    )
    return SimpleNamespace(tables=tables, basic_tables=other)


def test_published_values_are_the_basic_the_fitted_or_the_drawn_ones_at_the_cells_of_the_plan() -> None:
    table = simulated(k=["a", "b", "c"])
    drawn = {"k": ["a", "b", "c"], "n": [1.0, 2.0, None]}
    np.testing.assert_array_equal(published(released(drawn), table, "n"), [1.0, 2.0, math.nan])
    fitted = drawn | {"n_fit": [5.0, 6.0, 7.0]}
    assert published(released(fitted), table, "n").tolist() == [5.0, 6.0, 7.0]
    basic = {"k": ["a", "b", "c"], "n": [8, 9, None]}
    np.testing.assert_array_equal(published(released(fitted, basic), table, "n"), [8.0, 9.0, math.nan])
    other = released({"k": ["c", "a"], "n": [3.0, 1.0]})
    np.testing.assert_array_equal(published(other, table, "n"), [1.0, math.nan, 3.0])
    assert np.isnan(published(other, table, "m")).tolist() == [True] * 3
    assert np.isnan(published(SimpleNamespace(tables=(), basic_tables=()), simulated(), "m")).tolist() == [True]  # type: ignore[arg-type]
    assert at_cells(table, pa.table({"k": ["c", "a"]}), np.array([3.0, 1.0])).tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(ParameterError, match="is neither a plan, a release"):
        read_rival("x", 3, None, None)  # type: ignore[arg-type]


def test_a_clamped_plan_has_the_same_names_and_needs_a_bound_for_each_sum() -> None:
    asked = rw.query().count(rw.Gaussian(rho=2), alias="n").sum("emp", rw.UnitSplit(at=5, rho=1), alias="jobs")
    (made,) = clamped(asked, to={"emp": 50}, rho="0.5")
    assert [(each.alias, type(each.mechanism).__name__) for each in made.draws()] == [
        ("n", "Gaussian"),
        ("jobs", "Clamped"),
    ]
    assert made.draws()[1].mechanism.to == 50
    assert float(made.draws()[0].mechanism.noise_sigma) == 1.0
    with pytest.raises(ParameterError, match="has no bound for 'emp'"):
        clamped(asked, to={"pay": 50}, rho="0.5")


# Explanations.


@pytest.mark.parametrize(
    "values, ends",
    [
        ([], []),
        ([0.0, -1.0], []),
        ([5.0] * 300, []),
        ([1.0, 50.0, 500.0] * 100, [10.0, 100.0]),
        ([1e-3, 1e6] * 100, [1000.0, 10_000.0, 100_000.0, 1e6]),
        ([1.0] * 99 + [1e5], [10.0, 100.0, 1000.0, 10_000.0]),
        ([1.0] * 999 + [1e5], []),
    ],
)
def test_at_most_five_classes_end_at_powers_of_ten(values: list[float], ends: list[float]) -> None:
    assert class_ends(np.array(values)) == pytest.approx(ends)


def test_classes_are_said_in_words() -> None:
    assert size_name([], 0) == "all"
    assert size_name([10.0, 100.0], 0) == "below 10"
    assert size_name([10.0, 100.0], 1) == "10 to 99"
    assert size_name([10.0, 100.0], 2) == "100 or more"
    assert size_name([0.1, 1.0, 10.0], 1) == "0.1 to below 1"
    assert size_name([0.1, 1.0, 10.0], 2) == "1 to 9"


def window(low: Any, high: Any, value: Any = 100, least: Any = 0) -> ValueWindow:
    return ValueWindow(
        measure="emp",
        value=Fraction(value),
        low=Fraction(low),
        high=None if high is None else Fraction(high),
        step=Fraction(1),
        least=Fraction(least),
        confidence=0.95,
    )


def test_how_closely_a_value_can_be_told_is_said_in_words() -> None:
    assert window_text(window(0, None)) == "not at all"
    assert window_text(window(100, 100)) == "exactly"
    assert window_text(window(50, None)) == "as 50 or more"
    assert window_text(window(90, 120)) == "within 20%"
    assert window_text(window(70, 120)) == "within 30%"
    assert window_text(window(1, 200)) == "as 1 to 200"
    assert window_text(window(1, 199)) == "within 99%"
    assert window_text(window(0, 5, value=0)) == "as 0 to 5"


def sample(sizes: list[float], weights: list[float], losses: list[float], measure: str | None = "emp") -> Sample:
    return Sample(
        policy=gaussian_sum("emp", sigma=1),
        columns={"emp": np.array(sizes)} if measure else {},
        weights=np.array(weights),
        losses=np.array(losses),
        deltas=np.zeros(len(sizes)),
        measure=measure,
        number=float(sum(weights)),
    )


def test_records_are_hardly_protected_from_the_size_on_where_most_lose_more_than_five() -> None:
    own = sample([1.0, 10.0, 100.0, 1000.0], [60.0, 30.0, 8.0, 2.0], [0.1, 1.0, 6.0, 50.0])
    # From 1,000 down: 2 of 2, 10 of 10, 10 of 40, 10 of 100.
    assert _from_size(own) == 100.0
    text = _hardly(own, "firms", Labels(labels={"emp": "jobs"}))
    assert text.startswith("10% of the firms, and most of those with 100 jobs or more: a test finds them")
    none = sample([1.0, 2.0], [1.0, 1.0], [5.0, 0.1])
    assert _hardly(none, "firms", Labels()).startswith("None of these firms: a test finds none")
    assert _from_size(none) is None
    assert _from_size(sample([1.0], [1.0], [9.0], None)) is None
    half = sample([10.0, 1.0], [1.0, 1.0], [6.0, 0.1])
    assert _from_size(half) == 10.0
    assert own.share(np.array([1, 2])) == pytest.approx(0.38)
    assert own.middle(np.array([0, 1, 2, 3])) == 0
    assert own.middle(np.array([1, 2, 3])) == 1
    assert own.middle(np.array([2, 3])) == 2
    assert own.median(own.losses) == 0.1
    assert own.balanced(own.losses) == pytest.approx(math.sqrt(0.1 * 50.0))
    assert own.sizes().tolist() == [1.0, 10.0, 100.0, 1000.0]
    assert sample([1.0, 2.0], [1.0, 1.0], [0.0, 0.0], None).sizes().tolist() == [1.0, 1.0]
    assert own.record(2) == {"emp": 100.0}
    assert own.evaluated(constant(3).loss).tolist() == [3.0] * 4


def test_cells_have_the_status_of_their_relative_error_and_a_limit_is_still_within() -> None:
    cells = Cells(scalable=None, rules=StatusRules(), sources=())  # type: ignore[arg-type]
    found = cells.status("x", np.array([0.1, 0.165, 0.1651, 0.333, 0.334]))
    assert (found.name, found.cells) == ("x", 5)
    assert found.shares == pytest.approx((0.4, 0.4, 0.2))


def test_lists_and_names_are_said_as_readers_do() -> None:
    assert [and_list(each) for each in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    words = Labels(labels={"emp": "Jobs", "count": "Firms"}, units={"emp": "persons", "pay": "PAY", "tax": "dollars"})
    assert _records_word(words) == "firms"
    assert _records_word(Labels()) == "records"
    assert (_with_unit(words, "emp"), _with_unit(words, "pay"), _with_unit(words, "x")) == (
        "Jobs (persons)",
        "pay",
        "x",
    )
    assert called(Labels(), SimpleNamespace(alias="sum_emp", of="emp")) == "emp"
    assert called(Labels(), SimpleNamespace(alias="n", of=None)) == "n"
    assert called(words, SimpleNamespace(alias="sum_emp", of="emp")) == "Jobs"
    plain = Labels()
    assert _by_words([("a",), ()], plain) == "by a; in total"
    assert _by_words([("a", "b"), ("a", "c"), ("d", "b"), ("d", "c")], plain) == "by a and d, each by b and c"
    assert _by_words([("a", "b"), ("a", "c"), ("d", "b")], plain) == "by a and b; by a and c; by d and b"
    assert _by_words([("a", "b"), ("a", "c"), ("d", "b"), ("e", "c")], plain).startswith("by a and b; by a and c")


# Expected errors.


def test_errors_are_said_with_their_share_unless_it_is_next_to_nothing() -> None:
    assert error_text(200.0, 10.0, 10.0) == "200 ± 10 (5.0%)"
    assert error_text(200.0, 10.0, 20.0) == "200 ± 10 to 20 (10%)"
    assert error_text(-200.0, 10.0, 10.0) == "-200 ± 10 (5.0%)"
    assert error_text(0.0, 10.0, 10.0) == "0 ± 10"
    assert not error_text(20_000.0, 10.0, 10.0).endswith("(< 0.1%)")
    assert error_text(20_001.0, 10.0, 10.0).endswith("(< 0.1%)")


def plan(query: Any, **measures: Any) -> Plan:
    return Plan(
        schema=Schema.of(unit="id", measures=measures or {"emp": 1}, columns={"county": "text"}), queries=(query,)
    )


def test_examples_are_multiples_of_a_threshold_on_the_lattice_and_within_the_bound() -> None:
    own = plan(rw.query().sum("emp", rw.UnitSplit(at=50, rho=1)))
    assert {name: _example_amount(own, "emp", factor) for name, factor in EXAMPLE_SIZES.items()} == {
        "small": 5,
        "usual large": 50,
        "very large": 500,
        "huge": 5000,
        "giant": 50_000,
    }
    bounded = plan(rw.query().sum("emp", rw.UnitSplit(at=50, rho=1)), emp=rw.Measure.of("emp", step=4, bound=400))
    amounts = [_example_amount(bounded, "emp", factor) for factor in EXAMPLE_SIZES.values()]
    assert amounts == [8, 52, 400, 400, 400]
    tiny = plan(rw.query().sum("emp", rw.UnitSplit(at=2, rho=1)))
    assert _example_amount(tiny, "emp", Fraction(1, 100)) == 1
    unknown = plan(rw.query().count(rw.Gaussian(rho=1)))
    assert _example_amount(unknown, "other", Fraction(1)) == 100
    (declared,) = unknown.schema.record_measures()
    assert _reference(unknown, declared) == 100
    for mechanism, expected in (
        (rw.Clamped(to=7, rho=1), 7),
        (rw.LogTransform(offset=9, sigma="0.1"), 9),
        (rw.GeneralizedGaussian(shape=1, scale=3), 3),
        (rw.Gaussian(sigma=3), None),
    ):
        assert _parameter(mechanism, own, "emp") == expected


def test_totals_are_whole_steps_of_positive_sizes() -> None:
    assert _positive(np.array([-1.0, 0.0])) is None
    found = _positive(np.array([-1.0, 0.0, 2.0]))
    assert found is not None
    assert found.tolist() == [2.0]
    own = plan(rw.query().sum("emp", rw.Gaussian(sigma=1)), emp=rw.Measure.of("emp", step=4))
    (part,) = own.queries[0].draws()
    assert _whole(np.array([0.1, 5.9, 6.1, 101.0]), part, own).tolist() == [4.0, 4.0, 8.0, 100.0]


def test_expected_errors_are_at_percentiles_of_public_sizes_and_those_of_other_statistics_follow() -> None:
    counts = [float(each) for each in range(1, 102)]
    keys = rw.Keys.of(
        {"county": [f"{at:03d}" for at in range(101)], "count": counts}, size={"count": "count"}, sized_on="public: x"
    )
    asked = rw.query().group_by("county", keys=keys).count(rw.Gaussian(sigma=3)).sum("emp", rw.Gaussian(sigma=9))
    found = {each.variable: each for each in expected_errors(plan(asked), examples={"a": {"emp": 20}})}
    assert found["count"].totals == (11.0, 51.0, 91.0)
    assert found["count"].source == "public sizes"
    assert found["count"].most_sd == pytest.approx((3.0,) * 3)
    assert found["sum_emp"].totals == (220.0, 1020.0, 1820.0)
    assert found["sum_emp"].source == "as many usual records as the public sizes stand for"
    assert found["sum_emp"].usual == {"emp": pytest.approx(20.0)}
    assert found["sum_emp"].cells == 101
