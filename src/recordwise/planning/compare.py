"""Compare mechanisms on a plan: losses of records and errors of cells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from recordwise.disclosure.rules import PercentRule
from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.exact.text import formula_text, share_text
from recordwise.mechanisms.base import BoolArray, Mechanism, read_confidence
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.planning.losses import Losses, LossPair, firm_losses, realized_losses
from recordwise.planning.result import Result, Rows, candidate_named, loss_figure
from recordwise.planning.scope import (
    COUNT,
    TODAY,
    Asked,
    Choice,
    Least,
    PlanLike,
    PlanTotals,
    Scope,
    at_level,
    bare,
    by_measure,
    counted_rows,
    named,
    part_name,
    plan_totals,
    read_origin,
    read_queries,
    scope_of,
    step_of,
    viewed,
)
from recordwise.planning.simulate.baselines import Disclosure, MultiplicativeNoise, disclosure
from recordwise.planning.sweep import GridSize, Sweep, Thresholds, grid_points, plan_losses, read_rho
from recordwise.progress import reported, steps, tracked
from recordwise.session import Session
from recordwise.session.owner import FOR_OWNER, OwnerView

# The result of a comparison: losses of the records, errors of the cells, table by table.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Candidate:
    """One mechanism of a comparison."""

    name: str
    mechanism: Mechanism
    """None where statistics have different ones."""
    losses: LossPair
    """Policy losses of the records, from everything that is compared."""
    firms: LossPair | None
    """What firms lose together, by cell (T-CELLS); upper ends of bins."""
    realized: LossPair | None
    """What the records would actually lose given the rest of their cells; upper ends of bins."""
    realized_firms: LossPair | None
    """The same of firms, each with all its records; where keys are public."""
    errors: FloatArray
    """The bound that the error of each cell stays below, with the confidence of the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ComparedTable:
    """One statistic of one table."""

    name: str
    statistic: str
    measure: str
    cells: slice
    """Where its cells are among all cells of the comparison."""
    rules: Disclosure | None
    """What suppression or multiplicative noise would do instead, in the table of each measure with the most cells."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Comparison(Result):
    """Mechanisms compared on a plan's tables.

    CONFIDENTIAL if the records are.
    """

    data: str
    confidence: float
    above: tuple[float, ...]
    totals: FloatArray
    """The exact total of each cell, table by table."""
    counted: BoolArray
    """Which cells the errors are about: those with a total above 0 that reach ``at_least``."""
    at_least: Least
    tables: tuple[ComparedTable, ...]
    candidates: tuple[Candidate, ...]

    @property
    def measure(self) -> str:
        """What is summed, in words."""
        return ", ".join(dict.fromkeys(each.measure for each in self.tables))

    @property
    def rules(self) -> Disclosure | None:
        """The older rules in the first table they apply to.

        None for counts.
        """
        return next((each.rules for each in self.tables if each.rules is not None), None)

    def rule_sentences(self) -> Iterator[tuple[str, str]]:
        """Yield each table of the older rules with their effect."""
        for each in self.tables:
            if each.rules is not None:
                yield each.name, each.rules.sentences()

    def __getitem__(self, name: str) -> Candidate:
        return candidate_named(self.candidates, name)

    def relative_errors(self, name: str, table: str | None = None) -> FloatArray:
        """Return the relative error of each cell that counts.

        Args:
            name: The name of a mechanism.
            table: The name of one of ``tables``; the cells of all tables unless given.

        Returns:
            A share for each cell.
        """
        named = {each.name: each.cells for each in self.tables}
        if table is not None and table not in named:
            known = ", ".join(map(repr, named))
            raise ParameterError(
                parameter="table", problem=f"{table!r} was not compared", advice=f"Tables are {known}."
            )
        cells = slice(None) if table is None else named[table]
        totals, errors, counted = self.totals[cells], self[name].errors[cells], self.counted[cells]
        return np.asarray(errors[counted] / totals[counted])

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return losses and cumulative record shares for each mechanism."""
        return {each.name: each.losses.rho.curve() for each in self.candidates}

    def _numbers(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "confidence": self.confidence,
            "cells": len(self.totals),
            "counted_cells": int(self.counted.sum()),
            "mechanisms": [self._candidate_json(each) for each in self.candidates],
            "tables": [self._table_json(each) for each in self.tables],
            "instead": None if self.rules is None else self.rules.to_json(),
        }

    def _table_json(self, table: ComparedTable) -> dict[str, Any]:
        errors = {each.name: _error_json(self.relative_errors(each.name, table.name)) for each in self.candidates}
        counted = self.counted[table.cells]
        cells = {"cells": len(counted), "counted_cells": int(counted.sum())}
        return {"name": table.name, **cells, "relative_error": errors}

    def _candidate_json(self, each: Candidate) -> dict[str, Any]:
        relative = self.relative_errors(each.name)
        found: dict[str, Any] = {"name": each.name, "losses": each.losses.rho.to_json()}
        found["mechanism"] = None if each.mechanism is None else each.mechanism.text()
        found["share_above"] = {f"{formula_text(loss)}": each.losses.rho.share_above(loss) for loss in self.above}
        found["relative_error"] = _error_json(relative)
        parts: dict[str, Losses | None] = {
            "delta": each.losses.delta,
            "firm_losses": each.firms.rho if each.firms else None,
            "firm_delta": each.firms.delta if each.firms else None,
            "realized_losses": each.realized.rho if each.realized else None,
            "realized_delta": each.realized.delta if each.realized else None,
            "realized_firm_losses": each.realized_firms.rho if each.realized_firms else None,
        }
        return found | {name: part.to_json() for name, part in parts.items() if part is not None}

    def rows(self) -> Rows:
        """A table for a reader: headers and rows."""
        above = [f"above {formula_text(loss)}" for loss in self.above]
        more = [name for name, each in _more(self.candidates[0]).items() if each]
        headers = ["mechanism", "median", "p99", "maximum", *above, *more, "median error", "p90 error"]
        return headers, [self._row(each) for each in self.candidates]

    def _row(self, each: Candidate) -> list[str]:
        rho, relative = each.losses.rho, self.relative_errors(each.name)
        numbers = [loss_figure(rho.quantile(0.5)), loss_figure(rho.quantile(0.99)), loss_figure(rho.maximum)]
        numbers += [f"{share_text(rho.share_above(loss), 2)}" for loss in self.above]
        numbers += [loss_figure(more.rho.quantile(0.99)) for more in _more(each).values() if more]
        return [each.name, *numbers, *_error_words(relative)]

    def table_rows(self) -> Rows:
        """The errors table by table: headers and rows."""
        headers = ["table", "cells", *(["counted"] if self.at_least else []), "mechanism", "median error", "p90 error"]
        rows = []
        for table in self.tables:
            counted = self.counted[table.cells]
            first = [table.name, f"{len(counted):,}", *([f"{int(counted.sum()):,}"] if self.at_least else [])]
            for each in self.candidates:
                rows.append([*first, each.name, *_error_words(self.relative_errors(each.name, table.name))])
                first = [""] * len(first)
        return headers, rows

    def notes(self) -> tuple[str, ...]:
        """Return what the older rules would do."""
        return tuple(f"{name}: {told}" if len(self.tables) > 1 else told for name, told in self.rule_sentences())

    def _about(self) -> str:
        return f"of {len(self.candidates)} mechanisms for '{self.measure}'"

    def _title(self) -> str:
        return f"Losses of the records and {share_text(self.confidence)} errors of the cells: {self.measure}"


