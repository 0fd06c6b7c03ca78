"""The query builder. A query is a frozen value: every method returns a new one, and SQL text becomes the same value."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recordwise.errors import ParameterError
from recordwise.exact.numbers import Number, rational
from recordwise.mechanisms.base import Mechanism, has_policy
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.plan.fields import Choice, Expression, Group, Level, Prefix, axis, flat, levels_of
from recordwise.plan.given_keys import GivenKeys, KeyList, read_keys
from recordwise.plan.key_selection import SelectFrom, SelectKeys
from recordwise.plan.keys import Keys
from recordwise.plan.predicates import Predicate, conjunction
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.plan.statistics import Average, Count, CountDistinct, Drawable, Quantile, Statistic, Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Statistics of the records that meet a condition, by groups and levels, at public keys."""

    condition: Predicate | None = None
    groups: tuple[Group, ...] = ()
    axes: tuple[tuple[Choice, ...], ...] = ()
    key_lists: tuple[KeyList, ...] = ()
    statistics: tuple[Statistic, ...] = ()

    def where(self, condition: str | Predicate) -> "Query":
        """Keep the records for which the condition is true; called twice, both must hold."""
        read = parse_predicate(condition) if isinstance(condition, str) else condition
        return replace(self, condition=conjunction(self.condition, read))

    def group_by(
        self, *groups: str | Expression | Group | tuple[Prefix, ...], keys: GivenKeys | None = None
    ) -> "Query":
        """Fixed groups of every table, and the public keys: ``Keys``, a mapping or a frame with one row for each cell, or the
        values of the one column that is grouped by."""
        return replace(self, groups=(*self.groups, *flat(groups))).at(keys)

    def levels(
        self,
        *choices: str | Expression | Group | tuple[Prefix, ...],
        share: Sequence[Number] | None = None,
        keys: GivenKeys | None = None,
    ) -> "Query":
        """One table for each choice; ``share`` divides the budget of every statistic among them."""
        return replace(self, axes=(*self.axes, axis(flat(choices), share))).at(keys)

    def at(self, keys: GivenKeys | None) -> "Query":
        """Add public keys or a selection, or several; a table takes the first that has all its columns."""
        if keys is None:
            return self
        columns = {name for level in self.tables() for name in level.names()}
        return replace(self, key_lists=(*self.key_lists, *read_keys(keys, tuple(columns))))

    def count(self, mechanism: Mechanism, *, alias: str = "count") -> "Query":
        """The number of units."""
        return self.ask(Count(alias=alias, mechanism=mechanism))

    def sum(self, measure: str, mechanism: Mechanism, *, alias: str | None = None) -> "Query":
        """The sum of a measure."""
        return self.ask(Sum(alias=alias or "", measure=measure, mechanism=mechanism))

    def count_distinct(self, column: str, mechanism: Mechanism, *, alias: str | None = None) -> "Query":
        """The number of different units or firms."""
        return self.ask(CountDistinct(alias=alias or "", counted=column, mechanism=mechanism))

    def avg(self, measure: str, *, sum: Mechanism, count: Mechanism | None = None, alias: str | None = None) -> "Query":
        """The average of a measure: a noisy sum over a noisy count. A count (or sum) of the query with the same mechanism is used
        again at no cost; without ``count`` any count of the query is."""
        return self.ask(Average(alias=alias or "", measure=measure, sum=sum, count=count))

    def quantile(self, measure: str, *, p: Number, grid: Grid, rho: Number, alias: str | None = None) -> "Query":
        """The first point of a public grid with at least a share ``p`` of the records; costs every record ``rho``, once for all
        quantiles of the measure with this grid and rho."""
        share = rational(p, parameter="p")
        tree = TreeQuantile(grid=grid, rho=rho)
        return self.ask(Quantile(alias=alias or "", measure=measure, p=share, mechanism=tree))

    def ask(self, statistic: Statistic) -> "Query":
        """Add a statistic: what ``count``, ``sum`` and the others do, and the way to ask for one of your own."""
        for mechanism in statistic.mechanisms():
            _check_mechanism(mechanism)
        return replace(self, statistics=(*self.statistics, statistic))

    def draws(self) -> tuple[Drawable, ...]:
        """Everything noise is drawn for, each once: the statistics, the parts of averages the query does not have already, and one
        tree for all quantiles of a measure that are asked with the same grid and rho."""
        found: list[Drawable] = []
        for each in sorted(self.statistics, key=lambda statistic: statistic.derived):
            found += [part for part in each.parts(found) if part not in found]
        return tuple(found)

    def confidence_of_parts(self, confidence: float) -> float:
        """The highest confidence at which anything drawn is estimated for intervals of ``confidence``."""
        return max(each.confidence_of_parts(confidence) for each in self.statistics)

    def keys_of(self, level: Level) -> KeyList | None:
        """Where the keys of a table come from; None for a grand total."""
        return next((keys for keys in self.key_lists if level.groups and keys.covers(level.groups)), None)

    def selection_of(self, level: Level) -> SelectKeys | SelectFrom | None:
        """The selection that finds the keys of a table, with the level's share of its budget; None where keys are public."""
        keys = self.keys_of(level)
        return None if keys is None or isinstance(keys, Keys) else keys.shared(level.share)

    def tables(self) -> tuple[Level, ...]:
        """The tables this query publishes, one for each combination of levels."""
        return levels_of(self.groups, self.axes)

    def _repr_html_(self) -> str:
        from recordwise.plan.describe import query_html

        return query_html(self)


def _check_mechanism(mechanism: object) -> None:
    if not has_policy(mechanism):
        raise ParameterError(parameter="mechanism", problem=f"has no policy ({type(mechanism).__name__})")


def query() -> Query:
    """An empty query, to be filled by its methods."""
    return Query()
