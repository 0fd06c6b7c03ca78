"""The parts of a plan and its policy: by record, by firm, on a lattice.

It is known before any data is opened: sequential over queries, levels and statistics, parallel over cells.
The cells of one table are a partition (T-KEYS), so a record pays only for its cell; tables add up (T-PLAN).
Where thresholds differ by group and a cell may hold several groups, the largest threshold possible in the
cell applies (T-CELL).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from recordwise.errors import PlanError
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.inference import ValueNumber, ValuePolicy, value_numbers
from recordwise.plan.arrays import numpy_of
from recordwise.plan.expressions import (
    Case,
    Compare,
    Field,
    Group,
    Level,
    Predicate,
    Prefix,
    condition,
    leaves,
    operand_name,
    policy_column,
)
from recordwise.plan.keys.bands import bands_of_cells, cell_bands, codes_of, key_columns
from recordwise.plan.keys.cells import encode_column
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.keys.keys import Selection
from recordwise.plan.plan import Plan, PlannedTable, size_names
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema, policy_measure, policy_problems
from recordwise.plan.statistics import Drawable
from recordwise.plan.statistics.base import COUNT, SUM
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn, Value, literal
from recordwise.policy.conditions import (
    EVERY,
    NONE,
    AllOf,
    AnyOf,
    Condition,
    among,
    both,
    columns_of,
    complement,
    either,
    holds,
    in_band,
)
from recordwise.policy.constructors import By
from recordwise.policy.firms import CellKey, FirmPart, FirmPolicy, Joint
from recordwise.policy.loss_law import COARSEST, LatticePart, LatticePolicy
from recordwise.policy.policy import Maximum, Policy, Terms, compose, maximum, merge

# Policies and conditions in terms of the columns that records hold (T-HIERARCHY). A coarser level of a hierarchy is a
# public function of the finest code. A condition on it is therefore a list of finest codes, and nothing that is
# charged, stored or published about losses names a level: a ledger stays right when a later list moves a code.


def in_record_columns(policy: Policy, schema: Schema) -> Policy:
    """Return the policy with conditions on finest codes, not coarser levels."""
    if not schema.hierarchies or not _coarser({column.name for column in policy.columns()}, schema):
        return policy
    rho, delta = (_terms(terms, schema) for terms in (policy.rho, policy.delta_terms))
    return Policy(rho, delta, policy.near_gaussian, policy.unit)


def _terms(terms: Terms, schema: Schema) -> Terms:
    found = []
    for (given, atom), coefficient in terms.items():
        if isinstance(atom, Maximum):
            inner = maximum([in_record_columns(each, schema) for each in atom.policies])
            here = record_condition(given, schema)
            found += [{(both(here, own), part): coefficient * times} for (own, part), times in inner.rho.items()]
        else:
            found.append({(record_condition(given, schema), atom): coefficient})
    return {key: coefficient for key, coefficient in merge(*found).items() if key[0] != NONE}


def record_condition(given: Condition, schema: Schema) -> Condition:
    """Return the same condition by the finest codes of records."""
    names = {column.name for column in columns_of(given)} if schema.hierarchies else set()
    coarser = _coarser(names, schema)
    if not coarser:
        return given
    if isinstance(given, AllOf):
        return both(*(record_condition(part, schema) for part in given.parts))
    if isinstance(given, AnyOf):
        return either(*(record_condition(part, schema) for part in given.parts))
    if len(names) > 1:
        problem = (
            f"'{coarser[0]}' is a level of a hierarchy, which cannot be joined with other columns in one condition"
        )
        raise PlanError(problems=(problem,))
    return _by_codes(given, coarser[0], schema.hierarchy(coarser[0]))


def _by_codes(given: Condition, level: str, hierarchy: Hierarchy | None) -> Condition:
    """Return a condition on a coarser level as finest codes."""
    assert hierarchy is not None
    codes, values = (hierarchy.codes.column(name).to_pylist() for name in (hierarchy.finest, level))
    true = {value: holds(given, {level: literal(value)}) for value in dict.fromkeys(values)}
    unlisted = holds(given, {level: None})
    chosen = among(hierarchy.finest, [code for code, value in zip(codes, values) if true[value] != unlisted])
    return complement(chosen) if unlisted else chosen


def _coarser(names: Iterable[str], schema: Schema) -> list[str]:
    return sorted(set(names) & set(schema.coarser_names()))


# The policy of a plan, query by query.


def cell_threshold(at: By, groups: Sequence[Group], hierarchies: Sequence[Hierarchy] = ()) -> Fraction | By:
    """Return T_cell by cell: the known threshold, or the largest possible."""
    name, expressions = at.column.name, [each.expression for each in groups]
    if _deciding_group(at.column, groups) is not None:
        return at
    lengths = [each.length for each in expressions if isinstance(each, Prefix) and each.column == name]
    if not lengths:
        level = _level_of(at, groups, hierarchies)
        if level is None:
            return max(_possible(at, "", None))
        return at if level[0].determines(level[1], name) else _by_level(at, *level)
    known = max(lengths)
    prefixes = sorted({value[:known] for value, _ in at.values if isinstance(value, str)})
    return By(ConditionColumn(name, known), tuple((p, max(_possible(at, p, known))) for p in prefixes), at.default)


def _possible(at: By, prefix: str, known: int | None) -> list[Fraction]:
    """Return every threshold possible in such a cell, default included."""
    listed = [t for value, t in at.values if known is None or (isinstance(value, str) and value[:known] == prefix)]
    return listed if at.default is None else [*listed, at.default]


def _level_of(at: By, groups: Sequence[Group], hierarchies: Sequence[Hierarchy]) -> tuple[Hierarchy, str] | None:
    """Return the finest group that is another level of the thresholds' hierarchy."""
    fields = [group.expression.name for group in groups if isinstance(group.expression, Field)]
    found = [
        (each, name) for each in hierarchies for name in fields if at.column.name in each.levels and name in each.levels
    ]
    return max(found, key=lambda each: len(each[0].above(each[1], each[1])[0]), default=None)


