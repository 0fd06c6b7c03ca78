"""A first plan for a table, as text: complete where its owner said enough, with blanks elsewhere.

Roles and types come from names and declared types alone, never from values. What only the owner can know, and
what a plan must not learn from its table, is what the owner says, or stays blank: bounds, keys, thresholds. Every
blank names what may be written there.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import tomli_w

from recordwise.errors import ParameterError
from recordwise.exact.numbers import positive
from recordwise.plan.file.node import suggestion
from recordwise.plan.schema import TUNINGS
from recordwise.plan.sources import read_code_file

BLANK = ""
UNIT = re.compile(
    r"(?:^|[\W_])(?:id|ident|identifier|unit|key|number|nr|no)$|^(?:estab|record|unit|plant|person)(?!.*s$)",
    re.IGNORECASE,
)
JOINED_ID = re.compile(r"[A-Z]{2}ID$|[a-z]I[dD]$")
"""An id without a sign between its words: UTILITYID, UtilityId."""
NO_IDS = re.compile(r"(?:paid|bid|grid|valid|void|aid|covid|acid|solid|liquid|rapid|hybrid)$", re.IGNORECASE)
FIRM = re.compile(r"firm|company|parent|enterprise|owner|employer|group_id|^ein$", re.IGNORECASE)
CODE = re.compile(
    r"(?:^|[\W_])(?:code|class|type|kind|status|state|county|fips|zip|zcta|region|area|naics|sic|isic|nace|sector|industry|year|month"
    r"|quarter|week|category|cat|level|size|district|tract|geoid|cbsa|msa|puma|lat|latitude|lon|longitude)\d*(?:[\W_]|$)"
    r"|(?:code|fips|zip|fp|geoid|naics|year)\d*$|^(?:naics|sic|isic|nace|zip|fips)\d*",
    re.IGNORECASE,
)
INTEGER, NUMBER, TEXT, TRUTH, DAY, UNKNOWN, OTHER = "integer", "number", "text", "boolean", "date", "", "other"
CHOSEN_WITH = TUNINGS[:-1]
"""What sizes and codes may be chosen with; proposals from the records are made with --look."""
TYPES = "text, integer, boolean or date"
NO_BLANK = "# A first plan. Change what you like: recordwise check explains it."
FILL = "# A first plan. Fill every blank: recordwise check names each one that is left."


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column: name, declared type if any, and step if read."""

    name: str
    kind: str = UNKNOWN
    step: str = BLANK
    coded: bool = False
    """Whether a look showed whole numbers of one length, which are codes and nothing to add up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """What each column is taken for."""

    unit: tuple[str, ...]
    firm: str | None
    measures: tuple[SourceColumn, ...]
    columns: tuple[SourceColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeList:
    """A public file of codes next to the plan, with levels."""

    name: str
    path: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeList:
    """A public file with the sizes of cells: its path, and a column for each statistic."""

    path: str
    columns: Mapping[str, str]
    all_keys: bool = False
    """Whether it has every column of the keys, so that it can be their list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the owner said about the plan, not from records."""

    unit: tuple[str, ...] = ()
    sums: Mapping[str, str] = field(default_factory=dict)
    """The measures, each with the size of a usual large record; blank where that was not said."""
    counts_only: bool = False
    """Whether nothing is summed, also where columns look like measures."""
    steps: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The published codes of each column."""
    key_file: str = BLANK
    tuned_on: str = BLANK
    code_lists: tuple[CodeList, ...] = ()
    sizes: SizeList | None = None

    def chosen(self) -> bool:
        """Return whether the owner said what is published."""
        return bool(self.sums or self.by or self.code_lists)

    def names(self) -> tuple[str, ...]:
        """Return the columns of the table that the owner named."""
        finest = tuple(each.levels[-1] for each in self.code_lists)
        return tuple(dict.fromkeys((*self.unit, *self.sums, *self.steps, *self.by, *finest)))

    def levels(self) -> frozenset[str]:
        """Return every level of the lists of codes."""
        return frozenset(level for each in self.code_lists for level in each.levels)

    def check(self, found: Sequence[SourceColumn], source: str = BLANK) -> None:
        """Refuse names that the table lacks, words that are no numbers, and what no plan may say.

        Args:
            found: The columns of the table.
            source: The table of records, as the plan names it.
        """
        present = [each.name for each in found]
        for name in self.names():
            if name not in present and name not in self.levels():
                raise ParameterError(
                    parameter=f"'{name}'", problem=f"is not a column of the file{suggestion(name, present)}"
                )
        for option, numbers in (("--sum", self.sums), ("--step", self.steps)):
            for name, number in numbers.items():
                if number:
                    positive(number, parameter=f"{option} {name}")
        if self.tuned_on and self.tuned_on not in CHOSEN_WITH:
            raise ParameterError(
                parameter="--tuned-on", problem=f"is not a valid choice{suggestion(self.tuned_on, CHOSEN_WITH)}"
            )
        unknown = [name for name in self.keys if name not in self.by and name not in self.levels()]
        if unknown:
            raise ParameterError(
                parameter="--keys",
                problem=f"lists codes of '{unknown[0]}', which is not grouped by",
                advice=f"Add --by {unknown[0]}.",
            )
        self._check_roles()
        self._check_lists(source)

    def _check_roles(self) -> None:
        """Refuse a column of two roles or named twice; only one of several columns of an id may be grouped by."""
        for option, names in (("--unit", self.unit), ("--by", self.by)):
            for name in names:
                if names.count(name) > 1:
                    raise ParameterError(parameter=option, problem=f"names '{name}' twice")
        grouped = (*self.by, *(each.levels[-1] for each in self.code_lists))
        for option, names, other, others in (
            ("--sum", tuple(self.sums), "grouped by", grouped),
            ("--sum", tuple(self.sums), "part of the id of a record", self.unit),
            ("--unit", self.unit if len(self.unit) == 1 else (), "grouped by", grouped),
        ):
            for name in names:
                if name in others:
                    raise ParameterError(
                        parameter=option, problem=f"names '{name}', which is {other} too", advice="Name another column."
                    )

    def _check_lists(self, source: str) -> None:
        """Refuse codes that are listed twice, and public files that are the table of records itself."""
        for name, codes in self.keys.items():
            if len(set(codes)) < len(codes):
                raise ParameterError(parameter="--keys", problem=f"lists a code of '{name}' twice")
        files = [("--keys", self.key_file), ("--sizes", self.sizes.path if self.sizes else BLANK)]
        for option, path in (*files, *(("--hierarchy", each.path) for each in self.code_lists)):
            if path and path == source:
                raise ParameterError(
                    parameter=option,
                    problem="names the table of records itself",
                    advice="Keys, codes and sizes come from a public source, never from the records.",
                )


