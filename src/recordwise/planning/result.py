"""The base of all planning results: label, table, JSON, notebook view, file."""

import csv
import html
import json
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from recordwise.errors import OutputError, ParameterError
from recordwise.exact import text
from recordwise.plan.schema import NO_LOOK

CONFIDENTIAL = "CONFIDENTIAL: computed from the confidential records themselves; not for publication"
PAST = "CONFIDENTIAL: computed from past records, which are confidential too; not for publication"
Rows: TypeAlias = tuple[list[str], list[list[str]]]
"""Headers and rows of a table to show."""


def mark_of(data: str) -> str:
    """Return the label above a table or below a figure."""
    if data in NO_LOOK:
        return f"computed from {data} records"
    return PAST if data == "past" else CONFIDENTIAL


def loss_figure(value: float) -> str:
    """Format a number for a planning table."""
    return text.figure(value, infinite="unbounded")


def record_text(record: dict[str, Any]) -> str:
    """A record as readable text."""
    return ", ".join(f"{name} {_value_text(value)}" for name, value in record.items())


def _value_text(value: Any) -> str:
    if isinstance(value, Fraction):
        return f"{int(value):,}" if value.denominator == 1 else text.prose_text(value)
    return str(value)


class Named(Protocol):
    """A candidate with a name."""

    @property
    def name(self) -> str:
        """The name under which it is found."""


Some = TypeVar("Some", bound=Named)


def candidate_named(candidates: Sequence[Some], name: str, infeasible: Mapping[str, str] | None = None) -> Some:
    """Return a candidate by name; refuse one that is infeasible or unknown."""
    for each in candidates:
        if each.name == name:
            return each
    if infeasible and name in infeasible:
        raise ParameterError(parameter="name", problem=f"{name!r} cannot meet the goals: {infeasible[name]}")
    known = ", ".join(repr(each.name) for each in candidates)
    raise ParameterError(parameter="name", problem=f"{name!r} is no candidate", advice=f"Candidates are {known}.")


def html_table(title: str, rows: Rows, *, privacy_label: str, notes: Sequence[str] = ()) -> str:
    """Return a table for a notebook, with the privacy label."""
    head = "".join(f"<th scope='col'>{html.escape(each)}</th>" for each in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1])
    caption = f"<caption><b>{html.escape(title)}</b><br>{html.escape(privacy_label)}</caption>"
    after = "".join(f"<p>{html.escape(line)}</p>" for note in notes for line in note.splitlines())
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"


def owner_only(path: Path, data: str) -> None:
    """Create a file that only its owner can read, in no folder of a release, unless the records are public or synthetic."""
    if data not in NO_LOOK:
        outside_releases(path)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        path.chmod(0o600)


def outside_releases(path: Path) -> None:
    """Refuse a confidential file in the folder of a release."""
    folders = dict.fromkeys((*path.absolute().parents, *path.resolve().parents))
    if any(
        (folder / name).exists() for folder in folders for name in ("release.json", "datapackage.json", "policy.json")
    ):
        raise OutputError(
            folder=str(path),
            problem="lies in the folder of a release, which is published",
            advice="Name another folder.",
        )


class Result:
    """What planning found; confidential if the records are."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def data(self) -> str:
            """What the records are: "public", "synthetic", "past" or "confidential"."""

    @property
    def privacy_label(self) -> str:
        """What the records are that it was computed from."""
        return mark_of(self.data)

    def rows(self) -> Rows:
        """Return headers and rows of a table to show."""
        raise NotImplementedError

    def summary(self) -> str:
        """Return the result in words, empty if the table says it all."""
        return ""

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know."""
        return ()

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, for JSON."""
        return {"privacy_label": self.privacy_label} | self._numbers()

    def save(self, path: str | Path) -> Path:
        """Write everything as JSON, or the table as CSV, readable by the owner only if it is confidential.

        Args:
            path: A new file; JSON if its name ends in .json, otherwise CSV.

        Returns:
            The file.
        """
        file = Path(path)
        if os.path.lexists(file):
            raise ParameterError(parameter=str(file), problem="already exists", advice="Choose a new file.")
        if self.data not in NO_LOOK:
            outside_releases(file)
        owner_only(file, self.data)
        with file.open("w", newline="", encoding="utf-8") as opened:
            if file.suffix.lower() == ".json":
                json.dump(self.to_json(), opened)
            else:
                headers, rows = self.rows()
                csv.writer(opened).writerows([headers, *rows])
        return file

    def _numbers(self) -> dict[str, Any]:
        raise NotImplementedError

    def _title(self) -> str:
        raise NotImplementedError

    def _about(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._about()}: {self.privacy_label}>"

    def _repr_html_(self) -> str:
        notes = [each for each in (self.summary(), *self.notes()) if each]
        return html_table(self._title(), self.rows(), privacy_label=self.privacy_label, notes=notes)
