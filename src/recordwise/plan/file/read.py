"""Read a plan file and check it as a whole.

It states everything a release needs, and is checked before any record is read. Each query is checked against the schema, its keys
and its mechanisms, and each problem is reported at its line.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from recordwise.errors import PlanFileError
from recordwise.exact.numbers import Number
from recordwise.plan.cost import statistic_policy
from recordwise.plan.file.keys import named_keys
from recordwise.plan.file.mechanisms import named_mechanisms
from recordwise.plan.file.node import Entry, Node, Problem, Problems, hiding, line_index, read_parameters, suggestion
from recordwise.plan.file.queries import SHAPE, Draft, Shelf, read_draft
from recordwise.plan.file.sections import ENDLESS, read_budget, read_engine, read_schema, read_series, read_source
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.keys.keys import Keys
from recordwise.plan.plan import Plan, QueryProblem, group_problems, query_problems
from recordwise.plan.publication import VALUE_SIGN, Publication, StatusRules, Words
from recordwise.plan.query import Query
from recordwise.plan.schema import TUNINGS, Schema, is_value
from recordwise.plan.sources import DUCKDB, SPARK, PlanSource, SparkMaster
from recordwise.policy.columns import literal
from recordwise.policy.policy import Policy
from recordwise.policy.render.html import Html, element
from recordwise.policy.series import Series

# Basic tables: how they are fitted, what they are rounded to, and the rules of status.


KINDS = ("research", "basic")
FITS = ("nnls", "ols", "max_fit", "sequential", "reweighted")


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicOutputs:
    """The arguments of ``Release.basic``."""

    fit: str = "nnls"
    complete: bool = False
    units: dict[str, Number] = field(default_factory=dict)
    rules: StatusRules = field(default_factory=StatusRules)


def read_basic(entries: dict[str, Node]) -> dict[str, Any]:
    """``tables = ["research", "basic"]`` with ``[outputs.basic]``, ``[outputs.round]`` and ``[outputs.status]``."""
    kinds = [each.word(*KINDS) for each in entries["tables"].items()] if "tables" in entries else ["research"]
    if "tables" in entries and "research" not in kinds and None not in kinds:
        entries["tables"].problem("must include research: a release is verified from its research tables")
    fit = entries["basic"].table("fit", "complete") if "basic" in entries else {}
    method = fit["fit"].word(*FITS) if "fit" in fit else "nnls"
    complete = fit["complete"].flag() if "complete" in fit else False
    given = entries["round"].table() if "round" in entries else {}
    units = {name: each.number() for name, each in given.items()}
    rules = _rules(entries["status"]) if "status" in entries else StatusRules()
    for name in ("basic", "round", "status"):
        if name in entries and "basic" not in kinds:
            entries[name].problem('is for basic tables; add tables = ["research", "basic"]')
    if "basic" not in kinds or method is None or complete is None or rules is None or None in units.values():
        return {}
    known = {name: unit for name, unit in units.items() if unit is not None}
    return {"basic": BasicOutputs(fit=method, complete=complete, units=known, rules=rules)}


def _rules(node: Node) -> StatusRules | None:
    """Each status with its largest relative error, ``otherwise`` for the rest, and the statuses to ``withhold``."""
    entries = node.table()
    otherwise = entries.pop("otherwise").text() if "otherwise" in entries else "unreliable"
    withheld = [each.text() for each in entries.pop("withhold").items()] if "withhold" in entries else []
    limits = [(name, each.number()) for name, each in entries.items()]
    if otherwise is None or None in withheld or any(limit is None for _, limit in limits):
        return None
    chosen = tuple((name, float(limit)) for name, limit in limits if limit is not None)
    return node.attempt(
        lambda: StatusRules(
            **({"limits": chosen} if chosen else {}), otherwise=otherwise, withheld=tuple(map(str, withheld))
        )
    )


# Words: the name of the dataset and who publishes it, labels, units.


def read_dataset(node: Node | None) -> tuple[str | None, Publication | None]:
    """``dataset = "name"``, or a table with the name and what is said about the publication; None where it has a problem."""
    if node is None:
        return None, None
    if not isinstance(node.value, dict):
        return node.text(), Publication()
    read = node.read(DATASET)
    name = read.pop("name", None)
    return name, None if None in read.values() else node.attempt(lambda: Publication(**read))


def _day(node: Node) -> str | None:
    """A date of TOML, or the same as text."""
    return node.value.isoformat() if type(node.value) is date else node.text()


DATASET = (
    Entry("name", Node.text, needed=True),
    *(Entry(each.name, _day if each.name == "date" else Node.text) for each in fields(Publication)),
)


def read_words(entries: dict[str, Node], schema: Schema, plan: Plan | None, publication: Publication) -> Words | None:
    """Labels and units; without a plan, which has problems of its own, published names are not known and not checked."""
    if not {"labels", "units"} & entries.keys():
        return Words(publication=publication)
    measures = {*schema.measure_names(), *(() if plan is None else published(plan))}
    columns = {*schema.column_names(), *schema.coarser_names(), *(() if plan is None else groups(plan))}
    labels = _label_texts(entries.get("labels"), None if plan is None else measures | columns, values=True)
    units = _label_texts(entries.get("units"), None if plan is None else measures, values=False)
    return None if labels is None or units is None else Words(labels=labels, units=units, publication=publication)


def published(plan: Plan) -> set[str]:
    """The names that statistics are published under."""
    return {each.alias for query in plan.queries for each in (*query.statistics, *query.draws())}


def groups(plan: Plan) -> set[str]:
    """The names of key columns."""
    return {name for query in plan.queries for level in query.tables() for name in level.names()}


def _label_texts(node: Node | None, known: Collection[str] | None, *, values: bool) -> dict[str, str] | None:
    found: dict[str, Any] = {}
    for name, each in (node.table() if node is not None else {}).items():
        column = name.partition(VALUE_SIGN)[0] if values else name
        if known is not None and column not in known:
            what = "a measure, a column or a published name" if values else "a measure or a published name"
            each.problem(f"names '{column}', which is not {what}{suggestion(column, sorted(known))}")
        found[name] = each.text()
    return None if None in found.values() else found


# Hierarchies: public lists of codes, each with the column of a coarser level next to the finest code.


HIERARCHY = (
    Entry("file", Node.text, needed=True),
    Entry("levels", lambda node: node.each(Node.text), needed=True),
    Entry("source", Node.text, needed=True),
    *(Entry(name, Node.texts) for name in ("titles", "labels", "totals")),
)
MADE_FROM_RECORDS = (
    "does not begin with 'public': a list made with the confidential records needs accept_tuning = \"reason\", which is published "
    "with the release"
)


def read_hierarchies(node: Node | None, folder: Path, *, accepted: bool) -> tuple[Hierarchy, ...] | None:
    """``[hierarchies.NAME]``: a file, its levels and where it is from; None if one has a problem."""
    if node is None:
        return ()
    found = [_read_hierarchy(name, each, folder, accepted=accepted) for name, each in node.table().items()]
    return None if None in found else tuple(each for each in found if each is not None)


def _read_hierarchy(name: str, node: Node, folder: Path, *, accepted: bool) -> Hierarchy | None:
    given = node.entries(HIERARCHY)
    missing = any(each.needed and each.name not in given for each in HIERARCHY)
    # One with a missing or an unknown entry is not read any further.
    read = None if missing or len(given) < len(node.value) else node.section(HIERARCHY)
    if read is None:
        return None
    made: Hierarchy | None = node.attempt(partial(Hierarchy.of, name, folder / read.pop("file"), **read))
    if made is not None and not made.is_public and not accepted:
        given["source"].problem(MADE_FROM_RECORDS)
        return None
    return made


# The whole file.


def checked(draft: Draft, shelf: Shelf) -> Query | None:
    """The query if it has no problem; every problem is recorded."""
    problems = [each for each in query_problems(draft.query, shelf.schema) if not _follows(each, draft, shelf)]
    for each in problems:
        draft.place(each.about).problem(each.text)
    fitting = SHAPE & draft.broken or _keys_fit(draft, shelf)
    served = _mechanisms_serve(draft, shelf)
    return draft.query if fitting and served and not problems and not draft.broken else None


def _follows(problem: QueryProblem, draft: Draft, shelf: Shelf) -> bool:
    """Whether a problem only follows from a part that was left out or is itself wrong."""
    if problem.about == "keys":
        groups = {group for level in draft.query.tables() for group in level.groups}
        return bool(draft.broken & {"keys", *SHAPE}) or any(group_problems(each, shelf.schema) for each in groups)
    return problem.about == "statistics" and "statistics" in draft.broken


def _keys_fit(draft: Draft, shelf: Shelf) -> bool:
    """Whether every table's keys can be cast to the declared types and form a partition."""
    place, good = draft.place("keys"), True
    for level in draft.query.tables():
        known = not any(group_problems(group, shelf.schema) for group in level.groups)
        keys = draft.query.keys_of(level)
        if known and isinstance(keys, Keys):
            good = place.attempt(partial(keys.cells, level.groups, shelf.schema)) is not None and good
    return good


