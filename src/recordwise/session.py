"""One table of records, one budget: plan, engine, ledger and mechanisms in one readable flow."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.engines.engine import Engine
from recordwise.engines.owner_view import Owner
from recordwise.engines.registry import opened_engine, opened_source
from recordwise.engines.sources.declared import inferred_columns
from recordwise.errors import (
    DrawingError,
    EngineError,
    LedgerError,
    ParameterError,
    RecordwiseError,
    TuningError,
    UnkeptLedgerWarning,
)
from recordwise.exact.numbers import Number
from recordwise.ledger.chain import Event
from recordwise.ledger.ledger import FIXED_IN_ADVANCE, WITHIN_BUDGET, Charge, Ledger
from recordwise.noise.randomness import BitSource, Secure, is_private
from recordwise.plan.cost import check_policy, plan_policy, plan_warnings
from recordwise.plan.describe import (
    plan_json,
    query_names,
    safe_name,
    schema_json,
    table_name,
    versions,
)
from recordwise.plan.file.read import PlanFile
from recordwise.plan.given_keys import GivenKeys
from recordwise.plan.plan import TUNINGS, Plan
from recordwise.plan.query import Query
from recordwise.plan.results import FoundTotals, TableTotals, exact_table
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.sql.parse import parse_sql
from recordwise.plan.statistics import ExactTable, StatisticMechanism
from recordwise.plan.statistics.answers import NoisyColumn
from recordwise.plan.used import schema_of, used_schema
from recordwise.policy.constructors import By
from recordwise.policy.policy import Policy
from recordwise.release.draw import PreparedTable, draw_table, dry_run, prepare_table
from recordwise.release.external import SplitRows, read_external
from recordwise.release.page.parts import Part, external_part, plan_parts
from recordwise.release.release import Release
from recordwise.release.select import dry_run_selection, select_cells
from recordwise.release.tables import NOT_PRIVATE, PRIVATE, ReleasedTable, digest_of, flagged

IN_A_FILE = "kept in a file"
IN_MEMORY = "in memory only: gone with the process, so that this release cannot be verified"
UNKEPT = (
    "this session keeps its ledger in memory only: what it spends is forgotten when it closes, and another session can spend the "
    "same budget again. Give ledger='FILE' to keep it."
)
SAY_TUNING = (
    "Open the session with tuned_on='public', 'synthetic', 'past' or 'confidential': what its mechanisms, thresholds and keys "
    "were chosen with."
)
ACCEPT_TUNING = (
    "Tune on public, synthetic or past data, or open the session with accept_tuning='reason', which is printed with the "
    "release."
)
LOOKED = "the confidential records were looked at (session.owner or planning) before this release"
Progress = Callable[[str], None]


class Session:
    """A table of confidential records, opened to publish statistics about it.

    Opening reads names and types only; records are read, and validated, at the first ``run`` or ``validate()``. Every look at
    confidential records (``owner``) is noted in the ledger; a release after one, like a release tuned on confidential data, needs
    a reason (``accept_tuning``).

    Args:
        source: A path to Parquet, CSV or SAS files, a PostgreSQL table, or a frame. With ``engine="spark"`` also a Spark DataFrame
            or the name of a table.
        unit: The column that identifies a record.
        measures: The columns that are summed, each with its step or a ``Measure``.
        columns: The columns that records are grouped and selected by, with their types; inferred where the source has types.
        firm: The column that identifies the firm of a record.
        engine: "duckdb", "spark", or an engine that is already open.
        spark: For Spark: a SparkSession, or a master such as "local[2]".
        ledger: The file in which everything spent is kept. Without it the ledger is in memory only, with a warning.
        budget: The most that releases may cost every record.
        dataset: The name the ledger and releases use; that of the source unless given.
        memory_limit: The memory that DuckDB may use.
        tuned_on: What mechanisms, thresholds and keys were chosen with: "public", "synthetic", "past" or "confidential" data. A
            release needs it.
        accept_tuning: Why a release is made all the same after a look at confidential records; printed with the release.

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
        unit: str,
        measures: Mapping[str, Number | Measure] | None = None,
        columns: Mapping[str, Any] | None = None,
        firm: str | None = None,
        engine: "str | Engine" = "duckdb",
        spark: Any = None,
        ledger: str | Path | None = None,
        budget: Policy | None = None,
        dataset: str | None = None,
        memory_limit: str = "700MB",
        tuned_on: str | None = None,
        accept_tuning: str | None = None,
    ) -> None:
        if tuned_on is not None and tuned_on not in TUNINGS:
            raise ParameterError(parameter="tuned_on", problem=f"must be one of {', '.join(TUNINGS)}")
        opened: Any = opened_source(engine, source)
        declared = dict(columns) if columns is not None else inferred_columns(opened, {unit, firm, *(measures or {})})
        self.schema = Schema.of(unit=unit, measures=measures, columns=declared, firm=firm)
        self.budget = None if budget is None else check_policy(budget, self.schema)
        self.tuned_on, self.accept_tuning = tuned_on, accept_tuning
        self._told_unkept = self._closed = False
        self.dataset = dataset or (Path(str(source)).stem if isinstance(source, (str, Path)) else "table")
        self._engine = opened_engine(engine, opened, self.schema, memory_limit=memory_limit, needs={"spark": spark})
        try:
            self._ledger = Ledger(ledger, dataset=self.dataset, schema=schema_json(self.schema), budget=budget)
        except BaseException:
            self._engine.close()
            raise

    @classmethod
    def from_plan(cls, file: PlanFile, *, data: str | None = None) -> "Session":
        """Open the table of a plan file as the file says; only names and types are read.

        Args:
            file: The plan, from ``load_plan``.
            data: For planning: what the records are. Without it, and for ``"confidential"`` records, the plan's ledger is opened;
                otherwise the session leaves the plan's ledger and budget alone.
        """
        kept = data in (None, "confidential")
        schema = file.plan.schema
        return cls(
            file.source,
            unit=schema.unit,
            measures={measure.name: measure for measure in schema.measures},
            columns={column.name: column for column in schema.columns},
            firm=schema.firm,
            ledger=file.ledger if kept else None,
            budget=file.budget if kept else None,
            dataset=file.dataset,
            memory_limit=file.memory_limit,
            engine=file.engine,
            spark=file.spark,
            tuned_on=file.tuned_on,
            accept_tuning=file.accept_tuning,
        )

    def __repr__(self) -> str:
        if self._closed:
            return f"<Session: {self.dataset!r}, closed>"
        schema, ledger = self.schema, self._ledger.path if self._ledger.kept else "in memory"
        columns = f"measures {', '.join(schema.measure_names()) or 'none'}, columns {', '.join(schema.column_names()) or 'none'}"
        charges = sum(event.kind == "charged" for event in self.history())
        spent = f"{charges} charge{'' if charges == 1 else 's'}"
        left = "no budget" if self.budget is None else f"budget {self.budget!r}, of which {self.spent()!r} is spent"
        table = f"{self.dataset!r} by {self._engine.dialect}; unit {schema.unit}, {columns}"
        return f"<Session: {table}; ledger {ledger}: {spent}; {left}>"

    def policy_of(self, *queries: Query, tight: bool = True) -> Policy:
        """What queries would cost every possible record, before any data is touched."""
        return plan_policy(self._plan(queries), tight=tight)

    def warnings_of(self, *queries: Query) -> tuple[str, ...]:
        """What the owner should know about queries before running them."""
        return plan_warnings(self._plan(queries))

    def _plan(self, queries: Sequence[Query]) -> Plan:
        return Plan(schema=self.schema, queries=tuple(queries))

    def validate(self) -> None:
        """Read every record once and refuse the table if one breaks the schema. Costs nothing."""
        self._engine.validate()

    def spent(self) -> Policy:
        """The sum of everything charged so far."""
        return self._ledger.spent()

    def remaining(self, record: Mapping[str, Any]) -> float:
        """How much loss the budget leaves to one record; infinite without a budget."""
        if self.budget is None:
            return float("inf")
        return max(0.0, float(self.budget.loss(record)) - float(self.spent().loss(record)))

    def history(self) -> list[Event]:
        """Every event of the ledger, oldest first."""
        return self._ledger.history()

    @property
    def owner(self) -> Owner:
        """CONFIDENTIAL: what only the owner of the table may see. Every look at confidential records is noted in the ledger."""
        return Owner(self._engine, self.schema, self._ledger.look)

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
            SqlError: The statement holds something that is not supported, or a mechanism is missing.
        """
        return self.run(parse_sql(text, mechanisms=mechanisms, keys=keys), rng=rng, confidence=confidence)

    def run(
        self, *queries: Query, rng: BitSource | None = None, confidence: float = 0.95, progress: Progress | None = None
    ) -> Release:
        """Publish: check the budget, read exact totals, charge the ledger, draw noise, book the release.

        Nothing is charged unless the whole plan is valid, the budget covers it, every total could be read and every mechanism has
        served an empty cell. From the charge on the budget is spent, whatever happens.

        Args:
            queries: What to publish; together they are one release.
            rng: A source of random bits. The default is secure; ``rw.noise.Seeded`` makes a release that is NOT private.
            confidence: The confidence of the published intervals.
            progress: Called with a few words at the start of each step.

        Returns:
            The release: its tables, its policy, and what is needed to verify it.

        Raises:
            PlanError: A query does not fit the schema.
            BudgetError: The budget does not cover the release.
            TuningError: ``tuned_on`` is not stated, or a look at confidential records needs a reason.
            DataError: Records break the schema.
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
        tell = progress or (lambda _: None)
        self._check_tuning()
        self._tell_unkept()
        source, plan = bit_source(rng), self._plan(queries)
        policy, paper, name = plan_policy(plan), plan_policy(plan, tight=False), query_names(plan)
        self._ledger.check(policy, query=name)
        for table in plan.tables():
            dry_run(plan, table, confidence=confidence)
        tell("reading records")
        with self._reading():
            exact = self._engine.totals(plan)
            prepared = [self._prepared(plan, each, confidence) for each in exact]
        described = plan_json(plan, exact)
        tell("charging the ledger")
        used = schema_json(used_schema(plan, *self._policies(policy, paper)))
        with self._charged(policy, query=name, plan=described, schema=used) as charge:
            tell("drawing noise")
            tables = tuple(_publish(plan, each, ready, source, confidence) for each, ready in zip(exact, prepared))
            tell("booking the release")
            stated = {"plan": described, "interval_level": confidence, "schema": used}
            parts = plan_parts(plan, [table_name(plan, table) for table in plan.tables()])
            return self._booked(tables, policy, paper, stated, charge, private=is_private(source), parts=parts)

    def _prepared(self, plan: Plan, exact: TableTotals | FoundTotals, confidence: float) -> PreparedTable | None:
        """The mechanism of every cell; where keys are selected, the cells are not known before the charge."""
        if isinstance(exact, TableTotals):
            return prepare_table(plan, exact.table, exact.cells, confidence=confidence)
        dry_run_selection(plan, exact.table, exact.cells.reveal())
        return None

    def run_external(
        self,
        mechanism: Any,
        *,
        split: Mapping[str, Number | By],
        rho: Number | None = None,
        column: str | None = None,
        where: str | None = None,
        name: str = "foreign",
        seeded: bool = False,
    ) -> Release:
        """Run a mechanism from elsewhere on the unit-split table: a callable that is ``rho``-zCDP when one row is added or removed,
        or an OpenDP measurement, which says so itself. It costs a record rho * pieces**2 (T-FOREIGN).

        It sees an Arrow table with one row for each piece, measures as whole numbers of their step, or one ``column`` of it.
        ``seeded`` marks the result as not private, for a mechanism whose noise can be repeated.
        """
        self._check_tuning()
        self._tell_unkept()
        external = read_external(mechanism, name=name, rho=rho, column=column)
        asked = SplitRows.of(split, where, column, self.schema)
        policy = asked.policy(external.rho, self.schema)
        self._ledger.check(policy, query=name)
        with self._reading():
            rows = external.prepare(self._engine.split_table(asked.splitting, condition=asked.condition).reveal())
        described = [asked.to_json(external)]
        seen = set(self.schema.names()) if column is None else {column}
        used = schema_json(schema_of(self.schema, seen, *self._policies(policy)))
        with self._charged(policy, query=name, plan=described, schema=used) as charge:
            table = ReleasedTable(name=safe_name(name), keys=(), variables=(), data=external.run(rows))
            parts = (external_part(table.name, policy),)
            stated = {"plan": described, "schema": used}
            return self._booked((table,), policy, policy, stated, charge, private=not seeded, parts=parts)

    def _check_tuning(self) -> None:
        """A release must state what the plan was tuned on, and give a reason if that was the confidential table."""
        if self.tuned_on is None:
            raise TuningError(problem="tuned_on is not stated", advice=SAY_TUNING)
        tuned = "this plan was tuned on the confidential table" if self.tuned_on == "confidential" else None
        problem = tuned or (LOOKED if self._ledger.looked else None)
        if problem and not (isinstance(self.accept_tuning, str) and self.accept_tuning.strip()):
            told = f"{problem}, so its parameters may themselves reveal something about records"
            raise TuningError(problem=told, advice=ACCEPT_TUNING)

    def _tell_unkept(self) -> None:
        """Once in a session, and before anything is read."""
        if not self._ledger.kept and not self._told_unkept:
            self._told_unkept = True
            warnings.warn(UNKEPT, UnkeptLedgerWarning, stacklevel=3)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Nothing is spent yet, but what fails here has seen records: of foreign exceptions only the type is reported."""
        try:
            yield
        except RecordwiseError:
            raise
        except Exception as error:
            raise EngineError(engine=self._engine.dialect, kind=type(error).__name__) from None

    @contextmanager
    def _charged(
        self, policy: Policy, *, query: str, plan: list[dict[str, Any]], schema: dict[str, Any]
    ) -> Iterator[Charge]:
        """The budget is spent from here on. A failure is noted if the ledger still accepts it."""
        charge = self._ledger.charge(policy, query=query, details=plan, schema=schema)
        try:
            yield charge
        except BaseException as error:
            with suppress(LedgerError):
                self._ledger.failed(charge, kind=type(error).__name__)
            if isinstance(error, Exception) and not isinstance(error, RecordwiseError):
                raise DrawingError(kind=type(error).__name__) from None
            raise

    def _booked(
        self,
        tables: tuple[ReleasedTable, ...],
        policy: Policy,
        paper: Policy,
        stated: dict[str, Any],
        charge: Charge,
        *,
        private: bool,
        parts: tuple[Part, ...],
    ) -> Release:
        digest = digest_of({table.name: table.data for table in tables}, policy)
        head = self._ledger.released(charge, digest=digest, privacy_label=PRIVATE if private else NOT_PRIVATE)
        self._ledger.settle()
        return Release(
            tables=tables,
            policy=policy,
            paper_policy=paper,
            description=self._description() | stated,
            digest=digest,
            head=head,
            private=private,
            parts=parts,
        )

    def _policies(self, *policies: Policy) -> tuple[Policy, ...]:
        """Those of a release and the budget: a release describes only the columns that they and its plan name."""
        return policies if self.budget is None else (*policies, self.budget)

    def _description(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "guarantee": FIXED_IN_ADVANCE if self.budget is None else WITHIN_BUDGET,
            "budget": None if self.budget is None else self.budget.to_json(),
            "books": IN_A_FILE if self._ledger.kept else IN_MEMORY,
            "tuned_on": self.tuned_on,
            "accept_tuning": self.accept_tuning,
            "looked_at_records": self._ledger.looked,
            "versions": versions(),
        }

    def close(self) -> None:
        """Close the engine and the ledger."""
        self._closed = True
        self._engine.close()
        self._ledger.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def bit_source(rng: BitSource | None) -> BitSource:
    """The secure source unless another is given; anything that is not a source of bits is refused before anything is spent."""
    if rng is not None and not callable(getattr(rng, "fill", None)):
        raise ParameterError(
            parameter="rng",
            problem=f"is a {type(rng).__name__}, not a source of bits",
            advice="Use noise.Seeded(seed).",
        )
    return Secure() if rng is None else rng


def _publish(
    plan: Plan, exact: TableTotals | FoundTotals, prepared: PreparedTable | None, rng: BitSource, confidence: float
) -> ReleasedTable:
    counts: tuple[NoisyColumn, ...] = ()
    table, (cells, opened) = exact.table, _opened(exact)
    if isinstance(exact, FoundTotals):
        cells, opened, selected_on = select_cells(plan, table, cells, opened, rng, confidence=confidence)
        counts = (selected_on,)
    columns = {name: cells.column(name) for name in cells.column_names}
    drawn = counts + draw_table(prepared or prepare_table(plan, table, cells, confidence=confidence), opened, rng)
    for variable in drawn:
        columns |= variable.columns()
    return ReleasedTable(
        name=table_name(plan, table),
        keys=tuple(cells.column_names),
        variables=tuple(variable.alias for variable in drawn),
        data=flagged(pa.table(columns), {variable.alias: variable.flag for variable in drawn if variable.flag}),
    )


def _opened(found: TableTotals | FoundTotals) -> tuple[pa.Table, ExactTable]:
    """CONFIDENTIAL: the cells and exact numbers of a table. Noise is added to them next; nothing else may see them."""
    cells = found.cells.reveal() if isinstance(found, FoundTotals) else found.cells
    bins = [each.reveal() for each in found.bins]
    return cells, exact_table(found.table, cells, found.totals.reveal(), bins)
