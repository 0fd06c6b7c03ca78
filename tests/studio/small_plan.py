"""A small plan with two hierarchies, examples and a budget, next to records that were made up."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STATES = {"01": "Alabama", "06": "California", "36": "New York"}
PLAN = """\
source = "records.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"

[dataset]
name = "small"
title = "Establishments of three states"

[schema]
unit = "id"
measures.emp = { step = 1, bound = 100_000 }
measures.payann = { step = 1, bound = 10_000_000 }
columns.county = "text"
columns.industry = "text"

[[budget]]
rho = 10

[[budget]]
measure = "emp"
mechanism = { kind = "Gaussian", sigma = 1 }

[[budget]]
measure = "payann"
mechanism = { kind = "Gaussian", sigma = 20 }

[hierarchies.place]
file = "places.csv"
levels = ["state", "county"]
titles = { state = "State", county = "County" }
labels = { state = "state_name" }
source = "public: a list"

[hierarchies.activity]
file = "industries.csv"
levels = ["total", "industry"]
totals = { total = "00" }
source = "public: a list"

[keys.cells]
product = { place = "county", activity = "industry" }

[[queries]]
name = "main"
levels = [{ by = ["state", "county"] }, { by = ["total", "industry"] }]
keys = "cells"
count = { kind = "Gaussian", sigma = 2 }
sum.emp = { kind = "Gaussian", sigma = 8 }
sum.payann = { kind = "LogTransform", offset = 3000, sigma = 0.1 }

[[queries]]
name = "states"
group_by = ["state"]
keys = "cells"
count = { kind = "GeneralizedGaussian", shape = "0.5", scale = 1 }

[outputs]
formats = ["parquet", "csv"]

[examples]
shop = { emp = 4, payann = 140, county = "01001", industry = "11" }
factory = { emp = 400, payann = 24_000, county = "06001", industry = "31" }

[labels]
count = "establishments"
emp = "employees"
payann = "annual payroll"

[units]
emp = "employees"
payann = "thousand dollars"
"""


SHORT = PLAN[: PLAN.index('[[queries]]\nname = "states"')].replace(
    'sum.payann = { kind = "LogTransform", offset = 3000, sigma = 0.1 }\n', ""
) + PLAN[PLAN.index("[outputs]") :].replace(", payann = 140", "").replace(", payann = 24_000", "")


def write_plan(folder: Path, rows: int = 3000, *, short: bool = False) -> Path:
    """Write plan, lists and records; the short plan has two statistics of one query."""
    counties = [f"{state}{number:03}" for state in STATES for number in (1, 3, 5, 7)]
    rows_of = "".join(f"{each[:2]},{each},{STATES[each[:2]]}\n" for each in counties)
    (folder / "places.csv").write_text("state,county,state_name\n" + rows_of)
    (folder / "industries.csv").write_text("industry\n11\n31\n44\n")
    chance = np.random.default_rng(5)
    size = 1 + np.floor(chance.pareto(1.2, rows) * 4).astype(np.int64)
    size = np.minimum(size, 20_000)
    place = np.minimum(chance.geometric(0.25, rows) - 1, len(counties) - 1)
    table = pa.table(
        {
            "id": np.arange(rows),
            "county": np.array(counties)[place],
            "industry": chance.choice(["11", "31", "44"], rows),
            "emp": size,
            "payann": size * 40 + chance.integers(0, 20, rows),
        }
    )
    pq.write_table(table, folder / "records.parquet")
    (folder / "plan.toml").write_text(SHORT if short else PLAN)
    return folder / "plan.toml"
