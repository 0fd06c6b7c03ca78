"""The driver of the cluster test: a session on a master, one query during which an executor dies, then a whole release.

    python cluster_driver.py MASTER FOLDER

Says "running" when tasks run and some are done; prints what it found as one line of JSON.
"""

import json
import sys
import threading
import time
from pathlib import Path

import recordwise as rw
from build import MEASURES, generous, question
from recordwise.engines import Engine
from recordwise.noise import Seeded
from recordwise.plan.sources import SparkMaster

OPTIONS = {
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    # Every file is a task of its own, so that some are done and others not when the executor dies.
    "spark.sql.files.openCostInBytes": "134217728",
}


def opened(source: list[Path], ledger: Path, **how: object) -> rw.Session:
    roles = {"unit": "id", "firm": "firm", "measures": MEASURES, "dataset": "small", "tuned_on": "synthetic"}
    return rw.Session(source, ledger=ledger, budget=generous(), **roles, **how)


def totals(engine: Engine, session: rw.Session) -> list[list[int]]:
    """The exact totals of the question, which only a test may look at."""
    found = engine.totals(rw.plan.Plan(schema=session.schema, queries=(question(),)))
    return [each.tolist() for table in found for each in table.exact.reveal().totals.values()]


def announce(session: rw.Session) -> None:
    """Say when the query is under way: a stage with tasks that are done and tasks that run."""
    tracker = vars(session._engine)["_attached"].session.sparkContext.statusTracker()
    while True:
        for stage in tracker.getActiveStageIds():
            now = tracker.getStageInfo(stage)
            if now is not None and now.numCompletedTasks >= 1 and now.numActiveTasks >= 1 and now.numTasks > 8:
                print("running", flush=True)
                return
        time.sleep(0.01)


def main(master: str, folder: str) -> None:
    files = sorted(Path(folder).glob("*.parquet"))
    spark = SparkMaster(url=master, options=OPTIONS)
    with opened(files, Path(folder) / "ledger", engine="spark", spark=spark) as session:
        session.validate()
        threading.Thread(target=announce, args=(session,), daemon=True).start()
        exact = totals(session._engine, session)
        release = session.run(question(), rng=Seeded(5))
        release.save(Path(folder) / "out", formats=["parquet"])
        print(json.dumps({"totals": exact, "digest": release.digest, "events": [e.kind for e in session.history()]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
