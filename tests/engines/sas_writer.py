"""SAS7BDAT files for tests, written by ReadStat's own writer, which pyreadstat carries but does not offer.

Files that SAS itself wrote cannot be part of this project. The reader is the one in use for files of SAS; what it makes of
deleted rows, of compressed files or of foreign encodings is not tested here.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TEXT, NUMBER = 0, 5
Column = tuple[str, Sequence[Any], dict[str, Any]]


def _library() -> ctypes.CDLL:
    import pyreadstat

    return ctypes.CDLL(pyreadstat._readstat_writer.__file__)


def can_write() -> bool:
    try:
        return hasattr(_library(), "readstat_begin_writing_sas7bdat")
    except (ImportError, OSError, ValueError):
        return False


def write_sas7bdat(path: Path, columns: dict[str, Sequence[Any]], formats: dict[str, str] | None = None) -> Path:
    """Columns of str or float. None is the missing value ``.`` or a blank; a number column may hold ".A" for a special one."""
    library, pointer = _library(), ctypes.c_void_p
    library.readstat_writer_init.restype = library.readstat_add_variable.restype = pointer
    writer = pointer(library.readstat_writer_init())
    with path.open("wb") as file:
        sink = ctypes.CFUNCTYPE(ctypes.c_ssize_t, pointer, ctypes.c_size_t, pointer)(
            lambda data, size, _: file.write(ctypes.string_at(data, size))
        )
        library.readstat_set_data_writer(writer, sink)
        variables = [
            _variable(library, writer, name, values, (formats or {}).get(name)) for name, values in columns.items()
        ]
        rows = len(next(iter(columns.values())))
        _done(library.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(rows)))
        for row in range(rows):
            _done(library.readstat_begin_row(writer))
            for variable, values in zip(variables, columns.values()):
                _done(_insert(library, values[row], is_text(values))(writer, variable))
            _done(library.readstat_end_row(writer))
        _done(library.readstat_end_writing(writer))
    library.readstat_writer_free(writer)
    return path


def is_text(values: Sequence[Any]) -> bool:
    return any(isinstance(each, str) and not (len(each) == 2 and each[0] == ".") for each in values)


def _variable(
    library: ctypes.CDLL, writer: Any, name: str, values: Sequence[Any], shown: str | None
) -> ctypes.c_void_p:
    width = max(len(each.encode()) for each in values if each is not None) if is_text(values) else 0
    kind = TEXT if is_text(values) else NUMBER
    made = ctypes.c_void_p(library.readstat_add_variable(writer, name.encode(), kind, ctypes.c_size_t(width)))
    if shown:
        library.readstat_variable_set_format(made, shown.encode())
    return made


def _insert(library: ctypes.CDLL, value: Any, text: bool) -> Callable[[Any, Any], int]:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return library.readstat_insert_missing_value
    if text:
        return lambda writer, variable: library.readstat_insert_string_value(writer, variable, value.encode())
    if isinstance(value, str):
        return lambda writer, variable: library.readstat_insert_tagged_missing_value(
            writer, variable, ctypes.c_char(value[1].encode())
        )
    return lambda writer, variable: library.readstat_insert_double_value(writer, variable, ctypes.c_double(value))


def _done(code: int) -> None:
    assert code == 0, f"ReadStat refused with {code}"