def _by_level(at: By, hierarchy: Hierarchy, level: str) -> By:
    """Return each level value's largest threshold below, or None."""
    chosen: dict[Value | None, Fraction | None] = dict(at.values)
    found: dict[Any, list[Fraction | None]] = {}
    columns = (hierarchy.codes.column(name).to_pylist() for name in (level, at.column.name))
    for value, own in sorted(set(zip(*columns))):
        found.setdefault(value, []).append(chosen.get(_literal(own, at.column), at.default))
    known = [(literal(value), [t for t in some if t is not None]) for value, some in found.items() if None not in some]
    return By(ConditionColumn(level), tuple((value, max(some)) for value, some in known), at.default)


def is_raised(at: By, groups: Sequence[Group], hierarchies: Sequence[Hierarchy] = ()) -> bool:
    """Whether some group gets the noise of another group's larger threshold."""
    return cell_threshold(at, groups, hierarchies) != at


@dataclass(frozen=True, slots=True)
class Run:
    """The rows of public cells that share a threshold, or None."""

    at: Fraction | None
    rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def cells_by_threshold(
    at: Fraction | By, groups: tuple[Group, ...], cells: pa.Table, hierarchies: Sequence[Hierarchy] = ()
) -> tuple[Run, ...]:
    """The threshold of each public cell."""
    count = cells.num_rows if groups else 1
    if not isinstance(at, By):
        return (Run(at, np.arange(count)),)
    group = _deciding_group(at.column, groups)
    if group is None and (level := _level_of(at, groups, hierarchies)):
        at = _by_level(at, *level)
        group = _deciding_group(at.column, groups)
    assert group is not None
    chosen: dict[Value | None, Fraction | None] = dict(at.values)
    coded = encode_column(cells.column(group.name))
    of_value = [chosen.get(_literal(value, at.column), at.default) for value in coded.dictionary.to_pylist()]
    different = list(dict.fromkeys(of_value))
    place = np.array([different.index(threshold) for threshold in of_value], dtype=np.int64)[numpy_of(coded.indices)]
    return tuple(Run(threshold, np.flatnonzero(place == number)) for number, threshold in enumerate(different))


