"""docs/architecture.md, "A statistic": one file and one line of the registry, and it works in a session and in a plan file."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from plan.own_statistic import CountPositive
from recordwise.plan.cost import plan_policy
from recordwise.plan.describe import release_identity
from recordwise.plan.file import queries
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import KINDS

TABLE = pa.table({"id": range(6), "county": list("aaabbb"), "emp": [0, 3, 900, 0, 0, 7]})
KEYS = rw.Keys.of({"county": ["a", "b", "c"]})

PLAN = """
dataset = "small"
source = "small.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"
[schema]
unit = "id"
measures = { emp = {} }
columns = { county = "text" }
[[queries]]
group_by = ["county"]
keys = { product = { county = ["a", "b"] } }
count_positive.emp = { kind = "Gaussian", rho = 1000 }
"""


@pytest.fixture
def session():
    with employers(TABLE, "county") as opened:
        yield opened


@pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
def test_a_statistic_of_ones_own_is_costed_drawn_and_published(session):
    asked = rw.query().group_by("county", keys=KEYS).ask(CountPositive(measure="emp", mechanism=rw.Gaussian(rho=1000)))
    assert session.policy_of(asked) == session.policy_of(
        rw.query().group_by("county", keys=KEYS).count(rw.Gaussian(rho=1000))
    )
    table = session.run(asked).tables[0]
    assert table.variables == ("positive_emp",)
    assert table.data.column("positive_emp").to_pylist() == [2, 1, 0]


def test_it_is_refused_where_it_does_not_fit(session):
    asked = rw.query().ask(CountPositive(measure="pay", mechanism=rw.Gaussian(rho=1)))
    with pytest.raises(rw.errors.PlanError, match="'pay' is not a measure"):
        session.policy_of(asked)


def test_a_plan_file_reads_it_once_it_is_registered(tmp_path, monkeypatch):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    with pytest.raises(rw.errors.PlanFileError):
        rw.load_plan(file)
    monkeypatch.setattr(queries, "KINDS", (*KINDS, CountPositive))
    (statistic,) = rw.load_plan(file).plan.queries[0].statistics
    assert statistic == CountPositive(measure="emp", mechanism=rw.Gaussian(rho=1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountFrom(CountPositive):
    """One with a field of its own, of which its author tells nobody."""

    least: int = 1


def test_two_releases_that_differ_in_a_field_of_ones_own_are_not_taken_for_the_same():
    schema = Schema.of(unit="id", measures={"emp": 1})

    def digest(**given):
        asked = rw.query().ask(CountFrom(mechanism=rw.Gaussian(rho=1), **given))
        plan = Plan(schema=schema, queries=(asked,))
        return release_identity(plan, [], plan_policy(plan), None).digest

    assert digest(measure="emp", least=5) != digest(measure="emp", least=6)
    assert digest(measure="emp", least=5, alias="large") == digest(measure="emp", least=5)
