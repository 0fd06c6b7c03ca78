"""The public lists of codes in a release: which coarser value a code has, as release.json states it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import numpy_of


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
