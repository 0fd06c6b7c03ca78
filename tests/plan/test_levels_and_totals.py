"""Levels with a total, levels of one code, lists of queries, and names of candidates that do not exist."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import ParameterError, PlanError
from recordwise.noise import Seeded
from recordwise.plan.file.write import plan_text

NOISE = rw.Gaussian(sigma="1/1000")
KEYS = rw.Keys.product(race=["a", "b"], origin=["x", "y", "z"])


def opened(**more):
    table = {"id": [1, 2, 3, 4], "race": list("aabb"), "origin": list("xyyz"), "emp": [1, 2, 3, 4]}
    return employers(table, "race", "origin", **more)


def four_tables():
    return rw.query().levels((), "race", keys=KEYS).levels((), "origin").count(NOISE)


@pytest.mark.costly
def test_an_empty_level_is_the_total_of_its_axis():
    with opened() as session:
        release = session.run(four_tables(), rng=Seeded(1))
    assert [table.name for table in release.tables] == ["total", "origin", "race", "race_by_origin"]
    assert release["total"]["count"].to_pylist() == [4]
    assert release["race_by_origin"]["count"].to_pylist() == [1, 1, 0, 0, 1, 1]
    assert [level.share for level in four_tables().tables()] == [Fraction(1, 4)] * 4


def test_a_total_with_a_rest_is_complete():
    asked = rw.query().levels((), "race", keys=["a"], all_other="publish").count(NOISE)
    with opened() as session:
        assert session.run(asked, rng=Seeded(1))["race"]["count"].to_pylist() == [2, 2]


def test_a_plan_file_holds_the_total(tmp_path):
    with opened() as session:
        text = plan_text(
            [four_tables()], session.schema, dataset="d", source="t.csv", ledger="l", tuned_on="synthetic"
        ).text
    (tmp_path / "plan.toml").write_text(text)
    read = rw.load_plan(tmp_path / "plan.toml").plan.queries[0]
    assert read.axes == four_tables().axes


@pytest.mark.parametrize("wrong", [None, 3, [None], object()])
def test_what_is_no_level_is_refused(wrong):
    with pytest.raises(ParameterError, match="must be columns"):
        rw.query().levels(wrong)
    with pytest.raises(ParameterError, match="must be columns"):
        rw.query().group_by(wrong)


@pytest.mark.parametrize(
    ("choices", "named"),
    [
        (("race", ("race", "origin")), "'race'"),
        (((), "race", ()), "the total"),
        (("origin", "race", "origin"), "'origin'"),
    ],
)
def test_a_level_that_is_listed_twice_is_refused_with_the_way_to_cross_two_columns(choices, named):
    with pytest.raises(ParameterError, match=f"list {named} twice.*charged twice") as refused:
        rw.query().levels(*choices)
    assert "group_by('county').levels((), 'naics')" in str(refused.value)


def test_a_level_that_every_table_is_grouped_by_is_refused_and_a_total_is_not():
    grouped = rw.query().group_by("race", keys=KEYS)
    with pytest.raises(ParameterError, match=r"list 'race', which every table is grouped by already.*leave it out"):
        grouped.levels((), "race")
    crossed = grouped.levels((), "origin").count(NOISE)
    assert [level.names() for level in crossed.tables()] == [("race",), ("race", "origin")]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("filter", "where"),
        ("mean", "avg"),
        ("nunique", "count_distinct"),
        ("groupby", "group_by"),
        ("count_distnct", "count_distinct"),
    ],
)
def test_a_method_by_another_librarys_name_is_refused_with_ours(written, meant):
    with pytest.raises(AttributeError, match=rf"a query has no '{written}': did you mean '{meant}'\?"):
        getattr(rw.query(), written)


def test_what_no_method_is_near_to_and_what_notebooks_look_for_is_missing_without_a_guess():
    with pytest.raises(AttributeError, match=r"a query has no 'zzz'$"):
        rw.query().zzz  # noqa: B018
    assert not hasattr(rw.query(), "_ipython_display_")
    assert copy.deepcopy(four_tables()) == pickle.loads(pickle.dumps(four_tables())) == four_tables()


def test_a_question_in_a_refused_plan_ends_without_a_full_stop():
    with opened() as session, pytest.raises(PlanError, match=r"did you mean 'emp'\? Nothing was read"):
        session.run(rw.query().sum("empl", NOISE))


def test_a_list_of_levels_and_a_list_of_queries_are_taken():
    assert rw.query().levels(["race", "origin"]) == rw.query().levels("race", "origin")
    one, two = (rw.query().group_by(name, keys=KEYS).count(NOISE) for name in ("race", "origin"))
    with opened() as session:
        assert session.policy_of([one, two]) == session.policy_of(one, two)
        assert len(session.run([one, two], rng=Seeded(1)).tables) == 2
        with pytest.raises(ParameterError, match="must be queries"):
            session.run("count")


def test_levels_of_one_code_are_not_crossed_without_a_word():
    start = rw.query().levels(rw.prefix("race", 1))
    with pytest.raises(ParameterError, match="levels of one code"):
        start.levels("race")
    crossed = rw.query().group_by(*rw.prefix("race", [1, 2]), keys={"race1": ["a"], "race2": ["a"]}).count(NOISE)
    with opened() as session:
        assert "race1 x race2, prefixes of 'race'" in session.warnings_of(crossed)[0]
        assert session.warnings_of(four_tables()) == ()


@pytest.mark.costly
def test_the_average_of_two_exact_answers_has_a_point_for_an_interval():
    asked = rw.query().group_by("race", keys=KEYS).count(NOISE).avg("emp", sum=NOISE)
    with opened() as session:
        found = session.run(asked, rng=Seeded(1)).table
    assert found["avg_emp"].to_pylist() == found["avg_emp_low"].to_pylist() == found["avg_emp_high"].to_pylist()
    assert found["avg_emp"].to_pylist() == [1.5, 3.5]
    noisy = rw.query().group_by("race", keys=KEYS).count(NOISE).avg("emp", sum=rw.Gaussian(sigma=1))
    with opened() as session:
        found = session.run(noisy, rng=Seeded(1)).table
    assert np.all(found["avg_emp_low"].to_numpy() < found["avg_emp_high"].to_numpy())


def test_a_candidate_that_cannot_meet_the_goals_is_refused_by_name():
    from recordwise.planning.result import candidate_named as named

    class One:
        name = "split"

    assert named([One()], "split").name == "split"
    with pytest.raises(ParameterError, match="cannot meet the goals: too little"):
        named([One()], "log", {"log": "too little"})
    with pytest.raises(ParameterError, match="Candidates are 'split'"):
        named([One()], "lag")
