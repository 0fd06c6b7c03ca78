"""Every problem that a check of the audit can find, alone and at its limit, in sessions that only play their part."""

import importlib
import math
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordwise.audit import Runs
from recordwise.errors import AlreadyReleasedError, LedgerError, ParameterError, TuningError
from recordwise.mechanisms import Gaussian
from recordwise.plan.query import query

HOW = Runs()
checks: Any = importlib.import_module("recordwise.audit.checks")
Patch = pytest.MonkeyPatch


def refusal() -> ParameterError:
    return ParameterError(parameter="it", problem="is refused")


def already() -> AlreadyReleasedError:
    return AlreadyReleasedError.__new__(AlreadyReleasedError)


class Playing:
    """A session in a ``with`` statement; ``run`` takes the next of some outcomes, or raises it."""

    def __init__(self, *outcomes: Any, **more: Any) -> None:
        self.outcomes, self.asked = list(outcomes), list[tuple[Any, dict[str, Any]]]()
        self.__dict__ |= more

    def __enter__(self) -> "Playing":
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, asked: Any, **more: Any) -> Any:
        self.asked.append((asked, more))
        found = self.outcomes.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def table(answers: Any) -> Any:
    return pa.table({"answer": np.asarray(answers, np.float64)})


def in_turn(patch: Patch, name: str, sessions: list[Any]) -> list[Any]:
    """Sessions are opened one after the other; a refusal is raised when it is opened."""
    opened: list[Any] = []

    def session(*given: Any, **more: Any) -> Any:
        opened.append((given, more))
        found = sessions.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    patch.setattr(checks, name, session)
    return opened


# A series of two periods.


LOST = (1600 / 18 + 9 / 1800, 9 / 18 + 1600 / 1800, 49 / 18, 49 / 1800)
"""Of 40 and 3, 3 and 40, 7 and nothing, nothing and 7, under sigmas of 3 and 30."""


@pytest.mark.parametrize(
    ("told", "charges", "publishing", "budgets", "wanted"),
    [
        (LOST, 2, [], [], ()),
        (tuple(each * (1 - 5e-10) for each in LOST), 2, [], [], ()),
        *[
            (
                tuple(each * (1 - 2e-9 * (at == low)) for at, each in enumerate(LOST)),
                2,
                [],
                [],
                ("a history lost more than the ledger says",),
            )
            for low in range(4)
        ],
        (LOST, 1, [], [], ()),
        (LOST, 3, [], [], ("a retry paid twice",)),
        (LOST, 2, ["x"], ["y"], ("x", "y")),
    ],
)
def test_a_series_loses_what_its_ledger_says(
    told: Any, charges: int, publishing: list[str], budgets: list[str], wanted: tuple[str, ...], monkeypatch: Patch
) -> None:
    periods: list[str] = []
    events = [SimpleNamespace(kind=kind) for kind in ("opened", *["charged"] * charges, "released")]
    monkeypatch.setattr(checks, "_publish_period", lambda folder, period, how: periods.append(period) or publishing)
    monkeypatch.setattr(checks, "_second_budgets", lambda folder, how: budgets)
    in_turn(monkeypatch, "_period_session", [Playing(history=lambda: events)])
    monkeypatch.setattr(
        checks,
        "periods_of",
        lambda given: (SimpleNamespace(name="2025", spent="a"), SimpleNamespace(name="2026", spent="b")),
    )
    seen: list[Any] = []

    def losses(policies: dict[str, Any], records: dict[str, Any]) -> dict[str, float]:
        assert policies == {"2025": "a", "2026": "b"}
        seen.append(records)
        return dict.fromkeys(records, told[len(seen) - 1] / len(records))

    monkeypatch.setattr(checks.histories, "history_losses", losses)
    found = checks.audit_two_periods(Path(), HOW)
    assert (found.subject, found.samples, found.problems) == ("a series of two periods", 4, wanted)
    assert periods == ["2025", "2026"]
    assert seen == [
        {"2025": {"value": 40}, "2026": {"value": 3}},
        {"2025": {"value": 3}, "2026": {"value": 40}},
        {"2025": {"value": 7}},
        {"2026": {"value": 7}},
    ]


