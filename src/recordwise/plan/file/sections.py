"""Reader of a plan file's sections other than queries.

The source is files next to the plan or a PostgreSQL table; the engine is DuckDB unless the plan says Spark;
the budget is a list of parts that add up to one policy function.
"""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from recordwise.exact.numbers import Number, float_lower
from recordwise.plan.expressions import linear_text
from recordwise.plan.file.keys import read_select
from recordwise.plan.file.mechanisms import read_joint, read_mechanism, read_positive
from recordwise.plan.file.node import Entry, Node, one_of, suggestion, table_values
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.schema import COLUMN_TYPES, Column, Measure, NumberFormat, Schema, policy_measure
from recordwise.plan.sources import (
    DATABASE_ENDINGS,
    POSTGRES_SCHEMES,
    Csv,
    Database,
    PlanSource,
    Postgres,
    SparkMaster,
    names_spark_table,
)
from recordwise.policy.constructors import constant, pieces, pure_budget, split
from recordwise.policy.meaning import rho_for_epsilon
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series

ENDLESS = None
"""The period of a part of the budget that holds in every period."""
Budgets = dict[str | None, Policy]


def read_budget(node: Node, schema: Schema, *, in_series: bool = False) -> Budgets | None:
    """Return the sum of the budget's parts, by period.

    A part is a constant, a split, the cost of one sum by a mechanism, or one selection of keys; or all of them
    are in pure epsilon. Parts without a period hold in every period.
    """
    parts = [(_period(each, in_series), each.attempt(partial(_budget_term, each, schema))) for each in node.items()]
    if not parts:
        node.problem("must have at least one part")
    if not parts or any(part is None for _, part in parts):
        return None
    periods = [period for period, _ in parts]
    of_laws = [period for each, period in zip(node.items(), periods) if "epsilon" in each.value]
    if any(len(parts) > 1 and (ENDLESS in periods or periods.count(period) > 1) for period in of_laws):
        node.problem(
            "has a part in epsilon next to others, which would add to it; state one part, or one for each period"
        )
        return None
    if len({part.is_pure for _, part in parts if part is not None}) > 1:
        node.problem("mixes parts in pure_epsilon with parts in rho; a pure budget has pure parts alone")
        return None
    found: Budgets = {}
    for period, part in parts:
        found[period] = found.get(period, Policy()) + (part or Policy())
    return found


NO_PERIOD_OF_STAYING = "cannot stand in staying, which holds in every period of the series; remove it"


def _period(node: Node, in_series: bool) -> str | None:
    entries = node.table() if isinstance(node.value, dict) else {}
    if "period" not in entries:
        return ENDLESS
    if not in_series:
        is_staying = node.path[:2] == ("series", "staying")
        entries["period"].problem(NO_PERIOD_OF_STAYING if is_staying else "needs a table [series]")
    return entries["period"].text()


SERIES = (
    Entry("name", Node.text, needed=True),
    Entry("period", Node.text, needed=True),
    Entry("revision", Node.integer),
    Entry("earlier", Node.items),
    Entry("carry", Node.number),
    Entry("staying", Node.items),
)


def read_series(node: Node, budgets: Budgets, schema: Schema) -> Series | None:
    """Read ``[series]``: name, period, revision, and declarations about carried noise."""
    read = node.section(SERIES)
    if read is None:
        return None
    read.pop("earlier", None)
    if read.pop("staying", None) is not None:
        staying = read_budget(node.entries(SERIES)["staying"], schema)
        if staying is None:
            return None
        read["staying"] = staying.get(ENDLESS)
    more = {each: part for each, part in budgets.items() if each is not None}
    return node.attempt(lambda: Series(**read, every_period=budgets.get(ENDLESS), more=more))


def _budget_term(node: Node, schema: Schema) -> Policy | None:
    entries = node.table(
        "rho",
        "pure_epsilon",
        "epsilon",
        "delta",
        "for",
        "at",
        "growth",
        "measure",
        "mechanism",
        "pure",
        "select",
        "period",
    )
    if not isinstance(node.value, dict) or len(entries) < len(node.value):
        return None
    given = set(entries) - {"period"}
    if given in ({"measure", "mechanism"}, {"measure", "mechanism", "pure"}):
        found = _of_mechanism(entries["measure"], entries["mechanism"], schema)
        is_pure = "pure" in entries and entries["pure"].flag()
        return entries["pure"].attempt(found.pure) if is_pure and found is not None else found
    if "pure_epsilon" in given:
        return _pure_term(node, entries, schema)
    if given & {"epsilon", "delta", "for"}:
        return _term_of_epsilon(node, entries, schema)
    if given == {"select"}:
        keys = read_select(entries["select"], schema)
        return None if keys is None or keys.selection is None else node.attempt(partial(keys.selection.policy, schema))
    if given not in ({"rho"}, {"rho", "at"}, {"rho", "at", "growth"}):
        node.problem(
            "must contain rho, rho and at (with or without growth), measure and mechanism, select, pure_epsilon (with or "
            "without at), or epsilon, delta, for and growth"
        )
        return None
    rho = read_positive(entries["rho"])
    if "at" not in entries:
        return None if rho is None else entries["rho"].attempt(partial(constant, rho))
    growth = entries["growth"].word(*GROWTH) if "growth" in entries else "square"
    return None if growth is None else _split_policy(rho, entries["at"], schema, GROWTH[growth])


