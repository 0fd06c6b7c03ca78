"""Public JSON descriptions of queries and plans, warnings, and release digests.

For the ledger and release.json; a release is recognized by its digest.
"""

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import distribution, packages_distributions, version
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function
from recordwise.exact.numbers import fraction_text
from recordwise.mechanisms.base import Mechanism, parameter_json
from recordwise.plan.arrays import table_digest
from recordwise.plan.cost import is_raised, plan_policy
from recordwise.plan.expressions import (
    And,
    Best,
    Case,
    Compare,
    DatePart,
    Field,
    Group,
    In,
    IsNull,
    Level,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Prefix,
    condition,
    leaves,
    linear_text,
    operand_name,
)
from recordwise.plan.keys.cells import MOST_DIGESTED, Cells, Product, Rows
from recordwise.plan.plan import Plan, PlannedTable, size_names
from recordwise.plan.query import Query
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.statistics import Statistic
from recordwise.policy.columns import plain_value
from recordwise.policy.constructors import By
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series

if TYPE_CHECKING:
    from recordwise.policy.render.html import Html

SEVERAL_ROWS = "several for a unit, made one record"


def protected(schema: Schema) -> str:
    """Return what one record is, where an id has several columns."""
    each = "pair" if len(schema.unit_columns) == 2 else "combination"
    return f"each {each} of {schema.unit_text}, and not all records that share only one of them"


def schema_json(schema: Schema) -> dict[str, Any]:
    """Roles and types; nothing derived from values."""
    rule = {name: {"collapse": each} for name, each in schema.collapse or ()}
    columns = [
        {"name": each.name, "type": each.type, "null": each.null}
        | ({"date": each.date} if each.date else {})
        | ({"trim": True} if each.trim else {})
        for each in schema.columns
    ]
    return {
        "unit": schema.unit if isinstance(schema.unit, str) else list(schema.unit),
        **({} if isinstance(schema.unit, str) else {"protects": protected(schema)}),
        "firm": schema.firm,
        **({} if schema.collapse is None else {"rows": SEVERAL_ROWS}),
        "measures": [_measure_json(measure) | rule.get(measure.name, {}) for measure in schema.measures],
        "columns": [form | rule.get(str(form["name"]), {}) for form in columns],
    }


def _measure_json(measure: Measure) -> dict[str, Any]:
    """Return a measure as JSON, without defaults as in earlier ledgers."""
    form: dict[str, Any] = {
        "name": measure.name,
        "step": fraction_text(measure.step),
        "bound": fraction_text(measure.bound),
    }
    form |= {"derive": linear_text(measure.derive)} if measure.derive else {}
    form |= {"signed": True} if measure.signed else {}
    form |= {"number": asdict(measure.number)} if measure.number is not None else {}
    return form if measure.null == "refuse" else form | {"null": measure.null}


def plan_json(plan: Plan) -> list[dict[str, Any]]:
    """Return each query as JSON: condition, tables, cells and statistics."""
    described, tables = [], plan.tables()
    for number, query in enumerate(plan.queries):
        described.append(
            {
                **({"name": query.name} if query.name else {}),
                **({"title": query.title} if query.title else {}),
                **({"shares": _best(query.best)} if query.best is not None and query.has_best_shares else {}),
                "where": None if query.condition is None else predicate_json(query.condition),
                "tables": [_table_json(plan, each) for each in tables if each.query == number],
                "statistics": [parameter_json(statistic.description()) for statistic in query.statistics],
            }
        )
    return described


def _table_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    shape = table.shape
    return {
        "name": table_name(plan, table),
        "by": [group_json(group, plan.schema) for group in shape.groups],
        "share": fraction_text(shape.share),
        **_rest_json(plan, table),
        **_cells_json(plan, table),
        **_sized_json(plan, table),
    }


def _rest_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    """The table of which the rests are published."""
    if table.rest is None:
        return {}
    above = next(each for each in plan.tables() if each.query == table.query and each.shape == table.rest)
    return {"rest": table_name(plan, above)}


