"""Answers to readers: wrong errors and low coverage are reported, and every interval holds through real releases."""

import pytest
from scipy.stats import binom

from experiments.asking import run
from experiments.asking.coverage import LEVEL, covered, slopes

KINDS = ("total, Gaussian", "region, Gaussian", "growth", "difference", "ratio", "share", "rank, one alone")


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
    """2,000 states, Gaussian noise; false alarm below 1e-6 for each kind and size. Coverage of .92 is noticed."""
    rows = [row for row in covered(2000, 7, lambda _: None) if row["kind"] in KINDS]
    assert {row["kind"] for row in rows} == set(KINDS)
    for row in rows:
        assert row["held"] >= binom.ppf(1e-6, row["of"], LEVEL), row


@pytest.mark.slow
def test_slopes_are_corrected_and_sets_cover() -> None:
    """2,000 simulated columns at each reliability; sets may be short of .95 by a point of asymptotics, not by three."""
    found = {row["reliability"]: row for row in slopes(2000, 5, lambda _: None)}
    assert found[0.5]["naive"] == pytest.approx(1, abs=0.05)
    assert found[0.5]["corrected"] == pytest.approx(2, abs=0.05)
    assert all(row["coverage"] > 0.92 for row in found.values())
    assert found[0.1]["stated"] < 0.1
