"""Every statement that engines are given, by digest: records read, checked, joined and counted, totals, and what only owners ask.

What the statements compute is held against slow ways in ``tests/engines``; kept, they tell of a change that a small table does not
show. ``PYTHONPATH=tests python tests/kept/kept_statements.py`` writes them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlglot
from sqlglot import exp

import recordwise as rw
from build import industries, places
from plan.test_identity import loaded
from recordwise.engines.compile import expressions, firms, owner, records, totals
from recordwise.engines.compile.records import Check, StorageType
from recordwise.engines.owner import firm_tables, realized_trees
from recordwise.mechanisms.quantile import Grid
from recordwise.plan import Plan
from recordwise.plan.expressions import Predicate
from recordwise.plan.plan import PlannedTable
from recordwise.plan.query import Query
from recordwise.plan.schema import Column, Measure, Schema
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.plan.statistics import CountFirms, CountUnits
from recordwise.plan.statistics.totals import CountBins, Splitting
from recordwise.policy import gaussian_sum
from recordwise.policy.columns import ConditionColumn
from recordwise.policy.constructors import By, by
from recordwise.policy.evaluate.sql import terms_sql

KEPT = Path(__file__).with_suffix(".json")
DIALECTS = ("duckdb", "spark")


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def of_tree(tree: exp.Expr | None, dialects: Sequence[str] = ("duckdb",)) -> list[str]:
    """A statement in the words of each dialect; of none a word that is no digest."""
    return ["none"] if tree is None else [digest(tree.sql(dialect)) for dialect in dialects]


STORED = [
    StorageType("integer"),
    StorageType("wide"),
    StorageType("decimal", 2),
    StorageType("decimal"),
    StorageType("float"),
    StorageType("text"),
    StorageType("text", comma=True),
    StorageType("steps"),
    StorageType("number"),
]
MEASURES = [
    Measure.of("emp"),
    Measure.of("emp", signed=True, bound=700),
    Measure.of("emp", step="0.25", bound=90, null="zero"),
    Measure.of("emp", step="3/4", signed=True),
    Measure.of("emp", step=5, bound=2**61),
    Measure.of("emp", step="0.01", number={"thousands": ",", "prefix": "$", "suffix": "EUR"}),
    Measure.of("emp", number={"thousands": ".", "decimal": ","}, bound="7.5"),
]
COLUMNS = [
    Column(name="code"),
    Column(name="code", trim=True, null="category"),
    Column(name="code", type="integer"),
    Column(name="code", type="boolean", null="category"),
    Column(name="code", type="date"),
    Column(name="code", type="date", date="%d.%m.%Y"),
    Column(name="code", type="date", date="%b %d %Y"),
]
AS_STORED = [
    *(StorageType(kind) for kind in ("integer", "number", "float", "text", "boolean", "date", "other")),  # type: ignore[arg-type]
    StorageType("text", untyped=True),
]


def of_checks(found: Iterable[Check]) -> list[str]:
    return [f"{each.column} {digest(each.problem + each.advice)} {digest(each.broken.sql('duckdb'))}" for each in found]


def of_values() -> Iterator[tuple[str, Any]]:
    """A measure of each form and a column of each type, as every storage holds it."""
    for number, measure in enumerate(MEASURES):
        schema = Schema(unit="id", measures=(measure,))
        for at, stored in enumerate(STORED):
            held = {"id": StorageType("integer"), "emp": stored}
            yield (
                f"measure {number}, {at}",
                [
                    *of_tree(records.rows_select(schema, held)),
                    *of_checks(records.checks(schema, held)),
                    records.largest_steps(measure, stored),
                ],
            )
    for number, column in enumerate(COLUMNS):
        for unit in ("id", ("id", "code")):
            schema = Schema(unit=unit, columns=(column,))
            for at, stored in enumerate(AS_STORED):
                if unit != "id" and number % 2:
                    continue
                held = {"id": StorageType("text", untyped=at % 2 == 1), "code": stored}
                told = records.type_problem("code", column.type, stored)
                yield (
                    f"column {number}, {unit}, {at}",
                    [
                        *of_tree(records.rows_select(schema, held)),
                        *of_checks(records.checks(schema, held)),
                        digest(str(told)),
                    ],
                )
    for at, stored in enumerate(AS_STORED):
        yield f"measure stored as {at}", digest(str(records.type_problem("emp", "measure", stored)))


ROLES: dict[str, Any] = {
    "measures": {
        "emp": Measure.of("emp", bound=10_000),
        "pay": Measure.of("pay", step="0.5", null="zero"),
        "net": Measure.of("net", step=2, signed=True, bound=5000),
        "rest": Measure.of("rest", derive="pay - 15 * emp"),
    },
    "columns": {"county": "text", "naics": "text", "size": Column(name="size", type="integer", null="category")},
    "firm": "firm",
}
SCHEMA = Schema.of(unit="id", **ROLES, hierarchies=[places(), industries()])
RULES: dict[str, Any] = {
    "emp": "sum",
    "pay": "max",
    "net": "sum",
    "county": "same",
    "naics": "same",
    "size": "min",
    "firm": "same",
}
JOINED = Schema.of(unit="id", **ROLES, collapse=RULES, hierarchies=[places()])
PAIRED = Schema.of(unit=["id", "county"], **ROLES)


def of_records() -> Iterator[tuple[str, Any]]:
    """The view of all records, rows that are joined, and ids that are told apart."""
    whole = StorageType("integer")
    for name, schema in {"plain": SCHEMA, "joined": JOINED, "paired": PAIRED}.items():
        stored = {each: StorageType("text") if each in ("county", "naics") else whole for each in schema.names()}
        stored |= {"id": whole}
        found = list(records.checks(schema, stored))
        yield f"{name}, records", of_tree(records.records_tree(schema, stored), DIALECTS)
        yield f"{name}, checks", of_checks(found)
        yield f"{name}, broken", of_tree(records.broken_tree(found, others=records.span_columns(schema)))
        yield f"{name}, counted", of_tree(records.validation_tree(found, "t"))
        for tree in (records.different_tree, records.bits_tree, records.span_tree, records.shuffled_tree):
            found_in = [tree(schema), tree(schema, "t")]
            yield f"{name}, {tree.__name__}", [text for each in found_in for text in of_tree(each, ("spark",))]
        yield f"{name}, shuffled", of_tree(records.shuffled_tree(schema, by=expressions.column("firm")), ("spark",))
        for kind in (whole, StorageType("text")):
            yield f"{name}, fingerprints of {kind.kind}", of_tree(records.fingerprints_tree(schema, kind))
        yield f"{name}, ids", [records.id_table(schema), records.id_storage(schema, stored).kind]
        if schema.collapse:
            for widened in (False, True):
                yield f"one row, {widened}", of_tree(records.collapsed_tree(schema, stored, found, widened=widened))
            yield "one row, unchecked", of_tree(records.collapsed_tree(schema, stored))
            yield "aside", of_tree(records.any_aside_tree(schema))
            yield "joined records", of_tree(records.collapsed_records_tree(schema), DIALECTS)
            yield "joined checks", of_checks(records.collapse_checks(schema))
            yield "differing", of_tree(records.differing_tree(schema, records.same_names(schema)))
    for least, most, held in ((0, 160, 10), (0, 161, 10), (5, 165, 10), (5, 166, 10), (None, None, 0)):
        yield f"close, {least} to {most}", str(records.close({"least": least, "most": most, "held": held}))  # type: ignore[dict-item]
    yield "code lists", [[name, *table.column_names, table.num_rows] for name, table in records.code_lists(SCHEMA)]


CONDITIONS = [
    "emp < 2.5",
    "emp <= 2.5",
    "emp >= 2.5",
    "emp > 2.5",
    "emp = 2.5",
    "emp <> 2.5",
    "pay < 2.5",
    "pay = 2.5",
    "net >= -3",
    "net <> -4",
    "emp < 1000000000000000000000000",
    "emp > 1000000000000000000000000",
    "emp = 1000000000000000000000000",
    "emp <> 1000000000000000000000000",
    "emp >= -1000000000000000000000000",
    "emp IN (1, 2.5, 1000000000000000000000000)",
    "emp IN (2.5)",
    "pay IN (2.5, 3, 3.25)",
    "NOT (county = '01' AND naics <> '2') OR SUBSTR(naics, 1, 2) IN ('31', '32')",
    "size IS NULL OR size IS NOT NULL AND size < 3",
    "state = '01' AND sector IN ('11') AND emp > 3 AND pay > 7 AND net < 0",
]


def conditions() -> dict[str, Predicate]:
    return {text: parse_predicate(text) for text in CONDITIONS}


PIECES = [
    Splitting((("emp", Fraction(50)),)),
    Splitting((("emp", Fraction(50)), ("pay", Fraction(7)), ("net", Fraction(40)))),
    Splitting((("pay", by(ConditionColumn("naics", 2), {"31": 20, "32": 1}, default=Fraction(5, 2))),)),
    Splitting((("net", Fraction(2) ** 70),)),
]


def of_conditions() -> Iterator[tuple[str, Any]]:
    """Conditions on steps, and pieces of records."""
    for text, predicate in conditions().items():
        yield text, of_tree(expressions.predicate_tree(predicate, SCHEMA), DIALECTS)
    some = conditions()["emp < 2.5"]
    for number, splitting in enumerate(PIECES):
        for condition in (None, some):
            yield (
                f"pieces {number}, {condition is None}",
                [
                    *of_tree(totals.pieces_count_tree(splitting, condition, SCHEMA)),
                    *of_tree(totals.split_rows_tree(splitting, condition, SCHEMA), DIALECTS),
                ],
            )
    yield "parts", [len(each.thresholds) for each in PIECES if not isinstance(each.thresholds[0][1], By)]


NOISE, LAPLACE = rw.Gaussian(sigma=5), rw.GeneralizedGaussian(shape=1, scale=20)
GRIDS = [Grid.log(1, 1000, bits=4), Grid.linear(2, 80, bits=3)]
KEYS = rw.Keys.product(county=["01001", "02013"], naics=["311", "332"])
SIZES = {"county": ["01001", "02013"], "naics": ["311", "332"], "size": [700, 20]}
SIZED = rw.Keys.of(SIZES, size={"emp": "size"}, sized_on="public: a table")


def queries() -> dict[str, Query]:
    """Tables with and without levels, conditions, rests, firms, bands, pieces and bins."""
    crossed = rw.query().levels("state", "county").levels("sector", "naics", keys=KEYS)
    by_key = rw.query().group_by("county", "naics", keys=KEYS)
    nested = rw.query().group_by("county", keys=KEYS).levels(rw.prefix("naics", [1, 3]), all_other="publish")
    selected = rw.query().group_by("county", keys=rw.Keys.select(rho="0.5", delta="1e-6", pieces={"emp": 50}))
    return {
        "crossed": crossed.where("emp > 3")
        .sum("emp", NOISE)
        .count_distinct("firm", NOISE)
        .sum("net", rw.Clamped(to=30, rho=1)),
        "all": rw.query().count(NOISE).sum("net", rw.LogTransform(offset=30, sigma=1, signed=True)).sum("rest", NOISE),
        "quantiles": by_key.quantile("emp", p="0.5", grid=GRIDS[0], rho=1).quantile(
            "pay", p="0.1", grid=GRIDS[1], rho=1
        ),
        "rests": nested.where("pay > 2")
        .count(NOISE)
        .count_distinct("firm", NOISE)
        .quantile("emp", p="0.5", grid=GRIDS[1], rho=1),
        "split": by_key.sum("emp", rw.UnitSplit(at=by(ConditionColumn("naics", 2), {"31": 20}, default=9), rho=1)),
        "curved": by_key.sum("pay", rw.LogTransform(offset=100, sigma="0.4"))
        .sum("net", NOISE)
        .count(rw.GeneralizedGaussian(shape=1, scale=2)),
        "sized": rw.query()
        .group_by("county", "naics", keys=SIZED)
        .sum("emp", rw.Sized(rw.LogTransform(offset=9, sigma="0.1"), floor=50)),
        "groups": by_key.sum("emp", rw.ByGroup("naics", {"311": rw.LogTransform(offset=9, sigma=1)}, default=NOISE)),
        "selected": selected.sum("pay", NOISE),
        "pure": by_key.count(LAPLACE)
        .sum("net", LAPLACE)
        .count_distinct("firm", LAPLACE)
        .sum("emp", rw.LogTransform(offset=9, laplace_scale="0.5")),
    }


def plans() -> dict[str, Plan]:
    asked = queries()
    found = {name: Plan(schema=SCHEMA, queries=(query,)) for name, query in asked.items()}
    together = ("crossed", "all", "rests", "split", "selected")
    return found | {"together": Plan(schema=SCHEMA, queries=tuple(asked[name] for name in together))}


def of_table(plan: Plan, base: totals.Base, table: PlannedTable) -> Iterator[tuple[str, Any]]:
    names = totals.Names("cells", tuple(f"firms{number}" for number in range(9)), "keys")
    schema = plan.schema
    yield "totals", of_tree(totals.additive_tree(base, table, names, "k"), DIALECTS)
    yield "firms", of_tree(totals.firm_counts_tree(base, table, names, "k"), DIALECTS)
    yield "columns", totals.additive_columns(base, table)
    if plan.selection(table) is not None:
        yield "found", of_tree(totals.found_cells_tree(base, table, names, plan.selection(table).total()))  # type: ignore[union-attr]
    for bins in table.bins:
        yield f"bins of {bins.measure}", of_tree(totals.bins_tree(table, bins, schema, grid="grid", keys="k"), DIALECTS)
    for measure in ("emp", "net"):
        for by_firm in (False, True):
            tree = owner.contributions_tree(table, measure, schema, keys="k", by_firm=by_firm)
            yield f"contributions of {measure}, {by_firm}", of_tree(tree)
    if CountUnits() in table.totals or CountFirms() in table.totals:
        value = [terms_sql(gaussian_sum("emp", sigma=3).rho, "duckdb")]
        yield "beside", of_tree(owner.many_beside_tree(value, base, table, names, "k", schema))


def of_totals() -> Iterator[tuple[str, Any]]:
    """Finest cells, the tables rolled up from them, and what a firm loses."""
    for name, plan in plans().items():
        for number, base in enumerate(totals.bases_of(plan.tables(), plan.schema)):
            yield f"{name}, {number}", [base.own, len(base.tables), *map(repr, base.expressions)]
            yield f"{name}, {number}, cells", of_tree(totals.cells_tree(base, plan.schema), DIALECTS)
            for at, condition in enumerate(base.firm_conditions()):
                yield f"{name}, {number}, pairs {at}", of_tree(totals.firms_tree(base, condition, plan.schema))
            for at, table in enumerate(base.tables):
                for part, held in of_table(plan, base, table):
                    yield f"{name}, {number}, {at}, {part}", held
    for number, grid in enumerate(GRIDS):
        for step in (Fraction(1), Fraction(1, 2), Fraction(3)):
            lent = totals.grid_table(CountBins("emp", grid), step)
            guess = of_tree(totals.guess_tree(CountBins("emp", grid), step), DIALECTS)
            yield f"grid {number}, {step}", [*guess, *(lent[name].to_pylist() for name in lent.column_names)]


EDGES = [0.001, 0.1, 2.0, 5.0]
EVEN = [10.0 ** (place / 10) for place in range(-15, 16)]


def of_owners() -> Iterator[tuple[str, Any]]:
    """Losses of records and firms, histograms and contributors."""
    found = plans()
    for name, plan in found.items():
        if name in ("together", "crossed"):
            continue
        values = [terms_sql(part.policy.rho, "duckdb") for part in plan.parts() if part.policy.rho]
        amounts = owner.amounts_tree(plan.schema, values)
        yield f"{name}, alike", of_tree(owner.distinct_records(amounts, values[:1], plan.schema))
        yield f"{name}, histogram", of_tree(owner.histogram_tree(values[0], EDGES, plan.schema), DIALECTS)
        yield f"{name}, histograms", of_tree(owner.histograms_tree(values, plan.schema, conditions()["emp < 2.5"]))
        for bound in (*owner.FIRM_BOUNDS, owner.PURE_SUM) if name in ("all", "sized") else ():
            yield f"{name}, {bound}", of_tree(owner.firm_histogram_tree(values[0], EDGES, plan.schema, bound=bound))
        if name in ("rests", "selected", "sized"):
            tree = firms.all_firms_tree(firm_tables([plan]), 1, plan.schema, several="several", dialect="duckdb")
            yield f"{name}, firms", of_tree(tree)
        for at, table in enumerate(plan.tables()):
            extra = gaussian_sum("pay", sigma=7)
            for alias, loss in realized_trees(plan, table, extra, "duckdb").items():
                yield f"{name}, {at}, realized {alias}", of_tree(loss)
        bands = [each for part in plan.parts() for each in part.policy.bands().values()]
        lents = [pair for each in bands for pair in owner.lent_bands(each).items()]
        for place, (key, lent) in enumerate(lents):
            yield f"{name}, band {place}", [len(key), *(lent[column].to_pylist() for column in lent.column_names)]
    tree = firms.all_firms_tree(firm_tables([found["pure"]], pure=True), 1, SCHEMA, several="s", dialect="duckdb")
    yield "pure, together", of_tree(tree)
    tables = firm_tables([found["split"], found["curved"], found["quantiles"]])
    tree = firms.all_firms_tree(tables, 3, SCHEMA, several="several", dialect="spark")
    yield "firms of several plans", of_tree(tree, ("spark",))
    yield "several", of_tree(firms.several_tree(SCHEMA))
    yield "contributors", of_tree(owner.contributors_tree("held"), DIALECTS)
    names = ["emp", "county"]
    yield "values", of_tree(owner.value_counts_tree(names, SCHEMA, conditions()["pay = 2.5"], at_most=7))
    yield "all values", of_tree(owner.value_counts_tree(names, SCHEMA, None, at_most=9))
    few = EVEN[: owner.FEW_EDGES]
    off = [edge * (1.05 if place == 7 else 1) for place, edge in enumerate(EVEN)]
    more = {"zero": [0.0, *EVEN], "last": [*EVEN, float("inf")]}
    for name, edges in {"few": few[1:], "enough": few, "even": EVEN, "off": off, **more}.items():
        yield f"bins, {name}", of_tree(owner.bin_tree(expressions.column("value"), edges), DIALECTS)


def of_every_field() -> Iterator[tuple[str, Any]]:
    """A plan with one of everything."""
    with TemporaryDirectory() as folder:
        plan = loaded(Path(folder)).plan
    for number, base in enumerate(totals.bases_of(plan.tables(), plan.schema)):
        yield f"{number}, cells", of_tree(totals.cells_tree(base, plan.schema), DIALECTS)
        for at, table in enumerate(base.tables):
            for part, held in of_table(plan, base, table):
                if "contributions" not in part:
                    yield f"{number}, {at}, {part}", held
    tree = firms.all_firms_tree(firm_tables([plan]), 1, plan.schema, several="several", dialect="duckdb")
    yield "firms", of_tree(tree)


SUBJECTS = {
    "values": of_values,
    "records": of_records,
    "conditions": of_conditions,
    "totals": of_totals,
    "owners": of_owners,
    "every field": of_every_field,
}


def found() -> dict[str, dict[str, Any]]:
    return {subject: json.loads(json.dumps(dict(ask()))) for subject, ask in SUBJECTS.items()}


def main() -> None:
    from kept.kept_rooms import written

    KEPT.write_text(written({"sqlglot": {"version": sqlglot.__version__}, **found()}), encoding="utf-8")


if __name__ == "__main__":
    main()
