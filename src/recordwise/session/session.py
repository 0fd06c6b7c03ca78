"""The session that a user opens: one table, one budget.

Plan, engine, ledger and mechanisms come together here.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordwise.engines.engine import Engine
from recordwise.engines.registry import open_engine, opened_source
from recordwise.engines.sources.declared import inferred_columns
from recordwise.errors import (
    LedgerError,
    ParameterError,
    UnkeptLedgerWarning,
    expect_flags,
    expect_kind,
    own_errors_of,
)
from recordwise.exact.numbers import Number
from recordwise.ledger.chain import Event
from recordwise.ledger.entries import looks_text
from recordwise.ledger.ledger import UNKEPT, Ledger
from recordwise.noise.randomness import BitSource, bit_source
from recordwise.plan.cost import check_policy, plan_policy
from recordwise.plan.describe import plan_warnings, schema_json
from recordwise.plan.keys.hierarchies import Hierarchy, with_hierarchy_labels
from recordwise.plan.keys.keys import GivenKeys
from recordwise.plan.plan import Plan
from recordwise.plan.publication import Labels
from recordwise.plan.query import Query, read_queries
from recordwise.plan.schema import NO_LOOK, CollapseRule, Measure, Schema, check_tuned_on, check_tuning
from recordwise.plan.statistics import StatisticMechanism
from recordwise.policy.constructors import By
from recordwise.policy.policy import Policy
from recordwise.policy.series import CARRY, REVISE, START, Series
from recordwise.progress import shown, steps
from recordwise.release.published import Tuning
from recordwise.release.release import Release
from recordwise.session.checks import ACCEPT, read_outside, with_sizes
from recordwise.session.publisher import STEPS, Asked, Progress, Publisher, Stages, matched_stage
from recordwise.session.stages import Coarsening, Following, Refining

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.session.owner import Owner


# Sessions for plans that run unattended: releases that wait to be saved, and the arguments a plan file states.


@own_errors_of
class Unfinished:
    """Releases charged and drawn with ``keep`` whose folder is not complete."""

    def __init__(self, publisher: Publisher, plan_of: Callable[[Sequence[Query | Sequence[Query]]], Plan]) -> None:
        self._publisher, self._plan_of = publisher, plan_of

    @property
    def kept(self) -> Path | None:
        """The folder of tables that this session drew with ``keep`` and that still wait to be saved, the last one."""
        return next((folder for folder in reversed(self._publisher.kept) if folder.is_dir()), None)

    def resume(
        self,
        *queries: Query | Sequence[Query],
        refine: Release | None = None,
        carry: Release | None = None,
        revise: Release | None = None,
        tier_of: Release | None = None,
    ) -> Release | None:
        """Return the charged and drawn release of queries not yet saved.

        Nothing is drawn and nothing charged.

        Args:
            queries: The queries, as for ``Session.run``.
            refine: The release that they refine, if any.
            carry: The release of the period before whose noise they carry, if any.
            revise: The release that they revise, if any.
            tier_of: The finer release that they are made from, if any.

        Returns:
            The release, or None if these queries were never charged for this period.

        Raises:
            AlreadyReleasedError: The release was saved, is being drawn by another process, or did not reach the disk.
        """
        return self._publisher.resume(
            self._plan_of(queries), self._stage(refine=refine, carry=carry, revise=revise, tier_of=tier_of)
        )

    def waiting(
        self,
        *queries: Query | Sequence[Query],
        refine: Release | None = None,
        carry: Release | None = None,
        revise: Release | None = None,
        tier_of: Release | None = None,
    ) -> bool:
        """Return whether the drawn tables of queries wait to be saved.

        Args:
            queries: The queries, as for ``Session.run``.
            refine: The release that they refine, if any.
            carry: The release of the period before whose noise they carry, if any.
            revise: The release that they revise, if any.
            tier_of: The finer release that they are made from, if any.

        Returns:
            True until ``finish``, if the disk took them.
        """
        return self._publisher.waiting(
            self._plan_of(queries), self._stage(refine=refine, carry=carry, revise=revise, tier_of=tier_of)
        )

    def finish(
        self,
        *queries: Query | Sequence[Query],
        refine: Release | None = None,
        carry: Release | None = None,
        revise: Release | None = None,
        tier_of: Release | None = None,
    ) -> None:
        """Remove the stored tables of a release whose files are complete.

        Args:
            queries: The queries, as for ``Session.run``.
            refine: The release that they refine, if any.
            carry: The release of the period before whose noise they carry, if any.
            revise: The release that they revise, if any.
            tier_of: The finer release that they are made from, if any.
        """
        self._publisher.finish(
            self._plan_of(queries), self._stage(refine=refine, carry=carry, revise=revise, tier_of=tier_of)
        )

    def _stage(self, **given: Any) -> Asked | None:
        return stage_of(self._publisher.ledger.series, **given)


def stage_of(
    series: Series | None,
    *,
    refine: Release | None = None,
    carry: Release | None = None,
    revise: Release | None = None,
    tier_of: Release | None = None,
    fixed_in_advance: bool = False,
    crosswalk: Mapping[str, Any] | None = None,
) -> Asked | None:
    """Return what a release refines, follows or is made from; the first one of a series with carried noise begins it."""
    if crosswalk and carry is None:
        raise ParameterError(
            parameter="crosswalk",
            problem="is for noise that is carried on",
            advice="Nothing was spent. Give it with carry; corrected records have the codes of before.",
        )
    asked = {"refine": refine, "carry": carry, "revise": revise, "tier_of": tier_of}
    named = [name for name, given in asked.items() if given is not None]
    for name in named:
        advice = "Nothing was spent. Open a saved one with rw.read."
        expect_kind(asked[name], Release, parameter=name, wanted="a release", advice=advice)
    carried = series is not None and series.carry is not None
    if len(named) > 1 or (carried and (refine is not None or tier_of is not None)):
        raise ParameterError(
            parameter=named[0],
            problem=f"and {named[1] if len(named) > 1 else 'carried noise'} together have no proof",
            advice="Nothing was spent. Do one after the other, each by a plan of its own.",
        )
    if refine is not None:
        return Refining(release=refine, fixed_in_advance=fixed_in_advance)
    if tier_of is not None:
        return Coarsening(release=tier_of)
    if carry is not None or revise is not None:
        kind, release = (CARRY, carry) if revise is None else (REVISE, revise)
        return Following(kind=kind, release=release, crosswalk=dict(crosswalk or {}))
    return Following(kind=START) if carried else None


def plan_arguments(file: "PlanFile", *, with_ledger: bool) -> dict[str, Any]:
    """Return the session arguments that a plan file states."""
    schema = file.plan.schema
    return {
        "unit": schema.unit,
        "measures": {measure.name: measure for measure in schema.measures},
        "columns": {column.name: column for column in schema.columns},
        "firm": schema.firm,
        "collapse": None if schema.collapse is None else dict(schema.collapse),
        "hierarchies": schema.hierarchies,
        "ledger": file.ledger if with_ledger else None,
        "budget": file.budget if with_ledger else None,
        "series": file.series if with_ledger else None,
        "reserve": (file.reserve or 0) if with_ledger else 0,
        "dataset": file.dataset,
        "memory_limit": file.memory_limit,
        "engine": file.engine,
        "spark": file.spark,
        "tuned_on": file.tuned_on,
        "tuning_reason": file.tuning_reason,
        "max_outside": ACCEPT if file.max_outside is None else file.max_outside,
        "words": file.words,
    }


MAPPINGS = {
    "columns": "Give each column its type: {'NAME': 'text'}, or integer, boolean, date.",
    "measures": "Give each measure its step: {'NAME': 1}.",
    "collapse": "Give each name its rule: {'NAME': 'sum'}, or max, min, same.",
}


def _check_kinds(**given: Any) -> None:
    """Refuse arguments of a session that are of another kind."""
    wanted: dict[str, tuple[Any, str]] = {
        "ledger": ((str, Path), "the path of a file"),
        "budget": (Policy, "a policy, such as rw.policy.constant(1)"),
        "series": (Series, "a Series"),
        "words": (Labels, "Labels"),
        "hierarchies": ((list, tuple), "a list of Hierarchy"),
    }
    for name, value in given.items():
        if value is not None:
            expect_kind(value, wanted[name][0], parameter=name, wanted=wanted[name][1])


def _inferred(source: Any, unit: Any, firm: str | None, measures: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return conditional columns by the source's types; a part of an id of several columns is one too."""
    ids = {unit} if isinstance(unit, str) else set()
    return inferred_columns(source, {*ids, firm, *(measures or {})})


