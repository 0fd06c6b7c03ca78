"""``recordwise init``: a first plan from names and declared types, which check accepts once its blanks are filled."""

import tomllib
from importlib import import_module
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from recordwise.cli import app
from recordwise.plan.file.first import SourceColumn, roles_of
from recordwise.plan.file.read import load_plan

COLUMNS = {
    "estab_id": [1, 2, 3],
    "firm_id": ["a", "a", "b"],
    "county": ["01001", "01003", "01003"],
    "year": [2023, 2024, 2024],
    "emp": [5, 7, 987_654],
    "pay": [0.25, 1.5, 31_337.75],
    "open": [True, False, True],
    "odd name": ["SECRET", "b", "c"],
}
TABLE = pa.table(
    COLUMNS | {"opened": pa.array([19_000, 19_001, 19_002], pa.int32()).cast(pa.date32()), "list": [[1], [2], [3]]}
)
VALUES = ("01001", "01003", "987", "654", "31337", "31_337", "SECRET", "2023", "2024")


@pytest.fixture
def files(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in zip(*COLUMNS.values()))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def filled(text, types=()):
    """The blanks of a plan, as its owner would fill them from what is public."""
    for name, kind in types:
        text = text.replace(f'columns.{name} = ""', f'columns.{name} = "{kind}"')
    text = text.replace('tuned_on = ""', 'tuned_on = "public"').replace('tuning_reason = ""', 'tuning_reason = "codes"')
    text = text.replace("county = []", 'county = ["01001", "01003"]').replace('at = ""', "at = 100")
    return text.replace('step = ""', "step = 0.01")


@pytest.mark.costly
def test_roles_and_types_come_from_names_and_declared_types(files, run):
    result = run("init", files / "t.parquet", "--out", files / "plan.toml")
    assert result.exit_code == 0, result.output
    text = (files / "plan.toml").read_text()
    schema = tomllib.loads(text)["schema"]
    assert (schema["unit"], schema["firm"]) == ("estab_id", "firm_id")
    assert schema["measures"] == {"emp": {"step": 1}, "pay": {"step": ""}}
    assert schema["columns"] == {
        "county": "text",
        "year": "integer",
        "open": "boolean",
        "odd name": "text",
        "opened": "date",
    }
    assert not [value for value in VALUES if value in text]
    refused = run("check", files / "plan.toml")
    assert refused.exit_code == 2
    assert refused.stderr.count("line") >= 4
    (files / "plan.toml").write_text(filled(text))
    result = run("check", files / "plan.toml")
    assert result.exit_code == 0, result.output
    assert load_plan(files / "plan.toml").plan.schema.unit == "estab_id"


def test_types_of_csv_stay_blank(files, run):
    assert run("init", files / "t.csv", "--header", "--out", files / "plan.toml").exit_code == 0
    text = (files / "plan.toml").read_text()
    assert set(tomllib.loads(text)["schema"]["columns"].values()) == {""}
    assert not [value for value in VALUES if value in text]
    types = [("county", "text"), ("year", "integer"), ("open", "boolean"), ("emp", "integer"), ("pay", "text")]
    (files / "plan.toml").write_text(filled(text, [*types, ('"odd name"', "text")]))
    result = run("check", files / "plan.toml")
    assert result.exit_code == 0, result.output


def test_a_look_proposes_types_and_steps_and_marks_the_plan(files, run):
    result = run("init", files / "t.csv", "--header", "--look", "--out", files / "plan.toml")
    assert result.exit_code == 0, result.output
    assert "tuned on confidential data" in " ".join(result.stdout.split())
    text = (files / "plan.toml").read_text()
    found = tomllib.loads(text)
    assert found["tuned_on"] == "confidential"
    assert found["schema"]["measures"] == {"emp": {"step": 1}, "pay": {"step": 0.01}}
    assert found["schema"]["columns"] == {"county": "text", "year": "integer", "open": "boolean", "odd name": "text"}
    assert not [value for value in VALUES if value in text]
    assert run("check", files / "plan.toml").exit_code == 2
    (files / "plan.toml").write_text(filled(text))
    result = run("check", files / "plan.toml")
    assert result.exit_code == 0, result.output


