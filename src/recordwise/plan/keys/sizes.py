"""Public sizes of cells, by which noise is scaled (T-SIZE): where they are from, and how they are joined to keys.

A size must not depend on the records: its band, and so the noise of a cell, would publish the total. It comes from somebody else's
table (``sized_on="public: SOURCE"``) or from an earlier private release of ours, which is verified when it is read.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import numpy_of

PUBLIC = "public: "
RELEASE = "release "
EVERY_STATISTIC = ""
"""The name of a size that serves every statistic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromRelease:
    """A column of an earlier private release, used as the size of cells.

    Args:
        release: The folder of the release. It is verified when it is read, and must be private.
        column: The published column, such as ``sum_emp``.
    """

    release: str
    column: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "release", str(self.release))


Given: TypeAlias = str | FromRelease | Mapping[str, str | FromRelease]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sizes:
    """The sizes of the cells of a list of keys, by statistic; those of a release are read when a session needs them."""

    columns: Mapping[str, FloatArray]
    waiting: Mapping[str, FromRelease] = field(default_factory=dict)
    read: Mapping[str, FromRelease] = field(default_factory=dict)
    """Where the columns that were waiting came from."""
    sized_on: tuple[str, ...] = ()
    """Where they are from: ``public: SOURCE`` or ``release DIGEST``."""
    raised: Mapping[str, Any] = field(default_factory=dict)
    """The least band of each cell of a table that a budget needs, by the digest of the table without it."""

    def of(self, *names: str | None) -> FloatArray | None:
        """The sizes for a statistic under the first of its names that has any."""
        for name in (*names, EVERY_STATISTIC):
            if name is not None and name in self.columns:
                return self.columns[name]
        return None

    def named(self, *names: str | None) -> bool:
        """Whether a statistic has sizes that were given for it and not for all."""
        return any(name in self.columns for name in names if name is not None)

    def asked(self, *names: str | None) -> bool:
        """Whether a statistic has sizes, read or not."""
        return any(name in self.columns or name in self.waiting for name in (*names, EVERY_STATISTIC))

    def joined(self, name: str, sizes: FloatArray, source: str) -> "Sizes":
        """With the sizes of one statistic that were waiting for a release."""
        waiting = {each: given for each, given in self.waiting.items() if each != name}
        sources = tuple(dict.fromkeys((*self.sized_on, source)))
        read = {**self.read, name: self.waiting[name]}
        return replace(self, columns={**self.columns, name: sizes}, waiting=waiting, read=read, sized_on=sources)

    def with_others(self, others: "Sizes") -> "Sizes":
        """With the sizes of other statistics, which come first where both have some."""
        kept = {name: each for name, each in self.columns.items() if name not in others.waiting}
        waiting = {name: each for name, each in self.waiting.items() if name not in others.columns}
        return replace(
            self,
            columns={**kept, **others.columns},
            waiting={**waiting, **others.waiting},
            sized_on=tuple(dict.fromkeys((*self.sized_on, *others.sized_on))),
        )

    def digest(self) -> str:
        """The fingerprint of all sizes and of where they are from."""
        waiting = sorted([name, each.release, each.column] for name, each in self.waiting.items())
        made = hashlib.sha256(json.dumps([sorted(self.columns), list(self.sized_on), waiting]).encode())
        for name in sorted(self.columns):
            made.update(np.ascontiguousarray(self.columns[name], "<f8").tobytes())
        return made.hexdigest()


def read_sizes(table: pa.Table, size: Any, sized_on: str | None) -> tuple[pa.Table, Sizes | None]:
    """The columns of a frame that are keys, and the sizes it has beside them."""
    if size is None:
        if sized_on is not None:
            raise KeysError(column="'sized_on'", problem="says where sizes are from, but no size was given")
        return table, None
    given = {EVERY_STATISTIC: size} if isinstance(size, str | FromRelease) else size
    if not isinstance(given, Mapping) or not all(isinstance(each, str | FromRelease) for each in given.values()):
        raise KeysError(column="'size'", problem="must be a column, or a mapping from each statistic to its column")
    waiting = {name: each for name, each in given.items() if isinstance(each, FromRelease)}
    named = {name: each for name, each in given.items() if isinstance(each, str)}
    source = _source(sized_on, bool(named))
    columns = {name: _numbers(table, column) for name, column in named.items()}
    kept = table.drop_columns(sorted(set(named.values())))
    return kept, Sizes(columns=columns, waiting=waiting, sized_on=source)


def _source(sized_on: str | None, named: bool) -> tuple[str, ...]:
    if not named:
        return ()
    if not isinstance(sized_on, str) or not sized_on.startswith(PUBLIC) or not sized_on.removeprefix(PUBLIC).strip():
        raise KeysError(
            column="'sized_on'",
            problem="must say which public table the sizes are from, as 'public: SOURCE'",
            advice="Sizes must never be read off the confidential records. For an earlier release give FromRelease.",
        )
    return (sized_on,)


def _numbers(table: pa.Table, name: str) -> FloatArray:
    """A column of sizes; what is missing or negative is 0, which counts as the floor."""
    if name not in table.column_names:
        raise KeysError(column=f"'{name}'", problem="is the size of cells but no column of the list")
    return as_sizes(name, table.column(name))


def as_sizes(name: str, column: Any) -> FloatArray:
    """Sizes as numbers, 0 where they are missing, negative or no number."""
    try:
        floats = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise KeysError(column=f"'{name}'", problem="is the size of cells but does not hold numbers") from None
    found = numpy_of(pc.fill_null(floats, 0.0))
    return np.where(np.isfinite(found) & (found > 0), found, 0.0)
