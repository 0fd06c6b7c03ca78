"""What happens on a disk that is full, limited or read-only. Run by test_disks.py where such a disk is; prints what was found.

python bad_disks.py CASE DISK ELSEWHERE
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from build import generous, question, records, session
from recordwise.errors import RecordwiseError
from recordwise.release.verify import verify


def told(action: Callable[[], object]) -> list[str]:
    """The kind and the text of a refusal."""
    try:
        action()
    except RecordwiseError as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]


def fill(disk: Path, leave: int = 0) -> None:
    """Write until the disk takes no more, then give back a little."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
        file.truncate(max(0, file.tell() - leave))


def relieve(disk: Path) -> None:
    (disk / "ballast").unlink()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def ledger_full(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """The charge does not fit."""
    with session(records(), disk / "l", generous()) as opened:
        opened.run(question())
        fill(disk)
        error = told(lambda: opened.run(question()))
        relieve(disk)
        kinds = [event.kind for event in opened.history()]
        release = opened.run(question())
    release.save(elsewhere / "out")
    return {"error": error, "kinds": kinds, "problems": verify(disk / "l", against=[elsewhere / "out"])}


def full_after_charge(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """The charge fits; noting the release does not."""
    with session(records(), disk / "l", generous()) as opened:
        opened.run(question())
        stages: list[str] = []

        def tell(stage: str) -> None:
            stages.append(stage)
            if stage == "drawing noise":
                fill(disk)

        error = told(lambda: opened.run(question(), progress=tell))
        relieve(disk)
        kinds = [event.kind for event in opened.history()]
        paid = opened.spent() == opened.policy_of(question(), question())
        opened.run(question())
    return {"error": error, "kinds": kinds, "paid": paid, "problems": verify(disk / "l")}


def new_ledger_on_full_disk(disk: Path, elsewhere: Path) -> dict[str, Any]:
    fill(disk)
    error = told(lambda: session(records(), disk / "l", generous()))
    relieve(disk)
    with session(records(), disk / "l", generous()) as opened:
        opened.run(question())
    return {"error": error, "problems": verify(disk / "l")}


def output_full(disk: Path, elsewhere: Path) -> dict[str, Any]:
    with session(records(), elsewhere / "l", generous()) as opened:
        release = opened.run(question())
    found = []
    for leave in (0, 1 << 13, 1 << 14):
        fill(disk, leave)
        error = told(lambda: release.save(disk / "out"))
        found.append([*error, names(disk)])
        relieve(disk)
    release.save(disk / "out")
    return {"errors": found, "problems": verify(elsewhere / "l", against=[disk / "out"])}


def limited(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """No file may grow beyond a few kilobytes: another way a disk says no, which needs no rights to arrange."""
    with session(records(), elsewhere / "l", generous()) as opened:
        release = opened.run(question())
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        saving = told(lambda: release.save(disk / "out"))
        left = names(disk)
        charging = told(lambda: opened.run(question()))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        kinds = [event.kind for event in opened.history()]
        release.save(disk / "out")
        opened.run(question())
    return {
        "saving": saving,
        "left": left,
        "charging": charging,
        "kinds": kinds,
        "problems": verify(elsewhere / "l", against=[disk / "out"]),
    }


def prepare_read_only(disk: Path, elsewhere: Path) -> dict[str, Any]:
    with session(records(), disk / "l", generous()) as opened:
        opened.run(question()).save(disk / "out")
    return {"names": names(disk)}


def read_only(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """On what ``prepare_read_only`` made, now read-only."""
    with session(records(), elsewhere / "l", generous()) as opened:
        saving = told(lambda: opened.run(question()).save(disk / "new"))
    return {
        "saving": saving,
        "opening": told(lambda: session(records(), disk / "l", generous())),
        "creating": told(lambda: session(records(), disk / "new.ledger", generous())),
        "problems": verify(disk / "l", against=[disk / "out"]),
        "names": names(disk),
    }


CASES = {
    case.__name__: case
    for case in (
        ledger_full,
        full_after_charge,
        new_ledger_on_full_disk,
        output_full,
        limited,
        prepare_read_only,
        read_only,
    )
}

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))))
    sys.stdout.flush()
    os._exit(0)
