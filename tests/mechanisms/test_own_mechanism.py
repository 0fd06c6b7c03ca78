"""A mechanism that an installed package adds (tests/own_package) works wherever a built-in one does."""

import json

import pytest
from typer.testing import CliRunner

import build
import recordwise as rw
from recordwise import planning
from recordwise.audit import Runs, audit
from recordwise.audit.subjects import every_subject
from recordwise.cli import app
from recordwise.mechanisms.base import parameter_json
from recordwise.mechanisms.registry import mechanism_from_json, mechanism_kind, mechanism_kinds
from recordwise.plan.describe import declared_elsewhere
from recordwise.plan.file import load_plan

PLAN = """
dataset = "small"
source = "records.parquet"
ledger = "ledger.jsonl"
tuned_on = "synthetic"

[schema]
unit = "id"
measures = { emp = 1, pay = 1 }
columns = { county = "text", naics = "text" }

[[queries]]
group_by = ["county"]
keys = { product = { county = ["01", "02", "03", "04"] } }
sum.emp = { kind = "Laplace", relative_error = 0.1, at_total = 1000, confidence = 0.9 }
"""


@pytest.fixture
def laplace(own_package):
    return mechanism_kind("Laplace")


def test_without_the_package_the_kind_is_not_known():
    assert mechanism_kind("Laplace") is None
    assert "Laplace" not in mechanism_kinds()


def test_it_describes_itself(laplace):
    mechanism = laplace(scale="1/3")
    assert repr(laplace(scale=30)) == "Laplace(scale=30)"
    assert mechanism_from_json(parameter_json(mechanism)) == mechanism
    assert parameter_json(mechanism) == {"kind": "Laplace", "scale": "1/3"}


def test_a_plan_file_names_it_and_a_release_states_it(laplace, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    build.write_records(tmp_path / "records.parquet")
    (query,) = load_plan(tmp_path / "plan.toml").plan.queries
    wanted = laplace(relative_error="0.1", at_total=1000, confidence=0.9)
    assert query.statistics[0].mechanism == wanted
    with build.session(str(tmp_path / "records.parquet")) as session:
        release = session.run(query)
        release.save(tmp_path / "release")
    assert release.table.num_rows == 4
    (stated,) = release.to_json()["plan"][0]["statistics"]
    assert mechanism_from_json(stated["mechanism"]) == wanted
    assert "Laplace noise" in (tmp_path / "release" / "report.html").read_text()


DECLARED = {
    "name": "Laplace",
    "package": "recordwise-own",
    "version": "1.0",
    "policy": "declared by its package, not proved by recordwise",
}


def test_who_answers_for_its_loss_is_said_before_and_in_the_release(laplace, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    build.write_records(tmp_path / "records.parquet")
    file = load_plan(tmp_path / "plan.toml")
    with build.session(str(tmp_path / "records.parquet")) as session:
        (warned,) = session.warnings_of(*file.plan.queries)
        release = session.run(*file.plan.queries)
        release.save(tmp_path / "release")
        plain = session.run(rw.query().count(rw.Gaussian(rho="0.1")))
        keys = rw.Keys.of({"county": ["01"], "size": [200]}, size="size", sized_on="public: made up")
        sized = rw.query().sum("emp", rw.Sized(floor=100, mechanism=laplace(scale="0.1")))
        assert declared_elsewhere(session._plan([sized.at(keys)]))[0].to_json() == DECLARED
    assert warned == "the loss of Laplace of recordwise-own 1.0 is declared by its package, not proved by recordwise"
    assert json.loads((tmp_path / "release" / "release.json").read_text())["declared_elsewhere"] == [DECLARED]
    page = (tmp_path / "release" / "report.html").read_text()
    assert "Laplace of recordwise-own 1.0: declared by its package, not proved by recordwise" in page
    again = rw.read(tmp_path / "release")
    assert again.to_json()["declared_elsewhere"] == [DECLARED]
    assert "declared_elsewhere" not in plain.to_json()
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "plan.toml"), "--json"])
    assert json.loads(checked.stdout)["declared_elsewhere"] == [DECLARED]
    printed = CliRunner().invoke(app, ["check", str(tmp_path / "plan.toml")]).stdout
    assert "declared by its package, not proved by recordwise" in " ".join(printed.split())


def test_planning_compares_fits_and_shares_it(laplace):
    shape = rw.query().group_by("county", keys=rw.Keys.of({"county": build.COUNTIES}))
    with build.session(build.records()) as session:
        compared = planning.compare(session, {"own": laplace(scale=30)}, measure="emp", query=shape, variance=400)
        goal = planning.Goal("emp", shape, within="0.1", confidence=0.9)
        fitted = planning.recommend(session, goal, candidates={"own": laplace(scale=1)}, keep_offsets=True)
        split = planning.recommend(session, goal, keep_mechanisms=laplace(scale=10))
    own = compared["own"]
    assert float(own.mechanism.variance(0)) == pytest.approx(400, rel=1e-3)
    (found,) = fitted["own"].calibrated
    assert found.share_met == 1
    assert split.shares[0].mechanism == laplace(scale=10)


def test_the_audit_attacks_it_and_finds_no_more_loss_than_its_policy(laplace):
    name = "Laplace noise of one's own"
    found = audit(every_subject()[name](), Runs(cells=5_000, runs=1))
    assert found
    assert not any(each.broken for each in found)
