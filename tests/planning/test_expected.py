"""Expected errors: at totals that fit each measure, and those of the noise laws for everything that is published."""

import math
from pathlib import Path

import numpy as np
import pytest

import recordwise as rw
from build import employers
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Schema
from recordwise.planning.check import ExpectedError, expected_errors
from recordwise.planning.simulate.generate import usual_sizes

SCHEMA = Schema.of(unit="id", measures={"emp": 1, "payann": 1}, columns={"county": "text"})
SIGMAS = {"count": 3, "emp": 20, "payann": 900}
MIDDLE = 1
"""The place of the middle cell, of 100 records."""


def asked(noise: dict[str, object]) -> rw.Query:
    """Sums of two measures, and what is computed from them."""
    found = rw.query().count(noise["count"]).sum("emp", noise["emp"]).sum("payann", noise["payann"])  # type: ignore[arg-type]
    found = found.avg("emp", sum=noise["emp"]).ratio("payann", "emp", alias="pay")  # type: ignore[arg-type]
    return found.combine("payann - 45 * emp", alias="rest").ratio("payann - 3 * emp", "payann + count", alias="joint")


def rows(query: rw.Query, **given: object) -> dict[str, ExpectedError]:
    found = expected_errors(Plan(schema=SCHEMA, queries=(query,)), **given)  # type: ignore[arg-type]
    return {each.variable: each for each in found}


USUAL = {"usual": {"emp": 100, "payann": 200}}


def test_errors_of_ratios_averages_and_combinations_are_those_of_their_formulas() -> None:
    found = rows(asked({name: rw.Gaussian(sigma=sigma) for name, sigma in SIGMAS.items()}), examples=USUAL)
    counted, summed, paid = SIGMAS.values()
    records, emp, pay = 100, 10_000, 20_000
    assert found["sum_emp"].totals == (1_000, 10_000, 100_000)
    rest, average, ratio, joint = (found[name] for name in ("rest", "avg_emp", "pay", "joint"))
    assert rest.totals[MIDDLE] == pay - 45 * emp
    assert rest.most_sd[MIDDLE] == pytest.approx(math.hypot(paid, 45 * summed), rel=1e-9)
    assert average.totals[MIDDLE] == emp / records
    assert average.most_sd[MIDDLE] == pytest.approx(math.hypot(summed, 100 * counted) / records, rel=1e-9)
    assert ratio.ratio == 2
    assert ratio.most_sd[MIDDLE] == pytest.approx(math.hypot(paid, 2 * summed) / emp, rel=1e-9)
    # payann is in both, so its noise counts with 1 - ratio, and the ratio is negative here.
    part = (pay - 3 * emp) / (pay + records)
    assert joint.ratio == pytest.approx(part, rel=1e-12)
    error = math.hypot(paid * (1 - part), 3 * summed, part * counted) / (pay + records)
    assert joint.most_sd[MIDDLE] == pytest.approx(error, rel=1e-9)
    assert {each.source for each in found.values()} == {"cells of 10, 100 and 1,000 usual records"}


def test_the_usual_record_is_from_examples_or_what_mechanisms_are_made_for_or_the_bound() -> None:
    measures = {"emp": 1, "payann": 1, "tons": rw.Measure.of("tons", step="0.1", bound=1000), "kwh": 5, "pay": 1}
    schema = Schema.of(unit="id", measures=measures, columns={})
    log = rw.LogTransform(offset=2000, sigma="0.5")
    query = rw.query().sum("emp", rw.UnitSplit(at=50, rho="0.1")).sum("payann", log).sum("tons", rw.Gaussian(sigma=1))
    query = query.quantile("pay", p="0.5", grid=rw.mechanisms.Grid.log(1, 10_000), rho="0.1").sum(
        "kwh", rw.Gaussian(sigma=1)
    )
    found = usual_sizes(Plan(schema=schema, queries=(query,)), {"a": {"emp": 4}, "b": {"emp": 9}, "c": {"emp": 4000}})
    assert found == pytest.approx({"emp": 6, "payann": 400, "tons": 10, "kwh": 50, "pay": 20})


