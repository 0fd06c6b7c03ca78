"""JSON: what is written is read back, and whatever is malformed or unknown is refused with a typed error, fast."""

import copy
import json
import time
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from random_policies import DERIVED, random_condition, random_function, random_policy
from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.functions import from_json as function_from_json
from recordwise.policy import ConditionColumn, Policy, among, constant, maximum, split
from recordwise.policy.json import condition_from_json


@pytest.mark.costly
def test_every_policy_is_read_back_equal_and_written_the_same() -> None:
    rng = Random(1)
    for _ in range(500):
        policy = random_policy(rng, measures=DERIVED)
        text = json.dumps(policy.to_json())
        again = Policy.from_json(json.loads(text))
        assert again == policy
        assert json.dumps(again.to_json()) == text


def test_every_function_is_read_back_equal() -> None:
    rng = Random(2)
    for _ in range(500):
        function = random_function(rng, 3)
        assert function_from_json(json.loads(json.dumps(function.to_json()))) == function


def saved() -> dict[str, Any]:
    return split("0.1", {"emp": 50}).to_json()


@pytest.mark.parametrize("version", [0, 2, "1", 1.0, True, None, [1], {}])
def test_another_version_is_refused(version: Any) -> None:
    with pytest.raises(UnknownFormError, match="version"):
        Policy.from_json({**saved(), "recordwise_policy": version})


@pytest.mark.parametrize("form", [None, 5, "policy", [], {}, {"rho": []}, {**split(1, {"e": 1}).to_json(), "more": 1}])
def test_what_is_no_policy_is_refused(form: Any) -> None:
    with pytest.raises(UnknownFormError):
        Policy.from_json(form)


@pytest.mark.parametrize(
    "atom",
    [
        {"kind": "two"},
        {"kind": ["one"]},
        {"kind": {}},
        {"kind": None},
        {},
        {"kind": "one", "more": 1},
        {"kind": "pieces", "at": 5},
        {"kind": "pieces", "at": [["emp", "1", "nonnegative", "0"]]},
        {"kind": "pieces", "at": [["emp", "1", "nonnegative", "2.5"]]},
        {"kind": "pieces", "at": [["emp", "1", "nonnegative", "-5"]]},
        {"kind": "pieces", "at": [["emp", "0", "nonnegative", "5"]]},
        {"kind": "pieces", "at": [["emp", "1e-999", "nonnegative", "5"]]},
        {"kind": "pieces", "at": [["emp", "1", "nonnegative", "1e999"]]},
        {"kind": "pieces", "at": [["emp", "1", "nonnegative", "1e999999999999"]]},
        {"kind": "pieces", "at": [["emp", "1", "nonnegative", "1/0"]]},
        {"kind": "pieces", "at": [["emp", "1", "nonnegative", 5]]},
        {"kind": "pieces", "at": [["emp", "1", True, "5"]]},
        {"kind": "pieces", "at": [["", "1", "signed", "5"]]},
        {"kind": "square", "measure": "emp"},
        {"kind": "additive", "measure": ["e", "1", "signed"], "function": "y", "bound": "pure"},
        {"kind": "additive", "measure": ["e", "1", "signed"], "function": "x", "bound": "impure"},
        {
            "kind": "additive",
            "measure": ["e", "1", "signed"],
            "function": {"power": "x", "exponent": "2"},
            "bound": "pure",
        },
        {
            "kind": "additive",
            "measure": ["e", "1", "signed"],
            "function": {"power": "x", "exponent": "1e900"},
            "bound": "pure",
        },
        {"kind": "additive", "measure": ["e", "1", "signed"], "function": {"log": "x"}, "bound": "pure"},
        {"kind": "additive table", "measure": ["e", "1", "signed"], "function": "x", "steps": []},
        {"kind": "additive table", "measure": ["e", "1", "signed"], "function": "x", "steps": [[True, "1"]]},
        {"kind": "additive table", "measure": ["e", "1", "signed"], "function": "x", "steps": [[1.5, "1"]]},
        {"kind": "additive table", "measure": ["e", "1", "signed"], "function": "x", "steps": [[2, "1"], [1, "2"]]},
        {"kind": "additive table", "measure": ["e", "1", "signed"], "function": "x", "steps": [[1, "2"], [2, "1"]]},
        {"kind": "additive table", "measure": ["e", "1", "signed"], "function": "x", "steps": [[10**400, "1"]]},
        {"kind": "additive table", "measure": ["e", "1", "signed"], "function": "x", "steps": [[1, "nan"]]},
        {"kind": "clamped square", "measure": ["e", "1", "signed"], "to": "0"},
        {"kind": "clamped square", "measure": ["e", "1", "signed"], "to": "2.5"},
        {"kind": "pure pieces", "at": [], "row_epsilon": "0", "row_rho": "1"},
        {"kind": "pure pieces", "at": [], "row_epsilon": "1", "row_rho": "-1"},
        {"kind": "laplace sum", "measure": ["e", "1", "signed"], "grid": "0.3", "scale": "1"},
        {"kind": "laplace sum", "measure": ["e", "1", "signed"], "grid": "1", "scale": "0"},
        {"kind": "certified sum", "measure": ["e", "1", "signed"], "function": "x", "knots": [], "less": "0"},
        {"kind": "certified sum", "measure": ["e", "1", "signed"], "function": "x", "knots": [[1, "0"]], "less": "0"},
        {"kind": "certified sum", "measure": ["e", "1", "signed"], "function": "x", "knots": [[1, "1"]], "less": "-1"},
        {"kind": "certified sum", "measure": ["e", "1", "signed"], "function": "x", "knots": [[1, "1"]], "less": "0.6"},
        {
            "kind": "certified sum",
            "measure": ["e", "1", "signed"],
            "function": "x",
            "knots": [[2, "2"], [3, "1"]],
            "less": "0",
        },
        {"kind": "gaussian transform", "measure": ["e", "1", "signed"], "function": "x", "grid": "0"},
        {"kind": "laplace transform", "measure": ["e", "1", "signed"], "function": "x", "grid": "1", "scale": "-1"},
        {
            "kind": "laplace transform",
            "measure": ["e", "1", "signed"],
            "function": "x",
            "grid": "1e40",
            "scale": "1e-40",
        },
        {"kind": "selection delta", "at": [], "steps": [[1, "1.5"]]},
        {"kind": "maximum", "policies": []},
        {"kind": "maximum", "policies": 5},
        {"kind": "maximum", "policies": [5]},
        {"kind": "outside", "column": 5},
        {"kind": "epsilon"},
    ],
)
def test_an_atom_this_version_does_not_know_is_refused(atom: Any) -> None:
    form = {**saved(), "rho": [["1", {"all": []}, atom]]}
    with pytest.raises((UnknownFormError, ParameterError)):
        Policy.from_json(form)


