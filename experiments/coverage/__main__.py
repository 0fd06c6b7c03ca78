"""``python -m experiments.coverage [CELLS]``: writes docs/coverage.md and its numbers, or prints them for CELLS."""

import sys
import warnings

from experiments.coverage.page import NUMBERS, PAGE, file_text, stated, text
from experiments.coverage.run import RUNS, claims, measured
from recordwise.errors import UnkeptLedgerWarning

SEED = 20211


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore", UnkeptLedgerWarning)
    runs = int(arguments[0]) if arguments else RUNS
    lines = measured(runs=runs, seed=SEED, tell=lambda doing: print(doing, file=sys.stderr, flush=True))
    numbers = stated(lines)
    if arguments:
        print(text(numbers, runs), file_text(numbers), sep="\n")
    else:
        PAGE.write_text(text(numbers, runs), encoding="utf-8")
        NUMBERS.write_text(file_text(numbers), encoding="utf-8")
    wrong = [claim for claim in claims(lines) if claim.agrees is not True]
    for claim in wrong:
        print(f"{claim.statement}: {claim.why}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
