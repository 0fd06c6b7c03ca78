"""Noise in proportion to public sizes: what is drawn, what it costs, where sizes may come from (T-SIZE)."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from build import employers
from divergences import published, zcdp
from recordwise.errors import BudgetError, KeysError, ParameterError, PlanError
from recordwise.ledger.ledger import Ledger
from recordwise.plan.cost import cell_mechanisms, plan_policy
from recordwise.plan.plan import Plan
from recordwise.release.verify import verify

CELLS: dict[str, Any] = {
    "county": ["001", "001", "003", "003", "005"],
    "naics": ["1111", "1121", "1111", "4451", "4451"],
    "emp_2016": [40.0, 399.0, 400.0, 3000.0, None],
    "n_2016": [4, 30, 40, 100, 0],
}
SOURCE = "public: county tables 2016"


def keys(**given: Any) -> rw.Keys:
    """The cells with their sizes, or with what is given in place of them."""
    asked = {"size": {"emp": "emp_2016", "count": "n_2016"}, "sized_on": SOURCE} | given
    frame = CELLS if isinstance(asked["size"], str | dict | int) else {n: CELLS[n] for n in ("county", "naics")}
    return rw.Keys.of(frame, **asked)


def records(rows: int = 400) -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    at = rng.integers(0, 5, rows)
    return {
        "id": list(range(rows)),
        "county": [CELLS["county"][cell] for cell in at],
        "naics": [CELLS["naics"][cell] for cell in at],
        "emp": [int(size) for size in rng.lognormal(2, 1, rows)],
    }


def session(ledger: Any = None, **given: Any) -> rw.Session:
    return employers(records(), "county", "naics", ledger=ledger, **given)


GAUSSIAN = rw.Sized(rw.Gaussian(sigma="0.1"), floor=100)
WITH_LOW = rw.Sized(rw.Gaussian(sigma="0.1"), floor=100, low=rw.GeneralizedGaussian(shape="0.5", scale="0.05"))
KINDS = {
    "gaussian": GAUSSIAN,
    "fat-tailed below": WITH_LOW,
    "unit splitting": rw.Sized(rw.UnitSplit(at="0.05", rho="0.1"), floor=100),
    "polylog": rw.Sized(rw.Polylog(power=2, rate=1, offset=3, scale="0.1"), floor=100),
    "logarithm": rw.Sized(rw.LogTransform(offset="0.2", sigma="0.5"), floor=100),
    "square root": rw.Sized(rw.RootTransform(degree=2, offset="0.1", sigma="0.2"), floor=100),
}


def query(mechanism: Any, **given: Any) -> rw.Query:
    return rw.query().group_by("county", "naics", keys=keys(**given)).sum("emp", mechanism)


def plan_of(*queries: rw.Query) -> Plan:
    with session() as opened:
        return Plan(schema=opened.schema, queries=queries)


def served(plan: Plan) -> dict[tuple[str, str], Any]:
    """The mechanism that draws for each cell."""
    (table,) = plan.tables()
    cells = plan.cells(table)
    (statistic,) = plan.queries[0].draws()
    names = list(zip(*(cells.column(name).to_pylist() for name in cells.column_names)))
    found = cell_mechanisms(plan, table, statistic, cells)
    return {names[row]: each.mechanism for each in found for row in each.run.rows}


SHIFTS = (7, 60, 500)
REACH = 30_000
"""Lattice points on either side of 0; what lies beyond can only be missing in a divergence."""


def lost(mechanism: Any, total: int, other: int, *, reach: int) -> float:
    """At least so much is lost by a cell of two totals."""
    return zcdp(published(mechanism, total, reach), published(mechanism, other, reach))


QUICK = ("gaussian", "unit splitting")
"""Certified losses and fine grids take long, band by band."""
BY_KIND = [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]


@pytest.mark.theorem("T-SIZE")
@pytest.mark.parametrize("kind", BY_KIND)
@pytest.mark.costly
def test_what_is_drawn_for_a_cell_never_costs_more_than_the_policy_says(kind: str) -> None:
    plan = plan_of(query(KINDS[kind]))
    policy = plan_policy(plan)
    for (county, naics), mechanism in served(plan).items():
        for shift in SHIFTS:
            true = lost(mechanism, 300, 300 + shift, reach=4_000 if kind in QUICK else REACH)
            assert true <= policy.loss({"emp": shift, "county": county, "naics": naics}) * (1 + 1e-9)


@pytest.mark.theorem("T-SIZE")
def test_the_policy_of_the_next_band_is_refuted_by_what_is_drawn() -> None:
    """A band edge off by one: the loss of the band above is below what the cells of this band really lose."""
    plan = plan_of(query(GAUSSIAN))
    policy = plan_policy(plan)
    (table,) = policy.bands().values()
    mechanism = served(plan)["001", "1121"]
    true = lost(mechanism, 300, 360, reach=4_000)
    own = {"emp": 60, "county": "001", "naics": "1121"}
    assert table.band_of(own) == 1
    assert 0.99 * policy.loss(own) < true
    assert policy.loss({**own, "county": "003", "naics": "1111"}) < 0.5 * true


def test_a_size_on_an_edge_is_in_the_band_that_begins_there() -> None:
    (table,) = plan_policy(plan_of(query(GAUSSIAN))).bands().values()
    found = {cell: table.band_of(dict(zip(("county", "naics"), cell))) for cell in zip(CELLS["county"], CELLS["naics"])}
    assert found == {
        ("001", "1111"): 0,  # 40
        ("001", "1121"): 1,  # 399
        ("003", "1111"): 2,  # 400
        ("003", "4451"): 4,  # 3000
        ("005", "4451"): 0,  # not known
    }
    assert table.edges == tuple(Fraction(100 * 2**band) for band in range(5))


def test_counts_have_sizes_of_their_own_and_levels_add_up_theirs() -> None:
    asked = (
        rw.query()
        .group_by("county", keys=keys())
        .levels(rw.prefix("naics", 2), rw.prefix("naics", 4))
        .count(rw.Sized(rw.Gaussian(sigma="0.1"), floor=10))
        .sum("emp", GAUSSIAN)
    )
    policy = plan_policy(plan_of(asked))
    assert len(policy.bands()) == 4
    shown = {"county": "001", "naics": "1121"}
    by_columns = {tuple(column.length for column in table.columns): table for table in policy.bands().values()}
    assert set(by_columns) == {(None, 2), (None, 4)}
    sums = sorted(
        (table.edges[0], [column.length for column in table.columns], table.band_of(shown))
        for table in policy.bands().values()
    )
    # 34 and 30 establishments of a floor of 10; 439 and 399 employees of a floor of 100.
    assert sums == [(10, [None, 2], 1), (10, [None, 4], 1), (100, [None, 2], 2), (100, [None, 4], 1)]


def test_low_bands_have_the_other_law_and_bound_the_loss_of_a_giant() -> None:
    plan = plan_of(query(WITH_LOW))
    kinds = {cell: type(mechanism).__name__ for cell, mechanism in served(plan).items()}
    assert kinds["001", "1111"] == kinds["005", "4451"] == "GeneralizedGaussian"
    assert kinds["001", "1121"] == kinds["003", "4451"] == "Gaussian"
    giant = {"emp": 50_000, "county": "005", "naics": "4451"}
    assert plan_policy(plan).loss(giant) < 150 < 10_000 < plan_policy(plan_of(query(GAUSSIAN))).loss(giant)
    wider = rw.Sized(WITH_LOW.mechanism, floor=100, low=WITH_LOW.low, low_below=800)
    assert type(served(plan_of(query(wider)))["003", "1111"]).__name__ == "GeneralizedGaussian"


@pytest.mark.parametrize("kind", BY_KIND)
@pytest.mark.costly
def test_a_release_has_the_noise_of_each_band_and_verifies(kind: str, tmp_path: Path) -> None:
    with session(tmp_path / "a.ledger") as opened:
        release = opened.run(query(KINDS[kind]), rng=rw.noise.Seeded(5))
        losses = opened.owner.loss_summary(release.policy)
    release.save(tmp_path / "out")
    assert rw.read(tmp_path / "out").policy == release.policy
    assert verify(tmp_path / "a.ledger", against=[tmp_path / "out"]) == []
    ledger = Ledger.existing(tmp_path / "a.ledger")
    assert ledger.spent() == release.policy
    ledger.close()
    exact = np.asarray(release.policy.loss(records()))
    assert losses.counts.sum() == len(exact)
    assert losses.share_above(float(np.quantile(exact, 0.5)) * 1.2) <= 0.5


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sized_on": None}, "sized_on"),
        ({"sized_on": "my own records"}, "public: SOURCE"),
        ({"sized_on": "public: "}, "public: SOURCE"),
        ({"size": "emp_2017"}, "no column"),
        ({"size": 3}, "mapping"),
    ],
)
def test_sizes_need_a_column_and_a_public_source(given: dict[str, Any], told: str) -> None:
    with pytest.raises(KeysError, match=told):
        keys(**given)


def test_sizes_are_numbers() -> None:
    with pytest.raises(KeysError, match="numbers"):
        rw.Keys.of({"county": ["001"], "emp": ["many"]}, size="emp", sized_on=SOURCE)


def test_a_sized_mechanism_needs_sizes() -> None:
    with pytest.raises(PlanError, match="give no size"):
        plan_of(
            rw.query()
            .group_by("county", "naics", keys=rw.Keys.of({n: CELLS[n] for n in ("county", "naics")}))
            .sum("emp", GAUSSIAN)
        )
    with pytest.raises(PlanError, match="give no size"):
        plan_of(query(GAUSSIAN, size={"count": "n_2016"}))
    with pytest.raises(PlanError, match="give no size"):
        plan_of(rw.query().sum("emp", GAUSSIAN))


@pytest.mark.parametrize(
    "made",
    [
        lambda: rw.Sized(rw.Clamped(to=50, rho="0.1"), floor=100),
        lambda: rw.Sized(rw.Gaussian(sigma="0.1"), floor=0),
        lambda: rw.Sized(rw.Gaussian(sigma="0.1"), floor=100, low=rw.LogTransform(offset=1, sigma=1)),
        lambda: rw.Sized(rw.Gaussian(sigma="0.1"), floor=100, low_below=300),
        lambda: rw.Sized(rw.UnitSplit(at=rw.by("county", {"001": 5}, default=9), rho="0.1"), floor=100),
        lambda: rw.Sized("noise", floor=100),
    ],
)
def test_mechanisms_that_are_no_share_of_a_size_are_refused(made: Any) -> None:
    with pytest.raises(ParameterError):
        made()


SPENT, LEFT = rw.policy.gaussian_sum("emp", sigma=20), rw.policy.gaussian_sum("emp", sigma=25)
"""What the first release costs, and what the budget leaves to the second."""


def released(tmp_path: Path, *, rng: Any = None, name: str = "first", budget: Any = SPENT + LEFT) -> Path:
    with session(tmp_path / f"{name}.ledger", budget=budget) as opened:
        asked = rw.query().group_by("county", "naics", keys=keys()).sum("emp", rw.Gaussian(sigma=20), alias="emp")
        return opened.run(asked, rng=rng).save(tmp_path / name)


def test_an_earlier_private_release_may_be_the_size(tmp_path: Path) -> None:
    folder = released(tmp_path)
    given = {"size": rw.FromRelease(release=str(folder), column="emp"), "sized_on": None}
    with session(tmp_path / "first.ledger", budget=SPENT + LEFT) as opened:
        release = opened.run(query(GAUSSIAN, **given))
    published = rw.read(folder)
    stated = release.to_json()["plan"][0]["tables"][0]
    assert stated["sized_on"] == [f"release {published.digest}"]
    assert "the unconditional promise is the budget" in release.to_json()["sized_noise"]
    (table,) = release.policy.bands().values()
    last = published.table.to_pylist()
    for row in last:
        # The lowest band is raised to a sigma of 40, which the budget covers.
        size = max(row["emp"], 400)
        assert table.edges[table.band_of({"county": row["county"], "naics": row["naics"]})] <= size


NO_BUDGET, ELSEWHERE, UNBOUND = "without a declared budget", "was not charged to this ledger", "a period without"


@pytest.mark.parametrize(
    ("first", "ledger", "second", "told"),
    [
        (SPENT + LEFT, "other", SPENT + LEFT, ELSEWHERE),
        (SPENT + LEFT, None, SPENT + LEFT, ELSEWHERE),
        (SPENT + LEFT, "other", None, NO_BUDGET),
        (None, "first", None, NO_BUDGET),
    ],
)
@pytest.mark.theorem("T-SIZE")
@pytest.mark.costly
def test_sizes_of_ours_hold_only_under_a_declared_budget_of_the_same_ledger(
    tmp_path: Path, first: Any, ledger: str | None, second: Any, told: str
) -> None:
    """Otherwise the promise over time depends on noise: release.json promised the budget of a ledger that knew nothing of it."""
    folder = released(tmp_path, budget=first)
    given = {"size": rw.FromRelease(release=str(folder), column="emp"), "sized_on": None}
    place = None if ledger is None else tmp_path / f"{ledger}.ledger"
    with session(place, budget=second) as opened:
        before = len(opened.history())
        with pytest.raises(KeysError, match=told):
            opened.run(query(GAUSSIAN, **given))
        assert len(opened.history()) == before
        seeded = opened.run(query(GAUSSIAN, **given), rng=rw.noise.Seeded(1))
    assert not seeded.private
    assert seeded.to_json()["sized_noise"].endswith("over time, nothing is promised")


@pytest.mark.theorem("T-SIZE")
def test_sizes_of_an_earlier_period_need_a_budget_of_that_period_too(tmp_path: Path) -> None:
    def opens(period: str, **budgets: Any) -> rw.Session:
        return session(tmp_path / "s.ledger", series=rw.Series(name="s", period=period, **budgets))

    asked = rw.query().group_by("county", "naics", keys=keys()).sum("emp", rw.Gaussian(sigma=20), alias="emp")
    with opens("2024") as opened:
        unbound = opened.run(asked).save(tmp_path / "2024")
    with opens("2025", every_period=SPENT + LEFT) as opened:
        bound = opened.run(asked).save(tmp_path / "2025")
    with opens("2026", every_period=SPENT + LEFT) as opened:
        for folder, told in ((unbound, UNBOUND), (bound, None)):
            given = {"size": rw.FromRelease(release=str(folder), column="emp"), "sized_on": None}
            if told is not None:
                with pytest.raises(KeysError, match=told):
                    opened.run(query(GAUSSIAN, **given))
            else:
                assert "sum of the budgets" in opened.run(query(GAUSSIAN, **given)).to_json()["sized_noise"]


def test_a_release_that_is_not_private_is_never_a_size(tmp_path: Path) -> None:
    folder = released(tmp_path, rng=rw.noise.Seeded(1))
    given = {"size": rw.FromRelease(release=str(folder), column="emp"), "sized_on": None}
    with session(tmp_path / "second.ledger") as opened, pytest.raises(KeysError, match="NOT PRIVATE"):
        opened.run(query(GAUSSIAN, **given))


def test_bands_of_our_own_sizes_are_raised_until_the_budget_covers_them(tmp_path: Path) -> None:
    folder = released(tmp_path)
    given = {"size": rw.FromRelease(release=str(folder), column="emp"), "sized_on": None}
    with session(tmp_path / "first.ledger", budget=SPENT + LEFT) as opened:
        release = opened.run(query(GAUSSIAN, **given))
        (table,) = release.policy.bands().values()
        assert LEFT.dominates(release.policy)
        # At sizes of 100 and 200 the noise would have a sigma of 10 and 20, which the budget does not cover.
        assert min(table.edges[band] for band in table.bands) >= 250
        assert "the unconditional promise is the budget" in release.to_json()["sized_noise"]
        with pytest.raises(BudgetError):
            opened.run(query(GAUSSIAN))


def test_a_plan_file_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("county,naics,emp_2016\n001,1111,40\n003,4451,3000\n")
    text = """
