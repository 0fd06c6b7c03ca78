"""Looking a firm up: its establishments from a CSV file, what they lose together, and what that means."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from recordwise.cli.lookup import cell_value, plain_number

if TYPE_CHECKING:
    import pyarrow as pa

    from recordwise.policy.firms import FirmPolicy
    from recordwise.policy.policy import Policy

MOST_UNITS = 1_000_000
UNLISTED = "\0"
"""Stands for the level of a code that no list has; no list has this value."""
BY_CELL, WITHOUT_CELLS = "by cell", "from single losses"


def read_firm_policy(path: Path, which: str) -> "FirmPolicy | None":
    """What a release says about firms; None for a policy alone, for an older release, and for the bounds of the papers."""
    import json

    from recordwise.policy.firms import FirmPolicy
    from recordwise.policy.json import bands_from_json

    form = json.loads(path.read_text(encoding="utf-8"))
    if which != "tight" or not isinstance(form, dict) or "firms" not in form:
        return None
    return FirmPolicy.from_json(form["firms"], bands_from_json(form.get("bands")))


def read_lists(path: Path) -> list["pa.Table"]:
    """The lists of codes of the release that a policy is a file of, the finest level last; none if that cannot be told."""
    import json

    from recordwise.release.code_lists import CodeLists
    from recordwise.release.digests import file_digest

    try:
        described = json.loads((path.parent / "release.json").read_text(encoding="utf-8"))
        own = described["sha256"].get(path.name) == file_digest(path)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return []
    return list(CodeLists.of(described).tables().values()) if own else []


def with_levels(columns: dict[str, list[str]], lists: Sequence["pa.Table"]) -> dict[str, list[str]]:
    """The columns of establishments with the coarser levels of their codes; empty where there is no code.

    A record whose code is not listed is in no cell of any level (T-HIERARCHY); here all of them share one, which is no less.
    """
    found = dict(columns)
    for listed in lists:
        *levels, finest = listed.column_names
        places = {str(code): place for place, code in enumerate(listed.column(finest).to_pylist())}
        for level in levels:
            if finest in columns and level not in columns:
                values = listed.column(level).to_pylist()
                known = {code: str(values[place]) for code, place in places.items()} | {"": ""}
                found[level] = [known.get(code, UNLISTED) for code in columns[finest]]
    return found


def read_units(
    path: Path, policy: "Policy", cells: tuple[str, ...], lists: Sequence["pa.Table"] = ()
) -> dict[str, list[Any]]:
    """The establishments of a CSV file with a header, every column the policy needs and those that tell the cell."""
    from recordwise.errors import ParameterError
    from recordwise.exact.numbers import rational

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError, csv.Error):
        raise ParameterError(
            parameter="--firm",
            problem="is not a CSV file that can be read",
            advice="Write a header, then the establishments.",
        ) from None
    if any(len(row) != len(header) for row in rows) or len(set(header)) != len(header) or not rows:
        raise ParameterError(
            parameter="--firm", problem="has no establishment, a name twice, or a row that does not fit its header"
        )
    if len(rows) > MOST_UNITS:
        raise ParameterError(parameter="--firm", problem=f"has more than {MOST_UNITS:,} establishments")
    measures = {measure.name for measure in policy.measures()}
    needed = measures | {column.name for column in policy.columns()}
    missing = sorted(needed - set(header))
    if missing:
        raise ParameterError(parameter="--firm", problem=f"lacks the column {', '.join(missing)}", advice="Add it.")
    columns = with_levels(dict(zip(header, map(list, zip(*rows)))), lists)
    found: dict[str, list[Any]] = {}
    for name, texts in columns.items():
        if name in measures:
            found[name] = [float(rational(plain_number(name, text), parameter=name)) for text in texts]
        elif name in needed:
            found[name] = [cell_value(policy, name, text) for text in texts]
        elif name in cells:
            found[name] = [text or None for text in texts]
    return found or {"": [""] * len(rows)}


def looked_up_firm(
    policy: "Policy", firm: "FirmPolicy | None", units: dict[str, list[Any]], delta: float
) -> dict[str, Any]:
    """Loss, delta of key selection, epsilon and power of a test for all establishments together."""
    from recordwise.policy.meaning import meaning, power_beside_delta

    establishments = len(next(iter(units.values())))
    if firm is None:
        rho, own, chance = _from_single_losses(policy, units, establishments)
    else:
        found = firm.loss(units)
        rho, own, chance = found.rho, found.delta, None
    told = meaning(rho, delta=delta)
    told = replace(told, power=power_beside_delta(rho, own, false_alarm=told.false_alarm) if chance is None else chance)
    return {
        "establishments": establishments,
        "known": WITHOUT_CELLS if firm is None else BY_CELL,
        "loss": rho,
        "selection_delta": own,
        "epsilon": told.epsilon,
        "delta": delta + own,
        "power_of_a_5_percent_test": told.power,
        "sentence": told.sentence().replace("your record", "your firm"),
    }


def _from_single_losses(
    policy: "Policy", units: dict[str, list[Any]], establishments: int
) -> tuple[float, float, float | None]:
    """T-GROUP: a loss, or where keys are selected a pair that limits probabilities; then also the power it allows."""
    import numpy as np

    from recordwise.policy.groups import group_loss, group_pair

    losses = np.broadcast_to(policy.loss(units), establishments).tolist()
    if not policy.delta_terms:
        return group_loss(losses), 0.0, None
    pair = group_pair(zip(losses, np.minimum(np.broadcast_to(policy.delta(units), establishments), 1.0).tolist()))
    return pair.rho, pair.delta, pair.power(0.05)


def show_firm(found: dict[str, Any]) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text

    screen.heading(f"A firm with {found['establishments']:,} establishments")
    typer.echo(f"  loss (zCDP rho)   {digits_text(found['loss'], 4)}, {found['known']}")
    typer.echo(
        f"  epsilon           {digits_text(found['epsilon'], 4)} at delta {digits_text(found['delta'], 3)}, from the zCDP loss"
    )
    typer.echo("")
    screen.paragraph(found["sentence"])
    if found["selection_delta"]:
        screen.paragraph(
            f"With probability at most {digits_text(found['selection_delta'], 3)} a cell is listed only because of your firm."
        )
    if found["known"] == WITHOUT_CELLS:
        screen.paragraph(
            "This policy does not say which establishments share a cell. The policy.json of a release does."
        )
