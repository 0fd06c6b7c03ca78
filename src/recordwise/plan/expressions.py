"""What a query says about records: fields, predicates and the published rest.

A query can publish several tables: the levels of a code, or geographies that do not nest, each with a share of the budget.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.exact.numbers import Number, positive
from recordwise.policy.columns import ConditionColumn, Value, check_part, literal
from recordwise.policy.conditions import Condition, Null, among, both, compare, either

# Fields, by which records are grouped: a column, a prefix of a code, a part of a date, or a CASE over predicates.


Literal: TypeAlias = Value
"""A constant in a query: text, a truth value or an exact number, in the form that policies, drawing and SQL all compare."""

LONGEST_PREFIX = 64

ALL_OTHER = "all_other"
"""The key column that is true for the published rest of a coarser cell: its records in no listed finer cell."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a measure, by name, which the schema determines."""

    name: str

    def default_name(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first ``length`` characters of a text column, such as NAICS codes."""

    column: str
    length: int

    def __post_init__(self) -> None:
        if isinstance(self.length, bool) or not isinstance(self.length, int) or not 1 <= self.length <= LONGEST_PREFIX:
            raise ParameterError(
                parameter="prefix length", problem=f"must be a whole number from 1 to {LONGEST_PREFIX}"
            )

    def default_name(self) -> str:
        return f"{self.column}{self.length}"


@dataclass(frozen=True, slots=True)
class DatePart:
    """A part of a date as an integer.

    Year, quarter, month, ISO week (``week``) or ISO year (``isoyear``).
    """

    column: str
    part: str

    def __post_init__(self) -> None:
        check_part(self.part)

    def default_name(self) -> str:
        return f"{self.column}_{self.part}"


@dataclass(frozen=True, slots=True)
class Case:
    """Labels by the first true predicate, which sees the unsplit record."""

    branches: tuple[tuple["Predicate", Literal], ...]
    default: Literal

    def __post_init__(self) -> None:
        if not self.branches:
            raise ParameterError(parameter="CASE", problem="needs at least one branch")
        object.__setattr__(self, "branches", tuple((test, literal(label)) for test, label in self.branches))
        object.__setattr__(self, "default", literal(self.default))

    def labels(self) -> tuple[Literal, ...]:
        return (*(label for _, label in self.branches), self.default)


Expression: TypeAlias = Field | Prefix | DatePart | Case


@dataclass(frozen=True, slots=True)
class Group:
    """A group expression and its name in keys and tables."""

    name: str
    expression: Expression


@own_argument_errors
def prefix(column: str, length: int | Iterable[int]) -> Prefix | tuple[Prefix, ...]:
    """Return one prefix, or one for each level.

    For example ``prefix("naics", [2, 3, 4, 5, 6])``.

    Args:
        column: A text column, such as an industry code.
        length: The number of characters to keep, or one number for each level.

    Returns:
        A group for ``group_by``, or the groups for ``levels``.
    """
    if isinstance(length, int):
        return Prefix(column, length)
    return tuple(Prefix(column, each) for each in length)


@own_argument_errors
def year(column: str) -> DatePart:
    """The year of a date: ``group_by(rw.year("opened"))``, published as ``opened_year``.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "year")


@own_argument_errors
def quarter(column: str) -> DatePart:
    """The quarter of a date, 1 to 4.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "quarter")


@own_argument_errors
def month(column: str) -> DatePart:
    """The month of a date, 1 to 12.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "month")


@own_argument_errors
def week(column: str) -> DatePart:
    """Return the ISO 8601 week of a date, 1 to 53.

    It belongs to the ``isoyear``, which around New Year is not the year.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "week")


@own_argument_errors
def isoyear(column: str) -> DatePart:
    """The year that the ISO week of a date belongs to.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "isoyear")


Levels: TypeAlias = Mapping[str, Collection[str]]
"""For levels of hierarchies, the other levels that determine each."""
NO_LEVELS: Levels = {}


def finer(candidate: Expression, wanted: Expression, levels: Levels = NO_LEVELS) -> bool:
    """Whether the value of ``wanted`` is a function of the value of ``candidate`` alone (T-ROLLUP, T-HIERARCHY)."""
    if candidate == wanted:
        return True
    if isinstance(wanted, Field):
        return isinstance(candidate, Field) and candidate.name in levels.get(wanted.name, ())
    if not isinstance(wanted, Prefix):
        return False
    if isinstance(candidate, Field):
        return candidate.name == wanted.column
    return isinstance(candidate, Prefix) and candidate.column == wanted.column and candidate.length >= wanted.length


