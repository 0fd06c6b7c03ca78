"""Releases of many cells that are all alike, so that the share of intervals that hold is known to a tenth of a percent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

import recordwise as rw
from recordwise.noise import Seeded
from recordwise.plan import Measure

TOTALS = (0, 1, 100, 10_000, 10**7, 10**11)
SIZES = (0, 1, 2, 5, 20, 100)
MOST_ROWS = 2_000_000
LEVEL = 0.95
AMOUNT = 50
"""Every record's value where cells differ in size."""

SUMS: Mapping[str, object] = {
    "Gaussian": rw.Gaussian(sigma=30),
    "Gaussian, 1 step": rw.Gaussian(sigma=1),
    "UnitSplit": rw.UnitSplit(at=50, rho="0.1"),
    "Clamped": rw.Clamped(to=5000, rho=50),
    "GeneralizedGaussian": rw.GeneralizedGaussian(scale=5, shape="0.5"),
    "Polylog": rw.Polylog(power=2, rate=1, offset=4, scale=10),
    "LogTransform": rw.LogTransform(offset=10, sigma="0.2"),
    "LogTransform, Laplace": rw.LogTransform(offset=10, laplace_scale="0.1"),
    "RootTransform 2": rw.RootTransform(degree=2, sigma="0.5"),
    "RootTransform 4, Laplace": rw.RootTransform(degree=4, laplace_scale="0.05"),
}
SHARE = 40
"""A derived measure is the value less so many times a second one."""
FORMS: Mapping[str, object] = {
    "Gaussian": rw.Gaussian(sigma=30),
    "GeneralizedGaussian": rw.GeneralizedGaussian(scale=5, shape="0.5"),
}
CURVED: Mapping[str, object] = {
    "LogTransform": rw.LogTransform(offset=10, sigma="0.2"),
    "RootTransform 2": rw.RootTransform(degree=2, sigma="0.5"),
}
"""Both sides of a ratio under a transform."""
SIGNED: Mapping[str, object] = FORMS | {"LogTransform": rw.LogTransform(offset=10, sigma="0.2", signed=True)}
AVERAGED = ("Gaussian", "GeneralizedGaussian", "LogTransform")
COUNT = rw.Gaussian(rho="0.05")
TREE = {"grid": rw.Grid.log(1, 10_000, bits=6), "rho": "0.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One column of one release."""

    column: str
    mechanism: str
    total: int
    """Of every cell: a sum, or a number of records."""
    records: int
    """In every cell."""
    cells: int
    held: int
    empty: int
    """Cells with an end left empty; they count as held."""

    @property
    def coverage(self) -> float:
        return self.held / self.cells


def of_sums(total: int, cells: int, seed: int) -> Iterator[Line]:
    """One record of that value in every cell: sums under every mechanism, and averages."""
    found = _released(1, total, cells, seed, sums=SUMS, averages=SUMS)
    for name in SUMS:
        exact = min(total, 5000) if name == "Clamped" else total
        yield _line(found, "sum", name, f"sum_{_alias(name)}", exact, total, 1)
        yield _line(found, "average", name, f"avg_{_alias(name)}", exact, total, 1)


def of_forms(total: int, cells: int, seed: int) -> Iterator[Line]:
    """One record of two rows in every cell: sums of a signed and of a derived measure, combinations and ratios of them."""
    units = total // SHARE + 1
    roles = {
        "net": Measure.of("net", signed=True, bound=10**12),
        "units": 1,
        "value": 1,
        "rest": Measure.of("rest", derive=f"value - {SHARE} * units"),
    }
    rows = {"id": np.tile(np.arange(cells), 2), "cell": np.tile(np.arange(cells), 2)}
    first = {"net": -total - 7, "units": units, "value": total}
    second = {"net": 7, "units": units // 2, "value": 0}
    rows |= {name: np.repeat([first[name], second[name]], cells) for name in first}
    collapse: dict[str, Literal["sum", "max", "min", "same"]] = {
        "net": "sum",
        "units": "max",
        "value": "sum",
        "cell": "same",
    }
    asked = rw.query().group_by("cell", keys=rw.Keys.of({"cell": list(range(cells))}))
    asked = asked.sum("units", rw.Gaussian(sigma=10), alias="units")
    for name, mechanism in SIGNED.items():
        asked = asked.sum("net", mechanism, alias=f"net_{_alias(name)}")
    for name, mechanism in FORMS.items():
        alias = _alias(name)
        asked = asked.sum("rest", mechanism, alias=f"rest_{alias}")
        asked = asked.combine(f"rest_{alias} + {SHARE} * units", alias=f"made_{alias}")
        asked = asked.ratio(f"made_{alias}", "units", alias=f"ratio_{alias}")
    for name, mechanism in CURVED.items():
        alias = _alias(name)
        asked = asked.sum("value", mechanism, alias=f"value_{alias}").sum("units", mechanism, alias=f"units_{alias}")
        asked = asked.ratio(f"value_{alias}", f"units_{alias}", alias=f"ratio_{alias}")
    with rw.Session(pa.table(rows), unit="id", measures=roles, collapse=collapse, tuned_on="synthetic") as session:
        found = session.run(asked, rng=Seeded(seed), confidence=LEVEL).table
    for name in SIGNED:
        yield _line(found, "signed sum", name, f"net_{_alias(name)}", -total, total, 1)
    for name in FORMS:
        yield _line(found, "combination", name, f"made_{_alias(name)}", total, total, 1)
        yield _line(found, "ratio", name, f"ratio_{_alias(name)}", total / units, total, 1)
    for name in CURVED:
        yield _line(found, "ratio", name, f"ratio_{_alias(name)}", total / units, total, 1)


def of_sizes(size: int, cells: int, seed: int) -> Iterator[Line]:
    """Cells of so many records: counts, averages, counts that selected, quantiles."""
    cells = min(cells, MOST_ROWS // max(size, 1))
    found = _released(size, AMOUNT, cells, seed, averages={name: SUMS[name] for name in AVERAGED})
    yield _line(found, "count", "Gaussian", "count", size, size, size)
    if size:
        yield from (_line(found, "average", name, f"avg_{_alias(name)}", AMOUNT, size, size) for name in AVERAGED)
        yield _line(_selected(size, cells, seed), "selected count", "Gaussian", "rows_selected_on", size, size, size)
        trees = _trees(size, max(cells // 20, 10), seed)
        exact = int(np.ceil(0.5 * size)), int(np.ceil(0.9 * size))
        for alias, rank in zip(("median", "ninth"), exact):
            share = ".5" if alias == "median" else ".9"
            yield _line(trees, f"quantile {share}", "TreeQuantile", alias, rank * 10, size, size)


def _alias(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _records(size: int, values: "np.ndarray[tuple[int], np.dtype[np.int64]]", cells: int) -> rw.Session:
    cell = np.repeat(np.arange(cells), size)
    table = pa.table({"id": np.arange(size * cells), "emp": np.tile(values, cells), "cell": cell})
    return rw.Session(table, unit="id", measures={"emp": 1}, tuned_on="synthetic")


def _released(
    size: int,
    value: int,
    cells: int,
    seed: int,
    *,
    averages: Mapping[str, object],
    sums: Mapping[str, object] | None = None,
) -> pa.Table:
    asked = rw.query().group_by("cell", keys=rw.Keys.of({"cell": list(range(cells))})).count(COUNT)
    for name, mechanism in (sums or {}).items():
        asked = asked.sum("emp", mechanism, alias=f"sum_{_alias(name)}")
    for name, mechanism in averages.items():
        asked = asked.avg("emp", sum=mechanism, alias=f"avg_{_alias(name)}")
    with _records(size, np.full(size, value), cells) as session:
        return session.run(asked, rng=Seeded(seed), confidence=LEVEL).table


def _selected(size: int, cells: int, seed: int) -> pa.Table:
    asked = rw.query().group_by("cell", keys=rw.Keys.select(rho="0.1", delta="0.01")).count(COUNT)
    with _records(size, np.full(size, AMOUNT), cells) as session:
        return session.run(asked, rng=Seeded(seed), confidence=LEVEL).table


def _trees(size: int, cells: int, seed: int) -> pa.Table:
    """Values 10, 20, ..., so that quantiles differ."""
    asked = rw.query().group_by("cell", keys=rw.Keys.of({"cell": list(range(cells))}))
    asked = asked.quantile("emp", p="0.5", alias="median", **TREE).quantile("emp", p="0.9", alias="ninth", **TREE)
    with _records(size, 10 * np.arange(1, size + 1), cells) as session:
        return session.run(asked, rng=Seeded(seed), confidence=LEVEL).table


def _line(table: pa.Table, column: str, mechanism: str, alias: str, exact: float, total: int, records: int) -> Line:
    low, high = (np.asarray(table.column(f"{alias}_{end}").to_numpy(), np.float64) for end in ("low", "high"))
    missed = (low > exact) | (high < exact)
    held, empty = len(low) - int(missed.sum()), int(np.sum(np.isnan(low) | np.isnan(high)))
    return Line(
        column=column, mechanism=mechanism, total=total, records=records, cells=len(low), held=held, empty=empty
    )
