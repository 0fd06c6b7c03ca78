"""The bugs, as data: ``areas/AREA.toml`` lists those of one part of the package."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src") / "recordwise"
AREAS = Path(__file__).parent / "areas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One bug: a text that stands once in a file of the package, and what a careless hand makes of it."""

    area: str
    name: str
    file: str
    """Below ``src/recordwise``."""
    old: str
    new: str
    tests: tuple[str, ...]
    """What pytest is given; as few and as fast as will notice."""
    why: str
    """What would go wrong if nobody noticed."""
    equivalent: str | None = None
    """Why nothing goes wrong: then the tests must NOT notice, and the bug does not count."""

    def applied(self, text: str) -> str:
        """The file with the bug in it."""
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: its text stands {found} times in {self.file}, not once")
        return text.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """Every bug, area by area."""
    return [
        _mutant(path.stem, entry)
        for path in sorted(AREAS.glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["mutant"]
    ]


def _mutant(area: str, entry: dict[str, Any]) -> Mutant:
    return Mutant(area=area, tests=tuple(entry.pop("tests")), **entry)


def chosen(names: list[str]) -> list[Mutant]:
    """The mutants of these names or areas; all without any. A name that is none is refused."""
    every = mutants()
    if unknown := set(names) - {mutant.name for mutant in every} - {mutant.area for mutant in every}:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    return [mutant for mutant in every if not names or mutant.name in names or mutant.area in names]
