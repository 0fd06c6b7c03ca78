"""Random bugs: where they can be, which tests are run against them, and what is said about those that nobody noticed."""

import ast
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mutants.at_random import Result, enough, main, report, run, wilson
from mutants.catalogue import PACKAGE
from mutants.chosen_tests import SPARK_TESTS, Reach, line_in_function
from mutants.judged import Judgment, entry_for, judgments
from mutants.reach import blocks_of, collect, marked, write
from mutants.sites import Site, all_sites, drawn, is_python, sites_of

CODE = '''"""A planted module: 1 + 1 < 3."""

from math import sqrt
from threading import Lock

LIMIT = 10
lock = Lock()


class Small:
    """Not 2 <= 3."""

    most: int = 5

    def bounded(self, x: int, low: int = 0) -> int:
        """The text says 1 < 2."""
        if x < low or x > LIMIT:
            raise ValueError(f"{x + 1} is not at most {LIMIT - 1}")
        with lock:
            return max(x, self.most)


def spread(square, sign):
    if sign:
        return abs(sqrt(square) - 1)
    note(square, sign)
    return -square**2


def note(square, sign):
    pass
'''
TESTS = """import pytest

from recordwise.small import Small, spread


@pytest.fixture(scope="module")
def largest():
    return Small().bounded(7)


def test_bounded(largest):
    assert largest == 7


def test_low():
    assert Small().bounded(3) == 5
    with pytest.raises(ValueError):
        Small().bounded(-1)
    with pytest.raises(ValueError):
        Small().bounded(11)


def test_spread():
    assert spread(3, 0) == -9


def test_that_fails():
    assert spread(3, 0) == 9
"""
CHANGES = """\
call: note(square, sign) -> ...
boundary: < -> <=
boundary: > -> >=
constant: 10 -> 11
constant: 5 -> 6
constant: 1 -> 2
constant: 2 -> 3
default: 0 -> 1
guard: sign -> False
guard: x < low or x > LIMIT -> False
lock: lock -> __import__("contextlib").nullcontext()
extreme: max -> min
absolute: abs(sqrt(square) - 1) -> (sqrt(square) - 1)
sign: - -> +
sign: -square**2 -> (square**2)
spread: sqrt(square) -> (square)
spread: square**2 -> (square)
swapped: square, sign -> sign, square
term: sqrt(square) - 1 -> (sqrt(square))
term: x < low or x > LIMIT -> x < low
term: x < low or x > LIMIT -> x > LIMIT
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of one file, and its tests, of which one fails."""
    root = tmp_path_factory.mktemp("project")
    (root / PACKAGE).mkdir(parents=True)
    (root / "tests").mkdir()
    (root / PACKAGE / "__init__.py").touch()
    (root / PACKAGE / "small.py").write_text(CODE)
    (root / "tests" / "test_small.py").write_text(TESTS)
    return root


@pytest.fixture(scope="module")
def reach(project: Path) -> Reach:
    assert collect(project / "reach.npz", root=project, jobs=1) == []
    return Reach(project / "reach.npz", root=project)


def site(project: Path, change: str) -> Site:
    (found,) = (each for each in all_sites(project) if f"{each.operator}: {each.change}" == change)
    return found


def test_the_sites_of_a_file_are_known_and_text_messages_and_types_have_none() -> None:
    found = sites_of(CODE, "small.py")
    assert Counter(f"{each.operator}: {each.change}" for each in found) == Counter(CHANGES.splitlines())
    assert {each.function for each in found} == {"", "Small", "Small.bounded", "spread"}


def test_a_bug_changes_its_span_and_nothing_else() -> None:
    text = CODE.replace("Not 2", "Nöt 2").replace(
        "    if sign:", "    'ä'; sign = sign; one = two = 'ö'  # ü\n    if sign:"
    )
    for each in sites_of(text, "small.py"):
        changed = each.applied(text)
        start, end = each.span
        assert changed.encode() == text.encode()[:start] + each.new.encode() + text.encode()[end:]
        assert each.change.startswith(" ".join(text.encode()[start:end].decode().split()))
        assert is_python(each, text)


def test_what_would_be_no_python_or_no_other_program_is_not_drawn() -> None:
    one = sites_of("x = 1 + 2\n", "small.py")[0]
    assert not is_python(Site(**{**one.__dict__, "new": "("}), "x = 1 + 2\n")
    assert not is_python(Site(**{**one.__dict__, "new": "+"}), "x = 1 + 2\n")


def test_equal_seeds_draw_equal_bugs_wherever_the_files_are(project: Path, tmp_path: Path) -> None:
    (tmp_path / PACKAGE / "moved").mkdir(parents=True)
    (tmp_path / PACKAGE / "moved" / "other.py").write_text("import math\n\n" + CODE.replace("- 1)", "-   1)"))
    first = [each.key for each in drawn(all_sites(project), seed=3, count=8, root=project)]
    assert first == [each.key for each in drawn(all_sites(tmp_path), seed=3, count=8, root=tmp_path)]
    assert first != [each.key for each in drawn(all_sites(project), seed=4, count=8, root=project)]
    assert len(set(first)) == 8


