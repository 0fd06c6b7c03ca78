"""Read a plan file and check it as a whole.

It states everything a release needs, and is checked before any record is read. Each query is checked against the schema, its keys
and its mechanisms, and each problem is reported at its line.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from recordwise.errors import KeysError, PlanFileError, SourceError, expect_kind, own_argument_errors, own_errors_of
from recordwise.exact.numbers import Number
from recordwise.plan.cost import statistic_policy
from recordwise.plan.file.keys import named_keys
from recordwise.plan.file.mechanisms import named_mechanisms
from recordwise.plan.file.node import (
    Entry,
    Node,
    Problem,
    Problems,
    hiding,
    line_index,
    one_of,
    read_parameters,
    suggestion,
)
from recordwise.plan.file.queries import SHAPE, Draft, Shelf, read_draft
from recordwise.plan.file.sections import ENDLESS, read_budget, read_master, read_schema, read_series, read_source
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.plan import Plan, QueryProblem, group_problems, query_problems
from recordwise.plan.publication import VALUE_SIGN, Labels, Publication, StatusRules
from recordwise.plan.query import Query
from recordwise.plan.schema import TUNINGS, Schema, is_value
from recordwise.plan.sources import (
    DUCKDB,
    ENGINES,
    SPARK,
    PlanSource,
    SparkMaster,
    folder_files,
    matching_files,
    read_code_file,
)
from recordwise.policy.columns import literal
from recordwise.policy.policy import Policy
from recordwise.policy.render.html import Html, element
from recordwise.policy.series import Series

# Basic tables: how they are fitted, what they are rounded to, and the rules of status.


KINDS = ("research", "basic")
BASIC = (
    Entry("fit", one_of("top_down", "nnls", "ols", "max_fit", "sequential", "reweighted")),
    Entry("complete", Node.flag),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicOutputs:
    """The arguments of ``Release.basic``."""

    fit: str = "top_down"
    complete: bool = False
    units: dict[str, Number] = field(default_factory=dict)
    rules: StatusRules = field(default_factory=StatusRules)


def read_basic(entries: dict[str, Node]) -> dict[str, Any]:
    """``tables = ["research", "basic"]`` with ``[outputs.basic]``, ``[outputs.round]`` and ``[outputs.status]``."""
    kinds = [each.word(*KINDS) for each in entries["tables"].items()] if "tables" in entries else ["research"]
    if "tables" in entries and "research" not in kinds and None not in kinds:
        entries["tables"].problem("must include research: a release is verified from its research tables")
    fit = entries["basic"].read(BASIC) if "basic" in entries else {}
    given = entries["round"].table() if "round" in entries else {}
    units = {name: each.number() for name, each in given.items()}
    rules = _rules(entries["status"]) if "status" in entries else StatusRules()
    for name in ("basic", "round", "status"):
        if name in entries and "basic" not in kinds:
            entries[name].problem('is for basic tables; add tables = ["research", "basic"]')
    if "basic" not in kinds or rules is None or None in (*fit.values(), *units.values()):
        return {}
    known = {name: unit for name, unit in units.items() if unit is not None}
    return {"basic": BasicOutputs(**fit, units=known, rules=rules)}


def _rules(node: Node) -> StatusRules | None:
    """Read each status's largest relative error, ``otherwise`` and ``withhold``."""
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


def read_dataset(node: Node) -> tuple[str, Publication] | None:
    """Read the dataset's name and publication; None with a problem."""
    if not isinstance(node.value, dict):
        text = node.text()
        return None if text is None else (text, Publication())
    read = node.read(DATASET)
    name = read.pop("name", None)
    made = None if None in read.values() else node.attempt(lambda: Publication(**read))
    return None if name is None or made is None else (name, made)


def _day(node: Node) -> str | None:
    """A date of TOML, or the same as text."""
    return node.value.isoformat() if type(node.value) is date else node.text()


DATASET = (
    Entry("name", Node.text, needed=True),
    *(Entry(each.name, _day if each.name == "date" else Node.text) for each in fields(Publication)),
)


def statistic_names(plan: Plan) -> set[str]:
    """The names that statistics are published under."""
    return {each.alias for query in plan.queries for each in (*query.statistics, *query.draws())}


def groups(plan: Plan) -> set[str]:
    """The names of key columns."""
    return {name for query in plan.queries for level in query.tables() for name in level.names()}