def _more(each: Candidate) -> dict[str, LossPair | None]:
    """The losses that are shown on request."""
    return {"firm p99": each.firms, "realized p99": each.realized, "realized firm p99": each.realized_firms}


def _error_json(relative: FloatArray) -> dict[str, float | None]:
    known = len(relative) > 0
    return {
        "median": float(np.median(relative)) if known else None,
        "p90": float(np.quantile(relative, 0.9)) if known else None,
    }


def _error_words(relative: FloatArray) -> list[str]:
    errors = [np.median(relative), np.quantile(relative, 0.9)] if len(relative) else [np.nan, np.nan]
    return [share_text(error, 1) for error in errors]


# The comparison.


ABOVE = (1.0, 10.0)


@overload
def compare(
    session: Session,
    *,
    query: PlanLike,
    rhos: Sequence[Number],
    thresholds: Thresholds | None = None,
    clamps: Thresholds | None = None,
    measure: str | None = None,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    at_least: Least = 0,
    tight: bool = True,
    data: str = "confidential",
) -> Sweep: ...


@overload
def compare(
    session: Session,
    mechanisms: Mapping[str, Mechanism] | None = None,
    *,
    query: PlanLike,
    measure: str | None = None,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    at_least: Least = 0,
    variance: Number | Mapping[str, Number] | None = None,
    relative_error: Number | Mapping[str, Number] | None = None,
    at_total: Number | Mapping[str, Number] | None = None,
    confidence: float = 0.95,
    above: Sequence[float] = ABOVE,
    firms: bool = False,
    realized: bool = False,
    rule: PercentRule | None = None,
    noise: MultiplicativeNoise | None = None,
    tight: bool = True,
    data: str = "confidential",
) -> Comparison: ...


