"""Basic tables: rounded values that add up, with a status.

They are computed from released numbers alone. The value of a count or a sum is the fitted one: a nonnegative
integer, or by least squares if the measure may be negative. What a basic table withholds stays in the
research table next to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.exact.text import amount_text, formula_text
from recordwise.plan.arrays import numpy_of
from recordwise.plan.publication import StatusRules
from recordwise.postprocess.rounding import round_tables
from recordwise.progress import reported, steps, tracked
from recordwise.release.consistent import TOP_DOWN
from recordwise.release.dictionary import STATUS, has_status, sd_column, statuses, value_column
from recordwise.release.formats.csv import meaningful
from recordwise.release.nesting import joint_queries, nesting_of, rounding_nesting
from recordwise.release.published import PublishedQuery, PublishedStatistic
from recordwise.release.release import Release
from recordwise.release.tables import BASIC, FITTED, Accuracy, BasicNote, ClassBias, ReleasedTable, digest_of

SMALL = (
    "Values are not negative, and therefore biased where cells are small against their noise. Estimated for this release, by noise "
    "drawn around its published values and fitted again (public numbers only): "
)
UNNOTICED = 0.005
"""An average error of so few standard errors is called 0."""


@reported
def with_basic(
    release: Release,
    *,
    fit: str = TOP_DOWN,
    complete: bool = False,
    units: Mapping[str, Number] | None = None,
    rules: StatusRules | None = None,
) -> Release:
    """A release with a basic table next to each table; see ``Release.basic``."""
    if release.basic_tables:
        raise ParameterError(parameter="release", problem="already has basic tables")
    step = steps(2)
    step("fitting")
    fitted = release if release.published.fit is not None else release.consistent(method=fit, complete=complete)
    step("rounding")
    chosen, chosen_rules = _units(fitted, units or {}), rules or StatusRules()
    values: dict[str, dict[str, Any]] = {table.name: {} for table in fitted.tables}
    largest: dict[str, float] = {}
    more: dict[str, int] = {}
    note = fitted.published.fit
    assert note is not None
    queries = joint_queries(fitted.published.queries, at_most=note.at_most, zero_counts=note.zero_counts)
    for query in tracked(queries, "rounding"):
        for statistic, tables, changes in _round_variables(fitted, query, chosen, complete=note.complete):
            for number, name in zip(query.numbers, statistic.names):
                largest[f"q{number}:{name}"] = float(np.max(changes, initial=0.0))
                more[f"q{number}:{name}"] = int(np.sum(changes >= 1))
            for table, column in tables.items():
                values[table][statistic.in_table(table).name] = column
    made = tuple(_table(fitted, table, values[table.name], chosen, chosen_rules) for table in fitted.tables)
    about = BasicNote(
        tables={table.name: table.variables for table in made},
        rounded_to={name: str(unit) for name, unit in chosen.items()},
        largest_change=largest,
        moved_more=more,
        rules=chosen_rules,
        bias={name: bias_text(each.left) for name, each in note.fits.items() if each.left},
        digest=digest_of({table.name: table.data for table in made}, fitted.policy),
    )
    return replace(fitted, basic_tables=made, published=fitted.published.with_basic(about))


def made_again(release: Release) -> tuple[ReleasedTable, ...]:
    """Return the basic tables that follow from a release's fitted columns and what it says about rounding."""
    note = release.published.basic
    assert note is not None
    made = with_basic(replace(release, basic_tables=()), units=note.rounded_to, rules=note.rules)
    return tuple(each for each in made.basic_tables if each.name in note.tables)


def basic_accuracy(release: Release) -> dict[str, dict[str, Accuracy]]:
    """Return each basic variable's accuracy before values are rounded."""
    known, found = {table.name + BASIC: table for table in release.tables}, {}
    for basic in release.basic_tables:
        table = known[basic.name]
        columns = {name: (value_column(table, name), sd_column(table, name)) for name in basic.variables}
        found[basic.name] = {name: _accuracy_of(table, *each) for name, each in columns.items()}
    return found


