"""Entries of a plan file with their lines, and the file's parameters.

An entry reads itself as the expected kind of value, or records a problem and continues. The standard TOML parser keeps no
positions, so the text is scanned a second time to find the line of each entry. The scan assumes text that the parser has
accepted: it only finds where entries are and does not check them.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

from recordwise.errors import ParameterError, PlanError, RecordwiseError, SourceError, near_name
from recordwise.exact.numbers import Number, rational

Path: TypeAlias = tuple[str | int, ...]
"""The path to an entry: names of tables and indexes in arrays."""

_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def line_index(text: str) -> dict[Path, int]:
    """The line number, from 1, of every table, key and array item."""
    walk = _Walk(text.replace("\r\n", "\n"))
    walk.document()
    return walk.lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.starts = [0, *(place + 1 for place, letter in enumerate(text) if letter == "\n")]
        self.lines: dict[Path, int] = {(): 1}
        self.sizes: dict[Path, int] = {}

    def document(self) -> None:
        here: Path = ()
        while self._skip("\n \t"):
            if self.text[self.at] == "[":
                here = self._header()
            else:
                self._entry(here)

    def _note(self, path: Path, position: int) -> None:
        self.lines.setdefault(path, bisect_right(self.starts, position))

    def _skip(self, blanks: str) -> bool:
        """Skip blanks and comments; returns whether any text is left."""
        while self.at < len(self.text) and (self.text[self.at] in blanks or self.text[self.at] == "#"):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                self.at += 1
        return self.at < len(self.text)

    def _header(self) -> Path:
        """Read ``[a.b]`` or ``[[a.b]]`` as a path to the last item."""
        start, brackets = self.at, 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        names = self._key()
        self.at += brackets
        path: Path = ()
        for name in names[:-1]:
            path = (*path, name)
            self._note(path, start)
            path = (*path, self.sizes[path] - 1) if path in self.sizes else path
        path = (*path, names[-1])
        self._note(path, start)
        if brackets == 2:
            self.sizes[path] = self.sizes.get(path, 0) + 1
            path = (*path, self.sizes[path] - 1)
            self._note(path, start)
        return path

    def _entry(self, here: Path) -> None:
        start, names = self.at, self._key()
        for depth in range(1, len(names) + 1):
            self._note((*here, *names[:depth]), start)
        self.at += 1
        self._value((*here, *names))

    def _key(self) -> tuple[str, ...]:
        """A dotted key, up to the character that ends it."""
        names = []
        while True:
            self._skip(" \t")
            names.append(self._name())
            self._skip(" \t")
            if self.text[self.at] != ".":
                return tuple(names)
            self.at += 1

    def _name(self) -> str:
        quote, start = self.text[self.at], self.at
        if quote in "\"'":
            self._string()
            return _unescape(self.text[start + 1 : self.at - 1]) if quote == '"' else self.text[start + 1 : self.at - 1]
        while self.text[self.at] not in " \t.=]":
            self.at += 1
        return self.text[start : self.at]

    def _value(self, path: Path) -> None:
        self._skip(" \t")
        self._note(path, self.at)
        opening = self.text[self.at]
        if opening in "\"'":
            self._string()
        elif opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}\n#":
                self.at += 1

    def _string(self) -> None:
        quote = self.text[self.at]
        fence = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(fence)
        while not self.text.startswith(fence, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(fence)
        while len(fence) == 3 and self.text.startswith(quote, self.at):
            self.at += 1

    def _array(self, path: Path) -> None:
        self.at += 1
        item = 0
        while self._skip(" \t\n,") and self.text[self.at] != "]":
            self._value((*path, item))
            item += 1
        self.at += 1

    def _inline(self, path: Path) -> None:
        self.at += 1
        while self._skip(" \t\n,") and self.text[self.at] != "}":
            self._entry(path)
        self.at += 1


def _unescape(name: str) -> str:
    """A quoted key with its escapes resolved."""
    letters, at = [], 0
    while at < len(name):
        if name[at] != "\\":
            letters.append(name[at])
            at += 1
            continue
        width = {"u": 4, "U": 8}.get(name[at + 1], 0)
        letters.append(chr(int(name[at + 2 : at + 2 + width], 16)) if width else _ESCAPES[name[at + 1]])
        at += 2 + width
    return "".join(letters)


class Substituted(str):
    """A text with substituted parameters, readable as a number or truth value."""

    template: str = ""
    """The text as it is written in the file."""


T = TypeVar("T")
KINDS = {dict: "a table", list: "a list", str: "text", bool: "true or false", int: "a number", Decimal: "a number"}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem: its line, its entry and a sentence."""

    line: int
    place: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.place + ': ' if self.place else ''}{self.text}"


class Problems:
    """All problems found so far."""

    def __init__(self, lines: dict[Path, int]) -> None:
        self._lines = lines
        self._found: set[Problem] = set()

    def add(self, path: Path, text: str) -> None:
        self._found.add(Problem(self.line(path), entry_name(path), text.rstrip(".")))

    def line(self, path: Path) -> int:
        """Return the line of an entry or of its nearest table."""
        return next(self._lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self._lines)

    def in_order(self) -> tuple[Problem, ...]:
        return tuple(sorted(self._found))


