"""The interface of an output format: it writes and checks files."""

from pathlib import Path
from typing import Protocol, runtime_checkable

from recordwise.release.content import Content


@runtime_checkable
class Format(Protocol):
    """A stateless file format for published tables."""

    @property
    def name(self) -> str:
        """The name in ``release.save(formats=...)`` and a plan file's ``[outputs] formats``."""

    @property
    def extension(self) -> str:
        """The file extension, without the dot. No two formats share one."""

    @property
    def description(self) -> str:
        """What report.html says about the files."""

    @property
    def whole(self) -> bool:
        """Whether one file holds all tables, not one each."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The optional packages it needs, by the names they are imported under."""

    def problem(self, content: Content) -> str | None:
        """Return why this content cannot be written, or None.

        As the end of a sentence about the format. Called with tables that have no rows before anything is spent, and
        with the real ones before a file is written.
        """

    def write(self, content: Content, path: Path) -> None:
        """Write a new file that carries the privacy label.

        Raises:
            OSError: The file could not be written. The whole release is then discarded.
        """

    def privacy_label(self, path: Path) -> str:
        """The privacy label of a file."""

    def same(self, content: Content, path: Path) -> bool:
        """Return whether a file contains exactly what ``write`` would write."""


RUN = "cannot store column '{}': a spreadsheet would run some of its values as formulas"


def only_private(content: Content) -> str | None:
    """The problem of a layout without a place for the privacy label."""
    return None if content.private else "has no place for the label NOT PRIVATE"


def type_problem(content: Content) -> str | None:
    """Return the problem of a column of unsupported type."""
    from recordwise.release.tables import publishable

    for table in content.tables:
        for field in table.data.schema:
            if not publishable(field.type):
                return f"cannot store column '{field.name}' of type {field.type}"
    return None
