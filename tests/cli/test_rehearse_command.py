"""``recordwise rehearse``: shows what a release would take and look like, and leaves the plan alone."""

import stat
from pathlib import Path

import pytest

from recordwise.ledger.ledger import Ledger
from recordwise.release.verify import verify


@pytest.mark.costly
def test_a_rehearsal_shows_what_a_release_would_take(folder, run):
    (folder / "establishments.parquet").unlink()
    result = run("rehearse", folder / "plan.toml", "--out", folder / "made", "--rows", 2_000)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert told.startswith("! NOT PRIVATE")
    for words in (
        "2,000 generated records",
        "Share of the cells by status",
        "reliable",
        "Privacy losses by size",
        "MB",
        "median loss",
    ):
        assert words in told
    assert (folder / "made" / "report.html").exists()
    assert not (folder / "small.ledger").exists()


def test_json_has_the_numbers(folder, run_json):
    told = run_json("rehearse", folder / "plan.toml", "--out", folder / "made", "--rows", 500)
    assert told["records"] == 500
    assert told["generated"] is True
    assert told["privacy_label"].startswith("NOT PRIVATE")
    assert set(told["files"]) == {path.name for path in Path(told["folder"]).iterdir()}


@pytest.mark.costly
def test_verify_refuses_a_rehearsal(released, run):
    assert run("rehearse", released / "plan.toml", "--out", released / "made", "--rows", 500).exit_code == 0
    result = run("ledger", "verify", released / "small.ledger", "--against", released / "made")
    assert result.exit_code != 0


def test_records_that_are_declared_can_be_given(folder, run_json):
    given = ("--records", folder / "establishments.parquet", "--data", "synthetic")
    told = run_json("rehearse", folder / "plan.toml", "--out", folder / "made", *given)
    assert told["records"] == 20_000
    assert told["generated"] is False
    assert told["data"] == "synthetic"
    assert told["outside"]["county_by_naics3"] > 0
    assert not (folder / "small.ledger").exists()


def test_confidential_records_go_to_a_terminal_only(folder, run):
    result = run(
        "rehearse", folder / "plan.toml", "--out", folder / "made", "--records", folder / "establishments.parquet"
    )
    assert result.exit_code == 2
    assert "goes to a terminal only. Nothing was read." in " ".join(result.stderr.split())
    assert not (folder / "made").exists()
    assert not (folder / "small.ledger").exists()


@pytest.mark.costly
def test_a_rehearsal_of_confidential_records_is_a_look_and_its_folder_is_its_owners_only(folder, run, terminal):
    result = run(
        "rehearse", folder / "plan.toml", "--out", folder / "made", "--records", folder / "establishments.parquet"
    )
    assert result.exit_code == 0, result.output
    assert "a release now needs tuning_reason" in " ".join(result.stdout.split())
    assert stat.S_IMODE((folder / "made").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder / "made").iterdir()} == {0o600}
    ledger = Ledger.existing(folder / "small.ledger")
    assert ledger.looks() == {"rehearse": 1}
    *_, look = ledger.history()
    assert set(look.body) == {"command", "plan"}
    ledger.close()
    assert verify(folder / "small.ledger") == []
    refused = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert refused.exit_code == 2
    assert "were viewed before this release (1 look: rehearse 1)" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "plan.toml"])
def test_records_that_cannot_be_opened_are_no_look(folder, run, terminal, name):
    result = run("rehearse", folder / "plan.toml", "--out", folder / "made", "--records", folder / name)
    assert result.exit_code == 2
    assert "No record was read" in " ".join(result.stderr.split())
    assert not (folder / "small.ledger").exists()
    assert not (folder / "made").exists()


def test_a_look_that_cannot_be_noted_does_not_happen(folder, run, terminal):
    (folder / "small.ledger").write_text("no ledger")
    result = run(
        "rehearse", folder / "plan.toml", "--out", folder / "made", "--records", folder / "establishments.parquet"
    )
    assert result.exit_code != 0
    assert not (folder / "made").exists()


def test_bad_input_is_told_without_a_traceback(folder, run):
    result = run("rehearse", folder / "plan.toml", "--out", folder / "made", "--rows", -1)
    assert result.exit_code == 2
    assert "rows must be a whole number" in result.stderr
    assert not (folder / "made").exists()
