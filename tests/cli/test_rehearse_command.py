"""``recordwise rehearse``: shows what a release would take and look like, and leaves the plan alone."""

from pathlib import Path


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


def test_verify_refuses_a_rehearsal(released, run):
    assert run("rehearse", released / "plan.toml", "--out", released / "made", "--rows", 500).exit_code == 0
    result = run("ledger", "verify", released / "small.ledger", "--against", released / "made")
    assert result.exit_code != 0


def test_records_can_be_given(folder, run_json):
    told = run_json(
        "rehearse", folder / "plan.toml", "--out", folder / "made", "--records", folder / "establishments.parquet"
    )
    assert told["records"] == 20_000
    assert told["generated"] is False
    assert told["outside"]["county_by_naics3"] > 0


def test_bad_input_is_told_without_a_traceback(folder, run):
    result = run("rehearse", folder / "plan.toml", "--out", folder / "made", "--rows", -1)
    assert result.exit_code == 2
    assert "rows must be a whole number" in result.stderr
    assert not (folder / "made").exists()
