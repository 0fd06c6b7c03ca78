"""One table of records, one budget: plan, engine, ledger and mechanisms in one readable flow."""

import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.describing import inferred_columns, plan_json, schema_json, table_name
from recordwise.drawing import draw_table
from recordwise.drawn import Drawn
from recordwise.engines import DuckDB
from recordwise.engines.results import FoundTotals, TableTotals
from recordwise.engines.sources import open_source
from recordwise.errors import ParameterError, TuningError
from recordwise.exact import Number
from recordwise.ledger import Charge, Event, Ledger
from recordwise.noise import BitSource, Secure
from recordwise.plan import Measure, Plan, Query, Schema, parse_sql
from recordwise.plan.analysis import plan_policy, plan_warnings
from recordwise.plan.mechanism import Mechanism
from recordwise.plan.query import KeyList
from recordwise.policy import Policy
from recordwise.release import FIXED_IN_ADVANCE, Release, ReleasedTable, flagged
from recordwise.selecting import select_cells

TUNINGS = ("public", "synthetic", "past", "confidential")
Progress = Callable[[str], None]


class Session:
    """A table of confidential records, opened to publish statistics about it.

    Opening reads names and types only; records are read, and validated, at the first ``run`` or ``validate()``.
    """

    def __init__(
        self,
        source: Any,
        *,
        unit: str,
        measures: Mapping[str, Number | Measure] | None = None,
        columns: Mapping[str, Any] | None = None,
        firm: str | None = None,
        engine: Any = "duckdb",
        ledger: str | Path | None = None,
        budget: Policy | None = None,
        dataset: str | None = None,
        memory_limit: str = "700MB",
        tuned_on: str = "public",
        accept_tuning: str | None = None,
    ) -> None:
        if tuned_on not in TUNINGS:
            raise ParameterError(parameter="tuned_on", problem=f"must be one of {', '.join(TUNINGS)}")
        opened = open_source(source)
        declared = dict(columns) if columns is not None else inferred_columns(opened, {unit, firm, *(measures or {})})
        self.schema = Schema.of(unit=unit, measures=measures, columns=declared, firm=firm)
        self.budget = budget
        self.tuned_on, self.accept_tuning = tuned_on, accept_tuning
        self.dataset = dataset or (Path(str(source)).stem if isinstance(source, (str, Path)) else "table")
        self._engine = self._open_engine(engine, opened, memory_limit)
        self._ledger = Ledger(ledger, dataset=self.dataset, schema=schema_json(self.schema), budget=budget)

    def _open_engine(self, engine: Any, source: Any, memory_limit: str) -> Any:
        if engine == "duckdb":
            return DuckDB(source, self.schema, memory_limit=memory_limit)
        if isinstance(engine, str):
            raise ParameterError(parameter="engine", problem=f"is not known: {engine!r}", advice="Use 'duckdb'.")
        return engine

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

    def sql(
        self,
        text: str,
        *,
        mechanisms: Mapping[str, Mechanism],
        keys: KeyList | Sequence[KeyList] | None = None,
        rng: BitSource | None = None,
        level: float = 0.95,
    ) -> Release:
        """Run one SELECT over the table, called ``t``; a mechanism for each statistic, "*" for COUNT(*)."""
        return self.run(parse_sql(text, mechanisms=mechanisms, keys=keys), rng=rng, level=level)

    def run(
        self, *queries: Query, rng: BitSource | None = None, level: float = 0.95, progress: Progress | None = None
    ) -> Release:
        """Publish: check the budget, read exact totals, charge the ledger, draw noise, book the release.

        Nothing is charged unless the whole plan is valid, the budget covers it and every total could be read. From the charge on
        the budget is spent, whatever happens.
        """
        tell = progress or (lambda _: None)
        if self.tuned_on == "confidential" and not self.accept_tuning:
            raise TuningError
        plan = self._plan(queries)
        policy, paper = plan_policy(plan), plan_policy(plan, tight=False)
        self._check_budget(policy)
        tell("reading records")
        exact = self._engine.totals(plan)
        tell("charging the ledger")
        charge = self._ledger.charge(policy, query=self._name(plan), details=plan_json(plan))
        try:
            tell("drawing noise")
            source = rng or Secure()
            tables = tuple(self._publish(plan, each, source, level) for each in exact)
            tell("booking the release")
            return self._booked(plan, tables, policy, paper, charge, private=source.private)
        except BaseException as error:
            self._ledger.failed(charge, kind=type(error).__name__)
            raise

    def _check_budget(self, policy: Policy) -> None:
        """Refuse early what the charge would refuse, before hours of reading."""
        if self.budget is not None:
            self._ledger.check(policy, query="the plan")

    def _name(self, plan: Plan) -> str:
        return "; ".join(", ".join(statistic.alias for statistic in query.statistics) for query in plan.queries)

    def _publish(self, plan: Plan, exact: TableTotals | FoundTotals, rng: BitSource, level: float) -> ReleasedTable:
        counts: tuple[Drawn, ...] = ()
        if isinstance(exact, FoundTotals):
            exact, selected_on = select_cells(plan, exact, rng, level=level)
            counts = (selected_on,)
        columns = {name: exact.cells.column(name) for name in exact.cells.column_names}
        drawn = counts + draw_table(plan, exact, rng, level=level)
        for variable in drawn:
            columns |= variable.columns()
        return ReleasedTable(
            name=table_name(plan, exact.table),
            keys=tuple(exact.cells.column_names),
            variables=tuple(variable.alias for variable in drawn),
            data=flagged(pa.table(columns), {variable.alias: variable.flag for variable in drawn if variable.flag}),
        )

    def _booked(
        self,
        plan: Plan,
        tables: tuple[ReleasedTable, ...],
        policy: Policy,
        paper: Policy,
        charge: Charge,
        *,
        private: bool,
    ) -> Release:
        draft = Release(
            tables=tables,
            policy=policy,
            paper_policy=paper,
            description=self._description(plan),
            head=charge.head,
            private=private,
        )
        head = self._ledger.released(charge, digest=draft.digest())
        return Release(
            tables=tables, policy=policy, paper_policy=paper, description=draft.description, head=head, private=private
        )

    def _description(self, plan: Plan) -> dict[str, Any]:
        from recordwise import __version__

        return {
            "dataset": self.dataset,
            "guarantee": "within the budget" if self.budget is not None else FIXED_IN_ADVANCE,
            "budget": None if self.budget is None else self.budget.to_json(),
            "schema": schema_json(self.schema),
            "plan": plan_json(plan),
            "tuned_on": self.tuned_on,
            "accept_tuning": self.accept_tuning,
            "versions": {"recordwise": __version__, "python": platform.python_version()},
        }

    def close(self) -> None:
        """Close the engine and the ledger."""
        self._engine.close()
        self._ledger.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
