"""A release for readers: named tables, and totals with exact errors."""

import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from recordwise.errors import ParameterError, SourceError

if TYPE_CHECKING:
    import pyarrow as pa

    from recordwise.reader.answers import Answer
    from recordwise.release.release import Release

DESCRIPTION = "release.json"
MOST_BYTES = 2**34
"""What the files of a zip may take when they are unpacked."""


def read(folder_or_zip: str | Path) -> "ReaderRelease":
    """Return a published release for reading and asking.

    Its digests are checked: a release whose tables or policy were changed is refused. Nothing is spent, and no record
    is read.

    Args:
        folder_or_zip: The folder of a release, or a zip of it.

    Returns:
        The release.

    Raises:
        SourceError: It is no release, or it was changed.
    """
    from recordwise.release.files import load_release

    place = Path(folder_or_zip)
    if not place.is_file():
        return ReaderRelease(load_release(place))
    with tempfile.TemporaryDirectory(prefix="recordwise-") as unpacked:
        _unpack(place, Path(unpacked))
        return ReaderRelease(load_release(unpacked))


def _unpack(file: Path, folder: Path) -> None:
    """Write the files next to release.json into a folder."""
    try:
        with zipfile.ZipFile(file) as packed:
            found = [each for each in packed.infolist() if PurePosixPath(each.filename).name == DESCRIPTION]
            if len(found) != 1:
                raise SourceError(source=f"'{file}'", problem="it does not hold exactly one release")
            home = PurePosixPath(found[0].filename).parent
            files = [e for e in packed.infolist() if PurePosixPath(e.filename).parent == home and not e.is_dir()]
            if sum(each.file_size for each in files) > MOST_BYTES:
                raise SourceError(source=f"'{file}'", problem="its files are too large", advice="Unpack it first.")
            for each in files:
                with packed.open(each) as source, (folder / PurePosixPath(each.filename).name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError):
        raise SourceError(source=f"'{file}'", problem="it is neither a folder nor a zip of a release") from None


class ReaderRelease:
    """A published release as its readers use it; ``read`` makes it.

    ``names`` are its tables, ``release[name]`` is one of them as Arrow, ``total`` adds up cells.
    """

    def __init__(self, release: "Release") -> None:
        self._release = release
        self._models: dict[Any, Any] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(table.name for table in self._release.tables)

    @property
    def title(self) -> str:
        """What the release is called."""
        return self._release.words.publication.title or self._release.published.dataset

    @property
    def digest(self) -> str:
        """The fingerprint of tables and policy."""
        return self._release.digest

    @property
    def labels(self) -> Mapping[str, str]:
        """What readers call columns, published names and values (``naics=21``)."""
        return self._release.words.labels

    @property
    def privacy_label(self) -> str:
        """Whether the release is private."""
        return self._release.privacy_label

    def __getitem__(self, name: str) -> "pa.Table":
        """A table by name, as Arrow."""
        return self._release[name]

    def to_pandas(self, name: str | None = None) -> Any:
        """A pandas frame.

        Args:
            name: The name of a table; needed where the release has several.

        Returns:
            The frame.
        """
        return self._release.to_pandas(name)

    def total(
        self,
        name: str,
        where: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
        regions: Any = None,
        complete: bool | None = None,
        nonnegative: bool = False,
        query: int | None = None,
        confidence: float | None = None,
    ) -> "Answer":
        """Return a total from all tables, with its exact standard error.

        The best linear unbiased estimate (T-ASK). Public keys need not list every cell; unless they are known to, or
        rests are published, finer tables say nothing about coarser ones, and the answer says so.

        Args:
            name: A count or sum: ``"sum_emp"``, or ``"emp"`` where it is summed once, or ``"count"``.
            where: For columns of the tables a code or several: ``{"county": ["34001", "34003"]}``.
            by: A column: one total for each of its values.
            regions: Regions made of codes: a CSV file, a frame or a mapping with the columns ``code`` (or the name of
                a column of the tables), ``region`` and perhaps ``share``, the part of the code that is in the region.
                With the column ``code``, ``by`` says what the codes are; else it is found.
            complete: Whether the keys list every cell that can hold records; by default what a saved fit declared.
            nonnegative: Whether values and intervals are cut at 0; the values are then biased.
            query: The number of the query, where several have such a total of different records.
            confidence: That of the intervals; by default that of the release.

        Returns:
            The total, or several with their covariance.

        Raises:
            ParameterError: The question cannot be answered, with what can be asked instead.
        """
        from recordwise.reader.asking import Question, answer

        asked = Question.of(
            name, where, by=by, regions=regions, complete=complete, nonnegative=nonnegative, query=query
        )
        level = self._release.published.confidence if confidence is None else confidence
        if not 0 < level < 1:
            raise ParameterError(parameter="confidence", problem="must be between 0 and 1")
        return answer(self._release, asked, level, self._models)

    def __repr__(self) -> str:
        return f"<{self.title}: {', '.join(self.names)}; {self.privacy_label}>"

    def _repr_html_(self) -> str:
        from recordwise.policy.render.html import element
        from recordwise.release.page.cells import table_preview

        heading = element("p", element("b", self.title), f" ({self.privacy_label})")
        shown = [part for table in self._release.tables for part in (self._words_of(table), table_preview(table))]
        return element("div", heading, *shown)

    def _words_of(self, table: Any) -> Any:
        """The labels of a table's columns, where it has any."""
        from recordwise.policy.render.html import element

        named = [f"{each}: {self.labels[each]}" for each in (*table.keys, *table.variables) if each in self.labels]
        return element("p", f"{table.name}: {'; '.join(named)}") if named else ""
