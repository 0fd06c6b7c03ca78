"""Random schemas, records and whole plans, some with literals of the wrong type, and what one record changes in their totals.

Nothing here asks a policy. A world is a table with and without one record; the shift of every cell is taken from an engine's exact
totals, and put into the loss of the mechanism that the drawing code picked for that cell.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa

import recordwise as rw
from recordwise.errors import RecordwiseError
from recordwise.mechanisms.external import ExternalMechanism
from recordwise.plan import Case, Column, DatePart, Field, Group, Keys, Measure, Plan, Prefix, Schema, prefix
from recordwise.plan.expressions import And, Compare, In, IsNull, Not, Or
from recordwise.plan.external import SplitRows
from recordwise.plan.plan import FoundTotals, TableTotals
from recordwise.plan.query import query
from recordwise.policy import ConditionColumn as Named
from recordwise.policy import by
from recordwise.policy.columns import part_of
from recordwise.release.draw import prepare_table

CODES = ["21", "211", "2111", "44", "441", "4", "é1", "é1x", "1", "0", "true", ""]
NUMBERS = [0, 1, 2, 44, -1, 7, 2**53, 2**53 + 1]
VALUES: dict[str, list[Any]] = {"text": CODES, "integer": NUMBERS, "boolean": [True, False]}
STRANGE: dict[str, list[Any]] = {
    "text": [44, 1, 0, True],
    "integer": ["44", "1", "0", True, False],
    "boolean": [1, 0, "true", "1"],
}
"""Literals that Python or an engine may take for a value of the column, and a policy does not."""
HOW_STRANGE = 0.08
FAR = [10**20, -(10**20), 10**40]
WRITTEN = {True: ["true", "T", "1", "yes"], False: ["false", "f", "0", "N"]}
STEP = Fraction(1, 2)
DAYS = [date(2004, 12, 31), date(2005, 1, 1), date(2008, 12, 29), date(2020, 2, 29)]
PARTS = ("year", "quarter", "month", "week", "isoyear")


@dataclass(frozen=True)
class World:
    """Two neighboring tables of one schema, and the record that tells them apart."""

    schema: Schema
    record: dict[str, Any]
    without: pa.Table
    beside: pa.Table
    hierarchies: tuple[rw.Hierarchy, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A query, or the split rows an external mechanism would see."""

    query: Any = None
    split: dict[str, Any] | None = None
    where: Any = None


def world(chance: Random) -> World:
    columns = {}
    for kind in ("text", "integer", "boolean"):
        for number in range(chance.choice([0, 1, 1, 2])):
            nullable = "category" if chance.random() < 0.4 else "refuse"
            columns[f"{kind}{number}"] = Column(name=f"{kind}{number}", type=kind, null=nullable)
    own = beside(chance)
    if own.random() < 0.5:
        columns["day"] = Column(name="day", type="date", null=own.choice(["category", "refuse"]))
    measures = {
        "emp": Measure.of("emp", null=own.choice(["zero", "refuse"])),
        "pay": Measure.of("pay", step=STEP),
        "net": Measure.of("net", signed=True),
        "rest": Measure.of("rest", derive="pay - 45 * emp + net / 3"),
    }
    rules = {"emp": own.choice(["sum", "max", "min"]), "pay": "sum", "net": "sum", **dict.fromkeys(columns, "same")}
    collapse = rules if own.random() < 0.5 else None
    schema = Schema.of(unit="id", measures=measures, columns=columns, collapse=collapse)
    rows = [_row(chance, schema, number) for number in range(chance.randrange(6))]
    record = _row(chance, schema, 99)
    others = ("text", "date")
    as_text = {name for name, column in columns.items() if column.type not in others and chance.random() < 0.3}
    tables = [_table(laid_out(each, schema, own), schema, as_text) for each in (rows, [*rows, record])]
    return World(schema, record, *tables)


