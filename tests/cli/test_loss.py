"""``recordwise loss``: an establishment looks itself up."""

import json
import math
from statistics import NormalDist

import pytest

import recordwise as rw
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.policy import Measure, constant, selection, split
from recordwise.policy.loss_law import LatticePolicy
from recordwise.policy.meaning import power_beside_delta
from recordwise.release.tables import NOT_PRIVATE, PRIVATE
from report_releases import by_sizes


@pytest.fixture
def saved(tmp_path):
    def written(policy, name="policy.json"):
        form = policy.to_json() if isinstance(policy, rw.Policy) else policy
        (tmp_path / name).write_text(json.dumps(form))
        return tmp_path / name

    return written


@pytest.mark.costly
def test_a_release_can_be_looked_up(released, run_json):
    policies = json.loads((released / "out" / "policy.json").read_text())
    for words, which in (((), "tight"), (("--paper",), "paper")):
        found = run_json("loss", released / "out" / "policy.json", "emp=1000", "payann=52000", *words)
        policy = rw.Policy.from_json(policies[which])
        assert found["loss"] == policy.loss({"emp": 1000, "payann": 52_000})
        assert found["epsilon"] <= rw.policy.epsilon(found["loss"], 1e-5)


def test_a_value_between_two_steps_is_refused(released, run):
    result = run("loss", released / "out" / "policy.json", "emp=4.5", "payann=140")
    assert result.exit_code == 2
    assert "emp must be a whole number. No record of the release has another value." in " ".join(result.stderr.split())


def test_the_answer_is_told_in_sentences(released, run):
    result = run("loss", released / "out" / "policy.json", "emp=4", "payann=140")
    assert result.exit_code == 0
    plain = " ".join(result.stdout.split())
    assert "A membership test with a 5% false-positive rate detects your record" in plain
    assert "changes the odds by a factor of" in plain
    assert "with probability at most 5%" in plain


@pytest.mark.costly
def test_the_public_size_of_a_cell_is_looked_up_from_its_columns(tmp_path, run, run_json):
    path = by_sizes().save(tmp_path / "out") / "policy.json"
    cell = ("county=01", "industry=Retail")
    found = run_json("loss", path, "emp=50", "pay=0", *cell)
    assert found["loss"] == pytest.approx(50**2 / (2 * 40**2))
    assert found["public_sizes"] == {
        "emp by county and industry": "from 400 to below 800",
        "pay by county and industry": "below 20,000 or not listed",
    }
    assert (
        "size of its cell  from 400 to below 800 (emp by county and industry)"
        in run("loss", path, "emp=50", "pay=0", *cell).stdout
    )
    other = run_json("loss", path, "emp=50", "pay=0", "county=99", "industry=Retail")
    assert other["loss"] == pytest.approx(50**2 / (2 * 10**2))
    assert other["public_sizes"]["emp by county and industry"] == "below 200 or not listed"
    refused = run("loss", path, "emp=50", "pay=0", "county=01")
    assert refused.exit_code == 2
    assert "lacks industry" in refused.output


def test_a_policy_alone_is_read_too(saved, run_json):
    found = run_json("loss", saved(constant("0.1")), "--delta", "1e-6")
    assert found["loss"] == 0.1
    assert found["delta"] == 1e-6
    assert found["epsilon"] == rw.policy.epsilon(0.1, 1e-6)


def test_it_says_how_closely_someone_who_knows_everything_else_can_tell_a_value(released, run, run_json):
    path = released / "out" / "policy.json"
    record, values = {"emp": 4000, "payann": 120_000}, rw.read(path.parent).values
    found = run_json("loss", path, "emp=4000", "payann=120000")
    window = values.window(record, "emp")
    assert found["told_values"]["emp"]["within"] == str(window.reach)
    assert f"within ± {int(window.reach):,}" in found["told"]
    assert "right 95% of the time" in " ".join(run("loss", path, "emp=4000", "payann=120000").stdout.split())
    assert "told" not in run_json("loss", path, "emp=4000", "payann=120000", "--paper")


def test_epsilon_is_from_the_law_of_the_noise_where_all_of_it_is_gaussian(released, run_json):
    path = released / "out" / "policy.json"
    policies = json.loads(path.read_text())
    lattice = LatticePolicy.from_json(policies["lattice"])
    record = {"emp": 40, "payann": 1200}
    found, told = run_json("loss", path, "emp=40", "payann=1200"), lattice.meaning(record)
    assert (found["epsilon"], found["power_of_a_5_percent_test"]) == (told.epsilon, told.power)
    assert found["epsilon"] < rw.policy.epsilon(found["loss"], 1e-5)
    assert found["epsilon_from"] == "the exact law of the noise"
    assert run_json("loss", path, "emp=40", "payann=1200", "--paper")["epsilon_from"] == "the zCDP loss"


@pytest.mark.parametrize("value", ["1e17", "4e18", "-4e18"])
def test_a_value_within_the_largest_bound_has_a_loss_that_is_a_number(saved, run_json, value):
    path = saved(split("0.1", {Measure("profit", signed=True): 50}))
    assert run_json("loss", path, f"profit={value}")["loss"] == pytest.approx(0.1 * (float(value) / 50) ** 2)


