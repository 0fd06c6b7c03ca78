"""Check a plan before any record is read: cost, example losses, expected errors, budget.

The expected error of every table is worked out at totals that fit it, from the noise laws and from what is public. The totals are
those of a small, a middle and a large cell: at the 10th, 50th and 90th percentile of the public sizes of the keys, or of what the
last release published. Sizes that are given without saying of what are taken for those of the statistics whose noise follows
them; other statistics have the totals of as many records of the usual size (``simulate/generate.py``). Where nothing is known,
cells have 10, 100 and 1,000. A combination, ratio or average has the standard deviation that is published with it (T-RATIO); a
quantile is drawn from made-up cells of as many records.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.engines.engine import missing_extra
from recordwise.engines.registry import engine_kind, source_state
from recordwise.errors import BudgetError, MissingPartError, ParameterError, RecordError, own_argument_errors
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import brief_text, digits_text, figure, formula_text, percent_text
from recordwise.ledger.entries import looks_text
from recordwise.ledger.ledger import FIXED_IN_ADVANCE, Ledger
from recordwise.mechanisms.base import Mechanism
from recordwise.noise.randomness import Seeded
from recordwise.plan.cost import CellMechanism, Run, cell_mechanisms, plan_policy, possible_mechanisms
from recordwise.plan.describe import (
    ReleaseIdentity,
    declared_elsewhere,
    plan_json,
    plan_warnings,
    protected,
    query_names,
    release_identity,
    table_name,
    unrecognizable,
)
from recordwise.plan.file.node import hiding
from recordwise.plan.file.read import PlanFile, load_plan
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.schema import Measure, policy_measure
from recordwise.plan.statistics import BinCounts, Drawable, ExactTable, Statistic
from recordwise.plan.statistics.base import COUNT, SUM, Form
from recordwise.planning.losses import TenYears
from recordwise.planning.result import Result, Rows, html_table, record_text
from recordwise.planning.search.cheaper import cheaper_families
from recordwise.planning.simulate.generate import SKEW, derived_size, usual_sizes
from recordwise.policy.constructors import By
from recordwise.policy.meaning import meaning
from recordwise.policy.policy import Policy, constants_of, example_date
from recordwise.policy.render.text import policy_lines
from recordwise.release.files import load_release
from recordwise.release.formats import formats_named
from recordwise.release.release import Release
from recordwise.session.checks import (
    check_release_sizes,
    explain_refusal,
    promise,
    raise_bands,
    size_sources,
    with_sizes,
)
from recordwise.session.session import plan_ledger, planned_stage
from recordwise.session.shares import BestShares, best_shares, public_sizes

DELTA = 1e-5
FREE = (
    "nothing is charged: noise is added to a release that was charged in full, once; losses are those of readers who see this tier "
    "alone, and whoever also sees that release loses what it cost"
)
LEAST_SHARE = 0.0005
"""Smaller relative errors look the same."""
NOT_LOOKED_AT = "not looked at"
FITTED = (
    "These are the errors of the research tables, each as it is drawn. Basic tables combine all levels, so that coarse cells are "
    "at least as accurate as the sum of their parts: recordwise explain shows their errors."
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Check(Result):
    """What can be said about a plan without its records."""

    file: PlanFile
    """The plan as it would be drawn."""
    source: str
    """What the source looks like, in words."""
    policy: Policy
    examples: tuple[dict[str, Any], ...]
    """The losses of example records."""
    expected: tuple["ExpectedError", ...]
    refusal: BudgetError | None
    """The error that a release would raise, if the budget does not cover it."""
    sizes: dict[str, Any]
    """Where the public sizes of cells are from, and what that means for the promise over time."""
    shares: tuple[BestShares, ...]
    """The best shares of the tables of each query whose cells have public sizes."""
    warnings: tuple[str, ...]
    years: TenYears | None = None
    """What ten years cost by kind of establishment, with fresh and with carried noise; None outside a series."""

    @property
    def data(self) -> str:
        """Nothing about the records is in it."""
        return "public"

    @property
    def privacy_label(self) -> str:
        """That no record was read."""
        return "computed from the plan and its ledger; no record was read"

    @property
    def protects(self) -> str:
        """What one record is, where its id has several columns."""
        schema = self.file.plan.schema
        return protected(schema) if len(schema.unit_columns) > 1 else ""

    @property
    def budget(self) -> str:
        """Whether the budget covers the plan, in words."""
        if self.file.budget is None:
            return "none"
        pure = " in pure epsilon" if self.file.budget.is_pure else ""
        return f"covers the plan{pure}" if self.refusal is None else "refused"

    def summary(self) -> str:
        """Return the policy in words."""
        return self.policy.in_words()

    def rows(self) -> Rows:
        """Return headers and rows: the losses of example records."""
        titles = {"loss": "loss", "epsilon": f"epsilon at {formula_text(DELTA)}", "paper_loss": "loss as in the papers"}
        if any("loss_of_all_stages" in each for each in self.examples):
            titles |= {"loss_of_all_stages": "loss of all stages"}
        if any(each.get("pure_epsilon") is not None for each in self.examples):
            titles |= {"pure_epsilon": "pure epsilon"}
        if any(each.get("selection_delta") for each in self.examples):
            titles |= {"epsilon": f"epsilon at {formula_text(DELTA)} + delta", "selection_delta": "delta"}
        rows = [
            [each["name"], each["record"], *(figure(each[key]) if key in each else "-" for key in titles)]
            for each in self.examples
        ]
        return ["record", "", *titles.values()], rows

    def example_notes(self) -> Iterator[str]:
        """Yield what must be known about the loss of an example record."""
        for each in self.examples:
            if "refused" in each:
                yield f"{each['name']}: {each['refused']}"
            elif each["selection_delta"]:
                yield (
                    f"{each['name']}: keys are selected, so epsilon holds at delta {digits_text(each['delta'], 3)}, of which "
                    f"{digits_text(each['selection_delta'], 3)} is the chance that its key is listed because of it alone"
                )

    def expected_rows(self) -> dict[str, Rows]:
        """Return the expected errors of each table, with its name."""
        headers = ["", "noise", "a small cell", "a middle cell", "a large cell"]
        found: dict[str, Rows] = {}
        for each in self.expected:
            cells = "selected" if each.cells is None else f"{each.cells:,}"
            unit = self.file.words.unit(each.variable, each.of)
            name = f"{each.variable} ({unit})" if unit else each.variable
            numbers = (error_text(*three) for three in zip(each.totals, each.least_sd, each.most_sd))
            own = found.setdefault(f"{each.table} (cells: {cells})", (headers, []))
            own[1].append([name, each.mechanism, *numbers])
        return found

    def expected_notes(self) -> Iterator[str]:
        """Yield where the totals are from at which errors are expected."""
        for source in dict.fromkeys(each.source for each in self.expected):
            names = dict.fromkeys(each.variable for each in self.expected if each.source == source)
            yield f"{', '.join(names)}: {source}."
        usual = {name: size for each in self.expected for name, size in each.usual.items()}
        if usual:
            told = ", ".join(f"{name} {brief_text(size)}" for name, size in usual.items())
            yield f"A usual record, as the examples or the mechanisms suggest: {told}."
        yield from (each.text() for each in self.shares)
        if self.file.basic is not None and self.file.basic.complete and len(self.file.plan.tables()) > 1:
            yield FITTED

    def reserve_text(self) -> str:
        """Say what the plan keeps for revisions, and what that costs; empty where it keeps nothing."""
        revisions, series = self.file.reserve, self.file.series
        if not revisions:
            return ""
        if series is not None and series.revision > 0:
            return "This is a revision: it uses what the first release reserved, if anything is left of it."
        losses = ", ".join(
            f"{each['name']} {figure(each['loss'] * revisions)}" for each in self.examples if "loss" in each
        )
        count = "1 revision" if revisions == 1 else f"{revisions} revisions"
        return (
            f"Reserved for {count}: the full charge again for every record, which no other release may use"
            f"{losses and f' ({losses})'}."
        )

    def known_examples(self) -> dict[str, dict[str, Any]]:
        """Return the example records that the plan's policy has a loss for."""
        known = {each["name"] for each in self.examples if "refused" not in each}
        return {name: each for name, each in _distinct_examples(self.file, self.policy).items() if name in known}

    def notes(self) -> tuple[str, ...]:
        """Return what the owner should know before a release."""
        refusal = () if self.refusal is None else (str(self.refusal),)
        return (*self.example_notes(), f"Budget: {self.budget}", *refusal, *self.warnings)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, for JSON."""
        return {
            "plan": str(self.file.path),
            "dataset": self.file.dataset,
            "policy": self.policy.to_json(),
            "formula": policy_lines(self.policy),
            "words": self.policy.in_words(),
            "pure": None if self.policy.pure_problem() is not None else self.policy.pure().to_json(),
            "examples": list(self.examples),
            "expected_error": [each.to_json() for each in self.expected],
            "shares": [each.to_json() for each in self.shares],
            "budget": self.budget,
            "reserve": self.file.reserve or 0,
            "refusal": None if self.refusal is None else str(self.refusal),
            "hierarchies": [each.about() for each in self.file.plan.schema.hierarchies],
            "declared_elsewhere": [each.to_json() for each in declared_elsewhere(self.file.plan)],
            **self.sizes,
            **({} if self.years is None else {"years": self.years.to_json(self.known_examples())}),
            "warnings": list(self.warnings),
            "source": self.source,
            **({"protects": self.protects} if self.protects else {}),
        }

    def _about(self) -> str:
        return f"of {self.file.path}"

    def _title(self) -> str:
        return "Losses at example records"

    def _repr_html_(self) -> str:
        tables = [
            html_table(f"Expected error: {name}", rows, privacy_label=self.privacy_label)
            for name, rows in self.expected_rows().items()
        ]
        return Result._repr_html_(self) + "".join(tables)


@own_argument_errors
def check(
    plan: PlanFile | str | Path, *, source: bool = True, parameters: Mapping[str, str | int] | None = None
) -> Check:
    """Work out what a plan would cost and how accurate it would be, without reading a record.

    Args:
        plan: The plan, or its file.
        source: Whether to look at the columns of the source.
        parameters: The values of ``${name}`` in the file.

    Returns:
        Losses of example records, expected errors, whether the budget covers the plan, and warnings.

    Raises:
        PlanFileError: The plan has problems.
        SourceError: The source does not have the plan's columns.
    """
    given = plan if isinstance(plan, PlanFile) else load_plan(plan, parameters=dict(parameters or {}))
    formats_named(given.formats)
    state = NOT_LOOKED_AT
    if source:
        with hiding(given.hidden):
            state = source_state(given.source, given.plan.schema, engine=given.engine)
    file = with_known_sizes(given)
    paid, total, charged = _stage_of(file)
    policy, paper = plan_policy(paid), plan_policy(paid, tight=False)
    last = load_release(file.earlier[-1]) if file.earlier else None
    return Check(
        file=file,
        source=state,
        policy=policy,
        examples=tuple(_losses(file, policy, paper, total)),
        expected=expected_errors(file.plan, examples=file.examples, last=last),
        refusal=_refusal(file, policy) if charged else None,
        sizes=_sizes_of(file),
        shares=tuple(_best_shares(file)),
        warnings=(*(() if charged else (FREE,)), *_warnings(file), *_cheaper(file, last)),
        years=TenYears.of(file),
    )


def _stage_of(file: PlanFile) -> tuple[Plan, Policy | None, bool]:
    """Return what a plan pays for, where it refines a release what both cost together, and whether anything is charged."""
    stage = planned_stage(file)
    if stage is None:
        return file.plan, None, True
    return stage.paid, plan_policy(stage.plan) if stage.refines is not None else None, stage.tier_of is None


def _best_shares(file: PlanFile) -> Iterator[BestShares]:
    """Yield the best shares of each query with several sized tables."""
    plan, complete = file.plan, file.basic is not None and file.basic.complete
    for number, query in enumerate(plan.queries):
        tables = [each for each in plan.tables() if each.query == number]
        if len(tables) > 1 and all(plan.selection(each) is None for each in tables):
            # Without sizes nothing is known about errors, but for tables that are fitted together, by the numbers of their cells.
            known = complete or any(public_sizes(plan, tables[0], each) is not None for each in query.draws())
            goal = () if query.best is None else query.best.goal
            found = best_shares(plan, number, goal=dict(goal) if goal else None, complete=complete) if known else None
            if found is not None and found.variables and (found.sized or complete):
                yield found


def _cheaper(file: PlanFile, last: Release | None) -> Iterator[str]:
    """Yield where another family of noise would cost every example less."""
    known = Known(plan=file.plan, usual=usual_sizes(file.plan, file.examples), last=last)
    pure = file.budget is not None and file.budget.is_pure
    for each in cheaper_families(file.plan, lambda table, part: known.totals(table, part)[0], file.examples, pure=pure):
        yield each.text()


def _losses(file: PlanFile, policy: Policy, paper: Policy, total: Policy | None = None) -> Iterator[dict[str, Any]]:
    """Yield the loss of each example record, or the error where the policy gives no guarantee."""
    for name, record in _distinct_examples(file, policy).items():
        row: dict[str, Any] = {"name": name, "record": record_text(record)}
        try:
            loss, own = float(policy.loss(record)), float(policy.delta(record))
            row |= {"loss": loss, "paper_loss": float(paper.loss(record))}
            row |= {} if total is None else {"loss_of_all_stages": float(total.loss(record))}
            pure = None if policy.pure_problem() is not None else float(policy.epsilon_pure(record))
            told = meaning(loss, delta=DELTA, pure=pure)
            row |= {"epsilon": told.epsilon, "delta": DELTA + own, "selection_delta": own, "pure_epsilon": pure}
        except RecordError as error:
            row["refused"] = str(error)
        yield row


def with_known_sizes(file: PlanFile) -> PlanFile:
    """Return the plan with earlier sizes read and bands raised."""
    plan = with_sizes(file.plan)
    if plan is file.plan:
        return file
    with plan_ledger(file) as ledger:
        try:
            plan = raise_bands(plan, ledger)
        except BudgetError:
            # It cannot be covered whatever the bands; that is said about the plan as it stands.
            return replace(file, plan=plan)
    return replace(file, plan=plan)


def _sizes_of(file: PlanFile) -> dict[str, Any]:
    """Where the public sizes of cells are from, and what that means for the promise over time."""
    sources = size_sources(file.plan)
    if not sources:
        return {}
    with plan_ledger(file) as ledger:
        check_release_sizes(file.plan, ledger)
        listed = [{"sized_on": each, "digest": own} for each, own in sources.items()]
        return {"sizes": listed, "sized_noise": promise(file.plan, ledger)}


def _refusal(file: PlanFile, policy: Policy) -> BudgetError | None:
    """The error that a charge to the ledger would raise, if any, taking earlier charges into account."""
    with plan_ledger(file) as ledger:
        try:
            ledger.check(policy, query="the plan", named=query_names(file.plan), release=_identity(file, policy))
        except BudgetError as error:
            return explain_refusal(error, file.plan, ledger)
    return None


def _identity(file: PlanFile, policy: Policy) -> ReleaseIdentity | None:
    """What the plan releases; None if other processes cannot recognize it."""
    plan = file.plan
    return None if unrecognizable(plan) else release_identity(plan, plan_json(plan), policy, file.series)


def _looks_of(file: PlanFile) -> str:
    """The looks at confidential records that the plan's ledger notes, in words; empty where there is none."""
    if not file.ledger.exists():
        return ""
    ledger = Ledger.existing(file.ledger)
    found = looks_text(ledger.looks())
    ledger.close()
    return found


