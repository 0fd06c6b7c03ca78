"""Full and read-only disks, real ones: a clear error, nothing half done, and everything works again afterwards."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "bad_disks.py"
NAMESPACE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "--map-root-user"]


def may_mount(folder: Path) -> bool:
    """Whether this user may mount a small disk of their own, seen by nobody else."""
    command = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def disks(tmp_path) -> tuple[Path, Path]:
    """An empty folder to mount on and one beside it."""
    found = tmp_path / "disk", tmp_path / "elsewhere"
    for folder in found:
        folder.mkdir()
    return found


@pytest.fixture
def mountable(disks) -> tuple[Path, Path]:
    if not may_mount(disks[0]):
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail("no disk can be mounted here, and RECORDWISE_REQUIRE_ALL is set")
        pytest.skip("LEFT OUT: a full and a read-only disk need the right to mount one")
    return disks


def run(case: str, disks: tuple[Path, Path], mount: str | None = None) -> dict[str, Any]:
    """Run a case of bad_disks.py, in a namespace where ``mount`` was done first."""
    command = [sys.executable, str(SCRIPT), case, *map(str, disks)]
    if mount is not None:
        command = [*NAMESPACE, "sh", "-ec", f"{mount}\nexec {shlex.join(command)}"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def small(disks: tuple[Path, Path]) -> str:
    return f"mount -t tmpfs -o size=4m tmpfs {shlex.quote(str(disks[0]))}"


@pytest.mark.process
def test_a_charge_on_a_full_disk_is_a_clear_error_and_spends_nothing(mountable) -> None:
    found = run("ledger_full", mountable, small(mountable))
    kind, text = found["error"]
    assert kind == "LedgerError"
    assert "the disk is full. Nothing was drawn" in text
    assert found["kinds"] == ["opened", "charged", "released"]
    assert found["problems"] == []


@pytest.mark.process
def test_a_disk_that_fills_after_the_charge_keeps_the_charge_and_publishes_nothing(mountable) -> None:
    found = run("full_after_charge", mountable, small(mountable))
    kind, text = found["error"]
    assert kind == "LedgerError"
    assert "the disk is full. The charge stands and nothing was published" in text
    assert found["kinds"] == ["opened", "charged", "released", "charged"]
    assert found["paid"]
    assert found["problems"] == []


@pytest.mark.process
def test_a_new_ledger_on_a_full_disk_is_a_clear_error_and_works_once_there_is_room(mountable) -> None:
    found = run("new_ledger_on_full_disk", mountable, small(mountable))
    assert found["error"][0] == "LedgerError"
    assert "full" in found["error"][1]
    assert found["problems"] == []


@pytest.mark.process
def test_a_release_saved_to_a_full_disk_is_a_clear_error_and_leaves_no_file(mountable) -> None:
    found = run("output_full", mountable, small(mountable))
    for kind, text, names in found["errors"]:
        assert kind == "OutputError"
        assert "No space left on device. No file was left behind" in text
        assert names == ["ballast"]
    assert found["problems"] == []


@pytest.mark.process
def test_a_limit_on_the_size_of_files_is_a_clear_error_and_leaves_nothing_half_done(disks) -> None:
    found = run("limited", disks)
    kind, text = found["saving"]
    assert kind == "OutputError"
    assert "File too large. No file was left behind" in text
    assert found["left"] == []
    kind, text = found["charging"]
    assert kind == "LedgerError"
    assert "cannot be read or written" in text
    assert found["kinds"] == ["opened", "charged", "released"]
    assert found["problems"] == []


@pytest.mark.process
def test_a_read_only_disk_is_a_clear_error_and_its_ledger_can_still_be_verified(mountable) -> None:
    disk = shlex.quote(str(mountable[0]))
    before = run("prepare_read_only", mountable)["names"]
    found = run("read_only", mountable, f"mount --bind {disk} {disk}\nmount -o remount,ro,bind {disk}")
    assert found["saving"] == [
        "OutputError",
        f"{mountable[0]}/new could not be written: Read-only file system. No file was left behind.",
    ]
    assert found["opening"][0] == found["creating"][0] == "LedgerError"
    assert "read-only" in found["opening"][1]
    assert "cannot be opened or created; its folder may be read-only" in found["creating"][1]
    assert found["problems"] == []
    assert found["names"] == before


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere; the read-only disk covers it")
def test_a_folder_without_write_permission_is_a_clear_error(disks) -> None:
    before = run("prepare_read_only", disks)["names"]
    disks[0].chmod(0o555)
    found = run("read_only", disks)
    disks[0].chmod(0o755)
    assert "Permission denied. No file was left behind" in found["saving"][1]
    assert found["problems"] == []
    assert found["names"] == before
