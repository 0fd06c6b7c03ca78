"""The ledger of a plan file, opened to see what its budget still allows."""

from collections.abc import Iterator
from contextlib import contextmanager

from recordwise.ledger.ledger import Ledger
from recordwise.plan.describe import schema_json
from recordwise.plan.file.read import PlanFile


@contextmanager
def plan_ledger(file: PlanFile) -> Iterator[Ledger]:
    """The ledger of a plan, or one in memory where it does not exist yet."""
    path = file.ledger if file.ledger.exists() else None
    ledger = Ledger(
        path, dataset=file.dataset, schema=schema_json(file.plan.schema), budget=file.budget, series=file.series
    )
    try:
        yield ledger
    finally:
        ledger.close()
