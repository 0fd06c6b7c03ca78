"""Budgets against policies with many bands, and such policies in words (T-SIZE)."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from recordwise.policy import Measure, Policy
from recordwise.policy.atoms import Square
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn
from recordwise.policy.conditions import InBand
from recordwise.policy.constructors import constant
from recordwise.policy.render.text import ends_by_size, policy_lines, policy_prose

TABLES, BANDS = 7, 6
EMP = Measure("emp")


def table(number: int) -> BandTable:
    """The bands of the cells of one column."""
    return BandTable(
        columns=(ConditionColumn(f"c{number}"),),
        edges=tuple(Fraction(2**at) for at in range(BANDS)),
        values=(tuple(f"{number}{at}" for at in range(BANDS)),),
        places=np.arange(BANDS),
        bands=np.arange(BANDS),
    )


def sized() -> Policy:
    """In each table 4**-band times the square: the smallest cells pay 1, the largest 4**-5."""
    rho: dict[Any, Fraction] = {}
    for number in range(TABLES):
        for band in range(BANDS):
            rho[InBand(table(number), (band,)), Square(EMP)] = Fraction(1, 4**band)
    return Policy(rho=rho)


def squares(coefficient: int | str) -> Policy:
    return Policy(rho={(next(iter(constant(1).rho))[0], Square(EMP)): Fraction(coefficient)})


def test_a_budget_for_the_worst_band_of_every_table_is_proved_and_one_below_is_not() -> None:
    policy = sized()
    assert len(policy.rho) >= 32  # many bands
    assert squares(TABLES).dominates(policy)
    assert not squares("6.999").dominates(policy)


def test_what_small_and_large_cells_lose_is_what_their_records_lose() -> None:
    policy = sized()
    ends = ends_by_size(policy)
    assert ends is not None
    smallest, largest = ends
    for own, band in ((smallest, 0), (largest, BANDS - 1)):
        record = {f"c{number}": f"{number}{band}" for number in range(TABLES)} | {"emp": 3}
        assert own.loss({"emp": 3}) == policy.loss(record)
    assert len(policy_lines(smallest)) == len(policy_lines(largest)) == 1
    assert ends_by_size(policy, few=TABLES) is None


def test_many_bands_are_described_by_their_ends() -> None:
    told = policy_prose(sized())
    assert "7 times the square of 'emp'" in told
    assert "among the largest" in told
    assert told.count("public size") == 1


@pytest.mark.parametrize("bands", [(0,), (0, 1)])
def test_few_bands_are_described_one_by_one(bands: tuple[int, ...]) -> None:
    policy = Policy(rho={(InBand(table(0), bands), Square(EMP)): Fraction(1)})
    assert ends_by_size(policy) is None
    assert "only for records where the public size of its cell" in policy_prose(policy)
