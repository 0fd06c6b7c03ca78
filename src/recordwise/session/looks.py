"""Ledger entries for looks at confidential records, made before each look.

Records are confidential unless they are declared public or were generated. Whatever shows a number computed
from them is a look: what the owner sees, a preflight, planning, a rehearsal. It is entered with the day, the
command and the digest of the plan.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from recordwise.errors import RecordwiseError, UnkeptLedgerWarning
from recordwise.ledger.ledger import Ledger
from recordwise.plan.cost import firm_policy
from recordwise.plan.describe import plan_json, release_identity, schema_json, unrecognizable
from recordwise.plan.file.read import PlanFile
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.plan.schema import NO_LOOK, Schema
from recordwise.policy.series import Series
from recordwise.session.sizes import with_sizes

UNKEPT_LOOK = (
    "this session keeps its ledger in memory only: that confidential records were viewed is forgotten when it closes, and no "
    "release will state it. Pass ledger='FILE' to keep it, or data='public' or 'synthetic' if the records are."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Enters the looks of a session in its ledger."""

    ledger: Ledger
    schema: Schema
    planned: Plan | None = None
    """The plan that the session was opened for, if any."""

    def enter(self, command: str, queries: Sequence[Query] = (), *, data: str = "confidential") -> None:
        """Enter one look at confidential records.

        At the queries or else at the session's plan; none if the records are declared not confidential.
        """
        if data in NO_LOOK:
            return
        digest = self._digest(queries)
        if digest is None and self.planned is not None:
            digest = plan_digest(self.planned, self.ledger.series)
        if not self.ledger.on_disk:
            warnings.warn(UNKEPT_LOOK, UnkeptLedgerWarning, stacklevel=4)
        self.ledger.look(command, plan=digest)

    def _digest(self, queries: Sequence[Query]) -> str | None:
        """Return the digest of queries; None if they are no plan yet."""
        if not queries:
            return None
        try:
            return plan_digest(Plan(schema=self.schema, queries=tuple(queries)), self.ledger.series)
        except RecordwiseError:
            return None


def plan_digest(plan: Plan, series: Series | None) -> str | None:
    """Return a plan's digest as charges state it; None if unrecognizable."""
    plan = with_sizes(plan)
    if unrecognizable(plan):
        return None
    return release_identity(plan, plan_json(plan), firm_policy(plan).policy(), series).digest


def enter_look(file: PlanFile, command: str) -> None:
    """Enter a look in the ledger of a plan, created if needed."""
    with plan_ledger(file) as ledger:
        ledger.look(command, plan=plan_digest(file.plan, ledger.series))
        ledger.settle()


@contextmanager
def plan_ledger(file: PlanFile) -> Iterator[Ledger]:
    """The ledger that a plan names."""
    ledger = Ledger(
        file.ledger, dataset=file.dataset, schema=schema_json(file.plan.schema), budget=file.budget, series=file.series
    )
    try:
        yield ledger
    finally:
        ledger.close()