# Public files, as a plan next to them names them.


def relative_path(path: Path, plan: Path) -> str:
    """Return a path as a plan writes it: from its own folder."""
    return os.path.relpath(path.resolve(), plan.resolve().parent)


def code_list(path: Path, out: Path, names: Sequence[str]) -> CodeList:
    """Return a list of codes: the columns up to the finest one that the records have are its levels."""
    table = read_code_file(path)
    columns = table.column_names
    held = [number for number, column in enumerate(columns) if number and column in names]
    if not held:
        raise ParameterError(
            parameter=f"--hierarchy {path.name}",
            problem="has no column of the records after a coarser level",
            advice=f"Its columns: {', '.join(columns)}. Columns of the records: {', '.join(names)}.",
        )
    # A list has a row for each finest code; what is after it, such as a name, is no level.
    finest = next((each for each in held if len(table[each].unique()) == table.num_rows), held[0])
    return CodeList(
        name=path.name.partition(".")[0], path=relative_path(path, out), levels=tuple(columns[: finest + 1])
    )


def with_sizes(wishes: Wishes, path: Path, out: Path) -> Wishes:
    """Add the sizes of cells, for each sum the column named like it, or the only one."""
    columns = read_code_file(path).column_names
    cells = {*wishes.by, *wishes.levels()}
    open_ = [name for name in columns if name not in cells]
    chosen = {}
    for name in wishes.sums:
        like = [each for each in open_ if name.casefold() in each.casefold()]
        fitting = [each for each in open_ if each == name] or like or open_
        if len(fitting) != 1:
            raise ParameterError(
                parameter=f"--sizes {path.name}",
                problem=f"does not say which column has the sizes of {name}",
                advice=f"Name it {name}. Its columns: {', '.join(columns)}.",
            )
        chosen[name] = fitting[0]
    finest = {name for name in wishes.by if name not in wishes.levels()} | {
        each.levels[-1] for each in wishes.code_lists
    }
    return replace(
        wishes,
        sizes=SizeList(path=relative_path(path, out), columns=chosen, all_keys=bool(finest) and finest <= set(columns)),
    )


