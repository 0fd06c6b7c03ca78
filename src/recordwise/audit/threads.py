"""Threads that share a session must each be answered from their own records: an answer to another query was never charged."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from recordwise.audit.audit import Finding, Runs
from recordwise.errors import RecordwiseError
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.plan.query import query
from recordwise.session import Session

THREADS = 4
QUESTIONS = 3
"""Queries per thread, one after the other."""
RECORDS = 10
APART = 10**6
"""Values of different kinds differ by at least this many standard deviations of the noise, so an answer shows whose it is."""


def audit_threads(folder: Path, how: Runs) -> Finding:
    """Each thread queries records of one kind; a refused query yields no answer."""
    path = folder / "threads.parquet"
    kinds = [kind for kind in range(THREADS) for _ in range(RECORDS)]
    values = [APART * 2**kind for kind in kinds]
    pyarrow.parquet.write_table(pa.table({"id": range(len(kinds)), "kind": kinds, "value": values}), path)
    with Session(
        path,
        unit="id",
        measures={"value": 1},
        columns={"kind": "integer"},
        tuned_on="synthetic",
        engine=how.engine,
        spark=how.spark,
        ledger=folder / "threads.ledger",
    ) as session:
        session.validate()
        with ThreadPoolExecutor(THREADS) as pool:
            right = list(pool.map(lambda kind: _right(session, kind), range(THREADS)))
    problems = () if all(right) else ("a thread received the answer to another thread's query",)
    return Finding.without_numbers("threads that share a session", samples=THREADS * QUESTIONS, problems=problems)


def _right(session: Session, kind: int) -> bool:
    asked = query().where(f"kind = {kind}").sum("value", Gaussian(sigma=1), alias="answer")
    wanted, answers = RECORDS * APART * 2**kind, []
    for _ in range(QUESTIONS):
        try:
            (table,) = session.run(asked).tables
        except RecordwiseError:
            continue
        answers.append(table.data.column("answer")[0].as_py())
    return all(abs(answer - wanted) < APART / 2 for answer in answers)
