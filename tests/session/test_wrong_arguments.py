"""Arguments of the wrong kind, and names that are nearly right: our own errors, at the call, in the user's own words."""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import recordwise as rw
from build import employers
from recordwise.errors import POSITIONS, SELF, KindError, ParameterError, RecordwiseError

TABLE = {"id": [1, 2, 3], "state": ["a", "b", "a"], "sales": [5, 6, 7]}
MISSPELLED: dict[str, Any] = {"sigm": 1}
OTHERS: dict[str, dict[str, Any]] = {
    name: {name: 1} for name in ("measure", "key", "aliass", "floo", "plann", "roh", "withn", "x")
}
LOOSE: Any = rw
"""The package without its types, which would refuse these calls before they are made."""
COUNT, SPLIT = rw.Gaussian(rho="0.1"), rw.UnitSplit(at=5, rho=1)


def session(**more):
    return employers(TABLE, "state", **({"measures": {"sales": 1}} | more))


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
    "of another": (
        lambda: LOOSE.Clamped(to=5, sigma=3),
        r"'sigma' is no parameter of this mechanism\.$",
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


ROOMS = ("", *(f".{each}" for each in rw.MODULES if each != "errors"), ".plan.sources", ".disclosure", ".reader")
HOOKS = ("audit_examples", "planning_families", "schema", "fill")
"""What mechanisms, saved forms and sources of bits answer to the package itself."""

RESULTS = ("Noisy", "Estimates")
"""What mechanisms return, and nobody else makes."""


def public_calls() -> Iterator[tuple[str, Callable[..., Any], list[str]]]:
    """Every public function, constructor and method, with the names of its arguments."""
    seen = set[int]()
    for room in ROOMS:
        home = import_module(f"recordwise{room}")
        for name in home.__all__:
            found = getattr(home, name)
            if not callable(found) or id(found) in seen or getattr(found, "_is_protocol", False):
                continue
            seen.add(id(found))
            calls = [(name, found)]
            if isinstance(found, type):
                own_noise = issubclass(found, rw.mechanisms.Mechanism)
                kept = [] if own_noise else [each for each in vars(found) if each[0] != "_" and each not in HOOKS]
                calls = [(name, found)] if "__init__" in vars(found) else []
                calls += [(f"{name}.{each}", getattr(found, each)) for each in kept]
            for label, call in calls:
                if not callable(call) or label in RESULTS:
                    continue
                takes = inspect.signature(call).parameters.items()
                names = [each for each, kind in takes if kind.kind not in POSITIONS and each not in SELF]
                if names:
                    yield f"recordwise{room}.{label}", call, names


def test_every_public_name_refuses_a_misspelled_argument_with_the_one_that_was_meant():
    told = dict[str, str]()
    for label, call, names in public_calls():
        try:
            call(*(None,) * ("self" in inspect.signature(call).parameters), **{f"{names[0]}_": 1})
        except ParameterError as error:
            told[label] = str(error)
        except TypeError as error:
            told[label] = f"Python's own: {error}"
    assert len(told) > 300
    assert {label: text for label, text in told.items() if "did you mean" not in text} == {}


def test_an_error_inside_a_function_stays_what_it_is():
    """Only the call itself is judged: what a function of the user's raises is not taken for a wrong argument."""
    with pytest.raises(TypeError, match="mine") as caught:
        _raised_inside("x")
    assert not isinstance(caught.value, KindError)


@rw.errors.own_argument_errors
def _raised_inside(text: str) -> None:
    raise TypeError(f"mine {text}")


def test_a_warning_of_a_checked_method_points_to_the_line_of_the_user():
    with pytest.warns(rw.errors.UnkeptLedgerWarning) as seen:
        run_with()
    assert {each.filename for each in seen} == {__file__}


def test_a_frame_of_ids_and_measures_alone_needs_no_columns():
    table = {name: TABLE[name] for name in ("id", "sales")}
    with employers(table, measures={"sales": 1}) as opened:
        assert float(opened.policy_of(rw.query().count(COUNT)).loss({})) == pytest.approx(0.1)
