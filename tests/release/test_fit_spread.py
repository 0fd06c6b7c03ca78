"""Standard errors and intervals of fitted columns, through releases."""

import json
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import recordwise as rw
from build import employers, few
from experiments.fits import run
from experiments.fits.releases import KEYS, NOISES, Line, lines
from recordwise.errors import ParameterError
from recordwise.noise import Seeded
from recordwise.release.consistent import CUT
from recordwise.release.spread import DRAWN, FORMULA, MOVED, RAW

COUNTIES = [f"{i:05d}" for i in range(5)]
CODES = ["311", "312", "321", "441"]
ENDS = [fit + end for fit in ("_fit", "_best") for end in ("", "_sd", "_low", "_high") if fit + end != "_fit_sd"]


@pytest.fixture(scope="module")
def opened():
    rng = np.random.default_rng(7)
    rows = 800
    table = pa.table(
        {
            "id": np.arange(rows),
            "firm": rng.integers(0, 60, rows).astype(str),
            "emp": np.minimum(np.floor(rng.pareto(1.1, rows) * 3 + 1), 2000).astype(int),
            "county": rng.choice(COUNTIES, rows),
            "naics": rng.choice([*CODES, "313"], rows),
        }
    )
    with employers(table, firm="firm", max_outside="accept") as session:
        yield session


def released(session, *, rest=None, confidence=0.95, only=None):
    keys = rw.Keys.product(county=COUNTIES, naics=CODES)
    asked = rw.query().group_by("county").levels(rw.prefix("naics", [1, 3]), keys=keys, all_other=rest)
    noises = {
        "normal": rw.Gaussian(sigma=15),
        "fat": rw.GeneralizedGaussian(scale=3, shape="0.5"),
        "log": rw.LogTransform(offset=20, sigma="0.15"),
        "coarse": rw.Gaussian(sigma="0.3"),
    }
    for name, noise in noises.items():
        asked = asked.sum("emp", noise, alias=name) if only in (None, name) else asked
    asked = asked if only else asked.count_distinct("firm", rw.Gaussian(rho="0.1"), alias="firms")
    return session.run(asked, rng=Seeded(3), confidence=confidence)


@pytest.fixture(scope="module")
def with_rests(opened):
    return released(opened, rest="publish").consistent()


def how(release, which):
    return {name: each[which]["intervals"] for name, each in release.to_json()["consistent"]["uncertainty"].items()}


@pytest.mark.costly
def test_every_fitted_column_has_an_interval_and_linear_ones_a_standard_error(with_rests):
    for table in with_rests.tables:
        for name in table.variables:
            columns = {end: table.data.column(name + end).to_numpy() for end in ENDS}
            for fit in ("_fit", "_best"):
                assert (columns[f"{fit}_low"] <= columns[fit] + 1e-9).all()
                assert (columns[fit] <= columns[f"{fit}_high"] + 1e-9).all()
            assert (columns["_best_sd"] > 0).all()
            assert (columns["_fit_low"] >= 0).all()


@pytest.mark.theorem("T-CUT")
def test_intervals_of_nonnegative_columns_are_the_linear_ones_cut_at_0_and_widened(with_rests):
    """Whatever noise the answers have: nothing is drawn, and where both estimates agree so do their intervals."""
    for table in with_rests.tables:
        data = table.data.to_pandas()
        for name in table.variables:
            value, low, high = (data[f"{name}_fit{end}"] for end in ("", "_low", "_high"))
            best, best_low, best_high = (data[f"{name}_best{end}"] for end in ("", "_low", "_high"))
            np.testing.assert_array_equal(low, np.minimum(best_low.clip(lower=0), value))
            np.testing.assert_array_equal(high, np.maximum(best_high.clip(lower=0), value))
            same = (value == best) & (best_low >= 0)
            np.testing.assert_array_equal(low[same], best_low[same])
            np.testing.assert_array_equal(high[same], best_high[same])


def test_root_mean_squared_errors_are_drawn_on_request_and_leave_the_intervals_alone(opened, with_rests):
    drawn = released(opened, rest="publish").consistent(draws=40)
    for table, plain in zip(drawn.tables, with_rests.tables):
        for name in table.variables:
            assert (table.data.column(f"{name}_fit_sd").to_numpy() > 0).all()
            assert f"{name}_fit_sd" not in plain.data.column_names
        for end in ("", "_low", "_high"):
            assert table.data.column(f"normal_fit{end}") == plain.data.column(f"normal_fit{end}")
    assert drawn.to_json()["consistent"]["uncertainty"]["q1:normal"]["fit"]["draws"] == 40


