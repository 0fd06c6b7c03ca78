"""Goals in words, written and read by one grammar.

    county cells of 100 employees within 9%
    county by industry cells of 4,000 thousand dollars of payroll within 12% with 90% confidence in 95% of them

    goal       = table " cells of " [number " "] statistic least* " within " percent [" with " percent " confidence"]
                 [" in " percent " of them"]
    least      = " with at least " number " " statistic
    number     = digits, with commas and decimals or as a fraction

Tables and statistics are those of the plan, by what readers call them; levels with a single value are left out, and where two
queries have the same table, the words of the later ones end in " of query 2". A cell "of 100 employees" has at least 100. Without a
number a goal is about all cells, without a confidence 95%, without a share all of them.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from recordwise.errors import ParameterError, own_argument_errors, own_errors_of
from recordwise.exact.text import exact_text
from recordwise.plan.expressions import Level
from recordwise.plan.file.read import PlanFile
from recordwise.plan.keys.hierarchies import with_hierarchy_labels
from recordwise.plan.plan import Plan
from recordwise.plan.publication import Labels
from recordwise.plan.statistics import Drawable
from recordwise.planning.explain import called
from recordwise.planning.search.goals import Goal, targets_in

CONFIDENCE, ALL_CELLS, GRAND_TOTAL = Fraction(95), Fraction(100), "grand total"
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:/\d+)?")
Place = tuple[int, int]
"""A table, by its query and its number among the levels."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What readers call the tables and statistics of a plan."""

    plan: Plan
    tables: dict[str, Place]
    statistics: dict[int, dict[str, Drawable]]
    """For each query its counts and sums, by what they are called."""

    @classmethod
    def of(cls, file: PlanFile) -> "Vocabulary":
        """Return the words of a plan file.

        Args:
            file: The plan file.

        Returns:
            The words.
        """
        plan = file.plan
        labels = with_hierarchy_labels(file.words, plan.schema.hierarchies)
        tables: dict[str, Place] = {}
        for number, query in enumerate(plan.queries):
            short = [_table_words(each, plan, labels) for each in query.tables()]
            full = [_table_words(each, plan, labels, whole=True) for each in query.tables()]
            for level, name in enumerate(short if len(set(short)) == len(short) else full):
                tables[name if name not in tables else f"{name} of query {number + 1}"] = number, level
        return cls(
            plan=plan,
            tables=tables,
            statistics={number: _statistics(query.draws(), labels) for number, query in enumerate(plan.queries)},
        )

    def table(self, place: Place) -> str:
        """Return what a table is called.

        Args:
            place: The number of its query, and its own among the tables of that.

        Returns:
            The words.
        """
        return next(name for name, each in self.tables.items() if each == place)

    def statistic(self, query: int, alias: str) -> str:
        """Return what a statistic is called.

        Args:
            query: The number of its query.
            alias: Its name in the plan.

        Returns:
            The words.
        """
        return next(name for name, each in self.statistics[query].items() if each.alias == alias)

    def of_measure(self, query: int, measure: str) -> str:
        """Return what the first statistic of a measure is called.

        Args:
            query: The number of the query.
            measure: The measure.

        Returns:
            The words; the measure itself where the query has no statistic of it.
        """
        return next((name for name, each in self.statistics[query].items() if each.planned_as == measure), measure)


@own_argument_errors
def write_goal(goal: Goal, words: Vocabulary) -> str:
    """Return a goal about one table in words.

    Args:
        goal: The goal, about a table of the plan.
        words: The words of the plan.

    Returns:
        A sentence that ``read_goal`` reads as the same goal.

    Raises:
        ParameterError: The goal is about several tables.
    """
    _, (target, *_) = targets_in(words.plan, [goal], words.plan.schema)
    if len(goal.levels) != 1:
        raise ParameterError(parameter="goal", problem="is about several tables", advice="Write one for each.")
    query, (level,) = target.asked.query, goal.levels
    size = f"{exact_text(goal.at_least)} " if goal.at_least else ""
    told = f"{words.table((query, level))} cells of {size}{words.statistic(query, target.asked.statistic.alias)}"
    for name, least in goal.others_at_least:
        told += f" with at least {exact_text(least)} {words.of_measure(query, name)}"
    told += f" within {exact_text(100 * goal.within)}%"
    confidence = 100 * Fraction(str(goal.confidence))
    told += "" if confidence == CONFIDENCE else f" with {exact_text(confidence)}% confidence"
    return told if goal.share == 1 else f"{told} in {exact_text(100 * goal.share)}% of them"


