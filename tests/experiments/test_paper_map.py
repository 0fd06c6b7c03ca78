"""The paper map: what it names exists, no numbered item of the papers is missing, each stands where the map says, commands run."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path

import numpy as np
import pytest

import build
import recordwise as rw
from experiments.command import names
from recordwise.exact.functions import log, x

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
TEXT = PAGE.split("\n## Reproducing the papers\n")[0]
"""The map alone, without the commands and the errata below it."""
ERRATA = PAGE.split("\n## Errata of the sources\n")[1]
FIRST = "\n## [S]"
"""What stands before says how to read the map, and quotes no path and no name of the package."""
API = re.findall(r"^  `([^`]+)`$", TEXT, re.M)
"""The lines of public API: the last line of an item, and nothing else on it."""
QUOTED = sorted(set(re.findall(r"`([^`]+)`", TEXT[TEXT.index(FIRST) :])) - set(API))
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
    if quoted.startswith("errata "):
        return quoted.removeprefix("errata ") in errata_names()
    if quoted.startswith("rw."):
        return resolves(quoted)
    if re.fullmatch(r"test_\w+", quoted):
        return f"def {quoted}(" in TESTS
    return quoted in {*WORDS, *names()} or path_exists(quoted)


@cache
def errata_names():
    """As the list of errata has them, which has those that have evidence and no others (``test_errata.py``)."""
    return frozenset(re.findall(r"`errata ([a-z0-9-]+)`", ERRATA))


@pytest.mark.parametrize("quoted", QUOTED)
def test_what_the_map_names_exists(quoted):
    assert exists(quoted)


@pytest.mark.parametrize(
    "wrong",
    [
        "policy/nothing.py",
        "test_nothing_at_all",
        "rw.policy.nothing",
        "split-fig99",
        "errata nothing",
    ],
)
def test_the_check_rejects_what_does_not_exist(wrong):
    assert not exists(wrong)


@pytest.fixture(scope="module")
def given():
    """What the lines of public API start from: a session, queries on it, a record and candidates."""
    rows = {"id": [1, 2, 3, 4], "county": ["01", "01", "02", "02"], "emp": [4, 20, 900, 7]}
    by_county = rw.query().group_by("county", keys=rw.Keys.of({"county": ["01", "02"]}))
    laplace = rw.GeneralizedGaussian(shape=1, scale=100)
    keys = build.keys()
    query = rw.query().group_by("county", "naics", keys=keys)
    asked = query.count(rw.Gaussian(rho="0.1")).sum("emp", rw.UnitSplit(at=50, rho="0.1"))
    with (
        build.employers(rows, "county", measures={"emp": rw.plan.Measure.of("emp", bound=10_000)}) as session,
        build.employers(build.records(200), "county", "naics", measures={"emp": 1, "pay": 1}, firm="firm") as opened,
    ):
        yield {
            "np": np,
            "s": opened,
            "keys": keys,
            "q": query,
            "asked": asked,
            "release": opened.run(asked),
            "split": rw.policy.split("0.1", {"emp": 50}),
            "x": x,
            "W": rw.postprocess.Workload.marginals((4, 3), {"sum": (), "cells": (0, 1)}),
            "answers": np.arange(13.0),
            "U": rw.UnitSplit(at=50, rho="0.1"),
            "splits": {"split": rw.UnitSplit(at=20, rho=1)},
            "grid": rw.mechanisms.Grid.log(1, 10**6, bits=6),
            "how": {"query": query, "measure": "emp", "data": "synthetic"},
            "rw": rw,
            "session": session,
            "gaussian": by_county.sum("emp", rw.Gaussian(sigma=50)),
            "laplace": by_county.count(laplace).sum("emp", laplace),
            "record": {"emp": 20, "county": "01"},
            "logarithm": rw.policy.additive("emp", log(1 + x / 10), bound="pure"),
            "slow": {"Polylog": rw.Polylog(power=2, rate=1, offset=8, scale=100)},
        }


@pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
@pytest.mark.parametrize("line", API)
@pytest.mark.costly
def test_the_lines_of_the_public_api_run(line, given):
    assert eval(line, dict(given)) is not None


def test_only_what_is_not_reproduced_has_no_line_of_the_public_api():
    without = [row for name in (*HEADS, "Others") for row in rows(name) if not row.api]
    assert 5 < len(without) < 10
    assert all(row.checked.startswith("not reproduced: ") for row in without)


def test_the_lines_of_the_public_api_are_found():
    assert len(API) == sum(bool(row.api) for name in (*HEADS, "Others") for row in rows(name)) > 130


def test_theorems_of_the_map_are_proved_in_the_theory():
    proved = set(
        re.findall(r"^## (T-[A-Z0-9-]+)", "\n".join(p.read_text() for p in (ROOT / "docs/theory").glob("*.md")), re.M)
    )
    assert set(re.findall(r"\bT-[A-Z0-9-]+", TEXT)) <= proved


def test_every_experiment_is_on_the_map():
    assert {name for name in names() if name != "errata"} <= set(QUOTED)


def test_every_experiment_is_on_the_page_that_says_how_to_reproduce():
    assert set(names()) == set(re.findall(r"^- `([a-z0-9-]+)` \(\d+ s", PAGE, re.M))


HEADS = {"[S]": "000", "[F]": "001", "[A]": "004"}
"""The text of each source, by the number its file name starts with; 002 is a second extraction of the slides."""
NUMBERED = {
    "[S]": {"Definition": 8, "Theorem": 4, "Lemma": 10, "Example": 5, "Algorithm": 1, "Table": 8, "Figure": 5},
    "[F]": {},
    "[A]": {"Definition": 4, "Theorem": 4, "Algorithm": 2, "Table": 2, "Remark": 2},
}
KINDS = r"(Definition|Theorem|Lemma|Example|Algorithm|Table|Figure|Remark) (\d+)"
PAPERS = ROOT.parent / "shared" / "papers"
with_texts = pytest.mark.skipif(
    not PAPERS.is_dir(), reason="the papers' texts are not beside the checkout, in ../shared/papers"
)


@dataclass(frozen=True)
class Row:
    item: str
    where: str
    code: str
    checked: str
    api: str = ""


def part(name):
    """What the map says under the heading of one source."""
    return re.split(r"^## ", TEXT.split(f"\n## {name}", 1)[1], maxsplit=1, flags=re.M)[0]


def rows(name):
    """The items: a line that names one, a line with code and proof before a semicolon and checks after it, a line of public API."""
    found = []
    for section in re.split(r"^### ", part(name), flags=re.M):
        heading = section.partition("\n")[0]
        for item, told, *api in (
            each.replace("**<br>", "<br>", 1).split("<br>\n  ")
            for each in re.findall(r"^- \*\*(.*(?:\n  .*)*)", section, re.M)
        ):
            code, _, checked = told.rpartition("; ")
            found.append(Row(item, heading if name == "[F]" else heading.split(" ")[0], code, checked, *api))
    return found


def sections(name):
    """The sections of a source are the headings under it."""
    return re.findall(r"^### (.*)$", part(name), re.M)


def numbered(text):
    return set(re.findall(KINDS, text))


def plain(text):
    """Ligatures undone, white space made one blank, capitals ignored."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).lower()