def _cells_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    """Return the number of public cells, or how cells are selected."""
    selection = plan.selection(table)
    if selection is not None:
        return {"keys": selection.to_json()}
    return {"public_cells": plan.cells(table).num_rows if table.shape.groups else 1}


def _sized_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    """Return the cells' bands and size sources, by sized statistic (T-SIZE)."""
    sized = [(each, part.bands) for part, each in plan.drawn(table) if part.bands is not None]
    bands = {
        each.alias: {"bands": own.digest, "edges": [fraction_text(edge) for edge in own.edges]} for each, own in sized
    }
    lists = [plan.queries[table.query].sized_keys(table.shape, size_names(each)) for each, _ in sized]
    sizes = next((keys.sizes for keys in lists if keys is not None), None)
    if not bands or sizes is None:
        return {}
    return {"sized": bands, "sized_on": list(sizes.sized_on), "sizes": sizes.digest()}


def query_names(plan: Plan) -> str:
    """The statistics of a plan, for the ledger and for error messages."""
    return "; ".join(", ".join(statistic.alias for statistic in query.statistics) for query in plan.queries)


def group_json(group: Group, schema: Schema) -> dict[str, Any]:
    """A group as release.json describes it."""
    expression = group.expression
    if isinstance(expression, Field) and expression.name in schema.coarser_names():
        return {"name": group.name, **_level_json(expression.name, schema)}
    if isinstance(expression, Prefix):
        return {"name": group.name, "prefix_of": expression.column, "length": expression.length}
    if isinstance(expression, DatePart):
        return {"name": group.name, "part": expression.part, "of": expression.column}
    if isinstance(expression, Case):
        branches = [{"when": predicate_json(test), "then": literal_json(label)} for test, label in expression.branches]
        return {"name": group.name, "case": branches, "else": literal_json(expression.default)}
    return {"name": group.name, "column": expression.name}


def _level_json(level: str, schema: Schema) -> dict[str, Any]:
    """Return a coarser level: its code list and the levels determining it."""
    hierarchy = schema.hierarchy(level)
    assert hierarchy is not None
    below = hierarchy.determined_by(level)
    return {"level": level, "hierarchy": hierarchy.name, "digest": hierarchy.digest, "determined_by": below}


def predicate_json(predicate: Predicate) -> Any:
    """Return a condition as it was written."""
    match predicate:
        case And(parts) | Or(parts):
            return {type(predicate).__name__.lower(): [predicate_json(part) for part in parts]}
        case Not(part):
            return {"not": predicate_json(part)}
        case IsNull(operand):
            return {"null": _operand_json(operand)}
        case In(operand, literals):
            return {"in": _operand_json(operand), "values": [literal_json(literal) for literal in literals]}
        case Compare(operand, operator, literal):
            return {operator: [_operand_json(operand), literal_json(literal)]}


def _operand_json(operand: Operand) -> Any:
    if isinstance(operand, DatePart):
        return {"part": operand.part, "of": operand.column}
    return {"prefix_of": operand.column, "length": operand.length} if isinstance(operand, Prefix) else operand.name


def literal_json(value: Literal) -> Any:
    """Return a query's constant; a non-integer becomes an exact fraction."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else {"fraction": fraction_text(value)}
    return plain_value(value)


LONGEST_NAME = 80


def table_name(plan: Plan, table: PlannedTable) -> str:
    """Return a unique file name from the query and its groups."""
    taken: set[str] = set()
    for each in plan.tables():
        plain = name = _plain_name(plan, each)
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.casefold())
        if (each.query, each.level) == (table.query, table.level):
            return name
    raise ParameterError(parameter="table", problem="is not part of the plan")


def _plain_name(plan: Plan, table: PlannedTable) -> str:
    query, safe = plan.queries[table.query], safe_name("_by_".join(table.shape.names()) or "total")
    if query.name:
        return query.name if len(query.tables()) == 1 else f"{query.name}_{safe}"
    return safe if len(plan.queries) == 1 else f"q{table.query + 1}_{safe}"


def safe_name(text: str) -> str:
    """Return a text's letters, digits, - and _, shortened."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in text)[:LONGEST_NAME]


