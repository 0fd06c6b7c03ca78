"""What a version must reach, beside what it reached now and what the version before it did: ``goals.toml``.

A benchmark calls ``record`` with each number that has a goal; ``python -m benchmarks`` prints the table at the end. Ratios are
measured side by side in one run, so that they are comparable between machines; a few are seconds, because a person waits for them.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "goals.toml"
_measured: dict[str, float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A number that should be at most ``goal``, or at least that."""

    name: str
    what: str
    goal: float | None = None
    """None: measured to be compared with the version before."""
    previous: float | None = None
    at_least: bool = False
    unit: str = ""

    def verdict(self, value: float | None) -> str:
        if value is None or self.goal is None:
            return ""
        return "met" if (value >= self.goal if self.at_least else value <= self.goal) else "MISSED"

    def line(self, value: float | None, version: str) -> str:
        """One row: what, now, the goal, the previous version's."""
        now = "not measured" if value is None else f"{value:.2f}{self.unit}"
        wanted = f"{'at least' if self.at_least else 'at most'} {self.goal}{self.unit}" if self.goal is not None else ""
        before = "" if self.previous is None else f"{version}: {self.previous:.2f}{self.unit}"
        return f"{self.what:76} {now:>12}  {wanted:16} {self.verdict(value):6} {before}"


def read_goals() -> tuple[str, dict[str, Goal]]:
    """The previous version, and the goals by name."""
    found = tomllib.loads(HERE.read_text())
    return found["previous_version"], {each["name"]: Goal(**each) for each in found["goal"]}


def record(name: str, value: float) -> None:
    """Keep a number for the table; its name must have a goal."""
    if name not in read_goals()[1]:
        raise KeyError(f"{name} has no goal in {HERE.name}")
    _measured[name] = value


def table(*, only_measured: bool = False) -> str:
    """Every goal with what was recorded in this process."""
    version, goals = read_goals()
    chosen = [goal for name, goal in goals.items() if name in _measured or not only_measured]
    return "\n".join(goal.line(_measured.get(goal.name), version) for goal in chosen)


def rows(start: str) -> list[str]:
    """What was recorded under names with this start, as rows of a Markdown table."""
    found = []
    for name, goal in read_goals()[1].items():
        value = _measured.get(name)
        if name.startswith(start):
            now = "not measured" if value is None else f"{value:.2f}{goal.unit}"
            wanted = "" if goal.goal is None else f"{goal.goal:g}{goal.unit}"
            found.append(f"| {goal.what} | {now} | {wanted} | {goal.verdict(value)} |")
    return found
