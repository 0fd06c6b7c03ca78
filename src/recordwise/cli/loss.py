"""``recordwise loss``: shows the loss of an establishment, firm or history."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well, plain_float
from recordwise.cli.options import NO_BOUNDS, Formula, check_bound, check_steps, plain_number

if TYPE_CHECKING:
    import pyarrow as pa

    from recordwise.ledger.chain import Event
    from recordwise.ledger.entries import PeriodState
    from recordwise.mechanisms.inference import ValuePolicy
    from recordwise.plan.publication import Labels
    from recordwise.policy.firms import FirmPolicy
    from recordwise.policy.json import PolicyFile
    from recordwise.policy.loss_law import LatticePolicy
    from recordwise.policy.policy import Policy
    from recordwise.release.published import Published


# A record: read it and the policy, compute the numbers, and explain them.


def read_policy(path: Path, which: str) -> "Policy":
    """Return a release's tight or paper policy, or the file's only policy."""
    from recordwise.errors import ParameterError
    from recordwise.policy.json import PolicyFile, policy_from_json

    try:
        file = PolicyFile.load(path)
        if not (file.has(which) or file.has("recordwise_policy")):
            raise ValueError("another file")
    except (ValueError, RecursionError):
        advice = "Name a release's folder or its policy.json, a policy alone, or the ledger of a series."
        raise ParameterError(parameter=f"the file {path.name}", problem="holds no policy", advice=advice) from None
    return file.policy(which) if file.has(which) else _zcdp_alone(policy_from_json(file.form))


def _zcdp_alone(policy: "Policy") -> "Policy":
    """Return a policy, or refuse a pure one, of which the zCDP loss is not known."""
    from recordwise.errors import ParameterError

    if policy.is_pure:
        advice = "Give policy.json of the release: its pure epsilon is shown with the zCDP loss."
        raise ParameterError(parameter="the policy", problem="states pure epsilons alone", advice=advice)
    return policy


def read_privacy_label(path: Path) -> str | None:
    """Return a policy file's privacy label; None for a policy alone."""
    from recordwise.policy.json import PolicyFile

    file = PolicyFile.load(path)
    return file.privacy_label if file.is_of_release else None


def read_record(policy: "Policy", values: list[str], bounds: Mapping[str, Fraction] = NO_BOUNDS) -> dict[str, Any]:
    """Return the record from name=value words, its measures within their public bounds."""
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
        record[name] = _amount(policy, name, text, bounds) if name in measures else cell_value(policy, name, text)
    missing = [name for name in needed if name not in record]
    if missing:
        raise ParameterError(
            parameter="the record", problem=f"lacks {', '.join(missing)}", advice=f"Add {missing[0]}=..."
        )
    return record


def _amount(policy: "Policy", name: str, text: str, bounds: Mapping[str, Fraction]) -> Any:
    """Return a measure's number: text, or exact where a condition compares it."""
    plain = plain_number(name, text)
    check_bound(policy, name, _number(name, text), bounds)
    return plain if name not in {column.name for column in policy.columns()} else _number(name, text)


def _number(name: str, text: str) -> Any:
    """Return an exact number."""
    from recordwise.exact.numbers import rational

    number = rational(plain_number(name, text), parameter=name)
    return int(number) if number.denominator == 1 else number


def read_bounds(path: Path) -> dict[str, Fraction]:
    """Return the public bounds of the measures that a policy's release states; empty for a policy alone."""
    described = _described(path)
    return {} if described is None else {name: each.bound for name, each in described.measures.items()}


def cell_value(policy: "Policy", name: str, text: str) -> Any:
    """Return a column's value in the policy's type; None if missing."""
    from recordwise.errors import ParameterError
    from recordwise.exact.numbers import rational
    from recordwise.policy.columns import day_of
    from recordwise.policy.policy import constants_of

    constant = next(constants_of(policy, name), "")
    if text == "":
        return None
    if any(column.part for column in policy.columns() if column.name == name):
        if day_of(text) is None:
            raise ParameterError(parameter=name, problem="must be a date", advice=f"Write {name}=2024-12-31.")
        return text
    if isinstance(constant, bool) and text in ("true", "false"):
        return text == "true"
    if isinstance(constant, bool):
        raise ParameterError(parameter=name, problem="must be true or false")
    return text if isinstance(constant, str) else rational(plain_number(name, text), parameter=name)