@cache
def source(number):
    (path,) = PAPERS.glob(f"{number}_*.txt")
    return plain(path.read_text(encoding="utf-8"))


def places(text, headings):
    """Where each heading stands, each after the one before it."""
    found, start = [], 0
    for heading in headings:
        place = text.find(plain(heading), start)
        if place < 0:
            return None
        found.append(place)
        start = place + 1
    return found


def section_texts(name):
    """The text of every section of a source, by the way the map refers to it: its number, or the title of a slide."""
    text, headings = source(HEADS[name]), sections(name)
    starts = places(text, headings)
    assert starts is not None, [heading for heading in headings if plain(heading) not in text]
    ends = [*starts[1:], len(text)]
    keys = headings if name == "[F]" else [heading.split()[0] for heading in headings]
    return {key: text[start:end] for key, start, end in zip(keys, starts, ends, strict=True)}


@pytest.mark.parametrize("name", HEADS)
def test_no_numbered_item_of_a_source_is_missing(name):
    expected = {(kind, str(number)) for kind, count in NUMBERED[name].items() for number in range(1, count + 1)}
    assert numbered("\n".join(row.item for row in rows(name))) >= expected


@pytest.mark.parametrize("name", HEADS)
def test_every_row_names_a_section_of_its_source(name):
    known = set(sections(name)) if name == "[F]" else {heading.split()[0] for heading in sections(name)}
    assert [row.item for row in rows(name) if row.where not in known] == []
    assert known <= {row.where for row in rows(name)} | {"6"}, "a section without a row; 6 only introduces 6.1 to 6.4"


