"""What the server does for its page: the trade file, what was chosen, and what is handed over, in one folder.

The trade file of a plan that has not changed is there at once, as the text that it is; what reads and checks it is imported when
something is chosen. While one is made, the page shows what the plan itself says, which needs no record.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordwise.errors import ParameterError, RecordwiseError
from recordwise.studio import begin, form
from recordwise.studio.worker import DONE, FAILED, Job, Worker

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.studio.state import StudioState
    from recordwise.studio.trade import Trade

TRADE, WORKING, BROKEN, BEGIN = "trade", "working", "failed", "begin"
"""How far the studio is: it shows a trade file, makes one, could not, or has no plan yet."""
MOST_BYTES = 50_000_000
PUBLIC, SYNTHETIC = "public", "synthetic"
DECLARED = (PUBLIC, SYNTHETIC, "past", "confidential")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The plan that is chosen for, and the records to try."""

    plan: Path
    records: Path | None = None
    declared: str = "confidential"
    """What records are declared to be; without a word they are confidential."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The values of ``${name}`` in the plan."""

    def __post_init__(self) -> None:
        if self.declared not in DECLARED:
            raise ParameterError(parameter="data", problem=f"must be one of {', '.join(DECLARED)}")

    @property
    def data(self) -> str:
        """What the records are."""
        return SYNTHETIC if self.records is None else self.declared

    @property
    def is_confidential(self) -> bool:
        """Whether records are neither declared public nor generated."""
        return self.data not in (PUBLIC, SYNTHETIC)

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
            own = {
                "plan_digest": form.plan_digest(self.plan, self.parameters),
                "records_digest": form.records_digest(self.records),
                "data": self.data,
                "generated": self.records is None,
            }
            return text if all(found[name] == each for name, each in own.items()) else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def first_look(self) -> dict[str, Any] | None:
        """Return what the plan itself says; None where the trade file is there at once."""
        if self.made_before() is not None:
            return None
        from recordwise.plan.file.read import load_plan

        return first_look(load_plan(self.plan, parameters=self.parameters))

    def make(self) -> str:
        """Return the trade file, made if it has to be.

        Whoever opens one of confidential records again looks at them again, and the ledger notes it.
        """
        found = self.made_before()
        if found is not None:
            if self.is_confidential:
                from recordwise.plan.file.read import load_plan
                from recordwise.session.owner import enter_look

                enter_look(load_plan(self.plan, parameters=self.parameters), "studio")
            return found
        from recordwise.studio.make import make_trade

        trade = make_trade(self.plan, records=self.records, data=self.data, parameters=self.parameters)
        trade.save(self.trade_file)
        return trade.text()

    def exact(self, trade: "Trade") -> "Callable[[StudioState], Mapping[str, str]]":
        """Return what computes the numbers of a state from the policy itself."""
        from recordwise.plan.file.read import load_plan
        from recordwise.studio.handover import Exact

        return Exact.of(load_plan(self.plan, parameters=self.parameters), trade).texts

    def hand_over(self, trade: "Trade", state: "StudioState", *, save: bool) -> dict[str, Any]:
        """Return the plan, the same in Python and the commands; saved next to the plan, with a report, if asked."""
        from recordwise.plan.file.read import load_plan
        from recordwise.planning.result import owner_only
        from recordwise.studio.handover import commands, plan_of, python_of
        from recordwise.studio.page import report_html

        file, new = load_plan(self.plan, parameters=self.parameters), _new_files(self.plan)
        texts: dict[str, Any] = {
            "plan": plan_of(file, trade, state, new["plan"]).text,
            "python": python_of(file, trade, state),
            "commands": list(commands(new["plan"].name, file.parameters)),
        }
        if save:
            whole = {"plan": texts["plan"], "python": texts["python"], "report": report_html(trade, state, texts)}
            for what, text in whole.items():
                owner_only(new[what], trade.data)
                new[what].write_text(text, encoding="utf-8")
        return texts | {"names": {what: new[what].name for what in (new if save else ("plan",))}}


def _new_files(plan: Path) -> dict[str, Path]:
    """Return the first free names next to a plan, equally numbered."""
    number = 1
    while True:
        more = "" if number == 1 else f"-{number}"
        names = {"plan": f"chosen{more}.toml", "python": f"chosen{more}.py", "report": f"report{more}.html"}
        found = {what: plan.with_name(f"{plan.stem}-{name}") for what, name in names.items()}
        if not any(each.exists() for each in found.values()):
            return found
        number += 1


SIZES = (10, 100, 1_000, 10_000)
"""Cells whose errors are shown at once."""


