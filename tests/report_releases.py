"""Three releases for the policy page: plain, with thresholds by industry and several measures, and with private keys."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw

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
    told = {"dataset": "Enterprise statistics 2026", "measures": MEASURES, **how}
    return rw.Session(establishments(), unit="id", firm="firm", **told)


def keys() -> rw.Keys:
    return rw.Keys.product(county=COUNTIES, industry=INDUSTRIES)


def by_industry_query() -> Any:
    at = rw.by("industry", {"Mining": 100, "Retail": 20}, default=50)
    asked = rw.query().group_by("county", "industry", keys=keys()).count(rw.Gaussian(rho="0.05"))
    asked = asked.sum("emp", rw.UnitSplit(at=at, rho="0.1")).sum("pay", rw.LogTransform(offset=5000, sigma="0.3"))
    asked = asked.sum("head", rw.RootTransform(degree=4, offset=1, laplace_scale="0.5"))
    asked = asked.sum("emp", rw.Polylog(power=2, rate=1, offset=3, variance=400), alias="emp_heavy")
    return asked.quantile("pay", p="0.5", grid=rw.Grid.log(1, 10**6, bits=6), rho="0.05")


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


def random_records(rng: np.random.Generator, number: int) -> list[dict[str, Any]]:
    """Records of all sizes on the lattices of the measures; 0 among them."""
    emp, head = (np.floor(10 ** rng.uniform(-0.5, 7, number)).astype(int) for _ in range(2))
    cents = np.floor(10 ** rng.uniform(0, 10, number)).astype(int)
    industries = rng.choice([*INDUSTRIES, "Fishing"], number)
    return [
        {"emp": int(e), "pay": float(f"{c / 100:.2f}"), "head": int(h), "industry": str(i)}
        for e, c, h, i in zip(emp, cents, head, industries)
    ]
