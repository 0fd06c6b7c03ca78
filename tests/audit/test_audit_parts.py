"""The parts of an audit between records and verdict, on a few made-up cells."""

import importlib
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.audit.audit import (
    BROKEN,
    KEPT,
    Finding,
    Layout,
    PublishedCells,
    Runs,
    both_stages,
    bound_on_loss,
    features_of,
    lowest_bit,
    row_problems,
    sample_of,
    stale,
    tells,
)
from recordwise.audit.subjects import Subject, record, three_sizes
from recordwise.policy import constant, gaussian_sum

module: Any = importlib.import_module("recordwise.audit.audit")


def subject(**changed: Any) -> Subject:
    given: dict[str, Any] = {
        "name": "made up",
        "ask": lambda keys: None,
        "records": {"one": record(3, 4), "two": record(9, 1, "odd")},
        "others": (record(7, 2),),
    }
    return Subject(**(given | changed))


def layout(cells: int = 2, **changed: Any) -> Layout:
    return Layout(subject=subject(**changed), cells=cells)


ROWS = [
    # The other record is in every cell of the three groups, the first in the second group, the second in the third.
    *[(f"000000{at}A", "plain", 7, 2) for at in (0, 3, 1, 4, 2, 5)],
    *[(f"000000{at}A", "plain", 3, 4) for at in (1, 4)],
    *[(f"000000{at}A", "odd", 9, 1) for at in (2, 5)],
    # And the last, in cells that are not published.
    *[(f"999999{at}A", "odd", 9, 1) for at in (9, 8, 7, 6, 5)],
]


def test_the_records_of_a_comparison_lie_side_by_side() -> None:
    table = layout().table()
    assert table.column_names == ["cell", "kind", "value", "second", "id", "firm"]
    names = ("cell", "kind", "value", "second")
    assert list(zip(*(table[name].to_pylist() for name in names))) == ROWS
    assert table["id"].to_pylist() == table["firm"].to_pylist() == list(range(15))
    assert layout().groups == (None, "one", "two")
    assert (layout().count, layout(5).count) == (6, 15)
    assert layout().codes() == [f"000000{at}A" for at in range(6)]


def test_keys_that_are_found_have_no_stray_cells() -> None:
    assert layout(keys="selected").table().num_rows == 10


def test_further_rows_of_a_record_add_nothing_to_its_second_value() -> None:
    table = layout(rows=3).table()
    assert table.num_rows == 45
    assert table["id"].to_pylist() == 3 * list(range(15))
    assert table["value"].to_pylist() == 3 * [row[2] for row in ROWS]
    assert table["second"].to_pylist() == [row[3] for row in ROWS] + 30 * [0]
    rules = {"value": "max", "second": "sum", "cell": "same", "kind": "same", "firm": "same"}
    assert subject(rows=2).collapse() == rules
    assert subject(rows=1).collapse() is None


def test_values_below_a_step_of_one_are_decimals() -> None:
    table = layout(step=Fraction(1, 100), records={"one": record("0.25")}, others=()).table()
    assert table["value"].type == pa.decimal128(30, 6)
    assert table["value"].to_pylist() == [Decimal("0.250000")] * 7
    assert layout().table()["value"].type == pa.int64()


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ([0, 1, 2, 3, 4, 5], []),
        ([-1, 0, 1, 2, 3, 4, 5], ["publishes a cell that is not among the public keys"]),
        ([0, 1, 2, 3, 4, 5, 6], ["publishes a cell that is not among the public keys"]),
        ([0, 1, 1, 2, 3, 4, 5], ["publishes a cell twice"]),
        ([0, 1, 2, 3, 5, 4], ["its rows are not in the order of their keys"]),
        ([0, 1, 2, 3, 4], ["leaves a public cell out"]),
        ([1, 2, 3, 4, 5], ["leaves a public cell out"]),
        ([5, 5], ["publishes a cell twice", "leaves a public cell out"]),
    ],
)
def test_rows_that_reveal_something_are_told_apart(cells: list[int], wanted: list[str]) -> None:
    assert row_problems(np.array(cells), layout()) == wanted
    found = [each for each in wanted if "leaves" not in each]
    assert row_problems(np.array(cells), layout(keys="selected")) == found


