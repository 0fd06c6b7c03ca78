"""Which plans may publish rests, and what they say about them."""

import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from plan.whole_plan import changed
from recordwise.errors import ParameterError, PlanError, PlanFileError
from recordwise.noise import Seeded
from recordwise.plan import Schema
from recordwise.plan.cost import firm_policy, plan_policy
from recordwise.plan.file.write import query_form
from recordwise.plan.plan import Plan
from recordwise.policy.columns import ConditionColumn

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text", "naics": "text"}, firm="firm")
KEYS = rw.Keys.of({"county": ["01", "01", "02"], "naics": ["311", "312", "445"]})
TABLE = pa.table(
    {
        "id": [1, 2, 3, 4],
        "emp": [5, 6, 7, 8],
        "county": ["01", "01", "02", "02"],
        "naics": ["311", "319", "445", "446"],
        "firm": ["f", "f", "g", "g"],
    }
)


def asked(**more):
    return rw.query().group_by("county").levels(rw.prefix("naics", [2, 3]), keys=KEYS, **more)


def plan_of(*queries):
    return Plan(schema=SCHEMA, queries=queries)


def test_only_publish_is_a_rest():
    with pytest.raises(ParameterError, match="must be 'publish' or left out"):
        asked(all_other="hide")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (rw.query().group_by("county", keys=KEYS).levels("naics", all_other="publish"), "needs at least two levels"),
        (
            rw.query().levels("county", "naics", keys=[KEYS], all_other="publish"),
            "of county and naics neither refines the other",
        ),
        (
            rw.query()
            .group_by("county")
            .levels(rw.prefix("naics", [2, 3]), keys=rw.Keys.select(rho=1, delta="1e-6"), all_other="publish"),
            "needs public keys",
        ),
        (
            rw.query()
            .group_by(rw.prefix("county", 1))
            .levels(rw.prefix("naics", [1, 2]), rw.prefix("county", 2), keys=KEYS, all_other="publish"),
            "neither refines the other",
        ),
    ],
)
def test_a_rest_without_one_coarser_cell_is_refused(query, told):
    with pytest.raises(PlanError, match=told):
        plan_of(query.count(rw.Gaussian(rho=1)))


@pytest.mark.theorem("T-REST")
def test_thresholds_that_differ_inside_a_rest_are_refused():
    by_three = rw.by(ConditionColumn("naics", 3), {"311": 10, "445": 90}, 50)
    with pytest.raises(PlanError, match="differ inside the published rests of county x naics2"):
        plan_policy(plan_of(asked(all_other="publish").sum("emp", rw.UnitSplit(at=by_three, rho="0.1"))))
    plan_policy(plan_of(asked().sum("emp", rw.UnitSplit(at=by_three, rho="0.1"))))
    by_two = rw.by(ConditionColumn("naics", 2), {"31": 10, "44": 90}, 50)
    plan_policy(plan_of(asked(all_other="publish").sum("emp", rw.UnitSplit(at=by_two, rho="0.1"))))


def test_a_record_is_charged_the_same_with_and_without_rests():
    noise = rw.UnitSplit(at=50, rho="0.1")
    assert plan_policy(plan_of(asked(all_other="publish").sum("emp", noise))) == plan_policy(
        plan_of(asked().sum("emp", noise))
    )


@pytest.mark.theorem("T-REST")
def test_units_of_a_firm_in_one_rest_are_charged_together():
    """Two units of 100 with different unlisted codes of one sector shift the rest by 200."""
    noise = rw.Gaussian(sigma=100)
    firms = firm_policy(plan_of(asked(all_other="publish").sum("emp", noise)))
    units = {"emp": [100, 100], "county": ["01", "01"], "naics": ["313", "314"]}
    # Both tables have half of the loss, so twice the variance; a shift of 200 in each.
    assert firms.loss(units).rho >= 2 * 200**2 / (2 * 2 * 100**2)
    apart = firm_policy(plan_of(asked().sum("emp", noise)))
    assert apart.loss(units).rho < firms.loss(units).rho


def test_the_column_that_marks_rests_is_reserved():
    with pytest.raises(PlanError, match="all_other"):
        plan_of(asked(all_other="publish").count(rw.Gaussian(rho=1), alias="all_other"))
    plan_of(asked().count(rw.Gaussian(rho=1), alias="all_other"))


def test_a_release_describes_its_rests_and_a_fit_of_its_levels_uses_them():
    noise = rw.Gaussian(sigma=3)
    with employers(TABLE, firm="firm", max_outside="accept") as session:
        release = session.run(asked(all_other="publish").sum("emp", noise, alias="emp"), rng=Seeded(1))
    coarse, fine = release.to_json()["plan"][0]["tables"]
    assert "rest" not in coarse
    assert fine["rest"] == coarse["name"] == "county_by_naics2"
    assert release["county_by_naics3"].select(["county", "naics3", "all_other"]).to_pylist() == [
        {"county": "01", "naics3": "311", "all_other": False},
        {"county": "01", "naics3": "312", "all_other": False},
        {"county": "02", "naics3": "445", "all_other": False},
        {"county": "01", "naics3": "31", "all_other": True},
        {"county": "02", "naics3": "44", "all_other": True},
    ]
    fitted = release.consistent(method="ols")
    below, above = (
        fitted["county_by_naics3"]["emp_best"].to_pylist(),
        fitted["county_by_naics2"]["emp_best"].to_pylist(),
    )
    assert above == pytest.approx([below[0] + below[1] + below[3], below[2] + below[4]])
    sd = fitted["county_by_naics2"]["emp_best_sd"].to_pylist()
    variance = release["county_by_naics2"]["emp_sd"][0].as_py() ** 2
    assert [each**2 for each in sd] == pytest.approx([variance * 3 / 4, variance * 2 / 3])


def test_a_plan_file_says_it_in_one_word_and_writes_it_again(load):
    listed = 'group_by = ["county", { prefix = "naics", length = 3 }]\nkeys = "areas"\ncount = "small"'
    levels = 'group_by = ["county"]\nlevels = { by = [{ prefix = "naics", lengths = [2, 3] }] }\nkeys = "areas"\ncount = "small"'
    found = load(changed(listed, levels + '\nall_other = "publish"'))
    (query, _) = found.plan.queries
    assert load(changed(listed, levels + '\nrest = "publish"')).plan == found.plan
    with pytest.raises(PlanFileError, match="rest: is the old name of all_other, which is also given"):
        load(changed(listed, levels + '\nrest = "publish"\nall_other = "publish"'))
    assert query.all_other == "publish"
    assert [query.rest_of(level) for level in query.tables()] == [None, query.tables()[0]]
    assert query_form(query, "areas")["all_other"] == "publish"
    assert load(changed(listed, levels)).plan.queries[0].all_other is None
    with pytest.raises(PlanFileError, match="'publish'"):
        load(changed(listed, levels + '\nall_other = "publsh"'))
