"""Verification of a ledger and the releases that refer to it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import RecordwiseError
from recordwise.ledger.chain import Event
from recordwise.ledger.entries import (
    PREFLIGHT,
    SERIES_NAME,
    band_tables_in,
    count_looks,
    reserved_in,
    series_of,
    terms_before,
    wrong_looks,
)
from recordwise.ledger.ledger import Ledger, amount_bounds, within
from recordwise.policy.bands import BandTable
from recordwise.policy.json import Bands, PolicyFile
from recordwise.policy.policy import Policy
from recordwise.release.content import NAME as DATA_PACKAGE
from recordwise.release.content import Content, datapackage_json
from recordwise.release.files import UNREADABLE, other_names, read_release
from recordwise.release.formats import Format, known_formats
from recordwise.release.formats.parquet import read_tables
from recordwise.release.formats.registry import REQUIRED, UnreadableFileError, files_of, files_to_write, privacy_labels
from recordwise.release.published import Published
from recordwise.release.release import Release
from recordwise.release.staging import file_problems
from recordwise.release.tables import (
    PARTS,
    POLICIES,
    TABLES,
    accuracy,
    digest_of,
    facts_of,
    told_digests,
    without_fits,
    without_names,
)

KINDS = ("opened", "looked", "preflight", "charged", "reserved", "released", "failed")


def verify(path: str | Path, *, against: Sequence[str | Path] = ()) -> list[str]:
    """Return every problem of a ledger and its release folders."""
    try:
        ledger = Ledger.existing(path)
        problems = ledger.problems()
        events = [] if problems else ledger.history()
        ledger.close()
    except RecordwiseError as error:
        return [str(error)]
    if problems:
        return problems
    problems = wrong_order(events) + wrong_terms(events) + wrong_sums(events) + wrong_looks(events)
    for folder in against:
        problems += [f"{folder}: {problem}" for problem in folder_problems(Path(folder), events)]
    return problems


def wrong_order(events: list[Event]) -> list[str]:
    """Return events that break the order of terms, charges and closings."""
    problems, waiting = [], set()
    for event in events:
        if event.kind not in KINDS or (event.sequence == 1 and event.kind != "opened"):
            problems.append(f"event {event.sequence} is out of place ({event.kind})")
        elif event.kind == "charged":
            waiting.add(event.sequence)
        elif event.kind in ("released", "failed"):
            if event.body.get("charge") not in waiting:
                problems.append(f"event {event.sequence} closes a charge that is not open")
            waiting.discard(event.body.get("charge"))
    return problems


def wrong_terms(events: list[Event]) -> list[str]:
    """Return charges that violate the terms of their period.

    After the first charge of a period, its dataset and budget stay the same and its schema only grows; each
    charge is stated in the terms of its period.
    """
    problems: list[str] = []
    terms: dict[Any, dict[str, Any]] = {}
    charged: set[Any] = set()
    for event in events:
        period = event.body.get("period")
        known = terms.get(period)
        if event.kind == "opened" and period in charged and not _continues(known or {}, event.body):
            problems.append(f"event {event.sequence} changes the terms of earlier charges")
        elif event.kind == "opened":
            terms[period] = event.body
        elif event.kind == "charged" and known is None:
            problems.append(f"event {event.sequence} charges a period without terms")
        elif (
            event.kind == "charged" and known is not None and not within(event.body.get("schema"), known.get("schema"))
        ):
            problems.append(f"event {event.sequence} is stated in a schema other than that of the terms")
        if event.kind == "charged":
            charged.add(period)
    names = {
        series_of(event.body) for event in events if event.kind == "opened" and event.body.get("period") in charged
    }
    if len(names - {None}) > 1:
        problems.append("its periods belong to different series")
    return problems


FREE = ("schema", "format", "guarantee", SERIES_NAME)
AMENDED = ("budget", "budget_bands", "declared", "amendments")


def _continues(known: dict[str, Any], terms: dict[str, Any]) -> bool:
    """Return whether terms are those before, with a larger schema, or amend their budget and say so."""
    free = (*FREE, *AMENDED) if _amends(known, terms) else FREE

    def fixed(body: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in body.items() if name not in free} | {"series": series_of(body)}

    later = known.get("format", 0) <= terms.get("format", 0)
    return later and fixed(terms) == fixed(known) and within(known.get("schema"), terms.get("schema"))


def _amends(known: dict[str, Any], terms: dict[str, Any]) -> bool:
    """Return whether terms list one more amendment, of the budget before."""
    before, after = known.get("amendments", []), terms.get("amendments", [])
    return len(after) == len(before) + 1 and after[:-1] == before and after[-1].get("budget") == known.get("budget")


def terms_at(events: list[Event], sequence: int) -> dict[str, Any]:
    """The terms in force at a charge: the latest of its period."""
    found = terms_before(events, sequence, period=events[sequence - 1].body.get("period"))
    return {} if found is None else found.body


def wrong_sums(events: list[Event]) -> list[str]:
    """Return charges with wrong running sums or sums beyond the budget."""
    problems: list[str] = []
    spent: dict[Any, Policy] = {}
    last: dict[Any, int] = {}
    bands: dict[str, BandTable] = {}
    for event in events:
        try:
            bands |= band_tables_in([event])
            period = event.body.get("period")
            if event.kind == "opened" and len(event.body.get("amendments", ())) and period in spent:
                # What was promised until then holds, and the new budget is not below what was spent (T-AMEND).
                problems += _beyond_budget(events, event.sequence - 1, period, spent[period], bands)
                problems += _beyond_budget(events, event.sequence, period, spent[period], bands)
            if event.kind != "charged":
                continue
            spent[period] = spent.get(period, Policy()) + Policy.from_json(event.body["policy"], bands)
            if Policy.from_json(event.body["spent"], bands) != spent[period]:
                problems.append(f"event {event.sequence} states a sum that differs from that of the charges")
        except (RecordwiseError, KeyError, TypeError):
            return [*problems, f"event {event.sequence} holds a policy that cannot be read"]
        last[period] = event.sequence
    for period in last:
        problems += _beyond_budget(events, len(events), period, spent[period], bands)
    return list(dict.fromkeys(problems))


def _beyond_budget(events: list[Event], at: int, period: Any, spent: Policy, bands: Bands) -> list[str]:
    """Return whether charges and reserves exceed the budget at an event."""
    found = terms_before(events, at, period=period)
    terms = {} if found is None else found.body
    if terms.get("budget") is None:
        return []
    of = "" if period is None else f" of period {period}"
    if not _within_budget(spent, terms, bands):
        return [f"the charges{of} exceed the budget"]
    reserved = reserved_in(events[:at], period, bands)
    if reserved != Policy() and not _within_budget(spent + reserved, terms, bands):
        return [f"the charges{of} exceed what the budget leaves next to the reserve for revisions"]
    return []


def _within_budget(spent: Policy, terms: dict[str, Any], bands: Bands) -> bool:
    try:
        budget, bounds = Policy.from_json(terms["budget"], bands), amount_bounds(terms.get("schema"))
        return bool(budget.dominates(spent, bounds=bounds, seconds=60.0))
    except (RecordwiseError, TypeError):
        return False


def folder_problems(folder: Path, events: list[Event]) -> list[str]:
    """Return disagreements between folder and ledger, or within the folder."""
    try:
        release, policies = Published.load(folder / "release.json"), PolicyFile.load(folder / "policy.json")
        length, digest = release.head.length, release.head.digest
    except (*UNREADABLE, RecordwiseError):
        return ["release.json or policy.json cannot be read or does not refer to a ledger"]
    if length > len(events):
        return [
            f"was released when the ledger had {length} events; it has only {len(events)} now, so some were removed"
        ]
    if length < 1 or events[length - 1].digest != digest:
        return [
            f"refers to an event {length} that differs from the ledger's, so the ledger was replaced or rolled back"
        ]
    entry = events[length - 1]
    if entry.kind != "released":
        return [f"names event {length}, which is not a release"]
    try:
        return _wrong_facts(release, policies, entry, events) + _wrong_tables(folder, release, policies, entry)
    except UnreadableFileError as error:
        return [f"{error} cannot be read"]
    except (*UNREADABLE, RecordwiseError):
        return ["its files cannot be read"]


def _wrong_facts(release: Published, policies: PolicyFile, entry: Event, events: list[Event]) -> list[str]:
    """Return facts in release.json and policy.json that contradict the ledger."""
    opened, charged = terms_at(events, entry.body["charge"]), events[entry.body["charge"] - 1].body
    looks = count_looks(events[: entry.body["charge"]])
    pairs = {
        # Releases of earlier versions say only whether there was a look other than a preflight.
        "release.json states different looks": (looks if release.looks is None else release.looks, looks),
        "release.json says otherwise whether records were viewed": (_looks_agree(release, looks), bool(looks)),
        "release.json states a different digest": (release.digest, entry.body["digest"]),
        "release.json carries a different privacy label": (release.privacy_label, entry.body["mark"]),
        "policy.json carries a different privacy label": (policies.privacy_label, entry.body["mark"]),
        # A tier states the loss of its own law; its charge is 0 (T-TIER).
        "policy.json states a different policy": (policies.tight_form, charged.get("tier", charged)["policy"]),
        "release.json is a tier of a different charge": (
            None if release.tier_of is None else release.tier_of[1],
            charged.get("tier", {}).get("of"),
        ),
        "release.json states another step of the series": (
            release.form.get("step"),
            charged.get("step"),
        ),
        "release.json refines a different charge": (
            None if release.refinement is None else release.refinement.charge,
            charged.get("refines"),
        ),
    }
    # Ledgers of earlier versions do not have this digest.
    if "facts" in entry.body:
        noted = {name: entry.body["facts"][name] for name in ("of", "digest")}
        pairs["release.json states other facts, such as lists of codes or the level of intervals,"] = (
            facts_of(release.form, noted["of"]),
            noted,
        )
    # Ledgers of earlier versions state the schema once instead of with each charge.
    known = {
        "plan": charged["details"],
        "schema": charged.get("schema", opened["schema"]),
        "period": (charged.get("period"), charged.get("revision")),
        "dataset": opened["dataset"],
        "budget": opened["budget"],
    }
    for name, found in release.terms.items():
        says = "describes" if name == "plan" else "names"
        pairs[f"release.json {says} a different {name}"] = found, known[name]
    return [f"{problem} than the ledger" for problem, (found, true) in pairs.items() if found != true]


def _looks_agree(release: Published, looks: dict[str, int]) -> bool:
    """Return whether records were looked at, corrected for earlier versions."""
    stated = bool(looks) if release.looked_at_records is None else release.looked_at_records
    return stated if release.looks is not None or set(looks) - {PREFLIGHT} else bool(looks)


def _wrong_tables(folder: Path, release: Published, policies: PolicyFile, entry: Event) -> list[str]:
    """Check the tables' digest and their files in other formats."""
    files, formats = read_tables(folder), known_formats().values()
    stored = without_names(files, release.name_columns)
    basic = {name: stored[name] for name in release.basic_names if name in stored}
    tables = {name: table for name, table in stored.items() if name not in basic}
    problems = []
    drawn = {name: without_fits(table, release.added) for name, table in tables.items()}
    policy = policies.policy()
    if digest_of(drawn, policy) != entry.body["digest"]:
        problems.append("its tables are not those that were released")
    elif release.fit is not None and digest_of(tables, policy) != release.fit.digest:
        problems.append("its fitted columns are not those release.json was written with")
    if release.basic is not None and digest_of(basic, policy) != release.basic.digest:
        problems.append("its basic tables are not those release.json was written with")
    labels = privacy_labels(folder, formats)
    wrong = [name for name, label in labels.items() if label != entry.body["mark"]]
    problems += [f"{name} carries a different privacy label than the ledger" for name in wrong]
    found = read_release(release, policies, stored)
    problems += [f"the names of codes in {name} are not its labels" for name in other_names(found, files)]
    # What is stated of other tables is wrong with them.
    problems = problems or _wrong_statements(found, drawn, release, policies, entry) + _wrong_basic(found)
    content, package = found.content(), folder / DATA_PACKAGE
    if (
        not problems
        and package.exists()
        and _json(package) != datapackage_json(content, {path.name for path in folder.iterdir()})
    ):
        problems.append(f"{package.name} does not describe its tables")
    for each, path in files_of(folder, formats):
        if each.name != REQUIRED and not _same(each, path, content):
            problems.append(f"{path.name} differs from the Parquet file next to it")
    # Releases of earlier versions do not list their files. A problem that is already reported is not reported twice.
    return problems or file_problems(folder, release.files)


