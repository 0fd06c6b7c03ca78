"""SDMX-CSV 2.0 and plain long CSV: one observation per line.

For the systems in which statistical offices exchange data. Dimensions are the keys of the table, the
statistic (INDICATOR) and the period where the publication states one. OBS_STATUS is A for a reliable value, U
for one of low reliability and Q for one that is withheld; STATUS has the words of the release. Everything in
the files is published, so CONF_STATUS is F. The layout has no place for a privacy label, so it is for private
releases only.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from recordwise.plan.arrays import texts_of
from recordwise.release.content import Content, DescribedTable
from recordwise.release.dictionary import status_column
from recordwise.release.formats.csv import (
    Csv,
    csv_bytes,
    meaningful,
    runs,
    same_bytes,
    slices,
    without_formulas,
    write_pieces,
)
from recordwise.release.formats.format import RUN, only_private, type_problem
from recordwise.release.tables import PRIVATE, ReleasedTable

OWN = ("STRUCTURE", "STRUCTURE_ID", "ACTION", "INDICATOR", "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS")
RELIABLE, LOW, WITHHELD = "A", "U", "Q"
FREE, INFORMATION, UNKNOWN = "F", "I", "_U"


class SdmxCsv:
    """One file for each table, in long form."""

    name = "sdmx-csv"
    extension = "sdmx.csv"
    description = "the whole table as SDMX-CSV 2.0, an observation on each line"
    whole = False
    needs = ()

    def problem(self, content: Content) -> str | None:
        problem = only_private(content) or type_problem(content)
        for table in content.tables:
            if problem is None and not table.table.variables:
                problem = f"has no place for '{table.name}', whose columns are not known"
            for name in table.table.keys:
                column = table.data.column(name)
                if problem is None and pa.types.is_string(column.type) and runs(column):
                    problem = RUN.format(name)
            said = [
                content.words.publication.period or "",
                *content.rules.names(),
                *(each.unit for each in table.columns),
            ]
            if problem is None and runs(texts_of([each or "" for each in said])):
                problem = RUN.format("TIME_PERIOD, STATUS or UNIT_MEASURE")
        return problem

    def write(self, content: Content, path: Path) -> None:
        table = content.table
        with path.open("wb") as file:
            file.write(_header(content, table))
            write_pieces(
                _variable_tables(table), file, lambda part: csv_bytes(_lines(content, table, *part), header=False)
            )

    def privacy_label(self, path: Path) -> str:
        return PRIVATE

    def same(self, content: Content, path: Path) -> bool:
        table = content.table
        pieces = (csv_bytes(_lines(content, table, *part), header=False) for part in _variable_tables(table))
        return same_bytes(path, _header(content, table), pieces)


class LongCsv:
    """One file for each table with a line for each number: codes, names, statistic, unit, value, error, interval, status."""

    name = "long"
    extension = "long.csv"
    description = "the whole table as text, a number on each line"
    whole = False
    needs = ()

    def problem(self, content: Content) -> str | None:
        missing = [table.name for table in content.tables if not table.table.variables]
        return f"has no place for '{missing[0]}', whose columns are not known" if missing else type_problem(content)

    def write(self, content: Content, path: Path) -> None:
        table = content.table
        with path.open("wb") as file:
            file.write(_long_header(content, table))
            write_pieces(_variable_tables(table), file, lambda part: _long_text(content, table, *part))

    def privacy_label(self, path: Path) -> str:
        return Csv().privacy_label(path)

    def same(self, content: Content, path: Path) -> bool:
        table = content.table
        pieces = (_long_text(content, table, *part) for part in _variable_tables(table))
        return same_bytes(path, _long_header(content, table), pieces)


LONG = ("statistic", "title", "unit", "value", "sd", "low", "high", "status")


def _long_header(content: Content, table: DescribedTable) -> bytes:
    label = b"" if content.private else f"# {content.privacy_label}\n".encode()
    empty = _long_lines(content, table, table.data.slice(0, 0), table.table.variables[0])
    return label + bytes(csv_bytes(without_formulas(empty), header=True))


def _long_text(content: Content, table: DescribedTable, piece: pa.Table, variable: str) -> pa.Buffer:
    return csv_bytes(without_formulas(_long_lines(content, table, piece, variable)), header=False)


def _long_lines(content: Content, table: DescribedTable, piece: pa.Table, variable: str) -> pa.Table:
    """The numbers of a variable in some cells, with what the plain file has next to them."""
    rows, short = piece.num_rows, meaningful(replace(table.table, variables=(variable,)), piece)
    first = min(piece.column_names.index(each) for each in table.table.variables)
    entry = next(each for each in table.columns if each.name == variable)
    # A key that is called like one of our columns gets an underscore.
    columns = {name + "_" * (name in LONG): piece.column(name) for name in piece.column_names[:first]}
    columns |= {"statistic": _same(variable, rows), "title": _same(entry.title, rows), "unit": _same(entry.unit, rows)}
    ends = {"value": variable, **{end: f"{variable}_{end}" for end in ("sd", "low", "high")}}
    for end, name in ends.items():
        known = name in short.column_names
        columns[end] = short.column(name).cast(pa.float64()) if known else pa.nulls(rows, pa.float64())
    return pa.table({**columns, "status": status_column(content, table, piece, variable)})


def identifier(name: str) -> str:
    """Return an SDMX name: capitals, digits and _, a letter first."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name).upper()
    return plain if plain[:1].isalpha() else f"X{plain}"