def _mechanisms_serve(draft: Draft, shelf: Shelf) -> bool:
    """Whether each mechanism has a policy for its statistic at every level."""
    good, draws = True, draft.query.draws()
    for statistic, place in zip(draft.query.statistics, draft.places):
        for part, level in product(statistic.parts(draws), draft.query.tables()):
            policy = place.attempt(partial(statistic_policy, draft.query, part, level, shelf.schema, tight=True))
            good = policy is not None and good
    return good


TOP = ("dataset", "source", "table", "ledger", "tuned_on", "accept_tuning", "memory_limit", "engine", "outside")
TABLES = (
    "schema",
    "series",
    "budget",
    "mechanisms",
    "keys",
    "hierarchies",
    "queries",
    "outputs",
    "examples",
    "labels",
    "units",
    "spark",
    "csv",
)
NEEDED = ("dataset", "source", "ledger", "tuned_on", "schema", "queries")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan read from TOML. Relative paths in it are relative to its own folder."""

    path: Path
    dataset: str
    source: PlanSource = field(repr=False)
    ledger: Path
    plan: Plan
    tuned_on: str
    budget: Policy | None = None
    """The budget of the period that is published, or of the dataset."""
    series: Series | None = None
    earlier: tuple[Path, ...] = ()
    """The folders of earlier periods, oldest first, whose cells the page shows beside those of this period."""
    accept_tuning: str | None = None
    outside: Fraction | None = Fraction(1, 100)
    """The share of the records that may be outside the published cells; None where the plan accepts any."""
    memory_limit: str = "700MB"
    engine: str = DUCKDB
    spark: SparkMaster | None = None
    formats: tuple[str, ...] = ("parquet", "csv")
    """The output formats by name; ``Release.save`` interprets them."""
    basic: BasicOutputs | None = None
    """How basic tables are made beside the research tables; None if they are not."""
    confidence: float = 0.95
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Made-up records, by name, for which the loss is shown."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The values of ``${name}`` in the plan's texts; recorded with every release."""
    hidden: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The values of ``${env:NAME}``; recorded nowhere, and no message shows them."""
    words: Words = field(default_factory=Words)
    """Labels, units and who publishes the release."""

    def _repr_html_(self) -> str:
        title = element(
            "p", element("b", f"Plan {self.path.name}"), f" for {self.dataset}, tuned on {self.tuned_on} data"
        )
        return element("div", title, Html(self.plan._repr_html_()))


def load_plan(path: str | Path, *, parameters: Mapping[str, str | int] | None = None) -> PlanFile:
    """Read and check a plan file; every problem is reported at once, with its line.

    Args:
        path: The TOML file.
        parameters: The values of ``${name}`` in its texts, such as ``{"year": 2026}``.

    Returns:
        The plan with its source, ledger, budget and outputs; nothing is opened yet.
    """
    file = Path(path)
    text = _text_of(file)
    root = _parsed(file, text)
    values = read_parameters(root.value, parameters or {}, root.problems)
    root = replace(root, value=values.put_into(root.value))
    values.check_used()
    with hiding(values.hidden):
        found = _read(file, root)
    problems = root.problems.listed()
    if problems or found is None:
        raise PlanFileError(path=str(path), problems=problems)
    return replace(found, parameters=values.used, hidden=values.hidden)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise PlanFileError(path=str(file), problems=(f"cannot be read ({error.strerror})",)) from None
    except UnicodeDecodeError:
        raise PlanFileError(path=str(file), problems=("is not UTF-8 text",)) from None


def _parsed(file: Path, text: str) -> Node:
    try:
        return Node(tomllib.loads(text, parse_float=Decimal), (), Problems(line_index(text)))
    except tomllib.TOMLDecodeError as error:
        raise PlanFileError(path=str(file), problems=(_syntax(str(error), text),)) from None
    except RecursionError:
        raise PlanFileError(path=str(file), problems=("is nested too deeply",)) from None


def _syntax(message: str, text: str) -> Problem:
    """The parser's own message, with the line first as in every other problem."""
    what, _, where = message.partition(" (at ")
    digits = where.removeprefix("line ").partition(",")[0]
    line = int(digits) if digits.isdecimal() else text.count("\n") + 1
    return Problem(line, "", f"{what[:1].lower()}{what[1:]} (this is not valid TOML)")


