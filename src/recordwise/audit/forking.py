"""The audit of forked processes, which must not share noise.

A generator in the process would be copied with it. ``python -m recordwise.audit.forking FOLDER`` draws once
and forks twice; each child publishes the same query there.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from recordwise.audit.audit import LOG_ALARMS, Finding, Layout, Runs, publish, read_published_cells, sample_of
from recordwise.audit.bound import sequences_repeat
from recordwise.audit.subjects import every_subject
from recordwise.noise.laws import DiscreteGaussian

CELLS = 4000
CHILDREN = 2


def layout() -> Layout:
    return Layout(subject=every_subject()["gaussian"](), cells=CELLS)


def main(folder: Path) -> None:
    """Draw, fork children that publish, and exit with their code."""
    asked = layout()
    asked.write(folder / "records.parquet")
    DiscreteGaussian(20).sample(100)
    children = []
    for number in range(CHILDREN):
        child = os.fork()
        if child == 0:
            publish(asked, folder, Runs(), number)
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(max(abs(each) for each in codes))


def audit_forks(folder: Path, *, command: Sequence[str] = (sys.executable, "-m", __name__)) -> Finding:
    """Publish in two forked processes and compare their noise."""
    subprocess.run([*command, str(folder)], check=True)
    asked = layout()
    first, second = (
        sample_of(asked, [read_published_cells(folder / f"release{number}", asked)], 0)["cell.answer"]
        for number in range(CHILDREN)
    )
    problems = (
        ("two forked processes drew the same noise",) if sequences_repeat(first, second, log_alarms=LOG_ALARMS) else ()
    )
    return Finding.without_numbers("forked processes", samples=2 * len(first), problems=problems)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
