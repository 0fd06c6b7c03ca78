"""Arguments of the wrong kind, and names that are nearly right: our own errors, at the call, in the user's own words."""

from typing import Any

import pytest

import recordwise as rw
from recordwise.errors import KindError, RecordwiseError

TABLE = {"id": [1, 2, 3], "state": ["a", "b", "a"], "sales": [5, 6, 7]}
MISSPELLED: dict[str, Any] = {"sigm": 1}
OTHERS: dict[str, dict[str, Any]] = {
    name: {name: 1} for name in ("measure", "key", "aliass", "floo", "plann", "roh", "withn", "x")
}
LOOSE: Any = rw
"""The package without its types, which would refuse these calls before they are made."""
COUNT, SPLIT = rw.Gaussian(rho="0.1"), rw.UnitSplit(at=5, rho=1)


def session(**more):
    given = {"unit": "id", "measures": {"sales": 1}, "columns": {"state": "text"}, "tuned_on": "synthetic"}
    return rw.Session(TABLE, **given | more)


def cost(asked):
    with session() as opened:
        return opened.policy_of(asked)


def run_with(**more):
    with session() as opened:
        return opened.run(rw.query().count(COUNT), **more)


WRONG = {
    "unit": (lambda: session(unit=5), "unit must be the name of a column"),
    "measures": (lambda: session(measures=["sales"]), r"measures must be a mapping .* not list.*\{'NAME': 1\}"),
    "columns": (lambda: session(columns="state"), "columns must be a mapping .* not str"),
    "collapse": (lambda: session(collapse="sum"), "collapse must be a mapping"),
    "budget": (lambda: session(budget=2), r"budget must be a policy, such as rw.policy.constant\(1\), not int"),
    "ledger": (lambda: session(ledger=5), "ledger must be the path of a file"),
    "firm": (lambda: session(firm=5), "firm must be the name of a column"),
    "hierarchies": (lambda: session(hierarchies="x.csv"), "hierarchies must be a list of Hierarchy"),
    "series": (lambda: session(series="2024"), "series must be a Series"),
    "words": (lambda: session(words={"a": "b"}), "words must be Labels"),
    "a mechanism": (lambda: rw.query().count(0.1), r"mechanism must be a mechanism such as .* not float"),
    "a class": (lambda: rw.query().count(rw.Gaussian), "not the class Gaussian"),
    "turned around": (lambda: rw.query().sum(COUNT, "sales"), "measure must be the name of a column, not Gaussian"),
    "a condition": (lambda: rw.query().where(5), "condition must be text"),
    "a formula": (lambda: rw.query().count(COUNT).ratio(5, "count"), "a formula must be text"),
    "a parameter": (
        lambda: rw.Gaussian(**MISSPELLED),
        "'sigm' is no parameter of this mechanism: did you mean 'sigma'?",
    ),
    "of a session": (
        lambda: session(**OTHERS["measure"]),
        "'measure' is no argument of Session: did you mean 'measures'",
    ),
    "nothing": (lambda: LOOSE.Session(), "Session needs source"),
    "of a query": (
        lambda: rw.query().group_by("state", **OTHERS["key"]),
        "'key' is no argument of Query.group_by: did you mean 'keys'",
    ),
    "of a sum": (lambda: rw.query().sum("sales", SPLIT, **OTHERS["aliass"]), "did you mean 'alias'"),
    "no mechanism": (lambda: LOOSE.query().sum("sales"), "Query.sum needs mechanism"),
    "too many": (lambda: LOOSE.query().sum("sales", SPLIT, 5), "Query.sum was called with arguments that it does not"),
    "of sized noise": (lambda: rw.Sized(mechanism=COUNT, **OTHERS["floo"]), "did you mean 'floor'"),
    "by position": (lambda: LOOSE.UnitSplit(5), "UnitSplit was called with arguments that it does not take"),
    "of planning": (
        lambda: LOOSE.planning.recommend(1, 2, **OTHERS["plann"]),
        "no argument of recommend: did you mean 'plan'",
    ),
    "of a goal": (lambda: rw.planning.Goal("sales", rw.query(), **OTHERS["withn"]), "did you mean 'within'"),
    "of a policy": (lambda: LOOSE.policy.constant(**OTHERS["roh"]), "no argument of constant: did you mean 'rho'"),
    "of reading": (lambda: rw.read("x", **OTHERS["x"]), "'x' is no argument of read. It takes folder_or_zip"),
    "a plan": (lambda: rw.load_plan(5), "path must be the path of a plan file"),
    "a release": (lambda: rw.read(5), "folder_or_zip must be the path"),
    "confidence": (lambda: run_with(confidence="high"), "confidence must be a number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_argument_of_another_kind_is_refused_at_the_call(case):
    call, told = WRONG[case]
    with pytest.raises(KindError, match=told) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert caught.value.__cause__ is None


NEAR = {
    "unit": (lambda: session(unit="idd"), "no column idd: did you mean 'id'"),
    "column": (lambda: session(columns={"stat": "text"}), "did you mean 'state'"),
    "group": (lambda: cost(rw.query().group_by("stat", keys=["a"]).count(COUNT)), "did you mean 'state'"),
    "condition": (lambda: cost(rw.query().where("stat = 'a'").count(COUNT)), "did you mean 'state'"),
    "sum": (lambda: cost(rw.query().sum("sale", SPLIT)), "did you mean 'sales'"),
    "pieces": (lambda: cost(rw.query().sum("sales", rw.UnitSplit(at={"sale": 5}, rho=1))), "did you mean 'sales'"),
    "types": (lambda: session(columns=None), r'columns=\{"state": "text"\}'),
    "median": (lambda: cost(rw.query().count(COUNT).with_median("cout")), "did you mean 'count'"),
}


@pytest.mark.parametrize("case", NEAR)
def test_a_name_that_is_nearly_right_is_answered_with_the_name_that_was_meant(case):
    call, told = NEAR[case]
    with pytest.raises(RecordwiseError, match=told):
        call()


def test_a_name_that_is_near_to_nothing_gets_no_false_advice():
    with pytest.raises(RecordwiseError) as caught:
        cost(rw.query().sum("zzz", SPLIT))
    assert "did you mean" not in str(caught.value)
