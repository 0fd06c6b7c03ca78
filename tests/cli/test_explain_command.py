"""``recordwise explain``, ``--formula``, and what ``check`` and ``loss`` say first."""

import stat

import pytest

from recordwise.ledger.ledger import Ledger


@pytest.mark.costly
def test_a_plan_is_explained_without_touching_source_and_ledger(folder, run, run_json):
    (folder / "establishments.parquet").unlink()
    result = run("explain", folder / "plan.toml", "--rows", 2_000)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    for words in ("What you get", "cautious", "with one revision", "hardly protected", "2,000 generated ones"):
        assert words in told
    assert "rho" not in told
    assert not (folder / "small.ledger").exists()
    assert run_json("explain", folder / "plan.toml", "--rows", 500)["records"] == 500


@pytest.mark.costly
def test_pages_are_files_that_are_not_overwritten(folder, run):
    words = ("explain", folder / "plan.toml", "--rows", 500, "--to", folder / "page.html")
    assert run(*words).exit_code == 0
    assert "<h1>" in (folder / "page.html").read_text()
    assert run(*words).exit_code == 2
    other = run(*words[:-1], folder / "page.pdf")
    assert (other.exit_code, "must end in .html" in other.stderr) == (2, True)
    assert not (folder / "page.pdf").exists()


@pytest.mark.costly
def test_confidential_records_are_a_look_for_a_terminal(folder, run, monkeypatch):
    from recordwise.cli import screen

    words = ("explain", folder / "plan.toml", "--records", folder / "establishments.parquet")
    assert run(*words).exit_code == 2
    assert not (folder / "small.ledger").exists()
    monkeypatch.setattr(screen, "on_terminal", lambda: True)
    (folder / "out").mkdir()
    (folder / "out" / "release.json").touch()
    (folder / "dangling.html").symlink_to(folder / "out" / "new.html")
    (folder / "linked").symlink_to(folder / "out")
    for file, problem in (
        (folder / "page.pdf", "must end in"),
        (folder / "plan.toml", "must end in"),
        (folder / "none" / "page.md", "does not exist"),
        (folder / "dangling.html", "already exists"),
        (folder / "out" / "page.html", "the folder of a release"),
        (folder / "linked" / "page.html", "the folder of a release"),
    ):
        refused = run(*words, "--to", file)
        assert (refused.exit_code, problem in refused.stderr) == (2, True)
    assert not (folder / "small.ledger").exists(), "nothing was looked at for a page that cannot be written"
    assert run(*words, "--to", folder / "page.md").exit_code == 0
    assert "CONFIDENTIAL" in (folder / "page.md").read_text()
    assert stat.S_IMODE((folder / "page.md").stat().st_mode) == 0o600
    ledger = Ledger.existing(folder / "small.ledger")
    assert ledger.looks() == {"explain": 1}
    ledger.close()


@pytest.mark.costly
def test_a_loss_is_said_in_words_before_its_numbers(released, run):
    lines = run("loss", released / "out" / "policy.json", "emp=4", "payann=140").stdout.splitlines()
    words = next(at for at, line in enumerate(lines) if line.startswith("Presence "))
    numbers = next(at for at, line in enumerate(lines) if line.startswith("  loss (zCDP rho)"))
    assert words < numbers


@pytest.mark.costly
def test_check_names_a_family_that_costs_every_example_less(folder, run_json):
    plan = folder / "plan.toml"
    text = plan.read_text().replace("offset = 2000, sigma = 0.5", "offset = 100, sigma = 0.5")
    plan.write_text(
        text + '\n[examples]\n"shop" = { emp = 4, payann = 140 }\n"factory" = { emp = 400, payann = 24_000 }\n'
    )
    (told,) = [each for each in run_json("check", plan, exit_code=3)["warnings"] if "costs every example less" in each]
    assert told.startswith("sum_payann: ")
    assert "shop" in told
    assert "factory" in told
