"""Comparisons, grids and new plans by hand: errors of tables, ranks of candidates, the best clamps and what is written anew."""

from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.plan.schema import TUNINGS
from recordwise.planning.compare import Candidate, ComparedTable, Comparison, _error_json, _error_words
from recordwise.planning.losses import Losses, LossPair
from recordwise.planning.new_plan import NOT_DRAWN, _sql_mechanisms, _tuning, _with_files, changes, proposed_budget
from recordwise.planning.recommend import RankedCandidate, _candidate_rows, _pure_ones, ranked, with_best_clamp
from recordwise.planning.result import candidate_named, mark_of, record_text
from recordwise.planning.sweep import CLAMP, SPLIT, GridSize, Sweep, SweepPoint, _thresholds, own_threshold
from recordwise.policy import Policy


def pair(*losses: float) -> LossPair:
    return LossPair(rho=Losses.of(np.array(losses), np.ones(len(losses))))


# Mechanisms side by side.


def comparison(**more: Any) -> Comparison:
    def candidate(name: str, errors: list[float], losses: LossPair, firms: LossPair | None = None) -> Candidate:
        return Candidate(
            name=name,
            mechanism=rw.Gaussian(sigma=3),
            losses=losses,
            firms=firms,
            realized=None,
            realized_firms=None,
            errors=np.array(errors),
        )

    def table(name: str, cells: slice) -> ComparedTable:
        return ComparedTable(name=name, statistic="s", measure="emp", cells=cells, rules=None)

    given: dict[str, Any] = {
        "data": "synthetic",
        "confidence": 0.9,
        "above": (1.0,),
        "totals": np.array([100.0, 0.0, 10.0, 50.0, 200.0]),
        "counted": np.array([True, False, True, True, True]),
        "at_least": 5,
        "tables": (table("one", slice(0, 3)), table("two", slice(3, 5))),
        "candidates": (
            candidate("g", [10.0, 10.0, 5.0, 10.0, 10.0], pair(0.5, 1.0, 2.0, 4.0), pair(7.0)),
            candidate("h", [1.0] * 5, pair(0.1)),
        ),
    }
    return Comparison(**(given | more))


def test_errors_are_shares_of_the_totals_of_cells_that_count() -> None:
    found = comparison()
    assert found.relative_errors("g").tolist() == [0.1, 0.5, 0.2, 0.05]
    assert found.relative_errors("g", "one").tolist() == [0.1, 0.5]
    assert found.relative_errors("g", "two").tolist() == [0.2, 0.05]
    with pytest.raises(ParameterError, match="'three' was not compared"):
        found.relative_errors("g", "three")
    with pytest.raises(ParameterError, match="'x' is no candidate"):
        found["x"]
    assert _error_json(np.array([0.1, 0.5])) == {"median": pytest.approx(0.3), "p90": pytest.approx(0.46)}
    assert _error_json(np.zeros(0)) == {"median": None, "p90": None}
    assert _error_words(np.array([0.1, 0.5])) == ["30.0%", "46.0%"]


def test_a_comparison_has_a_row_for_each_mechanism_and_for_each_table() -> None:
    headers, rows = comparison().rows()
    assert headers == ["mechanism", "median", "p99", "maximum", "above 1", "firm p99", "median error", "p90 error"]
    assert rows[0] == ["g", "1", "4", "4", "50.00%", "7", "15.0%", "41.0%"]
    headers, rows = comparison().table_rows()
    assert headers == ["table", "cells", "counted", "mechanism", "median error", "p90 error"]
    assert [row[:4] for row in rows] == [
        ["one", "3", "2", "g"],
        ["", "", "", "h"],
        ["two", "2", "2", "g"],
        ["", "", "", "h"],
    ]
    plain, rows = comparison(at_least=0).table_rows()
    assert plain == ["table", "cells", "mechanism", "median error", "p90 error"]
    assert rows[0][:3] == ["one", "3", "g"]
    told = comparison().to_json()
    assert (told["cells"], told["counted_cells"], told["measure"]) == (5, 4, "emp")
    assert told["mechanisms"][0]["share_above"] == {"1": 0.5}
    assert "firm_losses" in told["mechanisms"][0]
    assert "firm_losses" not in told["mechanisms"][1]
    assert [(each["cells"], each["counted_cells"]) for each in told["tables"]] == [(3, 2), (2, 2)]