@pytest.mark.parametrize(
    ("period", "answers", "resumed", "wanted"),
    [
        ("2025", [-1.5, 1.5], "same", []),
        ("2025", [-1.49, 1.49], "same", ["less noise than stated"]),
        ("2026", [-15.0, 15.0], "same", []),
        ("2026", [-14.9, 14.9], "same", ["less noise than stated"]),
        ("2025", [-9.0, 9.0], "other", ["a resumed release was drawn again"]),
        ("2025", [-9.0, 9.0], None, ["a resumed release was drawn again"]),
    ],
)
def test_a_period_is_published_resumed_and_tried_again(
    period: str, answers: list[float], resumed: str | None, wanted: list[str], monkeypatch: Patch
) -> None:
    drawn = SimpleNamespace(table=table(answers))
    again = {"same": drawn, "other": SimpleNamespace(table=table([1.0, 2.0])), None: None}[resumed]
    asked: list[Any] = []
    sessions = [
        Playing(drawn),
        Playing(unfinished=SimpleNamespace(resume=lambda given: asked.append(given) or again)),
        Playing(already()),
        Playing(already()),
    ]
    first, _, *retries = sessions
    opened = in_turn(monkeypatch, "_period_session", list(sessions))
    assert checks._publish_period(Path("f"), period, HOW) == wanted
    assert opened == [((Path("f"), period, HOW), {})] * 4
    keys = {"cell": [str(number) for number in range(50)]}
    mechanism = Gaussian(sigma={"2025": 3, "2026": 30}[period])
    expected = query().group_by("cell", keys=keys).sum("value", mechanism, alias="answer")
    words = {"refuse_repeat": True, "keep": True}
    assert first.asked == [(expected, words)]
    assert asked == [expected]
    titled = expected.named("answers", title="A corrected title")
    assert [each.asked for each in retries] == [[(expected, words)], [(titled, words)]]


def test_a_budget_that_is_spent_stays_spent(monkeypatch: Patch) -> None:
    for accepted in (None, 0, 3):
        spending = Playing("released")
        tried: list[Any] = [LedgerError.__new__(LedgerError), *(refusal() for _ in range(4))]
        if accepted is not None:
            tried[accepted] = Playing()
        opened = in_turn(monkeypatch, "_period_session", [spending, *tried])
        found = checks._second_budgets(Path("f"), HOW)
        assert found == ([] if accepted is None else ["a period has a second budget"])
        names = [(given[1], more["ledger"]) for given, more in opened]
        assert names == [
            (None, "spent.ledger"),
            ("2026", "spent.ledger"),
            *((each, "two-periods.ledger") for each in ("2026/", "2O26", "\uff12\uff10\uff12\uff16", "2026Q1")),
        ]
        budget = opened[0][1]["budget"]
        assert (budget.loss({}), len(spending.asked)) == (1, 1)
        assert spending.asked[0][0] == query().count(Gaussian(rho=1))


# Two stages.