def _deciding_group(column: ConditionColumn, groups: Sequence[Group]) -> Group | None:
    """Return the first group that determines the column of thresholds."""
    for each in groups:
        if isinstance(each.expression, Field | Prefix) and policy_column(each.expression).determines(column):
            return each
    return None


def _literal(value: Any, column: ConditionColumn) -> Value | None:
    """Return a cell's value as the policy compares it."""
    if isinstance(value, str):
        return value[: column.length] if column.length else value
    return None if value is None else literal(value)


def plan_policy(plan: Plan, *, tight: bool = True) -> Policy:
    """Return the composed policy, tight as charged or as in papers."""
    _check_rests(plan)
    return check_policy(compose([part.record_policy(tight=tight) for part in plan.parts()]), plan.schema)


def firm_policy(plan: Plan) -> FirmPolicy:
    """Return what a plan costs the establishments of a firm together.

    Each part is there once (T-CELLS), also a sum that several averages share (T-AVG).
    """
    found = FirmPolicy(parts=tuple(part.of_firms() for part in plan.parts()))
    check_policy(found.policy(), plan.schema)
    return found


def lattice_policy(plan: Plan) -> LatticePolicy | None:
    """Return the noise of a plan as shifts on a lattice.

    None where some of it is not discrete Gaussian (T-LOSS-LAW).
    """
    found = [part.on_lattice() for part in plan.parts()]
    known = tuple(part for part in found if part is not None)
    return LatticePolicy(parts=known) if len(known) == len(found) else None


def value_policy(plan: Plan) -> ValuePolicy | None:
    """Return all numbers of a plan that depend on measures (T-INFER).

    None where another value may mean another cell, or a statistic may change in other ways.
    """
    parts = plan.parts()
    if not all(part.stays and not part.record_policy().delta_terms for part in parts):
        return None
    found = [part.on_values(number) for number, part in enumerate(parts)]
    if any(names is None for _, names in found):
        return None
    unstated = {name for _, names in found for name in names or ()}
    numbers = tuple(each for own, _ in found for each in own)
    inputs = {each.name for number in numbers for each in number.measure.inputs()} - unstated
    declared = {name: plan.schema.measure(name) for name in sorted(inputs)}
    bounds = {name: each.bound for name, each in declared.items() if each is not None}
    return ValuePolicy(numbers=numbers, bounds=bounds)


def records_of(predicate: Predicate | None, schema: Schema) -> Condition:
    """Return the records that a query's condition selects, by their columns."""
    return EVERY if predicate is None else record_condition(condition(predicate), schema)


def _check_rests(plan: Plan) -> None:
    """Check that a published rest's finer cells share its threshold (T-REST)."""
    for part, statistic in plan.drawn():
        level, above = part.table.shape, part.table.rest
        if above is None:
            continue
        at = statistic.threshold(statistic.mechanism, plan.schema)
        if isinstance(at, By) and cell_threshold(at, level.groups) != cell_threshold(at, above.groups):
            raise PlanError(
                problems=(
                    f"the thresholds of '{statistic.alias}' by '{at.column.name}' differ inside the published rests of "
                    f"{' x '.join(above.names()) or 'the grand total'}; use one threshold there, or leave rest out",
                )
            )


def check_policy(policy: Policy, schema: Schema) -> Policy:
    """Return the policy in columns that records hold.

    Raises if a condition does not fit the schema and so would not match what an engine selects.
    """
    problems = policy_problems(policy, schema)
    if problems:
        raise PlanError(problems=tuple(problems))
    return in_record_columns(policy, schema)


