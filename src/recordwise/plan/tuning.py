"""What the parameters of a plan were chosen with, and when that needs a reason before anything is published."""

from collections.abc import Sequence

from recordwise.errors import ParameterError, TuningError
from recordwise.plan.hierarchies import Hierarchy

TUNINGS = ("public", "synthetic", "past", "confidential")
"""The data with which the parameters of a plan may have been chosen, most sensitive last."""
NO_LOOK = ("public", "synthetic")
"""What records must be declared to be so that seeing numbers computed from them is no look; those of the past are confidential."""
SAY_TUNING = (
    "Open the session with tuned_on='public', 'synthetic', 'past' or 'confidential': the data with which its "
    "mechanisms, thresholds and keys were chosen."
)
ACCEPT_TUNING = (
    "Tune on public or synthetic data, or give a reason as accept_tuning, in the session or the plan file (accept_tuning = "
    '"only codes were corrected"); it is published with the release.'
)
LOOKED = "the confidential records were viewed before this release ({looks})"


def check_tuned_on(tuned_on: str | None) -> None:
    """Refuse a word that is not one of ``TUNINGS``."""
    if tuned_on is not None and tuned_on not in TUNINGS:
        raise ParameterError(parameter="tuned_on", problem=f"must be one of {', '.join(TUNINGS)}")


def check_tuning(
    tuned_on: str | None, accept_tuning: str | None, *, looks: str = "", hierarchies: Sequence[Hierarchy] = ()
) -> None:
    """Check that a release states what the plan was tuned on, and gives a reason if that was the confidential table.

    ``looks`` are the looks that the ledger notes, in words; empty if there are none.
    """
    if tuned_on is None:
        raise TuningError(problem="tuned_on is not stated", advice=SAY_TUNING)
    tuned = "this plan was tuned on the confidential table" if tuned_on == "confidential" else None
    private = [each.name for each in hierarchies if not each.is_public]
    listed = f"the source of the hierarchy '{private[0]}' does not begin with 'public'" if private else None
    problem = tuned or listed or (LOOKED.format(looks=looks) if looks else None)
    if problem and not (isinstance(accept_tuning, str) and accept_tuning.strip()):
        stated = f"{problem}, so its parameters may themselves reveal something about records"
        raise TuningError(problem=stated, advice=ACCEPT_TUNING)
