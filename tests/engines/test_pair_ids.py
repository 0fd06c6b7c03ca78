"""An id of several columns: each combination is a unit, told apart exactly, and what is protected."""

import json

import pyarrow as pa
import pytest

import recordwise as rw
from build import employers, exact_totals
from engines.plain_mechanism import Plain
from recordwise.errors import DataError, ParameterError
from recordwise.plan import Plan, Schema
from recordwise.plan.query import query
from recordwise.session.owner import history_losses

PAIR = Schema.of(unit=["utility", "state"], measures={"kwh": 1}, columns={"state": "text"})
TRICKY = [("a", "b,c"), ("a,b", "c"), ("a", "b"), ("a\x1fb", "c"), ("a", "\x1fbc"), ("1", "11"), ("11", "1"), ("", "x")]
"""Pairs that are equal once they are joined to one text."""


def table(pairs, **more):
    first, second = zip(*pairs)
    return pa.table({"utility": list(first), "state": list(second), "kwh": list(range(1, len(pairs) + 1)), **more})


def problems(opens, records, schema=PAIR):
    with opens(records, schema) as engine:
        try:
            engine.validate()
        except DataError as error:
            return {(each.column, each.problem): each.count for each in error.problems}, str(error)
    return {}, ""


def test_pairs_must_be_unique_and_nothing_else_must(opens):
    assert problems(opens, table(TRICKY)) == ({}, "")
    found, told = problems(opens, table([*TRICKY, ("a", "b"), ("1", "11")]))
    assert found == {("utility and state", "repeats an id that must be unique"): 2}
    assert 'collapse = { kwh = "sum" }' in told
    found, _ = problems(opens, table([("a", None), ("a", None), (None, "b")]))
    assert found == {("state", "is NULL"): 2, ("utility", "is NULL"): 1}


def test_numbers_are_told_apart_too(opens):
    records = pa.table({"utility": [1, 1, 2, 2], "state": ["1", "2", "1", "2"], "kwh": [1, 2, 3, 4]})
    assert problems(opens, records) == ({}, "")
    schema = Schema.of(unit=["utility", "plant"], measures={"kwh": 1})
    twice = pa.table({"utility": [1, 12, 1, 1], "plant": [23, 3, 23, 2], "kwh": [1, 2, 3, 4]})
    assert problems(opens, twice, schema)[0] == {("utility and plant", "repeats an id that must be unique"): 1}


def test_parts_that_are_read_as_one_value_are_one_unit(opens):
    """Two spellings of a declared column are one value, so that their rows are rows of one pair."""
    from recordwise.plan import Column

    trimmed = Schema.of(
        unit=["utility", "state"], columns={"state": Column(name="state", trim=True)}, measures={"kwh": 1}
    )
    found, _ = problems(opens, table([("a", "x"), ("a", " x "), ("a", "y"), ("a", "\tx")]), trimmed)
    assert found == {("utility and state", "repeats an id that must be unique"): 1}
    whole = Schema.of(unit=["utility", "state"], columns={"state": "integer"}, measures={"kwh": 1})
    found, _ = problems(opens, table([("a", "1"), ("a", "01"), ("b", "1")]), whole)
    assert found == {("utility and state", "repeats an id that must be unique"): 1}


