"""The six tables of transcripts.md, each in another kind of file, with the public lists of their cells.

Three of them are laid out from public files: County Business Patterns, the Census of Agriculture and ZIP Business Patterns.
Without these, small made-up files of the same layout take their place. The farms are those of docs/worked-example.md.
"""

import csv
import gzip
import runpy
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from recordwise.synthetic.county_tables import CountyTable

FARMS = Path(__file__).parents[2] / "docs" / "worked-example" / "farms.py"
COUNTIES, DAIRIES = "cbp_county_2017.parquet", "nass_county_milk_operations_by_size_2022.csv.gz"
ZIPS = "zbp_2016_naics3_sizeclass.parquet"
HERDS = {"1 TO 9": (1, 9), "10 TO 19": (10, 19), "20 TO 49": (20, 49), "50 TO 99": (50, 99), "100 TO 199": (100, 199)}
HERDS |= {"200 TO 499": (200, 499), "500 OR MORE": (500, 9999)}
SIZES = {212: (1, 4), 220: (5, 9), 230: (10, 19), 241: (20, 49), 242: (50, 99), 251: (100, 249), 252: (250, 499)}
SIZES |= {254: (500, 999), 260: (1000, 9999)}
ALL_SIZES = 1
LARGEST = 5_000_000
"""Customers of a utility: within the bound that its plan states."""
STATES = ["CO", "ID", "IA", "KS", "MN", "NE", "ND", "SD"]


