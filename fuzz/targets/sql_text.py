"""SQL text: whatever is accepted gives, before noise, the answer DuckDB gives to the same text."""

import math
from collections import Counter
from datetime import date
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from fuzz.mutation import mutated
from fuzz.target import ACCEPTED, REFUSED, WrongError
from recordwise.engines import DuckDB
from recordwise.errors import SqlError
from recordwise.mechanisms import Gaussian
from recordwise.plan import Case, Column, DatePart, Keys, Measure, Plan, Prefix, Query, Schema, parse_sql
from recordwise.plan.schema import CollapseRule
from recordwise.plan.sql.parse import aggregate
from recordwise.plan.statistics import Average, Combination, CountUnits, Ratio, SumSteps
from recordwise.policy.columns import part_of

COUNTIES, CODES = ["01", "1", "02", "a'b", "é", "A", "a"], ["111", "1121", "221", "31", "3"]
COLLAPSE: dict[str, CollapseRule] = {"emp": "sum", "pay": "max", "net": "sum", "firm": "same", "county": "same"}
COLLAPSE |= {"naics": "same", "size": "same", "open": "same", "day": "same"}
SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={
        "emp": Measure.of("emp", bound=10**12, null="zero"),
        "pay": Measure.of("pay", step="0.25", bound=10**12),
        "net": Measure.of("net", signed=True, bound=10**12),
        "rest": Measure.of("rest", derive="net - 45 * emp + 1/3 * pay"),
    },
    columns={
        "county": Column(name="county"),
        "naics": Column(name="naics", null="category"),
        "size": Column(name="size", type="integer", null="category"),
        "open": Column(name="open", type="boolean"),
        "day": Column(name="day", type="date", null="category"),
    },
    collapse=COLLAPSE,
)
PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "ISOYEAR")
DAYS = [
    None,
    "2004-12-31",
    "2005-01-01",
    "2005-01-02",
    "2008-12-29",
    "2010-01-03",
    "2020-02-29",
    "0001-01-01",
    "9999-12-31",
]
ROWS = 60
NOISE = Gaussian(sigma=10)
MECHANISMS = dict.fromkeys(("*", "emp", "pay", "net", "rest", "firm", "id"), NOISE)
LARGEST = 5_000
"""Cells beyond which a comparison is left out."""
WORDS = [word.encode() for word in (
    "SELECT ", " FROM t ", " WHERE ", " GROUP BY ", " AND ", " OR ", " NOT ", " IN (", "BETWEEN 1 AND 3", " IS NULL",
    " AS n", "COUNT(*)",
    "SUM(emp)", "SUM(pay)", "COUNT(DISTINCT firm)", "AVG(emp)", "CASE WHEN ", " THEN 'a' ELSE 'b' END",
    "LEFT(naics, 2)", "county", "naics", "EXTRACT(YEAR FROM day)", "EXTRACT(WEEK FROM day)", "EXTRACT(", " FROM day)", "day",
    "size", "open", "emp", "pay", "'01'", "TRUE", "2.5", "<>", ">=", "::int", "FILTER (WHERE open)", "OVER ()",
    "DISTINCT ", "ILIKE ", " COLLATE NOCASE", "SUM(net)", "SUM(rest)", "rest", " + 2 * SUM(emp) AS c", " / SUM(emp) AS r", "-",
)]  # fmt: skip


def records() -> pa.Table:
    rng = Random("records")
    return pa.table(
        {
            "id": list(range(ROWS)),
            "firm": [rng.randrange(20) for _ in range(ROWS)],
            "county": [rng.choice(COUNTIES) for _ in range(ROWS)],
            "naics": [rng.choice([*CODES, None]) for _ in range(ROWS)],
            "size": pa.array([rng.choice([None, -1, 0, 3, 1000]) for _ in range(ROWS)], pa.int64()),
            "open": [rng.random() < 0.5 for _ in range(ROWS)],
            "day": pa.array([rng.choice(DAYS) for _ in range(ROWS)]).cast(pa.date32()),
            "emp": [rng.choice([0, 1, 2, 49, 50, rng.randrange(10**6)]) for _ in range(ROWS)],
            "net": [rng.randrange(-(10**6), 10**6) for _ in range(ROWS)],
            "pay": pa.array([rng.randrange(10**6) / 4 for _ in range(ROWS)], pa.float64()).cast(pa.decimal128(14, 2)),
        }
    )


