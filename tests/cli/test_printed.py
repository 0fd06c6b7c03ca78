"""What commands print for a reader, word by word: no heading, table, row or note is left out.

Numbers are drawn anew in each release and shown as #. After a change that is meant, run this file with
RECORDWISE_WRITE_PRINTED=1 and read the difference of ``printed.txt``.
"""

import os
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recordwise.cli import screen
from recordwise.cli.loss import BY_CELL, WITHOUT_CELLS, show_firm

PRINTED = Path(__file__).parent / "printed.txt"
SERIES = """
[series]
name = "county patterns"
period = "${year}"

[examples]
"corner shop" = { emp = 4, payann = 140 }
"factory" = { emp = 400, payann = 14000 }
"""
COMMANDS = [
    "check plan.toml --set year=2025",
    "release plan.toml --set year=2025 --out out2025 --yes",
    "release plan.toml --set year=2026 --out out2026 --yes",
    "loss out2025/policy.json emp=4 payann=140",
    "loss small.ledger emp@2025=4 payann@2025=140 emp@2026=5 payann@2026=150",
    "ledger show small.ledger",
    "ledger show small.ledger --plan plan.toml --set year=2026",
    "ledger verify small.ledger --against out2025 out2026",
    "change out2025 out2026 --out changes --ledger small.ledger",
    "postprocess out2025 --out fitted --method ols",
    "export out2025 --format csv --out tables",
    "plan compare plan.toml --set year=2026 --statistic emp --data synthetic",
    "rehearse plan.toml --set year=2026 --rows 200 --seed 1 --out rehearsed",
]
NUMBER = re.compile(r"[-+±]?\d[\d.,:/TZ-]*(?:e[-+]?\d+)?%?")


def words(text: str) -> list[str]:
    """The words; digits and what belongs to them as #, and lines of a table as one space."""
    bare = re.sub(r"\x1b\[[0-9;]*m|[─━]+", " ", text)
    return [NUMBER.sub("#", re.sub(r"[0-9a-f]{12,}…?", "#", each)) for each in bare.split()]


def sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in PRINTED.read_text().split("$ ")[1:]:
        line, _, said = part.partition("\n")
        found[line] = said.split()
    return found


@pytest.mark.costly
def test_every_heading_table_and_note_is_printed(
    folder: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace('dataset = "small"', 'dataset = "small ${year}"') + SERIES)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(screen, "on_terminal", lambda: False)
    said = {}
    for line in COMMANDS:
        result = run(*line.split())
        assert result.exit_code == 0, (line, result.output)
        said[line] = words(re.sub(r"\S*/(?=[\w.]+)", "", result.stdout))
    if os.environ.get("RECORDWISE_WRITE_PRINTED"):
        parts = (
            f"$ {line}\n{textwrap.fill(' '.join(told), 120, break_on_hyphens=False, break_long_words=False)}\n"
            for line, told in said.items()
        )
        PRINTED.write_text("\n".join(parts))
    known = sections()
    assert list(known) == COMMANDS
    for line, told in said.items():
        assert told == known[line], line


@pytest.mark.parametrize("selection_delta", [0.0, 0.002])
@pytest.mark.parametrize("known", [WITHOUT_CELLS, BY_CELL])
def test_everything_that_is_known_about_a_firm_is_said(
    selection_delta: float, known: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"establishments": 1234, "known": known, "loss": 1.25, "epsilon": 7.5, "delta": 0.003}
    found |= {"epsilon_from": "the zCDP loss", "pure_epsilon": None, "power_of_a_5_percent_test": 0.3}
    show_firm(found | {"selection_delta": selection_delta, "sentence": "What it means."})
    said = " ".join(capsys.readouterr().out.split())
    expected = [
        "A firm with 1,234 establishments",
        "Presence can be suspected. What it means.",
    ]
    if selection_delta:
        expected.append("With probability at most 0.002 a cell is listed only because of your firm.")
    if known == WITHOUT_CELLS:
        expected.append(
            "This policy does not say which establishments share a cell. The policy.json of a release does."
        )
    expected += [f"loss (zCDP rho) 1.25, {known}", "epsilon 7.5 at delta 0.003, from the zCDP loss"]
    assert said == " ".join(expected)