@pytest.mark.costly
def test_stata_spss_and_tables_of_databases_have_a_first_plan_too(files, run):
    import duckdb
    import pandas as pd
    import pyreadstat

    frame = pd.DataFrame(
        {"estab_id": [1.0], "county": ["01001"], "emp": [987_654.0], "opened": [pd.Timestamp("2024-12-31").date()]}
    )
    pyreadstat.write_dta(frame, str(files / "t.dta"))
    pyreadstat.write_sav(frame, str(files / "t.sav"))
    with duckdb.connect(str(files / "t.duckdb")) as made:
        made.register("given", TABLE.drop_columns(["list"]))
        made.execute("CREATE TABLE firms AS SELECT * FROM given")
    wanted = {"county": "text", "opened": "date"}
    for name in ("t.dta", "t.sav"):
        assert run("init", files / name, "--out", files / f"{name}.toml").exit_code == 0
        schema = tomllib.loads((files / f"{name}.toml").read_text())["schema"]
        assert (schema["unit"], schema["columns"], schema["measures"]) == ("estab_id", wanted, {"emp": {"step": ""}})
    result = run("init", files / "t.duckdb", "--table", "firms", "--out", files / "d.toml")
    assert result.exit_code == 0, result.output
    (files / "d.toml").write_text(filled((files / "d.toml").read_text()))
    result = run("check", files / "d.toml")
    assert result.exit_code == 0, result.output
    for words in (("t.duckdb",), ("t.duckdb", "--table", "none")):
        result = run("init", files / words[0], *words[1:], "--out", files / "none.toml")
        assert result.exit_code == 2
        assert "table" in result.stderr


LOOKED = pa.table(
    {
        "estab_id": [1.0, 2.0, 3.0],
        "county": ["01001", "01003", "01003"],
        "emp": [5.0, 7.0, 987_654.0],
        "pay": [0.25, None, 31_337.75],
    }
)


def stored_as_stata(folder):
    import pyreadstat

    pyreadstat.write_dta(LOOKED.to_pandas(), str(folder / "t.dta"))
    return folder / "t.dta"


def stored_as_feather(folder):
    import pyarrow.feather

    pyarrow.feather.write_feather(LOOKED, folder / "t.feather")
    return folder / "t.feather"


def stored_in_duckdb(folder):
    import duckdb

    with duckdb.connect(str(folder / "t.duckdb")) as made:
        made.register("given", LOOKED)
        made.execute("CREATE TABLE firms AS SELECT * FROM given")
    return folder / "t.duckdb", "--table", "firms"


def stored_in_sqlite(folder):
    import sqlite3

    with sqlite3.connect(folder / "t.sqlite") as made:
        made.execute("CREATE TABLE firms (estab_id INTEGER, county TEXT, emp REAL, pay REAL)")
        made.executemany("INSERT INTO firms VALUES (?, ?, ?, ?)", list(zip(*LOOKED.to_pydict().values())))
    made.close()
    return folder / "t.sqlite", "--table", "firms"


def test_a_look_is_entered_in_the_ledger_that_the_plan_names_before_a_record_is_read(files, run, monkeypatch):
    from recordwise.cli.demo import note_look
    from recordwise.ledger.ledger import Ledger
    from recordwise.policy import constant
    from recordwise.release.verify import verify

    assert run("init", files / "no.csv", "--look", "--out", files / "none.toml").exit_code == 2
    assert not (files / "no.ledger").exists()
    with monkeypatch.context() as patched:
        patched.setattr("recordwise.engines.sources.columns.look_at_columns", interrupted)
        assert run("init", files / "t.csv", "--header", "--look", "--out", files / "plan.toml").exit_code != 0
    assert not (files / "plan.toml").exists()
    assert run("init", files / "t.csv", "--header", "--look", "--out", files / "plan.toml").exit_code == 0
    assert 'ledger = "t.ledger"' in (files / "plan.toml").read_text()
    ledger = Ledger(files / "t.ledger", dataset="t", schema={"unit": "id"}, budget=constant(1))
    assert ledger.looks() == {"init --look": 2}
    ledger.charge(constant(1), query="q")
    ledger.close()
    # Also where the ledger is bound to other terms by now.
    note_look(files / "t.ledger", "t")
    assert verify(files / "t.ledger") == []
    assert [event.kind for event in Ledger.existing(files / "t.ledger").history()].count("looked") == 3


def interrupted(source):
    raise RuntimeError


