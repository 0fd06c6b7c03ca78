"""What ``recordwise loss`` reads and prints about records, firms and histories, part by part."""

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from recordwise.cli import loss, screen
from recordwise.errors import ParameterError
from recordwise.ledger.entries import PeriodState
from recordwise.plan.publication import Labels
from recordwise.policy import Policy, constant, gaussian_sum
from recordwise.policy.conditions import among
from recordwise.release.page.questions import as_listed

Patch = pytest.MonkeyPatch
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_a_pipe(monkeypatch: Patch) -> None:
    monkeypatch.setattr(screen, "on_terminal", lambda: False)


def said(capsys: Captured) -> str:
    return " ".join(capsys.readouterr().out.split())


def period(name: str, spent: Policy, budget: Policy | None = None, **more: Any) -> PeriodState:
    given: dict[str, Any] = {"charges": 1, "declared": "2026-01-01", "at_start": True}
    return PeriodState(name=name, spent=spent, budget=budget, **(given | more))


EMP = gaussian_sum("emp", sigma=1)


# A record that is looked up.


def test_a_record_is_read_name_by_name() -> None:
    policy = gaussian_sum("emp", sigma=1) + constant(1).where(among("kind", ["a"]))
    assert loss.read_record(policy, ["emp=4", "kind=a=b"]) == {"emp": "4", "kind": "a=b"}
    for words, problem in (
        (["emp"], "'emp' is not of the form name=value"),
        (["emp=4", "kin=a"], "'kin' is not used by this policy"),
        (["emp=4", "kind=a", "emp=4"], "'emp' is given twice"),
        (["emp=4"], "the record lacks kind. Add kind="),
        ([], "the record lacks emp, kind. Add emp="),
    ):
        with pytest.raises(ParameterError, match=problem):
            loss.read_record(policy, words)
    with pytest.raises(ParameterError, match="beyond its public bound"):
        loss.read_record(policy, ["emp=5", "kind=a"], {"emp": Fraction(4)})
    assert loss.read_record(Policy(), []) == {}


def test_a_measure_that_a_condition_compares_is_a_number() -> None:
    policy = gaussian_sum("emp", sigma=1)
    assert loss._amount(policy, "emp", "4", {}) == "4"
    assert loss._number("emp", "4") == 4
    assert isinstance(loss._number("emp", "4"), int)
    assert loss._number("emp", "1/2") == Fraction(1, 2)


def test_a_cell_is_read_in_the_type_of_its_policy() -> None:
    def policy(*values: Any) -> Policy:
        return constant(1).where(among("kind", list(values)))

    assert loss.cell_value(policy("a"), "kind", "") is None
    assert loss.cell_value(policy("a"), "kind", "7") == "7"
    assert loss.cell_value(policy(3), "kind", "7") == 7
    assert loss.cell_value(policy(True), "kind", "true") is True
    assert loss.cell_value(policy(True), "kind", "false") is False
    with pytest.raises(ParameterError, match="must be true or false"):
        loss.cell_value(policy(True), "kind", "yes")
    assert loss.cell_value(constant(1), "kind", "x") == "x"


@pytest.mark.parametrize("text", ["no JSON", "[" * 100_000])
def test_a_file_that_is_no_policy_is_refused_by_its_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ParameterError, match=r"the file a\.json holds no policy"):
        loss.read_policy(path, "tight")


