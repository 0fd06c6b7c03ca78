"""The microdata paper's tables: a short run always, the whole of it among the slow tests."""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def microdata():
    """The experiment, which lives beside the package."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("experiments.microdata.run")
    finally:
        sys.path.remove(str(ROOT))


def test_the_synthetic_tables_are_filled_column_by_column(microdata):
    made = importlib.import_module("experiments.microdata.tables").synthetic_tables()
    assert len(made) == 16
    assert np.array_equal(made["Stair-2d"][:, 1], np.arange(11, 21))
    assert made["Stair-2d"][0, 0] == made["Stair-1d"][0] == 10_000
    assert np.array_equal(made["SplitStairs-1d"][47:51], [48, 49, 0, 0])
    assert np.array_equal(made["Step16-1d"][48:52], [0, 0, 16, 16])


def test_noise_has_the_variances_of_the_paper(microdata):
    assert microdata.variance_of("laplace", 0.5, 4) == 128
    assert microdata.variance_of("gaussian", 0.125, 4) == 16


@pytest.mark.costly
def test_missing_tables_are_named_and_the_synthetic_ones_run(microdata, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("RECORDWISE_DATA", str(tmp_path))
    monkeypatch.setattr(microdata, "SETTINGS", (("laplace", 0.5),))
    checks = microdata.main(runs=20, seed=1, out=tmp_path / "out")
    printed = capsys.readouterr().out
    assert "15 of 15 real tables are missing" in printed
    assert "RECORDWISE_DATA" in printed
    assert checks["failures"] == 0
    assert checks["fits"] == 16 * 6 * 20
    with (tmp_path / "out" / "figures.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 6 * (8 * 2 + 8 * 4)


def test_least_squares_theory_has_the_known_values(microdata):
    """Golden: 110.592 and 23887.9 on 9 x 24, 105.785 and 10578.5 on 10 x 10, at variance 128."""
    for shape, total, cells in (((9, 24), 110.592, 23887.9), ((10, 10), 105.785, 10578.5)):
        assert np.isclose(128 * microdata.exact_error(shape, "sum"), total, atol=5e-4)
        assert np.isclose(128 * microdata.exact_error(shape, "cells"), cells, atol=0.05)


@pytest.mark.slow
def test_the_paper_is_reproduced_and_no_run_is_dropped(microdata, tmp_path):
    """All tables, settings and methods at a fixed seed; the thresholds are those of the paper's comparison."""
    missing = importlib.import_module("experiments.microdata.tables").pums_tables()[1]
    checks = microdata.main(runs=1000, seed=20211, out=tmp_path)
    assert checks["failures"] == 0
    assert checks["worst_kkt"] < 1e-8
    assert checks["figures_compared"] == (96 if not missing else 6)
    assert checks["beyond_3_standard_errors"] <= 1
    assert checks["beyond_4_standard_errors"] == 0
    assert checks["sequential_sum_distance"] < 3
    assert checks["ols_distance"] < 3
