"""The page of attacks names tests: each of them exists, in the file that the page names."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")


def named(page: str) -> Iterator[tuple[str, str]]:
    """Tests as pytest takes them, ``FILE::NAME``; ``::NAME`` is one of the file named before it in the same line."""
    for line in page.splitlines():
        file = ""
        for other, name in re.findall(r"`(tests/[\w/]+\.py)?(?:::(test_\w+))?`", line):
            file = other or file
            if name:
                yield file, name


NAMED = sorted(set(named(PAGE)))


def test_the_page_names_tests_and_each_by_its_file() -> None:
    assert len(NAMED) > 60
    assert all(file for file, _ in NAMED)
    assert len(NAMED) == len(set(re.findall(r"\btest_\w+(?=`)", PAGE)))
    assert list(named("`tests/a.py::test_b`, `::test_c`\n`::test_d`")) == [
        ("tests/a.py", "test_b"),
        ("tests/a.py", "test_c"),
        ("", "test_d"),
    ]


@pytest.mark.parametrize("file, name", NAMED)
def test_a_test_that_the_page_names_exists(file: str, name: str) -> None:
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`(tests/[\w/]+\.py)", PAGE))))
def test_a_file_that_the_page_names_exists(file: str) -> None:
    assert (ROOT / file).exists()


def test_every_finding_of_the_second_attack_names_what_closes_it() -> None:
    found = re.findall(r"^- .*", PAGE.split("\n## A second attack\n")[1].split("\n## ")[0], re.MULTILINE)
    assert len(found) >= 45
    assert [each for each in found if not re.search(r"\(.+\).* `(?:tests/|make )", each)] == []
