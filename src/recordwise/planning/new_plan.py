"""A plan that continues another with new mechanisms.

The same queries, table, ledger, budget and labels: a plan with a new ledger and no budget would spend the
budget of the same records again.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from recordwise.engines.registry import engine_kind
from recordwise.errors import ParameterError
from recordwise.exact.numbers import decimal
from recordwise.exact.text import share_text
from recordwise.plan.expressions import Level
from recordwise.plan.file.node import renamed
from recordwise.plan.file.queries import QUERY
from recordwise.plan.file.read import SECTIONS, PlanFile, load_plan
from recordwise.plan.file.write import PlanText, query_form, selection_entry, toml_text
from recordwise.plan.query import Query
from recordwise.plan.schema import TUNINGS, Schema
from recordwise.plan.sources import POSTGRES_SCHEMES
from recordwise.plan.statistics import KINDS, Statistic
from recordwise.plan.statistics.base import SUM, Drawable, mechanism_entry

# What a recommendation changes in a plan, table by table, as a person reads it.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChange:
    """One statistic of one table."""

    query: str
    table: str
    statistic: str
    before: str
    after: str

    def row(self) -> list[str]:
        """The change as a row of a table."""
        return [self.query, self.table, self.statistic, self.before, self.after]

    def to_json(self) -> dict[str, str]:
        """The change by the names of its parts."""
        return {name: getattr(self, name) for name in self.__slots__}


NOT_DRAWN = "not drawn: another statistic of the query has the same mechanism"
HEADERS = ["query", "table", "statistic", "now", "recommended"]


def changes(before: Sequence[Query], after: Sequence[Query]) -> tuple[PlanChange, ...]:
    """Return the drawn statistics whose mechanism or share differs."""
    found = []
    for number, (old, new) in enumerate(zip(before, after), 1):
        drawn = {each.alias: each for each in new.draws()}
        for old_level, new_level in zip(old.tables(), new.tables()):
            for each in old.draws():
                now = _text(each, old_level)
                then = _text(drawn[each.alias], new_level) if each.alias in drawn else NOT_DRAWN
                if now != then:
                    found.append(
                        PlanChange(
                            query=old.name or str(number),
                            table=" x ".join(old_level.names()) or "total",
                            statistic=each.alias,
                            before=now,
                            after=then,
                        )
                    )
    return tuple(found)


def _text(statistic: Drawable, level: Level) -> str:
    """Describe a table's mechanism and share of the loss."""
    share = "" if level.share == 1 else f", {share_text(float(level.share), 1)} of the loss"
    return f"{statistic.mechanism.at_share(level.share).text()}{share}"


# A budget for a plan that has none: what the plan costs, once, in the terms that a plan file states budgets in.


def proposed_budget(queries: Sequence[Query], schema: Schema) -> list[dict[str, Any]]:
    """Return the parts of a proposed budget.

    The cost of each sum by its mechanism, and one constant for everything that costs all records alike. Levels
    share the loss of their query, so that each statistic is counted once; sized noise counts as that of the
    smallest cells.
    """
    sums = [{"measure": each.of, "mechanism": mechanism_entry(each.mechanism)} for each in _drawn(queries, sums=True)]
    costs = [float(each.cost(each.mechanism, schema, tight=True).loss({})) for each in _drawn(queries, sums=False)]
    constant = [{"rho": decimal(sum(costs), up=True)}] if costs else []
    return [*constant, *sums, *_selections(queries)]


def _drawn(queries: Sequence[Query], *, sums: bool) -> list[Drawable]:
    return [each for query in queries for each in query.draws() if (each.contribution == SUM) == sums]


def _selections(queries: Sequence[Query]) -> list[dict[str, Any]]:
    """Private keys cost too, once for each query that selects some."""
    found: list[dict[str, Any]] = []
    for query in queries:
        for keys in query.key_lists:
            if keys.selection is not None and keys.domain is None:
                found.append({"select": selection_entry(keys.selection)})
    return found


TUNING = ("tuned_on", "tuning_reason")
WRITTEN_FIRST = ("dataset", "source", "table", "ledger", "memory_limit", "engine")
SHARES = ("table_share", "share_goal")
STATISTICS = tuple(kind.word for kind in KINDS)


