"""The subjects of an audit: a query, its keys, and records that are present in half of the cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from recordwise.exact.numbers import Number
from recordwise.plan.given_keys import KeyList
from recordwise.plan.keys import Keys
from recordwise.plan.query import Query
from recordwise.plan.sql.parse import parse_sql
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

VALUE, SECOND, CELL, FIRM, KIND = "value", "second", "cell", "firm", "kind"
STRONGEST = 1.0
"""The loss at which the bound is closest to the truth, relative to it, for a hundred thousand samples (docs/audit.md)."""
LARGEST_STEPS = 2**53
Record: TypeAlias = Mapping[str, Any]
KeysOf: TypeAlias = Callable[[Sequence[str]], KeyList]


def public_keys(cells: Sequence[str]) -> KeyList:
    """Every cell, whatever the records are."""
    return Keys.of({CELL: list(cells)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One query to be audited."""

    name: str
    ask: Callable[[KeyList], Query]
    records: Mapping[str, Record]
    """The records by name; a cell contains at most one of them."""
    others: tuple[Record, ...] = ()
    """The other records in every cell, with or without the record under test."""
    keys: str = "public"
    keys_of: KeysOf = public_keys
    step: Fraction = Fraction(1)
    """The step of ``value``; the measure ``second`` has step 1."""

    @property
    def lists_every_cell(self) -> bool:
        """Whether the rows of the release must be the public cells, no more and no fewer."""
        return self.keys == "public"

    def with_others(self, name: str, *others: Record) -> "Subject":
        """The same subject with other records in every cell."""
        return replace(self, name=name, others=others)


def record(value: Number = 0, second: int = 0, kind: str = "plain") -> Record:
    return {VALUE: Fraction(value), SECOND: second, KIND: kind}


def sum_subject(name: str, mechanism: Any, *, step: Fraction = Fraction(1)) -> Subject:
    """SUM with one mechanism, at records of three sizes chosen by its policy."""
    sizes = three_sizes(mechanism.policy(Measure(VALUE, step)), step)
    return Subject(
        name=name,
        ask=statement(f"SELECT {CELL}, SUM({VALUE}) AS answer FROM t GROUP BY {CELL}", answer=mechanism),
        records={size: record(value) for size, value in sizes.items()},
        step=step,
    )


def statement(text: str, **mechanisms: Any) -> Callable[[KeyList], Query]:
    """SQL text with a mechanism for each alias."""
    return lambda keys: parse_sql(text, mechanisms=mechanisms, keys=keys)


def three_sizes(policy: Policy, step: Fraction) -> dict[str, Fraction]:
    """The largest record whose loss is at most that of the strongest test, one ten times smaller, and a giant."""

    def loss(steps: int) -> float:
        return float(policy.loss({VALUE: steps * step, SECOND: 0, KIND: "plain"}))

    low, high = 1, LARGEST_STEPS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if loss(middle) <= STRONGEST else (low, middle)
    return {"small": max(1, low // 10) * step, "large": low * step, "giant": min(low * 10**6, LARGEST_STEPS) * step}
