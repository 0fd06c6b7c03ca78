"""The interface of an output format: it writes tables to a file, and checks later whether a file still matches them."""

from pathlib import Path
from typing import Protocol, runtime_checkable

from recordwise.release.content import Content


@runtime_checkable
class Format(Protocol):
    """A file format for published tables. Formats have no state; one instance serves every release."""

    @property
    def name(self) -> str:
        """The name used in ``release.save(formats=...)`` and in ``[outputs] formats`` of a plan file."""

    @property
    def extension(self) -> str:
        """The file extension, without the dot. No two formats share one."""

    @property
    def description(self) -> str:
        """What report.html says about the files."""

    @property
    def whole(self) -> bool:
        """Whether one file holds all tables; otherwise each table has a file, and the content of a file has one table."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The optional packages it needs, by the names they are imported under."""

    def problem(self, content: Content) -> str | None:
        """Why this content cannot be written, as the end of a sentence about the format; None if it can.

        Called with tables that have no rows before anything is spent, and with the real ones before a file is written.
        """

    def write(self, content: Content, path: Path) -> None:
        """Write a new file that carries the privacy label.

        Raises:
            OSError: The file could not be written. The whole release is then discarded.
        """

    def privacy_label(self, path: Path) -> str:
        """The privacy label of a file."""

    def same(self, content: Content, path: Path) -> bool:
        """Whether a file contains exactly what ``write`` would write, whatever its privacy label."""


RUN = "cannot store column '{}': a spreadsheet would run some of its values as formulas"


def only_private(content: Content) -> str | None:
    """The problem of a layout without a place for the privacy label."""
    return None if content.private else "has no place for the label NOT PRIVATE"


def type_problem(content: Content) -> str | None:
    """Whether a table has a column that is neither numbers, text nor truth values."""
    from recordwise.release.tables import publishable

    for table in content.tables:
        for field in table.data.schema:
            if not publishable(field.type):
                return f"cannot store column '{field.name}' of type {field.type}"
    return None
