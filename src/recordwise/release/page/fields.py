"""What the page asks an establishment for: the measures and columns its loss depends on, in words it knows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from recordwise.policy.cases import tests_of
from recordwise.policy.conditions import Among, Compare
from recordwise.policy.literals import Truth, Value
from recordwise.policy.policy import Policy

AMOUNT, CHOICE, NUMBER, TEXT = "amount", "choice", "number", "text"
MISSING = "not known"
ANOTHER = "any other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One entry of a list: what is shown, and the value a record has there; None where it is missing."""

    label: str
    value: str | bool | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One question."""

    name: str
    label: str
    kind: str
    step: Fraction = Fraction(1)
    signed: bool = False
    options: tuple[Option, ...] = ()

    def to_json(self) -> dict[str, Any]:
        options = [[option.label, option.value] for option in self.options]
        form = {"name": self.name, "label": self.label, "kind": self.kind, "signed": self.signed, "options": options}
        return form | {"step": [self.step.numerator, self.step.denominator]}


def fields_of(policy: Policy, labels: Mapping[str, str], missing: Collection[str] = ()) -> tuple[Field, ...]:
    """Measures first, then the columns that are no measures, each by name; those in ``missing`` may be unknown."""
    measures = [
        Field(name=m.name, label=labels.get(m.name, m.name), kind=AMOUNT, step=m.step, signed=m.signed)
        for m in policy.measures()
    ]
    known = {field.name for field in measures}
    names = sorted({column.name for column in policy.columns()} - known)
    return (*measures, *(_column_field(policy, name, labels, missing=name in missing) for name in names))


def _column_field(policy: Policy, name: str, labels: Mapping[str, str], *, missing: bool) -> Field:
    tests = [test for test in tests_of(policy) if test.column.name == name]
    label = labels.get(name, name)
    if any(isinstance(test, Compare) for test in tests):
        return Field(name=name, label=label, kind=NUMBER)
    values = dict.fromkeys(value for test in tests if isinstance(test, Among) for value in test.values)
    lengths = {test.column.length for test in tests if isinstance(test, Among)}
    if len(lengths) > 1:
        return Field(name=name, label=label, kind=TEXT)
    options = [Option(label=_value_label(name, value, labels), value=_plain(value)) for value in values]
    return Field(name=name, label=label, kind=CHOICE, options=(*options, *_rest(list(values), missing=missing)))


def _rest(values: list[Value], *, missing: bool) -> list[Option]:
    """What a record can be beside the listed values: something else, or missing."""
    rest = []
    if not all(isinstance(value, Truth) for value in values) or len(values) < 2:
        rest.append(Option(label=ANOTHER, value=_unlisted(values)))
    if missing:
        rest.append(Option(label=MISSING, value=None))
    return rest


def _unlisted(values: list[Value]) -> str | bool | float:
    """A value of the same type that is none of them, nor are its first characters."""
    if values and all(isinstance(value, Truth) for value in values):
        return not any(value.value for value in values if isinstance(value, Truth))
    numbers = [float(value) for value in values if isinstance(value, Fraction)]
    if numbers:
        return max(numbers) + 1
    first = {text[:1] for text in values if isinstance(text, str)}
    return next(letter for letter in map(chr, range(0x7E, 0x10FFFF)) if letter not in first)


def _plain(value: Value) -> str | bool | float:
    if isinstance(value, Truth):
        return value.value
    return float(value) if isinstance(value, Fraction) else value


def _value_label(name: str, value: Value, labels: Mapping[str, str]) -> str:
    """``labels`` may name a value too, as "naics=21"; its code stays beside the words."""
    plain = _plain(value)
    code = (
        f"{plain:g}"
        if isinstance(plain, float)
        else {True: "yes", False: "no"}.get(plain, str(plain))
        if isinstance(plain, bool)
        else str(plain)
    )
    words = labels.get(f"{name}={code}")
    return f"{words} ({code})" if words else code