# The text.


def roles_of(found: Sequence[SourceColumn], wishes: Wishes | None = None) -> Roles:
    """Return each column's role, by the owner's word, name and type."""
    said = wishes or Wishes()
    usable = [each for each in found if each.kind != OTHER]
    firms = [each.name for each in usable if FIRM.search(each.name) and each.kind in (INTEGER, TEXT, UNKNOWN)]
    firm = next((name for name in firms if name not in said.names()), None)
    ids = [each.name for each in usable if is_id(each.name) and each.name not in (*firms, *said.sums, *said.by)]
    unit = said.unit or tuple(ids[:1])
    rest = [each for each in usable if each.name not in unit and each.name != firm]
    summed = {name: replace(each, step=said.steps.get(each.name, each.step)) for each in rest for name in [each.name]}
    if said.sums or said.counts_only:
        measures = [summed[name] for name in said.sums if name in summed]
    else:
        numbers = (each for each in summed.values() if each.kind in (INTEGER, NUMBER) and each.name not in said.by)
        measures = [each for each in numbers if not CODE.search(each.name) and not each.coded]
    taken = {each.name for each in measures}
    # Codes that are stored as floats are whole numbers, or the table is refused.
    columns = [replace(each, kind=INTEGER) if each.kind == NUMBER else each for each in rest if each.name not in taken]
    if said.by:
        # A part of the id may be grouped by as well.
        columns += [each for each in usable if each.name in unit and each.name in said.by]
    return Roles(unit=unit, firm=firm, measures=tuple(measures), columns=tuple(columns))


def is_id(name: str) -> bool:
    """Return whether a column is named like an id: shop_id, UTILITYID, estab.

    Example:
        >>> [is_id(name) for name in ("UTILITYID", "shop_id", "PlantId", "estab", "paid", "MEDICAID", "GRID", "establishments")]
        [True, True, True, True, False, False, False, False]
    """
    joined = JOINED_ID.search(name) is not None and NO_IDS.search(name) is None
    return joined or UNIT.search(name) is not None