def check_reserve(reserve: int, budget: Policy | None) -> int:
    """Refuse a number of revisions that no budget holds."""
    if isinstance(reserve, bool) or not isinstance(reserve, int) or reserve < 0:
        raise ParameterError(parameter="reserve", problem="must be a number of revisions: 0, 1, 2, ...")
    if reserve and budget is None:
        raise ParameterError(parameter="reserve", problem="needs a budget to be kept in", advice="Declare a budget.")
    return reserve


# The session.


@own_errors_of
class Session:
    """A table of confidential records, opened to publish statistics about it.

    Opening reads only names and types; records are read and validated at the first ``run`` or ``validate()``. Every look at
    confidential records (``owner``) is recorded in the ledger. A release after such a look, or one tuned on confidential data,
    needs a reason (``tuning_reason``).

    Args:
        source: A path to Parquet, CSV or SAS files, a PostgreSQL table, or a frame. With ``engine="spark"`` also a Spark DataFrame
            or the name of a table.
        unit: The column that identifies a record, or several that identify it together: then each combination is protected.
        measures: The columns that are summed, each with its step or a ``Measure``.
        columns: The columns that records are grouped and selected by, with their types; inferred if the source has types.
        firm: The column that identifies the firm of a record.
        collapse: Where a unit has several rows: "sum", "max", "min" or "same" for each measure and column, which make them one
            record before anything else.
        hierarchies: Public lists of codes, whose coarser levels can be used like columns that the records do not have.
        engine: "duckdb", "spark", or an engine that is already open.
        spark: For Spark: a SparkSession, or a master such as "local[2]".
        ledger: The file that records everything spent. Without it the ledger is in memory only, with a warning.
        budget: The most that all releases together may cost each record; in a series, those of each period.
        series: The series and the period that are published; the ledger then has a budget for each period.
        dataset: The name used in the ledger and in releases; by default that of the source.
        memory_limit: The memory that DuckDB may use.
        tuned_on: What mechanisms, thresholds and keys were chosen with: "public", "synthetic", "past" or "confidential" data. A
            release needs it.
        tuning_reason: Why a release is made all the same after a look at confidential records; printed with the release.
        max_outside: The share of the records that may be outside the published cells of a table; where there are more, a release is
            refused before the charge. ``"accept"``: any share. Whether it is refused depends on the records (docs/limits.md).
        words: Labels, units and who publishes, for the files of every release.
        reserve: For how many revisions each first release of a period keeps its full charge in the ledger; no other release may
            use it.

    Raises:
        ParameterError: An argument is not valid.
        SourceError: The source cannot be opened.
        LedgerError: The ledger belongs to another dataset, or another session is writing it.

    Example:
        >>> import recordwise as rw
        >>> table = {"id": [1, 2, 3], "county": ["001", "001", "003"], "emp": [4, 20, 900]}
        >>> session = rw.Session(
        ...     table, unit="id", measures={"emp": 1}, columns={"county": "text"}, tuned_on="synthetic", ledger="small.ledger"
        ... )
        >>> session
        <Session: 'table' by duckdb; unit id, measures emp, columns county; ledger small.ledger: 0 charges; no budget>
        >>> session.close()
    """

    def __init__(
        self,
        source: Any,
        *,
        unit: str | Sequence[str],
        measures: Mapping[str, Number | Measure] | None = None,
        columns: Mapping[str, Any] | None = None,
        firm: str | None = None,
        collapse: Mapping[str, CollapseRule] | None = None,
        hierarchies: Sequence[Hierarchy] = (),
        engine: "str | Engine" = "duckdb",
        spark: Any = None,
        ledger: str | Path | None = None,
        budget: Policy | None = None,
        dataset: str | None = None,
        memory_limit: str = "700MB",
        tuned_on: str | None = None,
        tuning_reason: str | None = None,
        max_outside: Number | str = "0.01",
        words: Labels | None = None,
        series: Series | None = None,
        reserve: int = 0,
    ) -> None:
        check_tuned_on(tuned_on)
        _check_kinds(ledger=ledger, budget=budget, series=series, words=words, hierarchies=hierarchies)
        expect_kind(engine, (str, Engine), parameter="engine", wanted="the name of an engine")
        if dataset is not None:
            expect_kind(dataset, str, parameter="dataset", wanted="text")
        opened: Any = opened_source(engine, source)
        for name, given in (("columns", columns), ("measures", measures), ("collapse", collapse)):
            if given is not None:
                expect_kind(given, Mapping, parameter=name, wanted="a mapping of names", advice=MAPPINGS[name])
        declared = dict(columns) if columns is not None else _inferred(opened, unit, firm, measures)
        if columns is None and collapse is not None:
            # Types that the source declares are taken for the columns that have a rule.
            declared = {name: kind for name, kind in declared.items() if name in collapse}
        schema = Schema.of(unit=unit, measures=measures, columns=declared, firm=firm, collapse=collapse)
        self.schema = replace(schema, hierarchies=tuple(hierarchies))
        if series is not None and budget is not None and series.budget() not in (None, budget):
            raise ParameterError(parameter="budget", problem="is stated by the series too, and differs")
        if series is not None and budget is not None and series.budget() is None:
            series = replace(series, every_period=budget)
        budget = budget if series is None else series.budget()
        self.series = series
        self.budget = None if budget is None else check_policy(budget, self.schema)
        self.tuned_on, self.tuning_reason = tuned_on, tuning_reason
        self.reserve = check_reserve(reserve, self.budget)
        self._warned_unkept = self._closed = False
        self._parameters: dict[str, str] = {}
        self._planned: Plan | None = None
        self.max_outside, self.words = (
            read_outside(max_outside),
            with_hierarchy_labels(words or Labels(), self.schema.hierarchies),
        )
        self.dataset = dataset or (Path(str(source)).stem if isinstance(source, (str, Path)) else "table")
        self._engine_name, self._memory_limit, self._spark = engine, memory_limit, spark
        self._engine = open_engine(engine, opened, self.schema, memory_limit=memory_limit, needs={"spark": spark})
        try:
            self._kept: list[Path] = []
            self._ledger = Ledger(
                ledger,
                dataset=self.dataset,
                schema=schema_json(self.schema),
                budget=budget,
                series=series,
                reserve=self.reserve,
            )
            if self._ledger.budget != budget:
                self.budget = self._ledger.budget
        except BaseException:
            self._engine.close()
            raise

    @classmethod
    def from_plan(cls, file: "PlanFile", *, data: str | None = None) -> "Session":
        """Open the table of a plan file; read only names and types.

        Args:
            file: The plan, from ``load_plan``.
            data: For planning: what the records are. If they are declared ``"public"`` or ``"synthetic"``, the session leaves the
                plan's ledger and budget alone; otherwise the plan's ledger is opened.

        Returns:
            The session.
        """
        from recordwise.plan.file.node import hiding

        with hiding(file.hidden):
            session = cls(file.source, **plan_arguments(file, with_ledger=data not in NO_LOOK))
        session._parameters, session._planned = dict(file.parameters), file.plan
        return session

    def __repr__(self) -> str:
        if self._closed:
            return f"<Session: {self.dataset!r}, closed>"
        schema, ledger = self.schema, self._ledger.path if self._ledger.on_disk else "in memory"
        columns = f"measures {', '.join(schema.measure_names()) or 'none'}, columns {', '.join(schema.column_names()) or 'none'}"
        charges = sum(event.kind == "charged" for event in self.history())
        spent = f"{charges} charge{'' if charges == 1 else 's'}"
        left = "no budget" if self.budget is None else f"budget {self.budget!r}, of which {self.spent()!r} is spent"
        table = f"{self.dataset!r} by {self._engine.dialect}; unit {schema.unit_text}, {columns}"
        return f"<Session: {table}; ledger {ledger}: {spent}; {left}>"

    def policy_of(self, *queries: Query | Sequence[Query], tight: bool = True) -> Policy:
        """What queries would cost every possible record, before any data is touched.

        Args:
            queries: The queries, as for ``run``.
            tight: Whether to return the tight policy; otherwise the one printed in the papers.

        Returns:
            The policy.
        """
        plan = self._plan(queries)
        if stage_of(self.series) is not None:
            from recordwise.session.carried import read_following

            # A series with carried noise also pays for leaving (T-SERIES).
            plan = read_following(plan, Following(kind=START), self._ledger).plan
        return plan_policy(plan, tight=tight)

    def warnings_of(self, *queries: Query | Sequence[Query]) -> tuple[str, ...]:
        """What the owner should know about queries before running them.

        Args:
            queries: The queries, as for ``run``.

        Returns:
            The warnings, as sentences.
        """
        return plan_warnings(self._plan(queries))

    def _plan(self, queries: Sequence[Query | Sequence[Query]]) -> Plan:
        made = Plan(schema=self.schema, queries=read_queries(queries))
        return made if all(query.best is None for query in made.queries) else with_sizes(made)

    def validate(self) -> None:
        """Read every record once and refuse a table that breaks the schema.

        Costs nothing. All declared measures and columns are checked; ``run`` checks those that its queries, their
        policies and the budget use.
        """
        self._engine.validate()

    def spent(self) -> Policy:
        """The sum of everything charged so far."""
        return self._ledger.spent()

    def reserved(self, *, revising: str | None = None) -> Policy:
        """What the ledger keeps for revisions of this period, which no other release may use.

        Args:
            revising: The names of the statistics of a revision, which uses the reserve of its own release.

        Returns:
            The policy.
        """
        return self._ledger.reserved(revising=revising)

    def remaining(self, record: Mapping[str, Any]) -> float:
        """Return the loss the budget leaves a record next to what is reserved; infinite without one.

        Args:
            record: The columns that the budget depends on.

        Returns:
            The loss that is left, in pure epsilon if the budget is.
        """
        if self.budget is None:
            return float("inf")
        spent = (self.spent() + self.reserved()).in_unit_of(self.budget)
        return max(0.0, float(self.budget.loss(record)) - float(spent.loss(record)))

    def history(self) -> list[Event]:
        """Every event of the ledger, oldest first."""
        return self._ledger.history()

    @property
    def owner(self) -> "Owner":
        """CONFIDENTIAL: what only the owner of the table may see.

        Every look at confidential records is noted in the ledger.
        """
        from recordwise.session.owner import Looks, Owner

        return Owner(self._engine, self.schema, Looks(ledger=self._ledger, schema=self.schema, planned=self._planned))

    def sql(
        self,
        text: str,
        *,
        mechanisms: Mapping[str, StatisticMechanism],
        keys: GivenKeys | None = None,
        rng: BitSource | None = None,
        confidence: float = 0.95,
    ) -> Release:
        """Run one SELECT statement over the table, which is called ``t``.

        Args:
            text: The statement.
            mechanisms: A mechanism for each statistic, by its alias or its column; "*" for COUNT(*).
            keys: The public cells of the GROUP BY columns.
            rng: As for ``run``.
            confidence: As for ``run``.

        Returns:
            The release.

        Raises:
            SqlError: The statement contains something that is not supported, or a mechanism is missing.
        """
        from recordwise.plan.sql.parse import parse_sql

        return self.run(parse_sql(text, mechanisms=mechanisms, keys=keys), rng=rng, confidence=confidence)

    def run(
        self,
        *queries: Query | Sequence[Query],
        rng: BitSource | None = None,
        confidence: float = 0.95,
        progress: Progress | None = None,
        refuse_repeat: bool = False,
        keep: bool = False,
        refine: Release | None = None,
        fixed_in_advance: bool = False,
        carry: Release | None = None,
        revise: Release | None = None,
        old_records: Any = None,
        crosswalk: Mapping[str, Any] | None = None,
        tier_of: Release | None = None,
    ) -> Release:
        """Publish: check the budget, read exact totals, charge the ledger, draw noise, record the release.

        Nothing is charged unless the whole plan is valid, the budget covers it, every total could be read and every mechanism has
        been tried on an empty cell. After the charge the budget is spent, whatever happens.

        Args:
            queries: The queries to publish, one by one or in a list; together they are one release.
            rng: A source of random bits. The default is secure; ``rw.noise.Seeded`` makes a release that is NOT private.
            confidence: The confidence of the published intervals.
            progress: Called with a short description at the start of each step. Without it, a release that takes longer than a
                second shows a bar on a terminal or in a notebook.
            refuse_repeat: Refuse what the ledger has charged before: the same queries, keys and mechanisms for the same period,
                whatever their titles and names.
            keep: Leave the drawn tables next to the ledger, for their owner only, so that a crash does not waste the charge
                (``unfinished``).
            refine: An earlier release of the same queries with more noise, on the same records and ledger. Only what is missing
                is drawn and charged; the answers are averages of both draws, and both cost what one release of the new
                accuracy costs (T-STAGES). Gaussian noise only.
            fixed_in_advance: With ``refine``: whether the accuracy of this stage was decided before the first answers were seen.
                Otherwise a budget must have been declared, and epsilon at a delta follows from the zCDP loss of all stages.
            carry: The release of the period before, where ``Series(carry=...)`` carries noise over: answers have the variance that
                the queries state, and changes between periods less (T-SERIES). Gaussian noise only.
            revise: The release of this period before its records were corrected. Every cell of these queries gets further noise;
                a unit that did not change pays nothing. The queries state the variance that is left, which is larger.
            old_records: With ``carry`` and ``revise``: the records that the earlier release was made from, as they were.
            crosswalk: With ``carry``: for key columns whose codes changed, pairs of an earlier and a later code. Cells whose codes
                were only renamed carry their noise on; those of codes that were split or merged draw afresh.
            tier_of: A finer release of the same queries, such as one for researchers: a public tier is made from its answers by
                adding noise, once. No record is read and nothing is charged; the tier states the loss of its own law (T-TIER).

        Returns:
            The release: its tables, its policy, and what is needed to verify it.

        Raises:
            PlanError: A query does not fit the schema.
            BudgetError: The budget does not cover the release.
            AlreadyReleasedError: With ``refuse_repeat``: it was charged before. Nothing is charged.
            TuningError: ``tuned_on`` is not given, or a look at confidential records needs a reason.
            DataError: Records break the schema.
            OutsideError: More than ``max_outside`` of the records are outside the published cells.
            DrawingError: Drawing noise failed after the charge, which stays.

        Example:
            >>> import recordwise as rw
            >>> table = {"id": [1, 2, 3], "county": ["001", "001", "003"], "emp": [4, 20, 900]}
            >>> asked = rw.query().group_by("county", keys=["001", "003"]).sum("emp", rw.UnitSplit(at=50, rho="0.1"))
            >>> with rw.Session(
            ...     table, unit="id", measures={"emp": 1}, columns={"county": "text"}, tuned_on="synthetic", ledger="run.ledger"
            ... ) as session:
            ...     release = session.run(asked)
            >>> release.tables[0].data.column_names
            ['county', 'sum_emp', 'sum_emp_sd', 'sum_emp_cv', 'sum_emp_low', 'sum_emp_high']
        """
        expect_kind(confidence, (int, float), parameter="confidence", wanted="a number below 1, such as 0.95")
        expect_flags(refuse_repeat=refuse_repeat, keep=keep, fixed_in_advance=fixed_in_advance)
        self._check_terms()
        stage = stage_of(
            self.series,
            refine=refine,
            carry=carry,
            revise=revise,
            tier_of=tier_of,
            fixed_in_advance=fixed_in_advance,
            crosswalk=crosswalk,
        )
        with shown("releasing"), self._old_records(stage, old_records) as ready:
            return self._publisher().run(
                self._plan(queries),
                rng=bit_source(rng),
                confidence=confidence,
                tell=progress or steps(STEPS),
                refuse_repeat=refuse_repeat,
                keep=keep,
                refining=ready,
            )

    @contextmanager
    def _old_records(self, stage: Asked | None, source: Any) -> Iterator[Asked | None]:
        """Open the records of the release that is followed."""
        if not isinstance(stage, Following) or stage.release is None:
            if source is not None:
                raise ParameterError(
                    parameter="old_records", problem="are read with carry and revise alone", advice="Nothing was spent."
                )
            yield stage
            return
        if source is None:
            raise ParameterError(
                parameter=stage.kind,
                problem="needs the records that the earlier release was made from",
                advice="Nothing was spent. Give old_records=..., in plans: old_records in [stage].",
            )
        from recordwise.session.carried import schema_before

        # An engine that was given as it is holds other records.
        name = self._engine_name if isinstance(self._engine_name, str) else "duckdb"
        opened: Any = opened_source(name, source)
        schema = schema_before(self.schema, stage.release)
        engine = open_engine(name, opened, schema, memory_limit=self._memory_limit, needs={"spark": self._spark})
        try:
            yield replace(stage, records=engine)
        finally:
            engine.close()

    @property
    def unfinished(self) -> Unfinished:
        """Releases drawn with ``keep`` that wait to be saved."""
        return Unfinished(self._publisher(), self._plan)

    def run_external(
        self,
        mechanism: object,
        *,
        split: Mapping[str, Number | By] | None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        column: str | None = None,
        where: str | None = None,
        name: str = "external",
        seeded: bool = False,
    ) -> Release:
        """Run an external mechanism on the unit-split table.

        A callable that is ``rho``-zCDP or ``epsilon``-DP when one row is added or removed, or an OpenDP measurement,
        which states its loss. It costs a record of m pieces rho m**2 or, with a pure loss, m eps tanh(m eps/2); the
        smaller one where both are declared (T-EXTERNAL). With ``split=None`` every record is one row and costs the same.

        It sees an Arrow table with one row for each piece, measures as integer multiples of their step, or one
        ``column`` of it. ``seeded`` marks the result as not private, for a mechanism whose noise can be repeated.

        Args:
            mechanism: The callable or the measurement.
            split: The threshold of each measure at which records are split; None leaves them whole.
            rho: What one row costs; needed for a callable unless ``epsilon`` is given, not taken for a measurement.
            epsilon: What one row costs in pure differential privacy, for a callable of which that is known.
            column: The one column it takes; the whole table unless given.
            where: A condition on records, as SQL.
            name: The name of the table that is published.
            seeded: Whether its noise can be repeated; the release is then marked as not private.

        Returns:
            The release.
        """
        from recordwise.mechanisms.external import read_external
        from recordwise.plan.external import SplitRows

        self._check_terms()
        external = read_external(mechanism, name=name, rho=rho, epsilon=epsilon, column=column)
        asked = SplitRows.of(split, where, column, self.schema)
        return self._publisher().run_external(external, asked, private=not seeded)

    def _publisher(self) -> Publisher:
        """With everything that releases of this session have in common."""
        return Publisher(
            engine=self._engine,
            ledger=self._ledger,
            schema=self.schema,
            budget=self.budget,
            dataset=self.dataset,
            tuning=Tuning(tuned_on=self.tuned_on, reason=self.tuning_reason, parameters=self._parameters),
            words=self.words,
            max_outside=self.max_outside,
            kept=self._kept,
        )

    def _check_terms(self) -> None:
        """Check that a release may be made; warn of an in-memory ledger."""
        listed, looks = self.schema.hierarchies, looks_text(self._ledger.looks())
        check_tuning(self.tuned_on, self.tuning_reason, looks=looks, hierarchies=listed)
        if not self._ledger.on_disk and not self._warned_unkept:
            self._warned_unkept = True
            warnings.warn(UNKEPT, UnkeptLedgerWarning, stacklevel=4)

    def close(self) -> None:
        """Close the engine and the ledger."""
        self._closed = True
        self._engine.close()
        self._ledger.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# The ledger of a plan file, opened to see what its budget still allows.


