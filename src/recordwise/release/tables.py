"""Published tables, their digest, and what is said about their columns."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import null_as, numpy_of, single_array, texts_of
from recordwise.plan.publication import Labels, StatusRules
from recordwise.plan.statistics.base import OTHER
from recordwise.policy.json import Bands
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from recordwise.plan.cost import Part
    from recordwise.plan.plan import Plan
    from recordwise.release.published import PublishedStatistic

Form: TypeAlias = Mapping[str, Any]
"""An entry of release.json."""


FEW_BYTES = 2**24
"""Below this, digests are computed sooner than threads start."""


def digest_of(tables: Mapping[str, pa.Table], policy: Policy) -> str:
    """Return the SHA-256 of the policy and all columns, by table."""
    names = sorted(tables)
    columns = [(name, column) for name in names for column in tables[name].column_names]
    values = [tables[name].column(column) for name, column in columns]
    if sum(each.nbytes for each in tables.values()) < FEW_BYTES:
        found = [column_digest(each) for each in values]
    else:
        with ThreadPoolExecutor() as pool:
            found = list(pool.map(column_digest, values))
    parts = [[*place, digest] for place, digest in zip(columns, found)]
    rows = [[name, tables[name].num_rows] for name in names]
    return hashlib.sha256(json.dumps([policy.to_json(), rows, parts], sort_keys=True).encode()).hexdigest()


FACTS = (
    "tuned_on",
    "accept_tuning",
    "parameters",
    "guarantee",
    "budget_bands",
    "ledger_storage",
    "versions",
    "interval_level",
    "pure_epsilon",
    "sized_noise",
    "hierarchies",
    "looked_at_records",
    "looks",
    "series",
    "refines",
    "step",
    "tier_of",
    "follows",
    "declared_elsewhere",
)
"""Entries of release.json that are final when it is recorded, besides the dataset, plan, schema and budget of the ledger.

The ledger notes them with their digest, so that a later version may add to them.
"""


def facts_of(form: Mapping[str, Any], names: Sequence[str] = FACTS) -> dict[str, Any]:
    """Return the digest of what only release.json says, such as lists of codes and the level of intervals."""
    return {"of": list(names), "digest": _json_digest({name: form[name] for name in names if name in form})}


POLICIES, TABLES, PARTS = "policy.json", "tables", "parts"
"""The names of the digests that the ledger notes next to the facts."""


def told_digests(
    policies: Mapping[str, Any], tables: "Sequence[ReleasedTable]", parts: "Sequence[PagePart]"
) -> dict[str, str]:
    """Return digests of what else is final when a release is recorded.

    All losses of policy.json, the columns of its tables as drawn, and the parts of its page without the words that
    readers may be given later.
    """
    # The ledger compares both of these itself.
    losses = {name: form for name, form in policies.items() if name not in ("mark", "tight")}
    columns = {each.name: [each.keys, each.variables, each.flags()] for each in tables}
    return {
        POLICIES: _json_digest(losses),
        TABLES: _json_digest(columns),
        PARTS: _json_digest([each.identity() for each in parts]),
    }


def _json_digest(form: Any) -> str:
    return hashlib.sha256(json.dumps(form, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def column_digest(column: pa.ChunkedArray) -> str:
    """Return one column's digest of NULLs and values, whatever the chunks."""
    if not publishable(column.type):
        raise ParameterError(
            parameter="a column", problem=f"of type {column.type} is neither numbers, text nor truth values"
        )
    total = hashlib.sha256(f"{column.type}".encode())
    array = column.chunk(0) if column.num_chunks == 1 else single_array(column)
    if array.null_count:
        total.update(np.packbits(numpy_of(array.is_null())).data)
    if pa.types.is_string(array.type):
        array = array.fill_null("") if array.null_count else array
        total.update(_numbers(pc.binary_length(array)))
        total.update(_letters(array))
    else:
        total.update(_numbers(array))
    return total.hexdigest()


