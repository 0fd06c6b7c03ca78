"""What a reader asks for: conditions, regions and the words of a question.

A condition is text such as ``county in ('30001', '30003') and not naics2 = '31-33'``, in a small language of its own: columns,
codes, ``=``, ``!=``, ``in``, ``not``, ``and``, ``or`` and parentheses. It is about published cells, never about records.
"""

import csv
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError, SourceError, expect_flags, expect_kind
from recordwise.exact.arithmetic import FloatArray

CODE, REGION, SHARE = "code", "region", "share"
MOST_CODES = 8
"""Codes listed in a question."""
FLAGS = ("complete", "nonnegative")
DEEPEST = 40
"""Parentheses and NOTs within each other."""
TOKEN = re.compile(
    r"\s*(?:'(?P<quoted>(?:[^']|'')*)'|(?P<sign>!=|<>|=|\(|\)|,)|(?P<word>[^\s'\"=!<>(),;]+))",
)
GRAMMAR = "Write column = 'code', column in ('code', 'code'), and, or, not, and parentheses."


# Conditions on the codes of published cells.


Told: TypeAlias = Callable[["Among"], tuple[Any, Any]]
"""For a test of a column, the cells that pass it and those that fail; a cell whose column is unknown does neither."""


@dataclass(frozen=True, slots=True)
class Among:
    """Whether a column has one of some codes."""

    column: str
    codes: tuple[str, ...]

    def tests(self) -> Iterator["Among"]:
        """This one."""
        yield self

    def truth(self, told: Told) -> tuple[Any, Any]:
        """The cells that pass and those that fail."""
        return told(self)

    def text(self, labels: Mapping[str, str]) -> str:
        """In words."""
        return f"{self.column} is {_codes_text(self.column, self.codes, labels)}"


@dataclass(frozen=True, slots=True)
class Not:
    """What fails a condition."""

    part: "Condition"

    def tests(self) -> Iterator[Among]:
        """All tests inside it."""
        yield from self.part.tests()

    def truth(self, told: Told) -> tuple[Any, Any]:
        """The cells that pass and those that fail."""
        passed, failed = self.part.truth(told)
        return failed, passed

    def text(self, labels: Mapping[str, str]) -> str:
        """In words."""
        if isinstance(self.part, Among):
            return f"{self.part.column} is not {_codes_text(self.part.column, self.part.codes, labels)}"
        return f"not ({self.part.text(labels)})"


@dataclass(frozen=True, slots=True)
class Joined:
    """Several conditions, of which all hold, or one."""

    parts: tuple["Condition", ...]
    every: bool

    def tests(self) -> Iterator[Among]:
        """All tests inside it."""
        for part in self.parts:
            yield from part.tests()

    def truth(self, told: Told) -> tuple[Any, Any]:
        """The cells that pass and those that fail."""
        passed, failed = (np.array(each) for each in zip(*(part.truth(told) for part in self.parts)))
        if self.every:
            return np.all(passed, axis=0), np.any(failed, axis=0)
        return np.any(passed, axis=0), np.all(failed, axis=0)

    def text(self, labels: Mapping[str, str]) -> str:
        """In words."""
        texts = [
            f"({each.text(labels)})" if isinstance(each, Joined) and not each.every else each.text(labels)
            for each in self.parts
        ]
        return (" and " if self.every else " or ").join(texts)


Condition: TypeAlias = Among | Not | Joined


def condition_of(given: "Mapping[str, Any] | str | Condition | None") -> Condition | None:
    """Return the condition of ``where``: codes by column, or text."""
    if given is None or isinstance(given, Among | Not | Joined):
        return given
    if isinstance(given, str):
        _require_letters([given], "where")
        return _Reader(given).condition()
    expect_kind(given, (Mapping,), parameter="where", wanted="a condition as text, or codes by column")
    parts = [Among(column, _codes(column, codes)) for column, codes in given.items()]
    return Joined(tuple(parts), every=True) if len(parts) > 1 else next(iter(parts), None)