def test_every_number_its_lowest_bit_and_differences_of_answers_are_features() -> None:
    table = pa.table(
        {"n": [1, 4, 6], "n_sd": [2.0, 2.0, 2.0], "m": [0.5, 0.5, 3.0], "m_sd": [1.0, 2.0, 4.0], "l": [1, 1, 9]}
    )
    found = {name: numbers.tolist() for name, numbers in features_of(table).items()}
    assert found == {
        "n": [1, 4, 6],
        "lowest bit of n": [0, 2, 1],
        "m": [0.5, 0.5, 3.0],
        "lowest bit of m": [-1, -1, 0],
        "m_sd": [1, 2, 4],
        "lowest bit of m_sd": [0, 1, 2],
        "l": [1, 1, 9],
        "n - m": [0.5, 3.5, 3.0],
    }


def test_a_feature_tells_something_if_it_differs() -> None:
    assert [tells(np.array(each)) for each in ([], [1.0], [1.0, 1.0], [1.0, 2.0], [math.nan, math.nan])] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_the_lowest_bit_of_nothing_is_above_all_others() -> None:
    assert lowest_bit(np.array([0.0, -0.0])).tolist() == [106.0, 106.0]


def cells_of(features: dict[str, list[float]], policy: Any = None, problems: tuple[str, ...] = ()) -> PublishedCells:
    return PublishedCells(
        features={name: np.array(each) for name, each in features.items()}, policy=policy, problems=problems
    )


def test_a_reader_of_two_stages_sees_both_and_both_are_paid() -> None:
    first = cells_of({"a": [1.0]}, policy=Fraction(1), problems=("x",))
    second = cells_of({"a": [2.0], "b": [3.0]}, policy=Fraction(2), problems=("y",))
    found = both_stages(first, second)
    assert {name: each.tolist() for name, each in found.features.items()} == {"first a": [1.0], "a": [2.0], "b": [3.0]}
    assert found.policy == Fraction(3)
    assert found.problems == ("x", "y")


def test_the_samples_of_a_group_are_those_of_all_runs() -> None:
    seen = [
        cells_of({"a": [0.0, 1, 2, 3, 4, 5], "b": [0.0] * 6}),
        cells_of({"a": [10.0, 11, 12, 13, 14, 15], "c": [0.0] * 6}),
    ]
    for group, wanted in ((0, [0, 3, 10, 13]), (1, [1, 4, 11, 14]), (2, [2, 5, 12, 15])):
        found = sample_of(layout(), seen, group)
        assert {name: each.tolist() for name, each in found.items()} == {"a": wanted}


def test_a_finding_is_broken_by_a_bound_above_the_policy_or_by_a_problem() -> None:
    given: dict[str, Any] = {"subject": "s", "keys": "public", "engine": "duckdb", "record": "one", "samples": 4}
    given |= {"policy": 1.0, "delta": 0.0}
    for bound, problems, broken in ((0.5, (), False), (1.0, (), False), (1.0 + 1e-9, (), True), (0.5, ("x",), True)):
        found = Finding(**given, bound=bound, problems=problems)
        assert found.broken is broken
        assert found.verdict == (BROKEN if broken else KEPT)
    checked = Finding.without_numbers("a check", samples=7, problems=())
    assert (checked.subject, checked.keys, checked.engine, checked.record) == ("a check", "-", "duckdb", "-")
    assert (checked.samples, checked.problems, checked.broken) == (7, (), False)
    assert all(math.isnan(each) for each in (checked.policy, checked.delta, checked.bound))
    assert Finding.without_numbers("a check", samples=7, problems=("x",)).verdict == "BROKEN"
    assert Runs() == Runs(engine="duckdb", spark=None, cells=50_000, runs=1)


def test_the_verdict_on_a_record_is_about_the_largest_loss_of_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def policy(loss: float, delta: float) -> Any:
        def about(given: dict[str, Any], value: float) -> float:
            assert given == {"value": 9, "second": 1, "kind": "odd", "cell": "0000000A"}
            return value

        return SimpleNamespace(loss=lambda given: about(given, loss), delta=lambda given: about(given, delta))

    asked = []
    monkeypatch.setattr(module, "bound_on_loss", lambda *given, **more: asked.append((given, more)) or 0.75)
    seen = [cells_of({"a": [0.0, 1, 2, 3, 4, 5]}, policy(*each)) for each in ((2.0, 0.1), (3.0, 0.05), (1.0, 0.2))]
    found = module.finding(layout(cells=5), seen, "two", Runs(engine="e", cells=5, runs=3), ("x",))
    assert found == Finding(
        subject="made up",
        keys="public",
        engine="e",
        record="two",
        policy=3.0,
        delta=0.2,
        bound=0.75,
        samples=30,
        problems=("x",),
    )
    (((present, absent), more),) = asked
    assert (present["a"].tolist(), absent["a"].tolist(), more) == ([2, 5] * 3, [0, 3] * 3, {"delta": 0.2})