@pytest.mark.parametrize("stored", [stored_as_stata, stored_as_feather, stored_in_duckdb, stored_in_sqlite])
def test_records_of_other_files_and_databases_can_be_looked_at(files, run, stored):
    named = stored(files)
    result = run("init", *(named if isinstance(named, tuple) else (named,)), "--look", "--out", files / "plan.toml")
    assert result.exit_code == 0, result.output
    text = (files / "plan.toml").read_text()
    found = tomllib.loads(text)
    assert found["tuned_on"] == "confidential"
    assert (found["schema"]["unit"], found["schema"]["columns"]) == ("estab_id", {"county": "text"})
    assert found["schema"]["measures"] == {"emp": {"step": 1}, "pay": {"step": 0.01}}
    assert not [value for value in VALUES if value in text]
    (files / "plan.toml").write_text(filled(text))
    result = run("check", files / "plan.toml")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("look", [(), ("--look",)])
@pytest.mark.parametrize(
    "named, told",
    [
        (("db.establishments",), "write one without rows to Parquet"),
        (("s3a://bucket/estab",), "write one without rows to Parquet"),
        (("postgresql://host/db",), "needs the name of a table"),
        (("postgresql://me:S3CRET@host/db", "--table", "t"), "it contains a password"),
        (("postgresql://host/db?password=S3CRET", "--table", "t"), "it contains a password"),
    ],
)
def test_what_has_no_first_plan_is_said_and_no_password_is_written(files, run, look, named, told):
    result = run("init", *named, *look, "--out", files / "plan.toml")
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert "S3CRET" not in result.output
    assert not (files / "plan.toml").exists()


@pytest.mark.parametrize("look", [(), ("--look",)])
def test_a_csv_file_in_another_encoding_says_so_in_its_plan(files, run, look):
    (files / "w.csv").write_bytes("Loan No;Région;amount\n1;Île;5\n".encode("cp1252"))
    refused = run("init", files / "w.csv", "--header", *look, "--out", files / "w.toml")
    assert refused.exit_code == 2
    assert "--encoding NAME" in refused.stderr
    result = run("init", files / "w.csv", "--header", "--encoding", "cp1252", *look, "--out", files / "w.toml")
    assert result.exit_code == 0, result.output
    found = tomllib.loads((files / "w.toml").read_text())
    assert found["csv"] == {"delimiter": ";", "encoding": "cp1252"}
    assert found["schema"]["unit"] == "Loan No"
    assert "Île" not in (files / "w.toml").read_text()
    measures = {"amount": {"step": 1}} if look else None
    assert found["schema"].get("measures") == measures


def test_the_delimiter_of_a_csv_file_is_found_in_its_header(files, run):
    for name, text in {"s.csv": '"id";"county"\n1;01001\n', "p.csv": "id|county\n1|01001\n"}.items():
        (files / name).write_text(text)
        assert run("init", files / name, "--header", "--out", files / f"{name}.toml").exit_code == 0
        found = tomllib.loads((files / f"{name}.toml").read_text())
        assert found["csv"] == {"delimiter": text.strip('"id')[0]}
        assert (found["schema"]["unit"], list(found["schema"]["columns"])) == ("id", ["county"])
    assert run("init", files / "t.csv", "--header", "--out", files / "plain.toml").exit_code == 0
    assert "csv" not in tomllib.loads((files / "plain.toml").read_text())


def test_a_blank_id_and_a_header_that_nobody_confirmed_say_what_to_write(files, run):
    (files / "n.csv").write_text("Program,Value\na,1\n")
    refused = run("init", files / "n.csv", "--out", files / "n.toml")
    assert f"recordwise init {files / 'n.csv'} --header" in refused.stderr
    assert run("init", files / "n.csv", "--header", "--out", files / "n.toml").exit_code == 0
    told = " ".join(run("check", files / "n.toml").stderr.split())
    assert (
        'schema.unit: is blank: write the column that identifies a record, or several, as in ["NAME", "OTHER"]' in told
    )


def test_nothing_is_overwritten_and_other_files_are_refused(files, run):
    (files / "plan.toml").write_text("mine")
    result = run("init", files / "t.csv", "--header", "--out", files / "plan.toml")
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert (files / "plan.toml").read_text() == "mine"
    for name in ("absent.csv", "plan.toml"):
        result = run("init", files / name, "--out", files / "new.toml")
        assert result.exit_code == 2
        assert not (files / "new.toml").exists()


