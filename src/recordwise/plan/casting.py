"""Casting public keys to a column's declared type: only casts that can be undone."""

import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError


def cast_keys(name: str, values: pa.Array, kind: str, nullable: bool) -> pa.Array:
    """The values in the declared type; NULL only where it is a category; every cast must round-trip (T-KEYS)."""
    plain = _plain(values)
    if plain.null_count and not nullable:
        raise KeysError(
            column=f"'{name}'",
            problem="holds NULL",
            advice="Declare null='category' or remove them.",
        )
    if pa.types.is_null(plain.type):
        return plain.cast(arrow_type(kind))
    cast = _cast(name, plain, kind)
    back = _cast_back(cast, plain.type)
    if back is None or not pc.all(pc.equal(back, plain), min_count=0).as_py():
        raise _no_round_trip(name, kind)
    return cast


def arrow_type(kind: str) -> pa.DataType:
    """How values of a declared type are held."""
    return {"text": pa.string(), "integer": pa.int64(), "boolean": pa.bool_()}[kind]


def _plain(values: pa.Array) -> pa.Array:
    narrow = pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type)
    return values.cast(pa.string()) if narrow else values


def _cast(name: str, values: pa.Array, kind: str) -> pa.Array:
    given = values.type
    allowed = {
        "text": pa.types.is_string(given) or pa.types.is_integer(given),
        "integer": pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_string(given),
        "boolean": pa.types.is_boolean(given),
    }[kind]
    if not allowed:
        raise KeysError(column=f"'{name}'", problem=f"holds {given} keys for a column of type {kind}")
    try:
        return values.cast(arrow_type(kind), safe=True)
    except pa.ArrowInvalid:
        raise _no_round_trip(name, kind) from None


def _cast_back(cast: pa.Array, given: pa.DataType) -> pa.Array | None:
    try:
        return cast.cast(given, safe=True)
    except pa.ArrowInvalid:
        return None


def _no_round_trip(name: str, kind: str) -> KeysError:
    return KeysError(
        column=f"'{name}'",
        problem=f"holds keys that do not survive a cast to {kind} and back",
        advice="Write the keys exactly as the column's declared type holds them.",
    )
