"""Every public name is documented: what it is, each parameter, and what it returns."""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import recordwise as rw
from recordwise.exact import functions
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.registry import BUILT_IN
from recordwise.plan import SumAndCount
from recordwise.planning.compare import Candidate, ComparedTable
from recordwise.planning.losses import Losses, LossPair
from recordwise.planning.new_plan import PlanChange
from recordwise.planning.recommend import RankedCandidate
from recordwise.planning.search.fits import Calibrated
from recordwise.planning.search.reliable import FrontierPoint
from recordwise.planning.simulate.baselines import Disclosure
from recordwise.planning.simulate.evaluate import EvaluatedGroup
from recordwise.planning.sweep import SweepPoint

MODULES = {"rw": rw, "functions": functions, **{name: getattr(rw, name) for name in (*rw.MODULES, "sources")}}
SECTION = r"^ *(?:Returns|Yields|Raises|Example|Examples):"


def exported(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names of a module that are ours and not modules themselves."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", own):
        value = getattr(module, name)
        if not inspect.ismodule(value) and getattr(value, "__module__", "").startswith("recordwise"):
            yield name, value


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class has from this package."""
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        plain = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isfunction(plain) and plain.__module__.startswith("recordwise"):
            yield name, value


CLASSES = {value: name for module in MODULES.values() for name, value in exported(module) if inspect.isclass(value)}
CLASSES[SumAndCount] = "SumAndCount"
RESULTS = (
    *(kind for kind in vars(rw.planning).values() if inspect.isclass(kind)),
    *(Calibrated, Candidate, ComparedTable, Disclosure, EvaluatedGroup, FrontierPoint, Losses, LossPair, PlanChange),
    *(RankedCandidate, SweepPoint),
)
"""What planning returns is not listed, and explained all the same."""
CLASSES |= {kind: kind.__name__ for kind in RESULTS}
FUNCTIONS = {
    value: name for module in MODULES.values() for name, value in exported(module) if inspect.isfunction(value)
}
METHODS = {f"{name}.{method}": (kind, method) for kind, name in CLASSES.items() for method, _ in methods(kind)}


def undocumented(function: Any, text: str) -> list[str]:
    """The parameters that the text does not explain, and ``Returns`` where it does not say what comes back."""
    signature = inspect.signature(function)
    given = [name for name in signature.parameters if name not in ("self", "cls")]
    args = re.search(rf"^ *Args:\n(.*?)(?={SECTION}|\Z)", text, re.MULTILINE | re.DOTALL)
    missing = [name for name in given if not (args and re.search(rf"^\s+\*{{0,2}}{name}:", args[1], re.MULTILINE))]
    silent = given and signature.return_annotation not in (None, "None", inspect.Signature.empty)
    return missing + (["Returns"] if silent and not re.search(r"^ *(Returns|Yields):", text, re.MULTILINE) else [])


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_says_what_it_exports(name: str) -> None:
    assert MODULES[name].__doc__
    assert {each for each, _ in exported(MODULES[name])} <= set(dir(MODULES[name]))


@pytest.mark.parametrize("function", FUNCTIONS, ids=FUNCTIONS.get)
def test_a_public_function_explains_every_parameter_and_what_it_returns(function: Any) -> None:
    text = inspect.getdoc(function)
    assert text
    assert undocumented(function, text) == []


@pytest.mark.parametrize("kind", CLASSES, ids=CLASSES.get)
def test_a_public_class_has_a_docstring_of_its_own(kind: type) -> None:
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}("), "this is the signature that dataclasses write"


BUILT = [
    *BUILT_IN.values(),
    *(rw.Session, rw.Column, rw.Measure, rw.Domain, SumAndCount, rw.planning.Goal),
    *(rw.sources.Postgres, rw.sources.Database, rw.sources.Csv, rw.sources.SparkMaster),
]
"""Classes that users build by their constructor."""


@pytest.mark.parametrize("kind", BUILT, ids=lambda kind: kind.__name__)
def test_a_class_that_users_build_explains_every_parameter_of_its_constructor(kind: type) -> None:
    assert [name for name in undocumented(kind, inspect.getdoc(kind) or "") if name != "Returns"] == []


@pytest.mark.parametrize("name", METHODS)
def test_a_public_method_explains_every_parameter_and_what_it_returns(name: str) -> None:
    """What a mechanism offers beside its constructor is explained once, by the protocol or by its base."""
    kind, method = METHODS[name]
    value = inspect.getattr_static(kind, method)
    text = inspect.getdoc(getattr(kind, method)) or inspect.getdoc(getattr(rw.mechanisms.Mechanism, method, None))
    assert text
    if not isinstance(value, property) and not issubclass(kind, Mechanism):
        assert undocumented(getattr(value, "__func__", value), text) == []


def test_a_parameter_or_a_result_that_is_not_explained_is_found() -> None:
    def function(first: int, second: int) -> int:
        """Add.

        Args:
            first: One.
        """
        return first + second

    assert undocumented(function, inspect.getdoc(function) or "") == ["second", "Returns"]
