"""A DuckDB connection that can read only the files it was given and whose errors reveal nothing about them."""

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.errors import EngineError
from recordwise.plan.arrays import numpy_of

BATCH_ROWS = 500_000
TRUSTING = "statistics_propagation,filter_pushdown,join_filter_pushdown,row_group_pruner"
"""What decides conditions, groups and least values, or leaves records out, by what a file states about them: the least and the
largest value of a Parquet column, how many are missing, a Bloom filter. A file can state anything, and NaN is in none of it."""


class Connection:
    """Runs SQL trees. Every failure becomes an ``EngineError`` without the engine's text."""

    def __init__(self, *, files: Sequence[Path], memory_limit: str, threads: int | None) -> None:
        # Spilled pages hold records, so they go to a private directory that is removed with the connection.
        self._spill = tempfile.TemporaryDirectory(prefix="recordwise-")
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "threads": threads or os.cpu_count() or 1,
            "temp_directory": self._spill.name,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "default_collation": "",
            "disabled_optimizers": TRUSTING,
        }
        try:
            self.duckdb = duckdb.connect(":memory:", config=settings)
            self._lock(files)
        except duckdb.Error as error:
            self._spill.cleanup()
            raise failure(error) from None

    def _lock(self, files: Sequence[Path]) -> None:
        self._draw_no_bar()
        allowed = exp.Array(expressions=[exp.Literal.string(str(path)) for path in files])
        for name, value in (
            ("allowed_paths", allowed),
            ("enable_external_access", exp.false()),
            ("lock_configuration", exp.true()),
        ):
            self._set(name, value)

    def _draw_no_bar(self) -> None:
        """A bar is drawn on standard output wherever Python runs no file, as if a person sat there.

        In Jupyter without ipywidgets DuckDB cannot draw one, and refuses to be told not to.
        """
        with suppress(duckdb.InvalidInputException):
            self._set("enable_progress_bar", exp.false())

    def _set(self, name: str, value: exp.Expr) -> None:
        item = exp.SetItem(this=exp.EQ(this=exp.to_identifier(name), expression=value))
        self.duckdb.execute(exp.Set(expressions=[item]).sql(dialect="duckdb"))

    def run(self, tree: exp.Expr) -> None:
        """Run a statement that returns nothing."""
        try:
            self.duckdb.execute(tree.sql(dialect="duckdb", copy=False))
        except duckdb.Error as error:
            raise failure(error) from None

    def fetch(self, tree: exp.Expr) -> pa.Table:
        """Run a query and return its rows as Arrow."""
        try:
            return self.duckdb.sql(tree.sql(dialect="duckdb", copy=False)).to_arrow_table()
        except duckdb.Error as error:
            raise failure(error) from None

    def fetch_numbers(self, tree: exp.Expr, *, at_most: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]] | None:
        """One column of 64-bit numbers without NULLs, read in batches; None if there are more than ``at_most``."""
        parts, taken = [np.empty(0, dtype=np.uint64)], 0
        try:
            for batch in self.duckdb.sql(tree.sql(dialect="duckdb", copy=False)).to_arrow_reader(BATCH_ROWS):
                parts.append(numpy_of(batch.column(0)).view(np.uint64))
                taken += batch.num_rows
                if taken > at_most:
                    return None
        except duckdb.Error as error:
            raise failure(error) from None
        return np.concatenate(parts)

    def close(self) -> None:
        """Close the connection and delete everything it holds, including spilled pages."""
        self.duckdb.close()
        self._spill.cleanup()


def failure(error: Exception) -> EngineError:
    """An error without the engine's text, which can quote a record: neither keep nor chain it; raise this ``from None``."""
    return EngineError(engine="duckdb", kind=type(error).__name__)