FROM_LAWS, FROM_ZCDP, FROM_PURE = "the exact law of the noise", "the zCDP loss", "the pure loss"


def read_lattice(path: Path, which: str) -> "LatticePolicy | None":
    """Return a release's noise on its lattice, or None."""
    from recordwise.policy.json import TIGHT, PolicyFile

    return PolicyFile.load(path).lattice if which == TIGHT else None


def read_values(path: Path, which: str) -> "ValuePolicy | None":
    """Return a release's numbers that depend on measures, or None."""
    from recordwise.mechanisms.inference import ValuePolicy
    from recordwise.policy.json import TIGHT, PolicyFile

    saved = PolicyFile.load(path)
    known = saved.is_of_release and which == TIGHT and saved.values_form is not None
    return ValuePolicy.from_json(saved.values_form, saved.bands) if known else None


def _told(values: "ValuePolicy", record: dict[str, Any], words: "Labels") -> dict[str, Any]:
    """Return how closely an attacker knows each measure of a record (T-INFER)."""
    from recordwise.release.page.questions import told_sentence

    found = [values.window(record, name) for name in values.bounds if name in record]
    found = [each for each in found if not each.is_open()]
    windows = {
        each.measure: {
            "low": str(each.low),
            "high": None if each.high is None else str(each.high),
            "within": None if each.reach is None else str(each.reach),
            "confidence": each.confidence,
        }
        for each in found
    }
    return {"told_values": windows, "told": told_sentence(found, words.labels, words.units)} if found else {}


def report_of_file(path: Path, which: str, values: list[str], delta: float) -> dict[str, Any]:
    """Return what a policy file says about the loss of a record."""
    from recordwise.release.page.questions import as_listed

    policy, described = read_policy(path, which), _described(path)
    words, stages = None if described is None else described.words, _all_stages(path, described)
    # What was refined may name columns that the further draws do not depend on.
    total = policy if stages is None else stages.policy()
    record = read_record(total, values, read_bounds(path))
    check_steps(record, {} if described is None else described.measures)
    record, unlisted = (record, []) if described is None else as_listed(described, record)
    told = read_values(path, which) if stages is None else None
    found = loss_report(policy, record, delta, read_lattice(path, which), told, words)
    found |= {"unlisted": unlisted} if unlisted else {}
    return found if stages is None else _with_stages(found, loss_report(total, record, delta, stages.lattice))


def _all_stages(path: Path, described: "Published | None") -> "PolicyFile | None":
    """Return what all stages of a refined release cost, which policy.json says away from its folder too."""
    from recordwise.policy.json import PolicyFile

    if described is not None and described.refinement is not None:
        return described.refinement.total
    return PolicyFile.load(path).all_stages


def _with_stages(found: dict[str, Any], total: dict[str, Any]) -> dict[str, Any]:
    """Return a report whose words are those of all stages, which is what the averages of a refined release tell."""
    words = {name: total[name] for name in ("sentence", "power_of_a_5_percent_test")}
    return found | words | {"all_stages": total}


