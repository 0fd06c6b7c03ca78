"""How often the published intervals hold, through whole releases."""

from dataclasses import replace

import pytest

from experiments.coverage import run
from experiments.coverage.__main__ import table
from experiments.coverage.releases import SIZES, SUMS, TOTALS, Line


def quiet(doing):
    pass


def test_no_interval_column_holds_less_often_than_its_level_nor_more_often_without_a_reason():
    """2,000 cells for each of 210 columns; the claims' own false-alarm rate is 1e-9 each, and the seed is fixed."""
    done = run.reproduce(runs=2000, seed=3, tell=quiet)
    assert {claim.statement: claim.why for claim in done.claims if claim.agrees is not True} == {}
    rows = done.tables["coverage"]
    assert {row["column"] for row in rows} == {
        "sum",
        "signed sum",
        "combination",
        "ratio",
        "average",
        "count",
        "selected count",
        "quantile .5",
        "quantile .9",
    }
    assert len(rows) == (2 * len(SUMS) + 9) * len(TOTALS) + 1 + 7 * (len(SIZES) - 1)
    assert all(row["reason"] for row in rows if row["coverage"] > 0.97 + 0.015)


LINE = Line(column="sum", mechanism="Gaussian", total=100, records=1, cells=200_000, held=190_400, empty=0)


def test_a_column_a_third_of_a_point_short_and_one_two_and_a_half_points_wide_are_reported():
    assert all(claim.agrees for claim in run.claims([LINE]))
    assert run.claims([replace(LINE, held=189_300)])[0].agrees is False
    assert run.claims([replace(LINE, held=195_000)])[1].agrees is False
    assert run.claims([replace(LINE, held=195_000, mechanism="LogTransform", total=0)])[1].agrees is True


def test_a_column_without_a_published_cell_is_left_out(monkeypatch):
    monkeypatch.setattr(run, "of_sums", lambda total, cells, seed: [replace(LINE, total=total)])
    monkeypatch.setattr(run, "of_forms", lambda total, cells, seed: [replace(LINE, cells=0, held=0)])
    monkeypatch.setattr(run, "of_sizes", lambda size, cells, seed: [replace(LINE, cells=0, held=0)])
    done = run.reproduce(runs=2, seed=1, tell=quiet)
    assert [row["total"] for row in done.tables["coverage"]] == list(TOTALS)


def test_the_table_has_a_line_for_each_column_and_says_why_it_is_above():
    lines = [LINE, replace(LINE, total=1, mechanism="Gaussian, 1 step", held=198_000)]
    text = table(lines, (1, 100), "exact total").splitlines()
    assert text[2] == "| sum, Gaussian |  | 0.9520 |  |"
    assert text[3].startswith("| sum, Gaussian, 1 step | 0.9900 |  | whole numbers")


@pytest.mark.slow
def test_the_whole_experiment_agrees_with_every_claim():
    done = run.reproduce(runs=run.RUNS, seed=20211, tell=quiet)
    assert {claim.statement: claim.why for claim in done.claims if claim.agrees is not True} == {}
