"""What readers get: tables made consistent, rounded, compared between years, taken apart into records, and asked for totals."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa

import recordwise as rw
from build import employers
from kept.leaves import leaves, table_leaves
from recordwise.errors import ParameterError
from recordwise.noise import Seeded
from recordwise.plan.publication import StatusRules
from recordwise.reader import ReaderRelease

COUNTIES = ["01001", "01003", "02013", "02016", "34001"]
CODES = ["311", "312", "321", "441"]
REGIONS = {"code": ["01001", "34001", "01003", "02013"], "region": ["north", "north", "south", "south"]}

X = [1.0, 2.0, 4.0, 8.0, 5.0]


@contextmanager
def opened(seed: int) -> Iterator[rw.Session]:
    """Records of one year; one code of five and one county of six are not listed."""
    chance, rows = np.random.default_rng(seed), 500
    emp = np.floor(chance.pareto(1.2, rows) * 4 + 1).astype(np.int64)
    table = pa.table(
        {
            "id": np.arange(rows),
            "firm": chance.integers(0, 150, rows),
            "county": chance.choice([*COUNTIES, "34003"], rows),
            "naics": chance.choice([*CODES, "442"], rows),
            "emp": emp,
            "pay": emp * chance.integers(20, 90, rows) / 2,
            "net": chance.integers(-300, 500, rows),
        }
    )
    net = rw.Measure.of("net", signed=True)
    with employers(
        table,
        "county",
        "naics",
        firm="firm",
        measures={"emp": 1, "pay": "0.5", "net": net},
        max_outside="accept",
        dataset="small",
    ) as session:
        yield session


def crossed(**noise: Any) -> Any:
    """Two crossed trees; noise is that of the sum, the count and the payroll."""
    made = {
        "emp": rw.Gaussian(sigma=9),
        "count": rw.Gaussian(sigma=3),
        "pay": rw.LogTransform(offset=500, sigma="0.2"),
    } | noise
    keys = rw.Keys.product(county=COUNTIES, naics=CODES)
    asked = rw.query().levels(rw.prefix("county", [2, 5])).levels((), rw.prefix("naics", [2, 3]), keys=keys)
    return asked.sum("emp", made["emp"]).count(made["count"]).sum("pay", made["pay"])


def tree(**noise: Any) -> Any:
    """Counties, and industries of two and three digits in them."""
    made = {"emp": rw.UnitSplit(at=50, rho="0.05"), "net": rw.Gaussian(sigma=200)} | noise
    keys = rw.Keys.product(county=COUNTIES, naics=CODES)
    asked = rw.query().group_by("county", keys=keys).levels(rw.prefix("naics", [2, 3]))
    return asked.count(rw.Gaussian(rho="0.05")).sum("emp", made["emp"], alias="emp").sum("net", made["net"])


@cache
def released(year: int, shape: str, private: bool = False) -> rw.Release:
    """One of the releases that all subjects share."""
    asked = {"crossed": crossed, "tree": tree}[shape]()
    if private:
        asked = crossed(emp=rw.Gaussian(sigma=30), count=rw.GeneralizedGaussian(shape=1, scale=2))
    with opened(year) as session:
        found = session.run(asked, rng=Seeded(year), confidence=0.9)
    return found.with_labels(publication=rw.Publication(period=str(2020 + year)))


def of_consistent_tables() -> Iterator[tuple[str, Any]]:
    """Fits by every method, with their errors and what is left of bias."""
    for method in ("top_down", "nnls", "max_fit", "sequential", "reweighted"):
        for complete in (False, True):
            found = released(1, "tree").consistent(method=method, complete=complete, draws=12)
            for part, held in table_leaves(found).items():
                if "_fit" in part or "_best" in part:
                    yield f"{method}, {complete}, {part}", held
            yield f"{method}, {complete}, said", leaves(found.to_json()["consistent"])
    for name, how in {"zeros": {"zero_counts": True}, "at most": {"at_most": {"count": "sum_emp"}}}.items():
        found = released(1, "crossed").consistent(draws=12, **how)
        for part, held in table_leaves(found).items():
            if "_fit" in part or "_best" in part:
                yield f"{name}, {part}", held


def of_basic_tables() -> Iterator[tuple[str, Any]]:
    """Rounded tables, with units and rules of their own."""
    rules = StatusRules(limits=(("good", 0.1), ("fair", 0.3)), otherwise="bad", withheld=("bad",))
    for name, how in {
        "plain": {},
        "units": {"units": {"emp": 10}, "complete": True},
        "rules": {"rules": rules, "fit": "nnls"},
    }.items():
        found = released(1, "tree").basic(**how)
        for table in found.basic_tables:
            for column in table.data.column_names:
                yield f"{name}, {table.name}, {column}", leaves(table.data[column].to_pylist())
        yield f"{name}, said", leaves(found.to_json()["basic"])


def of_changes() -> Iterator[tuple[str, Any]]:
    """From one year to the next, with codes that were merged."""
    for shape in ("crossed", "tree"):
        # Only what is private is compared; noise from a seed serves as well here.
        now, before = (replace(released(year, shape), private=True) for year in (2, 1))
        merged = (
            {"county5": {"01001": "x", "01003": "x"}} if shape == "crossed" else {"naics3": {"311": "y", "312": "y"}}
        )
        for name, how in {"plain": {}, "merged": {"crosswalk": merged}, "grouped": {"groups": merged}}.items():
            found = now.change(before, **how)
            for table, data in found.tables.items():
                for column in data.column_names:
                    yield f"{shape}, {name}, {table}, {column}", leaves(data[column].to_pylist())
            yield f"{shape}, {name}, confidence", leaves(found.confidence)


def of_records() -> Iterator[tuple[str, Any]]:
    """Records that add up to the tables."""
    for name, how in {
        "weighted": {"weighted": True, "method": "top_down"},
        "whole": {"whole": True, "of": "count"},
    }.items():
        made = released(1, "tree").records(complete=True, **how)
        yield name, leaves(made.table if hasattr(made, "table") else made.data)


def of_answers() -> Iterator[tuple[str, Any]]:
    """Totals, shares, growth, ranks, slopes and replicates, from three kinds of noise."""
    for kind, now, before in (
        ("normal", released(1, "crossed"), released(2, "crossed")),
        ("heavy", released(1, "crossed", True), released(2, "crossed", True)),
    ):
        asked, earlier = ReaderRelease.of(now), ReaderRelease.of(before)
        for name, how in {
            "all": {},
            "county": {"by": "county5"},
            "state": {"by": "county2", "where": "naics2 = '31'"},
            "condition": {"where": "county2 <> '01' and naics3 not in ('441')", "confidence": 0.7},
            "regions": {"regions": REGIONS},
            "complete": {"by": "county5", "complete": True, "nonnegative": True},
        }.items():
            for variable in ("sum_emp", "count"):
                yield f"{kind}, {variable} of {name}", leaves(asked.total(variable, **how).to_json())
        both = asked.total("sum_emp", by="county5"), asked.total("count", by="county5")
        first, second = both[0].labels[:2]
        yield f"{kind}, difference", leaves(both[0].difference(first, second).to_json())
        yield f"{kind}, ratio", leaves(both[0].ratio(first, second).to_json())
        yield f"{kind}, share", leaves(both[0].share(first, second).to_json())
        yield f"{kind}, shares", leaves(both[0].shares(each=True).to_json())
        yield f"{kind}, per", leaves(both[0].per(both[1]).to_json())
        yield f"{kind}, ranks", leaves(both[0].rank().to_json())
        for name, noisy in {
            "one": {"count": both[1]},
            "given": {"x": [1, 2, 4, 8, 5]},
            "two": {"count": both[1], "x": X},
        }.items():
            try:
                yield f"{kind}, slopes on {name}", leaves(both[0].regress(noisy, weights=[1, 2, 3, 1, 2]).to_json())
            except ParameterError:
                yield f"{kind}, slopes on {name}", "refused"
        yield f"{kind}, reliability", leaves(both[0].reliability())
        yield f"{kind}, replicates", leaves(both[0].replicates(20).table)
        yield f"{kind}, growth", leaves(asked.growth("sum_emp", earlier, by="county2").to_json())
        yield f"{kind}, share of", leaves(asked.share("sum_emp", "naics2 = '31'", by="county5").to_json())
        yield f"{kind}, texts", [each for line in both[0].texts for each in line]


def of_saved_files() -> Iterator[tuple[str, Any]]:
    """Files of a release: what its tables, their descriptions and its statements hold."""
    release = released(1, "tree").consistent(draws=12)
    content = release.content()
    for table in content.tables:
        yield f"{table.name}, halves", leaves([table.halves, table.reaches, sorted(table.signed), table.coarser])
        yield f"{table.name}, columns", [f"{each.name} {each.type} {each.unit}" for each in table.columns]
    for kind, other in {"curved": released(1, "crossed"), "heavy": released(1, "crossed", True)}.items():
        for table in other.content().tables:
            yield f"{kind}, {table.name}, halves", leaves([table.halves, table.reaches, table.telling_keys()])
    form = release.to_json()
    for name in ("queries", "schema", "confidence", "policy", "paper_policy", "firms", "lattice"):
        if name in form:
            yield name, leaves(form[name])
    with TemporaryDirectory() as name:
        folder = Path(name)
        # Some formats have no place for the label of a seeded release.
        stated = replace(release, private=True)
        for format in ("csv", "long", "sdmx-csv", "cbp"):
            made = told(stated.export, folder / f"out-{format}.csv", format=format, table=release.tables[1].name)
            lines = made.read_text(encoding="utf-8").splitlines() if isinstance(made, Path) else []
            yield format, [line for line in lines if not line.startswith("#")][:30]
        book = openpyxl.load_workbook(stated.export(folder / "out.xlsx", format="xlsx"))
        for sheet in book:
            yield (
                f"sheet {sheet.title}",
                leaves([each for row in sheet.values for each in row if each is not None])[:200],
            )


def told(ask: Any, *given: Any, **named: Any) -> Any:
    """The answer, or that there is none."""
    try:
        return ask(*given, **named)
    except ParameterError:
        return "refused"


def of_firms() -> Iterator[tuple[str, Any]]:
    """What units and firms lose by a release, in whichever way it is looked up."""
    for shape in ("crossed", "tree"):
        release = released(1, shape)
        for units in (1, 2, 5):
            at = np.arange(units)
            own = {
                "county": np.array(COUNTIES)[at % 2],
                "naics": np.array(CODES)[at % 3],
                "emp": at * 7 + 1,
                "pay": at * 40.5,
                "net": at * 30 - 20,
            }
            assert release.firms is not None
            yield f"{shape}, {units} units", leaves([release.firms.loss(own), release.policy.loss(own)])
            yield f"{shape}, {units} units, on paper", leaves(release.paper_policy.loss(own))
        values = release.values
        if values is not None:
            record = {"emp": 40, "pay": 900.5, "net": -7, "county": "01001", "naics": "311"}
            for name in ("emp", "pay") if shape == "crossed" else ("emp",):
                window = values.window(record, name, confidence=0.9)
                yield f"{shape}, window of {name}", leaves([window.low, window.high, window.step, window.least])


SUBJECTS = {
    "consistent tables": of_consistent_tables,
    "basic tables": of_basic_tables,
    "changes": of_changes,
    "records": of_records,
    "answers": of_answers,
    "saved files": of_saved_files,
    "firms": of_firms,
}
