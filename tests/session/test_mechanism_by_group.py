"""A mechanism for each public group in one query: losses, cells, files and fits."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import build
import recordwise as rw
from divergences import ROUNDING
from recordwise.errors import ParameterError, PlanError
from recordwise.mechanisms.base import parameter_json
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.noise import Seeded
from recordwise.plan.file.write import plan_text
from session.test_plan_divergences import OTHERS, RECORD, keyed, levels, lost

SPLIT, FAT = rw.UnitSplit(at=10, rho="0.3"), rw.GeneralizedGaussian(shape=1, scale=12, lattice=1)
WIDE, LOG = rw.Gaussian(sigma=30), rw.LogTransform(offset=10, sigma="0.5")
GROUPS = rw.ByGroup("naics", {"111": SPLIT, "112": FAT}, default=WIDE)
SECTORS = rw.ByGroup("naics", {"11": SPLIT, "22": WIDE}, length=2)
CUT = rw.Clamped(to=20, rho="0.5")
CODES = rw.Keys.of({"naics": ["111", "112", "221"]})
PLANS = {
    "by the group": (keyed("naics").sum("emp", GROUPS), 1),
    "by the group and more": (keyed("county", "naics").sum("emp", GROUPS), 1),
    "cells of several groups": (keyed("county").sum("emp", GROUPS), 1),
    "one table of each kind": (
        rw.query().levels((), "naics", keys=CODES).sum("emp", GROUPS),
        2,
    ),
    "by a prefix": (keyed("naics").sum("emp", SECTORS), 1),
    "clamped alike": (
        keyed("naics").sum("emp", rw.ByGroup("naics", {"111": CUT, "112": CUT.at_share(Fraction(1, 4))}, default=CUT)),
        1,
    ),
    "a count": (
        keyed("naics").count(rw.ByGroup("naics", {"111": rw.Gaussian(rho="0.3"), "112": FAT}, default=WIDE)),
        1,
    ),
}


@pytest.mark.theorem("T-GROUPED")
@pytest.mark.parametrize("naics", ["111", "112", "221"])
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.costly
@pytest.mark.sampled
def test_a_record_loses_by_the_cells_it_moves_what_the_mechanism_of_its_group_costs(name, naics):
    asked, cells = PLANS[name]
    found, moved, allowed = lost(asked, record={**RECORD, "naics": naics})
    assert moved == cells
    assert 0.97 * allowed <= found <= allowed * ROUNDING


def losses(session, *queries, tight=True):
    records = {"emp": [0, 3, 40, 900] * 3, "naics": ["111"] * 4 + ["112"] * 4 + ["221"] * 4}
    records |= {"county": ["01"] * 12, "pay": [0] * 12, "firm": [1] * 12}
    return session.policy_of(*queries, tight=tight).loss(records)


@pytest.mark.theorem("T-GROUPED")
@pytest.mark.parametrize("tight", [True, False])
def test_one_query_costs_what_one_query_for_each_group_costs(tight):
    with build.session(pa.table(OTHERS)) as session:
        one = losses(
            session,
            keyed("naics").sum("emp", rw.ByGroup("naics", {"111": SPLIT, "112": LOG}, default=WIDE)),
            tight=tight,
        )
        start = keyed("naics")
        parts = [
            start.where("naics = '111'").sum("emp", SPLIT),
            start.where("naics = '112'").sum("emp", LOG),
            start.where("naics NOT IN ('111', '112')").sum("emp", WIDE),
        ]
        np.testing.assert_array_equal(one, losses(session, *parts, tight=tight))
        # Thresholds by group are a special case, example 5 of [S].
        at = rw.UnitSplit(at=rw.by("naics", {"111": 4, "112": 60}, default=20), rho="0.2")
        own = {"111": rw.UnitSplit(at=4, rho="0.2"), "112": rw.UnitSplit(at=60, rho="0.2")}
        split = rw.ByGroup("naics", own, default=rw.UnitSplit(at=20, rho="0.2"))
        both = [losses(session, keyed("naics").sum("emp", each), tight=tight) for each in (at, split)]
        np.testing.assert_array_equal(*both)


def test_every_cell_has_the_noise_of_its_group():
    rows = 900
    table = pa.table(
        {"id": np.arange(rows), "emp": np.full(rows, 7), "kind": np.arange(rows) % 3, "cell": np.arange(rows)}
    )
    keys = rw.Keys.of({"kind": np.arange(rows) % 3, "cell": np.arange(rows)})
    mixed = rw.ByGroup("kind", {0: rw.Gaussian(sigma=2), 1: LOG}, default=rw.Gaussian(sigma=40))
    asked = rw.query().group_by("kind", "cell", keys=keys).sum("emp", mixed)
    with build.employers(table) as session:
        release = session.run(asked, rng=Seeded(5))
    found = release.table.to_pandas()
    spread = (found["sum_emp"] - 7).groupby(found["kind"]).std()
    # False alarm below 1e-6: five standard errors of 300 draws are 20 %; a cell with another group's noise is off by far more.
    assert spread[0] == pytest.approx(2, rel=0.2)
    assert spread[2] == pytest.approx(40, rel=0.2)
    assert (found["sum_emp_noisy"].notna() == (found["kind"] == 1)).all()
    assert (found.loc[found["kind"] == 1, "sum_emp_sigma"] == 0.5).all()
    assert release.table["sum_emp_sigma"].null_count == 600


@pytest.mark.costly
def test_fits_and_records_take_the_noise_of_each_group(tmp_path):
    keys = rw.Keys.product(county=["01", "02"], naics=["111", "112", "221"])
    asked = rw.query().group_by("county", keys=keys).levels((), "naics").sum("emp", GROUPS)
    with build.session(pa.table(OTHERS)) as session:
        release = session.run(asked, rng=Seeded(5))
    fitted = release.consistent(complete=True)["county_by_naics"].to_pandas().set_index(["county", "naics"])
    # The mechanism of the default has by far the most noise, and its cell takes what the total says.
    alone = fitted.loc[("01", "221")]
    assert alone["sum_emp_best_sd"] < 0.9 * alone["sum_emp_sd"]
    assert fitted.loc[("01", "111")]["sum_emp_best_sd"] == pytest.approx(
        fitted.loc[("01", "111")]["sum_emp_sd"], rel=0.1
    )
    release.save(tmp_path / "out")
    again = rw.read(tmp_path / "out").records(whole=True, complete=True)
    assert again.data.equals(release.records(whole=True, complete=True).data)


@pytest.mark.theorem("T-GROUPED")
def test_groups_may_be_a_coarser_level_of_a_list_of_codes():
    codes = {"region": ["N", "N", "N", "S"], "state": ["01", "01", "02", "03"], "county": ["011", "012", "021", "031"]}
    place = rw.Hierarchy.of("place", codes, levels=["region", "state", "county"], source="public: made up")
    table = {"id": [1, 2, 3, 4], "emp": [5, 6, 7, 8], "county": codes["county"]}
    noise = rw.ByGroup(
        "state", {"01": rw.Gaussian(sigma=2), "02": rw.Gaussian(sigma=20)}, default=rw.Gaussian(sigma=200)
    )
    keys = rw.Keys.of({"county": codes["county"]})
    with build.employers(table, "county", hierarchies=[place]) as session:
        losses, spreads = {}, {}
        for level in ("county", "state", "region"):
            asked = rw.query().group_by(level, keys=keys).sum("emp", noise)
            release = session.run(asked, rng=Seeded(1))
            spreads[level] = [round(each) for each in release.table["sum_emp_sd"].to_pylist()]
            losses[level] = session.policy_of(asked).loss({"emp": [10] * 5, "county": [*codes["county"], "999"]})
    assert spreads == {"county": [2, 2, 20, 200], "state": [2, 20, 200], "region": [200, 200]}
    cost = {sigma: 100 / (2 * sigma**2) for sigma in (2, 20, 200)}
    np.testing.assert_allclose(losses["county"], [cost[2], cost[2], cost[20], cost[200], cost[200]], rtol=1e-9)
    np.testing.assert_allclose(losses["state"], losses["county"], rtol=1e-9)
    np.testing.assert_allclose(losses["region"], [cost[200]] * 5, rtol=1e-9)


def refused(asked, match, **more):
    with build.session(pa.table(OTHERS), **more) as session, pytest.raises(PlanError, match=match):
        session.run(asked, rng=Seeded(1))


def test_a_cell_without_a_mechanism_is_refused():
    some = rw.ByGroup("naics", {"111": SPLIT, "112": FAT})
    refused(keyed("county").sum("emp", some), "may hold several groups of 'naics', and 'sum_emp' has no default")
    refused(keyed("naics").sum("emp", some), "have no mechanism by 'naics'; give a default")
    refused(keyed("naics").sum("emp", rw.ByGroup("land", {"1": SPLIT})), "mechanisms differ by 'land'")
    three = rw.ByGroup("naics", {"111": SPLIT}, default=WIDE, length=3)
    refused(levels(all_other="publish").sum("emp", three), "differ inside the published rests")
    with build.session(pa.table(OTHERS)) as session:
        listed = rw.query().group_by("naics", keys=["111", "112"]).sum("emp", some)
        # A record of another group is in no cell, and loses nothing.
        assert losses(session, listed)[-4:].tolist() == [0.0] * 4
        one = rw.query().group_by("naics", keys=["111"]).sum("emp", rw.ByGroup("naics", {"111": SPLIT}))
        assert losses(session, one)[4:].tolist() == [0.0] * 8


def test_rests_whose_group_the_coarser_cell_tells_have_its_mechanism():
    sectors = rw.ByGroup("naics", {"11": rw.Gaussian(sigma=2), "22": rw.Gaussian(sigma=40)}, length=2)
    asked = rw.query().levels(
        rw.prefix("naics", [2, 3]), keys=rw.Keys.of({"naics": ["111", "221"]}), all_other="publish"
    )
    with build.session(pa.table(OTHERS)) as session:
        found = session.run(asked.sum("emp", sectors), rng=Seeded(1))["naics3"].to_pandas()
    assert found.set_index(["naics3", "all_other"])["sum_emp_sd"].round(1).to_dict() == {
        ("111", False): 2.8,
        ("221", False): 56.6,
        ("11", True): 2.8,
        ("22", True): 56.6,
    }


@pytest.mark.parametrize(
    "values, match",
    [
        ({}, "one mechanism"),
        ([("a", WIDE), ("a", SPLIT)], "one mechanism"),
        ({"a": rw.Clamped(to=5, rho=1), "b": rw.Clamped(to=6, rho=1)}, "clamped at one"),
        ({"a": rw.Clamped(to=5, rho=1), "b": WIDE}, "clamped at one"),
        ({"a": rw.Sized(rw.Gaussian(sigma="0.1"), floor=10)}, "bands are those of a whole table"),
        ({"a": GROUPS}, "second column"),
        ({"a": rw.UnitSplit(at=rw.by("x", {"y": 1}), rho=1)}, "second column"),
        ({"a": WIDE, "b": rw.LogTransform(offset=1, sigma=1, signed=True)}, "all signed or none"),
        ({"a": 5}, "must be mechanisms"),
    ],
)
def test_what_cannot_be_drawn_by_group_is_refused(values, match):
    with pytest.raises(ParameterError, match=match):
        rw.ByGroup("naics", values)


@pytest.mark.parametrize("firms", [False, True])
@pytest.mark.parametrize("first", [LOG, SPLIT, CUT], ids=["log", "split", "clamped"])
@pytest.mark.costly
def test_realized_losses_are_those_of_one_query_for_each_group(first, firms):
    other = CUT.at_share(Fraction(1, 4)) if first is CUT else rw.LogTransform(offset=10, sigma="0.1")
    default = CUT if first is CUT else WIDE
    start = rw.query().group_by("county", "naics", keys=build.keys())
    one = start.sum("emp", rw.ByGroup("naics", {"111": first, "112": other}, default=default))
    parts = [
        start.where("naics = '111'").sum("emp", first),
        start.where("naics = '112'").sum("emp", other),
        start.where("naics NOT IN ('111', '112')").sum("emp", default),
    ]
    with build.session(build.records()) as session:
        found, known = (
            session.owner.realized_loss_summary(*asked, firms=firms, data="synthetic") for asked in ([one], parts)
        )
        allowed = session.owner.firm_loss_summary(one, data="synthetic") if firms else None
    np.testing.assert_array_equal(found.counts, known.counts)
    if allowed is not None and first is LOG:
        assert found.quantile(0.9) < allowed.quantile(0.9)


SIZES = {"111": 50, "112": 5000, "221": 400}
GOAL = {"within": "0.2", "at_least": 1}


def grouped_records():
    """One establishment in each cell, of a size that its industry has."""
    rows = [(county, naics, size) for county in ("01", "02") for naics, size in SIZES.items()]
    county, naics, size = zip(*rows)
    pay, firm = [0] * len(rows), list(range(len(rows)))
    return pa.table({"id": firm, "firm": firm, "county": county, "naics": naics, "emp": size, "pay": pay})


def test_planning_sets_the_noise_of_each_group_by_its_own_cells():
    keys = rw.Keys.product(county=["01", "02"], naics=list(SIZES))
    asked = rw.query().group_by("county", "naics", keys=keys)
    groups = rw.ByGroup("naics", {"111": rw.Gaussian(sigma=1), "112": rw.Gaussian(sigma=1)}, default=LOG)
    families = {"groups": groups, "one": rw.Gaussian(sigma=1), "cut": rw.ByGroup("naics", {"111": CUT}, default=CUT)}
    with build.session(grouped_records()) as session:
        goal = rw.planning.Goal("emp", asked, **GOAL)
        found = rw.planning.recommend(session, goal, candidates=families, data="synthetic")
        (made,) = found["groups"].calibrated
        alone = rw.planning.recommend(session, goal, candidates={"one": rw.Gaussian(sigma=1)}, data="synthetic")["one"]
        with pytest.raises(ParameterError, match="clamping at 20 alone cuts off"):
            found["cut"]
    small, large = (each.noise_sigma for each in made.mechanism.inside()[:2])
    assert made.share_met == 1
    assert small == alone.calibrated[0].mechanism.noise_sigma
    assert large / small == pytest.approx(100, rel=0.05)  # the sizes differ by a hundred, and so may the noise
    assert 0 < made.mechanism.inside()[2].noise_scale < 0.2
    # The same goals, and no group pays for the smallest cells of another.
    assert found.best.name == "groups"
    assert found["groups"].losses.rho.maximum < 0.02 * found["one"].losses.rho.maximum


def test_planning_keeps_the_proportions_of_groups_where_levels_share_a_loss():
    keys = rw.Keys.product(county=["01", "02"], naics=list(SIZES))
    groups = rw.ByGroup("naics", {"111": rw.Gaussian(sigma=1)}, default=rw.Gaussian(sigma=5))
    asked = rw.query().group_by("naics", keys=keys).levels((), "county").sum("emp", groups)
    with build.session(grouped_records()) as session:
        goals = rw.planning.plan_goals(session, asked, **GOAL)
        found = rw.planning.recommend(session, goals, plan=asked, candidates={"groups": groups}, data="synthetic")
        for each in found["groups"].calibrated:
            assert each.share_met == 1
            small, large = (one.noise_sigma for one in each.mechanism.inside())
            assert large / small > 2  # in every level, as in the first table


def test_files_hold_the_mechanism_of_each_group(tmp_path):
    numbers = rw.ByGroup("kind", {3: WIDE, 4: SPLIT}, default=FAT)
    for each in (GROUPS, SECTORS, numbers):
        assert mechanism_from_json(parameter_json(each)) == each
    columns = {"naics": "text", "kind": "integer", "flag": "boolean"}
    one = pa.table({"id": [1], "emp": [1], "naics": ["1"], "kind": [1], "flag": [True]})
    flags = rw.ByGroup("flag", {True: WIDE, False: SPLIT})
    for column, each in (("naics", SECTORS), ("kind", numbers), ("flag", flags)):
        keys = {"naics": ["111", "221"], "kind": [3, 4], "flag": [True, False]}[column]
        asked = rw.query().group_by(column, keys=keys).sum("emp", each)
        with build.employers(one, columns=columns, tuned_on="public") as session:
            made = plan_text([asked], session.schema, dataset="d", source="t.csv", ledger="l", tuned_on="synthetic")
        (tmp_path / "plan.toml").write_text(made.text)
        read = rw.load_plan(tmp_path / "plan.toml").plan.queries[0]
        assert read.statistics[0].mechanism == each