STATED = {
    POLICIES: "policy.json states other losses than the ledger noted, as in the paper or of firms",
    TABLES: "its columns or what is said about them are not those that were released",
    PARTS: "what release.json says about each number, for its page, is not what was released",
}


def _wrong_statements(
    found: Release, drawn: Mapping[str, pa.Table], release: Published, policies: PolicyFile, entry: Event
) -> list[str]:
    """Check what is stated about losses, errors and columns."""
    wrong = ["release.json states other errors than its tables"] if _other_errors(found, release) else []
    # Ledgers of earlier versions do not have these digests, and their releases no such entries.
    noted = entry.body.get("facts", {}).get("digests")
    if noted is None:
        return wrong
    tables = [replace(table, data=drawn[table.name]) for table in found.tables]
    known = told_digests(policies.form, tables, found.parts)
    wrong += [problem for name, problem in STATED.items() if name in noted and noted[name] != known[name]]
    same = release.flags == {table.name: table.flags() for table in found.tables}
    return wrong if same or STATED[TABLES] in wrong else [*wrong, STATED[TABLES]]


def _wrong_basic(found: Release) -> list[str]:
    """Check that basic tables are the fitted columns rounded, with their status."""
    from recordwise.release.basic import made_again

    if not found.basic_tables or all(
        made.name == each.name and made.data.equals(each.data)
        for made, each in zip(made_again(found), found.basic_tables, strict=True)
    ):
        return []
    return ["its basic tables do not follow from its fitted columns"]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _other_errors(found: Release, release: Published) -> bool:
    """Return whether stated errors are not those of the tables, which other computers may add up otherwise."""
    for table in found.tables:
        for name, true in accuracy(table).items():
            stated = release.accuracy[table.name][name].to_json()
            for kind, value in true.to_json().items():
                told = stated[kind]
                if (told is None) != (value is None):
                    return True
                if told is not None and value is not None and not math.isclose(told, value, rel_tol=ALIKE):
                    return True
    return False


ALIKE = 1e-9
"""The relative difference of errors that rounding may make."""


def _same(each: Format, path: Path, content: Content) -> bool:
    """Return whether a file is in the release with this content."""
    try:
        parts = {name: part for _, name, part in files_to_write(content, (each,))}
        return path.name in parts and each.same(parts[path.name], path)
    except MemoryError:
        raise
    except Exception:
        # Each reader has errors of its own, and what it cannot read is not what was written.
        return False
