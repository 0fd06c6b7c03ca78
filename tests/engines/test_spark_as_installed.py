"""Most tests let Spark interpret their small tables on one partition. Here all of them run with compiled statements and two."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine_choice import EVERYWHERE, need_java

ROOT = Path(__file__).parents[2]
FEWEST = {"engines": 150, "session": 50, "policy": 5}
"""Fewer tests than this would mean that they are no longer found by their names."""


@pytest.mark.slow
@pytest.mark.parametrize("folder", FEWEST)
def test_every_test_on_spark_passes_with_compiled_statements_too(folder, tmp_path):
    need_java()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{folder}", "-k", "spark"]
    how = {"cwd": ROOT, "env": {**os.environ, EVERYWHERE: "1"}, "capture_output": True, "text": True}
    done = subprocess.run([*command, f"--basetemp={tmp_path / 'run'}"], **how)
    assert done.returncode == 0, done.stdout[-3000:]
    (passed,) = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) >= FEWEST[folder]
