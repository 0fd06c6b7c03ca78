"""docs/index.md: its extras are those of the package, its files and targets exist, it names no version that grows old."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_extra_is_documented_with_what_it_brings() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE))
    extras = {name: needs for name, needs in PROJECT["optional-dependencies"].items() if name != "dev"}
    assert rows.keys() == extras.keys()
    for name in ("fast", "plots", "formats", "stat"):
        assert {re.split(r"[>=\[]", each)[0] for each in extras[name]} == set(rows[name].split(", "))


def test_every_library_of_a_plain_install_is_explained() -> None:
    needed = PAGE[PAGE.index("| library |") :]
    for each in PROJECT["dependencies"]:
        assert re.split(r"[>=]", each)[0] in needed


def test_the_page_names_no_version_of_its_own() -> None:
    assert "recordwise-*.whl" in PAGE
    assert re.findall(r"recordwise-(\d+\.\d+\.\d+)|\b0\.\d\.0\b", PAGE) == []


def test_the_files_and_targets_that_it_names_exist() -> None:
    assert (ROOT / "Containerfile").exists()
    assert "### Without a network" in PAGE
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", PAGE)) <= targets
