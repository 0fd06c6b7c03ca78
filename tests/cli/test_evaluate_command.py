"""``recordwise plan evaluate``: a metric by groups beside baselines, from any records, at no cost."""

import os
import re
import stat
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from recordwise.ledger.ledger import Ledger
from recordwise.planning.simulate.evaluate import Evaluation


@pytest.mark.costly
def test_a_plan_is_evaluated_beside_its_baselines(folder, run, tmp_path):
    baselines = [word for name in ("clamped", "p-percent", "multiplicative") for word in ("--baseline", name)]
    result = run(
        *("plan", "evaluate", folder / "plan.toml", "--by", "county", "--draws", 3, "--data", "synthetic"),
        *("--clamp-to", "emp=100", "--clamp-to", "payann=5000", *baselines, "--plot", tmp_path / "drawn.svg"),
    )
    assert result.exit_code == 0, result.output
    for words in (
        "Mean relative error",
        "today's plan",
        "clamped",
        "multiplicative",
        "p-percent",
        "of it noise",
    ):
        assert words in result.stdout
    assert (tmp_path / "drawn.svg").read_text().lstrip().startswith("<?xml")
    assert not (folder / "small.ledger").exists()


def test_stages_are_explained_only_where_columns_show_them(folder, run, monkeypatch):
    words = (
        "plan",
        "evaluate",
        folder / "plan.toml",
        "--draws",
        2,
        "--data",
        "synthetic",
        "--metric",
        "off_by_a_tenth",
    )
    told = run(*words).stdout
    assert "Share off by more than a tenth of the cells over 2 draws" in told
    assert "What each stage adds" in told
    monkeypatch.setattr(Evaluation, "rows", lambda self: (["table", "variable"], [["t", "n"]]))
    assert "What each stage adds" not in run(*words).stdout


@pytest.mark.parametrize("given", [(), ("--records", "copy.parquet"), ("--records", "copy.parquet", "--data", "past")])
def test_confidential_records_are_noted_in_the_ledger(folder, run_json, terminal, given, monkeypatch):
    """Also those of another file: one row less than the source, so that its digest is another one."""
    table = pq.read_table(folder / "establishments.parquet")
    pq.write_table(table.slice(1), folder / "copy.parquet")
    monkeypatch.chdir(folder)
    told = run_json("plan", "evaluate", folder / "plan.toml", "--draws", 1, *given)
    assert told["privacy_label"].startswith("CONFIDENTIAL")
    ledger = Ledger.existing(folder / "small.ledger")
    *_, look = ledger.history()
    assert (look.kind, look.body["command"]) == ("looked", "plan evaluate")
    assert set(look.body) == {"command", "plan"}
    assert ledger.looks() == {"plan evaluate": 1}
    ledger.close()


@pytest.mark.parametrize(
    "given",
    [
        ("--records", "none.csv"),
        ("--records", "plan.toml"),
        ("--records", "establishments.parquet", "--against", "nothing"),
    ],
)
def test_what_cannot_be_opened_or_asked_is_no_look(folder, run, terminal, given, monkeypatch):
    monkeypatch.chdir(folder)
    assert run("plan", "evaluate", "plan.toml", "--draws", 1, *given).exit_code == 2
    assert not (folder / "small.ledger").exists()


@pytest.mark.parametrize(
    "given", [(), ("--records", "establishments.parquet"), ("--records", "establishments.parquet", "--json")]
)
def test_confidential_numbers_go_to_a_terminal_only(folder, run, given, monkeypatch):
    monkeypatch.chdir(folder)
    result = run("plan", "evaluate", "plan.toml", "--draws", 1, *given)
    assert result.exit_code == 2
    assert "goes to a terminal only. Nothing was read." in result.output
    assert "--data synthetic" in result.output
    assert not (folder / "small.ledger").exists()


def test_records_that_are_declared_are_no_look(folder, run_json, monkeypatch):
    monkeypatch.chdir(folder)
    given = ("--records", "establishments.parquet", "--data", "public")
    told = run_json("plan", "evaluate", "plan.toml", "--draws", 1, *given)
    assert told["privacy_label"] == "computed from public records"
    assert not (folder / "small.ledger").exists()


@pytest.mark.costly
def test_a_figure_of_confidential_records_is_its_owners_only(folder, run, terminal):
    for data, mode in (("confidential", 0o600), ("synthetic", 0o666 & ~umask())):
        drawn = folder / f"{data}.svg"
        words = ("plan", "evaluate", folder / "plan.toml", "--draws", 1, "--data", data, "--plot", drawn)
        assert run(*words).exit_code == 0
        assert stat.S_IMODE(drawn.stat().st_mode) == mode


def umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


def test_generated_records_need_no_source(folder, run_json):
    (folder / "establishments.parquet").unlink()
    told = run_json(
        "plan", "evaluate", folder / "plan.toml", "--rows", 500, "--draws", 2, "--by", "county:2", "--fit", "ols"
    )
    assert told["privacy_label"] == "computed from synthetic records"
    assert {each["group"] for each in told["groups"]} == {"06", "17"}
    assert not (folder / "small.ledger").exists()


@pytest.mark.costly
def test_a_release_and_a_plan_are_baselines_and_metrics_may_be_your_own(released, run_json, monkeypatch):
    (released / "own_metric.py").write_text("def half(exact, published):\n    return abs(published - exact) / 2\n")
    monkeypatch.chdir(released)
    told = run_json(
        *("plan", "evaluate", "plan.toml", "--metric", "own_metric:half", "--draws", 2, "--data", "synthetic"),
        *("--baseline", "release:out", "--baseline", "plan:plan.toml", "--statistic", "sum_emp"),
    )
    assert told["metric"] == "half"
    values = {each["name"]: each["value"] for each in told["groups"]}
    assert set(values) == {"today's plan", "release:out", "plan:plan.toml"}
    assert values["today's plan"] == values["plan:plan.toml"]


def test_several_rules_are_named_with_commas_between_them(folder, run_json):
    """As docs/suppress-or-noise.md has it."""
    page = Path(__file__).parents[2] / "docs" / "suppress-or-noise.md"
    rules = re.search(r"recordwise plan evaluate plan.toml --rows 100000 --against (\S+)", page.read_text())[1]
    told = run_json("plan", "evaluate", folder / "plan.toml", "--rows", 300, "--draws", 1, "--against", rules)
    assert {each["name"] for each in told["groups"]} == {"today's plan", *rules.split(",")}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--metric", "nowhere:half"], "cannot be imported"),
        (["--metric", "math:nothing"], "'math' has no function 'nothing'"),
        (["--metric", "beauty"], "is not known: 'beauty'"),
        (["--baseline", "last-year"], "does not know 'last-year'"),
        (["--against", "rounding,last-year"], "does not know 'last-year'"),
        (["--baseline", "clamped"], "has no bound for 'emp'"),
        (["--baseline", "clamped", "--clamp-to", "emp"], "is not of the form MEASURE=BOUND"),
        (["--rows", "10", "--records", "x.parquet"], "is for generated records"),
    ],
)
def test_bad_input_is_told_without_a_traceback(folder, run, more, words):
    result = run("plan", "evaluate", folder / "plan.toml", "--data", "synthetic", "--draws", 1, *more)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
