"""Counties of the dairy census in place of those of the paper's cattle survey: inventory and average herd of each.

The paper's records are counties with their cattle inventory and pasture rent. Rents are in none of our files; the average herd
takes their place. Where a county's inventory was withheld it is that of herds drawn for its operations: log-uniform inside their
size classes, Pareto above 500 head.
"""

import csv
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.frame import data_folder

OPERATIONS = "nass_county_milk_operations_by_size_2022.csv.gz"
COWS = "nass_county_milk_cows_2022.csv.gz"
REAL = (
    "Counties of the 2022 Census of Agriculture, read from the data folder: inventory of milk cows (where it was withheld, that "
    "of herds drawn for the county's operations by size class) and average herd. They stand in for the paper's survey of cattle "
    "inventory and pasture rent, which is not among our files."
)
TAIL = 1.32
"""Pareto exponent above 500 head: gives the published mean of about 2,050."""
LARGEST = 50_000
GENERATED = {1: 13_000, 10: 1_550, 20: 4_100, 50: 6_000, 100: 4_150, 200: 3_700, 500: 3_450}
"""Operations by the lower end of their class, over the whole country, for use without the files."""
UPPER = {1: 9, 10: 19, 20: 49, 50: 99, 100: 199, 200: 499, 500: LARGEST}
TOP = 500


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """One entry for each county, the privacy unit as in the paper."""

    state: np.ndarray
    district: np.ndarray
    """Numbered over the whole country, so that it determines the state."""
    cows: np.ndarray
    herd: np.ndarray
    """Cows per operation, in whole cows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class County:
    """What is published of a county."""

    state: str
    district: str
    operations: dict[int, int]
    """By the lower end of the size class."""
    cows: int | None


def read_counties(folder: Path) -> list[County]:
    """The two files, joined by county."""
    inventory = {_place(row): row["value_num"] for row in _rows(folder / COWS)}
    operations: dict[tuple[str, str, str], dict[int, int]] = {}
    for row in _rows(folder / OPERATIONS):
        low = int(re.findall(r"\((\d+)", row["Domain Category"])[0])
        operations.setdefault(_place(row), {})[low] = int(float(row["value_num"]))
    return [
        County(state=place[0], district=place[1], operations=found, cows=_whole(inventory.get(place, "")))
        for place, found in sorted(operations.items())
    ]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        yield from csv.DictReader(file)


def _place(row: dict[str, str]) -> tuple[str, str, str]:
    return row["State"], row["Ag District Code"], row["County"]


def _whole(text: str) -> int | None:
    return int(float(text)) if text else None


def generated_counties(rng: np.random.Generator) -> list[County]:
    """Fifty states of six districts of six counties with unequal shares of the national numbers."""
    shares = rng.dirichlet(np.full(1800, 0.5))
    numbers = {low: rng.multinomial(total, shares) for low, total in GENERATED.items()}
    return [
        County(
            state=f"S{place // 36:02d}",
            district=str(place // 6 % 6),
            operations={low: int(found[place]) for low, found in numbers.items()},
            cows=None,
        )
        for place in range(1800)
    ]


def survey(seed: int) -> Survey:
    """Every county with an operation; from the files where they are there."""
    rng, folder = np.random.default_rng(seed), data_folder(OPERATIONS, COWS)
    found = read_counties(folder) if folder is not None else generated_counties(rng)
    counties = [each for each in found if sum(each.operations.values())]
    states = {name: number for number, name in enumerate(sorted({each.state for each in counties}))}
    districts = {name: number for number, name in enumerate(sorted({(c.state, c.district) for c in counties}))}
    cows = np.array([int(county_herds(each, rng).sum()) for each in counties])
    operations = np.array([sum(each.operations.values()) for each in counties])
    return Survey(
        state=np.array([states[each.state] for each in counties]),
        district=np.array([districts[each.state, each.district] for each in counties]),
        cows=cows,
        herd=np.rint(cows / operations).astype(np.int64),
    )


def county_herds(county: County, rng: np.random.Generator) -> np.ndarray:
    """The herds of one county, inside their classes and adding up to its inventory."""
    lows, numbers = list(county.operations), list(county.operations.values())
    low = np.repeat(np.array(lows, dtype=np.float64), numbers)
    high = np.repeat(np.array([UPPER[each] for each in lows], dtype=np.float64), numbers)
    chance = rng.random(len(low))
    drawn = np.where(
        low == TOP, np.minimum(low * (1 - chance) ** (-1 / TAIL), LARGEST), low * ((high + 1) / low) ** chance
    )
    herd = np.minimum(np.floor(drawn), high)
    if county.cows is None:
        return herd.astype(np.int64)
    return whole(moved(herd, low, high, county.cows), county.cows)


def moved(herd: np.ndarray, low: np.ndarray, high: np.ndarray, total: int) -> np.ndarray:
    """Herds moved toward the ends of their classes until they add up; surplus goes to the largest class, which has no end."""
    missing = total - herd.sum()
    top = low == TOP
    if missing > 0 and np.any(top):
        return np.where(top, herd + missing * herd / herd[top].sum(), herd)
    room = high - herd if missing > 0 else herd - low
    return herd + missing * room / room.sum() if missing else herd


def whole(values: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers beside the values whose running sums are the rounded ones; they add up to the total."""
    reached = np.floor(np.cumsum(values) + 0.5)
    reached[-1] = total
    return np.diff(reached, prepend=0).astype(np.int64)