def _looked_warning(looks: str, reason: str | None) -> str:
    """What that means for a release."""
    told = f"the ledger records that the confidential records were viewed ({looks})"
    if reason:
        return f"{told}; the reason given will be published with the release: {reason}"
    return f'{told}: the release will be refused unless the plan gives tuning_reason = "reason", which is published with it'


def _warnings(file: PlanFile) -> list[str]:
    """What the owner should know before a release."""
    found = list(plan_warnings(file.plan))
    clamped = [each.alias for query in file.plan.queries for each in query.draws() if each.mechanism.to is not None]
    for alias in dict.fromkeys(clamped):
        found.append(
            f"{alias} is clamped: besides noise it has a bias from clamping, which is not included in the stated error"
        )
    if file.budget is None:
        found.append(f"no budget is declared: the {FIXED_IN_ADVANCE}")
    if file.tuned_on == "confidential":
        found.append(
            f"tuned on the confidential table; the reason given will be published with the release: {file.tuning_reason}"
        )
    elif looks := _looks_of(file):
        found.append(_looked_warning(looks, file.tuning_reason))
    for each in file.plan.schema.hierarchies:
        if not each.is_public:
            found.append(
                f"the hierarchy {each.name} is not from a public source; the reason given will be published with the release: "
                f"{file.tuning_reason}"
            )
    if not file.ledger.absolute().parent.is_dir():
        found.append(
            f"the ledger's folder, {file.ledger.parent}, does not exist: a release is refused until you make it"
        )
    missing = missing_extra(file.source, of_engine=engine_kind(file.engine).extra)
    if missing is not None:
        # The command comes first, so that it is not broken across lines.
        found.append(f"run {missing.command}: {missing.what} needs the extra '{missing.extra}', which is not installed")
    try:
        engine_kind(file.engine).check()
    except MissingPartError as error:
        found.append(str(error))
    return found


