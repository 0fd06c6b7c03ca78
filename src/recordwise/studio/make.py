"""Making the trade file: one computation, after which the page only looks numbers up.

Every statistic is calibrated to the same kind of goal, the margin of error of a cell of a stated size, with every candidate and at
every position; the position of today's plan is its own error. Losses, errors and statuses are those that ``explain`` and
``frontier`` compute: expected ones, from the law of the noise and the sizes of cells. Only the three places are drawn.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from recordwise.errors import ParameterError, PlanError, RangeError, RecordError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import decimal
from recordwise.exact.text import digits_text, exact_text
from recordwise.mechanisms.base import Mechanism, parameter_json
from recordwise.plan.file.read import PlanFile, load_plan
from recordwise.plan.keys.hierarchies import with_hierarchy_labels
from recordwise.plan.publication import Labels
from recordwise.plan.query import Query
from recordwise.plan.schema import NO_LOOK
from recordwise.planning.check import with_known_sizes
from recordwise.planning.explain import GENERATED, GENERATED_TOTALS, Cells, called, class_ends, size_name
from recordwise.planning.scope import COUNT, read_origin, same_for_all, with_choice
from recordwise.planning.search.fits import SLACK, TRANSFORM_SLACK, InfeasibleError, check_shared
from recordwise.planning.search.goals import (
    FLOORS,
    OWN,
    Goal,
    GoalTable,
    amount,
    best_offset,
    can_be_scaled,
    families,
    level_sizes,
    noise_size,
    sized_family,
    two_digits,
    with_error,
)
from recordwise.planning.search.reliable import TIMES_SD, Scalable, has_widths
from recordwise.planning.simulate.evaluate import EvaluatedGroup, evaluate
from recordwise.planning.simulate.generate import usual_rows
from recordwise.planning.simulate.rehearse import on_other_records
from recordwise.policy.columns import Measure
from recordwise.policy.meaning import power_gaussian
from recordwise.policy.policy import Policy
from recordwise.progress import Listener, listening, reported, steps, tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView
from recordwise.studio.form import plan_digest, records_digest
from recordwise.studio.places import Drawn, State, chosen_places, state_of
from recordwise.studio.profile import Profile, round_sizes
from recordwise.studio.trade import (
    VERSION,
    Candidate,
    CellClass,
    Point,
    Position,
    RecordClass,
    Trade,
    TradeBaseline,
    TradeStatistic,
    short,
)
from recordwise.studio.words import Vocabulary, read_goal, write_goal

CONFIDENCE = 0.95
LADDER = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
"""Round numbers of a decade, from which positions are taken."""
STEPS = 10
"""Positions on each side of today's plan."""
ROUND = (1, 2, 5)
THREE = Context(prec=3, rounding=ROUND_CEILING)
WORST = 1e300
LARGEST_ERROR = 0.25
"""The main control begins with cells for which today's plan is no further off."""
MOST_ERROR = 1e6
"""Larger errors are shown alike."""
"""Significant digits of the numbers in the file."""