@dataclass(frozen=True, slots=True)
class Choice:
    """One level of an axis, with its share of the query's budget."""

    group: Group | None
    """None for the total over the axis."""
    share: Fraction


BEST = "best"


@dataclass(frozen=True, slots=True)
class Best:
    """Shares found from public lists and sizes before any charge."""

    complete: bool = False
    """Whether the keys list every cell, so that tables are fitted together."""
    goal: tuple[tuple[Fraction, Fraction], ...] = ()
    """The relative error that cells of at least some size may have, by this size; none for the same error in all classes."""
    found: tuple[tuple[Fraction, ...], ...] | None = None
    """The shares along each axis, once they are found."""
    tables: tuple[Fraction, ...] = ()
    """Those of the tables, where they are not the products of these."""

    def holds(self, axes: tuple[tuple[Choice, ...], ...], tables: tuple[Fraction, ...]) -> bool:
        """Return whether axes and tables have the shares that were found, or wait for them."""
        own = self.found is None or self.found == tuple(tuple(each.share for each in axis) for axis in axes)
        return own and tables == self.tables


@dataclass(frozen=True, slots=True)
class Level:
    """A published table of a query: groups and budget share."""

    groups: tuple[Group, ...]
    share: Fraction

    def names(self) -> tuple[str, ...]:
        return tuple(group.name for group in self.groups)


def as_group(given: "str | Expression | Group") -> Group:
    """Return a group under its name; refuse a CASE, which has none."""
    if isinstance(given, str):
        return Group(given, Field(given))
    if isinstance(given, Case):
        raise ParameterError(parameter="group_by", problem="needs a name for a CASE", advice="Pass Group(name, case).")
    if not isinstance(given, Group | Field | Prefix | DatePart):
        raise ParameterError(
            parameter="groups and levels",
            problem=f"must be columns, prefixes or parts of dates, not {type(given).__name__}",
            advice="A level without a column, (), is the total.",
        )
    return given if isinstance(given, Group) else Group(given.default_name(), given)


def flat(given: Iterable["str | Expression | Group | tuple[Prefix, ...]"]) -> list[Group]:
    """The groups of a call, with tuples of prefixes flattened."""
    groups: list[Group] = []
    for each in given:
        groups.extend(as_group(one) for one in (each if isinstance(each, tuple | list) else (each,)))
    return groups


def choices_of(given: Iterable["str | Expression | Group | tuple[Prefix, ...]"]) -> list[Group | None]:
    """Return the levels of a call, with None for the total."""
    found: list[Group | None] = []
    for each in given:
        found += [None] if isinstance(each, tuple | list) and not each else flat([each])
    return found


def check_axes(axes: Sequence[tuple[Choice, ...]]) -> None:
    """Refuse axes that cross levels of one code with each other."""
    for (one, first), (two, second) in combinations(enumerate(axes), 2):
        pairs = product([each.group for each in first if each.group], [each.group for each in second if each.group])
        for left, right in pairs:
            if one != two and (finer(left.expression, right.expression) or finer(right.expression, left.expression)):
                raise ParameterError(
                    parameter="levels",
                    problem=f"cross '{left.name}' with '{right.name}', which are levels of one code, in one table",
                    advice="Give all levels of a code to one call of levels, for a table each.",
                )


def check_levels(groups: Sequence[Group], choices: Sequence[Group | None]) -> None:
    """Refuse a level listed twice, or by which every table is grouped."""
    for number, each in enumerate(choices):
        if each in choices[:number]:
            name = "the total" if each is None else f"'{each.name}'"
            raise ParameterError(
                parameter="levels",
                problem=f"list {name} twice, so that the same table would be drawn and charged twice",
                advice="Each level is a table. For tables by two columns, group by one and give the levels of the other: "
                "group_by('county').levels((), 'naics').",
            )
        if each in groups and each is not None:
            raise ParameterError(
                parameter="levels",
                problem=f"list '{each.name}', which every table is grouped by already",
                advice="Tables are grouped by a level in addition to group_by: leave it out of one of the two.",
            )


def axis(groups: Sequence[Group | None], share: Sequence[Number] | None) -> tuple[Choice, ...]:
    """Return the choices of one axis; shares must add to 1."""
    if not groups:
        raise ParameterError(parameter="levels", problem="needs at least one level")
    shares = (
        [Fraction(1, len(groups))] * len(groups) if share is None else [positive(s, parameter="share") for s in share]
    )
    if len(shares) != len(groups) or sum(shares) != 1:
        raise ParameterError(
            parameter="share",
            problem=f"must be {len(groups)} numbers that add up to 1",
            advice="Write thirds as '1/3'.",
        )
    return tuple(Choice(group, part) for group, part in zip(groups, shares))


