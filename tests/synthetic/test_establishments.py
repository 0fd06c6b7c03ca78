"""Generated establishments: reproducible, distinct, and as skewed as the tables they were calibrated by."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

from recordwise.errors import ParameterError
from recordwise.synthetic import establishments, public_keys, write_establishments
from recordwise.synthetic.establishments import CELLS, FIGURES, SMALLEST_COUNTY, cells, figures, uniforms

ROWS = 300_000


@pytest.fixture(scope="module")
def made():
    return establishments(ROWS, seed=5)


def share(table, column, most):
    return float(np.mean(table[column].to_numpy() <= most))


def test_the_figures_are_small():
    assert sum(path.stat().st_size for path in FIGURES.iterdir()) < 100_000


@pytest.mark.costly
def test_the_skew_is_that_of_establishments(made):
    """Bands around the percentiles printed for the synthetic business patterns of the splitting paper."""
    assert 0.35 < share(made, "emp", 2) < 0.50
    assert 0.55 < share(made, "emp", 5) < 0.70
    assert 0.965 < share(made, "emp", 100) < 0.985
    assert 0.38 < share(made, "payann", 104) < 0.55
    assert 0.74 < share(made, "payann", 500) < 0.84
    assert 0.985 < share(made, "payann", 10_000) < 0.995
    assert 10 < np.mean(made["emp"].to_numpy()) < 20
    assert made["emp"].to_numpy().max() > 5_000


def test_first_quarter_payroll_is_about_a_quarter(made):
    ratio = made["payqtr1"].to_numpy().sum() / made["payann"].to_numpy().sum()
    assert abs(ratio - 0.25) < 0.005


@pytest.mark.costly
def test_ids_are_distinct_and_firms_are_mostly_single(made):
    assert pc.count_distinct(made["estab_id"]).as_py() == ROWS
    sizes = np.unique(made["firm_id"].to_numpy(), return_counts=True)[1]
    assert np.mean(sizes == 1) > 0.9
    assert sizes.max() > 300


def test_every_record_falls_into_a_public_cell(made):
    keys = public_keys()
    assert keys.num_rows == 350_000
    assert keys.group_by(["county", "naics"]).aggregate([]).num_rows == 350_000
    assert pc.count_distinct(keys["county"]).as_py() == len(figures().counties) > 3_100
    found = pa.table({name: made[name].cast(pa.string()) for name in ("county", "naics")})
    inside = found.group_by(["county", "naics"]).aggregate([]).join(keys, ["county", "naics"], join_type="left anti")
    assert inside.num_rows == 0


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(made):
    assert establishments(1000, seed=5).equals(establishments(1000, seed=5))
    assert not establishments(1000, seed=6).equals(establishments(1000, seed=5))


def test_a_row_does_not_depend_on_its_batch(monkeypatch):
    whole = establishments(1000, seed=5)
    monkeypatch.setattr(sys.modules["recordwise.synthetic.establishments"], "BATCH", 77)
    assert establishments(1000, seed=5).combine_chunks().equals(whole.combine_chunks())


def test_a_parquet_file_holds_the_same_rows(tmp_path):
    write_establishments(tmp_path / "e.parquet", 1000, seed=5)
    # Some versions of Arrow read the numbers of a dictionary with another width.
    assert pq.read_table(tmp_path / "e.parquet").to_pylist() == establishments(1000, seed=5).to_pylist()


def test_no_rows_are_refused():
    with pytest.raises(ParameterError):
        next(iter(establishments(0)))


def test_uniforms_are_uniform_and_streams_unrelated():
    """DKW at n = 200,000: a distance above 0.0074 has probability below 1e-9; a law off by 2 % at the middle is caught."""
    count, limit = 200_000, 0.0074
    first, second = uniforms(3, 1, 0, count), uniforms(3, 2, 0, count)

    def distance(values):
        return np.max(np.abs(np.sort(values) - (np.arange(count) + 0.5) / count))

    assert distance(first) < limit
    assert distance(first**1.06) > limit
    assert abs(np.corrcoef(first, second)[0, 1]) < 6.2 / np.sqrt(count)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 6.2 / np.sqrt(count)


@pytest.mark.costly
def test_a_county_has_its_most_likely_industries_and_at_least_three() -> None:
    """The weights of the chosen pairs in order, against scores computed again: none that is left out of a county is larger."""
    known, chosen = figures(), cells()
    shape = (len(known.counties), len(known.industries))
    local = norm.ppf(uniforms(2017, 0, 0, shape[0] * shape[1])).reshape(shape)
    weight = np.outer(known.county_shares, known.industry_shares) * np.exp(local)
    inside = np.zeros(shape, bool)
    inside[chosen.county, chosen.industry] = True
    assert inside.sum() == CELLS
    assert inside.sum(axis=1).min() >= SMALLEST_COUNTY
    least = np.where(inside, weight, np.inf).min(axis=1)
    most = np.where(inside, -np.inf, weight).max(axis=1)
    assert (most <= least * (1 + 1e-9)).all()
    # Beyond the three of each county, the largest of all.
    third = np.sort(weight, axis=1)[:, -SMALLEST_COUNTY]
    assert weight[~inside].max() <= weight[inside & (weight < third[:, None])].min() * (1 + 1e-9)
