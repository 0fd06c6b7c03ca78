"""recordwise.R by Rscript: totals, growth and regressions equal to those of Python."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy.stats import chi2

import recordwise as rw
from build import employers
from recordwise.noise import Seeded
from recordwise.release.formats.statistical import _r_text

pytestmark = pytest.mark.process
DRAWS = 400
ENDS = np.array([5e-7, 1 - 5e-7])
COUNTIES = [f"{state}00{number}" for state in ("01", "02", "04", "06") for number in range(1, 10)]


@pytest.fixture(scope="module")
def rscript() -> str:
    found = shutil.which("Rscript")
    if found is None:
        missing = "no Rscript on this machine: recordwise.R is NOT tested"
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail(f"{missing}, and RECORDWISE_REQUIRE_ALL is set")
        pytest.skip(missing)
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two years of a county table, and of counties by a column with an awkward name."""
    place, found = tmp_path_factory.mktemp("r"), []
    for year in (0, 1):
        chance, rows = np.random.default_rng(year), 4000
        emp = np.floor(chance.pareto(1.5, rows) * 20 + 1).astype(np.int64)
        weights = np.arange(1, len(COUNTIES) + 1) / np.arange(1, len(COUNTIES) + 1).sum()
        columns: dict[str, Any] = {
            "county": chance.choice(COUNTIES, rows, p=weights),
            "k": chance.choice(["=a", "b"], rows),
        }
        table = pa.table(
            {"id": np.arange(rows), **columns, "emp": emp, "pay": emp * 50 + chance.integers(0, 400, rows)}
        )
        by = rw.query().group_by("county", keys=rw.Keys.of({"county": COUNTIES}))
        both = rw.query().group_by("county", "k", keys=rw.Keys.product(county=COUNTIES, k=["=a", "b"]))
        by = by.sum("emp", rw.Gaussian(sigma=700)).sum("pay", rw.Gaussian(sigma=4000))
        with employers(table, measures={"emp": 1, "pay": 1}, dataset="y") as session:
            release = session.run([by, both.sum("emp", rw.Gaussian(sigma=30), alias="both")], rng=Seeded(year + 2))
        found.append(release.save(place / f"y{year}", formats=["parquet", "csv", "r"]))
    return found


def run(rscript: str, code: str, folder: Path) -> Any:
    """The numbers that an R script prints, one line for each."""
    script = f'source("recordwise.R", chdir = TRUE)\n{code}\n'
    told = [rscript, "--vanilla", "-"]
    found = subprocess.run(told, cwd=folder, input=script, capture_output=True, text=True, timeout=100)
    assert found.returncode == 0, found.stderr
    return [float(line) for line in found.stdout.split()]


def shrink(source: Path, target: Path, factor: float) -> None:
    """Replicates of a wrong law."""
    # Above the header stands that the release was drawn from a seed.
    below = pa.csv.ReadOptions(skip_rows=1)
    texts = pa.csv.ConvertOptions(column_types={"label": pa.string()})
    table = pa.csv.read_csv(source, below, convert_options=texts)
    value = table["value"].to_numpy()
    columns = {name: value + factor * (table[name].to_numpy() - value) for name in table.column_names[2:]}
    pa.csv.write_csv(pa.table({"label": table["label"], "value": value, **columns}), target)


def slope_error(response: pa.Table, covariate: pa.Table) -> float:
    """The standard error of a slope from replicates (T-EIV), written out."""
    x, y = (each["value"].to_numpy() for each in (covariate, response))
    noise = np.array([covariate[name].to_numpy() - x for name in covariate.column_names[2:]])
    deep, tau = x - x.mean(), np.mean(noise**2, axis=0)
    left = deep @ deep - np.mean(np.sum((noise - noise.mean(axis=1)[:, None]) ** 2, axis=1))
    slope = deep @ (y - y.mean()) / left
    scores = deep * (y - y.mean() - slope * deep) + slope * tau
    return float(np.sqrt(len(x) / (len(x) - 2) * scores @ scores) / left)