def read_labels(node: Node, schema: Schema, plan: Plan | None, *, values: bool) -> dict[str, str] | None:
    """Read labels (of ``values`` too) or units, checked against the plan."""
    known = {*schema.measure_names(), *(() if plan is None else statistic_names(plan))}
    if values:
        known |= {*schema.column_names(), *schema.coarser_names(), *(() if plan is None else groups(plan))}
    for name, each in node.table().items():
        column = name.partition(VALUE_SIGN)[0] if values else name
        if plan is not None and column not in known:
            what = "a measure, a column or a published name" if values else "a measure or a published name"
            each.problem(f"names '{column}', which is not {what}{suggestion(column, sorted(known))}")
    return node.texts()


# Hierarchies: public lists of codes, each with the column of a coarser level next to the finest code.


HIERARCHY = (
    Entry("file", Node.text, needed=True),
    Entry("levels", lambda node: node.each(Node.text), needed=True),
    Entry("source", Node.text, needed=True),
    *(Entry(name, Node.texts) for name in ("titles", "labels", "totals")),
)
MADE_FROM_RECORDS = (
    "does not begin with 'public': a list made with the confidential records needs tuning_reason = \"reason\", which is published "
    "with the release"
)


def read_hierarchies(node: Node, folder: Path, *, accepted: bool) -> tuple[Hierarchy, ...] | None:
    """Read ``[hierarchies.NAME]``; None if one has a problem."""
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


# Stages: a plan whose tables refine those of an earlier release (T-STAGES), or follow it on other records (T-SERIES).


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStage:
    """The release that a plan refines, carries, revises or is made from."""

    refine: Path | None = None
    carry: Path | None = None
    revise: Path | None = None
    tier_of: Path | None = None
    old_records: PlanSource | None = field(default=None, repr=False)
    """What the release was made from, where it is carried on or revised."""
    fixed_in_advance: bool = False
    """Whether a refinement was decided before the first answers were seen."""
    crosswalk: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """By column, pairs of an earlier and a later code, where noise is carried on."""


