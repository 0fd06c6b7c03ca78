"""No table has a column twice: the whole set of published names is checked in the plan."""

import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import PlanError
from recordwise.mechanisms.quantile import Grid
from recordwise.noise import Seeded
from recordwise.plan import Keys, Plan, Schema
from recordwise.plan.plan import ENDINGS, published_names
from recordwise.plan.query import query

ONE = rw.Gaussian(rho=1)
COLUMNS = {"county": "text", **{f"count{ending}": "text" for ending in ENDINGS}, "rows_selected_on_sd": "text"}
SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns=COLUMNS)


def refused(asked, problem):
    with pytest.raises(PlanError, match=problem):
        Plan(schema=SCHEMA, queries=(asked,))


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_a_key_or_alias_like_a_column_beside_a_variable_is_refused(ending):
    name = f"count{ending}"
    refused(query().group_by(name, keys=["a"]).count(ONE), f"'{name}' would be published twice")
    refused(query().count(ONE).sum("emp", ONE, alias=name), f"'{name}' would be published twice")
    refused(query().count(ONE).sum("emp", ONE, alias=name.upper()), "would be published twice")


def test_the_count_that_selected_keys_has_columns_too():
    keys = Keys.select(rho=1, delta="0.001")
    refused(query().group_by("rows_selected_on_sd", keys=keys).count(ONE), "would be published twice")
    refused(query().group_by("county", keys=keys).count(ONE, alias="rows_selected_on"), "used twice")


def test_the_parts_of_an_average_are_published_and_have_columns_too():
    mean = query().avg("emp", sum=rw.UnitSplit(at=5, rho=1), count=ONE, alias="mean")
    refused(mean.sum("emp", ONE, alias="mean_count_low"), "'mean_count_low' would be published twice")


def test_each_clash_is_told_once():
    with pytest.raises(PlanError) as told:
        Plan(schema=SCHEMA, queries=(query().count(ONE).count(ONE),))
    assert told.value.problems == ("the name 'count' is used twice in one table",)


@pytest.mark.costly
def test_the_names_of_the_plan_hold_all_that_is_published_and_fitted():
    """Every kind of variable there is; a new ending that the plan does not know fails here."""
    table = pa.table({"id": range(40), "emp": range(40), "county": ["a", "b"] * 20})
    asked = query().count(ONE).sum("emp", rw.LogTransform(offset=10, sigma="0.5")).avg("emp", sum=rw.Gaussian(sigma=3))
    asked = asked.quantile("emp", p="0.5", grid=Grid.linear(0, 60, bits=3), rho=1)
    public = asked.group_by("county", keys=["a", "b"])
    selected = asked.group_by("county", keys=Keys.select(rho=1, delta="0.01"))
    with employers(table, "county") as session:
        releases = [session.run(each, rng=Seeded(1)) for each in (public, selected)]
    for each, found in zip((public, selected), [releases[0].consistent(), releases[1]]):
        (table,), (level,) = found.tables, each.tables()
        names = [name for name, _ in published_names(level, each)]
        assert len(set(names)) == len(names)
        assert set(table.data.column_names) <= set(names)
