"""``python -m supply``: the lock, then licenses, then known vulnerabilities.

Ends with 0 when all was checked and is in order, 1 when something is wrong, 2 when something could not be checked: that is never
taken for a pass.
"""

import sys

from supply.licenses import license_problems
from supply.lock import lock_problems
from supply.vulnerabilities import UncheckedError, vulnerability_problems

CHECKS = {
    "lock (every library pinned and hashed)": lock_problems,
    "licenses": license_problems,
    "known vulnerabilities": vulnerability_problems,
}


def main() -> int:
    worst = 0
    for name, check in CHECKS.items():
        try:
            problems = check()
        except UncheckedError as error:
            print(f"{name}: NOT CHECKED: {error}")
            worst = max(worst, 2)
            continue
        print(f"{name}: {'in order' if not problems else ''}")
        for problem in problems:
            print(f"  {problem}")
        worst = max(worst, 1 if problems else 0)
    return worst


if __name__ == "__main__":
    sys.exit(main())