def loss_report(
    policy: "Policy",
    record: dict[str, Any],
    delta: float,
    lattice: "LatticePolicy | None" = None,
    values: "ValuePolicy | None" = None,
    words: "Labels | None" = None,
) -> dict[str, Any]:
    """Return loss, delta, epsilon and power, exactly where possible (T-LOSS-LAW)."""
    from dataclasses import replace

    from recordwise.plan.publication import Labels
    from recordwise.policy.meaning import meaning, power_beside_delta

    rho, own = float(policy.loss(record)), float(policy.delta(record))
    told_values = {} if values is None or rho == 0 else _told(values, record, words or Labels())
    pure = None if policy.pure_problem() is not None else float(policy.epsilon_pure(record))
    if lattice is not None:
        told = lattice.meaning(record, delta=delta)
    else:
        told = meaning(rho, delta=delta, pure=pure)
        told = told if pure is not None else replace(told, power=power_beside_delta(rho, own))
    source = FROM_PURE if told.epsilon == pure else FROM_ZCDP if lattice is None else FROM_LAWS
    return {
        "record": {name: str(value) for name, value in record.items()},
        "loss": rho,
        "selection_delta": own,
        "epsilon": told.epsilon,
        "epsilon_from": source,
        "delta": delta + own,
        "pure_epsilon": pure,
        # Why a release with some pure losses has no pure epsilon.
        "why_not_pure": policy.pure_problem() if any(atom.pure() is not None for _, atom in policy.rho) else None,
        "power_of_a_5_percent_test": told.power,
        "sentence": told.sentence(),
        **told_values,
        **_cell_sizes(policy, record),
    }


def _cell_sizes(policy: "Policy", record: dict[str, Any]) -> dict[str, Any]:
    """Return the public sizes of the record's cells, where they matter."""
    from recordwise.policy.render.text import sizes_of_cells

    sizes = {size.about: size.text_for(record) for size in sizes_of_cells(policy)}
    return {"public_sizes": sizes} if sizes else {}


FEW_SIZES = 4
"""Up to this many sizes of cells are printed; more only on request."""


def show_loss(found: dict[str, Any], *, formula: bool = False) -> None:
    """Print what a loss means, then its numbers."""
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text

    shown = ", ".join(f"{name} = {value}" for name, value in found["record"].items()) or "every record"
    screen.heading(f"A record with {shown}")
    for name in found.get("unlisted", ()):
        told = f"{name} '{found['record'][name]}' is not among the published codes: this is the loss of a code that is not listed."
        screen.paragraph(told)
    for sentence in sentences(found.get("all_stages", found)):
        screen.paragraph(sentence)
    typer.echo("")
    further = ", of the further draws alone" if "all_stages" in found else ""
    typer.echo(f"  loss (zCDP rho)   {digits_text(found['loss'], 4)}{further}")
    at = f"at delta {digits_text(found['delta'], 3)}, from {found['epsilon_from']}"
    typer.echo(f"  epsilon           {digits_text(found['epsilon'], 4)} {at}")
    if found["pure_epsilon"] is not None:
        typer.echo(f"  pure epsilon      {digits_text(found['pure_epsilon'], 4)} at delta 0")
    elif found["why_not_pure"]:
        typer.echo(f"  pure epsilon      none, so the zCDP loss holds: {found['why_not_pure']}")
    if "all_stages" in found:
        total = found["all_stages"]
        both = (
            f"{digits_text(total['loss'], 4)}, epsilon {digits_text(total['epsilon'], 4)} from {total['epsilon_from']}"
        )
        typer.echo(f"  all stages        {both}")
    sizes = found.get("public_sizes", {})
    for about, size in sizes.items() if formula or len(sizes) <= FEW_SIZES else ():
        typer.echo(f"  size of its cell  {size} ({about})")
    if len(sizes) > FEW_SIZES and not formula:
        unlisted = sum(size.endswith("not listed") for size in sizes.values())
        least = f"among the smallest, or not listed, {unlisted} times" if unlisted else "never among the smallest"
        typer.echo(f"  its {len(sizes)} cells      {least} (--formula lists them)")


def sentences(found: dict[str, Any]) -> list[str]:
    """What the numbers mean, for the person who looked them up."""
    from recordwise.exact.text import digits_text, factor_text
    from recordwise.policy.meaning import likely_log_odds, presence_words

    rho, own, pure = found["loss"], found["selection_delta"], found["pure_epsilon"]
    presence = presence_words(found["power_of_a_5_percent_test"])
    told = [f"{presence.capitalize()}. {found['sentence']}", *([found["told"]] if "told" in found else [])]
    if own:
        told.append(f"With probability at most {digits_text(own, 3)} a cell is listed only because of your record.")
    if rho:
        likely = likely_log_odds(rho, pure)
        mean, more = factor_text(rho, plain=True), factor_text(likely, plain=True)
        tail = (
            f"in no case by more than {more}" if likely == pure else f"by more than {more} with probability at most 5%"
        )
        told.append(
            f"{'Unless that happens, whatever' if own else 'Whatever'} was believed about your record before, the publication "
            f"changes the odds by a factor of at most {mean} in the geometric mean, and {tail}."
        )
    if rho and pure is not None and likely < pure:
        told.append(f"In no case does it change them by more than {factor_text(pure, plain=True)}.")
    return told


