"""Drawing by hand: which selected cells are kept and where they go, in what order tables are drawn, what may be published."""

import threading
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.errors import ExternalError
from recordwise.mechanisms import key_selection
from recordwise.mechanisms.key_selection import EmptyCells, truncated_deviations, truncated_intervals
from recordwise.mechanisms.quantile import Grid
from recordwise.noise import Seeded
from recordwise.plan import Plan, Schema
from recordwise.plan.statistics import BinCounts, ExactTable
from recordwise.release import draw

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"})
NOISE = rw.Gaussian(sigma=2)
THRESHOLD = 4


class Exactly:
    """No noise at all."""

    def add_to(self, counts: Any, rng: Any) -> Any:
        return np.asarray(counts)


@dataclass(frozen=True)
class Plain:
    """A selection without noise: keys of so many pieces are kept and no others."""

    law: Any
    alias: str = "rows"

    def total(self) -> str:
        return "pieces"


def selecting(keys: rw.Keys, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, Any]:
    """A plan whose selection adds no noise."""
    plan = Plan(schema=SCHEMA, queries=(rw.query().group_by("county", keys=keys).count(NOISE),))
    (table,) = plan.tables()
    own = plan.selection(table)
    assert own is not None
    law = SimpleNamespace(noise=Exactly(), threshold=THRESHOLD)
    monkeypatch.setattr(Plan, "selection", lambda self, table: Plain(law))
    monkeypatch.setattr(draw, "_counts", lambda selection, noisy, **how: (noisy.tolist(), how))
    return plan, table


def held(*pieces: int) -> ExactTable:
    count = len(pieces)
    totals: Any = {"pieces": np.array(pieces), "emp": 10 * np.arange(1, count + 1)}
    return ExactTable(cells=count, totals=totals, bins={})


def test_a_key_at_the_threshold_is_kept_and_one_below_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, table = selecting(rw.Keys.select(rho=1, delta="1e-6"), monkeypatch)
    cells = pa.table({"county": ["a", "b", "c", "d"]})
    kept, moved, counts = draw.select_cells(plan, table, cells, held(5, 3, 4, 0), Seeded(1), confidence=0.8)
    assert kept.to_pydict() == {"county": ["a", "c"]}
    assert moved.cells == 2
    assert {str(name): each.tolist() for name, each in moved.totals.items()} == {"pieces": [5, 4], "emp": [10, 30]}
    assert counts == ([5, 4], {"least": 1, "confidence": 0.8})


