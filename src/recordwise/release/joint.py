"""Which queries of a release are fitted together: those that ask for the same sums or counts of the same records (T-FITVAR).

A joint query has the tables of all of them. A statistic of it has, under ``own``, what each table publishes: the name of the column
and the mechanism may differ from query to query.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordwise.release.edit_rules import is_fitted, read_rules
from recordwise.release.families import finest_of

Query = Mapping[str, Any]
Variable = tuple[str, str]
"""The kind of a statistic and what it is of."""


def joint_queries(plan: Sequence[Query], *, at_most: Mapping[str, str], zero_counts: bool) -> list[Query]:
    """The queries of a release, those about the same numbers joined; each lists its ``numbers`` in the plan.

    A query with rules between its variables stays alone, since another may not have all of them.
    """
    ruled = [zero_counts or bool(rules) for rules in read_rules(at_most, plan)]
    variables: dict[Variable, list[list[int]]] = {}
    for number, query in enumerate(plan):
        for variable in _variables(query):
            clusters = variables.setdefault(variable, [])
            free = [each for each in clusters if not any(ruled[one] for one in (*each, number))]
            home = next((each for each in free if _may_join(plan, each, number, variable)), None)
            if home is None:
                clusters.append([number])
            else:
                home.append(number)
    together: dict[tuple[int, ...], list[Variable]] = {}
    for variable, clusters in variables.items():
        for each in clusters:
            together.setdefault(tuple(each), []).append(variable)
    fitted = [_joined(plan, numbers, chosen) for numbers, chosen in together.items()]
    return sorted(fitted, key=lambda query: query["numbers"])


def _variables(query: Query) -> Iterator[Variable]:
    yield from dict.fromkeys(_variable(each) for each in query["statistics"])


def _variable(statistic: Mapping[str, Any]) -> Variable:
    return str(statistic["kind"]), str(statistic.get("of") or "")


def _may_join(plan: Sequence[Query], cluster: Sequence[int], number: int, variable: Variable) -> bool:
    """Whether a query is about the same records as others, each has the variable once, and one table is finer than all."""
    queries = [plan[each] for each in (*cluster, number)]
    if any(
        query["where"] != queries[0]["where"] or any("keys" in table for table in query["tables"]) for query in queries
    ):
        return False
    asked = [[each for each in query["statistics"] if _variable(each) == variable] for query in queries]
    if any(len(some) != 1 or not is_fitted(some[0]) for some in asked):
        return False
    shapes = [table["by"] for query in queries for table in query["tables"]]
    several = any(shape in shapes[at + 1 :] for at, shape in enumerate(shapes))
    rests = any(table.get("rest") for query in queries for table in query["tables"])
    return not several and not rests and finest_of(shapes) is not None


def _joined(plan: Sequence[Query], numbers: tuple[int, ...], chosen: Sequence[Variable]) -> Query:
    queries = [plan[number] for number in numbers]
    kept = [each for each in queries[0]["statistics"] if _variable(each) in chosen]
    return {
        "where": queries[0]["where"],
        "tables": [table for query in queries for table in query["tables"]],
        "numbers": [number + 1 for number in numbers],
        "statistics": kept if len(queries) == 1 else [_with_own(each, queries) for each in kept],
    }


def _with_own(statistic: Mapping[str, Any], queries: Sequence[Query]) -> Mapping[str, Any]:
    asked = [next(each for each in query["statistics"] if _variable(each) == _variable(statistic)) for query in queries]
    own = {str(table["name"]): each for query, each in zip(queries, asked) for table in query["tables"]}
    return {**statistic, "own": own, "names": [str(each["name"]) for each in asked]}


def names_of(statistic: Mapping[str, Any]) -> list[str]:
    """The name of a statistic in each of the joined queries."""
    return list(statistic.get("names", [str(statistic["name"])]))
