"""Importing the package is quick and loads nothing heavy or optional."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
EXTRAS = {"pandas", "polars", "matplotlib", "opendp", "pyspark", "numba", "pyreadstat", "adbc_driver_postgresql"}
LATE = {"duckdb", "pyarrow", "sqlglot", "typer", "rich"}


def run(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return result.stdout


def seconds(code: str) -> float:
    start = time.perf_counter()
    run(code)
    return time.perf_counter() - start


@pytest.mark.parametrize("module", ["recordwise", "recordwise.policy"])
def test_importing_loads_no_extra(module: str) -> None:
    loaded = set(json.loads(run(f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))")))
    assert not loaded & EXTRAS
    if module == "recordwise":
        assert not loaded & LATE


def test_importing_takes_less_than_three_tenths_of_a_second() -> None:
    """Median over runs taken in turn with a bare start of Python, so that a busy machine slows both alike."""
    pairs = [(seconds("import recordwise"), seconds("pass")) for _ in range(7)]
    assert statistics.median(with_package - bare for with_package, bare in pairs) < 0.3


def test_the_package_is_typed() -> None:
    assert (SOURCE / "recordwise" / "py.typed").exists()
