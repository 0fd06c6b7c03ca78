"""The query builder. A query is a frozen value: every method returns a new one, and SQL text becomes the same value."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recordwise.errors import ParameterError
from recordwise.exact import Number
from recordwise.plan.fields import Expression, Group, Prefix
from recordwise.plan.keys import Keys
from recordwise.plan.levels import Choice, Level, axis, flat, levels_of
from recordwise.plan.mechanism import Mechanism
from recordwise.plan.predicates import Predicate, both
from recordwise.plan.statistics import Count, CountDistinct, Statistic, Sum
from recordwise.plan.whitelist import parse_predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Statistics of the records that meet a condition, by groups and levels, at public keys."""

    condition: Predicate | None = None
    groups: tuple[Group, ...] = ()
    axes: tuple[tuple[Choice, ...], ...] = ()
    key_lists: tuple[Keys, ...] = ()
    statistics: tuple[Statistic, ...] = ()

    def where(self, condition: str | Predicate) -> "Query":
        """Keep the records for which the condition is true; called twice, both must hold."""
        read = parse_predicate(condition) if isinstance(condition, str) else condition
        return replace(self, condition=both(self.condition, read))

    def group_by(
        self, *groups: str | Expression | Group | tuple[Prefix, ...], keys: Keys | Sequence[Keys] | None = None
    ) -> "Query":
        """Fixed groups of every table, and the public keys."""
        return replace(self, groups=(*self.groups, *flat(groups))).at(keys)

    def levels(
        self,
        *choices: str | Expression | Group | tuple[Prefix, ...],
        share: Sequence[Number] | None = None,
        keys: Keys | Sequence[Keys] | None = None,
    ) -> "Query":
        """One table for each choice; ``share`` divides the budget of every statistic among them."""
        return replace(self, axes=(*self.axes, axis(flat(choices), share))).at(keys)

    def at(self, keys: Keys | Sequence[Keys] | None) -> "Query":
        """Add public keys; a table takes the first list that has all its columns."""
        if keys is None:
            return self
        given = (keys,) if isinstance(keys, Keys) else tuple(keys)
        return replace(self, key_lists=(*self.key_lists, *given))

    def count(self, mechanism: Mechanism, *, alias: str = "count") -> "Query":
        """The number of units."""
        return self._with(Count(alias=alias, mechanism=mechanism))

    def sum(self, measure: str, mechanism: Mechanism, *, alias: str | None = None) -> "Query":
        """The sum of a measure."""
        return self._with(Sum(alias=alias or f"sum_{measure}", measure=measure, mechanism=mechanism))

    def count_distinct(self, column: str, mechanism: Mechanism, *, alias: str | None = None) -> "Query":
        """The number of different units or firms."""
        name = alias or f"count_distinct_{column}"
        return self._with(CountDistinct(alias=name, column=column, mechanism=mechanism))

    def tables(self) -> tuple[Level, ...]:
        """The tables this query publishes, one for each combination of levels."""
        return levels_of(self.groups, self.axes)

    def _with(self, statistic: Statistic) -> "Query":
        if not isinstance(statistic.mechanism, Mechanism):
            raise ParameterError(parameter="mechanism", problem=f"has no policy ({type(statistic.mechanism).__name__})")
        return replace(self, statistics=(*self.statistics, statistic))


def query() -> Query:
    """An empty query, to be filled by its methods."""
    return Query()