def test_a_code_that_is_stored_as_a_float_is_an_integer_column():
    roles = roles_of(
        [
            SourceColumn(name="id", kind="integer"),
            SourceColumn(name="year", kind="number"),
            SourceColumn(name="pay", kind="number"),
        ]
    )
    assert roles.columns == (SourceColumn(name="year", kind="integer"),)
    assert [each.name for each in roles.measures] == ["pay"]


def test_a_table_without_an_id_or_a_group_leaves_them_blank():
    roles = roles_of([SourceColumn(name="x", kind="number"), SourceColumn(name="blob", kind="other")])
    assert (roles.unit, roles.firm, [each.name for each in roles.measures], roles.columns) == ((), None, ["x"], ())


HEADLESS = "Acme Holding,Kent,retail\nSmith and Sons,Essex,mining\n"


@pytest.mark.parametrize("look", [(), ("--look",)])
def test_a_file_of_text_without_a_header_leaves_no_record_in_a_plan(files, run, look):
    (files / "h.csv").write_text(HEADLESS)
    result = run("init", files / "h.csv", *look, "--out", files / "h.toml")
    assert result.exit_code == 2
    assert "nothing in the file says that it is no record" in " ".join(result.stderr.split())
    assert not (files / "h.toml").exists()
    assert not any(value in result.output for value in ("Acme", "Kent", "retail", "Smith"))


@pytest.mark.parametrize("answer", ["y\n", "n\n"])
def test_on_a_terminal_the_owner_is_asked_whether_the_first_line_holds_names(files, monkeypatch, answer):
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(import_module("recordwise.cli.demo"), "sys", terminal)
    (files / "h.csv").write_text(HEADLESS)
    words = ["init", str(files / "h.csv"), "--out", str(files / "h.toml")]
    result = CliRunner().invoke(app, words, input=answer + "\n" * 5)
    assert "Does it hold the names of the columns, and no record?" in " ".join(result.output.split())
    # What the owner says are names may be shown; before, and otherwise, it may be a record.
    assert "Acme" not in (result.output.partition("no record?")[0] if answer == "y\n" else result.output)
    assert result.exit_code == (0 if answer == "y\n" else 2)
    assert (files / "h.toml").exists() == (answer == "y\n")


def test_check_does_not_show_a_first_line_that_may_be_a_record(files, run):
    assert run("init", files / "t.parquet", "--out", files / "plan.toml").exit_code == 0
    text = filled((files / "plan.toml").read_text())
    (files / "h.csv").write_text(HEADLESS)
    (files / "plan.toml").write_text(text.replace("t.parquet", "h.csv"))
    result = run("check", files / "plan.toml")
    assert result.exit_code == 2
    assert "may be a record, so it is not shown" in " ".join(result.stderr.split())
    assert not any(value in result.output for value in ("Acme", "Kent", "retail", "Smith"))


SHOPS = "UTILITYID,STATEFP,county,sales,paid,zipcode\n" + "".join(
    f"{n},01,00{1 + n % 2},{n * n},5,60601\n" for n in range(9)
)
SAID = ("--header", "--unit", "UTILITYID", "--sum", "sales=50", "--tuned-on", "public")


@pytest.fixture
def shops(tmp_path):
    (tmp_path / "shops.csv").write_text(SHOPS)
    (tmp_path / "places.csv").write_text("nation,region,county,name\nUS,N,001,A\nUS,S,002,B\n")
    (tmp_path / "sizes.csv").write_text("county,sales_2023,people\n001,9000,4\n002,7,3\n")
    return tmp_path


