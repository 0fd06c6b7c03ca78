"""Losses of records by hand: quantiles, bins, ranks, classes of sizes, samples and ten years of a series."""

import math
import re
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.engines.owner import LossSummary
from recordwise.errors import BudgetError, ParameterError
from recordwise.plan.cost import firm_policy
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Schema
from recordwise.planning.losses import (
    ALL,
    BALANCED,
    CURVE_POINTS,
    LARGEST,
    NEXT_TO_NOTHING,
    RECORDS,
    Left,
    Losses,
    RecordSample,
    TenYears,
    _chosen,
    _pair,
    balance,
    budget_words,
    class_edges,
    class_name,
    hardly_protected,
    loss_at,
    losses_by_size,
    policy_names,
    read_rank,
    usual_reserve,
)
from recordwise.policy import Measure, Policy, constant, gaussian_sum
from recordwise.session.owner import ValueCounts


def losses(values: list[float], records: list[float]) -> Losses:
    return Losses.of(np.array(values, float), np.array(records, float))


def counted(records: list[float], **columns: Any) -> ValueCounts:
    held = {name: np.array(each) for name, each in columns.items()}
    return ValueCounts(columns=held, steps={}, records=np.array(records, float))


# Distributions of losses.


def test_losses_are_sorted_and_equal_ones_added_up() -> None:
    found = losses([3.0, 1.0, 3.0], [5.0, 2.0, 1.0])
    assert (found.values.tolist(), found.records.tolist(), found.exact) == ([1.0, 3.0], [2.0, 6.0], True)
    assert (found.number, found.maximum) == (8, 3.0)


def test_a_quantile_is_the_smallest_loss_that_so_many_do_not_exceed() -> None:
    found = losses([1.0, 2.0, 3.0], [5.0, 3.0, 2.0])
    assert [found.quantile(p) for p in (0.0, 0.5, 0.5 + 1e-9, 0.8, 0.80001, 1.0)] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert [found.share_above(each) for each in (0.5, 1.0, 2.5, 3.0)] == [1.0, 0.5, 0.2, 0.0]
    nobody = losses([], [])
    assert (nobody.quantile(0.5), nobody.maximum, nobody.share_above(1.0), nobody.number) == (0.0, 0.0, 0.0, 0)
    assert found.to_json() == {"median": 1.0, "p90": 3.0, "p99": 3.0, "maximum": 3.0, "exact": True}


def test_losses_of_bins_are_at_their_upper_ends_and_the_last_has_none() -> None:
    summary = LossSummary(edges=np.array([1.0, 2.0]), counts=np.array([4, 0, 3]))
    found = Losses.of_bins(summary)
    assert (found.values.tolist(), found.records.tolist(), found.exact) == ([1.0, math.inf], [4.0, 3.0], False)


def test_no_quantile_is_above_that_of_the_policy() -> None:
    own, policy = losses([2.0, 5.0, 9.0], [3.0, 3.0, 4.0]), losses([1.0, 6.0, 8.0], [2.0, 5.0, 3.0])
    held = own.at_most(policy)
    # In order, records lose 2 2 2 5 5 5 9 9 9 9 and at most 1 1 6 6 6 6 6 8 8 8.
    assert held.values.tolist() == [1.0, 2.0, 5.0, 6.0, 8.0]
    assert held.records.tolist() == [2.0, 1.0, 3.0, 1.0, 3.0]
    assert not held.exact
    assert own.at_most(losses([1.0], [9.0])) is own
    nobody = losses([], [])
    assert nobody.at_most(nobody) is nobody


