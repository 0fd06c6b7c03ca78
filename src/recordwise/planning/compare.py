"""Compares mechanisms on a plan: what every record would lose, and how large the error of every cell would be."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.numbers import Number
from recordwise.mechanisms.noisy import read_confidence
from recordwise.plan.plan import Plan
from recordwise.planning.comparison import Candidate, ComparedTable, Comparison
from recordwise.planning.disclosure import Disclosure, MultiplicativeNoise, PercentRule, disclosure
from recordwise.planning.errors import ask, cell_errors
from recordwise.planning.losses import LossPair, firm_losses, policy_losses, realized_losses
from recordwise.planning.origin import read_origin, viewed
from recordwise.planning.shapes import COUNT, bare, check_measure, named, step_of
from recordwise.planning.totals import PlanTotals, plan_totals
from recordwise.planning.whole import TODAY, Asked, Choice, PlanLike, Scope, at_level, part_name, scope_of
from recordwise.progress import reported, steps, tracked
from recordwise.session import Session
from recordwise.session.owner import FOR_OWNER, OwnerView

ABOVE = (1.0, 10.0)


@reported
def compare(
    session: Session,
    mechanisms: Mapping[str, Any] | None = None,
    *,
    query: PlanLike,
    measure: str | None = None,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    variance: Number | Mapping[str, Number] | None = None,
    relative_error: Number | Mapping[str, Number] | None = None,
    at_total: Number | Mapping[str, Number] | None = None,
    confidence: float = 0.95,
    above: Sequence[float] = ABOVE,
    firms: bool = False,
    realized: bool = False,
    rule: PercentRule | None = None,
    noise: MultiplicativeNoise | None = None,
    data: str = "confidential",
) -> Comparison:
    """Compare what mechanisms would cost the records and how large errors would be, in all tables of a plan, as given or at equal
    error.

    The plan is compared as it stands, and with each of ``mechanisms`` for every count and sum in it. With ``measure`` the tables
    alone are taken from it, and the measure is summed in each. ``variance`` (of a transform: at ``at_total``) or
    ``relative_error`` with ``at_total`` sets the noise of all alike. Costs no budget; the result is confidential unless ``data``
    says otherwise.

    Args:
        session: An open session; its records are read, and no budget is spent.
        mechanisms: The mechanisms to compare, by name; each may be a mapping from measures or published names to mechanisms. A
            statistic that it does not name keeps its mechanism.
        query: The tables to compare them on: a query, several, or a plan, with its levels and statistics.
        measure: A measure to sum in all the tables, or "count", instead of the statistics of the plan.
        tables: The tables that are meant, by name or by the number or name of their query; all unless given.
        statistics: The statistics that are meant, by published name or measure; all unless given.
        variance: Sets the noise of all mechanisms to this variance; for a transform, the variance at ``at_total``. One number, or
            one for each measure.
        relative_error: Sets the noise of all mechanisms to this relative error at ``at_total``.
        at_total: The total at which the goal is stated: one number, or one for each measure.
        confidence: The confidence of the errors.
        above: Losses for which the share of records above them is counted.
        firms: Whether the joint losses of firms are computed too.
        realized: Whether the losses that records really incurred are computed too; for one statistic of one table.
        rule: A p% rule to compare with, in the table of each measure with the most cells.
        noise: Multiplicative noise to compare with.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        Losses and errors of each mechanism.
    """
    origin, view = read_origin(data), viewed(session, data, "plan compare", query)
    if measure is not None:
        check_measure(measure, view)
    scope = scope_of(query, view.schema, measure=measure, tables=tables, statistics=statistics)
    goals = EqualError(variance, relative_error, at_total, read_confidence(confidence))
    choices = _choices(scope, mechanisms, goals, view)
    asked = {name: scope.queries(choice) for name, choice in choices.items()}
    step = steps(4)
    step("working out policies")
    policies = {
        name: session.policy_of(*queries)
        for name, queries in tracked(asked.items(), lambda item: f"the policy of {item[0]}")
    }
    step("counting losses")
    conditions = {each.condition for queries in asked.values() for each in queries}
    losses = policy_losses(view, policies, condition=conditions.pop() if len(conditions) == 1 else None)
    joint = firm_losses(view, asked) if firms else {}
    real = _realized(view, scope, choices) if realized else {}
    step("adding up totals")
    totals = plan_totals(view, scope, choices)
    compared, ends = [], np.cumsum([0, *(len(each.total) for each in totals)])
    rules = _rules(view, scope, totals, rule or PercentRule(), noise or MultiplicativeNoise())
    for each, start, end in zip(totals, ends, ends[1:]):
        compared.append(
            ComparedTable(
                name=part_name(each.asked.statistic.alias, each.level),
                statistic=each.asked.statistic.alias,
                measure=str(each.asked.measure),
                cells=slice(int(start), int(end)),
                rules=rules.get((*each.asked.place, each.number)),
            )
        )
    step("working out errors")
    found = [
        Candidate(
            name=name,
            mechanism=_only([choice(each) for each in scope.asked()]),
            losses=losses[name],
            firms=joint.get(name),
            realized=real.get(name),
            errors=np.concatenate(
                [cell_errors(scope, each, choice, name, view.schema, confidence=confidence) for each in totals]
            ),
        )
        for name, choice in tracked(choices.items(), lambda item: f"the errors of {item[0]}")
    ]
    return Comparison(
        data=origin,
        confidence=confidence,
        above=tuple(float(loss) for loss in above),
        totals=np.concatenate([each.total for each in totals]),
        tables=tuple(compared),
        candidates=tuple(found),
    )


def _only(mechanisms: Sequence[Any]) -> Any:
    """The mechanism, where a candidate is one mechanism for everything."""
    return mechanisms[0] if all(each == mechanisms[0] for each in mechanisms) else None


def _choices(
    scope: Scope, mechanisms: Mapping[str, Any] | None, goals: "EqualError", view: OwnerView
) -> dict[str, Choice]:
    """The plan as it stands, where it has mechanisms, and each candidate, at equal error if that is asked for."""
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


def _read(mechanisms: Mapping[str, Any]) -> dict[str, Any]:
    """Mechanisms by name, or by name and then by measure."""
    for name, each in mechanisms.items():
        named({f"{name}" if not isinstance(each, Mapping) else f"{name}.{of}": own for of, own in _parts(each).items()})
    return dict(mechanisms)


def _parts(given: Any) -> dict[Any, Any]:
    return dict(given) if isinstance(given, Mapping) else {"": given}


def mechanism_of(given: Any, asked: Asked) -> Any:
    """The mechanism of a candidate for a statistic: by its published name or its measure, otherwise the one it has."""
    if not isinstance(given, Mapping):
        return given
    own = given.get(asked.statistic.alias, given.get(asked.measure, asked.statistic.mechanism))
    if own is FOR_OWNER:
        raise ParameterError(parameter="mechanisms", problem=f"has no mechanism for '{asked.measure}'")
    return own


def _fixed(chosen: Mapping[tuple[int, str], Any]) -> Choice:
    return lambda asked: chosen[asked.place]


class EqualError:
    """One goal that all mechanisms of a comparison are set to; none if they are compared as given."""

    def __init__(self, variance: Any, relative_error: Any, at_total: Any, confidence: float) -> None:
        if variance is not None and relative_error is not None:
            raise ParameterError(parameter="variance, relative_error", problem="are mutually exclusive")
        if variance is None and relative_error is None and at_total is not None:
            raise ParameterError(parameter="at_total", problem="requires variance or relative_error")
        self._variance, self._relative, self._total, self._confidence = variance, relative_error, at_total, confidence

    def met_by(self, mechanism: Any, measure: str, step: Number) -> Any:
        """The mechanism with the noise that meets the goal."""
        if self._variance is None and self._relative is None:
            return mechanism
        goals: dict[str, Any] = {"at_total": _for_measure(self._total, measure, "at_total")}
        if self._variance is not None:
            goals["variance"] = _for_measure(self._variance, measure, "variance")
        else:
            error = _for_measure(self._relative, measure, "relative_error")
            goals |= {"relative_error": error, "confidence": self._confidence, "step": step}
        return ask(mechanism, "recalibrated")(**goals)


def _for_measure(given: Any, measure: str, parameter: str) -> Any:
    """One number for all measures, or the one of this measure."""
    if not isinstance(given, Mapping):
        return given
    if measure not in given:
        raise ParameterError(parameter=parameter, problem=f"has no number for '{measure}'")
    return given[measure]


def _realized(view: OwnerView, scope: Scope, choices: Mapping[str, Choice]) -> dict[str, LossPair]:
    """Realized losses, which are those of one statistic in one table."""
    if len(scope.drawn) != 1 or len(scope.drawn[0].levels) != 1:
        raise ParameterError(
            parameter="realized",
            problem="is for one statistic of one table",
            advice="Choose one with tables and statistics.",
        )
    (asked,) = scope.asked()
    query = scope.plan.queries[asked.query]
    level = query.tables()[asked.levels[0]]
    chosen = {name: choice(asked) for name, choice in choices.items()}
    return realized_losses(view, bare(at_level(query, level)), str(asked.measure), chosen)


def _rules(
    view: OwnerView, scope: Scope, totals: Sequence[PlanTotals], rule: PercentRule, noise: MultiplicativeNoise
) -> dict[tuple[int, str, int], Disclosure]:
    """Both rules in the table of each measure with the most cells; a count has no contributions to withhold or distort."""
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
