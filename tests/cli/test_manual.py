"""The help of every command: what it does, its exit codes, and an example that it accepts; completion in the shell."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from recordwise.cli import app
from recordwise.cli.failing import ALREADY, BAD_INPUT, BUDGET_REFUSED, EXAMPLES, INTERRUPTED, UNEXPECTED, exit_codes

SOURCE = Path(__file__).parents[2] / "src"


def commands(found: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with the words that call it."""
    inside = getattr(found, "commands", None)
    if inside is None:
        yield name, found
        return
    for word, each in inside.items():
        yield from commands(each, f"{name} {word}".strip())


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_every_command_has_an_example_and_no_example_is_left_over() -> None:
    assert len(COMMANDS) == 22
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.costly
def test_the_help_describes_the_command_its_arguments_exit_codes_and_an_example(name: str) -> None:
    done = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "300", "TERM": "dumb"})
    text = " ".join(done.stdout.split())
    assert done.exit_code == 0
    assert f"Usage: recordwise {name}" in text or f"Usage: root {name}" in text
    assert COMMANDS[name].help.split("\n")[0][:40] in text
    assert all(f"{code} {meaning}" in text for code, meaning in exit_codes(name).items())
    assert EXAMPLES[name] in text
    options = [each for each in COMMANDS[name].params if each.param_type_name == "option"]
    assert all(each.help for each in options)
    assert ("Arguments" in text) == (len(options) < len(COMMANDS[name].params))


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_is_accepted_by_its_command(name: str) -> None:
    program, *words = shlex.split(EXAMPLES[name])
    assert program == "recordwise"
    count = len(name.split())
    assert words[:count] == name.split()
    COMMANDS[name].make_context(name, words[count:], resilient_parsing=False)


def test_a_wrong_option_in_an_example_would_be_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        COMMANDS["check"].make_context("check", ["plan.toml", "--verbose"])


def test_the_codes_are_those_that_commands_end_with() -> None:
    assert {UNEXPECTED, BAD_INPUT, INTERRUPTED} <= exit_codes("init").keys()
    assert {BUDGET_REFUSED, ALREADY} <= exit_codes("release").keys()
    assert BUDGET_REFUSED in exit_codes("check")


@pytest.mark.process
def test_the_shell_completes_commands(tmp_path: Path) -> None:
    words = {"_RECORDWISE_COMPLETE": "complete_bash", "COMP_WORDS": "recordwise re", "COMP_CWORD": "1"}
    environment = os.environ | words | {"PYTHONPATH": str(SOURCE)}
    code = "from recordwise.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert re.findall(r"\w+", done.stdout) == ["rehearse", "release"]
