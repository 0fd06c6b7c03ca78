"""How the source is laid out: confidential values are opened in one room, kinds are asked and not tested for, numbers are written
in one place, and functions, files and folders stay small enough to find one's way."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from recordwise.mechanisms.registry import BUILT_IN
from recordwise.plan.statistics import KINDS

SOURCE = Path(__file__).resolve().parents[1] / "src" / "recordwise"
FILES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
LONGEST_FILE, LONGEST_FUNCTION = 800, 60
MOST_ENTRIES, MOST_AT_THE_TOP = 16, 20
BASES = {"GaussianNoise", "FatTailedNoise", "TransformedNoise", "AdditiveNoise", "Drawable", "Statistic"}
SHOWN = ("cli/", "planning/", "studio/", "release/page/", "policy/meaning.py", "policy/render/")
PLACES = {"release/page/charts.py", "policy/render/html.py"}
"""Coordinates of pictures are no numbers for a reader."""


@cache
def tree_of(name: str) -> ast.Module:
    """Read when a test asks for it: each process collects this file and runs a part of it."""
    return ast.parse(FILES[name].read_text())


def kinds_imported(tree: ast.AST) -> set[str]:
    """The names by which a file knows kinds of mechanisms and statistics; policy atoms share some of them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("recordwise.mechanisms", "recordwise.plan")
        ):
            names = {*BUILT_IN, *(kind.__name__ for kind in KINDS), *BASES}
            found |= {each.asname or each.name for each in node.names if each.name in names}
    return found


def kinds_tested(tree: ast.AST) -> Iterator[str]:
    """Kinds that a file tests for, by ``isinstance``, ``issubclass``, ``match`` or ``type(...) is``."""
    kinds = kinds_imported(tree)
    for node in ast.walk(tree):
        tested: list[ast.AST] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            tested = [node.args[1]]
        elif isinstance(node, ast.MatchClass):
            tested = [node.cls]
        elif (
            isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and ast.unparse(node.left.func) == "type"
        ):
            tested = list(node.comparators)
        yield from (
            f"line {node.lineno}: {each.id}"  # type: ignore[attr-defined]
            for part in tested
            for each in ast.walk(part)
            if isinstance(each, ast.Name) and each.id in kinds
        )


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith(("mechanisms/", "plan/statistics/"))])
@pytest.mark.costly
def test_no_kind_of_mechanism_or_statistic_is_tested_for_outside_its_own_files(name: str) -> None:
    assert list(kinds_tested(tree_of(name))) == []


def test_a_test_for_a_kind_would_be_found() -> None:
    planted = """
from recordwise.mechanisms.gaussian import Gaussian as Normal
from recordwise.plan.statistics import Sum
from recordwise.policy.atoms import Additive
def f(m, s, atom):
    isinstance(atom, Additive)
    if isinstance(m, (int, Normal)) or type(s) is Sum:
        match s:
            case Sum(): pass
"""
    assert sorted(kinds_tested(ast.parse(planted))) == ["line 7: Normal", "line 7: Sum", "line 9: Sum"]


@pytest.mark.costly
def test_what_came_from_records_is_opened_in_the_session_alone() -> None:
    opened = {
        name
        for name in FILES
        for node in ast.walk(tree_of(name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reveal"
    }
    assert opened
    assert {name.partition("/")[0] for name in opened} == {"session"}


def formats(tree: ast.AST) -> Iterator[str]:
    """Formats of numbers in f-strings: significant digits, decimals, percent."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            text = ast.unparse(node.format_spec)
            if text.rstrip("'\"")[-1:] in "gfe%":
                yield f"line {node.lineno}: {text}"


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith(SHOWN) and name not in PLACES])
def test_numbers_that_a_reader_sees_are_written_by_the_functions_of_one_module(name: str) -> None:
    assert list(formats(tree_of(name))) == []


@pytest.mark.parametrize("name", FILES)
def test_a_file_and_its_functions_are_short_enough_to_read(name: str) -> None:
    assert len((SOURCE / name).read_text().splitlines()) <= LONGEST_FILE
    assert [function for function, lines in lengths(tree_of(name)) if lines > LONGEST_FUNCTION] == []


def lengths(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The functions of a file and their lines, without the docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            yield node.name, node.end_lineno - first.lineno + 1


def entries(folder: Path) -> set[str]:
    """What a reader of a folder has to choose from."""
    return {
        path.stem
        for path in folder.iterdir()
        if (path.suffix == ".py" and not path.name.startswith("__"))
        or (path.is_dir() and (path / "__init__.py").exists())
    }


FOLDERS = sorted(path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py"))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_has_few_enough_entries_to_find_the_way(name: str) -> None:
    found = entries(SOURCE / name)
    assert len(found) <= (MOST_AT_THE_TOP if name == "." else MOST_ENTRIES)


@pytest.mark.parametrize("name", [name for name in FOLDERS if name != "."])
def test_the_docstring_of_a_package_lists_its_files_in_reading_order(name: str) -> None:
    described = ast.get_docstring(tree_of(f"{name}/__init__.py")) or ""
    listed = re.findall(r"^- ``(\w+)``: ", described, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == entries(SOURCE / name)
    assert len(described.splitlines()[0].split()) <= 16
