"""Reader of a saved release that checks it is unchanged."""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from recordwise.errors import LedgerError, OutputError, ParameterError, SourceError, expect_kind
from recordwise.policy.json import PAPER, TIGHT, PolicyFile
from recordwise.policy.policy import compose
from recordwise.release.content import Content
from recordwise.release.formats.format import Format
from recordwise.release.formats.parquet import read_tables
from recordwise.release.formats.registry import known_formats, privacy_labels, require_packages, require_storable
from recordwise.release.page.history import History
from recordwise.release.published import Published
from recordwise.release.release import Release, SavedValues, noted_facts
from recordwise.release.staging import remove_stale
from recordwise.release.tables import (
    PRIVATE,
    ReleasedTable,
    digest_of,
    name_columns,
    parts_from_json,
    with_names,
    without_fits,
    without_names,
)

if TYPE_CHECKING:
    from recordwise.ledger.entries import Charge
    from recordwise.ledger.ledger import Ledger

UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    pa.ArrowException,
)
"""What reading a damaged or unrelated file can raise; all are treated alike."""


def load_release(folder: str | Path) -> Release:
    """Return a folder's release as it was saved.

    With fitted columns and basic tables where it has them; refused where its tables or its policy were changed
    since.

    Args:
        folder: A folder that ``Release.save`` wrote.

    Returns:
        The release.
    """
    expect_kind(folder, (str, Path), parameter="folder", wanted="the path of a folder")
    place, formats = Path(folder), known_formats().values()
    try:
        with ThreadPoolExecutor(1) as pool:
            # Arrow reads tables on one processor while Python reads the policy, which is kept, on another.
            reading = pool.submit(read_tables, place)
            published, policies = Published.load(place / "release.json"), PolicyFile.load(place / "policy.json")
            if published.known:
                policies.policy(TIGHT)
                if not 0 < published.confidence < 1:
                    raise ValueError("interval_level")
            stored = reading.result()
        tables = without_names(stored, published.name_columns)
        release = read_release(published, policies, tables) if published.known else None
        fit, basics = published.fit, published.basic
        said = {
            "release.json": published.privacy_label,
            "policy.json": policies.privacy_label,
            **privacy_labels(place, formats),
        }
    except UNREADABLE:
        raise SourceError(source=f"'{folder}'", problem="it is not a release folder, or it is damaged") from None
    if release is None:
        raise SourceError(source=f"'{folder}'", problem="it was written by an incompatible version of recordwise")
    if set(said.values()) != {release.privacy_label}:
        raise SourceError(source=f"'{folder}'", problem=disagreement(said), advice="Use the original copy.")
    if other_names(release, stored):
        raise SourceError(source=f"'{folder}'", problem="its names of codes are not those that were saved")
    drawn = {table.name: without_fits(table.data, published.added) for table in release.tables}
    if digest_of(drawn, release.policy) != release.digest:
        raise SourceError(source=f"'{folder}'", problem="its tables or its policy are not those that were released")
    fitted = {table.name: table.data for table in release.tables}
    if fit is not None and digest_of(fitted, release.policy) != fit.digest:
        raise SourceError(source=f"'{folder}'", problem="its fitted columns are not those that were saved")
    basic = {table.name: table.data for table in release.basic_tables}
    if basics is not None and digest_of(basic, release.policy) != basics.digest:
        raise SourceError(source=f"'{folder}'", problem="its basic tables are not those that were saved")
    if release.firms is not None and release.firms.policy() != release.policy:
        raise SourceError(source=f"'{folder}'", problem="what it says about firms does not add up to its policy")
    if not policies.states_pure_losses:
        raise SourceError(
            source=f"'{folder}'", problem="what it says about pure losses does not follow from its policy"
        )
    if release.lattice is not None and release.lattice.policy() != release.policy:
        raise SourceError(source=f"'{folder}'", problem="what it says about its noise does not add up to its policy")
    if not release.parts:
        return release
    told, refinement = compose([part.policy for part in release.parts]), release.published.refinement
    # The page of a refined release is about all stages, which its averages tell.
    if told != (release.policy if refinement is None else refinement.total.policy()):
        raise SourceError(source=f"'{folder}'", problem="the parts saved for its page do not add up to its policy")
    if refinement is not None:
        return release
    # The policy is equal, but its terms are in the order of the plan again, which is the order the page uses.
    return replace(release, policy=told)


def other_names(release: Release, stored: Mapping[str, pa.Table]) -> list[str]:
    """Return the tables whose files have other names of codes than the labels of the release."""
    # Releases of earlier versions have no such columns.
    every = (*release.tables, *release.basic_tables) if release.words.names else ()
    wanted = {table.name: with_names(table, release.words).data for table in every}
    return [
        table.name
        for table in every
        for name in name_columns(table, release.words).values()
        if name not in stored[table.name].column_names
        or not stored[table.name].column(name).equals(wanted[table.name].column(name))
    ]


def disagreement(said: Mapping[str, str]) -> str:
    """The files that label the release private, and those that do not."""
    private = [name for name, label in said.items() if label == PRIVATE]
    other = [name for name, label in said.items() if label != PRIVATE]
    return f"marked private: {', '.join(private) or 'no file'}; not marked private: {', '.join(other)}"


def read_release(published: Published, policies: PolicyFile, tables: dict[str, pa.Table]) -> Release:
    """Build a release from release.json, policy.json and tables, unchecked."""
    page, bands = published.page, policies.bands
    return Release(
        tables=tuple(_table(name, tables[name], each) for name, each in published.variables.items()),
        policy=policies.policy(TIGHT),
        paper_policy=policies.policy(PAPER),
        published=published.description(),
        digest=published.digest,
        head=published.head,
        private=published.privacy_label == PRIVATE,
        parts=() if page is None else parts_from_json(page, bands),
        lattice=policies.lattice,
        stated_values=None if policies.values_form is None else SavedValues(policies.values_form, bands),
        firms=policies.firms,
        basic_tables=tuple(_table(name, tables[name], each) for name, each in published.basic_names.items()),
        words=published.words,
        history=None if page is None or "history" not in page else History.from_json(page["history"]),
    )