def stages(
    patch: Patch, *, answers: Any = 10.0, spent: float = 4.0, again: Any = None, other: Any = None
) -> tuple[Any, list[Any], list[Any]]:
    """An audit of two stages whose sessions answer as told."""
    saved: list[Any] = []
    first = SimpleNamespace(save=saved.append)
    refined = SimpleNamespace(table=table(np.full(400, answers) if np.isscalar(answers) else answers))
    loss = SimpleNamespace(loss=lambda record: spent if record == {"value": 30} else math.nan)
    one = Playing(first, refined, already() if again is None else again, spent=lambda: loss)
    two = Playing(refusal() if other is None else other)
    opened = in_turn(patch, "_stage_session", [one, two])
    patch.setattr(checks, "load_release", lambda folder: f"loaded {folder.name}")
    found = checks.audit_two_stages(Path("f"), HOW)
    assert saved == [Path("f/first")]
    assert [given for given, _ in opened] == [(Path("f"), 5, HOW), (Path("f"), 6, HOW)]
    return found, one.asked, two.asked


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, ()),
        ({"spent": 4.5}, ()),
        ({"spent": 4.5001}, ("both stages cost more than one release",)),
        ({"again": "released"}, ("a retry paid twice",)),
        ({"other": "released"}, ("answers about other records were averaged",)),
        ({"answers": 10 * math.sqrt(0.49)}, ("errors unlike those of the plan",)),
        ({"answers": 10 * math.sqrt(0.51)}, ()),
        ({"answers": 10 * math.sqrt(1.49)}, ()),
        ({"answers": 10 * math.sqrt(1.51)}, ("errors unlike those of the plan",)),
        ({"answers": np.repeat([0.0, 10 * math.sqrt(2)], 200)}, ()),
    ],
)
def test_a_refinement_is_of_the_same_records_as_accurate_as_planned_and_paid_once(
    changed: dict[str, Any], wanted: tuple[str, ...], monkeypatch: Patch
) -> None:
    found, one, two = stages(monkeypatch, **changed)
    assert (found.subject, found.samples, found.problems) == ("two stages", 400, wanted)
    keys = {"cell": [str(number) for number in range(400)]}
    first, second = (
        query().group_by("cell", keys=keys).sum("value", Gaussian(sigma=sigma), alias="answer") for sigma in (30, 10)
    )
    refining: dict[str, Any] = {"refine": "loaded first", "fixed_in_advance": True}
    assert one == [(first, {"keep": True}), *[(second, refining | {"refuse_repeat": True})] * 2]
    assert two == [(second, refining)]


# Carried noise.


def carried(patch: Patch, *, other: Any = None, again: Any = None) -> tuple[Any, list[Any]]:
    patch.setattr(checks, "load_release", lambda folder: SimpleNamespace(name=folder, table=table([7.0, 1.0, 2.0])))
    patch.setattr(checks, "_carried_errors", lambda *given: [f"errors of {[each.tolist() for each in given]}"])
    patch.setattr(checks, "_carried_losses", lambda charges: [f"losses of {charges}"])
    done = SimpleNamespace(save=lambda folder: folder)
    events = [SimpleNamespace(kind=kind, body=kind) for kind in ("opened", "charged", "released", "charged")]
    sessions = [
        Playing(done),
        Playing(refusal() if other is None else other, done, refusal() if again is None else again),
        Playing(SimpleNamespace(table=table([8.0, 3.0, 4.0])), history=lambda: events),
    ]
    opened = in_turn(patch, "_carried_session", list(sessions))
    found = checks.audit_carried(Path("f"), HOW)
    assert [given[1:4] for given, _ in opened] == [("2020", 0, 5), ("2021", 0, 7), ("2021", 1, 7)][: len(opened)]
    return found, [each.asked for each in sessions]


def told(asked: list[Any]) -> list[Any]:
    return [
        {name: each["value"].to_pylist() if name == "old_records" else str(each.name) for name, each in more.items()}
        for _, more in asked
    ]


def test_carried_noise_is_tried_with_other_records_twice_and_corrected(monkeypatch: Patch) -> None:
    numbers = ["errors of [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]", "losses of ['charged', 'charged']"]
    found, (first, second, third) = carried(monkeypatch)
    assert (found.subject, found.samples, found.problems) == ("carried noise", 400, tuple(numbers))
    before = {"carry": "f/carried2020"}
    assert told(first) == [{}]
    assert told(second) == [before | {"old_records": [each]} for each in (6, 5, 5)]
    assert told(third) == [{"revise": "f/carried2021", "old_records": [7]}]
    assert [each[0].statistics[0].mechanism for each in (first[0], second[1], third[0])] == [
        Gaussian(sigma=10),
        Gaussian(sigma=10),
        Gaussian(sigma=20),
    ]
    found, _ = carried(monkeypatch, again="released")
    assert found.problems == ("noise was carried twice, and leaving paid once", *numbers)
    found, asked = carried(monkeypatch, other="released")
    assert found.problems == ("answers about other records were carried on",)
    assert (found.samples, len(asked[1]), asked[2]) == (400, 1, [])


