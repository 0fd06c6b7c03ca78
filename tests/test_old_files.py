"""What earlier versions wrote (``tests/old_files``) is read for ever, and means what it meant."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import recordwise as rw
from build import few
from recordwise.cli import app
from recordwise.errors import RELEASED, AlreadyReleasedError
from recordwise.ledger.ledger import Ledger
from recordwise.plan.cost import firm_policy
from recordwise.plan.describe import plan_json, release_identity
from recordwise.plan.file import load_plan
from recordwise.policy import Policy
from recordwise.policy.policy import restates
from recordwise.release.verify import verify
from recordwise.session import Session

FILES = Path(__file__).parent / "old_files"
RELEASES = {
    "0.1.0": {
        "release": "establishments.ledger",
        "private-keys": "private-keys.ledger",
        "external": "private-keys.ledger",
        "seeded": "private-keys.ledger",
    },
    "0.2.0": {"release": "establishments.ledger"},
    "0.3.0.dev": {
        "release": "establishments.ledger",
        "private-keys": "private-keys.ledger",
        "external": "private-keys.ledger",
        "seeded": "private-keys.ledger",
    },
    "0.3.0": {
        "release": "establishments.ledger",
        "2020": "years.ledger",
        "2021": "years.ledger",
        "2021-corrected": "years.ledger",
        "preliminary": "utilities.ledger",
        "final": "utilities.ledger",
        "pure": "pure.ledger",
    },
}
"""The release folders of each version, and the ledger of each.

0.2.0 has hierarchies, sized noise, a series and basic tables; 0.3.0.dev was written before 0.3.0 changed any format. 0.3.0 has
carried, corrected and refined releases, a reserve, ids of two columns and a budget in pure epsilon.
"""
VERSIONS = sorted(RELEASES)
ALL = [(version, folder, ledger) for version, found in RELEASES.items() for folder, ledger in found.items()]


def copied(version, tmp_path):
    """A copy: reading a ledger may leave lock files beside it."""
    return Path(shutil.copytree(FILES / version, tmp_path / "old"))


@pytest.fixture(params=VERSIONS)
def old(request, tmp_path):
    return copied(request.param, tmp_path)


def test_every_version_with_old_files_is_read():
    assert sorted(folder.name for folder in FILES.iterdir() if folder.is_dir()) == VERSIONS


@pytest.mark.parametrize("version, folder, ledger", ALL)
@pytest.mark.costly
def test_a_release_of_an_earlier_version_loads_and_verifies(version, folder, ledger, tmp_path):
    old = copied(version, tmp_path)
    release = rw.read(old / folder)
    assert verify(old / ledger, against=[old / folder]) == []
    assert release.private == (folder != "seeded")
    stated = json.loads((old / folder / "release.json").read_text())
    assert {table.name for table in release.tables} == set(stated["accuracy"])
    assert {table.name for table in release.basic_tables} == set(stated.get("basic", {}).get("tables", ()))


@pytest.mark.costly
def test_a_changed_release_of_an_earlier_version_does_not_verify(old):
    stated = old / "release" / "policy.json"
    text = stated.read_text()
    stated.write_text(text.replace('"1/800"', '"1/900"'))
    assert stated.read_text() != text
    assert verify(old / "establishments.ledger", against=[old / "release"]) != []


@pytest.mark.parametrize("old", few(VERSIONS, 3), indirect=True)
@pytest.mark.costly
def test_a_release_of_an_earlier_version_is_made_consistent_and_saved(old):
    fitted = rw.read(old / "release").consistent()
    fitted.save(old / "fitted")
    assert verify(old / "establishments.ledger", against=[old / "fitted"]) == []


@pytest.mark.costly
def test_a_ledger_of_an_earlier_version_still_counts(old):
    ledger = Ledger.existing(old / "establishments.ledger")
    spent, budget = ledger.spent(), ledger.budget
    ledger.close()
    assert spent == rw.read(old / "release").policy
    assert restates(budget, load_plan(old / "plan.toml").budget)


@pytest.mark.parametrize("old", few(VERSIONS, 3), indirect=True)
@pytest.mark.costly
def test_a_plan_of_an_earlier_version_releases_again_under_its_own_ledger(old):
    plan = load_plan(old / "plan.toml")
    with Session.from_plan(plan) as session:
        release = session.run(*plan.plan.queries, confidence=plan.confidence)
        release.save(old / "again")
        assert session.spent() == rw.read(old / "release").policy + release.policy
    assert verify(old / "establishments.ledger", against=[old / "release", old / "again"]) == []


@pytest.mark.parametrize("version", ["0.1.0", "0.3.0.dev"])
def test_policies_of_an_earlier_version_give_the_losses_they_gave(version):
    for entry in json.loads((FILES / version / "policies.json").read_text()):
        policy = Policy.from_json(entry["policy"])
        assert policy.to_json() == entry["policy"]
        for record, (rho, delta) in zip(entry["records"], entry["losses"], strict=True):
            assert policy.loss(record) == pytest.approx(rho, rel=1e-13, abs=0)
            assert policy.delta(record) == pytest.approx(delta, rel=1e-13, abs=0)


@pytest.mark.parametrize("version", ["0.2.0", "0.3.0.dev", "0.3.0"])
def test_a_release_with_bands_gives_the_losses_it_gave(version):
    release = rw.read(FILES / version / "release")
    entries = json.loads((FILES / version / "losses.json").read_text())["losses"]
    assert len(entries) == 7
    for record, tight, paper in entries:
        assert release.policy.loss(record) == pytest.approx(tight, rel=1e-13, abs=0)
        assert release.paper_policy.loss(record) == pytest.approx(paper, rel=1e-13, abs=0)


def released_before(old, text, changes=(), name="plan.toml"):
    """What became of the old plan's release in its own ledger, by the digest that its version wrote."""
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    (old / name).write_text(text)
    plan = load_plan(old / name)
    with Session.from_plan(plan) as session:
        with pytest.raises(AlreadyReleasedError) as refused:
            session.run(*plan.plan.queries, confidence=plan.confidence, refuse_repeat=True)
        return refused.value.state, len(session.history())