def laid_out(table: pa.Table) -> pa.Table:
    """The same records in one to three rows each, some with a missing value: collapsed, they are what they were."""
    rng, rows = Random("rows"), []
    for record in table.to_pylist():
        for _ in range(rng.randrange(3)):
            some, gain = rng.randint(0, record["emp"]), rng.choice((0, 9, -70))
            rows.append(record | {"emp": some or None, "net": gain, "pay": rng.choice((0, record["pay"]))})
            record = record | {"emp": record["emp"] - some, "net": record["net"] - gain}
        rows.append(record | {"emp": record["emp"] or None})
    rng.shuffle(rows)
    return pa.Table.from_pylist(rows, schema=table.schema)


class SqlText:
    """Each record comes in several rows, and DuckDB is asked about the record they are."""

    def __init__(self) -> None:
        self._table = records()
        self._engine = DuckDB(laid_out(self._table), SCHEMA, threads=1)
        self._plain = duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": False})
        self._plain.register("t_view", self._table)
        # In twelfths, which are whole numbers: a third is none in decimal digits.
        self._plain.execute("CREATE TABLE t AS SELECT *, (12 * net - 540 * emp + 4 * pay) AS rest FROM t_view")

    def seeds(self) -> list[bytes]:
        return [self.fresh(Random(f"seed {number}")) for number in range(60)]

    def fresh(self, rng: Random) -> bytes:
        return statement(rng).encode()

    def mutate(self, rng: Random, data: bytes, other: bytes) -> bytes:
        return mutated(rng, data, other, WORDS)

    def check(self, data: bytes) -> str:
        text = data.decode("utf-8", "replace")
        read = parsed(text)
        keys = self._keys(read)
        if keys is None:
            return REFUSED
        asked = read.at(keys) if read.groups else read
        asked = asked.count(NOISE, alias="n__")
        plan = Plan(schema=SCHEMA, queries=(asked,))
        (found,) = self._engine.totals(plan)
        rough = [isinstance(each, Combination | Ratio) for each in asked.statistics]
        ours = self._answer(text, asked, plan, found)
        if ours != self._theirs(text, rough):
            raise WrongError("the totals differ from DuckDB's answer to the same text")
        return ACCEPTED

    def _theirs(self, text: str, rough: list[bool]) -> Counter[tuple[Any, ...]]:
        """Numbers that DuckDB works out in floats are taken to six digits."""
        kinds = iter(rough)
        items = [
            aggregate(unnamed(item)) and next(kinds) for item in sqlglot.parse_one(text, read="duckdb").expressions
        ]
        try:
            rows = self._plain.execute(text).fetchall()
            return Counter(tuple(about(v) if each else plain(v) for v, each in zip(row, items)) for row in rows)
        except duckdb.Error as error:
            raise WrongError(f"DuckDB itself refuses this text ({type(error).__name__})") from None

    def _keys(self, read: Query) -> Keys | None:
        """Every value each group can take; None where that would be too many."""
        columns: dict[str, list[Any]] = {}
        cells = 1
        for group in read.groups:
            columns[group.name] = self._values(group.expression)
            cells *= len(columns[group.name])
        return None if cells > LARGEST else Keys.product(**columns) if columns else Keys.of({"none": ["x"]})

    def _values(self, expression: Any) -> list[Any]:
        if isinstance(expression, Case):
            labels = [label for _, label in expression.branches] + [expression.default]
            return list(
                dict.fromkeys(
                    int(label) if isinstance(label, Fraction) and label.denominator == 1 else label for label in labels
                )
            )
        name = expression.column if isinstance(expression, Prefix | DatePart) else expression.name
        if name not in self._table.column_names:
            return ["?"]
        values = self._table.column(name).unique().to_pylist()
        if isinstance(expression, DatePart):
            days = [day if isinstance(day, date) else None for day in values]
            return list(dict.fromkeys(None if day is None else int(part_of(day, expression.part)) for day in days))
        if isinstance(expression, Prefix):
            return list(
                dict.fromkeys(value[: expression.length] if isinstance(value, str) else value for value in values)
            )
        return list(values)

    def _answer(self, text: str, asked: Query, plan: Plan, found: Any) -> Counter[tuple[Any, ...]]:
        """The rows DuckDB should give: our cells that hold records, in the order of the SELECT list."""
        exact = {each: values.tolist() for each, values in found.exact.reveal().totals.items()}
        columns = []
        statistics = iter(asked.statistics)
        for item in sqlglot.parse_one(text, read="duckdb").expressions:
            if aggregate(unnamed(item)):
                columns.append(self._statistic(next(statistics), exact, asked))
            else:
                columns.append((self._group(asked, item, found), plain))
        held = exact[CountUnits()]
        rows = range(len(held)) if not asked.groups else [row for row, count in enumerate(held) if count]
        return Counter(tuple(each(column[row]) for column, each in columns) for row in rows)

    def _group(self, asked: Query, item: Any, found: Any) -> list[Any]:
        name = item.alias if isinstance(item, sqlglot.exp.Alias) else None
        from recordwise.plan.sql.grammar import expression

        wanted = expression(item.this if name is not None else item)
        group = next(each for each in asked.groups if each.name == name or (name is None and each.expression == wanted))
        return list(found.cells.column(group.name).to_pylist())

    def _statistic(self, statistic: Any, exact: dict[Any, list[int]], asked: Query) -> tuple[list[Any], Any]:
        """The exact column of a statistic, and how its numbers are compared."""
        if isinstance(statistic, Combination):
            return self._combined(statistic.terms, statistic.parts(asked.draws()), exact), about
        if isinstance(statistic, Ratio):
            parts = statistic.parts(asked.draws())
            top = self._combined(statistic.top, parts[: len(statistic.top)], exact)
            bottom = self._combined(statistic.bottom, parts[len(statistic.top) :], exact)
            return [above / below if below else 0 for above, below in zip(top, bottom)], about
        if isinstance(statistic, Average):
            raise WrongError("an average came through without its count")
        return self._total(statistic, exact), plain

    def _combined(self, terms: Any, parts: Any, exact: dict[Any, list[int]]) -> list[Any]:
        columns = [[share * value for value in self._total(part, exact)] for (_, share), part in zip(terms, parts)]
        return [sum(values, Fraction(0)) for values in zip(*columns)]

    def _total(self, statistic: Any, exact: dict[Any, list[int]]) -> list[Any]:
        (total,) = statistic.totals(SCHEMA)
        values: list[Any] = exact[total]
        if isinstance(total, SumSteps):
            measure = SCHEMA.measure(total.measure)
            assert measure is not None
            scale = 12 if total.measure == "rest" else 1
            values = [value * measure.step * scale for value in values]
        return values