NUMBERS: dict[str, Any] = {
    "record": {"emp": "4", "kind": "a"},
    "loss": 0.5,
    "selection_delta": 0.0,
    "epsilon": 3.25,
    "epsilon_from": "the zCDP loss",
    "delta": 1e-5,
    "pure_epsilon": None,
    "why_not_pure": None,
    "power_of_a_5_percent_test": 0.3,
    "sentence": "What it means.",
}
ODDS = (
    "Whatever was believed about your record before, the publication changes the odds by a factor of at most {} in the geometric "
    "mean, and "
)


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({}, ["loss (zCDP rho) 0.5", "epsilon 3.25 at delta 1e-05, from the zCDP loss"]),
        (
            {"pure_epsilon": 4.5},
            ["loss (zCDP rho) 0.5", "epsilon 3.25 at delta 1e-05, from the zCDP loss", "pure epsilon 4.5 at delta 0"],
        ),
        (
            {"why_not_pure": "a sum is not"},
            [
                "loss (zCDP rho) 0.5",
                "epsilon 3.25 at delta 1e-05, from the zCDP loss",
                "pure epsilon none, so the zCDP loss holds: a sum is not",
            ],
        ),
        (
            {"all_stages": NUMBERS | {"loss": 0.75, "epsilon": 5.0, "sentence": "Of both."}},
            [
                "loss (zCDP rho) 0.5, of the further draws alone",
                "epsilon 3.25 at delta 1e-05, from the zCDP loss",
                "all stages 0.75, epsilon 5 from the zCDP loss",
            ],
        ),
        (
            {"public_sizes": {f"table {at}": f"size {at}" for at in range(4)}},
            [
                "loss (zCDP rho) 0.5",
                "epsilon 3.25 at delta 1e-05, from the zCDP loss",
                *(f"size of its cell size {at} (table {at})" for at in range(4)),
            ],
        ),
        (
            {"public_sizes": {f"table {at}": f"size {at}" for at in range(5)}},
            [
                "loss (zCDP rho) 0.5",
                "epsilon 3.25 at delta 1e-05, from the zCDP loss",
                "its 5 cells never among the smallest (--formula lists them)",
            ],
        ),
        (
            {"public_sizes": {f"table {at}": "below 5 or not listed" if at < 2 else "size" for at in range(6)}},
            [
                "loss (zCDP rho) 0.5",
                "epsilon 3.25 at delta 1e-05, from the zCDP loss",
                "its 6 cells among the smallest, or not listed, 2 times (--formula lists them)",
            ],
        ),
    ],
)
def test_a_loss_is_told_in_words_and_numbers(changed: dict[str, Any], lines: list[str], capsys: Captured) -> None:
    loss.show_loss(NUMBERS | changed)
    text = capsys.readouterr().out
    above, _, below = text.partition("\n\n")
    assert [" ".join(line.split()) for line in below.splitlines()] == lines
    assert above.splitlines()[:2] == ["", "A record with emp = 4, kind = a"]
    meant = "Of both." if "all_stages" in changed else "What it means."
    assert f"Presence can be suspected. {meant}" in " ".join(above.split())


def test_all_sizes_are_listed_with_the_formula(capsys: Captured) -> None:
    sizes = {f"table {at}": f"size {at}" for at in range(5)}
    loss.show_loss(NUMBERS | {"record": {}, "public_sizes": sizes}, formula=True)
    text = said(capsys)
    assert "A record with every record" in text
    assert "size of its cell size 4 (table 4)" in text
    assert "its 5 cells" not in text


def test_names_stand_for_codes_and_codes_of_no_list_are_told(capsys: Captured) -> None:
    listed = pa.table({"state": ["A", "A", "A"], "county": ["A1", "A2", "A3"]})
    labels = {
        "county=A1": "Copper Falls",
        "county=A2": "Birch Creek",
        "county=A3": "Birch Creek",
        "county=B1": "Gone",
    } | {"state=A": "a"}
    described: Any = SimpleNamespace(
        lists=SimpleNamespace(tables=lambda: {"places": listed}), words=Labels(labels=labels)
    )
    for given, code in (("A1", "A1"), ("copper falls", "A1"), ("A2 birch creek", "A2"), (None, None)):
        assert as_listed(described, {"emp": "1", "county": given}) == ({"emp": "1", "county": code}, [])
    for given in ("Copper", "Birch Creek", "Gone", "B1"):
        assert as_listed(described, {"county": given}) == ({"county": given}, ["county"])
    assert as_listed(described, {"state": "a"}) == ({"state": "a"}, ["state"])
    loss.show_loss(NUMBERS | {"record": {"county": "Copper"}, "unlisted": ["county"]})
    assert "county 'Copper' is not among the published codes: this is the loss of a code that is not listed." in said(
        capsys
    )


def test_sentences_say_how_odds_change() -> None:
    """A loss of 1/2 is a factor of e^(1/2) in the mean; without a loss nothing is said of odds."""
    (meaning, odds) = loss.sentences(NUMBERS)
    assert meaning == "Presence can be suspected. What it means."
    assert odds.startswith(ODDS.format("1.65"))
    assert odds.endswith("with probability at most 5%.")
    assert loss.sentences(NUMBERS | {"loss": 0.0}) == [meaning]
    selected = loss.sentences(NUMBERS | {"selection_delta": 0.002})
    assert selected[1] == "With probability at most 0.002 a cell is listed only because of your record."
    assert selected[2].startswith("Unless that happens, whatever was believed")
    assert loss.sentences(NUMBERS | {"told": "Told."})[1] == "Told."
    small = loss.sentences(NUMBERS | {"pure_epsilon": 0.1})
    assert small[-1].endswith("and in no case by more than 1.11.")
    large = loss.sentences(NUMBERS | {"pure_epsilon": 9.0})
    assert large[-1].startswith("In no case does it change them by more than 8,1")
    assert large[-2].endswith("with probability at most 5%.")


