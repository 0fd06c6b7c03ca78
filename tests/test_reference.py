"""docs/reference.md is what docs/make_reference.py writes, and it leaves no public name out."""

import runpy
from pathlib import Path

import pytest

import recordwise as rw

DOCS = Path(__file__).resolve().parents[1] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "make_reference.py"))


@pytest.mark.costly
def test_the_reference_is_current() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert page == SCRIPT["reference"](), "run: python docs/make_reference.py"


def test_every_public_name_is_in_the_reference_and_described() -> None:
    page = SCRIPT["reference"]()
    names = [name for name in rw.__all__ if not name.startswith("_")]
    headings = [line for line in page.splitlines() if line.startswith("### ")]
    assert len(headings) == len(names)
    undescribed = [name for name in names if not SCRIPT["paragraph"](getattr(rw, name))]
    assert undescribed == []
