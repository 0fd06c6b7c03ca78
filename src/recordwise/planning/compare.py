"""Compares mechanisms on one table: what every record would lose, and how large the error of every cell would be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.exact.text import formula_text, share_text
from recordwise.mechanisms.described import mechanism_text
from recordwise.mechanisms.noisy import read_confidence
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.planning.disclosure import Disclosure, MultiplicativeNoise, PercentRule, disclosure
from recordwise.planning.errors import ask
from recordwise.planning.losses import Losses, LossPair, firm_losses, policy_losses, realized_losses
from recordwise.planning.origin import figure, html_table, mark_of, read_origin
from recordwise.planning.shapes import COUNT, bare, check_measure, named, step_of, with_statistic
from recordwise.planning.sized import by_cell, sizes_of
from recordwise.planning.totals import exact_totals
from recordwise.session import Session
from recordwise.session.owner import FOR_OWNER, OwnerView, one_table

ABOVE = (1.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Candidate:
    """One mechanism of a comparison."""

    name: str
    mechanism: Any
    losses: LossPair
    """Policy losses of the records."""
    firms: LossPair | None
    """What firms lose together, by cell (T-CELLS); upper ends of bins."""
    realized: LossPair | None
    """What the records would actually lose given the rest of their cells; upper ends of bins."""
    errors: FloatArray
    """The bound that the error of each cell stays below, with the confidence of the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Comparison:
    """Mechanisms compared on one table; confidential if its records are."""

    measure: str
    data: str
    confidence: float
    above: tuple[float, ...]
    totals: FloatArray
    """The exact total of each cell."""
    candidates: tuple[Candidate, ...]
    rules: Disclosure | None
    """What suppression or multiplicative noise would do instead; None for counts."""

    @property
    def privacy_label(self) -> str:
        """What the records are that it was computed from."""
        return mark_of(self.data)

    def __getitem__(self, name: str) -> Candidate:
        return next(each for each in self.candidates if each.name == name)

    def relative_errors(self, name: str) -> FloatArray:
        """The error of each cell with a total above 0, as a share of that total.

        Args:
            name: The name of a mechanism.

        Returns:
            A share for each cell.
        """
        held = self.totals > 0
        return np.asarray(self[name].errors[held] / self.totals[held])

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """For each mechanism, losses and the share of the records with at most each loss."""
        return {each.name: each.losses.rho.curve() for each in self.candidates}

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "privacy_label": self.privacy_label,
            "measure": self.measure,
            "confidence": self.confidence,
            "cells": len(self.totals),
            "mechanisms": [self._candidate_json(each) for each in self.candidates],
            "instead": None if self.rules is None else self.rules.to_json(),
        }

    def _candidate_json(self, each: Candidate) -> dict[str, Any]:
        relative = self.relative_errors(each.name)
        found = {"name": each.name, "mechanism": mechanism_text(each.mechanism), "losses": each.losses.rho.to_json()}
        found["share_above"] = {f"{formula_text(loss)}": each.losses.rho.share_above(loss) for loss in self.above}
        found["relative_error"] = {
            "median": float(np.median(relative)) if len(relative) else None,
            "p90": float(np.quantile(relative, 0.9)) if len(relative) else None,
        }
        parts: dict[str, Losses | None] = {
            "delta": each.losses.delta,
            "firm_losses": each.firms.rho if each.firms else None,
            "firm_delta": each.firms.delta if each.firms else None,
            "realized_losses": each.realized.rho if each.realized else None,
            "realized_delta": each.realized.delta if each.realized else None,
        }
        return found | {name: part.to_json() for name, part in parts.items() if part is not None}

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """A table for a reader: headers and rows."""
        above = [f"above {formula_text(loss)}" for loss in self.above]
        more = [
            name
            for name, held in (("firm p99", "firms"), ("realized p99", "realized"))
            if getattr(self.candidates[0], held)
        ]
        headers = ["mechanism", "median", "p99", "maximum", *above, *more, "median error", "p90 error"]
        return headers, [self._row(each) for each in self.candidates]

    def _row(self, each: Candidate) -> list[str]:
        rho, relative = each.losses.rho, self.relative_errors(each.name)
        numbers = [figure(rho.quantile(0.5)), figure(rho.quantile(0.99)), figure(rho.maximum)]
        numbers += [f"{share_text(rho.share_above(loss), 2)}" for loss in self.above]
        numbers += [figure(each.firms.rho.quantile(0.99))] if each.firms else []
        numbers += [figure(each.realized.rho.quantile(0.99))] if each.realized else []
        errors = [np.median(relative), np.quantile(relative, 0.9)] if len(relative) else [np.nan, np.nan]
        return [each.name, *numbers, *(f"{share_text(error, 1)}" for error in errors)]

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.candidates)} mechanisms for '{self.measure}': {self.privacy_label}>"

    def _repr_html_(self) -> str:
        notes = "" if self.rules is None else self.rules.sentences()
        title = f"Losses of the records and {share_text(self.confidence)} errors of the cells: {self.measure}"
        return html_table(title, *self.rows(), privacy_label=self.privacy_label, notes=notes)