@with_texts
@pytest.mark.parametrize("name", HEADS)
def test_each_numbered_item_stands_in_the_section_the_map_gives(name):
    texts = section_texts(name)
    wrong = [
        (row.item, row.where)
        for row in rows(name)
        for kind, number in re.findall(rf"^{KINDS}", row.item)
        if not re.search(rf"{kind.lower()} {number}\b", texts[row.where])
    ]
    assert wrong == []


@with_texts
@pytest.mark.parametrize("name", HEADS)
def test_the_text_has_no_numbered_item_beyond_those_counted_here(name):
    titles = {kind.lower(): count for kind, count in NUMBERED[name].items()}
    # References to other papers ("Theorem 7.2 of theirs", "Lemma 5.2 in [7]") have a decimal point.
    found = re.findall(KINDS.lower() + r"(?!\.?\d)", source(HEADS[name]))
    assert {(kind, number) for kind, number in found if int(number) > titles.get(kind, 0)} == set()


@with_texts
def test_every_slide_is_in_both_extractions():
    assert [title for title in sections("[F]") if plain(title) not in source("002")] == []


def test_the_check_of_sections_rejects_a_wrong_order_and_a_missing_title():
    assert places("1 one 2 two", ["1 One", "2 Two"]) == [0, 6]
    assert places("1 one 2 two", ["2 Two", "1 One"]) is None
    assert places("1 one 2 two", ["3 Three"]) is None


@pytest.mark.parametrize("name", [*HEADS, "Others"])
def test_every_row_is_tested_reproduced_or_says_why_not(name):
    """A reason is a sentence after the words, not the words alone."""
    bare = [
        row.item
        for row in rows(name)
        if not set(re.findall(r"`([^`]+)`", row.checked)) & CHECKS
        and not re.match(r"not reproduced: .{20,}", row.checked)
    ]
    assert bare == []
    assert len(rows(name)) >= 10


COMMANDS = sorted({each for each in QUOTED if each in names() or each.startswith("errata ")})
CHECKS = {*COMMANDS, *(each for each in QUOTED if re.match(r"(?:planning/)?test_", each))}
"""What can stand for a check of an item: an experiment, an erratum with its evidence, a test."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in COMMANDS if each in names()])
def test_each_command_of_the_map_runs_in_a_cheap_form(name, generated, monkeypatch, tmp_path):
    """One or two runs, on few generated records; the figures' own tests look at what comes out."""
    import typer
    from typer.testing import CliRunner

    from experiments.command import reproduce
    from experiments.slow_cdf import records
    from experiments.split_fig2 import smallest

    app = typer.Typer()
    app.command()(reproduce)

    monkeypatch.setattr(records, "GENERATED", 40_000)
    monkeypatch.setattr(smallest, "STEPS", 4)
    monkeypatch.setattr(smallest, "REPETITIONS", 2)
    done = CliRunner().invoke(app, [name, "--runs", "2", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "reproduction.html").stat().st_size > 1000


@pytest.mark.costly
def test_each_erratum_of_the_map_is_printed_by_its_command(capsys):
    from experiments.errata.__main__ import main

    named = {quoted.removeprefix("errata ") for quoted in QUOTED if quoted.startswith("errata ")}
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert [name for name in sorted(named) if f"{name} " not in printed] == []
    assert "NOT BORNE OUT" not in printed
