"""A disk too small for a release is refused before anything is spent; one that fails afterwards does not lose it."""

import shutil
import tempfile
from collections import namedtuple

import pytest

from recordwise.errors import OutputError
from recordwise.release.release import Release
from recordwise.release.verify import verify

Usage = namedtuple("Usage", "total used free")


@pytest.mark.costly
def test_a_disk_without_room_is_refused_before_the_charge(folder, run, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**6, 10**6, 1000))
    done = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert done.exit_code == 2
    assert "needs about 1 MB, and only 0 MB are free" in done.stderr
    assert "Nothing was spent" in done.stderr
    assert not (folder / "small.ledger").exists()


def failing(monkeypatch, refused) -> None:
    """Saving fails wherever ``refused`` says so."""
    save = Release.save

    def saving(release, where, **more):
        if refused(where):
            raise OutputError(folder=str(where), problem="could not be written: No space left on device")
        return save(release, where, **more)

    monkeypatch.setattr(Release, "save", saving)


def keeping_fails(monkeypatch) -> None:
    def keep(release, where):
        raise OutputError(folder=str(where), problem="could not be written: No space left on device")

    monkeypatch.setattr(Release, "write_recoverable", keep)


@pytest.mark.costly
def test_a_release_whose_folder_fails_is_kept_and_finished_by_resume(folder, run, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        failing(patched, lambda where: True)
        done = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert done.exit_code == 2
    assert "what was drawn is kept next to the ledger" in done.stderr
    done = run("release", folder / "plan.toml", "--out", folder / "elsewhere", "--yes", "--resume")
    assert done.exit_code == 0, done.stderr
    assert verify(folder / "small.ledger", against=[folder / "elsewhere"]) == []


def test_a_release_is_saved_among_temporary_files_when_the_ledgers_folder_fails_too(
    folder, run, monkeypatch, tmp_path_factory
) -> None:
    elsewhere = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(elsewhere))
    keeping_fails(monkeypatch)
    failing(monkeypatch, lambda where: where.parent == folder)
    done = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert done.exit_code == 2
    assert f"the complete release was saved in {elsewhere / 'out-rescued'} instead" in done.stderr
    assert verify(folder / "small.ledger", against=[elsewhere / "out-rescued"]) == []


def test_a_release_that_no_folder_takes_is_told_to_be_lost(folder, run, monkeypatch) -> None:
    failing(monkeypatch, lambda where: True)
    keeping_fails(monkeypatch)
    done = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert done.exit_code == 2
    assert "The charge stands and the release is lost" in done.stderr


def test_tables_that_another_ledger_left_are_refused_before_the_charge_and_kept(folder, run) -> None:
    """Removed as the own ones, or taken for them, they would cost their release or this one."""
    left = folder / "small.ledger.unfinished-2"
    left.mkdir()
    (left / "tables").write_text("those of another release")
    done = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert done.exit_code == 2
    assert "has small.ledger.unfinished-2 next to it" in done.stderr
    assert "Nothing was spent" in done.stderr
    assert (left / "tables").read_text() == "those of another release"
    assert not (folder / "out").exists()
    left.rename(folder / "elsewhere")
    done = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert done.exit_code == 0, done.stderr
    assert verify(folder / "small.ledger", against=[folder / "out"]) == []
