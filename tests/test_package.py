"""Importing the package is quick and loads nothing heavy or optional."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
EXTRAS = {"pandas", "polars", "matplotlib", "opendp", "pyspark", "numba", "pyreadstat", "adbc_driver_postgresql"}
LATE = {"duckdb", "pyarrow", "sqlglot", "typer", "rich"}


def run(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return result.stdout


@pytest.mark.parametrize("module", ["recordwise", "recordwise.policy"])
def test_importing_loads_no_extra(module: str) -> None:
    loaded = set(json.loads(run(f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))")))
    assert not loaded & EXTRAS
    if module == "recordwise":
        assert not loaded & LATE


def test_importing_takes_less_than_three_tenths_of_a_second() -> None:
    """Processor time of the import alone, beyond the bare start of Python: the median of several runs."""
    code = "import time; start = time.process_time(); import recordwise; print(time.process_time() - start)"
    assert statistics.median(float(run(code)) for _ in range(5)) < 0.3


def test_the_package_is_typed() -> None:
    assert (SOURCE / "recordwise" / "py.typed").exists()