def levels_of(groups: tuple[Group, ...], axes: tuple[tuple[Choice, ...], ...]) -> tuple[Level, ...]:
    """Return every combination of the axes; shares multiply and total 1."""
    levels = []
    for choices in product(*axes):
        share = Fraction(1)
        for choice in choices:
            share *= choice.share
        levels.append(Level((*groups, *(choice.group for choice in choices if choice.group is not None)), share))
    return tuple(levels)


# Linear forms with exact coefficients, such as ``payann - 45 * emp``; ``sql/grammar.py`` reads them.


Linear: TypeAlias = tuple[tuple[str, Fraction], ...]
"""Names with their coefficients, none of them 0, in the order in which they were written."""


def linear_text(form: Iterable[tuple[str, Fraction]]) -> str:
    """The form as text that is read again as the same form."""
    text = ""
    for name, share in form:
        sign = (" - " if share < 0 else " + ") if text else ("-" if share < 0 else "")
        size = abs(share)
        factor = "" if size == 1 else f"{size.numerator} * " if size.denominator == 1 else f"{size} * "
        text += sign + factor + _identifier(name)
    return text


def _identifier(name: str) -> str:
    """Bare where that is the same to every parser, else in quotes."""
    plain = name.isascii() and name.isidentifier() and name == name.lower() and len(name) > 1
    return name if plain else '"' + name.replace('"', '""') + '"'


# Predicates on one record: the closed language of WHERE and CASE. They are three-valued as in SQL, and a record is
# selected where its predicate is true. BETWEEN is read as two comparisons, NOT IN as NOT of IN, and IS NOT NULL as
# NOT of IS NULL, so six forms are enough. Predicates also become conditions of a policy: the records that a query can
# see (T-WHERE). A condition has only two values, so a predicate is converted twice, once for where it is true and
# once for where it is false, and NOT swaps the two.


Operand: TypeAlias = Field | Prefix | DatePart
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Compare:
    """``operand operator literal``."""

    operand: Operand
    operator: str
    literal: Literal

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ParameterError(parameter="operator", problem=f"must be one of {', '.join(OPERATORS)}")
        object.__setattr__(self, "literal", literal(self.literal))


@dataclass(frozen=True, slots=True)
class In:
    """``operand IN (literals)``."""

    operand: Operand
    literals: tuple[Literal, ...]

    def __post_init__(self) -> None:
        if not self.literals:
            raise ParameterError(parameter="IN", problem="needs at least one value")
        object.__setattr__(self, "literals", tuple(map(literal, self.literals)))


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand IS NULL``: possible only for a column declared ``null="category"``."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of the parts."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The negation; unknown stays unknown."""

    part: "Predicate"


Predicate: TypeAlias = Compare | In | IsNull | And | Or | Not


def leaves(predicate: Predicate) -> Iterator[Compare | In | IsNull]:
    """Every comparison inside a predicate."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from leaves(part)
    elif isinstance(predicate, Not):
        yield from leaves(predicate.part)
    else:
        yield predicate


def operand_name(operand: Operand) -> str:
    """The column or measure that an operand refers to."""
    return operand.name if isinstance(operand, Field) else operand.column


def conjunction(left: Predicate | None, right: Predicate) -> Predicate:
    """The conjunction, flattened where possible."""
    if left is None:
        return right
    parts = (left.parts if isinstance(left, And) else (left,)) + (right.parts if isinstance(right, And) else (right,))
    return And(parts)


_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def condition(predicate: Predicate) -> Condition:
    """Return the condition that the predicate is true.

    Exact except for text order, which becomes "is not NULL": more records, never fewer.
    """
    return _where(predicate, true=True)


def _where(predicate: Predicate, *, true: bool) -> Condition:
    if isinstance(predicate, Not):
        return _where(predicate.part, true=not true)
    if isinstance(predicate, And | Or):
        parts = [_where(part, true=true) for part in predicate.parts]
        return both(*parts) if isinstance(predicate, And) == true else either(*parts)
    column = policy_column(predicate.operand)
    if isinstance(predicate, IsNull):
        return Null(column, inside=true)
    if isinstance(predicate, In):
        return among(column, predicate.literals, inside=true)
    return _comparison(column, predicate.operator if true else _OPPOSITE[predicate.operator], predicate.literal)


