"""A series of two periods, attacked: what its ledger says of histories, releases resumed or retried, second budgets."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.audit.audit import Finding, Runs
from recordwise.errors import AlreadyReleasedError, LedgerError, ParameterError
from recordwise.ledger.periods import periods_of
from recordwise.mechanisms import Gaussian
from recordwise.plan.query import Query, query
from recordwise.policy import constant
from recordwise.policy import series as histories
from recordwise.policy.series import Series
from recordwise.session import Session

SIGMAS = {"2025": 3, "2026": 30}
"""The noise of each period; they differ, so that a loss charged to another period's record is not the right one."""
HISTORIES = ({"2025": 40, "2026": 3}, {"2025": 3, "2026": 40}, {"2025": 7}, {"2026": 7})
"""Units that shrink, grow, leave and enter: their values by period."""
SPELLINGS = ("2026/", "2O26", "\uff12\uff10\uff12\uff16", "2026Q1")
"""A period that was charged, in other letters or as a part of it: none of them is a new period."""
CELLS = 50
ROUNDING = 1e-9


def audit_two_periods(folder: Path, how: Runs) -> Finding:
    """Publish two periods, resume one and retry it; what a history lost must be covered by what the ledger says."""
    problems: list[str] = []
    for period in SIGMAS:
        problems += _published(folder, period, how)
    with _opened(folder, "2026", how) as session:
        events = session.history()
    charges = [event for event in events if event.kind == "charged"]
    problems += ["a retry paid twice"] if len(charges) > len(SIGMAS) else []
    policies = {each.name: each.spent for each in periods_of(events)}
    for history in HISTORIES:
        records = {period: {"value": value} for period, value in history.items()}
        said = sum(histories.history_losses(policies, records).values())
        lost = sum(value**2 / (2 * SIGMAS[period] ** 2) for period, value in history.items())
        problems += ["a history lost more than the ledger says"] if said < lost * (1 - ROUNDING) else []
    problems += _second_budgets(folder, how)
    return Finding.without_numbers(
        "a series of two periods", samples=len(HISTORIES), problems=tuple(dict.fromkeys(problems))
    )


def _published(folder: Path, period: str, how: Runs) -> list[str]:
    """One period as an unattended process publishes it: drawn and kept, ended, resumed, and retried, also with another title."""
    asked = _asked(SIGMAS[period])
    with _opened(folder, period, how) as session:
        drawn = session.run(asked, once=True, keep=True)
    with _opened(folder, period, how) as session:
        resumed = session.unfinished.resume(asked)
    for again in (asked, asked.named("answers", title="A corrected title")):
        with _opened(folder, period, how) as session, suppress(AlreadyReleasedError):
            session.run(again, once=True, keep=True)
    same = resumed is not None and resumed.table.equals(drawn.table)
    spread = float(np.std(drawn.table.column("answer").to_numpy()))
    # Of 50 empty cells: the chance that a sound sampler is below half its sigma is below 1e-9 (chi-square).
    narrow = spread < SIGMAS[period] / 2
    return ([] if same else ["a resumed release was drawn again"]) + (["less noise than stated"] if narrow else [])


def _second_budgets(folder: Path, how: Runs) -> list[str]:
    """A spent budget must stay spent, whatever the period is called and whether or not there was a series."""
    with _opened(folder, None, how, ledger="spent.ledger", budget=constant(1)) as session:
        session.run(query().count(Gaussian(rho=1)))
    problems = []
    for name, period in [("spent", "2026"), *(("two-periods", spelling) for spelling in SPELLINGS)]:
        with suppress(LedgerError, ParameterError), _opened(folder, period, how, ledger=f"{name}.ledger"):
            problems.append("a period has a second budget")
    return problems


def _asked(sigma: int) -> Query:
    keys = {"cell": [str(number) for number in range(CELLS)]}
    return query().group_by("cell", keys=keys).sum("value", Gaussian(sigma=sigma), alias="answer")


def _opened(folder: Path, period: str | None, how: Runs, *, ledger: str = "two-periods.ledger", **more: Any) -> Session:
    records = pa.table({"id": [1], "cell": ["elsewhere"], "value": [5]})
    stated: dict[str, Any] = {"tuned_on": "synthetic", "outside": "accept", "ledger": folder / ledger}
    stated |= {"engine": how.engine, "spark": how.spark, **more}
    stated["series"] = None if period is None else Series(name="two periods", period=period)
    return Session(records, unit="id", measures={"value": 1}, columns={"cell": "text"}, **stated)