@reported
def compare(
    session: Session,
    mechanisms: Mapping[str, Mechanism] | None = None,
    *,
    query: PlanLike,
    measure: str | None = None,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    at_least: Least = 0,
    variance: Number | Mapping[str, Number] | None = None,
    relative_error: Number | Mapping[str, Number] | None = None,
    at_total: Number | Mapping[str, Number] | None = None,
    thresholds: Thresholds | None = None,
    clamps: Thresholds | None = None,
    rhos: Sequence[Number] | None = None,
    confidence: float = 0.95,
    above: Sequence[float] = ABOVE,
    firms: bool = False,
    realized: bool = False,
    rule: PercentRule | None = None,
    noise: MultiplicativeNoise | None = None,
    tight: bool = True,
    data: str = "confidential",
) -> Comparison | Sweep:
    """Compare the losses and errors of mechanisms in a plan's tables.

    The plan is compared as it is, and with each of ``mechanisms`` for every count and sum in it. With
    ``measure`` only its tables are used, and the measure is summed in each. ``variance`` (of a transform: at
    ``at_total``) or ``relative_error`` with ``at_total`` sets the noise of all alike. Costs no budget; the
    result is confidential unless ``data`` says otherwise.

    With ``thresholds`` and ``rhos`` unit splitting is compared over their grid instead, every measure by itself:
    the expected absolute relative error of the cells, and the share of records that lose more than rho. With ``clamps``
    clamping at each of these bounds is compared too; ``best_clamps()`` of the result are those with the least error.
    Where the query has levels, each gets its share of rho, as in a release.

    Args:
        session: An open session; its records are read, and no budget is spent.
        mechanisms: The mechanisms to compare, by name; each may be a mapping from measures or published names to mechanisms. A
            statistic that it does not name keeps its mechanism.
        query: The tables to compare them on: a query, several, or a plan, with its levels and statistics.
        measure: A measure to sum in all the tables, or "count", instead of the statistics of the plan.
        tables: The selected tables, by name or by the number or name of their query; all unless given.
        statistics: The selected statistics, by published name or measure; all unless given.
        at_least: Cells that reach less do not count in the errors: a number for the total that is published, or by any statistics
            of the cell, such as ``{"count": 100}`` for its records.
        variance: Sets the noise of all mechanisms to this variance; for a transform, the variance at ``at_total``. One number, or
            one for each measure.
        relative_error: Sets the noise of all mechanisms to this relative error at ``at_total``.
        at_total: The total at which the goal is stated: one number, or one for each measure.
        thresholds: The thresholds of a grid, in the measure's units; for joint splitting, mappings from measures to thresholds. Of
            several measures, a mapping from each to its thresholds.
        clamps: The bounds of a grid of clamped sums, as ``thresholds``. Choose them without looking at the records.
        rhos: The losses of the grid.
        confidence: The confidence of the errors.
        above: Losses for which the share of records above them is counted.
        firms: Whether the joint losses of firms are computed too.
        realized: Whether the losses that records really incurred are computed too, over all tables and statistics of the scope;
            with ``firms`` also those of firms, where keys are public.
        rule: A p% rule to compare with, in the table of each measure with the most cells.
        noise: Multiplicative noise to compare with.
        tight: Whether losses are those of the tight policy; otherwise of the one printed in the papers.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        Losses and errors of each mechanism, or at each point of the grid.
    """
    grid = any(each is not None for each in (thresholds, clamps, rhos))
    if grid:
        _check_grid(mechanisms, variance, relative_error, firms, realized, rule, noise)
    equal = EqualError(variance, relative_error, at_total, read_confidence(confidence))
    origin, view = read_origin(data), viewed(session, data, "plan compare", query)
    scope = scope_of(query, view.schema, measure=measure, tables=tables, statistics=statistics)
    if isinstance(at_least, Mapping):
        at_least = by_measure(at_least, [*read_queries(query), *scope.plan.queries])
    if grid:
        asked_for = GridSize(thresholds or (), clamps or (), tuple(map(read_rho, rhos or ())))
        points = grid_points(session, view, scope, measure, asked_for, at_least, tight=tight)
        return Sweep(data=origin, points=tuple(points))
    choices = _choices(scope, mechanisms, equal, view)
    step = steps(3)
    step("counting losses")
    asked = {name: scope.queries(choice) for name, choice in choices.items()}
    losses = plan_losses(session, view, asked, tight=tight)
    joint = firm_losses(view, asked) if firms else {}
    real = _realized(view, scope, choices, losses) if realized else {}
    together = _realized_firms(view, asked, joint) if realized and firms else {}
    step("adding up totals")
    totals = plan_totals(view, scope, choices)
    rules = _rules(view, scope, totals, rule or PercentRule(), noise or MultiplicativeNoise())
    step("working out errors")
    found = [
        Candidate(
            name=name,
            mechanism=_only([choice(each) for each in scope.asked()]),
            losses=losses[name],
            firms=joint.get(name),
            realized=real.get(name),
            realized_firms=together.get(name),
            errors=_errors(totals, name, choice, confidence),
        )
        for name, choice in tracked(choices.items(), lambda item: f"the errors of {item[0]}")
    ]
    return Comparison(
        data=origin,
        confidence=confidence,
        above=tuple(float(loss) for loss in above),
        totals=np.concatenate([each.total for each in totals]),
        counted=np.concatenate(counted_rows(view, totals, at_least)),
        at_least=at_least,
        tables=tuple(_compared_tables(totals, rules)),
        candidates=tuple(found),
    )


