"""Summaries for the owner: histograms made inside the engine equal those made outside, record by record and firm by firm."""

import bisect

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from sqlglot import exp

from engines.plain_mechanism import Plain
from engines.reference_totals import truth
from engines.test_totals import predicates, row
from recordwise.engines.compile.expressions import column
from recordwise.engines.compile.owner import BIN_EDGES, bin_tree
from recordwise.engines.owner import read_summaries
from recordwise.errors import ParameterError
from recordwise.plan import Keys, Plan, Schema
from recordwise.plan.expressions import Compare, condition, leaves
from recordwise.plan.query import query
from recordwise.plan.schema import policy_measure
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.policy import constant, gaussian_sum, group_loss
from recordwise.policy.columns import literal
from recordwise.policy.conditions import holds
from recordwise.policy.evaluate.sql import terms_sql

SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": "0.5"}, columns={"kind": "text"}, firm="firm")
POLICY = (gaussian_sum(policy_measure("emp", SCHEMA), sigma=7) + constant("0.25")) + gaussian_sum("pay", sigma=3)
EDGES = list(np.geomspace(0.3, 3000, 40))


def sample(count):
    generator = np.random.default_rng(3)
    return {
        "id": list(range(count)),
        "emp": [int(v) for v in generator.pareto(1.1, count) * 5 % 4000],
        "pay": [int(v) / 2 for v in generator.pareto(1.5, count) * 9 % 4000],
        "kind": ["a", "b"] * (count // 2),
        "firm": [int(v) for v in generator.integers(0, max(1, count // 5), count)],
    }


def binned(values):
    found = {}
    for value in values:
        at = bisect.bisect_left(EDGES, value)
        found[at] = found.get(at, 0) + 1
    return found


def histogram(answer):
    table = answer.reveal().to_pydict()
    return dict(zip(table["bin"], table["records"]))


def test_the_histogram_of_losses_equals_the_one_from_the_policys_own_numbers(opens):
    data = sample(2000)
    with opens(pa.table(data), SCHEMA) as engine:
        answer = engine.summarize(terms_sql(POLICY.rho, engine.dialect), EDGES)
        assert "records" not in repr(answer)
    assert histogram(answer) == binned(POLICY.loss(data))


@pytest.mark.theorem("T-GROUP")
@pytest.mark.parametrize("bound", ["tight", "simple"])
def test_firm_losses_equal_the_group_loss_of_their_units(opens, bound):
    data = sample(500)
    losses = POLICY.loss(data)
    by_firm = {}
    for firm, loss in zip(data["firm"], losses):
        by_firm.setdefault(firm, []).append(loss)
    with opens(pa.table(data), SCHEMA) as engine:
        answer = engine.summarize_firms(terms_sql(POLICY.rho, engine.dialect), EDGES, bound=bound)
    assert histogram(answer) == binned([group_loss(found, bound=bound) for found in by_firm.values()])


@pytest.mark.theorem("T-GROUP")
def test_the_advanced_bound_is_at_least_its_infimum_and_at_most_lemma_4_times_e(opens):
    data = {"id": [1, 2, 3], "emp": [70, 7, 7], "pay": [0.0, 0.0, 0.0], "kind": ["a"] * 3, "firm": [1, 1, 1]}
    losses = POLICY.loss(data)
    low, high = group_loss(losses, bound="advanced"), 3 * group_loss(losses, bound="simple")
    with opens(pa.table(data), SCHEMA) as engine:
        answer = engine.summarize_firms(
            terms_sql(POLICY.rho, engine.dialect), [low * (1 - 1e-9), high], bound="advanced"
        )
    assert histogram(answer) == {1: 1}


def test_the_advanced_bound_of_a_firm_of_one_establishment_is_its_loss(opens):
    data = {"id": [1], "emp": [70], "pay": [0.0], "kind": ["a"], "firm": [1]}
    (loss,) = POLICY.loss(data)
    with opens(pa.table(data), SCHEMA) as engine:
        edges = [loss * (1 - 1e-9), loss * (1 + 1e-8)]
        answer = engine.summarize_firms(terms_sql(POLICY.rho, engine.dialect), edges, bound="advanced")
    assert histogram(answer) == {1: 1}


def test_the_advanced_bound_stays_finite_for_a_firm_of_thousands(opens):
    count = 5000
    data = {"id": range(count), "emp": [1] * count, "pay": [0.0] * count, "kind": ["a"] * count, "firm": [1] * count}
    with opens(pa.table(data), SCHEMA) as engine:
        answer = engine.summarize_firms(terms_sql(constant(1).rho, engine.dialect), [1e6, 1e10], bound="advanced")
    assert histogram(answer) == {1: 1}


def test_bad_edges_bounds_and_missing_firms_are_refused(opens):
    with opens(pa.table(sample(2)), SCHEMA) as engine:
        with pytest.raises(ParameterError, match="increasing"):
            engine.summarize(terms_sql(POLICY.rho, engine.dialect), [2, 1])
        with pytest.raises(ParameterError, match="one of"):
            engine.summarize_firms(terms_sql(POLICY.rho, engine.dialect), [1], bound="best")
    alone = Schema.of(unit="id", measures={"emp": 1})
    with (
        opens(pa.table({"id": [1], "emp": [1]}), alone) as engine,
        pytest.raises(ParameterError, match="not declared"),
    ):
        engine.summarize_firms(terms_sql(constant(1).rho, engine.dialect), [1])


@pytest.mark.theorem("T-WHERE")
@settings(max_examples=400, deadline=None)
@given(predicates, row)
@pytest.mark.costly
def test_the_condition_of_a_policy_holds_exactly_where_the_predicate_is_true(predicate, record):
    shown = {name: None if value is None else literal(value) for name, value in record.items()}
    inside = holds(condition(predicate), shown)
    ordered_text = any(
        isinstance(leaf, Compare) and isinstance(leaf.literal, str) and leaf.operator not in ("=", "<>")
        for leaf in leaves(predicate)
    )
    if ordered_text:
        assert inside or truth(predicate, record) is not True
    else:
        assert inside == (truth(predicate, record) is True)


def test_a_condition_limits_a_histogram(opens):
    data = sample(100)
    with opens(pa.table(data), SCHEMA) as engine:
        answer = engine.summarize(
            terms_sql(POLICY.rho, engine.dialect), EDGES, condition=parse_predicate("kind = 'a' AND emp > 2")
        )
    chosen = [
        POLICY.loss({k: v[i] for k, v in data.items()})
        for i in range(100)
        if data["kind"][i] == "a" and data["emp"][i] > 2
    ]
    assert histogram(answer) == binned(chosen)


def test_records_are_summarized_beside_the_totals_of_their_own_cell(opens):
    """Realized loss of a sum with Gaussian noise, (q - (q - x))^2 / 2, and the total itself, on records of keyed cells only."""
    data = {
        "id": range(5),
        "emp": [1, 2, 3, 4, 9],
        "pay": [0.0] * 5,
        "kind": ["a", "a", "b", "b", "c"],
        "firm": [1] * 5,
    }
    asked = query().where("emp <> 4").group_by("kind", keys=Keys.of({"kind": ["a", "b", "z"]})).sum("emp", Plain())
    plan = Plan(schema=SCHEMA, queries=(asked,))
    (table,) = plan.tables()
    emp, total = exp.column("emp", quoted=True), exp.column("total0", quoted=True)
    change = exp.Sub(this=total, expression=exp.Paren(this=exp.Sub(this=total.copy(), expression=emp)))
    with opens(pa.table(data), SCHEMA) as engine:
        loss = exp.Mul(this=exp.Paren(this=change), expression=emp)
        found = engine.owner_passes().summarize_many_beside_totals(plan, table, [loss, total]).reveal()
        whole = Plan(schema=SCHEMA, queries=(query().sum("emp", Plain()),))
        grand = engine.owner_passes().summarize_many_beside_totals(whole, whole.tables()[0], [total]).reveal()
    held = [*read_summaries(found, [BIN_EDGES] * 2), *read_summaries(grand, [BIN_EDGES])]
    for summary, values in zip(held, ([1, 4, 9], [3, 3, 3], [19] * 5)):
        assert np.repeat(BIN_EDGES, summary.counts[:-1]).tolist() == pytest.approx(values, rel=0.024)


@pytest.mark.parametrize(
    "edges",
    [np.geomspace(1e-15, 1, 301), np.geomspace(1e-9, 1e9, 400), np.unique(np.rint(np.geomspace(40, 1e6, 60)))],
    ids=["deltas", "losses", "whole numbers"],
)
def test_bins_found_by_a_logarithm_are_those_of_comparisons_at_every_edge_and_beside_it(edges):
    chance = np.random.default_rng(1)
    between = chance.choice(edges, 20_000) * chance.uniform(0.5, 2, 20_000)
    around = [edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)]
    values = np.concatenate([[0.0, -1.0, 5e-324, 1e300], *around, between])
    tree = bin_tree(column("value"), [float(edge) for edge in edges])
    assert "LOG10" in tree.sql(dialect="duckdb")
    with duckdb.connect() as made:
        made.register("given", pa.table({"value": values}))
        found = made.sql(f"SELECT {tree.sql(dialect='duckdb')} AS bin FROM given").fetchnumpy()["bin"]
    assert np.array_equal(found, np.searchsorted(edges, values, side="left"))