def noise_read(statistic: "PublishedStatistic") -> Any | None:
    """Return the noise of a statistic as it is stated, or its mechanism where only that can read it."""
    from recordwise.noise.stated import stated_noise

    stated = None if statistic.noise is None else stated_noise(statistic.noise)
    return statistic.mechanism() if stated is None else stated


def publishable(kind: pa.DataType) -> bool:
    """Return whether Parquet and CSV preserve columns of this type."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind) or types.is_boolean(kind))


def _numbers(array: pa.Array) -> memoryview:
    """Numbers and truth values as bytes, 0 where there are none."""
    if pa.types.is_boolean(array.type):
        return memoryview(numpy_of(array.fill_null(False)))
    if array.null_count or not len(array):
        return memoryview(null_as(array, 0))
    width = array.type.bit_width // 8
    return memoryview(array.buffers()[1])[width * array.offset : width * (array.offset + len(array))]


def _letters(array: pa.StringArray) -> memoryview:
    _, offsets, letters = array.buffers()
    if letters is None or not len(array):
        return memoryview(b"")
    ends = np.frombuffer(offsets, dtype=np.int32)
    return memoryview(letters)[ends[array.offset] : ends[array.offset + len(array)]]


PRIVATE = "private"
NOT_PRIVATE = "NOT PRIVATE: drawn from a seeded generator, for tests and simulation only"
FLAG = b"recordwise_flag"
BANNER = 'class="not-private"'
"""Present only on the page of a seeded run; names and values are escaped and cannot produce it."""
BASIC = "_basic"
"""The end of the name of a basic table, next to the research table it is made of."""
FITTED = "_fit"
"""The suffix of a column that was fitted to add up, next to the one that was drawn."""
BEST = "_best"
"""The suffix of the best linear unbiased estimate from all tables of a query."""
ADDED = tuple(fit + end for fit in (FITTED, BEST) for end in ("", "_sd", "_low", "_high"))
"""The suffixes of all columns that post-processing adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTable:
    """One published table: keys, then values with sd, cv and interval."""

    name: str
    keys: tuple[str, ...]
    variables: tuple[str, ...]
    data: pa.Table
    """A column that is not an unbiased estimate is marked in its metadata."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream: ``pl.DataFrame(table)``, ``duckdb.from_arrow(table)``."""
        return self.data.__arrow_c_stream__(requested_schema)

    def flags(self) -> dict[str, str]:
        """The variables that are not unbiased, and why."""
        known = {field.name: field.metadata or {} for field in self.data.schema}
        return {name: found[FLAG].decode() for name, found in known.items() if FLAG in found}


NAME = "_name"
"""The suffix of a column with the names of codes, next to the column of codes."""


def name_columns(table: ReleasedTable, words: Labels) -> dict[str, str]:
    """Return each labeled key's column of names.

    It follows from the labels and the columns alone, not from which codes are published.
    """
    taken = set(table.data.column_names)
    texts = [key for key in table.keys if pa.types.is_string(table.data.schema.field(key).type)]
    return {key: key + NAME for key in texts if key + NAME not in taken and words.values(key)}


def with_names(table: ReleasedTable, words: Labels) -> ReleasedTable:
    """Return the table with a column of names next to each column of codes that have any."""
    data = table.data
    for key, name in name_columns(table, words).items():
        codes, labels = pc.dictionary_encode(data.column(key).combine_chunks()), words.values(key)
        texts = texts_of([labels.get(code) for code in codes.dictionary.to_pylist()])
        data = data.add_column(data.column_names.index(key) + 1, name, texts.take(codes.indices))
    return table if data is table.data else replace(table, data=data)


def without_names(tables: Mapping[str, pa.Table], added: Mapping[str, Sequence[str]]) -> dict[str, pa.Table]:
    """Return tables without the columns of names that were added to them."""
    return {name: table.drop_columns(list(added.get(name, ()))) for name, table in tables.items()}


