"""The result of a run: tables, accuracy, policy and files."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recordwise.errors import (
    ParameterError,
    expect_flags,
    expect_kind,
    own_errors_of,
)
from recordwise.exact.numbers import Number
from recordwise.plan.publication import Labels, Publication, StatusRules
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.json import Bands, PolicyFile
from recordwise.policy.loss_law import LatticePolicy
from recordwise.policy.policy import Policy
from recordwise.policy.series import Head
from recordwise.progress import reported
from recordwise.release.published import Published, as_saved
from recordwise.release.tables import (
    NOT_PRIVATE,
    PRIVATE,
    PagePart,
    ReleasedTable,
    facts_of,
    name_columns,
    told_digests,
)

if TYPE_CHECKING:
    from recordwise.mechanisms.inference import ValuePolicy
    from recordwise.release.change import Change
    from recordwise.release.content import Content
    from recordwise.release.formats.format import Format
    from recordwise.release.formats.records import Records
    from recordwise.release.page.history import History

DEFAULT_FORMATS = ("parquet", "csv")


@dataclass(frozen=True, eq=False)
class SavedValues:
    """The numbers that depend on measures, as saved: readers of tables need none of them."""

    form: Any
    bands: Bands

    def read(self) -> "ValuePolicy":
        """Return them."""
        return self._read

    @cached_property
    def _read(self) -> "ValuePolicy":
        from recordwise.mechanisms.inference import ValuePolicy

        return ValuePolicy.from_json(self.form, self.bands)


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Release:
    """Published tables; everything is public, and ``policy`` is what it cost."""

    tables: tuple[ReleasedTable, ...]
    policy: Policy
    """The tight policy, which was charged to the ledger."""
    paper_policy: Policy
    """The same mechanisms, bounded as in the papers."""
    published: Published
    """Plan, mechanisms, parameters, versions and budget, as saved in release.json."""
    digest: str
    """The fingerprint of tables and policy, which the ledger also records."""
    head: Head
    """The end of the ledger's chain when the release was recorded."""
    private: bool
    """False if the noise was drawn from a seeded generator."""
    parts: tuple[PagePart, ...] = ()
    """Each statistic of each table with its own policy and noise, for the page."""
    firms: FirmPolicy | None = None
    """What the establishments of a firm lose together; None for a release saved before it was kept."""
    lattice: LatticePolicy | None = None
    """The noise as shifts on a lattice, where all of it is discrete Gaussian: for a sharper epsilon than that of the policy."""
    stated_values: "ValuePolicy | SavedValues | None" = None
    """What ``values`` returns, perhaps as it is saved."""
    basic_tables: tuple[ReleasedTable, ...] = ()
    """For readers who need one number: the value to publish and its status, made of the research tables in ``tables``."""
    words: Labels = field(default_factory=Labels)
    """Labels, units and who publishes it, for every file."""
    history: "History | None" = None
    """What earlier periods published about the same cells, for the page."""

    @property
    def values(self) -> "ValuePolicy | None":
        """The numbers that depend on the measures of a record: how closely an attacker who knows all else can tell them."""
        found = self.stated_values
        return found.read() if isinstance(found, SavedValues) else found

    @property
    def table(self) -> pa.Table:
        """The only table, as Arrow; if there are several, use ``tables``."""
        if len(self.tables) != 1:
            names = ", ".join(table.name for table in self.tables)
            raise ParameterError(
                parameter="table", problem=f"is one of several here: {names}", advice="Use release[name]."
            )
        return self.tables[0].data

    def __getitem__(self, name: str) -> pa.Table:
        """A table by name, as Arrow.

        Raises:
            ParameterError: The release has no table of this name.
        """
        for table in self.tables:
            if table.name == name:
                return table.data
        names = ", ".join(table.name for table in self.tables)
        raise ParameterError(
            parameter="name", problem=f"is not a table of this release: {name!r}", advice=f"Its tables are {names}."
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the only table as an Arrow stream."""
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pandas(self, name: str | None = None) -> Any:
        """A pandas frame.

        Args:
            name: The name of a table; needed where the release has several.

        Returns:
            The frame.
        """
        return (self.table if name is None else self[name]).to_pandas()

    def to_polars(self, name: str | None = None) -> Any:
        """A Polars frame.

        Args:
            name: The name of a table; needed where the release has several.

        Returns:
            The frame.
        """
        import polars

        return polars.from_arrow(self.table if name is None else self[name])

    def consistent(
        self,
        *,
        method: str = "top_down",
        priority: Sequence[str] | None = None,
        complete: bool = False,
        zero_counts: bool = False,
        at_most: Mapping[str, str] | None = None,
        draws: int | None = None,
        gamma: float = 0.99,
        slack: float = 0.01,
    ) -> "Release":
        """Return the release with fitted columns next to counts and sums.

        ``NAME_fit`` is not negative (but for ``"ols"``) and adds up, and ``NAME_best`` is the best linear unbiased
        estimate (T-FITVAR), each with ``_low`` and ``_high``, the latter with ``_sd``.

        The noisy answers stay, and nothing is spent. ``method`` is ``"top_down"`` (coarse totals stay the best linear
        estimate and are handed down, T-DOWN), ``"nnls"``, ``"ols"``, ``"max_fit"``, ``"sequential"`` (tables in order
        of ``priority``) or ``"reweighted"``. A coarser cell may exceed the sum of
        its published finer ones unless the keys are ``complete``. ``zero_counts=True``: sums are 0 where the fitted
        count is. ``at_most={"payqtr1": "payann"}``: the first never exceeds the second; columns of the tables, or
        measures that are summed once, in every query that has both, or with ``"q2:payqtr1"`` in the second query
        alone. release.json states the residuals that each fit reached.

        Args:
            method: "top_down", "nnls", "ols", "max_fit", "sequential" or "reweighted".
            priority: For "sequential": the names of the tables, the most important first.
            complete: Whether the keys list every cell that can hold records, so that finer cells add up to coarser ones exactly.
            zero_counts: Whether sums are 0 where the fitted count is.
            at_most: For a variable, the one that it never exceeds.
            draws: How often noise is drawn again for root mean squared errors of nonnegative fits (``NAME_fit_sd``), which are
                left out unless given, and for intervals that have no formula, 400 unless given. The draws are from a public
                seed and cost nothing.
            gamma: For "reweighted": the confidence with which an answer must differ from zero to keep its weight.
            slack: For "max_fit": how far beyond the smallest possible worst deviation a table may go, in standard deviations.

        Returns:
            A new release.
        """
        from recordwise.release.consistent import consistent

        return consistent(
            self,
            method=method,
            priority=priority,
            complete=complete,
            zero_counts=zero_counts,
            at_most=at_most,
            draws=draws,
            gamma=gamma,
            slack=slack,
        )

    def records(
        self,
        *,
        weighted: bool = False,
        whole: bool = False,
        of: str | None = None,
        values: Sequence[str] = (),
        method: str = "nnls",
        priority: Sequence[str] | None = None,
        complete: bool = False,
        gamma: float = 0.99,
        slack: float = 0.01,
    ) -> "Records":
        """Return microdata that add up to the published tables.

        Nonnegative records made of the tables alone, by a fit as in ``consistent``: nothing is read or spent, and no
        record is a respondent. Give ``weighted=True`` for one record with a weight for each cell that is not empty,
        or ``whole=True`` for as many equal records as each cell has, in whole numbers. Their columns are the keys of
        all tables of the query, so that every table is a plain sum over them; a finer key is empty where only the
        coarser cell is published.

        Args:
            weighted: Whether records have weights.
            whole: Whether records are whole: one row for each.
            of: The count or sum that is turned into records, as ``consistent`` names them; the only count unless given.
            values: Sums of the same query that records have a value of, the same for all of a cell.
            method: "nnls", "top_down", "max_fit", "sequential" or "reweighted".
            priority: For "sequential": the names of the tables, the most important first.
            complete: Whether the keys list every cell that can hold records.
            gamma: For "reweighted", as for ``consistent``.
            slack: For "max_fit", as for ``consistent``.

        Returns:
            The records, what they are, and what no such records can do better.

        Raises:
            ParameterError: The release cannot become records, and why.
        """
        from recordwise.release.formats.records import records_of

        return records_of(
            self,
            weighted=weighted,
            whole=whole,
            of=of,
            values=values,
            method=method,
            priority=priority,
            complete=complete,
            gamma=gamma,
            slack=slack,
        )

    def basic(
        self,
        *,
        fit: str = "top_down",
        complete: bool = False,
        units: Mapping[str, Number] | None = None,
        rules: StatusRules | None = None,
    ) -> "Release":
        """Return the release with a basic table next to each table.

        The value to publish, and its status. Nothing is spent. Counts and sums are fitted (unless the release is
        consistent already) and rounded to multiples of a public unit, so that all tables of a query add up exactly.
        Other statistics are rounded to the digits that mean something. The status follows from released values alone.
        A basic table is named after its research table, ``NAME_basic``.

        Args:
            fit: The method of the fit, as for ``consistent``. Measures that may be negative are fitted by least squares.
            complete: Whether the keys list every cell that can hold records.
            units: For a measure or a published name, the unit that values are rounded to; 1 unless given.
            rules: How the status follows from the relative error, and which values are withheld.

        Returns:
            A new release.

        Raises:
            ParameterError: The tables cannot be fitted, or a unit is for nothing that is published.
        """
        from recordwise.release.basic import with_basic

        return with_basic(self, fit=fit, complete=complete, units=units, rules=rules)

    def change(
        self,
        previous: "Release",
        *,
        crosswalk: Mapping[str, Any] | None = None,
        groups: Mapping[str, Mapping[Any, str]] | None = None,
    ) -> "Change":
        """Return the change from an earlier release to this one.

        For every cell and variable of tables that both have, the difference and the percentage change with sd and
        interval. Post-processing: nothing is read and nothing is spent.

        A column ``listed`` says whether a cell is listed in both releases, ``only now`` or ``only before``: that
        follows from the public keys. The confidence of each variable's intervals is stated (``Change.confidence``).

        Args:
            previous: The earlier release. Both must be private.
            crosswalk: For key columns whose codes were split or merged, pairs of an earlier and a later code. Counts and sums are
                added up to what both releases have in common; other variables are left out.
            groups: For key columns, the group of each code by a public list, ``{"county": {"34001": "shore"}}``: cells are added up
                by group in both releases. A code in no group stays as it is.

        Returns:
            The tables of changes; ``save`` writes them with labels in any format.

        Raises:
            ParameterError: A release is not private, both are the same, or they have no table in common.
        """
        from recordwise.release.change import change

        return change(self, previous, crosswalk, groups)

    @property
    def privacy_label(self) -> str:
        """The label in every file: whether the release is private."""
        return PRIVATE if self.private else NOT_PRIVATE

    def with_labels(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        publication: Publication | None = None,
        names: bool | None = None,
    ) -> "Release":
        """The same release with other words in its files.

        Args:
            labels: What readers call measures, columns, published names and values: ``{"emp": "employees", "naics=21": "Mining"}``.
            units: The units of measures and published names: ``{"payann": "1,000 dollars"}``.
            publication: Who publishes the release, when and under which terms.
            names: Whether files have a column of names next to each column of codes that have labels.

        Returns:
            A new release.
        """
        given = {"labels": labels, "units": units, "publication": publication, "names": names}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name in chosen.keys() & {"labels", "units"}:
            expect_kind(chosen[name], Mapping, parameter=name, wanted="a mapping of names to text")
            for text in (*chosen[name], *chosen[name].values()):
                expect_kind(text, str, parameter=name, wanted="text for each name")
        if publication is not None:
            expect_kind(publication, Publication, parameter="publication", wanted="an rw.Publication")
        if names is not None:
            expect_flags(names=names)
        return replace(self, words=replace(self.words, **chosen))

    def with_history(self, *earlier: "Release") -> "Release":
        """Return the release with each cell's history on its page.

        Nothing is read or spent.

        Args:
            earlier: One private release of each earlier period, oldest first.

        Returns:
            A new release.

        Raises:
            ParameterError: A release is not private, or names no period or that of another.
        """
        from recordwise.release.page.history import history_of

        return replace(self, history=history_of(self, earlier) if earlier else None)

    def content(self) -> "Content":
        """Return the tables with titles and dictionaries, and other words."""
        from recordwise.release.content import content_of

        return content_of(
            self.published,
            (*self.tables, *self.basic_tables),
            self.words,
            privacy_label=self.privacy_label,
            parts=self.parts,
        )

    def export(self, file: str | Path, *, format: str, table: str | None = None) -> Path:
        """Write one table to a separate file.

        All of them where the format has one file for all.

        Args:
            file: A file that does not exist yet.
            format: The name of a format, such as ``"xlsx"``.
            table: The name of a table; needed where the release has several and the format has a file for each.

        Returns:
            The file.

        Raises:
            ParameterError: The format or the table is unknown, or the format cannot hold the table.
            OutputError: The file exists or cannot be written.
        """
        from recordwise.release.files import export

        return export(self.content(), file, format=format, table=table)

    @reported
    def save(self, folder: str | Path, *, formats: Sequence[str] = DEFAULT_FORMATS, owner_only: bool = False) -> Path:
        """Write everything into a new folder, all or nothing.

        Args:
            folder: The name of a folder that does not exist yet.
            formats: The formats of the tables by name. Parquet is always among them: a release is loaded and verified from it.
            owner_only: Whether nobody else may read the folder, as for what was made from confidential records.

        Returns:
            The folder.

        Raises:
            ParameterError: A format is unknown, or cannot hold a table.
            OutputError: The folder already exists or could not be written.
        """
        expect_kind(folder, (str, Path), parameter="folder", wanted="the path of a new folder")
        from recordwise.release.content import NAME, datapackage_json
        from recordwise.release.formats.registry import files_to_write, formats_named, require_storable
        from recordwise.release.page.page import page_html, read_templates
        from recordwise.release.page.view import page_json, view_of
        from recordwise.release.staging import file_digest, new_folder

        chosen, content = formats_named(formats), self.content()
        require_storable(content, chosen)
        with new_folder(folder, owner_only=owner_only) as staging:
            files = list(files_to_write(content, chosen))
            with ThreadPoolExecutor() as pool:
                # Arrow writes the tables while Python makes the page.
                jobs = [pool.submit(each.write, part, staging / name) for each, name, part in files]
                jobs.append(pool.submit(read_templates))
                write_json(self.policies().form, staging / "policy.json")
                view = view_of(self, self._files(content, chosen), content)
                (staging / "report.html").write_text(page_html(view), encoding="utf-8")
                saved = page_json(self, self.words.labels)
            for job in jobs:
                job.result()
            write_json(datapackage_json(content, {name for _, name, _ in files}), staging / NAME)
            digests = {path.name: file_digest(path) for path in sorted(staging.iterdir())}
            write_json(view.published.with_files(saved, digests).form, staging / "release.json")
        return Path(folder)

    def write_recoverable(self, folder: Path) -> None:
        """Write what ``rw.read`` needs into a new private folder.

        Only its owner can read it, until the release is saved.

        Args:
            folder: The folder, which must not exist yet.

        Raises:
            OutputError: The folder exists or cannot be written.
        """
        from recordwise.release.formats.registry import REQUIRED, files_to_write, formats_named
        from recordwise.release.page.view import page_json
        from recordwise.release.staging import new_folder

        with new_folder(folder, owner_only=True) as staging:
            for each, name, part in files_to_write(self.content(), formats_named((REQUIRED,))):
                each.write(part, staging / name)
            write_json(self.policies().form, staging / "policy.json")
            write_json(self.as_saved().with_files(page_json(self, self.words.labels)).form, staging / "release.json")

    def policies(self) -> PolicyFile:
        """Return the content of policy.json.

        Returns:
            Its policies, and what they are made of.
        """
        return PolicyFile.of(
            self.policy,
            self.paper_policy,
            privacy_label=self.privacy_label,
            firms=self.firms,
            lattice=self.lattice,
            values=self.values,
            all_stages=None if self.published.refinement is None else self.published.refinement.total,
        )

    def _files(self, content: "Content", formats: "Sequence[Format]") -> dict[str, str]:
        """The files next to the page, with descriptions; Parquet comes last."""
        from recordwise.release.content import NAME
        from recordwise.release.formats.registry import files_to_write

        ordered = sorted(formats, key=lambda each: each.name == "parquet")
        found = {name: each.description for each, name, _ in files_to_write(content, ordered)}
        found[NAME] = "the data dictionary, as a data package with a schema for each table"
        found["policy.json"] = "the privacy loss of every possible record, for the command recordwise loss"
        found["release.json"] = "plan, mechanisms, budget and versions, and the digest of every file"
        return found

    def as_saved(self) -> Published:
        """Return what release.json says, but for the page and the files."""
        label, tables = self.privacy_label, self.tables
        said = as_saved(self.published, tables, self.words, privacy_label=label, digest=self.digest, head=self.head)
        every = (*tables, *self.basic_tables)
        return said.with_names(self._name_columns(every)) if self.words.names else said

    def _name_columns(self, tables: Sequence[ReleasedTable]) -> dict[str, list[str]]:
        """The columns of names that files have in addition to each table."""
        return {table.name: list(name_columns(table, self.words).values()) for table in tables}

    def to_json(self) -> dict[str, Any]:
        """Return the content of release.json, which has no exact totals."""
        return dict(self.as_saved().form)

    def __repr__(self) -> str:
        return f"<Release of {', '.join(table.name for table in self.tables)}: {self.privacy_label}>"

    def _repr_html_(self) -> str:
        from recordwise.policy.render.html import Html, element
        from recordwise.release.page.cells import table_preview

        heading = element("p", element("b", f"recordwise release ({self.privacy_label})"))
        return element("div", heading, *map(table_preview, self.tables), Html(self.policy._repr_html_()))


def noted_facts(release: Release) -> dict[str, Any]:
    """Return what the ledger notes of a release next to its digest."""
    digests = told_digests(release.policies().form, release.tables, release.parts)
    return {**facts_of(release.published.form), "digests": digests}


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Write JSON that every reader accepts: no NaN and no infinity."""
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