LIBRARIES = {"duckdb": "duckdb", "numpy": "numpy", "pyarrow": "pyarrow", "python-flint": "flint", "sqlglot": "sqlglot"}
"""Where each library states its version, by the name of its package."""


@cache
def _package_version() -> str:
    return version("recordwise")


def versions() -> dict[str, str]:
    """The versions of the software that made the release."""
    found = {name: import_module(module).__version__ for name, module in LIBRARIES.items()}
    return {"python": platform.python_version(), "recordwise": _package_version(), **found}


# The part of a schema that a plan uses, so that a release describes that part of the table and nothing else.


def used_schema(plan: Plan, *policies: Policy | None) -> Schema:
    """Return the ids and the measures and columns in use."""
    return schema_of(plan.schema, used_names(plan, *policies))


def used_names(plan: Plan, *policies: Policy | None) -> set[str]:
    """Return the names that queries or policies use, and the firm."""
    return _add_policy_names({name for query in plan.queries for name in _names(query)}, *policies)


def schema_of(schema: Schema, names: set[str], *policies: Policy | None) -> Schema:
    """Return the schema without measures and columns that nothing mentions."""
    names = _add_policy_names(names, *policies)
    names = names | {each.finest for each in schema.hierarchies if not names.isdisjoint(each.levels)}
    names = names | {base for each in schema.measures if each.name in names for base, _ in each.derive}
    used = {schema.firm, *names}
    return replace(
        schema,
        collapse=None if schema.collapse is None else tuple(each for each in schema.collapse if each[0] in used),
        measures=tuple(each for each in schema.measures if each.name in names),
        columns=tuple(each for each in schema.columns if each.name in names),
        hierarchies=tuple(each for each in schema.hierarchies if each.finest in names),
    )


def _add_policy_names(names: set[str], *policies: Policy | None) -> set[str]:
    for policy in filter(None, policies):
        measures = (*policy.measures(), *policy.inputs())
        names = names | {column.name for column in policy.columns()} | {each.name for each in measures}
    return names


def _names(query: Query) -> Iterator[str]:
    if query.condition is not None:
        yield from (operand_name(leaf.operand) for leaf in leaves(query.condition))
    for level in query.tables():
        for group in level.groups:
            yield from _group_names(group)
    yield from (each.of for each in query.draws() if each.of)


def _group_names(group: Group) -> Iterator[str]:
    value = group.expression
    if isinstance(value, Case):
        yield from (operand_name(leaf.operand) for test, _ in value.branches for leaf in leaves(test))
    else:
        yield value.name if isinstance(value, Field) else value.column


# Queries and plans as HTML for notebooks, with every name escaped.


def query_html(query: "Query") -> "Html":
    """The query's tables, condition and statistics."""
    from recordwise.policy.render.html import element, preview_table
    from recordwise.policy.render.text import condition_prose

    tables = [" × ".join(level.names()) or "the grand total" for level in query.tables()]
    only = [] if query.condition is None else [f"Only records where {condition_prose(condition(query.condition))}."]
    rows = [_row(statistic) for statistic in query.statistics]
    return element(
        "div",
        element("p", element("b", "recordwise query"), f" by {'; '.join(tables)}. ", *only),
        preview_table(("statistic", "is", "of", "noise"), rows),
    )


def _row(statistic: Statistic) -> tuple[str, str, str, str]:
    noise = ", ".join(each.text() for each in statistic.mechanisms())
    return statistic.alias, type(statistic).__name__, statistic.of or "", noise