def test_a_curve_has_every_loss_while_they_are_few_and_both_ends_of_many() -> None:
    few = losses([1.0, 2.0], [3.0, 1.0])
    assert [each.tolist() for each in few.curve()] == [[1.0, 2.0], [0.75, 1.0]]
    assert [each.tolist() for each in losses([], []).curve()] == [[], []]
    edge = Losses.of(np.arange(CURVE_POINTS, dtype=float), np.ones(CURVE_POINTS))
    assert len(edge.curve()[0]) == CURVE_POINTS
    many = Losses.of(np.arange(5000.0), np.ones(5000))
    values, shares = many.curve()
    assert 200 < len(values) < CURVE_POINTS
    np.testing.assert_allclose(shares, (values + 1) / 5000)
    assert (values[0], values[-1], shares[-1]) == (0.0, 4999.0, 1.0)
    # The tail is followed down to the last record, whose steps the body would leave out.
    assert set(range(4990, 5000)) <= set(values.tolist())
    assert np.diff(shares).max() < 1.1 / 199


def test_a_rank_is_a_quantile_or_the_geometric_mean_of_two() -> None:
    found = losses([1.0, 4.0, 100.0], [60.0, 39.5, 0.5])
    assert [loss_at(found, name) for name in ("median", "p99", "maximum")] == [1.0, 4.0, 100.0]
    assert loss_at(found, BALANCED) == pytest.approx(2.0)
    assert balance([4.0, 9.0]) == pytest.approx(6.0)
    assert balance([0.0, 9.0]) == 9.0
    assert balance([0.0, 0.0]) == balance([]) == 0.0
    assert balance([math.inf, 2.0]) == math.inf
    assert read_rank("p99") == "p99"
    with pytest.raises(ParameterError, match="must be one of balanced, median, p99, maximum"):
        read_rank("p98")


def test_records_that_lose_more_than_five_are_called_hardly_protected_from_a_tenth_on() -> None:
    def told(share: float, loss: float = 5.1) -> str:
        return (hardly_protected(losses([1.0, loss], [100 * (1 - share), 100 * share])) or "none").split(" of the")[0]

    assert [told(each) for each in (0.09, 0.11, 0.24, 0.26, 0.49, 0.51)] == [
        "none",
        "A tenth",
        "A tenth",
        "A quarter",
        "A quarter",
        "Half",
    ]
    assert told(0.9, 5.0) == "none"


def test_deltas_are_at_most_one_and_only_where_keys_are_selected() -> None:
    found = _pair(gaussian_sum("emp", sigma=1), counted([2.0, 1.0], emp=[1.0, 2.0]))
    assert found.rho.values == pytest.approx([0.5, 2.0])
    assert (found.rho.records.tolist(), found.delta) == ([2.0, 1.0], None)
    assert _pair(constant(3), counted([4.0])).rho.to_json()["maximum"] == 3.0
    assert policy_names([gaussian_sum("emp", sigma=1), gaussian_sum("age", sigma=1) + constant(1)]) == ["age", "emp"]


# Classes of sizes.


@pytest.mark.parametrize(
    "largest, smallest, edges",
    [
        (950.0, 1.0, [1, 10, 100]),
        (1000.0, 1.0, [1, 10, 100, 1000]),
        (5.0, 0.02, [0.01, 0.1, 1]),
        (0.0, 1.0, [1]),
        (0.5, 0.5, [0.1]),
    ],
)
def test_classes_of_sizes_are_powers_of_ten_from_the_smallest_to_the_largest(
    largest: float, smallest: float, edges: list[float]
) -> None:
    assert class_edges(largest, smallest) == pytest.approx(edges)


def test_classes_are_named_by_their_limits() -> None:
    edges = [1, 10, 100]
    assert [class_name(edges, place, "emp") for place in range(4)] == [
        "emp 0",
        "emp 1 to below 10",
        "emp 10 to below 100",
        "emp from 100",
    ]
    assert class_name([], 0, "emp") == "emp"


