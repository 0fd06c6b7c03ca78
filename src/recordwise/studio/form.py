"""Frozen dataclasses as JSON: one description of a class writes, reads and checks it, and is its JSON schema."""

import dataclasses
import hashlib
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from recordwise.errors import ParameterError

Some = TypeVar("Some")
DRAFT = "https://json-schema.org/draft/2020-12/schema"
PLAIN: dict[Any, str] = {str: "string", int: "integer", bool: "boolean", float: "number", type(None): "null"}


def plan_digest(plan: Path, parameters: Mapping[str, Any]) -> str:
    """Return the SHA-256 digest of a plan file, and of the values other than its own that it is read with."""
    content = plan.read_bytes()
    own = tomllib.loads(content.decode()).get("parameters", {}) if parameters else {}
    given = sorted((name, str(each)) for name, each in parameters.items() if str(own.get(name)) != str(each))
    return hashlib.sha256(content + (json.dumps(given).encode() if given else b"")).hexdigest()


def records_digest(records: str | Path | None) -> str:
    """Return the SHA-256 digest of a file's place and time, by which a trade file knows its records; empty without one."""
    if records is None:
        return ""
    files = [found := Path(records).resolve(), *(sorted(found.rglob("*")) if found.is_dir() else ())]
    known = [(str(each), each.stat().st_mtime_ns) for each in files if each.exists()]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def write(value: Any) -> Any:
    """Return a value as what JSON can hold."""
    if dataclasses.is_dataclass(value):
        return {each.name: write(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [write(each) for each in value]
    if isinstance(value, Mapping):
        return {name: write(each) for name, each in value.items()}
    return value


def read(kind: type[Some], form: Any, *, what: str) -> Some:
    """Return the value that ``write`` wrote.

    Raises:
        ParameterError: The form is another.
    """
    found: Some = _read(kind, form, what)
    return found


def json_schema(kind: type[Any], *, title: str) -> dict[str, Any]:
    """Return the JSON schema of a dataclass."""
    parts: dict[str, Any] = {}
    top = _schema(kind, parts)
    return {"$schema": DRAFT, "title": title, **top, "$defs": parts}


@lru_cache(maxsize=64)
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _refused(what: str, wanted: str) -> ParameterError:
    return ParameterError(parameter=what, problem=f"must be {wanted}", advice="Make the file again.")


def _read(kind: Any, form: Any, what: str) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return form
    if dataclasses.is_dataclass(kind):
        return _read_object(typing.cast(type[Any], kind), form, what)
    if origin is tuple:
        if not isinstance(form, list):
            raise _refused(what, "a list")
        # Most lists are long and of numbers, which are checked together.
        if inner[0] is float and all(type(each) in (float, int) for each in form):
            return tuple(map(float, form))
        return tuple(_read(inner[0], each, what) for each in form)
    if origin is dict:
        if not isinstance(form, dict) or not all(isinstance(each, str) for each in form):
            raise _refused(what, "an object")
        return {name: _read(inner[1], each, what) for name, each in form.items()}
    if origin in (types.UnionType, typing.Union):
        if form is None and type(None) in inner:
            return None
        return _read(next(each for each in inner if each is not type(None)), form, what)
    if kind is float and type(form) is int:
        return float(form)
    if type(form) is not kind:
        raise _refused(what, f"of the type {PLAIN[kind]}")
    return form


def _read_object(kind: type[Any], form: Any, what: str) -> Any:
    hints = _hints(typing.cast(Any, kind))
    if not isinstance(form, dict) or set(form) != set(hints):
        raise _refused(what, f"an object with {', '.join(hints)}")
    return kind(**{name: _read(each, form[name], f"{what}.{name}") for name, each in hints.items()})


def _schema(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if dataclasses.is_dataclass(kind):
        name = typing.cast(type[Any], kind).__name__
        if name not in parts:
            parts[name] = {}
            hints = _hints(typing.cast(Any, kind))
            parts[name] |= {
                "type": "object",
                "properties": {field: _schema(each, parts) for field, each in hints.items()},
                "required": list(hints),
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{name}"}
    if origin is tuple:
        return {"type": "array", "items": _schema(inner[0], parts)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(inner[1], parts)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_schema(each, parts) for each in inner]}
    return {"type": PLAIN[kind]}
