"""Shares chosen for fitted errors: against a fine grid of splits, and through recommend."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import recordwise as rw
from build import employers, few
from recordwise.errors import ParameterError
from recordwise.noise import Seeded
from recordwise.planning import Goal, plan_goals, plan_text, recommend
from recordwise.planning.scope import level_shares
from recordwise.planning.search.convex import LevelTree, _tangents, fitted_shares
from recordwise.planning.search.shares import fitted_split
from recordwise.postprocess.linear import AnswerTree, Crossing


def random_tree(seed, levels=3, *, sized=False):
    rng = np.random.default_rng(seed)
    parent, level, above = [-1], [0], [0]
    for depth in range(1, levels):
        fresh = []
        for node in above:
            for _ in range(int(rng.integers(1, 5))):
                fresh.append(len(parent))
                parent.append(node)
                level.append(depth)
        above = fresh
    return LevelTree(
        tree=AnswerTree.of(np.array(parent)),
        level=np.array(level),
        variance=np.full(len(parent), 100.0) if not sized else 100.0 * 4.0 ** rng.integers(0, 4, len(parent)),
        reach=rng.uniform(1, 30, len(parent)),
        may_miss=(0,) * levels,
    )


@pytest.mark.theorem("T-FITSHARES")
@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_split_of_a_fine_grid_is_better_and_the_gap_is_closed(seed, sized):
    tree = random_tree(seed, sized=sized)
    found = fitted_shares([tree])
    assert found.gap <= 1e-4
    assert found.shares.sum() == pytest.approx(1)
    grid = np.linspace(0.005, 0.99, 60)
    others = [np.array([a, b, 1 - a - b]) for a in grid for b in grid if a + b < 0.999]
    assert found.worst**2 * (1 - 1e-4) <= min(float(tree.squared_ratios(each).max()) for each in others)


@pytest.mark.theorem("T-FITSHARES")
@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_slopes_are_those_of_the_variances(seed, sized):
    tree, shares = random_tree(seed, sized=sized), np.array([0.2, 0.5, 0.3])
    values, slopes = _tangents([tree], [np.ones(len(tree.level), dtype=bool)], shares)
    for number in range(3):
        cell = int(np.argmax(np.where(tree.level == number, tree.squared_ratios(shares), -1)))
        assert values[number] == tree.squared_ratios(shares)[cell]
        for other in range(3):
            step = np.where(np.arange(3) == other, 1e-6, 0.0)
            slope = (tree.squared_ratios(shares + step)[cell] - tree.squared_ratios(shares - step)[cell]) / 2e-6
            assert slopes[number, other] == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.theorem("T-FITSHARES")
@pytest.mark.parametrize("sized, margins", [(False, False), (True, False), (False, True)])
def test_the_split_of_tables_that_cross_is_within_a_hundredth_of_the_best_on_a_grid(sized, margins):
    rng = np.random.default_rng(9)
    places, kinds = np.vstack([np.ones((1, 3)), np.eye(3)]), np.vstack([np.kron(np.eye(2), np.ones((1, 2))), np.eye(4)])
    blocks = [np.kron(one, two) for one in (places[1:], places[:1]) for two in (kinds[2:], kinds[:2])]
    rows = np.vstack(blocks)
    cells = {
        name: np.repeat(np.arange(3), 4) if name == "place" else np.tile(np.arange(4), 3) for name in ("place", "kind")
    }
    axes = [
        [cells["place"], cells["place"], np.zeros(12, int), np.zeros(12, int)],
        [cells["kind"], cells["kind"] // 2, cells["kind"], cells["kind"] // 2],
    ]
    sizes = [len(block) for block in blocks]
    tree = LevelTree(
        tree=Crossing.of(sparse.csr_array(rows), sizes, axes),
        level=np.repeat([3, 2, 1, 0], sizes),
        variance=100.0 * 4.0 ** rng.integers(0, 4, len(rows)) if sized else np.full(len(rows), 100.0),
        reach=rng.uniform(1, 30, len(rows)),
        may_miss=(0,) * 4,
    )
    if margins:
        # Goals about both margins alone, which no product of shares serves well.
        tree = replace(tree, reach=np.where((tree.level == 1) | (tree.level == 2), 10.0, np.inf))
    query = (
        rw.query()
        .levels(rw.prefix("county", [1, 2]))
        .levels(rw.prefix("naics", [1, 2]), keys=rw.Keys.product(county=["01"], naics=["31"]))
    )
    found = fitted_split(query, tree)
    assert sum(table.share for table in found.tables()) == 1
    best = tree.squared_ratios(level_shares(found)).max()

    def worst(shares):
        """From the inverses of all normal equations."""
        parts = [rows[tree.level == n].T / tree.variance[tree.level == n] @ rows[tree.level == n] for n in range(4)]
        covariance = np.linalg.inv(np.einsum("sl,lij->sij", shares, np.array(parts)))
        return (np.einsum("ij,sjk,ik->si", rows, covariance, rows) / tree.reach**2).max(axis=1)

    steps = 1 + np.array(
        [(a, b, c, 46 - a - b - c) for a in range(47) for b in range(47 - a) for c in range(47 - a - b)]
    )
    grid = np.linspace(0.01, 0.99, 50)
    products = np.array([np.outer([a, 1 - a], [b, 1 - b]).ravel() for a in grid for b in grid])
    assert best == pytest.approx(worst(level_shares(found)[None])[0], rel=1e-9)
    assert best <= 1.01 * worst(steps / 50).min()
    assert best < (0.9 if margins else 1) * worst(products).min()


def test_each_table_of_crossing_levels_has_its_own_share_in_plans_and_releases(session, tmp_path):
    keys = rw.Keys.product(county=["01", "02", "03"], naics=["311", "312", "313", "321", "441", "442"])
    crossed = rw.query().levels((), "county").levels((), "naics", keys=keys).sum("emp", rw.Gaussian(sigma=3))
    shares = ["1/10", "1/5", "3/10", "2/5"]
    query = crossed.with_shares(*shares)
    assert [str(level.share) for level in query.tables()] == shares
    record = {"emp": 30, "county": "01", "naics": "311"}
    assert session.policy_of(query).loss(record) == session.policy_of(crossed).loss(record) == 50
    release = session.run(query, rng=Seeded(2))
    spread = [float(np.unique(table.data.column("sum_emp_sd").to_numpy())[0]) for table in release.tables]
    np.testing.assert_allclose(spread, [(9 / float(Fraction(share))) ** 0.5 for share in shares], rtol=1e-6)
    made = plan_text([query], session.schema, dataset="d", source="t.csv", ledger="l", tuned_on="synthetic")
    (tmp_path / "plan.toml").write_text(made.text)
    assert rw.load_plan(tmp_path / "plan.toml").plan.queries[0].tables() == query.tables()
    for wrong in (shares[:3], ["1/2"] * 4, ["0", "1/5", "2/5", "2/5"]):
        with pytest.raises(ParameterError, match="share"):
            crossed.with_shares(*wrong)
    with pytest.raises(ParameterError, match="before the shares"):
        query.levels("firm")


@pytest.mark.costly
def test_goals_about_tables_that_cross_are_met_by_the_release(session):
    keys = rw.Keys.product(county=["01", "02", "03"], naics=["311", "312", "313", "321", "441", "442"])
    crossed = rw.query().levels(rw.prefix("county", [1, 2])).levels(rw.prefix("naics", [1, 3]), keys=keys)
    goal = Goal("emp", crossed, within="0.05")
    found = recommend(
        session, goal, keep_mechanisms=rw.Gaussian(sigma=30), fitted=True, complete=True, data="synthetic"
    )
    assert found.equal >= 1
    assert "equal shares would need" in str(found)
    (query,) = found.queries()
    release = session.run(query, rng=Seeded(2)).consistent(method="ols", complete=True)
    view, worst = session.owner.view(data="synthetic"), 0.0
    for cells in view.cell_totals(crossed.sum("emp", rw.Gaussian(sigma=1), alias="exact")):
        table = next(each for each in release.tables if each.name == cells.name)
        sd = table.data.column("sum_emp_best_sd").to_numpy()
        worst = max(worst, float(np.max(1.959964 * sd / (0.05 * cells.totals["exact"] - 0.5))))
    assert worst == pytest.approx(found.worst, rel=1e-3)


@pytest.mark.theorem("T-FITSHARES")
def test_shares_of_the_sum_both_margins_and_the_cells_are_the_best_of_a_grid(session):
    """The queries of [A] 5, with fitted variances from the inverse of the normal equations."""
    keys = rw.Keys.product(county=["01", "02", "03"], naics=["311", "312", "313", "321", "441", "442"])
    query = rw.query().levels((), "county").levels((), "naics", keys=keys)
    noise, sides = rw.Gaussian(sigma=30), {"county": 3, "naics": 6}
    blocks = [
        np.kron(*(np.eye(size) if name in level.names() else np.ones((1, size)) for name, size in sides.items()))
        for level in query.tables()
    ]
    rows, level = np.vstack(blocks), np.repeat(np.arange(4), [len(each) for each in blocks])
    read = session.owner.view(data="synthetic").cell_totals(query.sum("emp", noise, alias="exact"))
    totals = np.concatenate([each.totals["exact"] for each in read])
    np.testing.assert_allclose(totals, rows @ read[-1].totals["exact"])

    def worst(shares):
        covariance = np.linalg.inv(rows.T @ (rows * shares[level][:, None] / 900))
        return float(
            np.max(1.959964 * np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows)) / (0.05 * totals - 0.5))
        )

    grid = np.linspace(0.02, 0.98, 49)
    best = min(worst(np.outer([a, 1 - a], [b, 1 - b]).ravel()) for a in grid for b in grid)
    how = {"fitted": True, "complete": True, "data": "synthetic"}
    alone = recommend(session, Goal("emp", query, within="0.05"), keep_mechanisms=noise, **how)
    plan = query.sum("emp", noise)
    planned = recommend(session, plan_goals(session, plan, within="0.05"), plan=plan, keep_mechanisms=True, **how)
    for found in (alone, planned):
        assert found.worst == pytest.approx(worst(level_shares(found.queries()[0])), rel=1e-4)
        assert found.worst <= 1.01**0.5 * best
    assert best < 0.99 * worst(np.full(4, 0.25))


@pytest.mark.theorem("T-FITSHARES")
@pytest.mark.parametrize(
    "names, rank_by",
    few([(("emp",), "median"), (("emp", "count"), "maximum"), (("emp",), "maximum"), (("emp", "count"), "median")], 2),
)
@pytest.mark.costly
def test_a_plan_is_recommended_within_a_hundredth_of_a_grid_of_all_shares(session, monkeypatch, names, rank_by):
    """Each of four crossing tables with a share of its own; fitted variances from the inverse of the normal equations."""
    monkeypatch.setattr("recordwise.planning.search.fits.NEAR", 0)
    sides = {"county": ["01", "02", "03"], "naics": ["311", "312", "313", "321", "441", "442"]}
    query = rw.query().levels((), "county").levels((), "naics", keys=rw.Keys.product(**sides))
    asked = query.sum("emp", rw.Gaussian(sigma=9), alias="emp")
    asked = asked.count(rw.Gaussian(sigma=9), alias="count") if "count" in names else asked
    within = {"emp": "0.05", "count": "0.15"}
    goals = [Goal(name, query, within=within[name]) for name in names]
    how = {"fitted": True, "complete": True, "data": "synthetic"}
    found = recommend(session, goals, plan=asked, candidates={"g": rw.Gaussian(sigma=1)}, rank_by=rank_by, **how)
    blocks = [
        np.kron(*(np.eye(len(own)) if name in level.names() else np.ones((1, len(own))) for name, own in sides.items()))
        for level in query.tables()
    ]
    rows, level = np.vstack(blocks), np.repeat(np.arange(4), [len(each) for each in blocks])
    read = session.owner.view(data="synthetic").cell_totals(asked)
    reach = {
        name: (float(within[name]) * np.concatenate([each.totals[name] for each in read]) - 0.5) / 1.959964
        for name in names
    }
    steps = np.array([(a, b, c, 32 - a - b - c) for a in range(33) for b in range(33 - a) for c in range(33 - a - b)])
    shares = (steps + 0.25) / 33
    parts = np.array([rows[level == n].T @ rows[level == n] for n in range(4)])
    covariance = np.linalg.inv(np.einsum("sl,lij->sij", shares, parts))
    variance = np.einsum("ij,sjk,ik->si", rows, covariance, rows)
    record = {"median": found.best.losses.rho.quantile(0.5), "maximum": found.best.losses.rho.maximum}[rank_by]
    emp = np.sort(session.owner.view(data="synthetic").value_counts(["emp"]).columns["emp"])
    size = float(emp[-1]) if rank_by == "maximum" else MEDIAN
    needs = {name: (variance / reach[name] ** 2).max(axis=1) for name in names}
    losses = needs["emp"] * size**2 / 2 + (needs["count"] / 2 if "count" in names else 0)
    assert record <= 1.01 * losses.min()
    assert losses.min() < 0.95 * losses[len(losses) // 2]


def test_cells_that_may_miss_do_not_decide():
    tree = random_tree(1)
    hard = tree.reach.copy()
    hard[-1] = 0.01
    strict = LevelTree(tree=tree.tree, level=tree.level, variance=tree.variance, reach=hard, may_miss=(0, 0, 0))
    loose = LevelTree(tree=tree.tree, level=tree.level, variance=tree.variance, reach=hard, may_miss=(0, 0, 1))
    assert fitted_shares([loose]).worst < 0.1 * fitted_shares([strict]).worst


@pytest.mark.theorem("T-FITSHARES")
@pytest.mark.parametrize("goals", [(0,), (1,), (2,), (0, 2)])
def test_goals_about_some_levels_only_are_as_good_as_on_a_grid(goals):
    tree = random_tree(2)
    reach = np.where(np.isin(tree.level, goals), tree.reach, np.inf)
    some = LevelTree(tree=tree.tree, level=tree.level, variance=tree.variance, reach=reach, may_miss=tree.may_miss)
    found = fitted_shares([some])
    grid = [np.array([a, b, 1 - a - b]) for a in np.geomspace(1e-3, 0.99, 25) for b in np.geomspace(1e-3, 0.99, 25)]
    best = min(float(np.max(some.squared_ratios(each))) for each in grid if each[2] > 0)
    assert found.worst**2 <= 1.01 * best
    assert [ratio == 0 for ratio in found.ratios] == [level not in goals for level in range(3)]


@pytest.mark.parametrize("some", [[0], [2], [0, 2]])
def test_recommendations_take_fitted_goals_about_some_levels(session, some):
    how = {"fitted": True, "complete": True, "data": "synthetic"}
    goal = Goal("emp", levels(), within="0.05", levels=some)
    kept = recommend(session, goal, keep_mechanisms=rw.Gaussian(sigma=30), **how)
    every = recommend(session, Goal("emp", levels(), within="0.05"), keep_mechanisms=rw.Gaussian(sigma=30), **how)
    assert 0 < kept.worst <= every.worst * 1.001
    found = recommend(session, goal, candidates={"Gaussian": rw.Gaussian(sigma=1)}, **how)
    assert all(each.share_met == 1 for each in found["Gaussian"].calibrated)
    assert len(found["Gaussian"].queries()[0].tables()) == 3


@pytest.mark.theorem("T-HALFSTEP")
def test_a_fitted_goal_leaves_room_for_half_a_step(session):
    """Coarse noise reaches half a step farther than a normal law, and what is below it cannot be asked for."""
    how = {"fitted": True, "complete": True, "data": "synthetic"}
    goal = Goal("count", levels(), within="0.05", levels=[2])
    (query,) = recommend(session, goal, candidates={"Gaussian": rw.Gaussian(sigma=1)}, **how)["Gaussian"].queries()
    release = session.run(query, rng=Seeded(2)).consistent(method="ols", complete=True)
    totals = session.owner.view(data="synthetic").cell_totals(levels().count(rw.Gaussian(sigma=1), alias="exact"))
    finest = next(each for each in totals if len(each.totals["exact"]) == 12)
    table = next(each for each in release.tables if each.data.num_rows == 12)
    sd = table.data.column(f"{table.variables[0]}_best_sd").to_numpy()
    over = (1.959964 * sd + 0.5) / (0.05 * finest.totals["exact"])
    assert 0.99 < np.max(over) <= 1 + 1e-4
    with pytest.raises(ParameterError, match="half a step"):
        recommend(
            session, Goal("count", levels(), within="0.001"), candidates={"Gaussian": rw.Gaussian(sigma=1)}, **how
        )


RNG = np.random.default_rng(5)
EMP = np.minimum(np.floor(RNG.pareto(1.2, 1500) * 20 + 1), 5000).astype(int)
MEDIAN = float(np.sort(EMP)[749])


@pytest.fixture(scope="module")
def session():
    rng = np.random.default_rng(5)
    rows = 1500
    table = pa.table(
        {
            "id": np.arange(rows),
            "emp": np.minimum(np.floor(rng.pareto(1.2, rows) * 20 + 1), 5000).astype(int),
            "county": rng.choice(["01", "02", "03"], rows),
            "naics": rng.choice(["311", "312", "313", "321", "441", "442"], rows),
        }
    )
    with employers(table, max_outside="accept") as opened:
        yield opened


def levels(**more):
    keys = rw.Keys.product(county=["01", "02", "03"], naics=["311", "312", "321", "441"])
    return rw.query().group_by("county").levels(rw.prefix("naics", [1, 2, 3]), keys=keys, **more)


@pytest.mark.costly
def test_a_split_for_fitted_errors_is_better_than_one_for_raw_errors_and_is_released_as_one_query(session):
    goal = Goal("emp", levels(all_other="publish"), within="0.05")
    budget = rw.Gaussian(sigma=30)
    raw = recommend(session, goal, keep_mechanisms=budget, data="synthetic")
    fitted = recommend(session, goal, keep_mechanisms=budget, fitted=True, data="synthetic")
    assert fitted.worst < raw.worst
    assert sum(each.share for each in fitted.shares) == 1
    (query,) = fitted.queries()
    assert query.all_other == "publish"
    assert [level.share for level in query.tables()] == [each.share for each in fitted.shares]
    release = session.run(query, rng=Seeded(2)).consistent(method="ols")
    z, worst = 1.959964, 0.0
    for table in release.tables:
        total = exact(session, table)
        sd = table.data.column("sum_emp_best_sd").to_numpy()
        listed = ~np.array(table.data.column("all_other").to_pylist()) if "all_other" in table.keys else total > 0
        counted = listed & (total > 0)
        worst = max(worst, float(np.max(z * sd[counted] / (0.05 * total[counted] - 0.5))))
    assert worst == pytest.approx(fitted.worst, rel=1e-3)


def exact(session, table):
    """The exact totals of a released table, from the owner's view."""
    asked = levels(all_other="publish").sum("emp", rw.Gaussian(sigma=1), alias="exact")
    view = session.owner.view(data="synthetic")
    return next(each.totals["exact"] for each in view.cell_totals(asked) if each.name == table.name)