def test_levels_are_added_from_the_lists() -> None:
    listed = pa.table({"state": ["A", "A", "B"], "region": ["x", "x", "y"], "county": [1, 2, 3]})
    found = loss.with_levels({"county": ["2", "3", "", "9"], "emp": ["1"] * 4}, [listed])
    assert found["state"] == ["A", "B", "", "\0"]
    assert found["region"] == ["x", "y", "", "\0"]
    assert loss.with_levels({"county": ["2"], "state": ["own"]}, [listed])["state"] == ["own"]
    assert loss.with_levels({"emp": ["1"]}, [listed]) == {"emp": ["1"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("emp\n", "has no establishment"),
        ("emp,emp\n1,2\n", "a name twice"),
        ("emp,kind\n1\n", "a row that does not fit"),
        ("kind\na\n", "lacks the column emp"),
        ("", "cannot be|can be read"),
        ("emp\n1\n2\n3\n", "more than 2 establishments"),
        ("emp\n1\n-9\n", "beyond its public bound"),
    ],
)
def test_a_firm_that_cannot_be_read_is_refused(text: str, words: str, tmp_path: Path, monkeypatch: Patch) -> None:
    path = tmp_path / "firm.csv"
    path.write_text(text)
    monkeypatch.setattr(loss, "MOST_UNITS", 2)
    with pytest.raises(ParameterError, match=words):
        loss.read_units(path, gaussian_sum("emp", sigma=1), (), (), {"emp": Fraction(8)})


def test_a_firm_is_read_with_the_columns_that_matter(tmp_path: Path, monkeypatch: Patch) -> None:
    path = tmp_path / "firm.csv"
    path.write_text("\ufeffemp,cell,note\n1,a,x\n2.5,,y\n", encoding="utf-8")
    monkeypatch.setattr(loss, "MOST_UNITS", 2)
    policy = gaussian_sum("emp", sigma=1)
    assert loss.read_units(path, policy, ("cell",)) == {"emp": [1.0, 2.5], "cell": ["a", None]}
    assert loss.read_units(path, policy, ()) == {"emp": [1.0, 2.5]}
    assert loss.read_units(path, constant(1), ()) == {"": ["", ""]}


def test_single_losses_of_a_firm_are_joined() -> None:
    """T-GROUP: losses of 1/2 and 2 are together those of a root of 2 + 1 squares, (sqrt(1/2) + sqrt(2))^2."""
    found = loss.firm_loss_report(EMP, None, {"emp": [1.0, 2.0]}, 1e-6)
    assert found["loss"] == pytest.approx((0.5**0.5 + 2**0.5) ** 2)
    assert (found["establishments"], found["known"], found["selection_delta"]) == (2, "from single losses", 0.0)
    assert (found["delta"], found["pure_epsilon"], found["epsilon_from"]) == (1e-6, None, "the zCDP loss")
    assert "your firm" in found["sentence"]
    same = loss.firm_loss_report(constant(1), None, {"": ["", "", ""]}, 1e-6)
    assert (same["establishments"], same["loss"]) == (3, pytest.approx(9.0))


@pytest.mark.parametrize("stages", [False, True])
@pytest.mark.parametrize("pure", [None, 4.5])
def test_a_firm_is_told_in_words_and_numbers(stages: bool, pure: float | None, capsys: Captured) -> None:
    found = NUMBERS | {"establishments": 1234, "known": "by cell", "pure_epsilon": pure}
    found |= {"all_stages": found | {"loss": 0.75, "epsilon": 5.0, "sentence": "Of both."}} if stages else {}
    loss.show_firm(found)
    meant = "Of both." if stages else "What it means."
    assert said(capsys) == (
        f"A firm with 1,234 establishments Presence can be suspected. {meant} loss (zCDP rho) 0.5, by cell "
        "epsilon 3.25 at delta 1e-05, from the zCDP loss"
        + (" pure epsilon 4.5 at delta 0, the sum over establishments" if pure else "")
        + (" all stages 0.75, epsilon 5" if stages else "")
    )


# A history.


PERIODS = (period("2025", EMP, constant(9)), period("2026", EMP + gaussian_sum("pay", sigma=1)))


def test_a_history_is_read_by_period() -> None:
    def read(*words: str) -> Any:
        return loss.read_history(PERIODS, list(words))

    assert read("emp@2025=4") == {"2025": {"emp": "4"}}
    assert read("emp=4", "pay=7") == {"2025": {"emp": "4"}, "2026": {"emp": "4", "pay": "7"}}
    assert read("emp=4", "emp@2026=5", "pay@2026=7") == {"2025": {"emp": "4"}, "2026": {"emp": "5", "pay": "7"}}
    for words, problem in (
        (["emp@2027=4"], "'emp@2027' names no period of the ledger"),
        (["cows=4"], "'cows' is not used in any period"),
        (["emp@2026=4"], "lacks pay"),
        (["emp"], "is not of the form"),
    ):
        with pytest.raises(ParameterError, match=problem):
            read(*words)
    assert loss.read_history((period("d", constant(1)),), []) == {"d": {}}


