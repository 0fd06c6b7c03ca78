"""Totals of regions from all tables of a release, against dense generalized least squares built from the tables alone."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import recordwise as rw
from build import employers
from recordwise.errors import ParameterError, SourceError
from recordwise.noise import Seeded
from recordwise.reader import ReaderRelease
from recordwise.reader.asking import ALONE, CUT, OPEN

COUNTIES = ["01001", "01003", "01005", "02013", "02016", "34001", "34003"]
CODES = ["311", "312", "321", "441"]
Z = 1.959963984540054
SHARED = 9 * np.sqrt(3)
"""The noise of each of three tables that share a mechanism of sigma 9."""


def records(rows: int = 600) -> pa.Table:
    chance = np.random.default_rng(4)
    return pa.table(
        {
            "id": np.arange(rows),
            "county": chance.choice(COUNTIES, rows),
            "naics": chance.choice(CODES, rows),
            "emp": np.floor(chance.pareto(1.2, rows) * 4 + 1).astype(np.int64),
        }
    )


RECORDS = records()


def session() -> Any:
    return employers(RECORDS, max_outside="accept", dataset="small")


@pytest.fixture(scope="module")
def opened() -> Any:
    with session() as made:
        yield made


def random_query(chance: Random) -> tuple[Any, dict[str, bool]]:
    """Trees and crossed trees, of complete or incomplete keys, with or without rests, sized or not, some tables missing."""
    kind = {name: chance.random() < 0.5 for name in ("crossed", "listed", "rest", "sized")}
    cells = [(county, code) for county in COUNTIES for code in CODES]
    if not kind["listed"]:
        cells = sorted(chance.sample(cells, chance.randrange(12, 24)))
    columns: dict[str, Any] = {"county": [county for county, _ in cells], "naics": [code for _, code in cells]}
    if kind["sized"]:
        columns["size"] = [chance.choice([10, 150, 900]) for _ in cells]
    keys = rw.Keys.of(columns, **({"size": "size", "sized_on": "public: last year"} if kind["sized"] else {}))
    noise = rw.Gaussian(sigma=chance.choice(["2.5", "9", "40"]))
    mechanism = rw.Sized(rw.Gaussian(sigma="0.1"), floor=100) if kind["sized"] else noise
    shown = chance.choice([[1, 3], [1, 2, 3], [2, 3]])
    asked = rw.query()
    if kind["crossed"]:
        kind["rest"] = False
        asked = asked.levels(rw.prefix("county", [2, 5])).levels(rw.prefix("naics", shown), keys=keys)
    else:
        rest = "publish" if kind["rest"] else None
        asked = asked.group_by("county").levels(rw.prefix("naics", shown), keys=keys, all_other=rest)
    return asked.sum("emp", mechanism), kind


def told(name: str, value: str) -> tuple[str, str]:
    """The column of the records and the beginning of its code that a published key stands for."""
    found = re.fullmatch(r"([a-z]+)\d*", name)
    assert found
    return found[1], value


def inside(outer: dict[str, str], inner: dict[str, str]) -> bool:
    return all(inner.get(column, "").startswith(code) for column, code in outer.items())


def dense(release: rw.Release, *, known: bool) -> tuple[Any, Any, Any, list[tuple[str, dict[str, str], bool]]]:
    """Every answer as a sum of unknown cells; unless remainders are known, each coarser cell has one of its own."""
    answers = []
    for table in release.tables:
        for row in table.data.to_pylist():
            key = dict(told(name, row[name]) for name in table.keys if isinstance(row[name], str))
            answers.append((table.name, key, bool(row.get("all_other")), row["sum_emp"], row["sum_emp_sd"]))
    largest = max(len("".join(key.values())) for _, key, *_ in answers)
    finest = {table for table, key, rest, *_ in answers if len("".join(key.values())) == largest and not rest}
    owners = [at for at, (table, _, rest, *_) in enumerate(answers) if table in finest or rest or not known]
    design = np.zeros((len(answers), len(owners)))
    for row, (name, key, rest, *_) in enumerate(answers):
        for place, at in enumerate(owners):
            other, own, *_ = answers[at]
            design[row, place] = at == row or (not rest and other != name and inside(key, own))
    values = np.array([each[3] for each in answers], float)
    variances = np.array([each[4] for each in answers], float) ** 2
    return design, values, variances, [(table, key, rest) for table, key, rest, *_ in answers]


def gls(design: Any, values: Any, variances: Any, asked: Any) -> tuple[Any, Any]:
    inverse = np.linalg.pinv(design.T @ (design / variances[:, None]), hermitian=True)
    wanted = asked @ design
    return wanted @ inverse @ design.T @ (values / variances), wanted @ inverse @ wanted.T


@pytest.mark.theorem("T-ASK")
@pytest.mark.parametrize("first", [0, *(pytest.param(at, marks=pytest.mark.slow) for at in range(20, 2000, 20))])
@pytest.mark.costly
def test_totals_are_those_of_dense_generalized_least_squares(first: int) -> None:
    """20 random releases, and 2,000 with the slow ones."""
    # A session keeps what it released, so that a thousand of them in one take gigabytes.
    with session() as made:
        for seed in range(first, first + 20):
            compare_with_dense(made, seed)


def compare_with_dense(opened: Any, seed: int) -> None:
    chance = Random(seed)
    query, kind = random_query(chance)
    release = opened.run(query, rng=Seeded(seed))
    known = kind["listed"] or kind["rest"]
    design, values, variances, cells = dense(release, known=known)
    column = "county5" if kind["crossed"] else "county"
    listed = sorted({key["county"] for _, key, _ in cells if len(key.get("county", "")) == 5})
    codes = chance.sample(listed, chance.randrange(2, len(listed) + 1))
    regions = {column: codes, "region": [chance.choice("AB") for _ in codes], "share": [chance.random() for _ in codes]}
    found = ReaderRelease.of(release).total("emp", regions=regions, complete=kind["listed"])
    # The coarsest table that tells counties.
    digits = {t.name: sum(map(int, re.findall(r"\d", "".join(t.keys)))) for t in release.tables if column in t.keys}
    table = min(digits, key=lambda name: digits[name])
    asked = np.zeros((len(found), len(cells)))
    for code, region, share in zip(*regions.values()):
        for at, (own, key, _) in enumerate(cells):
            if own == table and key["county"] == code:
                asked[found.labels.index(region), at] += share
    expected, covariance = gls(design, values, variances, asked)
    assert found.values == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.covariance == pytest.approx(covariance, rel=1e-9, abs=1e-9 * np.max(covariance))
    raw = asked @ values
    if not known:
        assert found.values == pytest.approx(raw, rel=1e-12)
        assert OPEN in found.notes or len(release.tables) == 1
    elif len(release.tables) > 1 and len(codes) < len(listed):
        assert np.max(np.abs(found.values - raw)) > 1e-6


def county_release(opened: Any, seed: int = 1, sigma: str = "9", rest: str | None = None) -> rw.Release:
    keys = rw.Keys.of({"county": COUNTIES})
    asked = rw.query().levels((), rw.prefix("county", [2, 5]), keys=keys, all_other=rest)
    return opened.run(asked.sum("emp", rw.Gaussian(sigma=sigma)).count(rw.Gaussian(sigma=3)), rng=Seeded(seed))


def test_all_but_one_county_is_told_as_the_nation_less_one(opened: Any) -> None:
    release = ReaderRelease.of(county_release(opened))
    found = release.total("emp", {"county5": COUNTIES[:-1]}, complete=True)
    assert "less 34003" in found.sources[0]
    assert found.sd < SHARED * np.sqrt(2)
    assert found.low < found.value < found.high
    assert found.high - found.value == pytest.approx(Z * found.sd + 0.5 * 1, abs=0.5)
    plain = release.total("emp", {"county5": COUNTIES[:-1]})
    assert plain.sd == pytest.approx(SHARED * np.sqrt(6), rel=1e-6)
    assert OPEN in plain.notes
    whole = release.total("count", complete=True)
    assert whole.value == pytest.approx(len(RECORDS), abs=20)


def test_a_citation_names_release_question_method_and_version(opened: Any) -> None:
    release = county_release(opened).with_labels(labels={"county5=34001": "Atlantic", "emp": "employees"})
    found = ReaderRelease.of(release).total("emp", {"county5": "34001"})
    assert found.question == "total of employees where county5 is Atlantic (34001)"
    for part in (release.digest, found.question, "sum of noisy answers", rw.__version__, "NOT PRIVATE"):
        assert part in found.citation
    assert "NOT PRIVATE" in found.sentence
    assert json.loads(json.dumps(found.to_json()))["answers"][0]["value"] == found.value


def test_differences_ratios_and_growth_use_covariances(opened: Any) -> None:
    release = ReaderRelease.of(county_release(opened))
    zones = {"code": COUNTIES, "region": ["a", "a", "b", "b", "c", "c", "c"]}
    found = release.total("emp", regions=zones, by="county5", complete=True)
    less = found.difference("a", "b")
    cov = found.covariance
    assert less.sd**2 == pytest.approx(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1])
    assert cov[0, 1] < 0
    ratio = found.ratio("a", "b")
    for end in (ratio.low, ratio.high):
        spread = np.sqrt(cov[0, 0] - 2 * end * cov[0, 1] + end**2 * cov[1, 1])
        reach = Z * spread + found.halves[0] + end * found.halves[1]
        assert abs(found.values[0] - end * found.values[1]) == pytest.approx(reach, rel=1e-9)
    per = found.per(release.total("count", regions=zones, by="county5", complete=True))
    assert per.values == pytest.approx(found.values / release.total("count", regions=zones, complete=True).values)
    before = ReaderRelease.of(county_release(opened, seed=2)).total("emp", regions=zones, complete=True)
    assert found.growth(before).values == pytest.approx(found.values / before.values - 1)
    with pytest.raises(ParameterError, match="same statistic"):
        found.per(found)
    with pytest.raises(ParameterError, match="not clearly different"):
        ReaderRelease.of(county_release(opened, sigma="90000")).total("emp", by="county5").ratio("01001", "34001")


def test_what_cannot_be_answered_is_refused_with_what_can(opened: Any, tmp_path: Path) -> None:
    asked = rw.query().group_by("county", keys=rw.Keys.of({"county": COUNTIES}))
    asked = asked.sum("emp", rw.LogTransform(offset=20, sigma="0.2"), alias="slow").count(rw.Gaussian(sigma=3))
    asked = asked.sum("emp", rw.Gaussian(sigma=9)).ratio("sum_emp", "count")
    release = ReaderRelease.of(opened.run(asked, rng=Seeded(1)))
    mean = next(name for name in release["county"].column_names if "ratio" in name or "per" in name)
    with pytest.raises(ParameterError, match=r"is not added up.*count, sum_emp|is not added up"):
        release.total(mean)
    with pytest.raises(ParameterError, match="without a cell"):
        release.total("count", {"county": "99"})
    with pytest.raises(ParameterError, match="no column of the tables"):
        release.total("count", {"naics": "311"})
    with pytest.raises(ParameterError, match="is not published"):
        release.total("pay")
    with pytest.raises(SourceError):
        rw.read(tmp_path / "nothing")
    assert ALONE in release.total("count", {"county": "01001"}).notes


def test_nonnegative_answers_are_cut_and_hold_their_value(opened: Any) -> None:
    found = ReaderRelease.of(county_release(opened, sigma="90000")).total("emp", by="county5", nonnegative=True)
    assert np.all(found.values >= 0)
    assert np.any(found.values == 0)
    assert np.all((found.lows >= 0) & (found.lows <= found.values) & (found.values <= found.highs))
    assert any(note.startswith(CUT) and "0.4 at 0, 0.2 at 0.5" in note for note in found.notes)
    with pytest.raises(ParameterError, match="are cut"):
        found.difference("01001", "34001")


def test_codes_without_a_cell_are_noted_and_regions_come_from_files(opened: Any, tmp_path: Path) -> None:
    file = tmp_path / "zones.csv"
    file.write_text("code,region,share\n01001,shore,\n34001,shore,0.5\n99001,shore,1\n99003,gone,1\n")
    found = ReaderRelease.of(county_release(opened)).total("emp", regions=file)
    assert found.labels == ("shore",)
    assert found.sd == pytest.approx(SHARED * np.sqrt(1.25), rel=1e-6)
    assert [note for note in found.notes if "left out" in note]
    assert [note for note in found.notes if "add nothing there: shore" in note]
    file.write_text("code,region\n01001,a\n01001,a\n")
    with pytest.raises(ParameterError, match="twice"):
        ReaderRelease.of(county_release(opened)).total("emp", regions=file)


def test_folder_and_zip_are_read_alike(opened: Any, tmp_path: Path) -> None:
    county_release(opened).save(tmp_path / "out", formats=["parquet"])
    with zipfile.ZipFile(tmp_path / "out.zip", "w") as packed:
        for path in (tmp_path / "out").iterdir():
            packed.write(path, f"cbp/{path.name}")
    folder, zipped = (rw.read(tmp_path / name) for name in ("out", "out.zip"))
    assert folder.names == zipped.names
    asked = {"county5": ["01001", "34001"]}
    assert folder.total("emp", asked).value == zipped.total("emp", asked).value
    assert "01001" in folder._repr_html_()
    (tmp_path / "bad.zip").write_bytes(b"PK nothing")
    with pytest.raises(SourceError):
        rw.read(tmp_path / "bad.zip")


def test_the_old_name_says_what_replaced_it(opened: Any, tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match=r"now rw\.read"):
        getattr(rw, "load_release")  # noqa: B009
    county_release(opened).save(tmp_path / "out", formats=["parquet"])
    found = rw.read(tmp_path / "out")
    assert isinstance(found, rw.Release)
    fitted = found.consistent(complete=True)
    assert isinstance(fitted, ReaderRelease)
    assert fitted.total("emp").sd == found.total("emp", complete=True).sd


@pytest.mark.slow
@pytest.mark.theorem("T-HALFSTEP")
@pytest.mark.parametrize("sigma", ["0.2", "0.62", "9"])
def test_intervals_of_totals_cover(opened: Any, sigma: str) -> None:
    """400 releases, noise of .35, 1.07 and 15.6 steps; false alarm 1e-6 each. Errors of a half of the stated ones are noticed."""
    truth = {
        code: sum(e for c, e in zip(RECORDS["county"].to_pylist(), RECORDS["emp"].to_pylist()) if c == code)
        for code in COUNTIES
    }
    codes, hits, narrow, several = COUNTIES[:5], 0, 0, 400
    exact = sum(truth[code] for code in codes)
    for seed in range(several):
        found = ReaderRelease.of(county_release(opened, seed=seed, sigma=sigma)).total(
            "emp", {"county5": codes}, complete=True
        )
        hits += found.low <= exact <= found.high
        narrow += abs(found.value - exact) <= Z / 2 * found.sd
    least = binom.ppf(1e-6, several, 0.95)
    assert hits >= least
    assert narrow < least


@pytest.mark.process
def test_a_first_answer_loads_no_engine_no_ledger_no_mechanism_and_no_parser(opened: Any, tmp_path: Path) -> None:
    """Of names of codes, sized noise and crossing tables, too, which go through more of Arrow; transforms load mechanisms alone."""
    keys = rw.Keys.of(
        {"county": COUNTIES * 2, "naics": ["311"] * 7 + ["441"] * 7, "size": [10, 900] * 7},
        size="size",
        sized_on="public: last year",
    )
    asked = rw.query().levels(rw.prefix("county", [2, 5])).levels(rw.prefix("naics", [1, 3]), keys=keys)
    groups = rw.ByGroup(
        "naics", {"3": rw.Gaussian(sigma=3)}, default=rw.Polylog(power=2, rate=60, offset=10, scale=5), length=1
    )
    noises = {"grouped": groups, "laplace": rw.GeneralizedGaussian(shape=1, scale=4)}
    asked = asked.sum("emp", rw.Sized(rw.Gaussian(sigma="0.1"), floor=100))
    for alias, noise in (noises | {"log": rw.LogTransform(offset=20, sigma="0.1")}).items():
        asked = asked.sum("emp", noise, alias=alias)
    release = opened.run(asked, rng=Seeded(1))
    release.with_labels(labels={"county5=34001": "Atlantic"}).save(tmp_path / "out", formats=["parquet"])
    asking = f"release = rw.read({str(tmp_path / 'out')!r})"
    for name in ("sum_emp", *noises):
        asking += f"; release.total({name!r}, {{'county5': '34001'}}, complete=True)"
    heavy = (
        *("duckdb", "sqlglot", "pandas", "polars", "matplotlib", "cryptography", "jinja2", "pyarrow.dataset"),
        *(f"scipy.{each}" for each in ("linalg", "optimize", "sparse.linalg", "special", "stats")),
        *(f"recordwise.{each}" for each in ("engines", "session", "ledger", "mechanisms", "planning")),
        *(f"recordwise.plan.{each}" for each in ("cost", "keys.hierarchies", "keys.keys", "plan", "query", "sources")),
        *("recordwise.postprocess.least_squares", "recordwise.release.consistent", "recordwise.release.page.page"),
    )
    command = f"CliRunner().invoke(app, ['ask', {str(tmp_path / 'out')!r}, 'sum_emp', '--complete'])"
    # Old versions of scipy load their linear algebra with what is needed here.
    asking = f"import sys, scipy.sparse; own = {{*sys.modules}}\nimport recordwise as rw; {asking}"
    loaded = f"print([each for each in {heavy} if each in sys.modules and each not in own])"
    code = (
        f"{asking}\nfrom typer.testing import CliRunner\nfrom recordwise.cli import app\n"
        f"assert {command}.exit_code == 0\n{loaded}\nrelease.total('log', complete=True)\n{loaded}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "['recordwise.mechanisms']"]


def test_whole_lists_need_no_note_about_what_is_not_listed() -> None:
    places = rw.Hierarchy.of(
        "place",
        {"nation": ["US"] * 7, "state": [code[:2] for code in COUNTIES], "county": COUNTIES},
        levels=["nation", "state", "county"],
        source="public: counties",
    )
    notes = []
    for listed in (CODES, CODES[:1]):
        cells = [(county, code) for county in COUNTIES for code in (CODES if county == "01001" else listed)]
        keys = rw.Keys.of({"county": [each for each, _ in cells], "naics": [each for _, each in cells]})
        asked = rw.query().levels("nation", "county").group_by("naics", keys=keys).sum("emp", rw.Gaussian(sigma=9))
        with employers(RECORDS, hierarchies=[places], dataset="small", max_outside="accept") as made:
            release = ReaderRelease.of(made.run(asked, rng=Seeded(1)))
        notes.append([each for each in release.total("emp", by="county").notes if "in no listed cell" in each])
    assert [len(each) for each in notes] == [1, 1]
    assert [each for each in release.total("emp", {"naics": "311"}).notes if "in no listed cell" in each] == []
