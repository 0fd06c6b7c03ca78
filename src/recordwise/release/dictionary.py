"""The data dictionary of a release, with status and code lists.

Each column of each table has a name, title, unit, type, meaning, computation and missing codes. The dictionary is written from
the plan and the words of the release alone: no entry depends on a value.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import share_text
from recordwise.plan.arrays import array_of, numpy_of, texts_of
from recordwise.plan.publication import StatusRules, Words
from recordwise.plan.statistics import statistic_kind
from recordwise.release.tables import BASIC, FITTED, ReleasedTable

if TYPE_CHECKING:
    from recordwise.release.content import Content, DescribedTable


TYPES = {"text": "text", "whole": "whole number", "number": "number", "boolean": "true or false"}
EMPTY = "empty: the number does not exist"
NEVER = "never missing"
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
"""What may stand beside a variable: what it is, how it is computed, what a missing value means."""
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


def type_name(kind: pa.DataType) -> str:
    """The type of a column in words."""
    if pa.types.is_string(kind):
        return TYPES["text"]
    if pa.types.is_boolean(kind):
        return TYPES["boolean"]
    return TYPES["whole"] if pa.types.is_integer(kind) else TYPES["number"]


def research_name(description: Mapping[str, Any], table: str) -> str:
    """The table that a basic table is made of; any other table itself."""
    return table.removesuffix(BASIC) if table in description.get("basic", {}).get("tables", {}) else table


def query_of(description: Mapping[str, Any], table: str) -> Mapping[str, Any]:
    """The query of release.json that a table belongs to; empty for the table of an external mechanism."""
    table = research_name(description, table)
    for query in description.get("plan", ()):
        if any(each.get("name") == table for each in query.get("tables", ())):
            found: Mapping[str, Any] = query
            return found
    return {}


def title_of(description: Mapping[str, Any], table: ReleasedTable, words: Words) -> str:
    """The title of a table: that of its query, and what it is grouped by where that is not clear from it."""
    query, basic = query_of(description, table.name), table.name in description.get("basic", {}).get("tables", {})
    kind = " (basic)" if basic else " (research)" if "basic" in description else ""
    by = " and ".join(words.label(name) for name in table.keys)
    if not query.get("title"):
        return (f"By {by}" if by else "Total" if query else table.name) + kind
    if len(query["tables"]) == 1:
        return f"{query['title']}{kind}"
    return f"{query['title']}, by {by}{kind}" if by else f"{query['title']}, total{kind}"


def dictionary_of(
    description: Mapping[str, Any], table: ReleasedTable, words: Words, noises: Mapping[str, str]
) -> tuple[Entry, ...]:
    """An entry for each column of a table, in order.

    Args:
        description: The release, as in release.json.
        table: The table.
        words: Labels and units.
        noises: For each variable that noise was drawn for, a description of the noise.

    Returns:
        The entries.
    """
    if table.name in description.get("basic", {}).get("tables", {}):
        return _basic(description, table, words)
    query, flags = query_of(description, table.name), table.flags()
    level = share_text(description.get("interval_level", 0.95))
    entries = {name: _key(description, query, name, words) for name in table.keys}
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
    """The entries of several tables without repetitions: each key and variable once, then each kind of column beside them.

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


def _basic(description: Mapping[str, Any], table: ReleasedTable, words: Words) -> tuple[Entry, ...]:
    """The entries of a basic table: keys, values to publish, statuses."""
    query, said = query_of(description, table.name), description["basic"]
    entries = {name: _key(description, query, name, words) for name in table.keys}
    limits = ", ".join(f"{name} up to {limit:g}" for name, limit in said["status"]["limits"].items())
    withheld = " or ".join(said["status"]["withheld"])
    for name in table.variables:
        value = _value(query, name, words, None, None)
        computed = f"made of the research table: the fitted value, rounded to a multiple of {said['rounded_to'][name]}"
        if f"q{_number(description, query)}:{name}" not in said["largest_change"]:
            computed = "the value of the research table, rounded to the digits that mean something"
        missing = f"empty: withheld because it is {withheld}; the research table has it" if withheld else EMPTY
        entries[name] = value | {"computed": computed, "missing": missing}
        entries[f"{name}_status"] = {
            "title": f"{value['title']}, status",
            "unit": "",
            "meaning": "how reliable the value is",
            "computed": f"from the relative error sd / max(value, 2 sd): {limits}, otherwise {said['status']['otherwise']}",
            "missing": NEVER,
        }
    return tuple(Entry(name=each.name, type=type_name(each.type), **entries[each.name]) for each in table.data.schema)


def _number(description: Mapping[str, Any], query: Mapping[str, Any]) -> int:
    return 1 + next(at for at, each in enumerate(description["plan"]) if each is query)


def _key(description: Mapping[str, Any], query: Mapping[str, Any], name: str, words: Words) -> dict[str, str]:
    by = _group(query, name)
    source = str(by.get("column", by.get("prefix_of", by.get("of", name))))
    declared = description.get("schema", {}).get("columns", ())
    category = any(each["name"] == source and each.get("null") == "category" for each in declared)
    meaning, computed = (
        "identifies the cell: the records counted in it have this value",
        "listed before the release was made",
    )
    if "determined_by" in by:
        meaning = "identifies the cell: the codes of the records counted in it lie in this value"
        computed = f"a level of the list '{by['hierarchy']}', which has one for each code"
    elif "part" in by:
        computed = f"the {by['part']} of {source}"
    if "prefix_of" in by:
        meaning += f" as the first {by['length']} characters of {words.label(source)}"
    return {
        "title": words.label(name, source),
        "unit": "",
        "meaning": meaning,
        "computed": computed,
        "missing": "empty: the value is missing in the records of the cell" if category else NEVER,
    }


