"""One entry of a plan file with the line it stands on: reads itself as what it should be, or notes a problem and goes on."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from recordwise.errors import ParameterError, PlanError, RecordwiseError
from recordwise.exact import Number, rational
from recordwise.planfile.lines import Path

T = TypeVar("T")
KINDS = {dict: "a table", list: "a list", str: "text", bool: "true or false", int: "a number", Decimal: "a number"}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """What is wrong, where: the line, the entry, a sentence."""

    line: int
    place: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.place + ': ' if self.place else ''}{self.text}"


class Problems:
    """Everything found wrong so far."""

    def __init__(self, lines: dict[Path, int]) -> None:
        self._lines = lines
        self._found: set[Problem] = set()

    def add(self, path: Path, text: str) -> None:
        self._found.add(Problem(self.line(path), place(path), text.rstrip(".")))

    def line(self, path: Path) -> int:
        """The line of an entry, or of the nearest table that holds it."""
        return next(self._lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self._lines)

    def listed(self) -> tuple[Problem, ...]:
        return tuple(sorted(self._found))


def place(path: Path) -> str:
    """An entry as its owner would name it: queries[2].sum.emp, counting from 1."""
    text = ""
    for step in path:
        text += f"[{step + 1}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the file and the way to it."""

    value: Any
    path: Path
    problems: Problems

    def problem(self, text: str) -> None:
        self.problems.add(self.path, text)

    def attempt(self, make: Callable[[], T]) -> T | None:
        """What ``make`` returns, or None with the refusal noted here."""
        try:
            return make()
        except PlanError as error:
            for text in error.problems:
                self.problem(text)
        except RecordwiseError as error:
            self.problem(str(error))
        return None

    def _wrong(self, wanted: str) -> None:
        self.problem(f"must be {wanted}, not {KINDS.get(type(self.value), 'a date')}")

    def table(self, *known: str, needed: Iterable[str] = ()) -> dict[str, "Node"]:
        """The entries of a table; without ``known`` any name may stand there."""
        if not isinstance(self.value, dict):
            self._wrong("a table")
            return {}
        found = {name: Node(value, (*self.path, name), self.problems) for name, value in self.value.items()}
        for name in list(found) if known else ():
            if name not in known:
                found.pop(name).problem(f"is not known here{suggestion(name, known)}")
        for name in needed:
            if name not in self.value:
                self.problem(f"'{name}' is missing")
        return found

    def items(self) -> list["Node"]:
        """The items of a list; a single value counts as a list of one."""
        if not isinstance(self.value, list):
            return [self]
        return [Node(value, (*self.path, number), self.problems) for number, value in enumerate(self.value)]

    def text(self) -> str | None:
        if isinstance(self.value, str) and self.value:
            return self.value
        self._wrong("text") if not isinstance(self.value, str) else self.problem("must not be empty")
        return None

    def word(self, *known: str) -> str | None:
        """One of a few words."""
        text = self.text()
        if text is None or text in known:
            return text
        self.problem(f"must be one of {', '.join(known)}{suggestion(text, known)}")
        return None

    def flag(self) -> bool | None:
        if isinstance(self.value, bool):
            return self.value
        self._wrong("true or false")
        return None

    def whole(self) -> int | None:
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return self.value
        self._wrong("a whole number")
        return None

    def number(self) -> Number | None:
        """An exact number: 0.1 is 1/10, and '1/3' may stand in quotes."""
        try:
            return rational(self.value, parameter="it")
        except ParameterError:
            self._wrong("a number") if not isinstance(self.value, (str, Decimal)) else self.problem("is not a number")
            return None

    def share(self) -> float | None:
        """A number strictly between 0 and 1."""
        number = self.number()
        if number is None or 0 < number < 1:  # type: ignore[operator]
            return None if number is None else float(number)
        self.problem("must lie between 0 and 1")
        return None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to a mistyped one."""
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return f": did you mean '{folded[near[0]]}'?" if near else f"; known are {', '.join(folded.values())}"
