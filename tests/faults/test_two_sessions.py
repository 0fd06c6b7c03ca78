"""Two sessions on one ledger, in one process and in two: together they spend the budget once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import recordwise as rw
from build import generous, keys, records, session, write_records
from recordwise.errors import BudgetError, LedgerError
from recordwise.ledger.ledger import Ledger
from recordwise.policy import constant
from recordwise.release.verify import verify

BUDGET = constant("1/2")


def asked():
    return rw.query().group_by("county", keys=keys()).count(rw.Gaussian(rho="1/8"), alias="n")


@pytest.mark.costly
def test_two_sessions_of_one_process_admit_four_eighths_between_them(tmp_path) -> None:
    path = tmp_path / "l"
    with session(records(), path, BUDGET) as first, session(records(), path, BUDGET) as second:
        for number, each in enumerate((first, second, second, first)):
            each.run(asked()).save(tmp_path / f"out{number}")
        for each in (first, second):
            with pytest.raises(BudgetError, match="and 0 is left"):
                each.run(asked())
            assert each.spent().rho == BUDGET.rho
    assert verify(path, against=[tmp_path / f"out{number}" for number in range(4)]) == []


SCRIPT = """
import sys
from pathlib import Path
from recordwise.errors import BudgetError
from faults.test_two_sessions import BUDGET, asked
from build import session
work, name = Path(sys.argv[1]), sys.argv[2]
with session(work / "records.parquet", work / "l", BUDGET) as opened:
    sys.stdin.readline()
    for number in range(4):
        try:
            opened.run(asked()).save(work / f"{name}{number}")
        except BudgetError:
            break
"""


@pytest.mark.process
def test_two_processes_admit_four_eighths_between_them(tmp_path) -> None:
    write_records(tmp_path / "records.parquet")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path), name], stdin=subprocess.PIPE, env=environment, text=True
        )
        for name in ("a", "b")
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0
    folders = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert len(folders) == 4
    ledger = Ledger.existing(tmp_path / "l")
    assert ledger.spent().rho == BUDGET.rho
    ledger.close()
    assert verify(tmp_path / "l", against=folders) == []


def test_a_second_session_with_another_budget_schema_or_dataset_is_refused(tmp_path) -> None:
    spending = rw.query().sum("pay", rw.Gaussian(sigma=1000))
    with session(records(), tmp_path / "l", generous()) as opened:
        opened.run(spending)
        with pytest.raises(LedgerError, match="another budget"):
            session(records(), tmp_path / "l", constant(2))
        with pytest.raises(LedgerError, match="another dataset"):
            session(records(), tmp_path / "l", generous(), dataset="large")
        with pytest.raises(LedgerError, match=r"another schema: .*pay had a different meaning"):
            session(records(), tmp_path / "l", generous(), measures={"emp": 1})


def test_a_refused_release_binds_nobody_and_the_corrected_one_is_published(tmp_path) -> None:
    spending = rw.query().sum("pay", rw.Gaussian(sigma=1))
    first = session(records(), tmp_path / "l", BUDGET, measures={"emp": 1, "pay": "0.01"})
    with first as opened, pytest.raises(BudgetError, match="Nothing was spent"):
        opened.run(spending)
    with session(records(), tmp_path / "l", generous()) as corrected:
        corrected.run(spending).save(tmp_path / "out")
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []


@pytest.mark.costly
def test_a_later_release_may_use_a_column_the_first_did_not_declare(tmp_path) -> None:
    narrow = {"measures": {"emp": 1}, "columns": {"county": "text"}, "firm": None}
    with session(records(), tmp_path / "l", generous(), **narrow) as opened:
        opened.run(rw.query().sum("emp", rw.Gaussian(sigma=10))).save(tmp_path / "a")
    with session(records(), tmp_path / "l", generous()) as wider:
        wider.run(rw.query().sum("pay", rw.Gaussian(sigma=1000))).save(tmp_path / "b")
    with session(records(), tmp_path / "l", generous(), **narrow) as opened:
        opened.run(rw.query().sum("emp", rw.Gaussian(sigma=10))).save(tmp_path / "c")
    assert verify(tmp_path / "l", against=[tmp_path / name for name in "abc"]) == []