def _read(file: Path, root: Node) -> PlanFile | None:
    entries = root.table(*TOP, *TABLES, needed=NEEDED)
    folder = file.resolve().parent
    dataset, publication = read_dataset(entries.get("dataset"))
    read: dict[str, Any] = {
        "dataset": dataset,
        **read_engine(entries),
        "ledger": _below(entries["ledger"], folder) if "ledger" in entries else None,
        **_tuning(entries, root),
        **_outputs(entries.get("outputs")),
    }
    read["source"] = read_source(entries, folder, by_spark=read.get("engine") == SPARK)
    if "memory_limit" in entries:
        read["memory_limit"] = _memory(entries["memory_limit"])
    if "outside" in entries:
        read["outside"] = _outside(entries["outside"])
    accepted = read.get("accept_tuning") is not None
    hierarchies = read_hierarchies(entries.get("hierarchies"), folder, accepted=accepted)
    schema = read_schema(entries["schema"], hierarchies or ()) if "schema" in entries else None
    if schema is None or hierarchies is None:
        return None
    read |= _budgets(entries, schema)
    read["earlier"] = _earlier(entries.get("series"), folder)
    read["examples"] = _examples(entries.get("examples"), schema)
    read["plan"] = _plan(entries, schema, folder)
    read["words"] = read_words(entries, schema, read["plan"], publication or Publication())
    complete = all(value is not None for name, value in read.items() if name not in MAY_BE_MISSING)
    return PlanFile(path=file, **read) if complete else None


