"""A disk that says it could not keep what was written: every fsync of a release fails once. The charge is known to be spent, or
nothing was drawn; the books stay whole."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from build import generous, question, session, write_records
from recordwise.ledger.ledger import Ledger
from recordwise.release.verify import verify
from warm_process import Warm

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def failing(tmp_path_factory) -> Iterator[Warm]:
    """Processes whose disk fails when they are told."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail("there is no C compiler, and RECORDWISE_REQUIRE_ALL is set")
        pytest.skip("LEFT OUT: a failing fsync needs a C compiler")
    library = tmp_path_factory.mktemp("shim") / "failing_fsync.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(HERE / "failing_fsync.c"), "-ldl"], check=True
    )
    warm = Warm({"LD_PRELOAD": str(library)})
    yield warm
    warm.close()


def released(work: Path, failing: Warm, fail_at: int) -> tuple[str, str, int]:
    """How a release ended, and how many times it asked the disk to keep something."""
    count = work / "count"
    environment = {"FAIL_AT": str(fail_at), "FSYNC_COUNT": str(count)}
    done = failing.run(HERE / "releasing.py", work, folder=work, environment=environment)
    assert done.returncode == 0, done.stderr
    kind, text = json.loads(done.stdout)
    return kind, text, int(count.read_text())


def fresh(work: Path) -> Path:
    work.mkdir()
    write_records(work / "records.parquet")
    return work


def check(work: Path, kind: str, text: str) -> None:
    """What must hold whatever failed."""
    saved = (work / "out").exists()
    assert saved == (kind == "saved")
    assert not [path for path in work.iterdir() if path.name.startswith(".out")]
    if not saved:
        assert kind in ("LedgerError", "OutputError")
        assert "disk reported an error" in text or "Input/output error" in text
    problems = verify(work / "small.ledger", against=[work / "out"] if saved else [])
    if problems:
        # The very first entry was not kept, so nothing was charged.
        assert "is not a recordwise ledger" in problems[0]
        return
    ledger = Ledger.existing(work / "small.ledger")
    kinds = [event.kind for event in ledger.history()]
    ledger.close()
    if saved or kind == "OutputError":
        assert kinds == ["opened", "charged", "released"]
    if kind == "LedgerError" and "Nothing was drawn" in text:
        assert "released" not in kinds


def failed_each(tmp_path: Path, failing: Warm, every: int) -> int:
    *_, calls = released(fresh(tmp_path / "whole"), failing, 0)
    assert calls > 8
    refused = 0
    for number in range(1, calls + 1, every):
        work = fresh(tmp_path / f"fails{number}")
        kind, text, _ = released(work, failing, number)
        check(work, kind, text)
        refused += kind != "saved"
        shutil.rmtree(work / "out", ignore_errors=True)
        with session(work / "records.parquet", work / "small.ledger", generous()) as opened:
            opened.run(question()).save(work / "out")
        assert verify(work / "small.ledger", against=[work / "out"]) == []
    return refused


@pytest.mark.process
def test_some_fsyncs_of_a_release_failing_leave_true_books(tmp_path, failing) -> None:
    assert failed_each(tmp_path, failing, every=4) >= 2


@pytest.mark.slow
def test_each_fsync_of_a_release_failing_leaves_true_books(tmp_path, failing) -> None:
    assert failed_each(tmp_path, failing, every=1) >= 5