@reported
def make_trade(
    plan: PlanFile | str | Path,
    *,
    records: str | Path | None = None,
    rows: int | None = None,
    seed: int = 0,
    data: str = "confidential",
    goal: str = "",
    baselines: Mapping[str, Any] | None = None,
    progress: Listener | None = None,
    parameters: Mapping[str, str | int] | None = None,
) -> Trade:
    """Work out what every choice of mechanisms and noise gives and costs.

    Args:
        plan: The plan, or its file.
        records: A file of records to use instead of generated ones. Unless ``data`` declares them public or synthetic, this is a
            look at confidential records, which the plan's ledger notes first.
        rows: How many records to generate; by default ten for each cell of the largest table, from 10,000 to 100,000.
        seed: The seed of generated records and of the three places.
        data: What given records are: "public", "synthetic", "past" or "confidential".
        goal: What the main control is about, such as "county cells of 100 employees within 9%"; by default the finest table and a
            round size of its cells. The percentage is where the control begins, next to that of the plan.
        baselines: Older rules to show next to noise, as for ``evaluate``; none unless given.
        progress: Called with what is being done and the share that is finished.
        parameters: The values of ``${name}`` in the file.

    Returns:
        The trade; ``save`` writes it.

    Raises:
        ParameterError: The plan has no count and no sum whose noise can be changed, or an argument is not valid.
    """
    given = plan if isinstance(plan, PlanFile) else load_plan(plan, parameters=dict(parameters or {}))
    with nullcontext() if progress is None else listening(progress):
        step = steps(5 if baselines else 4)
        step("reading public sizes")
        file = with_known_sizes(given)
        made = min(usual_rows(file.plan), GENERATED) if rows is None and records is None else rows
        step("generating records" if records is None else "opening records")
        other = on_other_records(file, records=records, rows=made, seed=seed, data=data, command="studio")
        with other as (_, session):
            origin = "synthetic" if records is None else read_origin(data)
            step("expected errors")
            case = Case.of(file, session, origin, goal, seed)
            step("mechanisms")
            found = _trade(case, records)
            if not baselines:
                return found
            step("older rules")
            return replace(found, baselines=_baselines(case, baselines))


