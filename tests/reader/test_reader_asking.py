"""What a question goes through: tables and cells chosen, weights told in words, errors in parts, and zips at their limits."""

import zipfile
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import recordwise as rw
from reader.test_reader_derived import CODES, COUNTIES, released
from recordwise.errors import ParameterError, SourceError
from recordwise.noise import Seeded
from recordwise.reader import ReaderRelease, asking, reading
from recordwise.reader.questions import Question

SMALL: dict[str, Any] = {"unit": "id", "measures": {"emp": 1}, "tuned_on": "synthetic", "dataset": "small"}


@pytest.fixture(scope="module")
def opened() -> Any:
    rows = pa.table(
        {
            "id": np.arange(60),
            "county": [COUNTIES[at % 7] for at in range(60)],
            "naics": [CODES[at % 4] for at in range(60)],
            "emp": np.arange(60) % 9 + 1,
        }
    )
    with rw.Session(rows, max_outside="accept", **SMALL) as session:
        yield session


@pytest.fixture(scope="module")
def normal(opened: Any) -> ReaderRelease:
    return released(opened)


@pytest.fixture(scope="module")
def laplace(opened: Any) -> ReaderRelease:
    return released(opened, rw.GeneralizedGaussian(shape=1, scale=4))


@pytest.fixture(scope="module")
def growing(opened: Any) -> ReaderRelease:
    return released(opened, rw.LogTransform(offset=20, sigma="0.1"))


# Tables and cells.


def test_the_coarsest_table_that_tells_all_columns_is_asked(normal: ReaderRelease) -> None:
    tables = {table.name: table for table in normal.published.queries[0].tables}
    for columns, keys in (
        ((), 1),
        (("county2",), 1),
        (("county5",), 1),
        (("county2", "naics2"), 2),
        (("county5", "naics3"), 2),
        (("naics2",), 2),
    ):
        query = normal.published.queries[0]
        groups = asking.groups_asked(normal, query, columns)
        chosen, used = asking.table_asked(normal, query, groups)
        assert set(columns) <= {each.name for each in chosen.by}, columns
        assert len(chosen.by) == keys, columns
        assert {each.name for each in used.tables} == set(tables)
    with pytest.raises(ParameterError, match="'town' is no column of the tables"):
        asking.groups_asked(normal, normal.published.queries[0], ["county2", "town"])


def test_each_question_is_a_row_of_weights_of_the_cells_of_one_table(normal: ReaderRelease) -> None:
    query = normal.published.queries[0]
    statistic = query.statistics[0]
    model = asking.Model.of(normal, query, statistic, complete=True)

    def rows(where: Any = None, **how: Any) -> tuple[asking.Cells, Any]:
        question = asking._with_column(normal, query, Question.of("emp", where, **how))
        groups = asking.groups_asked(normal, query, question.columns)
        chosen, _ = asking.table_asked(normal, query, groups)
        cells = asking.cells_asked(model.nesting, chosen, groups, question)
        return cells, cells.rows.toarray()

    starts = np.cumsum([0, *model.nesting.sizes.values()])
    place = dict(zip(model.nesting.sizes, starts))
    cells, weights = rows(by="county5")
    keys = list(normal[cells.table].column("county5").to_pylist())
    assert cells.labels == tuple(COUNTIES)
    for at, code in enumerate(COUNTIES):
        assert np.flatnonzero(weights[at]).tolist() == [place[cells.table] + keys.index(code)]
    cells, weights = rows("county2 = '01' and not county5 = '01003'", by="county5")
    assert cells.labels == ("01001", "01005")
    assert weights.sum() == 2
    cells, weights = rows(
        regions={"code": ["01001", "34001", "34001"], "region": ["a", "a", "b"], "share": [1, 0.5, 0.5]}
    )
    assert cells.labels == ("a", "b")
    assert sorted(weights[0][weights[0] > 0]) == [0.5, 1]
    assert weights[1].sum() == 0.5
    # A region all of whose cells fail the condition is not asked about.
    cells, weights = rows("county2 = '01'", regions={"county5": ["01001", "34001"], "region": ["a", "b"]})
    assert cells.labels == ("a",)
    with pytest.raises(ParameterError, match="leaves no cell of the table"):
        rows("county2 = '01' and county5 = '34001'")
    with pytest.raises(ParameterError, match="must say which column the codes of the regions are of"):
        rows(regions={"code": ["nowhere"], "region": ["a"]})
    cells, weights = rows({"county5": COUNTIES[:2]})
    assert (cells.labels, weights.sum()) == (("total",), 2)


