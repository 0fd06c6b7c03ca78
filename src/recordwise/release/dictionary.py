"""The data dictionary of a release, and the status of its values.

Each column of each table has a name, title, unit, type, meaning, computation and missing codes. The dictionary is written from
the plan and the words of the release alone: no entry depends on a value.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import share_text
from recordwise.plan.arrays import array_of, numpy_of, texts_of
from recordwise.plan.expressions import DatePart, Prefix
from recordwise.plan.publication import Labels, StatusRules
from recordwise.release.published import Published, PublishedGroup, PublishedQuery
from recordwise.release.tables import BASIC, BEST, FITTED, NAME, BasicNote, ReleasedTable

if TYPE_CHECKING:
    from recordwise.release.content import Content, DescribedTable


TYPES = {"text": "text", "whole": "whole number", "number": "number", "boolean": "true or false"}
EMPTY = "empty: the number does not exist"
NEVER = "never missing"
NO_NAME = "empty: the code has no name"
ENDS: dict[str, tuple[str, str, str]] = {
    "_sd": ("standard deviation of the noise in", "from the law of the noise", EMPTY),
    "_cv": ("coefficient of variation of", "NAME_sd divided by the absolute value of NAME", "empty: NAME is 0"),
    "_low": ("lower end of the LEVEL noise interval of", "from the law of the noise", EMPTY),
    "_high": ("upper end of the LEVEL noise interval of", "from the law of the noise", EMPTY),
    "_noisy": ("noisy answer on the scale on which noise was added to", "as drawn", NEVER),
    "_noisy_positive": ("noisy answer to the positive part of", "as drawn", NEVER),
    "_noisy_negative": ("noisy answer to the negative part of", "as drawn", NEVER),
    "_sigma": ("scale of the noise on the scale on which it was added to", "a parameter of the mechanism", NEVER),
    "_variance": ("unbiased estimate of the variance of", "from NAME_noisy and NAME_sigma", EMPTY),
    "_median": (
        "median-unbiased estimate, as often above the exact number as below, of",
        "from the noisy answer",
        EMPTY,
    ),
    "_fit": ("value, fitted so that tables add up, of", "by the fit that release.json describes", NEVER),
    "_fit_sd": ("standard error of the fitted value of", "as release.json describes", EMPTY),
    "_fit_low": ("lower end of the LEVEL interval of the fitted value of", "as release.json describes", EMPTY),
    "_fit_high": ("upper end of the LEVEL interval of the fitted value of", "as release.json describes", EMPTY),
    "_best": ("best linear unbiased estimate of", "from all tables of the query; it may be negative", NEVER),
    "_best_sd": ("standard error of the best linear estimate of", "as release.json describes", EMPTY),
    "_best_low": ("lower end of the LEVEL interval of the best linear estimate of", "as release.json describes", EMPTY),
    "_best_high": (
        "upper end of the LEVEL interval of the best linear estimate of",
        "as release.json describes",
        EMPTY,
    ),
}
"""What may stand next to a variable: what it is, how it is computed, what a missing value means."""
NO_UNIT = ("_cv", "_sigma", "_noisy", "_noisy_positive", "_noisy_negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the dictionary says about one column."""

    name: str
    title: str
    unit: str
    type: str
    meaning: str
    computed: str
    missing: str

    def to_json(self) -> dict[str, str]:
        """The entry by name."""
        return asdict(self)


HEADS = {
    "sd": "standard deviation of the noise",
    "cv": "relative error",
    "low": "interval from",
    "high": "interval to",
    "fit": "made to add up",
    "fit low": "made to add up, interval from",
    "fit high": "made to add up, interval to",
    "best": "best estimate",
    "best sd": "best estimate, standard error",
    "best low": "best estimate, interval from",
    "best high": "best estimate, interval to",
}
"""What headings say instead of the ends of names."""


def headings(columns: Sequence[Entry]) -> list[str]:
    """Return a heading for each column: its title in words, with its unit; names where titles are shared."""
    found = [_heading(entry) for entry in columns]
    shared = Counter(each.casefold() for each in found)
    return [f"{each} [{entry.name}]" if shared[each.casefold()] > 1 else each for each, entry in zip(found, columns)]


def _heading(entry: Entry) -> str:
    title, comma, end = entry.title.rpartition(", ")
    text = f"{title}, {HEADS[end]}" if comma and end in HEADS else entry.title
    unit = "" if entry.unit.casefold() == entry.title.casefold() else entry.unit
    return f"{text} ({unit})" if unit else text


def type_name(kind: pa.DataType) -> str:
    """The type of a column in words."""
    if pa.types.is_string(kind):
        return TYPES["text"]
    if pa.types.is_boolean(kind):
        return TYPES["boolean"]
    return TYPES["whole"] if pa.types.is_integer(kind) else TYPES["number"]


