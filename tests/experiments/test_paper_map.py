"""The paper map points at things that exist, and every experiment and theorem-bearing paper item is on it."""

import re
from functools import cache, reduce
from pathlib import Path

import pytest

import recordwise as rw
from experiments.errata.run import collected
from recordwise.cli.reproduce import names

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
QUOTED = sorted(set(re.findall(r"`([^`]+)`", TEXT)))
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
WORDS = {"simple", "advanced"}
"""Values of a parameter, quoted beside the name that takes them."""


def path_exists(path):
    folders = (ROOT, ROOT / "src" / "recordwise", ROOT / "tests")
    return any((folder / path).exists() for folder in folders) or any((ROOT / "tests").rglob(path))


def resolves(name):
    try:
        reduce(getattr, name.split(".")[1:], rw)
    except AttributeError:
        return False
    return True


def exists(quoted):
    """A command, a name of the package, a test or a path."""
    if quoted.startswith("recordwise reproduce "):
        return quoted.removeprefix("recordwise reproduce ") in names()
    if quoted.startswith("python -m experiments.errata "):
        return quoted.rpartition(" ")[2] in errata_names()
    if quoted.startswith("rw."):
        return resolves(quoted)
    if re.fullmatch(r"test_\w+", quoted):
        return f"def {quoted}(" in TESTS
    return quoted in WORDS or path_exists(quoted)


@cache
def errata_names():
    return frozenset(each.name for each in collected(lambda _: None))


@pytest.mark.parametrize("quoted", QUOTED)
def test_what_the_map_names_exists(quoted):
    assert exists(quoted)


@pytest.mark.parametrize(
    "wrong",
    [
        "policy/nothing.py",
        "test_nothing_at_all",
        "rw.policy.nothing",
        "recordwise reproduce nothing",
        "python -m experiments.errata nothing",
    ],
)
def test_the_check_rejects_what_does_not_exist(wrong):
    assert not exists(wrong)


def test_theorems_of_the_map_are_proved_in_the_theory():
    proved = set(
        re.findall(r"^## (T-[A-Z0-9-]+)", "\n".join(p.read_text() for p in (ROOT / "docs/theory").glob("*.md")), re.M)
    )
    assert set(re.findall(r"\bT-[A-Z0-9-]+", TEXT)) <= proved


def test_every_experiment_is_on_the_map():
    assert {name for name in names() if name != "errata"} <= set(re.findall(r"recordwise reproduce ([a-z0-9-]+)", TEXT))


def test_every_experiment_is_on_the_page_that_says_how_to_reproduce():
    page = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    assert set(names()) == set(re.findall(r"^\| `recordwise reproduce ([a-z0-9-]+)`", page, re.M))


def test_every_row_has_a_test_or_an_experiment():
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith(("| source", "|---"))]
    assert len(rows) > 50
    assert [row[:60] for row in rows if "`" not in row.split("|")[4]] == []
