"""Policies as Spark SQL, run by Spark: the losses numpy computes, for random policies and for values at the edges of floats."""

import json
import math
from fractions import Fraction
from itertools import islice
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from engine_choice import as_installed
from policy.test_evaluators_agree import arrow_records, relative
from policy.test_outward import upper_policies
from random_policies import DERIVED, random_policy, random_record
from recordwise.engines.spark.session import strict
from recordwise.engines.spark.store import spark_sql
from recordwise.policy import ConditionColumn, Measure, among, compare, constant, gaussian_sum, split
from recordwise.policy.evaluate.sql import terms_sql

POLICIES, RECORDS = 8, 120
LONGEST, LONGEST_SAVED = 1500, 800
"""Characters of a policy in SQL, and as saved: Spark's parser learns a new depth of nesting slowly, so the longest are left to
DuckDB. A long saved form has no short SQL, which takes far longer to write."""


@pytest.fixture(scope="module")
def ours(spark_session):
    """A session with the settings of the engine: ANSI mode, in which 1/0 and NULL in GREATEST are not what DuckDB makes of them."""
    with as_installed(spark_session):
        return strict(spark_session)


def computed(session, table, trees):
    """The losses, by the text that the engine would run."""
    session.createDataFrame(table).createOrReplaceTempView("records")
    named = [exp.alias_(tree, f"c{number}") for number, tree in enumerate(trees)]
    found = session.sql(spark_sql(exp.select(*named).from_("records"))).toArrow()
    return [found[f"c{number}"].to_numpy() for number in range(len(trees))]


def test_spark_computes_the_losses_numpy_computes(ours) -> None:
    rng = Random(700)
    table = arrow_records([random_record(rng) for _ in range(RECORDS)])
    drawn = (random_policy(rng, measures=DERIVED) for _ in range(20 * POLICIES))
    few = (policy for policy in drawn if len(json.dumps(policy.to_json())) < LONGEST_SAVED)
    policies = list(islice((policy for policy in few if len(policy.to_sql("spark")) < LONGEST), POLICIES))
    assert len(policies) == POLICIES
    for policy in policies:
        rho, delta = computed(ours, table, [terms_sql(each, "spark") for each in (policy.rho, policy.delta_terms)])
        assert relative(policy.loss(table), rho) <= 1e-12
        assert relative(policy.delta(table), delta) <= 1e-12


def test_spark_runs_the_text_that_is_published(ours) -> None:
    policy = split("0.1", {"emp": 50}) + gaussian_sum("pay", sigma=70).where(
        among(ConditionColumn("state"), ["06", "it's \\"])
    )
    rng = Random(1)
    table = arrow_records([random_record(rng) for _ in range(RECORDS)])
    ours.createDataFrame(table).createOrReplaceTempView("records")
    found = ours.sql(f"SELECT {policy.to_sql('spark')} AS loss FROM records").toArrow()
    assert relative(policy.loss(table), found["loss"].to_numpy()) <= 1e-12


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "BIGINT", "DECIMAL(20,0)"])
def test_spark_compares_whole_numbers_that_are_no_floats_as_we_do(ours, kind: str) -> None:
    listed = [0, 5, 2**24, 2**53, 2**60, 2**60 + 256, 2**63 - 1024] + ([2**63, 2**63 + 1] if kind != "BIGINT" else [])
    rows = " UNION ALL ".join(f"SELECT CAST({value} AS {kind}) AS id" for value in listed)
    ours.sql(rows).createOrReplaceTempView("large")
    held = ours.table("large").toArrow()
    values = (2**24 + 1, 2**53 + 1, 2**60 + 2**36 + 1, 2**63 - 1, 2**63, 2**63 + 1, 10**23)
    tests = [among("id", [value, 5], inside=inside) for value in values for inside in (True, False)]
    tests += [compare("id", order, value) for value in values for order in ("<", ">=")]
    policies = [constant(1).where(each) for each in tests]
    named = ", ".join(f"{policy.to_sql('spark')} AS c{number}" for number, policy in enumerate(policies))
    found = ours.sql(f"SELECT {named} FROM large").toArrow()
    for number, policy in enumerate(policies):
        assert found[f"c{number}"].to_pylist() == list(policy.loss(held)), (tests[number], kind)


def test_spark_keeps_the_digits_of_losses_at_every_magnitude(ours) -> None:
    values = [0.0, 2.0**-150, 1e-20, 1e-3, 1.0, 1e10, 1e100, 1e150]
    policies = upper_policies()
    found = computed(ours, pa.table({"v": values}), [terms_sql(policy.rho, "spark") for policy in policies])
    for policy, losses in zip(policies, found):
        for value, loss in zip(values, losses):
            exact = policy.loss({"v": value})
            if 1e-290 < exact < 1e290:
                assert abs(loss / exact - 1) <= 1e-12, (value, policy)


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize("step", ["1", "0.01", "1/3"])
def test_floats_near_lattice_points_never_count_fewer_pieces_in_spark_than_the_exact_rule(ours, step: str) -> None:
    measure, rng, values = Measure("v", Fraction(step)), Random(5), []
    for _ in range(1500):
        value = float(measure.step * rng.randrange(1, 2 ** rng.randint(1, 45)))
        for _ in range(rng.randint(0, 12)):
            value = math.nextafter(value, rng.choice([0, math.inf]))
        values.append(value)
    at = 7 * measure.step
    (found,) = computed(ours, pa.table({"v": values}), [terms_sql(split(1, {measure: at}).rho, "spark")])
    exact = [max(1, -(-measure.steps(Fraction(repr(value))) // 7)) for value in values]
    counted = np.sqrt(found)
    assert all(count >= least * (1 - 1e-12) for count, least in zip(counted, exact))
    assert all(count <= (least + 1) * (1 + 1e-12) for count, least in zip(counted, exact))
