"""A series of releases: its budgets and a unit's loss.

A unit's records of all periods together are protected: the losses of its periods add up (T-SEQ). A policy
of one period is stated in the names of that period. A name with ``@`` and a period in it (``emp@2025``) is
the value of the same unit in that period.

Where noise is carried over the periods, or records are corrected, a draw costs a unit what its record of one version differs
from that of the version before (``Step``). Each version's own policy is paid for coming and for leaving, so that the sum over
a unit's versions is never below its loss; what those pay who stay in their cells has a budget of its own (T-SERIES).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Any, TypeAlias

from recordwise.errors import ParameterError, expect_kind, own_argument_errors, own_errors_of
from recordwise.exact.numbers import Number, fraction_text, rational, read_fraction
from recordwise.policy.bands import BandTable
from recordwise.policy.conditions import EVERY, columns_of
from recordwise.policy.firms import OUTWARD, CellKey, FirmPart, FirmPolicy, same_cell, taken_part
from recordwise.policy.policy import Policy, compose

AT = "@"
FORMS = {
    "year": re.compile("([1-9][0-9]{3})"),
    "half": re.compile("([1-9][0-9]{3})H[12]"),
    "quarter": re.compile("([1-9][0-9]{3})Q[1-4]"),
    "month": re.compile("([1-9][0-9]{3})-(?:0[1-9]|1[0-2])"),
    "week": re.compile("([1-9][0-9]{3})W([0-9]{2})"),
    "day": re.compile("([1-9][0-9]{3})-([0-9]{2})-([0-9]{2})"),
}
"""The spellings of a period, by its length. Each period has one, so that no other spelling of it has a budget of its own."""
WRITTEN = (
    'Write a year ("2026"), a half ("2026H1"), a quarter ("2026Q1"), a month ("2026-01"), a week ("2026W05") or a day '
    '("2026-01-31"); one of them for all periods of a series.'
)


def period_length(text: str) -> str | None:
    """Return the form in ``FORMS`` of a period, or None."""
    for length, form in FORMS.items():
        if found := form.fullmatch(text):
            return length if _exists(length, [int(part) for part in found.groups()]) else None
    return None


def _exists(length: str, parts: list[int]) -> bool:
    try:
        if length == "week":
            date.fromisocalendar(parts[0], parts[1], 1)
        elif length == "day":
            date(*parts)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A ledger's length and last digest, which a release states."""

    length: int
    digest: str


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The series of a release, its period and its declared budgets.

    Args:
        name: The name of the series.
        period: The period that is published: "2026", "2026H1", "2026Q1", "2026-01", "2026W05" or "2026-01-31".
        revision: 0 for the first publication of a period, 1 for its first revision, and so on.
        every_period: The budget of every period, as a function of the record in that period.
        more: Further budget for single periods, by their names.
        carry: The part of the noise that is carried over to the next period, at least 0 and below 1; None draws afresh.
        staying: The budget of units that stay in their cells, for each carrying and each revision: a function of what changed,
            |x - carry x_before|, or |x - x_before| in a revision. Declared before the first charge.
    """

    name: str
    period: str
    revision: int = 0
    every_period: Policy | None = None
    more: Mapping[str, Policy] = field(default_factory=dict)
    carry: Number | None = None
    staying: Policy | None = None

    def __post_init__(self) -> None:
        if (
            not isinstance(self.name, str)
            or not self.name.isprintable()
            or self.name != self.name.strip()
            or not self.name
        ):
            raise ParameterError(parameter="the name of a series", problem="must be a line of text")
        for text in (self.period, *self.more):
            if not isinstance(text, str) or period_length(text) is None:
                raise ParameterError(parameter="period", problem=f"is not one: {str(text)[:40]!r}", advice=WRITTEN)
        if isinstance(self.revision, bool) or not isinstance(self.revision, int) or self.revision < 0:
            raise ParameterError(parameter="revision", problem="must be 0, 1, 2, ...")
        budgets = {"every_period": self.every_period, "staying": self.staying, **self.more}
        for name, each in budgets.items():
            if each is not None:
                expect_kind(each, Policy, parameter=name, wanted="a policy, such as rw.policy.constant(1)")
        if self.carry is not None:
            part = rational(self.carry, parameter="carry")
            if not 0 < part < 1 or part.denominator > MOST_PARTS:
                raise ParameterError(
                    parameter="carry",
                    problem=f"must be above 0 and below 1, with a denominator of at most {MOST_PARTS}",
                )
            object.__setattr__(self, "carry", part)

    def budget(self, period: str | None = None) -> Policy | None:
        """The budget of a period.

        Args:
            period: The name of the period; by default that of this release.

        Returns:
            The budget of every period plus what was added for this one, or None if none is declared for it.
        """
        parts = [self.every_period, self.more.get(self.period if period is None else period)]
        known = [part for part in parts if part is not None]
        return sum(known, Policy()) if known else None

    def budgets_json(self) -> dict[str, Any]:
        """The budgets of all periods, for the ledger."""
        every = None if self.every_period is None else self.every_period.to_json()
        found = {"every": every, "periods": {name: self.more[name].to_json() for name in sorted(self.more)}}
        return found | self.continuity_json()

    def continuity_json(self) -> dict[str, Any]:
        """What the series declares about carried noise and corrected records; nothing where it says nothing."""
        carry = {} if self.carry is None else {"carry": fraction_text(Fraction(self.carry))}
        return carry | ({} if self.staying is None else {"staying": self.staying.to_json()})


MOST_PARTS = 1000
"""Carried noise is drawn on a lattice that is finer by the denominator of ``carry``."""
CONTINUITY = ("carry", "staying")
START, CARRY, REVISE = "start", "carry", "revise"


Renaming: TypeAlias = Mapping[str, Mapping[Any, Any]]
"""By column, for each earlier code that changed the code that it has now, or None."""


def columns_key(keys: Sequence[CellKey]) -> str:
    """Return a name for the columns by which a table is published."""
    return json.dumps([key.to_json() for key in keys], sort_keys=True)


def later_code(renamed: Mapping[Any, Any], code: Any) -> Any:
    """Return an earlier code's name now, or None without one."""
    return renamed.get(code, code)


