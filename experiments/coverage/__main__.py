"""``python -m experiments.coverage [CELLS]``: writes docs/coverage.md, or prints it if a number of cells is given."""

import sys
import warnings

from experiments.coverage.page import PAGE, text
from experiments.coverage.run import RUNS, claims, measured
from recordwise.errors import UnkeptLedgerWarning

SEED = 20211


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore", UnkeptLedgerWarning)
    runs = int(arguments[0]) if arguments else RUNS
    lines = measured(runs=runs, seed=SEED, tell=lambda doing: print(doing, file=sys.stderr, flush=True))
    made = text(lines, runs)
    if arguments:
        print(made)
    else:
        PAGE.write_text(made, encoding="utf-8")
    wrong = [claim for claim in claims(lines) if claim.agrees is not True]
    for claim in wrong:
        print(f"{claim.statement}: {claim.why}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
