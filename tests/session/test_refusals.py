"""A refusal by the budget names the record, what needs most and what would fit."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

import recordwise as rw
from build import records, session
from recordwise.errors import BudgetError, ParameterError
from recordwise.policy import constant, split

AREAS = rw.Keys.of({"county": ["01", "02", "03"]})


def asked(rho: str, name: str) -> Any:
    return rw.query().named(name).group_by("county", keys=AREAS).sum("emp", rw.UnitSplit(at=20, rho=rho))


def refusal(opened: rw.Session, *queries: Any) -> BudgetError:
    with pytest.raises(BudgetError) as refused:
        opened.run(*queries)
    return refused.value


@pytest.mark.costly
def test_more_noise_and_fewer_queries_that_are_advised_do_fit(tmp_path: Path) -> None:
    budget = split("0.5", {"emp": 20})
    with session(records(), tmp_path / "l", budget) as opened:
        error = refusal(opened, asked("0.4", "small"), asked("0.6", "large"))
        assert "Most of it is sum_emp in table large, 0.338" in error.summary
        assert "- the plan without query large" in error.ways
        assert any(line.startswith("- all noise 1.41 times as large, at 0.5 of the loss") for line in error.ways)
        lines = [line.strip() for line in error.ways if line.startswith("    sum")]
        rhos = [str(tomllib.loads(line)["sum"]["emp"]["rho"]) for line in lines]
        assert rhos == ["0.2", "0.3"]
        opened.run(*(asked(rho, name) for rho, name in zip(rhos, ("small", "large"))))
        spent = refusal(opened, asked("0.1", "more"))
        assert len(spent.ways) == 2
        assert "recordwise ledger amend PLAN --reason" in spent.ways[-1]


def test_of_one_query_a_statistic_is_dropped(tmp_path: Path) -> None:
    both = asked("0.5", "q").count(rw.Gaussian(rho="0.2"))
    with session(records(), tmp_path / "l", constant("0.1") + split("0.5", {"emp": 20})) as opened:
        error = refusal(opened, both)
        assert "- the plan without count" in error.ways
        assert "a larger [[budget]] in the plan" in error.ways[-1]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("county = '01'", "county=(any that is not listed)"),
        ("left(naics, 1) = '1'", "naics="),
    ],
)
def test_the_record_is_told_in_words(tmp_path: Path, where: str, words: str) -> None:
    """The budget is there for some records only, so the others need more than is left."""
    listed = rw.query().where(where).count(rw.Gaussian(rho="0.2"), alias="n")
    with session(records(), tmp_path / "l") as opened:
        budget = opened.policy_of(listed)
    with session(records(), tmp_path / "m", budget) as opened:
        error = refusal(opened, rw.query().count(rw.Gaussian(rho="0.1"), alias="n"))
        assert words in error.record
        assert "\u2022" not in str(error)


@pytest.mark.costly
def test_recommend_names_what_has_no_goal(tmp_path: Path) -> None:
    query = asked("0.5", "q").count(rw.Gaussian(rho="0.2"), alias="n")
    with session(records(), tmp_path / "l", constant("0.1")) as opened:
        goal = rw.planning.Goal("emp", query, within="0.5")
        with pytest.raises(ParameterError, match=r"What has no goal keeps its noise: n in q.*0.2.*0.1 is left"):
            rw.planning.recommend(opened, goal, plan=query, data="synthetic")


def test_missing_keys_name_what_the_list_has() -> None:
    with (
        session(records()) as opened,
        pytest.raises(rw.errors.PlanError, match="no public keys for naics: the list has county"),
    ):
        opened.run(rw.query().group_by("naics", keys=AREAS).count(rw.Gaussian(rho=1)))