def parsed(text: str) -> Query:
    """The query; mechanisms that no statistic asks for are left out."""
    mechanisms = dict(MECHANISMS)
    for _ in range(2):
        try:
            return parse_sql(text, mechanisms=mechanisms)
        except SqlError as error:
            if not error.construct.startswith("no statistic for the mechanism of "):
                raise
            for name in error.construct.removeprefix("no statistic for the mechanism of ").split(", "):
                mechanisms.pop(name, None)
    raise SqlError(construct="no mechanisms are left")


def unnamed(item: Any) -> Any:
    return item.this if isinstance(item, sqlglot.exp.Alias) else item


def about(value: Any) -> str:
    """A number that may have been rounded, to six digits; what is divided by 0 as 0."""
    return f"{float(value):.6g}" if value and math.isfinite(value) else "0"


def plain(value: Any) -> Any:
    """Numbers as fractions; a sum of nothing is 0, and so is the NULL of a key on either side."""
    if isinstance(value, (str, bool)):
        return value
    return Fraction(value or 0)


def literal(rng: Random, column: str) -> str:
    match column:
        case "county":
            return "'" + rng.choice([*COUNTIES, "zz", ""]).replace("'", "''") + "'"
        case "naics":
            return f"'{rng.choice([*CODES, '9'])}'"
        case "open":
            return rng.choice(("TRUE", "FALSE", "true"))
        case "emp" | "pay":
            return rng.choice(("0", "1", "50", "49.5", "0.25", "1000000", "-1"))
        case _:
            return rng.choice(("0", "-1", "3", "2.5", "1000"))