@pytest.mark.parametrize(
    "words, told",
    [
        (("--by", "county", "--keys", "001,002"), 'rows = { county = ["001", "002"] }'),
        (("--by", "county", "--by", "STATEFP", "--keys", "county=001", "--keys", "STATEFP=01"), "product = {"),
        (("--by", "county", "--keys", "sizes.csv"), 'file = "sizes.csv"'),
        (("--hierarchy", "places.csv"), 'levels = [{ by = ["nation", "region", "county"], share = "best" }]'),
        (
            ("--hierarchy", "places.csv", "--sizes", "sizes.csv"),
            'size.sales = { file = "sizes.csv", column = "sales_2023" }',
        ),
        (("--hierarchy", "places.csv", "--keys", "sizes.csv"), "# basic = { complete = true }"),
        (("--by", "county", "--sizes", "sizes.csv"), 'size.sales = "sales_2023"'),
        (("--by", "county", "--keys", "001,002", "--sizes", "sizes.csv"), "floor = 2500"),
        (("--unit", "STATEFP", "--by", "STATEFP", "--keys", "01"), 'unit = ["UTILITYID", "STATEFP"]'),
        (("--by", "county", "--keys", "001,002", "--step", "sales=0.5"), "step = 0.5"),
    ],
)
@pytest.mark.costly
def test_a_plan_of_which_enough_was_said_has_no_blank_and_check_accepts_it(shops, run, monkeypatch, words, told):
    monkeypatch.chdir(shops)
    result = run("init", "shops.csv", *SAID, *words)
    assert result.exit_code == 0, result.output
    assert "no blank left" in result.stdout
    text = (shops / "plan.toml").read_text()
    assert told in text
    assert '""' not in text
    assert "reserve = { revisions = 1 }  #" in text
    result = run("check", "plan.toml")
    assert result.exit_code == 0, result.output
    assert "Budget: covers the plan" in result.stdout
    assert "Reserved for 1 revision: the full charge again" in result.stdout


@pytest.mark.costly
def test_records_may_have_the_coarser_levels_of_a_list_too(shops, run, monkeypatch):
    monkeypatch.chdir(shops)
    (shops / "full.csv").write_text("nation,STATEFP,county,zipcode\nUS,01,001,1\nUS,01,002,1\n")
    words = ("--unit", "UTILITYID", "--sum", "sales=5", "--hierarchy", "full.csv", "--tuned-on", "public")
    assert run("init", "shops.csv", "--header", *words).exit_code == 0
    text = (shops / "plan.toml").read_text()
    assert 'levels = ["nation", "STATEFP", "county"]' in text
    assert "\n# columns.STATEFP" in text
    done = run("release", "plan.toml", "--out", "published", "--yes")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "words, told",
    [
        (("--sum", "sale=5"), "did you mean 'sales'?"),
        (("--sum", "sales=much"), "--sum sales"),
        (("--by", "county", "--by", "STATEFP", "--keys", "001"), "Write --keys county=001, once for each column"),
        (("--keys", "county=001"), "Add --by county"),
        (("--tuned-on", "publik"), "did you mean 'public'?"),
        (("--sum", "paid=1", "--by", "county", "--sizes", "sizes.csv"), "which column has the sizes of paid"),
        (("--hierarchy", "shops.csv"), "--hierarchy names the table of records itself"),
        (("--hierarchy", "sizes.csv"), "has no column of the records after a coarser level"),
        (("--by", "county", "--keys", "places.csv", "--keys", "county=001"), "must be one file, or codes"),
        (("--sum", "sales=5", "--by", "sales", "--keys", "1,2"), "--sum names 'sales', which is grouped by too"),
        (("--sum", "county=5", "--hierarchy", "places.csv"), "--sum names 'county', which is grouped by too"),
        (("--unit", "zipcode", "--sum", "zipcode=5"), "names 'zipcode', which is part of the id of a record too"),
        (("--unit", "county", "--by", "county", "--keys", "001"), "--unit names 'county', which is grouped by too"),
        (("--by", "county", "--keys", "001,001"), "--keys lists a code of 'county' twice"),
        (("--by", "county", "--keys", "county=001", "--keys", "county=002"), "lists codes of 'county' twice"),
        (("--by", "county", "--keys", "shops.csv"), "--keys names the table of records itself"),
        (("--sum", "sales=5", "--by", "county", "--sizes", "shops.csv"), "--sizes names the table of records itself"),
        (("--tuned-on", "confidential"), "--tuned-on is not a valid choice"),
        (("--sum", "sales=5", "--sum", "sales=7"), "--sum names 'sales' twice"),
        (("--by", "county", "--by", "county", "--keys", "county=001"), "--by names 'county' twice"),
        (("--unit", "UTILITYID", "--unit", "UTILITYID"), "--unit names 'UTILITYID' twice"),
        (("--sum", "sales=5", "--step", "sales=2", "--step", "sales=3"), "--step names 'sales' twice"),
    ],
)
def test_what_is_said_wrongly_is_refused_with_the_names_of_the_file(shops, run, monkeypatch, words, told):
    monkeypatch.chdir(shops)
    result = run("init", "shops.csv", "--header", *words)
    assert result.exit_code == 2, result.output
    assert told in " ".join(result.stderr.split())
    assert not (shops / "plan.toml").exists()


