"""The schema: roles and types of columns, checks of constants, and tuning.

The guarantee, the checks and every query are stated in these roles. A schema describes no values.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from recordwise.errors import (
    KindError,
    ParameterError,
    TuningError,
    expect_kind,
    near_name,
    own_errors_of,
)
from recordwise.exact.numbers import Number, positive
from recordwise.plan.expressions import LONGEST_PREFIX, Linear
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn, Truth, Value
from recordwise.policy.columns import Measure as PolicyMeasure
from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, InBand, Null
from recordwise.policy.constructors import By
from recordwise.policy.policy import Maximum, Policy, Terms

if TYPE_CHECKING:
    from recordwise.plan.keys.hierarchies import Hierarchy

DEFAULT_BOUND_STEPS = 2**53
LARGEST_BOUND_STEPS = 2**62
LARGEST_STEP_PART = 2**53
ColumnType = Literal["text", "integer", "boolean", "date"]
COLUMN_TYPES = ("text", "integer", "boolean", "date")
NullRule = Literal["refuse", "category"]
MissingRule = Literal["refuse", "zero"]
CollapseRule = Literal["sum", "max", "min", "same"]
COLLAPSE_RULES: dict[str, tuple[str, ...]] = {
    "measure": ("sum", "max", "min", "same"),
    "integer": ("max", "min", "same"),
    "date": ("max", "min", "same"),
}
"""What may become of the values in the rows of a unit, by the kind of column; any other can only be the same."""


# How values are written in files whose values are text. What a format reads is stated as one regular expression, the
# same for every engine; everything else is refused, never read as something near.


THOUSANDS = (
    ",",
    ".",
    " ",
    "'",
    "\N{RIGHT SINGLE QUOTATION MARK}",
    "\N{NO-BREAK SPACE}",
    "\N{NARROW NO-BREAK SPACE}",
    "_",
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
LONGEST_SIGN = 12


def literal_pattern(text: str) -> str:
    """Return a regular expression for a literal text, in RE2 and Java."""
    return "".join(f"\\{each}" if each.isascii() and not each.isalnum() and each != " " else each for each in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """How the numbers of a text column are written, such as ``$1,234.50``.

    Groups of thousands have three digits, or there are none. A sign stands before or after the prefix, and blanks around
    the number, the prefix and the suffix do not count.

    Args:
        thousands: The sign between groups of three digits; none unless given.
        decimal: The decimal sign, "." or ",".
        prefix: A text that may stand before the number, such as a currency.
        suffix: A text that may stand after it.
    """

    thousands: str = ""
    decimal: str = "."
    prefix: str = ""
    suffix: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            if not isinstance(getattr(self, each.name), str):
                raise ParameterError(parameter=f"{each.name} of number", problem="must be text")
        if self.decimal not in (".", ","):
            raise ParameterError(parameter="decimal of number", problem="must be '.' or ','")
        if self.thousands and self.thousands not in THOUSANDS:
            raise ParameterError(
                parameter="thousands of number", problem="must be a comma, a point, a blank, an apostrophe or '_'"
            )
        if self.thousands == self.decimal:
            raise ParameterError(parameter="thousands of number", problem="is the decimal sign already")
        for name, sign in (("prefix", self.prefix), ("suffix", self.suffix)):
            if sign and (not sign.isprintable() or len(sign) > LONGEST_SIGN or sign != sign.strip()):
                raise ParameterError(
                    parameter=f"{name} of number", problem=f"must be up to {LONGEST_SIGN} letters without blanks around"
                )
            if re.search(r"[0-9+-]", sign) or (sign and not re.search(r"[^\s.,'_]", sign)):
                raise ParameterError(
                    parameter=f"{name} of number", problem="must hold no digit and no sign, and not only separators"
                )

    def pattern(self) -> str:
        """Return what a number looks like, for RE2 and Java alike."""
        before = f"(?:{literal_pattern(self.prefix)} *)?" if self.prefix else ""
        after = f"(?: *{literal_pattern(self.suffix)})?" if self.suffix else ""
        sign = f"(?:[+-]?{before}|{literal_pattern(self.prefix)} *[+-])" if before else "[+-]?"
        grouped = f"[0-9]{{1,3}}(?:{literal_pattern(self.thousands)}[0-9]{{3}})+|" if self.thousands else ""
        point = literal_pattern(self.decimal)
        return rf"^ *{sign}(?:(?:{grouped}[0-9]+)(?:{point}[0-9]*)?|{point}[0-9]+){after} *\z"

    def removed(self) -> tuple[str, ...]:
        """Return what is taken out of the text before it is read."""
        return tuple(each for each in (self.prefix, self.suffix, self.thousands, " ") if each)


DATE_PARTS = {
    "Y": "([0-9]{4})",
    "m": "([0-9]{1,2})",
    "d": "([0-9]{1,2})",
    "b": "(" + "|".join("".join(f"[{a}{a.upper()}]" for a in month) for month in MONTHS) + ")",
    "H": "(?:[01]?[0-9]|2[0-3])",
    "M": "[0-5]?[0-9]",
    "S": "[0-5]?[0-9]",
}
"""What stands for each part of a date; times are read past."""


@dataclass(frozen=True, slots=True)
class DateFormat:
    """How the dates of a text column are written, such as ``%d.%m.%Y``.

    ``%Y`` has four digits, ``%m`` and ``%d`` one or two (two where digits stand next to them), ``%b`` is an English month in three
    letters; ``%H``, ``%M`` and ``%S`` are read past.
    """

    text: str

    def __post_init__(self) -> None:
        parts = re.findall(r"%(.?)", self.text) if isinstance(self.text, str) else []
        about = "date format"
        if "y" in parts:
            raise ParameterError(
                parameter=about,
                problem="has %y, and two digits do not say the century",
                advice="Write years with four digits into the file and %Y here, or declare the column as text.",
            )
        unknown = [each for each in parts if each not in (*DATE_PARTS, "%")]
        if unknown or not isinstance(self.text, str) or not self.text.isprintable():
            raise ParameterError(parameter=about, problem=f"may hold {', '.join(f'%{each}' for each in DATE_PARTS)}")
        days = sorted(each for each in parts if each in "Ymdb")
        if days not in (["Y", "d", "m"], ["Y", "b", "d"]):
            raise ParameterError(parameter=about, problem="must hold %Y, %m (or %b) and %d once each")

    def _pieces(self) -> list[str]:
        """Return its parts and the texts between them, in order."""
        return re.findall(r"%.|[^%]+", self.text)

    def pattern(self) -> str:
        """Return what a date looks like, for RE2 and Java alike."""
        pieces, found = self._pieces(), ""
        for number, piece in enumerate(pieces):
            if not piece.startswith("%") or piece == "%%":
                found += literal_pattern(piece.replace("%%", "%"))
                continue
            near = [*pieces[max(number - 1, 0) : number], *pieces[number + 1 : number + 2]]
            tight = any(
                (each.startswith("%") and each != "%%") or each[-1:].isdigit() or each[:1].isdigit() for each in near
            )
            part = DATE_PARTS[piece[1]]
            found += part.replace("{1,2}", "{2}").replace("?", "") if tight and piece[1] in "mdMS" else part
        return rf"^ *{found} *\z"

    def groups(self) -> dict[str, int]:
        """Return the number of the group of each part of the day."""
        parts = [piece[1] for piece in self._pieces() if piece.startswith("%") and piece[1] in "Ymdb"]
        return {part: number for number, part in enumerate(parts, 1)}


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A quantity that can be summed, in multiples of ``step``.

    Its values run from 0 to a public ``bound`` of one record. Where ``signed``, they run from ``-bound`` to
    ``bound``, and a record's loss is that of the absolute value. Where it is to ``derive`` from others, no record
    holds it: the schema works out its step, bound and sign from theirs (T-JOINT).

    Args:
        name: The name of the column in the source, or of a derived measure.
        step: The lattice of the values: 1 employee, 0.01 dollars.
        bound: What no record may exceed in absolute value; public, in the measure's own units.
        null: "refuse": a missing value makes the table invalid; "zero": it counts as 0.
        signed: Whether values may be negative.
        derive: The measures it is a linear form of, with their coefficients; empty for a measure that records hold.
        number: How its values are written where they are text; plain digits with the file's decimal sign unless given.
    """

    name: str
    step: Fraction = Fraction(1)
    """The spacing of the values, such as 1 employee or 0.01 dollars."""
    bound: Fraction = Fraction(DEFAULT_BOUND_STEPS)
    """No record may exceed it in absolute value; public, in the measure's own units."""
    null: MissingRule = "refuse"
    """``refuse``: a missing value makes the table invalid. ``zero``: it counts as 0, before anything else looks at the record."""
    signed: bool = False
    """Whether values may be negative, as a profit may."""
    derive: Linear = ()
    """The measures it is a linear form of, with their coefficients; empty for a measure that records hold."""
    number: NumberFormat | None = None
    """How its values are written where they are text."""

    def __post_init__(self) -> None:
        if not isinstance(self.number, NumberFormat | None):
            raise ParameterError(parameter=f"number of '{self.name}'", problem="must be a NumberFormat")
        if self.null not in ("refuse", "zero"):
            raise ParameterError(parameter=f"null of '{self.name}'", problem="must be refuse or zero")
        if not isinstance(self.signed, bool):
            raise ParameterError(parameter=f"signed of '{self.name}'", problem="must be true or false")
        if self.bound_steps > LARGEST_BOUND_STEPS:
            raise ParameterError(parameter=f"bound of '{self.name}'", problem="must not exceed 2^62 steps")
        if self.bound_steps < 1:
            raise ParameterError(parameter=f"bound of '{self.name}'", problem="must be at least one step")
        if max(self.step.numerator, self.step.denominator) > LARGEST_STEP_PART:
            raise ParameterError(
                parameter=f"step of '{self.name}'", problem="must be a ratio of whole numbers up to 2^53"
            )

    @classmethod
    def of(
        cls,
        name: str,
        *,
        step: Number = 1,
        bound: Number | None = None,
        null: MissingRule = "refuse",
        signed: bool = False,
        derive: str | None = None,
        number: NumberFormat | Mapping[str, str] | None = None,
    ) -> "Measure":
        """Read step and bound exactly; the bound is 2^53 steps unless given.

        ``derive="payann - 45 * emp"`` makes it a linear form of other measures of the schema, which gives it step, bound and sign.
        """
        from recordwise.plan.sql.grammar import parse_linear

        if derive is not None:
            if step != 1 or bound is not None or signed or null != "refuse" or number is not None:
                raise ParameterError(
                    parameter=f"measure '{name}'", problem="is derived, so its step, bound and sign are worked out"
                )
            return cls(name=name, derive=parse_linear(derive))
        exact_step = positive(step, parameter=f"step of '{name}'")
        default = exact_step * DEFAULT_BOUND_STEPS
        exact_bound = default if bound is None else positive(bound, parameter=f"bound of '{name}'")
        written = NumberFormat(**number) if isinstance(number, Mapping) else number
        return cls(name=name, step=exact_step, bound=exact_bound, null=null, signed=signed, number=written)

    @property
    def bound_steps(self) -> int:
        """The bound, in steps."""
        return int(self.bound // self.step)


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A conditional column: one that filters and groups may look at.

    Args:
        name: The name of the column in the source.
        type: "text", "integer", "boolean" or "date".
        null: "refuse": a NULL makes the table invalid; "category": NULL is one more value.
        date: How dates are written where they are text, such as "%d.%m.%Y"; ISO, "%Y-%m-%d", unless given.
        trim: Whether blanks around the values of a text column are left out.
    """

    name: str
    type: ColumnType = "text"
    null: NullRule = "refuse"
    """``refuse``: a NULL makes the table invalid. ``category``: NULL is one more value."""
    date: str = ""
    """How dates are written where they are text."""
    trim: bool = False
    """Whether blanks around a text are left out."""

    def __post_init__(self) -> None:
        if self.type not in COLUMN_TYPES:
            raise ParameterError(parameter=f"type of '{self.name}'", problem="must be text, integer, boolean or date")
        if self.date and self.type != "date":
            raise ParameterError(parameter=f"date of '{self.name}'", problem="is for columns of type date")
        if self.date:
            DateFormat(self.date)
        if not isinstance(self.trim, bool) or (self.trim and self.type != "text"):
            raise ParameterError(
                parameter=f"trim of '{self.name}'", problem="is true or false, for columns of type text"
            )
        if self.null not in ("refuse", "category"):
            raise ParameterError(parameter=f"null of '{self.name}'", problem="must be refuse or category")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Unit id, measures, conditional columns and optionally the owning firm.

    An id may be several columns: then their combination is the unit, and what is protected. Such a column may be a
    conditional column as well.
    """

    unit: str | tuple[str, ...]
    measures: tuple[Measure, ...] = ()
    columns: tuple[Column, ...] = ()
    firm: str | None = None
    collapse: tuple[tuple[str, CollapseRule], ...] | None = None
    """Where a unit has several rows: what they become in its one record, column by column. None: one row is one record."""
    hierarchies: "tuple[Hierarchy, ...]" = ()
    """Public lists of codes, whose coarser levels can be used like columns that records do not hold."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", _unit(self.unit))
        object.__setattr__(self, "hierarchies", tuple(self._typed_hierarchy(each) for each in self.hierarchies))
        object.__setattr__(self, "measures", tuple(self._derive(each) for each in self.measures))
        names = self.declared_names()
        if any(not name or not isinstance(name, str) or "\x00" in name for name in names):
            raise ParameterError(parameter="schema", problem="has an empty column name")
        folded = [name.casefold() for name in names]
        doubled = sorted({name for name in names if folded.count(name.casefold()) > 1})
        if doubled:
            raise ParameterError(
                parameter="schema",
                problem=f"gives two roles to {', '.join(doubled)} (names that differ only in case count as one)",
                advice="Predicates and CASE may use a measure directly, so do not also declare it as a column.",
            )
        self._check_collapse()

    def _typed_hierarchy(self, hierarchy: "Hierarchy") -> "Hierarchy":
        """A hierarchy of a column that records hold, in its type."""
        about, held = f"hierarchy '{hierarchy.name}'", {name.casefold() for name in self._declared_columns()}
        own = next((each for each in self.columns if each.name == hierarchy.finest), None)
        if own is None:
            raise ParameterError(
                parameter=about,
                problem=f"has the finest level '{hierarchy.finest}', which is not a declared column of the records",
                advice="Declare it as a column, or name the level after the column that holds the codes.",
            )
        for level in hierarchy.coarser:
            if level.casefold() in held:
                raise ParameterError(
                    parameter=about,
                    problem=f"has the level '{level}', which is also a column of the records",
                    advice="Rename the level, or leave the column out of the schema.",
                )
        return hierarchy.in_record_type(own.type)

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """The columns that together identify a unit."""
        return (self.unit,) if isinstance(self.unit, str) else self.unit

    @property
    def unit_text(self) -> str:
        """The id in words: ``utility``, or ``utility and state``."""
        return " and ".join(self.unit_columns)

    def id_columns(self) -> tuple[str, ...]:
        """Return the columns of the unit's id and the firm's."""
        return (*self.unit_columns, *((self.firm,) if self.firm else ()))

    def _ids_alone(self) -> tuple[str, ...]:
        """Return the columns of ids that are no conditional columns, as parts of an id may be."""
        shared = set(self.column_names()) if len(self.unit_columns) > 1 else set()
        parts = tuple(name for name in self.unit_columns if name not in shared)
        return (*parts, *((self.firm,) if self.firm else ()))

    def _declared_columns(self) -> tuple[str, ...]:
        columns = tuple(each.name for each in self.columns)
        return (*self._ids_alone(), *self.measure_names(), *columns)

    def _check_collapse(self) -> None:
        if self.collapse is None:
            return
        rules = dict(self.collapse)
        object.__setattr__(self, "collapse", tuple(sorted(rules.items())))
        collapsed = [name for name in self.names() if name not in self.unit_columns]
        for name in collapsed:
            if name not in rules:
                raise ParameterError(
                    parameter="collapse",
                    problem=f"has no rule for '{name}'",
                    advice="Every declared measure and column needs one: leave out of the schema what is not used.",
                )
            column = self.column(name)
            allowed = COLLAPSE_RULES.get("measure" if self.measure(name) else column.type if column else "", ("same",))
            if rules[name] not in allowed:
                raise ParameterError(
                    parameter=f"collapse of '{name}'", problem=f"must be {' or '.join(map(repr, allowed))}"
                )
        unknown = sorted(set(rules) - set(collapsed))
        if unknown:
            why = "is part of the id" if unknown[0] in self.unit_columns else "is not declared"
            raise ParameterError(parameter="collapse", problem=f"has a rule for '{unknown[0]}', which {why}")

    @classmethod
    def of(
        cls,
        *,
        unit: str | Sequence[str],
        measures: Mapping[str, "Number | Measure"] | None = None,
        columns: Mapping[str, "ColumnType | Column"] | None = None,
        firm: str | None = None,
        collapse: Mapping[str, CollapseRule] | None = None,
        hierarchies: "Sequence[Hierarchy]" = (),
    ) -> "Schema":
        """Return a schema from steps of measures and types of columns."""
        names = {
            "measures": "{'NAME': 1}, with the step of each",
            "columns": "{'NAME': 'text'}",
            "collapse": "{'NAME': 'sum'}",
        }
        for parameter, given in (("measures", measures), ("columns", columns), ("collapse", collapse)):
            if given is not None:
                expect_kind(given, Mapping, parameter=parameter, wanted=f"a mapping such as {names[parameter]}")
        if firm is not None:
            expect_kind(firm, str, parameter="firm", wanted="the name of a column")
        if hierarchies:
            from recordwise.plan.keys.hierarchies import Hierarchy
        for each in hierarchies:
            expect_kind(each, Hierarchy, parameter="hierarchies", wanted="a list of Hierarchy")
        return cls(
            unit=_unit(unit),
            measures=tuple(_measure(name, given) for name, given in (measures or {}).items()),
            columns=tuple(_column(name, given) for name, given in (columns or {}).items()),
            firm=firm,
            collapse=None if collapse is None else tuple(collapse.items()),
            hierarchies=tuple(hierarchies),
        )

    def _derive(self, measure: Measure) -> Measure:
        """Return a derived measure with its step, bound and sign."""
        if not measure.derive:
            return measure
        held = {each.name: each for each in self.measures if not each.derive}
        unknown = [name for name, _ in measure.derive if name not in held]
        if unknown:
            raise ParameterError(
                parameter=f"measure '{measure.name}'",
                problem=f"is derived from '{unknown[0]}', which is not a measure that records hold",
                advice="Derive it from measures with a step of their own.",
            )
        form = {_policy_measure(held[name]): share for name, share in measure.derive}
        made = PolicyMeasure.linear(measure.name, form)
        bound = sum((abs(share) * held[name].bound for name, share in measure.derive), Fraction(0))
        if bound // made.step > LARGEST_BOUND_STEPS:
            raise ParameterError(
                parameter=f"measure '{measure.name}'",
                problem="can be more than 2^62 of its steps",
                advice=f"Give lower bounds to {', '.join(name for name, _ in measure.derive)}.",
            )
        return replace(measure, step=made.step, bound=bound, signed=made.signed)

    def names(self) -> tuple[str, ...]:
        """Return the record columns: ids, conditional columns, measures not derived."""
        held = tuple(measure.name for measure in self.record_measures())
        return (*self._ids_alone(), *held, *self.column_names())

    def declared_names(self) -> tuple[str, ...]:
        """Return every declared name, including derived measures and coarser levels."""
        return (*self._declared_columns(), *self.coarser_names())

    def record_measures(self) -> tuple[Measure, ...]:
        """The measures that records hold."""
        return tuple(measure for measure in self.measures if not measure.derive)

    def measure_names(self) -> tuple[str, ...]:
        return tuple(measure.name for measure in self.measures)

    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def coarser_names(self) -> tuple[str, ...]:
        """The coarser levels of hierarchies, which no record holds."""
        return tuple(level for each in self.hierarchies for level in each.coarser)

    def hierarchy(self, name: str) -> "Hierarchy | None":
        """The hierarchy that a column or a coarser level belongs to."""
        return next((each for each in self.hierarchies if name in each.levels), None)

    def rule(self, name: str) -> CollapseRule | None:
        """What becomes of a column where a unit has several rows."""
        return dict(self.collapse or ()).get(name)

    def measure(self, name: str) -> Measure | None:
        return next((measure for measure in self.measures if measure.name == name), None)

    def column(self, name: str) -> Column | None:
        """Return a conditional column, or a coarser level as a nullable one."""
        found = next((column for column in self.columns if column.name == name), None)
        listed = None if found is not None else self.hierarchy(name)
        return found if listed is None else Column(name=name, type=listed.type_of(name), null="category")


def _unit(given: Any) -> str | tuple[str, ...]:
    """Return an id of one column as its name, one of several as their names."""
    if isinstance(given, str):
        return given
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, str) for each in given):
        raise KindError(
            parameter="unit", problem="must be the name of a column, or a list of names that identify a record together"
        )
    if len({each.casefold() for each in given}) < len(given):
        raise ParameterError(parameter="unit", problem="names a column twice")
    return given[0] if len(given) == 1 else tuple(given)


def _measure(name: str, given: "Number | Measure") -> Measure:
    if not isinstance(given, Measure):
        return Measure.of(name, step=given)
    if given.name != name:
        raise ParameterError(parameter=f"measure '{name}'", problem=f"is declared under another name, '{given.name}'")
    return given


def _column(name: str, given: "ColumnType | Column") -> Column:
    if not isinstance(given, Column):
        return Column(name=name, type=given)
    if given.name != name:
        raise ParameterError(parameter=f"column '{name}'", problem=f"is declared under another name, '{given.name}'")
    return given


def policy_measure(name: str, schema: Schema) -> PolicyMeasure:
    """A measure of the schema as the policy language represents it."""
    declared = schema.measure(name)
    if declared is None:
        return PolicyMeasure(name)
    if not declared.derive:
        return _policy_measure(declared)
    return PolicyMeasure.linear(name, {policy_measure(base, schema): share for base, share in declared.derive})


@lru_cache(maxsize=1024)
def _policy_measure(declared: Measure) -> PolicyMeasure:
    return PolicyMeasure(declared.name, declared.step, declared.signed)


# Does a constant fit the declared type of the column it is compared with? One rule for all. A policy compares only
# values of the same type, while an engine would cast one side; where they could disagree, the plan is refused
# (T-TYPES).


LEAST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1


def fits(value: Value, kind: str) -> bool:
    """Return whether a constant is of a column's type.

    A number need not be an integer: an integer may be compared with 2.5. No constant is a date: a date is
    compared by its parts.
    """
    if kind == "date":
        return False
    if kind == "text":
        return isinstance(value, str) and is_plain_text(value)
    return isinstance(value, Truth if kind == "boolean" else Fraction)


def is_value(value: Value, kind: str) -> bool:
    """Whether a column of this type can hold the constant."""
    if kind != "integer":
        return fits(value, kind)
    return isinstance(value, Fraction) and value.denominator == 1 and LEAST_INTEGER <= value <= LARGEST_INTEGER


def is_plain_text(text: str) -> bool:
    """Return whether text has no NUL or unpaired surrogate."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def prefix_problems(name: str, length: int | None, kind: str) -> Iterator[str]:
    """Yield problems of a prefix: not text, or too long."""
    if length is not None and kind != "text":
        yield f"a prefix of '{name}' needs a column of type text"
    if length is not None and length > LONGEST_PREFIX:
        yield f"a prefix of '{name}' is longer than {LONGEST_PREFIX} characters"


def part_problems(name: str, part: str, kind: str) -> Iterator[str]:
    """A part is of a date."""
    if part and kind != "date":
        yield f"the {part} of '{name}' needs a column of type date"


def threshold_problems(at: Any, schema: Schema) -> list[str]:
    """Return problems of a threshold, or of several."""
    if isinstance(at, Mapping):
        unknown = [name for name in map(_measure_name, at) if schema.measure(name) is None]
        known = schema.measure_names()
        found = [f"'{name}' is split but is not a measure{near_name(name, known)}" for name in unknown]
        return found + [problem for each in at.values() for problem in threshold_problems(each, schema)]
    return list(_by_problems(at, schema)) if isinstance(at, By) else []


def _measure_name(key: PolicyMeasure | str) -> str:
    return key.name if isinstance(key, PolicyMeasure) else key


def _by_problems(at: By, schema: Schema) -> Iterator[str]:
    name, length = at.column.name, at.column.length
    declared = schema.column(name)
    if declared is None:
        yield f"thresholds differ by '{name}', which is not a conditional column{near_name(name, schema.column_names())}"
        return
    yield from prefix_problems(name, length, declared.type)
    if at.column.part:
        yield f"thresholds differ by a part of '{name}'; thresholds by dates are not supported"
    elif not all(is_value(value, declared.type) for value, _ in at.values):
        yield f"thresholds by '{name}' name a group that is not a value of type {declared.type}"
    elif length is not None and any(isinstance(value, str) and len(value) > length for value, _ in at.values):
        yield f"thresholds by the first {length} characters of '{name}' name a group longer than that"


def policy_problems(policy: Policy, schema: Schema) -> list[str]:
    """Conditions of a policy that do not fit the columns they name."""
    tables: dict[str, BandTable] = {}
    parts = (policy.rho, policy.delta_terms)
    found = [problem for terms in parts for problem in _terms_problems(terms, schema, tables)]
    for table in tables.values():
        for column, held in zip(table.columns, table.values):
            found += _column_problems(column, [value for value in held if value is not None], schema)
    return list(dict.fromkeys(found))


def _terms_problems(terms: Terms, schema: Schema, tables: dict[str, BandTable]) -> Iterator[str]:
    for condition in dict.fromkeys(condition for condition, _ in terms):
        yield from condition_problems(condition, schema, tables)
    for atom in (atom for _, atom in terms if isinstance(atom, Maximum)):
        for policy in atom.policies:
            yield from policy_problems(policy, schema)


def condition_problems(condition: Condition, schema: Schema, tables: dict[str, BandTable]) -> Iterator[str]:
    """Yield problems of a condition.

    Unknown columns, prefixes of columns that are not text, and constants of the wrong type. Tables of bands,
    which are in many conditions, are collected, to be checked once.
    """
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from condition_problems(part, schema, tables)
        case Among(column, values, _):
            yield from _column_problems(column, values, schema)
        case Compare(column, _, bound):
            yield from _column_problems(column, (bound,), schema)
        case Null(column, _):
            yield from _column_problems(column, (), schema)
        case InBand(table, _):
            tables[table.digest] = table


def _column_problems(column: ConditionColumn, values: Iterable[Value], schema: Schema) -> Iterator[str]:
    kind = kind_of(column.name, schema)
    if kind is None:
        yield f"'{column.name}' is in a condition of the policy but is neither a conditional column nor a measure"
        return
    if kind == DERIVED:
        yield derived_problem(column.name)
        return
    yield from prefix_problems(column.name, column.length, kind)
    yield from part_problems(column.name, column.part, kind)
    if column.part:
        kind = "number"
    if not all(fits(value, kind) for value in values):
        yield f"a condition of the policy compares '{column.name}' with a constant that is not of type {kind}"


DERIVED = "derived"


def kind_of(name: str, schema: Schema) -> str | None:
    """Return the type of a column's or measure's values, or None."""
    column, measure = schema.column(name), schema.measure(name)
    if measure is not None and measure.derive:
        return DERIVED
    return column.type if column else "number" if measure else None


def derived_problem(name: str) -> str:
    """Why a derived measure cannot be in a condition."""
    return f"'{name}' is a derived measure, which conditions cannot use; use the measures it comes from"


# Tuning: which records the parameters of a plan were chosen with, and when that needs a reason before anything is
# published.


TUNINGS = ("public", "synthetic", "past", "confidential")
"""The data with which the parameters of a plan may have been chosen, most sensitive last."""
NO_LOOK = ("public", "synthetic")
"""What records must be declared to be so that seeing numbers computed from them is no look; those of the past are confidential."""
SAY_TUNING = (
    "Open the session with tuned_on='public', 'synthetic', 'past' or 'confidential': the data with which its "
    "mechanisms, thresholds and keys were chosen."
)
ACCEPT_TUNING = (
    "Tune on public or synthetic data, or give a reason as tuning_reason, in the session or the plan file (tuning_reason = "
    '"only codes were corrected"); it is published with the release.'
)
LOOKED = "the confidential records were viewed before this release ({looks})"


def check_tuned_on(tuned_on: str | None) -> None:
    """Refuse a word that is not one of ``TUNINGS``."""
    if tuned_on is not None and tuned_on not in TUNINGS:
        raise ParameterError(parameter="tuned_on", problem=f"must be one of {', '.join(TUNINGS)}")


def check_tuning(
    tuned_on: str | None, tuning_reason: str | None, *, looks: str = "", hierarchies: "Sequence[Hierarchy]" = ()
) -> None:
    """Check that a release states what its plan was tuned on.

    And a reason if that was the confidential table. ``looks`` describes the looks that the ledger notes; empty if
    there are none.
    """
    if tuned_on is None:
        raise TuningError(problem="tuned_on is not stated", advice=SAY_TUNING)
    tuned = "this plan was tuned on the confidential table" if tuned_on == "confidential" else None
    private = [each.name for each in hierarchies if not each.is_public]
    listed = f"the source of the hierarchy '{private[0]}' does not begin with 'public'" if private else None
    problem = tuned or listed or (LOOKED.format(looks=looks) if looks else None)
    if problem and not (isinstance(tuning_reason, str) and tuning_reason.strip()):
        stated = f"{problem}, so its parameters may themselves reveal something about records"
        raise TuningError(problem=stated, advice=ACCEPT_TUNING)