@pytest.mark.parametrize("version", ["0.2.0", "0.3.0.dev", "0.3.0"])
@pytest.mark.costly
def test_what_an_earlier_version_charged_is_recognized_under_any_title_and_not_paid_twice(version, tmp_path):
    old = copied(version, tmp_path)
    text = (old / "plan.toml").read_text()
    titled = ('title = "Employment by place and industry"', 'title = "Jobs"')
    plain = ('title = "Employment by place and industry"\n', "")
    for changes in ((), [titled], [plain], [("year = 2025", "year = 2026")]):
        assert released_before(old, text, changes)[0] == RELEASED


def test_what_an_earlier_version_charged_for_private_keys_is_recognized(tmp_path):
    old = copied("0.3.0.dev", tmp_path)
    text = (old / "private-keys.toml").read_text()
    assert released_before(old, text, name="private-keys.toml")[0] == RELEASED


def test_what_an_earlier_version_charged_is_not_taken_for_another_release(tmp_path):
    old = copied("0.2.0", tmp_path)
    events = Ledger.existing(old / "establishments.ledger")
    charged = [event.body for event in events.history() if event.kind == "charged"]
    events.close()
    text, found = (old / "plan.toml").read_text(), []
    for before, after in (
        ("year = 2025", "year = 2027"),
        (
            'sum.emp = { kind = "UnitSplit", at = 50, rho = 0.2 }',
            'sum.emp = { kind = "UnitSplit", at = 50, rho = 0.3 }',
        ),
        ("measures.payann = 1", 'measures.payann = { step = 1, null = "zero" }'),
        ("year = 2025", "year = 2025"),
    ):
        (old / "plan.toml").write_text(text.replace(before, after))
        file = load_plan(old / "plan.toml")
        own = release_identity(file.plan, plan_json(file.plan), firm_policy(file.plan).policy(), file.series)
        found.append([own.matches_charge(body) for body in charged])
    assert found == [[False, False], [False, False], [False, False], [True, False]]


def test_stages_and_histories_of_an_earlier_version_give_the_losses_they_gave(tmp_path, monkeypatch):
    old = copied("0.3.0", tmp_path)
    kept = json.loads((old / "stage-losses.json").read_text())
    history = kept.pop("history")
    assert kept.keys() == RELEASES["0.3.0"].keys() - {"release"}
    for folder, losses in kept.items():
        policy = rw.read(old / folder).policy
        for record, loss in losses:
            assert policy.loss(record) == pytest.approx(loss, rel=1e-13, abs=0)
    monkeypatch.chdir(old)
    words = ["emp@2020=20", "emp@2021=22", "emp@2021/1=25", "county=02"]
    told = CliRunner().invoke(app, ["loss", "years.ledger", *words, "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.output) == history


@pytest.mark.costly
def test_noise_of_an_earlier_version_is_carried_on(tmp_path, monkeypatch):
    """The digests of its totals are those of the same records today, so that a chain of years goes on."""
    old = copied("0.3.0", tmp_path)
    monkeypatch.chdir(old)
    text = (
        (old / "years.toml")
        .read_text()
        .replace("sigma = 2 }\nsum", "sigma = 3 }\nsum")
        .replace("sigma = 8", "sigma = 11")
    )
    (old / "next.toml").write_text(text.replace("records${year}", "records2020"))
    carried = ["--carry", "2021-corrected", "--old-records", "records2021-corrected.csv"]
    done = CliRunner().invoke(app, ["release", "next.toml", "--set", "year=2022", *carried, "--out", "2022", "--yes"])
    assert done.exit_code == 0, done.output
    assert verify(old / "years.ledger", against=[old / "2021-corrected", old / "2022"]) == []