def test_totals_are_those_of_public_sizes() -> None:
    frame = {"county": ["a", "b", "c"], "emp_2016": [100, 5_000, 90_000], "n": [10, 100, 0]}
    keys = rw.Keys.of(frame, size={"emp": "emp_2016", "count": "n"}, sized_on="public: county tables")
    noise = rw.Sized(rw.Gaussian(sigma="0.05"), floor=50)
    query = rw.query().group_by("county", keys=keys).count(noise).sum("emp", noise).avg("emp", sum=noise, count=noise)
    found = rows(query)
    assert found["sum_emp"].source == "public sizes"
    assert found["sum_emp"].totals == pytest.approx(np.rint(np.percentile([100, 5_000, 90_000], [10, 50, 90])))
    assert found["count"].totals == pytest.approx([19, 55, 91])
    assert found["avg_emp"].source == "public sizes"
    # Each cell has the noise of its own band: a twentieth of the power of two below its size.
    bands = 50 * 2.0 ** np.floor(np.log2(np.array([100, 5_000, 90_000]) / 50))
    assert found["sum_emp"].most_sd == found["sum_emp"].least_sd == pytest.approx(bands / 20, rel=1e-3)


def test_sizes_of_nothing_in_particular_are_those_of_what_they_scale() -> None:
    """Employees are no dollars: payroll has as many usual records as the sizes of employment stand for."""
    frame = {"county": ["a", "b", "c"], "size": [100, 5_000, 90_000]}
    keys = rw.Keys.of(frame, size="size", sized_on="public: county tables")
    noise = rw.Sized(rw.Gaussian(sigma="0.05"), floor=50)
    query = rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho=1)).sum("emp", noise)
    found = rows(query.sum("payann", rw.Gaussian(sigma=9)), examples=USUAL)
    sizes = np.percentile([100, 5_000, 90_000], [10, 50, 90])
    assert found["sum_emp"].totals == pytest.approx(np.rint(sizes))
    assert found["count"].totals == pytest.approx(np.rint(sizes / 100))
    assert found["sum_payann"].totals == pytest.approx(np.rint(2 * sizes))
    assert found["sum_payann"].source == "as many usual records as the public sizes stand for"
    assert found["sum_payann"].usual == pytest.approx({"payann": 200})
    assert found["sum_emp"].usual == {}


def test_totals_are_those_of_the_last_release(tmp_path: Path) -> None:
    keys = rw.Keys.of({"county": ["a", "b"]})
    query = rw.query().group_by("county", keys=keys).sum("emp", rw.Gaussian(sigma=1))
    table = {"id": [1, 2, 3], "county": ["a", "a", "b"], "emp": [400, 100, 9_000], "payann": [1, 1, 1]}
    with employers(table, "county", measures={"emp": 1, "payann": 1}) as session:
        last = session.run(query)
    values = np.asarray(last.table.column("sum_emp").to_numpy(), np.float64)
    found = rows(query, last=last)["sum_emp"]
    assert found.source == "the last release"
    assert found.totals == pytest.approx(np.rint(np.percentile(values, [10, 50, 90])))


def test_the_error_of_a_quantile_is_that_of_cells_with_so_many_records() -> None:
    """The same records in a session, released again and again: the root mean square error agrees within 4 standard errors."""
    grid = rw.mechanisms.Grid.log(1, 100_000, bits=7)
    keys = rw.Keys.of({"county": [f"{number:03d}" for number in range(300)]})
    query = rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho=1))
    query = query.quantile("emp", p="0.5", grid=grid, rho="0.05")
    found = rows(query, examples={"usual": {"emp": 100}})["median_emp"]
    assert "made-up records" in found.source
    assert found.totals[MIDDLE] == pytest.approx(100, rel=0.11)  # a grid has about 18 points for a factor of ten
    assert found.most_sd[0] > found.most_sd[MIDDLE] > found.most_sd[2] > 0
    from scipy.special import ndtri

    from recordwise.planning.simulate.generate import SKEW

    sizes = np.rint(100 * np.exp(SKEW * ndtri((np.arange(100) + 0.5) / 100))).astype(int)
    table = {
        "id": np.arange(30_000),
        "county": np.repeat([f"{number:03d}" for number in range(300)], 100),
        "emp": np.tile(sizes, 300),
        "payann": np.ones(30_000, int),
    }
    with employers(table, "county", measures={"emp": 1, "payann": 1}) as session:
        drawn = session.run(query, rng=rw.noise.Seeded(1)).table.column("median_emp").to_numpy()
    errors = (np.asarray(drawn) - found.totals[MIDDLE]) ** 2
    spread = 4 * errors.std() / math.sqrt(len(errors)) * math.sqrt(1 + 300 / 400)
    assert abs(errors.mean() - found.most_sd[MIDDLE] ** 2) < spread