class View:
    """Records by their values, or none if there are too many."""

    def __init__(self, found: ValueCounts | None, bins: Any = None) -> None:
        self.found, self.bins, self.conditions = found, bins, list[Any]()
        self.schema = SCHEMA

    def value_counts(self, names: Any, condition: Any = None) -> ValueCounts | None:
        return self.found

    def loss_bins(self, policies: Any, condition: Any = None) -> list[LossSummary]:
        self.conditions.append(condition)
        return [self.bins(len(self.conditions) - 1)] * len(policies)


SIGNED = Measure("pay", signed=True)
SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": rw.Measure.of("pay", signed=True)}, columns={"kind": "text"})


def test_losses_by_size_are_those_of_each_tenfold_class_of_the_first_measure_that_counts() -> None:
    view: Any = View(counted([10.0, 4.0, 3.0, 2.0, 1.0], emp=[0.0, 1.0, 9.0, 10.0, 99.0]))
    found = losses_by_size(view, gaussian_sum("emp", sigma=1), SCHEMA)
    assert [(each.name, each.records) for each in found] == [
        ("emp 0", 10),
        ("emp 1 to below 10", 7),
        ("emp from 10", 3),
    ]
    assert [each.median for each in found] == pytest.approx([0.0, 0.5, 50.0])
    assert [each.maximum for each in found] == pytest.approx([0.0, 40.5, 4900.5])
    assert found[1].p99 == pytest.approx(40.5)
    signed: Any = View(counted([1.0, 1.0], pay=[-50.0, 2.0]))
    names = [each.name for each in losses_by_size(signed, gaussian_sum(SIGNED, sigma=1), SCHEMA)]
    assert names == ["pay 1 to below 10", "pay from 10"]
    (whole,) = losses_by_size(View(counted([3.0])), constant(2), SCHEMA)  # type: ignore[arg-type]
    assert (whole.name, whole.records, whole.median) == (ALL, 3, 2.0)
    given: Any = View(counted([3.0, 1.0], emp=[5.0, 70.0]))
    assert [each.records for each in losses_by_size(given, constant(2), SCHEMA, measure="emp")] == [3, 1]


def test_too_many_values_are_counted_in_bins_of_fixed_classes() -> None:
    view: Any = View(None, lambda at: LossSummary(edges=np.array([1.0]), counts=np.array([at % 2 * 5, 0])))
    found = losses_by_size(view, gaussian_sum("emp", sigma=1), SCHEMA)
    # Every second class holds five records; the first is below 1, the last from a million.
    assert [each.name for each in found] == [
        "emp 1 to below 10",
        "emp 100 to below 1,000",
        "emp 10,000 to below 100,000",
        "emp from 1e+06",
    ]
    tests = [[(each.operator, each.literal) for each in own.parts] for own in view.conditions]
    assert tests == [
        [("<", 1)],
        [(">=", 1), ("<", 10)],
        [(">=", 10), ("<", 100)],
        [(">=", 100), ("<", 1000)],
        [(">=", 1000), ("<", 10_000)],
        [(">=", 10_000), ("<", 100_000)],
        [(">=", 100_000), ("<", 1_000_000)],
        [(">=", 1_000_000)],
    ]
    assert [each.records for each in found] == [5] * 4
    alone: Any = View(None, lambda at: LossSummary(edges=np.array([1.0]), counts=np.array([7, 0])))
    assert [(each.name, each.records) for each in losses_by_size(alone, constant(1), SCHEMA)] == [(ALL, 7)]


# Samples.


def test_few_records_are_all_in_the_sample_with_the_number_that_has_each_value() -> None:
    rows, weights = _chosen(counted([3.0, 1.0, 2.0], emp=[5.0, 1.0, 9.0]))
    assert dict(zip(rows.tolist(), weights.tolist())) == {0: 3.0, 1: 1.0, 2: 2.0}