# Errors in parts.


@pytest.mark.parametrize("name", ["laplace", "growing"])
@pytest.mark.costly
def test_intervals_in_parts_are_those_of_all_at_once(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = request.getfixturevalue(name)
    asked: dict[str, Any] = {"by": "county5", "complete": True}
    whole = release.total("emp", **asked)
    size = next(len(model.linear.answers) for key, model in release.models.items() if key[2])
    for most in (1, 3 * size):
        monkeypatch.setattr(asking, "MOST_MOVED", most)
        parts = release.total("emp", **asked)
        assert parts.lows == pytest.approx(whole.lows, rel=1e-9)
        assert parts.highs == pytest.approx(whole.highs, rel=1e-9)
        if name == "laplace":
            weights = np.eye(7)[[0, 3, 5, 6]] - np.eye(7)[[1]]
            for ours, theirs in zip(parts.law(weights, [0.5, 0.9]), whole.law(weights, [0.5, 0.9])):
                assert ours == pytest.approx(theirs, rel=1e-9)
            assert parts.errors(40, "x", 1e-12) == pytest.approx(whole.errors(40, "x"), abs=1e-6)


def test_simulated_errors_are_noise_through_the_estimate(
    laplace: ReaderRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = laplace.total("emp", by="county5", complete=True)
    model = next(model for key, model in laplace.models.items() if key[2])
    given = np.random.default_rng(2).normal(size=(5, len(model.linear.answers)))
    noise = SimpleNamespace(errors=lambda answers, some, source: given[:some])
    fake: Any = SimpleNamespace(linear=model.linear, noise=noise, statistic=model.statistic)
    rows = sparse.csr_array(np.random.default_rng(3).normal(size=(2, len(model.linear.answers))))
    found = asking.Model.errors(fake, rows, 5, "seed")
    weights = model.linear.influences(rows)
    assert found == pytest.approx(given @ weights.T, abs=1e-9)
    assert answer.errors is not None
    assert answer.errors(7, "p").shape == (7, 7)
    # Weights below the part that may be missing are left out, and no others.
    monkeypatch.setattr(asking, "MOST_MOVED", len(model.linear.answers))
    sds = np.sqrt(model.linear.spread)
    allowed = float(np.max(sds))
    kept = asking.Model._large_weights(model, rows, allowed).toarray()
    least = allowed / np.sqrt(len(sds))
    assert np.array_equal(kept != 0, np.abs(weights) * sds > least)
    assert kept[kept != 0] == pytest.approx(weights[kept != 0])
    missing = np.sqrt(((weights - kept) ** 2) @ model.linear.spread)
    assert np.all(missing <= allowed)


def test_laws_are_computed_up_to_so_many_weights(laplace: ReaderRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    laplace.total("emp", by="county5", complete=True)
    model = next(model for key, model in laplace.models.items() if key[2])
    rows = sparse.csr_array(np.eye(3, len(model.linear.answers)))
    monkeypatch.setattr(asking, "MOST_SUMMED", 3 * len(model.linear.answers))
    assert model.law(rows) is not None
    assert model.reaches(rows, [0.5])[0].shape == (3,)
    monkeypatch.setattr(asking, "MOST_SUMMED", 3 * len(model.linear.answers) - 1)
    assert model.law(rows) is None
    assert model.reaches(rows, [0.5]) is None


def test_half_steps_are_bounded_only_where_noise_is_many_steps(normal: ReaderRelease) -> None:
    """Twenty-five steps in a standard deviation are many, in every answer."""
    asked: list[bool] = []

    class Spying:
        def __init__(self, linear: Any, spread: Any) -> None:
            self.linear, self.spread = linear, spread

        def answer(self, rows: Any, *, fine: bool, use: Any) -> Any:
            asked.append(fine)
            return self.linear.answer(rows, fine=False, use=use)

    for name in ("sum_emp", "count"):
        found = normal.total(name, by="county5", complete=True)
        model = next(each for key, each in normal.models.items() if key[1] == name and key[2])
        cells: Any = SimpleNamespace(rows=sparse.csr_array(np.eye(2, len(model.linear.answers))))
        many = np.full(len(model.linear.answers), 25.0**2)
        coarse_in_one = np.where(np.arange(len(many)) == 1, 25.0**2 - 1, many)
        for spread, step, fine in (
            (many, 1.0, True),
            (many - 1, 1.0, False),
            (coarse_in_one, 1.0, False),
            (4 * many, 2.0, True),
            (4 * coarse_in_one, 2.0, False),
            (many, 0.0, False),
        ):
            spying = Spying(model.linear, spread)
            fake: Any = SimpleNamespace(step=step, linear=spying, noise=model.noise, law=lambda _: None)
            numbers, _ = asking._numbers(fake, cells, 0.95, "s", 0.95)
            assert asked[-1] == fine
            assert numbers["halves"] == pytest.approx(step / 2 * model.linear.answer(cells.rows).largest)
            reach = 1.959963984540054 * numbers["sds"] + numbers["halves"]
            assert numbers["highs"] - numbers["values"] == pytest.approx(reach)
            assert numbers["values"] - numbers["lows"] == pytest.approx(reach)
        assert found.normal


# Words.


def test_sources_are_cells_with_at_least_half_of_the_largest_weight() -> None:
    """Weights of 1, 0.5, -0.5, 0.4 and next to nothing in three tables."""
    tables = [
        SimpleNamespace(name=name, keys=("k",), data=pa.table({"k": keys}))
        for name, keys in (("t", ["a", "b"]), ("u", ["c", "d"]), ("v", ["e", "f"]))
    ]

    def told(*weights: float) -> str:
        given = np.array(weights)
        nesting: Any = SimpleNamespace(tables=tables, by_table=lambda each: np.split(each, 3))
        return asking._sources(nesting, given, np.array([1.0, 0, 0, 0, 0, 0]), {"k=b": "Bee"})

    assert told(1, 0, 0, 0, 0, 0) == "a (t)"
    assert told(1, 0.5, 0, 0, 0, 0) == "a, Bee (t)"
    assert told(1, 0, 0.5, 0, -0.5, 0) == "a (t) and c (u) less e (v)"
    assert told(1, 0, 0, 0.49, 0, -0.49) == "mainly a (t), with small weights of other cells of u, v"
    assert told(1, 0, 0, 1e-10, 0, 0) == "a (t)"
    assert told(0.4, 0.4, 0, 0, 0, 0) == "a weighted sum of cells of t"
    assert told(1, 0, 0, -0.5, 0, 0.1) == "mainly a (t) less d (u), with small weights of other cells of v"


def test_a_release_that_carries_noise_names_what_it_follows() -> None:
    def told(step: Any, follows: tuple[str, ...], renamed: bool = False, keeps: bool = True) -> str:
        statistic = SimpleNamespace(noise=True, keeps_variance=keeps)
        queries = [SimpleNamespace(statistics=[statistic, SimpleNamespace(noise=False)])]
        release: Any = SimpleNamespace(published=SimpleNamespace(step=step, follows=follows, queries=queries))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asking, "noise_read", lambda each: each)
            return asking.followed(release, renamed=renamed)

    def step(**more: Any) -> Any:
        return SimpleNamespace(**{"carry": Fraction(1, 2), "relisted": False, "renamed": {}, **more})

    assert told(step(), ("d",)) == "d 0.5"
    assert told(None, ("d",)) == ""
    assert told(step(), ()) == ""
    assert told(step(relisted=True), ("d",)) == ""
    assert told(step(renamed={"a": {}}), ("d",)) == ""
    assert told(step(renamed={"a": {}}), ("d",), renamed=True) == "d 0.5"
    assert told(step(), ("d",), keeps=False) == ""


def test_several_queries_with_one_total_are_answered_by_the_most_accurate(opened: Any) -> None:
    keys = rw.Keys.of({"county": COUNTIES})
    asked = [rw.query().group_by("county", keys=keys).count(rw.Gaussian(sigma=sigma)) for sigma in (30, 3, 9)]
    release = ReaderRelease.of(opened.run(*asked, rng=Seeded(1)))
    assert release.total("count", {"county": "01001"}).sd == pytest.approx(3, rel=1e-3)
    for number, sigma in ((1, 30), (2, 3), (3, 9)):
        assert release.total("count", {"county": "01001"}, query=number).sd == pytest.approx(sigma, rel=1e-3)
    with pytest.raises(ParameterError, match="has no 'count'"):
        release.total("count", query=4)


# Zips.


@pytest.fixture(scope="module")
def folder(opened: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("saved") / "out"
    asked = rw.query().group_by("county", keys=rw.Keys.of({"county": COUNTIES})).count(rw.Gaussian(sigma=3))
    opened.run(asked, rng=Seeded(1)).save(place, formats=["parquet"])
    return place


def packed(folder: Path, file: Path, prefix: str = "", **more: bytes) -> Path:
    with zipfile.ZipFile(file, "w") as made:
        for each in folder.iterdir():
            made.write(each, f"{prefix}{each.name}")
        for name, content in more.items():
            made.writestr(name.replace("_", "/"), content)
    return file


def test_a_zip_is_read_from_wherever_its_release_lies_and_with_one_release_only(folder: Path, tmp_path: Path) -> None:
    known = rw.read(folder)
    for prefix in ("", "a/", "a/b/"):
        found = rw.read(packed(folder, tmp_path / "a.zip", prefix, other_file=b"x", a_other_file=b"y"))
        assert found.digest == known.digest
    with zipfile.ZipFile(packed(folder, tmp_path / "b.zip"), "a") as made:
        made.writestr("second/release.json", b"{}")
    with pytest.raises(SourceError, match="exactly one release"):
        rw.read(tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as made:
        made.writestr("nothing.txt", b"")
    with pytest.raises(SourceError, match="exactly one release"):
        rw.read(tmp_path / "c.zip")
    assert reading.problems(folder) == reading.problems(tmp_path / "a.zip") == []


def test_the_files_of_a_zip_may_take_so_many_bytes_and_so_many_times_the_zip(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = packed(folder, tmp_path / "a.zip", other_large=bytes(10_000))
    # Files in other folders are not unpacked and do not count.
    size, whole = sum(each.stat().st_size for each in folder.iterdir()), file.stat().st_size
    for name, least in (("MOST_BYTES", size), ("MOST_TIMES", size / whole)):
        with monkeypatch.context() as patched:
            patched.setattr(reading, name, least)
            assert rw.read(file).names
            patched.setattr(reading, name, least * (1 - 1e-6))
            with pytest.raises(SourceError, match="its files are too large"):
                rw.read(file)


def test_files_that_differ_from_those_saved_are_named(folder: Path, tmp_path: Path) -> None:
    names = sorted(each.name for each in folder.iterdir() if each.suffix in (".md", ".html", ".txt"))
    assert names
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        for each in folder.iterdir():
            made.writestr(each.name, each.read_bytes() + (b" " if each.name in names else b""))
    found = reading.problems(tmp_path / "a.zip")
    assert len(found) == len(names)
    for name in names:
        assert any(name in each for each in found)


def test_a_release_offers_its_names_title_labels_and_options(opened: Any, normal: ReaderRelease) -> None:
    assert normal.names == tuple(table.name for table in normal.tables)
    assert normal.title == "small"
    assert repr(normal).startswith("<small: ")
    labelled = ReaderRelease.of(normal.with_labels(labels={"county5": "County", "sum_emp": "Employees"}))
    shown = labelled._repr_html_()
    assert "county5: County; sum_emp: Employees" in shown
    assert normal.total("emp", confidence=0.5).confidence == 0.5
    assert normal.total("emp").confidence == normal.published.confidence
    for wrong in (0, 1, -0.1, 1.5):
        with pytest.raises(ParameterError, match="must be between 0 and 1"):
            normal.total("emp", confidence=wrong)
    ranked = normal.rank("emp", by="county5")
    assert ranked.labels == tuple(COUNTIES)
    regressed = normal.regress("emp", "count", by="county5", complete=True)
    assert regressed.names == ("count",)
    assert regressed.slopes == pytest.approx(
        normal.regress("emp", ["count"], by="county5", complete=True).slopes, nan_ok=True
    )
    made = normal.replicates("emp", by="county5")
    assert made.table.num_columns == 2 + 100
    assert normal.replicates("emp", count=20, by="county5").table.column_names[-1] == "replicate_20"
    share = normal.share("emp", {"county2": "01"}, complete=True)
    assert share.question.endswith("as a share of all")
    of = normal.share("emp", {"county5": "01001"}, of={"county2": "01"}, complete=True)
    assert of.question.endswith("as a share of total of emp where county2 is 01")
    with pytest.raises(ParameterError, match="must be at least one earlier release"):
        normal.growth("emp")


def test_the_least_confidence_is_that_of_the_smallest_draw_and_too_high_a_one_is_refused_by_name(
    opened: Any,
) -> None:
    drawn = released(opened, rw.GeneralizedGaussian(shape="1/2", scale=4))
    wide, narrow = (drawn.total("emp", {"county5": "01001"}, confidence=level) for level in (0.5, 1e-12))
    assert float(narrow.highs[0] - narrow.lows[0]) < float(wide.highs[0] - wide.lows[0])
    with pytest.raises(ParameterError, match=r"^confidence must be at most 0\.997506 where .* 400 draws"):
        drawn.total("emp", {"county5": "01001"}, confidence=1 - 1e-12)