def _header(content: Content, table: DescribedTable) -> pa.Buffer:
    return csv_bytes(_lines(content, table, table.data.slice(0, 0), table.table.variables[0]), header=True)


def _variable_tables(table: DescribedTable) -> Iterator[tuple[pa.Table, str]]:
    """Some cells and a variable, one variable after the other."""
    return ((piece, name) for piece in slices(table.data) for name in table.table.variables)


def _lines(content: Content, table: DescribedTable, piece: pa.Table, variable: str) -> pa.Table:
    """The observations of a variable in some cells."""
    said, rows = content.words.publication, piece.num_rows
    part = ReleasedTable(name=table.name, keys=table.table.keys, variables=(variable,), data=piece)
    short, words = meaningful(part, piece), status_column(content, table, piece, variable)
    from recordwise.plan.describe import safe_name

    agency = identifier(safe_name(said.publisher) or "RECORDWISE")
    value = short.column(variable).cast(pa.float64())
    columns = {
        "STRUCTURE": _same("dataflow", rows),
        "STRUCTURE_ID": _same(f"{agency}:{identifier(table.name)}({said.version or '1.0'})", rows),
        "ACTION": _same(INFORMATION, rows),
    }
    for name, own in zip(table.table.keys, _dimensions(table.table.keys)):
        columns[own] = pc.fill_null(pc.cast(piece.column(name), pa.string()), UNKNOWN)
    columns["INDICATOR"] = _same(identifier(variable), rows)
    if said.period:
        columns["TIME_PERIOD"] = _same(said.period, rows)
    columns["OBS_VALUE"] = value
    columns["OBS_STATUS"] = _codes(value, words, content.rules.names()[0])
    columns["CONF_STATUS"] = _same(FREE, rows)
    unit = next(each.unit for each in table.columns if each.name == variable)
    sd = f"{variable}_sd"
    spread = short.column(sd).cast(pa.float64()) if sd in short.column_names else pa.nulls(rows, pa.float64())
    return pa.table(columns | {"STATUS": words, "UNIT_MEASURE": _same(unit, rows), "SD": spread})


def _dimensions(keys: tuple[str, ...]) -> list[str]:
    """Return distinct dimension names that avoid every file's columns."""
    taken, found = {*OWN, "STATUS", "UNIT_MEASURE", "SD"}, []
    for key in keys:
        name = identifier(key)
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(name)
    return found


def _codes(value: pa.ChunkedArray, words: pa.Array, best: str) -> pa.Array:
    known = pc.if_else(pc.or_(pc.equal(words, best), pc.equal(words, "")), RELIABLE, LOW)
    return pc.if_else(pc.is_null(value), WITHHELD, known)


def _same(text: str, rows: int) -> pa.Array:
    return pa.repeat(texts_of([text])[0], rows)
