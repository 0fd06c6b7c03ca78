"""The page of the guarantee says what the code does."""

import re
from pathlib import Path

import pytest

from recordwise.policy import epsilon
from recordwise.policy.meaning import power_zcdp

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8")


def row(start: str) -> list[str]:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    losses = [float(cell) for cell in row("loss |")]
    powers = [float(cell.removesuffix("%")) for cell in row("chance that")]
    epsilons = [float(cell) for cell in row("epsilon")]
    for loss, power, converted in zip(losses, powers, epsilons):
        digits = len(str(power).split(".")[1]) if power % 1 else 0
        assert round(100 * power_zcdp(loss), digits) == power
        assert float(f"{epsilon(loss, 1e-5):.2g}") == converted
    assert len(losses) == len(powers) == len(epsilons) == 5


ENFORCED = re.findall(r"^- (.*)$", PAGE.split("\n## Where each statement is enforced\n")[1], re.MULTILINE)


def test_statements_are_listed() -> None:
    assert len(ENFORCED) == 16


@pytest.mark.parametrize("line", ENFORCED)
def test_the_code_and_the_test_a_sentence_names_are_there(line: str) -> None:
    (parts,) = re.findall(r"^[^`]+: (`[^;]+`); (`[^`]+`)$", line)
    code, test = parts
    source = ROOT / "src" / "recordwise"
    for name in re.findall(r"`([^`]+)`", code):
        assert list(source.rglob(name)) if name.endswith(".py") else (source / name).is_dir(), name
    path, _, function = test.strip("`").partition("::")
    text = (ROOT / "tests" / path).read_text(encoding="utf-8")
    assert f"def {function}(" in text if function else "def test_" in text