def test_an_audit_tells_of_each_run_and_finds_each_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def publish(given: Layout, folder: Path, how: Runs, run: int) -> PublishedCells:
        assert (folder / "records.parquet").exists()
        return cells_of({"run": [float(run)]}, problems=("twice", f"in run {run}"))

    monkeypatch.setattr(module, "publish", publish)
    monkeypatch.setattr(module, "stale", lambda given, seen: [f"stale in {len(seen)}", "twice"])
    monkeypatch.setattr(module, "finding", lambda given, seen, name, how, problems: (name, len(seen), problems))
    told: list[str] = []
    found = module.audit(subject(), Runs(cells=2, runs=2), tell=told.append)
    problems = ("twice", "in run 0", "in run 1", "stale in 2")
    assert found == [("one", 2, problems), ("two", 2, problems)]
    assert told == ["made up, public keys, run 1 of 2", "made up, public keys, run 2 of 2"]


def test_noise_that_repeats_is_looked_for_within_and_between_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the group without the record alone; a column is compared with itself and with the first."""
    seen = [
        cells_of({"n": [at, 0.0, 0.0, at, 0.0, 0.0], "n_sd": [1.0] * 6} | ({"m": [9.0] * 6} if at != 1 else {}))
        for at in (0.0, 1.0, 2.0)
    ]
    for repeats, wanted in (
        (lambda one, other: False, []),
        (lambda one, other: one is other, ["n: noise repeats within a release", "m: noise repeats within a release"]),
        (lambda one, other: one is other and one[0] == 2, ["n: noise repeats within a release"]),
        (lambda one, other: (one[0], other[0]) == (0, 1), ["n: noise repeats in another release"]),
        (lambda one, other: (one[0], other[0]) == (0, 2), ["n: noise repeats in another release"]),
        (lambda one, other: (one[0], other[0]) == (1, 2), []),
    ):

        def repeat(one: Any, other: Any, *, log_alarms: float, repeats: Any = repeats) -> bool:
            assert log_alarms == pytest.approx(math.log(1e13))
            return bool(repeats(one, other))

        monkeypatch.setattr(module, "sequences_repeat", repeat)
        assert stale(layout(), seen) == wanted


def test_some_samples_teach_and_the_others_are_the_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of ten teach, as long as lessons are wanted; what speaks for absence is judged the other way round."""
    monkeypatch.setattr(module, "MOST_LESSONS", 6)
    present, absent = {"a": np.arange(33.0)}, {"a": 100 + np.arange(33.0)}
    teaching = [0, 1, 2, 10, 11, 12]
    rest = [each for each in range(33) if each not in teaching]
    for reverse in (False, True):
        learned: list[Any] = []
        judged: list[Any] = []
        witness = SimpleNamespace(reverse=reverse, evaluate=lambda given: given["a"].tolist())
        monkeypatch.setattr(
            module,
            "learn_witness",
            lambda *given, learned=learned, witness=witness: learned.append(given) or (witness, 5),
        )
        monkeypatch.setattr(module, "loss_lower", lambda *given, judged=judged: judged.append(given) or 0.5)
        assert bound_on_loss(present, absent, delta=0.25) == 0.5
        ((here, there, told),) = learned
        assert (here["a"].tolist(), there["a"].tolist()) == (teaching, [100 + each for each in teaching])
        assert (told.pairs, told.delta) == (27, 0.25)
        assert told.log_alarms == pytest.approx(math.log(1e13))
        sides = (rest, [100 + each for each in rest])
        assert judged == [(*(sides[::-1] if reverse else sides), 5)]
    assert bound_on_loss(present, absent, delta=1.0) == 0.0
    assert bound_on_loss({}, {}) == 0.0
    assert bound_on_loss(present, absent, delta=0.999) == 0.5