def _check_grid(*others: Any) -> None:
    """Refuse a grid together with what is not about it."""
    if any(others):
        raise ParameterError(
            parameter="thresholds, clamps, rhos",
            problem="are a grid, with no mechanisms, equal errors, firms, realized losses or rules",
            advice="Compare them in a call without thresholds, clamps and rhos.",
        )


def _errors(totals: Sequence[PlanTotals], name: str, choice: Choice, confidence: float) -> FloatArray:
    """Return the error of each cell of all tables under one candidate."""
    found = [each.by_cell("error_quantiles", choice(each.asked), kept=name, confidence=confidence) for each in totals]
    return np.concatenate(found)


def _compared_tables(
    totals: Sequence[PlanTotals], rules: Mapping[tuple[int, str, int], Disclosure]
) -> Iterator[ComparedTable]:
    """Yield each table with the place of its cells."""
    start = 0
    for each in totals:
        yield ComparedTable(
            name=part_name(each.asked.statistic.alias, each.level),
            statistic=each.asked.statistic.alias,
            measure=str(each.asked.measure),
            cells=slice(start, start + len(each.total)),
            rules=rules.get((*each.asked.place, each.number)),
        )
        start += len(each.total)


def _only(mechanisms: Sequence[Mechanism]) -> Any:
    """The mechanism, where a candidate is one mechanism for everything."""
    return mechanisms[0] if all(each == mechanisms[0] for each in mechanisms) else None


def _choices(
    scope: Scope, mechanisms: Mapping[str, Mechanism] | None, goals: "EqualError", view: OwnerView
) -> dict[str, Choice]:
    """Return the plan and each candidate, at equal error if requested."""
    found: dict[str, Choice] = {}
    if all(each.statistic.mechanism is not FOR_OWNER for each in scope.asked()):
        found[TODAY] = _fixed({each.place: each.statistic.mechanism for each in scope.asked()})
    for name, given in _read(mechanisms or {}).items():
        chosen = {each.place: mechanism_of(given, each) for each in scope.asked()}
        found[name] = _fixed(
            {
                each.place: goals.met_by(chosen[each.place], str(each.measure), step_of(str(each.measure), view))
                for each in scope.asked()
            }
        )
    if not found:
        raise ParameterError(parameter="mechanisms", problem="must name at least one mechanism")
    return found


def _read(mechanisms: Mapping[str, Mechanism]) -> dict[str, Any]:
    """Mechanisms by name, or by name and then by measure."""
    for name, each in mechanisms.items():
        named({f"{name}" if not isinstance(each, Mapping) else f"{name}.{of}": own for of, own in _parts(each).items()})
    return dict(mechanisms)


def _parts(given: Any) -> dict[Any, Any]:
    return dict(given) if isinstance(given, Mapping) else {"": given}


