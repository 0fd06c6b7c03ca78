"""The output formats by name, with those of installed packages.

A package adds a format with an entry point in the group ``recordwise.formats`` that refers to an object with
the members of ``Format``.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from recordwise.errors import ParameterError, RecordwiseError
from recordwise.release.content import NAME as DATA_PACKAGE
from recordwise.release.content import Content
from recordwise.release.formats.cbp import Cbp
from recordwise.release.formats.csv import Csv
from recordwise.release.formats.format import Format
from recordwise.release.formats.parquet import Parquet
from recordwise.release.formats.sdmx_csv import LongCsv, SdmxCsv
from recordwise.release.formats.statistical import SAS, SAS8, STATA, R
from recordwise.release.formats.xlsx import Xlsx
from recordwise.release.tables import BANNER, NOT_PRIVATE, PRIVATE

GROUP = "recordwise.formats"
OWN: tuple[Format, ...] = (Parquet(), Csv(), Xlsx(), SAS, SAS8, STATA, SdmxCsv(), LongCsv(), Cbp(), R)
REQUIRED = "parquet"
RESERVED = ("json", "html")
"""Extensions of the other files of a release."""


def known_formats() -> dict[str, Format]:
    """Every format by name.

    Raises:
        ParameterError: An installed package registers something that is not a format, or a name or extension already in use.
    """
    found = {each.name: each for each in OWN}
    for name, added in _installed_formats(_installed(tuple(sys.path))):
        taken = [*RESERVED, *(each.extension for each in found.values())]
        if name in found or added.extension in taken:
            raise _bad(name, f"its name or its extension '.{added.extension}' is already in use")
        found[name] = added
    return found


@lru_cache(maxsize=4)
def _installed(folders: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Look through the packages once for each path: it takes longer than the noise of a small release."""
    return tuple(entry_points(group=GROUP))


def _installed_formats(points: Iterable[EntryPoint]) -> Iterator[tuple[str, Format]]:
    for point in sorted(points, key=lambda each: each.name):
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
        ParameterError: A name is unknown or repeated, Parquet or what a format reads is not among them, or a package is
            missing.
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
    chosen = tuple(known[name] for name in names)
    for each in chosen:
        # Functions read the files of another format.
        if (other := getattr(each, "reads", None)) is not None and other not in names:
            raise ParameterError(
                parameter="formats",
                problem=f"include {each.name!r}, which reads the files of {other!r}",
                advice=f"Add {other!r}.",
            )
    require_packages(chosen)
    return chosen


def require_packages(formats: Iterable[Format]) -> None:
    """Refuse a format whose optional packages are not installed.

    Raises:
        ParameterError: A package is missing.
    """
    for each in formats:
        if not usable(each):
            raise ParameterError(
                parameter="formats",
                problem=f"include {each.name!r}, which needs {' and '.join(each.needs)}",
                advice="Install recordwise[formats], or leave that format out.",
            )


def usable(each: Format) -> bool:
    """Whether the optional packages of a format are installed."""
    return all(find_spec(name) is not None for name in each.needs)


def require_storable(content: Content, formats: Sequence[Format]) -> None:
    """Refuse a format that cannot hold what it is given.

    Raises:
        ParameterError: A format says why it cannot.
    """
    for each, _, part in files_to_write(content, formats):
        problem = each.problem(part)
        if problem is not None:
            raise ParameterError(
                parameter="formats",
                problem=f"include {each.name!r}, which {problem}",
                advice="Leave that format out.",
            )


def files_to_write(content: Content, formats: Iterable[Format]) -> Iterator[tuple[Format, str, Content]]:
    """Yield every file of these formats: format, name and content."""
    for each in formats:
        if each.whole:
            # Functions have one name in every release, so that scripts can be kept.
            yield each, getattr(each, "file", f"{content.file_name}.{each.extension}"), content
            continue
        for table in content.tables:
            yield each, f"{table.name}.{each.extension}", content.only(table.name)


class UnreadableFileError(ValueError):
    """A file of a release that its format cannot read; the reason may quote it and is left out."""


def privacy_labels(folder: Path, formats: Iterable[Format]) -> dict[str, str]:
    """Return the files' privacy labels by name, without the JSON files.

    Raises:
        UnreadableFileError: A file is damaged.
    """
    found = {}
    for each, path in files_of(folder, formats):
        try:
            found[path.name] = each.privacy_label(path)
        except (MemoryError, RecordwiseError):
            raise
        except Exception:
            # Each reader has errors of its own: of archives, of XML, of statistical packages.
            raise UnreadableFileError(path.name) from None
    page, package = folder / "report.html", folder / DATA_PACKAGE
    if page.exists():
        found[page.name] = NOT_PRIVATE if BANNER in page.read_text(encoding="utf-8") else PRIVATE
    if package.exists():
        found[package.name] = str(json.loads(package.read_text(encoding="utf-8"))["privacy_label"])
    return found


def files_of(folder: Path, formats: Iterable[Format]) -> Iterator[tuple[Format, Path]]:
    """Yield a folder's table files with their installed formats."""
    known, paths = tuple(formats), sorted(folder.iterdir())
    # An extension can end with that of another format, as sdmx.csv does: the longest one counts.
    ordered = sorted(known, key=lambda each: len(each.extension), reverse=True)
    kinds = [next((each for each in ordered if path.name.endswith(f".{each.extension}")), None) for path in paths]
    for each in filter(usable, known):
        yield from ((each, path) for path, kind in zip(paths, kinds) if kind is each)
