"""The page that explains a plan: its parts in words and tables, as Markdown and as HTML."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recordwise.errors import OutputError, ParameterError
from recordwise.exact.text import coarse_share_text, digits_text, share_text
from recordwise.plan.schema import NO_LOOK
from recordwise.planning.result import Result, Rows, outside_releases, owner_only
from recordwise.policy.meaning import presence_words

YEARS = 10
"""How many more years are looked at."""
FALSE_ALARM = 0.05


PAGES, DATA = (".html", ".htm", ".md", ".markdown", ".txt"), (".json", ".csv")
"""Endings of a page for people, and of its numbers."""


def require_page(file: Path, data: str) -> None:
    """Refuse a file to which no page of such data can be written; call this before records are looked at."""
    if file.suffix.lower() not in (*PAGES, *DATA):
        raise ParameterError(parameter="path", problem=f"must end in {', '.join(PAGES)}, .json or .csv")
    if os.path.lexists(file):
        raise OutputError(folder=str(file), problem="already exists", advice="Choose a new file.")
    if not file.absolute().parent.is_dir():
        raise OutputError(folder=str(file), problem="lies in a folder that does not exist", advice="Make it first.")
    if data not in NO_LOOK:
        outside_releases(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How many cells of one kind are expected to have each status."""

    name: str
    cells: int
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The records of one class of sizes, and what a typical one of them gives away."""

    name: str
    share: float
    """Of all records."""
    loss: float
    """Of the middle one."""
    powers: tuple[float, float, float]
    """Of the best test for presence: after this release, with one revision, and after ten more years."""
    told: dict[str, str]
    """How closely each of its numbers can be known, in words, by what it is called."""

    @property
    def presence(self) -> str:
        """In words."""
        return presence_words(self.powers[0]).removeprefix("presence ").removeprefix("is ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The same tables with more or less noise."""

    name: str
    noise: float
    """Relative to the plan's."""
    loss: float
    """Of a typical record."""
    power: float
    hardly: float
    """The share of the records that are hardly protected."""
    reliable: tuple[float, ...]
    """The shares of reliable cells: of all, and by size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with what stands below it."""

    title: str
    before: tuple[str, ...] = ()
    rows: Rows | None = None
    after: tuple[str, ...] = ()
    bars: tuple[int, ...] = ()
    """The columns that hold shares, which are also drawn."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Explanation(Result):
    """A plan in words and tables; confidential if the records are."""

    data: str
    title: str
    about: str
    """What is called a record: establishments, farms."""
    published: tuple[str, ...]
    variable: str
    """The statistic whose cells are counted."""
    statuses: tuple[str, ...]
    limits: tuple[float, ...]
    by_size: tuple[Status, ...]
    by_table: tuple[Status, ...]
    by_variable: tuple[Status, ...]
    totals_from: str
    groups: tuple[Group, ...]
    hardly: str
    options: tuple[Option, ...]
    no_options: str
    budget: str
    records: int
    generated: bool
    years: tuple[str, ...] = ()
    """What carrying noise on, correcting records and refining change over the years; nothing outside a series."""

    def sections(self) -> tuple[Section, ...]:
        """Return the page, part by part."""
        return (
            self._published(),
            *self._cells(),
            self._losses(),
            self._options(),
            self._later(),
            self._hardly(),
            self._from(),
        )

    def rows(self) -> Rows:
        """Return headers and rows: what records of each size give away."""
        names = list(dict.fromkeys(name for each in self.groups for name in each.told))
        return [self.about, "of all", "presence", *(f"{name} can be told" for name in names)], [
            [
                each.name,
                coarse_share_text(each.share),
                f"{each.presence} ({share_text(each.powers[0])})",
                *(each.told.get(name, "-") for name in names),
            ]
            for each in self.groups
        ]

    def _published(self) -> Section:
        return Section(title="What is published", before=self.published)

    def _cells(self) -> Iterator[Section]:
        names, first = [*self.statuses], self.statuses[0]
        limit = share_text(self.limits[0], 1)
        yield Section(
            title="What you get",
            before=(
                f"A cell is {first} where the standard error is at most {limit} of its value. Cells with something in them, by "
                f"their number of {self.variable}:",
            ),
            rows=(
                ["cells of", "cells", *names],
                [[each.name, f"{each.cells:,}", *map(coarse_share_text, each.shares)] for each in self.by_size],
            ),
            bars=(2,),
        )
        rows = [[each.name, f"{each.cells:,}", coarse_share_text(each.shares[0])] for each in self.by_table]
        others = "; ".join(f"{each.name} {coarse_share_text(each.shares[0])}" for each in self.by_variable)
        after = (f"Of all cells of each number are {first}: {others}.",) if len(self.by_variable) > 1 else ()
        yield Section(
            title=f"Table by table: {self.variable}", rows=(["table", "cells", first], rows), after=after, bars=(2,)
        )

    def _losses(self) -> Section:
        test = share_text(FALSE_ALARM)
        return Section(
            title=f"What {self.about} give away",
            before=(
                "The most that anyone can find out who knows everything about all the others. In brackets: how often the best "
                f"test finds that one of them is in the data, if it wrongly suspects {test} of those that are not. On the right: "
                "how closely their numbers can be told at best, in ranges that are right 95% of the time, by someone who knows "
                "everything else about them.",
            ),
            rows=self.rows(),
        )

    def _options(self) -> Section:
        if not self.options:
            return Section(title="More or less noise", before=(self.no_options,))
        shown = [at for at in range(len(self.by_size)) if self._differs(at + 1)]
        sizes = [self.by_size[at].name for at in shown]
        headers = ["", "noise", "a typical one is found", "hardly protected", f"{self.statuses[0]} cells", *sizes]
        rows = [
            [
                each.name,
                "as planned" if each.noise == 1 else f"x {digits_text(each.noise, 2)}",
                share_text(each.power),
                coarse_share_text(each.hardly),
                *(coarse_share_text(each.reliable[at]) for at in (0, *(at + 1 for at in shown))),
            ]
            for each in self.options
        ]
        return Section(
            title="More or less noise",
            before=(
                "The same tables with all noise multiplied by one factor: how often a test finds a typical one, where "
                f"{share_text(FALSE_ALARM)} would be found without any publication; how many are hardly protected; and how "
                f"many cells are {self.statuses[0]}, also by their number of {self.variable} where that makes a difference.",
            ),
            rows=(headers, rows),
        )

    def _differs(self, at: int) -> bool:
        return len({coarse_share_text(each.reliable[at]) for each in self.options}) > 1

    def _later(self) -> Section:
        rows = [[each.name, *map(share_text, each.powers)] for each in self.groups]
        headers = [self.about, "this release", "with one revision", f"after {YEARS} more years"]
        return Section(
            title="What a revision and more years cost",
            before=(
                "Losses add up. How often a test finds a typical one, if the same is published again for a revision, or every year "
                f"for {YEARS} more years about those that do not change:",
            ),
            rows=(headers, rows),
            after=(self.budget, *self.years),
        )

    def _hardly(self) -> Section:
        return Section(title="Who is hardly protected", before=(self.hardly,))

    def _from(self) -> Section:
        kind = "generated" if self.generated else f"given ({self.data})"
        return Section(
            title="Where these numbers are from",
            before=(
                f"Sizes of cells: {self.totals_from}. {self.about.capitalize()}: {self.records:,} {kind} ones. Statuses are "
                "expected from the noise, not drawn. Nothing was published and nothing was spent.",
            ),
        )

    def markdown(self) -> str:
        """Return the page as Markdown."""
        lines = [f"# {self.title}", "", *([f"**{self.privacy_label}**", ""] if self.data not in NO_LOOK else [])]
        for each in self.sections():
            lines += [f"## {each.title}", ""]
            lines += [text for own in each.before for text in (own, "")]
            if each.rows is not None:
                headers, rows = each.rows
                lines += [_line(headers), _line(["---"] * len(headers)), *map(_line, rows), ""]
            lines += [text for own in each.after for text in (own, "")]
        # Names of the plan are text, and no tags of the page that shows them.
        return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", "\n".join(lines))

    def html(self) -> str:
        """Return the page as one HTML file that loads nothing."""
        from jinja2 import Environment, StrictUndefined

        text = (Path(__file__).parent / "explain.html").read_text(encoding="utf-8")
        made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        label = self.privacy_label if self.data not in NO_LOOK else ""
        return made.from_string(text).render(title=self.title, label=label, sections=self.sections(), width=_width)

    def save(self, path: str | Path) -> Path:
        """Write the page, readable by the owner only if it is confidential.

        Args:
            path: A new file; HTML if its name ends in .html, JSON and CSV by theirs, otherwise Markdown.

        Returns:
            The file.
        """
        file = Path(path)
        require_page(file, self.data)
        if file.suffix.lower() in DATA:
            return Result.save(self, file)
        owner_only(file, self.data)
        file.write_text(self.html() if file.suffix.lower() in (".html", ".htm") else self.markdown(), encoding="utf-8")
        return file

    def _numbers(self) -> dict[str, Any]:
        def form(each: Any) -> dict[str, Any]:
            return {name: getattr(each, name) for name in each.__slots__}

        return {
            "title": self.title,
            "published": list(self.published),
            "variable": self.variable,
            "statuses": dict(zip(self.statuses, [*self.limits, None])),
            "by_size": [form(each) for each in self.by_size],
            "by_table": [form(each) for each in self.by_table],
            "by_variable": [form(each) for each in self.by_variable],
            "totals_from": self.totals_from,
            "groups": [form(each) | {"presence": each.presence} for each in self.groups],
            "hardly": self.hardly,
            "options": [form(each) for each in self.options],
            "budget": self.budget,
            "records": self.records,
        }

    def _about(self) -> str:
        return self.title

    def _title(self) -> str:
        return f"What {self.about} give away"

    def _repr_html_(self) -> str:
        import html

        return f'<iframe srcdoc="{html.escape(self.html())}" style="width:100%;height:60em;border:0"></iframe>'


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"


def _width(text: str) -> str:
    """Return the width of a bar: the share that a cell of a table states."""
    number = text.strip("<>% ")
    return number if number.replace(".", "", 1).isdigit() else "0"
