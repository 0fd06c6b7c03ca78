"""``recordwise postprocess``: a saved release fitted later."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from recordwise.errors import SourceError
from recordwise.release.formats.parquet import read_tables


@pytest.fixture
def released(folder, run):
    done = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert done.exit_code == 0
    return folder / "out"


@pytest.mark.costly
def test_a_saved_release_reads_back_as_it_was_written(released, folder):
    release = rw.read(released)
    release.save(folder / "again")
    for name, table in read_tables(released).items():
        assert read_tables(folder / "again")[name].equals(table)
    for file in ("release.json", "policy.json"):
        assert json.loads((folder / "again" / file).read_text()) == json.loads((released / file).read_text())


@pytest.mark.costly
def test_a_folder_is_fitted_and_still_agrees_with_the_ledger(released, folder, run):
    done = run("postprocess", released, "--out", folder / "fitted", "--json")
    assert done.exit_code == 0
    assert all(fit["converged"] for fit in json.loads(done.stdout)["fits"].values())
    for table in read_tables(folder / "fitted").values():
        assert min(table.column("count_fit").to_pylist()) >= 0
        assert min(table.column("sum_emp_fit").to_pylist()) >= 0
    verified = run("ledger", "verify", folder / "small.ledger", "--against", released, "--against", folder / "fitted")
    assert verified.exit_code == 0


@pytest.mark.costly
def test_the_fit_is_the_one_of_the_release_itself(released, folder, run):
    run("postprocess", released, "--out", folder / "fitted", "--method", "sequential")
    expected = rw.read(released).consistent(method="sequential")
    for table in expected.tables:
        assert pq.read_table(folder / "fitted" / f"{table.name}.parquet").equals(table.data)


@pytest.mark.costly
def test_the_page_of_the_fitted_folder_keeps_its_parts(released, folder, run):
    run("postprocess", released, "--out", folder / "fitted")
    pages = [(each / "report.html").read_text() for each in (released, folder / "fitted")]
    for part in ('id="spending"', "noise of sum_emp", "noise of sum_payann"):
        assert all(part in page for page in pages)
    assert "without the parts" not in pages[1]


@pytest.mark.costly
def test_the_help_s_own_example_of_a_rule_works(folder, run):
    text = (
        (folder / "plan.toml").read_text().replace("measures.payann = 1", "measures.payann = 1\nmeasures.payqtr1 = 1")
    )
    text = text.replace("[[budget]]\nrho = 1\n\n[[budget]]\nrho = 2\nat = { emp = 20, payann = 1000 }\n", "")
    (folder / "plan.toml").write_text(text + 'sum.payqtr1 = { kind = "UnitSplit", at = 5000, rho = 0.0001 }\n')
    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0
    assert "payqtr1=payann" in run("postprocess", "--help").stdout
    done = run("postprocess", folder / "out", "--out", folder / "fitted", "--at-most", "payqtr1=payann")
    assert done.exit_code == 0, done.stderr
    for table in read_tables(folder / "fitted").values():
        quarter, year = (table.column(f"sum_{name}_fit").to_numpy() for name in ("payqtr1", "payann"))
        assert (quarter <= year * (1 + 1e-12) + 1e-9).all()


@pytest.mark.costly
def test_what_was_changed_since_is_refused(released, folder, run):
    name = next(iter(read_tables(released)))
    table = pq.read_table(released / f"{name}.parquet")
    changed = table.set_column(table.column_names.index("count"), "count", [[7] * table.num_rows])
    pq.write_table(changed, released / f"{name}.parquet")
    done = run("postprocess", released, "--out", folder / "fitted")
    assert done.exit_code == 2
    assert "not those that were released" in " ".join(done.stderr.split())
    assert not (folder / "fitted").exists()


@pytest.mark.costly
def test_a_fitted_release_is_fitted_anew_unless_it_was_changed(released, folder, run):
    run("postprocess", released, "--out", folder / "ols", "--method", "ols")
    run("postprocess", released, "--out", folder / "fitted")
    assert run("postprocess", folder / "ols", "--out", folder / "again").exit_code == 0
    again, fitted = read_tables(folder / "again"), read_tables(folder / "fitted")
    assert all(again[name].equals(table) for name, table in fitted.items())
    path = folder / "fitted" / f"{next(iter(fitted))}.parquet"
    table = pq.read_table(path)
    for column, words in (("count", "not those that were released"), ("count_fit", "fitted columns are not those")):
        place = table.column_names.index(column)
        sevens = pa.array([7] * table.num_rows).cast(table[column].type)
        pq.write_table(table.set_column(place, table.schema.field(place), sevens), path)
        done = run("postprocess", folder / "fitted", "--out", folder / "new")
        assert done.exit_code == 2
        assert words in " ".join(done.stderr.split())
    assert not (folder / "new").exists()


@pytest.mark.costly
def test_bad_input_is_refused_before_anything_is_written(released, folder, run):
    run("postprocess", released, "--out", folder / "fitted")
    for bad in (
        ["postprocess", folder, "--out", folder / "new"],
        ["postprocess", released, "--out", folder / "fitted"],
        ["postprocess", released, "--out", folder / "new", "--method", "best"],
        ["postprocess", released, "--out", folder / "new", "--at-most", "emp"],
        ["postprocess", released, "--out", folder / "new", "--at-most", "emp=payann", "--at-most", "emp=count"],
    ):
        done = run(*bad)
        assert done.exit_code == 2, bad
        assert "Traceback" not in done.stderr
    assert not (folder / "new").exists()


def test_a_folder_of_something_else_is_no_release(folder):
    (folder / "release.json").write_text("[]")
    (folder / "policy.json").write_text("{}")
    with pytest.raises(SourceError, match="not a release folder"):
        rw.read(folder)


@pytest.mark.costly
def test_records_of_a_folder_are_those_of_the_release(released, folder, run):
    done = run(
        "postprocess",
        released,
        "--out",
        folder / "micro",
        "--records",
        "whole",
        "--method",
        "max_fit",
        "--slack",
        "0.5",
    )
    assert done.exit_code == 0
    assert "no row is a respondent" in " ".join(done.stdout.split())
    expected = rw.read(released).records(whole=True, method="max_fit", slack=0.5)
    assert pq.read_table(folder / "micro" / "records.parquet").to_pylist() == expected.data.to_pylist()
    assert {file.name for file in (folder / "micro").iterdir()} == {"records.parquet", "records.csv", "records.json"}
    told = run("postprocess", released, "--out", folder / "other", "--records", "weighted", "--json")
    assert json.loads(told.stdout)["kind"] == "weighted"
    for wrong in (("--records", "some"), ("--of", "count"), ("--records", "whole", "--zero-counts")):
        assert run("postprocess", released, "--out", folder / "wrong", *wrong).exit_code != 0
