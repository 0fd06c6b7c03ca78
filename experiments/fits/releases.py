"""A release of many counties that are all alike: each is one release of a small tree, so that coverage is known closely."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import recordwise as rw
from recordwise.noise import Seeded

SIZES: Mapping[str, int] = {
    "3111": 0,
    "3112": 3,
    "3113": 10,
    "3121": 100,
    "3122": 1000,
    "3123": 0,
    "3131": 10_000,
    "4411": 0,
    "4412": 0,
    "4413": 1,
    "4414": 5,
    "4421": 50,
}
"""The total of each finest cell: one record, none if 0."""
LAST_YEAR = dict(zip(SIZES, (0, 20, 9, 130, 700, 30, 14_000, 0, 60, 2, 0, 45)))
"""What is publicly known about the size of each finest cell."""
UNLISTED = ("3112", "3121", "4413")
"""Codes that incomplete keys leave out."""
LENGTHS = (2, 3, 4)
NOISES: Mapping[str, object] = {
    "Gaussian": rw.Gaussian(sigma=20),
    "Gaussian, 2 steps": rw.Gaussian(sigma="1.2"),
    "GeneralizedGaussian": rw.GeneralizedGaussian(scale=3, shape="0.5"),
    "LogTransform": rw.LogTransform(offset=20, sigma="0.15"),
    "RootTransform": rw.RootTransform(degree=2, sigma="0.5"),
    "Gaussian, sized": rw.Sized(rw.Gaussian(sigma="0.1"), floor=50),
    "Gaussian, sized, fat-tailed below": rw.Sized(
        rw.Gaussian(sigma="0.1"), floor=50, low=rw.GeneralizedGaussian(scale="0.02", shape="0.5"), low_below=200
    ),
    "LogTransform, sized": rw.Sized(rw.LogTransform(offset="0.2", sigma="0.15"), floor=50),
}
LINEAR = (
    "Gaussian",
    "Gaussian, 2 steps",
    "GeneralizedGaussian",
    "Gaussian, sized",
    "Gaussian, sized, fat-tailed below",
)
"""Noise under which a linear fit has an error that does not depend on the truth."""
KEYS = ("complete", "incomplete", "rest published")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One column of one release, in the cells of one size."""

    keys: str
    noise: str
    column: str
    level: float
    size: int
    """The exact total; -1 for all cells together."""
    cells: int
    held: int
    squares: float
    """The sum of the squared errors."""

    @property
    def coverage(self) -> float:
        return self.held / self.cells

    @property
    def rmse(self) -> float:
        return float((self.squares / self.cells) ** 0.5)


def alias(noise: str) -> str:
    """The name a sum is published under."""
    return "".join(letter for letter in noise.lower() if letter.isalnum())


def lines(keys: str, level: float, counties: int, seed: int, *, draws: int | None = None) -> Iterator[Line]:
    """All columns of one release: each sum as it was drawn, its nonnegative fit and its best linear estimate."""
    release = _released(keys, level, counties, seed).consistent(complete=keys == "complete", draws=draws)
    for noise in NOISES:
        for column, end in (("raw", ""), ("fit", "_fit"), ("best", "_best")):
            name = alias(noise) + end
            exact, value, low, high = (
                np.concatenate(parts) for parts in zip(*(_columns(table, name, keys) for table in release.tables))
            )
            held, squares = ~((low > exact) | (high < exact)), (value - exact) ** 2
            for size in (-1, *np.unique(exact).astype(int)):
                chosen = np.ones(len(exact), dtype=bool) if size < 0 else exact == size
                yield Line(
                    keys=keys,
                    noise=noise,
                    column=column,
                    level=level,
                    size=int(size),
                    cells=int(chosen.sum()),
                    held=int(held[chosen].sum()),
                    squares=float(squares[chosen].sum()),
                )


def listed(keys: str) -> list[str]:
    """The finest codes that are public."""
    return [code for code in SIZES if keys == "complete" or code not in UNLISTED]


def _released(keys: str, level: float, counties: int, seed: int) -> rw.Release:
    codes = [code for code, size in SIZES.items() if size]
    places = [f"{number:05d}" for number in range(counties)]
    records = pa.table(
        {
            "id": np.arange(counties * len(codes)),
            "emp": np.tile([SIZES[code] for code in codes], counties),
            "county": np.repeat(places, len(codes)),
            "naics": np.tile(codes, counties),
        }
    )
    cells = rw.Keys.product(county=places, naics=listed(keys)).sized(
        {
            "county": np.repeat(places, len(LAST_YEAR)),
            "naics": np.tile(list(LAST_YEAR), counties),
            "last": np.tile(list(LAST_YEAR.values()), counties),
        },
        size="last",
        sized_on="public: made up",
    )
    rest = "publish" if keys == "rest published" else None
    asked = rw.query().group_by("county").levels(rw.prefix("naics", list(LENGTHS)), keys=cells, all_other=rest)
    for noise, mechanism in NOISES.items():
        asked = asked.sum("emp", mechanism, alias=alias(noise))
    with rw.Session(records, unit="id", measures={"emp": 1}, tuned_on="synthetic", max_outside="accept") as session:
        return session.run(asked, rng=Seeded(seed), confidence=level)


def _columns(table: object, name: str, keys: str) -> list[np.ndarray]:
    data = table.data  # type: ignore[attr-defined]
    code = next(column for column in data.column_names if column.startswith("naics"))
    rests = data.column("all_other").to_pylist() if "all_other" in data.column_names else [False] * data.num_rows
    known: dict[tuple[str, bool], int] = {}
    texts = data.column(code).to_pylist()
    for each in set(zip(texts, rests)):
        known[each] = _exact(*each, length=int(code[-1]), keys=keys)
    exact = np.array([known[each] for each in zip(texts, rests)], dtype=np.float64)
    found = [np.asarray(data.column(name + end).to_numpy(), np.float64) for end in ("", "_low", "_high")]
    return [exact, *found]


def _exact(code: str, rest: bool, *, length: int, keys: str) -> int:
    """The total below a code; of a rest, what no listed finer code has."""
    below = {each: size for each, size in SIZES.items() if each.startswith(code)}
    shown = {each[:length] for each in listed(keys)} if rest else set()
    return sum(size for each, size in below.items() if each[:length] not in shown)
