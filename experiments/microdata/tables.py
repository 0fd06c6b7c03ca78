"""The 31 benchmark tables of [A]: 15 public-use microdata histograms, read where they are present, and 16 made by rule."""

from pathlib import Path

import numpy as np

from experiments.frame import data_folder

PUMS = (
    "0101301",
    "0800803",
    "1304600",
    "1703529",
    "1703531",
    "1901700",
    "2401004",
    "2602702",
    "2801100",
    "2901901",
    "3200405",
    "3603710",
    "3604010",
    "5101301",
    "5151255",
)
SOURCE = (
    "2016 ACS public-use microdata, race x Hispanic origin (9 x 24), one file a PUMA: puma/ST_<state>_PUMA_<code>.csv"
)


def pums_tables() -> tuple[dict[str, np.ndarray], list[str]]:
    """The histograms by their name in the paper, and the files that are missing."""
    folder = data_folder()
    found, missing = {}, []
    for number, code in enumerate(PUMS, start=2):
        path = Path(folder or ".", "puma", f"ST_{code[:2]}_PUMA_{code[2:]}.csv")
        if folder is not None and path.exists():
            found[f"D{number:02d}"] = np.loadtxt(path, delimiter=",", skiprows=1)[:, 1:]
        else:
            missing.append(path.name)
    return found, missing


def patterns() -> dict[str, np.ndarray]:
    """The value of element k = 1..100, before element 1 becomes 10000."""
    k = np.arange(1, 101)
    made = {f"Level{level:02d}": np.full(100, float(level)) for level in (0, 1, 16, 32)}
    made["Stair"] = k.astype(float)
    made |= {f"Step{level}": np.where(k <= 50, 0.0, float(level)) for level in (16, 50)}
    made["SplitStairs"] = np.where(k <= 49, k, 0).astype(float)
    return made


def synthetic_tables() -> dict[str, np.ndarray]:
    """Each pattern as a vector of 100 and, column by column, as 10 x 10."""
    made = {}
    for name, values in patterns().items():
        vector = values.copy()
        vector[0] = 10_000.0
        made[f"{name}-1d"] = vector
        made[f"{name}-2d"] = vector.reshape(10, 10, order="F")
    return made


def all_tables() -> tuple[dict[str, np.ndarray], list[str]]:
    """Every table by name, D01 (= Level00-2d) first, and the files that are missing."""
    real, missing = pums_tables()
    made = synthetic_tables()
    first = {"D01": made.pop("Level00-2d")}
    return first | real | made, missing