# A firm: its establishments from a CSV file, what they lose together, and what that means.


MOST_UNITS = 1_000_000
UNLISTED = "\0"
"""Stands for the level of a code that no list has; no list has this value."""
BY_CELL, WITHOUT_CELLS = "by cell", "from single losses"


def read_firm_policy(path: Path, which: str) -> "FirmPolicy | None":
    """Return what a release says about firms, or None."""
    from recordwise.policy.json import TIGHT, PolicyFile

    return PolicyFile.load(path).firms if which == TIGHT else None


def read_lists(path: Path) -> list["pa.Table"]:
    """Return the code lists of a policy's release, finest level last."""
    described = _described(path)
    return [] if described is None else list(described.lists.tables().values())


def _described(path: Path) -> "Published | None":
    """Return what the release of a policy publishes next to it."""
    from recordwise.release.published import Published
    from recordwise.release.staging import file_digest

    try:
        described = Published.load(path.parent / "release.json")
        own = described.files.get(path.name) == file_digest(path)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return described if own else None


def with_levels(columns: dict[str, list[str]], lists: Sequence["pa.Table"]) -> dict[str, list[str]]:
    """Return the columns with coarser levels of their codes.

    Empty where there is no code. A record whose code is not listed is in no cell of any level (T-HIERARCHY); here
    all of them share one, which is no less.
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
    path: Path,
    policy: "Policy",
    cells: tuple[str, ...],
    lists: Sequence["pa.Table"] = (),
    bounds: Mapping[str, Fraction] = NO_BOUNDS,
) -> dict[str, list[Any]]:
    """Return a CSV file's establishments, with policy and cell columns."""
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
            numbers = [rational(plain_number(name, text), parameter=name) for text in texts]
            check_bound(policy, name, max(numbers, key=abs), bounds)
            found[name] = [float(each) for each in numbers]
        elif name in needed:
            found[name] = [cell_value(policy, name, text) for text in texts]
        elif name in cells:
            found[name] = [text or None for text in texts]
    return found or {"": [""] * len(rows)}


def firm_loss_report(
    policy: "Policy", firm: "FirmPolicy | None", units: dict[str, list[Any]], delta: float
) -> dict[str, Any]:
    """Return the joint loss, delta, epsilon and power for all establishments."""
    import numpy as np

    from recordwise.policy.groups import group_epsilon
    from recordwise.policy.meaning import meaning, power_beside_delta

    establishments, pure = len(next(iter(units.values()))), None
    if firm is None:
        rho, own, chance = _from_single_losses(policy, units, establishments)
        if policy.pure_problem() is None:
            pure = group_epsilon(np.broadcast_to(policy.epsilon_pure(units), establishments).tolist())
    else:
        found = firm.loss(units)
        rho, own, chance, pure = found.rho, found.delta, None, found.epsilon
    told = meaning(rho, delta=delta, pure=pure)
    if pure is None:
        told = replace(told, power=power_beside_delta(rho, own) if chance is None else chance)
    return {
        "establishments": establishments,
        "known": WITHOUT_CELLS if firm is None else BY_CELL,
        "loss": rho,
        "selection_delta": own,
        "epsilon": told.epsilon,
        "epsilon_from": FROM_PURE if told.epsilon == pure else FROM_ZCDP,
        "delta": delta + own,
        "pure_epsilon": pure,
        "power_of_a_5_percent_test": told.power,
        "sentence": told.sentence().replace("your record", "your firm"),
    }


