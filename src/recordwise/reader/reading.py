"""A release for readers: named tables, and totals with exact errors."""

import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from numbers import Real
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from recordwise.errors import ParameterError, SourceError, expect_flags, expect_kind, own_argument_errors, own_errors_of
from recordwise.release.release import Release

if TYPE_CHECKING:
    from recordwise.reader.answers import Answer
    from recordwise.reader.derived import Ranks, Regression, Replicates
    from recordwise.reader.questions import Question

DESCRIPTION = "release.json"
UNPACKING = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    UnicodeDecodeError,
)
"""What unpacking a damaged or unrelated file can raise."""
ENTRIES = (
    "queries",
    "measures",
    "categories",
    "lists",
    "series",
    "refinement",
    "step",
    "follows",
    "tier_of",
    "confidence",
    "firm",
)
"""What questions ask of it, read at once so that a damaged one is refused at once."""
MOST_CERTAIN = 1 - 1e-12
"""Above it the quantile of an interval is lost in roundings."""
MOST_BYTES, MOST_TIMES = 2**34, 200
"""What the files of a zip may take when they are unpacked: this many bytes, and this many times the zip."""


@own_argument_errors
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
    from recordwise.release.files import UNREADABLE, load_release

    expect_kind(folder_or_zip, (str, Path), parameter="folder_or_zip", wanted="the path of a folder or a zip")
    with _folder(folder_or_zip) as place:
        found = ReaderRelease.of(load_release(place))
    try:
        for entry in ENTRIES:
            getattr(found.published, entry)
        found.published.lists.tables()
    except UNREADABLE:
        raise SourceError(source=f"'{folder_or_zip}'", problem="its release.json is damaged") from None
    return found


def problems(folder_or_zip: str | Path) -> list[str]:
    """Return the files of a release that differ from the saved ones.

    Args:
        folder_or_zip: The folder of a release, or a zip of it.

    Returns:
        What is missing or different, by name; of a release of the first versions nothing, as they list no files.

    Raises:
        SourceError: It is no release, or its tables or its policy were changed.
    """
    from recordwise.release.files import load_release
    from recordwise.release.published import Published
    from recordwise.release.staging import file_problems

    with _folder(folder_or_zip) as place:
        load_release(place)
        return file_problems(place, Published.load(place / DESCRIPTION).files)


@contextmanager
def _folder(folder_or_zip: str | Path) -> Iterator[Path]:
    place = Path(folder_or_zip)
    if not place.is_file():
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="recordwise-") as unpacked:
        _unpack(place, Path(unpacked))
        yield Path(unpacked)