def test_labels_and_records_are_said_in_words() -> None:
    assert mark_of("public") == "computed from public records"
    assert mark_of("past").startswith("CONFIDENTIAL: computed from past records")
    assert mark_of("confidential").startswith("CONFIDENTIAL: computed from the confidential")
    assert record_text({"emp": Fraction(1234), "pay": Fraction(1, 2), "kind": "x"}) == "emp 1,234, pay 0.5, kind x"
    with pytest.raises(ParameterError, match="'b' cannot meet the goals: too small"):
        candidate_named([SimpleNamespace(name="a")], "b", {"b": "too small"})


# Ranks.


def candidate(name: str, *losses: float, policy: Any = None, firms: Any = None) -> RankedCandidate:
    met = SimpleNamespace(table=SimpleNamespace(name="t"), mechanism=rw.Gaussian(sigma=3), share_met=0.9, deciding=5.0)
    return RankedCandidate(
        name=name,
        calibrated=(met, met) if name == "two" else (met,),  # type: ignore[arg-type]
        policy=policy or Policy(),
        losses=pair(*losses),
        firms=firms,
        asked=(),
    )


def test_candidates_are_ranked_by_one_loss_and_ties_by_the_others() -> None:
    a, b, c = candidate("a", 1.0, 1.0, 9.0), candidate("b", 1.0, 1.0, 5.0), candidate("c", 0.5, 2.0, 3.0)
    assert [each.name for each in ranked([a, b, c], "median")] == ["b", "a", "c"]
    assert [each.name for each in ranked([a, b, c], "maximum")] == ["c", "b", "a"]


def test_of_several_clamps_the_best_is_kept_or_why_the_last_fails() -> None:
    plain = candidate("plain", 1.0)
    clamps = [candidate(f"clamped at {at}", loss) for at, loss in ((10, 5.0), (100, 2.0), (1000, 3.0))]
    found, why = with_best_clamp([plain, *clamps], {"clamped at 1": "x", "log": "y"}, "median")
    assert [each.name for each in found] == ["plain", "clamped at 100"]
    assert why == {"log": "y"}
    found, why = with_best_clamp([plain], {"clamped at 1": "x", "clamped at 3": "z", "log": "y"}, "median")
    assert [each.name for each in found] == ["plain"]
    assert why == {"clamped at 3": "z", "log": "y"}


def test_a_candidate_has_its_losses_once_and_a_row_for_each_table() -> None:
    (row,) = _candidate_rows(candidate("one", 1.0, 3.0))
    assert row == ["one", "1", "3", "3", rw.Gaussian(sigma=3).text(), "90.0%"]
    first, second = _candidate_rows(candidate("two", 1.0, 3.0, firms=pair(8.0)))
    assert first[:5] == ["two", "1", "3", "3", "8"]
    assert first[5].startswith("t: ")
    assert second[:5] == [""] * 5
    pure, mixed = (SimpleNamespace(pure_problem=lambda told=told: told) for told in (None, "Gaussian"))
    kept, why = _pure_ones([candidate("p", 1.0, policy=pure), candidate("m", 1.0, policy=mixed)], {"x": "y"})
    assert [each.name for each in kept] == ["p"]
    assert why == {"x": "y", "m": "no pure epsilon, which the budget is stated in"}
    with pytest.raises(ParameterError, match="have no pure epsilon"):
        _pure_ones([candidate("m", 1.0, policy=mixed)], {})


# Grids.


