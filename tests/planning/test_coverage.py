"""Goals are reached by what is really released: plans on the demo's establishments, each released 200 times.

A release draws every cell anew, and a cell meets its goal in it if its published value is within the goal of the exact total. With
a probability of at least 0.95 in each cell that must, the hits among n independent draws fall below the 1e-9 quantile of
Binomial(n, 0.95) with probability at most 1e-9: that is the false-alarm rate. It is asked of the cells that decide, those within
5 % of the smallest total that must meet the goal, some thousand draws, and of all that must. Power: the same releases are held
against a goal a quarter narrower, which the deciding cells meet about 86 times in 100; 0.86 +- 0.01 lies below the quantile
(about 0.91 of a thousand draws) by four standard errors, so that the check fails with probability above 0.9999.
"""

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

import recordwise as rw
from build import employers
from recordwise.noise import Seeded
from recordwise.plan.file import load_plan
from recordwise.planning import Goal, recommend
from recordwise.session import Session
from recordwise.synthetic import establishments, public_keys

ROWS, RELEASES, FALSE_ALARM = 30_000, 200, 1e-9
WITHIN, LEVEL, SHARE = 0.1, 0.95, 0.8
CANDIDATES = {
    "Gaussian": rw.Gaussian(sigma=1),
    "fourth root": rw.RootTransform(degree=4, offset=1000, sigma=1),
    "logarithm": rw.LogTransform(offset=1000, sigma=1),
    "logarithm, Laplace": rw.LogTransform(offset=1000, laplace_scale="0.2"),
    "generalized Gaussian 1/2": rw.GeneralizedGaussian(shape="0.5", scale=1),
}


@pytest.fixture(scope="module")
def table():
    return establishments(ROWS)


@pytest.fixture(scope="module")
def keys():
    """Public: every state and two-digit industry there is."""
    listed = public_keys()
    states, codes = (
        sorted({text[:2] for text in pc.unique(listed.column(name)).to_pylist()}) for name in ("county", "naics")
    )
    return rw.Keys.product(county2=states, naics2=codes)


def goal(keys):
    by = rw.query().group_by(rw.prefix("county", 2), rw.prefix("naics", 2), keys=keys)
    return Goal("emp", by, within=WITHIN, confidence=LEVEL, share=SHARE)


def opened(table):
    return employers(table, "county", "naics", unit="estab_id", firm="firm_id", measures={"emp": 1, "payann": 1})


def truth(table, released):
    """The exact total of each published cell."""
    sums: dict[tuple[str, str], int] = {}
    for county, code, emp in zip(*(table.column(name).to_pylist() for name in ("county", "naics", "emp"))):
        sums[county[:2], code[:2]] = sums.get((county[:2], code[:2]), 0) + emp
    cells = zip(released.column("county2").to_pylist(), released.column("naics2").to_pylist())
    return np.array([sums.get(cell, 0) for cell in cells], dtype=np.float64)


def relative_errors(session, queries, table):
    """Of each release (row) and each cell that must meet the goal (column), the cells with the smallest totals first."""
    found = []
    for seed in range(RELEASES):
        released = session.run(*queries, rng=Seeded(seed)).table
        if not found:
            exact = truth(table, released)
            order = np.argsort(exact)
            held = order[exact[order] > 0]
            must = held[int((1 - SHARE) * len(held)) :]
        value = np.asarray(released.column("sum_emp").to_numpy(), np.float64)
        found.append(np.abs(value - exact)[must] / exact[must])
    return np.array(found), exact[must]


def reached(errors, totals, within):
    """Whether neither the cells that decide nor all together miss the goal more often than chance explains."""
    deciding = totals <= 1.05 * totals[0]
    for cells in (deciding, np.full(len(totals), True)):
        hits = errors[:, cells] <= within * (1 + 1e-12)
        if hits.sum() < binom.ppf(FALSE_ALARM, hits.size, LEVEL):
            return False
    return True


def check(session, queries, table, *, narrower=0.75):
    errors, totals = relative_errors(session, queries, table)
    assert (totals <= 1.05 * totals[0]).sum() >= 5, "too few cells decide for the power stated above"
    assert reached(errors, totals, WITHIN)
    assert not reached(errors, totals, narrower * WITHIN)


@pytest.mark.slow
def test_the_recommended_plan_released_200_times_reaches_its_goal_and_no_narrower_one(table, keys, tmp_path):
    pq.write_table(table, tmp_path / "establishments.parquet")
    candidates = {name: each for name, each in CANDIDATES.items() if "generalized" not in name}
    with opened(table) as session:
        advice = recommend(session, goal(keys), candidates=candidates, data="synthetic")
        path = advice.plan(source="establishments.parquet", ledger="books.ledger").save(tmp_path / "plan.toml")
    file = load_plan(path)
    with Session.from_plan(file, data="confidential") as session:
        check(session, file.plan.queries, table)


@pytest.mark.slow
@pytest.mark.parametrize("name", CANDIDATES)
def test_the_fit_of_every_family_released_200_times_reaches_its_goal_and_no_narrower_one(table, keys, name):
    with opened(table) as session:
        fitted = recommend(
            session, goal(keys), candidates={name: CANDIDATES[name]}, keep_offsets=True, data="synthetic"
        )[name]
        # Fat tails leave a goal of three quarters nearly met; half of it is met 85 times in 100.
        check(session, fitted.queries(), table, narrower=0.5 if "generalized" in name else 0.75)
