"""Drawn tables on the disk, beside the ledger, until the folder of their release is complete.

They hold what will be published and nothing else, and only the owner may read them. A release that was charged and kept here is
finished from them, without drawing again; no key or seed of the noise is kept anywhere.
"""

import os
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from recordwise.errors import LedgerError, OutputError
from recordwise.ledger.charges import Charge
from recordwise.ledger.drawing import UNFINISHED, tables_of
from recordwise.ledger.ledger import Ledger
from recordwise.release.release import Release
from recordwise.release.staging import remove_stale


def place_of(ledger: Ledger, charge: Charge) -> Path:
    """The folder of the drawn tables of a charge."""
    return tables_of(ledger.place, charge.sequence)


def keep(release: Release, ledger: Ledger, charge: Charge) -> bool:
    """Write the drawn tables beside the ledger; False where that fails, and the release exists in memory only."""
    sweep(ledger)
    try:
        release.keep(place_of(ledger, charge))
    except OutputError:
        return False
    return True


def taken_up(ledger: Ledger, charge: Charge) -> Release:
    """The release whose tables were kept for a charge, recorded in the ledger if it was not yet.

    Raises:
        SourceError: The files were changed.
        LedgerError: They are not those of the charge.
    """
    from recordwise.release.files import load_release

    place = place_of(ledger, charge)
    found = load_release(place)
    closed = ledger.closing(charge)
    if closed is None:
        # The tables were not recorded yet: they carry the head of the chain at their charge.
        if found.head != charge.head:
            raise _foreign(ledger, place)
        head = ledger.released(charge, digest=found.digest, privacy_label=found.privacy_label)
        return replace(found, head=head)
    if closed.kind != "released" or closed.body.get("digest") != found.digest:
        raise _foreign(ledger, place)
    return replace(found, head=replace(found.head, length=closed.sequence, digest=closed.digest))


def _foreign(ledger: Ledger, place: Path) -> LedgerError:
    return LedgerError(
        path=ledger.path,
        problem=f"did not record the tables in {place.name}",
        advice="They were changed or belong to another ledger. Nothing was published and nothing was charged.",
    )


def forget(ledger: Ledger, charge: Charge) -> None:
    """Remove the tables once their folder is complete. The name goes first, so that no half of them is taken up."""
    place = place_of(ledger, charge)
    gone = place.with_name(f".{place.name}.staging-{os.getpid()}-0")
    with suppress(OSError):
        os.rename(place, gone)
        shutil.rmtree(gone, ignore_errors=True)


def sweep(ledger: Ledger) -> None:
    """Remove what killed processes left half-written or half-removed; what is complete stays."""
    folder, name = os.path.split(ledger.place)
    pattern = re.compile(rf"\.({re.escape(name)}{re.escape(UNFINISHED)}\d+)\.staging-\d+-\d+")
    with suppress(OSError):
        for target in {found[1] for each in os.listdir(folder) if (found := pattern.fullmatch(each))}:
            remove_stale(Path(folder) / target)