@own_argument_errors
def read_goal(text: str, words: Vocabulary) -> Goal:
    """Return the goal that a sentence states.

    Args:
        text: The sentence, in capital or small letters.
        words: The words of the plan.

    Returns:
        The goal.

    Raises:
        ParameterError: The sentence is not one of the grammar, or its table or statistic is not one of the plan.
    """
    reader = _Reader(" ".join(text.split()))
    query, level = words.tables[reader.one_of(words.tables, "a table")]
    reader.expect("cells of")
    at_least = reader.number() or Fraction(0)
    known = words.statistics[query]
    statistic = known[reader.one_of(known, "a statistic")]
    least: dict[str, Fraction] = {}
    while reader.takes("with at least"):
        number = reader.need(reader.number(), "a number")
        least[str(known[reader.one_of(known, "a statistic")].planned_as)] = number
    reader.expect("within")
    within = reader.percent()
    confidence, share = CONFIDENCE, ALL_CELLS
    if reader.takes("with"):
        confidence = reader.percent()
        reader.expect("confidence")
    if reader.takes("in"):
        share = reader.percent()
        reader.expect("of them")
    if reader.rest:
        raise reader.wrong("the end")
    return Goal(
        str(statistic.planned_as),
        words.plan.queries[query],
        within=within / 100,
        confidence=float(confidence / 100),
        share=share / 100,
        at_least={str(statistic.planned_as): at_least} | least,
        statistic=statistic.alias,
        levels=[level],
    )


class _Reader:
    """What is left of a sentence."""

    def __init__(self, text: str) -> None:
        self.rest = text

    def takes(self, word: str) -> bool:
        """Take some words, if they come next."""
        found = self.rest[: len(word)].casefold() == word.casefold()
        if not found or self.rest[len(word) : len(word) + 1] not in ("", " "):
            return False
        self.rest = self.rest[len(word) :].lstrip()
        return True

    def expect(self, word: str) -> None:
        if not self.takes(word):
            raise self.wrong(f'"{word}"')

    def one_of(self, names: dict[str, Place] | dict[str, Drawable], what: str) -> str:
        """Take a name, the longest that fits."""
        for name in sorted(names, key=len, reverse=True):
            if self.takes(name):
                return name
        raise self.wrong(f"{what}: one of {', '.join(names)}")

    def number(self) -> Fraction | None:
        """Take a number, if one comes next."""
        found = _NUMBER.match(self.rest)
        if found is None:
            return None
        self.rest = self.rest[found.end() :].lstrip()
        whole, _, part = found[0].replace(",", "").partition("/")
        if part and not int(part):
            raise self.wrong("a number")
        return Fraction(whole) / Fraction(part or 1)

    def need(self, found: Fraction | None, what: str) -> Fraction:
        if found is None:
            raise self.wrong(what)
        return found

    def percent(self) -> Fraction:
        """Take a percentage."""
        found = self.need(self.number(), "a percentage such as 9%")
        if not self.rest.startswith("%"):
            raise self.wrong("%")
        self.rest = self.rest[1:].lstrip()
        return found

    def wrong(self, wanted: str) -> ParameterError:
        return ParameterError(
            parameter="goal",
            problem=f"cannot be read from '{self.rest[:60]}' on",
            advice=f"Expected {wanted}. Write it as 'county cells of 100 employees within 9%'.",
        )


def _table_words(level: Level, plan: Plan, labels: Labels, *, whole: bool = False) -> str:
    """Return a table's groups, without levels of a single value."""
    names = [name for name in level.names() if whole or not _is_single(name, plan)]
    return " by ".join(labels.label(name).lower() for name in names) or GRAND_TOTAL


def _is_single(name: str, plan: Plan) -> bool:
    listed = plan.schema.hierarchy(name)
    return listed is not None and len(listed.codes.column(name).unique()) == 1


def _statistics(drawn: tuple[Drawable, ...], labels: Labels) -> dict[str, Drawable]:
    """Return counts and sums by what they are called; one that is called as another by its published name."""
    found: dict[str, Drawable] = {}
    for each in drawn:
        if each.planned_as is not None:
            name, unit = called(labels, each), labels.unit(each.alias, each.of)
            phrase = name if not unit or unit == name else f"{unit} of {name}"
            found[phrase if phrase not in found else each.alias] = each
    return found