def entry_name(path: Path) -> str:
    """Return an entry as users name it, such as queries[2].sum.emp."""
    text = ""
    for step in path:
        text += f"[{step + 1}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the file and its path."""

    value: Any
    path: Path
    problems: Problems

    def problem(self, text: str) -> None:
        self.problems.add(self.path, text)

    def attempt(self, make: Callable[[], T]) -> T | None:
        """Return the result of ``make``, or None with its error recorded."""
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
        """The entries of a table; without ``known``, any name is allowed."""
        if not isinstance(self.value, dict):
            self._wrong("a table")
            return {}
        found = {name: Node(value, (*self.path, name), self.problems) for name, value in self.value.items()}
        for name in list(found) if known else ():
            if name not in known:
                found.pop(name).problem(f"is not recognized here{suggestion(name, known)}")
        for name in needed:
            if name not in self.value:
                self.problem(f"'{name}' is missing")
        return found

    def entries(self, known: "Section") -> dict[str, "Node"]:
        """Return the entries present; note a problem for missing ones."""
        names = [name for each in known for name in (each.name, each.old) if name]
        found = self.table(*names, needed=[each.name for each in known if each.needed])
        for each in (each for each in known if each.old in found):
            entry = found.pop(each.old)
            if each.name in found:
                entry.problem(f"is the old name of {each.name}, which is also given; remove {each.old}")
            else:
                found[each.name] = entry
        return found

    def read(self, known: "Section") -> dict[str, Any]:
        """Return the values of the entries present, None for problems."""
        given = self.entries(known)
        return {each.name: each.read(given[each.name]) for each in known if each.name in given}

    def section(self, known: "Section", *, alone: bool = False) -> dict[str, Any] | None:
        """Return the values present; None with a problem or (``alone``) extras."""
        read = self.read(known)
        needed = {each.name for each in known if each.needed}
        complete = isinstance(self.value, dict) and needed <= read.keys() and not (alone and self.value.keys() - read)
        return read if complete and all(value is not None for value in read.values()) else None

    def items(self) -> list["Node"]:
        """Return the items of a list; a single value is one item."""
        if not isinstance(self.value, list):
            return [self]
        return [Node(value, (*self.path, number), self.problems) for number, value in enumerate(self.value)]

    def each(self, read: Callable[["Node"], T | None]) -> list[T] | None:
        """Return a list's items by ``read``; None if one has a problem."""
        found = [read(each) for each in self.items()]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def text(self) -> str | None:
        if isinstance(self.value, str) and self.value:
            return self.value
        self._wrong("text") if not isinstance(self.value, str) else self.problem("must not be empty")
        return None

    def word(self, *known: str) -> str | None:
        """One of a few words."""
        if self.value == "":
            self.problem(f"is blank: write {', '.join(known[:-1])}{' or ' if known[:-1] else ''}{known[-1]}")
            return None
        text = self.text()
        if text is None or text in known:
            return text
        self.problem(f"is not a valid choice{suggestion(text, known)}")
        return None

    def texts(self) -> dict[str, str] | None:
        """A table of texts by any name."""
        found = {name: each.text() for name, each in self.table().items()}
        return None if None in found.values() else {name: str(text) for name, text in found.items()}

    def flag(self) -> bool | None:
        if isinstance(self.value, bool):
            return self.value
        if isinstance(self.value, Substituted) and self.value in ("true", "false"):
            return self.value == "true"
        self._wrong("true or false")
        return None

    def integer(self) -> int | None:
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return self.value
        if isinstance(self.value, Substituted) and re.fullmatch(r"-?[0-9]{1,18}", self.value):
            return int(self.value)
        self._wrong("a whole number")
        return None

    def number(self) -> Number | None:
        """Return an exact number: 0.1 is 1/10, '1/3' is quoted."""
        try:
            return rational(self.value, parameter="it")
        except ParameterError:
            told = "is blank: write a number" if self.value == "" else "is not a number"
            self._wrong("a number") if not isinstance(self.value, (str, Decimal)) else self.problem(told)
            return None

    def share(self) -> float | None:
        """A number strictly between 0 and 1."""
        number = self.number()
        if number is None or 0 < number < 1:  # type: ignore[operator]
            return None if number is None else float(number)
        self.problem("must lie between 0 and 1")
        return None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a table: name, reader and writer."""

    name: str
    read: Callable[..., Any]
    """Its value, or None with a problem recorded. What is not given is left to the class that is made of the table."""
    needed: bool = False
    default: Any = None
    """What is not written, because it is read where nothing is."""
    write: Callable[[Any], Any] | None = None
    """Its value from what is written; without it, the attribute of its name."""
    old: str = ""
    """The name that earlier versions gave it, which is still read."""


Section: TypeAlias = tuple[Entry, ...]
"""A table of a plan file, by the entries that it may hold."""


def one_of(*known: str) -> Callable[[Node], str | None]:
    """Read one of a few words."""
    return lambda node: node.word(*known)


def renamed(known: Section, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a table under the names of today."""
    today = {each.old: each.name for each in known if each.old}
    return {today.get(name, name): value for name, value in table.items()}