def _from_single_losses(
    policy: "Policy", units: dict[str, list[Any]], establishments: int
) -> tuple[float, float, float | None]:
    """Return the group loss from single losses (T-GROUP).

    Where keys are selected a pair that limits probabilities, and the power it allows.
    """
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
    for sentence in firm_sentences(found.get("all_stages", found)):
        screen.paragraph(sentence)
    typer.echo("")
    typer.echo(f"  loss (zCDP rho)   {digits_text(found['loss'], 4)}, {found['known']}")
    at = f"at delta {digits_text(found['delta'], 3)}, from {found['epsilon_from']}"
    typer.echo(f"  epsilon           {digits_text(found['epsilon'], 4)} {at}")
    if found["pure_epsilon"] is not None:
        typer.echo(
            f"  pure epsilon      {digits_text(found['pure_epsilon'], 4)} at delta 0, the sum over establishments"
        )
    if "all_stages" in found:
        total = found["all_stages"]
        typer.echo(f"  all stages        {digits_text(total['loss'], 4)}, epsilon {digits_text(total['epsilon'], 4)}")


def firm_sentences(found: dict[str, Any]) -> list[str]:
    """What the numbers of a firm mean."""
    from recordwise.exact.text import digits_text
    from recordwise.policy.meaning import presence_words

    own = digits_text(found["selection_delta"], 3)
    told = [f"{presence_words(found['power_of_a_5_percent_test']).capitalize()}. {found['sentence']}"]
    if found["selection_delta"]:
        told.append(f"With probability at most {own} a cell is listed only because of your firm.")
    if found["known"] == WITHOUT_CELLS:
        told.append("This policy does not say which establishments share a cell. The policy.json of a release does.")
    return told


# A unit's history: what each period of a series cost it, and what all of them cost together, from the ledger.


SQLITE = b"SQLite format 3\x00"


def is_ledger(path: Path) -> bool:
    """Whether a file is a ledger rather than a policy."""
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def read_events(path: Path) -> "list[Event]":
    """Every event of a ledger."""
    from recordwise.ledger.ledger import Ledger

    opened = Ledger.existing(path)
    events = opened.history()
    opened.close()
    return events


def followed_history(events: "list[Event]", words: list[str]) -> "tuple[list[str], dict[str, float] | None]":
    """Return the words that policies need, and what carried or corrected releases really cost the unit (T-SERIES).

    Columns that only say which cell a record is in, and records of a revision (``emp@2026/1=30``), are for the second alone.
    """
    from recordwise.ledger.entries import steps_of, unit_losses
    from recordwise.policy.policy import compose

    steps = steps_of(events).values()
    if not steps:
        return words, None
    cells = {name for step in steps for name in step.noise.columns()}
    own, history = list[str](), dict[str, dict[str, Any]]()
    periods = {str(each.body["period"]) for each in events if each.kind == "charged" and "period" in each.body}
    policies = compose([step.noise.policy() for step in steps])
    measures = {name for step in steps for name in step.measures}
    for word in words:
        name, _, text = word.partition("=")
        bare, at, version = name.rpartition("@")
        column = bare if at else name
        for place in [version] if at else sorted(periods):
            given = _number(column, text) if column in measures else cell_value(policies, column, text)
            if column in measures:
                check_bound(policies, column, given, NO_BOUNDS)
            history.setdefault(place, {})[column] = given
        if "/" not in version and column not in cells - measures:
            own.append(word)
    for name, record in history.items():
        history[name] = {**history.get(name.partition("/")[0], {}), **record}
    return own, unit_losses(events, history)