@pytest.mark.costly
def test_a_recommendation_for_fitted_errors_costs_less_and_meets_the_goals(session):
    goal = Goal("emp", levels(all_other="publish"), within="0.05")
    family = {"Gaussian": rw.Gaussian(sigma=1), "log": rw.LogTransform(offset=10, sigma=1)}
    raw = recommend(session, goal, candidates=family, data="synthetic")
    fitted = recommend(session, goal, candidates=family, fitted=True, data="synthetic")
    assert fitted["Gaussian"].losses.rho.maximum < 0.9 * raw["Gaussian"].losses.rho.maximum
    assert all(each.share_met == 1 for each in fitted["Gaussian"].calibrated)
    assert fitted["log"].losses.rho.maximum == raw["log"].losses.rho.maximum
    (query,) = fitted["Gaussian"].queries()
    assert len(query.tables()) == 3
    assert (
        'all_other = "publish"' in fitted.plan(source="t.parquet", ledger="l.sqlite").text or fitted.best.name == "log"
    )


@pytest.mark.parametrize("share", ["0.5", "0.75"])
@pytest.mark.costly
def test_the_share_of_cells_that_meet_a_goal_is_that_of_the_fitted_errors_of_a_release(session, share: str) -> None:
    """Counted again from the standard errors of a release with the recommended noise, beside exact totals."""
    goal = Goal("emp", levels(all_other="publish"), within="0.05", share=share)
    found = recommend(session, goal, candidates={"Gaussian": rw.Gaussian(sigma=1)}, fitted=True, data="synthetic")
    (query,) = found["Gaussian"].queries()
    release = session.run(query, rng=Seeded(2)).consistent(method="ols")
    met = []
    for table in release.tables:
        total, name = exact(session, table), f"{table.variables[0]}_best_sd"
        listed = ~np.array(table.data.column("all_other").to_pylist()) if "all_other" in table.keys else total > 0
        counted = listed & (total > 0)
        errors = 1.959964 * table.data.column(name).to_numpy()[counted]
        met.append(float(np.mean(errors <= (0.05 * total[counted] - 0.5) * (1 + 1e-4))))
    assert [each.share_met for each in found["Gaussian"].calibrated] == pytest.approx(met)
    assert float(share) <= min(met) < 1


@pytest.mark.parametrize(
    ("query", "budget", "told"),
    [
        (levels(), rw.Gaussian(sigma=3), "all_other='publish'"),
        (levels(all_other="publish"), rw.LogTransform(offset=1, sigma=1), "needs Gaussian noise"),
    ],
)
def test_fitted_goals_without_complete_levels_or_gaussian_noise_are_refused(session, query, budget, told):
    with pytest.raises(ParameterError, match=told):
        recommend(session, Goal("emp", query, within="0.1"), keep_mechanisms=budget, fitted=True, data="synthetic")


def test_complete_keys_need_no_rest(session):
    goal = Goal("emp", levels(), within="0.05")
    found = recommend(
        session, goal, keep_mechanisms=rw.Gaussian(sigma=30), fitted=True, complete=True, data="synthetic"
    )
    assert found.worst < recommend(session, goal, keep_mechanisms=rw.Gaussian(sigma=30), data="synthetic").worst
    assert found.shares[0].share != Fraction(1, 3)