@contextmanager
def amended_ledger(file: "PlanFile", reason: str) -> Iterator[Ledger]:
    """Replace the budget of a plan's ledger by that of the plan, and yield it (T-AMEND)."""
    if not file.ledger.is_file():
        raise LedgerError(path=str(file.ledger), problem="does not exist", advice="Nothing is to be amended.")
    ledger = Ledger(
        file.ledger,
        dataset=file.dataset,
        schema=schema_json(file.plan.schema),
        budget=file.budget,
        series=file.series,
        amendment=reason,
    )
    try:
        yield ledger
    finally:
        ledger.close()


@contextmanager
def plan_ledger(file: "PlanFile", *, create: bool = False) -> Iterator[Ledger]:
    """Yield a plan's ledger, in memory or new if none exists."""
    path = file.ledger if create or file.ledger.exists() else None
    ledger = Ledger(
        path,
        dataset=file.dataset,
        schema=schema_json(file.plan.schema),
        budget=file.budget,
        series=file.series,
        reserve=file.reserve or 0,
    )
    try:
        yield ledger
    finally:
        ledger.close()


def planned_stage(file: "PlanFile") -> "Stages | None":
    """Return what a plan file refines, follows or is made from, matched with its release; None where it stands alone."""
    from recordwise.plan.file.read import STAGES
    from recordwise.release.files import load_release

    folders = {} if file.stage is None else {name: getattr(file.stage, name) for name in STAGES}
    earlier = {name: load_release(folder) for name, folder in folders.items() if folder is not None}
    fixed = file.stage is not None and file.stage.fixed_in_advance
    pairs = None if file.stage is None else file.stage.crosswalk
    asked = stage_of(file.series, **earlier, fixed_in_advance=fixed, crosswalk=pairs)
    if asked is None:
        return None
    with plan_ledger(file) as ledger:
        return matched_stage(with_sizes(file.plan), asked, ledger)
