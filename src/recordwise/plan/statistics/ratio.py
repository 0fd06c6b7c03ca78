"""Combinations, ratios and averages of the noisy answers of a query."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from recordwise.errors import ParameterError, SqlError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.expressions import Linear, linear_text
from recordwise.plan.schema import Schema, policy_measure
from recordwise.plan.statistics.base import (
    COUNT,
    NOT_UNBIASED,
    SUM,
    Answer,
    Chosen,
    Drawable,
    EntryReader,
    Form,
    NamedMechanisms,
    NoisyColumn,
    Side,
    Statistic,
    mechanism_entry,
    mechanism_problems,
    outward,
    ratio_interval,
)
from recordwise.plan.statistics.plain import Count, Sum
from recordwise.policy.columns import Measure, common_step

if TYPE_CHECKING:
    from sqlglot import exp

    from recordwise.mechanisms.base import Mechanism
    from recordwise.plan.file.node import Node


# Linear combinations of a query's noisy counts and sums: the value, its standard deviation and its interval
# (T-JOINT).


EXACT = 2.0**62
RECORDS = Measure("number of records")


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination(Statistic):
    """A linear combination of counts and sums the query draws anyway."""

    terms: Linear

    word: ClassVar[str] = "combine"
    means: ClassVar[str] = "a linear combination of other columns of the table"
    names_itself: ClassVar[bool] = True
    derived: ClassVar[bool] = True

    def default_alias(self) -> str:
        raise ParameterError(parameter="alias", problem="is needed: a combination has no name of its own")

    def mechanisms(self) -> tuple[Any, ...]:
        return ()

    def problems(self, schema: Schema) -> list[str]:
        return []

    def missing(self, drawn: Sequence[Drawable], schema: Schema) -> list[str]:
        return form_problems(self.alias, self.terms, drawn)

    def parts(self, drawn: Sequence[Drawable]) -> tuple[Drawable, ...]:
        """Return the combined statistics in order; empty if one is missing."""
        return drawn_terms(self.terms, drawn)

    def forms(self, drawn: Sequence[Drawable]) -> tuple[Form, Form]:
        return drawn_form(self.terms, drawn), ()

    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        return LinearCombination.of(self.terms, answers).column(self.alias, confidence)

    def confidence_of_parts(self, confidence: float) -> float:
        return 1 - (1 - confidence) / len(self.terms)

    def description(self) -> dict[str, Any]:
        return Statistic.description(self) | {"combines": linear_text(self.terms)}

    def entry(self) -> Any:
        return linear_text(self.terms)

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> Statistic | None:
        """``combine.payann = "rest + 45 * emp"``."""
        from recordwise.plan.sql.grammar import parse_linear

        text = node.text()
        return None if text is None else node.attempt(lambda: cls(alias=column, terms=parse_linear(text)))

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        """Read ``SUM(rest) + 45 * SUM(emp) AS payann``, of selected sums."""
        from sqlglot import exp

        from recordwise.plan.sql.grammar import linear

        node = without_parentheses(node)
        if type(node) not in (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Div) or is_ratio(node):
            return None
        if alias is None:
            raise SqlError(construct="a combination of aggregates without a name", advice="Add AS name.")
        return cls(alias=alias, terms=linear(node, aggregate_name))


def without_parentheses(node: "exp.Expr") -> "exp.Expr":
    """Without the parentheses around it."""
    from sqlglot import exp

    from recordwise.plan.sql.grammar import only

    while type(node) is exp.Paren:
        only(node, "this")
        node = node.this
    return node


def is_ratio(node: "exp.Expr") -> bool:
    """Whether an expression divides by an aggregate."""
    from sqlglot import exp

    return type(node) is exp.Div and node.args["expression"].find(exp.AggFunc) is not None


def aggregate_name(node: "exp.Expr") -> str:
    """Return the linear-form name of a SUM or COUNT(*)."""
    from sqlglot import exp

    from recordwise.plan.sql.grammar import aggregated_column, only

    if type(node) is exp.Count and type(node.this) is exp.Star:
        only(node, "this", "big_int")
        return COUNT
    if type(node) is not exp.Sum:
        raise SqlError(
            construct=f"{type(node).key.upper()} in an expression of aggregates", advice="Use SUM(column) and COUNT(*)."
        )
    only(node, "this")
    return aggregated_column(node.this)


def candidates(name: str, drawn: Sequence[Drawable]) -> list[Drawable]:
    """Return the counts and sums a name can mean."""
    totals = [each for each in drawn if each.contribution in (SUM, COUNT)]
    published = [each for each in totals if each.alias == name]
    summed = [each for each in totals if isinstance(each, Sum) and each.measure == name]
    counted = [each for each in totals if isinstance(each, Count)] if name == COUNT else []
    if published and (published[0] in summed + counted or not summed + counted):
        return published
    return published + summed + counted


def name_problems(alias: str, name: str, drawn: Sequence[Drawable]) -> list[str]:
    """Return problems with a name: no matching statistic, or several."""
    found = candidates(name, drawn)
    if len(found) == 1:
        return []
    if found:
        listed = ", ".join(f"'{each.alias}'" for each in found)
        return [f"'{alias}' uses '{name}', which can be any of {listed}: give them other names and use one of those"]
    return [f"'{alias}' uses '{name}': ask for its sum in the same query, or correct the name"]


def form_problems(alias: str, terms: Linear, drawn: Sequence[Drawable]) -> list[str]:
    """Return why a linear form does not combine the query's statistics."""
    found = [problem for name, _ in terms for problem in name_problems(alias, name, drawn)]
    parts = drawn_terms(terms, drawn)
    if not found and len(set(parts)) < len(parts):
        found = [f"'{alias}' names one statistic twice, by its measure and by its published name"]
    return found


