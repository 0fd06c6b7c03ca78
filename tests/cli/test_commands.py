"""Every command that the documentation prints exists: ours with its options, targets of make, modules and scripts."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from recordwise.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if path.name != "CHANGELOG.md")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
ELSEWHERE = {"build", "venv", "pip"}
"""Modules that do not come with us."""
PLACES = (ROOT, ROOT / "src")


def printed(text: str) -> Iterator[str]:
    """The commands of the code blocks of a page, one line each, without prompts, comments and what follows a pipe."""
    for language, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE):
        lines = block.replace("\\\n", " ").splitlines()
        if language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        if language in ("sh", "console", ""):
            yield from (re.split(r"\s[#|>]|&&", line)[0].strip() for line in lines)


def inline(text: str) -> list[str]:
    """Commands inside sentences."""
    return [each for each in re.findall(r"`([^`\n]+)`", text) if re.match(r"(recordwise|make|python) ", each)]


def parsed(words: list[str]) -> None:
    """Read words as our program does, without running anything."""
    found: Any = typer.main.get_command(app)
    while words and hasattr(found, "commands"):
        if words[0].startswith("-"):
            assert any(words[0] in each.opts for each in found.params) or words[0] in ("-h", "--help"), words
            return
        assert words[0] in found.commands, words
        found, words = found.commands[words[0]], words[1:]
    if words != ["--help"]:
        found.make_context("recordwise", words)


def check(line: str, whole: bool) -> None:
    words = shlex.split(line)
    while words and re.fullmatch(r"\w+=\S*", words[0]):
        words.pop(0)
    program = Path(words[0]).name if words else ""
    if program == "recordwise" and whole:
        parsed(words[1:])
    elif program == "recordwise":
        named: Any = typer.main.get_command(app)
        assert words[1] in named.commands or words[1].startswith("-") or words[1].isupper(), line
    elif program == "make":
        assert {each for each in words[1:] if "=" not in each} <= TARGETS, line
    elif program in ("python", "python3") and words[1:2] == ["-m"]:
        module = words[2].replace(".", "/")
        ours = [
            (place / f"{module}{end}").exists() for place in PLACES for end in (".py", "/__main__.py", "/__init__.py")
        ]
        assert any(ours) or words[2].partition(".")[0] in ELSEWHERE, line
    elif program in ("python", "python3") and words[1].endswith(".py"):
        assert (ROOT / words[1]).exists(), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.costly
def test_every_command_of_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for line in printed(text):
        if re.match(r"(\w+=\S* )*(\S*/)?(recordwise|make|python3?) ", line):
            check(line, whole=True)
    for line in inline(text):
        check(line, whole=False)


@pytest.mark.parametrize(
    "line", ["recordwise chek plan.toml", "make everything", "python -m experiments.nothing", "python docs/nothing.py"]
)
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises(AssertionError):
        check(line, whole=True)


def test_a_wrong_option_is_noticed_and_pages_have_commands() -> None:
    with pytest.raises(Exception, match="No such option"):
        check("recordwise check plan.toml --quickly", whole=True)
    lines = [line for page in PAGES for line in printed(page.read_text(encoding="utf-8"))]
    assert sum(line.startswith("recordwise ") for line in lines) >= 30