STAGES = ("refine", "carry", "revise", "tier_of")
STAGE = (
    *(Entry(name, Node.text) for name in STAGES),
    Entry("old_records", Node.text),
    Entry("fixed_in_advance", Node.flag),
    Entry("crosswalk", Node.texts),
)
BEFORE, NOW = "before", "now"
"""The columns of a file of codes that changed."""


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of earlier and later codes in a file.

    Raises:
        KeysError: The file cannot be read, or has not the columns ``before`` and ``now``.
    """
    table = read_code_file(path)
    if not {BEFORE, NOW} <= set(table.column_names):
        raise KeysError(column=f"the file {path.name}", problem=f"has not the columns {BEFORE} and {NOW}")
    return [(str(old), str(new)) for old, new in zip(*(table.column(name).to_pylist() for name in (BEFORE, NOW)))]


def _stage(node: Node, file: "Reading") -> PlannedStage | None:
    """Read ``[stage]``: the folder of the release that is refined, carried on, revised or made noisier."""
    given = node.entries(STAGE)
    named = [name for name in STAGES if name in given]
    if len(named) != 1:
        node.problem(
            "needs one of refine, carry, revise and tier_of: the folder of the release that is refined, carried on, revised or "
            "made noisier"
            if not named
            else f"has {' and '.join(named)}, and there is no proof for them together"
        )
        return None
    same = named[0] in ("refine", "tier_of")
    if same == ("old_records" in given):
        given[named[0]].problem(
            "is of the same records, so leave old_records out"
            if same
            else "needs old_records, the records that the earlier release was made from"
        )
        return None
    if "crosswalk" in given and named[0] != "carry":
        given["crosswalk"].problem("is for carry: codes of the same period do not change")
        return None
    files = given["crosswalk"].texts() if "crosswalk" in given else {}
    read = {
        name: given["crosswalk"].attempt(partial(read_pairs, file.folder / each))
        for name, each in (files or {}).items()
    }
    pairs = {name: each for name, each in read.items() if each is not None}
    if files is None or len(pairs) < len(read):
        return None
    folder = _below(given[named[0]], file)
    fixed = given["fixed_in_advance"].flag() if "fixed_in_advance" in given else False
    old = None
    if "old_records" in given:
        sources = {**file.given, "source": given["old_records"]}
        old = read_source(sources, file.folder, by_spark=file["engine"] == SPARK)
    if folder is None or fixed is None or ("old_records" in given and old is None):
        return None
    return PlannedStage(**{named[0]: folder}, old_records=old, fixed_in_advance=fixed, crosswalk=pairs)


# The whole file.


def check_draft(draft: Draft, shelf: Shelf) -> Query | None:
    """The query if it has no problem; every problem is recorded."""
    problems = [each for each in query_problems(draft.query, shelf.schema) if not _follows(each, draft, shelf)]
    for each in problems:
        draft.node_for(each.about).problem(each.text)
    fitting = SHAPE & draft.broken or _keys_fit(draft, shelf)
    served = _mechanisms_serve(draft, shelf)
    return draft.query if fitting and served and not problems and not draft.broken else None


def _follows(problem: QueryProblem, draft: Draft, shelf: Shelf) -> bool:
    """Return whether a problem only follows from an omitted or wrong part."""
    if problem.about == "keys":
        groups = {group for level in draft.query.tables() for group in level.groups}
        return bool(draft.broken & {"keys", *SHAPE}) or any(group_problems(each, shelf.schema) for each in groups)
    return problem.about == "statistics" and "statistics" in draft.broken


def _keys_fit(draft: Draft, shelf: Shelf) -> bool:
    """Return whether all keys fit the declared types and form partitions."""
    place, good = draft.node_for("keys"), True
    for level in draft.query.tables():
        known = not any(group_problems(group, shelf.schema) for group in level.groups)
        keys = draft.query.keys_of(level)
        if known and keys is not None and keys.selection is None:
            good = place.attempt(partial(keys.cells, level.groups, shelf.schema)) is not None and good
    return good


def _mechanisms_serve(draft: Draft, shelf: Shelf) -> bool:
    """Whether each mechanism has a policy for its statistic at every level."""
    good, draws = True, draft.query.draws()
    for statistic, place in zip(draft.query.statistics, draft.nodes):
        for part, level in product(statistic.parts(draws), draft.query.tables()):
            policy = place.attempt(partial(statistic_policy, draft.query, part, level, shelf.schema, tight=True))
            good = policy is not None and good
    return good


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan read from TOML, with paths relative to its folder."""

    path: Path
    dataset: str
    source: PlanSource = field(repr=False)
    ledger: Path
    plan: Plan
    tuned_on: str
    budget: Policy | None = None
    """The budget of the period that is published, or of the dataset."""
    reserve: int | None = None
    """For how many revisions the first release of a period keeps its full charge; None where the plan does not say."""
    series: Series | None = None
    earlier: tuple[Path, ...] = ()
    """The folders of earlier periods, oldest first, whose cells the page shows next to those of this period."""
    stage: PlannedStage | None = None
    """The release that is refined, carried on or revised; None for a first release."""
    tuning_reason: str | None = None
    max_outside: Fraction | None = None
    """The share of the records that may be outside the published cells; None for any, as in plans of the first version."""
    memory_limit: str = "700MB"
    engine: str = DUCKDB
    spark: SparkMaster | None = None
    formats: tuple[str, ...] = ("parquet", "csv")
    """The output formats by name; ``Release.save`` interprets them."""
    basic: BasicOutputs | None = None
    """How basic tables are made next to the research tables; None if they are not."""
    confidence: float = 0.95
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Made-up records, by name, for which the loss is shown."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The values of ``${name}`` in the plan's texts; recorded with every release."""
    hidden: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The values of ``${env:NAME}``; recorded nowhere, and no message shows them."""
    words: Labels = field(default_factory=Labels)
    """Labels, units and who publishes the release."""

    def _repr_html_(self) -> str:
        title = element(
            "p", element("b", f"Plan {self.path.name}"), f" for {self.dataset}, tuned on {self.tuned_on} data"
        )
        return element("div", title, Html(self.plan._repr_html_()))


@own_argument_errors
def load_plan(
    path: str | Path,
    *,
    parameters: Mapping[str, str | int] | None = None,
    budget: str | None = None,
    old_records: str | Path | None = None,
) -> PlanFile:
    """Read and check a plan file.

    Every problem is reported at once, with its line.

    Args:
        path: The TOML file.
        parameters: The values of ``${name}`` in its texts, such as ``{"year": 2026}``.
        budget: Another budget, as a plan file writes it after ``budget =``.
        old_records: Records of the release that will be carried on or revised, where the file does not name them: like the
            source, they must not serve as a list of keys.

    Returns:
        The plan with its source, ledger, budget and outputs; nothing is opened yet.
    """
    expect_kind(path, (str, Path), parameter="path", wanted="the path of a plan file")
    file = Path(path)
    text = _text_of(file)
    root = _parse(file, text)
    if budget is not None:
        root = replace(root, value=root.value | _parse(file, f"budget = {budget}").value)
    values = read_parameters(root.value, parameters or {}, root.problems)
    root = replace(root, value=values.substitute(root.value))
    values.check_used()
    with hiding(values.hidden):
        found = _read_plan(file, root, [] if old_records is None else [str(Path(old_records).absolute())])
    problems = root.problems.in_order()
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


def _parse(file: Path, text: str) -> Node:
    try:
        return Node(tomllib.loads(text, parse_float=Decimal), (), Problems(line_index(text)))
    except tomllib.TOMLDecodeError as error:
        raise PlanFileError(path=str(file), problems=(_syntax(str(error), text),)) from None
    except RecursionError:
        raise PlanFileError(path=str(file), problems=("is nested too deeply",)) from None


def _syntax(message: str, text: str) -> Problem:
    """Return the parser's message with the line first."""
    what, _, where = message.partition(" (at ")
    digits = where.removeprefix("line ").partition(",")[0]
    line = int(digits) if digits.isdecimal() else text.count("\n") + 1
    return Problem(line, "", f"{what[:1].lower()}{what[1:]} (this is not valid TOML)")


