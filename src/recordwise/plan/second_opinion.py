"""DuckDB's own parser, asked about SQL text that ours has read.

Ours mends what it reads: a comma too many, a bracket never closed, a keyword in the wrong place. What was meant by such text is a
guess, so text that only one of two parsers understands is refused. Nothing runs: the connection has no table and reads no file.
"""

import os
from functools import cache

import duckdb


@cache
def _parser(process: int) -> duckdb.DuckDBPyConnection:
    """One for each process, because a fork must not use its parent's."""
    settings: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "enable_external_access": False}
    return duckdb.connect(":memory:", config=settings)


def one_select(text: str) -> bool:
    """Whether the text is exactly one SELECT statement to DuckDB."""
    try:
        found = _parser(os.getpid()).cursor().extract_statements(text)
    except duckdb.Error:
        return False
    return [statement.type for statement in found] == [duckdb.StatementType.SELECT]
