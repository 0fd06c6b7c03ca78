"""The column names of a published table, known before it is made: keys, variables with their suffixes, and fitted columns."""

from collections.abc import Iterator

from recordwise.plan.fields import ALL_OTHER, Level
from recordwise.plan.query import Query

ENDINGS = (
    *("", "_sd", "_cv", "_low", "_high"),
    *("_noisy", "_noisy_positive", "_noisy_negative", "_sigma", "_variance"),
    *("_fit", "_fit_sd", "_fit_low", "_fit_high", "_best", "_best_sd", "_best_low", "_best_high", "_status"),
)
"""What may be published beside a variable. Not every variable has all of them, but the next mechanism might."""


def published_names(level: Level, query: Query) -> Iterator[tuple[str, str]]:
    """Every column of one table, with the key or variable it belongs to."""
    yield from ((name, name) for name in level.names())
    if query.rest is not None:
        yield ALL_OTHER, ALL_OTHER
    selection = query.selection_of(level)
    asked = [*query.statistics, *(each for each in query.draws() if each not in query.statistics)]
    for alias in [each.alias for each in asked] + ([selection.alias] if selection else []):
        yield from ((alias + ending, alias) for ending in ENDINGS)


def name_problems(level: Level, query: Query) -> Iterator[str]:
    """Columns that would appear twice; names that differ only in case count as equal."""
    owners: dict[str, list[str]] = {}
    for name, owner in published_names(level, query):
        owners.setdefault(name.casefold(), []).append(owner)
    clashes = {tuple(both): name for name, both in reversed(owners.items()) if len(both) > 1}
    yield from (_problem(name, both) for both, name in reversed(clashes.items()))


def _problem(name: str, owners: tuple[str, ...]) -> str:
    if len({owner.casefold() for owner in owners}) == 1:
        return f"the name '{owners[-1]}' is used twice in one table"
    listed = " and ".join(f"'{owner}'" for owner in dict.fromkeys(owners))
    return f"the column '{name}' would be published twice in one table: {listed} need different names"
