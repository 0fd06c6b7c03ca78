"""The guides for readers of tables run as they are printed, on small releases."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import recordwise as rw
from build import employers
from recordwise.cli import app

DOCS = Path(__file__).parents[2] / "docs"
COUNTIES = ["34001", "34003", "34005", "34007", "36001", "36003"]
RENAMED = {"2024": "09001", "2025": "09001", "2026": "09110"}
SECTORS = ["31-33", "44-45"]


def write_release(year: str) -> None:
    """Tables of states and counties by all and each sector, with little noise and complete keys."""
    codes, chance = [*COUNTIES, RENAMED[year]], np.random.default_rng(int(year))
    emp = np.floor(chance.pareto(1.5, 700) * 10 + 1).astype(np.int64)
    rows = {"id": np.arange(700), "county": chance.choice(codes, 700), "naics2": chance.choice(SECTORS, 700)}
    pay = {"emp": emp, "payann": emp * chance.integers(20, 60, 700), "payqtr1": emp * 4}
    listed = {"state": [code[:2] for code in codes], "county": codes}
    places = rw.Hierarchy.of("place", listed, levels=["state", "county"], source="public: places")
    keys = rw.Keys.product(county=codes, naics2=SECTORS)
    asked = rw.query().levels("state", "county").levels((), "naics2", keys=keys).count(rw.Gaussian(sigma=2))
    for name, sigma in (("emp", 5), ("payann", 200), ("payqtr1", 50)):
        asked = asked.sum(name, rw.Gaussian(sigma=sigma))
    with employers(
        pa.table(rows | pay),
        "county",
        "naics2",
        measures=dict.fromkeys(pay, 1),
        hierarchies=[places],
        dataset=f"cbp {year}",
        ledger=f"{year}.ledger",
    ) as session:
        session.run(asked).save(f"cbp-{year}", formats=["parquet"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Releases of three years, and a list of regions."""
    found = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        for year in RENAMED:
            write_release(year)
        Path("zones.csv").write_text("county,region\n34001,shore\n34003,north\n")
        yield found


@pytest.mark.costly
@pytest.mark.parametrize("page", ["using-tables.md", "consistent.md"])
def test_every_block_of_a_guide_runs_in_order(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(python|sh)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert {language for language, _ in found} == {"python", "sh"}
    names: dict[str, object] = {}
    for language, block in found:
        if language == "python":
            exec(compile(block, page, "exec"), names)
            continue
        for line in block.splitlines():
            done = CliRunner().invoke(app, shlex.split(line)[1:])
            assert done.exit_code == 0, (line, done.output)
