"""The page of attacks names tests: each of them exists, in the file that the page names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(test_\w+)` \(`(tests/[\w/]+\.py)`", PAGE)))


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize("name, file", NAMED)
def test_a_test_that_the_page_names_exists(name: str, file: str) -> None:
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))))
def test_a_file_that_the_page_names_exists(file: str) -> None:
    assert (ROOT / file).exists()
