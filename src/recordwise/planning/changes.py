"""What a recommendation changes in a plan, table by table, as a person reads it."""

from collections.abc import Sequence
from dataclasses import dataclass

from recordwise.exact.text import share_text
from recordwise.mechanisms.base import shared
from recordwise.mechanisms.described import mechanism_text
from recordwise.plan.fields import Level
from recordwise.plan.query import Query
from recordwise.plan.statistics import Drawable


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChange:
    """One statistic of one table."""

    query: str
    table: str
    statistic: str
    before: str
    after: str

    def row(self) -> list[str]:
        """The change as a row of a table."""
        return [self.query, self.table, self.statistic, self.before, self.after]

    def to_json(self) -> dict[str, str]:
        """The change by the names of its parts."""
        return {name: getattr(self, name) for name in self.__slots__}


NOT_DRAWN = "not drawn: another statistic of the query has the same mechanism"
HEADERS = ["query", "table", "statistic", "now", "recommended"]


def changes(before: Sequence[Query], after: Sequence[Query]) -> tuple[PlanChange, ...]:
    """Every drawn statistic of every table whose mechanism or share of the loss differs."""
    found = []
    for number, (old, new) in enumerate(zip(before, after), 1):
        drawn = {each.alias: each for each in new.draws()}
        for old_level, new_level in zip(old.tables(), new.tables()):
            for each in old.draws():
                now = _text(each, old_level)
                then = _text(drawn[each.alias], new_level) if each.alias in drawn else NOT_DRAWN
                if now != then:
                    found.append(
                        PlanChange(
                            query=old.name or str(number),
                            table=" x ".join(old_level.names()) or "total",
                            statistic=each.alias,
                            before=now,
                            after=then,
                        )
                    )
    return tuple(found)


def _text(statistic: Drawable, level: Level) -> str:
    """The mechanism a table gets and, of several levels, its share of the loss."""
    share = "" if level.share == 1 else f", {share_text(float(level.share), 1)} of the loss"
    return f"{mechanism_text(shared(statistic.mechanism, level.share))}{share}"
