"""The blocks of Python and TOML on every page can be read, and name nothing of the package that does not exist."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import recordwise as rw

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def names(code: str) -> Iterator[str]:
    """What a block takes from the package: ``rw.NAME``, and names imported from its modules."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "rw":
            yield f"recordwise.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "recordwise":
            yield from (f"{node.module}.{each.name}" for each in node.names)


def exists(name: str) -> bool:
    """Whether a module has a name, or is one itself."""
    from importlib import import_module

    module, _, own = name.rpartition(".")
    found = rw if module == "recordwise" else import_module(module)
    if hasattr(found, own):
        return True
    try:
        import_module(name)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_can_be_read_and_name_what_exists(page: Path) -> None:
    missing = {name for code in blocks(page, "python") for name in names(code) if not exists(name)}
    assert missing == set()
    for text in blocks(page, "toml"):
        tomllib.loads(text)


def test_a_name_that_is_gone_is_noticed_and_pages_have_blocks() -> None:
    assert not exists("recordwise.Sessoin")
    assert not exists("recordwise.planning.guess")
    assert list(names("from recordwise.planning import Goal\nrw.query()")) == [
        "recordwise.planning.Goal",
        "recordwise.query",
    ]
    assert sum(len(blocks(page, "python")) for page in PAGES) > 60


def test_the_page_about_upgrading_names_what_is_gone_and_what_is_there() -> None:
    text = (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8").split("\n## Python\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    old, new = (re.findall(r"`(?:rw|planning)\.(\w+)", " ".join(row[side] for row in rows)) for side in (0, 1))
    assert len(old) >= 15
    assert [name for name in old if hasattr(rw, name) or name in rw.planning.__all__] == []
    assert [name for name in new if not (hasattr(rw, name) or name in rw.planning.__all__)] == []
