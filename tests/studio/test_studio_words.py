"""Goals in words: what the page says is what the plan says."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.plan.file.read import PlanFile
from recordwise.planning import Goal
from recordwise.studio.words import Vocabulary, read_goal, write_goal
from studio.small_plan import write_plan


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> PlanFile:
    return rw.load_plan(write_plan(tmp_path_factory.mktemp("words")))


@pytest.fixture(scope="module")
def words(file: PlanFile) -> Vocabulary:
    return Vocabulary.of(file)


def test_tables_and_statistics_are_called_as_readers_call_them(words: Vocabulary) -> None:
    assert list(words.tables) == ["state", "state by industry", "county", "county by industry", "state of query 2"]
    assert list(words.statistics[0]) == ["establishments", "employees", "thousand dollars of annual payroll"]


def test_a_sentence_is_a_goal(file: PlanFile, words: Vocabulary) -> None:
    goal = read_goal("county cells of 100 employees within 9%", words)
    assert (goal.measure, goal.statistic, goal.within, goal.at_least) == ("emp", "sum_emp", Fraction(9, 100), 100)
    assert (goal.confidence, goal.share, goal.levels) == (0.95, 1, (words.tables["county"][1],))
    assert goal.query == Goal("emp", file.plan.queries[0], within=1).query
    assert write_goal(goal, words) == "county cells of 100 employees within 9%"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("County  cells of 100 EMPLOYEES within 9 %", "county cells of 100 employees within 9%"),
        ("state cells of establishments within 1.5%", None),
        ("county by industry cells of 4,000 thousand dollars of annual payroll within 12% with 90% confidence", None),
        ("state of query 2 cells of 10 establishments within 100/3% in 99.5% of them", None),
        ("county cells of 100 employees with at least 5 establishments within 9% with 99% confidence in 90% of them", None),
    ],
)  # fmt: skip
def test_sentences_are_written_as_they_are_read(words: Vocabulary, said: str, written: str | None) -> None:
    assert write_goal(read_goal(said, words), words) == (written or said)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "town cells of 100 employees within 9%",
        "county cells of 100 cows within 9%",
        "county cells of 100 employees within",
        "county cells of 100 employees within 9",
        "county cells of 100 employees within 9% or so",
        "county cells of 100 employees within 0%",
        "county cells of 100 employees within 9% with 100% confidence",
        "county cells of 1/0 employees within 9%",
        "countycells of 100 employees within 9%",
    ],
)
def test_what_is_no_goal_is_refused(words: Vocabulary, wrong: str) -> None:
    with pytest.raises(ParameterError):
        read_goal(wrong, words)


PERCENT = st.fractions(min_value="0.01", max_value=500, max_denominator=1000)
LEAST = st.fractions(min_value=0, max_value=10**9, max_denominator=100)


@settings(max_examples=80, deadline=None)
@given(
    place=st.sampled_from([(0, level) for level in range(4)] + [(1, 0)]),
    number=st.integers(0, 2),
    within=PERCENT,
    at_least=LEAST,
    other=LEAST,
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]),
    share=st.fractions(min_value="0.01", max_value=1, max_denominator=1000),
)
@pytest.mark.costly
def test_every_goal_is_read_as_it_is_written(
    file: PlanFile,
    words: Vocabulary,
    place: tuple[int, int],
    number: int,
    within: Fraction,
    at_least: Fraction,
    other: Fraction,
    confidence: float,
    share: Fraction,
) -> None:
    known = list(words.statistics[place[0]].values())
    statistic = known[number % len(known)]
    least = {str(statistic.planned_as): at_least} | ({"count": other} if place[0] == 0 else {})
    goal = Goal(
        str(statistic.planned_as),
        file.plan.queries[place[0]],
        within=within / 100,
        confidence=confidence,
        share=share,
        at_least=least,
        statistic=statistic.alias,
        levels=[place[1]],
    )
    again = read_goal(write_goal(goal, words), words)
    for name in ("measure", "query", "within", "confidence", "share", "at_least", "statistic", "levels"):
        assert getattr(again, name) == getattr(goal, name)
    assert dict(again.others_at_least) == dict(goal.others_at_least)


def test_a_goal_about_several_tables_has_no_sentence(file: PlanFile, words: Vocabulary, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="several"):
        write_goal(Goal("emp", file.plan.queries[0], within="0.1"), words)
