"""``python -m experiments.charges [--sizes N] [--write FILE]``: the ratios in docs/mechanisms.md.

``--write`` keeps the charges of this checkout, to be shown as those before in a later one; ``before.json`` was written so.
"""

import argparse
import json
from pathlib import Path

from experiments.charges.catalogue import Subject, external, subjects

BEFORE = Path(__file__).parent / "before.json"
SIZES = 40


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.charges")
    parser.add_argument("--sizes", type=int, default=SIZES)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    compared = [*subjects(asked.sizes), external(asked.sizes)]
    if asked.write:
        kept = {each.name: {str(size): each.charged(size) for size in each.sizes} for each in compared}
        asked.write.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
        return
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    print("| mechanism | records | before: policy / true loss | after: policy / true loss |")
    print("|---|---|---|---|")
    for each in compared:
        print(row(each, before.get(each.name, {})), flush=True)


def row(subject: Subject, before: dict[str, float]) -> str:
    """One line: the range of the ratio before and after, and how many sizes."""
    lost = {size: subject.lost(size) for size in subject.sizes}
    then = [before[str(size)] / lost[size] for size in subject.sizes if str(size) in before]
    now = [subject.charged(size) / lost[size] for size in subject.sizes]
    return f"| {subject.name} | {len(now)} | {_range(then)} | {_range(now)} |"


def _range(ratios: list[float]) -> str:
    if not ratios:
        return ""
    low, high = (f"{value:.4f}" if value < 100 else f"{value:,.0f}" for value in (min(ratios), max(ratios)))
    return low if low == high else f"{low} to {high}"


if __name__ == "__main__":
    main()
