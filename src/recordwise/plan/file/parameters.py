"""The parameters of a plan file: ``${year}`` in any of its texts, and ``${env:NAME}`` where the source is named.

A value is put in its place before anything is checked, so that it is checked as if it had been written there. Values from the
environment can be passwords: they are allowed only where nothing is recorded, and nothing shows them.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from recordwise.errors import ParameterError, SourceError
from recordwise.plan.file.node import Path, Problems, Substituted, suggestion

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
    """The values that the texts of one plan file take, and those that they used."""

    given: Mapping[str, str]
    """From ``--set`` or ``load_plan(parameters=...)``."""
    defaults: Mapping[str, str]
    """From the plan's own table ``[parameters]``."""
    problems: Problems
    used: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict, repr=False)
    """The values from the environment, by their names."""

    def put_into(self, value: Any, path: Path = ()) -> Any:
        """The value with every place in its texts replaced; keys of tables stay as they are."""
        if isinstance(value, dict):
            return {name: self.put_into(each, (*path, name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self.put_into(each, (*path, number)) for number, each in enumerate(value)]
        return self._text(value, path) if isinstance(value, str) and PLACE.search(value) else value

    def _text(self, text: str, path: Path) -> str:
        found = Substituted(PLACE.sub(lambda place: self._value(place, path), text))
        found.template = text
        return found

    def _value(self, place: re.Match[str], path: Path) -> str:
        escaped, name = place.groups()
        if escaped:
            return place[0][1:]
        if name.startswith(ENVIRONMENT):
            return self._environment(name.removeprefix(ENVIRONMENT), path)
        if name in self.given or name in self.defaults:
            self.used[name] = self.given.get(name, self.defaults.get(name, ""))
            return self.used[name]
        if NAME.fullmatch(name) is None:
            self.problems.add(path, "contains ${...} without a name; write $${ where no parameter is meant")
        else:
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
        """Report values that were given and have no place, which are probably misspelled."""
        for name in self.given:
            if name not in self.used:
                known = list(self.used)
                near = suggestion(name, known) if known else "; the plan has no parameters"
                self.problems.add((), f"the parameter '{name}' is set but not used{near}")


def read_parameters(document: dict[str, Any], given: Mapping[str, Any], problems: Problems) -> Parameters:
    """The parameters of a plan file, whose own table is taken out of the document."""
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
        raise SourceError(source=f"the source given by {names}", problem=error.problem) from None