def title_of(published: Published, table: ReleasedTable, words: Labels) -> str:
    """Return a table's title from its query and, if unclear, groups."""
    query, basic = published.query_of(table.name), table.name in published.basic_names
    kind = " (basic)" if basic else " (research)" if published.basic_names else ""
    by = " and ".join(words.label(name) for name in table.keys)
    if query is None or not query.title:
        return (f"By {by}" if by else "Total" if query else table.name) + kind
    if len(query.tables) == 1:
        return f"{query.title}{kind}"
    return f"{query.title}, by {by}{kind}" if by else f"{query.title}, total{kind}"


def dictionary_of(
    published: Published, table: ReleasedTable, words: Labels, noises: Mapping[str, str]
) -> tuple[Entry, ...]:
    """An entry for each column of a table, in order.

    Args:
        published: The release, as in release.json.
        table: The table.
        words: Labels and units.
        noises: For each variable that noise was drawn for, a description of the noise.

    Returns:
        The entries.
    """
    if published.basic is not None and table.name in published.basic_names:
        return _basic(published, published.basic, table, words)
    query, flags = published.query_of(table.name), table.flags()
    level = share_text(published.confidence)
    entries = _keys(published, query, table, words)
    values = {name: _value(query, name, words, noises.get(name), flags.get(name)) for name in table.variables}
    shared = Counter(value["title"] for value in values.values())
    for name, value in values.items():
        # Two sums of one measure have one label: their names tell them apart.
        title, unit = value["title"] + (f", {name}" if shared[value["title"]] > 1 else ""), value["unit"]
        entries[name] = value | {"title": title}
        for end, parts in ENDS.items():
            what, how, missing = (part.replace("NAME", name).replace("LEVEL", level) for part in parts)
            note = f". {flags[name + end]}" if name + end in flags else ""
            about = {"title": f"{title}, {end[1:].replace('_', ' ')}", "meaning": f"{what} {title}{note}"}
            own = {"unit": "" if end in NO_UNIT else unit, "computed": how, "missing": missing}
            entries.setdefault(name + end, about | own)
    plain = {"unit": "", "meaning": "as the mechanism released it", "computed": "", "missing": "empty"}
    return tuple(
        Entry(name=field.name, type=type_name(field.type), **entries.get(field.name, plain | {"title": field.name}))
        for field in table.data.schema
    )


def in_short(entries: Iterable[Entry], variables: Collection[str], level: str) -> list[Entry]:
    """Return the entries of several tables without repetitions.

    Each key and variable once, then each kind of column next to them.

    Args:
        entries: The entries of all tables.
        variables: The variables of all tables.
        level: The confidence of the intervals, as text.

    Returns:
        Entries in order; ``NAME_sd`` stands for the standard deviation of any variable NAME.
    """
    found: dict[str, Entry] = {}
    for entry in entries:
        end = next((end for end in ENDS for name in variables if entry.name == name + end), None)
        if end is None:
            found.setdefault(entry.name, entry)
            continue
        what, how, missing = (part.replace("LEVEL", level) for part in ENDS[end])
        about = {"title": "", "unit": "", "type": entry.type, "meaning": f"{what} NAME"}
        found.setdefault(f"NAME{end}", Entry(name=f"NAME{end}", computed=how, missing=missing, **about))
    return sorted(found.values(), key=lambda each: each.name.startswith("NAME_"))


def _basic(published: Published, note: BasicNote, table: ReleasedTable, words: Labels) -> tuple[Entry, ...]:
    """The entries of a basic table: keys, values to publish, statuses."""
    query, rules = published.query_of(table.name), note.rules
    entries = _keys(published, query, table, words)
    limits = ", ".join(f"{name} up to {limit:g}" for name, limit in rules.limits)
    withheld = " or ".join(rules.withheld)
    for name in table.variables:
        value = _value(query, name, words, None, None)
        computed = f"made of the research table: the fitted value, rounded to a multiple of {note.rounded_to[name]}"
        signed = name in published.signed_variables(table.name.removesuffix(BASIC))
        left = "" if query is None or signed else note.bias_of(query.numbers[0], name)
        computed += f". {left}" if left else ""
        if query is None or f"q{query.numbers[0]}:{name}" not in note.largest_change:
            computed = "the value of the research table, rounded to the digits that mean something"
        missing = f"empty: withheld because it is {withheld}; the research table has it" if withheld else EMPTY
        entries[name] = value | {"computed": computed, "missing": missing}
        entries[f"{name}_status"] = {
            "title": f"{value['title']}, status",
            "unit": "",
            "meaning": "how reliable the value is",
            "computed": f"from the relative error sd / max(value, 2 sd): {limits}, otherwise {rules.otherwise}",
            "missing": NEVER,
        }
    return tuple(Entry(name=each.name, type=type_name(each.type), **entries[each.name]) for each in table.data.schema)