def test_release_json_says_where_intervals_come_from(with_rests):
    best = how(with_rests, "best")
    assert best == {"q1:normal": FORMULA, "q1:fat": DRAWN, "q1:log": MOVED, "q1:coarse": DRAWN, "q1:firms": RAW}
    assert set(how(with_rests, "fit").values()) == {CUT}
    columns = with_rests.to_json()["consistent"]["columns"]
    assert set(columns) == {f"NAME{end}" for end in ENDS}
    assert "biased" in columns["NAME_fit"]


def test_without_complete_keys_or_rests_the_best_linear_estimate_is_the_noisy_answer_and_that_is_said(opened):
    fitted = released(opened, only="normal").consistent()
    for table in fitted.tables:
        for end in ("", "_sd", "_low", "_high"):
            assert table.data.column(f"normal_best{end}").cast(pa.float64()) == table.data.column(f"normal{end}").cast(
                pa.float64()
            )
    told = fitted.to_json()["consistent"]["uncertainty"]["q1:normal"]
    assert told["best"]["intervals"] == RAW
    assert "not declared complete" in told["note"]


@pytest.mark.theorem("T-FITVAR")
def test_best_estimates_are_dense_generalized_least_squares_with_normal_intervals_and_half_a_step(opened, with_rests):
    coarse, fine = with_rests["county_by_naics1"].to_pandas(), with_rests["county_by_naics3"].to_pandas()
    for place in COUNTIES:
        above, below = coarse[coarse.county == place], fine[fine.county == place]
        parts = (below.naics3.str[:1].to_numpy()[None, :] == above.naics1.to_numpy()[:, None]).astype(float)
        rows = np.vstack([parts, np.eye(len(below))])
        answers = np.concatenate([above.normal, below.normal])
        weight = 1 / np.concatenate([above.normal_sd, below.normal_sd]) ** 2
        inverse = np.linalg.inv(rows.T @ (rows * weight[:, None]))
        best = rows @ inverse @ rows.T @ (weight * answers)
        sd = np.sqrt(np.diag(rows @ inverse @ rows.T))
        found = np.concatenate([above.normal_best, below.normal_best])
        np.testing.assert_allclose(found, best, rtol=1e-10, atol=1e-8)
        np.testing.assert_allclose(np.concatenate([above.normal_best_sd, below.normal_best_sd]), sd)
        high = np.concatenate([above.normal_best_high, below.normal_best_high])
        largest = np.abs(rows @ inverse @ rows.T * weight).max(axis=1)
        np.testing.assert_allclose(high - found, NormalDist().inv_cdf(0.975) * sd + largest / 2)


def test_least_squares_give_the_same_numbers_as_the_best_fit(opened):
    fitted = released(opened, only="normal").consistent(method="ols", complete=True)
    for table in fitted.tables:
        for end in ("", "_sd", "_low", "_high"):
            ours, other = (table.data.column(f"normal{fit}{end}").to_numpy() for fit in ("_fit", "_best"))
            np.testing.assert_allclose(ours, other, rtol=1e-7, atol=1e-6)
        assert "normal_fit" not in table.flags()


@pytest.mark.costly
def test_columns_that_are_not_unbiased_are_flagged_in_the_files(with_rests, tmp_path):
    folder = with_rests.save(tmp_path / "out")
    flags = json.loads((folder / "release.json").read_text())["flags"]["county_by_naics3"]
    assert flags["normal_fit"].startswith("biased")
    assert "normal_best" in flags["normal_fit"]
    assert flags["log_best"].startswith("nearly unbiased")
    assert "normal_best" not in flags
    field = pyarrow.parquet.read_schema(folder / "county_by_naics3.parquet").field("normal_fit")
    assert field.metadata[b"recordwise_flag"].startswith(b"biased")


def test_everybody_draws_the_same_numbers_and_no_other_release_does(opened):
    release = released(opened, only="fat", rest="publish")
    one, two = release.consistent(draws=60), release.consistent(draws=60)
    other = released(opened, only="fat", rest="publish", confidence=0.9).consistent(draws=60)
    width = [
        each["county_by_naics3"]["fat_best_high"].to_numpy() - each["county_by_naics3"]["fat_best"].to_numpy()
        for each in (one, two, other)
    ]
    assert (width[0] == width[1]).all()
    assert width[2].mean() < width[0].mean()


def test_too_few_draws_are_refused(opened):
    with pytest.raises(ParameterError, match="at least 19"):
        released(opened, only="fat", rest="publish").consistent(draws=10)