def table_values(known: Section, made: Any) -> dict[str, Any]:
    """A table as it is read back."""
    found = [(each, each.write(made) if each.write else getattr(made, each.name)) for each in known]
    return {each.name: value for each, value in found if value is not None and value != each.default}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the nearest known name, or all known names."""
    listed = list(known)
    return near_name(name, listed) or f"; choose from {', '.join(listed)}"


# The parameters of a plan file: ``${year}`` in any of its texts, and ``${env:NAME}`` where the source is named. A
# value is inserted before anything is checked, so that it is checked as if it had been written there. Values from the
# environment can be passwords: they are allowed only where nothing is recorded, and nothing shows them.


PLACE = re.compile(r"\$(\$?)\{([^{}]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ENVIRONMENT = "env:"
UNRECORDED = (("source",), ("spark", "options"))
"""The entries whose text is recorded nowhere, so that a value from the environment may be part of it."""
SECTION = "parameters"
FILLER = "?"
"""Stands for a value that is missing, so that its place is not reported as empty too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameter values of one plan file, and those used."""

    given: Mapping[str, str]
    """From ``--set`` or ``load_plan(parameters=...)``."""
    defaults: Mapping[str, str]
    """From the plan's own table ``[parameters]``."""
    problems: Problems
    used: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """The names without a value."""
    hidden: dict[str, str] = field(default_factory=dict, repr=False)
    """The values from the environment, by their names."""

    def substitute(self, value: Any, path: Path = ()) -> Any:
        """Return the value with parameters substituted in its texts."""
        if isinstance(value, dict):
            return {name: self.substitute(each, (*path, name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self.substitute(each, (*path, number)) for number, each in enumerate(value)]
        return self._text(value, path) if isinstance(value, str) and PLACE.search(value) else value

    def _text(self, text: str, path: Path) -> str:
        found = Substituted(PLACE.sub(lambda place: self._value(place, path), text))
        found.template = text
        return found

    def _value(self, match: re.Match[str], path: Path) -> str:
        escaped, name = match.groups()
        if escaped:
            return match[0][1:]
        if name.startswith(ENVIRONMENT):
            return self._environment(name.removeprefix(ENVIRONMENT), path)
        if name in self.given or name in self.defaults:
            self.used[name] = self.given.get(name, self.defaults.get(name, ""))
            return self.used[name]
        if NAME.fullmatch(name) is None:
            self.problems.add(path, "contains ${...} without a name; write $${ where it is not a parameter")
        else:
            self.missing.append(name)
            self.problems.add(path, f"needs a value for '{name}': pass --set {name}=VALUE")
        return FILLER

    def _environment(self, name: str, path: Path) -> str:
        if not any(path[: len(allowed)] == allowed for allowed in UNRECORDED):
            self.problems.add(
                path, "is recorded, so it takes no value from the environment; only source and spark.options do"
            )
            return FILLER
        value = os.environ.get(name)
        if not value:
            self.problems.add(path, f"needs the environment variable {name}, which is not set")
            return FILLER
        self.hidden[name] = value
        return value

    def check_used(self) -> None:
        """Report values without a placeholder, which are probably misspelled."""
        for name in self.given:
            if name not in self.used:
                known = [*self.used, *self.missing]
                near = suggestion(name, known) if known else "; the plan has no parameters"
                self.problems.add((), f"the parameter '{name}' is set but not used{near}")


def read_parameters(document: dict[str, Any], given: Mapping[str, Any], problems: Problems) -> Parameters:
    """Return a plan file's parameters, removing their table from the document."""
    table = document.pop(SECTION, {})
    defaults: dict[str, str] = {}
    if not isinstance(table, dict):
        problems.add((SECTION,), "must be a table")
        table = {}
    for name, value in table.items():
        if NAME.fullmatch(name) is None or isinstance(value, bool) or not isinstance(value, (str, int)):
            problems.add((SECTION, name), "must be a name of letters, digits and _ with text or a whole number")
        else:
            defaults[name] = str(value)
    return Parameters(given=texts_of(given), defaults=defaults, problems=problems)


def texts_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Given values as the texts that are put into the plan."""
    for name, value in given.items():
        if NAME.fullmatch(str(name)) is None:
            raise ParameterError(parameter="parameters", problem="must be named with letters, digits and _")
        if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).isprintable() or value == "":
            raise ParameterError(parameter=f"parameter '{name}'", problem="must be a line of text or a whole number")
    return {name: str(value) for name, value in given.items()}


@contextmanager
def hiding(values: Mapping[str, str]) -> Iterator[None]:
    """Keep values from the environment out of messages that name a source."""
    try:
        yield
    except SourceError as error:
        text = str(error)
        if not any(value in text for value in values.values()):
            raise
        names = " and ".join(f"${{{ENVIRONMENT}{name}}}" for name in values)
        raise SourceError(
            source=f"the source given by {names}", problem=error.problem, unreachable=error.unreachable
        ) from None
