"""Fits with uncertainty where noise follows public sizes: every cell is weighted by the noise of its band (T-SIZE, T-FITVAR)."""

from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.noise import Seeded
from recordwise.release.nesting import nesting_of
from recordwise.release.spread import DRAWN, FORMULA, MOVED, NORMAL, FixedNoise, JoinedNoise, VaryingNoise, noise_of
from recordwise.release.tables import ReleasedTable

COUNTIES = ["001", "002", "003"]
CODES = ["311", "312", "441", "442"]
NOISES = {
    "normal": rw.Sized(rw.Gaussian(sigma="0.1"), floor=100),
    "low": rw.Sized(rw.Gaussian(sigma="0.1"), floor=100, low=rw.GeneralizedGaussian(shape="0.5", scale="0.02")),
    "log": rw.Sized(rw.LogTransform(offset="0.2", sigma="0.15"), floor=100),
}


def records(rows: int = 900) -> pa.Table:
    """No record is in a cell whose code is not listed, so that the levels add up without a rest."""
    rng = np.random.default_rng(8)
    return pa.table(
        {
            "id": np.arange(rows),
            "emp": np.floor(rng.pareto(1.5, rows) * 5 + 1).astype(int),
            "county": rng.choice(COUNTIES, rows, p=[0.1, 0.2, 0.7]),
            "naics": rng.choice(CODES, rows, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )


RECORDS = records()


def sizes() -> dict[str, list]:
    """About what the cells hold."""
    cells = RECORDS.group_by(["county", "naics"]).aggregate([("emp", "sum")]).to_pydict()
    return cells | {"emp_sum": [round(total * (0.7 + 0.1 * (row % 5))) for row, total in enumerate(cells["emp_sum"])]}


@cache
def released(seed: int, *names: str, rest: str | None = None) -> rw.Release:
    keys = rw.Keys.of(sizes(), size="emp_sum", sized_on="public: last year")
    asked = rw.query().group_by("county").levels(rw.prefix("naics", [1, 3]), keys=keys, all_other=rest)
    for name in names:
        asked = asked.sum("emp", NOISES[name], alias=name)
    with employers(RECORDS, max_outside="accept") as session:
        return session.run(asked, rng=Seeded(seed))


def how(release: rw.Release) -> dict[str, str]:
    uncertainty = release.to_json()["consistent"]["uncertainty"]
    return {name: each["best"]["intervals"] for name, each in uncertainty.items()}


@pytest.mark.costly
def test_gaussian_noise_of_several_bands_is_fitted_by_the_formula() -> None:
    fitted = released(3, "normal", "low", "log").consistent(complete=True)
    assert how(fitted) == {"q1:normal": FORMULA, "q1:low": DRAWN, "q1:log": MOVED}


def weighted(answers: np.ndarray, variances: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best linear estimate of every answer and its variance, by the normal equations."""
    inverse = np.linalg.inv(rows.T @ (rows / variances[:, None]))
    return rows @ inverse @ rows.T @ (answers / variances), np.einsum("ij,jk,ik->i", rows, inverse, rows)


@pytest.mark.theorem("T-SIZE")
def test_the_best_estimate_weighs_every_cell_by_the_noise_of_its_band() -> None:
    release = released(3, "normal")
    (query,) = release.published.queries
    family = nesting_of(release, query, complete=True)
    fitted = release.consistent(complete=True)
    columns = {
        end: np.concatenate([t.data.column(f"normal{end}").to_numpy() for t in fitted.tables])
        for end in ("", "_sd", "_best", "_best_sd")
    }
    order = np.concatenate([rows_of(fitted, table.name) for table in family.tables])
    drawn = {end: column[order] for end, column in columns.items()}
    assert len(set(drawn["_sd"])) >= 4
    value, variance = weighted(drawn[""], drawn["_sd"] ** 2, family.rows.toarray())
    assert drawn["_best"] == pytest.approx(value, rel=1e-9)
    assert drawn["_best_sd"] == pytest.approx(np.sqrt(variance), rel=1e-9)
    flat, _ = weighted(drawn[""], np.ones(len(value)), family.rows.toarray())
    assert np.max(np.abs(flat - value)) > 1


def rows_of(release: rw.Release, name: str) -> np.ndarray:
    """The places of a table's rows when all tables are written one after the other."""
    start = 0
    for table in release.tables:
        if table.name == name:
            return np.arange(start, start + table.data.num_rows)
        start += table.data.num_rows
    raise AssertionError(name)


@pytest.mark.parametrize("name", NOISES)
def test_draws_have_the_spread_of_the_band_of_each_cell(name: str) -> None:
    """20,000 draws a cell from a fixed seed; a standard deviation taken from the wrong band is off by a factor of two."""
    release = released(3, "normal", "low", "log", rest="publish")
    (query,) = release.published.queries
    family = nesting_of(release, query, complete=True)
    (statistic,) = (each for each in family.statistics if each.name == name)
    noise, totals = noise_of(family, statistic), np.full(sum(family.sizes.values()), 2_000.0)
    found = np.std(noise.errors(totals, 20_000, Seeded(5)), axis=0)
    assert noise.known
    assert found == pytest.approx(np.sqrt(noise.variance(totals)), rel=0.15)
    by_hand = [
        float(NOISES[name].at_share(family.described[table.name].share).at_size(edge).variance(np.array([2_000.0]))[0])
        for table in family.tables
        for edge in edges_of(table)
    ]
    assert noise.variance(totals) == pytest.approx(by_hand, rel=1e-6)
    if name == "low":
        assert len({type(law) for _, law in noise.laws}) == 2


def edges_of(table: ReleasedTable) -> list[Fraction]:
    """The least size of the band of each cell of a table, by hand: sizes add up, and a rest has the floor."""
    listed = list(zip(*sizes().values()))
    found = []
    for row in table.data.to_pylist():
        code = row.get("naics1", row.get("naics3"))
        own = [size for county, naics, size in listed if county == row["county"] and naics.startswith(code or "")]
        edge = Fraction(100)
        while not row.get("all_other") and 2 * edge <= sum(own):
            edge *= 2
        found.append(edge)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISES)
def test_intervals_of_best_estimates_hold_as_often_as_they_say(name: str) -> None:
    """60 seeded releases of 12 cells at 95 %: within four standard errors of .01. With the sd of the band below it would be .67."""
    exact = RECORDS.group_by(["county", "naics"]).aggregate([("emp", "sum")])
    inside = []
    for seed in range(60):
        fitted = released(100 + seed, name).consistent(complete=True)
        table = next(each for each in fitted.tables if "naics3" in each.keys).data
        joined = table.join(exact, keys=["county", "naics3"], right_keys=["county", "naics"])
        low, high, truth = (
            joined.column(each).to_numpy() for each in (f"{name}_best_low", f"{name}_best_high", "emp_sum")
        )
        inside.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.91 <= np.mean(inside) <= 0.99


def test_variances_of_some_answers_are_those_of_all_and_a_joint_fit_has_the_shape_of_its_parts() -> None:
    """Two queries: one with a logarithm and a root under Laplace noise, one with Gaussian noise. Fat tails have no reach."""
    log, fat = rw.LogTransform(offset=7, sigma="0.4"), rw.GeneralizedGaussian(shape="0.5", scale=2)
    root = rw.RootTransform(degree=2, offset=3, laplace_scale="0.5")
    moving = VaryingNoise(np.ones(3), ((np.array([0, 2]), log), (np.array([1]), root)), Fraction(1))
    still = FixedNoise(np.array([4.0, 9.0]), ((slice(None), NORMAL),), known=True, normal=True, step=1.0)
    joint = JoinedNoise(((np.array([0, 2, 4]), moving), (np.array([1, 3]), still)))
    totals, some = np.array([10.0, 20, 30, 40, 50]), np.array([4, 0, 1, 2, 2, 3])
    assert joint.variance_at(some, totals[some]) == pytest.approx(joint.variance(totals)[some])
    assert joint.variance_at(slice(None), totals) == pytest.approx(joint.variance(totals))
    shape = joint.shape(0.95)
    assert shape.offset.tolist() == [7, 0, 3, 0, 7]
    assert shape.log.tolist() == [True, False, False, False, True]
    assert shape.reach == pytest.approx(np.log(20) / 2**0.5)
    mixed = VaryingNoise(np.ones(2), ((np.array([0]), log), (np.array([1]), fat)), Fraction(1))
    assert mixed.shape(0.95).reach == np.inf
    assert still.shape(0.9).reach == pytest.approx(1.6448536)
