"""``recordwise loss``: an establishment looks itself up."""

import json
import math
from statistics import NormalDist

import pytest

import recordwise as rw
from recordwise.policy import Measure, constant, selection
from recordwise.policy.meaning import power_beside_delta
from recordwise.release.tables import NOT_PRIVATE, PRIVATE


@pytest.fixture
def saved(tmp_path):
    def written(policy, name="policy.json"):
        form = policy.to_json() if isinstance(policy, rw.Policy) else policy
        (tmp_path / name).write_text(json.dumps(form))
        return tmp_path / name

    return written


def test_a_release_can_be_looked_up(released, run_json):
    policies = json.loads((released / "out" / "policy.json").read_text())
    for words, which in (((), "tight"), (("--paper",), "paper")):
        found = run_json("loss", released / "out" / "policy.json", "emp=1000", "payann=52000", *words)
        policy = rw.Policy.from_json(policies[which])
        assert found["loss"] == policy.loss({"emp": 1000, "payann": 52_000})
        assert found["epsilon"] == rw.policy.epsilon(found["loss"], 1e-5)


def test_the_answer_is_told_in_sentences(released, run):
    result = run("loss", released / "out" / "policy.json", "emp=4", "payann=140")
    assert result.exit_code == 0
    plain = " ".join(result.stdout.split())
    assert "A membership test with a 5% false-positive rate detects your record" in plain
    assert "changes the odds by a factor of" in plain
    assert "with probability at most 5%" in plain


def test_a_policy_alone_is_read_too(saved, run_json):
    found = run_json("loss", saved(constant("0.1")), "--delta", "1e-6")
    assert found["loss"] == 0.1
    assert found["delta"] == 1e-6
    assert found["epsilon"] == rw.policy.epsilon(0.1, 1e-6)


def test_the_gaussian_epsilon_is_told_only_where_it_holds(saved, run_json):
    fine, coarse = rw.Gaussian(sigma=5000).policy("emp"), rw.Gaussian(sigma=5).policy("emp")
    assert run_json("loss", saved(fine), "emp=5000")["gaussian_epsilon"] == rw.policy.gdp_epsilon_of(0.5, 1e-5)
    assert "gaussian_epsilon" not in run_json("loss", saved(coarse), "emp=5")


def test_the_delta_of_private_keys_is_added(saved, run_json):
    policy = selection(10, {Measure("emp"): 50}, ((1, rw.policy.Measure("x").step / 1000),))
    found = run_json("loss", saved(policy), "emp=5")
    assert found["selection_delta"] == pytest.approx(0.001, rel=1e-9)
    assert found["delta"] == pytest.approx(0.00101, rel=1e-9)


def test_a_chance_of_no_promise_raises_the_power_of_a_test():
    """Against the worst case itself: with chance own the output tells everything, else Gaussian noise of loss rho is seen."""
    normal = NormalDist()
    for rho, own, level in ((0.1, 0.01, 0.05), (1.0, 0.3, 0.05), (0.01, 0.9, 0.05)):
        inside = level / (1 - own)
        best = own + (1 - own) * normal.cdf(normal.inv_cdf(inside) + math.sqrt(2 * rho))
        assert best < power_beside_delta(rho, own, false_alarm=level) <= 1
        assert power_beside_delta(rho, own, false_alarm=level) > power_beside_delta(rho, 0.0, false_alarm=level)
    assert power_beside_delta(0.1, 0.96, false_alarm=0.05) == power_beside_delta(0.1, 1.0, false_alarm=0.05) == 1


def test_columns_are_read_in_the_type_the_policy_compares_them_with(saved, run_json):
    text = rw.UnitSplit(at=rw.by("naics", {"44": 10}, default=50), rho=1).policy("emp")
    number = rw.UnitSplit(at=rw.by("size", {44: 10}, default=50), rho=1).policy("emp")
    truth = rw.UnitSplit(at=rw.by("open", {True: 10}, default=50), rho=1).policy("emp")
    for policy, word in ((text, "naics=44"), (number, "size=44"), (truth, "open=true")):
        assert run_json("loss", saved(policy), "emp=10", word)["loss"] == 1
    for policy, word in ((text, "naics=4"), (number, "size=4"), (truth, "open=false"), (text, "naics=")):
        assert run_json("loss", saved(policy), "emp=50", word)["loss"] == 1


