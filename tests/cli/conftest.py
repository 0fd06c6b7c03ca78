"""A small table of establishments with a plan beside it, and a way to run a command on them."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from recordwise.cli import app, screen
from recordwise.synthetic import write_establishments

PLAN = """\
dataset = "small"
source = "establishments.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"
max_outside = "accept"

[schema]
unit = "estab_id"
firm = "firm_id"
measures.emp = 1
measures.payann = 1
columns.county = "text"
columns.naics = "text"

[[budget]]
rho = 1

[[budget]]
rho = 2
at = { emp = 20, payann = 1000 }

[keys.areas]
product = { county = ["06037", "17031"], naics = ["441110", "722511"] }

[[queries]]
group_by = ["county", { prefix = "naics", length = 3 }]
keys = "areas"
count = { kind = "Gaussian", rho = 0.1 }
sum.emp = { kind = "UnitSplit", at = 20, rho = 0.5 }
sum.payann = { kind = "LogTransform", offset = 2000, sigma = 0.5 }
"""


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "establishments.parquet"
    write_establishments(path, 20_000)
    return path


@pytest.fixture(scope="session")
def furnished(records):
    """Put the table and its plan into a folder."""

    def put(place):
        (place / "establishments.parquet").symlink_to(records)
        (place / "plan.toml").write_text(PLAN)
        return place

    return put


@pytest.fixture
def folder(tmp_path, furnished):
    """A folder with the table and its plan."""
    return furnished(tmp_path)


@pytest.fixture
def terminal(monkeypatch):
    """As if standard output were one; what is computed from confidential records goes there only."""
    monkeypatch.setattr(screen, "on_terminal", lambda: True)


@pytest.fixture
def run():
    """Run a command; the result has exit_code, stdout, stderr."""

    def invoked(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    return invoked


@pytest.fixture
def run_json(run):
    def invoked(*words, exit_code=0):
        result = run(*words, "--json")
        assert result.exit_code == exit_code, result.output
        assert result.stderr == ""
        return json.loads(result.stdout)

    return invoked


@pytest.fixture(scope="session")
def released_once(furnished, tmp_path_factory):
    """A folder with the table, its plan and one release; it is only read."""
    folder = furnished(tmp_path_factory.mktemp("released"))
    words = ["release", str(folder / "plan.toml"), "--out", str(folder / "out"), "--yes"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.stderr
    return folder


@pytest.fixture
def released(folder, released_once):
    """The folder after one release into folder/out."""
    shutil.copytree(released_once, folder, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("establ*"))
    return folder
