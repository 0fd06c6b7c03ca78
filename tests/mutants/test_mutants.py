"""Every deliberate bug still applies to the code, and the harness tells a noticed one from one that nobody noticed."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from mutants.__main__ import main, misfit, rate, table
from mutants.bench import Bench
from mutants.catalogue import PACKAGE, ROOT, Mutant, chosen, mutants
from mutants.runner import Result, run

CODE = "def at_most(x, bound):\n    return min(x, bound)\n\n\ndef countdown(n):\n    while n > 0:\n        n -= 1\n    return n\n"
TESTS = """from recordwise.small import at_most, countdown


def test_small():
    assert at_most(3, 2) == 2
    assert countdown(3) == 0
"""


def small(name: str, old: str, new: str, **more: str) -> Mutant:
    given = {"area": "small", "file": "small.py", "why": "it is wrong", **more}
    return Mutant(name=name, old=old, new=new, tests=("tests/test_small.py",), **given)


LARGEST = small("largest", "min(", "max(")
NO_BOUND = small("no bound", "return min(x, bound)", "return x")
ONE_LESS = small("one less", "return n\n", "return n - 1\n")
SAME = small("same", "while n > 0", "while 0 < n", equivalent="two ways to write one comparison")
ENDLESS = small("endless", "n -= 1", "n -= 0")
BROKEN = small("broken", "def at_most", "def at_least")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package of one file, and its test."""
    root = tmp_path / "project"
    (root / PACKAGE).mkdir(parents=True)
    (root / "tests").mkdir()
    (root / PACKAGE / "__init__.py").touch()
    (root / PACKAGE / "small.py").write_text(CODE)
    (root / "tests" / "test_small.py").write_text(TESTS)
    return root


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def statements_of(text: str) -> list[str]:
    """The statements of a file, with the comments above them: to read and write out all of them for every bug takes long."""
    body, lines = ast.parse(text).body, text.splitlines(keepends=True)
    starts = [0, *(each.end_lineno or 0 for each in body)]
    return ["".join(lines[start : each.end_lineno]) for start, each in zip(starts, body)]


def changes(mutant: Mutant, text: str) -> bool:
    """Whether a bug leaves Python, and changes more of it than blanks and comments."""
    after = mutant.applied(text)
    held = [each for each in statements_of(text) if mutant.old in each]
    before, after = (held[0], held[0].replace(mutant.old, mutant.new)) if len(held) == 1 else (text, after)
    return ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))


@pytest.mark.parametrize("area", sorted({mutant.area for mutant in mutants()}))
@pytest.mark.costly
def test_every_bug_applies_once_and_leaves_python_and_its_tests_exist(area: str) -> None:
    for mutant in (each for each in mutants() if each.area == area):
        assert changes(mutant, text_of(ROOT / PACKAGE / mutant.file)), mutant.name
        assert mutant.why, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert not name or f"def {name.partition('[')[0]}(" in text_of(ROOT / file), mutant.name
            assert (ROOT / file).exists(), mutant.name


def test_a_comment_is_no_bug_and_what_is_no_python_is_refused() -> None:
    assert changes(LARGEST, CODE)
    assert changes(small("over two statements", "bound)\n\n\ndef countdown", "x)\n\n\ndef countdown"), CODE)
    assert not changes(small("a comment", "return n\n", "return n  # it is\n"), CODE)
    with pytest.raises(SyntaxError):
        changes(small("no Python", "min(", "min(("), CODE)


def test_there_are_enough_bugs_and_no_two_have_one_name() -> None:
    every = mutants()
    assert sum(mutant.equivalent is None for mutant in every) >= 150
    assert max(Counter(mutant.name for mutant in every).values()) == 1
    with pytest.raises(ValueError, match="unknown: neither"):
        chosen(["neither"])


@pytest.mark.process
def test_bugs_are_noticed_and_what_is_no_bug_is_not(project: Path) -> None:
    told: list[str] = []
    results = run([LARGEST, NO_BOUND, ONE_LESS, SAME], jobs=2, tell=told.append, root=project)
    assert [result.outcome for result in results] == ["failed", "failed", "failed", "passed"]
    assert told[-1] == "bugs: 4 of 4"
    assert rate(results) == 1.0
    assert not any(map(misfit, results))


@pytest.mark.slow
@pytest.mark.process
def test_an_endless_bug_is_noticed_and_one_that_keeps_tests_from_running_is_not_counted(
    project: Path, tmp_path: Path
) -> None:
    assert Bench(tmp_path / "bench", root=project, seconds=3).outcome(ENDLESS) == "endless"
    result = Result(BROKEN, Bench(tmp_path / "other", root=project).outcome(BROKEN), 1.0)
    assert result.outcome == "broken"
    assert misfit(result)


@pytest.mark.process
def test_tests_that_fail_without_a_bug_prove_nothing(project: Path) -> None:
    (project / "tests" / "test_small.py").write_text("def test_small():\n    assert False\n")
    with pytest.raises(ValueError, match="fail without any bug: tests/test_small"):
        run([LARGEST], jobs=1, tell=print, root=project)


def test_a_bug_whose_text_is_gone_or_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        LARGEST.applied("max(")
    with pytest.raises(ValueError, match="stands 2 times"):
        LARGEST.applied("min(min(")


def test_the_rate_leaves_out_what_is_no_bug_and_survivors_are_told_with_what_they_would_do() -> None:
    results = [Result(LARGEST, "failed", 1.0), Result(NO_BOUND, "passed", 1.0), Result(SAME, "passed", 1.0)]
    assert rate(results) == 0.5
    lines = table(results)
    assert "no bound (small.py) NOT NOTICED: it is wrong" in lines
    assert "same (small.py) no bug: two ways to write one comparison" in lines
    assert lines[-1].split() == ["all", "1", "of", "2", "noticed,", "50.0%;", "1", "no", "bug"]
    assert misfit(Result(SAME, "failed", 1.0))


@pytest.mark.slow
@pytest.mark.process
def test_a_real_bug_in_the_package_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mutants", "--jobs", "1", "alias-threshold-one-low"])
    assert main() == 0
    assert "1 of    1 noticed, 100.0%" in capsys.readouterr().out
