"""What owners are told, by hand: bins and their edges, losses that were realized, firms of several units, and contributors."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.engines import DuckDB
from recordwise.engines.compile.owner import BIN_EDGES
from recordwise.engines.owner import (
    DELTA_EDGES,
    EDGES,
    SLIGHTLY_LESS,
    LossSummary,
    firm_tables,
    read_summaries,
    read_summary,
    realized_trees,
)
from recordwise.errors import ParameterError
from recordwise.plan import Measure, Plan, Schema
from recordwise.plan.query import query
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.policy import Policy, constant, gaussian_sum
from recordwise.policy.evaluate.sql import terms_sql

SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={"emp": 1, "net": Measure.of("net", step="0.5", signed=True)},
    columns={"kind": "text", "county": "text"},
)
ROWS: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4, 5, 6],
    "firm": ["f", "f", "g", "g", "h", "i"],
    "emp": [3, 4, 0, 10, 6, 6],
    "net": [1.5, -3.0, 0.0, 5.0, -5.0, 0.5],
    "kind": ["a", "a", "a", "b", "b", "a"],
    "county": ["01", "02", "01", "01", "02", "02"],
}
KINDS = query().group_by("kind", keys={"kind": ["a", "b", "none"]})


@pytest.fixture(scope="module")
def engine() -> Any:
    with DuckDB(pa.table(ROWS), SCHEMA) as opened:
        yield opened


def planned(*queries: Any) -> Plan:
    return Plan(schema=SCHEMA, queries=queries)


# Bins.


def test_bins_have_twenty_edges_to_a_factor_of_ten() -> None:
    assert (len(EDGES), EDGES[0], EDGES[-1]) == (301, 1e-6, 1e9)
    assert EDGES[120] == pytest.approx(1.0)
    assert (len(DELTA_EDGES), DELTA_EDGES[0], DELTA_EDGES[-1]) == (301, 1e-15, 1.0)
    assert DELTA_EDGES[20] == pytest.approx(1e-14, abs=0)
    assert (1 - SLIGHTLY_LESS) * 2.0**50 == 1.0
    assert (len(BIN_EDGES), BIN_EDGES[0], BIN_EDGES[-1]) == (2401, 1e-9, 1e15)


def test_shares_and_quantiles_are_those_of_the_bins() -> None:
    found = LossSummary(edges=(1.0, 2.0, 4.0), counts=np.array([5, 3, 0, 2]))
    assert [found.share_above(loss) for loss in (0.5, 1.0, 1.5, 2.0, 4.0, 9.0)] == [0.5, 0.5, 0.2, 0.2, 0.2, 0.0]
    assert found.cdf().tolist() == [0.5, 0.8, 0.8]
    assert [found.quantile(p) for p in (0, 0.5, 0.51, 0.8)] == [1.0, 1.0, 2.0, 2.0]
    assert found.quantile(0.81) == found.quantile(1) == float("inf")
    nobody = LossSummary(edges=(1.0,), counts=np.array([0, 0]))
    assert (nobody.share_above(1.0), nobody.cdf().tolist(), nobody.quantile(0)) == (0.0, [0.0], 1.0)
    assert LossSummary(edges=(1.0,), counts=np.array([1, 0])).quantile(1) == 1.0
    assert LossSummary(edges=(1.0,), counts=np.array([0, 1])).share_above(1.0) == 1.0
    for p in (-0.001, 1.001, True, False, "0.5", None):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            found.quantile(p)  # type: ignore[arg-type]


def test_counts_are_put_into_their_bins() -> None:
    found = read_summary(pa.table({"bin": [2, 0], "records": [7, 5]}), [1.0, 2.0])
    assert (found.edges, found.counts.tolist(), found.deltas) == ((1.0, 2.0), [5, 0, 7], None)
    table = pa.table({"bin0": [0, 1, None, None], "bin1": [None, None, 0, 2], "records": [3, 4, 5, 2]})
    first, second = read_summaries(table, [[1.0], [1.0, 2.0]])
    assert (first.edges, first.counts.tolist()) == ((1.0,), [3, 4])
    assert (second.edges, second.counts.tolist()) == ((1.0, 2.0), [5, 0, 2])


def counts(found: Any, edges: list[float]) -> list[int]:
    return read_summary(found.reveal(), edges).counts.tolist()


def test_losses_are_counted_under_a_condition_and_by_firm(engine: Any) -> None:
    value = terms_sql(gaussian_sum("emp", sigma=1).rho, "duckdb")
    # Half the squares of 3, 4, 0, 10, 6 and 6.
    edges = [0.0, 4.5, 8.0, 18.0, 24.5]
    assert counts(engine.summarize(value, edges), edges) == [1, 1, 1, 2, 0, 1]
    found = engine.summarize(value, edges, condition=parse_predicate("kind = 'a'"))
    assert counts(found, edges) == [1, 1, 1, 1, 0, 0]
    # Firms of 3 + 4, 0 + 10, 6 and 6: the square of the sum of roots is half the square of the sum.
    assert counts(engine.summarize_firms(value, [17.0, 18.5, 24.0, 25.0]), [17.0, 18.5, 24.0, 25.0]) == [0, 2, 0, 1, 1]
    simple = counts(engine.summarize_firms(value, [17.0, 24.0, 26.0], bound="simple"), [17.0, 24.0, 26.0])
    assert simple == [0, 2, 1, 1]


def test_values_are_counted_up_to_so_many_rows(engine: Any) -> None:
    passes = engine.owner_passes()
    found = passes.value_counts(["emp"], at_most=5).reveal()
    assert dict(zip(found["emp"].to_pylist(), found["records"].to_pylist())) == {3: 1, 4: 1, 0: 1, 10: 1, 6: 2}
    assert passes.value_counts(["emp"], at_most=4).reveal().num_rows == 4
    some = passes.value_counts(["kind"], at_most=9, condition=parse_predicate("emp > 4")).reveal()
    assert dict(zip(some["kind"].to_pylist(), some["records"].to_pylist())) == {"a": 1, "b": 2}


# Realized losses.


def realized(engine: Any, *queries: Any, edges: list[float], **more: Any) -> list[int]:
    return counts(engine.owner_passes().summarize_realized(planned(*queries), edges, "duckdb", **more), edges)


def test_a_record_in_no_public_cell_loses_nothing_and_counts(engine: Any) -> None:
    asked = query().where("emp > 3").group_by("kind", keys={"kind": ["a"]}).sum("emp", rw.Gaussian(sigma=1))
    assert realized(engine, asked, edges=[0.0, 7.0, 8.0, 17.0, 18.0]) == [4, 0, 1, 0, 1, 0]
    both = [asked, query().count(rw.Gaussian(rho="0.5"))]
    assert realized(engine, *both, edges=[0.4, 0.5, 8.0, 8.5, 18.0, 18.5]) == [0, 4, 0, 1, 0, 1, 0]


def test_tables_in_which_a_record_loses_the_same_add_up(engine: Any) -> None:
    same = [query().count(rw.Gaussian(rho="0.5")), KINDS.count(rw.Gaussian(rho="0.5"))]
    for firms, number in ((False, 6), (True, 2)):
        assert realized(engine, *same, edges=[0.99, 1.0], firms=firms)[:2] == [0, number]


def test_records_of_a_pair_of_ids_and_without_a_firm_lose_by_themselves() -> None:
    paired = Schema.of(unit=["id", "county"], measures={"emp": 1}, columns={"county": "text"})
    rows = pa.table(ROWS | {"id": [1, 1, 2, 3, 3, 2]})
    plan = Plan(schema=paired, queries=(query().sum("emp", rw.Gaussian(sigma=1)),))
    with DuckDB(rows, paired) as opened:
        found = opened.owner_passes().summarize_realized(plan, [0.0, 4.5, 8.0, 18.0], "duckdb")
    assert counts(found, [0.0, 4.5, 8.0, 18.0]) == [1, 1, 1, 2, 1]


def test_a_firm_loses_by_the_sum_of_its_units_in_each_cell(engine: Any) -> None:
    asked = KINDS.sum("emp", rw.Gaussian(sigma=1))
    # In a: f has 7, g 0, i 6. In b: g has 10, h 6.
    edges = [17.0, 18.0, 24.0, 24.5, 49.0, 50.0]
    assert realized(engine, asked, edges=edges, firms=True) == [0, 2, 0, 1, 0, 1, 0]
    assert realized(engine, asked, edges=[0.0, 17.0, 18.0, 49.0, 50.0], firms=False) == [1, 2, 2, 0, 1, 0]
    alone = Schema.of(unit="id", measures={"emp": 1})
    plan = Plan(schema=alone, queries=(query().sum("emp", rw.Gaussian(sigma=1)),))
    with DuckDB(pa.table(ROWS), alone) as without, pytest.raises(ParameterError, match="need a firm"):
        without.owner_passes().summarize_realized(plan, [1.0], "duckdb", firms=True)


def test_what_a_transform_costs_depends_on_the_rest_of_the_cell(engine: Any) -> None:
    mechanism = rw.LogTransform(offset=10, sigma=1)
    totals = {"a": 13, "b": 16}
    by_unit = [mechanism.realized_loss(totals[k] - e, e) if e else 0.0 for e, k in zip(ROWS["emp"], ROWS["kind"])]
    by_firm = [
        mechanism.realized_loss(13 - 7, 7),
        mechanism.realized_loss(16 - 10, 10),
        mechanism.realized_loss(16 - 6, 6),
        mechanism.realized_loss(13 - 6, 6),
    ]
    for losses, firms in ((by_unit, False), (by_firm, True)):
        edges = sorted({0.0} | {loss * factor for loss in losses if loss for factor in (1 - 1e-4, 1 + 1e-4)})
        wanted = np.bincount(np.searchsorted(edges, losses), minlength=len(edges) + 1)
        asked = KINDS.sum("emp", mechanism)
        assert realized(engine, asked, edges=edges, firms=firms) == wanted.tolist()


def test_a_transform_of_a_signed_measure_costs_by_the_part_of_the_record_s_sign(engine: Any) -> None:
    mechanism = rw.LogTransform(offset=10, sigma=1, signed=True)
    # Of what is above 0 the total is 7, of what is below it 8.
    losses = [mechanism.realized_loss((7 if n > 0 else 8) - abs(n), abs(n)) if n else 0.0 for n in ROWS["net"]]
    edges = sorted({0.0} | {loss * factor for loss in losses if loss for factor in (1 - 1e-3, 1 + 1e-3)})
    wanted = np.bincount(np.searchsorted(edges, losses), minlength=len(edges) + 1)
    assert realized(engine, query().sum("net", mechanism), edges=edges) == wanted.tolist()


def test_an_extra_policy_is_added_to_each_statistic_and_derived_ones_are_refused() -> None:
    plan = planned(query().count(rw.Gaussian(rho="0.5"), alias="n").sum("emp", rw.Gaussian(sigma=1)))
    (table,) = plan.tables()
    plain = realized_trees(plan, table, Policy(), "duckdb")
    more = realized_trees(plan, table, constant(3), "duckdb")
    assert list(plain) == ["n", "sum_emp"]
    for alias, tree in plain.items():
        text = tree.sql("duckdb")
        assert more[alias].sql("duckdb") != text
        assert more[alias].sql("duckdb").startswith(text[:-1])
    asked = query().sum("emp", rw.Gaussian(sigma=1)).count(rw.Gaussian(rho=1), alias="n").ratio("sum_emp", to="n")
    derived = planned(asked)
    with pytest.raises(ParameterError, match="computed from others"):
        realized_trees(derived, derived.tables()[0], Policy(), "duckdb")


def test_without_a_transform_a_record_loses_the_tight_bound_of_its_policy() -> None:
    split, transform = rw.UnitSplit(at=2, rho="0.5"), rw.LogTransform(offset=10, sigma=1)
    plan = planned(query().sum("emp", split).count(transform, alias="n"))
    trees = realized_trees(plan, plan.tables()[0], Policy(), "duckdb")
    tight = terms_sql(split.policy("emp", tight=True).rho, "duckdb").sql("duckdb")
    assert trees["sum_emp"].sql("duckdb") == f"(({tight}))"
    # A count costs what its policy says, whatever the cell holds.
    counted = terms_sql(transform.policy_of_count().rho, "duckdb").sql("duckdb")
    assert trees["n"].sql("duckdb") == f"(({counted}))"


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_record_loses_by_the_mechanism_of_its_group(engine: Any, first: str) -> None:
    """One group has a transform and the other plain noise, whichever comes first."""
    transform, plain = rw.LogTransform(offset=10, sigma=1), rw.Gaussian(sigma=1)
    chosen: dict[Any, Any] = {"a": transform if first == "a" else plain, "b": plain if first == "a" else transform}
    totals = {"a": 13, "b": 16}
    losses = [
        0.0 if not emp else emp**2 / 2 if chosen[kind] is plain else transform.realized_loss(totals[kind] - emp, emp)
        for emp, kind in zip(ROWS["emp"], ROWS["kind"])
    ]
    edges = sorted({0.0} | {loss * factor for loss in losses if loss for factor in (1 - 1e-4, 1 + 1e-4)})
    wanted = np.bincount(np.searchsorted(edges, losses), minlength=len(edges) + 1)
    two = query().group_by("kind", keys={"kind": ["a", "b"]})
    assert realized(engine, two.sum("emp", rw.ByGroup("kind", chosen)), edges=edges) == wanted.tolist()


class OwnTransform(rw.LogTransform):
    """A transform whose loss at a sum says nothing about several records together."""

    loss_of_sum = False


@pytest.mark.parametrize(
    ("measure", "mechanism", "as_promised"),
    [
        ("emp", rw.LogTransform(offset=10, sigma=1), False),
        ("emp", OwnTransform(offset=10, sigma=1), True),
        ("net", rw.LogTransform(offset=10, sigma=1, signed=True), True),
        ("emp", {"a": rw.LogTransform(offset=10, sigma=1), "b": OwnTransform(offset=10, sigma=1)}, True),
        ("emp", {"a": OwnTransform(offset=10, sigma=1), "b": rw.LogTransform(offset=10, sigma=1)}, True),
        ("emp", {"a": rw.LogTransform(offset=10, sigma=1), "b": rw.LogTransform(offset=9, sigma=1)}, False),
    ],
    ids=["transform", "own", "signed", "own last", "own first", "groups"],
)
def test_a_firm_loses_what_is_promised_where_sums_say_nothing(
    engine: Any, measure: str, mechanism: Any, as_promised: bool
) -> None:
    chosen = rw.ByGroup("kind", mechanism) if isinstance(mechanism, dict) else mechanism
    asked = query().group_by("kind", keys={"kind": ["a", "b"]}).sum(measure, chosen)
    found = engine.owner_passes().summarize_firms_of_plan(firm_tables([planned(asked)]), [EDGES], "duckdb").reveal()
    (promised,) = read_summaries(found, [EDGES])
    assert (realized(engine, asked, edges=list(EDGES), firms=True) == promised.counts.tolist()) == as_promised


# Firms of several units.


def test_tables_of_several_plans_are_kept_once(engine: Any) -> None:
    first = planned(KINDS.sum("emp", rw.Gaussian(sigma=1)), query().count(rw.Gaussian(rho=1)))
    pure_sum = rw.LogTransform(offset=10, laplace_scale="0.5")
    second = planned(KINDS.sum("emp", pure_sum), KINDS.where("emp > 1").sum("emp", pure_sum))
    found = firm_tables([first, second])
    assert [[len(parts) for parts in each.parts] for each in found] == [[1, 1], [1, 0], [0, 1]]
    assert not any(part.policy.is_pure for each in found for parts in each.parts for part in parts)
    pure = firm_tables([second], pure=True)
    assert all(part.policy.is_pure for each in pure for parts in each.parts for part in parts)


def test_firms_are_counted_with_what_they_lose_under_each_plan(engine: Any) -> None:
    plans = [planned(KINDS.sum("emp", rw.Gaussian(sigma=1))), planned(query().sum("emp", rw.Gaussian(sigma=1)))]
    edges = [17.0, 18.0, 24.0, 24.5, 49.0, 50.0]
    for plan, wanted in zip(plans, ([0, 2, 0, 1, 0, 1, 0], [0, 2, 0, 1, 0, 1, 0])):
        found = engine.owner_passes().summarize_firms_of_plan(firm_tables([plan]), [edges], "duckdb").reveal()
        (summary,) = read_summaries(found, [edges])
        assert summary.counts.tolist() == wanted
    asked = query().where("county = '02'").sum("emp", rw.Gaussian(sigma=1))
    found = engine.owner_passes().summarize_firms_of_plan(
        firm_tables([planned(asked)]), [[0.0, 7.0, 8.0, 18.0]], "duckdb"
    )
    # Of f only 4 in county 02, of g nothing, of h and i 6.
    assert read_summaries(found.reveal(), [[0.0, 7.0, 8.0, 18.0]])[0].counts.tolist() == [1, 0, 1, 2, 0]


# Contributors.


@pytest.mark.parametrize(
    ("measure", "by_firm", "first", "second"),
    [
        ("emp", False, (3, 13.0, 6, 1, 4, 61.0), (2, 16.0, 10, 1, 6, 136.0)),
        ("emp", True, (2, 13.0, 7, 1, 6, 85.0), (2, 16.0, 10, 1, 6, 136.0)),
        # In steps of a half: 3, -6, 0 and 1 in a, 10 and -10 in b.
        ("net", False, (3, 10.0, 6, 1, 3, 46.0), (2, 20.0, 10, 2, None, 200.0)),
        ("net", True, (2, 4.0, 3, 1, 1, 10.0), (2, 20.0, 10, 2, None, 200.0)),
    ],
)
def test_contributors_of_a_cell_are_told_in_steps_and_without_sign(
    engine: Any, measure: str, by_firm: bool, first: tuple[Any, ...], second: tuple[Any, ...]
) -> None:
    plan = planned(KINDS.where("kind <> 'none'").sum(measure, rw.Gaussian(sigma=1)))
    (table,) = plan.tables()
    found = engine.owner_passes().contributors(plan, table, measure, by_firm=by_firm).reveal()
    names = ("contributors", "total", "largest", "tied", "second", "squares")
    rows = sorted(found.to_pylist(), key=lambda row: row["position"])
    assert [tuple(row[name] for name in names) for row in rows] == [first, second]


def test_contributions_are_counted_by_their_size(engine: Any) -> None:
    plan = planned(query().where("county = '02'").sum("net", rw.Gaussian(sigma=1)))
    found = engine.owner_passes().contributions(plan, plan.tables()[0], "net").reveal()
    assert dict(zip(found["amount"].to_pylist(), found["times"].to_pylist())) == {6: 1, 10: 1, 1: 1}
    twice = planned(query().sum("emp", rw.Gaussian(sigma=1)))
    found = engine.owner_passes().contributions(twice, twice.tables()[0], "emp").reveal()
    assert dict(zip(found["amount"].to_pylist(), found["times"].to_pylist())) == {3: 1, 4: 1, 10: 1, 6: 2}


def test_nothing_that_was_lent_or_stored_for_an_owner_stays(engine: Any) -> None:
    plan = planned(KINDS.sum("emp", rw.LogTransform(offset=10, sigma=1)))
    passes, (table,) = engine.owner_passes(), plan.tables()
    passes.summarize_realized(plan, [1.0], "duckdb", firms=True)
    passes.contributors(plan, table, "emp", by_firm=True)
    passes.contributions(plan, table, "emp")
    passes.summarize_firms_of_plan(firm_tables([plan]), [[1.0]], "duckdb")
    held = "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
    names = {name for (name,) in engine._connection.duckdb.execute(held).fetchall()}
    assert names <= {"source", "records"}