def condition(rng: Random, depth: int = 2) -> str:
    if rng.random() < 0.15:
        sign, number = rng.choice(("=", "<>", "<", ">=")), rng.choice((1, 2, 53, 2004, 2005, 4.5))
        return f"EXTRACT({rng.choice(PARTS)} FROM day) {sign} {number}"
    column = rng.choice(("county", "naics", "size", "open", "emp", "pay"))
    match rng.randrange(8 if depth else 5):
        case 0:
            return f"{column} IN ({', '.join(literal(rng, column) for _ in range(rng.randint(1, 3)))})"
        case 1 if column != "open":
            return f"{column} BETWEEN {literal(rng, column)} AND {literal(rng, column)}"
        case 2 if column in ("naics", "size"):
            return f"{column} IS {rng.choice(('', 'NOT '))}NULL"
        case 3:
            return f"LEFT(naics, {rng.randint(1, 3)}) = '{rng.choice(CODES)[:2]}'"
        case 5:
            return f"NOT ({condition(rng, depth - 1)})"
        case 6 | 7:
            return f"({condition(rng, depth - 1)} {rng.choice(('AND', 'OR'))} {condition(rng, depth - 1)})"
        case _:
            sign = rng.choice(("=", "<>", "!=", "<", "<=", ">", ">=")) if column != "open" else rng.choice(("=", "<>"))
            return f"{column} {sign} {literal(rng, column)}"


def grouping(rng: Random, number: int) -> tuple[str, str]:
    """An item of the SELECT list and its twin in GROUP BY."""
    match rng.randrange(5):
        case 4:
            return f"EXTRACT({rng.choice(PARTS)} FROM day) AS g{number}", f"g{number}"
        case 0:
            name = rng.choice(("county", "naics", "size", "open"))
            return name, name
        case 1:
            length = rng.randint(1, 3)
            return f"LEFT(naics, {length}) AS g{number}", f"g{number}"
        case 2:
            return f"SUBSTRING(naics, 1, 2) AS g{number}", f"g{number}"
        case _:
            labels = rng.choice((("'x'", "'y'"), ("1", "2")))
            return f"CASE WHEN {condition(rng, 1)} THEN {labels[0]} ELSE {labels[1]} END AS g{number}", f"g{number}"


def statement(rng: Random) -> str:
    groups = [grouping(rng, number) for number in range(rng.choice((0, 1, 1, 2, 3)))]
    statistics = rng.sample(
        [
            "COUNT(*)",
            "COUNT(*) AS n",
            "SUM(emp)",
            "SUM(pay) AS p",
            "SUM(net) AS d",
            "SUM(rest) AS q",
            "COUNT(DISTINCT firm)",
            "COUNT(DISTINCT id)",
        ],
        rng.randint(1, 3),
    )
    if rng.random() < 0.25:
        more = rng.choice(
            ("SUM(net) / SUM(emp) AS r", "SUM(net) - 3 * SUM(emp) AS c", "(SUM(emp) + 0.5 * SUM(net)) / 4 AS c")
        )
        statistics = ["SUM(emp) AS e", "SUM(net) AS d", *(each for each in statistics if "SUM" not in each), more]
    text = f"SELECT {', '.join([item for item, _ in groups] + statistics)} FROM t"
    if rng.random() < 0.6:
        text += f" WHERE {condition(rng)}"
    return text + (f" GROUP BY {', '.join(twin for _, twin in groups)}" if groups else "")