def test_tables_that_cross_are_fitted_by_the_solver(opened):
    keys = rw.Keys.product(county=COUNTIES, naics=[*CODES, "313"])
    asked = rw.query().levels(rw.prefix("county", [4, 5])).levels(rw.prefix("naics", [1, 3]), keys=keys)
    release = opened.run(asked.sum("emp", rw.Gaussian(sigma=15), alias="emp"), rng=Seeded(4)).consistent(complete=True)
    assert how(release, "best") == {"q1:emp": FORMULA}
    for table in release.tables:
        assert (table.data.column("emp_best_sd").to_numpy() < table.data.column("emp_sd").to_numpy()).all()


def test_names_beside_codes_are_fitted_as_least_squares_where_keys_are_complete_and_not_at_all_where_not():
    """Code and name determine each other. Without complete keys a name may have records of no listed county."""
    rng = np.random.default_rng(1)
    listed = {"code": list("123123"), "name": list("abcabc"), "county": list("xxxyyy")}
    table = pa.table({**{k: v * 20 for k, v in listed.items()}, "id": np.arange(120), "emp": rng.integers(1, 50, 120)})

    def asked(*by):
        keys = pa.table({k: listed[k] for k in by}).group_by(list(by)).aggregate([])
        return rw.query().group_by(*by, keys=keys).sum("emp", rw.Gaussian(sigma=10), alias="emp")

    with employers(table) as session:
        drawn = session.run(asked("code", "name"), asked("name"), asked("code", "name", "county"), rng=Seeded(2))
    fitted, finest = drawn.consistent(method="ols", complete=True), drawn.tables[2].data.to_pandas()
    answers = np.concatenate([each.data.column("emp").to_numpy() for each in fitted.tables])
    rows = [
        (finest[list(each.keys)] == one).all(axis=1).to_numpy(float)
        for each in fitted.tables
        for one in each.data.select(list(each.keys)).to_pandas().to_numpy().tolist()
    ]
    cells = np.linalg.lstsq(np.array(rows), answers, rcond=None)[0]
    np.testing.assert_allclose(fitted.tables[2].data.column("emp_best").to_numpy(), cells, atol=1e-9)
    raw = drawn.consistent(method="ols").tables[2].data
    assert raw.column("emp_best").to_pylist() == raw.column("emp").to_pylist()


def slack(cells, level):
    """Beyond a point: six standard deviations, cells of one county counted as one and a half."""
    return 0.01 + 6 * (level * (1 - level) * 1.5 / cells) ** 0.5


@pytest.mark.parametrize("counties", few([60, 120], 1))
@pytest.mark.costly
def test_linear_intervals_hold_as_often_as_they_say_and_the_others_are_near(counties):
    """Counties of 19 cells; the seed is fixed."""
    found = [line for line in lines("rest published", 0.9, counties, 11, draws=60) if line.size == run.ALL]
    by_column = {(line.noise, line.column): line for line in found}
    for noise in ("Gaussian", "GeneralizedGaussian", "Gaussian, sized", "Gaussian, sized, fat-tailed below"):
        line = by_column[noise, "best"]
        assert abs(line.coverage - 0.9) < slack(line.cells, 0.9)
        assert line.rmse < by_column[noise, "raw"].rmse
    assert all(by_column[noise, column].coverage > 0.8 for noise in NOISES for column in ("best", "fit"))


@pytest.mark.slow
@pytest.mark.theorem("T-FITVAR")
def test_intervals_of_two_thousand_releases():
    done = run.reproduce(runs=2000, seed=20211, tell=lambda _: None)
    assert {claim.statement: claim.why for claim in done.claims if claim.agrees is not True} == {}
    assert len({row["keys"] for row in done.tables["fits"]}) == len(KEYS)


LINE = Line(
    keys="complete", noise="Gaussian", column="best", level=0.95, size=run.ALL, cells=38_000, held=36_100, squares=1.0
)


def test_a_column_two_points_off_is_reported():
    raw = Line(**{each: getattr(LINE, each) for each in Line.__slots__} | {"column": "raw", "squares": 2.0})
    fit = Line(**{each: getattr(LINE, each) for each in Line.__slots__} | {"column": "fit"})
    assert all(claim.agrees for claim in run.claims([LINE, raw, fit]))
    for held in (35_300, 36_900):
        wrong = Line(**{each: getattr(LINE, each) for each in Line.__slots__} | {"held": held})
        assert run.claims([wrong, raw, fit])[0].agrees is False
