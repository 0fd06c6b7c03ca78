"""Answers to readers: wrong errors and low coverage are reported, and every interval holds through real releases."""

import pytest
from scipy.stats import binom

from experiments.asking import run
from experiments.asking.coverage import LEVEL, covered, ranks, slopes

APPROXIMATE = ("log", "root")
"""Under transforms intervals are approximate (T-MOVED): .93 of .95."""


def test_errors_that_are_too_large_and_low_coverage_do_not_agree() -> None:
    rows = [
        {"total": 100.0 + 10 * (-1) ** at, "truth": 100, "sd": 10.0, "root_of_squares": 50.0, "county_table_sd": 20.0}
        for at in range(50)
    ]
    assert [claim.agrees for claim in run.region_claims(rows)] == [True, True]
    assert run.region_claims([{**row, "sd": 3.0} for row in rows])[0].agrees is False
    held = {"kind": "share", "size": "10", "of": 2000}
    assert run.coverage_claim([{**held, "coverage": 0.951}]).agrees is True
    assert run.coverage_claim([{**held, "coverage": 0.951}, {**held, "coverage": 0.9}]).agrees is False


@pytest.mark.slow
def test_intervals_of_all_kinds_cover() -> None:
    """2,000 states; false alarm below 1e-6 for each kind and size. Coverage of .92 is noticed, under transforms of .9."""
    for row in (*covered(2000, 7, lambda _: None), *ranks(2000, 7, lambda _: None)):
        level = 0.93 if str(row["kind"]).endswith(APPROXIMATE) else LEVEL
        assert row["held"] >= binom.ppf(1e-6, row["of"], level), row
    assert binom.cdf(binom.ppf(1e-6, 2000, LEVEL), 2000, 0.92) > 0.4


@pytest.mark.costly
def test_every_kind_of_interval_is_counted() -> None:
    rows = covered(4, 7, lambda _: None)
    assert {row["of"] for row in rows if row["kind"] == "growth"} == {4}
    assert {"total, root", "share", "ratio", "difference", "growth", "pay per worker"} <= {row["kind"] for row in rows}
    assert sum(row["held"] for row in rows) > 0.85 * sum(row["of"] for row in rows)


@pytest.mark.slow
def test_slopes_are_corrected_and_sets_cover() -> None:
    """2,000 simulated columns at each reliability; false alarm below 1e-6. Sets may be short of .95 by a point of asymptotics."""
    found = {row["reliability"]: row for row in slopes(2000, 5, lambda _: None)}
    assert found[0.5]["naive"] == pytest.approx(1, abs=0.05)
    assert found[0.5]["corrected"] == pytest.approx(2, abs=0.05)
    assert all(row["coverage"] >= binom.ppf(1e-6, 2000, 0.94) / 2000 for row in found.values())
    assert found[0.1]["stated"] < 0.1