def test_a_sample_is_evenly_spaced_and_holds_the_largest_with_next_to_no_weight() -> None:
    many = 3 * RECORDS
    values = np.random.default_rng(1).permutation(many).astype(float)
    rows, weights = _chosen(counted([1.0] * many, emp=values))
    heavy, light = weights >= 1, weights == NEXT_TO_NOTHING
    assert (int(heavy.sum()), weights[heavy].tolist()) == (RECORDS, [1.0] * RECORDS)
    # Of every three in order the middle one.
    assert np.sort(values[rows[heavy]]).tolist() == (3 * np.arange(RECORDS) + 1).tolist()
    largest = set(range(many - LARGEST, many)) - set((3 * np.arange(RECORDS) + 1).tolist())
    assert set(values[rows[light]].tolist()) == largest
    assert len(rows) == len(set(rows.tolist()))


def test_a_sample_ranks_losses_by_weight() -> None:
    view: Any = View(counted([6.0, 3.0, 1.0], emp=[1.0, 2.0, 10.0]))
    sample = RecordSample(view, [gaussian_sum("emp", sigma=1)], "median")
    found = sample.losses([gaussian_sum("emp", sigma=1), constant(4)])
    order = np.argsort(found[:, 0])
    np.testing.assert_allclose(found[order], [[0.5, 4.0], [2.0, 4.0], [50.0, 4.0]])
    assert sample.ranked(found[:, 0]) == pytest.approx(0.5)
    assert sample.ranked(found[:, 0], "p99") == pytest.approx(50.0)
    assert sample.ranked(found[:, 0], "maximum") == pytest.approx(50.0)
    assert sample.ranked(found[:, 0], BALANCED) == pytest.approx(5.0)
    assert len(sample.places(found[:, 0], BALANCED)) == 2
    empty: Any = View(counted([]))
    assert RecordSample(empty, [constant(1)], "median").weights.tolist() == [1.0]


def test_where_values_are_too_many_one_record_stands_for_the_rank() -> None:
    view: Any = View(None, lambda at: LossSummary(edges=np.array([1.0, 8.0]), counts=np.array([90, 10, 0])))
    sample = RecordSample(view, [constant(1)], "p99")
    assert sample.losses([constant(1), constant(2)]).tolist() == [[8.0, 8.0]]
    assert (sample.weights.tolist(), sample.columns) == ([1.0], {})


def test_texts_are_taken_with_their_rows() -> None:
    held = ValueCounts(
        columns={"emp": np.array([7.0, 1.0]), "kind": pa.array(["a", "b"])}, steps={}, records=np.ones(2)
    )
    sample = RecordSample(View(held), [gaussian_sum("emp", sigma=1)], "median")  # type: ignore[arg-type]
    pairs = dict(zip(sample.columns["emp"].tolist(), sample.columns["kind"].to_pylist()))
    assert pairs == {7.0: "a", 1.0: "b"}


# What is left of a budget.


def test_a_budget_covers_the_largest_share_of_two_digits_that_is_not_refused() -> None:
    error = BudgetError(query="the plan", reason="loss", witness=None, needed=math.nan, left=math.nan)

    def left(most: Fraction) -> Left:
        return Left(
            budget=None,
            refused=lambda policy: None if policy.loss({}) <= float(most) else error,
            is_new=True,
        )

    assert left(Fraction(1, 3)).share_covered(constant) == pytest.approx(0.33)
    assert left(Fraction(1, 10**7)).share_covered(constant) is None
    assert left(Fraction(11, 10**7)).share_covered(constant) in (Fraction(1, 10**6), Fraction(11, 10**7))
    assert left(Fraction(1)).refusal(constant(1)) is None
    assert "could not be proved" in str(left(Fraction(1)).refusal(constant(2)))
    assert left(Fraction(1)).needs_budget
    assert not Left(budget=constant(1), refused=lambda _: None, is_new=True).needs_budget
    assert not Left(budget=None, refused=lambda _: None, is_new=False).needs_budget