class _Reader:
    """Reads a condition from text, one token after another."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._at = self._depth = start = 0
        while text[start:].strip():
            found = TOKEN.match(text, start)
            if found is None:
                raise _unreadable(text[start:].strip()[:20])
            start, kind = found.end(), str(found.lastgroup)
            token = found[kind].replace("''", "'") if kind == "quoted" else found[kind]
            self._tokens.append((kind, token))

    def condition(self) -> Condition:
        """The whole text."""
        found = self._either()
        if self._at < len(self._tokens):
            raise _unreadable(self._tokens[self._at][1])
        return found

    def _word(self) -> str:
        """The next token in lower case, unless it is quoted."""
        kind, token = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        return "" if kind == "quoted" else token.lower()

    def _take(self, *wanted: str) -> bool:
        if self._word() not in wanted or self._at >= len(self._tokens):
            return False
        self._at += 1
        return True

    def _need(self, wanted: str) -> None:
        if not self._take(wanted):
            raise _unreadable(self._tokens[self._at][1] if self._at < len(self._tokens) else "the end")

    def _either(self) -> Condition:
        parts = [self._every()]
        while self._take("or"):
            parts.append(self._every())
        return parts[0] if len(parts) == 1 else Joined(tuple(parts), every=False)

    def _every(self) -> Condition:
        parts = [self._single()]
        while self._take("and"):
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else Joined(tuple(parts), every=True)

    def _single(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ParameterError(parameter="where", problem="has too many parentheses within each other")
        if self._take("not"):
            found: Condition = Not(self._single())
        elif self._take("("):
            found = self._either()
            self._need(")")
        else:
            found = self._test()
        self._depth -= 1
        return found

    def _test(self) -> Condition:
        column = self._value(("word",))
        if self._take("="):
            return Among(column, (self._value(("word", "quoted")),))
        if self._take("!=", "<>"):
            return Not(Among(column, (self._value(("word", "quoted")),)))
        outside = self._take("not")
        self._need("in")
        self._need("(")
        codes = [self._value(("word", "quoted"))]
        while self._take(","):
            codes.append(self._value(("word", "quoted")))
        self._need(")")
        found = Among(column, tuple(dict.fromkeys(codes)))
        return Not(found) if outside else found

    def _value(self, kinds: tuple[str, ...]) -> str:
        kind, token = self._tokens[self._at] if self._at < len(self._tokens) else ("", "the end")
        if kind not in kinds:
            raise _unreadable(token)
        self._at += 1
        return token


def _unreadable(token: str) -> ParameterError:
    return ParameterError(parameter="where", problem=f"cannot be read at {token!r}", advice=GRAMMAR)


# Regions.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regions:
    """Regions made of codes: a row for each code in a region."""

    column: str | None
    """What the codes are; None if that has to be found."""
    codes: tuple[str, ...]
    regions: tuple[str, ...]
    shares: FloatArray

    @classmethod
    def of(cls, given: Any, column: str | None) -> "Regions":
        """Read a CSV file, a frame or a mapping of columns."""
        columns = _columns(given)
        if len({len(each) for each in columns.values()}) > 1:
            raise ParameterError(parameter="regions", problem="has columns of different lengths")
        names = [name for name in columns if name not in (REGION, SHARE)]
        if REGION not in columns or len(names) != 1:
            raise ParameterError(
                parameter="regions", problem="must have the columns code and region, and perhaps share, and no others"
            )
        own = None if names[0] == CODE else names[0]
        if any(each is None for name in (names[0], REGION) for each in columns[name]):
            raise ParameterError(parameter="regions", problem="has a line without a code or a region")
        codes, regions = tuple(map(str, columns[names[0]])), tuple(map(str, columns[REGION]))
        _require_letters((*codes, *regions), "regions")
        try:
            shares = np.array([1.0 if s in (None, "") else float(s) for s in columns.get(SHARE, [1.0] * len(codes))])
        except (ValueError, TypeError):
            shares = np.array([np.nan])
        if not np.all(np.isfinite(shares) & (shares >= 0)):
            raise ParameterError(parameter="regions", problem="has a share that is no number of at least 0")
        if np.any(shares > 1 + 1e-9):
            raise ParameterError(
                parameter="regions",
                problem="has a share above 1",
                advice="A share is the part of the code that lies in the region, from 0 to 1: .3 and not 30.",
            )
        if len(set(zip(codes, regions))) != len(codes):
            raise ParameterError(parameter="regions", problem="names a code twice in the same region")
        if column is not None and own is not None and column != own:
            raise ParameterError(parameter="by", problem=f"differs from the column of the regions, '{own}'")
        return cls(column=own or column, codes=codes, regions=regions, shares=shares)


def _columns(given: Any) -> dict[str, list[Any]]:
    """Return the columns of a file, a mapping or a frame."""
    if isinstance(given, str | Path):
        return _file_columns(Path(given))
    try:
        found = given.items() if isinstance(given, Mapping) else pa.table(given).to_pydict().items()
        return {name: list(values) for name, values in found}
    except (TypeError, ValueError, AttributeError, pa.ArrowException):
        raise ParameterError(
            parameter="regions", problem="must be a CSV file, a frame, or a mapping of columns"
        ) from None


def _require_letters(texts: Sequence[str], parameter: str) -> None:
    """Refuse halves of letters, which no table can hold."""
    if any(not each.isascii() and re.search("[\ud800-\udfff]", each) for each in texts):
        raise ParameterError(parameter=parameter, problem="has halves of letters, which no text has")


def _file_columns(path: Path) -> dict[str, list[Any]]:
    """Read a CSV file as text."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows, names = list(reader), list(reader.fieldnames or ())
    except FileNotFoundError:
        raise SourceError(source=f"'{path}'", problem="the file does not exist") from None
    except (OSError, ValueError, csv.Error):
        raise SourceError(source=f"'{path}'", problem="it cannot be read as CSV") from None
    if any(None in row or None in row.values() for row in rows):
        raise SourceError(source=f"'{path}'", problem="a line has more or fewer entries than the first")
    return {name: [row[name] for row in rows] for name in names}


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """What a reader asks for."""

    name: str
    where: Condition | None
    by: str | None
    regions: Regions | None
    complete: bool | None = None
    nonnegative: bool = False
    query: int | None = None
    whole: "Question | None" = None
    """What shares are of; its answer is the last one."""

    @classmethod
    def of(
        cls,
        name: str,
        where: "Mapping[str, Any] | str | Condition | None",
        *,
        by: str | None = None,
        regions: Any = None,
        **more: Any,
    ) -> "Question":
        """Read the arguments of ``total``."""
        more |= {name: bool(more[name]) for name in FLAGS if isinstance(more.get(name), np.bool_)}
        expect_flags(**{name: more[name] for name in FLAGS if more.get(name) is not None})
        if more.get("query") is not None:
            expect_kind(more["query"], Integral, parameter="query", wanted="the number of a query")
        made = regions if regions is None or isinstance(regions, Regions) else Regions.of(regions, by)
        return cls(name=name, where=condition_of(where), by=by if made is None else None, regions=made, **more)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names."""
        region = () if self.regions is None or self.regions.column is None else (self.regions.column,)
        tested = [] if self.where is None else [each.column for each in self.where.tests()]
        return tuple(dict.fromkeys([*tested, *([self.by] if self.by else []), *region]))

    def text(self, labels: Mapping[str, str]) -> str:
        """The question in words, for a sentence and a citation."""
        parts = [f"total of {labels.get(self.name, self.name)}"]
        parts += [f"where {self.where.text(labels)}"] if self.where is not None else []
        parts += [f"by {self.by}"] if self.by else []
        if self.regions is not None:
            listed = [f"{c},{r},{s}" for c, r, s in zip(self.regions.codes, self.regions.regions, self.regions.shares)]
            parts.append(f"by {len(set(self.regions.regions))} regions (list {short_digest(listed)})")
        return " ".join(parts)


def _codes(column: str, given: Any) -> tuple[str, ...]:
    several = [given] if isinstance(given, str) or not hasattr(given, "__iter__") else list(given)
    codes = tuple(dict.fromkeys(map(str, several)))
    _require_letters(codes, "where")
    if not codes:
        raise ParameterError(parameter="where", problem=f"names no code of '{column}'")
    return codes


def _codes_text(column: str, codes: Sequence[str], labels: Mapping[str, str]) -> str:
    if len(codes) > MOST_CODES:
        return f"one of {len(codes)} codes (list {short_digest(codes)})"
    return ", ".join(with_label(column, code, labels) for code in codes)


def with_label(column: str, code: str, labels: Mapping[str, str]) -> str:
    """A code with its label, where it has one."""
    label = labels.get(f"{column}={code}")
    return code if label is None else f"{label} ({code})"


def short_digest(texts: Sequence[str]) -> str:
    """A fingerprint of a list that is too long to quote."""
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:12]
