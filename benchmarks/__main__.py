"""Run the benchmarks of this folder, and print what has a goal beside it (``goals.toml``)."""

import importlib
import pkgutil
import sys
from pathlib import Path

from benchmarks.goals import table

HELPERS = {"__main__", "goals"}
LONG = {"disclosure", "earlier", "large"}
"""Asked for by name, as is a package: 5,000 withheld cells take minutes, a hundred million rows gigabytes of disk too,
and an earlier version measures everything a second time."""


def run(names: list[str]) -> None:
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    found = [module.name for module in modules if module.name not in HELPERS | LONG and not module.ispkg]
    unknown = set(names) - {module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])}
    if unknown:
        raise SystemExit(f"{', '.join(sorted(unknown))}: no such benchmark; there are {', '.join(found)}")
    for name in names or found:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
    print(f"== goals\n{table(only_measured=bool(names))}", flush=True)


if __name__ == "__main__":
    asked, sys.argv[1:] = sys.argv[1:], []
    if asked[:1] == ["earlier"]:
        importlib.import_module("benchmarks.earlier").main(asked[1:])
    else:
        run(asked)