def statistic_policy(query: Query, statistic: Drawable, level: Level, schema: Schema, *, tight: bool) -> Policy:
    """Return a statistic's cost to records, by band if sized (T-SIZE)."""
    bands = band_table(query, statistic, level, schema)
    if bands is None:
        groups = mechanisms_by_group(statistic, level, schema)
        if groups[0][0] != EVERY:
            own = [_unsized_policy(statistic, each, level, schema, tight=tight).where(here) for here, each in groups]
            return in_record_columns(compose(own), schema)
        return _unsized_policy(statistic, groups[0][1], level, schema, tight=tight)
    parts = [
        _unsized_policy(statistic, mechanism, level, schema, tight=tight).where(in_band(bands, [band]))
        for band, mechanism in enumerate(band_mechanisms(statistic, level, bands, schema))
    ]
    return in_record_columns(compose(parts), schema)


def mechanisms_by_group(statistic: Drawable, level: Level, schema: Schema) -> list[tuple[Condition, Mechanism]]:
    """Return the records of each mechanism of a table, and the mechanism, with the level's share (T-GROUPED).

    One where it is the same for all records: also where cells may hold several groups. Records of no listed group are
    in no cell if there is no default, since such cells have no mechanism and are refused.
    """
    mechanism = statistic.mechanism.at_share(level.share)
    numbers = mechanism.group_numbers
    if numbers is None:
        return [(EVERY, mechanism)]
    inside = mechanism.inside()
    if cell_threshold(numbers, level.groups, schema.hierarchies) == numbers:
        return [(here, inside[int(number) - 1]) for here, number in numbers.cases() if number is not None]
    if numbers.default is None:
        raise _no_default(statistic, level, numbers)
    return [(EVERY, inside[-1])]


def _no_default(statistic: Drawable, level: Level, numbers: By) -> PlanError:
    where = " x ".join(level.names()) or "the grand total"
    return PlanError(
        problems=(
            f"cells of {where} may hold several groups of '{numbers.column.name}', and '{statistic.alias}' has no default",
        )
    )


def check_groups(statistic: Drawable, table: PlannedTable, schema: Schema) -> None:
    """Refuse mechanisms by group that differ inside a published rest (T-REST)."""
    numbers = statistic.mechanism.group_numbers
    if numbers is None or table.rest is None:
        return
    fine, coarse = (cell_threshold(numbers, each.groups, schema.hierarchies) for each in (table.shape, table.rest))
    if fine == numbers != coarse:
        raise PlanError(
            problems=(
                f"the mechanisms of '{statistic.alias}' by '{numbers.column.name}' differ inside the published rests of "
                f"{' x '.join(table.rest.names()) or 'the grand total'}; use one mechanism there, or leave all_other out",
            )
        )


def band_table(query: Query, statistic: Drawable, level: Level, schema: Schema) -> BandTable | None:
    """Return the bands of a table's cells, if sized with known sizes."""
    names = size_names(statistic)
    keys = query.sized_keys(level, names)
    if keys is None or not statistic.mechanism.is_sized:
        return None
    return cell_bands(keys, level.groups, schema, names, statistic.mechanism.edges)


def band_mechanisms(statistic: Drawable, level: Level, bands: BandTable, schema: Schema) -> tuple[Any, ...]:
    """The mechanism of each band, with the level's share."""
    mechanism = statistic.mechanism.at_share(level.share)
    served = [mechanism.at_size(edge) for edge in bands.edges]
    return tuple(at_one_threshold(each, statistic.threshold(each, schema)) for each in served)


def _unsized_policy(statistic: Drawable, mechanism: Mechanism, level: Level, schema: Schema, *, tight: bool) -> Policy:
    at = statistic.threshold(mechanism, schema)
    if tight and isinstance(at, By):
        mechanism = mechanism.resolved(cell_threshold(at, level.groups, schema.hierarchies))
    return in_record_columns(statistic.cost(mechanism, schema, tight=tight), schema)


@dataclass(frozen=True, slots=True)
class CellMechanism:
    """The mechanism that draws for some cells of a table."""

    mechanism: Mechanism
    run: Run


def cell_mechanisms(plan: Plan, table: PlannedTable, statistic: Drawable, cells: pa.Table) -> tuple[CellMechanism, ...]:
    """Return the mechanism of each cell, for any statistic of a table."""
    bands = band_table(plan.queries[table.query], statistic, table.shape, plan.schema)
    return mechanisms_of_cells(statistic, table.shape, bands, cells, plan.schema)