def test_sites_that_read_alike_have_keys_of_their_own(tmp_path: Path) -> None:
    (tmp_path / PACKAGE).mkdir(parents=True)
    (tmp_path / PACKAGE / "small.py").write_text("def f(x):\n    x = x + 1\n    x = x + 1\n")
    found = all_sites(tmp_path)
    assert len({each.key for each in found}) == len(found) == 6


def test_every_block_is_marked_when_it_is_entered_and_no_other() -> None:
    text, blocks = marked(CODE.replace("raise ValueError(f", "raise ValueError('x', f"), "small.py", 0)
    seen = bytearray(len(blocks))
    names: dict[str, Any] = {"__seen__": seen, "__name__": "small"}
    exec(text.replace("from recordwise_seen import __seen__", ""), names)
    assert not any(seen)
    names["spread"](3, 0)
    entered = {(block.function, block.line) for block, mark in zip(blocks, seen) if mark}
    assert entered == {("spread", 1), ("spread", 3), ("note", 1)}
    assert names["Small"].__doc__ == "Not 2 <= 3."


def test_a_site_is_in_the_block_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "small.py"
    path.write_text(
        "def f(x):\n    if x:\n        x = 1\n    x = 2\n    if x:\n        return 3\n    return 4\n\ny = 5\n"
    )
    found = {each.change: line_in_function(path, each) for each in sites_of(path.read_text(), "small.py")}
    assert found == {"1 -> 2": 2, "2 -> 3": 1, "x -> False": 1, "3 -> 4": 5, "4 -> 5": 6, "5 -> 6": None}


def test_blocks_of_functions_in_functions_are_named_as_python_names_them() -> None:
    text = "class A:\n    def f(self):\n        if self:\n            def g():\n                return 1\n        return g\n"
    names = [block.function for block, _, _ in blocks_of(ast.parse(text), "small.py")]
    assert names == ["A.f", "A.f", "A.f", "A.f.<locals>.g"]
    assert [each.function for each in sites_of(text, "small.py")] == ["A.f.<locals>.g"]


@pytest.mark.process
def test_tests_are_chosen_by_what_they_and_their_fixtures_reach(project: Path, reach: Reach) -> None:
    def first(change: str) -> set[str]:
        return {test.partition("::")[2] for test in reach.stages(site(project, change))[0].tests}

    assert first("extreme: max -> min") == {"test_bounded", "test_low"}
    assert first("spread: square**2 -> (square)") == {"test_spread"}
    assert first("constant: 10 -> 11") == {"test_bounded", "test_low"}
    assert first("constant: 5 -> 6") == {"test_bounded", "test_low"}
    assert "test_that_fails" not in {
        test for stage in reach.stages(site(project, "sign: - -> +")) for test in stage.tests
    }


def test_all_tests_are_asked_only_if_that_is_wanted(project: Path, tmp_path: Path) -> None:
    """Nine tests of 20 s: one, then two, fit where they may take 6 and 40 s."""
    tree = ast.parse((project / PACKAGE / "small.py").read_bytes())
    blocks = [block for block, _, _ in blocks_of(tree, "small.py")]
    here = [number for number, block in enumerate(blocks) if block.function == "spread"]
    names = [f"tests/test_slow.py::test_{place}" for place in range(9)]
    told = [{"test": name, "seconds": 20 - 0.02, "passed": True, "blocks": here} for name in names]
    write(tmp_path / "reach.npz", told, blocks)
    slow, one = Reach(tmp_path / "reach.npz", root=project), site(project, "sign: - -> +")
    assert [len(stage.tests) for stage in slow.stages(one)] == [1, 2]
    stages = slow.stages(one, all_tests=True)
    assert [len(stage.tests) for stage in stages] == [1, 2, 2, 2, 2]
    assert sorted(test for stage in stages for test in stage.tests) == names
    assert sum(len(stage.tests) for stage in slow.stages(one, frozenset(names[:3]), all_tests=True)) == 6


