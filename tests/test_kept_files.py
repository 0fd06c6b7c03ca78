"""What earlier versions wrote is read for ever, and means what it meant: ledgers, releases, policies, plans (``tests/kept``)."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from recordwise.errors import RELEASED, AlreadyReleasedError
from recordwise.ledger.ledger import Ledger
from recordwise.plan.cost import firm_policy
from recordwise.plan.describe import plan_json, release_identity
from recordwise.plan.file import load_plan
from recordwise.policy import Policy
from recordwise.policy.policy import restates
from recordwise.release.files import load_release
from recordwise.release.verify import verify
from recordwise.session import Session

KEPT = Path(__file__).parent / "kept"
RELEASES = {
    "0.1.0": {
        "release": "establishments.ledger",
        "private-keys": "private-keys.ledger",
        "external": "private-keys.ledger",
        "seeded": "private-keys.ledger",
    },
    "0.2.0": {"release": "establishments.ledger"},
}
"""The release folders of each version, and the ledger of each. 0.2.0 has hierarchies, sized noise, a series and basic tables."""
VERSIONS = sorted(RELEASES)
ALL = [(version, folder, ledger) for version, found in RELEASES.items() for folder, ledger in found.items()]


def copied(version, tmp_path):
    """A copy: reading a ledger may leave lock files beside it."""
    return Path(shutil.copytree(KEPT / version, tmp_path / "kept"))


@pytest.fixture(params=VERSIONS)
def kept(request, tmp_path):
    return copied(request.param, tmp_path)


def test_every_version_that_kept_files_is_read():
    assert sorted(folder.name for folder in KEPT.iterdir() if folder.is_dir()) == VERSIONS


@pytest.mark.parametrize("version, folder, ledger", ALL)
def test_a_release_of_an_earlier_version_loads_and_verifies(version, folder, ledger, tmp_path):
    kept = copied(version, tmp_path)
    release = load_release(kept / folder)
    assert verify(kept / ledger, against=[kept / folder]) == []
    assert release.private == (folder != "seeded")
    stated = json.loads((kept / folder / "release.json").read_text())
    assert {table.name for table in release.tables} == set(stated["accuracy"])
    assert {table.name for table in release.basic_tables} == set(stated.get("basic", {}).get("tables", ()))


def test_a_changed_release_of_an_earlier_version_does_not_verify(kept):
    stated = kept / "release" / "policy.json"
    text = stated.read_text()
    stated.write_text(text.replace('"1/800"', '"1/900"'))
    assert stated.read_text() != text
    assert verify(kept / "establishments.ledger", against=[kept / "release"]) != []


def test_a_release_of_an_earlier_version_is_made_consistent_and_saved(kept):
    fitted = load_release(kept / "release").consistent()
    fitted.save(kept / "fitted")
    assert verify(kept / "establishments.ledger", against=[kept / "fitted"]) == []


def test_a_ledger_of_an_earlier_version_still_counts(kept):
    ledger = Ledger.existing(kept / "establishments.ledger")
    spent, budget = ledger.spent(), ledger.budget
    ledger.close()
    assert spent == load_release(kept / "release").policy
    assert restates(budget, load_plan(kept / "plan.toml").budget)


def test_a_plan_of_an_earlier_version_releases_again_under_its_own_ledger(kept):
    # It was written before plans stated which share of the records may be outside their cells.
    plan = replace(load_plan(kept / "plan.toml"), max_outside=None)
    with Session.from_plan(plan) as session:
        release = session.run(*plan.plan.queries, confidence=plan.confidence)
        release.save(kept / "again")
        assert session.spent() == load_release(kept / "release").policy + release.policy
    assert verify(kept / "establishments.ledger", against=[kept / "release", kept / "again"]) == []


def test_policies_of_an_earlier_version_give_the_losses_they_gave(tmp_path):
    kept = copied("0.1.0", tmp_path)
    for entry in json.loads((kept / "policies.json").read_text()):
        policy = Policy.from_json(entry["policy"])
        assert policy.to_json() == entry["policy"]
        for record, (rho, delta) in zip(entry["records"], entry["losses"], strict=True):
            assert policy.loss(record) == pytest.approx(rho, rel=1e-13, abs=0)
            assert policy.delta(record) == pytest.approx(delta, rel=1e-13, abs=0)


def test_a_release_with_bands_gives_the_losses_it_gave(tmp_path):
    kept = copied("0.2.0", tmp_path)
    release = load_release(kept / "release")
    entries = json.loads((kept / "losses.json").read_text())["losses"]
    assert len(entries) == 7
    for record, tight, paper in entries:
        assert release.policy.loss(record) == pytest.approx(tight, rel=1e-13, abs=0)
        assert release.paper_policy.loss(record) == pytest.approx(paper, rel=1e-13, abs=0)


def released_before(kept, text, changes=()):
    """What became of the kept plan's release in its own ledger, by the digest that its version wrote."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (kept / "plan.toml").write_text(text)
    plan = load_plan(kept / "plan.toml")
    with Session.from_plan(plan) as session:
        with pytest.raises(AlreadyReleasedError) as refused:
            session.run(*plan.plan.queries, confidence=plan.confidence, refuse_repeat=True)
        return refused.value.state, len(session.history())


def test_what_an_earlier_version_charged_is_recognized_under_any_title_and_not_paid_twice(tmp_path):
    kept = copied("0.2.0", tmp_path)
    text = (kept / "plan.toml").read_text()
    titled = ('title = "Employment by place and industry"', 'title = "Jobs"')
    plain = ('title = "Employment by place and industry"\n', "")
    for changes in ((), [titled], [plain], [("year = 2025", "year = 2026")]):
        assert released_before(kept, text, changes)[0] == RELEASED


def test_what_an_earlier_version_charged_is_not_taken_for_another_release(tmp_path):
    kept = copied("0.2.0", tmp_path)
    events = Ledger.existing(kept / "establishments.ledger")
    charged = [event.body for event in events.history() if event.kind == "charged"]
    events.close()
    text, found = (kept / "plan.toml").read_text(), []
    for old, new in (
        ("year = 2025", "year = 2027"),
        (
            'sum.emp = { kind = "UnitSplit", at = 50, rho = 0.2 }',
            'sum.emp = { kind = "UnitSplit", at = 50, rho = 0.3 }',
        ),
        ("measures.payann = 1", 'measures.payann = { step = 1, null = "zero" }'),
        ("year = 2025", "year = 2025"),
    ):
        (kept / "plan.toml").write_text(text.replace(old, new))
        file = load_plan(kept / "plan.toml")
        own = release_identity(file.plan, plan_json(file.plan), firm_policy(file.plan).policy(), file.series)
        found.append([own.charged_as(body) for body in charged])
    assert found == [[False, False], [False, False], [False, False], [True, False]]