def test_rows_of_a_pair_are_collapsed_and_those_of_another_are_not(opens):
    schema = Schema.of(
        unit=["utility", "state"], measures={"kwh": 1}, columns={"state": "text"}, collapse={"kwh": "max"}
    )
    records = table([("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("b", "x")])
    with opens(records, schema) as engine:
        asked = query().group_by("state", keys=["x", "y"]).count(Plain()).sum("kwh", Plain())
        (found,) = engine.totals(Plan(schema=schema, queries=(asked,)))
    assert sorted(exact_totals(found)) == [[2, 1], [2 + 5, 3]]


def test_a_column_that_differs_between_the_rows_of_a_unit_is_refused_with_the_ways_out(opens):
    schema = Schema.of(
        unit="utility", measures={"kwh": 1}, columns={"state": "text"}, collapse={"kwh": "sum", "state": "same"}
    )
    found, told = problems(opens, table([("a", "x"), ("a", "y"), ("b", "x")]), schema)
    assert found == {("state", "differs between the rows of a unit"): 1}
    assert 'unit = ["utility", "state"]: then only each combination is protected, not utility' in told
    assert "leave it out of the schema" in told


@pytest.mark.parametrize(
    "how, told",
    [
        ({"unit": []}, "must be the name of a column, or a list"),
        ({"unit": ["a", 5]}, "must be the name of a column, or a list"),
        ({"unit": 5}, "must be the name of a column, or a list"),
        ({"unit": ["a", "A"]}, "names a column twice"),
        ({"unit": ["a", "kwh"]}, "gives two roles to kwh"),
        ({"unit": "a", "columns": {"a": "text"}}, "gives two roles to a"),
        ({"unit": ["a", "b"], "collapse": {"kwh": "sum", "a": "same"}}, "which is part of the id"),
    ],
)
def test_what_is_no_id_is_refused(how, told):
    with pytest.raises(ParameterError, match=told):
        Schema.of(**{"measures": {"kwh": 1}} | how)


def test_one_column_in_a_list_is_that_column():
    assert Schema.of(unit=["a"]) == Schema.of(unit="a")


PLAN = """\
dataset = "utilities"
source = "u.csv"
ledger = "u.ledger"
tuned_on = "public"
[schema]
unit = ["utility", "state"]
measures.kwh = 1
columns.state = "text"
[[queries]]
group_by = ["state"]
keys = { rows = { state = ["x", "y"] } }
count = { kind = "Gaussian", rho = 0.1 }
sum.kwh = { kind = "UnitSplit", at = 5, rho = 0.1 }
"""


@pytest.mark.costly
def test_check_page_and_release_say_that_the_pair_is_protected(tmp_path):
    from typer.testing import CliRunner

    from recordwise.cli import app

    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "u.csv").write_text("utility,state,kwh\n1,x,5\n1,y,6\n2,x,7\n")
    said = "each pair of utility and state, and not all records that share only one of them"
    plan, out = str(tmp_path / "plan.toml"), str(tmp_path / "o")
    shown = CliRunner().invoke(app, ["check", plan])
    assert shown.exit_code == 0, shown.output
    assert f"What is protected: {said}." in " ".join(shown.stdout.split())
    assert CliRunner().invoke(app, ["release", plan, "--out", out, "--yes"]).exit_code == 0
    stated = json.loads((tmp_path / "o" / "release.json").read_text())["schema"]
    assert (stated["unit"], stated["protects"]) == (["utility", "state"], said)
    assert said in (tmp_path / "o" / "report.html").read_text()
    assert rw.read(tmp_path / "o").tables[0].data.num_rows == 2
    again = CliRunner().invoke(app, ["release", plan, "--out", str(tmp_path / "p"), "--yes"])
    assert again.exit_code == 4, again.output  # the same release, recognized
    (tmp_path / "plan.toml").write_text(PLAN.replace('["utility", "state"]', '"utility"'))
    other = CliRunner().invoke(app, ["release", plan, "--out", str(tmp_path / "q"), "--yes"])
    assert other.exit_code == 2
    assert "the unit had a different meaning" in " ".join(other.stderr.split())


def test_losses_of_pairs_over_periods_and_in_their_cells():
    policies = {"1": rw.policy.constant(1), "2": rw.policy.constant(2)}
    records = {"1": table(TRICKY), "2": table([("a", "b"), ("new", "b")])}
    found = history_losses(policies, records, ["utility", "state"])
    assert sorted(sum(found.by_period.values()).tolist()) == [1.0] * 7 + [2.0, 3.0]
    asked = rw.query().group_by("state", keys=["b", "c"]).count(rw.Gaussian(rho=1))
    with employers(table(TRICKY), "state", unit=["utility", "state"], measures={"kwh": 1}) as session:
        losses = session.owner.realized_loss_summary(asked, edges=[0.0, 0.5, 2.0], data="synthetic")
    assert losses.counts.tolist()[:3] == [5, 0, 3]


def test_a_plan_with_pairs_and_formats_is_written_and_read_back(tmp_path):
    from recordwise.plan import Column, Measure
    from recordwise.plan.file import load_plan
    from recordwise.planning import plan_text

    written = {"thousands": ".", "decimal": ",", "suffix": "€"}
    schema = Schema.of(
        unit=["utility", "state"],
        measures={"kwh": Measure.of("kwh", number=written), "plain": Measure.of("plain", number={})},
        columns={"state": Column(name="state", trim=True), "day": Column(name="day", type="date", date="%d.%m.%Y")},
    )
    asked = rw.query().group_by("state", keys=["x", "y"]).sum("kwh", rw.UnitSplit(at=5, rho=1))
    text = plan_text([asked], schema, dataset="u", source="u.csv", ledger="u.ledger", tuned_on="public")
    assert load_plan(text.save(tmp_path / "plan.toml")).plan.schema == schema