def error_text(value: float, least: float, most: float) -> str:
    """A value, its error in the same unit, and as a share."""
    error = brief_text(most) if least == most else f"{brief_text(least)} to {brief_text(most)}"
    share = most / abs(value) if value else 0.0
    words = percent_text(share) if share >= LEAST_SHARE else "< 0.1%"
    return f"{brief_text(value)} ± {error}" + (f" ({words})" if value else "")


# Example records that show a policy: the plan's own, or made up from its public thresholds; none is read from the data.


EXAMPLE_SIZES = {
    "small": Fraction(1, 10),
    "usual large": Fraction(1),
    "very large": Fraction(10),
    "huge": Fraction(100),
    "giant": Fraction(1000),
}


def example_records(file: PlanFile, policy: Policy) -> dict[str, dict[str, Any]]:
    """Return the plan's examples, or records around the thresholds."""
    if file.examples:
        return file.examples
    groups: dict[str, Any] = {
        column.name: next(constants_of(policy, column.name), "") for column in policy.columns() if not column.part
    }
    groups |= {column.name: example_date(policy, column.name) for column in policy.columns() if column.part}
    measures = {measure.name for measure in policy.inputs()}
    return {
        size: groups | {name: _example_amount(file.plan, name, factor) for name in sorted(measures)}
        for size, factor in EXAMPLE_SIZES.items()
    }


