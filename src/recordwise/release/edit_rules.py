"""Which variables a rule "this one never exceeds that one" is about, in a release of one query or of several.

A name is a published column (``sum_payqtr1``) or a measure with one sum (``payqtr1``). ``q2:`` before it means the second query
alone, as in the names of its tables; without that a rule holds in every query that has both variables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordwise.errors import ParameterError
from recordwise.plan.statistics import statistic_kind

Rules = dict[str, str]
"""The smaller variable of one query and the larger, by their columns."""


def read_rules(at_most: Mapping[str, str], plan: Sequence[Mapping[str, Any]]) -> list[Rules]:
    """The rules of each query; refused where one is about no query, or where rules do not form chains."""
    found: list[Rules] = [{} for _ in plan]
    for smaller, larger in at_most.items():
        only = {number for name in (smaller, larger) if (number := _query(name)) is not None}
        fitting = [
            (rules, names)
            for number, (query, rules) in enumerate(zip(plan, found), 1)
            if only <= {number} and None not in (names := [_column(name, query) for name in (smaller, larger)])
        ]
        if not fitting:
            known = " ".join(f"q{number}: {', '.join(_columns(query))}." for number, query in enumerate(plan, 1))
            problem = f"{smaller}={larger} names no two counts or sums of one query"
            raise ParameterError(parameter="at_most", problem=problem, advice=f"There are {known}")
        for rules, (lower, upper) in fitting:
            _add(rules, str(lower), str(upper))
    return found


def is_fitted(statistic: Mapping[str, Any]) -> bool:
    """Whether a described statistic is one that adds up over cells, so that fits and rules are about it."""
    return statistic_kind(statistic["kind"]).fitted


def chain_to(
    largest: Mapping[str, Any], statistics: Sequence[Mapping[str, Any]], rules: Rules
) -> list[Mapping[str, Any]]:
    """A variable and those below it, the smallest first."""
    below = [each for each in statistics if rules.get(str(each["name"])) == largest["name"]]
    return [*chain_to(below[0], statistics, rules), largest] if below else [largest]


def _add(rules: Rules, lower: str, upper: str) -> None:
    """One more rule. Chains alone can be fitted: two variables below one would have to be ordered too."""
    if upper in rules.values() or lower in rules:
        raise ParameterError(
            parameter="at_most",
            problem=f"has two rules with '{upper if upper in rules.values() else lower}' on the same side",
            advice="Give a chain: the first at most the second, the second at most the third.",
        )
    if lower in _above(rules, upper):
        raise ParameterError(parameter="at_most", problem=f"is circular at '{lower}'")
    rules[lower] = upper


def _above(rules: Rules, name: str) -> Iterator[str]:
    yield name
    while name in rules:
        name = rules[name]
        yield name


def _query(name: str) -> int | None:
    found = re.match(r"q([1-9]\d*):", name)
    return int(found[1]) if found else None


def _column(name: str, query: Mapping[str, Any]) -> str | None:
    """The column of a query that a name means; None where it has none."""
    plain = re.sub(r"^q[1-9]\d*:", "", name)
    if plain in _columns(query):
        return plain
    sums = [str(each["name"]) for each in query["statistics"] if is_fitted(each) and each["of"] == plain]
    if len(sums) > 1:
        raise ParameterError(
            parameter="at_most",
            problem=f"names '{plain}', of which there are several sums: {', '.join(sums)}",
            advice="Name one of these columns.",
        )
    return sums[0] if sums else None


def _columns(query: Mapping[str, Any]) -> list[str]:
    return [str(each["name"]) for each in query["statistics"] if is_fitted(each)]
