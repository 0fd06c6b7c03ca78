"""The same release from DuckDB and from Spark: with the same noise, the same to the last digit of every table."""

import datetime
from typing import Any

import pyarrow as pa
import pytest

import recordwise as rw
from build import CODES, COUNTIES, employers, keys, question, records
from recordwise.mechanisms.quantile import Grid
from recordwise.noise import Seeded
from recordwise.plan import Measure

pytestmark = pytest.mark.usefixtures("spark_as_installed")

GRID = Grid.log(1, 10**5, bits=6)
NET, REST = Measure.of("net", signed=True), Measure.of("rest", derive="pay - 40 * emp")


def levels_and_sums() -> Any:
    return question()


def firms_averages_and_quantiles() -> Any:
    asked = rw.query().where("emp > 1 AND naics <> '112'").group_by("county", keys=rw.Keys.product(county=COUNTIES))
    asked = asked.count_distinct("firm", rw.Gaussian(rho="0.1"))
    asked = asked.avg("emp", sum=rw.UnitSplit(at=20, rho="0.1"), count=rw.Gaussian(rho="0.1"))
    return asked.quantile("pay", p="0.5", grid=GRID, rho="0.1").sum("pay", rw.Clamped(to=900, rho="0.1"))


def firms_at_every_level() -> Any:
    asked = rw.query().group_by("county", keys=keys()).levels(rw.prefix("naics", [1, 2]), "naics")
    return asked.count_distinct("firm", rw.Gaussian(rho="0.1")).count(rw.Gaussian(rho="0.1"))


def keys_selected_on_pieces() -> Any:
    chosen = rw.Keys.select(rho="0.5", delta="1e-3", pieces={"emp": 5})
    asked = rw.query().where("emp > 0").group_by("county", rw.prefix("naics", 2), keys=chosen)
    return asked.sum("emp", rw.UnitSplit(at=5, rho="0.1")).quantile("pay", p="0.9", grid=GRID, rho="0.1")


def keys_selected_from_a_domain() -> Any:
    domain = {"county": COUNTIES, "naics": [*CODES, "999"]}
    chosen = rw.Keys.select_from(domain, rho="0.1", threshold=20)
    return rw.query().group_by("county", "naics", keys=chosen).sum("pay", rw.LogTransform(offset=10, sigma="0.5"))


def groups_by_size() -> Any:
    from recordwise.plan import parse_sql

    text = """SELECT CASE WHEN emp < 2 THEN 'tiny' WHEN emp BETWEEN 2 AND 9 THEN 'small' ELSE 'large' END AS size,
              COUNT(*), SUM(pay) FROM t WHERE NOT county IN ('03', 'x') GROUP BY size"""
    at = rw.by("county", {"01": 40, "02": 400}, default=4000)
    mechanisms = {"*": rw.Gaussian(rho="0.1"), "pay": rw.UnitSplit(at=at, rho="0.1")}
    return parse_sql(text, mechanisms=mechanisms, keys=rw.Keys.of({"size": ["tiny", "small", "large", "none"]}))


def signed_and_derived_sums_and_their_ratios() -> Any:
    asked = rw.query().where("net > -40").group_by("county", keys=rw.Keys.product(county=COUNTIES))
    asked = asked.sum("net", rw.LogTransform(offset=10, sigma="0.5", signed=True)).sum("emp", rw.Gaussian(sigma=3))
    asked = asked.sum("rest", rw.Gaussian(sigma=20)).sum("net", rw.Clamped(to=7, rho="0.1"), alias="cut")
    return asked.combine("rest + 40 * emp", alias="total").ratio("total", "emp", alias="mean")


def noise_by_public_sizes() -> Any:
    sizes = [40 * 3**number for number in range(len(COUNTIES))]
    sized = rw.Keys.of({"county": COUNTIES, "size": sizes}, size="size", sized_on="public: a census")
    asked = rw.query().group_by("county", keys=sized).count(rw.Sized(rw.Gaussian(sigma="0.1"), floor=50))
    return asked.sum("pay", rw.Sized(rw.LogTransform(offset="0.2", sigma="0.5"), floor=50))


QUESTIONS = [
    levels_and_sums,
    signed_and_derived_sums_and_their_ratios,
    firms_averages_and_quantiles,
    firms_at_every_level,
    keys_selected_on_pieces,
    keys_selected_from_a_domain,
    groups_by_size,
    noise_by_public_sizes,
]


def session(rows: Any, **how: Any) -> rw.Session:
    measures = {"emp": 1, "pay": 1, "net": NET, "rest": REST}
    return employers(rows, firm="firm", measures=measures, dataset="small", **how)


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    found = records(300)
    return found.append_column("net", pa.array([number % 131 - 65 for number in range(300)], pa.int8()))


