"""``recordwise ask``: the sentence, the table and JSON."""

import csv
import json
from types import SimpleNamespace

import pyarrow as pa
import pytest


@pytest.mark.costly
def test_a_total_is_printed_with_its_error_and_citation(folder, run):
    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0
    done = run("ask", folder / "out", "emp", "--where", "county=06037", "--where", "naics3=441,722", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    (answer,) = found["answers"]
    assert answer["low"] < answer["value"] < answer["high"]
    assert found["release"]["digest"] in found["citation"]
    printed = run("ask", folder / "out", "emp", "--where", "county=06037", "--where", "naics3=441,722")
    assert "with a standard error of" in " ".join(printed.stdout.split())
    (folder / "zones.csv").write_text("county,region\n06037,west\n17031,east\n")
    table = run("ask", folder / "out", "count", "--by", folder / "zones.csv")
    assert table.exit_code == 0
    assert all(word in table.stdout for word in ("west", "east", "standard error"))
    assert run("ask", folder / "out", "emp", "--where", "county").exit_code == 2
    assert run("ask", folder / "out", "wages").exit_code == 2
    assert "grows with the total" in " ".join(run("ask", folder / "out", "payann").stdout.split())


@pytest.mark.costly
def test_conditions_shares_ranks_growth_and_files(folder, run, tmp_path):
    for name in ("out", "later"):
        assert run("release", folder / "plan.toml", "--out", folder / name, "--yes", "--again").exit_code == 0
    text = "county in ('06037') and not naics3 = '722'"
    asked = run("ask", folder / "out", "emp", "--where", text, "--verify", "--json")
    assert json.loads(asked.stdout)["verified"]
    short = run("ask", folder / "out", "emp", "--where", "county=06037", "--where", "naics3 = '441'", "--json")
    assert json.loads(asked.stdout)["answers"][0]["value"] == json.loads(short.stdout)["answers"][0]["value"]
    rows = list(csv.DictReader(run("ask", folder / "out", "emp", "--by", "county", "--csv").stdout.splitlines()))
    assert [row["label"] for row in rows] == ["06037", "17031"]
    assert "recordwise" in rows[0]["citation"]
    shares = json.loads(run("ask", folder / "out", "emp", "--by", "county", "--share-of", "all", "--json").stdout)
    assert sum(each["value"] for each in shares["answers"]) == pytest.approx(1)
    ranked = run("ask", folder / "out", "emp", "--by", "county", "--rank", "1")
    assert "for certain among the top 1:" in " ".join(ranked.stdout.split())
    ranked = run("ask", folder / "out", "emp", "--by", "county", "--rank", "1", "--json")
    assert "for certain among the top 1:" in json.loads(ranked.stdout)["sentence"]
    grown = run("ask", folder / "later", "emp", "--by", "county", "--growth-from", folder / "out", "--json")
    assert grown.exit_code == 0, grown.output
    assert abs(json.loads(grown.stdout)["answers"][0]["value"]) < 0.5
    made = run("ask", folder / "out", "emp", "--by", "county", "--replicates", tmp_path / "emp.csv")
    assert made.exit_code == 0
    assert (tmp_path / "emp.csv").read_text().count("replicate_") == 100


def test_ranks_beyond_the_top_are_counted_and_not_listed(monkeypatch, capsys):
    """Of six counties three may be among the top two."""
    from recordwise.cli import screen
    from recordwise.cli.ask import _show_ranks

    best = [1, 1, 2, 3, 4, 5]
    columns = {"label": list("abcdef"), "value": [6.0, 5.0, 4.0, 3.0, 2.0, 1.0], "rank": list(range(1, 7))}
    columns |= {"best": best, "worst": [2, 3, 4, 5, 6, 6], "all_best": best, "all_worst": [2, 3, 4, 5, 6, 6]}
    monkeypatch.setattr(screen, "on_terminal", lambda: False)
    _show_ranks(SimpleNamespace(table=pa.table(columns), sentence=lambda count: f"top {count}"), 2)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[2:5]] == ["a", "b", "c"]
    assert printed[5:] == ["And 3 more, not among the top 2 at this confidence; --csv lists all."]
    _show_ranks(SimpleNamespace(table=pa.table(columns), sentence=lambda count: f"top {count}"), 5)
    assert "more" not in capsys.readouterr().out


def test_adding_up_many_cells_shows_a_bar_on_a_terminal(folder, run, monkeypatch):
    from contextlib import contextmanager

    from recordwise import progress

    during = []

    @contextmanager
    def shown(doing=""):
        during.append(doing)
        yield
        during.append("done")

    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0
    monkeypatch.setattr(progress, "shown", shown)
    assert run("ask", folder / "out", "emp", "--by", "county", "--rank", "1").exit_code == 0
    assert during == ["adding up the cells", "done"]


def test_a_changed_file_is_found(folder, run):
    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0
    (page,) = (folder / "out").glob("*.html")
    page.write_text(page.read_text() + " ")
    done = run("ask", folder / "out", "emp", "--verify")
    assert done.exit_code == 2
    assert f"{page.name} is not the file that was saved" in done.output
    assert run("ask", folder / "out", "emp").exit_code == 0


@pytest.mark.parametrize(
    "words, told",
    [
        (("--each", "--by", "county"), "--each needs --share-of."),
        (("--each", "--share-of", "all"), "--each needs --by."),
        (("--codes", "county"), "--codes needs a file of regions: --by FILE.csv."),
        (("--codes", "county", "--by", "naics3"), "--codes needs a file of regions: --by FILE.csv."),
        (("--json", "--csv"), "--json cannot be printed together with --csv."),
        (("--nonnegative", "--growth-from", "earlier"), "--nonnegative is not for --growth-from."),
        (("--nonnegative", "--share-of", "all"), "--nonnegative is not for --share-of."),
        (("--query", "1", "--growth-from", "earlier"), "--query is not for --growth-from."),
        (("--share-of", "all", "--growth-from", "earlier"), "--share-of is not for --growth-from."),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(run, words, told):
    done = run("ask", "out", "emp", *words)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())