def _comparison(column: ConditionColumn, operator: str, literal: Literal) -> Condition:
    if operator in ("=", "<>"):
        return among(column, [literal], inside=operator == "=")
    if isinstance(literal, Fraction):
        return compare(column, operator, literal)
    return Null(column, inside=False)


def policy_column(operand: Operand) -> ConditionColumn:
    """Return a column, prefix or date part in the policy language."""
    if isinstance(operand, DatePart):
        return ConditionColumn(operand.column, part=operand.part)
    return (
        ConditionColumn(operand.name) if isinstance(operand, Field) else ConditionColumn(operand.column, operand.length)
    )


# The published rest of a coarser cell: one "all other" cell for its records that are in no listed finer cell
# (T-REST). With ``all_other="publish"`` the tables of a query refine one another. Below every listed cell of a table the
# next finer table has its listed cells and one more, whose records have the key of the coarser cell and no listed key
# of the finer table. Which records those are depends on public keys alone. A record is in at most one cell of each
# table, as without a rest.


PUBLISH = "publish"


def read_all_other(given: str | None) -> str | None:
    """``"publish"``, or None: nothing is published about records in no listed cell."""
    if given not in (None, PUBLISH):
        raise ParameterError(parameter="all_other", problem=f"must be '{PUBLISH}' or left out, not {given!r}")
    return given


def refines(fine: Level, coarse: Level) -> bool:
    """Return whether the finer table's cells determine the coarser table's."""
    return all(any(finer(own.expression, group.expression) for own in fine.groups) for group in coarse.groups)


def parent_of(level: Level, levels: Sequence[Level]) -> Level | None:
    """Return the finest table that a table refines; None if coarsest."""
    above = [each for each in levels if refines(level, each) and not refines(each, level)]
    return next((each for each in above if all(refines(each, other) for other in above)), None)


def chain_problems(levels: Sequence[Level]) -> Iterator[str]:
    """Yield problems with tables that do not all refine one another."""
    for number, one in enumerate(levels):
        for other in levels[:number]:
            if refines(one, other) == refines(other, one):
                names = " and ".join(" x ".join(each.names()) or "the grand total" for each in (other, one))
                yield f"all_other = 'publish' needs tables that refine one another, and of {names} neither refines the other"
    if len(levels) < 2:
        yield "all_other = 'publish' needs at least two levels: the rest is that of a coarser cell"
    if any(ALL_OTHER in level.names() for level in levels):
        yield f"a group is called '{ALL_OTHER}', which is the column that marks a published rest"


def with_rests(listed: pa.Table, level: Level, parent: Level, above: pa.Table) -> pa.Table:
    """Return a table's listed cells, then its "all other" cells.

    One for each cell of the coarser table. A rest has the key of its coarser cell, a code as many characters as
    that has, and NULL where the coarser table has no column.
    """
    columns, count = {}, above.num_rows if parent.groups else 1
    for group in level.groups:
        own = listed.column(group.name).combine_chunks()
        sources = [each for each in parent.groups if finer(group.expression, each.expression)]
        source = max(sources, key=_length, default=None)
        rest = (
            pa.nulls(count, own.type) if source is None else above.column(source.name).combine_chunks().cast(own.type)
        )
        columns[group.name] = pa.chunked_array([own, rest]).combine_chunks()
    flags = np.arange(listed.num_rows + count) >= listed.num_rows
    return pa.table({**columns, ALL_OTHER: flags})


def _length(group: Group) -> int:
    return group.expression.length if isinstance(group.expression, Prefix) else 1 << 30


def listed_cells(cells: pa.Table) -> pa.Table:
    """Return a table's cells without rests and the rest marker."""
    if ALL_OTHER not in cells.column_names:
        return cells
    return cells.filter(pc.invert(cells.column(ALL_OTHER))).drop_columns([ALL_OTHER])


def rest_keys(cells: pa.Table, level: Level, parent: Level) -> pa.Table:
    """Return the coarser cells' keys, in the order of their rests."""
    rests = cells.filter(cells.column(ALL_OTHER))
    columns = {}
    for group in parent.groups:
        own = next(each for each in level.groups if finer(each.expression, group.expression))
        values = rests.column(own.name)
        short = isinstance(group.expression, Prefix)
        columns[group.name] = pc.utf8_slice_codeunits(values, 0, group.expression.length) if short else values  # type: ignore[union-attr]
    return pa.table(columns)
