"""Resolves the variables of rules of the form "this one never exceeds that one" in a release.

A name is a published column (``sum_payqtr1``) or a measure with one sum (``payqtr1``). The prefix ``q2:`` restricts it to the
second query, as in the names of its tables; without it a rule applies to every query that has both variables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordwise.errors import ParameterError
from recordwise.plan.statistics import statistic_kind

Rules = dict[str, str]
"""The smaller and the larger variable of each rule of one query, by column."""


def read_rules(at_most: Mapping[str, str], plan: Sequence[Mapping[str, Any]]) -> list[Rules]:
    """The rules of each query; an error if a rule fits no query, or if the rules do not form chains."""
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
            problem = f"{smaller}={larger} does not name two counts or sums of one query"
            raise ParameterError(parameter="at_most", problem=problem, advice=f"Available are {known}")
        for rules, (lower, upper) in fitting:
            _add(rules, str(lower), str(upper))
    return found


def is_fitted(statistic: Mapping[str, Any]) -> bool:
    """Whether a described statistic is one that adds up over cells, so that fits and rules are about it."""
    return statistic_kind(statistic["kind"]).fitted


def chain_to(
    largest: Mapping[str, Any], statistics: Sequence[Mapping[str, Any]], rules: Rules
) -> list[Mapping[str, Any]]:
    """A variable and those below it, smallest first."""
    below = [each for each in statistics if rules.get(str(each["name"])) == largest["name"]]
    return [*chain_to(below[0], statistics, rules), largest] if below else [largest]


def _add(rules: Rules, lower: str, upper: str) -> None:
    """Add a rule. Only chains can be fitted: two variables below the same one would also have to be ordered."""
    if upper in rules.values() or lower in rules:
        raise ParameterError(
            parameter="at_most",
            problem=f"has two rules with '{upper if upper in rules.values() else lower}' on the same side",
            advice="Give a chain: the first is at most the second, the second is at most the third.",
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
    """The column of a query that a name refers to; None if there is none."""
    plain = re.sub(r"^q[1-9]\d*:", "", name)
    if plain in _columns(query):
        return plain
    sums = [str(each["name"]) for each in query["statistics"] if is_fitted(each) and each["of"] == plain]
    if len(sums) > 1:
        raise ParameterError(
            parameter="at_most",
            problem=f"names '{plain}', which has several sums: {', '.join(sums)}",
            advice="Name one of these columns.",
        )
    return sums[0] if sums else None


def _columns(query: Mapping[str, Any]) -> list[str]:
    return [str(each["name"]) for each in query["statistics"] if is_fitted(each)]