def mechanism_of(given: Any, asked: Asked) -> Any:
    """Return a candidate's mechanism for a statistic.

    By its published name or its measure, otherwise the one it has.
    """
    if not isinstance(given, Mapping):
        return given
    own = given.get(asked.statistic.alias, given.get(asked.measure, asked.statistic.mechanism))
    if own is FOR_OWNER:
        raise ParameterError(parameter="mechanisms", problem=f"has no mechanism for '{asked.measure}'")
    return own


def _fixed(chosen: Mapping[tuple[int, str], Any]) -> Choice:
    return lambda asked: chosen[asked.place]


class EqualError:
    """One goal for all mechanisms of a comparison, or none."""

    def __init__(self, variance: Any, relative_error: Any, at_total: Any, confidence: float) -> None:
        if variance is not None and relative_error is not None:
            raise ParameterError(parameter="variance, relative_error", problem="are mutually exclusive")
        if variance is None and relative_error is None and at_total is not None:
            raise ParameterError(parameter="at_total", problem="requires variance or relative_error")
        self._variance, self._relative, self._total, self._confidence = variance, relative_error, at_total, confidence

    def met_by(self, mechanism: Mechanism, measure: str, step: Number) -> Any:
        """The mechanism with the noise that meets the goal."""
        if self._variance is None and self._relative is None:
            return mechanism
        goals: dict[str, Any] = {"at_total": _for_measure(self._total, measure, "at_total")}
        if self._variance is not None:
            goals["variance"] = _for_measure(self._variance, measure, "variance")
        else:
            error = _for_measure(self._relative, measure, "relative_error")
            goals |= {"relative_error": error, "confidence": self._confidence, "step": step}
        return mechanism.recalibrated(**goals)


def _for_measure(given: Any, measure: str, parameter: str) -> Any:
    """One number for all measures, or the one of this measure."""
    if not isinstance(given, Mapping):
        return given
    if measure not in given:
        raise ParameterError(parameter=parameter, problem=f"has no number for '{measure}'")
    return given[measure]


def _realized(
    view: OwnerView, scope: Scope, choices: Mapping[str, Choice], losses: Mapping[str, LossPair]
) -> dict[str, LossPair]:
    """Return what records really lose under each candidate.

    Where keys are selected privately, for one statistic of one table.
    """
    asked = {name: scope.queries(choice) for name, choice in choices.items()}
    if not _selects(asked):
        found = {name: Losses.of_bins(view.realized_loss_bins(own)) for name, own in asked.items()}
        return {name: LossPair(rho=each.at_most(losses[name].rho)) for name, each in found.items()}
    if len(scope.drawn) != 1 or len(scope.drawn[0].levels) != 1:
        raise ParameterError(
            parameter="realized",
            problem="is for one statistic of one table where keys are selected privately",
            advice="Choose one with tables and statistics.",
        )
    (only,) = scope.asked()
    query = scope.plan.queries[only.query]
    level = query.tables()[only.levels[0]]
    chosen = {name: choice(only) for name, choice in choices.items()}
    return realized_losses(view, bare(at_level(query, level)), str(only.measure), chosen)


def _realized_firms(
    view: OwnerView, asked: Mapping[str, Sequence[Query]], joint: Mapping[str, LossPair]
) -> dict[str, LossPair]:
    """Return what firms really lose under each plan with public keys."""
    if _selects(asked):
        return {}
    found = {name: Losses.of_bins(view.realized_loss_bins(own, firms=True)) for name, own in asked.items()}
    return {name: LossPair(rho=each.at_most(joint[name].rho)) for name, each in found.items()}


def _selects(asked: Mapping[str, Sequence[Query]]) -> bool:
    """Return whether a plan selects keys privately."""
    return any(
        query.selection_of(level) is not None for own in asked.values() for query in own for level in query.tables()
    )


def _rules(
    view: OwnerView, scope: Scope, totals: Sequence[PlanTotals], rule: PercentRule, noise: MultiplicativeNoise
) -> dict[tuple[int, str, int], Disclosure]:
    """Return both rules in the largest table of each measure."""
    found = {}
    for measure in dict.fromkeys(each.asked.measure for each in totals):
        if measure in (None, COUNT):
            continue
        widest = max((each for each in totals if each.asked.measure == measure), key=lambda each: len(each.total))
        query = at_level(bare(scope.plan.queries[widest.asked.query]), widest.level).sum(str(measure), FOR_OWNER)
        held = Plan(schema=view.schema, queries=(query,))
        found[(*widest.asked.place, widest.number)] = disclosure(
            view.contributors(held.queries[0], str(measure)), rule, noise
        )
    return found
