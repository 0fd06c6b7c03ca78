"""The pages about plans and the command line run as they are printed."""

import re
import shlex
from pathlib import Path

import pytest

from recordwise.mechanisms.registry import BUILT_IN, mechanism_kinds
from recordwise.plan.file import load_plan
from recordwise.plan.file.keys import WAYS
from recordwise.plan.file.queries import QUERY
from recordwise.plan.file.read import HIERARCHY, SECTIONS
from recordwise.plan.file.sections import CSV, MASTER, SCHEMA, SERIES
from recordwise.plan.statistics import KINDS

DOCS = Path(__file__).parents[2] / "docs"
HEADINGS = re.findall(r"^## .*", (DOCS / "plan-file.md").read_text(), flags=re.MULTILINE)
TABLES = set(re.findall(r"\w+", " ".join(HEADINGS).lower()))
"""The words of the headings, among them every section that is a table."""


def blocks(page, heading=""):
    """The code blocks of a page, or of one part of it, in order: language and text."""
    text = (DOCS / page).read_text()
    if heading:
        text = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "heading", "least"),
    [
        ("tutorial.md", "", 8),
        ("queries.md", "How to choose keys, levels and thresholds", 4),
        ("queries.md", "How to publish by the levels of a code", 4),
    ],
)
@pytest.mark.costly
def test_every_block_of_a_page_runs_in_order(page, heading, least, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    found = blocks(page, heading)
    assert len(found) >= least
    names: dict[str, object] = {}
    for language, text in found:
        if language == "toml":
            Path("plan.toml").write_text(text)
        elif language == "python":
            exec(compile(text, page, "exec"), names)
        else:
            assert language == "sh"
            for line in text.splitlines():
                program, *words = shlex.split(line)
                assert program == "recordwise"
                result = run(*words)
                assert result.exit_code == 0, (line, result.output)
    if page == "tutorial.md":
        told = run("check", "plan.toml").stdout
        plain = " ".join((DOCS / page).read_text().split())
        examples = re.findall(r"^(?:corner shop|factory) .*?  ([\d.]+)  ", told, flags=re.MULTILINE)
        assert f"corner shop ({examples[0]}) and of the factory ({float(examples[1]):.3g})" in plain
        assert "± 26.8" in told
        assert "(26.8 employees, 1,271 thousand dollars)" in plain
        assert "± 1,270" in told
        assert {"policy.json", "release.json"} <= {path.name for path in (tmp_path / "published-from-python").iterdir()}


@pytest.mark.costly
def test_the_complete_example_of_the_reference_is_a_plan_that_its_budget_covers(tmp_path, run):
    _, text = blocks("plan-file.md")[0]
    (tmp_path / "plan.toml").write_text(text)
    file = load_plan(tmp_path / "plan.toml")
    assert len(file.plan.tables()) == 4
    result = run("check", tmp_path / "plan.toml", "--no-source")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("Top level", tuple(each for each in SECTIONS if each.name not in TABLES)),
        ("`[csv]`", CSV),
        ("`[spark]`", MASTER),
        ("`[schema]`", tuple(each for each in SCHEMA if each.name != "collapse")),
        ("`[series]`", SERIES),
        ("`[hierarchies.NAME]`", HIERARCHY),
    ],
)
def test_the_reference_lists_the_entries_of_each_section_and_which_are_required(heading, section):
    part = (DOCS / "plan-file.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)[^|]*\| *(\w*) *\|", part, flags=re.MULTILINE)
    assert {name: word == "required" for name, word in rows} == {each.name: each.needed for each in section}


def test_the_reference_names_everything_a_plan_may_hold():
    page = (DOCS / "plan-file.md").read_text()
    named = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"\w+", code)}
    entries = {each.name for each in (*SECTIONS, *QUERY)} | {kind.word for kind in KINDS}
    assert entries | set(WAYS) | {"select", "select_from"} <= named
    assert set(mechanism_kinds()) | {each.name for kind in BUILT_IN.values() for each in kind.parameters} <= named
