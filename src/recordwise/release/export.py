"""Writes tables of a saved release in another format, to a file outside its folder. Nothing is drawn and nothing is spent."""

import os
import tempfile
from pathlib import Path

from recordwise.errors import OutputError, ParameterError
from recordwise.release.content import Content
from recordwise.release.formats.format import Format
from recordwise.release.formats.registry import known_formats, require_held, require_packages


def export(content: Content, file: str | Path, *, format: str, table: str | None = None) -> Path:
    """Write a table, or all of them where the format has one file for all.

    Args:
        content: What the release says.
        file: A file that does not exist yet.
        format: The name of a format.
        table: The name of a table; needed where the release has several and the format has a file for each.

    Returns:
        The file.

    Raises:
        ParameterError: The format or the table is unknown, or the format cannot hold the table.
        OutputError: The file exists or cannot be written.
    """
    known = known_formats()
    if format not in known:
        raise ParameterError(
            parameter="format", problem=f"is unknown: {format!r}", advice=f"Choose from {', '.join(known)}."
        )
    chosen, target = known[format], Path(file)
    require_packages((chosen,))
    part = _part(content, chosen, table)
    require_held(part, (chosen,))
    if os.path.lexists(target):
        raise OutputError(folder=str(target), problem="already exists", advice="Choose a new file.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
            made = Path(staging) / target.name
            chosen.write(part, made)
            os.rename(made, target)
    except OSError as error:
        raise OutputError(
            folder=str(target), problem=f"cannot be written ({error.strerror})", advice="Nothing was spent."
        ) from None
    return target


def _part(content: Content, chosen: Format, table: str | None) -> Content:
    names = [each.name for each in content.tables]
    if table is not None and table not in names:
        raise ParameterError(parameter="table", problem=f"is not in the release: {table!r}", advice=_listed(names))
    if table is not None:
        return content.only(table)
    if len(names) > 1 and not chosen.whole:
        raise ParameterError(
            parameter="table", problem=f"must be given: {chosen.name} has a file for each table", advice=_listed(names)
        )
    return content


def _listed(names: list[str]) -> str:
    return f"The tables are {', '.join(names)}."