@pytest.mark.parametrize("value", ["5e18", "1e160", "1e400"])
def test_a_value_that_no_record_can_have_is_refused(saved, run, firm, value):
    path = saved(split("0.1", {"emp": 50}))
    for words in ([f"emp={value}"], ["--firm", firm(f"emp\n4\n{value}\n")]):
        result = run("loss", path, *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "emp is beyond 2^62 steps, which no measure may have" in result.stderr


@pytest.mark.parametrize("words", [(), ("--paper",), ("--firm",)])
def test_a_value_beyond_the_bound_of_a_release_is_refused_with_the_bound(released, run, firm, words):
    record = ("emp=9007199254740993", "payann=1")
    given = (*words, firm("emp,payann\n9007199254740993,1\n")) if "--firm" in words else (*record, *words)
    result = run("loss", released / "out" / "policy.json", *given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "emp is beyond its public bound, 9,007,199,254,740,992" in result.stderr


@pytest.fixture
def firm(tmp_path):
    def written(text):
        (tmp_path / "firm.csv").write_text(text)
        return tmp_path / "firm.csv"

    return written


UNITS = "emp,payann,county,naics\n40,1200,06037,441110\n8,300,06037,441120\n5,100,17031,722511\n"


def test_a_firm_is_looked_up_by_cell(released, run, run_json, firm):
    path = released / "out" / "policy.json"
    joint = rw.policy.FirmPolicy.from_json(json.loads(path.read_text())["firms"])
    units = {"emp": [40, 8, 5], "payann": [1200, 300, 100]}
    places = {"county": ["06037", "06037", "17031"], "naics": ["441110", "441120", "722511"]}
    found = run_json("loss", path, "--firm", firm(UNITS))
    assert found["loss"] == joint.loss(units | places).rho
    assert (found["establishments"], found["known"]) == (3, "by cell")
    assert found["epsilon"] == rw.policy.epsilon(found["loss"], 1e-5)
    anywhere = run_json("loss", path, "--firm", firm("emp,payann\n40,1200\n8,300\n5,100\n"))
    assert anywhere["loss"] == joint.loss(units).rho > found["loss"]
    shown = run("loss", path, "--firm", firm(UNITS)).stdout
    assert "A firm with 3 establishments" in shown
    assert "detects your firm" in " ".join(shown.split())


def test_a_policy_alone_joins_single_losses_or_pairs(saved, run, run_json, firm):
    policy = rw.Gaussian(sigma=10).policy("emp")
    found = run_json("loss", saved(policy), "--firm", firm("emp\n3\n4\n"))
    assert found["loss"] == pytest.approx(49 / 200)
    assert found["known"] == "from single losses"
    chosen = selection(1, {}, SelectionLaw(sigma=1, threshold=5).deltas())
    pair = rw.policy.group_pair([(0.5, chosen.delta({}))] * 2)
    found = run_json("loss", saved(chosen), "--firm", firm("id\n1\n2\n"))
    assert (found["loss"], found["selection_delta"]) == pytest.approx((pair.rho, pair.delta), rel=1e-12)
    assert found["selection_delta"] == pytest.approx(0.0057, abs=1e-4)
    assert found["power_of_a_5_percent_test"] == pytest.approx(pair.power(0.05), rel=1e-12)
    assert "share a cell" in " ".join(run("loss", saved(chosen), "--firm", firm("id\n1\n2\n")).stdout.split())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("emp\n4\n", "lacks the column payann"),
        ("emp,payann\n", "no establishment"),
        ("emp,emp\n1,2\n", "a name twice"),
        ("emp,payann\n1\n", "does not fit"),
        ("emp,payann\n1.000,5\n", "ambiguous"),
        ("", "CSV"),
    ],
)
def test_a_file_of_establishments_that_cannot_be_used_is_refused(released, run, firm, text, problem):
    result = run("loss", released / "out" / "policy.json", "--firm", firm(text))
    assert result.exit_code != 0
    assert problem in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_a_firm_excludes_a_record_on_the_same_line(released, run, firm):
    result = run("loss", released / "out" / "policy.json", "emp=4", "payann=5", "--firm", firm(UNITS))
    assert "excludes a record" in " ".join(result.output.split())


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


def test_the_folder_of_a_release_is_as_good_as_its_policy(released, run_json):
    by_file, by_folder = (
        run_json("loss", released / "out" / name, "emp=4", "payann=140") for name in ("policy.json", "")
    )
    assert by_file == by_folder


@pytest.mark.parametrize("name", ["release.json", "report.html", "datapackage.json"])
def test_another_file_of_a_release_is_said_to_hold_no_policy(released, run, name):
    result = run("loss", released / "out" / name, "emp=4")
    assert result.exit_code == 2
    assert f"the file {name} holds no policy" in " ".join(result.stderr.split())
    assert "policy.json" in result.stderr
