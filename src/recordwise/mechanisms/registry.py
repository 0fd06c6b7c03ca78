"""The registry of built-in and installed mechanisms.

A package adds one under ``[project.entry-points."recordwise.mechanisms"]``; its name is that of the class,
which plan files and descriptions use as the ``kind``. See docs/architecture.md.
"""

import sys
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from recordwise.errors import ParameterError
from recordwise.exact import functions
from recordwise.exact.numbers import Number
from recordwise.mechanisms.base import Answers, Mechanism, Parameter
from recordwise.mechanisms.combined import Carried, Refined
from recordwise.mechanisms.fat_tailed import Additive, GeneralizedGaussian, Polylog
from recordwise.mechanisms.gaussian import Clamped, Gaussian, Tiered, UnitSplit
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.mechanisms.sized import ByGroup, Sized
from recordwise.mechanisms.transforms import LogTransform, RootTransform, Transform
from recordwise.policy.columns import column_from_json
from recordwise.policy.constructors import By, by

GROUP = "recordwise.mechanisms"
BUILT_IN: Mapping[str, type[Mechanism]] = {
    each.__name__: each
    for each in (
        Gaussian,
        Clamped,
        UnitSplit,
        GeneralizedGaussian,
        Polylog,
        RootTransform,
        LogTransform,
        Additive,
        Transform,
        Sized,
        ByGroup,
        TreeQuantile,
    )
}


@lru_cache(maxsize=4)
def _installed(folders: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Look through the packages once for each path: it takes longer than the noise of a small release."""
    return tuple(entry_points(group=GROUP))


def installed_mechanisms() -> dict[str, type[Mechanism]]:
    """The mechanisms of other installed packages, by the name of their class."""
    return {point.name: _check(point.name, point.load()) for point in _installed(tuple(sys.path))}


def _check(name: str, kind: object) -> type[Mechanism]:
    if name in BUILT_IN or not isinstance(kind, type) or kind.__name__ != name or not issubclass(kind, Mechanism):
        raise ParameterError(
            parameter=f"entry point '{name}' of {GROUP}",
            problem="must have the name of its class, which must subclass Mechanism and must not be built in",
        )
    return kind


def mechanism_kinds(answers: Answers = "totals") -> dict[str, type[Mechanism]]:
    """Return every mechanism class for totals or for quantiles, by name."""
    return {name: kind for name, kind in {**BUILT_IN, **installed_mechanisms()}.items() if kind.answers == answers}


def audit_examples() -> dict[str, Mechanism]:
    """The mechanisms for sums that ``recordwise audit`` attacks, by name."""
    kinds = mechanism_kinds().values()
    return {name: each for kind in kinds for name, each in kind.audit_examples().items()}


def planning_families(*, offset: Number) -> dict[str, Mechanism]:
    """Return the mechanisms that planning chooses from, by name.

    ``offset`` is that of the transforms.
    """
    kinds = mechanism_kinds().values()
    return {name: each for kind in kinds for name, each in kind.planning_families(offset=offset).items()}


def mechanism_kind(name: str) -> type[Mechanism] | None:
    """Return a mechanism class by name.

    Other packages are searched only if the name is not built in.
    """
    return BUILT_IN[name] if name in BUILT_IN else installed_mechanisms().get(name)


def mechanism_from_json(form: Mapping[str, Any]) -> Mechanism | None:
    """Read a mechanism back from ``parameter_json``, None if unknown."""
    name = str(form.get("kind"))
    # Releases state how they refine, follow or add noise to others; no plan does.
    kind = {each.__name__: each for each in (Refined, Carried, Tiered)}.get(name) or mechanism_kind(name)
    if kind is None:
        return None
    stored = {each.stored: each for each in kind.parameters if each.role != "goal"}
    return kind(
        **{stored[name].name: _parameter_from_json(stored[name], form[name]) for name in form if name in stored}
    )


def _parameter_from_json(parameter: Parameter, form: Any) -> Any:
    if parameter.read == "function":
        return functions.from_json(form)
    if parameter.read == "thresholds":
        return _thresholds(form)
    if parameter.read == "mechanism":
        return mechanism_from_json(form)
    if parameter.read == "groups":
        return [(_group(group), mechanism_from_json(each)) for group, each in form]
    return Grid.from_json(form) if parameter.read == "grid" else form


def _thresholds(form: Any) -> Any:
    if not isinstance(form, Mapping):
        return form
    if "by" in form and "values" in form:
        return _by(form)
    return {name: _thresholds(each) for name, each in form.items()}


def _by(form: Mapping[str, Any]) -> By:
    groups = form["values"].items() if isinstance(form["values"], Mapping) else form["values"]
    default = form["default"]
    return by(
        column_from_json(form["by"]),
        {_group(group): Fraction(number) for group, number in groups},
        None if default is None else Fraction(default),
    )


def _group(form: Any) -> Any:
    return Fraction(form["number"]) if isinstance(form, Mapping) else form
