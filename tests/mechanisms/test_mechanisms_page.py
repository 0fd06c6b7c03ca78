"""The code on the page about mechanisms does what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from recordwise.mechanisms.inverses import PolynomialInverse

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mechanisms.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_page_has_code() -> None:
    assert len(BLOCKS) == 6


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_page_runs_by_itself(block: str) -> None:
    exec(compile(block, str(PAGE), "exec"), {})


POINTS = (0, 1, 2, 3, 5, 10)
DEGREES = {"2 to 5": (2, 3, 4, 5), "6 to 10": (6, 7, 8, 9, 10)}


def deviation_ratios(degree: int) -> list[float]:
    """E[_sd] over the true standard deviation at points in units of sigma; neither offset nor sigma matters beyond that."""
    noise = np.linspace(-10, 10, 20_001)
    weights = np.exp(-(noise**2) / 2)
    inverse = PolynomialInverse((0.0,) * degree + (1.0,))
    ratios = []
    for point in POINTS:
        mean = np.sum(weights * inverse.gaussian_deviation(point + noise, 1.0)) / weights.sum()
        ratios.append(float(mean / np.sqrt(inverse.gaussian_variance(np.array(float(point)), 1.0))))
    return ratios


@pytest.mark.theorem("T-DEVIATION")
@pytest.mark.parametrize("degrees", DEGREES)
def test_the_page_states_how_biased_the_standard_error_of_a_root_is(degrees: str) -> None:
    """The least and the largest ratio at points in sigmas; the law of the lattice is in test_mechanism_estimates.py."""
    each_point = zip(*(deviation_ratios(degree) for degree in DEGREES[degrees]))
    ranges = [f"{min(ratios):.2f}–{max(ratios):.2f}" for ratios in each_point]
    assert f"| {degrees} | {' | '.join(ranges)} |" in PAGE.read_text(encoding="utf-8")