def _pure_term(node: Node, entries: dict[str, Node], schema: Schema) -> Policy | None:
    """Read ``pure_epsilon``, the same for every record or each piece."""
    if not set(entries) <= {"pure_epsilon", "at", "period"}:
        node.problem("must contain pure_epsilon alone, or with at: a pure budget grows with the number of pieces")
        return None
    epsilon = read_positive(entries["pure_epsilon"])
    if "at" in entries:
        return _split_policy(epsilon, entries["at"], schema, pure_budget)
    return None if epsilon is None else pure_budget(epsilon)


SHAPE = (
    "must contain epsilon, delta, for and growth: a law that limits epsilon for some records says nothing about larger ones, so "
    'the plan must, as in epsilon = 2, delta = 1e-6, for = { emp = 20 }, growth = "square" (or "linear")'
)


def _term_of_epsilon(node: Node, entries: dict[str, Node], schema: Schema) -> Policy | None:
    """Read a budget in the words of a law: epsilon at delta for named records, and its growth for larger ones.

    Whatever mechanisms come later, the zCDP loss that has at most this epsilon, rounded down (T-EPSILON).
    """
    if set(entries) - {"period"} != {"epsilon", "delta", "for", "growth"}:
        node.problem(SHAPE)
        return None
    epsilon, delta = read_positive(entries["epsilon"]), read_positive(entries["delta"])
    growth = entries["growth"].word(*GROWTH)
    if epsilon is None or delta is None or growth is None:
        return None
    least = float_lower(Fraction(epsilon)), float_lower(Fraction(delta))
    rho = entries["delta"].attempt(lambda: rho_for_epsilon(*least))
    found = None if rho is None else Fraction(DIGITS_DOWN.create_decimal(Decimal(rho)))
    return _split_policy(found, entries["for"], schema, GROWTH[growth])


DIGITS_DOWN = Context(prec=6, rounding=ROUND_DOWN)
GROWTH = {"square": split, "linear": pieces}
"""How a part of the budget grows with the number of pieces."""


def _split_policy(rho: Number | None, node: Node, schema: Schema, made: Callable[..., Policy]) -> Policy | None:
    at = read_joint(node, schema)
    return None if at is None or rho is None else node.attempt(lambda: made(rho, at))


def _of_mechanism(measure: Node, mechanism: Node, schema: Schema) -> Policy | None:
    name, found = measure.text(), read_mechanism(mechanism, schema, {})
    if name is not None and schema.measure(name) is None:
        measure.problem(f"'{name}' is not a measure{suggestion(name, schema.measure_names())}")
        return None
    if name is None or found is None:
        return None
    policy: Policy | None = mechanism.attempt(lambda: found.policy(policy_measure(name, schema)))
    return policy


MASTER = (Entry("master", Node.text, needed=True), Entry("options", Node.texts))


def read_master(node: Node) -> SparkMaster | None:
    """``[spark]``: where Spark runs, and its own settings."""
    read = node.section(MASTER)
    return None if read is None else node.attempt(lambda: SparkMaster(url=read.pop("master"), **read))


NUMBER = tuple(Entry(each.name, Node.text, default=each.default) for each in fields(NumberFormat))


def _read_format(node: Node) -> NumberFormat | None:
    """Read ``number = { thousands = ",", prefix = "$" }``."""
    read = node.section(NUMBER, alone=True)
    return None if read is None else node.attempt(lambda: NumberFormat(**read))


MEASURE = (
    Entry("step", Node.number),
    Entry("bound", Node.number),
    Entry("signed", Node.flag, default=False),
    Entry("null", one_of("refuse", "zero"), default="refuse"),
    Entry(
        "number",
        _read_format,
        write=lambda made: None if made.number is None else table_values(NUMBER, made.number) or {"decimal": "."},
    ),
)
DERIVED = (Entry("derive", Node.text, write=lambda measure: linear_text(measure.derive)),)
COLUMN = (
    Entry("type", one_of(*COLUMN_TYPES)),
    Entry("null", one_of("refuse", "category")),
    Entry("date", Node.text, default=""),
    Entry("trim", Node.flag, default=False),
)


def read_measure(name: str, node: Node) -> Measure | None:
    """Read a measure: step, table of properties, or linear form."""
    if not isinstance(node.value, dict):
        step = node.number()
        return None if step is None else node.attempt(partial(Measure.of, name, step=step))
    derived = "derive" in node.value
    read = node.section(DERIVED if derived else MEASURE, alone=derived)
    return None if read is None else node.attempt(partial(Measure.of, name, **read))