@pytest.mark.parametrize(
    "coefficient", ["0", "-1", "nan", "inf", "1e400", "1e-400", "", "0x1/0x0", "1/0", 1, None, "9" * 10**5]
)
def test_a_coefficient_that_is_no_positive_number_is_refused(coefficient: Any) -> None:
    with pytest.raises(UnknownFormError):
        Policy.from_json({**saved(), "rho": [[coefficient, {"all": []}, {"kind": "one"}]]})


@pytest.mark.parametrize(
    "condition",
    [
        None,
        5,
        "every",
        {"in": "c"},
        {"in": "c", "values": "abc"},
        {"in": 5, "values": []},
        {"in": ["c", 0], "values": ["a"]},
        {"in": ["c", True], "values": ["a"]},
        {"in": ["c", 10**9], "values": ["a"]},
        {"in": "c", "values": [5]},
        {"in": "c", "values": [None]},
        {"in": "c", "values": [{"number": 5}]},
        {"in": "c", "values": [{"number": "1e500"}]},
        {"compare": "c", "order": "==", "bound": "1"},
        {"compare": "c", "order": "<", "bound": 1},
        {"compare": "c", "order": "<", "bound": "1e900"},
        {"null": None},
        {"all": 5},
        {"all": [], "any": []},
    ],
)
def test_a_condition_this_version_does_not_know_is_refused(condition: Any) -> None:
    with pytest.raises((UnknownFormError, ParameterError)):
        condition_from_json(condition)


def nested(form: Any, layer: Any, depth: int) -> Any:
    for _ in range(depth):
        form = layer(form)
    return form