def _group(query: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    groups: Sequence[Mapping[str, Any]] = [by for table in query.get("tables", ()) for by in table.get("by", ())]
    return next((by for by in groups if by.get("name") == name), {})


def _value(query: Mapping[str, Any], name: str, words: Words, noise: str | None, flag: str | None) -> dict[str, str]:
    stated = next((each for each in query.get("statistics", ()) if each["name"] == name), None)
    of = None if stated is None else stated.get("of")
    if stated is None:
        meaning = "a statistic that others of the table are computed from"
    else:
        meaning = statistic_kind(stated["kind"]).means.format(of=words.label(of) if of else "")
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
    """The error of each value as a share of it, at most one half: a value below twice its error is not taken for its size.

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
    """The column that holds the value to publish: the fitted one where there is one."""
    fitted = variable + FITTED
    return fitted if fitted in table.data.column_names else variable


def sd_column(table: ReleasedTable, variable: str) -> str:
    """The column with the standard deviation of the value to publish: the one of the fit where there is one."""
    candidates = (f"{value_column(table, variable)}_sd", f"{variable}_sd")
    return next(name for name in candidates if name in table.data.column_names)


def has_status(table: ReleasedTable, variable: str) -> bool:
    """Whether a standard deviation is published with a variable."""
    return f"{variable}_sd" in table.data.column_names


def statuses(table: ReleasedTable, variable: str, rules: StatusRules, *, signed: bool) -> pa.Array:
    """The status of every value of a variable, as text."""
    value, sd = (_floats(table, name) for name in (value_column(table, variable), sd_column(table, variable)))
    return named(relative_error(value, sd, signed=signed), rules)


def named(errors: FloatArray, rules: StatusRules) -> pa.Array:
    """The status of each relative error."""
    places = np.searchsorted(np.array([limit for _, limit in rules.limits]), errors, side="left")
    return texts_of(rules.names()).take(array_of(places))


def status_words(content: "Content", table: "DescribedTable", piece: pa.Table, variable: str) -> pa.Array:
    """The status of a variable in some rows of a table: as published, or by the rules; empty text where neither is known."""
    published = variable + STATUS
    if published in piece.column_names:
        return piece.column(published).combine_chunks()
    part = replace(table.table, data=piece)
    if not has_status(part, variable):
        return texts_of([""]).take(array_of(np.zeros(piece.num_rows, np.int64)))
    return statuses(part, variable, content.rules, signed=variable in table.signed)


def signed_variables(description: Mapping[str, Any], table: ReleasedTable) -> frozenset[str]:
    """The variables that may truly be negative: statistics of a signed measure, and what is computed from others."""
    declared = description.get("schema", {}).get("measures", ())
    signed = {each["name"] for each in declared if each.get("signed")}
    stated = query_of(description, table.name).get("statistics", ())
    return frozenset(each["name"] for each in stated if each.get("of") in signed or _computed(each))


def _computed(statistic: Mapping[str, Any]) -> bool:
    """Whether it is a combination or ratio of other columns, whose sign is not known."""
    return statistic.get("of") is None and statistic_kind(statistic["kind"]).derived


def _floats(table: ReleasedTable, name: str) -> FloatArray:
    return np.asarray(numpy_of(table.data.column(name)), np.float64)


# The public lists of codes in a release: which coarser value a code has, as release.json states it.


@dataclass(frozen=True, slots=True)
class CodeLists:
    """The lists of a release, by the name of the hierarchy."""

    lists: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> "CodeLists":
        """The lists that a release describes."""
        return cls({str(each["name"]): each for each in description.get("hierarchies", ())})

    def tables(self) -> dict[str, pa.Table]:
        """Each list with a row for each finest code and a column for each level, the finest last."""
        return {
            name: pa.table({level: self._values(each["list"][level]) for level in each["levels"]})
            for name, each in self.lists.items()
        }

    def above(self, group: Mapping[str, Any], source: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The values of a coarser level for a column of codes of the level ``source``."""
        fine, coarse = self._level(group, source), self._level(group, group["level"])
        return coarse.take(pc.index_in(column, value_set=fine))

    def count_below(self, group: Mapping[str, Any], source: str, column: pa.ChunkedArray) -> FloatArray:
        """How many values of the level ``source`` lie below each value of a coarser level in a column."""
        pairs = pa.table({"fine": self._level(group, source), "coarse": self._level(group, group["level"])})
        different = pairs.group_by(["fine", "coarse"]).aggregate([])
        counts = different.group_by("coarse").aggregate([("fine", "count")])
        found = pc.index_in(column, value_set=counts.column("coarse").combine_chunks())
        return np.asarray(numpy_of(counts.column("fine_count").take(found).fill_null(0)), np.float64)

    def _level(self, group: Mapping[str, Any], level: str) -> pa.Array:
        """The value of a level for each listed code."""
        return self._values(self.lists[str(group["hierarchy"])]["list"][level])

    @staticmethod
    def _values(listed: Mapping[str, Any]) -> pa.Array:
        values = pa.array(listed["values"])
        return values.take(pa.array(listed["codes"])) if "codes" in listed else values