def mechanisms_of_cells(
    statistic: Drawable, level: Level, bands: BandTable | None, cells: pa.Table, schema: Schema
) -> tuple[CellMechanism, ...]:
    """Return the mechanism of each cell.

    It has the level's share and the threshold of the cell, as in the policy (T-CELL).
    """
    if bands is not None:
        return _mechanisms_by_band(statistic, level, bands, cells, schema)
    own = mechanisms_by_group(statistic, level, schema)
    if own[0][0] != EVERY:
        return _mechanisms_of_groups(statistic, level, cells, schema)
    mechanism, groups = own[0][1], level.groups
    every = cells_by_threshold(Fraction(1), groups, cells)
    at = statistic.threshold(mechanism, schema)
    if not isinstance(at, By):
        return tuple(CellMechanism(at_one_threshold(mechanism, at), run) for run in every)
    listed = schema.hierarchies
    runs = cells_by_threshold(cell_threshold(at, groups, listed), groups, cells, listed)
    if any(run.at is None for run in runs):
        raise PlanError(
            problems=(f"public cells of {statistic.alias} have no threshold by '{at.column.name}'; give a default",)
        )
    return tuple(CellMechanism(mechanism.resolved(run.at), run) for run in runs)


def _mechanisms_of_groups(
    statistic: Drawable, level: Level, cells: pa.Table, schema: Schema
) -> tuple[CellMechanism, ...]:
    """Return the mechanism of each cell's group."""
    mechanism = statistic.mechanism.at_share(level.share)
    numbers, inside = mechanism.group_numbers, mechanism.inside()
    assert numbers is not None
    found = []
    for run in cells_by_threshold(numbers, level.groups, cells, schema.hierarchies):
        if run.at is None:
            raise PlanError(
                problems=(
                    f"public cells of {statistic.alias} have no mechanism by '{numbers.column.name}'; give a default",
                )
            )
        own = inside[int(run.at) - 1]
        found.append(CellMechanism(at_one_threshold(own, statistic.threshold(own, schema)), Run(None, run.rows)))
    return tuple(found)


def _mechanisms_by_band(
    statistic: Drawable, level: Level, bands: BandTable, cells: pa.Table, schema: Schema
) -> tuple[CellMechanism, ...]:
    """Return the mechanism of each cell's band, by the policy's table."""
    count = cells.num_rows if level.groups else 1
    of_cell = bands_of_cells(bands, key_columns(level.groups, schema), codes_of(schema), cells, count)
    served = enumerate(band_mechanisms(statistic, level, bands, schema))
    found = (CellMechanism(mechanism, Run(None, np.flatnonzero(of_cell == band))) for band, mechanism in served)
    return tuple(each for each in found if len(each.run.rows))


def at_one_threshold(mechanism: Mechanism, at: Fraction | By | None) -> Any:
    """Return the mechanism where one threshold applies to all cells."""
    return mechanism if at is None else mechanism.resolved(at)


def possible_mechanisms(plan: Plan, table: PlannedTable, statistic: Drawable) -> tuple[Any, ...]:
    """Return every mechanism that a cell may have for a statistic."""
    bands = band_table(plan.queries[table.query], statistic, table.shape, plan.schema)
    return mechanisms_of_table(statistic, table.shape, bands, plan.schema)


def mechanisms_of_table(statistic: Drawable, level: Level, bands: BandTable | None, schema: Schema) -> tuple[Any, ...]:
    """Return every mechanism that a cell of a table may have."""
    if bands is not None:
        return band_mechanisms(statistic, level, bands, schema)
    own = [each for _, each in mechanisms_by_group(statistic, level, schema)]
    if len(own) > 1:
        return tuple(at_one_threshold(each, statistic.threshold(each, schema)) for each in own)
    mechanism = own[0]
    at = statistic.threshold(mechanism, schema)
    if not isinstance(at, By):
        return (at_one_threshold(mechanism, at),)
    of_cell = cell_threshold(at, level.groups, schema.hierarchies)
    if not isinstance(of_cell, By):
        return (mechanism.resolved(of_cell),)
    thresholds = [number for _, number in of_cell.values] + ([of_cell.default] if of_cell.default else [])
    return tuple(mechanism.resolved(number) for number in dict.fromkeys(thresholds))


