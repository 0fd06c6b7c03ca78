"""What a session does for plans that run unattended: releases that wait to be saved, and the arguments a plan file states."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.release.release import Release
from recordwise.session.coverage import ACCEPT
from recordwise.session.publisher import Publisher

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile


class Unfinished:
    """Releases of a session that were charged and drawn with ``keep`` and whose folder is not complete."""

    def __init__(self, publisher: Publisher, plan_of: Callable[[Sequence[Query]], Plan]) -> None:
        self._publisher, self._plan_of = publisher, plan_of

    def resume(self, *queries: Query) -> Release | None:
        """The release of queries that were charged and drawn but not saved. Nothing is drawn and nothing charged.

        Args:
            queries: The queries, as for ``Session.run``.

        Returns:
            The release, or None if these queries were never charged for this period.

        Raises:
            AlreadyReleasedError: The release was saved, is being drawn by another process, or did not reach the disk.
        """
        return self._publisher.resume(self._plan_of(queries))

    def waiting(self, *queries: Query) -> bool:
        """Whether the tables that were drawn for queries wait beside the ledger to be saved.

        Args:
            queries: The queries, as for ``Session.run``.

        Returns:
            True until ``saved``, if the disk took them.
        """
        return self._publisher.waiting(self._plan_of(queries))

    def saved(self, *queries: Query) -> None:
        """Say that the files of a release are complete, so that the tables kept for it are removed.

        Args:
            queries: The queries, as for ``Session.run``.
        """
        self._publisher.saved(self._plan_of(queries))


def plan_arguments(file: "PlanFile", *, kept: bool) -> dict[str, Any]:
    """The arguments of a session that a plan file states, with its ledger and budget if they are ``kept``."""
    schema = file.plan.schema
    return {
        "unit": schema.unit,
        "measures": {measure.name: measure for measure in schema.measures},
        "columns": {column.name: column for column in schema.columns},
        "firm": schema.firm,
        "collapse": None if schema.collapse is None else dict(schema.collapse),
        "hierarchies": schema.hierarchies,
        "ledger": file.ledger if kept else None,
        "budget": file.budget if kept else None,
        "series": file.series if kept else None,
        "dataset": file.dataset,
        "memory_limit": file.memory_limit,
        "engine": file.engine,
        "spark": file.spark,
        "tuned_on": file.tuned_on,
        "accept_tuning": file.accept_tuning,
        "outside": ACCEPT if file.outside is None else file.outside,
        "words": file.words,
    }
