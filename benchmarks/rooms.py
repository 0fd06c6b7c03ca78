"""How many calls change room (top entry of the package) on four walks: one record, one policy, one SQL text, one plan file.

Calls are counted after a first walk, so nothing is imported, compiled or cached on the way. The plan
file is the complete example of docs/plan-file.md.
"""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import recordwise as rw
from recordwise.errors import own_argument_errors
from recordwise.plan.cost import plan_policy
from recordwise.plan.sql.parse import parse_sql

ROOT = Path(rw.__file__).parent
EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "plan-file.md"
CHECKED = own_argument_errors(lambda: None).__code__
BEFORE = {"record": 540, "policy": 676, "plan file": 929}
"""What was counted before the rooms were redrawn; an SQL text changed room never."""
RECORD = {"emp": 900, "payann": 50_000, "naics": "324110", "county": "06037", "size": 1}


def room(frame: FrameType) -> str | None:
    """The top entry that a frame's code belongs to, or None outside the package and in the check of arguments before a call."""
    name = frame.f_code.co_filename
    if frame.f_code is CHECKED:
        return None
    return Path(name).relative_to(ROOT).parts[0] if name.startswith(str(ROOT)) else None


def crossings(walk: Callable[[], Any]) -> Counter[tuple[str, str]]:
    """Calls from one room into another, looking through the frames of libraries between them."""
    found: Counter[tuple[str, str]] = Counter()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or (here := room(frame)) is None:
            return
        caller = frame.f_back
        while caller is not None and room(caller) is None:
            caller = caller.f_back
        if caller is not None and (there := room(caller)) is not None and there != here:
            found[there, here] += 1

    sys.setprofile(seen)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return found


@contextmanager
def walks(folder: Path) -> Iterator[dict[str, Callable[[], Any]]]:
    """The four walks by name; the files they need are written to ``folder``."""
    keys = rw.Keys.of({"county": ["a", "b"]})
    count, total = rw.Gaussian(rho="0.05"), rw.UnitSplit(at=50, rho="0.1")
    records = pa.table({"id": [1, 2, 3], "county": ["a", "a", "b"], "emp": [4, 20, 900]})
    query = rw.query().group_by("county", keys=keys).count(count).sum("emp", total)
    text = "SELECT county, COUNT(*), SUM(emp) FROM t WHERE emp < 5000 GROUP BY county"
    path = folder / "plan.toml"
    path.write_text(re.findall(r"```toml\n(.*?)```", EXAMPLE.read_text(), re.DOTALL)[0])
    plan, ledger = rw.load_plan(path).plan, folder / "walk.ledger"
    with rw.Session(records, unit="id", measures={"emp": 1}, ledger=ledger, tuned_on="synthetic") as session:
        yield {
            "record": lambda: session.run(query),
            "policy": lambda: plan_policy(plan).loss(RECORD),
            "SQL text": lambda: parse_sql(text, mechanisms={"*": count, "emp": total}, keys=keys),
            "plan file": lambda: rw.load_plan(path),
        }


def counts() -> dict[str, Counter[tuple[str, str]]]:
    """For each walk, the calls that change room, by the two rooms."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, walks(Path(folder)) as named:
        for name, walk in named.items():
            walk()
            # Which calls a pool's threads take over differs from walk to walk; the fewest of ten are what is left without them.
            found[name] = min((crossings(walk) for _ in range(10)), key=Counter.total)
    return found


def main() -> None:
    for name, found in counts().items():
        most = ", ".join(f"{caller} -> {called} {times}" for (caller, called), times in found.most_common(5))
        print(f"{name:10} {found.total():5} calls change room{'; most often ' + most if most else ''}")


if __name__ == "__main__":
    main()
