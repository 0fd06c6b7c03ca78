"""How often the intervals of best linear estimates hold, by the size of the cell, through whole releases.

A county is one release of a small tree: parents of several cells, and single cells below single cells. Every count is of
independent counties, so that it is binomial. False alarms: a column that holds with .94 fails any of these tests with probability
below 1e-9, all comparisons of this file together; the seeds are fixed, so that none fails by chance.
"""

from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import recordwise as rw
from build import employers
from recordwise.noise import Seeded
from recordwise.plan.schema import Measure

SIZES = {
    "111": 0,
    "112": 1,
    "113": 3,
    "121": 10,
    "122": 100,
    "123": 0,
    "131": 10_000,
    "132": 1,
    "211": 0,
    "221": 1,
    "231": 3,
    "241": 10,
    "251": 100,
    "261": 10_000,
    "311": 1,
    "312": 1,
    "411": 10,
}
"""The total of each finest cell. Those that begin with 2 and 4 have no sibling, so that they and their parents are one number."""
LENGTHS = (1, 2, 3)
LEVEL, LEAST = 0.95, 0.94
COUNTIES = 400
FALSE_ALARM = 1e-9 / 10_000
ADDITIVE = {
    # Over three tables of equal shares, sigma is .45, .61, 1.07, 1.4, 2.83 and 35 steps.
    **{f"g{hundredths}": rw.Gaussian(sigma=f"{hundredths / 100}") for hundredths in (26, 35, 62, 81, 163, 2000)},
}
LOGS = {
    f"log{tenths}_{offset}": rw.LogTransform(offset=offset, sigma=f"{tenths / 10}")
    for tenths in (2, 5, 10)
    for offset in (1, 20)
}
ROOTS = {f"root{tenths}": rw.RootTransform(degree=2, sigma=f"{tenths / 10}") for tenths in (2, 5, 10)} | {
    "fourth": rw.RootTransform(degree=4, sigma="0.5"),
    "laplace": rw.RootTransform(degree=2, laplace_scale="0.5"),
}
SIGNED = {
    "plain": rw.Gaussian(sigma="0.62"),
    "log": rw.LogTransform(offset=20, sigma="0.5", signed=True),
    "root": rw.RootTransform(degree=2, sigma="0.5", signed=True),
}
COLUMNS: dict[str, Any] = {"additive": ADDITIVE, "logs": LOGS, "roots": ROOTS, "signed": SIGNED}


@cache
def fitted(kind, counties):
    """One release with all columns of a kind, fitted."""
    sign = -1 if kind == "signed" else 1
    codes, places = [code for code, size in SIZES.items() if size], [f"{number:05d}" for number in range(counties)]
    records = pa.table(
        {
            "id": np.arange(counties * len(codes)),
            "emp": sign * np.tile([SIZES[code] for code in codes], counties),
            "county": np.repeat(places, len(codes)),
            "naics": np.tile(codes, counties),
        }
    )
    keys = rw.Keys.product(county=places, naics=list(SIZES))
    asked = rw.query().group_by("county").levels(rw.prefix("naics", list(LENGTHS)), keys=keys)
    for name, noise in COLUMNS[kind].items():
        asked = asked.sum("emp", noise, alias=name)
    measure = {"emp": Measure.of("emp", signed=kind == "signed")}
    with employers(records, measures=measure, max_outside="accept") as session:
        return session.run(asked, rng=Seeded(34), confidence=LEVEL).consistent(method="ols", complete=True, draws=60)


def cells(kind, name, counties):
    """For every code its exact total and the columns of its cells, one for each county."""
    for table in fitted(kind, counties).tables:
        (key,) = (column for column in table.data.column_names if column.startswith("naics"))
        codes = np.array(table.data.column(key).to_pylist())
        ends = ("_best", "_best_sd", "_best_low", "_best_high", "", "_low", "_high")
        columns = [table.data.column(name + end).to_numpy().astype(float) for end in ends]
        for code in np.unique(codes):
            exact = sum(size for each, size in SIZES.items() if each.startswith(code))
            yield code, exact * (-1 if kind == "signed" else 1), [column[codes == code] for column in columns]


def too_few(inside):
    """Whether a column that holds with .94 would almost never hold so seldom."""
    return bool(binom.cdf(np.sum(inside), len(inside), LEAST) < FALSE_ALARM)


