"""Reads a release back from its folder, for later post-processing, and checks that it is unchanged."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import SourceError
from recordwise.ledger.chain import Head
from recordwise.plan.words import Publication, Words
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.json import bands_from_json
from recordwise.policy.lattice import LatticePolicy
from recordwise.policy.policy import Policy
from recordwise.release.formats import known_formats
from recordwise.release.formats.parquet import read_tables
from recordwise.release.formats.registry import privacy_labels
from recordwise.release.page.history import History
from recordwise.release.release import FORMAT, Release
from recordwise.release.tables import PRIVATE, ReleasedTable, digest_of, without_fits

WRITTEN_ANEW = (
    *("recordwise_release", "mark", "digest", "ledger", "flags", "accuracy"),
    *("page", "sha256", "units", "publication"),
)
"""Entries that ``Release.to_json`` itself adds to the description."""
UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException)


def load_release(folder: str | Path) -> Release:
    """The release a folder holds, as it was saved, with fitted columns and basic tables where it has them; refused where its tables
    or its policy were changed since.

    Args:
        folder: A folder that ``Release.save`` wrote.

    Returns:
        The release.
    """
    place, formats = Path(folder), known_formats().values()
    try:
        stated, policies = (json.loads((place / name).read_text()) for name in ("release.json", "policy.json"))
        known, tables = stated["recordwise_release"] == FORMAT, read_tables(place)
        release = read_release(stated, policies, tables) if known else None
        said = {"release.json": stated["mark"], "policy.json": policies["mark"], **privacy_labels(place, formats)}
    except UNREADABLE:
        raise SourceError(source=f"'{folder}'", problem="it is not a release folder, or it is damaged") from None
    if release is None:
        raise SourceError(source=f"'{folder}'", problem="it was written by an incompatible version of recordwise")
    if set(said.values()) != {release.privacy_label}:
        raise SourceError(source=f"'{folder}'", problem=disagreement(said), advice="Use the original copy.")
    fit = release.description.get("consistent")
    drawn = {table.name: without_fits(table.data, fit) for table in release.tables}
    if digest_of(drawn, release.policy) != release.digest:
        raise SourceError(source=f"'{folder}'", problem="its tables or its policy are not those that were released")
    fitted = {table.name: table.data for table in release.tables}
    if fit is not None and digest_of(fitted, release.policy) != fit["digest"]:
        raise SourceError(source=f"'{folder}'", problem="its fitted columns are not those that were saved")
    basic = {table.name: table.data for table in release.basic_tables}
    if basic and digest_of(basic, release.policy) != release.description["basic"]["digest"]:
        raise SourceError(source=f"'{folder}'", problem="its basic tables are not those that were saved")
    if release.firms is not None and release.firms.policy() != release.policy:
        raise SourceError(source=f"'{folder}'", problem="what it says about firms does not add up to its policy")
    if release.lattice is not None and release.lattice.policy() != release.policy:
        raise SourceError(source=f"'{folder}'", problem="what it says about its noise does not add up to its policy")
    if not release.parts:
        return release
    told = sum((part.policy for part in release.parts), Policy())
    if told != release.policy:
        raise SourceError(source=f"'{folder}'", problem="the parts saved for its page do not add up to its policy")
    # The policy is equal, but its terms are in the order of the plan again, which is the order the page uses.
    return replace(release, policy=told)


def disagreement(said: Mapping[str, str]) -> str:
    """The files that label the release private, and those that do not."""
    private = [name for name, label in said.items() if label == PRIVATE]
    other = [name for name, label in said.items() if label != PRIVATE]
    return f"marked private: {', '.join(private) or 'no file'}; not marked private: {', '.join(other)}"


def read_release(stated: dict[str, Any], policies: dict[str, Any], tables: dict[str, pa.Table]) -> Release:
    """The release that release.json, policy.json and the tables of a folder make; nothing is checked."""
    from recordwise.release.page.kept import parts_of

    # The first version saved nothing for the page.
    page, bands = stated.get("page"), bands_from_json(policies.get("bands"))
    return Release(
        tables=tuple(_table(name, tables[name], list(stated["accuracy"][name])) for name in stated["accuracy"]),
        policy=Policy.from_json(policies["tight"], bands),
        paper_policy=Policy.from_json(policies["paper"], bands),
        description={name: value for name, value in stated.items() if name not in WRITTEN_ANEW},
        digest=str(stated["digest"]),
        head=Head(length=int(stated["ledger"]["length"]), digest=str(stated["ledger"]["digest"])),
        private=stated["mark"] == PRIVATE,
        parts=() if page is None else parts_of(page, bands),
        lattice=LatticePolicy.from_json(policies["lattice"], bands) if "lattice" in policies else None,
        firms=FirmPolicy.from_json(policies["firms"], bands) if "firms" in policies else None,
        basic_tables=tuple(_table(name, tables[name], list(each)) for name, each in _basic(stated).items()),
        words=_words(stated),
        history=History.from_json(page["history"]) if page is not None and "history" in page else None,
    )


def _basic(stated: dict[str, Any]) -> dict[str, Any]:
    """The variables of each basic table."""
    found: dict[str, Any] = stated.get("basic", {}).get("tables", {})
    return found


def _words(stated: dict[str, Any]) -> Words:
    """Those of a release of the first version are empty."""
    labels, units = stated.get("page", {}).get("labels", {}), stated.get("units", {})
    return Words(
        labels={str(name): str(word) for name, word in labels.items()},
        units={str(name): str(word) for name, word in units.items()},
        publication=Publication.from_json(stated.get("publication", {})),
    )


def _table(name: str, data: pa.Table, variables: list[str]) -> ReleasedTable:
    """The keys are the columns before the first variable; what an external mechanism released has neither."""
    first = min((data.column_names.index(each) for each in variables), default=0)
    keys = tuple(data.column_names[:first])
    return ReleasedTable(name=name, keys=keys, variables=tuple(variables), data=data.replace_schema_metadata(None))
