"""Losses where noise is sized, inside DuckDB and Spark: histograms are those of the losses of the records one by one (T-SIZE)."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.engines.owner import EDGES
from recordwise.plan import Column

CELLS: dict[str, Any] = {
    "county": ["001", "001", "003", "003", None],
    "naics": ["1111", "1121", "1111", "4451", "4451"],
    "emp": [40.0, 399.0, 400.0, 3000.0, 900.0],
    "pay": [4000.0, 100.0, 20_000.0, 50.0, 90.0],
}
KEYS = rw.Keys.of(CELLS, size={"emp": "emp", "pay": "pay", "count": "emp"}, sized_on="public: county tables")
SIZED = rw.Sized(rw.Gaussian(sigma="0.1037"), floor=100)
LOGARITHM = rw.Sized(rw.LogTransform(offset="0.2", sigma="0.5"), floor=100)
BY = rw.query().group_by("county", "naics", keys=KEYS)
UNKNOWN = rw.Keys.of(
    {"county": [None], "naics": ["4451"], "emp": [900.0]}, size="emp", sized_on="public: county tables"
)
LEVELS = rw.query().group_by("county", keys=KEYS).levels(rw.prefix("naics", 2), "naics")


def records(rows: int = 120) -> pa.Table:
    """Some of them in cells that are not listed."""
    rng = np.random.default_rng(4)
    at, other = rng.integers(0, 5, rows), rng.integers(0, 5, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "firm": rng.integers(0, 60, rows),
            "county": [CELLS["county"][cell] for cell in at],
            "naics": [CELLS["naics"][cell] for cell in np.where(rng.random(rows) < 0.2, other, at)],
            "emp": rng.lognormal(2, 1, rows).astype(np.int64),
            "pay": rng.lognormal(5, 2, rows).astype(np.int64),
        }
    )


RECORDS = records()


def opened_as(**how: Any) -> rw.Session:
    columns = {"county": Column(name="county", null="category"), "naics": "text"}
    measures = {"emp": 1, "pay": 1}
    return employers(RECORDS, firm="firm", measures=measures, columns=columns, dataset="sized", **how)


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def session(request: Any) -> Any:
    how = {}
    if request.param == "spark":
        how = {"engine": "spark", "spark": request.getfixturevalue("spark_session")}
    with opened_as(**how) as opened:
        yield opened


def in_bins(losses: Any, edges: Any = EDGES) -> list[int]:
    """How many losses are above one edge and at most the next. No loss is near an edge, so rounding does not matter."""
    return np.bincount(np.searchsorted(edges, losses, side="left"), minlength=len(edges) + 1).tolist()


QUERIES = {
    "one measure": BY.sum("emp", SIZED),
    "count and sum": BY.count(SIZED).sum("emp", SIZED),
    "two measures": BY.sum("emp", SIZED).sum("pay", SIZED),
    "levels": LEVELS.sum("emp", SIZED),
    "logarithm": BY.sum("emp", LOGARITHM),
    "condition": BY.where("naics <> '4451'").sum("emp", SIZED),
    "no county known": rw.query().group_by("county", "naics", keys=UNKNOWN).sum("emp", SIZED),
    "not sized": BY.sum("emp", rw.Gaussian(sigma=7)),
    "constant": BY.count(rw.Gaussian(sigma=7)),
}


def check_losses(session: rw.Session, name: str) -> None:
    policy = session.policy_of(QUERIES[name])
    exact = policy.loss(RECORDS.to_pydict()) * np.ones(len(RECORDS))
    assert session.owner.loss_summary(policy).counts.tolist() == in_bins(exact)
    (many,) = session.owner.view().loss_bins([policy])
    assert many.counts.sum() == len(RECORDS)
    assert many.quantile(0.5) == pytest.approx(np.quantile(exact, 0.5, method="inverted_cdf"), rel=0.03)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.costly
def test_losses_in_duckdb_are_those_of_the_records(name: str) -> None:
    with opened_as() as session:
        check_losses(session, name)


def test_losses_in_spark_are_those_of_the_records(spark_session: Any) -> None:
    with opened_as(engine="spark", spark=spark_session) as session:
        check_losses(session, "levels")


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_all_losses_in_spark_are_those_of_the_records(name: str, spark_session: Any) -> None:
    with opened_as(engine="spark", spark=spark_session) as session:
        check_losses(session, name)


def test_losses_of_firms_use_the_band_of_each_unit(session: rw.Session) -> None:
    policy = session.policy_of(QUERIES["levels"])
    roots = np.sqrt(policy.loss(RECORDS.to_pydict()))
    together = np.bincount(RECORDS.column("firm").to_numpy(), weights=roots, minlength=60) ** 2
    firms = np.unique(RECORDS.column("firm").to_numpy())
    assert session.owner.firm_loss_summary(policy).counts.tolist() == in_bins(together[firms])


def test_realized_losses_use_the_mechanism_of_each_band(session: rw.Session) -> None:
    """The floor's offset for all cells would state losses of large cells as if they were small."""
    query = QUERIES["logarithm"]
    found = session.owner.realized_loss_summary(query)
    policy = session.policy_of(query)
    (table,) = policy.bands().values()
    rows = [
        row for row in RECORDS.to_pylist() if (row["county"], row["naics"]) in set(zip(CELLS["county"], CELLS["naics"]))
    ]
    totals: dict[Any, int] = {}
    for row in rows:
        totals[row["county"], row["naics"]] = totals.get((row["county"], row["naics"]), 0) + row["emp"]
    losses = []
    for row in rows:
        own = LOGARITHM.at_size(table.edges[table.band_of({"county": row["county"], "naics": row["naics"]})])
        losses.append(own.realized_loss(totals[row["county"], row["naics"]] - row["emp"], row["emp"]))
    losses += [0.0] * (RECORDS.num_rows - len(rows))
    assert found.counts.tolist() == in_bins(losses)
