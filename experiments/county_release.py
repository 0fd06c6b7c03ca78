"""County business patterns by nation, state and county and by total, sector and three-digit industry, in every format.

``python -m experiments.county_release OUT`` writes the records, the public lists of codes and the plan of such a release into a new
folder, from the files of the data folder. ``recordwise release OUT/plan.toml --out OUT/release --yes`` then makes it.
"""

import argparse
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq

from experiments.frame import data_folder
from recordwise.synthetic import CountyTable

COUNTIES, INDUSTRIES, CELLS = "county_fips.csv.gz", "naics_titles_all_levels.csv.gz", "cbp_county_2017.parquet"
FILES = (COUNTIES, INDUSTRIES, CELLS)
RANGES = {"31": "31-33", "32": "31-33", "33": "31-33", "44": "44-45", "45": "44-45", "48": "48-49", "49": "48-49"}
PLAN = """\
source = "establishments.parquet"
ledger = "patterns.ledger"
tuned_on = "public"

[dataset]
name = "county business patterns 2017, expanded"
title = "County business patterns"
period = "2017"

[schema]
unit = "estab_id"
measures.emp = 1
measures.payqtr1 = 1
measures.payann = 1
columns.county = "text"
columns.naics = "text"

[hierarchies.place]
file = "counties.csv"
levels = ["nation", "state", "county"]
totals = { nation = "US" }
titles = { nation = "Nation", state = "State", county = "County" }
labels = { county = "name" }
source = "public: list of counties and their states"

[hierarchies.industry]
file = "industries.csv"
levels = ["total", "sector", "naics3", "naics"]
totals = { total = "00" }
titles = { total = "All industries", sector = "Sector", naics3 = "Industry" }
labels = { sector = "sector_title", naics3 = "naics3_title" }
source = "public: industry codes published in County Business Patterns 2017, and earlier ones"

[keys.cells]
product = { place = "county", industry = "naics3" }

[[queries]]
name = "patterns"
title = "Establishments, employment and payroll"
levels = [
  { by = ["nation", "state", "county"], share = [0.1, 0.2, 0.7] },
  { by = ["total", "sector", "naics3"], share = [0.2, 0.3, 0.5] },
]
keys = "cells"
count = { kind = "Gaussian", rho = 0.5, as = "est" }
sum.emp = { kind = "UnitSplit", at = 20, rho = 0.5, as = "emp" }
sum.payqtr1 = { kind = "UnitSplit", at = 250, rho = 0.5, as = "qp1" }
sum.payann = { kind = "UnitSplit", at = 1000, rho = 0.5, as = "ap" }

[units]
emp = "employees"
payqtr1 = "1,000 dollars"
payann = "1,000 dollars"

[outputs]
formats = ["parquet", "csv", "xlsx", "sas", "sas8", "stata", "sdmx-csv", "cbp"]
tables = ["research", "basic"]
"""


def write_inputs(folder: Path, data: Path, states: Collection[str] = ()) -> Path:
    """Write the records, the lists of codes and the plan; those of some states only, if any are given.

    Args:
        folder: A folder that exists.
        data: The folder with the public files.
        states: Two-digit codes of states; all of them unless given.

    Returns:
        The plan.
    """
    pv.write_csv(_of_states(counties(data), states), folder / "counties.csv")
    pv.write_csv(industries(data), folder / "industries.csv")
    batches = list(CountyTable.read(data).batches(seed=1))
    pq.write_table(_of_states(pa.Table.from_batches(batches), states), folder / "establishments.parquet")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return folder / "plan.toml"


def counties(data: Path) -> pa.Table:
    """Every county with its state and its name. The file writes codes as numbers: 1001 is 01001."""
    listed = pv.read_csv(data / COUNTIES)
    code = pc.utf8_lpad(listed["fips"].cast(pa.string()), 5, "0")
    return pa.table({"state": pc.utf8_slice_codeunits(code, 0, 2), "county": code, "name": listed["county_name"]})


def industries(data: Path) -> pa.Table:
    """Every six-digit industry with its three-digit one and its sector, which may be a range.

    The titles are those of an earlier revision, so the codes that were published for 2017 are added.
    """
    listed = pv.read_csv(data / INDUSTRIES)
    names = [name.strip() for name in listed.column_names]
    code, title = (listed.column(names.index(name)) for name in ("NAICS", "DESCRIPTION"))
    titles = dict(zip((each.rstrip("/-") for each in code.to_pylist()), title.to_pylist()))
    published = pq.read_table(data / CELLS, columns=["naics"])["naics"].cast(pa.string()).unique().to_pylist()
    codes = sorted({each for each in (*titles, *published) if len(each) == 6})
    return pa.table(
        {
            "sector": [RANGES.get(each[:2], each[:2]) for each in codes],
            "sector_title": [titles.get(RANGES.get(each[:2], each[:2])[:2], "") for each in codes],
            "naics3": [each[:3] for each in codes],
            "naics3_title": [titles.get(each[:3], "") for each in codes],
            "naics": codes,
        }
    )


def _of_states(table: pa.Table, states: Collection[str]) -> pa.Table:
    if not states:
        return table
    own = pc.utf8_slice_codeunits(pc.cast(table["county"], pa.string()), 0, 2)
    return table.filter(pc.is_in(own, value_set=pa.array(sorted(states))))


def main() -> None:
    """Write the inputs into a new folder."""
    parser = argparse.ArgumentParser(description="Write the records, lists and plan of a county release.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--states", nargs="*", default=())
    given = parser.parse_args()
    data = data_folder(*FILES)
    if data is None:
        raise SystemExit("The public files were not found: name their folder in RECORDWISE_DATA.")
    given.out.mkdir(parents=True)
    print(write_inputs(given.out, data, given.states))


if __name__ == "__main__":
    main()