def read_history(periods: "tuple[PeriodState, ...]", words: list[str]) -> dict[str, dict[str, Any]]:
    """Return a unit's records from name@period=value words.

    name=value holds in every period that uses the name. A period without values is one in which the unit has no
    record.
    """
    from recordwise.errors import ParameterError
    from recordwise.plan.file.node import suggestion
    from recordwise.policy.series import needed_names

    known = [each.name for each in periods]
    general, own = [], dict[str, list[str]]()
    for word in words:
        name, equals, text = word.partition("=")
        bare, at, period = name.rpartition("@")
        if not equals or not at:
            general.append(word)
        elif period not in known:
            raise ParameterError(
                parameter=f"'{name}'", problem=f"names no period of the ledger{suggestion(period, known)}"
            )
        else:
            own.setdefault(period, []).append(f"{bare}={text}")
    names = {each.name: needed_names(each.spent) for each in periods}
    unused = [word for word in general if not any(word.partition("=")[0] in used for used in names.values())]
    if unused:
        raise ParameterError(
            parameter=f"'{unused[0].partition('=')[0]}'", problem="is not used in any period of the ledger"
        )
    found = {}
    for each in periods:
        given = own.get(each.name, [])
        stated = {word.partition("=")[0] for word in given}
        shared = [word for word in general if word.partition("=")[0] in names[each.name]]
        given = given + [word for word in shared if word.partition("=")[0] not in stated]
        if given or not names[each.name]:
            found[each.name] = read_record(each.spent, given)
    return found


def history_loss_report(
    series: str | None,
    periods: "tuple[PeriodState, ...]",
    words: list[str],
    delta: float,
    followed: dict[str, float] | None = None,
) -> dict[str, Any]:
    """Return each period's loss and remaining budget, and the total; where noise is carried, what was really lost."""
    from recordwise.policy.meaning import meaning, power_beside_delta
    from recordwise.policy.series import history_losses, record_at

    history = read_history(periods, words)
    charged = history_losses({each.name: each.spent for each in periods}, history)
    losses = charged if followed is None else {name: followed.get(name, 0.0) for name in charged}
    pure = _pure_history(periods, history)
    rows, own = [], 0.0
    for each in periods:
        record = record_at(history, each.name, each.spent)
        selected = 0.0 if record is None else float(each.spent.delta(record))
        own += selected
        rows.append(
            {
                "period": each.name,
                "record": None if record is None else {name: str(value) for name, value in record.items()},
                "loss": losses[each.name],
                **({} if followed is None else {"charged": charged[each.name]}),
                "selection_delta": selected,
                "left": remaining_loss(each, record),
                "left_in": None if each.budget is None else each.budget.unit,
                "budget": each.declared_text(),
            }
        )
    rho = sum(losses.values())
    told = meaning(rho, delta=delta, pure=pure)
    return {
        "series": series,
        "periods": rows,
        "loss": rho,
        "selection_delta": own,
        "epsilon": told.epsilon,
        "delta": delta + own,
        "pure_epsilon": pure,
        "power_of_a_5_percent_test": told.power if pure is not None else power_beside_delta(rho, own),
        "sentence": told.sentence(),
        "total": total_text(periods),
    }


def _pure_history(periods: "tuple[PeriodState, ...]", history: dict[str, dict[str, Any]]) -> float | None:
    """Return the pure epsilon of all periods, or None without one."""
    from recordwise.policy.series import history_losses

    if any(each.spent.pure_problem() is not None for each in periods):
        return None
    return sum(history_losses({each.name: each.spent.pure() for each in periods}, history).values())


def remaining_loss(period: "PeriodState", record: dict[str, Any] | None) -> float | None:
    """Return what a record has left of the period's budget, if known."""
    from recordwise.policy.series import needed_names

    if period.budget is None or record is None or set(needed_names(period.budget)) - set(record):
        return None
    held = (period.spent + period.reserved).in_unit_of(period.budget)
    return max(0.0, float(period.budget.loss(record)) - float(held.loss(record)))


def total_text(periods: "tuple[PeriodState, ...]") -> str:
    """Describe how long the total holds: forever, or as of today."""
    if periods and all(each.at_start for each in periods):
        return "within budgets that were declared at the start of the series"
    if any(each.amendments for each in periods):
        return "as of today: a budget was amended, so no total was fixed in advance"
    return "as of today: a period without a budget, or one declared later, can add to it"


