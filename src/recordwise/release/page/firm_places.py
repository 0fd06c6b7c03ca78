"""Where the establishments of a firm belong: what the page asks for, and the levels that it finds from public lists of codes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from recordwise.plan.arrays import numpy_of
from recordwise.plan.key_columns import encoded
from recordwise.policy.firms import FirmPolicy
from recordwise.release.page.questions import AMOUNT, TEXT, Question

MOST_CODES = 20_000
"""A longer list would make the page large; its levels are asked for."""


@dataclass(frozen=True, slots=True)
class FirmPlaces:
    """The columns that say which establishments of a firm share a cell."""

    asked: tuple[str, ...] = ()
    """Those typed for a firm, because no question asks for them as they are."""
    shared: tuple[str, ...] = ()
    """Those that a question asks for as text, so that its answer says the place as well."""
    lists: tuple[pa.Table, ...] = ()
    """Lists of codes, the finest level last, with the coarser levels that are found from it."""

    @classmethod
    def of(cls, firms: FirmPolicy | None, questions: Sequence[Question], lists: Iterable[pa.Table]) -> "FirmPlaces":
        """What is needed for a release: of every list the finest code in the place of coarser levels."""
        if firms is None:
            return cls()
        columns, used = firms.columns(), []
        for listed in lists:
            *coarser, finest = listed.column_names
            levels = [level for level in coarser if level in columns]
            if levels and listed.num_rows <= MOST_CODES:
                used.append(listed.select([*levels, finest]))
        finest_of = {level: each.column_names[-1] for each in used for level in each.column_names}
        wanted = tuple(dict.fromkeys(finest_of.get(name, name) for name in columns))
        typed = {question.name for question in questions if question.kind == TEXT}
        amounts = {question.name for question in questions if question.kind == AMOUNT}
        return cls(
            asked=tuple(name for name in wanted if name not in typed | amounts),
            shared=tuple(name for name in wanted if name in typed),
            lists=tuple(used),
        )

    def found(self) -> list[str]:
        """The levels that the page finds."""
        return [level for listed in self.lists for level in listed.column_names[:-1]]

    def to_json(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """What the script of the page needs."""
        return {
            "places": [[name, labels.get(name, name)] for name in self.asked],
            "shared": list(self.shared),
            "lists": [_list_json(listed) for listed in self.lists],
        }


def _list_json(listed: pa.Table) -> dict[str, Any]:
    *levels, finest = listed.column_names
    return {
        "finest": finest,
        "codes": [str(code) for code in listed.column(finest).to_pylist()],
        "levels": {level: _level_json(listed.column(level)) for level in levels},
    }


def _level_json(column: pa.ChunkedArray) -> dict[str, Any]:
    """The values of a level, and for each code which of them it has."""
    coded = encoded(column)
    return {"values": [str(value) for value in coded.dictionary.to_pylist()], "at": numpy_of(coded.indices).tolist()}
