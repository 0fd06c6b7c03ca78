"""``recordwise plan evaluate``: a metric by groups beside baselines, from any records, at no cost."""

import pytest

from recordwise.ledger.ledger import Ledger


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


def test_confidential_records_are_noted_in_the_ledger(folder, run_json):
    told = run_json("plan", "evaluate", folder / "plan.toml", "--draws", 1)
    assert told["privacy_label"].startswith("CONFIDENTIAL")
    assert "looked" in [event.kind for event in Ledger.existing(folder / "small.ledger").history()]


def test_generated_records_need_no_source(folder, run_json):
    (folder / "establishments.parquet").unlink()
    told = run_json(
        "plan", "evaluate", folder / "plan.toml", "--rows", 500, "--draws", 2, "--by", "county:2", "--fit", "ols"
    )
    assert told["privacy_label"] == "computed from synthetic records"
    assert {each["group"] for each in told["groups"]} == {"06", "17"}
    assert not (folder / "small.ledger").exists()


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


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--metric", "nowhere:half"], "cannot be imported"),
        (["--metric", "math:nothing"], "'math' has no function 'nothing'"),
        (["--metric", "beauty"], "is not known: 'beauty'"),
        (["--baseline", "last-year"], "is not known: 'last-year'"),
        (["--baseline", "clamped"], "has no bound for 'emp'"),
        (["--baseline", "clamped", "--clamp-to", "emp"], "is not of the form MEASURE=BOUND"),
        (["--rows", "10", "--records", "x.parquet"], "is for generated records"),
    ],
)
def test_bad_input_is_told_without_a_traceback(folder, run, more, words):
    result = run("plan", "evaluate", folder / "plan.toml", "--data", "synthetic", "--draws", 1, *more)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