ONES = [np.tile(np.repeat([1.0, -1.0], 2**power), 400 // 2 ** (power + 1)) for power in range(4)]
"""Signs over 400 cells, each half of them plus, and each pair of lists alike in half of the cells."""
FIFTHS = np.resize([5.6, 5.8, 6.0, 6.2, 6.4], 400) / math.sqrt(36.08)
"""Around 1 and in all fifths; their squares are 1 in the mean."""


def noises(levels: float = 1.0, changes: float = 1.0, corrections: float = 1.0) -> list[Any]:
    """Noise of empty cells whose mean squares are such multiples of those of the plan: 100, 40 and 300."""
    one, two, three, both = ONES
    change = math.sqrt(40 * changes - 4)
    before, now = 10 * one, 8 * one + change * FIFTHS * two
    # What both have in common changes their levels alone.
    mean = (np.mean(before**2) + np.mean(now**2)) / 2
    common = math.sqrt(max(100 * levels - mean, 0.0)) * both
    return [before + common, now + common, now + common + math.sqrt(300 * corrections) * three]


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"levels": 1.1}, False),
        ({"levels": 1.39}, False),
        ({"levels": 1.41}, True),
        ({"levels": 1.1, "changes": 1.39}, False),
        ({"levels": 1.1, "changes": 1.41}, True),
        ({"levels": 1.1, "changes": 0.61}, False),
        ({"levels": 1.1, "changes": 0.59}, True),
        ({"levels": 1.1, "corrections": 1.39}, False),
        ({"levels": 1.1, "corrections": 1.41}, True),
        ({"levels": 1.1, "corrections": 0.61}, False),
        ({"levels": 1.1, "corrections": 0.59}, True),
    ],
)
def test_errors_of_carried_noise_are_those_of_the_plan(changed: dict[str, float], wrong: bool) -> None:
    assert checks._carried_errors(*noises(**changed)) == (["errors unlike those of the plan"] if wrong else [])


def test_levels_may_not_be_too_small_either() -> None:
    """All noise in proportion: of 0.62 the changes and corrections are as far off, of 0.58 too far."""
    for part, wrong in ((0.61, []), (0.59, ["errors unlike those of the plan"])):
        before, now, corrected = (each * math.sqrt(part) for each in noises())
        found = checks._carried_errors(before, now, corrected)
        assert [each for each in found if each.startswith("errors")] == wrong


@pytest.mark.parametrize(("same", "wanted"), [(80, []), (81, ["cells were published again without fresh noise"])])
def test_cells_of_a_correction_have_fresh_noise(same: int, wanted: list[str]) -> None:
    before, now, corrected = noises(1.1, corrections=1.25)
    corrected[:same] = now[:same]
    assert checks._carried_errors(before, now, corrected) == wanted


def test_the_last_total_does_not_show_in_fractions() -> None:
    before, now, corrected = noises(1.0)
    coarse = np.rint(now - 0.8 * before) + 0.8 * before
    found = checks._carried_errors(before, coarse, coarse + corrected - now)
    assert found == ["the last total shows in fractions"]
    # Four of the five remainders are too few.
    fine = np.rint(5 * (now - 0.8 * before))
    fine = np.where(fine % 5 == 3, fine + 1, fine) / 5
    assert checks._carried_errors(before, fine + 0.8 * before, fine + 0.8 * before + corrected - now) == found