MAY_BE_MISSING = ("accept_tuning", "outside", "basic")


def _budgets(entries: dict[str, Node], schema: Schema) -> dict[str, Any]:
    """The budget, and the series with the budgets of all its periods."""
    listed = "series" in entries
    budgets = read_budget(entries["budget"], schema, in_series=listed) if "budget" in entries else {}
    if budgets is None:
        return {"budget": None}
    if not listed:
        return {"budget": budgets[ENDLESS]} if ENDLESS in budgets else {}
    series = read_series(entries["series"], budgets)
    if series is None:
        return {"series": None}
    budget = series.budget()
    read: dict[str, Any] = {"series": series} | ({} if budget is None else {"budget": budget})
    return read


def _earlier(node: Node | None, folder: Path) -> tuple[Path, ...]:
    entries = node.value if node is not None and isinstance(node.value, dict) else {}
    if node is None or "earlier" not in entries:
        return ()
    listed = [_below(each, folder) for each in Node(entries["earlier"], (*node.path, "earlier"), node.problems).items()]
    return tuple(each for each in listed if each is not None)


def _plan(entries: dict[str, Node], schema: Schema, folder: Path) -> Plan | None:
    mechanisms = named_mechanisms(entries.get("mechanisms"), schema)
    shelf = Shelf(schema, mechanisms, named_keys(entries.get("keys"), folder, schema), folder)
    if "queries" not in entries:
        return None
    queries = [checked(read_draft(each, shelf), shelf) for each in entries["queries"].items()]
    if not queries:
        entries["queries"].problem("must contain at least one query")
    known = tuple(each for each in queries if each is not None)
    if not known or len(known) < len(queries):
        return None
    return entries["queries"].attempt(lambda: Plan(schema=schema, queries=known))


