"""What is handed over: a plan that check reads, the same in Python, and no release."""

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from recordwise.errors import ParameterError, PlanFileError
from recordwise.ledger.ledger import Ledger
from recordwise.plan.cost import plan_policy
from recordwise.plan.file.read import PlanFile
from recordwise.planning import Rounding
from recordwise.policy import constant
from recordwise.studio import make
from recordwise.studio.form import plan_digest
from recordwise.studio.handover import (
    Exact,
    checked,
    commands,
    mechanisms,
    plan_of,
    python_of,
    report,
    save_plan,
    with_mechanisms,
)
from recordwise.studio.make import ladder, make_trade
from recordwise.studio.state import Event, StudioState, step
from recordwise.studio.texts import points, total_losses, view
from recordwise.studio.trade import Trade
from recordwise.studio.words import Vocabulary, read_goal
from studio.small_plan import write_plan

ROWS = 600


def few_positions(path: Path, **given: Any) -> Trade:
    """A trade file with three positions on each side, which takes a third of the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(make, "STEPS", 3)
        return make_trade(path, **given)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("handover")
    write_plan(found, short=True)
    return found


@pytest.fixture(scope="module")
def heard() -> list[tuple[str, float]]:
    return []


@pytest.fixture(scope="module")
def trade(folder: Path, heard: list[tuple[str, float]]) -> Trade:
    return few_positions(
        folder / "plan.toml",
        rows=ROWS,
        baselines={"rounding": Rounding(base=5), "p% rule": rw.planning.PercentRule(10)},
        progress=lambda doing, share: heard.append((doing, share)),
    )


@pytest.fixture(scope="module")
def file(folder: Path) -> PlanFile:
    return rw.load_plan(folder / "plan.toml")


@pytest.fixture(scope="module")
def chosen(trade: Trade) -> StudioState:
    """A state away from the plan, with reasons."""
    state = StudioState.first(trade)
    last = trade.statistics[-1]
    for event in (
        Event(kind="move", number=trade.today + 1),
        Event(kind="choose", key=last.key, text=last.candidates[1].name),
        Event(kind="reason", key=last.key, text='smaller for\nlarge "firms"\x7f'),
        Event(kind="reason", key="position", text="as last year"),
    ):
        state = step(state, event)
    return state


@pytest.mark.costly
def test_progress_is_told_from_beginning_to_end(trade: Trade, heard: list[tuple[str, float]]) -> None:
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert any("mechanisms" in doing for doing, _ in heard)


def test_a_trade_file_is_whole_and_small(trade: Trade) -> None:
    assert Trade.from_json(json.loads(trade.text())) == trade
    assert len(trade.text()) < 3_000_000
    assert trade.statistics[0].states[0].name == "Alabama"
    assert [len(each.candidates) > 2 for each in trade.statistics] == [True] * len(trade.statistics)


def test_the_position_of_today_is_the_plan_itself(file: PlanFile, trade: Trade) -> None:
    state = StudioState.first(trade)
    assert with_mechanisms(file, mechanisms(trade, state)) == file.plan.queries
    policy = plan_policy(file.plan)
    losses = total_losses(trade, points(trade, state.now.position, state.now.mechanisms)).examples
    assert losses == pytest.approx([float(policy.loss(each)) for each in file.examples.values()], rel=1e-4)


def test_losses_at_other_positions_are_those_of_the_policy(file: PlanFile, trade: Trade, chosen: StudioState) -> None:
    policy = plan_policy(replace(file.plan, queries=with_mechanisms(file, mechanisms(trade, chosen))))
    losses = total_losses(trade, points(trade, chosen.now.position, chosen.now.mechanisms)).examples
    assert losses == pytest.approx([float(policy.loss(each)) for each in file.examples.values()], rel=1e-3)


def test_every_candidate_meets_its_goal_at_every_position(file: PlanFile, trade: Trade) -> None:
    words = Vocabulary.of(file)
    for statistic in trade.statistics:
        for goal_text, number in ((text, at) for at, text in enumerate(statistic.goals)):
            goal = read_goal(goal_text, words)
            level = goal.query.tables()[goal.levels[0]]
            for candidate in statistic.candidates:
                made = rw_mechanism(candidate.points[number].entry).at_share(level.share)
                size = float(goal.at_least)
                reach = float(goal.within) * size
                assert made.meets(array(size), array(reach * 1.002), confidence=goal.confidence, step=1).all()


def test_baselines_stand_next_to_noise_by_size_of_cell(trade: Trade) -> None:
    rounding, rule = trade.baselines
    assert rounding.withheld_of_all == 0
    assert all(each is not None for each in rounding.errors)
    assert list(rounding.errors) == sorted(rounding.errors, key=lambda each: -(each or 0))
    assert 0 < rule.withheld_of_all < 1
    assert len(rule.withheld) == len(trade.statistics[trade.main].sizes)


def test_an_error_without_a_variance_can_be_written() -> None:
    assert [make.margin(array(each)) for each in (0.5, float("inf"))] == pytest.approx([0.98, 1e6], rel=1e-3)


def test_positions_are_round_and_today_is_among_them(trade: Trade) -> None:
    withins = [each.within for each in trade.positions]
    assert withins == sorted(withins, reverse=True)
    assert len(withins) == 7
    assert len(ladder(read_percent("8.37"))) == 21
    assert ladder(read_percent("8.37"))[10] == read_percent("8.37")


def test_the_plan_that_is_handed_over_is_what_the_page_says(
    file: PlanFile, trade: Trade, chosen: StudioState, folder: Path
) -> None:
    path = save_plan(file, trade, chosen, folder / "chosen.toml")
    again = rw.load_plan(path)
    assert again.plan.queries == with_mechanisms(file, mechanisms(trade, chosen))
    assert checked(path).policy == plan_policy(again.plan)
    assert again.tuned_on == "synthetic"
    text = path.read_text()
    assert "because: as last year" in text
    assert '  because: smaller for large "firms"\n' in text
    words, said = Vocabulary.of(file), view(trade, chosen)
    for number, statistic in enumerate(trade.statistics):
        line = next(each for each in text.splitlines() if each.startswith(f"# {statistic.key}, "))
        goal = read_goal(line.rpartition(": ")[2], words)
        assert said[f"goal/{number}"] == line.rpartition(": ")[2]
        assert goal.statistic == statistic.key.partition(":")[2]


def test_the_same_in_python_makes_the_same_queries(
    file: PlanFile, trade: Trade, chosen: StudioState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plan(tmp_path, short=True)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(python_of(file, trade, chosen), names)
    assert names["queries"] == with_mechanisms(file, mechanisms(trade, chosen))


@pytest.mark.costly
def test_the_values_of_a_plan_are_kept_until_it_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, given = write_plan(tmp_path, short=True), {"year": "2026"}
    path.write_text(path.read_text().replace("three states", "${year}") + '[parameters]\nyear = "2025"\n')
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(make, "STEPS", 1)
        made = make_trade(path, rows=ROWS, parameters=given)
    file, state = rw.load_plan(path, parameters=given), StudioState.first(made)
    assert made.plan_digest == plan_digest(path, given)
    assert plan_digest(path, {"year": 2025}) == plan_digest(path, {}) != made.plan_digest
    saved = save_plan(file, made, state, tmp_path / "chosen.toml")
    assert rw.load_plan(saved, parameters=given).plan.queries == file.plan.queries
    assert report(file, made, state)["commands"][0] == "recordwise check plan-chosen.toml --set year=2026"
    with pytest.raises(ParameterError, match="changed"):
        plan_of(rw.load_plan(path), made, state, tmp_path / "other.toml")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(python_of(file, made, state), names)
    assert names["file"].parameters == given


def test_a_plan_that_changed_is_refused(file: PlanFile, trade: Trade, folder: Path, tmp_path: Path) -> None:
    other = write_plan(tmp_path, short=True)
    other.write_text(other.read_text() + "\n# changed\n")
    with pytest.raises(ParameterError, match="changed"):
        plan_of(rw.load_plan(other), trade, StudioState.first(trade), tmp_path / "new.toml")


def test_unknown_statistics_are_refused(file: PlanFile) -> None:
    with pytest.raises(ParameterError, match="no statistic"):
        with_mechanisms(file, {"9:nothing": rw.Gaussian(sigma=1)})


def test_the_numbers_of_the_policy_agree_with_those_looked_up(
    file: PlanFile, trade: Trade, chosen: StudioState
) -> None:
    found, shown = Exact.of(file, trade).texts(chosen), view(trade, chosen)
    close: Callable[[str], float] = lambda text: float(text.replace(",", ""))  # noqa: E731
    for number in range(len(trade.examples)):
        key = f"example/{number}/loss"
        assert close(found[key]) == pytest.approx(close(shown[key]), rel=0.011)
    assert found["budget"] == "the budget covers it for every possible record"
    # Not every possible record is in the file, so that it can only promise more.
    assert 1 <= close(found["years"]) <= close(shown["years"])


def test_a_budget_that_does_not_cover_the_choice_is_said(file: PlanFile, trade: Trade) -> None:
    found = Exact.of(replace(file, budget=constant("0.001")), trade).texts(StudioState.first(trade))
    assert found["budget"].startswith("the budget does not cover it: for ")
    assert found["years"] == "0"


def test_a_report_holds_everything_and_releases_nothing(file: PlanFile, trade: Trade, chosen: StudioState) -> None:
    made = report(file, trade, chosen)
    json.dumps(made)
    assert made["texts"] == view(trade, chosen)
    assert StudioState.from_json(made["state"], trade) == chosen
    assert made["commands"] == list(commands("plan-chosen.toml"))
    assert not file.ledger.exists()


@pytest.mark.costly
def test_a_look_at_confidential_records_is_entered_first_and_seen_everywhere(tmp_path: Path) -> None:
    path = write_plan(tmp_path, rows=ROWS, short=True)
    made = few_positions(path, records=tmp_path / "records.parquet")
    ledger = Ledger.existing(tmp_path / "small.ledger")
    assert ledger.looks() == {"studio": 1}
    ledger.close()
    saved = made.save(tmp_path / "trade.json")
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert made.label.startswith("CONFIDENTIAL")
    totals = {cell.total for place in made.places for cell in place.cells}
    assert totals <= {10.0**power for power in range(12)}
    assert all("place" in each.name and not any(letter.isdigit() for letter in each.name) for each in made.places)
    file, state = rw.load_plan(path), StudioState.first(made)
    assert view(made, state)["label"].startswith("CONFIDENTIAL")
    assert report(file, made, state)["label"].startswith("CONFIDENTIAL")
    refused = save_plan(file, made, state, tmp_path / "refused.toml")
    assert 'tuned_on = "confidential"' in refused.read_text()
    with pytest.raises(PlanFileError, match="tuning_reason"):
        rw.load_plan(refused)
    accepted = save_plan(file, made, state, tmp_path / "accepted.toml", tuning_reason="a committee asked")
    assert rw.load_plan(accepted).tuned_on == "confidential"
    assert any("confidential" in each for each in checked(accepted).warnings)
    assert "tuned_on='confidential'" in python_of(file, made, state)


@pytest.mark.costly
def test_a_confidential_trade_file_tells_no_exact_total_and_no_exact_record(tmp_path: Path) -> None:
    """One more employee in each large record changes two of five totals, and not one number of the file."""
    path, records = write_plan(tmp_path, rows=ROWS, short=True), tmp_path / "records.parquet"
    made, table = few_positions(path, records=records), pq.read_table(records)
    sizes = table["emp"].to_numpy()
    sizes = sizes + (sizes >= 50)
    pq.write_table(table.set_column(table.schema.get_field_index("emp"), "emp", pa.array(sizes)), records)
    again = few_positions(path, records=records)
    assert again.records_digest != made.records_digest, "the time of the file"
    assert replace(again, records_digest=made.records_digest) == made


def test_a_failed_computation_has_entered_its_look(tmp_path: Path) -> None:
    path = write_plan(tmp_path, rows=ROWS, short=True)
    with pytest.raises(ParameterError):
        make_trade(path, records=tmp_path / "records.parquet", goal="town cells of 3 cows within 1%")
    ledger = Ledger.existing(tmp_path / "small.ledger")
    assert ledger.looks() == {"studio": 1}
    ledger.close()


def rw_mechanism(entry: dict[str, Any]) -> Any:
    from recordwise.mechanisms.registry import mechanism_from_json

    return mechanism_from_json(entry)


def array(value: float) -> Any:
    import numpy as np

    return np.array([value])


def read_percent(text: str) -> Any:
    from fractions import Fraction

    return Fraction(text) / 100