TRUE = {"move": 20.5, "stay": 0.5, "corrected": 3.0, "unchanged": 0.0}
"""30^2 / 200 = 4.5 times 1.64 / 0.36, 0.04 / 0.36, 2 / 3 and nothing."""


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, []),
        ({"move": 20.5 * 1.0009}, []),
        ({"move": 20.5 * 1.002, "paid": 26.0}, ["a mover was charged as one that stays"]),
        ({"move": 20.5 * 0.998}, ["a mover was charged as one that stays"]),
        ({"stay": 0.5 * 1.002}, ["one that stays was charged wrongly"]),
        ({"corrected": 3.0 * 1.002}, ["a correction was charged by the net change over cells"]),
        ({"unchanged": 5e-10}, []),
        ({"unchanged": 1e-8}, ["a record that did not change was charged"]),
        ({"paid": 25.0}, []),
        ({"paid": 24.99}, ["a mover lost more than was charged"]),
    ],
)
def test_movers_stayers_and_corrected_records_lose_what_they_should(
    changed: dict[str, float], wanted: list[str], monkeypatch: Patch
) -> None:
    known = TRUE | {"paid": 25.1} | changed
    here, there = {"value": 30, "cell": "1"}, {"value": 30, "cell": "2"}

    def step(number: int) -> Any:
        def loss(before: Any, now: Any) -> float:
            assert (before, now) in ((here, there), (here, here))
            names = {1: ("move", "stay"), 2: ("corrected", "unchanged")}[number]
            return known[names[before == now]]

        return SimpleNamespace(loss=loss)

    def policy(form: float) -> Any:
        return SimpleNamespace(loss=lambda record: form if record == {"value": 30} else math.nan)

    monkeypatch.setattr(checks.Step, "from_json", step)
    monkeypatch.setattr(checks.Policy, "from_json", policy)
    charges = [{"step": at, "policy": each} for at, each in enumerate((4.5, known["paid"] - 4.5, 1e6))]
    assert checks._carried_losses(charges) == wanted


# What must be refused.


@pytest.mark.parametrize("accepted", [False, True])
def test_each_bad_table_and_list_of_keys_is_tried(accepted: bool, tmp_path: Path, monkeypatch: Patch) -> None:
    seen: list[Any] = []

    def publish(path: Path, keys: list[Any], how: Runs) -> object:
        seen.append((path.name, keys, how))
        if not accepted:
            raise refusal()
        return None

    monkeypatch.setattr(checks, "_publish", publish)
    found = checks.audit_inputs(tmp_path, HOW)
    assert [each.subject for each in found] == [
        f"refusal of {name}" for name in (*checks.BAD_RECORDS, *checks.BAD_KEYS)
    ]
    assert {(each.samples, each.problems) for each in found} == {(1, ("was accepted",) if accepted else ())}
    keys = [[1, 2]] * 7 + [[1, 2, 2], ["1", "01", "2"], [1, 2, None]]
    assert seen == [(f"refused{number}.parquet", each, HOW) for number, each in enumerate(keys)]


def test_records_without_a_fault_are_accepted(tmp_path: Path) -> None:
    """So whatever is refused is refused for its fault."""
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table(checks.plain()), path)
    release: Any = checks._publish(path, [1, 2], HOW)
    assert release.table.column_names[:2] == ["cell", "sum_value"]
    assert release.table["cell"].to_pylist() == [1, 2]
    mechanism = release.tables[0]
    assert mechanism.data.num_rows == 2
    assert checks.is_refused(lambda: checks._publish(path, [1, 2, 2], HOW))
    assert not checks.is_refused(lambda: None)
    with pytest.raises(ZeroDivisionError):
        checks.is_refused(lambda: 1 / 0)


@pytest.mark.parametrize("accepted", [False, True])
def test_each_bad_threshold_is_tried_and_neighbors_say_the_same(
    accepted: bool, tmp_path: Path, monkeypatch: Patch
) -> None:
    seen: list[Any] = []

    def text(rows: Any, asked: Any, path: Path, how: Runs, columns: Any) -> str | None:
        seen.append((rows, path.name, columns))
        if len(seen) <= 4:
            return "released" if accepted else None
        return f"about {len(seen)}" if accepted else "alike"

    monkeypatch.setattr(checks, "_release_text", text)
    found = checks.audit_types(tmp_path, HOW)
    names = [f"refusal of {name}" for name in checks.BAD_THRESHOLDS]
    assert [each.subject for each in found] == [
        *names,
        "neighbors with declared columns",
        "neighbors with undeclared columns",
    ]
    wrong = [("was accepted",)] * 4 + [("the description of the table depends on the records",)] * 2
    assert [each.problems for each in found] == (wrong if accepted else [()] * 6)
    assert [each.samples for each in found] == [1] * 4 + [4] * 2
    assert [each[1] for each in seen] == [
        *(f"types{number}" for number in range(4)),
        *(f"{way}{number}" for way in ("declared", "undeclared") for number in range(4)),
    ]
    assert [each[2] is None for each in seen] == [False] * 8 + [True] * 4
    assert [each[0] for each in seen] == [checks.ROWS] * 4 + 2 * list(checks.NEIGHBOURS.values())


