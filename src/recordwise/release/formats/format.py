"""The interface of an output format: it writes one table to one file, and checks later whether a file still matches a table."""

from pathlib import Path
from typing import Protocol, runtime_checkable

import pyarrow as pa


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

    def holds(self, kind: pa.DataType) -> bool:
        """Whether a column of this type is unchanged after being written and read again."""

    def write(self, data: pa.Table, path: Path, *, privacy_label: str) -> None:
        """Write a table to a new file that carries the privacy label.

        Raises:
            OSError: The file could not be written. The whole release is then discarded.
        """

    def privacy_label(self, path: Path) -> str:
        """The privacy label of a file."""

    def same(self, data: pa.Table, path: Path) -> bool:
        """Whether a file contains exactly this table, whatever its privacy label."""
