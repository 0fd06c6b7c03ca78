"""Derives the calibration figures from County and ZIP Business Patterns: only shares and means, no row of the sources.

    python -m experiments.derive_figures DIRECTORY_WITH_THE_TWO_PARQUET_FILES

writes counties.csv, industries.csv and size_classes.csv into the package; they are what the generator reads.
"""

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb

FIGURES = Path(__file__).parents[1] / "src" / "recordwise" / "synthetic" / "figures"
PARTS = 10_000_000
"""Shares are written as multiples of one part in this many, to three digits."""

COUNTIES = """
SELECT fips, sum(establishments) / sum(sum(establishments)) OVER () AS share
FROM read_parquet(?) WHERE digits = 6 GROUP BY fips ORDER BY fips
"""
INDUSTRIES = """
SELECT naics, sum(establishments) / sum(sum(establishments)) OVER () AS share,
       greatest(sum(payroll_1000usd), 1) / greatest(sum(employees), 1) AS wage
FROM read_parquet(?) WHERE digits = 6 GROUP BY naics ORDER BY naics
"""
SIZE_CLASSES = """
SELECT naics, empszes, sum(establishments) / sum(sum(establishments)) OVER (PARTITION BY naics) AS share
FROM read_parquet(?) WHERE empszes <> 1 GROUP BY naics, empszes ORDER BY naics, empszes
"""
CLASSES = (212, 220, 230, 241, 242, 251, 252, 254, 260)


def main(directory: str) -> None:
    """Read the two files and write the three tables of figures."""
    connection = duckdb.connect()
    county_file = str(Path(directory) / "cbp_county_2017.parquet")
    size_file = str(Path(directory) / "zbp_2016_naics3_sizeclass.parquet")
    counties = connection.execute(COUNTIES, [county_file]).fetchall()
    write("counties.csv", ("fips", "share"), ((fips, parts(share)) for fips, share in counties))
    industries = connection.execute(INDUSTRIES, [county_file]).fetchall()
    rows = ((naics, parts(share), f"{wage:.3g}") for naics, share, wage in industries)
    write("industries.csv", ("naics", "share", "wage"), rows)
    shares: dict[str, dict[int, float]] = {}
    for naics, size, share in connection.execute(SIZE_CLASSES, [size_file]).fetchall():
        shares.setdefault(naics, {})[size] = share
    classes = ((naics, *(f"{found.get(size, 0):.5f}" for size in CLASSES)) for naics, found in shares.items())
    write("size_classes.csv", ("naics3", *map(str, CLASSES)), classes)


def parts(share: float) -> int:
    """A share as a whole number of parts, to three digits and at least one."""
    return max(1, int(float(f"{share * PARTS:.3g}")))


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (FIGURES / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1])