def test_nothing_is_excused_unless_a_delta_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    witness = SimpleNamespace(reverse=False, evaluate=lambda given: given["a"])
    monkeypatch.setattr(module, "learn_witness", lambda here, there, asked: told.append(asked.delta) or (witness, 5))
    monkeypatch.setattr(module, "loss_lower", lambda *given: 0.0)
    bound_on_loss({"a": np.zeros(20)}, {"a": np.zeros(20)})
    assert told == [0.0]


def test_the_large_record_is_the_largest_at_the_strongest_loss() -> None:
    """x^2 / 800 <= 1 up to 28; a step of 1/4 reaches 28.25 and no more."""
    policy = gaussian_sum("value", sigma=20)
    assert three_sizes(policy, Fraction(1)) == {"small": 2, "large": 28, "giant": 28 * 10**6}
    quarter = Fraction(1, 4)
    assert three_sizes(policy, quarter) == {"small": Fraction(11, 4), "large": Fraction(113, 4), "giant": 28_250_000}
    assert three_sizes(policy, Fraction(1), most=10) == {"small": 1, "large": 10, "giant": 10**7}
    assert three_sizes(policy, Fraction(1), most=1) == {"small": 1, "large": 1, "giant": 10**6}
    # The loss of a record of 20 under sigma = 10 * sqrt(2) is 1 itself.
    exact = gaussian_sum("value", sigma=10) * Fraction(1, 2)
    assert three_sizes(exact, Fraction(1))["large"] == 20
    assert three_sizes(gaussian_sum("value", sigma="0.1"), Fraction(1))["large"] == 1
    free = three_sizes(constant("0.5"), Fraction(1))
    assert free == {"small": (2**53 - 1) // 10, "large": 2**53 - 1, "giant": 2**53}


def test_a_subject_may_have_others_beside_its_records() -> None:
    found = subject().with_others("beside", record(1), record(2))
    assert (found.name, found.others) == ("beside", (record(1), record(2)))
    assert found.records == subject().records
    assert record() == {"value": 0, "second": 0, "kind": "plain"}
    assert subject().lists_every_cell
    assert not subject(keys="selected").lists_every_cell
    measure = subject(step=Fraction(1, 2), signed=True).measure()
    assert (measure.name, measure.step, measure.signed) == ("value", Fraction(1, 2), True)


# Forked processes.


@pytest.mark.parametrize("repeats", [False, True])
def test_two_forked_processes_are_compared(repeats: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forking: Any = importlib.import_module("recordwise.audit.forking")
    ran: list[Any] = []
    read: list[str] = []
    compared: list[Any] = []
    monkeypatch.setattr(forking.subprocess, "run", lambda words, check: ran.append((words, check)))
    monkeypatch.setattr(forking, "layout", lambda: "asked")
    monkeypatch.setattr(forking, "read_published_cells", lambda folder, asked: read.append(folder.name) or folder.name)
    monkeypatch.setattr(
        forking, "sample_of", lambda asked, seen, group: {"cell.answer": [seen[0], group, 0.0], "other": []}
    )

    def repeat(*given: Any, log_alarms: float) -> bool:
        compared.append(given)
        assert log_alarms == pytest.approx(math.log(1e13))
        return repeats

    monkeypatch.setattr(forking, "sequences_repeat", repeat)
    found = forking.audit_forks(tmp_path, command=["draw", "twice"])
    assert ran == [(["draw", "twice", str(tmp_path)], True)]
    assert read == ["release0", "release1"]
    assert compared == [(["release0", 0, 0.0], ["release1", 0, 0.0])]
    assert (found.subject, found.samples) == ("forked processes", 6)
    assert found.problems == (("two forked processes drew the same noise",) if repeats else ())


@pytest.mark.parametrize(("codes", "ends"), [((0, 0), 0), ((0, 256), 1), ((768, 0), 3), ((0, 9), 9)])
def test_a_child_that_failed_is_the_code_of_both(
    codes: tuple[int, int], ends: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the system tells them: a code of 1 as 256, an end by signal 9 as 9."""
    forking: Any = importlib.import_module("recordwise.audit.forking")
    children = [11, 12]
    written: list[Path] = []
    monkeypatch.setattr(forking, "layout", lambda: SimpleNamespace(write=written.append))
    monkeypatch.setattr(forking.os, "fork", lambda: children.pop(0))
    monkeypatch.setattr(forking.os, "waitpid", lambda child, how: (child, dict(zip((11, 12), codes))[child]))
    with pytest.raises(SystemExit) as stopped:
        forking.main(tmp_path)
    assert stopped.value.code == ends
    assert written == [tmp_path / "records.parquet"]
    assert children == []


def test_a_child_publishes_under_its_number_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forking: Any = importlib.import_module("recordwise.audit.forking")
    done: list[Any] = []
    asked = SimpleNamespace(write=lambda path: None)

    class Ended(Exception):  # noqa: N818
        """Instead of the end of a process."""

    def leave(code: int) -> None:
        done.append(code)
        raise Ended

    monkeypatch.setattr(forking, "layout", lambda: asked)
    monkeypatch.setattr(forking, "publish", lambda *given: done.append(given))
    monkeypatch.setattr(forking.os, "fork", lambda: 0)
    monkeypatch.setattr(forking.os, "_exit", leave)
    with pytest.raises(Ended):
        forking.main(tmp_path)
    assert done == [(asked, tmp_path, Runs(), 0), 0]


# One release, from records to what is read back.


class Session:
    """A session that notes how it was opened and what it runs."""

    opened: dict[str, Any]

    def __init__(self, source: Path, **stated: Any) -> None:
        Session.opened = {"source": source, **stated}
        self.ran: list[Any] = []

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, asked: Any, **more: Any) -> Any:
        RAN.append((asked, more))
        return SimpleNamespace(save=lambda folder: folder)

    def spent(self) -> Any:
        return SPENT[0]


RAN: list[Any] = []
SPENT: list[Any] = [Fraction(2)]


@pytest.mark.parametrize(
    ("changed", "spent", "policy", "ran", "damaged"),
    [
        ({}, 2, 2, [("asked", {"refine": None, "fixed_in_advance": True})], False),
        ({}, 3, 2, [("asked", {"refine": None, "fixed_in_advance": True})], True),
        (
            {"first": lambda keys: "first"},
            5,
            5,
            [("first", {}), ("asked", {"refine": "first0", "fixed_in_advance": True})],
            False,
        ),
        (
            {"first": lambda keys: "first", "tier": True},
            7,
            2,
            [("first", {}), ("asked", {"tier_of": "first0", "fixed_in_advance": True})],
            False,
        ),
        (
            {"first": lambda keys: "first", "tier": True},
            2,
            2,
            [("first", {}), ("asked", {"tier_of": "first0", "fixed_in_advance": True})],
            True,
        ),
    ],
)
def test_a_release_is_read_back_and_its_charge_compared(
    changed: dict[str, Any], spent: int, policy: int, ran: Any, damaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone it costs 2; after a first one of 3 both cost 5; as a tier of one that was charged 7 it is charged nothing."""
    RAN.clear()
    SPENT[0] = Fraction(spent)
    monkeypatch.setattr(module, "Session", Session)
    read = {
        "first0": cells_of({"a": [1.0]}, Fraction(3), ("x",)),
        "release0": cells_of({"a": [2.0]}, Fraction(2), ("y",)),
    }
    monkeypatch.setattr(module, "read_published_cells", lambda folder, given: read[folder.name])

    class Loaded(str):
        policy = Fraction(7)

    monkeypatch.setattr(module, "load_release", lambda folder: Loaded(folder.name))
    asked = layout(ask=lambda keys: "asked", keys_of=lambda cells: cells, step=Fraction(1, 2), **changed)
    found = module.publish(asked, Path("f"), Runs(engine="e", spark="s"), 0)
    assert ran == RAN
    assert found.policy == policy
    both = "first" in changed and not changed.get("tier")
    assert sorted(found.features) == (["a", "first a"] if both else ["a"])
    damage = ("the policy charged to the ledger is not the published one",) if damaged else ()
    assert found.problems == ((*(("x",) if both else ()), "y", *damage))
    opened = Session.opened
    assert (opened["source"], opened["ledger"]) == (Path("f/records.parquet"), Path("f/audit0.ledger"))
    assert (opened["engine"], opened["spark"], opened["collapse"]) == ("e", "s", None)
    assert (opened["unit"], opened["firm"], opened["tuned_on"], opened["max_outside"]) == (
        "id",
        "firm",
        "synthetic",
        "accept",
    )
    assert list(opened["measures"]) == ["value", "second", "form"]
    assert (opened["measures"]["value"].step, opened["measures"]["second"]) == (Fraction(1, 2), 1)
    assert opened["columns"] == {"cell": "text", "kind": "text"}