def test_neighbors_differ_by_whole_records() -> None:
    whole, more, missing, none = checks.NEIGHBOURS.values()
    rows = [list(zip(*each.values())) for each in (whole, more, missing, none)]
    assert rows[0] == [(1, 1000, True, 44), (2, 2, False, 7), (3, 3, True, 7)]
    assert rows[1][:3] == rows[0]
    assert rows[1][3][:3] == (4, 1, True)
    assert math.isnan(rows[1][3][3])
    assert rows[2:] == [[(4, 1, True, None)], []]
    assert {tuple(each) for each in (whole, more, missing, none)} == {("id", "value", "open", "size")}


@pytest.mark.parametrize("refused", [True, False])
def test_each_source_that_can_be_read_in_two_ways_is_tried(refused: bool, tmp_path: Path, monkeypatch: Patch) -> None:
    seen: list[str] = []

    def sums(source: Path, how: Runs) -> Any:
        seen.append(source.relative_to(tmp_path).as_posix())
        if refused and seen[-1].startswith(("parts", "named")):
            raise refusal()
        return source.name if not refused else "alike"

    monkeypatch.setattr(checks, "_publish_sums", sums)
    found = checks.audit_sources(tmp_path, HOW)
    names = [*checks.BAD_PARTS, "a folder that contradicts its files"]
    assert [each.subject for each in found] == [*(f"refusal of {name}" for name in names), "false statistics in a file"]
    wrong = [("was accepted",)] * 6 + [("statistics in a file decide what is counted",)]
    assert [each.problems for each in found] == ([()] * 7 if refused else wrong)
    assert [each.samples for each in found] == [1] * 6 + [2]
    parts = [f"parts{number}" for number in range(5)]
    assert seen == ["good", *parts, "named", "stated/true.parquet", "stated/false.parquet"]
    for place, ids in (("good", [[1, 2], [3, 4]]), ("parts0", [[1, 2], ["1", "4"]])):
        files = [pq.read_table(tmp_path / place / name) for name in ("a.parquet", "b.parquet")]
        assert [each["id"].to_pylist() for each in files] == ids
    true, false = ((tmp_path / "stated" / f"{name}.parquet") for name in ("true", "false"))
    assert pq.read_table(true).to_pydict() == {"id": [1, 2], "cell": ["b", "b"], "value": [70_007, 70_007]}
    statistics = [
        {
            name: (column.statistics.min, column.statistics.max)
            for at, name in enumerate(("id", "cell", "value"))
            for column in [pq.ParquetFile(path).metadata.row_group(0).column(at)]
        }
        for path in (true, false)
    ]
    assert statistics == [
        {"id": (1, 2), "cell": ("b", "b"), "value": (70_007, 70_007)},
        {"id": (1, 2), "cell": ("a", "a"), "value": (5, 5)},
    ]
    length = struct.unpack("<I", true.read_bytes()[-8:-4])[0]
    assert true.read_bytes()[: -8 - length] == false.read_bytes()[: -8 - length]