def compare(
    session: Session,
    mechanisms: Mapping[str, Any],
    *,
    measure: str,
    query: Query,
    variance: Number | None = None,
    relative_error: Number | None = None,
    at_total: Number | None = None,
    confidence: float = 0.95,
    above: Sequence[float] = ABOVE,
    firms: bool = False,
    realized: bool = False,
    rule: PercentRule | None = None,
    noise: MultiplicativeNoise | None = None,
    data: str = "confidential",
) -> Comparison:
    """Compare what mechanisms would cost the records of a table and how large its errors would be, as given or at equal error.

    ``variance`` (of a transform: at ``at_total``) or ``relative_error`` with ``at_total`` sets the noise of all alike. ``measure``
    may be "count". ``firms`` adds the joint losses of firms, ``realized`` what the records would really lose in their cells.
    Costs no budget; the result is confidential unless ``data`` says otherwise.

    Args:
        session: An open session; its records are read, and no budget is spent.
        mechanisms: The mechanisms to compare, by name.
        measure: The measure that is summed, or "count".
        query: The tables to compare them on.
        variance: Sets the noise of all mechanisms to this variance; for a transform, the variance at ``at_total``.
        relative_error: Sets the noise of all mechanisms to this relative error at ``at_total``.
        at_total: The total at which the goal is stated.
        confidence: The confidence of the errors.
        above: Losses for which the share of records above them is counted.
        firms: Whether the joint losses of firms are computed too.
        realized: Whether the losses that records really incurred are computed too.
        rule: A p% rule to compare with.
        noise: Multiplicative noise to compare with.
        data: What the records are: "public", "synthetic", "past" or "confidential". A look at confidential records is noted in the
            ledger.

    Returns:
        Losses and errors of each mechanism.
    """
    origin, view, shape = read_origin(data), session.owner.view(data=data), bare(query)
    check_measure(measure, view)
    one_table(Plan(schema=view.schema, queries=(with_statistic(shape, measure, FOR_OWNER),)))
    step = step_of(measure, view)
    chosen = at_equal_error(named(mechanisms), variance, relative_error, at_total, read_confidence(confidence), step)
    asked = {name: with_statistic(shape, measure, each) for name, each in chosen.items()}
    policies = {name: session.policy_of(each) for name, each in asked.items()}
    losses = policy_losses(view, policies, condition=shape.condition)
    joint = firm_losses(view, {name: (each,) for name, each in asked.items()}) if firms else {}
    real = realized_losses(view, shape, measure, chosen) if realized else {}
    exact, sizes = exact_totals(view, shape, measure, chosen), sizes_of(shape, measure, view.schema)
    found = [
        Candidate(
            name=name,
            mechanism=each,
            losses=losses[name],
            firms=joint.get(name),
            realized=real.get(name),
            errors=by_cell(
                "error_quantiles",
                each,
                exact.total,
                sizes=sizes,
                confidence=confidence,
                step=step,
                kept=exact.kept.get(name),
            ),
        )
        for name, each in chosen.items()
    ]
    return Comparison(
        measure=measure,
        data=origin,
        confidence=confidence,
        above=tuple(float(loss) for loss in above),
        totals=exact.total,
        candidates=tuple(found),
        rules=_rules(view, shape, measure, rule or PercentRule(), noise or MultiplicativeNoise()),
    )


def at_equal_error(
    mechanisms: dict[str, Any],
    variance: Number | None,
    relative_error: Number | None,
    at_total: Number | None,
    confidence: float,
    step: Number,
) -> dict[str, Any]:
    """The mechanisms as given, or all with the noise that meets one goal."""
    if variance is not None and relative_error is not None:
        raise ParameterError(parameter="variance, relative_error", problem="are mutually exclusive")
    if variance is None and relative_error is None:
        if at_total is not None:
            raise ParameterError(parameter="at_total", problem="requires variance or relative_error")
        return mechanisms
    goals: dict[str, Any] = {"at_total": at_total}
    if variance is not None:
        goals["variance"] = variance
    else:
        goals |= {"relative_error": relative_error, "confidence": confidence, "step": step}
    return {name: ask(each, "recalibrated")(**goals) for name, each in mechanisms.items()}


def _rules(
    view: OwnerView, shape: Query, measure: str, rule: PercentRule, noise: MultiplicativeNoise
) -> Disclosure | None:
    """Both rules for a sum; None for a count, which has no contributions to withhold or distort."""
    if measure == COUNT:
        return None
    return disclosure(view.contributors(shape.sum(measure, FOR_OWNER), measure), rule, noise)
