"""Forks many processes that charge one new ledger until its budget is spent; says how many charges each of them got.

python chargers.py LEDGER PROCESSES RHO BUDGET
"""

import json
import os
import sys

from recordwise.errors import BudgetError
from recordwise.ledger.ledger import Ledger
from recordwise.policy import constant


def charge(path: str, rho: str, budget: str) -> int:
    """Open the ledger, which may not exist yet, and charge it until it refuses."""
    ledger, charged = Ledger(path, dataset="shared", budget=constant(budget)), 0
    while True:
        try:
            done = ledger.charge(constant(rho), query=f"process {os.getpid()}")
            charged += 1
            ledger.record_release(done, digest=f"{os.getpid()}-{charged}", privacy_label="private")
        except BudgetError:
            ledger.close()
            return charged


def main() -> None:
    path, processes, rho, budget = sys.argv[1:]
    start, results = os.pipe(), os.pipe()
    children = []
    for _ in range(int(processes)):
        child = os.fork()
        if not child:
            os.close(start[1])
            os.read(start[0], 1)
            try:
                os.write(results[1], f"{charge(path, rho, budget)}\n".encode())
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
            os._exit(0)
        children.append(child)
    # All of them start when the last writing end is closed.
    os.close(start[1])
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    os.close(results[1])
    counts = [int(line) for line in os.read(results[0], 1 << 16).split()]
    print(json.dumps({"codes": codes, "counts": counts}))


if __name__ == "__main__":
    main()