def _unpack(file: Path, folder: Path) -> None:
    """Write the files next to release.json into a folder."""
    try:
        with zipfile.ZipFile(file) as packed:
            found = [each for each in packed.infolist() if PurePosixPath(each.filename).name == DESCRIPTION]
            if len(found) != 1:
                raise SourceError(source=f"'{file}'", problem="it does not hold exactly one release")
            home = PurePosixPath(found[0].filename).parent
            files = [e for e in packed.infolist() if PurePosixPath(e.filename).parent == home and not e.is_dir()]
            if sum(each.file_size for each in files) > min(MOST_BYTES, MOST_TIMES * file.stat().st_size):
                raise SourceError(source=f"'{file}'", problem="its files are too large", advice="Unpack it first.")
            for each in files:
                with packed.open(each) as source, (folder / PurePosixPath(each.filename).name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except UNPACKING:
        raise SourceError(source=f"'{file}'", problem="it is neither a folder nor a zip of a release") from None


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ReaderRelease(Release):
    """A published release as its readers use it; ``read`` makes it.

    It is a ``Release`` that can be asked: ``names`` are its tables, ``release[name]`` is one of them as Arrow,
    ``total`` adds up cells.
    """

    models: dict[Any, Any] = field(default_factory=dict, init=False)
    """The fits that questions have needed so far."""

    @classmethod
    def of(cls, release: Release) -> "ReaderRelease":
        """Return a release in memory as one to ask.

        Args:
            release: What a session returned.

        Returns:
            The same, for readers.
        """
        return cls(**{each.name: getattr(release, each.name) for each in fields(Release)})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(table.name for table in self.tables)

    @property
    def title(self) -> str:
        """What the release is called."""
        return self.words.publication.title or self.published.dataset

    @property
    def labels(self) -> Mapping[str, str]:
        """What readers call columns, published names and values (``naics=21``)."""
        return self.words.labels

    def total(
        self,
        name: str,
        where: Mapping[str, Any] | str | None = None,
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
            where: For columns of the tables a code or several: ``{"county": ["34001", "34003"]}``; or a condition:
                ``"county in ('34001', '34003') and not naics2 = '31-33'"``.
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
        from recordwise.reader.questions import Question

        asked = Question.of(
            name, where, by=by, regions=regions, complete=complete, nonnegative=nonnegative, query=query
        )
        return self._answer(asked, confidence)

    def share(
        self,
        name: str,
        where: Mapping[str, Any] | str | None = None,
        *,
        of: Mapping[str, Any] | str | None = None,
        each: bool = False,
        by: str | None = None,
        regions: Any = None,
        complete: bool | None = None,
        query: int | None = None,
        confidence: float | None = None,
    ) -> "Answer":
        """Return a total as a share of another, with Fieller's interval.

        Args:
            name: As in ``total``.
            where: As in ``total``.
            of: The condition of the whole; by default everything.
            each: Whether the whole is that of each value of ``by`` or of each region, and not one for all:
                ``share("emp", {"naics2": "31-33"}, by="county", each=True)`` is that of manufacturing in each county.
            by: As in ``total``: a share for each value.
            regions: As in ``total``.
            complete: As in ``total``.
            query: As in ``total``.
            confidence: As in ``total``.

        Returns:
            The shares.

        Raises:
            ParameterError: The question cannot be answered, or the whole is not clearly different from 0.
        """
        from recordwise.reader.questions import Question

        expect_flags(each=each)
        whole = Question.of(name, of, by=by if each else None, regions=regions if each else None)
        asked = Question.of(name, where, by=by, regions=regions, complete=complete, query=query, whole=whole)
        return self._answer(asked, confidence).shares(each=each, of=whole.text(self.labels) if whole.columns else "all")

    def growth(
        self,
        name: str,
        *before: "ReaderRelease",
        where: Mapping[str, Any] | str | None = None,
        by: str | None = None,
        regions: Any = None,
        crosswalk: Mapping[str, Any] | None = None,
        complete: bool | None = None,
        confidence: float | None = None,
    ) -> "Answer":
        """Return the growth since earlier releases, as shares.

        Units and statistics must agree. Codes of ``by`` that only one release has are left out, with a note; with a
        crosswalk, codes that were split or merged are added up to what both have in common.

        Args:
            name: As in ``total``.
            before: The earlier releases.
            where: As in ``total``.
            by: As in ``total``.
            regions: As in ``total``, of today's codes.
            crosswalk: For the column of ``by`` or of the regions, pairs of an earlier and a later code.
            complete: As in ``total``.
            confidence: As in ``total``.

        Returns:
            The growth rates (0.02 is 2 %) since each earlier release, with their covariance.

        Raises:
            ParameterError: Releases do not fit together, or an earlier total is not clearly different from 0.
        """
        from recordwise.reader.derived import growth

        if not before:
            raise ParameterError(parameter="before", problem="must be at least one earlier release")
        options = {"by": by, "complete": complete, "confidence": confidence}
        return growth(self, before, name, where, regions, crosswalk, options)

    def rank(self, name: str, where: Mapping[str, Any] | str | None = None, **options: Any) -> "Ranks":
        """Return confidence sets of the ranks of totals.

        Args:
            name: As in ``total``.
            where: As in ``total``.
            options: As in ``total``; ``by`` or ``regions`` says what is ranked.

        Returns:
            The ranks that each total may have, alone and all at once.
        """
        return self.total(name, where, **options).rank()

    def regress(
        self,
        name: str,
        on: str | Sequence[str],
        where: Mapping[str, Any] | str | None = None,
        *,
        weights: Any = None,
        **options: Any,
    ) -> "Regression":
        """Return slopes of totals on other totals, corrected for noise.

        Args:
            name: The response, as in ``total``.
            on: The covariate, or several: other counts or sums.
            where: As in ``total``.
            weights: Positive weights that depend on no noisy number.
            options: As in ``total``; ``by`` or ``regions`` says what a row is.

        Returns:
            Slopes with intervals, next to those of plain least squares.
        """
        covariates = {each: self.total(each, where, **options) for each in ([on] if isinstance(on, str) else on)}
        return self.total(name, where, **options).regress(covariates, weights=weights)

    def replicates(
        self, name: str, where: Mapping[str, Any] | str | None = None, *, count: int = 100, **options: Any
    ) -> "Replicates":
        """Return totals with simulated errors, for any further computation.

        Args:
            name: As in ``total``.
            where: As in ``total``.
            count: The number of replicates.
            options: As in ``total``.

        Returns:
            A table of them; its metadata has the formula.
        """
        return self.total(name, where, **options).replicates(count)

    def _answer(self, asked: "Question", confidence: float | None) -> "Answer":
        from recordwise.reader.asking import answer

        level = self.published.confidence if confidence is None else confidence
        expect_kind(level, Real, parameter="confidence", wanted="a number between 0 and 1")
        if not 0 < level <= MOST_CERTAIN:
            raise ParameterError(parameter="confidence", problem="must be between 0 and 1")
        return answer(self, asked, float(level), self.models)

    def __repr__(self) -> str:
        return f"<{self.title}: {', '.join(self.names)}; {self.privacy_label}>"

    def _repr_html_(self) -> str:
        from recordwise.policy.render.html import element
        from recordwise.release.page.cells import table_preview

        heading = element("p", element("b", self.title), f" ({self.privacy_label})")
        shown = [part for table in self.tables for part in (self._words_of(table), table_preview(table))]
        return element("div", heading, *shown)

    def _words_of(self, table: Any) -> Any:
        """The labels of a table's columns, where it has any."""
        from recordwise.policy.render.html import element

        named = [f"{each}: {self.labels[each]}" for each in (*table.keys, *table.variables) if each in self.labels]
        return element("p", f"{table.name}: {'; '.join(named)}") if named else ""
