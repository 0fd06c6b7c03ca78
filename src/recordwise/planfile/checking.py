"""Does what could be read of a query fit the schema, its keys and its mechanisms? Each problem goes to the line it comes from."""

from functools import partial
from itertools import product

from recordwise.plan import Keys, Query
from recordwise.plan.analysis import statistic_policy
from recordwise.plan.average import Average
from recordwise.plan.checking import group_problems, predicate_problems, query_problems
from recordwise.planfile.node import Node
from recordwise.planfile.queries import Draft, Shelf

SHAPE = {"group_by", "levels"}
NO_KEYS = "no public keys"


def checked(draft: Draft, shelf: Shelf) -> Query | None:
    """The query if nothing is wrong with it; every problem is noted."""
    places = _places(draft, shelf)
    problems = [text for text in query_problems(draft.query, shelf.schema) if not _follows(text, draft, shelf)]
    for text in problems:
        default = draft.entries.get("keys", draft.node) if text.startswith(NO_KEYS) else draft.node
        places.get(text, default).problem(text)
    fitting = SHAPE & draft.broken or _keys_fit(draft, shelf)
    served = _mechanisms_serve(draft, shelf)
    return draft.query if fitting and served and not problems and not draft.broken else None


def _follows(text: str, draft: Draft, shelf: Shelf) -> bool:
    """Whether a problem only follows from a part that was left out or that is wrong by itself."""
    if text.startswith(NO_KEYS):
        groups = {group for level in draft.query.tables() for group in level.groups}
        return bool(draft.broken & {"keys", *SHAPE}) or any(group_problems(each, shelf.schema) for each in groups)
    return text == "a query asks for no statistic" and "statistics" in draft.broken


def _places(draft: Draft, shelf: Shelf) -> dict[str, Node]:
    """Which entry a problem of the plan belongs to."""
    found: dict[str, Node] = {}
    statement = draft.entries.get("sql", draft.node)
    for statistic, place in zip(draft.query.statistics, draft.places):
        found |= dict.fromkeys(statistic.problems(shelf.schema), place)
        if isinstance(statistic, Average):
            found[statistic.needs_count()] = place
    if draft.query.condition is not None:
        where = draft.entries.get("where", statement)
        found |= dict.fromkeys(predicate_problems(draft.query.condition, shelf.schema), where)
    for group in draft.query.groups:
        found |= dict.fromkeys(group_problems(group, shelf.schema), draft.entries.get("group_by", statement))
    for axis in draft.query.axes:
        for choice in axis:
            problems = group_problems(choice.group, shelf.schema)
            found |= dict.fromkeys(problems, draft.entries.get("levels", statement))
    return found


def _keys_fit(draft: Draft, shelf: Shelf) -> bool:
    """Whether every table's keys survive the cast to the declared types and are a partition."""
    place, good = draft.entries.get("keys", draft.node), True
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
        parts = (statistic.parts(draws) or ()) if isinstance(statistic, Average) else (statistic,)
        for part, level in product(parts, draft.query.tables()):
            policy = place.attempt(partial(statistic_policy, part, level, shelf.schema, tight=True))
            good = policy is not None and good
    return good