SHOW = 'show <- function(each) cat(sprintf("%.17g\\n", unlist(each)))\n'


def test_totals_growth_and_regressions_are_those_of_python(rscript: str, folders: list[Path], tmp_path: Path) -> None:
    before, now = map(rw.read, folders)
    three = ["01001", "02003", "06009"]
    drawn = {name: now.replicates(f"sum_{name}", count=DRAWS, by="county") for name in ("emp", "pay")}
    for name, each in drawn.items():
        each.save(tmp_path / f"{name}.csv")
    shrink(tmp_path / "emp.csv", tmp_path / "small.csv", 0.75)
    shrink(tmp_path / "pay.csv", tmp_path / "little.csv", 0.75)
    code = f"""
    codes <- c({", ".join(map(json.dumps, three))})
    show(rw_total("sum_emp", where = list(county = codes))[c("value", "sd", "low", "high")])
    show(rw_total("both", where = list(county = codes, k = "=a"))[c("value", "sd", "low", "high")])
    large <- list(county = c("06007", "06008", "06009"))
    by <- rw_total("sum_emp", where = large, by = "county")
    last <- rw_total("sum_emp", where = large, by = "county", folder = {json.dumps(str(folders[0]))})
    grown <- rw_growth(by, last)
    show(grown[grown$label == "06009", c("value", "sd", "low", "high")])
    emp <- rw_replicates({json.dumps(str(tmp_path / "emp.csv"))})
    pay <- rw_replicates({json.dumps(str(tmp_path / "pay.csv"))})
    show(rw_estimate(function(emp, pay) sum(pay) / sum(emp), emp, pay)[c("value", "sd")])
    show(rw_regress(pay, emp)[c("slope", "sd", "naive", "reliability")])
    small <- rw_replicates({json.dumps(str(tmp_path / "small.csv"))})
    little <- rw_replicates({json.dumps(str(tmp_path / "little.csv"))})
    show(rw_estimate(function(emp, pay) sum(pay) / sum(emp), small, little)["sd"])
    show(rw_regress(pay, small)["reliability"])
    """
    shown = run(rscript, SHOW + code, folders[1])
    total, both = now.total("sum_emp", {"county": three}), now.total("both", {"county": three, "k": "=a"})
    exact = [each for one in (total, both) for each in (one.value, one.sd, one.low, one.high)]
    # CSV files have the digits that mean something: a hundredth of the error of a cell.
    np.testing.assert_allclose(shown[:4], exact[:4], atol=total.sd / 50)
    np.testing.assert_allclose(shown[4:8], exact[4:], atol=both.sd / 50)
    grown = (
        now.growth("sum_emp", before, where={"county": COUNTIES[-3:]}, by="county")
        .to_pandas()
        .set_index("label")
        .loc["06009"]
    )
    np.testing.assert_allclose(shown[8:12], grown[["value", "sd", "low", "high"]].astype(float), rtol=1e-3, atol=1e-4)
    ratio = now.total("sum_pay").per(now.total("sum_emp"))
    assert shown[12] == pytest.approx(ratio.value, rel=1e-9)
    # Squared errors of replicates over their variance are chi-square: false alarm 1e-6. Errors of three quarters are noticed.
    low, high = (float(each) for each in np.sqrt(chi2.ppf(ENDS, DRAWS) / DRAWS))
    assert low < shown[13] / ratio.sd < high
    assert not low < shown[18] / ratio.sd < high
    model = now.regress("sum_pay", "sum_emp", by="county")
    assert shown[16] == pytest.approx(model.naive[0], rel=1e-9)
    # What noise adds to the spread, too, with as many degrees of freedom as there are counties but one.
    freedom = DRAWS * (len(COUNTIES) - 1)
    low, high = (float(each) for each in chi2.ppf(ENDS, freedom) / freedom)
    assert low < (1 - shown[17]) / (1 - model.reliabilities[0]) < high
    assert not low < (1 - shown[19]) / (1 - model.reliabilities[0]) < high
    assert shown[14] == pytest.approx(shown[16] / shown[17], rel=1e-9)
    assert shown[15] == pytest.approx(slope_error(drawn["pay"].table, drawn["emp"].table), rel=1e-6)
    # The correction matters here: noise pulls the slope towards 0.
    assert abs(shown[16] - shown[14]) > 0.02 * shown[14]