def _table(name: str, data: pa.Table, variables: Sequence[str]) -> ReleasedTable:
    """Return a table whose keys are the columns before the variables."""
    first = min((data.column_names.index(each) for each in variables), default=0)
    keys = tuple(data.column_names[:first])
    return ReleasedTable(name=name, keys=keys, variables=tuple(variables), data=data.replace_schema_metadata(None))


# Drawn tables on the disk, next to the ledger, until the folder of their release is complete. They hold what will be
# published and nothing else, and only the owner may read them. A release that was charged and kept here is finished
# from them, without drawing again; no key or seed of the noise is kept anywhere.


def recoverable_folder(ledger: "Ledger", charge: "Charge") -> Path:
    """The folder of the drawn tables of a charge."""
    from recordwise.ledger.entries import tables_of

    return tables_of(ledger.real_path, charge.sequence)


def write_recoverable(release: Release, ledger: "Ledger", charge: "Charge") -> bool:
    """Write the drawn tables next to the ledger; False on failure."""
    sweep(ledger)
    try:
        release.write_recoverable(recoverable_folder(ledger, charge))
    except OutputError:
        return False
    return True


def recover(ledger: "Ledger", charge: "Charge") -> Release:
    """Return the release whose tables were stored for a charge.

    Recorded in the ledger if it was not yet.

    Raises:
        SourceError: The files were changed.
        LedgerError: They are not those of the charge.
    """
    from recordwise.ledger.entries import remove_dead

    place = recoverable_folder(ledger, charge)
    found = load_release(place)
    remove_dead(ledger.real_path)
    closed = ledger.closing(charge)
    if closed is None:
        # The tables were not recorded yet: they carry the head of the chain at their charge.
        if found.head != charge.head:
            raise _foreign(ledger, place)
        facts = noted_facts(found)
        head = ledger.record_release(charge, digest=found.digest, privacy_label=found.privacy_label, facts=facts)
        return replace(found, head=head)
    if closed.kind != "released" or closed.body.get("digest") != found.digest:
        raise _foreign(ledger, place)
    return replace(found, head=replace(found.head, length=closed.sequence, digest=closed.digest))


def _foreign(ledger: "Ledger", folder: Path) -> LedgerError:
    return LedgerError(
        path=ledger.path,
        problem=f"did not record the tables in {folder.name}",
        advice="They were changed or belong to another ledger. Nothing was published and nothing was charged.",
    )


def forget(ledger: "Ledger", charge: "Charge") -> None:
    """Remove the stored tables, their name first, once saved."""
    place = recoverable_folder(ledger, charge)
    gone = place.with_name(f".{place.name}.staging-{os.getpid()}-0")
    try:
        with suppress(OSError):
            os.rename(place, gone)
        shutil.rmtree(gone, ignore_errors=True)
    finally:
        # Nothing is left where an interrupt comes in between.
        shutil.rmtree(gone, ignore_errors=True)


def sweep(ledger: "Ledger") -> None:
    """Remove what killed processes left half-written or half-removed; what is complete stays."""
    from recordwise.ledger.entries import UNFINISHED_SUFFIX

    folder, name = os.path.split(ledger.real_path)
    pattern = re.compile(rf"\.({re.escape(name)}{re.escape(UNFINISHED_SUFFIX)}\d+)\.staging-\d+-\d+")
    with suppress(OSError):
        for target in {found[1] for each in os.listdir(folder) if (found := pattern.fullmatch(each))}:
            remove_stale(Path(folder) / target)


# Writes tables of a saved release in another format, to a file outside its folder. Nothing is drawn and nothing is
# spent.


def export(content: Content, file: str | Path, *, format: str, table: str | None = None) -> Path:
    """Write a table, or all if the format has one file.

    Args:
        content: What the release says.
        file: A file that does not exist yet.
        format: The name of a format.
        table: The name of a table; needed where the release has several and the format has a file for each.

    Returns:
        The file.

    Raises:
        ParameterError: The format or the table is unknown, or the format cannot hold the table.
        OutputError: The file exists or cannot be written.
    """
    known = known_formats()
    if format not in known:
        raise ParameterError(
            parameter="format", problem=f"is unknown: {format!r}", advice=f"Choose from {', '.join(known)}."
        )
    chosen, target = known[format], Path(file)
    require_packages((chosen,))
    part = _choose_content(content, chosen, table)
    require_storable(part, (chosen,))
    if os.path.lexists(target):
        raise OutputError(folder=str(target), problem="already exists", advice="Choose a new file.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
            made = Path(staging) / target.name
            chosen.write(part, made)
            os.rename(made, target)
    except OSError as error:
        raise OutputError(
            folder=str(target), problem=f"cannot be written ({error.strerror})", advice="Nothing was spent."
        ) from None
    return target


def _choose_content(content: Content, chosen: Format, table: str | None) -> Content:
    names = [each.name for each in content.tables]
    if table is not None and table not in names:
        raise ParameterError(parameter="table", problem=f"is not in the release: {table!r}", advice=_tables_text(names))
    if table is not None:
        return content.only(table)
    if len(names) > 1 and not chosen.whole:
        raise ParameterError(
            parameter="table",
            problem=f"must be given: {chosen.name} has a file for each table",
            advice=_tables_text(names),
        )
    return content


def _tables_text(names: list[str]) -> str:
    return f"The tables are {', '.join(names)}."