def _distinct_examples(file: PlanFile, policy: Policy) -> dict[str, dict[str, Any]]:
    """Return the plan's examples, or those made up, each once."""
    if file.examples:
        return file.examples
    once: dict[str, dict[str, Any]] = {}
    for name, record in example_records(file, policy).items():
        if record not in once.values():
            once[name if record else "every record"] = record
    return once


def _example_amount(plan: Plan, name: str, factor: Fraction) -> Fraction:
    """A multiple of the measure's threshold, on its lattice, within its bound."""
    declared = plan.schema.measure(name) or Measure(name=name)
    steps = math.ceil(_reference(plan, declared) * factor / declared.step)
    return declared.step * min(max(1, steps), declared.bound_steps)


def _reference(plan: Plan, declared: Measure) -> Fraction:
    for query in plan.queries:
        for statistic in query.draws():
            if statistic.contribution == SUM and statistic.of == declared.name:
                found = _parameter(statistic.mechanism, plan, declared.name)
                if found is not None:
                    return found
    return 100 * declared.step


def _parameter(mechanism: Mechanism, plan: Plan, name: str) -> Fraction | None:
    """Return a mechanism's threshold, clamp, offset or scale."""
    at = mechanism.threshold(policy_measure(name, plan.schema))
    if isinstance(at, By):
        return max([each for _, each in at.values] + ([at.default] if at.default else []))
    for value in (at, *(getattr(mechanism, part, None) for part in ("to", "at", "offset", "scale"))):
        if isinstance(value, Fraction) and value > 0:
            return value
    return None