def test_keys_of_a_domain_are_kept_in_its_order_with_empty_ones_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cell of the domain holds records; a cell outside of it is not counted, whatever it holds."""
    domain = {"county": ["a", "b", "c", "d", "e"]}
    plan, table = selecting(rw.Keys.select_from(domain, rho=1, threshold=THRESHOLD), monkeypatch)
    asked: list[Any] = []

    def empty(size: int, occupied: Any, law: Any, rng: Any) -> EmptyCells:
        asked.append((size, occupied.tolist()))
        return EmptyCells(positions=np.array([1, 4]), noisy=np.array([7, 9]))

    monkeypatch.setattr(key_selection, "passing_empty_cells", empty)
    cells = pa.table({"county": ["d", "outside", "a", "c"]})
    kept, moved, counts = draw.select_cells(plan, table, cells, held(4, 99, 6, 3), Seeded(1), confidence=0.9)
    assert asked == [(5, [0, 2, 3])]
    assert kept.to_pydict() == {"county": ["a", "b", "d", "e"]}
    assert moved.cells == 4
    assert {str(name): each.tolist() for name, each in moved.totals.items()} == {
        "pieces": [6, 0, 4, 0],
        "emp": [30, 0, 10, 0],
    }
    assert counts == ([6, 7, 4, 9], {"least": 0, "confidence": 0.9})


@pytest.mark.parametrize("least", [0, 1])
def test_counts_that_decided_have_the_errors_of_their_law(least: int) -> None:
    plan = Plan(
        schema=SCHEMA,
        queries=(rw.query().group_by("county", keys=rw.Keys.select(rho="0.1", delta="1e-3")).count(NOISE),),
    )
    selection = plan.selection(plan.tables()[0])
    assert selection is not None
    noisy = np.array([selection.law.threshold, selection.law.threshold + 3])
    found = draw._counts(selection, noisy, least=least, confidence=0.8)
    low, high = truncated_intervals(selection.law, noisy, confidence=0.8, least=least)
    assert (found.low.tolist(), found.high.tolist()) == (low.tolist(), high.tolist())  # type: ignore[union-attr]
    deviations = truncated_deviations(selection.law, noisy, least=least)
    assert found.standard_error.tolist() == deviations.tolist()  # type: ignore[union-attr]
    assert found.value.tolist() == noisy.tolist()
    assert found.flag == draw.SELECTED_ON


def test_bins_at_the_first_row_stay_and_those_of_no_row_leave() -> None:
    bins = BinCounts(position=np.array([2, 0, 1]), point=np.array([5, 6, 7]), held=np.array([1, 2, 3], dtype=object))
    moved = draw._move_bins(bins, np.array([1, -1, 0]))
    assert (moved.position.tolist(), moved.point.tolist(), moved.held.tolist()) == ([0, 1], [5, 6], [1, 2])


def test_totals_are_drawn_before_quantiles_whatever_their_order() -> None:
    asked = rw.query().group_by("county", keys={"county": ["a", "b"]})
    asked = asked.quantile("emp", p="0.5", grid=Grid.log(1, 100, bits=3), rho=1, alias="half").count(NOISE, alias="n")
    plan = Plan(schema=SCHEMA, queries=(asked,))
    (table,) = plan.tables()
    prepared = draw.prepare_table(plan, table, plan.cells(table), confidence=0.7)
    aliases = [each.statistic.alias for each in prepared.drawn]
    assert aliases[0] == "n"
    assert len(aliases) == 2
    assert [each.alias for each in prepared.statistics] == ["half", "n"]
    assert prepared.confidence == 0.7
    empty = draw.prepare_table(plan, table, plan.cells(table).slice(0, 0), confidence=0.7)
    assert [len(each.served) for each in empty.drawn] == [1, 1]
    assert all(len(own.run.rows) == 0 for each in empty.drawn for own in each.served)


def test_a_table_without_cells_has_the_first_mechanism_at_no_row() -> None:
    some = (object(), object())
    part: Any = SimpleNamespace(mechanisms_of=lambda cells: some, mechanisms=("first", "second"))
    assert draw._cell_mechanisms(part, pa.table({})) is some
    part.mechanisms_of = lambda cells: ()
    (own,) = draw._cell_mechanisms(part, pa.table({}))
    assert own.mechanism == "first"
    assert own.run.at is None
    assert own.run.rows.tolist() == []


def test_tables_are_drawn_in_turn_and_computed_in_their_order() -> None:
    """The second is drawn while the first waits to be computed."""
    told: list[str] = []
    second_drawn = threading.Event()

    def compute(name: str) -> Any:
        def computed() -> Any:
            assert second_drawn.wait(10)
            told.append(f"computed {name}")
            return name

        return computed

    def drawn() -> Any:
        for name in ("one", "two", "three"):
            told.append(f"drawn {name}")
            if name == "two":
                second_drawn.set()
            yield compute(name)

    assert draw.in_turn(drawn()) == ("one", "two", "three")
    assert [each for each in told if each.startswith("computed")] == ["computed one", "computed two", "computed three"]


def test_every_mechanism_is_tried_at_the_confidence_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = rw.query().group_by("county", keys={"county": ["a"]}).count(NOISE, alias="n")
    plan = Plan(schema=SCHEMA, queries=(asked.avg("emp", sum=NOISE, count=rw.Gaussian(sigma=3), alias="m"),))
    (table,) = plan.tables()
    tried: list[Any] = []
    kinds = {type(statistic) for _, statistic in plan.drawn(table)}
    for kind in kinds:
        monkeypatch.setattr(
            kind,
            "dry_run",
            lambda self, mechanism, schema, *, confidence: tried.append((self.alias, mechanism, schema, confidence)),
        )
    draw.dry_run(plan, table, confidence=0.9)
    parts = plan.queries[0].confidence_of_parts(0.9)
    assert tried == [
        (statistic.alias, mechanism, SCHEMA, parts)
        for part, statistic in plan.drawn(table)
        for mechanism in part.mechanisms
    ]


def test_keys_that_are_not_selected_from_a_domain_are_looked_up_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []

    def bound(groups: Any, schema: Any) -> Any:
        assert (groups, schema) == ((), SCHEMA)
        return SimpleNamespace(locate=looked.append)

    domain = SimpleNamespace(bound=bound)
    for selection, public, expected in ((None, domain, 0), ("some", None, 0), ("some", domain, 1)):
        plan: Any = SimpleNamespace(
            domain=lambda table, own=public: own, selection=lambda table, own=selection: own, schema=SCHEMA
        )
        looked.clear()
        draw.dry_run_selection(plan, SimpleNamespace(shape=SimpleNamespace(groups=())), pa.table({"a": [1]}))  # type: ignore[arg-type]
        assert len(looked) == expected


def test_results_of_external_mechanisms_become_plain_tables() -> None:
    coded = pa.chunked_array([pa.array(["x", "y", "x"]).dictionary_encode()])
    assert draw._plain(coded).type == pa.string()
    for kind in (pa.large_string(), pa.string_view()):
        assert draw._plain(pa.chunked_array([pa.array(["x"], kind)])).type == pa.string()
    assert draw._plain(pa.chunked_array([pa.array([1.5])])).type == pa.float64()
    assert draw.external_table(7, "own").to_pydict() == {"value": [7]}
    assert draw.external_table([1.5, 2.5], "own").to_pydict() == {"value": [1.5, 2.5]}
    assert draw.external_table({"a": [1], "b": ["x"]}, "own").to_pydict() == {"a": [1], "b": ["x"]}
    assert draw.external_table(pa.table({"a": [1]}), "own").to_pydict() == {"a": [1]}
    for wrong in (object(), {"a": [[1]]}, [b"x"], {"a": [1], "b": [1, 2]}):
        with pytest.raises(ExternalError, match=r"own.*not a table, list or number"):
            draw.external_table(wrong, "own")


def test_a_table_that_was_prepared_selects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(schema=SCHEMA, queries=(rw.query().group_by("county", keys={"county": ["a", "b"]}).count(NOISE),))
    (table,) = plan.tables()
    cells = plan.cells(table)
    prepared = draw.prepare_table(plan, table, cells, confidence=0.95)
    exact = ExactTable(cells=2, totals={each: np.array([1000, 2000]) for each in table.totals}, bins={})
    made = draw.publish_table(plan, table, cells, exact, prepared, Seeded(1), confidence=0.95)()
    assert (made.keys, made.variables) == (("county",), ("count",))
    assert [round(each / 1000) for each in made.data.column("count").to_pylist()] == [1, 2]
    wider = draw.publish_table(
        plan, table, cells, exact, replace(prepared, confidence=0.5), Seeded(1), confidence=0.95
    )()
    width = [each.data.column("count_high")[0].as_py() - each.data.column("count")[0].as_py() for each in (made, wider)]
    assert width == [4, 1]
