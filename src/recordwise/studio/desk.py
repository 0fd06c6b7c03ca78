"""What the server does for its page: the trade file, what was chosen, and what is handed over, in one folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordwise.errors import ParameterError
from recordwise.planning.result import owner_only
from recordwise.studio.state import StudioState
from recordwise.studio.trade import Trade
from recordwise.studio.worker import DONE, FAILED, Job, Worker

TRADE, WORKING, BROKEN, BEGIN = "trade", "working", "failed", "begin"
"""How far the studio is: it shows a trade file, makes one, could not, or has no plan yet."""
MOST_BYTES = 5_000_000


@dataclass(slots=True, kw_only=True, eq=False)
class Desk:
    """One person's work in one folder."""

    folder: Path
    kept: Path
    """The file of what was chosen, so that a studio that ended goes on where it was."""
    make: Callable[[], Trade]
    """Makes the trade file, or reads it."""
    hand: Callable[[Trade, StudioState, bool], Mapping[str, Any]]
    """Hands over what was chosen: texts, and files if they are to be saved."""
    worker: Worker = field(default_factory=Worker)
    job: Job | None = None

    def open(self) -> None:
        """Begin with the trade file."""
        self.job = self.worker.start("trade", self.make)

    def close(self) -> None:
        """Stop what is being computed."""
        self.worker.close()

    def about(self) -> dict[str, Any]:
        """Return where the studio stands, and what was chosen before."""
        stage, problem = BEGIN, ""
        if self.job is not None:
            stage = {DONE: TRADE, FAILED: BROKEN}.get(self.job.status, WORKING)
            problem = self.job.problem
        return {
            "folder": self.folder.name or str(self.folder),
            "stage": stage,
            "problem": problem,
            "state": self._chosen() if stage == TRADE else None,
        }

    @property
    def trade(self) -> Trade:
        """The trade file, once it is there."""
        if self.job is None or self.job.status != DONE:
            raise ParameterError(parameter="the trade file", problem="is not finished")
        found: Trade = self.job.result
        return found

    def trade_text(self) -> str:
        """Return the trade file."""
        return self.trade.text()

    def keep(self, state: Mapping[str, Any]) -> None:
        """Save what was chosen; a state that does not fit the trade file is refused."""
        text = StudioState.from_json(dict(state), self.trade).text()
        owner_only(self.kept, self.trade.data)
        self.kept.write_text(text, encoding="utf-8")

    def _chosen(self) -> dict[str, Any] | None:
        """Return what was chosen before, unless it was about another trade file."""
        try:
            if self.kept.stat().st_size > MOST_BYTES:
                return None
            content = json.loads(self.kept.read_text(encoding="utf-8"))
            return StudioState.from_json(content, self.trade).to_json()
        except (OSError, ValueError, RecursionError):
            return None

    def hand_over(self, state: Mapping[str, Any], save: bool) -> dict[str, Any]:
        """Return the plan, the same in Python and the commands; saved in the folder if asked."""
        return dict(self.hand(self.trade, StudioState.from_json(dict(state), self.trade), save))
