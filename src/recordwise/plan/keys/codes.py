"""Codes that a user gives for those of a column: in its type, and in pairs of an earlier and a later one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from recordwise.errors import ParameterError


def code_pairs(given: Any) -> list[tuple[Any, Any]]:
    """Return pairs of an earlier and a later code; none where they are not such pairs."""
    listed = given.items() if isinstance(given, Mapping) else given if isinstance(given, Iterable) else ()
    # Two letters are a text and no pair.
    pairs = [tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else () for pair in listed]
    return [(pair[0], pair[1]) for pair in pairs] if all(len(pair) == 2 and None not in pair for pair in pairs) else []


def typed_codes(name: str, codes: Iterable[Any], kind: pa.DataType) -> list[Any]:
    """Return codes in the type of their column, as files have text."""
    read = whole_code if pa.types.is_integer(kind) else str if pa.types.is_string(kind) else None
    try:
        return list(codes) if read is None else [read(code) for code in codes]
    except (ValueError, TypeError, OverflowError):
        raise ParameterError(
            parameter=f"crosswalk of '{name}'",
            problem="has a code that is no whole number, as those of the column are",
            advice="Write codes as they are.",
        ) from None


def whole_code(code: Any) -> int:
    """Return a code of a column of whole numbers, as text or as a number; nothing is cut off."""
    if isinstance(code, str) and not re.fullmatch("[+-]?[0-9]+", code):
        raise ValueError("no digits alone")
    found = int(code)
    if isinstance(code, bool) or (not isinstance(code, str) and found != code) or not -(2**63) <= found < 2**63:
        raise ValueError(f"{type(code).__name__} is no whole number of 64 bits")
    return found


def one_meaning(parameter: str, written: Sequence[Any], codes: Sequence[Any], become: Sequence[Any]) -> None:
    """Refuse codes that are written in two ways, as 1 and 01 are, and become different things."""
    found: dict[Any, dict[str, set[Any]]] = {}
    for text, code, other in zip(written, codes, become):
        found.setdefault(code, {}).setdefault(repr(text), set()).add(other)
    for code, ways in found.items():
        if len(set(map(frozenset, ways.values()))) > 1:
            raise ParameterError(
                parameter=parameter, problem=f"must not write code {code} in ways that become different codes"
            )