def first_plan(
    source: Mapping[str, Any],
    found: Sequence[SourceColumn],
    *,
    dataset: str,
    looked: bool,
    csv: Mapping[str, str] | None = None,
    wishes: Wishes | None = None,
) -> str:
    """Return the plan's text, with empty quotes or brackets to fill."""
    said = wishes or Wishes()
    said.check(found)
    roles = roles_of(found, said)
    grouped = said.by or tuple(filter(None, [] if said.code_lists else [_group_column(roles)]))
    lines = [
        *tomli_w.dumps({"dataset": dataset, **source, "ledger": f"{dataset}.ledger"}).splitlines(),
        *_tuning(looked, said.tuned_on),
        *_reserve(roles, said),
        "max_outside = 0.01  # the share of the records that may be in no published cell before a release is refused",
        *(["", *tomli_w.dumps({"csv": dict(csv)}).splitlines()] if csv else []),
        "",
        *_schema(roles, said, grouped),
        "",
        *_budget(roles, said),
        "",
        *(line for each in said.code_lists for line in _hierarchy(each, said)),
        *_keys(grouped, roles, said),
        "[[queries]]",
        *_shape(grouped, said),
        f'count = {{ kind = "Gaussian", rho = {_number(RHO)} }}  # the same loss for every record',
        *_sums(roles, said, grouped[0] if grouped else None),
        *_outputs(said),
    ]
    blanks = any(re.search(r'= (?:""|\[\])', line) for line in lines if not line.startswith("#"))
    return "\n".join([FILL if blanks else NO_BLANK, *lines]) + "\n"


def has_blanks(text: str) -> bool:
    """Return whether a first plan still has a blank to fill."""
    return text.startswith(FILL)


def _schema(roles: Roles, said: Wishes, grouped: Sequence[str]) -> list[str]:
    """Return the section of the schema.

    Once the owner said what is published, columns that nothing uses are comments.
    """
    unit = roles.unit[0] if len(roles.unit) == 1 else list(roles.unit) if roles.unit else BLANK
    protected = " and ".join(roles.unit)
    about = (
        "the column that identifies a record, or several: one row is one unit, or see [schema.collapse]"
        if len(roles.unit) < 2
        else f"one row is one pair of {protected}, and the pair is what is protected"
    )
    needed = {*grouped, *(each.levels[-1] for each in said.code_lists)} if said.chosen() else None
    lines = ["[schema]", f"unit = {_text(unit)}  # {about}"]
    if roles.firm:
        note = "identifies the owner of a unit; leave it out if there is none"
        lines.append(("# " if said.chosen() else "") + _entry("firm", roles.firm) + f"  # {note}")
    lines += [_measure(each) for each in roles.measures]
    return lines + [_column(each, needed) for each in roles.columns]


RHO = Fraction(1, 10)
"""What a count costs every record, and a sum a usual large one."""
ROOM = Fraction(21, 20)
"""How much more a first budget allows, because noise is rounded."""
REVISIONS = 1
"""For how many revisions a first plan keeps a reserve."""


def _is_priced(roles: Roles, said: Wishes) -> bool:
    """Return whether it is known what the plan costs: every sum has the size of a usual large record."""
    return said.chosen() and all(said.sums.get(each.name) for each in roles.measures)


def _reserve(roles: Roles, said: Wishes) -> list[str]:
    """Return the entry that sets as much budget aside for a revision as the release costs."""
    why = "the first release sets the same charge aside, for corrected records"
    return [f"{'' if _is_priced(roles, said) else '# '}reserve = {{ revisions = {REVISIONS} }}  # {why}"]


def _budget(roles: Roles, said: Wishes) -> list[str]:
    """Return a budget that covers the plan and its revisions; comments where a size is still blank."""
    rho = _number(RHO * (1 + REVISIONS) * ROOM)
    about = "The most that every record may lose over all releases"
    if not _is_priced(roles, said):
        return [
            f"# {about}. Without a budget the list of queries must be fixed in advance.",
            "# [[budget]]",
            "# rho = 1",
        ]
    lines = [f"# {about}: this plan and a revision of it. Change it as you like before the first release."]
    lines += ["[[budget]]", f"rho = {rho}"]
    for each in roles.measures:
        at = _digits(said.sums[each.name])
        mechanism = f'{{ kind = "UnitSplit", at = {at}, rho = {rho} }}'
        lines += ["", "[[budget]]", _entry("measure", each.name), f"mechanism = {mechanism}"]
    return lines


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