def first_look(file: "PlanFile") -> dict[str, Any]:
    """Return what a plan says before any record is there.

    The losses of its examples, how far off cells of its finest table are, and its tables. Nothing of planning is imported: that
    takes longer than showing this.
    """
    from recordwise.exact.text import exact_text, screen_number, screen_whole
    from recordwise.plan.cost import plan_policy
    from recordwise.plan.describe import table_name
    from recordwise.plan.keys.hierarchies import with_hierarchy_labels

    plan, words = file.plan, with_hierarchy_labels(file.words, file.plan.schema.hierarchies)
    policy = plan_policy(plan)
    losses = []
    for name, record in file.examples.items():
        loss = float(policy.loss(dict(record)))
        told = [f"{key} {each if isinstance(each, str) else exact_text(each)}" for key, each in record.items()]
        losses.append({"name": name, "fine": ", ".join(told), "value": loss, "text": screen_number(loss)})
    listed = [each for each in plan.tables() if plan.selection(each) is None]
    cells = {table_name(plan, each): plan.cells(each).num_rows if each.shape.groups else 1 for each in listed}
    return {
        "title": words.publication.title or file.dataset,
        "about": words.labels.get("count", "records").lower(),
        "losses": losses,
        "errors": _first_errors(file),
        "tables": [{"name": name, "cells": screen_whole(number)} for name, number in cells.items()],
    }


def _first_errors(file: "PlanFile") -> dict[str, Any]:
    """Return the margin of error of cells of some sizes, of the first sum in the finest table; nothing where it is not known."""
    import numpy as np

    from recordwise.exact.text import screen_error, screen_whole

    plan = file.plan
    drawn = [
        (plan.cells(part.table).num_rows, each.of is not None, part.table.shape, each)
        for part, each in plan.drawn()
        if part.table.shape.groups and plan.selection(part.table) is None and each.totals(plan.schema)
    ]
    if not drawn:
        return {}
    *_, level, statistic = max(drawn, key=lambda one: one[:2])
    label = file.words.label(statistic.alias, statistic.of)
    rows = []
    for size in SIZES:
        try:
            own = statistic.mechanism.at_share(level.share)
            if own.is_sized:
                edges = own.edges(float(size))
                own = own.at_size(max((each for each in edges if each <= size), default=edges[0]))
            measure = plan.schema.measure(statistic.of) if statistic.of else None
            step = 1 if measure is None else measure.step
            reach = float(own.error_quantiles(np.array([float(size)]), confidence=0.95, step=step)[0])
        except RecordwiseError:
            return {}
        rows.append(
            {"name": f"{screen_whole(size)} {label}", "value": reach / size, "text": screen_error(reach / size)}
        )
    return {"table": " by ".join(level.names()), "rows": rows}


@dataclass(slots=True, kw_only=True, eq=False)
class Desk:
    """One person's work in one folder."""

    folder: Path
    subject: Subject | None = None
    """None until a plan was begun."""
    worker: Worker = field(default_factory=Worker)
    job: Job | None = None
    first: Job | None = None
    """What the plan itself says, while the trade file is made."""
    _read: "tuple[str, Trade] | None" = None
    _exact: "Callable[[StudioState], Mapping[str, str]] | None" = None

    def open(self) -> None:
        """Begin with the trade file, if there is a plan."""
        if self.subject is not None:
            self.first = self.worker.start("first", self.subject.first_look)
            self.job = self.worker.start("trade", self.subject.make)

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
            "label": "CONFIDENTIAL" if self.subject is not None and self.subject.is_confidential else "",
            "first": None if self.first is None or stage != WORKING else self.first.result,
            "state": self._chosen() if stage == TRADE else None,
            "files": begin.record_files(self.folder) if stage == BEGIN else [],
        }

    # Without a plan.

    def propose(self, records: str, headed: bool) -> dict[str, Any]:
        """Return what the columns of a file are taken for, and the public lists that fit them."""
        return begin.propose(self.folder, records, headed=headed)

    def draft(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan of a form, and how many cells it publishes."""
        return begin.draft(self.folder, begin.read_form(content))

    def begin(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Write the plan of a form and go on with it."""
        self.subject = Subject(plan=begin.write_plan(self.folder, begin.read_form(content)))
        self.open()
        return {"plan": self.subject.plan.name}

    # With one.

    def _given(self) -> Subject:
        if self.subject is None:
            raise ParameterError(parameter="the plan", problem="is missing", advice="Begin with a file of records.")
        return self.subject

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
        """Read a state, refusing one of another trade file."""
        from recordwise.studio.state import StudioState

        return StudioState.from_json(dict(content), self.trade())

    def keep(self, content: Mapping[str, Any]) -> None:
        """Save what was chosen."""
        from recordwise.planning.result import owner_only

        text = self.state(content).text()
        owner_only(self._given().kept_file, self.trade().data)
        self._given().kept_file.write_text(text, encoding="utf-8")

    def _chosen(self) -> Any:
        """Return what was chosen before; the page starts over if it was about another trade file."""
        try:
            file = self._given().kept_file
            return json.loads(file.read_text(encoding="utf-8")) if file.stat().st_size <= MOST_BYTES else None
        except (OSError, ValueError, RecursionError):
            return None

    def hand_over(self, content: Mapping[str, Any], save: bool) -> dict[str, Any]:
        """Return the plan, the same in Python and the commands; saved in the folder if asked."""
        return self._given().hand_over(self.trade(), self.state(content), save=save)

    def exact(self, content: Mapping[str, Any]) -> Job:
        """Start computing the numbers of a state from the policy itself."""

        def compute() -> dict[str, str]:
            if self._exact is None:
                self._exact = self._given().exact(self.trade())
            return dict(self._exact(self.state(content)))

        return self.worker.start("exact", compute)
