"""Every planted bug is caught by the audit, by what the list in docs/trust.md says; without it the same audit is content."""

import csv
import re
import sys
from functools import partial
from pathlib import Path

import pytest

from audit.planted_bugs import BUGS, CARRIED, FORKS, REENTRY, REFUSALS, SERIES, STAGES, THREADS, Bug
from recordwise.audit import Finding, Runs, audit
from recordwise.audit.checks import REFUSALS as REFUSED
from recordwise.audit.checks import (
    audit_carried,
    audit_reentry,
    audit_refusals,
    audit_threads,
    audit_two_periods,
    audit_two_stages,
)
from recordwise.audit.forking import audit_forks
from recordwise.audit.subjects import every_subject

PAGE = Path(__file__).parents[2] / "docs" / "trust.md"
FORKING = f"""
import sys
from pathlib import Path
sys.path[:0] = [{str(Path(__file__).parents[1])!r}]
import pytest
from audit.planted_bugs import BUGS
from recordwise.audit.forking import main
(bug,) = [each for each in BUGS if each.name == "forked generator"]
bug.plant(pytest.MonkeyPatch())
main(Path(sys.argv[1]))
"""

SUBJECTS = every_subject()


def findings(name: str, folder: Path, how: Runs, *, planted: bool) -> list[Finding]:
    """What one check of the audit says."""
    if name == REFUSALS:
        return audit_refusals(folder, how)
    if name == THREADS:
        return [audit_threads(folder, how)]
    if name == REENTRY:
        return [audit_reentry()]
    if name == SERIES:
        return [audit_two_periods(folder, how)]
    if name == CARRIED:
        return [audit_carried(folder, how)]
    if name == STAGES:
        return [audit_two_stages(folder, how)]
    if name == FORKS:
        command = [sys.executable, "-c", FORKING] if planted else [sys.executable, "-m", "recordwise.audit.forking"]
        return [audit_forks(folder, command=command)]
    return audit(SUBJECTS[name](), how)


def caught(bug: Bug, found: list[Finding]) -> bool:
    """Whether the audit says what is wrong, and not only that something is."""
    if bug.sign == "lost at least":
        return any(each.bound > each.policy for each in found)
    return any(bug.sign in problem for each in found for problem in each.problems)


@pytest.mark.parametrize("bug", BUGS, ids=str)
@pytest.mark.process
@pytest.mark.costly
@pytest.mark.sampled
def test_a_planted_bug_is_caught(bug: Bug, tmp_path: Path) -> None:
    """With up to 200,000 samples; false alarm 1e-9 (the audits below), power as in docs/theory/audit.md."""
    assert (bug.refusal in REFUSED) == (bug.caught_by[0] == REFUSALS)
    with bug.planted():
        how = Runs(cells=bug.cells, runs=2)
        found = (bug.refusal or partial(findings, bug.caught_by[0], planted=True))(tmp_path, how)
    assert caught(bug, found), found


@pytest.mark.parametrize("name", sorted({bug.caught_by[0] for bug in BUGS}))
@pytest.mark.process
@pytest.mark.costly
@pytest.mark.sampled
def test_without_the_bug_the_same_check_is_content(name: str, tmp_path: Path) -> None:
    assert not any(each.broken for each in findings(name, tmp_path, Runs(cells=5_000), planted=False))


@pytest.mark.slow
@pytest.mark.parametrize("bug, name", [(bug, name) for bug in BUGS for name in bug.caught_by], ids=str)
def test_a_planted_bug_is_caught_by_every_subject_the_table_names(bug: Bug, name: str, tmp_path: Path) -> None:
    with bug.planted():
        assert caught(bug, findings(name, tmp_path, Runs(runs=4), planted=True))


def test_the_page_lists_every_planted_bug_and_no_other() -> None:
    """The list cannot lie: its entries are those of the registry, and every one of the registry is a test above."""
    told = PAGE.read_text(encoding="utf-8").split("\n### What it catches\n")[1].split("\n### ")[0]
    named = "; ".join(line.strip(";.") for line in re.findall(r"^- (.*)$", told, re.MULTILINE)).split("; ")
    assert named == [bug.name for bug in BUGS]
    assert all(bug.place for bug in BUGS)


def test_the_page_has_what_was_measured_of_every_subject_and_none_lost_more_than_its_policy() -> None:
    told = PAGE.read_text(encoding="utf-8").split("\n### What it measured\n")[1].split("\n### ")[0]
    with (PAGE.parent / "assets" / "audit.csv").open(encoding="utf-8") as file:
        rows = {row["subject"]: (float(row["policy"]), float(row["lost at least"])) for row in csv.DictReader(file)}
    assert rows.keys() == SUBJECTS.keys()
    assert f"each of {len(rows)} subjects" in told
    assert all(bound <= policy for policy, bound in rows.values())
    parts = sorted((round(bound / policy, 2) for policy, bound in rows.values()), reverse=True)
    *most, domain, more, median, lone = parts
    assert f"| {most[-1]:.2f} to {most[0]:.2f} | {len(most)} of them" in told
    assert f"| {domain:.2f} | keys" in told
    assert f"| {median:.2f}, {more:.2f} | a median" in told
    assert f"| {lone:.0f} | keys found" in told


def test_noise_of_a_wrong_scale_is_looked_for_in_every_mechanism() -> None:
    (narrow,) = [bug for bug in BUGS if bug.name == "noise scale off by 10%"]
    elsewhere = {"median", "count, sum, average and median", "found keys, alone", "found keys, beside others"}
    assert set(narrow.caught_by) == SUBJECTS.keys() - elsewhere - {"keys of a domain"}
