"""Columns as they are drawn: sums, signed sums, combinations and ratios of one record in each cell."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import recordwise as rw
from experiments.coverage.chosen import PUBLIC_SIZES, SIGNED, SUMS
from experiments.coverage.lines import LARGE, LEVEL, SIZES, Tally, alias
from recordwise.noise import Seeded
from recordwise.plan import Measure

CLAMP = 5000
SHARE = 40
"""A derived measure is the value less so many times a second one."""
FORMS = (
    "Gaussian, sigma 1",
    "Gaussian, sigma 30",
    "GeneralizedGaussian, shape 1/2",
    "UnitSplit at 20 (demo, tutorial)",
)
RATIOS = (*FORMS, "LogTransform, offset 10, sigma .2", "LogTransform (README)", "RootTransform 2, sigma .5")
CURVED = ("LogTransform, offset 10, sigma .2", "LogTransform (README)", "RootTransform 2, sigma .5")
"""Mechanisms under which both sides of a ratio are drawn."""


def sizes_of(cells: int, sizes: Sequence[int] = SIZES) -> Any:
    """The size of each of so many cells of every size."""
    return np.tile(sizes, cells)


def clamped(mechanism: str, totals: Any) -> Any:
    """What a mechanism's interval is for: all of a total, or what is left of it after clamping."""
    return np.minimum(totals, CLAMP) if mechanism.startswith("Clamped") else totals


def keys_of(sizes: Any) -> rw.Keys:
    """Numbered cells with what is publicly known about their sizes."""
    known = [PUBLIC_SIZES[size] for size in sizes.tolist()]
    return rw.Keys.of({"cell": np.arange(len(sizes)), "last": known}, size="last", sized_on="public: made up")


def released_sums(
    cells: int, seed: int, *, names: Iterable[str], sizes: Sequence[int] = SIZES, level: float = LEVEL
) -> rw.Release:
    """One record in each cell, whose value is the size of the cell."""
    here = sizes_of(cells, sizes)
    asked = rw.query().group_by("cell", keys=keys_of(here))
    for name in names:
        asked = asked.sum("emp", SUMS[name], alias=alias(name))
    table = pa.table({"id": np.arange(len(here)), "emp": here, "cell": np.arange(len(here))})
    with rw.Session(table, unit="id", measures={"emp": 1}, tuned_on="synthetic") as session:
        return session.run(asked, rng=Seeded(seed), confidence=level)


def sums(tally: Tally, cells: int, seed: int, *, level: float = LEVEL, names: Iterable[str] = SUMS) -> None:
    """Sums under every mechanism."""
    every = (*SIZES, *LARGE)
    release = released_sums(cells, seed, level=level, names=names, sizes=every)
    tally.saw("sums", release)
    sizes = sizes_of(cells, every)[release.table.column("cell").to_numpy()]
    for name in names:
        for size in every:
            exact, rows = clamped(name, size), np.flatnonzero(sizes == size)
            about = {"column": "sum", "mechanism": name, "size": size, "level": level}
            tally.line("sums", release.table, alias(name), exact, rows=rows, **about)


def forms(tally: Tally, cells: int, seed: int) -> None:
    """One record of two rows in each cell: sums of a signed and of a derived measure, combinations and ratios of them."""
    sizes = sizes_of(cells)
    units = sizes // SHARE + 1
    roles = {
        "net": Measure.of("net", signed=True, bound=10**12),
        "units": 1,
        "value": 1,
        "rest": Measure.of("rest", derive=f"value - {SHARE} * units"),
    }
    both = np.tile(np.arange(len(sizes)), 2)
    rows = {
        "id": both,
        "cell": both,
        "net": np.concatenate([-sizes - 7, np.full(len(sizes), 7)]),
        "units": np.concatenate([units, units // 2]),
        "value": np.concatenate([sizes, np.zeros_like(sizes)]),
    }
    collapse: dict[str, Literal["sum", "max", "min", "same"]] = {
        "net": "sum",
        "units": "max",
        "value": "sum",
        "cell": "same",
    }
    with rw.Session(pa.table(rows), unit="id", measures=roles, collapse=collapse, tuned_on="synthetic") as session:
        release = session.run(_asked_forms(len(sizes)), rng=Seeded(seed), confidence=LEVEL)
    tally.saw("forms", release)
    tally.leave("forms", "base", *(f"value_{alias(name)}" for name in RATIOS))
    tally.leave("forms", *(f"units_{alias(name)}" for name in CURVED))
    here = sizes[release.table.column("cell").to_numpy()]
    for size in SIZES:
        about: dict[str, Any] = {"size": size, "rows": np.flatnonzero(here == size)}
        rest, each = size - SHARE * (size // SHARE + 1), size / (size // SHARE + 1)
        for name in SIGNED:
            tally.line(
                "forms", release.table, f"net_{alias(name)}", -size, column="signed sum", mechanism=name, **about
            )
        for name in FORMS:
            found = alias(name)
            tally.line("forms", release.table, f"rest_{found}", rest, column="derived sum", mechanism=name, **about)
            tally.line("forms", release.table, f"made_{found}", size, column="combination", mechanism=name, **about)
            tally.line(
                "forms", release.table, f"share_{found}", each, column="ratio of a combination", mechanism=name, **about
            )
        for name in RATIOS:
            tally.line("forms", release.table, f"ratio_{alias(name)}", each, column="ratio", mechanism=name, **about)
        for name in CURVED:
            both = f"both_{alias(name)}"
            tally.line("forms", release.table, both, each, column="ratio, both transformed", mechanism=name, **about)


def _asked_forms(cells: int) -> rw.Query:
    asked = rw.query().group_by("cell", keys=rw.Keys.of({"cell": list(range(cells))}))
    asked = asked.sum("units", rw.Gaussian(sigma=10), alias="base")
    for name, mechanism in SIGNED.items():
        asked = asked.sum("net", mechanism, alias=f"net_{alias(name)}")
    for name in FORMS:
        found = alias(name)
        asked = asked.sum("rest", SUMS[name], alias=f"rest_{found}")
        asked = asked.combine(f"rest_{found} + {SHARE} * base", alias=f"made_{found}")
        asked = asked.ratio(f"made_{found}", "base", alias=f"share_{found}")
    for name in RATIOS:
        asked = asked.sum("value", SUMS[name], alias=f"value_{alias(name)}")
        asked = asked.ratio(f"value_{alias(name)}", "base", alias=f"ratio_{alias(name)}")
    for name in CURVED:
        found = alias(name)
        asked = asked.sum("units", SUMS[name], alias=f"units_{found}")
        asked = asked.ratio(f"value_{found}", f"units_{found}", alias=f"both_{found}")
    return asked
