"""Which argument of a failed call is of the wrong kind, by the annotations of the function.

Asked only after a call has ended in an error of Python's own, so that whatever works keeps working. An argument is refused only if
it surely does not fit: what an annotation leaves open, fits.
"""

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from recordwise.errors import SELF, KindError, kind_text

TEXTS: dict[object, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a path",
    type(None): "None",
}
NUMBER = frozenset((int, float, str, Decimal, Fraction))
"""What a number may be given as."""
CALLABLE = get_origin(Callable[[], None])
LISTED = (list, tuple, set, frozenset)


def wrong_kind(
    function: Callable[..., object], args: Sequence[object], given: Mapping[str, object]
) -> KindError | None:
    """Return the refusal of the first argument that does not fit its annotation.

    Args:
        function: What was called.
        args: The arguments by position.
        given: The arguments by name.

    Returns:
        The error, or None where all of them fit.
    """
    takes = inspect.signature(function)
    for name, value in takes.bind(*args, **given).arguments.items():
        wanted = _named(takes.parameters[name].annotation, function)
        for own, each in _each(takes.parameters[name], value):
            if own not in SELF and not fits(each, wanted):
                return KindError(parameter=own, problem=f"must be {kind_wanted(wanted)}, not {_given_text(each)}")
    return None


def _named(annotation: object, function: Callable[..., object]) -> object:
    """An annotation; the class that it names where it is written as text, and anything where that is not known."""
    if not isinstance(annotation, str):
        return annotation
    return getattr(inspect.unwrap(function), "__globals__", {}).get(annotation, Any)


def _each(parameter: inspect.Parameter, value: Any) -> Iterator[tuple[str, object]]:
    """Yield what was given for a parameter, which may be several arguments, with their names."""
    if parameter.kind is parameter.VAR_KEYWORD:
        yield from value.items()
    else:
        several = value if parameter.kind is parameter.VAR_POSITIONAL else (value,)
        yield from ((parameter.name, each) for each in several)


def fits(value: object, wanted: Any) -> bool:
    """Whether a value may be what an annotation asks for.

    Args:
        value: The value.
        wanted: The annotation.

    Returns:
        False only where it surely is not.
    """
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is Annotated:
        return fits(value, inner[0])
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in inner)
    if origin is None:
        return _fits_class(value, wanted)
    if origin is CALLABLE:
        return callable(value)
    if not isinstance(origin, type) or origin is type:
        return True
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(each, inner[1]) for key, each in value.items()
        )
    if issubclass(origin, tuple):
        return isinstance(value, tuple | list) and _parts_fit(value, inner)
    if origin.__module__ in ("collections.abc", "builtins") and issubclass(origin, Iterable):
        elements = value if isinstance(value, (*LISTED, Mapping)) else ()
        # A text is a sequence of texts, and never what is meant by a list of them.
        return (
            isinstance(value, Iterable)
            and not isinstance(value, str | bytes)
            and all(fits(e, inner[0]) for e in elements)
        )
    return isinstance(value, origin)


def _parts_fit(value: Sequence[object], inner: tuple[Any, ...]) -> bool:
    if len(inner) == 2 and inner[1] is Ellipsis:
        return all(fits(each, inner[0]) for each in value)
    return len(value) == len(inner) and all(map(fits, value, inner))


def _fits_class(value: object, wanted: Any) -> bool:
    if wanted is None:
        return value is None
    if (
        wanted in (Any, inspect.Parameter.empty)
        or not isinstance(wanted, type)
        or getattr(wanted, "_is_protocol", False)
    ):
        return True
    if wanted in (int, float):
        return isinstance(value, Integral if wanted is int else Real) and not isinstance(value, bool)
    return isinstance(value, Mapping if issubclass(wanted, dict) else wanted)


def kind_wanted(wanted: Any) -> str:
    """Return an annotation in words.

    Args:
        wanted: The annotation.

    Returns:
        Such as ``a Goal or a list of Goal``.
    """
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        left = [each for each in inner if each not in NUMBER] if set(inner) >= NUMBER else list(inner)
        texts = [*(["a number"] if set(inner) >= NUMBER else []), *map(kind_wanted, left)]
        return " or ".join(sorted(dict.fromkeys(texts), key="None".__eq__))
    if origin is Annotated:
        return kind_wanted(inner[0])
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if wanted is None or wanted in TEXTS:
        return TEXTS[type(None) if wanted is None else wanted]
    if origin is CALLABLE:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping"
    if origin is tuple:
        return "a tuple"
    if (
        isinstance(origin, type)
        and issubclass(origin, Iterable)
        and origin.__module__ in ("collections.abc", "builtins")
    ):
        return f"a list of {_bare(inner[0])}" if inner else "a list"
    return f"{'an' if _bare(wanted)[:1] in 'AEIOU' else 'a'} {_bare(wanted)}"


def _bare(wanted: Any) -> str:
    """An annotation in words without an article."""
    if get_origin(wanted) is None and isinstance(wanted, type) and wanted not in TEXTS:
        return str(wanted.__name__)
    named = get_origin(wanted)
    # Since Python 3.14 the origin of ``int | float`` is a class of typing.
    if isinstance(named, type) and named.__module__ not in ("collections.abc", "builtins", "types", "typing"):
        return str(named.__name__)
    return kind_wanted(wanted).removeprefix("a ").removeprefix("an ")


def _given_text(value: object) -> str:
    """The kind of a value, and those of its elements."""
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, LISTED) else ()
    kinds = sorted({kind_text(each) for each in inside})
    return f"{kind_text(value)} of {', '.join(kinds)}" if kinds else kind_text(value)
