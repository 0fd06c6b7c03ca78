"""The words of a release: labels, units and facts of publication.

Who publishes it, when and under which terms. They are public and chosen by the publisher. They change no
number, no policy and no digest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cached_property
from typing import Any

from recordwise.errors import ParameterError, own_errors_of

LABEL = b"recordwise"
"""The key of the privacy label in the metadata of every Parquet file that we publish."""
VALUE_SIGN = "="
"""Separates a column from one of its values in the name of a label: ``naics=21``."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Who publishes a release, when, about what and on which terms.

    What is not stated is left out everywhere.

    Args:
        title: The title of the release; by default the name of the dataset.
        publisher: Who publishes it.
        contact: Where questions may be sent.
        period: The period that the records describe, such as ``2024`` or ``2024-Q1``.
        license: The terms of use, by name or address.
        version: The version of the publication.
        revision: What changed since the version before.
        date: The date of publication, as ``2026-05-31``.

    Raises:
        ParameterError: An entry is not text, or the date is not a date.
    """

    title: str = ""
    publisher: str = ""
    contact: str = ""
    period: str = ""
    license: str = ""
    version: str = ""
    revision: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            if not isinstance(getattr(self, each.name), str):
                raise ParameterError(parameter=each.name, problem="must be text")
        try:
            if self.date:
                date.fromisoformat(self.date)
        except ValueError:
            raise ParameterError(parameter="date", problem="must be a date such as 2026-05-31") from None

    def to_json(self) -> dict[str, str]:
        """What is given, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Publication":
        """What ``to_json`` wrote; entries that a later version may add are ignored.

        Args:
            form: The entries by name.

        Returns:
            The publication.
        """
        return cls(**{each.name: str(form[each.name]) for each in fields(cls) if each.name in form})

    def with_date(self, day: str) -> "Publication":
        """With this date, unless it has one.

        Args:
            day: The date, as ``2026-05-31``.

        Returns:
            A publication with a date.
        """
        return self if self.date else replace(self, date=day)


@own_errors_of
@dataclass(frozen=True, kw_only=True)
class Labels:
    """The words of a release.

    Args:
        labels: For a measure, a column or a published name, what readers call it; for a value of a column as ``naics=21``, too.
        units: For a measure or a published name, its unit, such as ``employees`` or ``1,000 dollars``.
        publication: Who publishes the release, when, and under which terms.
        names: Whether files have a column of names next to each column of codes that have labels (``county_name``).
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    publication: Publication = field(default_factory=Publication)
    names: bool = True

    def with_labels(self, labels: Mapping[str, str]) -> "Labels":
        """With these labels for what has none.

        Args:
            labels: The labels by name.

        Returns:
            The words.
        """
        return replace(self, labels={**labels, **self.labels}) if labels else self

    def label(self, name: str, of: str | None = None) -> str:
        """Return the label of a published name or of its measure.

        The name itself without a label.

        Args:
            name: The published name.
            of: The measure or column it is about.

        Returns:
            The label.
        """
        return self.labels.get(name) or (self.labels.get(of, name) if of else name)

    def unit(self, name: str, of: str | None = None) -> str:
        """Return the unit of a published name or of its measure.

        Empty without a unit.

        Args:
            name: The published name.
            of: The measure or column it is about.

        Returns:
            The unit.
        """
        return self.units.get(name) or (self.units.get(of, "") if of else "")

    def values(self, column: str) -> dict[str, str]:
        """The labels of a column's values.

        Args:
            column: The name of the column.

        Returns:
            The label of each value that has one.
        """
        start = column + VALUE_SIGN
        same = self._by_column.get(start.partition(VALUE_SIGN)[0], {})
        return {name.removeprefix(start): label for name, label in same.items() if name.startswith(start)}

    @cached_property
    def _by_column(self) -> dict[str, dict[str, str]]:
        """The labels of values, by their names up to the first sign."""
        found: dict[str, dict[str, str]] = {}
        for name, label in self.labels.items():
            column, sign, _ = name.partition(VALUE_SIGN)
            if sign:
                found.setdefault(column, {})[name] = label
        return found


# Rules for the status of a published value, by its relative error. They are part of the plan and use released values
# alone.


RELIABLE, CAUTION, UNRELIABLE = "reliable", "use with caution", "unreliable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRules:
    """A status for each value by its relative error.

    The first whose limit the error does not exceed, or otherwise the last.

    Args:
        limits: Each status but the last with the largest relative error it allows, in increasing order.
        otherwise: The status of all other values.
        withheld: The statuses of values that *basic* tables leave empty.

    Raises:
        ParameterError: The limits do not increase, or a status is repeated or unknown.

    Example:
        >>> StatusRules().names()
        ('reliable', 'use with caution', 'unreliable')
    """

    limits: tuple[tuple[str, float], ...] = ((RELIABLE, 0.165), (CAUTION, 0.333))
    otherwise: str = UNRELIABLE
    withheld: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ends = [limit for _, limit in self.limits]
        if not ends or ends != sorted(set(ends)) or ends[0] <= 0:
            raise ParameterError(parameter="status", problem="needs limits that are positive and increase")
        if len(set(self.names())) < len(self.names()) or not all(self.names()):
            raise ParameterError(parameter="status", problem="must give each status a name of its own")
        unknown = [name for name in self.withheld if name not in self.names()]
        if unknown:
            raise ParameterError(
                parameter="withhold",
                problem=f"names no status: {unknown[0]!r}",
                advice=f"Use {', '.join(self.names())}.",
            )

    def names(self) -> tuple[str, ...]:
        """Every status, the most reliable first."""
        return (*(name for name, _ in self.limits), self.otherwise)

    def to_json(self) -> dict[str, Any]:
        """As in release.json."""
        return {"limits": dict(self.limits), "otherwise": self.otherwise, "withheld": list(self.withheld)}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "StatusRules":
        """What ``to_json`` wrote."""
        limits = tuple((str(name), float(limit)) for name, limit in form["limits"].items())
        return cls(limits=limits, otherwise=str(form["otherwise"]), withheld=tuple(map(str, form["withheld"])))
