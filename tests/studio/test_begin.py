"""From a file of the folder to a first plan, by a form."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recordwise.cli.demo import write_inputs
from recordwise.errors import KeysError, ParameterError
from recordwise.plan.file.read import load_plan
from recordwise.plan.sources import read_code_file
from recordwise.studio.begin import Form, draft, propose, read_form, record_files, write_plan

FORM = Form(
    records="establishments-2025.parquet",
    headed=True,
    unit=("estab_id",),
    sums={"emp": "100", "payann": "4000"},
    steps={"emp": "1", "payann": "1"},
    by=(),
    codes={},
    lists={"places.csv": "state, county", "industries.csv": "sector, industry"},
    sizes="sizes.csv",
    size_columns={"emp": "employees", "payann": "payroll"},
    tuned_on="public",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("begin")
    write_inputs(found, 300)
    for each in found.glob("plan*.toml"):
        each.unlink()
    (found.parent / "outside.csv").write_text("state,county\nA,1\n")
    (found / "link.csv").symlink_to(found.parent / "outside.csv")
    (found / ".hidden.csv").write_text("a\n1\n")
    return found


def test_roles_lists_and_sizes_are_proposed(folder: Path) -> None:
    found = propose(folder, "establishments-2025.parquet", headed=True)
    roles = {each["name"]: each["role"] for each in found["columns"]}
    assert (roles["estab_id"], roles["emp"], roles["payann"]) == ("unit", "sum", "sum")
    assert (roles["county"], roles["industry"]) == ("group", "group")
    assert found["lists"] == {"places.csv": "state, county", "industries.csv": "sector, industry"}
    assert found["sizes"]["sizes.csv"] == ["establishments", "employees", "payroll"]


@pytest.mark.costly
def test_the_cells_are_counted_and_the_plan_is_accepted(folder: Path) -> None:
    found = draft(folder, FORM)
    assert found["problem"] == ""
    assert found["cells"] == sum(each["cells"] for each in found["tables"])
    assert len(found["tables"]) == 4
    plan = write_plan(folder, FORM)
    assert load_plan(plan).plan.schema.unit == "estab_id"
    assert write_plan(folder, FORM).name == "plan-2.toml"
    assert not list(folder.glob(".studio*"))


@pytest.mark.parametrize("sizes", ["sizes.csv", ""])
def test_a_form_without_sums_is_a_plan_of_counts(folder: Path, sizes: str) -> None:
    """The table has numbers that could be summed, and the file of sizes one column for each."""
    found = draft(folder, replace(FORM, sums={}, steps={}, sizes=sizes))
    assert found["problem"] == ""
    assert "sum." not in found["text"]
    assert found["cells"] > 0


def test_a_list_without_levels_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(ParameterError, match="the list places has no levels"):
        draft(folder, replace(FORM, lists={"places.csv": " , "}))


def test_a_file_in_another_encoding_is_no_list_and_no_obstacle(folder: Path) -> None:
    (folder / "latin.csv").write_bytes("état,county\nA,01\n".encode("latin-1"))
    try:
        assert "latin.csv" not in propose(folder, FORM.records, headed=True)["lists"]
        with pytest.raises(KeysError, match="is not in UTF-8"):
            read_code_file(folder / "latin.csv")
    finally:
        (folder / "latin.csv").unlink()


def test_what_is_left_to_say_is_said(folder: Path) -> None:
    found = draft(folder, replace(FORM, unit=()))
    assert found["cells"] > 0
    found = draft(folder, replace(FORM, lists={}, sizes="", by=("county",)))
    assert found["problem"]
    with pytest.raises(ParameterError, match="not complete"):
        write_plan(folder, replace(FORM, lists={}, sizes="", by=("county",)))


@pytest.mark.parametrize("name", ["../outside.csv", "/etc/passwd", "link.csv", ".hidden.csv", "", "missing.csv", "."])
def test_no_file_outside_the_folder_is_opened(folder: Path, name: str) -> None:
    assert name not in {each["name"] for each in record_files(folder)}
    for call in (
        lambda: propose(folder, name, headed=True),
        lambda: draft(folder, replace(FORM, records=name)),
        lambda: draft(folder, replace(FORM, lists={name: "state, county"})),
        *([lambda: draft(folder, replace(FORM, sizes=name))] if name else []),
    ):
        with pytest.raises(ParameterError, match="is not one of the folder"):
            call()


@pytest.mark.parametrize("content", [{}, {"records": 1}, {"records": "a", "more": 2}])
def test_another_form_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        read_form(content)
