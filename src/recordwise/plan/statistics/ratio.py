"""Ratios of two counts, sums or combinations that a query draws: pay for each employee, say (T-RATIO)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sqlglot import exp

from recordwise.errors import ParameterError, SqlError
from recordwise.plan.linear import Linear, linear, linear_text, parse_linear
from recordwise.plan.schema import Schema
from recordwise.plan.sql.grammar import only
from recordwise.plan.statistics.answers import NOT_UNBIASED, Answer, NoisyColumn
from recordwise.plan.statistics.base import Drawable, EntryReader, Form, NamedMechanisms, Statistic
from recordwise.plan.statistics.combination import (
    Combination,
    Combined,
    aggregate_name,
    drawn_form,
    drawn_parts,
    form_problems,
    is_nonnegative,
    is_ratio,
    unwrapped,
)
from recordwise.plan.statistics.ratios import ratio_interval

if TYPE_CHECKING:
    from recordwise.plan.file.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Statistic):
    """One count, sum or combination of the query over another. It costs nothing more than they do."""

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

    def among(self, asked: Sequence[Statistic]) -> Statistic:
        """The same with each combination of the query that it names written out."""
        known = {each.alias: each.terms for each in asked if isinstance(each, Combination)}
        return replace(self, top=_written_out(self.top, known), bottom=_written_out(self.bottom, known))

    def missing(self, drawn: Sequence[Drawable], schema: Schema) -> list[str]:
        found = [each for form in (self.top, self.bottom) for each in form_problems(self.alias, form, drawn)]
        if not found and not is_nonnegative(self.bottom, drawn, schema):
            found = [f"'{self.alias}' divides by '{linear_text(self.bottom)}', which may be negative"]
        return found

    def parts(self, drawn: Sequence[Drawable]) -> tuple[Drawable, ...]:
        return drawn_parts(self.top + self.bottom, drawn)

    def forms(self, drawn: Sequence[Drawable]) -> tuple[Form, Form]:
        return drawn_form(self.top, drawn), drawn_form(self.bottom, drawn)

    def confidence_of_parts(self, confidence: float) -> float:
        return 1 - (1 - confidence) / (2 * max(len(self.top), len(self.bottom)))

    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        top, bottom = answers[: len(self.top)], answers[len(self.top) :]
        return ratio(self.alias, Combined.of(self.top, top), Combined.of(self.bottom, bottom), confidence)

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
    def read_sql(cls, node: exp.Expr, alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        """``SUM(payann) / SUM(emp) AS pay``; each of the sums must be selected as well."""
        node = unwrapped(node)
        if not is_ratio(node):
            return None
        only(node, "this", "expression", "typed", "safe")
        if alias is None:
            raise SqlError(construct="a ratio of aggregates without a name", advice="Add AS name.")
        top, bottom = (linear(each, aggregate_name) for each in (node.this, node.args["expression"]))
        return cls(alias=alias, top=top, bottom=bottom)


def _written_out(form: Linear, known: dict[str, Linear]) -> Linear:
    if len(form) != 1 or form[0][0] not in known:
        return form
    ((name, share),) = form
    return tuple((part, share * own) for part, own in known[name])


def ratio(alias: str, top: Combined, bottom: Combined, confidence: float) -> NoisyColumn:
    """The ratio with its interval in every cell (T-RATIO); no value and no error where the noisy denominator is not positive."""
    above, below = top.column("", confidence), bottom.column("", confidence)
    known = below.value > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = np.where(known, above.value / below.value, np.nan)
        joint = 2 * value * top.shared(bottom, "deviation", confidence)
        spread = above.standard_error**2 + value**2 * below.standard_error**2 - joint
        error = np.sqrt(np.maximum(spread, 0.0)) / below.value
    sides = top.side(confidence), bottom.side(confidence)
    shared = top.shared(bottom, "reach", confidence)
    of_curves = confidence if top.is_apart(bottom) else None
    low, high = ratio_interval(*sides, least=bottom.step(), shared=shared, confidence=of_curves)
    flag = f"{NOT_UNBIASED}: a ratio of two noisy numbers"
    return NoisyColumn(alias=alias, value=value, standard_error=error, low=low, high=high, flag=flag)


ONE = Fraction(1)


def plain_ratio(alias: str, top: Answer, bottom: Answer, confidence: float) -> NoisyColumn:
    """The ratio of two answers as they are."""
    return ratio(alias, Combined.of((("", ONE),), (top,)), Combined.of((("", ONE),), (bottom,)), confidence)
