"""A plan that continues another one: the same table, ledger, budget and labels, with new mechanisms for some statistics.

Everything is carried over, because a plan with a new ledger and no budget would spend the budget of the same records again.
"""

import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from recordwise.engines.registry import engine_kind
from recordwise.errors import ParameterError
from recordwise.plan.file.read import PlanFile, load_plan
from recordwise.plan.file.write import PlanText, query_form, toml_text
from recordwise.plan.query import Query
from recordwise.plan.sources import POSTGRES_SCHEMES
from recordwise.plan.tuning import TUNINGS
from recordwise.planning.shapes import COUNT

STATISTICS = ("count", "sum", "count_distinct", "avg", "quantile")
TUNING = ("tuned_on", "accept_tuning")
WRITTEN_FIRST = ("dataset", "source", "table", "ledger", "memory_limit", "engine")


def carried_plan(
    like: str | Path,
    path: str | Path,
    queries: Sequence[Query],
    *,
    number: int,
    measures: Collection[str],
    tuned_on: str,
    accept_tuning: str | None,
    comment: str,
    parameters: Mapping[str, str | int] | None = None,
) -> PlanText:
    """The plan ``like``, for a file at ``path``, with ``queries`` replacing the measures' statistics in its query ``number``."""
    file = load_plan(like, parameters=parameters)
    raw = tomllib.loads(Path(like).read_text(encoding="utf-8"), parse_float=Decimal)
    moved = _moved(raw, file, Path(path).resolve().parent)
    asked = moved.pop("queries")
    if not 1 <= number <= len(asked):
        raise ParameterError(parameter="query", problem=f"must be a number from 1 to {len(asked)}")
    old = asked[number - 1]
    kept = _remaining(old, file.plan.queries[number - 1], measures)
    tuned, reason = _tuning(file, tuned_on, accept_tuning)
    document = {name: moved[name] for name in WRITTEN_FIRST if name in moved}
    needed = tuned == "confidential" or any(not each.is_public for each in file.plan.schema.hierarchies)
    document |= {"tuned_on": tuned} | ({"accept_tuning": reason} if reason and needed else {})
    document |= {name: part for name, part in moved.items() if name not in (*WRITTEN_FIRST, *TUNING)}
    new = [query_form(query, old.get("keys")) for query in queries]
    document["queries"] = [*asked[: number - 1], *kept, *new, *asked[number:]]
    return PlanText(text=toml_text(document, comment=comment), key_files={})


def _remaining(raw: dict[str, Any], query: Query, measures: Collection[str]) -> list[dict[str, Any]]:
    """The query without the statistics that are replaced; None if it has no others."""
    others = [each for each in query.statistics if each.planned_as not in measures]
    if not others:
        return []
    if "sql" in raw:
        raise ParameterError(
            parameter="query",
            problem="is SQL with further statistics, which cannot be separated",
            advice="First move them to a query of their own.",
        )
    sums = {name: each for name, each in raw.get("sum", {}).items() if name not in measures}
    kept = {name: each for name, each in raw.items() if name != "sum" and not (name == "count" and COUNT in measures)}
    return [kept | ({"sum": sums} if sums else {})]


def _tuning(file: PlanFile, tuned_on: str, accept_tuning: str | None) -> tuple[str, str | None]:
    """The plan was tuned on the most sensitive of the data its parts were tuned on; every part keeps its reason."""
    tuned = max(file.tuned_on, tuned_on, key=TUNINGS.index)
    if tuned_on == "confidential" and accept_tuning is None:
        return tuned, None
    reasons = [each for each in (file.accept_tuning, accept_tuning) if each]
    return tuned, "; ".join(dict.fromkeys(reasons)) or None


def _moved(raw: dict[str, Any], file: PlanFile, folder: Path) -> dict[str, Any]:
    """The same plan in another folder, with the paths of all its files adjusted."""
    start = file.path.resolve().parent

    def renamed(name: str) -> str:
        return name if start == folder or os.path.isabs(name) else os.path.relpath(start / name, folder)

    def source(name: str) -> str:
        elsewhere = name.startswith((*POSTGRES_SCHEMES, "${env:")) or engine_kind(file.engine).finds(name)
        return name if elsewhere else renamed(name)

    named = raw["source"]
    queries = raw["queries"] if isinstance(raw["queries"], list) else [raw["queries"]]
    return (
        raw
        | {"source": source(named) if isinstance(named, str) else [source(each) for each in named]}
        | {"ledger": renamed(raw["ledger"])}
        | {name: _with_files(raw[name], renamed) for name in ("keys", "hierarchies") if name in raw}
        | {"queries": [each | _query_keys(each, renamed) for each in queries]}
    )


def _query_keys(raw: dict[str, Any], renamed: Any) -> dict[str, Any]:
    return {"keys": _with_files(raw["keys"], renamed)} if "keys" in raw else {}


def _with_files(keys: Any, renamed: Any) -> Any:
    """Key lists with the files they name replaced, at any depth."""
    if isinstance(keys, list):
        return [_with_files(each, renamed) for each in keys]
    if not isinstance(keys, dict):
        return keys
    return {
        name: renamed(each) if name == "file" and isinstance(each, str) else _with_files(each, renamed)
        for name, each in keys.items()
    }