def test_a_truth_value_must_be_one(saved, run):
    policy = rw.UnitSplit(at=rw.by("open", {True: 10}, default=50), rho=1).policy("emp")
    result = run("loss", saved(policy), "emp=10", "open=maybe")
    assert result.exit_code == 2
    assert "must be true or false" in result.stderr


BAD = {
    "lacks emp": [],
    "did you mean 'emp'?": ["emd=3"],
    "name=value": ["emp"],
    "is negative": ["emp=-3"],
    "must be a finite number": ["emp=many"],
    "must be a finite number ": ["emp=nan"],
    "must lie between 0 and 1": ["emp=3", "--delta", "2"],
    "must be a plain number": ["emp=1.000,50"],
    "must be a plain number ": ["emp=52,000"],
    "must be a plain number  ": ["emp=1,5"],
    "must be a plain number   ": ["emp=1'000"],
    "must be a plain number    ": ["emp=1 000"],
    "is ambiguous: 1.000": ["emp=1.000"],
    "Write 1250 or 1.2500.": ["emp=1.250"],
    "must be a finite number  ": ["emp=1_000"],
    "must be a finite number   ": ["emp=1.000.000"],
    "must be a finite number    ": ["emp=\u0663"],
    "'emp' is given twice": ["emp=1", "emp=1000"],
    "Invalid value for '--delta'": ["emp=3", "--delta", "1_0e-6"],
}


@pytest.mark.parametrize("words", BAD)
def test_a_record_that_does_not_fit_is_refused(saved, run, words):
    result = run("loss", saved(rw.Gaussian(sigma=5).policy("emp")), *BAD[words])
    assert result.exit_code == 2
    assert words.strip() in result.stderr


def test_numbers_of_columns_are_read_as_strictly_and_texts_as_they_are(saved, run, run_json):
    number = rw.UnitSplit(at=rw.by("size", {44: 10}, default=50), rho=1).policy("emp")
    text = rw.UnitSplit(at=rw.by("naics", {"1.000": 10}, default=50), rho=1).policy("emp")
    for bad in ("44,0", "4_4", "44.000"):
        assert run("loss", saved(number), "emp=10", f"size={bad}").exit_code == 2
    assert run_json("loss", saved(number), "emp=10.0", "size=44.0")["loss"] == 1
    assert run_json("loss", saved(text), "emp=10", "naics=1.000")["loss"] == 1


def test_three_decimals_below_one_and_four_above_are_no_thousands(saved, run_json):
    policy = saved(rw.Gaussian(sigma=1).policy("emp"))
    assert run_json("loss", policy, "emp=0.125")["loss"] == 0.125**2 / 2
    assert run_json("loss", policy, "emp=1.1250")["loss"] == 1.125**2 / 2
    assert run_json("loss", policy, "emp=1200.125")["loss"] == 1200.125**2 / 2


def test_the_loss_of_a_release_that_is_not_private_is_told_as_such(saved, run, run_json):
    policy = rw.Gaussian(sigma=5).policy("emp").to_json()
    for mark, loud in ((NOT_PRIVATE, True), (PRIVATE, False)):
        path = saved({"mark": mark, "tight": policy, "paper": policy})
        assert run_json("loss", path, "emp=5")["privacy_label"] == mark
        assert ("these tables carry no guarantee" in " ".join(run("loss", path, "emp=5").stdout.split())) == loud


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"recordwise_policy": 99}', '{"tight": {}}', "[" * 100_000])
def test_a_file_that_is_no_policy_is_refused(tmp_path, run, text):
    (tmp_path / "policy.json").write_text(text)
    result = run("loss", tmp_path / "policy.json", "emp=3")
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


def test_no_loss_is_told_as_none(saved, run):
    result = run("loss", saved(rw.Policy()))
    assert result.exit_code == 0
    assert "epsilon           0 at" in result.stdout


def test_a_huge_loss_is_still_told(saved, run):
    result = run("loss", saved(rw.Gaussian(sigma=1).policy("emp")), "emp=1000000")
    assert result.exit_code == 0
    assert f"10^{5e11 / math.log(10):.0f}" in result.stdout