def expanded(counts: np.ndarray, low: np.ndarray, high: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The row that each unit comes from, and its size: between the ends of its class, evenly on the scale of logarithms."""
    row = np.repeat(np.arange(len(counts)), counts)
    share = np.random.default_rng(seed).random(len(row))
    ends = np.log(low[row]), np.log(high[row] + 1)
    return row, np.floor(np.exp(ends[0] + share * (ends[1] - ends[0]))).astype(np.int64)


def establishments(data: Path, out: Path) -> None:
    """County cells laid out as establishments: one Parquet file, with the cells as keys."""
    cells = CountyTable.read(data)
    with pq.ParquetWriter(out / "establishments.parquet", next(iter(cells.batches())).schema) as writer:
        for batch in cells.batches():
            writer.write_batch(batch)
    pyarrow.csv.write_csv(cells.keys(), out / "county-industries.csv")


def dairies(data: Path, out: Path) -> None:
    """Dairy operations from the classes of their herds: a gzipped CSV with semicolons, and the states as keys."""
    table = pyarrow.csv.read_csv(data / DAIRIES, convert_options=_texts("State ANSI", "County ANSI", "Domain Category"))
    head = [text.split("(")[1].removesuffix(" HEAD)") for text in table["Domain Category"].to_pylist()]
    low, high = np.array([HERDS[each] for each in head]).T
    row, cows = expanded(table["value_num"].to_numpy().astype(np.int64), low, high, seed=1)
    columns = {
        "operation_id": np.random.default_rng(2).permutation(len(row)) + 1,
        "State ANSI": table["State ANSI"].take(row),
        "County ANSI": table["County ANSI"].take(row),
        "cows": cows,
    }
    with gzip.open(out / "dairies.csv.gz", "wb") as file:
        options = pyarrow.csv.WriteOptions(delimiter=";", quoting_style="none")
        pyarrow.csv.write_csv(pa.table(columns), file, options)
    pyarrow.csv.write_csv(pa.table({"State ANSI": pc.unique(table["State ANSI"])}), out / "states.csv")


def _texts(*names: str) -> pyarrow.csv.ConvertOptions:
    return pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)


def zips(data: Path, out: Path) -> None:
    """ZIP establishments from their size classes: a folder of Parquet files by state, and ZIP areas by industry as keys."""
    table = pq.read_table(data / ZIPS)
    cells = table.filter(pc.equal(table["empszes"], ALL_SIZES)).select(["zip", "naics"])
    pyarrow.csv.write_csv(cells.group_by(["zip", "naics"]).aggregate([]), out / "zip-industries.csv")
    table = table.filter(pc.not_equal(table["empszes"], ALL_SIZES))
    low, high = np.array([SIZES[each] for each in table["empszes"].to_pylist()]).T
    row, emp = expanded(table["establishments"].to_numpy().astype(np.int64), low, high, seed=3)
    columns = {"estab_id": np.random.default_rng(4).permutation(len(row)), "emp": emp}
    columns |= {name: table[name].take(row) for name in ("zip", "naics", "state")}
    pq.write_to_dataset(pa.table(columns), out / "zips", partition_cols=["state"])


def utilities(out: Path, units: int) -> None:
    """Made-up utilities with a row for each month, profits of both signs and dates: a Feather file."""
    rng = np.random.default_rng(5)
    unit, month = np.repeat(np.arange(units), 12), np.tile(np.arange(12), units)
    size = np.minimum(np.floor(rng.pareto(1.1, units) * 800 + 50), LARGEST).astype(np.int64)[unit]
    kwh = size * rng.integers(400, 1200, len(unit))
    opened = np.datetime64("1960-01-01") + rng.integers(0, 22_000, units)
    columns = {
        "utility_id": unit + 1,
        "state": np.array(STATES)[rng.integers(0, len(STATES), units)][unit],
        "opened": opened[unit],
        "reported": np.datetime64("2024-01") + month,
        "kwh": pa.array(kwh, mask=rng.random(len(unit)) < 0.01),
        "customers": size - month,
        "profit": kwh // 50 - rng.integers(0, 25, len(unit)) * size,
    }
    columns["reported"] = columns["reported"].astype("datetime64[D]")
    table = pa.table(columns).take(rng.permutation(len(unit)))
    pyarrow.feather.write_feather(table, str(out / "utilities.feather"))


def loans(out: Path, count: int) -> None:
    """Loans as agencies publish them: blanks in the header line, amounts in dollars and American dates."""
    amounts = (np.random.default_rng(7).pareto(1.2, count) * 20_000).round(2)
    days = np.datetime64("2020-01-31") + np.arange(count) % 366
    with (out / "loans.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["Loan Number", " Gross Amount ", "Approved", "State"])
        for number, (amount, day) in enumerate(zip(amounts, days)):
            year, month, date = str(day).split("-")
            lines.writerow(
                [f"L{number:05}", f"${amount:,.2f} ", f"{month}/{date}/{year}", "CT" if number % 3 else "NY"]
            )


def look_alikes(data: Path) -> None:
    """Made-up files with the columns and codes of the public ones."""
    rng = np.random.default_rng(6)
    codes, industries = ["01001", "01003", "02020", "06037"], ["441110", "445110", "722511", "811111"]
    cells = [(county, naics) for county in codes for naics in industries]
    number = rng.integers(20, 200, len(cells)).astype(np.int32)
    table = {"fips": [each[0] for each in cells], "naics": [each[1] for each in cells], "establishments": number}
    table |= {"employees": number * 14, "payroll_1000usd": number.astype(np.int64) * 560}
    table |= {"digits": np.full(len(cells), 6, np.int8)}
    pq.write_table(pa.table(table), data / COUNTIES)
    herds = [
        f"{state},{county},INVENTORY OF MILK COWS: ({head} HEAD),{rng.integers(1, 9)}.0"
        for state in ("01", "19", "27", "55")
        for county in ("001", "003", "")
        for head in HERDS
    ]
    with gzip.open(data / DAIRIES, "wt") as file:
        file.write("\n".join(["State ANSI,County ANSI,Domain Category,value_num", *herds]) + "\n")
    areas = [("AK", "99501"), ("AK", "99502"), ("CO", "80201"), ("NJ", "07001")]
    rows = [
        {"zip": area, "naics": naics, "empszes": size, "state": state, "establishments": int(rng.integers(1, 30))}
        for state, area in areas
        for naics in ("236", "441", "722")
        for size in (ALL_SIZES, *SIZES)
    ]
    pq.write_table(pa.Table.from_pylist(rows), data / ZIPS)


def write(out: Path, data: Path | None) -> None:
    """All six tables and their keys."""
    with tempfile.TemporaryDirectory() as folder:
        if data is None:
            look_alikes(Path(folder))
        source = data or Path(folder)
        establishments(source, out)
        dairies(source, out)
        zips(source, out)
    loans(out, count=400)
    runpy.run_path(str(FARMS))["write"](out)
    utilities(out, units=2_000 if data is None else 200_000)