# Expected errors.


RECORDS = (10, 100, 1_000)
PERCENTILES = (10, 50, 90)
FROM_SIZES, FROM_RELEASE = "public sizes", "the last release"
FROM_OTHERS = "as many usual records as the public sizes stand for"
FROM_RECORDS = "cells of 10, 100 and 1,000 usual records"
MOST_DRAWN, MOST_NODES = 400, 1 << 21
"""A quantile is drawn for this many made-up cells, or fewer where its grid is large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """The error of one variable in small, middle and large cells."""

    table: str
    cells: int | None
    """None where keys are selected."""
    variable: str
    mechanism: str
    ratio: float | None
    """The ratio of a ratio or an average in the middle cell."""
    totals: tuple[float, ...]
    """The value of the variable in each of the three cells."""
    least_sd: tuple[float, ...]
    most_sd: tuple[float, ...]
    """The largest standard deviation over the mechanisms that cells of the table may have."""
    source: str
    """Where the totals are from."""
    of: str | None = None
    """The measure that the variable is about."""
    usual: Mapping[str, float] = field(default_factory=dict)
    """The size of a usual record in each measure that the totals were made of."""

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is public about the totals of a plan."""

    plan: Plan
    usual: Mapping[str, float]
    """The usual size of a record in each measure."""
    last: Release | None

    def totals(self, table: PlannedTable, part: Drawable) -> tuple[FloatArray, str]:
        """Return a statistic's totals in three cells, and their origin.

        In whole steps.
        """
        for found, source in (
            (self._sizes(table, part), FROM_SIZES),
            (self.published(table, part), FROM_RELEASE),
        ):
            known = None if found is None else _positive(found)
            if known is not None:
                return _whole(np.percentile(known, PERCENTILES), part, self.plan), source
        records = self._records(table)
        if records is not None:
            return _whole(records * self._record(part), part, self.plan), FROM_OTHERS
        return _whole(np.array(RECORDS) * self._record(part), part, self.plan), FROM_RECORDS

    def used(self, parts: Sequence[Drawable]) -> dict[str, float]:
        """The usual sizes that the totals of these parts were made of."""
        names = [part.of for part in parts if part.of is not None and self.plan.schema.measure(part.of) is not None]
        return {name: derived_size(name, self.plan, self.usual) for name in names}

    def _records(self, table: PlannedTable) -> FloatArray | None:
        """Return three cells' numbers of usual records from public sizes."""
        for other in self.plan.queries[table.query].draws():
            found = self._sizes(table, other) if other.totals(self.plan.schema) else None
            known = None if found is None else _positive(found)
            if known is not None:
                return np.asarray(np.percentile(known, PERCENTILES) / self._record(other))
        return None

    def _sizes(self, table: PlannedTable, part: Drawable) -> FloatArray | None:
        return public_sizes(self.plan, table, part)

    def serving(
        self, table: PlannedTable, part: Drawable, served: Sequence[CellMechanism], totals: FloatArray
    ) -> list[int] | None:
        """Return the mechanism of the cell nearest to each total.

        None if noise does not follow sizes.
        """
        sizes = self._sizes(table, part) if part.mechanism.is_sized else None
        if sizes is None:
            return None
        number = np.zeros(len(sizes), np.int64)
        for place, each in enumerate(served):
            number[each.run.rows[each.run.rows < len(sizes)]] = place
        return [int(number[np.argmin(np.abs(sizes - total))]) for total in totals]

    def published(self, table: PlannedTable, part: Drawable) -> FloatArray | None:
        """Return what the last release published of a statistic by cell; None where it did not."""
        name = table_name(self.plan, table)
        for each in self.last.tables if self.last is not None else ():
            if each.name == name and part.alias in each.data.column_names:
                return np.asarray(each.data.column(part.alias).drop_null().to_numpy(), np.float64)
        return None

    def _record(self, part: Drawable) -> float:
        """What a record of the usual size adds."""
        return next(iter(self.used([part]).values()), 1.0) if part.contribution == SUM else 1.0


