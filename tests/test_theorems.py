"""Every claim has an id; the id leads to a proof and to a test, and none of the three stands alone."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ID = re.compile(r"\bT-[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*\b")
ASSUMPTION = re.compile(r"\bA-[A-Z][A-Z0-9]*\b")


@cache
def docstrings(path: Path) -> str:
    """The comments of a module and its docstrings, among them the strings below its constants."""
    text = path.read_text(encoding="utf-8")
    if not ID.search(text) and not ASSUMPTION.search(text):
        return ""
    tree = ast.parse(text)
    alone = (
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
    comments = re.findall(r"#.*", text)
    return "\n".join([*(each for each in alone if isinstance(each, str)), *comments])


def ids_in_code() -> dict[str, str]:
    files = sorted((ROOT / "src").rglob("*.py"))
    return {found: path.name for path in files for found in ID.findall(docstrings(path))}


@cache
def theory() -> dict[str, str]:
    """The text under each heading that carries an id."""
    sections: dict[str, str] = {}
    for path in sorted((ROOT / "docs" / "theory").glob("*.md")):
        for section in re.split(r"^#+ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            heading, _, body = section.partition("\n")
            sections |= dict.fromkeys(ID.findall(heading), body)
    return sections


def test_no_id_names_two_theorems() -> None:
    paths = sorted((ROOT / "docs" / "theory").glob("*.md"))
    headings = [
        found for path in paths for found in re.findall(r"^#+ (T-[A-Z0-9-]+)", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert len(set(headings)) == len(headings), sorted(found for found in headings if headings.count(found) > 1)


@cache
def ids_in_tests() -> dict[str, str]:
    """The ids given to the theorem marker, wherever it is written."""
    marked: dict[str, str] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "theorem(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "theorem":
                marked |= {
                    str(argument.value): path.name for argument in node.args if isinstance(argument, ast.Constant)
                }
    return marked


def listed(ids: set[str], where: dict[str, str]) -> str:
    return ", ".join(f"{found} ({where[found]})" for found in sorted(ids))


@pytest.mark.costly
def test_every_id_in_the_code_is_proved() -> None:
    code = ids_in_code()
    assert not (missing := code.keys() - theory().keys()), f"no heading in docs/theory: {listed(missing, code)}"


@pytest.mark.costly
def test_every_id_in_the_code_is_tested() -> None:
    code = ids_in_code()
    assert not (missing := code.keys() - ids_in_tests().keys()), f"no test marked: {listed(missing, code)}"


def test_every_proved_id_is_used_in_the_code() -> None:
    proved = dict.fromkeys(theory(), "docs/theory")
    assert not (missing := proved.keys() - ids_in_code().keys()), (
        f"cited in no docstring or comment: {listed(missing, proved)}"
    )


def test_every_marked_test_is_of_a_theorem_that_is_proved() -> None:
    tests = ids_in_tests()
    assert not (missing := tests.keys() - theory().keys()), f"no heading in docs/theory: {listed(missing, tests)}"


PARTS = ("**Statement.**", "**Proof.**", "**Code.**", "**Test.**")


@pytest.mark.parametrize("found", sorted(theory()))
def test_a_theorem_is_statement_proof_code_and_test_in_this_order(found: str) -> None:
    body = theory()[found]
    places = [body.find(part) for part in PARTS]
    assert min(places) >= 0, f"missing: {[part for part, place in zip(PARTS, places, strict=True) if place < 0]}"
    assert places == sorted(places)
    assert len(body[places[1] : places[2]].removeprefix(PARTS[1]).strip()) > 60


@pytest.mark.parametrize("found", sorted(theory()))
def test_the_code_and_the_tests_that_a_theorem_names_exist_and_name_it(found: str) -> None:
    code, _, tests = theory()[found].partition(PARTS[2])[2].partition(PARTS[3])
    for text, folder in ((code, "src/recordwise"), (tests, "tests")):
        named = [path.removeprefix("tests/") for path in re.findall(r"`([\w/]+\.py)`", text)]
        files = [path for each in named for path in (ROOT / folder).rglob(each)]
        assert len(files) == len(named), f"not one file each below {folder}: {named}"
        assert any(found in path.read_text(encoding="utf-8") for path in files), f"{found} is named in none of {named}"


def test_every_assumption_named_in_code_or_theory_is_listed() -> None:
    listed_there = set(ASSUMPTION.findall((ROOT / "docs" / "limits.md").read_text(encoding="utf-8")))
    named = {found for path in (ROOT / "src").rglob("*.py") for found in ASSUMPTION.findall(docstrings(path))}
    named |= {
        found
        for path in (ROOT / "docs" / "theory").glob("*.md")
        for found in ASSUMPTION.findall(path.read_text("utf-8"))
    }
    assert not named - listed_there, f"not in docs/limits.md: {', '.join(sorted(named - listed_there))}"