# What all statistics share.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """A statistic, and the cell whose error its positions are about."""

    place: tuple[int, str]
    tables: tuple[GoalTable, ...]
    level: GoalTable
    """The table of the goal."""
    size: Fraction
    within: Fraction
    """The error of today's plan in a cell of that size, rounded up, as a share."""

    @property
    def mechanism(self) -> Mechanism:
        """The plan's own mechanism."""
        found: Mechanism = self.level.asked.statistic.mechanism
        return found

    @property
    def share(self) -> Fraction:
        """What the table has of the loss."""
        return self.level.part.level.share

    def goal(self, within: Fraction) -> Goal:
        """Return the goal of a position."""
        return Goal(
            str(self.level.asked.measure),
            self.level.goal.query,
            within=within,
            confidence=CONFIDENCE,
            at_least=self.size,
            statistic=self.place[1],
            levels=[self.level.part.number],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A plan on some records; CONFIDENTIAL if the records are."""

    file: PlanFile
    session: Session
    view: OwnerView
    cells: Cells
    words: Labels
    vocabulary: Vocabulary
    origin: str
    seed: int
    references: tuple[Reference, ...]
    main: int
    state: State | None

    @classmethod
    def of(cls, file: PlanFile, session: Session, origin: str, goal: str, seed: int) -> "Case":
        """Return a case with the sizes that its positions are about."""
        # A look at confidential records was noted in the plan's ledger before they were opened.
        view = session.owner.view(data="synthetic")
        cells, vocabulary = Cells.of(file, view), Vocabulary.of(file)
        if origin not in NO_LOOK and GENERATED_TOTALS in cells.sources:
            cells = _with_round_totals(cells)
        asked = read_goal(goal, vocabulary) if goal else None
        references, main = _references(cells, asked)
        return cls(
            file=file,
            session=session,
            view=view,
            cells=cells,
            words=with_hierarchy_labels(file.words, file.plan.schema.hierarchies),
            vocabulary=vocabulary,
            origin=origin,
            seed=seed,
            references=references,
            main=main,
            state=state_of(cells.scalable.tables, view.schema),
        )

    def withins(self, reference: Reference, positions: Sequence[Fraction]) -> list[Fraction]:
        """Return a statistic's error at each position, in the plan's ratio."""
        main = self.references[self.main]
        if reference is main:
            return list(positions)
        ratio = reference.within / main.within
        return [reference.within if each == main.within else _digits(each * ratio) for each in positions]


def _with_round_totals(cells: Cells) -> Cells:
    """Return cells with round numbers in place of their totals.

    An error of plain noise, relative to a total, would be that total in another form.
    """

    def rounded(table: GoalTable) -> GoalTable:
        total = round_sizes(table.part.total, table.step)
        return replace(table, part=replace(table.part, total=total), totals=total[table.counted])

    tables = tuple(map(rounded, cells.scalable.tables))
    return replace(cells, scalable=replace(cells.scalable, tables=tables))


def _references(cells: Cells, asked: Goal | None) -> tuple[tuple[Reference, ...], int]:
    """Return the statistics whose noise can be changed, and which of them the main control is about."""
    by_place: dict[tuple[int, str], list[GoalTable]] = {}
    for table in cells.scalable.tables:
        if is_adjustable(table.asked.statistic.mechanism):
            by_place.setdefault(table.asked.place, []).append(table)
    if not by_place:
        raise ParameterError(
            parameter="plan",
            problem="has no count and no sum whose noise can be changed by one factor",
            advice="Use Gaussian noise, or give each level a query of its own.",
        )
    wanted = next((each for each in by_place if asked is not None and _is_about(asked, each, by_place[each])), None)
    usual = next((each for each in by_place if each[1] == cells.main.alias), next(iter(by_place)))
    main = wanted or usual
    names = max(by_place[main], key=lambda each: len(each.totals)).part.level.names()
    if wanted is not None and asked is not None:
        names = next(each for each in by_place[main] if each.part.number == asked.levels[0]).part.level.names()
    chosen = {place: _level(own, names) for place, own in by_place.items()}
    size = asked.at_least if asked is not None and wanted and asked.at_least else _usual_size(chosen[main])
    found = []
    for place, level in chosen.items():
        own = size if place == main else _alike(level, chosen[main], float(size))
        within = _digits(Fraction(_own_error(level, own)))
        found.append(Reference(place=place, tables=tuple(by_place[place]), level=level, size=own, within=within))
    return tuple(found), list(chosen).index(main)


def _is_about(goal: Goal, place: tuple[int, str], tables: Sequence[GoalTable]) -> bool:
    return goal.statistic == place[1] and tables[0].goal.query == goal.query


def _level(tables: Sequence[GoalTable], names: Sequence[str]) -> GoalTable:
    """Return the table with these groups, or the finest."""
    return next(
        (each for each in tables if each.part.level.names() == names), max(tables, key=lambda each: len(each.totals))
    )


def _alike(level: GoalTable, main: GoalTable, size: float) -> Fraction:
    """Return the usual total, in cells in which the main statistic has about this size, as a round number."""
    if level.asked.query == main.asked.query and level.part.number == main.part.number:
        total = main.part.total
        near = level.counted & (total >= size / 2) & (total <= 2 * size)
        if near.any():
            return _round(np.median(level.part.total[near]))
    return _round(np.median(level.totals))


def _usual_size(table: GoalTable) -> Fraction:
    """Return a round size of cells, the usual one or a larger one for which today's plan is not too far off."""
    usual, largest = _round(np.median(table.totals)), float(table.totals.max())
    tried = [usual]
    while float(tried[-1]) < largest and _own_error(table, tried[-1]) > LARGEST_ERROR:
        tried.append(_round(2.2 * float(tried[-1])))
    return tried[-1]


def _round(value: Any) -> Fraction:
    """Return a round number near a value: 1, 2 or 5 times a power of ten, from 1 on."""
    power = max(math.floor(math.log10(max(float(value), 1.0))), 0)
    near = [each * 10**power for each in (*ROUND, 10)]
    return Fraction(min(near, key=lambda each: abs(math.log(each / max(float(value), 1.0)))))


def _digits(value: Fraction) -> Fraction:
    """Return a share of three digits, rounded up."""
    return Fraction(THREE.create_decimal(repr(float(value))))


def is_adjustable(mechanism: Mechanism) -> bool:
    """Return whether there is the same noise in other amounts."""
    return can_be_scaled(mechanism) or has_widths(mechanism)


def noise_of(mechanism: Mechanism) -> float:
    """Return the amount of noise, to which errors are in proportion."""
    return noise_size(mechanism) if can_be_scaled(mechanism) else float(mechanism.inside()[0].width)


def _own_error(table: GoalTable, size: Fraction, given: Mechanism | None = None) -> float:
    """Return the relative error of today's plan, or with another mechanism, in a cell of a size."""
    mechanism = (given or table.asked.statistic.mechanism).at_share(table.part.level.share)
    if mechanism.is_sized:
        edges = mechanism.edges(float(size))
        mechanism = mechanism.at_size(max((each for each in edges if each <= size), default=edges[0]))
    try:
        reach = mechanism.error_quantiles(np.array([float(size)]), confidence=CONFIDENCE, step=table.step)[0]
    except ParameterError:
        # Its thresholds differ by group: the cells themselves say how far off they are.
        errors = table.part.by_cell("error_quantiles", mechanism, only=table.counted, confidence=CONFIDENCE)
        reach = float(np.median(errors))
    return float(reach) / float(size)


def ladder(within: Fraction) -> list[Fraction]:
    """Return the errors of all positions, the largest first."""
    power = math.floor(math.log10(float(within))) - 1
    every = [Fraction(each) * Fraction(10) ** (at - 1) for at in range(power - 2, power + 4) for each in LADDER]
    above = [each for each in every if each > within * Fraction(21, 20)][:STEPS]
    below = [each for each in every if each < within * Fraction(19, 20)][-STEPS:]
    return [*reversed(above), within, *reversed(below)]


# Candidates for one statistic.


def _candidates(case: Case, reference: Reference) -> dict[str, Mechanism]:
    """Return the plan's mechanism and every usual one, uncalibrated."""
    asked, query = reference.level.asked, case.cells.scalable.queries[reference.place[0]]
    found: dict[str, Mechanism] = {OWN: reference.mechanism, **families(offset=reference.size)}
    levels, schema, measure = query.tables(), case.view.schema, str(asked.measure)
    if all(level_sizes(query, each, measure, schema) is not None for each in levels):
        for part in FLOORS:
            floor = two_digits(float(reference.size * part))
            found |= sized_family(f"sized, floor {exact_text(floor)}", floor, low=None)
    return found


def _calibrated(reference: Reference, mechanism: Mechanism, within: Fraction) -> Mechanism:
    """Return the most noise that meets the goal in its cell (T-MOST-NOISE).

    Raises:
        InfeasibleError: There is none.
    """
    size, step = float(reference.size), reference.level.step
    try:
        if has_widths(mechanism):
            # Its errors are in proportion to its scales, whatever the share.
            times = Fraction(float(within) / _own_error(reference.level, reference.size, mechanism) * (1 - SLACK))
            return mechanism.each(lambda inner: inner.with_scale_times(times))  # type: ignore[attr-defined, no-any-return]
        if mechanism.is_sized:
            found: Any = with_error(mechanism, float(within), confidence=CONFIDENCE, step=step)  # type: ignore[arg-type]
        else:
            found = mechanism.most_noise(size, float(within) * size, confidence=CONFIDENCE, step=step)
        if found is None or found.signed or not can_be_scaled(found):
            raise InfeasibleError(mechanism.text())
        if reference.share == 1:
            return found  # type: ignore[no-any-return]
        slack = SLACK if found.inside()[0].noise_scale is None else TRANSFORM_SLACK
        most = amount(found) * math.sqrt(float(reference.share)) * (1 - slack)
        return found.with_amount(decimal(most))  # type: ignore[no-any-return]
    except (ParameterError, RangeError, PlanError) as error:
        raise InfeasibleError(str(error)) from None


def _with_best_offset(case: Case, reference: Reference, mechanism: Mechanism, profile: Profile) -> Mechanism:
    """Return a transform at the offset where a usual record loses least."""
    measure = str(reference.level.asked.measure)
    if not mechanism.offers("with_offset") or measure == COUNT:
        return mechanism
    size = {measure: np.array([profile.usual(measure)])}
    step = reference.level.step

    def cost(offset: Fraction) -> float:
        try:
            found = _calibrated(reference, mechanism.with_offset(offset), reference.within)
        except InfeasibleError:
            return WORST
        return float(found.policy(Measure(measure, step)).loss(size)[0])

    return mechanism.with_offset(best_offset(cost, total=float(reference.size), step=step))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """One candidate at every position."""

    name: str
    reference: Reference
    mechanisms: tuple[Mechanism, ...]
    factors: tuple[float, ...]
    """The loss at each position, in multiples of that at today's."""
    scalable: Scalable

    @property
    def queries(self) -> tuple[Query, ...]:
        """The statistic alone."""
        return self.scalable.examined(self.scalable.queries)


def _fitted(case: Case, reference: Reference, positions: Sequence[Fraction], profile: Profile) -> list[Fitted]:
    """Return every candidate that can be had at every position."""
    found, query = [], case.cells.scalable.queries[reference.place[0]]
    withins = case.withins(reference, positions)
    for name, given in _candidates(case, reference).items():
        try:
            if not has_widths(given):
                check_shared(given, query)
            kept = given if name == OWN else _with_best_offset(case, reference, given, profile)
            own = _at_positions(reference, kept, withins, keep=name == OWN)
        except InfeasibleError:
            continue
        middle = own[withins.index(reference.within)]
        factors = tuple((noise_of(middle) / noise_of(each)) ** 2 for each in own)
        base = case.cells.scalable
        plan = replace(base.scope.plan, queries=base.queries)
        queries = with_choice(plan, [reference.level.asked], same_for_all(middle))
        scalable = replace(base, name=name, queries=queries, tables=reference.tables)
        found.append(Fitted(name=name, reference=reference, mechanisms=tuple(own), factors=factors, scalable=scalable))
    return found


def _at_positions(
    reference: Reference, mechanism: Mechanism, withins: Sequence[Fraction], *, keep: bool
) -> list[Mechanism]:
    """Return a mechanism at every position, from much noise to little.

    Where no amount of noise is as far off as a goal allows, the next smaller one that exists meets it too.
    """
    found: list[Mechanism] = []
    for each in reversed(withins):
        try:
            found.append(mechanism if keep and each == reference.within else _calibrated(reference, mechanism, each))
        except InfeasibleError:
            if not found:
                raise
            found.append(found[-1])
    return found[::-1]


# Points: what a candidate gives and costs at each position.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sorted:
    """The cells of a statistic by size, table and state."""

    sizes: tuple[CellClass, ...]
    tables: tuple[CellClass, ...]
    states: tuple[CellClass, ...]
    by_size: Any
    by_state: Any

    @classmethod
    def of(cls, case: Case, reference: Reference) -> "Sorted":
        """Return the cells that have a total above 0."""
        totals = np.concatenate([each.totals for each in reference.tables])
        edges = class_ends(totals)
        place = np.searchsorted(edges, totals, side="right")
        held = np.unique(place)
        names = [case.vocabulary.table((reference.place[0], each.part.number)) for each in reference.tables]
        codes, states = (np.full(len(totals), -1), []) if case.state is None else case.state.of(reference.tables)
        labels = {} if case.state is None else case.words.values(case.state.name)
        return cls(
            sizes=tuple(CellClass(name=size_name(edges, int(at)), cells=int((place == at).sum())) for at in held),
            tables=tuple(CellClass(name=name, cells=len(each.totals)) for name, each in zip(names, reference.tables)),
            states=tuple(
                CellClass(name=labels.get(each, each), code=each, cells=int((codes == at).sum()))
                for at, each in enumerate(states)
            ),
            by_size=np.searchsorted(held, place),
            by_state=codes,
        )


def is_plain(scalable: Scalable, table: GoalTable) -> bool:
    """Return whether errors are in proportion to the noise."""
    return scalable.is_plain(table) or has_widths(scalable.drawn(table.asked.place).mechanism)


def _ratios(fitted: Fitted, number: int, factor: float, kept: dict[int, FloatArray]) -> FloatArray:
    """Return the relative standard errors of the cells of a table; plain noise is computed once."""
    table = fitted.reference.tables[number]
    if not is_plain(fitted.scalable, table):
        return np.asarray(fitted.scalable.errors(table, factor) / table.totals)
    if number not in kept:
        kept[number] = fitted.scalable.errors(table, 1.0) / table.totals
    return np.asarray(kept[number] / math.sqrt(factor))


def _points(case: Case, fitted: Fitted, cells: Sorted, profile: Profile, drawn: Drawn) -> tuple[Point, ...] | None:
    """Return a candidate at every position; None where its losses are not known at other noise."""
    try:
        losses = profile.losses(case.session, fitted.scalable, fitted.factors)
    except RecordError:
        # An example does not say in which cell it is, and noise depends on the cell.
        return None
    if losses is None:
        return None
    points, kept, draws = [], dict[int, FloatArray](), drawn.of(fitted)
    for at, (mechanism, factor) in enumerate(zip(fitted.mechanisms, fitted.factors)):
        own = [_ratios(fitted, number, factor, kept) for number in range(len(fitted.reference.tables))]
        every = np.concatenate(own)
        sizes = [every[cells.by_size == number] for number in range(len(cells.sizes))]
        states = [every[cells.by_state == number] for number in range(len(cells.states))]
        points.append(
            Point(
                mechanism=mechanism.text(),
                entry=parameter_json(mechanism),
                noise=short(noise_of(mechanism)),
                losses=losses[at],
                errors=tuple(map(margin, sizes)),
                statuses=tuple(_shares(case.cells, each) for each in sizes),
                by_table=tuple(_shares(case.cells, each) for each in own),
                by_state=tuple(_shares(case.cells, each)[0] for each in states),
                all_cells=_shares(case.cells, every),
                drawn=draws[at],
            )
        )
    return tuple(points)


def _shares(cells: Cells, ratios: FloatArray) -> tuple[float, ...]:
    if not len(ratios):
        return tuple(0.0 for _ in cells.rules.names())
    return tuple(short(each) for each in cells.status("", ratios).shares)


def margin(ratios: FloatArray) -> float:
    """Return the margin of error of the typical cell; a finite one, which JSON can hold, where noise has no variance."""
    return short(min(TIMES_SD * float(np.median(ratios)), MOST_ERROR))


# The whole file.


def _trade(case: Case, records: str | Path | None) -> Trade:
    main = case.references[case.main]
    positions = ladder(main.within)
    profile = Profile.of(
        case.file,
        case.session,
        case.view,
        case.cells,
        case.words,
        _sized_policies(case),
        is_exact=case.origin in NO_LOOK,
    )
    drawn = Drawn(places=chosen_places(case), seed=case.seed)
    found = []
    for reference in tracked(case.references, lambda each: f"mechanisms for {each.place[1]}"):
        found.append(_statistic(case, reference, positions, profile, drawn))
    title = case.words.publication.title or case.file.dataset
    return Trade(
        version=VERSION,
        title=title,
        plan=case.file.path.name,
        plan_digest=plan_digest(case.file.path, case.file.parameters),
        records_digest=records_digest(records),
        data=case.origin,
        generated=records is None,
        about=case.words.labels.get("count", "records").lower(),
        statuses=case.cells.rules.names(),
        limits=tuple(limit for _, limit in case.cells.rules.limits),
        positions=tuple(
            Position(goal=write_goal(main.goal(each), case.vocabulary), within=float(100 * each)) for each in positions
        ),
        today=positions.index(main.within),
        main=case.main,
        record_classes=tuple(RecordClass(name=name, share=short(share)) for name, share in profile.classes),
        records=profile.records,
        examples=profile.examples,
        firms=profile.firms,
        chances=chances(),
        statistics=tuple(found),
        others=profile.others(case.session, _others(case)),
        places=drawn.shown(),
        draws=drawn.number,
        budget=profile.budget,
        baselines=(),
    )


def _statistic(
    case: Case, reference: Reference, positions: Sequence[Fraction], profile: Profile, drawn: Drawn
) -> TradeStatistic:
    cells, statistic = Sorted.of(case, reference), reference.level.asked.statistic
    made = _fitted(case, reference, positions, profile)
    candidates = []
    for each in tracked(made, lambda fit: f"{reference.place[1]}: {fit.name}"):
        points = _points(case, each, cells, profile, drawn)
        if points is not None:
            candidates.append(Candidate(name=each.name, about=type(each.mechanisms[0]).words, points=points))
    if not candidates or candidates[0].name != OWN:
        raise ParameterError(
            parameter="plan",
            problem=f"has noise in {reference.place[1]} whose losses are not known at other amounts",
            advice="Give each level a query of its own, or use Gaussian noise.",
        )
    withins = case.withins(reference, positions)
    return TradeStatistic(
        key=f"{reference.place[0] + 1}:{reference.place[1]}",
        label=called(case.words, statistic),
        unit=case.words.unit(statistic.alias, statistic.of),
        goals=tuple(write_goal(reference.goal(each), case.vocabulary) for each in withins),
        sizes=cells.sizes,
        tables=cells.tables,
        states=cells.states,
        candidates=tuple(candidates),
        today=OWN,
    )


def _sized_policies(case: Case) -> list[Policy]:
    """Return policies of noise that follows public sizes, which depends on the cells of records."""
    base, found = case.cells.scalable, []
    for each in case.references:
        sized = [own for name, own in _candidates(case, each).items() if name != OWN and own.is_sized]
        if sized:
            plan = replace(base.scope.plan, queries=base.queries)
            queries = with_choice(plan, [each.level.asked], same_for_all(sized[0]))
            own = replace(base, queries=queries, tables=each.tables)
            found.append(case.session.policy_of(*own.examined(queries)))
    return found


def _others(case: Case) -> tuple[Query, ...]:
    """Return what the plan draws besides."""
    tables = tuple(table for each in case.references for table in each.tables)
    return replace(case.cells.scalable, tables=tables).others()


def chances() -> tuple[float, ...]:
    """Return the losses at which the best test finds a record with 5.5 %, 6.5 % and so on, to 98.5 %."""
    found = []
    for percent in range(5, 99):
        low, high = 0.0, 40.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if power_gaussian(middle) < (percent + 0.5) / 100 else (low, middle)
        found.append(short(high))
    return tuple(found)


# Older rules, for the main statistic.


def _baselines(case: Case, rules: Mapping[str, Any]) -> tuple[TradeBaseline, ...]:
    """Return what older rules withhold, and how far off the rest is, by the size of cells."""
    main = case.references[case.main]
    cells, labels, start = Sorted.of(case, main), dict[tuple[str, ...], Any](), 0
    for table in main.tables:
        label = np.full(len(table.part.total), "", object)
        label[table.counted] = cells.by_size[start : start + len(table.totals)].astype(str)
        start += len(table.totals)
        labels[tuple(table.part.cells.column_names)] = label
    found = evaluate(
        case.session,
        case.cells.scalable.queries,
        by=lambda given: labels[tuple(given.column_names)].tolist(),
        baselines=rules,
        tables=[str(main.place[0] + 1)],
        statistics=[main.place[1]],
        draws=1,
        seed=case.seed,
        data="synthetic",
    )
    sizes = [str(number) for number in range(len(cells.sizes))]
    made = []
    for name in rules:
        own = [each for each in found.groups if each.name == name and each.group in sizes]
        by_size = [_together([each for each in own if each.group == size]) for size in sizes]
        made.append(
            TradeBaseline(
                name=name,
                statistic=case.main,
                withheld=tuple(each[0] for each in by_size),
                errors=tuple(each[1] if case.origin in NO_LOOK else _one_digit(each[1]) for each in by_size),
                withheld_of_all=_together(own)[0],
            )
        )
    return tuple(made)


def _one_digit(error: float | None) -> float | None:
    """Return an error that hides the total of a single cell."""
    return None if error is None else float(digits_text(error, 1))


def _together(groups: Sequence[EvaluatedGroup]) -> tuple[float, float | None]:
    """Return the withheld share, and the mean error of the rest."""
    cells = math.fsum(each.cells for each in groups)
    if not cells:
        return 0.0, None
    shown = [(each.cells * (1 - each.withheld), each.value) for each in groups if not math.isnan(each.value)]
    held = math.fsum(weight for weight, _ in shown)
    withheld = math.fsum(each.cells * each.withheld for each in groups) / cells
    return short(withheld), short(math.fsum(weight * value for weight, value in shown) / held) if held else None
