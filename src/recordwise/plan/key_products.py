"""Public keys made of others: lists crossed with each other, and the coarser levels of the codes that a list has."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError
from recordwise.plan.arrays import array_of
from recordwise.plan.given_keys import KeyList
from recordwise.plan.hierarchies import Hierarchy
from recordwise.plan.key_columns import cast_keys, check_size
from recordwise.plan.keys import Keys
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema


def crossed(lists: Sequence[Keys]) -> Keys:
    """Every combination of the rows of several lists."""
    if not lists:
        raise KeysError(column="the product", problem="has no list")
    names = [name for each in lists for name in each.table.column_names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise KeysError(column=f"'{twice}'", problem="is a column of two lists of the product")
    columns: dict[str, pa.Array] = {}
    repeat, tile = math.prod(each.table.num_rows for each in lists), 1
    check_size(repeat)
    for each in lists:
        rows = each.table.num_rows
        repeat //= rows
        places = array_of(np.tile(np.repeat(np.arange(rows), repeat), tile))
        columns |= {name: each.table.column(name).chunk(0).take(places) for name in each.table.column_names}
        tile *= rows
    return Keys(pa.table(columns))


def query_with_levels(query: Query, schema: Schema) -> Query:
    """The query, its public keys with the coarser levels of their codes."""
    if not schema.hierarchies:
        return query
    wanted = {name for level in query.tables() for name in level.names()}
    return replace(query, key_lists=tuple(_completed(each, schema, wanted) for each in query.key_lists))


def _completed(keys: KeyList, schema: Schema, wanted: Collection[str]) -> KeyList:
    """The keys with a column for each wanted level that their codes determine; a code that is not listed is refused."""
    if not isinstance(keys, Keys):
        return keys
    table = keys.table
    for hierarchy in schema.hierarchies:
        table = _with_levels(table, hierarchy, schema, wanted)
    return keys if table is keys.table else replace(keys, table=table)


def _with_levels(table: pa.Table, hierarchy: Hierarchy, schema: Schema, wanted: Collection[str]) -> pa.Table:
    for level in (each for each in reversed(hierarchy.levels) if each in table.column_names):
        own = table.column(level).chunk(0)
        coded = own if pa.types.is_dictionary(own.type) else own.dictionary_encode()
        values = _listed_values(coded.dictionary, hierarchy, level, schema)
        for coarse in hierarchy.levels:
            if coarse == level or not hierarchy.determines(level, coarse):
                continue
            found = _mapped(values, hierarchy, level, coarse).take(coded.indices)
            if coarse not in table.column_names:
                table = table.append_column(coarse, found) if coarse in wanted else table
            elif not _same(table.column(coarse).chunk(0), found):
                raise KeysError(
                    column=f"'{coarse}'", problem=f"differs from that of '{level}' in the hierarchy '{hierarchy.name}'"
                )
    return table


def _listed_values(given: pa.Array, hierarchy: Hierarchy, level: str, schema: Schema) -> pa.Array:
    """The different codes of a level in the type of its column; each must be in the hierarchy (T-HIERARCHY)."""
    column = schema.column(level)
    values = cast_keys(level, given, hierarchy.type_of(level), column is not None and column.null == "category")
    known = pc.is_in(values, value_set=hierarchy.codes.column(level).combine_chunks())
    unknown = values.filter(pc.or_kleene(pc.invert(known), values.is_null()))
    if len(unknown):
        raise KeysError(
            column=f"'{level}'",
            problem=f"lists {len(unknown):,} code{'s' * (len(unknown) > 1)} that the hierarchy '{hierarchy.name}' does not have, "
            f"such as {'NULL' if unknown[0].as_py() is None else repr(unknown[0].as_py())}",
            advice="A record with such a code is in no cell of any level.",
        )
    return values


def _mapped(values: pa.Array, hierarchy: Hierarchy, level: str, coarse: str) -> pa.Array:
    fine, above = hierarchy.above(level, coarse)
    return above.take(pc.index_in(values, value_set=fine))


def _same(given: pa.Array, found: pa.Array) -> bool:
    plain = given.dictionary_decode() if pa.types.is_dictionary(given.type) else given
    return bool(plain.type == found.type and plain.equals(found))