def test_texts_are_read_by_r_as_they_are(rscript: str, folders: list[Path]) -> None:
    text = 'a"b\\n\n\u00e9\u2028\U0001f600`$(x)'
    code = f"cat(utf8ToInt(enc2utf8({_r_text(text)})), sep = ' ')"
    assert run(rscript, code, folders[0]) == [ord(letter) for letter in text]


def test_the_file_says_when_a_release_is_not_private(folders: list[Path]) -> None:
    text = (folders[0] / "recordwise.R").read_text()
    assert "# Privacy: NOT PRIVATE" in text
    assert rw.read(folders[0]).names
    (folders[0] / "recordwise.R").write_text(
        text.replace("# Privacy: NOT PRIVATE: drawn from", "# Privacy: private or")
    )
    with pytest.raises(rw.errors.SourceError, match=r"recordwise\.R"):
        rw.read(folders[0])


def test_cells_without_a_code_count_and_awkward_codes_are_named_alike(rscript: str, tmp_path: Path) -> None:
    county = rw.Column(name="county", type="text", null="category")
    rows = {"id": [1, 2, 3], "county": ["'x", None, ""], "emp": [5, 7, 9]}
    with employers(rows, columns={"county": county}, dataset="y") as session:
        by = rw.query().group_by("county", keys=["'x", None, ""]).sum("emp", rw.Gaussian(sigma=3))
        folder = session.run(by, rng=Seeded(1)).save(tmp_path / "out", formats=["parquet", "csv", "r"])
    rw.read(folder).total("sum_emp", by="county").replicates(20).save(tmp_path / "emp.csv")
    code = f"""
    by <- rw_total("sum_emp", by = "county")
    show(c(sum(by$value), rw_total("sum_emp")$value))
    drawn <- rw_replicates({json.dumps(str(tmp_path / "emp.csv"))})
    show(as.numeric(by$label[1] %in% drawn$label | by$label[2] %in% drawn$label))
    """
    parts, whole, named = run(rscript, SHOW + code, folder)
    assert (parts, named) == (whole, 1)


def test_a_label_of_the_letters_na_is_no_missing_label(rscript: str, folders: list[Path], tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text('"label","value","replicate_1"\n"NA",1,2.5\n"#",3,4\n')
    code = f"""
    drawn <- rw_replicates({json.dumps(str(tmp_path / "r.csv"))})
    show(c(as.numeric(drawn$label == "NA"), drawn$value, drawn$drawn))
    """
    assert run(rscript, SHOW + code, folders[0]) == [1, 0, 1, 3, 2.5, 4]


def test_cells_by_whole_numbers_are_in_their_order(rscript: str, tmp_path: Path) -> None:
    code = rw.Column(name="code", type="integer")
    numbers = [1, 2, 10, 100_000]
    with employers({"id": [1, 2], "code": [1, 10], "emp": [5, 7]}, columns={"code": code}, dataset="y") as session:
        by = rw.query().group_by("code", keys=numbers).sum("emp", rw.Gaussian(sigma=3))
        folder = session.run(by, rng=Seeded(1)).save(tmp_path / "out", formats=["parquet", "csv", "r"])
    assert run(rscript, SHOW + 'show(as.numeric(rw_total("sum_emp", by = "code")$label))', folder) == numbers
