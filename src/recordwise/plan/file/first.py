"""A first plan for a table, as text with blanks.

Roles and types come from names and declared types alone, never from values. What only the owner can know, and
what a plan must not learn from its table, stays blank: bounds, keys, thresholds.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tomli_w

BLANK = ""
UNIT = re.compile(
    r"(?:^|[\W_])(?:id|ident|identifier|unit|key|number|nr|no)$|^(?:estab|record|unit|plant|person)", re.IGNORECASE
)
FIRM = re.compile(r"firm|company|parent|enterprise|owner|employer|group_id|^ein$", re.IGNORECASE)
CODE = re.compile(
    r"(?:^|[\W_])(?:code|class|type|kind|status|state|county|fips|zip|zcta|region|area|naics|sic|isic|nace|sector|industry|year|month"
    r"|quarter|week|category|cat|level|size)\d*(?:[\W_]|$)",
    re.IGNORECASE,
)
INTEGER, NUMBER, TEXT, TRUTH, DAY, UNKNOWN, OTHER = "integer", "number", "text", "boolean", "date", "", "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column: name, declared type if any, and step if read."""

    name: str
    kind: str = UNKNOWN
    step: str = BLANK


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """What each column is taken for."""

    unit: str
    firm: str | None
    measures: tuple[SourceColumn, ...]
    columns: tuple[SourceColumn, ...]


def roles_of(found: Sequence[SourceColumn]) -> Roles:
    """Return each column's role, by its name and declared type."""
    usable = [each for each in found if each.kind != OTHER]
    firms = [each.name for each in usable if FIRM.search(each.name) and each.kind in (INTEGER, TEXT, UNKNOWN)]
    ids = [each.name for each in usable if UNIT.search(each.name) and each.name not in firms]
    unit = next(iter(ids), BLANK)
    firm = next(iter(firms), None)
    rest = [each for each in usable if each.name not in (unit, firm)]
    measures = [each for each in rest if each.kind in (INTEGER, NUMBER) and not CODE.search(each.name)]
    # Codes that are stored as floats are whole numbers, or the table is refused.
    columns = [replace(each, kind=INTEGER) if each.kind == NUMBER else each for each in rest if each not in measures]
    return Roles(unit=unit, firm=firm, measures=tuple(measures), columns=tuple(columns))


def first_plan(
    source: Mapping[str, Any],
    found: Sequence[SourceColumn],
    *,
    dataset: str,
    looked: bool,
    csv: Mapping[str, str] | None = None,
) -> str:
    """Return the plan's text, with empty quotes or brackets to fill."""
    roles = roles_of(found)
    grouped = _group_column(roles)
    lines = [
        "# A first plan. Fill every blank: recordwise check names each one that is left.",
        *tomli_w.dumps({"dataset": dataset, **source, "ledger": f"{dataset}.ledger"}).splitlines(),
        *_tuning(looked),
        *(["", *tomli_w.dumps({"csv": dict(csv)}).splitlines()] if csv else []),
        "",
        "[schema]",
        _entry("unit", roles.unit) + "  # identifies a record; one row is one unit, or see [schema.collapse]",
        *(
            [_entry("firm", roles.firm) + "  # identifies the owner of a unit; leave it out if there is none"]
            if roles.firm
            else []
        ),
        *(_measure(each) for each in roles.measures),
        *(_column(each) for each in roles.columns),
        "",
        "# The most that every record may lose over all releases. Without a budget the list of queries must be fixed in advance.",
        "# [[budget]]",
        "# rho = 1",
        "",
        *_keys(grouped),
        "[[queries]]",
        *([f"group_by = [{_text(grouped)}]", 'keys = "cells"'] if grouped else []),
        'count = { kind = "Gaussian", rho = 0.1 }  # the same loss for every record',
        *(_sum(each) for each in roles.measures[:3]),
        *(_perhaps_sum(each) for each in _untyped_numbers(roles, grouped)[:3]),
    ]
    return "\n".join(lines) + "\n"


def _group_column(roles: Roles) -> str | None:
    """Return a column to group by, preferably named like a code."""
    texts = [each.name for each in roles.columns if each.kind in (TEXT, UNKNOWN)]
    return next(iter(sorted(texts, key=lambda name: CODE.search(name) is None)), None)


def _untyped_numbers(roles: Roles, grouped: str | None) -> list[SourceColumn]:
    """Return columns of an untyped file that may be summed."""
    return [
        each
        for each in roles.columns
        if each.kind == UNKNOWN and each.name != grouped and CODE.search(each.name) is None
    ]


def _tuning(looked: bool) -> list[str]:
    if not looked:
        return ['tuned_on = ""  # what you choose thresholds and keys with: public, synthetic or past']
    return [
        'tuned_on = "confidential"  # types and steps below were proposed from the records',
        'tuning_reason = ""  # why that is acceptable; printed with the release',
    ]


def _text(value: Any) -> str:
    """A name as TOML writes it."""
    return tomli_w.dumps({"x": value}).strip().removeprefix("x = ")


def _entry(name: str, value: Any) -> str:
    return tomli_w.dumps({name: value}).strip()


def _dotted(table: str, name: str) -> str:
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None
    return f"{table}.{name if bare else _text(name)}"


def _measure(found: SourceColumn) -> str:
    step = found.step or ("1" if found.kind == INTEGER else _text(BLANK))
    why = "" if found.step or found.kind == INTEGER else "; step: 1, 0.01: values are whole multiples of it"
    return f"{_dotted('measures', found.name)} = {{ step = {step} }}  # add bound = the largest value a record can have{why}"


def _column(found: SourceColumn) -> str:
    blank = "" if found.kind else "  # text, integer, boolean or date; numbers to be summed go to measures"
    return f"{_dotted('columns', found.name)} = {_text(found.kind)}{blank}"


def _keys(grouped: str | None) -> list[str]:
    if grouped is None:
        return []
    return [
        "# The cells that are published, empty or not. Take them from a public source, never from the records.",
        "[keys.cells]",
        f"rows = {{ {_text(grouped) if re.fullmatch(r'[A-Za-z0-9_-]+', grouped) is None else grouped} = [] }}",
        "",
    ]


def _sum(found: SourceColumn) -> str:
    """Return the text of a sum."""
    return f'{_dotted("sum", found.name)} = {{ kind = "UnitSplit", at = "", rho = 0.1 }}  # at: the size of a usual large record'


def _perhaps_sum(found: SourceColumn) -> str:
    """Return the text of a sum as a comment."""
    entry = _sum(found).partition("  #")[0]
    return f"# {entry}  # if it is summed: {_dotted('measures', found.name)} = {{ step = 1 }} above"
