"""An engine of a user's own, complete: tables of a SQLite file, read into memory and left to DuckDB."""

import sqlite3
from contextlib import closing
from typing import Any

import pyarrow as pa

from recordwise.engines.duckdb.engine import DuckDB
from recordwise.engines.registry import EngineKind
from recordwise.plan.sources import open_source


def open_sqlite(source: Any) -> Any:
    """``"file.db::table"``."""
    file, _, table = str(source).partition("::")
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as opened:
        found = opened.execute('SELECT * FROM "{}"'.format(table.replace('"', '""')))
        names = [column[0] for column in found.description]
        rows = found.fetchall()
    return open_source(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}))


SQLITE = EngineKind(name="sqlite", open_source=open_sqlite, open=DuckDB)