def renaming(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the one later code of each earlier code of a crosswalk, None where codes were split or merged.

    A later code that is not listed as an earlier one has none: what became of it is not said. So no two earlier codes become one.

    Args:
        pairs: An earlier and a later code each.
    """
    after: dict[Any, set[Any]] = {}
    came: dict[Any, set[Any]] = {}
    for old, new in pairs:
        after.setdefault(old, set()).add(new)
        came.setdefault(new, set()).add(old)
    only = {old: next(iter(codes)) if len(codes) == 1 else None for old, codes in after.items()}
    found = {old: new if new is not None and len(came[new]) == 1 else None for old, new in only.items()}
    return found | {new: None for new in came if new not in after}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One draw of a series: what it costs a unit, by its records before and now (T-SERIES)."""

    kind: str
    """``start`` of a series, ``carry`` from the period before, or ``revise`` the same period."""
    noise: FirmPolicy
    """What its fresh noise costs a record that comes into the tables or leaves them."""
    carry: Fraction = Fraction(0)
    """The part of the earlier answers that it keeps; 1 where records were corrected."""
    follows: int | None = None
    """The charge of the release that it follows."""
    measures: tuple[str, ...] = ()
    """The measures of the schema; a condition on one is about a record and not about what changed."""
    relisted: bool = False
    """Whether cells are listed that were not before, or the other way round."""
    fresh: Mapping[str, frozenset[tuple[str, ...]]] | None = None
    """By the columns of a table, the cells that follow no earlier one, in which a unit that stays counts as one that moves; None
    where nobody says which they are, and all count so."""
    renamed: Renaming = field(default_factory=dict)
    """By column, the code that an earlier code has now; None where it has no single counterpart."""

    def staying(self) -> Policy:
        """Return what a unit pays that stays in all its cells.

        Conditions on measures are left out: they are about records, and not about what changed.
        """
        return compose([self._stays(part) for part in self.noise.parts])

    def _stays(self, part: FirmPart) -> Policy:
        own = part.policy if part.policy.inputs() else part.policy * (1 - self.carry) ** 2
        return own if part.condition == EVERY or set(self.measures) & _names(part) else own.where(part.condition)

    def loss(self, now: Mapping[str, Any] | None, before: Mapping[str, Any] | None = None) -> float:
        """Return what the draw costs a unit, exact for Gaussian noise.

        Args:
            now: The unit's record, with the columns of the tables; None where it has none.
            before: That of the version before.
        """
        return sum(self._part_loss(part, now, before) for part in self.noise.parts) * OUTWARD

    def unchanged(self, record: Mapping[str, Any]) -> float:
        """Return what the draw costs a unit that stays as it is: a Gaussian loss grows with the square of what changed.

        Args:
            record: The unit's record, now and before.
        """
        return float((1 - self.carry) ** 2) * float(self.noise.policy().loss(dict(record))) * OUTWARD

    def _part_loss(self, part: FirmPart, now: Mapping[str, Any] | None, before: Mapping[str, Any] | None) -> float:
        here, there = taken_part(part, now), self._renamed(part, taken_part(part, before))
        if here is None or there is None or not same_cell(part, here, there) or self._is_fresh(part, here):
            came = 0.0 if here is None else float(part.policy.loss(here))
            left = 0.0 if there is None else float(part.policy.loss(there))
            return came + float(self.carry) ** 2 * left
        changed = dict(here)
        for name in {each.name for each in part.policy.inputs()}:
            own, old = (rational(each[name], parameter=name) for each in (here, there))
            changed[name] = abs(own - self.carry * old)
        counted = 1.0 if part.policy.inputs() else float((1 - self.carry) ** 2)
        return counted * float(part.policy.loss(changed))

    def _is_fresh(self, part: FirmPart, record: Mapping[str, Any]) -> bool:
        """Return whether the cell of a record may follow no earlier one."""
        if not self.relisted or self.fresh is None:
            return self.relisted
        own, known = [key.column for key in part.cells], self.fresh.get(columns_key(part.cells))
        if known is None or any(each is None or each.part for each in own):
            return True
        values = [record[each.name] for each in own if each is not None]
        cell = tuple(str(value)[: each.length] for value, each in zip(values, own) if each is not None)
        # Other values may be written in other ways.
        return cell in known or not all(isinstance(value, str | int) for value in values)

    def _renamed(self, part: FirmPart, record: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return an earlier record with the codes of now; without those of cells that have no single counterpart."""
        if record is None or not self.renamed:
            return record
        made = dict(record)
        for own in (key.column for key in part.cells if key.column is not None):
            codes = self.renamed.get(f"{own.name}{own.length or ''}")
            if codes is None or own.name not in made:
                continue
            value = made.pop(own.name)
            code = later_code(codes, value[: own.length] if isinstance(value, str) else value)
            # Where a table looks at a code in several ways, nobody says which of them stayed: it counts as a move.
            alone = sum(own.name in key.names() for key in part.cells) == 1
            made |= {} if code is None or not alone else {own.name: code}
        return made

    def to_json(self) -> dict[str, Any]:
        """The saved form."""
        form: dict[str, Any] = {"kind": self.kind, "carry": fraction_text(self.carry), "noise": self.noise.to_json()}
        form |= {} if self.follows is None else {"follows": self.follows}
        form |= {"measures": list(self.measures)}
        form |= {"relisted": True} if self.relisted else {}
        if self.relisted and self.fresh is not None:
            form |= {"fresh": {name: sorted(map(list, cells)) for name, cells in sorted(self.fresh.items())}}
        pairs = {name: [list(each) for each in codes.items()] for name, codes in self.renamed.items()}
        return form | ({"renamed": pairs} if pairs else {})

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Step":
        """Read back what ``to_json`` wrote.

        Args:
            form: The saved form.
        """
        return cls(
            kind=str(form["kind"]),
            noise=FirmPolicy.from_json(form["noise"]),
            carry=read_fraction(form["carry"]),
            follows=form.get("follows"),
            measures=tuple(form.get("measures", ())),
            relisted=bool(form.get("relisted", False)),
            fresh=None
            if "fresh" not in form
            else {name: frozenset(map(tuple, cells)) for name, cells in form["fresh"].items()},
            renamed={name: dict(pairs) for name, pairs in form.get("renamed", {}).items()},
        )


def _names(part: FirmPart) -> set[str]:
    return {each.name for each in columns_of(part.condition)}


def declared_budget(declared: Mapping[str, Any], period: str, bands: Mapping[str, BandTable]) -> Policy | None:
    """Return a period's budget as a ledger declares it.

    See ``Series.budgets_json``.
    """
    forms = [declared.get("every"), declared.get("periods", {}).get(period)]
    parts = [Policy.from_json(form, bands) for form in forms if form is not None]
    return sum(parts, Policy()) if parts else None


def needed_names(policy: Policy) -> list[str]:
    """The measures and columns that a policy depends on."""
    return sorted({each.name for each in policy.inputs()} | {each.name for each in policy.columns()})


def record_at(history: Mapping[str, Mapping[str, Any]], period: str, policy: Policy) -> dict[str, Any] | None:
    """Return the columns a policy needs from a unit's history.

    None if the unit has no record in that period.

    Args:
        history: The records of the unit, by period.
        period: The period of the policy.
        policy: The policy, stated in the names of the period.
    """
    if period not in history:
        return None
    own = dict(history[period])
    for name in needed_names(policy):
        bare, at, other = name.rpartition(AT)
        if at and name not in own and bare in history.get(other, {}):
            own[name] = history[other][bare]
    return own


@own_argument_errors
def history_losses(policies: Mapping[str, Policy], history: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the loss of a unit in each period.

    They add up. A period in which the unit has no record costs it nothing.

    Args:
        policies: What was charged, by period.
        history: The records of the unit, by period.

    Returns:
        The zCDP loss of each period.
    """
    found = {}
    for period, policy in policies.items():
        record = record_at(history, period, policy)
        found[period] = 0.0 if record is None else float(policy.loss(record))
    return found
