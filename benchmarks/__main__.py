"""Run the benchmarks of this folder."""

import importlib
import pkgutil
import sys
from pathlib import Path


def run(names: list[str]) -> None:
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    # A package, as the comparison with other libraries, is asked for by name.
    found = [module.name for module in modules if module.name != "__main__" and not module.ispkg]
    for name in names or found:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    asked, sys.argv[1:] = sys.argv[1:], []
    run(asked)
