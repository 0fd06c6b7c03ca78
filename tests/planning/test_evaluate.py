"""Evaluations: any metric by any public column, parts that add up, and baselines that are really drawn."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from build import employers
from recordwise.engines.owner import OwnerPasses
from recordwise.errors import ParameterError
from recordwise.plan.plan import Sensitive
from recordwise.planning import MultiplicativeNoise, PercentRule, clamped, evaluate
from recordwise.planning.scope import TODAY
from recordwise.planning.simulate.baselines import Multiplied

COUNTIES = ["01001", "01003", "02013", "02016", "13001"]
STATES = {"county": COUNTIES, "state": ["01", "01", "02", "02", "13"], "nation": ["US"] * 5}
EMP = {"01001": [4, 20, 900], "01003": [1, 2], "02013": [50, 60, 70, 80], "02016": [3], "13001": []}
TOTALS = {county: sum(values) for county, values in EMP.items()}


def records() -> dict[str, Any]:
    rows = [(county, value) for county, values in EMP.items() for value in values]
    return {
        "id": list(range(len(rows))),
        "county": [county for county, _ in rows],
        "emp": [value for _, value in rows],
        "pay": [40 * value + 1 for _, value in rows],
    }


@pytest.fixture(scope="module")
def session() -> Iterator[rw.Session]:
    listed = rw.Hierarchy.of("place", STATES, levels=["nation", "state", "county"], source="public: counties")
    with employers(records(), "county", measures={"emp": 1, "pay": 1}, hierarchies=[listed]) as opened:
        yield opened


SHAPE = rw.query().group_by("county", keys=rw.Keys.of({"county": COUNTIES}))
NEARLY_EXACT = rw.Gaussian(sigma="0.001")


@pytest.mark.costly
def test_parts_add_up_to_the_metric_of_every_group_whatever_the_metric(session: rw.Session) -> None:
    def quality(exact: Any, published: Any) -> Any:
        """1 for an exact value, down to 0; neither linear nor 0 without error."""
        return np.exp(-np.abs(published - exact) / (1 + exact))

    query = SHAPE.count(rw.Gaussian(rho=1)).sum("emp", rw.Clamped(to=100, rho=1)).sum("pay", rw.UnitSplit(at=50, rho=1))
    query = query.ratio("pay", "emp", alias="wage")
    found = evaluate(
        session,
        query,
        metric=quality,
        by="state",
        baselines={"other": SHAPE.count(rw.Gaussian(rho=2)), "ezs": MultiplicativeNoise()},
        fit=lambda release: release.consistent(complete=True, draws=40),
        draws=5,
        data="synthetic",
    )
    assert {each.variable for each in found.groups} == {"count", "sum_emp", "sum_pay", "wage"}
    assert {each.group for each in found.groups} == {"01", "02", "13"}
    for each in found.groups:
        if not math.isnan(each.value):
            assert sum(each.sources.values()) == pytest.approx(each.value, abs=1e-12)
            assert each.sources["no error"] == pytest.approx(1)
    stages = {name for each in found.groups for name, part in each.sources.items() if part}
    assert stages == {"no error", "clamping", "noise", "post-processing"}


def test_clamping_alone_is_what_clamping_cuts_off(session: rw.Session) -> None:
    """With next to no noise, the error is the part of each total above the bound, and all of it is called clamping."""
    query = SHAPE.sum("emp", rw.Clamped(to=100, rho=10**9))
    found = evaluate(session, query, metric="bias", by="county", draws=2, data="synthetic").at("county", "sum_emp")
    for county, values in EMP.items():
        cut = sum(min(value, 100) for value in values) - TOTALS[county]
        assert found[county].sources["clamping"] == cut
        assert found[county].value == pytest.approx(cut, abs=0.1)
        assert found[county].sources["key selection"] == 0


def test_averages_ratios_and_quantiles_are_held_against_those_of_the_records(session: rw.Session) -> None:
    """With next to no noise: averages and ratios are exact, and a median is on its grid, which is told as clamping."""
    query = (
        SHAPE.count(NEARLY_EXACT)
        .sum("emp", NEARLY_EXACT)
        .avg("emp", sum=NEARLY_EXACT)
        .ratio("sum_emp", "count", alias="each")
        .quantile("emp", p="0.5", grid=rw.mechanisms.Grid.linear(0, 60, bits=2), rho=10**9)
    )
    found = evaluate(session, query, metric=lambda exact, published: published, by="county", draws=1, data="synthetic")
    for county, values in EMP.items():
        for name in ("avg_emp", "each"):
            value = found.at("county", name)[county].value
            assert math.isnan(value) if not values else value == pytest.approx(np.mean(values), abs=0.01)
        median = found.at("county", "median_emp")[county]
        if values:
            exact = np.quantile(values, 0.5, method="inverted_cdf")
            point = 20 * math.ceil(exact / 20)
            assert median.sources["no error"] == exact
            assert (median.value, median.sources["clamping"]) == (point, point - exact)
        else:
            assert math.isnan(median.value)


def test_without_clamping_or_selection_all_error_is_noise(session: rw.Session) -> None:
    found = evaluate(session, SHAPE.sum("emp", rw.UnitSplit(at=50, rho=1)), metric="squared_error", data="synthetic")
    (group,) = found.at("county", "sum_emp").values()
    assert group.sources["noise"] == group.value > 0
    assert {name for name, part in group.sources.items() if part} == {"noise"}


def test_cells_that_are_not_selected_count_as_zero(session: rw.Session) -> None:
    selected = rw.query().group_by("county", keys=rw.Keys.select(rho=50, delta="1e-9")).sum("emp", NEARLY_EXACT)
    found = evaluate(session, selected, metric="absolute_error", by="county", draws=3, data="synthetic")
    groups = found.at("county", "sum_emp")
    assert set(groups) == {county for county, values in EMP.items() if values}
    # One record never reaches the threshold of that delta; four do, up to the tail of the noise.
    alone, four = groups["02016"], groups["02013"]
    assert alone.sources["key selection"] == alone.value == TOTALS["02016"]
    assert four.sources["key selection"] == 0


def test_post_processing_helps_where_cells_are_empty(session: rw.Session) -> None:
    query = SHAPE.sum("emp", rw.Gaussian(sigma=30))
    found = evaluate(
        session,
        query,
        metric="absolute_error",
        by="county",
        fit=lambda release: release.consistent(draws=40),
        draws=40,
        data="synthetic",
    )
    empty = found.at("county", "sum_emp")["13001"]
    # Half of the noise on an empty cell is negative and becomes 0; the draws are seeded.
    assert empty.sources["post-processing"] < -0.2 * empty.sources["noise"]


MANY = [f"{number:05d}" for number in range(3_000)]


@pytest.fixture(scope="module")
def many() -> Iterator[rw.Session]:
    """Three records in each of many counties."""
    table = {"id": list(range(9_000)), "county": MANY * 3, "emp": [3] * 3_000 + [10] * 3_000 + [40] * 3_000}
    with employers(table, "county") as opened:
        yield opened


WIDE = rw.query().group_by("county", keys=rw.Keys.of({"county": MANY}))


def test_the_mean_absolute_error_is_that_of_the_noise_law(many: rw.Session) -> None:
    """Discrete Gaussian noise of sigma 30: the mean is sigma times the root of 2/pi, within five standard errors."""
    query = WIDE.sum("emp", rw.Gaussian(sigma=30))
    (group,) = evaluate(many, query, metric="absolute_error", draws=2, data="synthetic").groups
    expected, error = 30 * math.sqrt(2 / math.pi), 30 * math.sqrt(1 - 2 / math.pi) / math.sqrt(6_000)
    assert abs(group.value - expected) < 5 * error
    assert abs(group.value - 1.05 * expected) > error, "an error of 5% in sigma would be seen"


def test_multiplicative_noise_is_drawn_as_its_formula_says(many: rw.Session) -> None:
    """The variance of a total is the sum of squares times E u^2: within five standard errors, and not that of u = low."""
    noise, query = MultiplicativeNoise("0.1", "0.3"), WIDE.sum("emp", NEARLY_EXACT)
    found = evaluate(many, query, metric="squared_error", baselines={"ezs": noise}, draws=2, data="synthetic")
    value, squares = found.at("county", "sum_emp", "ezs")["all cells"].value, 3**2 + 10**2 + 40**2
    variance = squares * (0.1**2 + 0.1 * 0.3 + 0.3**2) / 3
    # The square of an error of which one part dominates varies by less than its mean.
    assert abs(value - variance) < 5 * variance / math.sqrt(6_000)
    assert value > 3 * squares * 0.1**2
    mean = evaluate(many, query, metric="bias", baselines={"ezs": noise}, draws=2, data="synthetic")
    assert abs(mean.at("county", "sum_emp", "ezs")["all cells"].value) < 5 * math.sqrt(variance / 6_000)


def test_multipliers_are_between_the_stated_ends(session: rw.Session) -> None:
    def ratio(exact: Any, published: Any) -> Any:
        return np.where(exact == 3, np.abs(published / 3 - 1), np.nan)

    found = evaluate(
        session,
        SHAPE.sum("emp", NEARLY_EXACT),
        metric=ratio,
        baselines={"ezs": MultiplicativeNoise()},
        data="synthetic",
    )
    assert 0.1 < found.at("county", "sum_emp", "ezs")["all cells"].value < 0.2


def test_a_percent_rule_withholds_the_cells_it_names(session: rw.Session) -> None:
    query = SHAPE.count(NEARLY_EXACT).sum("emp", NEARLY_EXACT)
    found = evaluate(session, query, by="county", baselines={"p%": PercentRule(10)}, draws=1, data="synthetic")
    groups = found.at("county", "sum_emp", "p%")
    # The rest beside the two largest is below a tenth of the largest in these; 13001 has no contributor and no relative error.
    assert {county for county, each in groups.items() if each.withheld} == {"01001", "01003", "02016"}
    assert groups["02013"].value == 0
    assert math.isnan(groups["01001"].value)
    assert not found.at("county", "count", "p%")
    assert "p%: withheld" in found.rows()[0]


def test_clamped_zcdp_and_an_earlier_release_are_baselines(session: rw.Session) -> None:
    query = SHAPE.count(rw.Gaussian(rho=1)).sum("emp", rw.UnitSplit(at=50, rho=1))
    last = session.run(SHAPE.sum("emp", rw.Gaussian(sigma="0.01")), rng=rw.noise.Seeded(1))
    baselines = {"zCDP": clamped([query], to={"emp": 100}, rho=10**9), "last year": last}
    found = evaluate(session, query, metric="bias", by="county", baselines=baselines, draws=2, data="synthetic")
    assert found.names == (TODAY, "zCDP", "last year")
    assert found.at("county", "sum_emp", "zCDP")["01001"].value == pytest.approx(124 - 924, abs=0.1)
    assert found.at("county", "sum_emp", "last year")["01001"].value == pytest.approx(0, abs=1)
    assert set(found.at("county", "count", "zCDP")) == set(COUNTIES)
    with pytest.raises(ParameterError, match="has no bound for 'emp'"):
        clamped([query], to={}, rho=1)


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        (None, {"all cells"}),
        ("state", {"01", "02", "13"}),
        ("nation", {"US"}),
        (rw.prefix("county", 2), {"01", "02", "13"}),
        (lambda cells: [value[-1] for value in cells.column("county").to_pylist()], {"1", "3", "6"}),
        ("size", {"sum_emp 0", "sum_emp 1 to below 10", "sum_emp from 100"}),
        ("colour", {"all cells"}),
    ],
)
def test_cells_are_grouped_by_anything_public(session: rw.Session, by: Any, groups: set[str]) -> None:
    found = evaluate(session, SHAPE.sum("emp", NEARLY_EXACT), metric="bias", by=by, draws=1, data="synthetic")
    assert set(found.at("county", "sum_emp")) == groups
    assert sum(each.cells for each in found.groups) == 5


def test_levels_and_totals_are_evaluated_each_in_its_own_table(session: rw.Session) -> None:
    keys = rw.Keys.of({"county": COUNTIES, "state": STATES["state"]})
    query = rw.query().levels("state", "county", keys=keys).sum("emp", NEARLY_EXACT).named("places")
    total = rw.query().sum("emp", NEARLY_EXACT).named("total")
    found = evaluate(session, [query, total], metric="absolute_error", by="state", draws=1, data="synthetic")
    assert {table for table, _ in found.places()} == {"places_state", "places_county", "total"}
    assert set(found.at("places_state", "sum_emp")) == {"01", "02", "13"}
    assert set(found.at("total", "sum_emp")) == {"all cells"}
    only = evaluate(session, [query, total], tables=["total"], draws=1, data="synthetic")
    assert {table for table, _ in only.places()} == {"total"}


def test_confidential_records_mark_the_session_and_the_result() -> None:
    with employers(records(), "county", measures={"emp": 1, "pay": 1}) as opened:
        found = evaluate(opened, SHAPE.sum("emp", NEARLY_EXACT), draws=1)
        assert found.privacy_label.startswith("CONFIDENTIAL")
        assert "looked" in [event.kind for event in opened.history()]
        evaluate(opened, SHAPE.sum("emp", NEARLY_EXACT), draws=1, data="synthetic")
        assert [event.kind for event in opened.history()].count("charged") == 0
    assert "CONFIDENTIAL" in found._repr_html_()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metric": "beauty"}, "is not known: 'beauty'"),
        ({"metric": lambda exact, published: exact[:1]}, "does not return one number for each cell"),
        ({"metric": lambda exact, published: 1 / 0}, "failed with ZeroDivisionError"),
        ({"draws": 0}, "draws must be a whole number"),
        ({"statistics": ["sum_pay"]}, "has none of the name 'sum_pay'"),
        ({"tables": ["state"]}, "has none of the name 'state'"),
        ({"baselines": {"x": 3}}, "is neither a plan, a release"),
        ({"by": lambda cells: [1]}, "one label for each cell"),
        ({"data": "secret"}, "data must be one of"),
    ],
)
def test_bad_arguments_are_refused(session: rw.Session, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        evaluate(session, SHAPE.sum("emp", NEARLY_EXACT), **{"data": "synthetic", "draws": 1} | given)


def test_a_failing_metric_quotes_no_cell(session: rw.Session) -> None:
    def failing(exact: Any, published: Any) -> Any:
        raise ValueError(f"{exact}")

    with pytest.raises(ParameterError) as caught:
        evaluate(session, SHAPE.sum("emp", NEARLY_EXACT), metric=failing, data="synthetic")
    assert "924" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.costly
def test_a_figure_has_labelled_axes_and_bars_that_end_at_the_dots(session: rw.Session) -> None:
    query = SHAPE.sum("emp", rw.Clamped(to=100, rho=1))
    found = evaluate(session, query, metric="absolute_error", by="state", draws=3, data="synthetic")
    figure = found.plot()
    left, right = figure.axes
    assert left.get_xlabel() == "mean absolute error"
    assert left.get_ylabel() == "state"
    assert right.get_xlabel() == "what each stage adds to the plan's mean absolute error"
    dots = left.lines[0].get_xdata()
    ends = np.zeros(3)
    for bars in right.containers:
        ends += [bar.get_width() for bar in bars]
    assert ends == pytest.approx(np.asarray(dots, float))
    with pytest.raises(ParameterError, match="not among those"):
        found.plot("county", "count")


def test_signed_measures_have_no_multiplicative_noise() -> None:
    table = {"id": [1, 2], "county": ["01001", "01001"], "profit": [-50, 20]}
    measure = rw.Measure.of("profit", bound=1000, signed=True)
    with employers(table, "county", measures={"profit": measure}) as opened:
        query = SHAPE.sum("profit", rw.RootTransform(degree=2, offset=10, sigma="0.0001", signed=True))
        given: dict[str, Any] = {"metric": "bias", "by": "county", "draws": 1, "data": "synthetic"}
        found = evaluate(opened, query, baselines={"ezs": MultiplicativeNoise()}, **given)
    assert found.names == (TODAY,)
    assert found.at("county", "sum_profit")["01001"].value == pytest.approx(0, abs=0.1)


def test_records_repeat_in_the_multipliers_only_by_chance(session: rw.Session) -> None:
    """Contributions that are equal are multiplied each by its own number."""
    assert Multiplied(MultiplicativeNoise()).noise.low == pytest.approx(0.1)
    table = {"id": list(range(200)), "county": ["01001"] * 200, "emp": [10] * 200}
    with employers(table, "county") as opened:
        found = evaluate(
            opened,
            SHAPE.sum("emp", NEARLY_EXACT),
            metric="absolute_error",
            by="county",
            baselines={"ezs": MultiplicativeNoise()},
            draws=50,
            data="synthetic",
        )
    # One multiplier for all would be off by at least 200; two hundred of their own by about 17, and never by 100.
    assert found.at("county", "sum_emp", "ezs")["01001"].value < 100


def test_a_table_of_rows_has_a_row_for_each_group(session: rw.Session) -> None:
    found = evaluate(session, SHAPE.sum("emp", NEARLY_EXACT), by="state", draws=1, data="synthetic")
    headers, rows = found.rows()
    assert headers[:5] == ["table", "variable", "state", "cells", TODAY]
    assert [row[2] for row in rows] == ["01", "02", "13"]
    assert all(len(row) == len(headers) for row in rows)
    assert found.to_json()["groups"][2]["value"] is None  # 13 is empty, and has no relative error


def test_the_order_in_which_an_engine_returns_contributions_changes_nothing(session, monkeypatch):
    query = SHAPE.sum("emp", rw.UnitSplit(at=50, rho=1))
    how = {"metric": "absolute_error", "by": "county", "draws": 2, "seed": 4, "data": "synthetic"}
    found = OwnerPasses.contributions

    def reversed_rows(*given, **more):
        rows = found(*given, **more).reveal()
        return Sensitive(rows.take(np.arange(rows.num_rows)[::-1]))

    told = []
    for _ in range(2):
        told.append(evaluate(session, query, baselines={"multiplied": MultiplicativeNoise()}, **how).to_json())
        monkeypatch.setattr(OwnerPasses, "contributions", reversed_rows)
    assert str(told[0]) == str(told[1])