# The parts of a plan: each statistic of each table, and selections of keys, with all that is known of them before data is opened.


Noise: TypeAlias = tuple[tuple[Fraction, ...], int]
"""Sigmas in lattice steps, of each mechanism, and how many such numbers a record changes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One statistic of one table, or the selection of the table's keys."""

    schema: Schema
    query: Query
    table: PlannedTable
    statistic: Drawable | None = None
    """None for a selection."""
    selection: Selection | None = None
    condition: Condition = EVERY
    """The records that the table is about."""

    @cached_property
    def cells(self) -> tuple[CellKey, ...]:
        """Which records share a cell."""
        return tuple(cell_key(group, self.schema) for group in self.table.joined_by())

    @property
    def alias(self) -> str:
        """The name under which its numbers are published."""
        drawn = self.selection if self.statistic is None else self.statistic
        assert drawn is not None
        return drawn.alias

    @cached_property
    def policy(self) -> Policy:
        """The tight policy of a record of the table, which is charged."""
        return self._cost(tight=True)

    @cached_property
    def paper_policy(self) -> Policy:
        """A record's policy as printed in the papers."""
        return self._cost(tight=False)

    def _cost(self, *, tight: bool) -> Policy:
        if self.statistic is not None:
            return statistic_policy(self.query, self.statistic, self.table.shape, self.schema, tight=tight)
        assert self.selection is not None
        return in_record_columns(self.selection.policy(self.schema), self.schema)

    def record_policy(self, *, tight: bool = True) -> Policy:
        """Return what it costs any record, of the table or not."""
        policy = self.policy if tight else self.paper_policy
        return policy if self.condition == EVERY else policy.where(self.condition)

    @cached_property
    def bands(self) -> BandTable | None:
        """The bands of the cells, if the noise is sized (T-SIZE)."""
        if self.statistic is None:
            return None
        return band_table(self.query, self.statistic, self.table.shape, self.schema)

    @cached_property
    def mechanisms(self) -> tuple[Any, ...]:
        """Every mechanism that a cell may have, none for a selection."""
        if self.statistic is None:
            return ()
        return mechanisms_of_table(self.statistic, self.table.shape, self.bands, self.schema)

    def mechanisms_of(self, cells: pa.Table) -> tuple[CellMechanism, ...]:
        """Return the mechanism of each of some cells, none for a selection."""
        if self.statistic is None:
            return ()
        return mechanisms_of_cells(self.statistic, self.table.shape, self.bands, cells, self.schema)

    @property
    def joint(self) -> Joint:
        """What the units of a firm in one cell lose together.

        A rest joins units of different unlisted cells, which conditions cannot tell from those of listed ones: below one coarser
        cell all are then bounded as in any group.
        """
        if self.statistic is None or self.table.rest is not None:
            return Joint()
        return self.statistic.joint(self.statistic.mechanism.at_share(self.table.shape.share), self.schema)

    def of_firms(self) -> FirmPart:
        """Return the part as the establishments of a firm meet it (T-CELLS)."""
        return FirmPart(policy=self.policy, condition=self.condition, cells=self.cells, joint=self.joint)

    @property
    def noise(self) -> Noise | None:
        """The noise on the lattice, if it is discrete Gaussian and known."""
        if self.selection is not None:
            # Without a delta every cell of a public domain gets its noise, and which of them are shown is read off it.
            return (self.selection.law.sigma,), 1
        assert self.statistic is not None
        found = [self.statistic.lattice_noise(each, self.schema) for each in self.mechanisms]
        known = [each for each in found if each is not None]
        sigmas, times = tuple(sigma for sigma, _ in known), {each for _, each in known}
        unsaid = self.bands is None and len(known) > 1
        # None at all where no cell has a threshold; the plan is refused with its cells.
        if not known or len(known) < len(found) or len(times) > 1 or (unsaid and min(sigmas) <= COARSEST):
            return None
        return sigmas, times.pop()

    def on_lattice(self) -> LatticePart | None:
        """Return the part as shifts on a lattice, or None (T-LOSS-LAW)."""
        noise = None if self.policy.delta_terms else self.noise
        if noise is None:
            return None
        (sigmas, times), policy, bands = noise, self.record_policy(), self.bands
        known: dict[str, Any] = {"sigma": min(sigmas), "times": times, "policy": policy * Fraction(1, times)}
        # Where no cell is told apart from another by the policy, neither is its noise.
        if bands is None or len(sigmas) == 1 or bands.digest not in policy.bands():
            return LatticePart(**known, varies=len(sigmas) > 1)
        return LatticePart(**known, bands=bands, sigmas=sigmas)

    @cached_property
    def stays(self) -> bool:
        """Whether a record keeps its cell whatever its measures are."""
        table, measures = self.table, set(self.schema.measure_names())
        predicates = [] if table.condition is None else [table.condition]
        names: set[str] = set()
        for group in table.shape.groups:
            if isinstance(group.expression, Case):
                predicates += [test for test, _ in group.expression.branches]
            else:
                names.add(operand_name(group.expression))
        names |= {operand_name(leaf.operand) for predicate in predicates for leaf in leaves(predicate)}
        return not measures & names

    def on_values(self, number: int) -> tuple[list[ValueNumber], tuple[str, ...] | None]:
        """Return the numbers a value changes, and measures without a law (T-INFER).

        Args:
            number: Of the part in its plan.

        Returns:
            The numbers, and the names; None for the names if any measure may change something else.
        """
        statistic = self.statistic
        if statistic is not None and statistic.contribution == COUNT:
            return [], ()
        measure = None if statistic is None or statistic.of is None else self.schema.measure(statistic.of)
        if statistic is None or measure is None:
            return [], None
        own = policy_measure(measure.name, self.schema)
        found = None
        if statistic.contribution == SUM:
            found = value_numbers(number, self.record_policy(), self.mechanisms, own)
        return ([], tuple(each.name for each in own.inputs())) if found is None else found