def carried_plan(
    like: str | Path,
    path: str | Path,
    before: Sequence[Query],
    after: Sequence[Query],
    *,
    tuned_on: str,
    tuning_reason: str | None,
    comment: str,
    parameters: Mapping[str, str | int] | None = None,
    needs_budget: bool = False,
    reserve: int = 0,
) -> PlanText:
    """Return the plan ``like`` with the new mechanisms and shares.

    For a file at ``path``; queries ``before`` get the mechanisms of those ``after``.
    """
    file = load_plan(like, parameters=parameters)
    if [_shape(each) for each in file.plan.queries] != [_shape(each) for each in before]:
        raise ParameterError(
            parameter="like", problem="is not the plan that was examined", advice="Give recommend the same plan file."
        )
    raw = renamed(SECTIONS, tomllib.loads(Path(like).read_text(encoding="utf-8"), parse_float=Decimal))
    moved = _moved(raw, file, Path(path).resolve().parent)
    asked = [_changed(form, old, new) for form, old, new in zip(moved.pop("queries"), before, after)]
    tuned, reason = _tuning(file, tuned_on, tuning_reason)
    document = {name: moved[name] for name in WRITTEN_FIRST if name in moved}
    document |= {"tuned_on": tuned} | ({"tuning_reason": reason} if reason else {})
    document |= {name: part for name, part in moved.items() if name not in (*WRITTEN_FIRST, *TUNING)}
    if needs_budget:
        document["budget"] = proposed_budget(after, file.plan.schema) * (1 + reserve)
    if reserve and "budget" in document:
        document["reserve"] = {"revisions": reserve}
    document["queries"] = asked
    return PlanText(text=toml_text(document, comment=comment), key_files={})


def _shape(query: Query) -> Any:
    """What a query is recognized by."""
    shares = None if query.best is not None else [level.share for level in query.tables()]
    groups = [[each.group for each in axis] for axis in query.axes]
    return query.condition, query.groups, groups, shares, query.all_other, query.name, query.statistics


def _changed(raw: dict[str, Any], old: Query, new: Query) -> dict[str, Any]:
    """Return a query's entry with new mechanisms and shares."""
    if (old.statistics, old.tables(), old.best) == (new.statistics, new.tables(), new.best):
        return raw
    if "sql" in raw:
        return raw | {"mechanisms": _sql_mechanisms(raw["mechanisms"], old, new)}
    form = query_form(new, raw.get("keys"))
    found = {name: each for name, each in raw.items() if name not in STATISTICS}
    if (old.tables(), old.best) != (new.tables(), new.best):
        found = {name: each for name, each in found.items() if name not in SHARES}
        found |= {name: form[name] for name in ("levels", *SHARES) if name in form}
    return found | {name: form[name] for name in STATISTICS if name in form}


def _sql_mechanisms(raw: dict[str, Any], old: Query, new: Query) -> dict[str, Any]:
    """Return the mechanisms that a SQL statement names."""
    found, given = dict(raw), dict[str, Statistic]()
    for before, after in zip(old.statistics, new.statistics):
        name = before.alias if before.alias in raw else before.of or "*"
        if name in given and given[name].mechanisms() != after.mechanisms():
            raise ParameterError(
                parameter="plan",
                problem=f"is SQL where the mechanism '{name}' serves two statistics, for which different ones are recommended",
                advice="Give each statistic a name with AS, and a mechanism under that name.",
            )
        given[name] = after
        if before != after:
            parted = isinstance(raw[name], dict) and "sum" in raw[name]
            found[name] = after.entry() if parted else mechanism_entry(after.mechanisms()[0])
    return found


def _tuning(file: PlanFile, tuned_on: str, tuning_reason: str | None) -> tuple[str, str | None]:
    """Return the most sensitive tuning data and all reasons."""
    tuned = max(file.tuned_on, tuned_on, key=TUNINGS.index)
    if tuned_on == "confidential" and tuning_reason is None:
        return tuned, None
    reasons = [each for each in (file.tuning_reason, tuning_reason) if each]
    return tuned, "; ".join(dict.fromkeys(reasons)) or None


def _moved(raw: dict[str, Any], file: PlanFile, folder: Path) -> dict[str, Any]:
    """Move a plan to another folder, adjusting its paths."""
    start = file.path.resolve().parent

    def moved(name: str) -> str:
        return name if start == folder or os.path.isabs(name) else os.path.relpath(start / name, folder)

    def source(name: str) -> str:
        elsewhere = name.startswith((*POSTGRES_SCHEMES, "${env:")) or engine_kind(file.engine).finds(name)
        return name if elsewhere else moved(name)

    named = raw["source"]
    queries = raw["queries"] if isinstance(raw["queries"], list) else [raw["queries"]]
    return (
        raw
        | {"source": source(named) if isinstance(named, str) else [source(each) for each in named]}
        | {"ledger": moved(raw["ledger"])}
        | {name: _with_files(raw[name], moved) for name in ("keys", "hierarchies") if name in raw}
        | {"queries": [renamed(QUERY, each | _query_keys(each, moved)) for each in queries]}
    )


def _query_keys(raw: dict[str, Any], moved: Any) -> dict[str, Any]:
    return {"keys": _with_files(raw["keys"], moved)} if "keys" in raw else {}


def _with_files(keys: Any, moved: Any) -> Any:
    """Key lists with the files they name replaced, at any depth."""
    if isinstance(keys, list):
        return [_with_files(each, moved) for each in keys]
    if not isinstance(keys, dict):
        return keys
    return {
        name: moved(each) if name == "file" and isinstance(each, str) else _with_files(each, moved)
        for name, each in keys.items()
    }
