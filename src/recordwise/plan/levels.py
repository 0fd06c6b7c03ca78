"""Several tables out of one query: the levels of a code, or geographies that do not nest, each with a share of the budget."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from recordwise.errors import ParameterError
from recordwise.exact import Number, positive
from recordwise.plan.fields import Case, Expression, Field, Group, Prefix


@dataclass(frozen=True, slots=True)
class Choice:
    """One level of an axis and its share of the query's budget."""

    group: Group
    share: Fraction


@dataclass(frozen=True, slots=True)
class Level:
    """One published table of a query: what it groups by, and the share of the budget it costs."""

    groups: tuple[Group, ...]
    share: Fraction

    def names(self) -> tuple[str, ...]:
        return tuple(group.name for group in self.groups)


def as_group(given: "str | Expression | Group") -> Group:
    """A group under its own name; a CASE has none, so it comes as a ``Group``."""
    if isinstance(given, str):
        return Group(given, Field(given))
    if isinstance(given, Case):
        raise ParameterError(parameter="group_by", problem="needs a name for a CASE", advice="Give Group(name, case).")
    return given if isinstance(given, Group) else Group(given.default_name(), given)


def flat(given: Iterable["str | Expression | Group | tuple[Prefix, ...]"]) -> list[Group]:
    """The groups of a call, tuples of prefixes laid out."""
    groups: list[Group] = []
    for each in given:
        groups.extend(as_group(one) for one in (each if isinstance(each, tuple) else (each,)))
    return groups


def axis(groups: Sequence[Group], share: Sequence[Number] | None) -> tuple[Choice, ...]:
    """The choices of one axis. Shares must add up to exactly 1; by default they are equal."""
    if not groups:
        raise ParameterError(parameter="levels", problem="needs at least one level")
    shares = (
        [Fraction(1, len(groups))] * len(groups) if share is None else [positive(s, parameter="share") for s in share]
    )
    if len(shares) != len(groups) or sum(shares) != 1:
        raise ParameterError(
            parameter="share",
            problem=f"must hold {len(groups)} numbers that add up to 1",
            advice="Write thirds as '1/3'.",
        )
    return tuple(Choice(group, part) for group, part in zip(groups, shares))


def levels_of(groups: tuple[Group, ...], axes: tuple[tuple[Choice, ...], ...]) -> tuple[Level, ...]:
    """Every combination of the axes beside the fixed groups; shares multiply, so they still add up to 1."""
    levels = []
    for choices in product(*axes):
        share = Fraction(1)
        for choice in choices:
            share *= choice.share
        levels.append(Level((*groups, *(choice.group for choice in choices)), share))
    return tuple(levels)
