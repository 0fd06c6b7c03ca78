"""Every number that has a goal, measured with 0.2.0 and now in turns: ``python -m benchmarks earlier``.

    python -m benchmarks.earlier [startup queries ...]

Each version runs its own benchmark of a name in a process of its own, one right after the other, so that a busy
machine slows both alike. The earlier version comes from the history of this repository, in a worktree of its own, and
runs with the libraries of today.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.goals import Goal, read_goals

ROOT = Path(__file__).resolve().parents[1]
BEFORE, COMMIT = "0.2.0", "b7c7baa9"
"""The version to compare with, and the last commit of it."""
COMPARED = ("startup", "queries", "noise", "postprocess", "formats", "collapse", "derived", "sized")
"""Those with goals that both versions have, without Spark and without a hundred million rows."""
WORSE = 1.05
"""A number may be this much worse without a reason."""
CODE = (
    "import json, sys; from benchmarks import goals, {name}; sys.argv[1:] = []; {name}.main();"
    "print(json.dumps(goals._measured))"
)


@contextmanager
def earlier_version() -> Iterator[Path | None]:
    """Yield a folder with the sources of the version before; None without its commit."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "source"
        added = ["git", "worktree", "add", "--quiet", "--detach", str(place), COMMIT]
        done = subprocess.run(added, cwd=ROOT, check=False, capture_output=True)
        try:
            yield place if done.returncode == 0 else None
        finally:
            removed = ["git", "worktree", "remove", "--force", str(place)]
            subprocess.run(removed, cwd=ROOT, check=False, capture_output=True)


def measured(name: str, source: Path) -> dict[str, float]:
    """Return what one version records for a benchmark; nothing where it fails."""
    environment = os.environ | {"PYTHONPATH": str(source / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(name=name)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode:
        print(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return {}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(goal: Goal, before: float | None, now: float | None) -> str:
    """One row: what, both numbers, and whether it became worse."""
    if before is None or now is None:
        known = "-" if now is None else f"{now:.2f}{goal.unit}"
        return f"{goal.what:76} {'-' if before is None else f'{before:.2f}{goal.unit}':>10} {known:>10}"
    ratio = before / now if goal.at_least else now / before
    verdict = "WORSE" if ratio > WORSE else "better" if ratio < 1 / WORSE else "same"
    return f"{goal.what:76} {before:>9.2f}{goal.unit} {now:>9.2f}{goal.unit}  {verdict}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help=f"of benchmarks ({', '.join(COMPARED)})")
    names = parser.parse_args(arguments).names or COMPARED
    goals = read_goals()[1]
    with earlier_version() as source:
        if source is None:
            raise SystemExit(f"{COMMIT} ({BEFORE}) is not in this history: clone all of it")
        print(f"{'':76} {BEFORE:>10} {'now':>10}", flush=True)
        for name in names:
            before, now = measured(name, source), measured(name, ROOT)
            for each in dict.fromkeys([*before, *now]):
                if each in goals:
                    print(compared(goals[each], before.get(each), now.get(each)), flush=True)


if __name__ == "__main__":
    main()
