"""Rules for the status of a published value, by its relative error. They are part of the plan and use released values alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordwise.errors import ParameterError

RELIABLE, CAUTION, UNRELIABLE = "reliable", "use with caution", "unreliable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRules:
    """A status for each value: the first whose limit its relative error does not exceed, or otherwise the last.

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
