"""Looks up a record in a policy: reads both, computes the numbers, and explains them."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from recordwise.policy.lattice import LatticePolicy
    from recordwise.policy.policy import Policy


def read_policy(path: Path, which: str) -> "Policy":
    """The tight policy of a release or that of the papers, or the only policy of the file."""
    import json

    from recordwise.errors import UnknownFormError
    from recordwise.policy.json import bands_from_json
    from recordwise.policy.policy import Policy

    try:
        form = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise UnknownFormError(what="policy file", found=path.name) from None
    if not isinstance(form, dict) or which not in form:
        return Policy.from_json(form)
    return Policy.from_json(form[which], bands_from_json(form.get("bands")))


def read_privacy_label(path: Path) -> str | None:
    """The privacy label in the policy file of a release; None if the file is a policy alone."""
    import json

    form = json.loads(path.read_text(encoding="utf-8"))
    return str(form["mark"]) if isinstance(form, dict) and "mark" in form else None


def read_record(policy: "Policy", values: list[str]) -> dict[str, Any]:
    """The record from name=value words: every name the policy needs, and no other."""
    from recordwise.errors import ParameterError
    from recordwise.plan.file.node import suggestion

    measures = {measure.name for measure in policy.inputs()}
    columns = {column.name for column in policy.columns()} - measures
    needed = sorted(measures | columns)
    record: dict[str, Any] = {}
    for word in values:
        name, equals, text = word.partition("=")
        if not equals:
            raise ParameterError(parameter=f"'{word}'", problem="is not of the form name=value")
        if name not in needed:
            raise ParameterError(parameter=f"'{name}'", problem=f"is not used by this policy{suggestion(name, needed)}")
        if name in record:
            raise ParameterError(parameter=f"'{name}'", problem="is given twice", advice="Give each name once.")
        record[name] = plain_number(name, text) if name in measures else cell_value(policy, name, text)
    missing = [name for name in needed if name not in record]
    if missing:
        raise ParameterError(
            parameter="the record", problem=f"lacks {', '.join(missing)}", advice=f"Add {missing[0]}=..."
        )
    return record


def cell_value(policy: "Policy", name: str, text: str) -> Any:
    """A value of a column, in the type the policy compares it with; nothing for a missing one."""
    from recordwise.cli.literals import constants_of
    from recordwise.errors import ParameterError
    from recordwise.exact.numbers import rational
    from recordwise.policy.dates import day_of

    beside = next(constants_of(policy, name), "")
    if text == "":
        return None
    if any(column.part for column in policy.columns() if column.name == name):
        if day_of(text) is None:
            raise ParameterError(parameter=name, problem="must be a date", advice=f"Write {name}=2024-12-31.")
        return text
    if isinstance(beside, bool) and text in ("true", "false"):
        return text == "true"
    if isinstance(beside, bool):
        raise ParameterError(parameter=name, problem="must be true or false")
    return text if isinstance(beside, str) else rational(plain_number(name, text), parameter=name)


def plain_number(name: str, text: str) -> str:
    """A number that can be read in only one way: 1.000 is one in some countries and a thousand in others."""
    from recordwise.errors import ParameterError, shown
    from recordwise.exact.numbers import rational

    if re.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}", text):
        advice = f"Write {text.replace('.', '')} or {text}0."
        raise ParameterError(parameter=name, problem=f"is ambiguous: {text}", advice=advice)
    if not re.fullmatch(r"[\w.+/-]*", text):
        advice = "Write digits and, if needed, a decimal point: 1200.5."
        raise ParameterError(parameter=name, problem=f"must be a plain number, not {shown(text)}", advice=advice)
    rational(text, parameter=name)
    return text


FROM_LAWS, FROM_ZCDP = "the exact law of the noise", "the zCDP loss"


def read_lattice(path: Path, which: str) -> "LatticePolicy | None":
    """The noise of a release on its lattice, where all of it is discrete Gaussian; None for the bounds of the papers."""
    import json

    from recordwise.policy.json import bands_from_json
    from recordwise.policy.lattice import LatticePolicy

    form = json.loads(path.read_text(encoding="utf-8"))
    known = which == "tight" and isinstance(form, dict) and "lattice" in form
    return LatticePolicy.from_json(form["lattice"], bands_from_json(form.get("bands"))) if known else None


def looked_up(
    policy: "Policy", record: dict[str, Any], delta: float, lattice: "LatticePolicy | None" = None
) -> dict[str, Any]:
    """Loss, delta of key selection, epsilon, power of a test: from the exact law of the noise where it is known (T-LOSS-LAW)."""
    from dataclasses import replace

    from recordwise.policy.meaning import meaning, power_beside_delta

    rho, own = float(policy.loss(record)), float(policy.delta(record))
    if lattice is not None:
        told = lattice.meaning(record, delta=delta)
    else:
        told = meaning(rho, delta=delta)
        told = replace(told, power=power_beside_delta(rho, own, false_alarm=told.false_alarm))
    return {
        "record": {name: str(value) for name, value in record.items()},
        "loss": rho,
        "selection_delta": own,
        "epsilon": told.epsilon,
        "epsilon_from": FROM_ZCDP if lattice is None else FROM_LAWS,
        "delta": delta + own,
        "power_of_a_5_percent_test": told.power,
        "sentence": told.sentence(),
        **_sizes(policy, record),
    }


def _sizes(policy: "Policy", record: dict[str, Any]) -> dict[str, Any]:
    """The public sizes of the record's cells, where the loss depends on them."""
    from recordwise.policy.render.bands import sizes_of_cells

    sizes = {size.about: size.found(record) for size in sizes_of_cells(policy)}
    return {"public_sizes": sizes} if sizes else {}


def show(found: dict[str, Any]) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text

    shown = ", ".join(f"{name} = {value}" for name, value in found["record"].items()) or "every record"
    screen.heading(f"A record with {shown}")
    typer.echo(f"  loss (zCDP rho)   {digits_text(found['loss'], 4)}")
    at = f"at delta {digits_text(found['delta'], 3)}, from {found['epsilon_from']}"
    typer.echo(f"  epsilon           {digits_text(found['epsilon'], 4)} {at}")
    for about, size in found.get("public_sizes", {}).items():
        typer.echo(f"  size of its cell  {size} ({about})")
    typer.echo("")
    for sentence in sentences(found):
        screen.paragraph(sentence)


def sentences(found: dict[str, Any]) -> list[str]:
    """What the numbers mean, for the person who looked them up."""
    from recordwise.exact.text import digits_text, factor_text, share_text
    from recordwise.policy.meaning import likely_log_odds, log_odds_tail

    rho, own = found["loss"], found["selection_delta"]
    told = [found["sentence"]]
    if own:
        told.append(f"With probability at most {digits_text(own, 3)} a cell is listed only because of your record.")
    if rho:
        likely = likely_log_odds(rho)
        mean, more = factor_text(rho, plain=True), factor_text(likely, plain=True)
        told.append(
            f"{'Unless that happens, whatever' if own else 'Whatever'} was believed about your record before, the publication "
            f"changes the odds by a factor of at most {mean} in the geometric mean, and by more than {more} "
            f"with probability at most {share_text(log_odds_tail(rho, likely))}."
        )
    return told
