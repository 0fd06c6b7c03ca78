"""``recordwise release --carry`` and ``--revise``: years and corrections, from plan files to what each command says about them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from recordwise.noise import Seeded
from recordwise.planning import rehearse

PLAN = """\
dataset = "small"
source = "records${year}.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"
schema = { unit = "id", measures = { emp = 1 }, columns = { county = "text" } }
budget = [{ rho = 5 }, { measure = "emp", mechanism = { kind = "Gaussian", sigma = 2 } }]

[series]
name = "years"
period = "${year}"
revision = 0
carry = 0.8
staying = [{ rho = 1 }, { measure = "emp", mechanism = { kind = "Gaussian", sigma = 2 } }]

[[queries]]
group_by = ["county"]
keys = { rows = { county = ["01", "02"] } }
count = { kind = "Gaussian", sigma = 2 }
sum.emp = { kind = "Gaussian", sigma = 8 }

[examples]
shop = { emp = 20 }
"""
LATER = '\n[stage]\ncarry = "2020"\nold_records = "records2020.parquet"\n'


@pytest.fixture
def place(tmp_path, run):
    for year, more in (("2020", 0), ("2021", 2)):
        table = pa.table({"id": [1, 2, 3], "county": ["01", "02", "02"], "emp": [4, 20 + more, 9]})
        pq.write_table(table, tmp_path / f"records{year}.parquet")
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "later.toml").write_text(PLAN + LATER)
    first = run("release", tmp_path / "plan.toml", "--set", "year=2020", "--out", tmp_path / "2020", "--yes")
    assert first.exit_code == 0, first.output
    assert "Noise will be carried on" in first.output
    return tmp_path


@pytest.mark.costly
def test_a_year_is_carried_on_and_then_corrected(place, run):
    # Coming and leaving cost a shop 4.5556 times (1/4 + 400/64)/2.
    told = run("check", place / "later.toml", "--set", "year=2021", "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.output)["examples"][0]["loss"] == pytest.approx(4.5556 * (1 / 4 + 400 / 64) / 2, rel=1e-4)
    ten = json.loads(told.output)["years"]["examples"]["shop"]
    fresh = (1 / 4 + 400 / 64) / 2
    assert ten["stable"] == pytest.approx({"fresh": 10 * fresh, "carried": fresh * (1 + 9 / 9)}, rel=1e-6)
    assert ten["moves once"]["carried"] == pytest.approx(fresh * (1 + 4.5556 + 8 / 9), rel=1e-4)
    assert ten["enters after 5 years"]["carried"] == pytest.approx(fresh * (1 / 0.36 + 4 / 9), rel=1e-6)
    assert ten["leaves after 5 years"]["carried"] == pytest.approx(fresh * (1 + 0.64 / 0.36 + 4 / 9), rel=1e-6)
    assert ten["growing by 5 % a year"]["carried"] < ten["growing by 5 % a year"]["fresh"] / 2
    assert "Ten years, by kind" in run("check", place / "later.toml", "--set", "year=2021").output
    carried = ("--carry", place / "2020", "--old-records", place / "records2020.parquet")
    done = run("release", place / "plan.toml", "--set", "year=2021", *carried, "--out", place / "2021", "--yes")
    assert done.exit_code == 0, done.output
    assert "carried on from the period before" in done.output
    changed = run("change", place / "2020", place / "2021")
    assert changed.exit_code == 0, changed.output
    corrected = PLAN.replace("revision = 0", "revision = 1").replace("sigma = 2 }\nsum", "sigma = 3 }\nsum")
    (place / "corrected.toml").write_text(corrected.replace("sigma = 8", "sigma = 9"))
    pq.write_table(pq.read_table(place / "records2021.parquet"), place / "was2021.parquet")
    table = pa.table({"id": [1, 2, 3], "county": ["01", "02", "02"], "emp": [4, 25, 9]})
    pq.write_table(table, place / "records2021.parquet")
    revised = ("--revise", place / "2021", "--old-records", place / "was2021.parquet")
    done = run("release", place / "corrected.toml", "--set", "year=2021", *revised, "--out", place / "2021r", "--yes")
    assert done.exit_code == 0, done.output
    folders = [place / name for name in ("2020", "2021", "2021r")]
    assert run("ledger", "verify", place / "small.ledger", "--against", *folders).exit_code == 0
    words = ["emp@2020=20", "emp@2021=22", "emp@2021/1=25", "county=02"]
    found = json.loads(run("loss", place / "small.ledger", *words, "--json").output)
    start = (1 / 4 + 400 / 64) / 2
    stay = (0.2**2 / 4 + (22 - 16) ** 2 / 64) / (2 * 0.36)
    corrected = 3**2 / (2 * 17)
    assert found["loss"] == pytest.approx(start + stay + corrected, rel=1e-4)
    assert found["loss"] < sum(each["charged"] for each in found["periods"])
    shown = run("ledger", "show", place / "small.ledger", "--plan", place / "plan.toml", "--set", "year=2020")
    assert "carries the noise of charge 2" in shown.output
    assert "corrects charge" in shown.output
    assert "if it stays as it is" in shown.output
    page = (place / "2021" / "report.html").read_text()
    assert "carries noise of release" in page
    assert '"changes":' in page
    assert "the change since then is more accurate" in page


def test_a_plan_without_a_budget_of_those_who_stay_gets_the_lines_to_paste(place, run):
    lines = [line for line in PLAN.splitlines() if not line.startswith("staying")]
    (place / "bare.toml").write_text("\n".join(lines).replace("small.ledger", "bare.ledger"))
    refused = run("check", place / "bare.toml", "--set", "year=2020")
    assert refused.exit_code != 0
    assert "staying = [{ rho" in refused.output.replace("\n", " ")


@pytest.mark.costly
def test_a_renamed_code_is_carried_on_by_a_public_list(place, run):
    table = pa.table({"id": [1, 2, 3], "county": ["01", "12", "12"], "emp": [4, 20, 9]})
    pq.write_table(table, place / "records2021.parquet")
    (place / "codes.csv").write_text("before,now\n02,12\n")
    plan = (PLAN + LATER).replace('["01", "02"]', '["01", "12"]')
    (place / "later.toml").write_text(plan + 'crosswalk = { county = "codes.csv" }\n')
    assert run("check", place / "later.toml", "--set", "year=2021").exit_code == 0
    done = run("release", place / "later.toml", "--set", "year=2021", "--out", place / "2021", "--yes", "--json")
    assert done.exit_code == 0, done.output
    step = json.loads((place / "2021" / "release.json").read_text())["step"]
    assert (step["renamed"], "relisted" in step) == ({"county": [["02", "12"], ["12", None]]}, False)
    changed = json.loads(run("change", place / "2020", place / "2021", "--json").output)
    assert changed["cells"] == {"county": 2}
    (place / "codes.csv").write_text("old,new\n02,12\n")
    refused = run("check", place / "later.toml", "--set", "year=2021")
    assert "has not the columns before and now" in refused.output
    words = ["--crosswalk", f"county={place / 'codes.csv'}", "--out", place / "x", "--yes"]
    assert "is for --carry" in run("release", place / "plan.toml", "--set", "year=2021", *words).output


# 3,000 cells: a squared error in units of its variance has mean 1, and that of 3,000 of them a standard deviation of at most
# sqrt(2/3000) = 0.026; six of those are 0.16, a false alarm below 1e-8 for each number. Fresh noise has changes of five times the
# variance at carry 0.8.
MANY = [f"{number:04d}" for number in range(3000)]
WIDE = PLAN.replace('["01", "02"]', json.dumps(MANY)).replace("sigma = 2 }\nsum", "sigma = 5 }\nsum")
SIX = 0.16


def rehearsed_errors(path, parameters, records, out):
    """The rehearsal of a plan on given records, and the errors of both of its releases."""
    made = rehearse(path, out=out, records=records, data="synthetic", seed=5, parameters=parameters)
    table = pq.read_table(records)
    count = np.bincount(np.asarray(table.column("county").to_pylist(), int), minlength=len(MANY))
    size = np.bincount(
        np.asarray(table.column("county").to_pylist(), int), np.asarray(table.column("emp")), minlength=len(MANY)
    )
    exact = {"count": count, "sum_emp": size}
    errors = {
        name: [release.table.column(name).to_numpy() - true for release in (made.before, made.release)]
        for name, true in exact.items()
    }
    return made, errors


def wide_records(path, shift=0):
    chance = np.random.default_rng(3)
    table = {"id": np.arange(9000), "county": chance.choice(MANY, 9000), "emp": chance.integers(0, 30, 9000) + shift}
    pq.write_table(pa.table(table), path)
    return path


@pytest.mark.parametrize("entry", ["carry", "revise"])
def test_a_year_is_rehearsed_before_the_year_before_was_published(entry, tmp_path):
    revision = "revision = 1" if entry == "revise" else "revision = 0"
    stage = f'\n[stage]\n{entry} = "2020"\nold_records = "records2020.parquet"\n'
    (tmp_path / "early.toml").write_text(PLAN.replace("revision = 0", revision) + stage)
    made = rehearse(tmp_path / "early.toml", out=tmp_path / "tried", rows=50, parameters={"year": "2021"})
    assert made.before is None
    assert any("is not there yet" in each for each in made.notes())


@pytest.mark.costly
def test_a_rehearsal_of_a_carried_year_and_of_a_correction_has_the_errors_of_the_real_ones(tmp_path, run):
    for year in ("2020", "2021"):
        wide_records(tmp_path / f"records{year}.parquet")
    (tmp_path / "plan.toml").write_text(WIDE)
    arguments = ("release", tmp_path / "plan.toml", "--set", "year=2020", "--out", tmp_path / "2020", "--yes")
    assert run(*arguments).exit_code == 0
    (tmp_path / "later.toml").write_text(WIDE + LATER)
    year = {"year": "2021"}
    records = tmp_path / "records2021.parquet"
    made, errors = rehearsed_errors(tmp_path / "later.toml", year, records, tmp_path / "carried")
    assert not made.before.private
    assert made.release.published.step.kind == "carry"
    assert any("0.63 of the standard deviation of a level" in each for each in made.notes())
    for name, sigma in (("count", 5), ("sum_emp", 8)):
        before, now = errors[name]
        for error, variance in ((before, sigma**2), (now, sigma**2), (now - before, 2 * sigma**2 * 0.2)):
            assert np.mean(error**2) == pytest.approx(variance, rel=SIX)
    done = run("release", tmp_path / "later.toml", "--set", "year=2021", "--out", tmp_path / "2021", "--yes")
    assert done.exit_code == 0, done.output
    corrected = WIDE.replace("revision = 0", "revision = 1").replace("sigma = 5 }\nsum", "sigma = 6 }\nsum")
    stage = '\n[stage]\nrevise = "2021"\nold_records = "records2021.parquet"\n'
    (tmp_path / "corrected.toml").write_text(corrected.replace("sigma = 8", "sigma = 10") + stage)
    made, errors = rehearsed_errors(tmp_path / "corrected.toml", year, records, tmp_path / "revised")
    assert made.release.published.step.kind == "revise"
    for name, sigma, wanted in (("count", 5, 6), ("sum_emp", 8, 10)):
        before, now = errors[name]
        for error, variance in ((before, sigma**2), (now, wanted**2), (now - before, wanted**2 - sigma**2)):
            assert np.mean(error**2) == pytest.approx(variance, rel=SIX)


def test_the_test_of_rehearsed_errors_rejects_fresh_noise():
    drawn = [rw.Gaussian(sigma=5).release(np.zeros(3000, int), rng=Seeded(each)).values() for each in (1, 2)]
    assert np.mean((drawn[1] - drawn[0]) ** 2) != pytest.approx(2 * 5**2 * 0.2, rel=SIX)