dataset = "test"
source = "records.parquet"
ledger = "plan.ledger"
tuned_on = "synthetic"

[schema]
unit = "id"
measures = { emp = 1 }
columns = { county = "text", naics = "text" }

[mechanisms.share]
kind = "Sized"
floor = 100
mechanism = { kind = "Gaussian", sigma = 0.1 }
low = { kind = "GeneralizedGaussian", shape = 0.5, scale = 0.05 }

[keys]
cells = { file = "keys.csv", size = "emp_2016", sized_on = "public: county tables 2016" }

[[queries]]
group_by = ["county", "naics"]
keys = "cells"
sum.emp = "share"
"""
    (tmp_path / "plan.toml").write_text(text)
    loaded = rw.load_plan(tmp_path / "plan.toml")
    policy = plan_policy(loaded.plan)
    (table,) = policy.bands().values()
    assert table.band_of({"county": "003", "naics": "4451"}) == 4
    assert policy.loss({"emp": 80, "county": "003", "naics": "4451"}) == pytest.approx(80**2 / (2 * 160**2))


def test_without_sizes_the_policy_is_the_largest_of_any_band() -> None:
    unknown = WITH_LOW.policy("emp")
    for edge in WITH_LOW.edges(10_000):
        own = WITH_LOW.at_size(edge).policy("emp")
        assert all(own.loss({"emp": size}) <= unknown.loss({"emp": size}) for size in (1, 20, 400, 90_000))