def show_history(found: dict[str, Any]) -> None:
    """Print the periods and the total."""
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text

    screen.heading(
        f"Losses over the periods of '{found['series'] or found['periods'][0]['period']}'"
        if found["periods"]
        else "No charge"
    )
    screen.paragraph(found["sentence"])
    typer.echo("")
    rows = []
    for each in found["periods"]:
        record = "no record" if each["record"] is None else ", ".join(f"{n} = {v}" for n, v in each["record"].items())
        remaining = "" if each["left"] is None else digits_text(each["left"], 4)
        remaining += " of pure epsilon" if remaining and each["left_in"] == "epsilon" else ""
        losses = [digits_text(each[name], 4) for name in ("loss", "charged") if name in each]
        rows.append([each["period"], record or "every record", *losses, remaining, each["budget"]])
    followed = ["charged at most"] if any("charged" in each for each in found["periods"]) else []
    screen.table(["period", "record", "loss", *followed, "left", "budget"], rows)
    typer.echo("")
    typer.echo(f"  loss over all published periods (zCDP rho)   {digits_text(found['loss'], 4)}, {found['total']}")
    typer.echo(f"  epsilon {digits_text(found['epsilon'], 4)} at delta {digits_text(found['delta'], 3)}")
    if found["pure_epsilon"] is not None:
        typer.echo(f"  pure epsilon {digits_text(found['pure_epsilon'], 4)} at delta 0")


# The command ``recordwise loss POLICY name=value ...``.


Values = Annotated[
    list[str] | None,
    typer.Argument(
        help="The record: emp=1000 naics=441110; with a ledger also emp@2025=4 emp@2026=5.", show_default=False
    ),
]


@ends_well
def loss(
    policy: Annotated[
        Path,
        typer.Argument(
            help="A release's folder or policy.json, a policy alone, or a ledger of a series.",
            show_default=False,
        ),
    ],
    values: Values = None,
    delta: Annotated[float, typer.Option(parser=plain_float, help="The delta at which epsilon is stated.")] = 1e-5,
    formula: Formula = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the bound of the papers instead of the tight one.")
    ] = False,
    firm: Annotated[
        Path | None,
        typer.Option(
            "--firm", help="A CSV file with the establishments of one firm: its loss as a whole.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what a publication can reveal about a record or firm.

    In words first, then its loss and its epsilon.
    """
    import json

    from recordwise.cli import screen
    from recordwise.release.tables import PRIVATE

    if policy.is_dir():
        policy = policy / "policy.json"
    if is_ledger(policy):
        _history(policy, values or [], delta, firm, as_json=as_json)
        return
    which = "paper" if paper else "tight"
    known = read_policy(policy, which)
    if firm is None:
        found = report_of_file(policy, which, values or [], delta)
    else:
        found = _firm(policy, which, known, firm, values, delta)
    label = read_privacy_label(policy)
    if as_json:
        typer.echo(json.dumps({"privacy_label": label, **found}))
        return
    if label not in (PRIVATE, None):
        screen.note(
            f"{label}. The numbers below would apply to tables drawn from the secure source; these tables carry no guarantee."
        )
    if firm is None:
        show_loss(found, formula=formula)
    else:
        show_firm(found)


def _history(path: Path, values: list[str], delta: float, firm: Path | None, *, as_json: bool) -> None:
    import json

    from recordwise.errors import ParameterError

    if firm is not None:
        raise ParameterError(parameter="--firm", problem="needs policy.json of a release, not a ledger")
    from recordwise.ledger.entries import periods_of, series_name

    events = read_events(path)
    own, followed = followed_history(events, values)
    found = history_loss_report(series_name(events), periods_of(events), own, delta, followed)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        show_history(found)


def _firm(
    path: Path, which: str, known: "Policy", firm: Path, values: list[str] | None, delta: float
) -> dict[str, Any]:
    from recordwise.errors import ParameterError

    if values:
        raise ParameterError(
            parameter="--firm", problem="excludes a record", advice="Write every establishment into the file."
        )
    joint = read_firm_policy(path, which)
    units = read_units(firm, known, joint.columns() if joint else (), read_lists(path), read_bounds(path))
    found = firm_loss_report(known, joint, units, delta)
    stages = _all_stages(path, _described(path))
    if stages is None or stages.firms is None:
        return found
    return _with_stages(found, firm_loss_report(stages.policy(), stages.firms, units, delta))
