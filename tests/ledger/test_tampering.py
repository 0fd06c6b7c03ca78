"""Whoever changes the books is found out: by the chain, or by a release that saw more."""

import hashlib
import json
import math
import random
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import employers, generous, keys, question, records, session
from recordwise.errors import LedgerError, SourceError
from recordwise.ledger.ledger import Ledger
from recordwise.noise import Seeded
from recordwise.policy import constant
from recordwise.release.files import load_release
from recordwise.release.formats import statistical, xlsx
from recordwise.release.formats.workbook import MAIN
from recordwise.release.tables import digest_of
from recordwise.release.verify import verify


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """A folder with a ledger and its three releases, saved as folders a, b and c; it is only read."""
    folder = tmp_path_factory.mktemp("original")
    with session(records(), folder / "small.ledger", generous()) as opened:
        for name in "abc":
            opened.run(question()).save(folder / name)
    return folder


@pytest.fixture
def books(original: Path, tmp_path: Path) -> Path:
    """A copy of that ledger, beside copies of its releases."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path / "small.ledger"


def folders(books: Path) -> list[Path]:
    return [books.parent / name for name in "abc"]


def rewritten(books: Path, *statements: tuple[str, tuple]) -> None:
    connection = sqlite3.connect(books)
    connection.execute("DROP TRIGGER no_update")
    connection.execute("DROP TRIGGER no_delete")
    for statement, values in statements:
        connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.costly
def test_untouched_books_and_folders_are_in_order(books) -> None:
    assert verify(books, against=folders(books)) == []


def test_verifying_changes_no_byte(books) -> None:
    before = {path.name: path.read_bytes() for path in books.parent.iterdir() if path.is_file()}
    verify(books, against=folders(books))
    assert {path.name: path.read_bytes() for path in books.parent.iterdir() if path.is_file()} == before


@pytest.mark.costly
def test_any_flipped_byte_is_detected_or_changes_no_event(books) -> None:
    original, known = books.read_bytes(), Ledger.existing(books).history()
    chance, detected = random.Random(7), 0
    for place in chance.sample(range(len(original)), 150):
        damaged = bytearray(original)
        damaged[place] ^= 1 << chance.randrange(8)
        books.write_bytes(damaged)
        if verify(books):
            detected += 1
        else:
            assert Ledger.existing(books).history() == known
    # The rest lies in the unused space of pages.
    assert detected >= 30


@pytest.mark.costly
def test_every_flipped_byte_of_a_policy_is_detected_and_nothing_more_is_charged(books) -> None:
    original = books.read_bytes()
    start = original.rindex(b'"policy":{')
    for place in range(start, start + 120):
        damaged = bytearray(original)
        damaged[place] ^= 1
        books.write_bytes(damaged)
        assert verify(books) != []
    with pytest.raises(LedgerError), session(records(), books, generous()) as opened:
        opened.run(question())


def test_a_changed_entry_is_detected(books) -> None:
    body = {"query": "harmless", "policy": constant(0).to_json(), "spent": constant(0).to_json(), "details": None}
    rewritten(books, ("UPDATE events SET body = ? WHERE sequence = 2", (json.dumps(body),)))
    assert any("event 2 was changed" in problem for problem in verify(books))


def test_an_entry_removed_from_the_middle_is_detected(books) -> None:
    rewritten(books, ("DELETE FROM events WHERE sequence = 4", ()))
    assert verify(books) == ["event 4 is missing"]


def test_a_removed_tail_is_found_by_the_release_that_saw_it(books) -> None:
    rewritten(books, ("DELETE FROM events WHERE sequence > 5", ()))
    assert verify(books) == []
    (problem,) = verify(books, against=folders(books))
    assert "c: was released when the ledger had 7 events; it has only 5 now" in problem


@pytest.mark.costly
def test_a_restored_old_copy_is_found_even_after_new_charges(books, tmp_path) -> None:
    shutil.copy(books, tmp_path / "copy")
    with session(records(), books, generous()) as opened:
        opened.run(question()).save(tmp_path / "d")
    assert verify(books, against=[*folders(books), tmp_path / "d"]) == []
    shutil.copy(tmp_path / "copy", books)
    assert "so some were removed" in verify(books, against=[tmp_path / "d"])[0]
    with session(records(), books, generous()) as opened:
        opened.run(question()).save(tmp_path / "e")
    (problem,) = verify(books, against=[*folders(books), tmp_path / "d", tmp_path / "e"])
    assert "d: refers to an event 9" in problem


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, '0', '1') WHERE sequence = 6",
        "UPDATE events SET digest = 'x' WHERE sequence = 7",
        "DELETE FROM events WHERE sequence > 5",
        "DELETE FROM events WHERE sequence = 6",
    ],
)
def test_a_latest_charge_changed_while_the_ledger_is_open_is_refused_at_the_next_one(books, statement: str) -> None:
    with session(records(), books, generous()) as opened:
        opened.policy_of(question())
        opened._ledger.check(constant(0), query="q")
        rewritten(books, (statement, ()))
        with pytest.raises(LedgerError, match=r"is damaged: event [67]"):
            opened.run(question())


def test_an_old_entry_changed_while_the_ledger_is_open_is_found_at_the_next_opening(books) -> None:
    with session(records(), books, generous()) as opened:
        opened._ledger.check(constant(0), query="q")
        rewritten(books, ("UPDATE events SET body = '{}' WHERE sequence = 2", ()))
        spent = opened.spent()
        opened.run(question())
        assert opened.spent() == spent + opened.policy_of(question())
    with session(records(), books, generous()) as opened, pytest.raises(LedgerError, match="event 2 was changed"):
        opened.run(question())


def test_a_sum_that_does_not_add_up_is_found_though_the_chain_is_whole(tmp_path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d")
    with ledger._chain.transaction():
        body = {"query": "q", "policy": constant(2).to_json(), "spent": constant(1).to_json(), "details": None}
        ledger._chain.append("charged", body)
        ledger._chain.append("released", {"charge": 9, "digest": "", "mark": ""})
        ledger._chain.append("opened", {"format": 1})
    ledger.close()
    problems = verify(tmp_path / "l")
    assert [problem.split(" ")[1] for problem in problems] == ["3", "4", "2"]
    assert "changes the terms" in problems[1]


def test_an_overspent_ledger_is_found_though_the_chain_is_whole(tmp_path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d", budget=constant(1))
    with ledger._chain.transaction():
        two = constant(2).to_json()
        ledger._chain.append("charged", {"query": "q", "policy": two, "spent": two, "details": None})
    ledger.close()
    assert verify(tmp_path / "l") == ["the charges exceed the budget"]


def test_a_changed_number_in_a_parquet_file_is_detected(books) -> None:
    path = books.parent / "b" / "county_by_naics2.parquet"
    table = pq.read_table(path)
    changed = table.set_column(2, "n", [[value + 1 for value in table["n"].to_pylist()]])
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    problems = verify(books, against=folders(books))
    assert any("b: its tables are not those that were released" in problem for problem in problems)


@pytest.mark.costly
def test_a_release_made_consistent_is_still_the_one_that_was_booked(tmp_path) -> None:
    asked = rw.query().group_by("county", keys=keys()).levels(rw.prefix("naics", 2), rw.prefix("naics", 3))
    with session(records(), tmp_path / "l", generous()) as opened:
        release = opened.run(asked.count(rw.Gaussian(rho="0.1"), alias="n"))
    release.consistent().save(tmp_path / "fitted")
    assert verify(tmp_path / "l", against=[tmp_path / "fitted"]) == []
    path = tmp_path / "fitted" / "county_by_naics2.parquet"
    table = pq.read_table(path)
    changed = table.set_column(2, "n", [[value + 1 for value in table["n"].to_pylist()]])
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    assert any("not those that were released" in problem for problem in verify(tmp_path / "l", against=[path.parent]))


def test_a_changed_fitted_column_is_detected(tmp_path) -> None:
    asked = rw.query().group_by("county", keys=keys()).count(rw.Gaussian(rho="0.1"), alias="n")
    with session(records(), tmp_path / "l", generous()) as opened:
        opened.run(asked).consistent().save(tmp_path / "fitted", formats=["parquet"])
    assert verify(tmp_path / "l", against=[tmp_path / "fitted"]) == []
    path = tmp_path / "fitted" / "county.parquet"
    table = pq.read_table(path)
    place = table.column_names.index("n_fit")
    changed = table.set_column(place, "n_fit", [[value + 1 for value in table["n_fit"].to_pylist()]])
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    (problem,) = verify(tmp_path / "l", against=[tmp_path / "fitted"])
    assert "its fitted columns are not those release.json was written with" in problem


def test_a_changed_csv_file_is_detected(books) -> None:
    path = books.parent / "a" / "county_by_naics3.csv"
    path.write_text(path.read_text().replace('"01","111",', '"01","111",1', 1))
    (problem,) = verify(books, against=folders(books))
    assert "county_by_naics3.csv differs" in problem


@pytest.mark.parametrize(
    "file, field, value, found",
    [
        ("release.json", "dataset", "another", "names a different dataset"),
        ("release.json", "plan", [], "describes a different plan"),
        ("release.json", "mark", "certified", "carries a different privacy label"),
        ("policy.json", "mark", "certified", "carries a different privacy label"),
        ("policy.json", "tight", constant("0.1").to_json(), "states a different policy"),
        ("release.json", "ledger", {"length": 0, "digest": "x"}, "replaced or rolled back"),
        ("release.json", "ledger", None, "cannot be read or does not refer to a ledger"),
        ("release.json", "ledger", {"length": math.inf, "digest": "x"}, "cannot be read or does not refer to a ledger"),
        ("release.json", "interval_level", 0.5, "states other facts"),
        ("release.json", "tuned_on", "public", "states other facts"),
        ("release.json", "hierarchies", [], "states other facts"),
    ],
)
@pytest.mark.costly
def test_words_that_differ_from_the_books_are_detected(books, file: str, field: str, value, found: str) -> None:
    path = books.parent / "c" / file
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    assert any(found in problem for problem in verify(books, against=folders(books)))


def test_looks_that_are_no_longer_mentioned_are_detected(tmp_path) -> None:
    """Releases of earlier versions said nothing of looks; one of this version that says nothing was changed."""
    rows = {"id": [1, 2], "county": ["01", "03"], "emp": [3, 4]}
    reason = "the share outside was looked at"
    with employers(rows, "county", ledger=tmp_path / "l", dataset="small", tuning_reason=reason) as opened:
        asked = rw.query().group_by("county", keys=["01", "03"]).sum("emp", rw.Gaussian(sigma=3))
        opened.owner.unmatched(asked)
        opened.run(asked).save(tmp_path / "out", formats=["parquet"])
    path = tmp_path / "out" / "release.json"
    form = json.loads(path.read_text())
    assert (form.pop("looks"), form.pop("looked_at_records")) == ({"owner.unmatched": 1}, True)
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []
    path.write_text(json.dumps(form))
    (problem,) = verify(tmp_path / "l", against=[tmp_path / "out"])
    assert "states other facts" in problem


def test_a_version_that_notes_more_facts_accuses_no_release_of_one_that_noted_fewer(tmp_path, monkeypatch) -> None:
    from recordwise.release import release, tables

    monkeypatch.setattr(release, "facts_of", lambda form: tables.facts_of(form, tables.FACTS[:3]))
    with employers({"id": [1], "county": ["01"], "emp": [3]}, "county", ledger=tmp_path / "l") as opened:
        asked = rw.query().group_by("county", keys=["01"]).sum("emp", rw.Gaussian(sigma=3))
        opened.run(asked).save(tmp_path / "out", formats=["parquet"])
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []
    path = tmp_path / "out" / "release.json"
    for name, found in (("hierarchies", 0), ("tuned_on", 1)):
        path.write_text(json.dumps(json.loads(path.read_text()) | {name: []}))
        assert len(verify(tmp_path / "l", against=[tmp_path / "out"])) == found


def test_codes_that_moved_in_a_list_are_detected(tmp_path) -> None:
    """The list says which counties a state has, and so what readers are told of the state."""
    places = rw.Hierarchy.of(
        "place", {"state": ["A", "A", "B"], "county": ["01", "02", "03"]}, levels=["state", "county"], source="public"
    )
    rows = {"id": [1, 2], "county": ["01", "03"], "emp": [3, 4]}
    with employers(rows, "county", ledger=tmp_path / "l", hierarchies=[places], dataset="small") as opened:
        asked = rw.query().group_by("county", keys=["01", "02", "03"]).sum("emp", rw.Gaussian(sigma=3))
        opened.run(asked).save(tmp_path / "out", formats=["parquet"])
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []
    path = tmp_path / "out" / "release.json"
    form = json.loads(path.read_text())
    form["hierarchies"][0]["list"]["state"]["values"].reverse()
    path.write_text(json.dumps(form))
    (problem,) = verify(tmp_path / "l", against=[tmp_path / "out"])
    assert "states other facts, such as lists of codes" in problem


def saved(tmp_path: Path, *, formats: list[str], alias: str = "n", **more: Any) -> Path:
    """A release that verifies, in a folder next to its ledger."""
    rows = {"id": [1, 2, 3], "county": ["01", "03", "03"], "emp": [3, 4, 500]}
    asked = rw.query().group_by("county", keys=["01", "03"]).count(rw.Gaussian(sigma=2), alias=alias)
    asked = asked.sum("emp", rw.UnitSplit(at=50, rho="0.1"), alias="total")
    asked = asked.sum("emp", rw.LogTransform(offset=100, sigma="0.1"), alias="log")
    with employers(rows, "county", ledger=tmp_path / "l", dataset="small", **more) as opened:
        opened.run(asked).save(tmp_path / "out", formats=formats)
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []
    return tmp_path / "out"


def noticed(folder: Path, name: str, text: str | bytes) -> list[str]:
    """Change a file and its digest in release.json, as who wants no one to notice; return what is noticed."""
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    form = json.loads((folder / "release.json").read_text())
    form["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "release.json").write_text(json.dumps(form))
    return verify(folder.parent / "l", against=[folder])


def smaller_paper(form: dict[str, Any]) -> None:
    for term in form["paper"]["rho"]:
        term[0] = "1/1000000"


def smaller_values(form: dict[str, Any]) -> None:
    form["values"] = None


def fewer_firms(form: dict[str, Any]) -> None:
    form["firms"]["parts"].pop()


def other_lattice(form: dict[str, Any]) -> None:
    form["lattice"] = []


@pytest.mark.parametrize("change", [smaller_paper, smaller_values, fewer_firms, other_lattice])
def test_losses_that_were_made_smaller_are_detected(tmp_path, change) -> None:
    """The ledger holds the tight policy alone; what else policy.json says, it knows by its digest."""
    folder = saved(tmp_path, formats=["parquet"])
    form = json.loads((folder / "policy.json").read_text())
    change(form)
    assert any("policy.json states other losses" in each for each in noticed(folder, "policy.json", json.dumps(form)))


def smaller_errors(form: dict[str, Any]) -> None:
    form["accuracy"]["county"]["n"]["median_sd"] /= 10


def no_errors(form: dict[str, Any]) -> None:
    form["accuracy"]["county"]["n"]["median_cv"] = None


def fewer_variables(form: dict[str, Any]) -> None:
    del form["accuracy"]["county"]["n"]


def no_flags(form: dict[str, Any]) -> None:
    form["flags"] = {}


def other_flags(form: dict[str, Any]) -> None:
    form["flags"]["county"]["log"] = "unbiased"


def no_parts(form: dict[str, Any]) -> None:
    form["page"]["parts"] = []


def no_page(form: dict[str, Any]) -> None:
    del form["page"]


@pytest.mark.parametrize(
    "change", [smaller_errors, no_errors, fewer_variables, no_flags, other_flags, no_parts, no_page]
)
def test_errors_columns_and_parts_that_are_stated_otherwise_are_detected(tmp_path, change) -> None:
    folder = saved(tmp_path, formats=["parquet"])
    form = json.loads((folder / "release.json").read_text())
    change(form)
    (folder / "release.json").write_text(json.dumps(form))
    assert len(verify(tmp_path / "l", against=[folder])) == 1


def test_words_given_to_readers_later_are_no_other_statements(tmp_path) -> None:
    folder = saved(tmp_path, formats=["parquet"])
    named = load_release(folder).with_labels(labels={"county": "Where", "county=01": "A"}, units={"total": "people"})
    named.consistent().basic().save(tmp_path / "named")
    assert verify(tmp_path / "l", against=[tmp_path / "named"]) == []


def test_a_workbook_with_a_sheet_of_a_name_that_is_reserved_now_still_verifies(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(xlsx, "RESERVED", xlsx.CODES)
        rows = {"id": [1, 2], "history": ["01", "03"], "emp": [3, 4]}
        asked = rw.query().group_by("history", keys=["01", "03"]).count(rw.Gaussian(sigma=2))
        with employers(rows, "history", ledger=tmp_path / "l", dataset="small") as opened:
            opened.run(asked).save(tmp_path / "out", formats=["parquet", "xlsx"])
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []


def test_functions_for_r_of_an_earlier_version_still_verify_and_other_text_does_not(tmp_path, monkeypatch) -> None:
    folder, source = (
        saved(tmp_path, formats=["parquet", "csv", "r"]),
        Path(statistical.__file__).parent / "recordwise.R",
    )
    text = (folder / "recordwise.R").read_text()
    assert noticed(folder, "recordwise.R", text.replace("\n", "\r\n")) == []
    added = '\nrw_release[["tables"]] <- list(); system("echo")\n'
    for other in (text.replace("rows = 2", "rows = 3"), text + added, text.replace("\n", "\r", 1), added + text):
        assert any("recordwise.R differs" in each for each in noticed(folder, "recordwise.R", other))
    earlier = hashlib.sha256((source.read_text() + added).encode()).hexdigest()
    monkeypatch.setattr(statistical, "R_DIGESTS", (*statistical.R_DIGESTS, earlier))
    assert noticed(folder, "recordwise.R", text + added) == []
    # Whoever changes the functions after a version was published adds their digest and leaves that of the version.
    assert hashlib.sha256(source.read_bytes()).hexdigest() in statistical.R_DIGESTS


def moved_sheet(parts: dict[str, bytes]) -> None:
    """What readers see is another part than the honest one, which is still there."""
    parts["xl/worksheets/forged.xml"] = re.sub(rb"<v>(\d+)</v>", rb"<v>\g<1>0</v>", parts["xl/worksheets/sheet5.xml"])
    for name in ("xl/_rels/workbook.xml.rels", "[Content_Types].xml"):
        parts[name] = parts[name].replace(b"sheet5.xml", b"forged.xml")


def replaced(name: str, before: bytes, after: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(parts: dict[str, bytes]) -> None:
        assert before in parts[name]
        parts[name] = parts[name].replace(before, after, 1)

    return change


RELATED, SHEETS, SHOWN = "xl/_rels/workbook.xml.rels", "xl/workbook.xml", "xl/worksheets/sheet5.xml"
FORGED = {
    "another part": moved_sheet,
    "another sheet": replaced(RELATED, b"sheet5.xml", b"sheet4.xml"),
    "outside": replaced(RELATED, b'Target="worksheets/sheet5.xml"', b'Target="https://e.org" TargetMode="External"'),
    "another workbook": replaced("_rels/.rels", b"xl/workbook.xml", b"docProps/app.xml"),
    "another type": replaced("[Content_Types].xml", b"/docProps/app.xml", b"/docProps/application.xml"),
    "one more sheet": replaced(SHEETS, b"</sheets>", b'<sheet name="More" sheetId="9" r:id="rId5"/></sheets>'),
    "another name": replaced(SHEETS, b'name="Notes"', b'name="Notices"'),
    "hidden": replaced(SHEETS, b'sheetId="5"', b'sheetId="5" state="hidden"'),
    "another format": replaced("xl/styles.xml", b'formatCode="#,##0"', b'formatCode="#,##0&quot;0&quot;"'),
    "one more row": replaced(SHOWN, b"</sheetData>", b'<x:row xmlns:x="%s" r="9"/></sheetData>' % MAIN[1:-1].encode()),
    "a formula": replaced(SHOWN, b"<v>", b"<f>10*A1</f><v>"),
    "another cell": replaced(SHOWN, b'r="C5"', b'r="C6"'),
    "another row": replaced(SHOWN, b'<row r="5"', b'<row r="7"'),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_workbook_that_shows_other_numbers_is_detected(tmp_path, change) -> None:
    folder = saved(tmp_path, formats=["parquet", "xlsx"])
    with zipfile.ZipFile(folder / "small.xlsx") as book:
        parts = {name: book.read(name) for name in book.namelist()}
    for changed in (False, True):
        change(parts) if changed else None
        made = BytesIO()
        with zipfile.ZipFile(made, "w") as book:
            for name, text in parts.items():
                book.writestr(name, text)
        problems = noticed(folder, "small.xlsx", made.getvalue())
        assert [each.endswith("small.xlsx differs from the Parquet file next to it") for each in problems] == [
            True
        ] * changed


@pytest.mark.parametrize("extension", ["xlsx", "xpt", "dta"])
@pytest.mark.parametrize("text", [b"", b"PK\x03\x04 damaged", b"\xff" * 9_000])
def test_a_file_that_cannot_be_read_is_a_problem_of_its_folder_alone(books, extension: str, text: bytes) -> None:
    (books.parent / "b" / f"county_by_naics2.{extension}").write_bytes(text)
    (problem,) = verify(books, against=folders(books))
    assert problem == f"{books.parent}/b: county_by_naics2.{extension} cannot be read"


@pytest.mark.parametrize("level", ["x", 1, 0, None, [], "nan"])
def test_a_level_of_intervals_that_is_none_is_damage(books, level: object) -> None:
    path = books.parent / "b" / "release.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"interval_level": level}))
    with pytest.raises(SourceError, match="or it is damaged"):
        load_release(path.parent)


def test_changed_basic_tables_and_data_packages_are_detected_though_their_digests_agree(tmp_path) -> None:
    folder = saved(tmp_path, formats=["parquet"])
    release = load_release(folder).basic(units={"n": 5})
    release.save(tmp_path / "basic", formats=["parquet"])
    (table,), (path,) = release.basic_tables, (tmp_path / "basic").glob("*_basic.parquet")
    assert noticed(path.parent, path.name, path.read_bytes()) == []
    for name, values in (("n", [n + 5 for n in table.data["n"].to_pylist()]), ("total_status", ["fine", "fine"])):
        data = table.data.set_column(table.data.column_names.index(name), name, [values])
        form = json.loads((path.parent / "release.json").read_text())
        form["basic"]["digest"] = digest_of({table.name: data}, release.policy)
        (path.parent / "release.json").write_text(json.dumps(form))
        made = BytesIO()
        pq.write_table(data.replace_schema_metadata(pq.read_schema(path).metadata), made)
        problems = noticed(path.parent, path.name, made.getvalue())
        assert any("basic tables do not follow from its fitted columns" in each for each in problems), problems
    text = (folder / "datapackage.json").read_text()
    (problem,) = noticed(folder, "datapackage.json", text.replace('"number"', '"integer"'))
    assert "datapackage.json does not describe its tables" in problem


@pytest.mark.parametrize("name", ["release.json", "policy.json", "datapackage.json"])
def test_files_nested_beyond_measure_are_a_problem_of_their_folder_alone(books, name: str) -> None:
    (books.parent / "b" / name).write_text("[" * 200_000)
    found = verify(books, against=folders(books))
    assert found
    assert all(problem.startswith(str(books.parent / "b")) for problem in found)


def test_a_seeded_release_whose_mark_was_rubbed_out_is_detected(tmp_path) -> None:
    with session(records(), tmp_path / "l", generous()) as opened:
        opened.run(question(), rng=Seeded(1)).save(tmp_path / "out")
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []
    path = tmp_path / "out" / "county_by_naics3.csv"
    path.write_text(path.read_text().split("\n", 1)[1])
    parquet = tmp_path / "out" / "county_by_naics3.parquet"
    pq.write_table(pq.read_table(parquet).replace_schema_metadata({"recordwise": "private"}), parquet)
    problems = verify(tmp_path / "l", against=[tmp_path / "out"])
    assert [problem.split(": ")[1] for problem in problems] == [
        f"county_by_naics3.{kind} carries a different privacy label than the ledger" for kind in ("parquet", "csv")
    ]
    page = tmp_path / "out" / "report.html"
    page.write_text(page.read_text().replace(' class="not-private"', ""))
    assert "report.html carries a different privacy label" in verify(tmp_path / "l", against=[tmp_path / "out"])[-1]


def test_missing_and_foreign_files_are_told_not_raised(tmp_path) -> None:
    assert "does not exist" in verify(tmp_path / "none")[0]
    (tmp_path / "text").write_text("x" * 4000)
    assert "not a SQLite file" in verify(tmp_path / "text")[0]
    sqlite3.connect(tmp_path / "empty").execute("CREATE TABLE songs (title TEXT)").connection.close()
    assert verify(tmp_path / "empty") != []
    Ledger(tmp_path / "l", dataset="d").close()
    assert "cannot be read" in verify(tmp_path / "l", against=[tmp_path / "nowhere"])[0]


def test_a_path_with_signs_of_its_own_can_be_verified(tmp_path) -> None:
    path = tmp_path / "a%20b?c#d.ledger"
    Ledger(path, dataset="d").close()
    assert verify(path) == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER hidden AFTER INSERT ON events BEGIN SELECT 1; END",
        "CREATE TABLE more (x TEXT)",
        "ALTER TABLE events ADD COLUMN more TEXT",
        "ALTER TABLE events RENAME COLUMN time TO clock",
    ],
)
def test_a_ledger_with_another_layout_is_refused_and_takes_no_charge(books, statement: str) -> None:
    rewritten(books, (statement, ()))
    assert any("layout was changed" in problem for problem in verify(books))
    with pytest.raises(LedgerError, match="layout was changed"):
        session(records(), books, generous())


def test_a_table_declared_without_its_key_hides_no_event(books) -> None:
    """Found by fuzzing: with one letter changed, every sequence is NULL and a comparison with it finds nothing."""
    books.write_bytes(books.read_bytes().replace(b"INTEGER PRIMARY KEY", b"INTEGER PRI\rARY KEY"))
    assert verify(books) != []
    with pytest.raises(LedgerError, match="layout was changed"):
        session(records(), books, generous())


@pytest.mark.parametrize("body", ["7", "x'00'", "'[]'", "'7'", "'{'"])
def test_an_entry_that_is_no_event_is_told_and_not_raised(books, body: str) -> None:
    """Found by fuzzing: a body that is a number was a TypeError."""
    for sequence in (1, 6):
        connection = sqlite3.connect(books)
        for name in ("no_update", "no_delete"):
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        connection.execute(f"UPDATE events SET body = {body} WHERE sequence = ?", (sequence,))
        connection.commit()
        connection.close()
        assert verify(books) != []
        with pytest.raises(LedgerError), session(records(), books, generous()) as opened:
            opened.run(question())


def test_a_file_whose_table_cannot_be_found_is_not_taken_for_a_new_ledger(books) -> None:
    data = bytearray(books.read_bytes())
    # No cell on the first page: SQLite sees a database without tables.
    data[100:4096] = bytes([13, 0, 0, 0, 0, 16, 0, 0]) + bytes(4096 - 108)
    books.write_bytes(data)
    with pytest.raises(LedgerError, match="entries cannot be found"):
        session(records(), books, generous())


def test_a_ledger_copied_without_its_log_while_it_is_open_has_every_release(tmp_path) -> None:
    with session(records(), tmp_path / "l", generous()) as opened:
        opened.run(question()).save(tmp_path / "out")
        shutil.copy(tmp_path / "l", tmp_path / "copy")
    assert verify(tmp_path / "copy", against=[tmp_path / "out"]) == []