class Reading:
    """The sections of a file, each read once when needed."""

    def __init__(self, given: dict[str, Node], folder: Path) -> None:
        self.given, self.folder = given, folder
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a section's value or default; None with a problem."""
        if name not in self._read:
            section = next(each for each in SECTIONS if each.name == name)
            self._read[name] = section.read(self.given[name], self) if name in self.given else section.default
        return self._read[name]

    def complete(self) -> bool:
        """Read every section; return whether all are present and valid."""
        read = {name: self[name] for name in self.given}
        missing = [each for each in SECTIONS if each.needed and each.name not in read]
        return not missing and all(value is not None for value in read.values())


def _refuse_records_as_keys(root: Node, folder: Path, more: Sequence[str]) -> None:
    """Report lists of keys, codes or sizes that are among the files of records: what they list would be told for nothing."""
    records: set[tuple[int, int]] | None = None
    for path, name in _named_files(root.value):
        listed = _file_marks(folder, name)
        if listed and records is None:
            records = set().union(*(_file_marks(folder, each) for each in (*_record_names(root.value), *more)))
        if not listed.isdisjoint(records or ()):
            root.problems.add(
                path,
                "is the table of records itself; keys, codes and sizes come from a public source, never from the records",
            )


def _record_names(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the files of records, of this release and of the one that it revises."""
    stage = plan.get("stage")
    for given in (plan.get("source"), stage.get("old_records") if isinstance(stage, dict) else None):
        yield from (each for each in (given if isinstance(given, list) else [given]) if isinstance(each, str))


def _file_marks(folder: Path, name: str) -> set[tuple[int, int]]:
    """Return what tells the files of a path, a folder or a pattern from all others, whatever their names."""
    try:
        found: Sequence[Path] = matching_files(str(folder / name))
        if found[0].is_dir():
            found = folder_files(found[0])
        return {(mark.st_dev, mark.st_ino) for mark in map(os.stat, found)}
    except (SourceError, OSError, ValueError):
        return set()


def _named_files(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the place and the text of each entry called file."""
    if not isinstance(value, dict | list):
        return
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        if name == "file" and isinstance(each, str):
            yield (*path, name), each
        yield from _named_files(each, (*path, name))


def _read_plan(file: Path, root: Node, more_records: Sequence[str]) -> PlanFile | None:
    _refuse_records_as_keys(root, file.resolve().parent, more_records)
    read = Reading(root.entries(SECTIONS), file.resolve().parent)
    if not read.complete():
        return None
    (dataset, publication), (series, earlier) = read["dataset"], read["series"]
    plain, outputs = {name: read[name] for name in AS_THEY_ARE if name in read.given}, dict(read["outputs"])
    return PlanFile(
        path=file,
        dataset=dataset,
        plan=read["queries"],
        budget=read["budget"].get(ENDLESS) if series is None else series.budget(),
        reserve=read["reserve"],
        series=series,
        earlier=earlier,
        max_outside=None if read["max_outside"] == ACCEPT else read["max_outside"],
        words=Labels(
            labels=dict(read["labels"]),
            units=dict(read["units"]),
            publication=publication,
            names=bool(outputs.pop("names", True)),
        ),
        **outputs,
        **plain,
    )


def _of_schema(read: Callable[[Node, Reading, Schema], Any]) -> Callable[[Node, Reading], Any]:
    """Return a reader that runs only if the schema is valid."""

    def found(node: Node, file: Reading) -> Any:
        schema = file["schema"]
        return None if schema is None or file["hierarchies"] is None else read(node, file, schema)

    return found


def _series(node: Node, file: Reading, schema: Schema) -> tuple[Series, tuple[Path, ...]] | None:
    """Read the series, its budgets, and the folders of earlier periods."""
    listed = node.value["earlier"] if isinstance(node.value, dict) and "earlier" in node.value else []
    earlier = Node(listed, (*node.path, "earlier"), node.problems).each(lambda each: _below(each, file))
    made = None if file["budget"] is None else read_series(node, file["budget"], schema)
    return None if made is None or earlier is None else (made, tuple(earlier))


def _plan(node: Node, file: Reading, schema: Schema) -> Plan | None:
    shelf = Shelf(schema, file["mechanisms"], file["keys"], file.folder)
    queries = [check_draft(read_draft(each, shelf), shelf) for each in node.items()]
    if not queries:
        node.problem("must contain at least one query")
    basic = (file["outputs"] or {}).get("basic")
    complete = basic is not None and basic.complete
    known = tuple(
        each if each.best is None else replace(each, best=replace(each.best, complete=complete))
        for each in queries
        if each is not None
    )
    if not known or len(known) < len(queries):
        return None
    return node.attempt(lambda: Plan(schema=schema, queries=known))


def _below(node: Node, file: Reading) -> Path | None:
    name = node.text()
    return None if name is None else file.folder / name


def _tuned_on(node: Node, file: Reading) -> str | None:
    tuned = node.word(*TUNINGS)
    if tuned == "confidential" and "tuning_reason" not in file.given:
        node.problem(
            'a plan tuned on the confidential table needs tuning_reason = "reason", which is published with the release'
        )
    return tuned


def _engine(node: Node, file: Reading) -> str | None:
    engine = node.word(*ENGINES)
    if engine == SPARK and "spark" not in file.given:
        node.problem('needs a table [spark] with a master such as "local[2]" or "spark://host:7077"')
    return engine


def _spark(node: Node, file: Reading) -> SparkMaster | None:
    if file["engine"] != SPARK:
        node.problem('needs engine = "spark"')
    return read_master(node)


def _source(node: Node, file: Reading) -> PlanSource | None:
    return read_source(file.given, file.folder, by_spark=file["engine"] == SPARK) if "source" in file.given else None


OUTPUTS = (
    Entry("formats", Node.items),
    Entry("csv", Node.flag),
    Entry("confidence", Node.share, old="level"),
    Entry("names", Node.flag),
    Entry("tables", Node.items),
    Entry("basic", lambda node: node.read(BASIC)),
    Entry("round", Node.table),
    Entry("status", Node.table),
)


def _outputs(node: Node, file: Reading) -> dict[str, Any]:
    entries = node.entries(OUTPUTS)
    read: dict[str, Any] = read_basic(entries)
    if "formats" in entries:
        read["formats"] = tuple(each.text() for each in entries["formats"].items())
    if "csv" in entries:
        # Plan files of the first version use this flag instead.
        if "formats" in entries:
            entries["csv"].problem("is replaced by formats, which is also given; remove csv")
        read["formats"] = ("parquet", "csv") if entries["csv"].flag() else ("parquet",)
    if "confidence" in entries:
        read["confidence"] = entries["confidence"].share()
    if "names" in entries:
        read["names"] = entries["names"].flag()
    return read


def _outside(node: Node, file: Reading) -> Fraction | str | None:
    """A share below 1, or ``"accept"`` for any."""
    if node.value == ACCEPT:
        return ACCEPT
    number = node.number()
    if number is None or not 0 <= Fraction(number) < 1:
        node.problem('must be a share below 1, or "accept"')
        return None
    return Fraction(number)


def _memory(node: Node, file: Reading) -> str | None:
    text = node.text()
    number, unit = (text[:-2], text[-2:]) if text else ("", "")
    if text is not None and (not number.strip().isdecimal() or unit not in ("MB", "GB")):
        node.problem('must be a size like "700MB" or "4GB"')
        return None
    return text


RESERVE = (Entry("revisions", Node.integer, needed=True),)


def _reserve(node: Node, file: Reading) -> int | None:
    """Read ``reserve = { revisions = 1 }``, kept for revisions."""
    read = node.section(RESERVE, alone=True)
    revisions = None if read is None else read["revisions"]
    if revisions is not None and revisions < 0:
        node.problem("must be for 0, 1, 2, ... revisions")
        return None
    if revisions and "budget" not in file.given:
        node.problem("needs a [[budget]] to be kept in")
    return revisions


def _examples(node: Node, file: Reading, schema: Schema) -> dict[str, dict[str, Any]]:
    """Read made-up records of measures and columns."""
    known = (*(each.name for each in schema.record_measures()), *schema.column_names())
    found = {}
    for name, each in node.table().items():
        values = each.table(*known) if known else {}
        found[name] = {
            column: entry.number() if schema.measure(column) else _group_of(entry, column, schema)
            for column, entry in values.items()
        }
    return found


def _group_of(node: Node, name: str, schema: Schema) -> Any:
    """Return a column's value in its declared type.

    Another type would match none of the policy's groups and show too small a loss.
    """
    declared = schema.column(name)
    value = node.attempt(lambda: literal(node.value))
    if value is not None and declared is not None and not is_value(value, declared.type):
        node.problem(f"is not a value of a column of type {declared.type}")
    return node.value


ACCEPT = "accept"
SECTIONS = (
    Entry("dataset", lambda node, file: read_dataset(node), needed=True),
    Entry("source", _source, needed=True),
    Entry("table", lambda node, file: file["source"]),
    Entry("ledger", _below, needed=True),
    Entry("tuned_on", _tuned_on, needed=True),
    Entry("tuning_reason", lambda node, file: node.text(), old="accept_tuning"),
    Entry("memory_limit", _memory),
    Entry("engine", _engine, default=DUCKDB),
    Entry("max_outside", _outside, default=ACCEPT, old="outside"),
    Entry("schema", lambda node, file: read_schema(node, file["hierarchies"] or ()), needed=True),
    Entry("series", _of_schema(_series), default=(None, ())),
    Entry(
        "budget",
        _of_schema(lambda node, file, schema: read_budget(node, schema, in_series="series" in file.given)),
        default={},
    ),
    Entry("reserve", lambda node, file: _reserve(node, file)),
    Entry("mechanisms", _of_schema(lambda node, file, schema: named_mechanisms(node, schema)), default={}),
    Entry("keys", _of_schema(lambda node, file, schema: named_keys(node, file.folder, schema)), default={}),
    Entry(
        "hierarchies",
        lambda node, file: read_hierarchies(node, file.folder, accepted=file["tuning_reason"] is not None),
        default=(),
    ),
    Entry("stage", _stage),
    Entry("queries", _of_schema(_plan), needed=True),
    Entry("outputs", _outputs, default={}),
    Entry("examples", _of_schema(_examples)),
    Entry(
        "labels",
        _of_schema(lambda node, file, schema: read_labels(node, schema, file["queries"], values=True)),
        default={},
    ),
    Entry(
        "units",
        _of_schema(lambda node, file, schema: read_labels(node, schema, file["queries"], values=False)),
        default={},
    ),
    Entry("spark", _spark),
    Entry("csv", lambda node, file: file["source"]),
)
"""Everything a plan may hold. ``table`` and ``csv`` are parts of the source, and read with it."""
AS_THEY_ARE = ("source", "ledger", "stage", "tuned_on", "tuning_reason", "memory_limit", "engine", "examples", "spark")
"""The sections that a ``PlanFile`` holds as they are read."""
