"""Run the benchmarks of this folder."""

import importlib
import pkgutil
import sys
from pathlib import Path


def run(names: list[str]) -> None:
    found = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.name != "__main__"]
    for name in names or found:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    asked, sys.argv[1:] = sys.argv[1:], []
    run(asked)
