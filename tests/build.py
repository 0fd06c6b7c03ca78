"""What tests are made of: small records, code lists, sessions on them, queries, plan texts and exact totals."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from recordwise.policy import Policy, constant, gaussian_sum

MEASURES = {"emp": 1, "pay": 1}
COUNTIES = ["01", "02", "03", "04"]
CODES = ["111", "112", "221"]
PLAN = """\
dataset = "small"
source = "records.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"
schema = { unit = "id", measures = { emp = 1 }, columns = { county = "text" } }
budget = [{ rho = 100 }, { rho = 100, at = { emp = 1 } }]

[[queries]]
group_by = ["county"]
keys = { rows = { county = ["01", "02", "03"] } }
count = { kind = "Gaussian", rho = 0.1 }
sum.emp = { kind = "UnitSplit", at = 20, rho = 0.5 }
"""
"""For the command line, beside ``records.parquet``."""


def few(cases: Iterable[Any], number: int) -> list[Any]:
    """All cases of a costly test: the first of them for ``make test``, the others for ``make test-slow``."""
    held = [each if isinstance(each, tuple) else (each,) for each in cases]
    return [pytest.param(*each, marks=[pytest.mark.slow] * (at >= number)) for at, each in enumerate(held)]


def records(rows: int = 500, seed: int = 1) -> pa.Table:
    """Establishments with a few large ones; the county 04 has none."""
    chance = np.random.default_rng(seed)
    size = np.floor(chance.pareto(1.2, rows) * 4).astype(np.int64)
    return pa.table(
        {
            "id": np.arange(rows),
            "firm": chance.integers(0, rows // 3, rows),
            "county": chance.choice(COUNTIES[:3], rows),
            "naics": chance.choice(CODES, rows),
            "emp": size,
            "pay": size * 40 + chance.integers(0, 20, rows),
        }
    )


def write_records(path: Path, rows: int = 500) -> Path:
    pq.write_table(records(rows), path)
    return path


def generous() -> Policy:
    """A budget for a great many small queries."""
    return (constant(1) + gaussian_sum("emp", sigma=1) + gaussian_sum("pay", sigma=1)) * 1000


HOW: dict[str, Any] = {}
"""Which engine sessions are opened on: the fixture ``on_both_engines`` sets it."""


def employers(source: Any, *texts: str, **more: Any) -> rw.Session:
    """A session on records with an id and a measure emp, by columns of text; what else is given replaces that."""
    roles: dict[str, Any] = {"unit": "id", "measures": {"emp": 1}, "tuned_on": "synthetic"}
    if texts:
        roles["columns"] = dict.fromkeys(texts, "text")
    return rw.Session(source, **(roles | HOW | more))


def session(source: Any, ledger: Path | None = None, budget: Policy | None = None, **more: Any) -> rw.Session:
    """A session on ``records``."""
    roles = {"firm": "firm", "measures": MEASURES, "dataset": "small", "ledger": ledger, "budget": budget}
    return employers(source, **(roles | more))


def keys() -> rw.Keys:
    return rw.Keys.product(county=COUNTIES, naics=CODES)


def question() -> Any:
    """Two levels, a count and two sums, one of them on the scale of a logarithm."""
    asked = rw.query().group_by("county", keys=keys()).levels(rw.prefix("naics", 2), rw.prefix("naics", 3))
    asked = asked.count(rw.Gaussian(rho="0.1"), alias="n").sum("emp", rw.UnitSplit(at=50, rho="0.1"))
    return asked.sum("pay", rw.LogTransform(offset=1000, sigma="0.2"))


PLACES = {
    "region": ["South", "West", "West", "West", "South"],
    "state": ["01", "01", "02", "02", "13"],
    "county": ["01001", "0103", "02013", "02", "13001"],
    "county_name": ["Autauga", "Baldwin", "Aleutians", "Rest of Alaska", "Appling"],
}
INDUSTRIES = {"sector": ["31-33", "31-33", "31-33", "11"], "naics": ["311", "3121", "332", "111"]}
LISTED = dict(zip(PLACES["county"], zip(PLACES["region"], PLACES["state"])))
SECTORS = dict(zip(INDUSTRIES["naics"], INDUSTRIES["sector"]))


def places(**changed: Any) -> rw.Hierarchy:
    """Places with regions that are no prefix and do not nest with states."""
    given: dict[str, Any] = {
        "levels": ["nation", "region", "state", "county"],
        "source": "public: a list of places",
    } | changed
    return rw.Hierarchy.of("place", given.pop("codes", PLACES), totals={"nation": "US"}, **given)


def industries() -> rw.Hierarchy:
    """Industries with a range among their sectors."""
    return rw.Hierarchy.of(
        "industry",
        INDUSTRIES,
        levels=["total", "sector", "naics"],
        totals={"total": "00"},
        source="public: a list of industries",
    )


def levels_of(record: dict[str, Any]) -> dict[str, Any]:
    """The reference: what a record has at every level, None where its code is not listed."""
    region, state = LISTED.get(record["county"], (None, None))
    sector = SECTORS.get(record["naics"])
    own = {"region": region, "state": state, "nation": "US" if state else None}
    return {**record, **own, "sector": sector, "total": "00" if sector else None}


def exact_totals(found: Any) -> list[list[int]]:
    """The totals of one table, a list of integers for each, in the order of the plan."""
    return [each.tolist() for each in found.exact.reveal().totals.values()]
