"""The query builder: a query is a frozen value.

Every method returns a new one, and SQL text becomes the same value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from recordwise.errors import (
    KindError,
    ParameterError,
    expect_kind,
    kind_text,
    near_name,
    own_argument_errors,
    own_errors_of,
)
from recordwise.exact.numbers import Number, positive, rational
from recordwise.plan.expressions import (
    BEST,
    Best,
    Choice,
    Expression,
    Group,
    Level,
    Predicate,
    Prefix,
    axis,
    check_axes,
    check_levels,
    choices_of,
    conjunction,
    flat,
    levels_of,
    parent_of,
    read_all_other,
)
from recordwise.plan.keys.keys import GivenKeys, Keys, Selection, read_keys
from recordwise.plan.statistics import (
    Average,
    Combination,
    Count,
    CountDistinct,
    Drawable,
    Quantile,
    Ratio,
    Statistic,
    Sum,
)

if TYPE_CHECKING:
    from recordwise.mechanisms.base import Mechanism
    from recordwise.mechanisms.quantile import Grid


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Query:
    """Statistics of selected records, by groups and levels, at public keys.

    A query is a frozen value: every method returns a new one. Start with ``rw.query()``.

    Example:
        >>> import recordwise as rw
        >>> keys = rw.Keys.of({"county": ["001", "003"]})
        >>> by_county = rw.query().group_by("county", keys=keys)
        >>> by_county.where("emp > 0").count(rw.Gaussian(rho="0.05")).sum("emp", rw.UnitSplit(at=50, rho="0.1"))
        <Query: count, sum_emp by county; 1 condition>
    """

    condition: Predicate | None = None
    groups: tuple[Group, ...] = ()
    axes: tuple[tuple[Choice, ...], ...] = ()
    key_lists: tuple[Keys, ...] = ()
    statistics: tuple[Statistic, ...] = ()
    best: Best | None = None
    """Whether its shares are the best ones, and those once they are found; None where they are stated."""
    all_other: str | None = None
    """``"publish"``: below each listed coarser cell, one more cell for its records in no listed finer one."""
    name: str = ""
    """The name of its table in files, or the start of the names where it has several."""
    title: str = ""
    """What readers see above its tables."""
    median: tuple[str, ...] = ()
    """The counts and sums that also get a median-unbiased estimate, NAME_median."""
    table_shares: tuple[Fraction, ...] = ()
    """The share of each table, in the order of ``tables()``; without it the shares of levels multiply."""

    def named(self, name: str, *, title: str = "") -> "Query":
        """Set the query's name, used in file names, and its title.

        Args:
            name: Letters, digits, - and _; no two queries of a plan share one.
            title: A title of its tables; what each is grouped by is added where there are several.

        Returns:
            A new query.

        Raises:
            ParameterError: The name is not one that a file can have everywhere.
        """
        return replace(self, name=check_name(name), title=title)

    def with_median(self, *names: str) -> "Query":
        """Publish a median-unbiased estimate too, in a column ``NAME_median``.

        As often above the exact total as below; under transforms it differs from the mean-unbiased ``NAME`` [F]. It is
        computed from the same noisy answer and costs nothing.

        Args:
            names: Published names of counts and sums, such as ``"sum_emp"``.

        Returns:
            A new query.
        """
        for name in names:
            expect_kind(name, str, parameter="names", wanted="published names of counts and sums")
        return replace(self, median=tuple(dict.fromkeys((*self.median, *names))))

    def where(self, condition: str | Predicate) -> "Query":
        """Keep the records for which the condition is true.

        If called more than once, all conditions must hold.

        Args:
            condition: SQL text such as ``"emp > 0 AND naics = '44'"``, or a parsed predicate.

        Returns:
            A new query.

        Raises:
            SqlError: The text is not a supported condition.
        """
        from recordwise.plan.sql.grammar import parse_predicate

        expect_kind(condition, (str, Predicate), parameter="condition", wanted='text such as "NAME > 0"')
        read = parse_predicate(condition) if isinstance(condition, str) else condition
        return replace(self, condition=conjunction(self.condition, read))

    def group_by(
        self, *groups: str | Expression | Group | tuple[Prefix, ...], keys: GivenKeys | None = None
    ) -> "Query":
        """Group every table of the query.

        Args:
            groups: Names of columns, prefixes (``rw.prefix("naics", 2)``) or named expressions.
            keys: The public cells: ``Keys``, a mapping or a frame with one row for each cell, or the values of the only grouping
                column.

        Returns:
            A new query.

        Raises:
            KeysError: The keys do not fit the groups.
        """
        return replace(self, groups=(*self.groups, *flat(groups))).at(keys)

    def levels(
        self,
        *choices: str | Expression | Group | tuple[Prefix, ...],
        share: Sequence[Number] | str | None = None,
        keys: GivenKeys | None = None,
        all_other: str | None = None,
    ) -> "Query":
        """Publish one table per choice, such as a code's prefixes.

        Args:
            choices: What each table is grouped by, in addition to the groups of the query; ``()`` is the total.
            share: How the budget of every statistic is divided among the tables; equal by default. ``"best"``: shares that need
                the least noise for the same relative errors of fitted cells, found from public lists and sizes alone before
                anything is charged; for all levels of a query or for none.
            keys: The public cells of the tables.
            all_other: "publish" adds to every table but the coarsest one noisy "all other" cell below each listed coarser cell, for
                its records in no listed finer cell (T-REST). The tables are then complete, so that fits of all levels together
                are more accurate than each level alone.

        Returns:
            A new query.

        Raises:
            ParameterError: A choice is not a level or is given twice, or levels of one code are crossed with each other.
        """
        made = self.with_axis(*choices, share=share)
        check_axes(made.axes)
        check_levels(self.groups, [each.group for each in made.axes[-1]])
        return replace(made, all_other=self.all_other if all_other is None else read_all_other(all_other)).at(keys)

    def with_axis(
        self, *choices: str | Expression | Group | tuple[Prefix, ...], share: Sequence[Number] | str | None = None
    ) -> "Query":
        """Cross the tables with some levels, whatever they are levels of.

        Args:
            choices: As for ``levels``.
            share: As for ``levels``.

        Returns:
            A new query.
        """
        if self.table_shares:
            raise ParameterError(parameter="levels", problem="must be given before the shares of tables")
        best = Best() if share == BEST else None
        if isinstance(share, str) and best is None:
            raise ParameterError(parameter="share", problem='must be numbers that add up to 1, or "best"')
        if self.axes and best != self.best:
            raise ParameterError(
                parameter="share",
                problem='is "best" for some levels of a query only',
                advice="State it for all or for none.",
            )
        stated = None if best is not None or isinstance(share, str) else share
        return replace(self, axes=(*self.axes, axis(choices_of(choices), stated)), best=best)

    def with_share_goal(self, goal: Mapping[Number, Number]) -> "Query":
        """State the errors for which the best shares are best.

        Args:
            goal: The relative error that cells of at least some public size may have, by this size: ``{1000: "0.05"}``.

        Returns:
            A new query.

        Raises:
            ParameterError: Its levels do not have ``share="best"``, or a number is not positive.
        """
        if self.best is None:
            raise ParameterError(parameter="share_goal", problem='is for levels with share = "best"')
        expect_kind(goal, Mapping, parameter="share_goal", wanted="a mapping from sizes to relative errors")
        read = {
            positive(size, parameter="share_goal"): positive(error, parameter="share_goal")
            for size, error in goal.items()
        }
        if not read:
            raise ParameterError(parameter="share_goal", problem="must name a size and an error: { 1000 = 0.05 }")
        return replace(self, best=Best(complete=self.best.complete, goal=tuple(sorted(read.items()))), table_shares=())

    @property
    def has_best_shares(self) -> bool:
        """Whether its shares are the best ones, found or waited for, and were not changed since."""
        return self.best is not None and self.best.holds(self.axes, self.table_shares)

    def with_shares(self, *shares: Number) -> "Query":
        """Give each table its share, where levels of several codes cross.

        Args:
            shares: A share for each of ``tables()``, in its order; they add up to 1.

        Returns:
            A new query.

        Raises:
            ParameterError: There is not one for each table, or they do not add up to 1.
        """
        plain = replace(self, table_shares=())
        parts = tuple(positive(each, parameter="share") for each in shares)
        if len(parts) != len(plain.tables()) or sum(parts) != 1:
            raise ParameterError(
                parameter="share",
                problem=f"must be {len(plain.tables())} numbers that add up to 1, one for each table",
                advice="Write thirds as '1/3'.",
            )
        return replace(self, table_shares=parts, best=None)

    def at(self, keys: GivenKeys | None) -> "Query":
        """Add public keys or selections.

        A table takes the first that has all its columns.

        Args:
            keys: Keys as ``group_by`` takes them, or several of them.

        Returns:
            A new query.
        """
        if keys is None:
            return self
        columns = {name for level in self.tables() for name in level.names()}
        return replace(self, key_lists=(*self.key_lists, *read_keys(keys, tuple(columns))))

    def count(self, mechanism: "Mechanism", *, alias: str = "count") -> "Query":
        """Ask for the number of units.

        Args:
            mechanism: What protects it.
            alias: The name it is published under.

        Returns:
            A new query.
        """
        return self.ask(Count(alias=alias, mechanism=mechanism))

    def sum(self, measure: str, mechanism: "Mechanism", *, alias: str | None = None) -> "Query":
        """Ask for the sum of a measure.

        Args:
            measure: The name of a measure of the schema.
            mechanism: What protects it.
            alias: The name it is published under; ``sum_MEASURE`` unless given.

        Returns:
            A new query.
        """
        expect_kind(measure, str, parameter="measure", wanted="the name of a column")
        return self.ask(Sum(alias=alias or "", measure=measure, mechanism=mechanism))

    def count_distinct(self, column: str, mechanism: "Mechanism", *, alias: str | None = None) -> "Query":
        """Ask for the number of distinct units or firms.

        Args:
            column: The unit id or the firm id of the schema.
            mechanism: What protects it.
            alias: The name it is published under; ``count_distinct_COLUMN`` unless given.

        Returns:
            A new query.
        """
        expect_kind(column, str, parameter="column", wanted="the name of a column")
        return self.ask(CountDistinct(alias=alias or "", counted=column, mechanism=mechanism))

    def avg(
        self, measure: str, *, sum: "Mechanism", count: "Mechanism | None" = None, alias: str | None = None
    ) -> "Query":
        """Add the average of a measure: noisy sum over noisy count.

        Args:
            measure: The name of a measure of the schema.
            sum: The mechanism of the sum. A sum of the query with the same mechanism is reused at no cost.
            count: The mechanism of the count, reused in the same way; without it any count of the query is used.
            alias: The name it is published under; ``avg_MEASURE`` unless given.

        Returns:
            A new query.
        """
        expect_kind(measure, str, parameter="measure", wanted="the name of a column")
        return self.ask(Average(alias=alias or "", measure=measure, sum=sum, count=count))

    def combine(self, form: str, *, alias: str) -> "Query":
        """Add a linear combination of this query's counts and sums.

        It costs nothing more (T-JOINT).

        Args:
            form: Names and exact coefficients, as in ``"rest + 45 * emp"``. A name is that of a measure with one sum in the query,
                a published name, or ``count``.
            alias: The name it is published under.

        Returns:
            A new query.

        Raises:
            SqlError: The text is not a linear form.
        """
        from recordwise.plan.sql.grammar import parse_linear

        return self.ask(Combination(alias=alias, terms=parse_linear(form)))

    def ratio(self, of: str, to: str, *, alias: str | None = None) -> "Query":
        """Add the ratio of two counts, sums or combinations.

        Of this query; it costs nothing more (T-RATIO).

        Args:
            of: The numerator: the name of a measure with one sum in the query, a published name or a linear form of such names.
            to: The denominator, which must not be negative for any record.
            alias: The name it is published under; ``OF_per_TO`` unless given.

        Returns:
            A new query.

        Raises:
            SqlError: A text is not a linear form.

        Example:
            >>> import recordwise as rw
            >>> noise = rw.Gaussian(sigma=50)
            >>> rw.query().sum("payann", noise).sum("emp", noise).ratio("payann", "emp", alias="pay")
            <Query: sum_payann, sum_emp, pay by the grand total>
        """
        return self.ask(Ratio.read(of, to, alias=alias))

    def quantile(self, measure: str, *, p: Number, grid: "Grid", rho: Number, alias: str | None = None) -> "Query":
        """Add a quantile.

        The first point of a public grid at or below which at least a share ``p`` of the records lies.

        Args:
            measure: The name of a measure of the schema.
            p: The share, between 0 and 1; 0.5 for the median.
            grid: The public grid.
            rho: What it costs every record, once for all quantiles of the measure with this grid and rho.
            alias: The name it is published under; ``median_MEASURE`` or ``quantile_MEASURE_P`` unless given.

        Returns:
            A new query.
        """
        expect_kind(measure, str, parameter="measure", wanted="the name of a column")
        share = rational(p, parameter="p")
        from recordwise.mechanisms.quantile import TreeQuantile

        tree = TreeQuantile(grid=grid, rho=rho)
        return self.ask(Quantile(alias=alias or "", measure=measure, p=share, mechanism=tree))

    def ask(self, statistic: Statistic) -> "Query":
        """Add a statistic, of recordwise or user-defined.

        What ``count``, ``sum`` and the others do.

        Args:
            statistic: The statistic.

        Returns:
            A new query.
        """
        for mechanism in statistic.mechanisms():
            _check_mechanism(mechanism)
        return replace(self, statistics=(*self.statistics, statistic.among(self.statistics)))

    def draws(self) -> tuple[Drawable, ...]:
        """Return everything that noise is drawn for, each once.

        The statistics, the parts of averages the query does not already have, and one tree for all quantiles of a
        measure with the same grid and rho.
        """
        found: list[Drawable] = []
        for each in sorted(self.statistics, key=lambda statistic: statistic.derived):
            found += [part for part in each.parts(found) if part not in found]
        return tuple(found)

    def confidence_of_parts(self, confidence: float) -> float:
        """Return the highest confidence needed for estimates of drawn parts.

        For intervals of ``confidence``.

        Args:
            confidence: The confidence of the intervals.

        Returns:
            The confidence.
        """
        return max(each.confidence_of_parts(confidence) for each in self.statistics)

    def keys_of(self, level: Level) -> Keys | None:
        """Return the keys of a table; None for a grand total.

        Args:
            level: One table of the query.

        Returns:
            The keys.
        """
        return next((keys for keys in self.key_lists if level.groups and keys.covers(level.groups)), None)

    def selection_of(self, level: Level) -> Selection | None:
        """Return a table's key selection with its budget share.

        None where keys are public.

        Args:
            level: One table of the query.

        Returns:
            The selection.
        """
        keys = self.keys_of(level)
        return None if keys is None or keys.selection is None else keys.selection.shared(level.share)

    def sized_keys(self, level: Level, names: Sequence[str | None]) -> Keys | None:
        """The keys whose sizes a statistic uses in a table; for a grand total the first list that has sizes for it.

        Args:
            level: One table of the query.
            names: The names of the statistic, by which its sizes are found.

        Returns:
            The keys.
        """
        lists = (self.keys_of(level),) if level.groups else self.key_lists
        return next((keys for keys in lists if keys is not None and keys.sizes and keys.sizes.mentions(*names)), None)

    def rest_of(self, level: Level) -> Level | None:
        """The coarser table whose rests a table publishes; None without them.

        Args:
            level: One table of the query.

        Returns:
            The coarser table.
        """
        return None if self.all_other is None else parent_of(level, self.tables())

    def tables(self) -> tuple[Level, ...]:
        """The tables this query publishes, one for each combination of levels."""
        found = levels_of(self.groups, self.axes)
        if not self.table_shares:
            return found
        return tuple(replace(level, share=share) for level, share in zip(found, self.table_shares, strict=True))

    def __repr__(self) -> str:
        asked = ", ".join(each.alias for each in self.statistics) or "no statistic yet"
        by = "; ".join(" x ".join(level.names()) or "the grand total" for level in self.tables())
        return f"<Query: {asked} by {by}{'' if self.condition is None else '; 1 condition'}>"

    def _repr_html_(self) -> str:
        from recordwise.plan.describe import query_html

        return query_html(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            """Raise an error with the method that was probably meant."""
            near = "" if name.startswith("_") else _meant(name)
            raise AttributeError(f"a query has no '{name}'{near}")


ELSEWHERE = {
    "agg": "sum",
    "average": "avg",
    "filter": "where",
    "groupby": "group_by",
    "mean": "avg",
    "nunique": "count_distinct",
    "size": "count",
}
"""What other libraries call our methods."""


def _meant(name: str) -> str:
    methods = [each for each in vars(Query) if not each.startswith("_")]
    return f": did you mean '{ELSEWHERE[name]}'?" if name in ELSEWHERE else near_name(name, methods)


def _check_mechanism(mechanism: object) -> None:
    if (only := getattr(mechanism, "only_for", None)) is not None:
        raise ParameterError(parameter=type(mechanism).__name__, problem=f"is for {only} only")
    from recordwise.mechanisms.base import Mechanism

    if not isinstance(mechanism, Mechanism):
        raise KindError(
            parameter="mechanism",
            problem=f"must be a mechanism such as rw.Gaussian(rho='0.1'), not {kind_text(mechanism)}, which has no policy",
            advice="A class of your own derives from recordwise.mechanisms.Mechanism.",
        )


LONGEST_NAME = 60


def check_name(name: str) -> str:
    """The name, if a file can have it on every system."""
    if not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}", name):
        raise ParameterError(
            parameter="name", problem=f"must be 1 to {LONGEST_NAME} letters, digits, - or _, not {name[:80]!r}"
        )
    return name


def read_queries(given: Iterable[Query | Sequence[Query]]) -> tuple[Query, ...]:
    """Return the queries of a call, given singly or in lists."""
    found = [one for each in given for one in (each if isinstance(each, list | tuple) else (each,))]
    for each in found:
        if not isinstance(each, Query):
            raise ParameterError(
                parameter="queries",
                problem=f"must be queries, not {type(each).__name__}",
                advice="Start with rw.query().",
            )
    return tuple(found)


@own_argument_errors
def query() -> Query:
    """An empty query, to be built up with its methods."""
    return Query()