def drawn_terms(terms: Linear, drawn: Sequence[Drawable]) -> tuple[Drawable, ...]:
    found = [candidates(name, drawn) for name, _ in terms]
    return tuple(each[0] for each in found) if all(len(each) == 1 for each in found) else ()


def drawn_form(terms: Linear, drawn: Sequence[Drawable]) -> Form:
    """The same with the coefficients."""
    return tuple((part, share) for part, (_, share) in zip(drawn_terms(terms, drawn), terms))


def is_nonnegative(terms: Linear, drawn: Sequence[Drawable], schema: Schema) -> bool:
    """Return whether the exact combination is never below 0.

    From what its sums are sums of: ``rest + 45 * emp`` is if ``rest`` is ``payann - 45 * emp``.
    """
    form: dict[Measure, Fraction] = {}
    for (_, share), part in zip(terms, drawn_terms(terms, drawn)):
        measure = policy_measure(part.measure, schema) if isinstance(part, Sum) else RECORDS
        for base, own in measure.derived or ((measure, Fraction(1)),):
            form[base] = form.get(base, Fraction(0)) + share * own
    return all(share == 0 or (share > 0 and not base.signed) for base, share in form.items())


@dataclass(frozen=True, slots=True)
class LinearCombination:
    """A linear combination of noisy answers, drawn independently of each other."""

    terms: tuple[tuple[Answer, Fraction], ...]

    @classmethod
    def of(cls, terms: Linear, answers: Sequence[Answer]) -> "LinearCombination":
        """The same answer under two names counts once, with both coefficients."""
        shares: dict[int, tuple[Answer, Fraction]] = {}
        for (_, share), answer in zip(terms, answers, strict=True):
            _, before = shares.get(id(answer), (answer, Fraction(0)))
            shares[id(answer)] = (answer, before + share)
        return cls(tuple(shares.values()))

    def column(self, alias: str, confidence: float) -> NoisyColumn:
        """Value, standard deviation and interval of each cell."""
        parts = [(answer.column("", confidence), share) for answer, share in self.terms]
        low, high = self.interval(confidence)
        spread = _weighted_sum(
            [(part.variance_unbiased, share**2) for part, share in parts if part.variance_unbiased is not None]
        )
        error = np.sqrt(_weighted_sum([(part.standard_error**2, share**2) for part, share in parts]))
        value = _integers_or_floats([(part.value, share) for part, share in parts])
        return NoisyColumn(alias=alias, value=value, standard_error=error, low=low, high=high, variance_unbiased=spread)

    def interval(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return ends that contain the exact combination.

        Gaussian noises reach as far as the root of the sum of squares of their reaches (T-JOINT); every other answer,
        and all Gaussian ones together, gets an equal part of the chance to miss.
        """
        added = [not np.isnan(answer.reach(confidence)).any() for answer, _ in self.terms]
        together = sum(added) > 1
        gaussian = [term for term, each in zip(self.terms, added) if each and together]
        others = [term for term, each in zip(self.terms, added) if not (each and together)]
        each = 1 - (1 - confidence) / (len(others) + bool(gaussian))
        low, high = self._together(gaussian, each)
        for answer, share in others:
            found = answer.column("", each)
            ends = (float(share) * found.low, float(share) * found.high)
            low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        size = _weighted_sum(
            [
                (np.abs(np.asarray(answer.column("", each).value, np.float64)), abs(share))
                for answer, share in self.terms
            ]
        )
        return outward(low, high, size)

    def _together(
        self, gaussian: Sequence[tuple[Answer, Fraction]], confidence: float
    ) -> tuple[FloatArray, FloatArray]:
        if not gaussian:
            return np.zeros(self.terms[0][0].cells), np.zeros(self.terms[0][0].cells)
        value = _weighted_sum(
            [(np.asarray(answer.column("", confidence).value, np.float64), share) for answer, share in gaussian]
        )
        half = np.sqrt(_weighted_sum([(answer.reach(confidence) ** 2, share**2) for answer, share in gaussian]))
        return value - half, value + half

    def side(self, confidence: float) -> Side:
        """Return what a ratio needs to know about this combination."""
        if len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0].side(confidence)
        curve = self.terms[0][0].curve() if len(self.terms) == 1 and self.terms[0][1] > 0 else None
        value = _weighted_sum(
            [(np.asarray(answer.column("", confidence).value, np.float64), share) for answer, share in self.terms]
        )
        low, high = self.interval((1 + confidence) / 2)
        reach = np.sqrt(_weighted_sum([(answer.reach(confidence) ** 2, share**2) for answer, share in self.terms]))
        if curve is not None:
            curve = replace(curve, back=_scale(curve.back, float(self.terms[0][1])))
        return Side(value=value, low=low, high=high, reach=reach, curve=curve)

    def shared_squares(self, other: "LinearCombination", of: str, confidence: float) -> FloatArray:
        """Return the common part of two combinations.

        The sum, over the answers that both contain, of both coefficients times the square of the reach or of the
        deviation.
        """
        theirs = {id(answer): share for answer, share in other.terms}
        total = np.zeros(self.terms[0][0].cells)
        for answer, share in self.terms:
            if id(answer) in theirs:
                width = answer.reach(confidence) if of == "reach" else answer.column("", confidence).standard_error
                total += float(share * theirs[id(answer)]) * width**2
        return total

    def is_apart(self, other: "LinearCombination") -> bool:
        """Whether they have no answer in common."""
        return {id(answer) for answer, _ in self.terms}.isdisjoint(id(answer) for answer, _ in other.terms)

    def step(self) -> float:
        """The step of the exact combination."""
        steps = [abs(share) * answer.parts[0].noisy.step for answer, share in self.terms]
        return float(common_step(steps))


def _scale(back: Callable[[FloatArray], FloatArray], share: float) -> Callable[[FloatArray], FloatArray]:
    return lambda points: share * back(points)


def _weighted_sum(parts: Sequence[tuple[Any, Fraction]]) -> Any:
    return sum((float(share) * part for part, share in parts[1:]), float(parts[0][1]) * parts[0][0])


def _integers_or_floats(parts: Sequence[tuple[Any, Fraction]]) -> Any:
    """Return integers if all terms are and 64 bits suffice, else floats."""
    whole = all(part.dtype == np.int64 and share.denominator == 1 for part, share in parts)
    size = _weighted_sum([(np.abs(part.astype(np.float64)), abs(share)) for part, share in parts])
    if not whole or (size >= EXACT).any():
        return _weighted_sum([(np.asarray(part, np.float64), share) for part, share in parts])
    return sum((part * int(share) for part, share in parts[1:]), parts[0][0] * int(parts[0][1]))


# Ratios of two counts, sums or combinations that a query draws, such as pay for each employee (T-RATIO).


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Statistic):
    """One count, sum or combination over another, at no extra cost."""

    top: Linear
    bottom: Linear
    """Never negative: each record adds 0 or more to it."""

    word: ClassVar[str] = "ratio"
    means: ClassVar[str] = "a ratio of other columns of the table"
    names_itself: ClassVar[bool] = True
    derived: ClassVar[bool] = True

    @classmethod
    def read(cls, of: str, to: str, *, alias: str | None) -> "Ratio":
        """From two names or linear forms as text."""
        from recordwise.plan.sql.grammar import parse_linear

        top, bottom = parse_linear(of), parse_linear(to)
        return cls(alias=alias or "", top=top, bottom=bottom)

    def default_alias(self) -> str:
        names = [form[0][0] for form in (self.top, self.bottom) if len(form) == 1 and form[0][1] == 1]
        if len(names) < 2:
            raise ParameterError(parameter="alias", problem="is needed for a ratio of linear forms")
        return "_per_".join(names)

    def mechanisms(self) -> tuple[Any, ...]:
        return ()

    def problems(self, schema: Schema) -> list[str]:
        return []

    def among(self, others: Sequence[Statistic]) -> Statistic:
        """Return the ratio with its named combinations written out."""
        known = {each.alias: each.terms for each in others if isinstance(each, Combination)}
        return replace(self, top=_expand(self.top, known), bottom=_expand(self.bottom, known))

    def missing(self, drawn: Sequence[Drawable], schema: Schema) -> list[str]:
        found = [each for form in (self.top, self.bottom) for each in form_problems(self.alias, form, drawn)]
        if not found and not is_nonnegative(self.bottom, drawn, schema):
            found = [f"'{self.alias}' divides by '{linear_text(self.bottom)}', which may be negative"]
        return found

    def parts(self, drawn: Sequence[Drawable]) -> tuple[Drawable, ...]:
        return drawn_terms(self.top + self.bottom, drawn)

    def forms(self, drawn: Sequence[Drawable]) -> tuple[Form, Form]:
        return drawn_form(self.top, drawn), drawn_form(self.bottom, drawn)

    def confidence_of_parts(self, confidence: float) -> float:
        return 1 - (1 - confidence) / (2 * max(len(self.top), len(self.bottom)))

    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        top, bottom = answers[: len(self.top)], answers[len(self.top) :]
        return ratio(
            self.alias, LinearCombination.of(self.top, top), LinearCombination.of(self.bottom, bottom), confidence
        )

    def description(self) -> dict[str, Any]:
        forms = {"of": linear_text(self.top), "to": linear_text(self.bottom)}
        return Statistic.description(self) | forms | {"unbiased": False}

    def entry(self) -> Any:
        return {"of": linear_text(self.top), "to": linear_text(self.bottom)}

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> Statistic | None:
        """``ratio.pay = { of = "payann", to = "emp" }``."""
        entries = node.table("of", "to", needed=("of", "to"))
        of, to = (entries[name].text() if name in entries else None for name in ("of", "to"))
        return None if of is None or to is None else node.attempt(lambda: cls.read(of, to, alias=column))

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        """Read ``SUM(payann) / SUM(emp) AS pay``, of selected sums."""
        from recordwise.plan.sql.grammar import linear, only

        node = without_parentheses(node)
        if not is_ratio(node):
            return None
        only(node, "this", "expression", "typed", "safe")
        if alias is None:
            raise SqlError(construct="a ratio of aggregates without a name", advice="Add AS name.")
        top, bottom = (linear(each, aggregate_name) for each in (node.this, node.args["expression"]))
        return cls(alias=alias, top=top, bottom=bottom)


def _expand(form: Linear, known: dict[str, Linear]) -> Linear:
    if len(form) != 1 or form[0][0] not in known:
        return form
    ((name, share),) = form
    return tuple((part, share * own) for part, own in known[name])


def ratio(alias: str, top: LinearCombination, bottom: LinearCombination, confidence: float) -> NoisyColumn:
    """Return the ratio with its interval in every cell (T-RATIO).

    No value and no error where the noisy denominator is not positive.
    """
    above, below = top.column("", confidence), bottom.column("", confidence)
    known = below.value > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = np.where(known, above.value / below.value, np.nan)
        joint = 2 * value * top.shared_squares(bottom, "deviation", confidence)
        spread = above.standard_error**2 + value**2 * below.standard_error**2 - joint
        error = np.sqrt(np.maximum(spread, 0.0)) / below.value
    sides = top.side(confidence), bottom.side(confidence)
    shared = top.shared_squares(bottom, "reach", confidence)
    of_curves = confidence if top.is_apart(bottom) else None
    low, high = ratio_interval(*sides, least=bottom.step(), shared=shared, confidence=of_curves)
    flag = f"{NOT_UNBIASED}: a ratio of two noisy numbers"
    return NoisyColumn(alias=alias, value=value, standard_error=error, low=low, high=high, flag=flag)


ONE = Fraction(1)


def plain_ratio(alias: str, top: Answer, bottom: Answer, confidence: float) -> NoisyColumn:
    """The ratio of two answers as they are."""
    return ratio(
        alias, LinearCombination.of((("", ONE),), (top,)), LinearCombination.of((("", ONE),), (bottom,)), confidence
    )


# Averages: the ratio of a noisy sum to a noisy count, each reused where the query already has it (T-AVG).


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAndCount:
    """The two mechanisms of an average in SQL text.

    ``mechanisms={"emp": SumAndCount(sum=..., count=...)}``.

    Args:
        sum: The mechanism of the sum.
        count: The mechanism of the count; without it any count of the statement is used.
    """

    sum: "Mechanism"
    count: "Mechanism | None" = None

    only_for: ClassVar[str] = "averages"
    """What takes it; anything else refuses it by this word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Average(Statistic):
    """The average of a measure (T-AVG).

    Both parts are paid for ([S] prints the sum alone), unless the query already has them.
    """

    measure: str
    sum: "Mechanism"
    count: "Mechanism | None"

    word: ClassVar[str] = "avg"
    means: ClassVar[str] = "the average of {of}"
    sql_key: ClassVar[str | None] = "sum"
    derived: ClassVar[bool] = True

    def default_alias(self) -> str:
        return f"avg_{self.measure}"

    @property
    def of(self) -> str | None:
        return self.measure

    def mechanisms(self) -> tuple[Any, ...]:
        return (self.sum,) if self.count is None else (self.sum, self.count)

    def parts(self, drawn: Sequence[Drawable]) -> tuple[Drawable, ...]:
        """Return the sum and count to divide; empty without a count."""
        sums = [s for s in drawn if isinstance(s, Sum) and s.measure == self.measure and s.mechanism == self.sum]
        counts = [s for s in drawn if isinstance(s, Count) and self.count in (None, s.mechanism)]
        if self.count is not None and not counts:
            counts = [Count(alias=f"{self.alias}_count", mechanism=self.count)]
        if not counts:
            return ()
        own_sum = Sum(alias=f"{self.alias}_sum", measure=self.measure, mechanism=self.sum)
        return (sums[0] if sums else own_sum), counts[0]

    def with_mechanisms(self, chosen: Chosen, drawn: Sequence[Drawable]) -> Statistic:
        of_sum, of_count = self.parts(drawn)
        count = None if self.count is None else chosen(of_count)
        return replace(self, sum=chosen(of_sum), count=count)

    def forms(self, drawn: Sequence[Drawable]) -> tuple[Form, Form]:
        of_sum, of_count = self.parts(drawn)
        return ((of_sum, ONE),), ((of_count, ONE),)

    def missing(self, drawn: Sequence[Drawable], schema: Schema) -> list[str]:
        if self.parts(drawn):
            return []
        return [f"'{self.alias}' needs a count; pass count=, or ask for a count in the same query"]

    def problems(self, schema: Schema) -> list[str]:
        if schema.measure(self.measure) is None:
            return [f"'{self.measure}' is averaged but is not a measure"]
        return mechanism_problems(self.mechanisms(), schema)

    def confidence_of_parts(self, confidence: float) -> float:
        return (1 + confidence) / 2

    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        of_sum, of_count = answers
        return plain_ratio(self.alias, of_sum, of_count, confidence)

    def description(self) -> dict[str, Any]:
        return Statistic.description(self) | {"sum": self.sum, "count": self.count, "unbiased": False}

    def entry(self) -> dict[str, Any]:
        parts = {"sum": self.sum} | ({} if self.count is None else {"count": self.count})
        return {name: mechanism_entry(each) for name, each in parts.items()}

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> Statistic | None:
        """Read an average's entry.

        ``avg.emp = { sum = "split", count = "counts", as = "mean" }``.
        """
        entries = node.table("sum", "count", "as", needed=("sum",))
        alias = entries["as"].text() if "as" in entries else ""
        parts = _both(entries, reader)
        if parts is None or alias is None:
            return None
        return cls(alias=alias, measure=column, sum=parts.sum, count=parts.count)

    @classmethod
    def read_sql_mechanism(cls, node: "Node", reader: EntryReader) -> Any | None:
        return _both(node.table("sum", "count"), reader)

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        from sqlglot import exp

        from recordwise.plan.sql.grammar import aggregated_column, only

        if type(node) is not exp.Avg:
            return None
        only(node, "this")
        column = aggregated_column(node.this)
        given = mechanisms.take(alias, column)
        parts = given if isinstance(given, SumAndCount) else SumAndCount(sum=given)
        return cls(alias=alias or "", measure=column, sum=parts.sum, count=parts.count)


def _both(entries: "Mapping[str, Node]", reader: EntryReader) -> SumAndCount | None:
    """Return an average's two mechanisms; the query may supply the count."""
    found: dict[str, Any] = {name: reader.mechanism(entries[name]) for name in ("sum", "count") if name in entries}
    return None if "sum" not in found or None in found.values() else SumAndCount(**found)
