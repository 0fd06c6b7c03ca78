"""The layout of the county business patterns files, which economists already read.

Keys are a nation, a state or a county, and an industry or a sector, or 00 as the total of all. Columns are FIPSTATE, FIPSCTY,
NAICS, then for EMP, QP1 and AP a noise flag and the value, and EST. Values are whole numbers. The flag is mapped from the status of
the value: G for the first status (reliable), J for those between, S for the last (unreliable); a withheld value is 0 with the flag
S. The layout has no place for a privacy label, so it is for private releases only.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.plan.arrays import array_of, texts_of
from recordwise.release.content import Content, DescribedTable
from recordwise.release.dictionary import status_column, value_column
from recordwise.release.formats.csv import csv_bytes, runs, same_bytes, slices, write_pieces
from recordwise.release.formats.format import RUN, only_private
from recordwise.release.tables import PRIVATE

KEYS = {
    "nation": ("nation", "country"),
    "state": ("fipstate", "state", "st"),
    "county": ("fipscty", "county", "cty"),
    "naics": ("naics", "sector", "industry", "total"),
}
MEASURES = {
    "EMP": ("emp", "sum_emp"),
    "QP1": ("qp1", "payqtr1", "sum_qp1", "sum_payqtr1"),
    "AP": ("ap", "payann", "sum_ap", "sum_payann"),
}
COUNTS = ("est", "count", "estabs", "establishments")
NATION, WHOLE_STATE, TOTAL = "00", "000", "00"
GOOD, MIDDLE, BAD = "G", "J", "S"
WIDTH = 6
ALL = "-" * WIDTH
"""The code of all industries, which no spreadsheet can run."""


class Cbp:
    """One file per table, in the County Business Patterns layout."""

    name = "cbp"
    extension = "cbp.csv"
    description = "the table in the layout of the county business patterns"
    whole = False
    needs = ()

    def problem(self, content: Content) -> str | None:
        problem = only_private(content)
        for table in content.tables:
            places = _key_roles(table)
            if problem is None and set(places.values()) != set(table.table.keys):
                problem = f"knows no other keys than nation, state, county and naics, and '{table.name}' has some"
            if problem is None and not any(_variable(table, names) for names in (*MEASURES.values(), COUNTS)):
                problem = f"finds no emp, payqtr1, payann or count in '{table.name}'"
            for name, codes in _codes(table, table.data).items():
                if problem is None and runs(codes.filter(pc.not_equal(codes, ALL))):
                    problem = RUN.format(name)
        return problem

    def write(self, content: Content, path: Path) -> None:
        table = content.table
        with path.open("wb") as file:
            file.write(csv_bytes(_lines(content, table, table.data.slice(0, 0)), header=True))
            write_pieces(slices(table.data), file, lambda piece: csv_bytes(_lines(content, table, piece), header=False))

    def privacy_label(self, path: Path) -> str:
        return PRIVATE

    def same(self, content: Content, path: Path) -> bool:
        table = content.table
        header = csv_bytes(_lines(content, table, table.data.slice(0, 0)), header=True)
        pieces = (csv_bytes(_lines(content, table, piece), header=False) for piece in slices(table.data))
        return same_bytes(path, header, pieces)


def _key_roles(table: DescribedTable) -> dict[str, str]:
    """Which key is the state, the county, the industry."""
    found: dict[str, str] = {}
    for name in table.table.keys:
        plain = name.casefold().rstrip("0123456789_")
        role = next((role for role, names in KEYS.items() if plain in names), None)
        if role is not None and role not in found and pa.types.is_string(table.data.schema.field(name).type):
            found[role] = name
    return found


def _variable(table: DescribedTable, names: tuple[str, ...]) -> str | None:
    return next((each for each in table.table.variables if each.casefold() in names), None)


def _codes(table: DescribedTable, piece: pa.Table) -> dict[str, pa.Array]:
    """The place and the industry of each line."""
    places = _key_roles(table)
    county = _texts(piece, places.get("county"), WHOLE_STATE)
    state = _texts(piece, places.get("state"), NATION)
    if "state" not in places:
        # A county's full code starts with that of its state.
        state = pc.if_else(pc.equal(pc.utf8_length(county), 5), pc.utf8_slice_codeunits(county, 0, 2), NATION)
    return {"FIPSTATE": state, "FIPSCTY": pc.utf8_slice_codeunits(county, -3, None), "NAICS": _naics(piece, places)}


def _lines(content: Content, table: DescribedTable, piece: pa.Table) -> pa.Table:
    columns, rows = _codes(table, piece), piece.num_rows
    for name, names in MEASURES.items():
        variable = _variable(table, names)
        if variable is not None:
            words = status_column(content, table, piece, variable)
            value = _whole_number(piece, table, variable)
            columns[f"{name}_NF"] = _flags(words, value, content.rules.names())
            columns[name] = value.fill_null(0)
        else:
            columns |= {f"{name}_NF": pa.nulls(rows, pa.string()), name: pa.nulls(rows, pa.int64())}
    count = _variable(table, COUNTS)
    columns["EST"] = pa.nulls(rows, pa.int64()) if count is None else _whole_number(piece, table, count)
    return pa.table(columns)


def _texts(piece: pa.Table, name: str | None, default: str) -> pa.Array:
    if name is None:
        return texts_of([default]).take(array_of(np.zeros(piece.num_rows, np.int64)))
    return pc.fill_null(piece.column(name).combine_chunks(), default)


def _naics(piece: pa.Table, columns: dict[str, str]) -> pa.Array:
    """Return six-character NAICS codes.

    11----, 113///, 113310, and ------ for the total; a range such as 31-33 by its first sector.
    """
    code = pc.replace_substring_regex(_texts(piece, columns.get("naics"), ""), r"^(\d\d)-\d\d$", r"\1")
    code = pc.if_else(pc.equal(code, TOTAL), "", code)
    sector = pc.less_equal(pc.utf8_length(code), 2)
    return pc.if_else(sector, pc.utf8_rpad(code, WIDTH, "-"), pc.utf8_rpad(code, WIDTH, "/"))


def _whole_number(piece: pa.Table, table: DescribedTable, variable: str) -> pa.Array:
    """The value to publish, as a whole number."""
    column = piece.column(value_column(table.table, variable)).combine_chunks()
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return pc.round(column).cast(pa.int64(), safe=False)


def _flags(words: pa.Array, value: pa.Array, names: tuple[str, ...]) -> pa.Array:
    known = pc.if_else(pc.equal(words, names[0]), GOOD, pc.if_else(pc.equal(words, names[-1]), BAD, MIDDLE))
    return pc.if_else(pc.is_null(value), BAD, known)
