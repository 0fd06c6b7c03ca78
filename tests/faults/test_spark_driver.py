"""Spark's driver killed while it reads: told in our own words, nothing charged, and the ledger serves the next session."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from build import generous, question, session, write_records
from recordwise.release.verify import verify


@pytest.mark.slow
def test_a_driver_killed_in_mid_read_charges_nothing_and_leaves_the_ledger_whole(tmp_path) -> None:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail("there is no Java, and RECORDWISE_REQUIRE_ALL is set")
        pytest.skip("SPARK WAS NOT TESTED: there is no Java on this machine")
    write_records(tmp_path / "records.parquet")
    script = Path(__file__).with_name("spark_driver_dies.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["error"][0] == "EngineError"
    assert "its message is withheld" in found["error"][1]
    assert found["kinds"] == ["opened"]
    with session(tmp_path / "records.parquet", tmp_path / "small.ledger", generous()) as opened:
        opened.run(question()).save(tmp_path / "out")
    assert verify(tmp_path / "small.ledger", against=[tmp_path / "out"]) == []