def with_flags(table: pa.Table, flags: Mapping[str, str]) -> pa.Table:
    """The table with flags in the metadata of some columns."""
    fields = [
        field.with_metadata({FLAG: flags[field.name]}) if field.name in flags else field for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def without_fits(table: pa.Table, ends: Sequence[str]) -> pa.Table:
    """The columns that were drawn; what a fit added under these ends is computed from them and proves nothing."""
    names = set(table.column_names)
    return table.drop_columns(sorted({name + end for name in names for end in ends} & names))


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The accuracy of a variable over its cells; None where infinite."""

    median_sd: float | None
    median_cv: float | None
    share_below: float | None
    """The share of the cells with a coefficient of variation below 0.1."""

    @classmethod
    def of(cls, sd: FloatArray, cv: FloatArray) -> "Accuracy":
        """Return the accuracy of some cells from their errors, absolute and relative."""
        return cls(_median(sd), _median(cv), float(np.mean(cv < 0.1)) if len(cv) else None)

    @classmethod
    def read(cls, form: Mapping[str, float | None]) -> "Accuracy":
        """Read what ``to_json`` wrote."""
        return cls(form["median_sd"], form["median_cv"], form["share_cv_below_0.1"])

    def to_json(self) -> dict[str, float | None]:
        """As in release.json."""
        return {"median_sd": self.median_sd, "median_cv": self.median_cv, "share_cv_below_0.1": self.share_below}


def accuracy(table: ReleasedTable) -> dict[str, Accuracy]:
    """The accuracy of each variable, from noise laws and released values."""
    found = {}
    for name in table.variables:
        sd, cv = (numpy_of(table.data.column(f"{name}{end}").drop_null()) for end in ("_sd", "_cv"))
        found[name] = Accuracy.of(sd, cv)
    return found


def _median(values: FloatArray) -> float | None:
    """Return the median, without numpy's slow import; None if not finite."""
    if not len(values) or np.isnan(values.max()):
        return None
    middle = [(len(values) - 1) // 2, len(values) // 2]
    low, high = np.partition(values, middle)[middle].tolist()
    return (low + high) / 2 if math.isfinite(low) and math.isfinite(high) else None


# What release.json says about columns and tables that were computed from the drawn ones.


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassBias:
    """The estimated average error of nonnegative cells of one size class."""

    up_to: float | None
    """The largest size of the class, in standard errors of ``NAME_best``; None without a limit."""
    cells: int
    """How many published cells are in it."""
    bias: float
    """In standard errors of ``NAME_best``."""

    @classmethod
    def read(cls, form: Form) -> "ClassBias":
        """Read it."""
        return cls(up_to=form["up_to"], cells=int(form["cells"]), bias=float(form["bias"]))

    def to_json(self) -> dict[str, Any]:
        """Write it."""
        return {"up_to": self.up_to, "cells": self.cells, "bias": self.bias}


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableFit:
    """How one variable was fitted."""

    kkt: float
    primal: float
    converged: bool
    fit: Form = field(default_factory=dict)
    """Where the intervals of its fitted column come from."""
    best: Form = field(default_factory=dict)
    """Where those of its best linear estimate come from."""
    note: str = ""
    left: tuple["ClassBias", ...] = ()
    """The bias that nonnegativity leaves, estimated for this release, small cells first; empty if there is none."""

    @classmethod
    def read(cls, reached: Form, spread: Form) -> "VariableFit":
        """Read the residuals of a fit and the origin of its intervals."""
        return cls(
            kkt=reached.get("kkt", math.nan),
            primal=reached.get("primal", math.nan),
            converged=reached.get("converged", False),
            fit=spread.get("fit", {}),
            best=spread.get("best", {}),
            note=spread.get("note", ""),
            left=tuple(ClassBias.read(each) for each in spread.get("bias", ())),
        )

    def to_json(self) -> dict[str, Any]:
        """Write the origin of its intervals, and its bias."""
        found: dict[str, Any] = {"fit": dict(self.fit), "best": dict(self.best)}
        found |= {"note": self.note} if self.note else {}
        return found | ({"bias": [each.to_json() for each in self.left]} if self.left else {})

    @property
    def intervals(self) -> tuple[str, str]:
        """Where the intervals of fitted columns and best estimates come from."""
        return str(self.fit["intervals"]), str(self.best["intervals"])


@dataclass(frozen=True, slots=True, kw_only=True)
class FitNote:
    """How the fitted columns of a release were made."""

    method: str
    complete: bool
    zero_counts: bool
    at_most: Mapping[str, str]
    digest: str
    """The digest of the tables with their fitted columns."""
    together: tuple[tuple[str, ...], ...] = ()
    """The tables of different queries that were fitted together."""
    fits: Mapping[str, VariableFit] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    """What each kind of added column is."""
    added: tuple[str, ...] = ADDED
    """The suffixes of the columns that were added."""
    options: Mapping[str, float] = field(default_factory=dict)
    """Further parameters of the method: gamma of reweighting, slack of max_fit."""

    @classmethod
    def read(cls, form: Form) -> "FitNote":
        """Read the note; fits of earlier versions added one column and said nothing about intervals."""
        spreads = form.get("uncertainty", {})
        return cls(
            method=str(form.get("method")),
            complete=bool(form.get("complete")),
            zero_counts=bool(form.get("zero_counts")),
            at_most=form.get("at_most", {}),
            digest=str(form["digest"]),
            together=tuple(map(tuple, form.get("fitted_together", ()))),
            fits={name: VariableFit.read(each, spreads.get(name, {})) for name, each in form.get("fits", {}).items()},
            columns=form.get("columns", {}),
            # A variable of theirs may be called what is added to another today.
            added=ADDED if "uncertainty" in form else (FITTED,),
            options={name: float(form[name]) for name in ("gamma", "slack") if name in form},
        )

    def to_json(self) -> dict[str, Any]:
        """Write the note."""
        fits = self.fits.items()
        return {
            "method": self.method,
            **self.options,
            "complete": self.complete,
            "zero_counts": self.zero_counts,
            "at_most": dict(self.at_most),
            **({"fitted_together": [list(some) for some in self.together]} if self.together else {}),
            "fits": {name: {"kkt": f.kkt, "primal": f.primal, "converged": f.converged} for name, f in fits},
            "uncertainty": {name: f.to_json() for name, f in fits},
            "columns": dict(self.columns),
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicNote:
    """How the basic tables of a release were made."""

    tables: Mapping[str, Sequence[str]]
    """The variables of each."""
    rounded_to: Mapping[str, str]
    largest_change: Mapping[str, float]
    """By how many units a number changed at most."""
    moved_more: Mapping[str, int]
    """How many numbers changed by a unit or more."""
    rules: StatusRules
    digest: str
    bias: str | Mapping[str, str] = ""
    """What is left of the bias of nonnegative values, by variable; one text for all of them in earlier versions."""

    @classmethod
    def read(cls, form: Form) -> "BasicNote":
        """Read the note."""
        return cls(
            tables=form["tables"],
            rounded_to=form["rounded_to"],
            largest_change=form["largest_change"],
            moved_more=form.get("moved_more", {}),
            rules=StatusRules.from_json(form["status"]),
            digest=str(form["digest"]),
            bias=form.get("bias", ""),
        )

    def to_json(self) -> dict[str, Any]:
        """Write the note."""
        return {
            "tables": {name: list(variables) for name, variables in self.tables.items()},
            "rounded_to": dict(self.rounded_to),
            "largest_change": dict(self.largest_change),
            "moved_more": dict(self.moved_more),
            "status": self.rules.to_json(),
            **({"bias": self.bias if isinstance(self.bias, str) else dict(self.bias)} if self.bias else {}),
            "digest": self.digest,
        }

    def bias_of(self, query: int, name: str) -> str:
        """What is left of the bias of a variable, in words."""
        found = self.bias if isinstance(self.bias, str) else self.bias.get(f"q{query}:{name}", "")
        return found.replace("NAME", name)


# A release's parts as shown on its page and in release.json.


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """One statistic of one table, or the selection of a table's keys."""

    table: str
    statistic: str
    kind: str
    """``count``: the record changes it by 1 or not at all; ``sum``: by its value; ``other``: neither rule applies."""
    noise: str
    """A description in words."""
    policy: Policy
    measure: str | None = None
    step: Fraction = Fraction(1)
    mechanisms: tuple[Any, ...] = ()
    """The mechanisms of its cells, or their saved form; their variance gives the size of the noise at a total."""
    stays: bool = True
    """Whether a record keeps its cell whatever its measures are."""
    cut_down: bool = False
    """Whether large records were only partly counted."""

    def identity(self) -> list[Any]:
        """What is the same however often it is saved: all but the curves of its noise."""
        known = [self.table, self.statistic, self.kind, self.noise, self.measure, str(self.step)]
        return [*known, self.stays, self.cut_down, self.policy.to_json()]


def page_parts(plan: "Plan") -> tuple[PagePart, ...]:
    """Return the parts of a plan as its page shows them."""
    from recordwise.plan.describe import table_name

    return tuple(_page_part(part, table_name(plan, part.table)) for part in plan.parts())


def external_part(name: str, policy: Policy) -> PagePart:
    """An external mechanism on split rows."""
    return PagePart(table=name, statistic=name, kind=OTHER, noise="an external mechanism", policy=policy)


def _page_part(part: "Part", table: str) -> PagePart:
    statistic, stays = part.statistic, part.stays
    if statistic is None:
        noise = "Gaussian noise on the number that decides whether a cell is listed"
        return PagePart(
            table=table, statistic=part.alias, kind=OTHER, noise=noise, policy=part.record_policy(), stays=stays
        )
    measure = None if statistic.of is None else part.schema.measure(statistic.of)
    return PagePart(
        table=table,
        statistic=part.alias,
        kind=statistic.contribution,
        noise=statistic.mechanism.words,
        policy=part.record_policy(),
        measure=measure.name if measure else None,
        step=statistic.step(part.schema),
        mechanisms=part.mechanisms,
        stays=stays,
        cut_down=any(mechanism.to is not None for mechanism in part.mechanisms),
    )


# Parts read back from release.json, so that a reloaded release makes the same page.


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedNoise:
    """The noise of a mechanism read back from a file: its variance at the saved totals, interpolated between them."""

    noise_sigma: float | None
    sizes: tuple[float, ...]
    variances: tuple[float, ...]

    def variance_of(self, total: Any, *, step: Fraction = Fraction(1)) -> FloatArray:
        if np.array_equal(total, self.sizes):
            return np.asarray(self.variances)
        with np.errstate(all="ignore"):
            return np.asarray(np.exp(np.interp(np.log(total), np.log(self.sizes), np.log(self.variances))))


def parts_from_json(saved: Mapping[str, Any], bands: Bands | None = None) -> tuple[PagePart, ...]:
    """Return the parts written by ``page_json``; raise for anything else."""
    policies = [Policy.from_json(form, bands) for form in saved["policies"]]
    curves = [tuple(math.inf if value is None else float(value) for value in curve) for curve in saved["variances"]]
    return tuple(_part_from_json(each, policies, curves, saved["sizes"]) for each in saved["parts"])


def _part_from_json(
    form: Mapping[str, Any], policies: Sequence[Policy], curves: Sequence[Any], sizes: Mapping[str, Any]
) -> PagePart:
    noises = tuple(
        SavedNoise(
            noise_sigma=noise["sigma"],
            sizes=tuple(map(float, sizes[form["measure"]])),
            variances=curves[noise["variances"]],
        )
        for noise in form["noises"]
    )
    return PagePart(
        table=str(form["table"]),
        statistic=str(form["statistic"]),
        kind=str(form["kind"]),
        noise=str(form["noise"]),
        policy=policies[form["policy"]],
        measure=form["measure"],
        step=Fraction(form["step"]),
        mechanisms=noises,
        stays=bool(form["stays"]),
        cut_down=bool(form["cut_down"]),
    )
