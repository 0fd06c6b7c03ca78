"""``python -m experiments.coverage [CELLS]``: the table of docs/intervals.md."""

import sys
from collections.abc import Sequence

from experiments.coverage.releases import SIZES, TOTALS, Line
from experiments.coverage.run import LEVEL, RUNS, measured, reason


def table(lines: Sequence[Line], totals: Sequence[int], header: str) -> str:
    """One row for each column and mechanism, one column for each total."""
    head = f"| {header} | " + " | ".join(f"{total:,}" for total in totals) + " | above .97 because |"
    rows = [head, "|---" * (len(totals) + 2) + "|"]
    for key in dict.fromkeys((line.column, line.mechanism) for line in lines):
        found = {line.total: line for line in lines if (line.column, line.mechanism) == key}
        why = {reason(line) for line in found.values() if line.coverage > LEVEL + 0.02}
        cells = " | ".join(f"{found[total].coverage:.4f}" if total in found else "" for total in totals)
        rows.append(f"| {key[0]}, {key[1]} | {cells} | {'; '.join(sorted(why))} |")
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    lines = measured(runs=int(arguments[0]) if arguments else RUNS, seed=20211, tell=lambda _: None)
    split = next(place for place, line in enumerate(lines) if line.column == "count")
    print(table(lines[:split], TOTALS, "exact total"), end="\n\n")
    print(table(lines[split:], SIZES, "records in the cell"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
