"""A small writer of TOML, independent of the reader under test: one table in a line, entries in a random order."""

import json
from datetime import date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any


def toml_text(tree: dict[str, Any], rng: Random) -> str:
    """The same values, every top entry on one line."""
    return "".join(f"{_key(name)} = {_value(tree[name], rng)}\n" for name in _shuffled(tree, rng))


def _shuffled(names: dict[str, Any], rng: Random) -> list[str]:
    return rng.sample(list(names), len(names))


def _key(name: str) -> str:
    return _text(name)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for the letter DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, rng: Random) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        # The order of groups and keys is part of the meaning, of parameters it is not.
        return "{" + ", ".join(f"{_key(name)} = {_value(value[name], rng)}" for name in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each, rng) for each in value) + "]"
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return str(value)


def _decimal(value: Decimal) -> str:
    text = str(value)
    if not value.is_finite():
        return text.lower().replace("infinity", "inf")
    return text if "." in text or "E" in text else f"{text}.0"
