"""The tree of errors in the module docstring is the real one, and messages read as sentences."""

import re
from fractions import Fraction

import pytest

from recordwise import errors


def error_classes() -> dict[str, type]:
    found = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    return {name: value for name, value in found.items() if issubclass(value, (errors.RecordwiseError, Warning))}


def test_the_tree_in_the_docstring_names_every_error_with_its_builtin_base() -> None:
    drawn = dict(re.findall(r"(\w+(?:Error|Warning))(?: \((\w+)\))?", (errors.__doc__ or "").split("The headings")[0]))
    real = {
        name: next((base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"), "")
        for name, kind in error_classes().items()
    }
    assert drawn == real | {"RecordwiseError": ""}


@pytest.mark.parametrize("given, words", [((), "none"), (("rho",), "rho"), (("rho", "variance"), "rho and variance")])
def test_a_choice_says_what_was_given(given: tuple[str, ...], words: str) -> None:
    error = errors.ChoiceError(choices=("rho", "variance", "relative_error"), given=given)
    assert str(error) == f"Give exactly one of rho, variance, relative_error; got {words}."


def test_a_question_ends_a_message_without_a_period() -> None:
    assert str(errors.ParameterError(parameter="'emd'", problem="is unknown: did you mean 'emp'?")).endswith("'emp'?")
    told = str(errors.SourceError(source="the source", problem="it has no column emd: did you mean 'emp'?"))
    assert told == "the source was refused: it has no column emd: did you mean 'emp'? No record was read."


@pytest.mark.parametrize(
    "value, words",
    [(Fraction(-2), "-2"), (Fraction(1, 3), "1/3"), (Fraction(10**5000), "an integer with too many digits")],
)
def test_a_fraction_is_shown_by_its_value(value: Fraction, words: str) -> None:
    assert errors.value_text(value) == words
