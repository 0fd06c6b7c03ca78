"""The output formats by name: those of recordwise, then those added by installed packages.

A package adds a format with an entry point in the group ``recordwise.formats`` that refers to an object with the members of
``Format``.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from recordwise.errors import ParameterError
from recordwise.release.formats.csv import Csv
from recordwise.release.formats.format import Format
from recordwise.release.formats.parquet import Parquet
from recordwise.release.tables import BANNER, NOT_PRIVATE, PRIVATE, ReleasedTable

GROUP = "recordwise.formats"
OWN: tuple[Format, ...] = (Parquet(), Csv())
DEFAULT_FORMATS = ("parquet", "csv")
REQUIRED = "parquet"
RESERVED = ("json", "html")
"""Extensions of the other files of a release."""


def known_formats() -> dict[str, Format]:
    """Every format by name.

    Raises:
        ParameterError: An installed package registers something that is not a format, or a name or extension already in use.
    """
    found = {each.name: each for each in OWN}
    for name, added in _added():
        taken = [*RESERVED, *(each.extension for each in found.values())]
        if name in found or added.extension in taken:
            raise _bad(name, f"its name or its extension '.{added.extension}' is already in use")
        found[name] = added
    return found


def _added() -> Iterator[tuple[str, Format]]:
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            added = point.load()
        except Exception as error:
            raise _bad(point.name, f"loading {point.value} failed with {type(error).__name__}") from error
        if not isinstance(added, Format) or added.name != point.name:
            raise _bad(point.name, f"{point.value} is not an output format of that name")
        yield point.name, added


def _bad(name: str, problem: str) -> ParameterError:
    return ParameterError(
        parameter=f"the output format '{name}' of an installed package",
        problem=f"cannot be used: {problem}",
        advice="Correct or uninstall that package.",
    )


def formats_named(names: Sequence[str]) -> tuple[Format, ...]:
    """The formats with these names, in the given order.

    Raises:
        ParameterError: A name is unknown or repeated, or Parquet is not among them.
    """
    known = known_formats()
    for name in names:
        if name not in known:
            raise ParameterError(
                parameter="formats",
                problem=f"name an unknown format: {name!r}",
                advice=f"Choose from {', '.join(known)}.",
            )
    if len(set(names)) < len(names):
        raise ParameterError(parameter="formats", problem="name a format twice")
    if REQUIRED not in names:
        raise ParameterError(
            parameter="formats",
            problem=f"must include {REQUIRED!r}",
            advice="A release is loaded and verified from its Parquet files.",
        )
    return tuple(known[name] for name in names)


def require_held(tables: Iterable[ReleasedTable], formats: Sequence[Format]) -> None:
    """Refuse a format that would change a column.

    Raises:
        ParameterError: A column has a type that a format cannot store.
    """
    for each in formats:
        for table in tables:
            for field in table.data.schema:
                if not each.holds(field.type):
                    raise ParameterError(
                        parameter="formats",
                        problem=f"include {each.name!r}, which cannot store column '{field.name}' of type {field.type}",
                        advice="Leave that format out.",
                    )


def privacy_labels(folder: Path, formats: Iterable[Format]) -> dict[str, str]:
    """The privacy label of every file of a release by name, except for the two JSON files."""
    found = {path.name: each.privacy_label(path) for each, path in files_of(folder, formats)}
    page = folder / "report.html"
    if page.exists():
        found[page.name] = NOT_PRIVATE if BANNER in page.read_text(encoding="utf-8") else PRIVATE
    return found


def files_of(folder: Path, formats: Iterable[Format]) -> Iterator[tuple[Format, Path]]:
    """Every table file of a folder, with the format it is in."""
    for each in formats:
        yield from ((each, path) for path in sorted(folder.glob(f"*.{each.extension}")))