def point(kind: str, at: float, rho: float, mean: float, measure: str = "emp", median: float = 1.0) -> SweepPoint:
    return SweepPoint(
        measure=measure,
        mechanism=kind,
        at=at,
        rho=rho,
        share_above=0.25,
        median_error=median,
        mean_error=mean,
        p90_error=3.0,
    )


def test_the_best_clamp_of_each_rho_has_the_least_error_and_of_equal_ones_the_smallest_bound() -> None:
    grid = Sweep(
        data="synthetic",
        points=(
            point(CLAMP, 100, 1, 0.5, median=0.1),
            point(CLAMP, 10, 1, 0.4, median=0.9),
            point(CLAMP, 50, 1, 0.4),
            point(CLAMP, 10, 2, 0.3),
            point(SPLIT, 5, 1, 0.01),
        ),
    )
    assert [(each.rho, each.at) for each in grid.best_clamps()] == [(1, 10), (2, 10)]
    assert [(each.rho, each.at) for each in grid.best_clamps("median_error")] == [(1, 100), (2, 10)]
    with pytest.raises(ParameterError, match="must be one of mean_error, median_error, p90_error"):
        grid.best_clamps("max_error")
    assert grid.words() == "Unit splitting and clamping of emp"
    headers, rows = grid.rows()
    assert headers[:3] == ["mechanism", "at", "rho"]
    assert rows[0] == ["clamp", "100", "1", "25.00%", "10.00%", "50.00%", "300.00%"]


def test_curves_have_the_thresholds_of_each_rho_in_order() -> None:
    grid = Sweep(data="synthetic", points=(point(SPLIT, 50, 1, 2.0), point(SPLIT, 5, 1, 3.0), point(CLAMP, 7, 1, 2.0)))
    ((name, (at, share, error)),) = grid.curves().items()
    assert (name, at.tolist(), share.tolist(), error.tolist()) == ("ρ = 1", [5, 50], [0.25, 0.25], [1.0, 1.0])
    both = Sweep(data="synthetic", points=(point(SPLIT, 5, 1, 2.0), point(SPLIT, 5, 1, 3.0, measure="pay")))
    assert list(both.curves()) == ["emp, ρ = 1", "pay, ρ = 1"]
    assert both.rows()[0][0] == "measure"
    assert (both.measure, both.words()) == ("emp, pay", "Unit splitting of emp, pay")


def test_a_grid_has_every_threshold_and_bound_at_every_rho() -> None:
    size = GridSize(thresholds=[5, 50], clamps=[7], rhos=(Fraction(1), Fraction(2)))
    found = size.mechanisms("emp", ["emp"])
    assert [(kind, at, rho) for kind, at, rho in found] == [
        (SPLIT, 5, 1),
        (SPLIT, 5, 2),
        (SPLIT, 50, 1),
        (SPLIT, 50, 2),
        (CLAMP, 7, 1),
        (CLAMP, 7, 2),
    ]
    with pytest.raises(ParameterError, match="must each contain at least one number"):
        GridSize(thresholds=[], clamps=[], rhos=(Fraction(1),)).mechanisms("emp", ["emp"])
    assert _thresholds({"emp": [1], "pay": [2]}, "pay", ["emp", "pay"], "thresholds") == [2]
    assert _thresholds([{"emp": 1}], "emp", ["emp", "pay"], "thresholds") == [{"emp": 1}]
    for given, problem in (
        ("5", "must be a list"),
        (5, "must be a list"),
        ([5], "for each of emp, pay"),
        ({"pay": [1]}, "none for 'emp'"),
    ):
        with pytest.raises(ParameterError, match=problem):
            _thresholds(given, "emp", ["emp", "pay"], "thresholds")
    assert own_threshold(Fraction(3), "emp") == 3
    assert own_threshold((("emp", Fraction(3)), ("pay", Fraction(4))), "pay") == 4


# A plan that continues another.