def _positive(values: FloatArray) -> FloatArray | None:
    found = values[values > 0]
    return found if len(found) else None


def _whole(totals: FloatArray, part: Drawable, plan: Plan) -> FloatArray:
    step = float(part.step(plan.schema))
    return np.asarray(np.maximum(np.rint(totals / step), 1.0) * step)


def expected_errors(
    plan: Plan, *, examples: Mapping[str, Mapping[str, Any]] | None = None, last: Release | None = None
) -> tuple[ExpectedError, ...]:
    """Return the standard deviations of published variables in three cells.

    Args:
        plan: The plan, with the sizes of earlier releases read.
        examples: Made-up records, by name.
        last: An earlier release, if the plan names one.

    Returns:
        A row for each table and variable.
    """
    known = Known(plan=plan, usual=usual_sizes(plan, examples or {}), last=last)
    found: list[ExpectedError] = []
    for table in plan.tables():
        cells = plan.cells(table) if plan.selection(table) is None else None
        query = plan.queries[table.query]
        drawn = query.draws()
        served = {each: _served(plan, table, each, cells) for each in drawn}
        for statistic in [*query.statistics, *(each for each in drawn if each not in query.statistics)]:
            row = {
                "table": table_name(plan, table),
                "cells": None if cells is None else cells.num_rows if table.shape.groups else 1,
                "variable": statistic.alias,
                "of": statistic.of,
            }
            parts = statistic.parts(drawn)
            try:
                if all(each.totals(plan.schema) for each in parts):
                    found.append(_of_forms(known, table, statistic, drawn, served, row))
                elif len(parts) == 1 and parts[0].bins():
                    found.append(_of_bins(known, table, statistic, parts[0], served[parts[0]][0].mechanism, row))
            except ParameterError as error:
                if error.parameter != "law":
                    raise
                named = f"the noise of {row['variable']} in {row['table']}"
                raise ParameterError(parameter=named, problem="is too small or too large to be computed") from error
    return tuple(found)


