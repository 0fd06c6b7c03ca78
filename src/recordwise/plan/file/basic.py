"""Reads what a plan file says about basic tables: how they are fitted, what they are rounded to, and the rules of status."""

from dataclasses import dataclass, field
from typing import Any

from recordwise.exact.numbers import Number
from recordwise.plan.file.node import Node
from recordwise.plan.status import StatusRules

KINDS = ("research", "basic")
FITS = ("nnls", "ols", "max_fit", "sequential", "reweighted")


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicOutputs:
    """The arguments of ``Release.basic``."""

    fit: str = "nnls"
    complete: bool = False
    units: dict[str, Number] = field(default_factory=dict)
    rules: StatusRules = field(default_factory=StatusRules)


def read_basic(entries: dict[str, Node]) -> dict[str, Any]:
    """``tables = ["research", "basic"]`` with ``[outputs.basic]``, ``[outputs.round]`` and ``[outputs.status]``."""
    kinds = [each.word(*KINDS) for each in entries["tables"].items()] if "tables" in entries else ["research"]
    if "tables" in entries and "research" not in kinds and None not in kinds:
        entries["tables"].problem("must include research: a release is verified from its research tables")
    fit = entries["basic"].table("fit", "complete") if "basic" in entries else {}
    method = fit["fit"].word(*FITS) if "fit" in fit else "nnls"
    complete = fit["complete"].flag() if "complete" in fit else False
    given = entries["round"].table() if "round" in entries else {}
    units = {name: each.number() for name, each in given.items()}
    rules = _rules(entries["status"]) if "status" in entries else StatusRules()
    for name in ("basic", "round", "status"):
        if name in entries and "basic" not in kinds:
            entries[name].problem('is for basic tables; add tables = ["research", "basic"]')
    if "basic" not in kinds or method is None or complete is None or rules is None or None in units.values():
        return {}
    known = {name: unit for name, unit in units.items() if unit is not None}
    return {"basic": BasicOutputs(fit=method, complete=complete, units=known, rules=rules)}


def _rules(node: Node) -> StatusRules | None:
    """Each status with its largest relative error, ``otherwise`` for the rest, and the statuses to ``withhold``."""
    entries = node.table()
    otherwise = entries.pop("otherwise").text() if "otherwise" in entries else "unreliable"
    withheld = [each.text() for each in entries.pop("withhold").items()] if "withhold" in entries else []
    limits = [(name, each.number()) for name, each in entries.items()]
    if otherwise is None or None in withheld or any(limit is None for _, limit in limits):
        return None
    chosen = tuple((name, float(limit)) for name, limit in limits if limit is not None)
    return node.attempt(
        lambda: StatusRules(
            **({"limits": chosen} if chosen else {}), otherwise=otherwise, withheld=tuple(map(str, withheld))
        )
    )