def _tuning(looked: bool, tuned_on: str) -> list[str]:
    if not looked:
        return [
            _entry("tuned_on", tuned_on) + "  # what you choose thresholds and keys with: public, synthetic or past"
        ]
    return [
        'tuned_on = "confidential"  # types and steps below were proposed from the records',
        'tuning_reason = ""  # why that is acceptable, a sentence; printed with the release',
    ]


def _text(value: Any) -> str:
    """A value as TOML writes it, lists on one line."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return tomli_w.dumps({"x": value}).strip().removeprefix("x = ")


def _entry(name: str, value: Any) -> str:
    return f"{_name(name)} = {_text(value)}"


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _dotted(table: str, name: str) -> str:
    return f"{table}.{_name(name)}"


def _measure(found: SourceColumn) -> str:
    step = _digits(found.step) if found.step else ("1" if found.kind in (INTEGER, UNKNOWN) else _text(BLANK))
    why = "" if found.step or found.kind == INTEGER else "; step: 1, 0.01: values are whole multiples of it"
    return f"{_dotted('measures', found.name)} = {{ step = {step} }}  # add bound = the largest value a record can have{why}"


def _column(found: SourceColumn, needed: set[str] | None) -> str:
    """Return a column's entry; those that nothing needs are comments."""
    if needed is not None and found.name not in needed:
        kind = found.kind or TEXT
        return f"# {_dotted('columns', found.name)} = {_text(kind)}  # not used: {TYPES}"
    kind = found.kind or (BLANK if needed is None else TEXT)
    blank = "" if kind else f"  # {TYPES}; numbers to be summed go to measures"
    return f"{_dotted('columns', found.name)} = {_text(kind)}{blank}"


def _public(said: Wishes, path: str) -> str:
    """Return the statement of a public source, which the owner makes by saying what the plan is tuned on."""
    if said.tuned_on == "public":
        return _text(f"public: {path}") + "  # say who publishes it, and when"
    return _text(BLANK) + '  # "public: who publishes it, and when"'


def _hierarchy(listed: CodeList, said: Wishes) -> list[str]:
    return [
        f"[hierarchies.{_name(listed.name)}]",
        _entry("file", listed.path),
        _entry("levels", list(listed.levels)),
        f"source = {_public(said, listed.path)}",
        "",
    ]


def _keys(grouped: Sequence[str], roles: Roles, said: Wishes) -> list[str]:
    if not grouped and not said.code_lists:
        return []
    return [
        "# The cells that are published, empty or not. Take them from a public source, never from the records.",
        "[keys.cells]",
        *_cells(grouped, roles, said),
        *_sizes(said),
        "",
    ]


def _cells(grouped: Sequence[str], roles: Roles, said: Wishes) -> list[str]:
    """Return the entry that lists the cells."""
    if own := _own_list(said):
        return [_entry("file", own)]
    kinds = {each.name: each.kind for each in roles.columns}
    plain = [name for name in grouped if name not in said.levels()]
    listed = {name: _codes(said.keys.get(name, ()), kinds.get(name, UNKNOWN)) for name in plain}
    parts = [f"{_name(each.name)} = {_text(each.levels[-1])}" for each in said.code_lists]
    parts += [f"{_name(name)} = {_text(codes)}" for name, codes in listed.items()]
    way = "rows" if len(plain) == 1 and not said.code_lists else "product"
    blank = [name for name, codes in listed.items() if not codes]
    about = f"  # in the brackets: every published code of {' and '.join(blank)}" if blank else ""
    return [f"{way} = {{ {', '.join(parts)} }}{about}"]


def _own_list(said: Wishes) -> str:
    """Return the file that lists the cells; with lists of codes all of them are published, so that tables are complete."""
    from_sizes = said.sizes is not None and said.sizes.all_keys and not said.code_lists
    return said.key_file or (said.sizes.path if from_sizes and said.sizes is not None else BLANK)