def _served(plan: Plan, table: PlannedTable, statistic: Drawable, cells: pa.Table | None) -> Sequence[CellMechanism]:
    """Return the mechanisms that a table's cells may have."""
    if cells is None:
        unknown = Run(None, np.empty(0, np.int64))
        return [CellMechanism(each, unknown) for each in possible_mechanisms(plan, table, statistic)]
    return cell_mechanisms(plan, table, statistic, cells)


def _of_forms(
    known: Known,
    table: PlannedTable,
    statistic: Statistic,
    drawn: Sequence[Drawable],
    served: Mapping[Drawable, Sequence[CellMechanism]],
    row: dict[str, Any],
) -> ExpectedError:
    """Return the expected error of a ratio or combination (T-RATIO).

    Of N/D, with r the ratio of the totals: the root of the variance of N - r D, divided by D; of N alone, its
    root.
    """
    top, bottom = statistic.forms(drawn)
    parts = {part: known.totals(table, part) for part, _ in top + bottom}
    totals = {part: found for part, (found, _) in parts.items()}
    over = np.maximum(_total(bottom, totals), 1e-300) if bottom else np.ones(len(RECORDS))
    value = _total(top, totals) / over
    ratio = value if bottom else np.zeros(len(RECORDS))
    least, most = np.zeros(len(RECORDS)), np.zeros(len(RECORDS))
    for part, own in totals.items():
        weight = (_share(top, part) - ratio * _share(bottom, part)) ** 2
        step = part.step(known.plan.schema)
        every = [each.mechanism for each in served[part]]
        spread = np.array([each.variance_of(own, step=step) for each in every])
        serving = known.serving(table, part, served[part], own)
        spread = spread if serving is None else spread[serving, range(len(own))][None]
        least, most = least + weight * spread.min(axis=0), most + weight * spread.max(axis=0)
    return ExpectedError(
        **row,
        mechanism=_words(table, statistic, drawn, float(value[1])),
        ratio=float(value[1]) if bottom else None,
        totals=tuple(value.tolist()),
        least_sd=tuple((np.sqrt(least) / over).tolist()),
        most_sd=tuple((np.sqrt(most) / over).tolist()),
        source=" and ".join(dict.fromkeys(source for _, source in parts.values())),
        usual=known.used([part for part, (_, source) in parts.items() if source in (FROM_RECORDS, FROM_OTHERS)]),
    )