def _accuracy_of(table: ReleasedTable, value: str, sd: str) -> Accuracy:
    values, errors = (np.asarray(numpy_of(table.data.column(name)), np.float64) for name in (value, sd))
    stated = np.isfinite(values) & np.isfinite(errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        cv = np.where(errors == 0, 0.0, errors / np.abs(values))
    return Accuracy.of(errors[stated], cv[stated])


def bias_text(left: Sequence[ClassBias]) -> str:
    """Say what nonnegativity leaves in cells of each size class."""
    told, least = [], 0.0
    for each in left:
        if each.up_to == 0:
            which = "cells of 0"
        elif each.up_to is None:
            which = f"cells of more than {formula_text(Fraction(least))}"
        else:
            which = f"cells of {formula_text(Fraction(least))} to {formula_text(Fraction(each.up_to))} standard errors"
        size = f"{amount_text(Fraction(abs(each.bias)), 2)} too {'high' if each.bias > 0 else 'low'}"
        told.append(f"{which} are {size if abs(each.bias) >= UNNOTICED else 'not off'}")
        least = each.up_to or least
    return f"{SMALL}{', '.join(told)} on average, in standard errors of NAME_best."


def _units(release: Release, given: Mapping[str, Number]) -> dict[str, Fraction]:
    """Return each variable's rounding unit, or its measure's, or 1."""
    found, known = {}, set()
    for table in release.tables:
        query = release.published.query_of(table.name)
        stated = {each.name: each.of for each in (query.statistics if query else ())}
        for name in table.variables:
            of = stated.get(name)
            known |= {name, *([of] if of else [])}
            unit = given.get(name, given.get(of, 1) if of else 1)
            found[name] = positive(unit, parameter=f"the unit of '{name}'")
    for name in given:
        if name not in known:
            raise ParameterError(
                parameter="units",
                problem=f"name '{name}', which is neither a measure nor published",
                advice=f"Known: {', '.join(sorted(known))}.",
            )
    return found


def _round_variables(
    release: Release, query: PublishedQuery, units: Mapping[str, Fraction], *, complete: bool
) -> list[tuple[PublishedStatistic, dict[str, pa.Array], FloatArray]]:
    """Return each variable's rounded columns and its changes in units."""
    family = nesting_of(release, query, complete=complete)
    nesting = rounding_nesting(family)
    found = []
    for statistic in [each for each in query.statistics if each.rules.fitted]:
        unit = _common_unit([units[name] for name in statistic.names], statistic)
        fits = [column / float(unit) for column in family.by_table(family.column(statistic, FITTED))]
        whole = round_tables(fits, nesting, rests=family.remainders)
        changes = np.concatenate([np.abs(new - old) for new, old in zip(whole, fits)])
        found.append((statistic, {t.name: _column(each, unit) for t, each in zip(family.tables, whole)}, changes))
    return found


def _common_unit(units: Sequence[Fraction], statistic: PublishedStatistic) -> Fraction:
    """Return the unit of a variable in all queries that publish it."""
    if len(set(units)) > 1:
        raise ParameterError(
            parameter="units",
            problem=f"differ for {' and '.join(statistic.names)}, which are fitted together",
            advice="Give the unit of the measure.",
        )
    return units[0]


def _column(whole: Any, unit: Fraction) -> pa.Array:
    """Whole multiples of the unit: whole numbers if the unit is whole."""
    return pa.array(whole * int(unit) if unit.denominator == 1 else whole * unit.numerator / unit.denominator)


def _table(
    release: Release,
    table: ReleasedTable,
    values: Mapping[str, pa.Array],
    units: Mapping[str, Fraction],
    rules: StatusRules,
) -> ReleasedTable:
    """Keys, and for each variable its value and its status."""
    signed, short = release.published.signed_variables(table.name), meaningful(table, table.data)
    columns = {name: table.data.column(name) for name in table.keys}
    variables = tuple(name for name in table.variables if has_status(table, name))
    for name in variables:
        status = statuses(table, name, rules, signed=name in signed)
        value = values.get(name, short.column(name).combine_chunks())
        withheld = np.isin(np.array(status.to_pylist(), dtype=object), list(rules.withheld)) if rules.withheld else None
        columns[name] = value if withheld is None else pa.array(numpy_of(value), mask=withheld)
        columns[name + STATUS] = status
    return ReleasedTable(name=table.name + BASIC, keys=table.keys, variables=variables, data=pa.table(columns))
