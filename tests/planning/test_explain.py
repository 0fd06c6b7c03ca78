"""``planning.explain``: a plan on one page, whose numbers are those of the mechanisms and policies themselves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise.ledger.ledger import Ledger
from recordwise.plan.cost import plan_policy
from recordwise.planning.explain import OPTIONS, class_ends, explain, size_name
from recordwise.policy.meaning import power_zcdp

SIGMA = 40
PLAN = f"""\
dataset = "shops"
source = "no-such-file.parquet"
ledger = "shops.ledger"
tuned_on = "public"

[schema]
unit = "id"
measures.emp = {{ step = 1, bound = 100_000 }}
columns.county = "text"

[keys.counties]
rows = {{ county = ["A", "B", "C", "D"], jobs = [50, 200, 3_000, 40_000] }}
size.emp = "jobs"
sized_on = "public: a register"

[[queries]]
group_by = ["county"]
keys = "counties"
count = {{ kind = "Gaussian", rho = 0.01 }}
sum.emp = {{ kind = "Gaussian", sigma = {SIGMA} }}

[examples]
"corner shop" = {{ emp = 4 }}

[labels]
count = "shops"
emp = "employees"
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explain") / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture(scope="module")
def page(plan: Path) -> Any:
    return explain(plan, rows=4_000)


def test_cells_are_counted_by_public_sizes_and_the_standard_error_of_their_noise(page: Any) -> None:
    ratios = SIGMA / np.array([50, 200, 3_000, 40_000])
    held = [
        int(np.sum(ratios <= 0.165)),
        int(np.sum((ratios > 0.165) & (ratios <= 0.333))),
        int(np.sum(ratios > 0.333)),
    ]
    counts = np.sum([np.multiply(each.cells, each.shares) for each in page.by_size], axis=0)
    assert counts.tolist() == held == [2, 1, 1]
    assert [each.name for each in page.by_size] == ["below 100", "100 to 999", "1,000 to 9,999", "10,000 or more"]
    assert "public sizes" in page.totals_from
    assert "county" in page.published[0]


def test_what_records_give_away_is_that_of_their_policy(page: Any, plan: Path) -> None:
    policy = plan_policy(rw.load_plan(plan).plan)
    assert sum(each.share for each in page.groups) == pytest.approx(1)
    for each in page.groups:
        size = np.sqrt((each.loss - 0.01) * 2) * SIGMA
        assert each.loss == pytest.approx(policy.loss({"emp": round(size)}), rel=1e-6)
        assert each.powers == tuple(power_zcdp(times * each.loss) for times in (1, 2, 11))
        assert each.powers[0] <= each.powers[1] <= each.powers[2]
    assert [each.powers[0] for each in page.groups] == sorted(each.powers[0] for each in page.groups)
    # Gaussian noise hides a number within twice 1.96 standard deviations, whatever the number.
    assert list(page.groups[-1].told) == ["employees"]
    assert all(each.told["employees"].split()[0] in ("as", "within") for each in page.groups)


def test_options_have_the_losses_that_they_are_named_after(page: Any) -> None:
    today, *others = page.options
    assert [each.name for each in others] == list(OPTIONS)
    assert today.noise == 1
    noises, losses = [each.noise for each in others], [each.loss for each in others]
    assert noises == sorted(noises, reverse=True)
    assert losses == sorted(losses)
    # The loss of Gaussian noise, all of it scaled, is in proportion to the inverse square.
    for each in others:
        assert each.loss * each.noise**2 == pytest.approx(today.loss, rel=0.03)
    assert others[0].reliable[0] <= others[-1].reliable[0]


def test_names_of_a_plan_are_no_tags_of_its_page(page: Any) -> None:
    hostile = replace(page, title="<img src=x onerror=alert(1)>", published=("</script><script>",))
    for text in (hostile.markdown(), hostile.html()):
        assert "<img" not in text
        assert "<script" not in text
        assert "&lt;img src=x" in text


def test_the_page_has_no_formula_and_no_rho(page: Any) -> None:
    told = page.markdown()
    for word in ("rho", "epsilon", "delta", "zCDP", "sigma", "^2"):
        assert word not in told
    for title in ("What is published", "What you get", "What shops give away", "Who is hardly protected"):
        assert f"## {title}" in told
    assert "cautious" in told
    assert "No budget is declared" in told
    made = page.html()
    assert "<script" not in made
    assert "http" not in made
    assert made.count("<h2>") == len(page.sections())


def test_files_are_written_once_and_by_their_names(page: Any, tmp_path: Path) -> None:
    assert page.save(tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert page.save(tmp_path / "a.md").read_text().startswith("# shops")
    assert '"groups"' in page.save(tmp_path / "a.json").read_text()
    with pytest.raises(rw.errors.OutputError):
        page.save(tmp_path / "a.md")


def test_generated_records_leave_source_and_ledger_alone(page: Any, plan: Path) -> None:
    assert page.data == "synthetic"
    assert not (plan.parent / "shops.ledger").exists()


def test_confidential_records_are_a_look_that_the_ledger_notes_first(tmp_path: Path) -> None:
    """Also where validation refuses a value; a file that cannot be opened was not looked at."""
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "of.unknown").write_text("id,county,emp\n1,A,4\n")
    (tmp_path / "other.csv").write_text("id,county\n1,A\n")
    for name in ("missing.parquet", "missing.csv", "of.unknown", "other.csv"):
        with pytest.raises(rw.errors.RecordwiseError):
            explain(tmp_path / "plan.toml", records=tmp_path / name)
        assert not (tmp_path / "shops.ledger").exists(), name
    (tmp_path / "wrong.csv").write_text("id,county,emp\n1,A,-4\n")
    with pytest.raises(rw.errors.DataError):
        explain(tmp_path / "plan.toml", records=tmp_path / "wrong.csv")
    ledger = Ledger.existing(tmp_path / "shops.ledger")
    assert ledger.looks() == {"explain": 1}
    ledger.close()


def test_classes_are_at_most_five_and_named_by_their_ends() -> None:
    ends = class_ends(np.array([1.0, 5, 20, 3e3, 7e6]))
    assert ends == [1e3, 1e4, 1e5, 1e6]
    assert [size_name(ends, at) for at in range(5)] == [
        "below 1,000",
        "1,000 to 9,999",
        "10,000 to 99,999",
        "100,000 to 999,999",
        "1 million or more",
    ]
    assert size_name([], 0) == "all"