def plan_html(plan: "Plan") -> "Html":
    """The plan's queries in order, and their total cost."""
    from recordwise.policy.render.html import Html, element

    cost = Html(plan_policy(plan)._repr_html_())
    return element("div", *map(query_html, plan.queries), element("p", element("b", "Cost to a record")), cost)


# Which packages state a loss that recordwise did not prove: mechanisms and statistics whose class is not one of ours.


OURS = "recordwise"
DECLARED_ELSEWHERE = "declared by its package, not proved by recordwise"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class DeclaredClass:
    """A class of another package, whose loss the package answers for."""

    name: str
    """The class."""
    package: str
    """The package as it was installed, or the module where it was not."""
    version: str = ""
    """Empty where the module belongs to no installed package."""

    def sentence(self) -> str:
        """In a sentence."""
        return f"{self.name} of {self.package} {self.version or '(a module that no installed package has)'}"

    def to_json(self) -> dict[str, Any]:
        """What release.json says about it."""
        return {
            "name": self.name,
            "package": self.package,
            "version": self.version or None,
            "policy": DECLARED_ELSEWHERE,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "DeclaredClass":
        """Read back what release.json says about it."""
        return cls(name=str(form["name"]), package=str(form["package"]), version=form["version"] or "")


def declared_function(call: Any, *, name: str) -> DeclaredClass:
    """Return an external mechanism's declaration, by its module."""
    module = getattr(call, "__module__", None) or type(call).__module__
    package, version = _package_of(module.partition(".")[0])
    return DeclaredClass(name=name, package=package, version=version)


def declared_classes(*values: Any) -> set[DeclaredClass]:
    """Return the external classes of mechanisms and statistics."""
    found = set()
    for value in values:
        root = type(value).__module__.partition(".")[0]
        if root != OURS:
            name, version = _package_of(root)
            found.add(DeclaredClass(name=type(value).__name__, package=name, version=version))
        parts = [getattr(value, each.name) for each in fields(value)] if is_dataclass(value) else []
        # Most mechanisms have none inside, and are not asked.
        nested = isinstance(value, Mechanism) and type(value).inside is not Mechanism.inside
        parts += [each for each in value.inside() if each is not value] if nested else []
        found |= declared_classes(*(part for part in parts if isinstance(part, Mechanism)))
    return found


@cache
def _package_of(root: str) -> tuple[str, str]:
    """The package that a module was installed with, and its version."""
    names = packages_distributions().get(root)
    return (names[0], distribution(names[0]).version) if names else (root, "")


def declared_elsewhere(plan: Plan) -> tuple[DeclaredClass, ...]:
    """Return other packages' mechanisms and statistics."""
    asked = [statistic for query in plan.queries for statistic in query.statistics]
    return tuple(sorted(declared_classes(*asked, *(each for statistic in asked for each in statistic.mechanisms()))))


# What the owner should know before a plan is run.


def plan_warnings(plan: Plan) -> tuple[str, ...]:
    """Return what the owner should know before running.

    Losses that we did not prove, and groups that get the noise of another group's larger threshold.
    """
    found = [f"the loss of {each.sentence()} is {DECLARED_ELSEWHERE}" for each in declared_elsewhere(plan)]
    found += _mixed_units(plan)
    for part, statistic in plan.drawn():
        level, at = part.table.shape, statistic.threshold(statistic.mechanism, plan.schema)
        if isinstance(at, By) and is_raised(at, level.groups, plan.schema.hierarchies):
            where = " x ".join(level.names()) or "the grand total"
            found.append(
                f"{statistic.alias} by {where}: cells can mix groups of '{at.column.name}', so their noise is set by the "
                "largest threshold of any group they can hold"
            )
    return tuple(dict.fromkeys([*found, *_crossed_levels(plan)]))


def _crossed_levels(plan: Plan) -> Iterator[str]:
    """Yield tables that are grouped by several prefixes of one code."""
    for table in plan.tables():
        prefixes = [(each.name, each.expression) for each in table.shape.groups if isinstance(each.expression, Prefix)]
        for column in dict.fromkeys(expression.column for _, expression in prefixes):
            names = [name for name, expression in prefixes if expression.column == column]
            if len(names) > 1:
                yield (
                    f"one table is grouped by {' x '.join(names)}, prefixes of '{column}', of which the longest says all; "
                    "give them to one call of levels for a table each"
                )


def _mixed_units(plan: Plan) -> list[str]:
    """Say that zCDP holds where some parts are pure (T-PURE)."""
    pure = {part.alias: part.policy.pure_problem() is None for part in plan.parts()}
    if all(pure.values()) or not any(pure.values()):
        return []
    without = ", ".join(name for name, is_pure in pure.items() if not is_pure)
    return [f"only some of it has a pure loss, so the plan has zCDP losses alone: {without} has no pure epsilon"]


# The digest of what a release is about, known before anything is read: two runs with the same digest would be the
# same release.
#
# What changes which numbers are drawn is part of it: what a record is (the meaning of every name that is used),
# conditions, groups, cells, shares, bands, selections, statistics with their mechanisms, and the period with its
# revision. What readers call things is not: titles, labels, names of tables and columns, the order of queries and
# statistics, where a public list is from, and how a policy is written down. Nor are paths, the output folder,
# formats, the level of intervals, the budget and values from the environment.
#
# The same in every process: cells and codes are digested themselves, never how Python prints an object
# (``unrecognizable``).


# The digest by which versions before 0.3 recognized a release, so that what they charged is still known as the same.
# It covered titles and the text of the policy, and not what becomes of missing values or of several rows of a unit.
# Both are made up for by what the ledger says about the charge: its titles and its policy are put in, and its schema
# is compared.


TITLE = "title"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierIdentity:
    """A release as earlier versions saw it."""

    period: Any
    described: Any
    policy: Any
    records: Any
    """What a record is, as ``schema_json`` states it, as far as the release depends on it."""
    plan: Plan

    def matches_charge(self, charge: Mapping[str, Any]) -> bool:
        """Whether an earlier version charged this release, under these or other titles.

        Args:
            charge: What the ledger says about the charge.
        """
        if not self._same_records(charge.get("schema")):
            return False
        keys = [_earlier_keys(self.plan, table) for table in self.plan.tables()]
        described = _with_titles(self.described, charge.get("details"))
        forms = ([self.period, described, keys, policy] for policy in (self.policy, charge.get("policy")))
        return any(_digest(form) == charge.get("release") for form in forms)

    def _same_records(self, stated: Any) -> bool:
        """Return whether the charge's schema means the same by every used name."""
        if not isinstance(stated, Mapping):
            return True
        if any(self.records.get(part) != stated.get(part) for part in ("unit", "rows")):
            return False
        known = {each["name"]: each for part in ("measures", "columns") for each in stated.get(part, [])}
        used = [each for part in ("measures", "columns") for each in self.records[part]]
        return all(known.get(each["name"], each) == each for each in used)


def _digest(form: Any) -> str:
    return hashlib.sha256(json.dumps(form, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _with_titles(described: Any, stated: Any) -> Any:
    """The queries with the titles of a charge."""
    listed = stated if isinstance(stated, list) and len(stated) == len(described) else described
    return [
        {name: part for name, part in own.items() if name != TITLE}
        | ({TITLE: other[TITLE]} if isinstance(other, Mapping) and TITLE in other else {})
        for own, other in zip(described, listed)
    ]


def _earlier_keys(plan: Plan, table: PlannedTable) -> Any:
    if plan.selection(table) is None:
        return _table_digest(plan.cells(table))
    match plan.domain(table):
        case Rows(table=listed):
            return _table_digest(listed)
        case Product(columns=columns):
            return [[name, _table_digest(pa.table({name: values}))] for name, values in columns]
        case domain:
            return repr(domain)


def _table_digest(table: pa.Table) -> str:
    plain = {name: _decode(table.column(name).combine_chunks()) for name in table.column_names}
    sink = pa.BufferOutputStream()
    whole = pa.table(plain).combine_chunks()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return hashlib.sha256(memoryview(sink.getvalue())).hexdigest()


def _decode(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


VERSION = "2:"
"""How a digest begins. Those of earlier versions are bare; ``matches_charge`` recognizes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseIdentity:
    """What a release is about, to find its charge in a ledger."""

    digest: str
    earlier: EarlierIdentity = field(compare=False, repr=False)

    def matches_charge(self, charge: Mapping[str, Any]) -> bool:
        """Return whether a charge is for this release.

        By its digest, or by the one that an earlier version wrote.

        Args:
            charge: What the ledger says about the charge.
        """
        stated = charge.get("release")
        return stated == self.digest or (_is_earlier(stated) and self.earlier.matches_charge(charge))


def _is_earlier(stated: Any) -> bool:
    return isinstance(stated, str) and ":" not in stated


def release_identity(
    plan: Plan, described: Any, policy: Policy, series: Series | None, *, refines: str | None = None
) -> ReleaseIdentity:
    """Return the digest of a plan's queries and everything charged.

    Args:
        plan: The queries, bound to their schema; one that ``unrecognizable`` has nothing against.
        described: The plan as the ledger states it (``plan_json``), by which charges of earlier versions are recognized.
        policy: What they cost.
        series: The series with its period and revision; None outside a series.
        refines: The digest of the release that is refined, if any.

    Returns:
        The identity, with a SHA-256 digest.
    """
    period = None if series is None else [series.name, series.period, series.revision]
    names = used_names(plan, policy)
    records = _records(plan.schema, names)
    queries = sorted(_text(_query(plan, number)) for number in range(len(plan.queries)))
    form = [period, records, _codes(plan.schema, names), queries, *([] if refines is None else [refines])]
    digest = hashlib.sha256(_text(form).encode()).hexdigest()
    earlier = EarlierIdentity(period=period, described=described, policy=policy.to_json(), records=records, plan=plan)
    return ReleaseIdentity(digest=VERSION + digest, earlier=earlier)


def unrecognizable(plan: Plan) -> str | None:
    """Return why no other process could recognize a plan, or None."""
    for table in plan.tables():
        domain = plan.domain(table)
        if domain is not None and not domain.is_recognizable:
            return f"its keys are given by functions, which name more than {MOST_DIGESTED:,} cells"
    for query in plan.queries:
        for mechanism in (each for statistic in query.statistics for each in statistic.mechanisms()):
            if found := _unnamed_type(mechanism):
                return f"{type(mechanism).__name__} has a parameter without a value that can be written down ({found})"
    return None


def _text(form: Any) -> str:
    return json.dumps(form, sort_keys=True, separators=(",", ":"))


def _records(schema: Schema, names: set[str]) -> Any:
    """Return what a record is, independent of order."""
    used = schema_of(schema, names)
    if used.firm not in names:
        rules = None if used.collapse is None else tuple(each for each in used.collapse if each[0] != used.firm)
        used = replace(used, firm=None, collapse=rules)
    form = schema_json(used)
    return form | {part: sorted(form[part], key=lambda each: str(each["name"])) for part in ("measures", "columns")}


def _codes(schema: Schema, names: set[str]) -> Any:
    """Return the digest of every code list's used levels."""
    found = []
    for hierarchy in schema.hierarchies:
        levels = sorted(names & set(hierarchy.coarser))
        if levels:
            found.append([*levels, hierarchy.finest, table_digest(hierarchy.codes.select([*levels, hierarchy.finest]))])
    return sorted(found)


def _query(plan: Plan, number: int) -> Any:
    query = plan.queries[number]
    tables = [_table(plan, table) for table in plan.tables() if table.query == number]
    return {
        "where": None if query.condition is None else predicate_json(query.condition),
        "tables": sorted(map(_text, tables)),
        "statistics": sorted(_text(_statistic(each, query)) for each in query.statistics),
    }


def _table(plan: Plan, table: PlannedTable) -> Any:
    level = table.shape
    return {
        "by": [_group(group, plan.schema) for group in level.groups],
        "share": _share(plan.queries[table.query], level),
        "rest": None if table.rest is None else [_group(group, plan.schema) for group in table.rest.groups],
        "keys": _keys(plan, table),
        "bands": sorted(_bands(plan, table)),
    }


def _share(query: Query, level: Level) -> str:
    """Return the share of a table; for the best shares that they are, so that finding them again elsewhere changes nothing."""
    if query.best is None or not query.has_best_shares:
        return fraction_text(level.share)
    return f"{_best(query.best)} for complete keys" if query.best.complete else _best(query.best)


def _best(best: Best) -> str:
    """Return what the best shares are best for."""
    goal = ", ".join(f"{fraction_text(error)} from {fraction_text(size)} on" for size, error in best.goal)
    return f"best ({goal})" if goal else "best"


def _group(group: Group, schema: Schema) -> Any:
    """Return what a group is; for a hierarchy's level, its name."""
    form = group_json(group, schema)
    return {"level": form["level"]} if "level" in form else {name: form[name] for name in form if name != "name"}


def _bands(plan: Plan, table: PlannedTable) -> list[list[Any]]:
    """Return the bands of cells, whatever their sizes (T-SIZE)."""
    drawn = plan.drawn(table)
    return [[_text(_nameless(each)), part.bands.digest] for part, each in drawn if part.bands is not None]


def _statistic(statistic: Statistic, query: Query) -> Any:
    """Return a statistic and what it is computed from, without names."""
    form = _nameless(statistic)
    if statistic.names_itself:
        form = {"kind": form["kind"]}
    sides = statistic.forms(query.draws())
    return form | {
        "from": [sorted([_text(_nameless(part)), fraction_text(share)] for part, share in side) for side in sides]
    }


def _nameless(statistic: Statistic) -> dict[str, Any]:
    return {name: _mechanism(value) for name, value in statistic.description().items() if name != "name"}


def _mechanism(value: Any) -> Any:
    """Return a mechanism by its parameters, and a word as it is."""
    if value is None or isinstance(value, str):
        return value
    if is_dataclass(value) or not getattr(value, "parameters", ()):
        return parameter_json(value)
    parts = {each.name: parameter_json(getattr(value, each.stored, None)) for each in value.parameters}
    return {"kind": type(value).__name__, **parts}


def _unnamed_type(value: Any) -> str | None:
    """Return the type of a mechanism's part without a stable text."""
    if value is None or isinstance(value, str | int | float | Fraction | Decimal | Function | By | np.generic):
        return None
    parts: Any = None
    if is_dataclass(value):
        parts = [getattr(value, each.name) for each in fields(value)]
    elif isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, tuple | list | set | frozenset):
        parts = list(value)
    elif getattr(value, "parameters", ()):
        parts = [getattr(value, each.stored, None) for each in value.parameters]
    if parts is not None:
        return next((found for part in parts if (found := _unnamed_type(part))), None)
    # Python's own text names an address, and ours names the parameters, of which none are listed here.
    unsaid: tuple[Any, ...] = (object.__repr__, Mechanism.__repr__)
    return type(value).__name__ if callable(value) or type(value).__repr__ in unsaid else None


def _keys(plan: Plan, table: PlannedTable) -> Any:
    """Return the digest of a table's public cells or of their selection."""
    selection = plan.selection(table)
    if selection is None:
        return table_digest(plan.cells(table))
    form, domain = selection.to_json(), plan.domain(table)
    return form if domain is None else [form, _domain(domain, table.shape.groups, plan.schema)]


@lru_cache(maxsize=8)
def _domain(domain: Cells, groups: tuple[Group, ...], schema: Schema) -> Any:
    """The digest of the cells that a table may have."""
    return domain.bound(groups, schema).digest()