@pytest.fixture(scope="module")
def on_spark(rows, spark_session):
    """One validated session for all questions."""
    with session(rows, engine="spark", spark=spark_session) as opened:
        yield opened


@pytest.mark.parametrize("asks", QUESTIONS, ids=lambda asks: asks.__name__)
def test_both_engines_publish_the_same_tables_with_the_same_noise(rows, on_spark, asks) -> None:
    with session(rows) as here:
        ours = here.run(asks(), rng=Seeded(9))
    theirs = on_spark.run(asks(), rng=Seeded(9))
    assert ours.digest == theirs.digest
    assert [table.data.to_pydict() for table in ours.tables] == [table.data.to_pydict() for table in theirs.tables]
    assert ours.policy == theirs.policy


@pytest.mark.parametrize(
    "split", [{"emp": 3, "pay": 100}, {"net": 9, "rest": 5}, {"pay": rw.by("county", {"01": 90}, default=1000)}]
)
def test_both_engines_cut_the_same_pieces_in_the_same_types(rows, on_spark, split) -> None:
    seen: list[pa.Table] = []
    with session(rows) as here:
        for opened in (here, on_spark):
            opened.run_external(lambda table: seen.append(table) or 0, split=split, rho=1)
    assert seen[0].equals(seen[1])


def test_both_engines_tell_the_owner_the_same_losses(rows, on_spark) -> None:
    asked = rw.query().group_by("county", keys=rw.Keys.product(county=COUNTIES))
    asked = asked.sum("pay", rw.LogTransform(offset=100, sigma=1)).sum("emp", rw.UnitSplit(at=5, rho="0.1"))
    asked = asked.sum("net", rw.LogTransform(offset=9, sigma=1, signed=True)).sum("rest", rw.Gaussian(sigma=50))
    with session(rows) as here:
        policy = here.policy_of(asked) + here.policy_of(asked, tight=False)
        for bound in ("tight", "simple", "advanced"):
            found = [opened.owner.firm_loss_summary(policy, bound=bound).counts.tolist() for opened in (here, on_spark)]
            assert found[0] == found[1]
        assert here.owner.loss_summary(policy).counts.tolist() == on_spark.owner.loss_summary(policy).counts.tolist()
        realized = [opened.owner.realized_loss_summary(asked).counts.tolist() for opened in (here, on_spark)]
        assert realized[0] == realized[1]


def monthly_rows() -> pa.Table:
    """Plants with one to five rows each, some values missing, and profits of both signs."""
    units = [unit for unit in range(90) for _ in range(1 + unit % 5)]
    days = [datetime.date(1990 + unit % 30, 1 + unit % 12, 1 + unit % 28) for unit in units]
    return pa.table(
        {
            "plant": units,
            "state": [COUNTIES[unit % 3] for unit in units],
            "opened": pa.array(days),
            "kwh": pa.array([None if row % 7 == 0 else row * 3 for row in range(len(units))], pa.int64()),
            "customers": [row % 50 for row in range(len(units))],
            "profit": [(-1) ** row * row * 11 for row in range(len(units))],
        }
    )


def plants(**how: Any) -> rw.Session:
    measures = {
        "kwh": Measure.of("kwh", null="zero"),
        "customers": 1,
        "profit": Measure.of("profit", signed=True, bound=10**6),
        "margin": Measure.of("margin", derive="profit - 1/2 * kwh"),
    }
    rules = {"kwh": "sum", "customers": "max", "profit": "sum", "state": "same", "opened": "same"}
    columns = {"state": "text", "opened": "date"}
    return employers(monthly_rows(), unit="plant", measures=measures, columns=columns, collapse=rules, **how)


def test_both_engines_publish_the_same_of_collapsed_rows_dates_and_missing_values(spark_session) -> None:
    years = rw.Keys.product(state=COUNTIES, opened_quarter=[1, 2, 3, 4])
    asked = (
        rw.query()
        .where("EXTRACT(YEAR FROM opened) >= 1995 AND kwh > 5")
        .group_by("state", rw.quarter("opened"), keys=years)
    )
    asked = asked.count(rw.Gaussian(rho="0.1")).sum("kwh", rw.LogTransform(offset=10, sigma="0.5"))
    asked = asked.sum("customers", rw.UnitSplit(at=20, rho="0.1")).sum("margin", rw.Gaussian(sigma=20))
    asked = asked.sum("profit", rw.RootTransform(degree=2, offset=1, sigma=1, signed=True)).ratio("kwh", "customers")
    releases = []
    for how in ({}, {"engine": "spark", "spark": spark_session}):
        with plants(**how) as session:
            releases.append(session.run(asked, rng=Seeded(4)))
    ours, theirs = releases
    assert ours.digest == theirs.digest
    assert [table.data.to_pydict() for table in ours.tables] == [table.data.to_pydict() for table in theirs.tables]
    assert ours.policy == theirs.policy