def _codes(codes: Sequence[str], kind: str) -> list[Any]:
    """Return codes in the type of their column."""
    whole = kind == INTEGER and all(re.fullmatch(r"-?[0-9]{1,18}", code) for code in codes)
    return [int(code) for code in codes] if whole else list(codes)


def _sizes(said: Wishes) -> list[str]:
    """Return the sizes of cells, from the keys or another file."""
    if said.sizes is None or not said.sizes.columns:
        return []
    own = _own_list(said) == said.sizes.path
    lines = [
        _dotted("size", name) + " = " + (_text(column) if own else _size_file(said.sizes.path, column))
        for name, column in said.sizes.columns.items()
    ]
    return [*lines, f"sized_on = {_public(said, said.sizes.path)}"]


def _size_file(path: str, column: str) -> str:
    return f"{{ file = {_text(path)}, column = {_text(column)} }}"


def _shape(grouped: Sequence[str], said: Wishes) -> list[str]:
    plain = [name for name in grouped if name not in said.levels()]
    axes = [f'{{ by = {_text(list(each.levels))}, share = "best" }}' for each in said.code_lists]
    return [
        *([_entry("group_by", plain)] if plain else []),
        *(
            [f"levels = [{', '.join(axes)}]  # how the loss is split over the levels: best for tables that add up"]
            if axes
            else []
        ),
        *(['keys = "cells"'] if plain or axes else []),
    ]


def _outputs(said: Wishes) -> list[str]:
    """Return the section for tables that add up, where levels exist."""
    if not said.code_lists:
        return []
    lines = [
        "",
        "[outputs]",
        'tables = ["research", "basic"]  # as drawn, and fitted so that they add up, with a status',
    ]
    if said.key_file:
        return [*lines, "# basic = { complete = true }  # if the list of cells has every one that can hold records"]
    return [*lines, "basic = { complete = true }  # every code of the lists is published"]


def _sums(roles: Roles, said: Wishes, grouped: str | None) -> list[str]:
    if said.sums:
        return [_sum(each, said) for each in roles.measures]
    perhaps = [] if said.chosen() else _untyped_numbers(roles, grouped)[:3]
    return [*(_sum(each, said) for each in roles.measures[:3]), *(_perhaps_sum(each) for each in perhaps)]


SHARE = Fraction(1, 50)
"""The threshold of sized noise as a share of the size of a cell; cells below 50 large records have the noise of that size."""


def _sum(found: SourceColumn, said: Wishes) -> str:
    """Return the text of a sum."""
    size = said.sums.get(found.name, BLANK)
    named = _dotted("sum", found.name)
    if said.sizes is not None and found.name in said.sizes.columns:
        floor = _number(positive(size, parameter="size") / SHARE) if size else _text(BLANK)
        inner = f'{{ kind = "UnitSplit", at = {float(SHARE)}, rho = {_number(RHO)} }}'
        return f'{named} = {{ kind = "Sized", floor = {floor}, mechanism = {inner} }}  # floor: 50 times a usual large record'
    at = _digits(size) if size else _text(BLANK)
    return f'{named} = {{ kind = "UnitSplit", at = {at}, rho = {_number(RHO)} }}  # at: a number, the size of a usual large record'


def _digits(number: str) -> str:
    """A number that the owner wrote, bare where TOML reads the same."""
    return number if re.fullmatch(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", number) else _text(number)


def _number(value: Fraction) -> str:
    """A number that TOML reads as it is: bare if it has few digits, and as text elsewhere."""
    short = str(value.numerator) if value.denominator == 1 else str(float(value))
    return short if Fraction(short) == value else _text(str(value))


def _perhaps_sum(found: SourceColumn) -> str:
    """Return the text of a sum as a comment."""
    entry = _sum(found, Wishes()).partition("  #")[0]
    return f"# {entry}  # if it is summed: {_dotted('measures', found.name)} = {{ step = 1 }} above"
