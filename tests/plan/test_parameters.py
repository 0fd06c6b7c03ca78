"""Plans with parameters: values are put in their places before anything is checked; those from the environment stay hidden."""

import pytest

import recordwise as rw
from recordwise.errors import ParameterError, PlanFileError, SourceError

PLAN = """\
dataset = "establishments ${year}"
source = "estabs_${year}.csv"
ledger = "small.ledger"
tuned_on = "synthetic"
max_outside = "accept"

[schema]
unit = "id"
measures.emp = 1
columns.naics = "text"

[keys.sectors]
rows = { sector = ["44", "72"] }

[[queries]]
group_by = [{ prefix = "naics", length = "${digits}", as = "sector" }]
keys = "sectors"
sum.emp = { kind = "UnitSplit", at = "${at}", rho = "1/2" }
"""
VALUES = {"year": 2026, "digits": 2, "at": "50"}


@pytest.fixture
def plan(tmp_path):
    def written(text=PLAN):
        path = tmp_path / "plan.toml"
        path.write_text(text)
        return path

    return written


def problems(path, **values):
    with pytest.raises(PlanFileError) as refused:
        rw.load_plan(path, parameters=values)
    return [str(problem) for problem in refused.value.problems]


def test_a_plan_with_parameters_equals_the_plan_with_the_values_written_in_it(plan, tmp_path) -> None:
    read = rw.load_plan(plan(), parameters=VALUES)
    text = PLAN.replace("${year}", "2026").replace('"${digits}"', "2").replace('"${at}"', "50")
    written = rw.load_plan(plan(text))
    assert read.plan.queries == written.plan.queries
    assert read.dataset == written.dataset == "establishments 2026"
    assert read.source == (str(tmp_path.resolve() / "estabs_2026.csv"),)
    assert read.parameters == {"year": "2026", "digits": "2", "at": "50"}


def test_a_value_is_checked_where_it_stands_and_its_line_is_named(plan) -> None:
    (problem,) = problems(plan(), **(VALUES | {"digits": "two"}))
    assert problem.startswith("line 16: queries[1].group_by[1].length: must be a whole number")
    assert problems(plan(), **(VALUES | {"at": "0"})) != []


def test_a_missing_value_an_unused_one_and_a_nameless_place_are_refused(plan) -> None:
    assert problems(plan(), digits=2, at=50) == [
        "line 1: dataset: needs a value for 'year': pass --set year=VALUE",
        "line 2: source: needs a value for 'year': pass --set year=VALUE",
    ]
    (problem,) = problems(plan(), **VALUES, yaer=2025)
    assert "'yaer' is set but not used: did you mean 'year'?" in problem
    unset = problems(plan(), digits=2, at=50, yaer=2025)
    assert any("'yaer' is set but not used: did you mean 'year'?" in each for each in unset)
    assert "without a name" in problems(plan(PLAN.replace("${year}.csv", "${}.csv")), **VALUES)[0]
    with pytest.raises(ParameterError):
        rw.load_plan(plan(), parameters=VALUES | {"year": "20\n26"})


def test_defaults_are_written_in_the_plan_and_a_dollar_can_be_doubled(plan) -> None:
    text = PLAN.replace("estabs_${year}", "$${year}_${year}") + "\n[parameters]\nyear = 2025\ndigits = 2\nat = 50\n"
    assert rw.load_plan(plan(text)).source[0].endswith("/${year}_2025.csv")
    assert rw.load_plan(plan(text), parameters={"year": 2026}).dataset == "establishments 2026"
    found = problems(plan(text.replace("year = 2025", "year = 0.5")))
    assert any("parameters.year: must be a name" in each for each in found)


def test_a_value_of_the_environment_is_taken_only_where_nothing_is_recorded(plan, monkeypatch) -> None:
    monkeypatch.setenv("SECRET_PLACE", "hush")
    (problem,) = problems(plan(PLAN.replace("establishments ${year}", "${env:SECRET_PLACE}")), **VALUES)
    assert problem.startswith("line 1: dataset: is recorded")
    monkeypatch.delenv("SECRET_PLACE")
    (problem,) = problems(plan(PLAN.replace("estabs_${year}", "${env:SECRET_PLACE}")), **VALUES)
    assert problem == "line 2: source: needs the environment variable SECRET_PLACE, which is not set"


def test_a_password_may_come_from_the_environment_and_not_from_the_plan(plan, monkeypatch) -> None:
    monkeypatch.setenv("PASSWORD", "hush-hush")
    server = PLAN.replace('"estabs_${year}.csv"', '"postgresql://reader:${env:PASSWORD}@host/db"\ntable = "t_${year}"')
    read = rw.load_plan(plan(server), parameters=VALUES)
    assert read.source.uri == "postgresql://reader:hush-hush@host/db"
    assert read.source.table == "t_2026"
    assert "hush" not in repr(read)
    assert "password" in problems(plan(server.replace("${env:", "abc${env:")), **VALUES)[0]


def test_no_message_and_no_release_shows_a_value_of_the_environment(plan, monkeypatch, tmp_path) -> None:
    text = PLAN.replace("estabs_${year}", "${env:PLACE}_${year}")
    monkeypatch.setenv("PLACE", "hush-hush")
    read = rw.load_plan(plan(text), parameters=VALUES)
    with pytest.raises(SourceError, match=r"given by \$\{env:PLACE\} was refused: there is no such file") as refused:
        rw.Session.from_plan(read)
    assert "hush" not in str(refused.value)
    assert refused.value.__context__ is None
    (tmp_path / "hush-hush_2026.csv").write_text("id,emp,naics\n1,4,44\n2,900,72\n")
    with rw.Session.from_plan(read) as session:
        release = session.run(*read.plan.queries)
        history = [str(event) for event in session.history()]
    folder = release.save(tmp_path / "out")
    assert release.to_json()["parameters"] == {"year": "2026", "digits": "2", "at": "50"}
    texts = [path.read_bytes() for path in folder.iterdir()] + [(tmp_path / "small.ledger").read_bytes()]
    assert not any(b"hush" in text for text in texts)
    assert not any("hush" in text for text in history)