def plan_parts(plan: Plan) -> Iterator[Part]:
    """Walk over the tables of a plan.

    In each, the selection of its keys comes first, then what is drawn: a sum that several averages share once (T-AVG).
    """
    for table in plan.tables():
        known: dict[str, Any] = {"schema": plan.schema, "query": plan.queries[table.query], "table": table}
        known |= {"condition": records_of(table.condition, plan.schema)}
        selection = plan.selection(table)
        if selection is not None:
            yield Part(**known, selection=selection)
        for statistic in plan.queries[table.query].draws():
            check_groups(statistic, table, plan.schema)
            yield Part(**known, statistic=statistic)


def cell_key(group: Group, schema: Schema) -> CellKey:
    """Return a group as the coordinate of a cell.

    A label that several branches of a CASE have is one coordinate. What the language of conditions does not say
    exactly (a part of a date, a CASE by the order of texts) goes by the name of the group, as a separate column.
    So does a coarser level of a hierarchy.
    """
    expression = group.expression
    if isinstance(expression, Field):
        return CellKey(column=ConditionColumn(expression.name))
    if isinstance(expression, Prefix):
        return CellKey(column=ConditionColumn(expression.column, expression.length))
    if not isinstance(expression, Case) or any(_by_order_of_texts(test) for test, _ in expression.branches):
        return CellKey(column=ConditionColumn(group.name))
    numbers = {expression.default: -1}
    for _, label in expression.branches:
        numbers.setdefault(label, len(numbers))
    return CellKey(cases=tuple((records_of(test, schema), numbers[label]) for test, label in expression.branches))


def _by_order_of_texts(predicate: Predicate) -> bool:
    """Return whether a predicate compares texts by order."""
    compared = (leaf for leaf in leaves(predicate) if isinstance(leaf, Compare))
    return any(isinstance(leaf.literal, str) and leaf.operator not in ("=", "<>") for leaf in compared)
