"""Releases with a little of everything, drawn from a seed: what whole answers about them are kept of."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import build
import recordwise as rw
from recordwise.mechanisms import Grid
from recordwise.noise import Seeded

LABELS = {
    "emp": "employees",
    "pay": "payroll",
    "net": "net flow",
    "sector": "sector of industry",
    "sector=31-33": "Manufacturing",
    "state=01": "Alabama",
    "n": "establishments",
}
UNITS = {"emp": "persons", "pay": "1,000 dollars", "n": "establishments"}


def table(seed: int, rows: int = 300) -> pa.Table:
    """Establishments with a signed measure and one in halves; codes that are not listed among them."""
    chance = np.random.default_rng([77, seed])
    emp = np.floor(chance.pareto(1.1, rows) * 5 + 1).astype(np.int64)
    return pa.table(
        {
            "id": np.arange(rows),
            "firm": chance.integers(0, rows // 3, rows),
            "county": chance.choice([*build.PLACES["county"], "99"], rows),
            "naics": chance.choice([*build.INDUSTRIES["naics"], "9"], rows),
            "kind": chance.choice(["open", "shut", "new"], rows),
            "emp": emp,
            "pay": emp * chance.integers(20, 90, rows) / 2,
            "net": chance.integers(-300, 500, rows),
        }
    )


def opened(seed: int, **how: Any) -> rw.Session:
    """A session on them, with code lists, labels and units."""
    said = rw.Publication(
        title="Patterns",
        publisher="Office of Numbers",
        contact="numbers@example.org",
        period=str(2020 + seed),
        license="CC BY 4.0",
        version="1.1",
        revision="Two counties were corrected.",
        date="2026-05-31",
    )
    told: dict[str, Any] = {
        "unit": "id",
        "firm": "firm",
        "measures": {"emp": 1, "pay": "0.5", "net": rw.Measure.of("net", signed=True)},
        "columns": {"county": "text", "naics": "text", "kind": "text"},
        "hierarchies": [build.places(labels={"county": "county_name"}), build.industries()],
        "words": rw.Labels(labels=LABELS, units=UNITS, publication=said),
        "dataset": "patterns",
        "tuned_on": "public",
        "max_outside": "accept",
    }
    return rw.Session(table(seed), **(told | how))


def crossed(**noise: Any) -> Any:
    """Three levels of places by three of industries."""
    made: dict[str, Any] = {
        "n": rw.Gaussian(rho="0.05"),
        "emp": rw.UnitSplit(at=50, rho="0.05"),
        "pay": rw.LogTransform(offset=500, sigma="0.2"),
        "net": rw.Gaussian(sigma=200),
    } | noise
    keys = rw.Keys.crossed(build.places().keys("county"), build.industries().keys("naics"))
    asked = rw.query().named("patterns", title="Establishments, employment and pay")
    asked = asked.levels("nation", "state", "county").levels("total", "sector", "naics").at(keys)
    asked = asked.count(made["n"], alias="n").sum("emp", made["emp"], alias="emp").sum("pay", made["pay"])
    return asked.sum("net", made["net"]).ratio("emp", "n", alias="emp_each")


def listed() -> Any:
    """Kinds and regions, with noise of other laws, a quantile and an average."""
    keys = rw.Keys.product(region=["South", "West"], kind=["open", "shut", "old"])
    asked = rw.query().named("kinds").group_by("region", "kind", keys=keys).where("emp < 400")
    asked = asked.count(rw.GeneralizedGaussian(shape=1, scale=3), alias="open")
    asked = asked.sum("emp", rw.RootTransform(degree=2, offset=4, sigma="0.5"), alias="staff")
    asked = asked.sum("pay", rw.Clamped(to=2000, rho="0.2"), alias="clamped")
    return asked.quantile("pay", p="0.25", grid=Grid.log(1, 10**5, bits=6), rho="0.05")


def alone() -> Any:
    """One cell."""
    return rw.query().named("whole").count(rw.Gaussian(rho="0.05")).sum("emp", rw.Clamped(to=100, rho="0.1"))


def by_kind() -> Any:
    """A mechanism for each kind of establishment."""
    keys = rw.Keys.product(kind=["open", "shut", "old"], state=["01", "02"])
    noise = rw.ByGroup(
        "kind", {"open": rw.Gaussian(sigma=20), "shut": rw.Gaussian(sigma=50)}, default=rw.Gaussian(sigma=9)
    )
    asked = rw.query().named("by_kind").group_by("kind", "state", keys=keys)
    return asked.sum("emp", noise).count(rw.Gaussian(sigma=2), alias="n")


@cache
def rich(seed: int = 1) -> rw.Release:
    """All of them in one release."""
    with opened(seed) as session:
        return session.run([crossed(), listed(), alone(), by_kind()], rng=Seeded(seed), confidence=0.9)


@cache
def plain(seed: int = 1) -> rw.Release:
    """The crossed tables alone, with noise that can be added up."""
    with opened(seed) as session:
        asked = crossed(emp=rw.Gaussian(sigma=25), pay=rw.GeneralizedGaussian(shape=1, scale=300))
        return session.run(asked, rng=Seeded(10 + seed))


@cache
def selected(seed: int = 1) -> rw.Release:
    """Cells that were found privately."""
    chosen = rw.Keys.select(rho="0.1", delta="1e-6", pieces={"emp": 50})
    asked = rw.query().named("found").group_by("county", "kind", keys=chosen).count(rw.Gaussian(rho="0.05"))
    with opened(seed) as session:
        return session.run(asked.sum("emp", rw.UnitSplit(at=50, rho="0.1")), rng=Seeded(seed))
