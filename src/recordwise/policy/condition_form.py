"""Reading conditions back from their saved form; what is not known is refused, never guessed."""

from typing import Any

from recordwise.errors import UnknownFormError
from recordwise.exact import rational
from recordwise.policy.conditions import MOST_NESTED, Column, Condition, Null, among, both, compare, either
from recordwise.policy.literals import Value, literal


def column_from_json(form: Any) -> Column:
    match form:
        case str(name):
            return Column(name)
        case [str(name), int(length)]:
            return Column(name, length)
        case _:
            raise UnknownFormError(what="column", found=form)


def condition_from_json(form: Any) -> Condition:
    """Read back what ``to_json`` wrote; an unknown form is refused."""
    return _from_json(form, MOST_NESTED)


def _from_json(form: Any, depth: int) -> Condition:
    if depth < 0:
        raise UnknownFormError(what="condition", found="too deeply nested")
    match form:
        case {"in": column, "values": [*values], **rest} if not rest:
            return among(column_from_json(column), [_value_from_json(value) for value in values])
        case {"not in": column, "values": [*values], **rest} if not rest:
            return among(column_from_json(column), [_value_from_json(value) for value in values], inside=False)
        case {"compare": column, "order": str(order), "bound": str(bound), **rest} if not rest:
            return compare(column_from_json(column), order, bound)
        case {"null": column, **rest} if not rest:
            return Null(column_from_json(column))
        case {"not null": column, **rest} if not rest:
            return Null(column_from_json(column), inside=False)
        case {"all": [*parts], **rest} if not rest:
            return both(*(_from_json(part, depth - 1) for part in parts))
        case {"any": [*parts], **rest} if not rest:
            return either(*(_from_json(part, depth - 1) for part in parts))
        case _:
            raise UnknownFormError(what="condition", found=form)


def _value_from_json(form: Any) -> Value:
    match form:
        case str() | bool():
            return literal(form)
        case {"number": str(text), **rest} if not rest:
            return literal(rational(text, parameter="value"))
        case _:
            raise UnknownFormError(what="value", found=form)
