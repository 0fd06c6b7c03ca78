"""``python -m load [--small] [NAME...]``: each job in a process of its own; prints seconds, peak memory and what it found.

A job that misses its target makes the command end with 1.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from tempfile import TemporaryDirectory

from load.jobs import JOBS


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m load")
    asked.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(JOBS)}; all by default")
    asked.add_argument("--small", action="store_true", help="a hundredth of the size, to see that it runs")
    asked.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = asked.parse_args()
    if unknown := set(given.names) - set(JOBS):
        asked.error(f"unknown: {', '.join(sorted(unknown))}")
    if given.inside:
        return inside(given.names[0], small=given.small)
    return max([alone(name, small=given.small) for name in given.names or JOBS])


def alone(name: str, *, small: bool) -> int:
    """A job in a process of its own, so that its peak of memory is its own."""
    command = [sys.executable, "-m", "load", name, "--inside", *(["--small"] if small else [])]
    return subprocess.run(command).returncode


def inside(name: str, *, small: bool) -> int:
    began = time.monotonic()
    with TemporaryDirectory(prefix="recordwise-load-") as folder:
        found = JOBS[name](folder, 100 if small else 1)
    found |= {
        "seconds": round(time.monotonic() - began, 1),
        "processor_seconds": round(sum(os.times()[:4]), 1),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps({"job": name} | found), flush=True)
    return 0 if found["kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
