"""``recordwise audit``: what it prints, and how it ends."""

from dataclasses import replace
from fractions import Fraction

import pytest

import recordwise.session.publisher as publisher
from recordwise.policy.firms import FirmPolicy

FEW = ("--cells", "2000", "--runs", "1")


@pytest.mark.costly
def test_an_audit_prints_a_line_for_each_record_and_ends_well(run):
    result = run("audit", "--mechanism", "unit split by group", *FEW)
    assert result.exit_code == 0, result.output
    assert "3 comparisons, 0 broken" in result.stdout
    header, *lines = result.stdout.splitlines()[:4]
    for words in ("subject", "keys", "record", "policy", "delta", "lost at least", "samples", "verdict"):
        assert words in header
    assert [line.split()[-1] for line in lines] == ["kept"] * 3
    assert "4,000" in lines[0]
    assert "run 1 of 1" in result.stderr


@pytest.mark.costly
def test_an_audit_for_programs_holds_every_number(run_json):
    found = run_json("audit", "--mechanism", "clamped", *FEW)
    assert found["kept"]
    assert found["false_alarm"] == 1e-9
    giant = found["findings"][2]
    assert (giant["subject"], giant["record"], giant["samples"], giant["problems"]) == ("clamped", "giant", 4000, [])
    assert giant["bound"] <= giant["policy"] <= 1
    assert giant["verdict"] == "kept"


@pytest.mark.costly
def test_an_audit_of_a_broken_library_ends_with_one_and_says_what_broke(run, monkeypatch):
    exact = publisher.firm_policy

    def a_ninth(plan):
        return FirmPolicy(parts=tuple(replace(part, policy=part.policy * Fraction(1, 9)) for part in exact(plan).parts))

    monkeypatch.setattr(publisher, "firm_policy", a_ninth)
    result = run("audit", "--mechanism", "count of firms", *FEW)
    assert result.exit_code == 1
    assert "BROKEN" in result.stdout
    assert "1 comparisons, 1 broken" in result.stdout


@pytest.mark.costly
def test_the_mechanisms_of_a_plan_are_audited_without_its_records(folder, run, run_json):
    (folder / "establishments.parquet").unlink()
    listed = run("audit", folder / "plan.toml", "--list")
    assert listed.stdout.splitlines() == ["count: Gaussian", "sum_emp: UnitSplit", "sum_payann: LogTransform"]
    found = run_json("audit", folder / "plan.toml", "--mechanism", "sum", *FEW)
    assert {each["subject"] for each in found["findings"]} == {"sum_emp: UnitSplit", "sum_payann: LogTransform"}
    assert found["kept"]
    assert not (folder / "small.ledger").exists()


def test_a_name_that_is_none_is_refused_with_the_names_there_are(run):
    result = run("audit", "--mechanism", "no such thing")
    assert result.exit_code == 2
    assert "unit split by group" in result.stderr


def test_the_list_names_every_subject_and_runs_nothing(run):
    names = run("audit", "--list").stdout.splitlines()
    assert "logarithm, laplace" in names
    assert "found keys, alone" in names
    assert len(names) == len(set(names)) >= 27
