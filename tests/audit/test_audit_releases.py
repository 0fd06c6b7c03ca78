"""Our own releases under the audit: no bound above a policy, whatever the mechanism, the keys, the record or the engine."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise import mechanisms
from recordwise.audit import Finding, Runs, audit, sum_subject
from recordwise.audit.audit import FALSE_ALARM, LOG_ALARMS, MOST_CHECKS, Layout
from recordwise.audit.checks import audit_refusals
from recordwise.audit.subjects import STRONGEST, every_subject
from recordwise.mechanisms.base import Mechanism

sys.path.insert(0, str(Path(__file__).parents[1] / "mechanisms"))
from mechanisms.mechanism_catalogue import ONE_SIDED, Entry

SUBJECTS = every_subject()
QUICK = ("gaussian on few steps", "logarithm", "count and two sums", "median", "two levels", "keys of a domain")


def told(found: list[Finding]) -> str:
    return "; ".join(f"{each.record} {each.policy:.4g} {each.bound:.4g} {each.problems}" for each in found)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.costly
@pytest.mark.sampled
def test_a_release_loses_no_more_than_its_policy(name: str) -> None:
    found = audit(SUBJECTS[name](), Runs(cells=10_000, runs=2))
    assert not any(each.broken for each in found), told(found)


@pytest.mark.slow
@pytest.mark.usefixtures("spark_as_installed")
def test_a_release_from_spark_loses_no_more_than_its_policy(spark_session: Any) -> None:
    found = audit(SUBJECTS["gaussian"](), Runs(engine="spark", spark=spark_session, cells=5_000))
    assert not any(each.broken for each in found), told(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.usefixtures("spark_as_installed")
def test_every_release_from_spark_loses_no_more_than_its_policy(name: str, spark_session: Any) -> None:
    found = audit(SUBJECTS[name](), Runs(engine="spark", spark=spark_session, cells=20_000, runs=2))
    assert not any(each.broken for each in found), told(found)


@pytest.mark.slow
@pytest.mark.usefixtures("spark_as_installed")
def test_what_must_be_refused_is_refused_by_spark(spark_session: Any, tmp_path: Path) -> None:
    found = audit_refusals(tmp_path, Runs(engine="spark", spark=spark_session))
    assert not [each.subject for each in found if each.broken]


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_ten_whole_releases_lose_no_more_than_their_policy_and_most_of_it(name: str) -> None:
    """A million samples a record, read back from Parquet and CSV by turns."""
    found = audit(SUBJECTS[name](), Runs(runs=10))
    assert not any(each.broken for each in found), told(found)
    near = [each for each in found if 0.5 <= each.policy <= 2 and each.record != "small" and each.delta < 0.01]
    loose = {"median", "count, sum, average and median", "keys of a domain"}
    assert all(each.bound > 0.9 * each.policy for each in near if each.subject not in loose), told(found)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [e for e in ONE_SIDED if "by-group" not in str(e)], ids=str)
def test_every_mechanism_of_the_contract_suite_passes_the_audit(entry: Entry) -> None:
    found = audit(sum_subject(entry.name, entry.mechanism, step=entry.step), Runs(runs=2))
    assert not any(each.broken for each in found), told(found)


@pytest.mark.costly
def test_the_catalogue_asks_every_mechanism_there_is() -> None:
    exported = {getattr(mechanisms, name) for name in mechanisms.__all__}
    drawn = {
        each for each in exported if isinstance(each, type) and issubclass(each, Mechanism) and each is not Mechanism
    }
    queries = [subject.ask(subject.keys_of(["a"])) for subject in (make() for make in SUBJECTS.values())]
    asked = {
        type(statistic.mechanism)
        for each in queries
        for statistic in each.statistics
        if hasattr(statistic, "mechanism")
    }
    assert drawn - asked == set()
    assert len(drawn) >= 9


@pytest.mark.parametrize("name", ["gaussian", "unit split", "square root", "logarithm"])
def test_a_record_of_the_audit_loses_about_what_the_bound_is_strongest_at(name: str) -> None:
    subject = SUBJECTS[name]()
    asked = subject.ask(subject.keys_of(["0000000A"]))
    schema = rw.plan.Schema.of(unit="id", measures={"value": 1, "second": 1}, columns={"cell": "text", "kind": "text"})
    policy = rw.plan.cost.plan_policy(rw.plan.Plan(schema=schema, queries=(asked,)))
    losses = {size: policy.loss({**each, "cell": "0000000A"}) for size, each in subject.records.items()}
    assert 0.9 * STRONGEST <= losses["large"] <= STRONGEST
    assert losses["small"] < 0.05 < 100 < losses["giant"]


def test_half_of_the_cells_of_a_comparison_hold_the_record_and_strangers_stand_outside() -> None:
    layout = Layout(subject=SUBJECTS["gaussian"](), cells=100)
    table = layout.table()
    codes = layout.codes()
    outside = [cell for cell in table["cell"].to_pylist() if cell not in set(codes)]
    assert (len(codes), table.num_rows, len(outside)) == (400, 305, 5)
    groups = np.array([int(cell[:7]) % 4 for cell in table["cell"].to_pylist()[:300]])
    assert np.bincount(groups, minlength=4).tolist() == [0, 100, 100, 100]
    assert codes == sorted(codes)


def test_the_false_alarms_of_all_checks_together_stay_below_one_in_a_billion() -> None:
    checks = sum(3 + 2 * 10 * 4 for _ in SUBJECTS) + 1
    assert checks <= MOST_CHECKS
    assert MOST_CHECKS * np.exp(-LOG_ALARMS) == pytest.approx(FALSE_ALARM)
