"""Verifies a ledger: its chain, its sums, its budget, and the release folders that refer to it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import RecordwiseError
from recordwise.ledger.chain import Event
from recordwise.ledger.ledger import Ledger, amount_bounds, within
from recordwise.policy.policy import Policy
from recordwise.release.content import Content
from recordwise.release.digests import file_problems
from recordwise.release.files import read_release
from recordwise.release.formats import Format, known_formats
from recordwise.release.formats.parquet import read_tables
from recordwise.release.formats.registry import REQUIRED, files_of, privacy_labels, written
from recordwise.release.tables import ADDED, FITTED, digest_of

KINDS = ("opened", "looked", "preflight", "charged", "released", "failed")
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecordwiseError)
"""What reading a damaged or unrelated file can raise; all are treated alike."""


def verify(path: str | Path, *, against: Sequence[str | Path] = ()) -> list[str]:
    """Every problem found; an empty list means that the ledger and the given release folders are in order."""
    try:
        ledger = Ledger.existing(path)
        problems = ledger.problems()
        events = [] if problems else ledger.history()
        ledger.close()
    except RecordwiseError as error:
        return [str(error)]
    if problems:
        return problems
    problems = wrong_order(events) + wrong_terms(events) + wrong_sums(events, ledger.budget)
    for folder in against:
        problems += [f"{folder}: {problem}" for problem in folder_problems(Path(folder), events)]
    return problems


def wrong_order(events: list[Event]) -> list[str]:
    """A ledger begins with its terms; every release or failure closes one earlier charge that was still open."""
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
    """After the first charge, dataset and budget stay the same and the schema only grows; each charge is stated in it."""
    problems: list[str] = []
    known: dict[str, Any] = {}
    charged = False
    for event in events:
        if event.kind == "opened" and charged and not _continues(known, event.body):
            problems.append(f"event {event.sequence} changes the terms of earlier charges")
        elif event.kind == "opened":
            known = event.body
        elif event.kind == "charged" and not within(event.body.get("schema"), known.get("schema")):
            problems.append(f"event {event.sequence} is stated in a schema other than that of the terms")
        charged |= event.kind == "charged"
    return problems


def _continues(known: dict[str, Any], terms: dict[str, Any]) -> bool:
    return {**terms, "schema": None} == {**known, "schema": None} and within(known.get("schema"), terms.get("schema"))


def terms_at(events: list[Event], sequence: int) -> dict[str, Any]:
    """The terms in force at an event."""
    return [event.body for event in events[:sequence] if event.kind == "opened"][-1]


def wrong_sums(events: list[Event], budget: Policy | None) -> list[str]:
    """Each charge states the running sum, and the last sum is within the budget for every possible record."""
    problems: list[str] = []
    spent = Policy()
    for event in events:
        if event.kind != "charged":
            continue
        try:
            spent = spent + Policy.from_json(event.body["policy"])
            if Policy.from_json(event.body["spent"]) != spent:
                problems.append(f"event {event.sequence} states a sum that differs from that of the charges")
        except (RecordwiseError, KeyError):
            return [*problems, f"event {event.sequence} holds a policy that cannot be read"]
    if budget is not None and not _within_budget(spent, budget, terms_at(events, len(events)).get("schema")):
        problems.append("the charges exceed the budget")
    return problems


def _within_budget(spent: Policy, budget: Policy, schema: Any) -> bool:
    try:
        return bool(budget.dominates(spent, bounds=amount_bounds(schema), seconds=60.0))
    except (RecordwiseError, TypeError):
        return False


def folder_problems(folder: Path, events: list[Event]) -> list[str]:
    """Disagreements between a folder and the ledger, or among the folder's own files."""
    try:
        release, policies = (json.loads((folder / name).read_text()) for name in ("release.json", "policy.json"))
        length, digest = int(release["ledger"]["length"]), str(release["ledger"]["digest"])
    except UNREADABLE:
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
        return _wrong_words(release, policies, entry, events) + _wrong_tables(folder, release, policies, entry)
    except UNREADABLE:
        return ["its files cannot be read"]


def _wrong_words(release: dict[str, Any], policies: dict[str, Any], entry: Event, events: list[Event]) -> list[str]:
    """Facts that release.json and policy.json repeat from the ledger must agree with it."""
    opened, charged = terms_at(events, entry.body["charge"]), events[entry.body["charge"] - 1].body
    pairs = {
        "release.json states a different digest": (release["digest"], entry.body["digest"]),
        "release.json carries a different privacy label": (release["mark"], entry.body["mark"]),
        "policy.json carries a different privacy label": (policies["mark"], entry.body["mark"]),
        "policy.json states a different policy": (policies["tight"], charged["policy"]),
        "release.json describes a different plan": (release["plan"], charged["details"]),
        # Ledgers of earlier versions state the schema once instead of with each charge.
        "release.json names a different schema": (release["schema"], charged.get("schema", opened["schema"])),
        **{f"release.json names a different {each}": (release[each], opened[each]) for each in ("dataset", "budget")},
    }
    return [f"{problem} than the ledger" for problem, (found, known) in pairs.items() if found != known]


def _wrong_tables(folder: Path, release: dict[str, Any], policies: dict[str, Any], entry: Event) -> list[str]:
    """Check the digest of the tables on disk, and the files in other formats beside them."""
    stored, formats = read_tables(folder), known_formats().values()
    basic = {name: stored[name] for name in release.get("basic", {}).get("tables", {}) if name in stored}
    tables = {name: table for name, table in stored.items() if name not in basic}
    problems = []
    drawn = {name: without_fits(table, release.get("consistent")) for name, table in tables.items()}
    policy = Policy.from_json(policies["tight"])
    if digest_of(drawn, policy) != entry.body["digest"]:
        problems.append("its tables are not those that were released")
    elif "consistent" in release and digest_of(tables, policy) != release["consistent"]["digest"]:
        problems.append("its fitted columns are not those release.json was written with")
    if basic and digest_of(basic, policy) != release["basic"]["digest"]:
        problems.append("its basic tables are not those release.json was written with")
    labels = privacy_labels(folder, formats)
    wrong = [name for name, label in labels.items() if label != entry.body["mark"]]
    problems += [f"{name} carries a different privacy label than the ledger" for name in wrong]
    content = read_release(release, policies, stored).content()
    for each, path in files_of(folder, formats):
        if each.name != REQUIRED and not _same(each, path, content):
            problems.append(f"{path.name} differs from the Parquet file beside it")
    # Releases of earlier versions do not list their files. A problem that is already reported is not reported twice.
    return problems or file_problems(folder, release.get("sha256", {}))


def without_fits(table: pa.Table, fit: dict[str, Any] | None) -> pa.Table:
    """The columns that were drawn; fitted columns are computed from them afterward and prove nothing."""
    # Fits of earlier versions added one column to each variable, and a variable might be called what another is added today.
    ends = () if fit is None else ADDED if "uncertainty" in fit else (FITTED,)
    names = set(table.column_names)
    return table.drop_columns(sorted({name + end for name in names for end in ends} & names))


def _same(each: Format, path: Path, content: Content) -> bool:
    """Whether a file holds what it should; a file that this release would not have does not."""
    try:
        parts = {name: part for _, name, part in written(content, (each,))}
        return path.name in parts and each.same(parts[path.name], path)
    except UNREADABLE:
        return False
