"""A real standalone cluster on this machine: a master and two workers from the wheel, and an executor killed in mid-query."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from build import question, records
from engine_choice import need_java
from engines.cluster_driver import opened, totals
from recordwise.noise import Seeded
from recordwise.release.verify import verify

FILES, ROWS = 24, 60_000
HERE = Path(__file__).resolve()
EXECUTOR = "CoarseGrainedExecutorBackend"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def started(*arguments: str, folder: Path):
    """A daemon of Spark in a process group of its own, which goes away with everything it started."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    log = (folder / f"{arguments[0].rpartition('.')[2]}-{time.monotonic_ns()}.log").open("w")
    process = subprocess.Popen(
        [home / "bin" / "spark-class", *arguments],
        env=environment,
        stdout=log,
        stderr=log,
        start_new_session=True,
        cwd=folder,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()


@pytest.fixture
def cluster(tmp_path):
    """The address of a master with two workers of one core each, and the processes of the workers."""
    need_java()
    port, logs = free_port(), tmp_path / "cluster"
    logs.mkdir()
    address = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        place = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
        stack.enter_context(started("org.apache.spark.deploy.master.Master", *place, folder=logs))
        _wait_for(port)
        workers = [
            stack.enter_context(
                started(
                    "org.apache.spark.deploy.worker.Worker",
                    *("--host", "127.0.0.1", "--webui-port", str(free_port()), "-c", "1", "-m", "700m"),
                    *("--work-dir", str(logs / f"work{number}"), address),
                    folder=logs,
                )
            )
            for number in range(2)
        ]
        yield address, workers


def _wait_for(port: int) -> None:
    for _ in range(1200):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise TimeoutError("the master does not listen")


def executors(workers) -> list[int]:
    """The executors that the workers have started, by process id."""
    groups, found = {worker.pid for worker in workers}, []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with suppress(OSError):
                ours = int((each / "stat").read_text().rpartition(")")[2].split()[2]) in groups
                if ours and EXECUTOR in (each / "cmdline").read_text():
                    found.append(int(each.name))
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_totals_and_a_release_are_the_same_when_an_executor_dies_in_mid_query(cluster, tmp_path):
    address, workers = cluster
    folder = tmp_path / "data"
    folder.mkdir()
    table = records(FILES * ROWS)
    for number in range(FILES):
        pq.write_table(table.slice(number * ROWS, ROWS), folder / f"{number:02}.parquet")
    with opened(sorted(folder.glob("*.parquet")), tmp_path / "here.ledger") as here:
        exact, release = totals(here._engine, here), here.run(question(), rng=Seeded(5))

    path = os.pathsep.join([str(HERE.parent.parent), str(HERE.parent), *sys.path])
    driver = subprocess.Popen(
        [sys.executable, str(HERE.with_name("cluster_driver.py")), address, str(folder)],
        env=os.environ | {"PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert driver.stdout.readline() == "running\n", driver.stderr.read()[-3000:]
        before = executors(workers)
        os.kill(before[0], signal.SIGKILL)
        said, errors = driver.communicate(timeout=1500)
    finally:
        driver.kill()
    assert driver.returncode == 0, errors[-3000:]
    found = json.loads(said)
    assert len(before) == 2
    assert found["totals"] == exact
    assert found["digest"] == release.digest
    assert found["events"] == ["opened", "charged", "released"]
    assert verify(folder / "ledger", against=[folder / "out"]) == []
