"""Selected keys, averages and quantiles in a plan file are those of the builder; mistakes are told with their lines."""

from fractions import Fraction

import pytest

import recordwise as rw
from recordwise.errors import PlanFileError
from recordwise.mechanisms import Gaussian, UnitSplit
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.plan import Keys, SumAndCount, parse_sql
from recordwise.plan.file import load_plan
from recordwise.plan.keys.keys import Selection
from recordwise.plan.query import query

HEAD = """
dataset = "records"
source = "records.parquet"
ledger = "books.ledger"
tuned_on = "synthetic"

[schema]
unit = "id"
measures.emp = 1
measures.pay = 1
columns.county = "text"

[mechanisms]
counts = { kind = "Gaussian", rho = 0.05 }
split = { kind = "UnitSplit", at = 50, rho = 0.1 }
"""
COUNTS, SPLIT = Gaussian(rho="0.05"), UnitSplit(at=50, rho="0.1")
GRID = Grid.log(1, 10**9, bits=8)


def written(tmp_path, text):
    path = tmp_path / "plan.toml"
    path.write_text(HEAD + text)
    return load_plan(path)


def test_selected_keys_averages_and_quantiles_read_as_the_builder_s(tmp_path):
    file = written(
        tmp_path,
        """
[[queries]]
group_by = ["county"]
keys = { select = { rho = 0.1, delta = 1e-6, pieces = { emp = 50 } } }
count = "counts"
avg.emp = [{ sum = "split" }, { sum = "split", count = { kind = "Gaussian", rho = 1 }, as = "mean" }]
quantile.pay = { p = 0.5, grid = { log = [1, 1e9], bits = 8 }, rho = 0.2 }
""",
    )
    keys = Keys.select(rho="0.1", delta="1e-6", pieces={"emp": 50})
    wanted = query().group_by("county", keys=keys).count(COUNTS).avg("emp", sum=SPLIT)
    wanted = wanted.avg("emp", sum=SPLIT, count=Gaussian(rho=1), alias="mean")
    assert file.plan.queries == (wanted.quantile("pay", p="0.5", grid=GRID, rho="0.2"),)


def test_a_selection_from_a_domain_and_sql_read_as_the_builder_s(tmp_path):
    file = written(
        tmp_path,
        """
[[queries]]
sql = "SELECT county, AVG(emp) AS mean, MEDIAN(pay) FROM t GROUP BY county"
keys = { select_from = { product = { county = ["A", "B"] }, rho = 0.1, threshold = 4 } }
mechanisms = { mean = { sum = "split", count = "counts" }, pay = { grid = { log = [1, 1e9], bits = 8 }, rho = 0.2 } }
""",
    )
    (read,) = file.plan.queries
    (keys,) = read.key_lists
    assert keys.selection == Selection(rho=Fraction(1, 10), threshold=4)
    wanted = parse_sql(
        "SELECT county, AVG(emp) AS mean, MEDIAN(pay) FROM t GROUP BY county",
        mechanisms={"mean": SumAndCount(sum=SPLIT, count=COUNTS), "pay": TreeQuantile(grid=GRID, rho="0.2")},
    )
    assert read.statistics == wanted.statistics
    assert rw.Policy.from_json(read.selection_of(read.tables()[0]).policy(file.plan.schema).to_json()).delta({}) == 0


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("keys = { select = { rho = 0.1 } }", "'delta' is missing"),
        ("keys = { select = { rho = 0.1, delta = 2 } }", "between 0 and 1"),
        ("keys = { select = { rho = 0.1, delta = 1e-6, pieces = { pax = 5 } } }", "not a measure"),
        ("keys = { select_from = { rho = 0.1, threshold = 3 } }", "one of product, rows or file"),
        ("keys = { select_from = { product = { county = ['A'] }, rho = 0.1 } }", "'threshold' is missing"),
        ("keys = { select_from = { product = { county = ['A'] }, rho = 0.1, threshold = 0.5 } }", "whole number"),
        ("keys = { rows = { county = ['A'] } }\\navg.emp = { count = 'counts' }", "'sum' is missing"),
        ("keys = { rows = { county = ['A'] } }\\nquantile.pay = { p = 0.5, rho = 1 }", "'grid' is missing"),
        (
            "keys = { rows = { county = ['A'] } }\\nquantile.pay = { p = 0.5, rho = 1, grid = { log = [1] } }",
            "two ends",
        ),
        (
            "keys = { rows = { county = ['A'] } }\\nquantile.pay = { p = 2, rho = 1, grid = { log = [1, 9] } }",
            "between 0 and 1",
        ),
    ],
)
def test_mistakes_are_told(tmp_path, entry, problem):
    with pytest.raises(PlanFileError, match=problem):
        written(
            tmp_path, "\n[[queries]]\ngroup_by = ['county']\ncount = 'counts'\n" + entry.replace("\\n", "\n") + "\n"
        )
