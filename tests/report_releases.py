"""Three releases for the policy page: plain, with thresholds by industry and several measures, and with private keys."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import build
import recordwise as rw
from recordwise.noise import Seeded
from recordwise.policy import ConditionColumn

INDUSTRIES = ["Mining", "Retail", "Farming"]
COUNTIES = ["01", "02", "03", "04"]
LABELS = {
    "emp": "employees",
    "pay": "dollars of payroll",
    "head": "managers",
    "industry": "industry",
    "industry=Mining": "Mining and quarrying",
}
MEASURES = {"emp": 1, "pay": "0.01", "head": 1}


def establishments(rows: int = 600) -> pa.Table:
    chance = np.random.default_rng(5)
    size = np.floor(chance.pareto(1.2, rows) * 4).astype(np.int64)
    return pa.table(
        {
            "id": np.arange(rows),
            "firm": chance.integers(0, rows // 3, rows),
            "county": chance.choice(COUNTIES[:3], rows),
            "industry": chance.choice(INDUSTRIES, rows),
            "emp": size,
            "pay": size * 40,
            "head": size // 3,
        }
    )


def opened(**how: Any) -> rw.Session:
    told = {"dataset": "Enterprise statistics 2026", "measures": MEASURES, "tuned_on": "public", **how}
    return build.employers(establishments(), firm="firm", **told)


def keys() -> rw.Keys:
    return rw.Keys.product(county=COUNTIES, industry=INDUSTRIES)


def by_industry_query() -> Any:
    at = rw.by("industry", {"Mining": 100, "Retail": 20}, default=50)
    asked = rw.query().group_by("county", "industry", keys=keys()).count(rw.Gaussian(rho="0.05"))
    asked = asked.sum("emp", rw.UnitSplit(at=at, rho="0.1")).sum("pay", rw.LogTransform(offset=5000, sigma="0.3"))
    asked = asked.sum("head", rw.RootTransform(degree=4, offset=1, laplace_scale="0.5"))
    asked = asked.sum("emp", rw.Polylog(power=2, rate=1, offset=3, variance=400), alias="emp_heavy")
    return asked.quantile("pay", p="0.5", grid=rw.mechanisms.Grid.log(1, 10**6, bits=6), rho="0.05")


@cache
def by_industry() -> rw.Release:
    with opened() as session:
        return session.run(by_industry_query())


@cache
def private_keys() -> rw.Release:
    selected = rw.Keys.select(rho="0.1", delta="1e-6", pieces={"emp": 50})
    asked = rw.query().group_by("county", "industry", keys=selected).count(rw.Gaussian(rho="0.05"))
    with opened() as session:
        return session.run(asked.sum("emp", rw.UnitSplit(at=50, rho="0.1")))


def only_counts() -> rw.Release:
    """One loss for every record: there is nothing to ask."""
    with opened() as session:
        return session.run(rw.query().group_by("county", keys=keys()).count(rw.Gaussian(rho="0.05")))


def external() -> rw.Release:
    """A mechanism from elsewhere: one number, no keys, no intervals."""
    with opened() as session:
        return session.run_external(lambda rows: {"answer": [1.5]}, split={"emp": 50}, rho="0.1", name="elsewhere")


def made_to_add_up() -> rw.Release:
    """Fitted columns beside the drawn ones."""
    asked = rw.query().group_by("county", keys=keys()).count(rw.Gaussian(rho="0.05"))
    with opened() as session:
        return session.run(asked.sum("emp", rw.UnitSplit(at=50, rho="0.1"))).consistent()


def cut_down() -> rw.Release:
    """A clamped sum and a grand total, seeded."""
    asked = rw.query().count(rw.Gaussian(rho="0.05")).sum("emp", rw.Clamped(to=100, rho="0.1"))
    with opened() as session:
        return session.run(asked, rng=Seeded(3))


def all_laplace() -> rw.Release:
    """All noise has a pure loss, under a budget in pure epsilon."""
    asked = rw.query().group_by("county", keys=keys()).count(rw.GeneralizedGaussian(shape=1, scale=4))
    budget = rw.policy.pure_budget(1) + rw.policy.pure_budget(1, {"emp": 100})
    with opened(budget=budget) as session:
        return session.run(asked.sum("emp", rw.GeneralizedGaussian(shape=1, scale=100)))


def by_sizes() -> rw.Release:
    """Noise in proportion to public sizes of cells; one cell is not listed in the table of sizes."""
    frame = {"county": ["01", "01", "02", "03"], "industry": ["Mining", "Retail", "Mining", "Farming"]}
    frame |= {"last": [90.0, 450.0, 3000.0, None], "pay_last": [90_000.0, 100.0, 7.0, 2e6]}
    listed = rw.Keys.of(frame, size={"emp": "last", "pay": "pay_last"}, sized_on="public: last year")
    asked = rw.query().group_by("county", "industry", keys=listed)
    asked = asked.sum("emp", rw.Sized(rw.Gaussian(sigma="0.1"), floor=100))
    low = rw.GeneralizedGaussian(shape="0.5", scale="0.05")
    asked = asked.sum("pay", rw.Sized(rw.Gaussian(sigma="0.1"), floor=10_000, low=low))
    with opened(max_outside="accept") as session:
        return session.run(asked)


@cache
def by_code_lists() -> rw.Release:
    """Two hierarchies crossed, three levels of each, with basic tables, labels, units and who publishes them."""
    lists = [build.places(labels={"county": "county_name"}), build.industries()]
    chance = np.random.default_rng(4)
    table = establishments(400).drop_columns(["county"])
    for column, listed in (("county", build.PLACES["county"]), ("naics", build.INDUSTRIES["naics"])):
        table = table.append_column(column, pa.array(chance.choice(listed, 400)))
    keys_of_all = rw.Keys.crossed(lists[0].keys("county"), lists[1].keys("naics"))
    asked = rw.query().named("patterns", title="Establishments and employment")
    asked = asked.levels("nation", "state", "county").levels("total", "sector", "naics").at(keys_of_all)
    asked = asked.count(rw.Gaussian(rho=1), alias="est").sum("emp", rw.UnitSplit(at=50, rho=1), alias="emp")
    said = rw.Publication(
        publisher="Office of Numbers",
        contact="numbers@example.org",
        period="2024",
        version="1.1",
        revision="Two counties were corrected.",
    )
    words = rw.Labels(units={"emp": "employees"}, publication=said)
    how: dict[str, Any] = {"dataset": "patterns", "tuned_on": "public", "hierarchies": lists, "words": words}
    with build.employers(table, "county", "naics", **how) as session:
        return session.run(asked).basic()


OTHERS: dict[str, Callable[[], rw.Release]] = {
    "counts": only_counts,
    "external": external,
    "consistent": made_to_add_up,
    "clamped": cut_down,
    "pure": all_laplace,
    "sized": by_sizes,
    "hierarchies": by_code_lists,
}
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<b>`${1}"
HOSTILE_LABELS = {HOSTILE: HOSTILE, f"m{HOSTILE}": HOSTILE, f"{HOSTILE}={HOSTILE}": HOSTILE}


@cache
def hostile_release() -> rw.Release:
    table = establishments(60).rename_columns(["id", "firm", "county", HOSTILE, "emp", "pay", f"m{HOSTILE}"])
    values = [HOSTILE, "Retail", "=\u2028]]>"]
    chosen = np.random.default_rng(1).choice(values, 60)
    table = table.set_column(3, HOSTILE, pa.array(chosen))
    measure = f"m{HOSTILE}"
    at = rw.by(HOSTILE, {HOSTILE: 100}, default=50)
    with build.employers(table, measures={measure: 1}, dataset=HOSTILE, tuned_on="public") as hostile_session:
        keys = rw.Keys.of(pa.table({HOSTILE: values}))
        asked = rw.query().group_by(HOSTILE, keys=keys).count(rw.Gaussian(rho="0.1"), alias=f"n{HOSTILE}")
        asked = asked.sum(measure, rw.UnitSplit(at=at, rho="0.1"), alias=f"s{HOSTILE}")
        return hostile_session.run(asked)


@cache
def five_levels() -> rw.Release:
    """A count and three sums at five levels of a code, two of them with twenty thresholds."""
    codes = [f"{first}{rest:04}" for first in range(11, 31) for rest in (0, 1)]
    table = establishments(200)
    table = table.append_column("naics", pa.array(np.random.default_rng(2).choice(codes, 200)))
    at = [
        rw.by(ConditionColumn("naics", 2), {str(a): base * (a % 7 + 1) for a in range(11, 31)}, default=base)
        for base in (20, 1000)
    ]
    keys_of_all = rw.Keys.product(county=COUNTIES, naics=codes)
    asked = rw.query().group_by("county", keys=keys_of_all).levels(rw.prefix("naics", [2, 3, 4, 5, 6]))
    asked = asked.count(rw.Gaussian(rho="0.05")).sum("emp", rw.UnitSplit(at=at[0], rho="0.1"))
    asked = asked.sum("pay", rw.UnitSplit(at=at[1], rho="0.1")).sum("head", rw.LogTransform(offset=100, sigma="0.3"))
    measures = {"emp": 1, "pay": 1, "head": 1}
    with build.employers(table, measures=measures, dataset="levels", tuned_on="public") as session:
        return session.run(asked)


def random_records(rng: np.random.Generator, number: int) -> list[dict[str, Any]]:
    """Records of all sizes on the lattices of the measures; 0 among them."""
    emp, head = (np.floor(10 ** rng.uniform(-0.5, 7, number)).astype(int) for _ in range(2))
    cents = np.floor(10 ** rng.uniform(0, 10, number)).astype(int)
    industries = rng.choice([*INDUSTRIES, "Fishing"], number)
    return [
        {"emp": int(e), "pay": float(f"{c / 100:.2f}"), "head": int(h), "industry": str(i)}
        for e, c, h, i in zip(emp, cents, head, industries)
    ]
