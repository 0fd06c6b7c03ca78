"""``python -m benchmarks house``: what it counts, on a package written for it, and on ours without running a walk."""

from pathlib import Path

import pytest

from benchmarks import house

SOURCE = '''"""A module."""


class Kind:
    """Four words are here."""

    def name(self, mechanism: Any) -> str:
        """Two words.

        And more.
        """
        return "a" if isinstance(mechanism, str) else "b"


async def later():
    pass
'''


def test_the_rows_follow_from_the_text(tmp_path: Path) -> None:
    package = tmp_path / "own"
    (package / "room").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py", "room/__init__.py"):
        (package / name).write_text("\n")
    (package / "module.py").write_text(SOURCE)
    for number in range(17):
        (package / "room" / f"part{number}.py").write_text("x = 1\n" * 2)
    assert house.sizes(package) == {
        "modules": "21",
        "lines": "53",
        "file p50 / p90 / max": "2 / 2 / 16",
        "functions per 1,000 lines": "38",
        "first line of a docstring, words p50 / p90": "4 / 4",
        "`mechanism: Any`": "1",
        "`isinstance`": "1",
        "folders with more than 16 entries": "own/room 17",
    }
    assert house.entries(package) == 2


def test_only_modules_of_the_package_that_run_are_visited() -> None:
    from recordwise.exact.numbers import rational

    found = house.visited(lambda: rational("1/2", parameter="x"))
    assert {Path(name).relative_to(house.PACKAGE).as_posix() for name in found} == {"exact/numbers.py"}
    with pytest.raises(ZeroDivisionError):
        house.visited(lambda: 1 / 0)


def test_no_folder_of_ours_is_crowded() -> None:
    assert house.crowded(house.PACKAGE) == "none"
