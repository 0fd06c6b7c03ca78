"""A session on generated or given records in place of a plan's own, with a ledger that is thrown away.

The plan's source is not opened. Its ledger is not touched either, unless the given records are confidential: it notes the look.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from recordwise.errors import ParameterError
from recordwise.plan.file.read import PlanFile
from recordwise.plan.sources import DUCKDB
from recordwise.plan.tuning import NO_LOOK
from recordwise.planning.generated import usual_rows, write_records
from recordwise.planning.origin import read_origin
from recordwise.session import Session
from recordwise.session.looks import enter_look
from recordwise.session.sizes import with_sizes

TITLE = "REHEARSAL, not a release"


@contextmanager
def on_other_records(
    file: PlanFile,
    *,
    records: str | Path | None = None,
    rows: int | None = None,
    seed: int = 0,
    data: str = "confidential",
    command: str = "rehearse",
) -> Iterator[tuple[PlanFile, Session]]:
    """Open a session on generated records of a plan's schema, or on given ones.

    Args:
        file: The plan.
        records: A file of records; generated unless given.
        rows: How many records to generate; by default ten for each cell of the largest table, from 10,000 to a million.
        seed: The seed of generated records.
        data: What given records are. Unless they are declared "public" or "synthetic", the plan's ledger notes the look before they
            are opened, whatever file they are in.
        command: What the look is called in the ledger.

    Yields:
        The plan with its new source, and the session.

    Raises:
        ParameterError: Both records and a number of rows are given.
    """
    if records is not None and rows is not None:
        raise ParameterError(parameter="rows", problem="is for generated records", advice="Leave it out.")
    origin, sized = read_origin(data), replace(file, plan=with_sizes(file.plan))
    if records is not None and origin not in NO_LOOK:
        enter_look(file, command)
    with tempfile.TemporaryDirectory(prefix="recordwise-rehearsal-") as made:
        source = Path(made) / "records.parquet" if records is None else Path(records)
        if records is None:
            write_records(sized, source, usual_rows(sized.plan) if rows is None else rows, seed=seed)
        changed = _in_rehearsal(sized, source, Path(made) / "rehearsal.ledger")
        with Session.from_plan(changed) as session:
            yield changed, session


def _in_rehearsal(file: PlanFile, source: Path, ledger: Path) -> PlanFile:
    """The plan with another source, another ledger, and names that nobody takes for those of a release."""
    words, publication = file.words, file.words.publication
    titled = replace(publication, title=f"{TITLE}: {publication.title or file.dataset}")
    return replace(
        file,
        source=(str(source),),
        ledger=ledger,
        dataset=f"{TITLE}: {file.dataset}",
        series=None if file.series is None else replace(file.series, revision=0),
        outside=None,
        engine=DUCKDB,
        spark=None,
        words=replace(words, publication=titled),
        hidden={},
    )