def test_words_about_a_budget_name_the_record_that_it_ends_at() -> None:
    told = BudgetError(
        query="the plan", reason="loss", witness={"emp": 3}, needed=2.0, left=0.5, record="a record with emp 3"
    )
    assert budget_words(told) == "for a record with emp 3 the plan needs a loss of 2, and 0.5 is left"


@pytest.mark.parametrize(
    "reserve, revision, expected", [(None, None, 1), (None, 0, 1), (None, 1, 0), (0, None, 0), (2, 0, 0)]
)
def test_a_plan_reserves_one_revision_unless_it_states_so_or_is_one(reserve: Any, revision: Any, expected: int) -> None:
    series = None if revision is None else SimpleNamespace(revision=revision)
    assert usual_reserve(SimpleNamespace(reserve=reserve, series=series)) == expected  # type: ignore[arg-type]


# Ten years of a series.


def test_ten_years_add_up_by_kind_of_establishment() -> None:
    """A fresh year costs x^2/2s^2 + rho; carried with c, staying costs (1-c)^2/(1-c^2) of it, coming 1/(1-c^2)."""
    query = rw.query().count(rw.Gaussian(rho="0.1")).sum("emp", rw.Gaussian(sigma=10))
    plan = Plan(schema=SCHEMA, queries=(query,))
    years = TenYears(carry=Fraction(3, 5), declared=True, noise=firm_policy(plan))
    year, record = 0.1 + 0.5, {"emp": 10}
    coming, leaving = 1 / 0.64, 0.36 / 0.64
    stays = year * 0.16 / 0.64
    found = years.losses(record)
    assert found["stable"] == pytest.approx((10 * year, year + 9 * stays))
    assert found["moves once"] == pytest.approx((10 * year, year * (1 + coming + leaving) + 8 * stays))
    assert found["enters after 5 years"] == pytest.approx((5 * year, year * coming + 4 * stays))
    assert found["leaves after 5 years"] == pytest.approx((5 * year, year * (1 + leaving) + 4 * stays))
    sizes = [10 * 1.05**at for at in range(10)]
    fresh = sum(0.1 + size**2 / 200 for size in sizes)
    carried = year + sum(0.1 * 0.16 / 0.64 + (now - 0.6 * before) ** 2 / 200 / 0.64 for before, now in pairwise(sizes))
    assert found["growing by 5 % a year"] == pytest.approx((fresh, carried))
    headers, rows = years.rows({"small": record})
    assert headers == ["over ten years", "", "fresh noise", "carry = 0.6"]
    assert rows[0][:3] == ["small", "stable", "6"]
    assert len(rows) == 5
    (first, *_) = years.notes()
    assert first.startswith("Noise is carried on: a change between two years has 0.89 of")
    assert "stays as it is 0.25 of a fresh year, one that moves 2.12" in first


def test_no_policy_is_spent_by_nothing() -> None:
    assert loss_at(_pair(Policy(), counted([2.0])).rho, "maximum") == 0.0


def test_ten_years_are_said_in_fresh_years_by_kind() -> None:
    """With a carry of .6 coming costs 1.5625 years, leaving .5625 and staying .25."""
    plan = Plan(schema=SCHEMA, queries=(rw.query().sum("emp", rw.Gaussian(sigma=10)),))
    years = TenYears(carry=Fraction(3, 5), declared=False, noise=firm_policy(plan))
    numbers = re.findall(r"([\d.]+) instead of ([\d.]+?)[,.](?: |$)", years.by_kind())
    grown = 1 + 1.5625 * sum((1.05 ** (year - 1) * 0.45) ** 2 for year in range(1, 10))
    fresh = sum(1.05 ** (2 * year) for year in range(10))
    expected = [(3.25, 10), (grown, fresh), (5.125, 10), (2.5625, 5), (2.5625, 5)]
    np.testing.assert_allclose([[float(one) for one in each] for each in numbers], expected, rtol=0.005)
    assert years.to_json({})["carry"] == "3/5"
