"""A process that has imported everything and forks one child for each release it is told to make, to be killed in it.

Each line read is a job in JSON: ``out`` names the folder; the child is killed after so many seconds (``after``), or at the so
many-th thing it does to a file of the working folder (``event``), or not at all; with ``words`` it runs the command line. Each line
written says how the child ended, how long it lived, and how many such things it did.

    python nursery.py WORKING_FOLDER
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from small_release import generous, question, session

WATCHED = ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.listdir", "shutil.rmtree", "sqlite3.connect")


def release(work: Path, out: str) -> None:
    with session(work / "records.parquet", work / "small.ledger", generous()) as opened:
        opened.run(question()).save(work / out)


def command(words: list[str]) -> None:
    """Run the command line, and end with its exit code."""
    from recordwise.cli import app

    # What it prints must not mix with what this process answers.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        app(words)
    except SystemExit as ended:
        os._exit(int(ended.code or 0))
    os._exit(0)


def watch(work: Path, event: int | None, report: int) -> None:
    """Count what this process does to files of the working folder; kill it, really, at the one asked for."""
    seen = 0

    def hook(name: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if name in WATCHED and str(work) in str(arguments[0]):
            seen += 1
            os.pwrite(report, seen.to_bytes(4, "little"), 0)
            if seen == event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def run(work: Path, job: dict) -> dict:
    report = os.memfd_create("seen")
    os.pwrite(report, bytes(4), 0)
    began = time.monotonic()
    child = os.fork()
    if not child:
        watch(work, job.get("event"), report)
        try:
            if "words" in job:
                command(job["words"])
            release(work, job["out"])
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if job.get("after") is not None:
        time.sleep(job["after"])
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    seen = int.from_bytes(os.pread(report, 4, 0), "little")
    os.close(report)
    ended = os.waitstatus_to_exitcode(status)
    return {"ended": ended, "seconds": time.monotonic() - began, "events": seen}


def main() -> None:
    work = Path(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(run(work, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
