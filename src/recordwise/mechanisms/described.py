"""How a mechanism describes itself: its parameters, its dictionary form, its text, and the words a page uses for its noise.

A mechanism is a frozen dataclass that lists its constructor's parameters in ``parameters``. The list is used to read and write plan
files, to recalibrate the noise to a goal, and to turn a description back into the mechanism (`recordwise.mechanisms.registry`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

from recordwise.exact.functions import Function
from recordwise.exact.numbers import Number, fraction_text
from recordwise.exact.text import formula_text
from recordwise.policy.constructors import By
from recordwise.policy.literals import value_json

Reading: TypeAlias = Literal["number", "probability", "flag", "function", "thresholds", "word", "grid", "mechanism"]
Role: TypeAlias = Literal["shape", "noise", "goal"]
Answers: TypeAlias = Literal["totals", "quantiles"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a mechanism's constructor."""

    name: str
    words: str
    """A description with its unit."""
    role: Role = "shape"
    """``shape`` is kept when the noise is recalibrated, ``noise`` is then replaced, and a ``goal`` is given but never stored."""
    read: Reading = "number"
    """How a plan file writes it."""
    needed: bool = False
    field: str = ""
    """The attribute that stores it, if not ``name``."""
    choices: tuple[str, ...] = ()
    """The allowed words."""

    @property
    def stored(self) -> str:
        return self.field or self.name


RELATIVE_ERROR = (
    Parameter("relative_error", "relative error at the total at_total", "goal"),
    Parameter("at_total", "total at which the goal is stated, in the measure's units", "goal"),
    Parameter("confidence", "probability with which the error stays below relative_error", "goal", "probability"),
)
VARIANCE = Parameter("variance", "variance of the noise, in squared units of the measure", "goal")
GAUSSIAN_GOALS = (VARIANCE, *RELATIVE_ERROR, Parameter("step", "step of the measure a relative_error is for", "goal"))
SCALE_AND_GOALS = (
    Parameter("scale", "scale of the noise, in the measure's units", "noise"),
    VARIANCE,
    Parameter("rho", "loss of a record of size at", "goal"),
    Parameter("at", "size of the record that loses rho, in the measure's units", "goal"),
    *RELATIVE_ERROR,
    Parameter("lattice", "lattice on which noise is drawn, in the measure's units", field="coarse_lattice"),
)
TRANSFORM_NOISE = (
    Parameter("sigma", "standard deviation of Gaussian noise, on the transformed scale", "noise"),
    Parameter("laplace_scale", "scale of Laplace noise, on the transformed scale", "noise"),
    Parameter("signed", "whether contributions may be negative", read="flag"),
    VARIANCE,
    Parameter("rho", "loss of a record of size at", "goal"),
    Parameter("at", "size of the record that loses rho, in the measure's units", "goal"),
    *RELATIVE_ERROR,
    Parameter("noise", "law of the noise that meets the goal", "goal", "word", choices=("gaussian", "laplace")),
)


class Described:
    """A mechanism that lists its parameters. The built-in ones inherit from it, and a mechanism of your own may too."""

    __slots__ = ()

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    words: ClassVar[str] = "noise from a custom mechanism"
    """The description of the noise on the policy page."""
    answers: ClassVar[Answers] = "totals"
    """What it is for: counts and sums, or quantiles."""

    def recalibrated(self, **goals: Any) -> Any:
        """The same mechanism with its noise recalibrated to a goal or to a noise parameter of its constructor."""
        kept = {each.name: getattr(self, each.stored) for each in self.parameters if each.role == "shape"}
        return type(self)(**{name: value for name, value in kept.items() if value is not None}, **goals)

    @classmethod
    def audit_examples(cls) -> Mapping[str, Any]:
        """Mechanisms of this class, by name, that ``recordwise audit`` attacks."""
        return {}

    @classmethod
    def planning_families(cls, *, offset: Number) -> Mapping[str, Any]:
        """Mechanisms of this class, by name, that planning chooses from, their noise still to be set.

        Args:
            offset: The offset of a transform, in the measure's units.
        """
        return {}

    def __repr__(self) -> str:
        return mechanism_text(self)


def noise_words(mechanism: Any) -> str:
    """The description of a mechanism's noise on a page."""
    return str(getattr(mechanism, "words", Described.words))


def given_parameters(mechanism: Any) -> dict[str, Any]:
    """The parameters that rebuild the mechanism, by the names of its constructor; those that are not set are left out."""
    names = {each.stored: each.name for each in getattr(mechanism, "parameters", ())}
    stored = {names.get(each.name, each.name): getattr(mechanism, each.name) for each in _fields(mechanism)}
    return {name: value for name, value in stored.items() if value is not None and value is not False}


def _fields(mechanism: Any) -> tuple[Any, ...]:
    return fields(mechanism) if is_dataclass(mechanism) else ()


def mechanism_text(mechanism: Any) -> str:
    """A mechanism as Python code, with numbers shortened to six digits."""
    given = ", ".join(f"{name}={_parameter_text(value)}" for name, value in given_parameters(mechanism).items())
    return f"{type(mechanism).__name__}({given})"


def _parameter_text(value: Any) -> str:
    if isinstance(value, Fraction):
        return f"{formula_text(value)}"
    if isinstance(value, By):
        return f"by {value.column.name}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_name(key)}: {_parameter_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, Function):
        from recordwise.policy.render.text import function_text

        return function_text(value, "x")
    return str(value)


def _name(key: Any) -> str:
    return str(getattr(key, "name", key))


def parameter_json(value: Any) -> Any:
    """A mechanism or a parameter as JSON; fractions as text, so that nothing is rounded."""
    if isinstance(value, Fraction):
        return fraction_text(value)
    if isinstance(value, Function):
        return value.to_json()
    if isinstance(value, By):
        return {"by": value.column.to_json(), "values": _groups_json(value), "default": parameter_json(value.default)}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: parameter_json(getattr(value, each.name)) for each in fields(value)}
        return {"kind": type(value).__name__, **{name: part for name, part in parts.items() if part is not None}}
    if isinstance(value, Mapping):
        return {_name(key): parameter_json(part) for key, part in value.items()}
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _groups_json(value: By) -> Any:
    """By group; as pairs if a group is not text, because JSON keys are."""
    groups = [(value_json(group), fraction_text(number)) for group, number in value.values]
    return dict(groups) if all(isinstance(group, str) for group, _ in groups) else [list(pair) for pair in groups]