def _keys(
    published: Published, query: PublishedQuery | None, table: ReleasedTable, words: Labels
) -> dict[str, dict[str, str]]:
    """The entries of the keys, and of the names next to them."""
    found = {}
    for name in table.keys:
        found[name] = _key(published, query, name, words)
        if name + NAME in table.data.column_names and name + NAME not in table.keys:
            about = {
                "title": f"{found[name]['title']}, name",
                "unit": "",
                "meaning": f"what the code in {name} is called",
            }
            found[name + NAME] = about | {"computed": "a label of the publication", "missing": NO_NAME}
    return found


def _key(published: Published, query: PublishedQuery | None, name: str, words: Labels) -> dict[str, str]:
    group = (query.group(name) if query else None) or PublishedGroup(name=name)
    source, expression = group.source, group.expression
    meaning, computed = (
        "identifies the cell: the records counted in it have this value",
        "listed before the release was made",
    )
    if group.hierarchy is not None:
        meaning = "identifies the cell: the codes of the records counted in it lie in this value"
        computed = f"a level of the list '{group.hierarchy}', which has one for each code"
    elif isinstance(expression, DatePart):
        computed = f"the {expression.part} of {source}"
    if isinstance(expression, Prefix):
        meaning += f" as the first {expression.length} characters of {words.label(source)}"
    return {
        "title": words.label(name, source),
        "unit": "",
        "meaning": meaning,
        "computed": computed,
        "missing": "empty: the value is missing in the records of the cell"
        if source in published.categories
        else NEVER,
    }


def _value(
    query: PublishedQuery | None, name: str, words: Labels, noise: str | None, flag: str | None
) -> dict[str, str]:
    stated = query.statistic(name) if query else None
    of = None if stated is None else stated.of
    if stated is None:
        meaning = "a statistic that others of the table are computed from"
    else:
        meaning = stated.rules.means.format(of=words.label(of) if of else "")
    estimate = flag or "an unbiased estimate"
    how = "computed from other columns of the table" if noise is None else f"the exact number with {noise}"
    return {
        "title": words.label(name, of),
        "unit": words.unit(name, of),
        "meaning": meaning,
        "computed": f"{how}; {estimate}",
        "missing": EMPTY,
    }


# The status of published values, from released values and the law of the noise alone, never from exact totals.


STATUS = "_status"
"""The suffix of the column with the status of a value."""


def relative_error(value: FloatArray, sd: FloatArray, *, signed: bool = False) -> FloatArray:
    """Return each value's error as a share, at most one half.

    A value below twice its error is not taken for its size.

    Args:
        value: Published values.
        sd: Their standard deviations.
        signed: Whether the measure may be negative; otherwise a negative value is due to noise and counts as small.

    Returns:
        ``sd / max(value, 2 sd)``, of the absolute value where the measure is signed; infinite where there is no sd.
    """
    size = np.abs(value) if signed else value
    with np.errstate(invalid="ignore", divide="ignore"):
        found = sd / np.maximum(size, 2 * sd)
    return np.where(sd == 0, 0.0, np.where(np.isfinite(found), found, np.inf))


def value_column(table: ReleasedTable, variable: str) -> str:
    """Return the column to publish: the fitted one if any."""
    fitted = variable + FITTED
    return fitted if fitted in table.data.column_names else variable


def sd_column(table: ReleasedTable, variable: str) -> str:
    """Return the sd column of the value to publish."""
    candidates = (f"{value_column(table, variable)}_sd", f"{variable}{BEST}_sd", f"{variable}_sd")
    return next(name for name in candidates if name in table.data.column_names)


def has_status(table: ReleasedTable, variable: str) -> bool:
    """Whether a standard deviation is published with a variable."""
    return f"{variable}_sd" in table.data.column_names


def statuses(table: ReleasedTable, variable: str, rules: StatusRules, *, signed: bool) -> pa.Array:
    """The status of every value of a variable, as text."""
    value, sd = (_floats(table, name) for name in (value_column(table, variable), sd_column(table, variable)))
    return status_names(relative_error(value, sd, signed=signed), rules)


def status_names(errors: FloatArray, rules: StatusRules) -> pa.Array:
    """The status of each relative error."""
    places = np.searchsorted(np.array([limit for _, limit in rules.limits]), errors, side="left")
    return texts_of(rules.names()).take(array_of(places))


def status_column(content: "Content", table: "DescribedTable", piece: pa.Table, variable: str) -> pa.Array:
    """Return a variable's status as published or by rules, else empty."""
    published = variable + STATUS
    if published in piece.column_names:
        return piece.column(published).combine_chunks()
    part = replace(table.table, data=piece)
    if not has_status(part, variable):
        return texts_of([""]).take(array_of(np.zeros(piece.num_rows, np.int64)))
    return statuses(part, variable, content.rules, signed=variable in table.signed)


def _floats(table: ReleasedTable, name: str) -> FloatArray:
    return np.asarray(numpy_of(table.data.column(name)), np.float64)
