"""How many cells of a plan a status rule would call reliable, by the size of the cells, from the law of the noise alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr

from recordwise.errors import ParameterError, RangeError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import prose_text
from recordwise.mechanisms.base import inside, totals_for, transformed_scale
from recordwise.plan.cost import cell_mechanisms
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Drawable
from recordwise.planning.amounts import can_be_scaled, noise_size, with_noise_size
from recordwise.planning.level_shares import level_shares
from recordwise.planning.level_trees import GoalLevels, can_be_fitted
from recordwise.planning.targets import TargetTable
from recordwise.planning.whole import Scope, with_choice

CLASSES = 7
"""Cells of 1 to 9, of 10 to 99, and so on, in the units of their statistic; the last class has no upper end."""
Place = tuple[int, str]


def class_names() -> list[str]:
    """The size classes of cells."""
    ends = [10**power for power in range(CLASSES)]
    named = [f"{prose_text(low)} to {prose_text(high - 1)}" for low, high in pairwise(ends)]
    return ["below 1", *named, f"{prose_text(ends[-1])} or more"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Reliability:
    """CONFIDENTIAL if the records are: the expected share of the cells that are reliable."""

    share: float
    by_class: tuple[float, ...]
    """By the size of the cells; not a number where there is no cell."""
    by_table: dict[str, float]


def reliability(tables: Sequence[TargetTable], errors: Sequence[FloatArray], limit: float) -> Reliability:
    """The expected share of the cells whose published value has a relative error of at most the limit.

    A value is called reliable if it is at least its standard error divided by the limit; with normal noise that has the
    probability Phi(total / sd - 1 / limit).
    """
    chances = [ndtr(each.totals.total[each.counted] / sd - 1 / limit) for each, sd in zip(tables, errors)]
    totals = np.concatenate([each.totals.total[each.counted] for each in tables])
    places = np.clip(np.floor(np.log10(np.maximum(totals, 1e-9))).astype(int) + 1, 0, CLASSES)
    whole = np.concatenate(chances)
    held = np.bincount(places, minlength=CLASSES + 1)
    with np.errstate(invalid="ignore"):
        by_class = np.bincount(places, weights=whole, minlength=CLASSES + 1) / held
    return Reliability(
        share=float(whole.mean()),
        by_class=tuple(by_class.tolist()),
        by_table={each.name: float(chance.mean()) for each, chance in zip(tables, chances)},
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Scalable:
    """CONFIDENTIAL if the records are: a plan whose noise is changed by one factor, everything else as it is."""

    name: str
    scope: Scope
    queries: tuple[Query, ...]
    tables: tuple[TargetTable, ...]
    levels: Mapping[Place, GoalLevels]
    """The statistics whose levels are fitted together."""
    schema: Schema

    def mechanism(self, place: Place, factor: float) -> Any | None:
        """The mechanism of a statistic with its noise divided by the square root of a factor; None if there is none."""
        own = self.drawn(place).mechanism
        if factor == 1:
            return own
        if not can_be_scaled(own):
            return None
        try:
            return with_noise_size(own, noise_size(own) / np.sqrt(factor))
        except (ParameterError, RangeError):
            # Noise of any law can be too large or too small to be drawn.
            return None

    def drawn(self, place: Place) -> Drawable:
        """The statistic of a place, or the sum or count it is now computed from, where it is no longer drawn itself."""
        drawn = {each.alias: each for each in self.queries[place[0]].draws()}
        if place[1] in drawn:
            return drawn[place[1]]
        asked = next(each.asked for each in self.tables if each.asked.place == place)
        return next(each for each in drawn.values() if each.planned_as == asked.measure)

    def places(self) -> list[Place]:
        """The statistics that are examined, each once."""
        return list(dict.fromkeys((each.asked.query, self.drawn(each.asked.place).alias) for each in self.tables))

    def ray(self) -> Any:
        """What two plans have in common that are the same but for the size of all their noise; None if that cannot be told."""
        mechanisms = [self.drawn(place).mechanism for place in self.places()]
        if not all(map(can_be_scaled, mechanisms)):
            return None
        sizes = [noise_size(each) for each in mechanisms]
        units = [with_noise_size(each, 1.0) for each in mechanisms]
        return (
            tuple(each.axes for each in self.queries),
            units,
            [round(float(np.log(each / sizes[0])), 3) for each in sizes],
        )

    def at(self, factor: float) -> tuple[Query, ...] | None:
        """The queries at so many times the loss of the statistics that are examined; None if that cannot be."""
        chosen = {each.asked.place: self.mechanism(each.asked.place, factor) for each in self.tables}
        if any(each is None for each in chosen.values()):
            return None

        plan = replace(self.scope.plan, queries=self.queries)
        return with_choice(plan, [each.asked for each in self.tables], lambda asked: chosen[asked.place])

    def others(self) -> tuple[Query, ...]:
        """What the plan draws beside the statistics that are examined."""
        own = {each.asked.place for each in self.tables}
        found = []
        for number, query in enumerate(self.queries):
            rest = [each for each in query.draws() if (number, each.alias) not in own]
            found += [replace(query, statistics=tuple(rest))] if rest else []
        return tuple(found)

    def is_plain(self, table: TargetTable) -> bool:
        """Whether standard errors are in proportion to the noise: the statistic is not transformed."""
        own = self.drawn(table.asked.place).mechanism
        return can_be_scaled(own) and transformed_scale(inside(own)[0]) is None

    def errors(self, table: TargetTable, factor: float) -> FloatArray:
        """The standard errors of the counted cells of a table: of the fit, where levels are fitted together."""
        place, mechanism = table.asked.place, self.mechanism(table.asked.place, factor)
        query = self.queries[place[0]]
        if place in self.levels and can_be_fitted(mechanism):
            tree = self.levels[place].at(mechanism)
            fitted = tree.weights(level_shares(query)).fitted[tree.level == table.totals.number]
            return np.asarray(np.sqrt(fitted[table.counted]))
        found, total = np.zeros(len(table.totals.total)), table.totals.total
        share = query.tables()[table.totals.number].share
        shaped = replace(table.totals.table, shape=replace(table.totals.table.shape, share=share))
        statistic = replace(table.asked.statistic, mechanism=mechanism)
        for each in cell_mechanisms(self.scope.plan, shaped, statistic, table.totals.cells):
            rows = each.run.rows
            given = totals_for(each.mechanism, total[rows])
            found[rows] = each.mechanism.variance(given, step=statistic.step(self.schema))
        return np.asarray(np.sqrt(found[table.counted]))