@pytest.mark.parametrize("depth", [9, 50, 20_000])
@pytest.mark.costly
def test_deep_nesting_is_refused_without_recursion_or_waiting(depth: int) -> None:
    """Processor time side by side: refusing the deepest forms takes less than making them."""
    began = time.process_time()
    function = nested("x", lambda inner: {"log": {"sum": [["1", inner]], "shift": "3"}}, depth)
    condition = nested(
        among("c", ["a"]).to_json(), lambda inner: {"all": [{"any": [inner, {"null": "d"}]}, {"null": "e"}]}, depth
    )
    policy = nested(saved(), maximum_of, depth)
    made = time.process_time()
    with pytest.raises((UnknownFormError, ParameterError)):
        function_from_json(function)
    with pytest.raises((UnknownFormError, ParameterError)):
        condition_from_json(condition)
    with pytest.raises((UnknownFormError, ParameterError)):
        Policy.from_json(policy)
    with pytest.raises(UnknownFormError):
        Policy.from_json({**saved(), "rho": function})
    assert time.process_time() - made < made - began or depth < 1000
    for form in (function, condition, policy):
        dismantle(form)


EMPTY = Policy().to_json()


def maximum_of(inner: Any) -> Any:
    return {**EMPTY, "rho": [["1", {"all": []}, {"kind": "maximum", "policies": [inner]}]]}


def dismantle(form: Any) -> None:
    """Python frees a deep structure recursively; this one is taken apart from the outside."""
    stack = [form]
    while stack:
        part = stack.pop()
        children = list(part.values()) if isinstance(part, dict) else list(part) if isinstance(part, list) else []
        if isinstance(part, (dict, list)):
            part.clear()
        stack.extend(children)


def test_building_by_hand_is_limited_like_reading() -> None:
    policy = constant(1)
    for count in range(4):
        policy = maximum([policy, constant(count + 2)]) + constant(1)
    with pytest.raises(ParameterError, match="maxima"):
        maximum([policy, constant(9)])


def test_damaged_forms_raise_nothing_but_typed_errors() -> None:
    """Every leaf and branch of saved policies is replaced in turn by something that does not belong there."""
    rng = Random(3)
    junk = [None, True, -1, 1.5, "x", "1e99999", [], {}, ["x"], {"x": "y"}, 10**30, "\x00", float("nan")]
    refused = 0
    for _ in range(150):
        form = random_policy(rng, 2).to_json()
        for _ in range(8):
            damaged = damage(copy.deepcopy(form), rng, junk)
            try:
                policy = Policy.from_json(damaged)
            except (UnknownFormError, ParameterError):
                refused += 1
            else:
                assert policy == Policy.from_json(policy.to_json())
    assert refused > 800


def damage(form: Any, rng: Random, junk: list[Any]) -> Any:
    spots: list[tuple[Any, Any]] = []
    stack = [form]
    while stack:
        part = stack.pop()
        keys = list(part) if isinstance(part, dict) else list(range(len(part))) if isinstance(part, list) else []
        spots += [(part, key) for key in keys]
        stack += [part[key] for key in keys]
    part, key = rng.choice(spots)
    part[key] = rng.choice(junk)
    return form


def test_the_message_of_a_refusal_is_short_whatever_was_found() -> None:
    for found in ("y" * 10**6, 10**5000, [1] * 10**5, {"a": "b" * 10**5}):
        error = UnknownFormError(what="policy", found=found)
        assert len(str(error)) < 400


def test_a_coefficient_is_read_exactly() -> None:
    form = {**saved(), "rho": [["1/3", {"all": []}, {"kind": "one"}]]}
    assert Policy.from_json(form) == constant(Fraction(1, 3))


def inner_mappings(form: Any) -> list[dict[str, Any]]:
    """Every mapping inside a form, the form itself left out."""
    inside = list(form.values()) if isinstance(form, dict) else form if isinstance(form, list) else []
    own = [each for each in inside if isinstance(each, dict)]
    return own + [found for each in inside for found in inner_mappings(each)]


def test_an_entry_more_in_any_mapping_of_a_condition_is_refused() -> None:
    rng, tried = Random(6), set()
    dates = [among(ConditionColumn("day", part=part), [3]) for part in ("year", "quarter", "week")]
    for condition in [*dates, *(random_condition(rng) for _ in range(200))]:
        policy = constant(1).where(condition)
        for place in range(len(inner_mappings(policy.to_json()))):
            form = copy.deepcopy(policy.to_json())
            inner_mappings(form)[place]["unheard"] = 1
            tried.add(frozenset(inner_mappings(form)[place]))
            with pytest.raises((UnknownFormError, ParameterError)):
                Policy.from_json(form)
    assert frozenset({"part", "of", "unheard"}) in tried