def missing(kind, name, counties):
    """The cells in which a column holds less often than it says."""
    found = []
    for code, exact, (_, _, low, high, *_) in cells(kind, name, counties):
        inside = (low <= exact) & (exact <= high)
        found += [f"{code} ({exact}): {np.mean(inside):.3f}"] if too_few(inside) else []
    return found


NAMED = [(kind, name) for kind, columns in COLUMNS.items() for name in columns]


@pytest.mark.theorem("T-MOVED")
@pytest.mark.parametrize(("kind", "name"), NAMED)
@pytest.mark.costly
@pytest.mark.sampled
def test_intervals_of_best_estimates_hold_in_cells_of_every_size(kind, name):
    """400 counties: .858 of them would be too few. The intervals before this held in .41 to .84 of some small cells
    of every transform but the logarithms with the least noise."""
    assert missing(kind, name, COUNTIES) == []


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_intervals_of_five_thousand_counties(kind, name):
    """5,000 counties: .915 of them would be too few, so that the .897 of coarse Gaussian noise without half a step fails."""
    assert missing(kind, name, 5000) == []


@pytest.mark.theorem("T-HALFSTEP")
def test_single_cells_below_single_cells_hold_with_half_a_step_and_not_without():
    """10,000 independent chains of two cells whose noise has a sigma of 1.075 steps each: .924 of them are too few. The intervals
    before this, without half a step, held in .906."""
    places, codes = [f"{number:04d}" for number in range(1000)], [f"{digit}{digit}" for digit in range(10)]
    records = pa.table({"id": [1], "emp": [3], "county": places[:1], "naics": codes[:1]})
    keys = rw.Keys.product(county=places, naics=codes)
    asked = rw.query().group_by("county").levels(rw.prefix("naics", [1, 2]), keys=keys)
    with employers(records) as session:
        release = session.run(asked.sum("emp", rw.Gaussian(sigma="0.76"), alias="emp"), rng=Seeded(5))
    table = release.consistent(method="ols", complete=True)["county_by_naics2"].to_pandas()
    exact = np.where((table.county == places[0]) & (table.naics2 == codes[0]), 3, 0)
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * table.emp_best_sd
    assert len(table) == 10_000
    assert not too_few((table.emp_best_low <= exact) & (exact <= table.emp_best_high))
    assert too_few(np.abs(table.emp_best - exact) <= reach)


@pytest.mark.theorem("T-MOVED")
@pytest.mark.parametrize(("kind", "name"), [("logs", "log5_20"), ("logs", "log10_1"), ("roots", "root10")])
def test_an_interval_at_the_estimates_own_variance_is_rejected(kind, name):
    wrong = []
    for _, exact, (best, sd, *_) in cells(kind, name, COUNTIES):
        wrong.append(too_few(np.abs(best - exact) <= NormalDist().inv_cdf((1 + LEVEL) / 2) * sd))
    assert any(wrong)


@pytest.mark.parametrize("name", ["log2_20", "root2", "root10"])
def test_intervals_under_transforms_enclose_the_estimate_and_are_narrower_where_errors_are_small(name):
    kind = "logs" if name.startswith("log") else "roots"
    for code, exact, (best, _, low, high, _, raw_low, raw_high) in cells(kind, name, COUNTIES):
        assert np.all((low <= best) & (best <= high))
        assert np.all(low >= np.minimum(best, 0))
        if exact >= 10_000:
            assert np.median((high - low) / (raw_high - raw_low)) < 0.62, code


def test_an_interval_of_drawn_noise_is_not_missed_by_a_rounding():
    """The error of an average of lattice noises often is the order statistic itself."""
    close = 0
    for _, exact, (_, _, low, high, *_) in cells("additive", "g26", COUNTIES):
        for gap in (low - exact, exact - high):
            assert not np.any((gap > 0) & (gap < 1e-9))
            close += int(np.sum(np.abs(gap) < 1e-6))
    assert close > 50


@pytest.mark.parametrize(("kind", "name"), [("roots", "root5"), ("additive", "g26")])
def test_least_squares_have_the_ends_of_the_best_estimate_to_the_last_digit(kind, name):
    """An end at 0 that is moved by a rounding misses every empty cell."""
    for table in fitted(kind, COUNTIES).tables:
        for end in ("_low", "_high"):
            assert table.data.column(f"{name}_fit{end}") == table.data.column(f"{name}_best{end}")