def _below(node: Node, folder: Path) -> Path | None:
    name = node.text()
    return None if name is None else folder / name


def _tuning(entries: dict[str, Node], root: Node) -> dict[str, Any]:
    tuned = entries["tuned_on"].word(*TUNINGS) if "tuned_on" in entries else None
    reason = entries["accept_tuning"].text() if "accept_tuning" in entries else None
    if tuned == "confidential" and "accept_tuning" not in entries:
        entries["tuned_on"].problem(
            'a plan tuned on the confidential table needs accept_tuning = "reason", which is published with the release'
        )
    return {"tuned_on": tuned, "accept_tuning": reason}


def _outputs(node: Node | None) -> dict[str, Any]:
    if node is None:
        return {}
    entries = node.table("formats", "csv", "confidence", "level", "tables", "basic", "round", "status")
    read: dict[str, Any] = read_basic(entries)
    if "formats" in entries:
        read["formats"] = tuple(each.text() for each in entries["formats"].items())
    if "csv" in entries:
        # Plan files of the first version use this flag instead.
        if "formats" in entries:
            entries["csv"].problem("is replaced by formats, which is also given; remove csv")
        read["formats"] = ("parquet", "csv") if entries["csv"].flag() else ("parquet",)
    if "confidence" in entries and "level" in entries:
        entries["level"].problem("is the old name of confidence, which is also given; remove level")
    # Plans written before the rename say level.
    stated = entries.get("confidence", entries.get("level"))
    if stated is not None:
        read["confidence"] = stated.share()
    return read


def _outside(node: Node) -> Fraction | None:
    """A share below 1, or ``"accept"`` for any."""
    if node.value == "accept":
        return None
    number = node.number()
    if number is None or not 0 <= Fraction(number) < 1:
        node.problem('must be a share below 1, or "accept"')
        return None
    return Fraction(number)


def _memory(node: Node) -> str | None:
    text = node.text()
    number, unit = (text[:-2], text[-2:]) if text else ("", "")
    if text is not None and (not number.strip().isdecimal() or unit not in ("MB", "GB")):
        node.problem('must be a size like "700MB" or "4GB"')
        return None
    return text


def _examples(node: Node | None, schema: Schema) -> dict[str, dict[str, Any]]:
    """Made-up records; a value is a number of a measure that records hold or a value of a column."""
    known = (*(each.name for each in schema.held_measures()), *schema.column_names())
    found = {}
    for name, each in (node.table() if node is not None else {}).items():
        values = each.table(*known) if known else {}
        found[name] = {
            column: entry.number() if schema.measure(column) else _group_of(entry, column, schema)
            for column, entry in values.items()
        }
    return found


def _group_of(node: Node, name: str, schema: Schema) -> Any:
    """A value of a column in its declared type. Another type would match none of the policy's groups and show too small a loss."""
    declared = schema.column(name)
    value = node.attempt(lambda: literal(node.value))
    if value is not None and declared is not None and not is_value(value, declared.type):
        node.problem(f"is not a value of a column of type {declared.type}")
    return node.value