def read_column(name: str, node: Node) -> Column | None:
    """Read a column by type, or by type and NULL rule."""
    if not isinstance(node.value, dict):
        kind = node.word(*COLUMN_TYPES)
        return None if kind is None else Column(name=name, type=kind)  # type: ignore[arg-type]
    read = node.section(COLUMN, alone=True)
    if read is None:
        return None
    return node.attempt(partial(Column, name=name, **({"type": "date"} if "date" in read else {}) | read))


def _read_measures(node: Node) -> tuple[Measure, ...]:
    return tuple(read_measure(name, each) or Measure(name=name) for name, each in node.table().items())


def _read_columns(node: Node) -> tuple[Column, ...]:
    return tuple(read_column(name, each) or Column(name=name) for name, each in node.table().items())


def _read_collapse(node: Node) -> tuple[tuple[str, str], ...]:
    """Return each column's rule; ``same`` for one with a problem."""
    return tuple((name, each.word("sum", "max", "min", "same") or "same") for name, each in node.table().items())


NO_UNIT = "(no unit)"


def _read_unit(node: Node) -> str | tuple[str, ...] | None:
    """Read the id: a column, or several that identify a record together."""
    if node.value == "":
        node.problem('is blank: write the column that identifies a record, or several, as in ["NAME", "OTHER"]')
        return None
    if not isinstance(node.value, list):
        return node.text()
    names = node.each(Node.text)
    if names is not None and not names:
        node.problem("must name a column, or several that identify a record together")
    return tuple(names) if names else None


SCHEMA = (
    Entry("unit", _read_unit, needed=True),
    Entry("firm", Node.text),
    Entry(
        "measures",
        _read_measures,
        write=lambda made: {
            each.name: table_values(DERIVED if each.derive else MEASURE, each) for each in made.measures
        },
    ),
    Entry(
        "columns", _read_columns, write=lambda made: {each.name: table_values(COLUMN, each) for each in made.columns}
    ),
    Entry("collapse", _read_collapse, write=lambda made: None if made.collapse is None else dict(made.collapse)),
)


def read_schema(node: Node, hierarchies: tuple[Hierarchy, ...] = ()) -> Schema | None:
    """Read unit, firm, measures and columns, keeping names with problems."""
    read = node.read(SCHEMA)
    made = node.attempt(lambda: Schema(**read | {"unit": read.get("unit") or NO_UNIT}))
    return None if made is None else node.attempt(lambda: replace(made, hierarchies=hierarchies))


NO_PASSWORD = "contains a password; remove it and use ${env:NAME}, a password file, a service file or PGPASSWORD"


def read_source(entries: dict[str, Node], folder: Path, *, by_spark: bool) -> PlanSource | None:
    """Read the source of records.

    Files as paths from the plan's folder; a server or a database file with the name of its table; what only Spark
    can locate.
    """
    node, table = entries["source"], entries.get("table")
    if isinstance(node.value, str) and node.value.startswith(POSTGRES_SCHEMES):
        return _server(node, node.value, table)
    if isinstance(node.value, str) and node.value.lower().endswith(DATABASE_ENDINGS):
        return _database(node, folder / node.value, table)
    if table is not None:
        table.problem("is only for a source that starts with postgresql:// or is a file of DuckDB or SQLite")
    names = [each.text() for each in node.items()]
    if not by_spark and any("://" in name for name in names if name is not None):
        # It can contain a password, so it is not treated as a path, which a message would repeat.
        node.problem("is an unsupported address, or an address in a list of sources")
        return None
    if not names or None in names or table is not None:
        return None
    known = [name for name in names if name is not None]
    paths = tuple(name if by_spark and names_spark_table(name) else str(folder / name) for name in known)
    return paths if "csv" not in entries else _csv(entries["csv"], paths)


CSV = (Entry("delimiter", Node.text), Entry("decimal", Node.text), Entry("encoding", Node.text))


def _csv(node: Node, paths: tuple[str, ...]) -> Csv | None:
    """``[csv]``: how the files are written."""
    read = node.section(CSV, alone=True)
    return None if read is None else node.attempt(lambda: Csv(paths, **read))


def _database(node: Node, path: Path, table: Node | None) -> Database | None:
    name = table.text() if table is not None else None
    if table is None:
        node.problem('needs the name of a table next to it: table = "t"')
    return None if table is None or name is None else table.attempt(lambda: Database(path, table=name))


def _server(node: Node, address: str, table: Node | None) -> Postgres | None:
    name = table.text() if table is not None else None
    if table is None:
        node.problem('also needs the name of a table: table = "schema.table"')
    if _has_password(_literal_text(address)):
        node.problem(NO_PASSWORD)
        return None
    return None if table is None or name is None else table.attempt(lambda: Postgres(address, table=name))


def _literal_text(address: str) -> str:
    """Return an address as the plan writes it, without environment values."""
    return re.sub(r"\$\{env:[^{}]*\}", "", getattr(address, "template", address))


def _has_password(address: str) -> bool:
    """Return whether an address contains a password, which no plan may."""
    try:
        parts = urlsplit(address)
        return bool(parts.password) or any("password" in name for name in parse_qs(parts.query))
    except ValueError:
        return "@" in address