def test_a_terminal_is_asked_for_the_rest_and_the_plan_has_no_blank(shops, run, monkeypatch):
    monkeypatch.chdir(shops)
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(import_module("recordwise.cli.demo"), "sys", terminal)
    answers = "y\n\nsales=50\ncounty\n001,002\npublic\n"
    result = CliRunner().invoke(app, ["init", "shops.csv"], input=answers)
    assert result.exit_code == 0, result.output
    found = tomllib.loads((shops / "plan.toml").read_text())
    assert (found["schema"]["unit"], found["tuned_on"]) == ("UTILITYID", "public")
    assert found["schema"]["measures"] == {"sales": {"step": 1}}
    assert run("check", "plan.toml").exit_code == 0


def test_a_wrong_answer_is_told_at_once_and_asked_for_again(shops, run, monkeypatch):
    monkeypatch.chdir(shops)
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(import_module("recordwise.cli.demo"), "sys", terminal)
    answers = "y\nUTLITYID\nUTILITYID\nsale=50\nsales=much\nsales=50\ncounty\n001,001\n001,002\nprivate\npublic\n"
    result = CliRunner().invoke(app, ["init", "shops.csv"], input=answers)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    wrong = ("did you mean 'UTILITYID'", "did you mean 'sales'", "--sum sales", "lists a code of 'county' twice")
    for told in (*wrong, "--tuned-on is not a valid choice"):
        (at,) = [number for number, line in enumerate(lines) if told in line]
        assert lines[at - 1].split("?")[0] == lines[at + 1].split("?")[0]
    assert ".:" not in result.output
    assert tomllib.loads((shops / "plan.toml").read_text())["schema"]["unit"] == "UTILITYID"
    # What an option says wrongly is refused in the end: no answer mends it.
    (shops / "plan.toml").unlink()
    result = CliRunner().invoke(
        app, ["init", "shops.csv", "--step", "nothing=2"], input="y\n\nsales=50\ncounty\n001\npublic\n"
    )
    assert result.exit_code == 2


def test_each_blank_that_is_left_names_what_may_be_written(shops, run, monkeypatch):
    monkeypatch.chdir(shops)
    assert run("init", "shops.csv", "--header").exit_code == 0
    blanks = [line for line in (shops / "plan.toml").read_text().splitlines() if '= ""' in line or "[]" in line]
    assert len(blanks) >= 5
    assert all("  # " in line for line in blanks)
    assert (
        "# reserve = { revisions = 1 }" in (shops / "plan.toml").read_text()
    )  # a reserve needs a budget, and that a size
    refused = " ".join(run("check", "plan.toml").stderr.split())
    for told in ("public, synthetic, past or confidential", "text, integer, boolean or date", "every cell"):
        assert told in refused


def test_a_look_proposes_no_sum_of_codes_and_finds_joined_ids(shops, run, monkeypatch):
    monkeypatch.chdir(shops)
    (shops / "coded.csv").write_text(SHOPS.replace("paid", "plat"))
    assert run("init", "coded.csv", "--header", "--look").exit_code == 0
    found = tomllib.loads((shops / "plan.toml").read_text())
    assert found["schema"]["unit"] == "UTILITYID"
    assert list(found["schema"]["measures"]) == ["sales", "plat"]
    rows = "UTILITYID,grp,sales\n" + "".join(f"{n},{4510 + n},{n * n}\n" for n in range(1, 30))
    (shops / "groups.csv").write_text(rows)
    assert run("init", "groups.csv", "--header", "--look", "--out", "groups.toml").exit_code == 0
    found = tomllib.loads((shops / "groups.toml").read_text())
    assert (list(found["schema"]["measures"]), found["schema"]["columns"]) == (["sales"], {"grp": "integer"})


def test_cells_without_a_word_about_sums_leave_the_sizes_of_large_records_blank(files, run):
    told = ["init", files / "t.parquet", "--by", "county", "--keys", "01001,01003", "--tuned-on", "public"]
    result = run(*told, "--out", files / "plan.toml")
    assert result.exit_code == 0, result.output
    assert "Fill its blanks" in " ".join(result.output.split())
    plan = tomllib.loads((files / "plan.toml").read_text())
    assert plan["queries"][0]["sum"]["emp"]["at"] == ""
    assert "budget" not in plan
