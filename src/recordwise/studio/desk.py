"""What the server does for its page: the trade file, what was chosen, and what is handed over, in one folder.

The trade file of a plan that has not changed is there at once, as the text that it is; what reads and checks it is imported when
something is chosen.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordwise.errors import ParameterError
from recordwise.studio.worker import DONE, FAILED, Job, Worker

if TYPE_CHECKING:
    from recordwise.studio.state import StudioState
    from recordwise.studio.trade import Trade

TRADE, WORKING, BROKEN, BEGIN = "trade", "working", "failed", "begin"
"""How far the studio is: it shows a trade file, makes one, could not, or has no plan yet."""
MOST_BYTES = 50_000_000
PUBLIC, CONFIDENTIAL, SYNTHETIC = "public", "confidential", "synthetic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The plan that is chosen for, and the records that it is tried on."""

    plan: Path
    records: Path | None = None
    confidential: bool = False
    """Whether records are neither public nor generated."""

    @property
    def data(self) -> str:
        """What the records are."""
        return SYNTHETIC if self.records is None else CONFIDENTIAL if self.confidential else PUBLIC

    @property
    def trade_file(self) -> Path:
        """The trade file, next to the plan."""
        return self.plan.with_name(f"{self.plan.stem}.trade.json")

    @property
    def kept_file(self) -> Path:
        """The file of what was chosen, so that a studio that ended goes on where it was."""
        return self.plan.with_name(f"{self.plan.stem}.studio.json")

    def made_before(self) -> str | None:
        """Return the trade file if it is of this plan and these records, and no list next to them is newer."""
        file = self.trade_file
        try:
            written = file.stat()
            others = [each for each in self.plan.parent.iterdir() if each.suffix in (".csv", ".parquet", ".pq")]
            newer = [
                each for each in (*others, *filter(None, [self.records])) if each.stat().st_mtime > written.st_mtime
            ]
            if newer or written.st_size > MOST_BYTES:
                return None
            text = file.read_text(encoding="utf-8")
            found = json.loads(text)
            digest = hashlib.sha256(self.plan.read_bytes()).hexdigest()
            same = found["plan_digest"] == digest and found["data"] == self.data
            return text if same and found["generated"] == (self.records is None) else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def make(self) -> str:
        """Return the trade file, made if it has to be."""
        found = self.made_before()
        if found is not None:
            return found
        from recordwise.studio.make import make_trade

        trade = make_trade(self.plan, records=self.records, data=self.data)
        trade.save(self.trade_file)
        return trade.text()


Hand = Callable[["Trade", "StudioState", bool], Mapping[str, Any]]
"""Hands over what was chosen: texts, and files if they are to be saved."""


@dataclass(slots=True, kw_only=True, eq=False)
class Desk:
    """One person's work in one folder."""

    folder: Path
    kept: Path
    make: Callable[[], str]
    """Returns the text of the trade file."""
    hand: Hand
    worker: Worker = field(default_factory=Worker)
    job: Job | None = None
    _read: "tuple[str, Trade] | None" = None

    @classmethod
    def of(cls, subject: Subject) -> "Desk":
        """Return the desk for a plan."""

        def hand(trade: "Trade", state: "StudioState", save: bool) -> Mapping[str, Any]:
            from recordwise.studio.handover import hand_over

            return hand_over(subject, trade, state, save=save)

        return cls(folder=subject.plan.resolve().parent, kept=subject.kept_file, make=subject.make, hand=hand)

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

    def trade_text(self) -> str:
        """Return the trade file."""
        if self.job is None or self.job.status != DONE:
            raise ParameterError(parameter="the trade file", problem="is not finished")
        found: str = self.job.result
        return found

    def trade(self) -> "Trade":
        """Return the trade file, read and checked."""
        from recordwise.studio.trade import Trade

        text = self.trade_text()
        if self._read is None or self._read[0] != text:
            self._read = (text, Trade.from_json(json.loads(text)))
        return self._read[1]

    def state(self, content: Mapping[str, Any]) -> "StudioState":
        """Read a state; one that does not fit the trade file is refused."""
        from recordwise.studio.state import StudioState

        return StudioState.from_json(dict(content), self.trade())

    def keep(self, content: Mapping[str, Any]) -> None:
        """Save what was chosen."""
        from recordwise.planning.result import owner_only

        text = self.state(content).text()
        owner_only(self.kept, self.trade().data)
        self.kept.write_text(text, encoding="utf-8")

    def _chosen(self) -> Any:
        """Return what was chosen before; the page begins anew if it was about another trade file."""
        try:
            if self.kept.stat().st_size > MOST_BYTES:
                return None
            return json.loads(self.kept.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None

    def hand_over(self, content: Mapping[str, Any], save: bool) -> dict[str, Any]:
        """Return the plan, the same in Python and the commands; saved in the folder if asked."""
        return dict(self.hand(self.trade(), self.state(content), save))