@pytest.mark.costly
def test_each_table_of_our_own_is_offered_as_a_list_of_sizes(tmp_path: Path, monkeypatch: Patch) -> None:
    """Four of a private release and four of one from a seed; a list that is taken is a problem."""
    seen: list[Any] = []

    def problems(given: Callable[[], Any], folder: Path, number: int, how: Runs) -> tuple[str, ...]:
        seen.append(number)
        return (f"was taken {number}",) if number % 2 else ()

    monkeypatch.setattr(checks, "_problems", problems)
    found = checks.audit_lists(tmp_path, HOW)
    offered = ("file as sizes", "file in its folder as sizes", "table as sizes", "release of another ledger as sizes")
    assert [each.subject for each in found] == [
        f"refusal of a {kind} {name}" for kind in ("private", "NOT PRIVATE") for name in offered
    ]
    assert [each.problems for each in found] == [
        (),
        ("was taken 1",),
        (),
        ("was taken 3",),
        (),
        ("was taken 5",),
        (),
        ("was taken 7",),
    ]
    assert {each.samples for each in found} == {1}
    assert seen == list(range(8))


def test_a_list_that_is_taken_is_a_problem(monkeypatch: Patch) -> None:
    for outcome, wanted in ((refusal(), ()), ("released", ("was taken as a public list",))):
        session = Playing(outcome)
        opened = in_turn(monkeypatch, "_sized_session", [session])
        monkeypatch.setattr(checks, "_sized_query", lambda keys, mechanism: (keys, mechanism))
        assert checks._problems(lambda: "keys", Path("f"), 3, HOW) == wanted  # type: ignore[arg-type,return-value]
        assert opened == [((Path("f/sized3.ledger"), HOW), {})]
        assert session.asked == [(("keys", checks.Sized(Gaussian(sigma=3), floor=1)), {})]


# Labels and looks.


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (("NOT", "NOT", "NOT", "NOT"), ()),
        *[(tuple("private" if at == own else "NOT" for at in range(4)), ("calls itself private",)) for own in range(4)],
    ],
)
def test_one_file_that_calls_itself_private_is_enough(
    labels: tuple[str, ...], wanted: tuple[str, ...], monkeypatch: Patch
) -> None:
    assert checks.PRIVATE == "private"
    for number, name in enumerate(("Published", "PolicyFile")):
        monkeypatch.setattr(
            getattr(checks, name), "load", lambda path, own=labels[number]: SimpleNamespace(privacy_label=own)
        )
    monkeypatch.setattr(checks, "privacy_labels", lambda out, formats: {"t": labels[2], "u": "NOT"})
    events = [SimpleNamespace(body={"mark": each}) for each in ("private", labels[3])]
    session: Any = SimpleNamespace(history=lambda: events)
    assert checks._label_problems(Path("f"), session) == wanted


def test_noise_that_is_not_secret_and_looks_are_tried(tmp_path: Path, monkeypatch: Patch) -> None:
    sessions = [Playing(SimpleNamespace(save=lambda folder: folder)) for _ in range(2)]
    opened = in_turn(monkeypatch, "_open_session", list(sessions))
    monkeypatch.setattr(checks, "_label_problems", lambda out, session: (out.name,))
    monkeypatch.setattr(checks, "_untold", lambda path, ledger, look, how: (path.name, ledger.name))
    found = checks.audit_marks(tmp_path, HOW)
    names = ["noise from a seeded generator", "noise from a source of one's own", *checks.LOOKS]
    assert [each.subject for each in found] == [f"privacy label of {name}" for name in names]
    assert [each.problems for each in found] == [
        ("marked0",),
        ("marked1",),
        *(("marked.parquet", f"looked{number}.ledger") for number in range(5)),
    ]
    assert {each.samples for each in found} == {1}
    assert [given[1].name for given, _ in opened] == ["marked0.ledger", "marked1.ledger"]
    sources = [each.asked[0][1]["rng"] for each in sessions]
    assert [type(each).__name__ for each in sources] == ["Seeded", "ImpostorSource"]