def _share(form: Form, part: Drawable) -> float:
    return float(sum(share for other, share in form if other == part))


def _total(form: Form, totals: Mapping[Drawable, FloatArray]) -> FloatArray:
    return np.asarray(sum((float(share) * totals[part] for part, share in form), np.zeros(len(RECORDS))))


def _words(table: PlannedTable, statistic: Statistic, drawn: Sequence[Drawable], ratio: float) -> str:
    """Describe the mechanism, or the computation of other statistics."""
    top, bottom = statistic.forms(drawn)
    if statistic in drawn:
        return top[0][0].mechanism.at_share(table.shape.share).text()
    return f"a ratio of about {figure(ratio)}" if bottom else "a combination of columns"


def _of_bins(
    known: Known, table: PlannedTable, statistic: Statistic, part: Drawable, served: Any, row: dict[str, Any]
) -> ExpectedError:
    """Return the expected error of a quantile.

    Drawn for cells of generated records, lognormal around the usual one.
    """
    counts, source = _counts(known, table)
    values, errors = [], []
    for number in counts:
        exact, drawn = _drawn_bins(known, statistic, part, served, int(number))
        values.append(exact)
        errors.append(float(np.sqrt(np.mean((drawn - exact) ** 2))))
    return ExpectedError(
        **row,
        mechanism=served.text(),
        ratio=None,
        totals=tuple(values),
        least_sd=tuple(errors),
        most_sd=tuple(errors),
        source=f"{source}, with made-up records",
        usual=known.used([part]),
    )


def _counts(known: Known, table: PlannedTable) -> tuple[FloatArray, str]:
    """The numbers of records in three cells of a table."""
    query = known.plan.queries[table.query]
    counted = next((each for each in query.draws() if each.contribution == COUNT), None)
    return (np.array(RECORDS, np.float64), FROM_RECORDS) if counted is None else known.totals(table, counted)


def _drawn_bins(
    known: Known, statistic: Statistic, part: Drawable, mechanism: Mechanism, number: int
) -> tuple[float, FloatArray]:
    """Return a bin statistic without noise, and with noise."""
    from scipy.special import ndtri

    (bins,) = part.bins()
    usual, step = derived_size(bins.measure, known.plan, known.usual), bins_step(known.plan, bins.measure)
    sizes = usual * np.exp(SKEW * ndtri((np.arange(number) + 0.5) / number))
    points = np.array([float(each * step) for each in bins.grid.steps(step)])
    place, held = np.unique(np.minimum(np.searchsorted(points, sizes), len(points) - 1), return_counts=True)
    cells = max(20, min(MOST_DRAWN, MOST_NODES // (2 * len(points))))

    def drawn(count: int, served: Any) -> FloatArray:
        counted = BinCounts(
            position=np.repeat(np.arange(count), len(place)), point=np.tile(place, count), held=np.tile(held, count)
        )
        table = ExactTable(cells=count, totals={}, bins={bins: counted})
        serving = (CellMechanism(served, Run(None, np.arange(count))),)
        answer = part.draw(table, serving, known.plan.schema, Seeded(0), asked=(statistic,), confidence=0.95)
        return np.asarray(statistic.column([answer], confidence=0.95).value, np.float64)

    share = float(getattr(statistic, "p", Fraction(1, 2)))
    exact = float(points[place[np.searchsorted(np.cumsum(held), share * number)]])
    return exact, drawn(cells, mechanism)


def bins_step(plan: Plan, measure: str) -> Fraction:
    """The step of a measure."""
    declared = plan.schema.measure(measure)
    return Fraction(1) if declared is None else declared.step