def test_changes_are_those_of_mechanisms_and_shares_table_by_table() -> None:
    keys = rw.Keys.product(county=["01001", "02001"])
    old = (
        rw.query()
        .levels(rw.prefix("county", [2, 5]), keys=keys)
        .sum("emp", rw.Gaussian(sigma=3))
        .count(rw.Gaussian(sigma=1))
    )
    assert changes([old], [old]) == ()
    new = (
        rw.query()
        .levels(rw.prefix("county", [2, 5]), keys=keys)
        .sum("emp", rw.Gaussian(sigma=6))
        .count(rw.Gaussian(sigma=1))
    )
    found = changes([old], [new])
    assert [(each.query, each.table, each.statistic) for each in found] == [
        ("1", "county2", "sum_emp"),
        ("1", "county5", "sum_emp"),
    ]
    assert found[0].before.endswith(", 50.0% of the loss")
    assert changes([old.named("q")], [new.named("q")])[0].query == "q"
    fewer = rw.query().levels(rw.prefix("county", [2, 5]), keys=keys).sum("emp", rw.Gaussian(sigma=3))
    assert {each.after for each in changes([old], [fewer])} == {NOT_DRAWN}
    assert changes([old], [fewer])[0].statistic == "count"


def test_a_proposed_budget_has_each_sum_and_one_constant_for_the_rest() -> None:
    schema: Any = rw.plan.Schema.of(unit="id", measures={"emp": 1}, columns={})
    query = (
        rw.query()
        .count(rw.Gaussian(rho="0.25"))
        .sum("emp", rw.Gaussian(sigma=3))
        .count(rw.Gaussian(rho="0.5"), alias="n")
    )
    constant, summed = proposed_budget([query], schema)
    assert float(constant["rho"]) == pytest.approx(0.75)
    assert summed["measure"] == "emp"
    assert proposed_budget([rw.query().sum("emp", rw.Gaussian(sigma=3))], schema) == [summed]


def test_the_most_sensitive_tuning_and_every_reason_once_are_carried_on() -> None:
    def file(tuned_on: str, reason: str | None) -> Any:
        return SimpleNamespace(tuned_on=tuned_on, tuning_reason=reason)

    for one, other in combinations(TUNINGS, 2):
        assert _tuning(file(one, "a"), other, "a") == _tuning(file(other, "a"), one, "a") == (other, "a")
    assert _tuning(file("public", None), "public", None) == ("public", None)
    assert _tuning(file("public", "a"), "confidential", "b") == ("confidential", "a; b")
    assert _tuning(file("confidential", "a"), "public", "a") == ("confidential", "a")
    assert _tuning(file("confidential", "a"), "confidential", None) == ("confidential", None)
    assert _with_files({"file": "x", "deep": [{"file": "y"}, "file"], "other": 3}, str.upper) == {
        "file": "X",
        "deep": [{"file": "Y"}, "file"],
        "other": 3,
    }


def test_mechanisms_of_sql_are_replaced_by_name_measure_or_star() -> None:
    old = rw.query().sum("emp", rw.Gaussian(sigma=3), alias="jobs").count(rw.Gaussian(sigma=1), alias="n")
    new = rw.query().sum("emp", rw.Gaussian(sigma=6), alias="jobs").count(rw.Gaussian(sigma=1), alias="n")
    found = _sql_mechanisms({"emp": {"kind": "old"}, "*": {"kind": "kept"}}, old, new)
    assert found["*"] == {"kind": "kept"}
    assert found["emp"]["kind"] == "Gaussian"
    named = _sql_mechanisms({"jobs": {"kind": "old"}, "n": {"kind": "kept"}}, old, new)
    assert (named["jobs"]["kind"], named["n"]) == ("Gaussian", {"kind": "kept"})
    twice = rw.query().sum("emp", rw.Gaussian(sigma=3), alias="a").sum("emp", rw.Gaussian(sigma=3), alias="b")
    other = rw.query().sum("emp", rw.Gaussian(sigma=3), alias="a").sum("emp", rw.Gaussian(sigma=4), alias="b")
    with pytest.raises(ParameterError, match="'emp' serves two statistics"):
        _sql_mechanisms({"emp": {"kind": "old"}}, twice, other)
