"""One release, watched: it is killed at the so many-th thing it does to a file of the working folder, or by who started it.

The job is JSON: ``out`` names the folder; ``event`` says at which thing, if at any; with ``words`` the command line is run.
How many such things it did stands at the beginning of its standard output, a file, as four bytes, even if it was killed.

    python nursery.py WORKING_FOLDER JOB
"""

import json
import os
import signal
import sys
from pathlib import Path

from build import generous, question, session

WATCHED = ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.listdir", "shutil.rmtree", "sqlite3.connect")


def release(work: Path, out: str) -> None:
    with session(work / "records.parquet", work / "small.ledger", generous()) as opened:
        opened.run(question()).save(work / out)


def command(words: list[str]) -> None:
    """Run the command line, and end with its exit code."""
    from recordwise.cli import app

    try:
        app(words)
    except SystemExit as ended:
        os._exit(int(ended.code or 0))


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


def main() -> None:
    work, job = Path(sys.argv[1]), json.loads(sys.argv[2])
    report = os.dup(1)
    # What the command prints must not mix with what is reported.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    watch(work, job.get("event"), report)
    if "words" in job:
        command(job["words"])
    else:
        release(work, job["out"])
    os._exit(0)


if __name__ == "__main__":
    main()