def test_the_losses_of_a_history_add_up() -> None:
    found = loss.history_loss_report("s", PERIODS, ["emp@2025=4", "emp@2026=2", "pay@2026=2"], 1e-6)
    assert [(each["period"], each["loss"], each["left"]) for each in found["periods"]] == [
        ("2025", 8.0, 1.0),
        ("2026", 4.0, None),
    ]
    assert (found["series"], found["loss"], found["selection_delta"], found["delta"]) == ("s", 12.0, 0.0, 1e-6)
    assert [each["budget"] for each in found["periods"]] == [PERIODS[0].declared_text(), "no budget"]
    assert "charged" not in found["periods"][0]
    gone = loss.history_loss_report("s", PERIODS, ["emp@2025=4"], 1e-6)
    assert (gone["loss"], gone["periods"][1]["record"], gone["periods"][1]["loss"]) == (8.0, None, 0.0)
    followed = loss.history_loss_report("s", PERIODS, ["emp@2025=4"], 1e-6, {"2025": 3.0})
    assert (followed["loss"], followed["periods"][0]["loss"], followed["periods"][0]["charged"]) == (3.0, 3.0, 8.0)
    assert followed["periods"][1]["charged"] == 0.0


def test_what_is_left_is_known_where_the_budget_is() -> None:
    own = period("d", EMP, constant(20), reserved=EMP)
    assert loss.remaining_loss(own, {"emp": 4}) == 4.0
    assert loss.remaining_loss(own, {"emp": 9}) == 0.0
    assert loss.remaining_loss(own, None) is None
    assert loss.remaining_loss(period("d", EMP), {"emp": 4}) is None
    assert loss.remaining_loss(period("d", EMP, gaussian_sum("pay", sigma=1)), {"emp": 4}) is None


def test_a_total_holds_for_ever_or_as_of_today() -> None:
    start, later = period("a", EMP, EMP), period("b", EMP, EMP, at_start=False)
    for_ever = "within budgets that were declared at the start of the series"
    today = "as of today: a period without a budget, or one declared later, can add to it"
    assert loss.total_text((start, start)) == for_ever
    assert loss.total_text((start, later)) == loss.total_text(()) == today
    amended: Any = SimpleNamespace(at_start=False, amendments=("x",))
    assert loss.total_text((start, amended)) == "as of today: a budget was amended, so no total was fixed in advance"


def test_a_history_is_printed_with_its_total(capsys: Captured) -> None:
    rows: list[dict[str, Any]] = [
        {
            "period": "2025",
            "record": {"emp": "4"},
            "loss": 8.0,
            "left": 1.5,
            "left_in": "rho",
            "budget": "at the start",
        },
        {"period": "2026", "record": None, "loss": 0.0, "left": None, "left_in": None, "budget": "no budget"},
        {"period": "2027", "record": {}, "loss": 1.0, "left": 2.0, "left_in": "epsilon", "budget": "later"},
    ]
    found = {"series": "s", "periods": rows, "loss": 9.0, "epsilon": 12.5, "delta": 1e-5, "pure_epsilon": None}
    found |= {"sentence": "What it means.", "total": "as of today"}
    loss.show_history(found)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "Losses over the periods of 's'",
        "What it means.",
        "",
        "period  record        loss  left               budget",
        "  2025  emp = 4          8  1.5                at the start",
        "  2026  no record        0                     no budget",
        "  2027  every record     1  2 of pure epsilon  later",
        "",
        "  loss over all published periods (zCDP rho)   9, as of today",
        "  epsilon 12.5 at delta 1e-05",
    ]
    carried = [rows[0] | {"charged": 9.0}, rows[1] | {"charged": 0.5}]
    loss.show_history(found | {"series": None, "periods": carried, "pure_epsilon": 3.0})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Losses over the periods of '2025'"
    assert lines[4:6] == [
        "period  record     loss  charged at most  left  budget",
        "  2025  emp = 4       8                9   1.5  at the start",
    ]
    assert lines[-1] == "  pure epsilon 3 at delta 0"
    loss.show_history(found | {"periods": []})
    assert capsys.readouterr().out.splitlines()[1] == "No charge"


def test_a_ledger_is_told_from_a_policy_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content, wanted in (
        (b"SQLite format 3\x00 and more", True),
        (b"SQLite format 3", False),
        (b"{}", False),
        (b"", False),
    ):
        path.write_bytes(content)
        assert loss.is_ledger(path) is wanted


def test_a_file_of_a_firm_excludes_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"needs policy\.json of a release"):
        loss._history(tmp_path / "l", [], 1e-5, tmp_path / "f", as_json=False)
