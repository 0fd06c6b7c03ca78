"""What validation counted, as problems with the names of columns and without a value; the same words on every engine."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.collapse import DIFFERS, differing_tree, same_names
from recordwise.engines.compile.records import BROKEN, SOURCE, Check, Stored, broken_tree, type_problem, validation_tree
from recordwise.errors import RecordError, SourceError
from recordwise.plan.files import NO_HEADER, look_like_values
from recordwise.plan.schema import Schema

MOST_NAMED = 40
NOT_SHOWN = "The first line must hold the names of the columns. It may be a record, so it is not shown."
REPEATS = "repeats an id that must be unique"


def check_present(wanted: Iterable[str], present: Sequence[str], *, source: str = "the source") -> None:
    """Refuse a source without a declared column, and say which columns it has."""
    missing = [name for name in wanted if name not in present]
    if not missing:
        return
    if look_like_values(present):
        raise SourceError(source=source, problem=f"it has no column {', '.join(missing)}", advice=NO_HEADER)
    from recordwise.plan.file.node import suggestion

    near = suggestion(missing[0], present)
    more = "" if len(present) <= MOST_NAMED else f" and {len(present) - MOST_NAMED} more"
    listed = ", ".join(present[:MOST_NAMED]) + more if present else "none"
    raise SourceError(
        source=source,
        problem=f"it has no column {', '.join(missing)}{near if near.endswith('?') else ''}",
        advice=f"Its columns: {listed}.",
    )


def check_headed(wanted: Iterable[str], first_line: Sequence[str]) -> None:
    """Refuse CSV without a declared column. Its first line is shown only if it holds half of the declared names: where it does not,
    it may be a record."""
    declared = list(wanted)
    missing = [name for name in declared if name not in first_line]
    folded = {name.casefold() for name in first_line}
    if 2 * sum(name.casefold() in folded for name in declared) >= len(declared):
        check_present(declared, first_line)
    elif missing:
        raise SourceError(
            source="the source", problem=f"its first line has no column {', '.join(missing)}", advice=NOT_SHOWN
        )


def check_types(schema: Schema, stored: Mapping[str, Stored]) -> None:
    """Refuse columns that are stored in a way their role cannot use, all of them at once."""
    roles = [(measure.name, "measure") for measure in schema.held_measures()]
    roles += [(column.name, str(column.type)) for column in schema.columns]
    found = [problem for name, role in roles if (problem := type_problem(name, role, stored[name])) is not None]
    if len(found) == 1:
        raise found[0]
    if found:
        told = "; ".join(f"{each.source}: {each.problem}" for each in found)
        advice = " ".join(dict.fromkeys(each.advice for each in found if each.advice))
        raise SourceError(source="the source", problem=told, advice=advice)


def broken_rows(
    fetch: Callable[[exp.Expr], pa.Table],
    found: list[Check],
    table: str = SOURCE,
    *,
    counted: str = "row",
    met: int | None = None,
) -> list[RecordError]:
    """A problem for each check that something meets, with how many rows or units do.

    One count for all checks comes first, unless it is known: most tables have nothing else to count.
    """
    if not found:
        return []
    if met is None:
        (counts,) = fetch(broken_tree(found, table)).to_pylist()
        met = counts[BROKEN]
    if not met:
        return []
    (counts,) = fetch(validation_tree(found, table)).to_pylist()
    return [
        RecordError(column=check.column, problem=check.problem, count=counts[f"c{number}"], counted=counted)
        for number, check in enumerate(found)
        if counts[f"c{number}"]
    ]


def differing_units(fetch: Callable[[exp.Expr], pa.Table], schema: Schema) -> list[RecordError]:
    """The columns in which rows of a unit differ and must not, each with the number of such units."""
    names = same_names(schema)
    (counts,) = fetch(differing_tree(schema, names)).to_pylist()
    return [
        RecordError(column=name, problem=DIFFERS, count=counts[f"d{number}"], counted="unit")
        for number, name in enumerate(names)
        if counts[f"d{number}"]
    ]
