"""What the budget of a plan still allows, and the most of a recommendation that it covers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from recordwise.errors import BudgetError
from recordwise.exact.text import figure
from recordwise.ledger.chain import Event
from recordwise.ledger.schemas import amount_bounds
from recordwise.plan.describe import schema_json
from recordwise.plan.file.read import PlanFile
from recordwise.planning.candidates import two_digits
from recordwise.planning.whole import PlanLike
from recordwise.policy.policy import Policy
from recordwise.session import Session
from recordwise.session.plan_ledger import plan_ledger

HALVINGS = 12
LEAST = Fraction(1, 10**6)
SECONDS = 10.0
"""Processor time that one proof may take."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Left:
    """A budget, and what was charged to it before."""

    budget: Policy | None
    refusal: Callable[[Policy], str | None]
    """Why a plan with this policy would be refused, in words; None if it would not."""
    is_new: bool
    """Whether nothing can have been charged before."""

    @property
    def needs_budget(self) -> bool:
        """Whether a plan file needs a proposed budget: it has none, and nothing can have been charged before."""
        return self.budget is None and self.is_new

    def share_covered(self, policy_at: Callable[[Fraction], Policy]) -> Fraction | None:
        """The largest share of a plan's loss that is covered, of two digits; None if not even a millionth is."""
        low, high = LEAST, Fraction(1)
        if self.refusal(policy_at(low)) is not None:
            return None
        for _ in range(HALVINGS):
            middle = two_digits((float(low) * float(high)) ** 0.5)
            if not low < middle < high:
                break
            low, high = (middle, high) if self.refusal(policy_at(middle)) is None else (low, middle)
        return low


def left_of(session: Session, plan: PlanLike) -> Left:
    """The budget of the session; of a plan file that the session leaves alone, that in the plan's own ledger."""
    if isinstance(plan, PlanFile) and session.budget is None:
        with plan_ledger(plan) as ledger:
            is_new = not _charged(ledger.history())
        return Left(budget=plan.budget, refusal=lambda policy: _refused_by_ledger(plan, policy), is_new=is_new)
    return Left(
        budget=session.budget,
        refusal=lambda policy: _refused(session, policy),
        is_new=not _charged(session.history()),
    )


def _charged(history: Sequence[Event]) -> bool:
    return any(event.kind == "charged" for event in history)


def _refused_by_ledger(file: PlanFile, policy: Policy) -> str | None:
    if file.budget is None:
        return None
    try:
        with plan_ledger(file) as ledger:
            ledger.check(policy, query="the plan")
    except BudgetError as error:
        return _words(error.witness, error.needed, error.left)
    return None


def _refused(session: Session, policy: Policy) -> str | None:
    if session.budget is None:
        return None
    bounds = amount_bounds(schema_json(session.schema))
    verdict = session.budget.dominates(session.spent() + policy, bounds=bounds, seconds=SECONDS)
    if verdict:
        return None
    witness = verdict.witness
    if witness is None:
        return _words(None, 0.0, 0.0)
    return _words(witness, float(policy.loss(witness)), session.remaining(witness))


def _words(witness: dict[str, Any] | None, needed: float, left: float) -> str:
    """Where a budget ends. A witness is a possible record, not one of the table."""
    if witness is None:
        return "it could not be proved that the budget covers the plan"
    record = ", ".join(f"{name}={value}" for name, value in witness.items()) or "every record"
    return f"for {record} the plan needs a loss of {figure(needed)}, and {figure(left)} is left"