@pytest.mark.parametrize(
    ("here", "later", "looks", "wanted"),
    [
        ("refused", "refused", {"view": 1}, ()),
        ("published", "refused", {"view": 1}, ("calls itself untuned after a look",)),
        ("refused", "published", {"view": 1}, ("calls itself untuned after a look in another session",)),
        ("refused", "refused", {"view": 2}, ("states another number of looks than there were",)),
        ("refused", "refused", {"view": 1, "other": 1}, ("states another number of looks than there were",)),
        ("refused", "refused", None, ("states another number of looks than there were",)),
    ],
)
def test_after_a_look_no_session_publishes_without_a_reason(
    here: str, later: str, looks: Any, wanted: tuple[str, ...], monkeypatch: Patch
) -> None:
    def outcome(word: str) -> Any:
        return TuningError.__new__(TuningError) if word == "refused" else "released"

    looked: list[Any] = []
    reasoned = SimpleNamespace(published=SimpleNamespace(looks=looks))
    sessions = [Playing(outcome(here)), Playing(outcome(later), reasoned)]
    in_turn(monkeypatch, "_open_session", list(sessions))
    assert checks._untold(Path("p"), Path("l"), looked.append, HOW) == wanted
    assert looked == [sessions[0]]
    assert sessions[1].tuning_reason == "an audit"  # type: ignore[attr-defined]


# Threads, and draws within a draw.


@pytest.mark.parametrize(
    ("answers", "right"),
    [
        ([40e6, 40e6, 40e6], True),
        ([40e6 + 499_999, 40e6 - 499_999, 40e6], True),
        ([40e6, 40e6, 40e6 + 500_000], False),
        ([40e6 - 500_000, 40e6, 40e6], False),
        ([20e6, 40e6, 40e6], False),
        ([None, 40e6, 40e6], True),
        ([None, None, 80e6], False),
        ([None, None, None], True),
    ],
)
def test_a_thread_knows_its_own_answer(answers: list[float | None], right: bool) -> None:
    """Ten records of 4 million each."""
    outcomes = [
        refusal() if each is None else SimpleNamespace(tables=(SimpleNamespace(data=table([each])),))
        for each in answers
    ]
    session = Playing(*outcomes)
    assert checks._right(session, 2) is right  # type: ignore[arg-type]
    assert len(session.asked) == 3
    expected = query().where("kind = 2").sum("value", Gaussian(sigma=1), alias="answer")
    assert {str(asked) for asked, _ in session.asked} == {str(expected)}
    assert all(asked == expected for asked, _ in session.asked)


@pytest.mark.parametrize("wrong", [None, 0, 3])
def test_one_thread_with_another_answer_is_enough(wrong: int | None, tmp_path: Path, monkeypatch: Patch) -> None:
    asked: list[int] = []
    opened: list[Any] = []

    class Opened(Playing):
        def __init__(self, path: Path, **more: Any) -> None:
            opened.append(pq.read_table(path).to_pydict())
            super().__init__(validate=lambda: None)

    monkeypatch.setattr(checks, "Session", Opened)
    monkeypatch.setattr(checks, "_right", lambda session, kind: asked.append(kind) or kind != wrong)
    found = checks.audit_threads(tmp_path, HOW)
    message = ("a thread received the answer to another thread's query",)
    assert (found.subject, found.samples) == ("threads that share a session", 12)
    assert found.problems == (() if wrong is None else message)
    assert sorted(asked) == [0, 1, 2, 3]
    kinds = [kind for kind in range(4) for _ in range(10)]
    assert opened == [{"id": list(range(40)), "kind": kinds, "value": [10**6 * 2**kind for kind in kinds]}]


@pytest.mark.parametrize("changed", [(), (0,), (1,)])
def test_a_draw_that_another_draw_changed_is_told(changed: tuple[int, ...], monkeypatch: Patch) -> None:
    seen: list[int] = []

    def interrupted(drawn: Callable[[], list[int]], act: Callable[[], None]) -> list[int]:
        seen.append(len(drawn()))
        act()
        return [0] if len(seen) - 1 in changed else drawn()

    monkeypatch.setattr(checks, "_run_interrupted", interrupted)
    found = checks.audit_reentry()
    assert (found.subject, found.samples) == ("draws within a draw", 1000)
    assert found.problems == (("a draw within a draw changed its noise",) if changed else ())
    assert seen == [500, 500][: len(seen)]
    assert changed == (0,) or len(seen) == 2