def beside(chance: Random) -> Random:
    """Chance for what is drawn beside a plan, so that the plan itself stays the one its seed stands for."""
    return Random(str(chance.getstate()[1][:8]))


def laid_out(records: list[dict[str, Any]], schema: Schema, own: Random) -> list[dict[str, Any]]:
    """The rows of records: one for each, or several that must be made the one record again."""
    if schema.collapse is None:
        return records
    further = {"sum": lambda value: 0, "max": lambda value: value // 2, "min": lambda value: value + 5}[
        schema.rule("emp")
    ]
    rows = []
    for record in records:
        for _ in range(own.randrange(3)):
            gain = own.choice([0, 7, -40])
            rows.append(record | {"emp": further(record["emp"]), "pay": 0 * STEP, "net": gain})
            record = record | {"net": record["net"] - gain}
        rows.append(record)
    return rows


def _row(chance: Random, schema: Schema, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": number, "emp": chance.choice([0, 1, 3, 20, 1000, 5000])}
    row["pay"] = chance.choice([0, 1, 3, 100, 20_000]) * STEP
    row["net"] = chance.choice([0, 1, -1, 20, -1000, 5000])
    for column in schema.columns:
        if column.type == "date":
            row[column.name] = beside(chance).choice(DAYS if column.null == "refuse" else [*DAYS, None])
            continue
        value = chance.choice(VALUES[column.type])
        row[column.name] = None if column.null == "category" and chance.random() < 0.2 else value
    return row


def _table(rows: list[dict[str, Any]], schema: Schema, as_text: set[str]) -> pa.Table:
    """As an owner could store it: truth values and whole numbers of some columns as text."""
    kinds = {"text": pa.string(), "integer": pa.int64(), "boolean": pa.bool_(), "date": pa.date32()}
    found: dict[str, pa.Array] = {
        name: pa.array([row[name] for row in rows], pa.int64()) for name in ("id", "emp", "net")
    }
    if schema.measure("emp").null == "zero":
        found["emp"] = pa.array([row["emp"] or None for row in rows], pa.int64())
    found["pay"] = pa.array([float(row["pay"]) for row in rows], pa.float64())
    for column in schema.columns:
        values = [row[column.name] for row in rows]
        if column.name in as_text:
            values = [None if value is None else _written(value, row["id"]) for value, row in zip(values, rows)]
        kind = pa.string() if column.name in as_text else kinds[column.type]
        found[column.name] = pa.array(values, kind)
    return pa.table(found)


def _written(value: Any, place: int) -> str:
    if isinstance(value, bool):
        return WRITTEN[value][place % 4]
    return f"0{value}" if value >= 0 and place % 2 else str(value)


def coded(schema: Schema) -> list[Column]:
    """The columns that have literals; a date has parts only."""
    return [column for column in schema.columns if column.type != "date"]


def literal_for(chance: Random, kind: str) -> Any:
    """Mostly of the column's type; a plan with another must be refused."""
    return chance.choice(STRANGE[kind] if chance.random() < HOW_STRANGE else VALUES[kind])


def threshold(chance: Random, schema: Schema) -> Any:
    """One for all, or by a column or a prefix of one; now and then of a column that is none."""
    if not coded(schema) or chance.random() < 0.25:
        return chance.choice([1, 20, 1000])
    column = chance.choice(coded(schema))
    wants_prefix = chance.random() < (0.4 if column.type == "text" else 0.02)
    name = "nowhere" if chance.random() < 0.02 else column.name
    groups = {}
    for _ in range(chance.randrange(1, 4)):
        value = literal_for(chance, column.type)
        groups[type(value), value] = (value, chance.choice([1, 5, 20, 300]))
    values = [each for each in groups.values() if not (wants_prefix and isinstance(each[0], str))]
    values += [(v[:2], at) for v, at in groups.values() if wants_prefix and isinstance(v, str)]
    # As pairs: a dictionary of Python would take True and 1 for the same group.
    return made_by(Named(name, 2 if wants_prefix else None), values, chance.choice([1, 5, 1000, 1000]))


def made_by(column: Named, values: list[tuple[Any, int]], default: int) -> Any:
    distinct = {str(type(value)) + str(value): (value, at) for value, at in values}
    numbers = [pair for pair in distinct.values() if not isinstance(pair[0], bool)]
    truths = [pair for pair in distinct.values() if isinstance(pair[0], bool)]
    return by(column, dict(truths or numbers), default)


def condition(chance: Random, schema: Schema, depth: int = 0) -> Any:
    kind = chance.random()
    if depth < 2 and kind < 0.3:
        parts = tuple(condition(chance, schema, depth + 1) for _ in range(2))
        return Not(parts[0]) if kind < 0.08 else (And if kind < 0.2 else Or)(parts)
    if not coded(schema) or kind < 0.45:
        number = chance.choice([0, 1, 3, 20, "2.5", 1000, *FAR])
        return Compare(
            Field(chance.choice(["emp", "pay", "net"])), chance.choice(["=", "<>", "<", "<=", ">", ">="]), number
        )
    column = chance.choice(coded(schema))
    operand: Any = Field(column.name)
    if column.type == "text" and chance.random() < 0.3:
        operand = Prefix(column.name, chance.choice([1, 2]))
    if kind < 0.55:
        return IsNull(operand)
    if kind < 0.75:
        extra = FAR if column.type == "integer" else []
        return In(operand, tuple(chance.choice([literal_for(chance, column.type), *extra]) for _ in range(3)))
    orders = ["=", "<>"] if column.type == "boolean" else ["=", "<>", "<", ">="]
    return Compare(operand, chance.choice(orders), literal_for(chance, column.type))


def asked(chance: Random, schema: Schema) -> Asked:
    """One plan."""
    where = condition(chance, schema) if chance.random() < 0.5 else None
    own = beside(chance)
    if schema.column("day") and own.random() < 0.3:
        part = own.choice(PARTS)
        dated = Compare(
            DatePart("day", part), own.choice(["=", "<>", "<", ">="]), own.choice([1, 2, 12, 53, 2005, 2008])
        )
        where = dated if where is None else (And if own.random() < 0.5 else Or)((where, dated))
    if chance.random() < 0.15:
        at = {name: threshold(chance, schema) for name in chance.choice([["emp"], ["emp", "pay"], ["net", "rest"]])}
        return Asked(split=at, where=where)
    read = query() if where is None else query().where(where)
    read = _grouped(chance, schema, read)
    if chance.random() < 0.5:
        read = read.count(rw.Gaussian(rho="0.1"))
    for measure in chance.choice([["emp"], ["pay"], ["emp", "pay"], ["net"], ["emp", "rest"], ["net", "rest"]]):
        read = read.sum(measure, _mechanism(chance, schema, measure))
    return Asked(query=read)


def _mechanism(chance: Random, schema: Schema, measure: str) -> Any:
    kind = chance.random()
    if kind < 0.1:
        return rw.Clamped(to=chance.choice([5, 10**30]), rho="0.1")
    if kind < 0.2:
        signed = measure in ("net", "rest")
        return rw.LogTransform(offset=100, sigma="0.5", signed=signed)
    if kind < 0.3 and measure in ("net", "rest"):
        return rw.GeneralizedGaussian(shape="0.5", scale=20)
    if kind < 0.4 and measure not in ("net", "rest"):
        other = "pay" if measure == "emp" else "emp"
        return rw.UnitSplit(at={measure: threshold(chance, schema), other: threshold(chance, schema)}, rho="0.1")
    return rw.UnitSplit(at=threshold(chance, schema), rho="0.1")


def _grouped(chance: Random, schema: Schema, read: Any) -> Any:
    choices = [Group(column.name, Field(column.name)) for column in coded(schema)]
    texts = [column for column in schema.columns if column.type == "text"]
    choices += [Group(f"{column.name}_2", Prefix(column.name, 2)) for column in texts]
    choices.append(Group("class", Case(((condition(chance, schema), "small"),), "large")))
    groups = chance.sample(choices, chance.randrange(min(3, len(choices)) + 1))
    own = beside(chance)
    if schema.column("day") and own.random() < 0.3:
        groups.append(Group("when", DatePart("day", own.choice(PARTS))))
    if texts and chance.random() < 0.25:
        column = texts[0]
        groups = [group for group in groups if not group.name.startswith(column.name)]
        return read.group_by(*groups).levels(prefix(column.name, [1, 3])).at(_keys(chance, schema, groups, column))
    return read.group_by(*groups).at(_keys(chance, schema, groups, None)) if groups else read


def _keys(chance: Random, schema: Schema, groups: list[Group], level: Any) -> Any:
    listed = {group.name: _listed(chance, group, schema) for group in groups}
    if level is not None:
        listed[level.name] = _codes(level)
    kind, pieces = chance.random(), None
    if chance.random() < 0.7:
        pieces = {name: threshold(chance, schema) for name in chance.choice([["emp"], ["emp", "pay"], ["net", "rest"]])}
    if kind < 0.25:
        return Keys.select(rho="0.01", delta="0.01", pieces=pieces)
    if kind < 0.35:
        return Keys.select_from(listed, rho="0.01", threshold=30, pieces=pieces)
    return Keys.product(**listed)


def _codes(column: Column, length: int | None = None) -> list[Any]:
    values = list(dict.fromkeys(value[:length] for value in VALUES["text"]))
    return [*values, None] if column.null == "category" else values


def _listed(chance: Random, group: Group, schema: Schema) -> list[Any]:
    """Every value, so that the record's own cell is among the keys; whole numbers now and then as text."""
    if isinstance(group.expression, Case):
        return ["small", "large"]
    if isinstance(group.expression, DatePart):
        parts = list(dict.fromkeys(int(part_of(day, group.expression.part)) for day in DAYS))
        return [*parts, None] if schema.column("day").null == "category" else parts
    if isinstance(group.expression, Prefix):
        return _codes(schema.column(group.expression.column), group.expression.length)
    column = schema.column(group.name)
    if column.type == "text":
        return _codes(column)
    as_text = column.type == "integer" and chance.random() < 0.3
    values = [str(value) if as_text else value for value in VALUES[column.type]]
    return [*values, None] if column.null == "category" else values


@contextmanager
def opened(drawn: World, **how: Any) -> Iterator[tuple[Any, Any]]:
    """A session on each of the two tables."""
    columns = {column.name: column for column in drawn.schema.columns}
    measures = {measure.name: measure for measure in drawn.schema.measures}
    # Whether too many records are outside depends on the record itself (docs/limits.md): that refusal is not what is compared.
    stated: dict[str, Any] = {"tuned_on": "public", "max_outside": "accept", "hierarchies": list(drawn.hierarchies)}
    if drawn.schema.collapse is not None:
        stated["collapse"] = dict(drawn.schema.collapse)
    with ExitStack() as stack:
        without, beside = (
            stack.enter_context(rw.Session(table, unit="id", measures=measures, columns=columns, **stated, **how))
            for table in (drawn.without, drawn.beside)
        )
        yield without, beside


@dataclass(frozen=True)
class Outcome:
    """What the policy promises a record, and what the shifts of the totals cost it by the mechanisms that serve the cells."""

    promised: float
    shifted: float
    promised_delta: float = 0.0
    shifted_delta: float = 0.0

    @property
    def broken(self) -> bool:
        """Sums of upward rounded floats may differ by some units in their last places."""
        allowed = 1 + 1e-9
        return self.shifted > self.promised * allowed or self.shifted_delta > self.promised_delta * allowed


def outcome(drawn: World, sessions: tuple[Any, Any], plan: Asked) -> Outcome | None:
    """None where the plan was refused."""
    try:
        if plan.split is not None:
            return _external(drawn, sessions, plan)
        policy = sessions[0].policy_of(plan.query)
        whole = Plan(schema=sessions[0].schema, queries=(plan.query,))
        exact = [session._engine.totals(whole) for session in sessions]
    except RecordwiseError:
        return None
    parts = [_of_table(whole, before, after) for before, after in zip(*exact)]
    return Outcome(
        promised=float(policy.loss(drawn.record)),
        shifted=sum(loss for loss, _ in parts),
        promised_delta=float(policy.delta(drawn.record)),
        shifted_delta=min(1.0, sum(delta for _, delta in parts)),
    )


def _external(drawn: World, sessions: tuple[Any, Any], plan: Asked) -> Outcome:
    rho = Fraction(1, 100)
    rows = SplitRows.of(plan.split, None, None, drawn.schema)
    if plan.where is not None:
        # Through the query builder, which checks the condition as run_external checks its text.
        Plan(schema=drawn.schema, queries=(query().where(plan.where).count(rw.Gaussian(rho=1)),))
        rows = SplitRows(splitting=rows.splitting, condition=plan.where)
    sizes = [
        session._engine.split_table(rows.splitting, condition=rows.condition).reveal().num_rows for session in sessions
    ]
    external = ExternalMechanism(
        name="external", rho=rho, epsilon=None, known_from="declared", column=None, prepare=lambda rows: rows, call=len
    )
    policy = rows.policy(external, drawn.schema)
    return Outcome(float(policy.loss(drawn.record)), float(rho * (sizes[1] - sizes[0]) ** 2))


def _of_table(plan: Plan, before: Any, after: Any) -> tuple[float, float]:
    """The loss and the delta of one table: over all statistics and cells, by what each cell is served with."""
    served = after
    delta = loss = 0.0
    if isinstance(after, FoundTotals):
        served = TableTotals(table=after.table, cells=after.cells.reveal(), exact=after.exact)
        loss, delta = _of_selection(plan, before, after)
    moved = {total: _shifts(before, after, total) for total in after.exact.reveal().totals}
    for prepared in prepare_table(plan, served.table, served.cells, confidence=0.95).drawn:
        step = prepared.statistic.step(plan.schema)
        for total, cells in product(prepared.statistic.totals(plan.schema), prepared.served):
            for row in cells.run.rows.tolist():
                if shift := moved[total][row]:
                    loss += cells.mechanism.loss_at_shift(abs(shift) * step, step=step)
    return loss, delta


def _of_selection(plan: Plan, before: Any, after: Any) -> tuple[float, float]:
    selection = plan.selection(after.table)
    loss = delta = 0.0
    alone = set(_cells(after)) - set(_cells(before))
    for cell, shift in zip(_cells(after), _shifts(before, after, selection.total())):
        loss += float(Fraction(shift**2) / (2 * selection.law.sigma**2))
        if cell in alone and selection.delta is not None:
            delta += selection.law.keep_probability(shift)
    return loss, delta


def _cells(exact: Any) -> list[tuple[Any, ...]]:
    cells = exact.cells.reveal() if isinstance(exact, FoundTotals) else exact.cells
    return list(zip(*(cells.column(name).to_pylist() for name in cells.column_names))) or [()]


def _shifts(before: Any, after: Any, total: Any) -> list[int]:
    """What the record adds to a total of each cell; a cell that is not there without it had nothing."""
    known = dict(zip(_cells(before), before.exact.reveal().totals[total].tolist()))
    if isinstance(after, FoundTotals) and not after.cells.reveal().num_rows:
        return []
    now = after.exact.reveal().totals[total].tolist()
    return [held - known.get(cell, 0) for cell, held in zip(_cells(after), now)]