def test_asking_all_tests_is_for_survivors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["at_random", "--seed", "1", "--all-tests"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "--all-tests needs --again" in capsys.readouterr().err


@pytest.mark.process
def test_only_bugs_in_the_room_of_spark_are_run_against_tests_on_spark(project: Path, reach: Reach) -> None:
    one = site(project, "spread: square**2 -> (square)")
    assert not any(stage.spark for stage in reach.stages(one))
    folder = project / PACKAGE / "engines" / "spark"
    folder.mkdir(parents=True)
    (folder / "small.py").write_text(CODE)
    inside = Site(**{**one.__dict__, "file": "engines/spark/small.py"})
    assert [stage.spark for stage in reach.stages(inside)] == [False, True]
    # Where Spark fails without a bug its tests are not asked again.
    assert not any(stage.spark for stage in reach.stages(inside, frozenset([f"{SPARK_TESTS[0]}::test_x"])))
    shutil.rmtree(project / PACKAGE / "engines")


@pytest.mark.process
def test_files_of_tests_are_looked_at_anew_one_by_one(project: Path, reach: Reach, tmp_path: Path) -> None:
    kept = tmp_path / "reach.npz"
    kept.write_bytes((project / "reach.npz").read_bytes())
    more = project / "tests" / "test_more.py"
    more.write_text("from recordwise.small import spread\n\n\ndef test_more():\n    assert spread(4, 1) == 1\n")
    collect(kept, root=project, jobs=1, only=["tests/test_more.py"])
    more.unlink()
    later = Reach(kept, root=project)
    assert sorted(later.tests) == sorted([*reach.tests, "tests/test_more.py::test_more"])
    assert later.stages(site(project, "sign: - -> +"))[0].tests == ("tests/test_more.py::test_more",)
    max_min = site(project, "extreme: max -> min")
    assert later.stages(max_min)[0].tests == reach.stages(max_min)[0].tests


@pytest.mark.slow
@pytest.mark.process
def test_a_bug_is_noticed_and_one_that_nobody_reaches_survives(
    project: Path, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = ["boundary: > -> >=", "spread: square**2 -> (square)"]
    told: list[int] = []
    results = run(
        [site(project, change) for change in changes],
        jobs=1,
        reach=reach,
        tell=lambda result, count: told.append(count),
        root=project,
    )
    assert [each.outcome for each in results] == ["passed", "failed"]
    assert results[1].by == "tests/test_small.py::test_spread"
    assert told == [1, 2]
    assert (project / PACKAGE / "small.py").read_text() == CODE

    # A test that fails without a bug has noticed nothing.
    (project / "tests" / "test_small.py").write_text(TESTS.replace("== -9", "== 10"))
    untrusted = run([site(project, changes[1])], jobs=1, reach=reach, tell=lambda *_: None, root=project)
    assert untrusted[0].outcome == "passed"


def test_survivors_count_as_real_until_they_are_judged_to_be_none(project: Path, tmp_path: Path) -> None:
    noticed, equivalent, unknown = (
        site(project, change) for change in ("extreme: max -> min", "boundary: > -> >=", "sign: - -> +")
    )
    path = tmp_path / "judged.toml"
    path.write_text(entry_for(equivalent, "equivalent", 'it\'s the "same"') + entry_for(noticed, "real", "wrong"))
    judged = judgments(path)
    assert judged[equivalent.key] == Judgment("equivalent", 'it\'s the "same"')
    results = [
        Result(noticed, "failed", "tests/test_small.py::test_low", 1, 1.0),
        Result(equivalent, "passed", "", 3, 1.0),
    ]
    assert enough(results, judged)
    assert not enough(results, {})
    lines = list(report([*results, Result(unknown, "passed", "", 3, 1.0)], judged, project))
    assert any(line.startswith("small.py:17 Small.bounded [boundary] equivalent: it's") for line in lines)
    assert any(line.endswith("spread [sign] NOT JUDGED") for line in lines)
    assert "    +        return abs(sqrt(square) + 1)" in lines
    assert lines[-1].split()[:5] == ["all", "1", "of", "2", "noticed,"]
    wrong = list(report([Result(equivalent, "failed", "tests/x.py::test", 1, 1.0)], judged, project))
    assert "was judged equivalent, but tests/x.py::test noticed" in wrong[0]


def test_the_rooms_of_the_guarantee_have_a_goal_of_their_own(project: Path) -> None:
    one = site(project, "sign: - -> +")
    inside = Site(**{**one.__dict__, "file": "policy/small.py"})
    many = [Result(one, "failed", "", 1, 1.0)] * 90
    assert enough([*many, *[Result(one, "passed", "", 1, 1.0)] * 10], {})
    assert not enough([*many, *[Result(one, "passed", "", 1, 1.0)] * 13], {})
    assert not enough([*many, Result(inside, "passed", "", 1, 1.0)], {})


def test_a_verdict_that_is_none_and_an_entry_that_stands_twice_are_refused(project: Path, tmp_path: Path) -> None:
    one = site(project, "sign: - -> +")
    path = tmp_path / "judged.toml"
    path.write_text(entry_for(one, "harmless", ""))
    with pytest.raises(ValueError, match="'harmless' is no verdict"):
        judgments(path)
    path.write_text(2 * entry_for(one, "real", ""))
    with pytest.raises(ValueError, match="is judged twice"):
        judgments(path)


def test_every_judgment_that_is_kept_has_a_reason() -> None:
    assert all(judgment.why for judgment in judgments().values())


def test_the_interval_is_wilsons() -> None:
    """Brown, Cai and DasGupta (2001): 73 of 95 gives .674 to .842."""
    low, high = wilson(73, 95)
    assert (round(low, 3), round(high, 3)) == (0.674, 0.842)
    assert wilson(10, 10)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def test_without_what_tests_reach_the_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"python -m mutants\.reach"):
        Reach(tmp_path / "none.npz")
