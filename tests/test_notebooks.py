"""The notebooks of the documentation: stored without outputs, every cell runs, and their pages say what they say."""

import json
import os
import runpy
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "make_notebooks.py"))
NOTEBOOKS = SCRIPT["notebooks"]()
NEEDS_DATA = SCRIPT["NEEDS_DATA"]


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """Run a notebook in an empty folder, with the scripts that lie beside it."""
    monkeypatch.chdir(folder)
    for script in (DOCS / "notebooks").glob("*.R"):
        shutil.copy(script, folder)
    return list(SCRIPT["run"](NOTEBOOKS[name]))


def test_every_notebook_is_listed_and_no_other() -> None:
    assert len(NOTEBOOKS) == 8
    page = (DOCS / "notebooks.md").read_text(encoding="utf-8")
    assert {name for name in NOTEBOOKS if f"(notebooks/{name}.md)" in page} == set(NOTEBOOKS)
    assert page.count("](notebooks/") == len(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_stored_without_outputs_in_the_form_that_jupyter_reads(name: str) -> None:
    read = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    assert (read["nbformat"], read["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in read["cells"]}) == len(read["cells"])
    for cell in read["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_page_of_a_notebook_has_its_text_and_code_in_order(name: str) -> None:
    page = NOTEBOOKS[name].with_suffix(".md").read_text(encoding="utf-8")
    place = 0
    for part in SCRIPT["page_parts"](NOTEBOOKS[name]):
        place = page.find(part, place)
        assert place >= 0, f"run: python docs/make_notebooks.py {name} (not on the page: {part[:80]})"
        place += len(part)
    assert page.count("```python") == sum(kind == "code" for kind, _ in SCRIPT["cells"](NOTEBOOKS[name]))


@pytest.mark.parametrize("name", sorted(set(NOTEBOOKS) - NEEDS_DATA))
@pytest.mark.process
def test_every_cell_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = run(name, tmp_path, monkeypatch)
    assert any(text.strip() for text, _ in printed)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NEEDS_DATA))
def test_every_cell_runs_on_the_public_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.environ.get("RECORDWISE_DATA"):
        pytest.skip(f"{name}: RECORDWISE_DATA names no folder, so this notebook was NOT run")
    assert run(name, tmp_path, monkeypatch)


@pytest.mark.process
def test_the_script_in_r_gives_the_sums_that_python_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("Rscript") is None:
        missing = "Rscript is not on the PATH: the script in R was NOT run"
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail(missing)
        pytest.skip(missing)
    *_, (printed, _) = run("using-a-release", tmp_path, monkeypatch)
    import pandas as pd

    frame = pd.read_csv(tmp_path / "jobs-2026" / "county5.csv", dtype={"county5": str})
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    assert lines[0] == ["label", "value", "sd"]
    assert {county: float(emp) for county, emp, _ in lines[1:]} == frame.set_index("county5")["sum_emp"].to_dict()
