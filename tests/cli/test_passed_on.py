"""What each command passes on: options reach the function that they are for, under their names and with their defaults."""

import importlib
import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from recordwise.cli import failing as failing_module
from recordwise.cli import options, screen
from recordwise.errors import OutputError, ParameterError, SourceError
from recordwise.plan.sources import Csv

Patch = pytest.MonkeyPatch
Captured = pytest.CaptureFixture[str]
asking: Any = importlib.import_module("recordwise.cli.ask")
attacking: Any = importlib.import_module("recordwise.cli.attack")
planning: Any = importlib.import_module("recordwise.cli.plan")
published: Any = importlib.import_module("recordwise.cli.published")
failing: Any = failing_module
release: Any = importlib.import_module("recordwise.cli.release")
studying: Any = importlib.import_module("recordwise.cli.studio")


class Asked(list[Any]):
    """Calls of functions in place of others, in their order."""

    def put(self, patch: Patch, place: Any, name: str, found: Any = None) -> None:
        def noted(*given: Any, **more: Any) -> Any:
            self.append((name, given, more))
            return found(*given, **more) if callable(found) else found

        patch.setattr(importlib.import_module(place) if isinstance(place, str) else place, name, noted)

    def of(self, name: str) -> Any:
        return [(given, more) for own, given, more in self if own == name]


@pytest.fixture
def asked() -> Asked:
    return Asked()


@contextmanager
def opened(*_: Any, **__: Any) -> Any:
    yield "session"


class Result:
    """A result of planning, with all that is printed of it."""

    tables, measure, privacy_label, status, worst, metric, draws = (1, 2), "m", "SYNTHETIC", "reliable", 1.5, "a_b", 7
    metric_words = "mean a b"
    infeasible = {"family": "why"}  # noqa: RUF012

    def to_json(self) -> Any:
        return {"json": True}

    def rows(self) -> Any:
        return (["row"], [["1"]])

    table_rows = rows

    def rule_sentences(self) -> Any:
        return [("t", "a rule")]

    def summary(self) -> str:
        return "a summary"

    def words(self) -> str:
        return "a sweep"

    def notes(self) -> Any:
        return ["a note"]

    def changes(self) -> Any:
        return [SimpleNamespace(row=lambda: ["a"] * 9)]

    def best_clamps(self) -> Any:
        return [SimpleNamespace(measure="emp", rho=0.5, at=20.0, mean_error=0.12345)]

    def save(self, path: Any) -> Any:
        return path

    def plot(self) -> str:
        return "a plot"


FILE = SimpleNamespace(plan="the plan", basic=None, path="p.toml", parameters={}, budget=None)


@pytest.fixture
def plan(asked: Asked, monkeypatch: Patch) -> Asked:
    """The plan commands without a plan."""
    monkeypatch.setattr(screen, "on_terminal", lambda: False)
    asked.put(monkeypatch, planning, "open_plan", FILE)
    asked.put(monkeypatch, planning, "read_goals", [SimpleNamespace(words=lambda: "a goal")] * 2)
    asked.put(monkeypatch, planning, "save_figures")
    asked.put(monkeypatch, planning, "save_plan")
    session = importlib.import_module("recordwise.session")
    monkeypatch.setattr(session, "Session", SimpleNamespace(from_plan=opened))
    return asked


def given(command: Any, **changed: Any) -> dict[str, Any]:
    """What a command is called with: its defaults, and what is said."""
    usual = {name: each.default for name, each in command.__signature__.parameters.items() if name != "plan_file"}
    return usual | {"plan_file": Path("p.toml"), "data": "synthetic", "debug": True} | changed


@pytest.mark.costly
def test_a_comparison_is_asked_for_with_its_options(plan: Asked, monkeypatch: Patch, capsys: Captured) -> None:
    plan.put(monkeypatch, "recordwise.planning.compare", "compare", Result())
    plan.put(monkeypatch, "recordwise.planning.search.goals", "usual_families", "usual")
    planning.compare(**given(planning.compare))
    ((one, more),) = plan.of("compare")
    assert one == ("session", {})
    assert more == {
        "variance": None,
        "relative_error": None,
        "at_total": None,
        "confidence": 0.95,
        "firms": False,
        "realized": False,
        "query": FILE,
        "tables": (),
        "statistics": (),
        "data": "synthetic",
        "at_least": 0,
    }
    assert plan.of("open_plan") == [((Path("p.toml"), None, None), {"data": "synthetic"})]
    assert capsys.readouterr().out.splitlines() == [
        "! SYNTHETIC",
        "",
        "Losses of the records from all of it, and 95% errors of the cells: m",
        "row",
        "  1",
        "",
        "95% errors of the cells, table by table",
        "row",
        "  1",
        "",
        "Effect of older disclosure rules on the cells of t",
        "a rule",
    ]
    changed: dict[str, Any] = {"variance": ["4"], "at_total": ["9"], "firms": True, "cells_of": ["5"], "table": ["t"]}
    planning.compare(**given(planning.compare, **changed, statistic=["s"], confidence=0.8, realized=True))
    (_, (one, more)) = plan.of("compare")
    assert one == ("session", "usual")
    assert (more["variance"], more["at_total"], more["at_least"], more["confidence"]) == ("4", "9", "5", 0.8)
    assert (more["firms"], more["realized"], more["tables"], more["statistics"]) == (True, True, ["t"], ["s"])
    planning.compare(**given(planning.compare, relative_error=["0.1"], offset="7"))
    assert plan.of("usual_families") == [(("the plan", "9"), {}), (("the plan", "7"), {})]
    capsys.readouterr()
    monkeypatch.setattr(Result, "tables", (1,))
    planning.compare(**given(planning.compare))
    text = capsys.readouterr().out
    assert "Losses of the records, and 95% errors of the cells: m" in text
    assert "table by table" not in text
    planning.compare(**given(planning.compare, as_json=True))
    assert json.loads(capsys.readouterr().out) == {"json": True}


def test_a_grid_of_thresholds_is_asked_for(plan: Asked, monkeypatch: Patch, capsys: Captured) -> None:
    plan.put(monkeypatch, "recordwise.planning.compare", "compare", Result())
    planning.compare(**given(planning.compare, threshold=["1", "2"], clamp=["emp=3"], rho=["0.5"]))
    ((one, more),) = plan.of("compare")
    assert one == ("session",)
    assert (more["rhos"], more["thresholds"], more["clamps"]) == (["0.5"], ["1", "2"], {"emp": ["3"]})
    assert capsys.readouterr().out.splitlines() == [
        "! SYNTHETIC",
        "",
        "a sweep: expected relative error of the cells",
        "row",
        "  1",
        "! emp, rho 0.5: the least mean error is at a clamp of 20, 12.35%.",
    ]


def test_a_recommendation_is_asked_for_with_its_options(plan: Asked, monkeypatch: Patch, capsys: Captured) -> None:
    plan.put(monkeypatch, "recordwise.planning.recommend", "recommend", Result())
    goals = "recordwise.planning.search.goals"
    plan.put(monkeypatch, goals, "families", "families")
    plan.put(monkeypatch, goals, "own_family", {"own": 1})
    plan.put(monkeypatch, goals, "usual_families", {"usual": 2})
    own = given(planning.recommend, within=["0.1"])
    planning.recommend(**own)
    ((one, more),) = plan.of("recommend")
    assert (one[0], len(one[1])) == ("session", 2)
    usual = {"fitted": None, "complete": None, "data": "synthetic", "rank_by": "balanced", "firms": False}
    assert more == usual | {"plan": FILE, "candidates": None, "new_budget": False}
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "! SYNTHETIC",
        "",
        "Families that meet the goals, smallest balanced loss first",
        "a goal",
        "row",
    ]
    assert lines[5:11] == ["  1", "! family: why", "a summary", "! a note", "", "What changes in the plan"]
    assert plan.of("save_plan") == []
    planning.recommend(
        **(own | {"clamps": True, "new_budget": True, "out": Path("o"), "rank_by": "p99", "firms": True})
    )
    (_, (_, more)) = plan.of("recommend")
    changed = {"candidates": "families", "new_budget": True, "rank_by": "p99", "firms": True, "plan": FILE}
    assert more == usual | changed
    assert plan.of("families") == [((), {"clamps": True})]
    assert len(plan.of("save_plan")) == 1
    capsys.readouterr()
    planning.recommend(**(own | {"by_table": True, "offset": "5", "fitted": True}))
    (_, _, (_, more)) = plan.of("recommend")
    assert more == usual | {"fitted": True, "candidates": {"own": 1, "usual": 2}, "keep_offsets": True}
    assert plan.of("usual_families") == [(("the plan", "5"), {})]
    assert "What changes" not in capsys.readouterr().out
    planning.recommend(**(own | {"keep_mechanisms": True, "complete": True}))
    *_, (one, more) = plan.of("recommend")
    assert (one[0], len(one[1])) == ("session", 2)
    assert more == {"plan": FILE, "keep_mechanisms": True, "fitted": None, "complete": True, "data": "synthetic"}
    assert capsys.readouterr().out.splitlines() == [
        "! SYNTHETIC",
        "",
        "The loss of each query, split over its levels",
        "a goal",
        "row",
        "  1",
        "The largest error is 1.5 times its goal.",
    ]


def test_a_frontier_is_asked_for_with_its_options(
    plan: Asked, monkeypatch: Patch, capsys: Captured, tmp_path: Path
) -> None:
    plan.put(monkeypatch, "recordwise.planning.frontier", "frontier", Result())
    plan.put(monkeypatch, "recordwise.planning.frontier", "recommend_within", Result())
    new = tmp_path / "f.csv"
    planning.frontier(**given(planning.frontier, loss=[0.5], out=new))
    ((one, more),) = plan.of("frontier")
    assert one == ("session", FILE)
    shared: dict[str, Any] = {"tables": (), "statistics": (), "rules": None, "at_least": 0, "fitted": None}
    shared |= {"complete": None, "data": "synthetic"}
    assert more == shared | {"rank_by": "median", "losses": [0.5]}
    assert capsys.readouterr().out.splitlines() == [
        "! SYNTHETIC",
        "",
        "Share of the cells that are reliable, by the median loss of the records",
        "row",
        "  1",
        "a summary",
        f"wrote {new}",
    ]
    limits: dict[str, Any] = {"median": 0.5, "p99": 2.0, "loss_at": ["emp=4:1"], "within_budget": True}
    planning.frontier(**given(planning.frontier, **limits, out=new))
    ((one, more),) = plan.of("recommend_within")
    assert one == ("session", FILE)
    assert more == shared | {"median": 0.5, "p99": 2.0, "at": [({"emp": 4}, 1.0)], "budget": True}
    assert capsys.readouterr().out.splitlines()[2:7] == [
        "The most reliable plan within these losses",
        "a summary",
        "row",
        "  1",
        "! a note",
    ]
    assert len(plan.of("save_plan")) == 1
    for name, each in limits.items():
        for taken, word in ({"plot": [Path("a.png")]}, "--plot"), ({"loss": [1.0]}, "--loss"):
            with pytest.raises(ParameterError, match=f"{word} is for the whole frontier"):
                planning.frontier(**given(planning.frontier, **{name: each}, **taken))
    new.touch()
    with pytest.raises(ParameterError, match="already exists"):
        planning.frontier(**given(planning.frontier, out=new))


def test_an_evaluation_is_asked_for_with_its_options(plan: Asked, monkeypatch: Patch, capsys: Captured) -> None:
    plan.put(monkeypatch, "recordwise.planning.simulate.evaluate", "evaluate", Result())
    plan.put(monkeypatch, planning, "read_baseline", lambda name, *_: f"rule {name}")

    @contextmanager
    def other(*given: Any, **more: Any) -> Any:
        plan.append(("other", given, more))
        yield "their plan", "their session"

    monkeypatch.setattr(importlib.import_module("recordwise.planning.simulate.rehearse"), "on_other_records", other)
    planning.evaluate(**given(planning.evaluate))
    ((one, more),) = plan.of("evaluate")
    assert one == ("session", FILE)
    assert more == {
        "metric": "relative_error",
        "by": None,
        "baselines": {},
        "fit": None,
        "tables": (),
        "statistics": (),
        "draws": 20,
        "seed": 0,
        "data": "synthetic",
    }
    assert capsys.readouterr().out.splitlines()[1:5] == ["", "Mean a b of the cells over 7 draws", "row", "  1"]
    changed: dict[str, Any] = {
        "rows": 50,
        "data": "confidential",
        "baseline": ["ranges,rounding"],
        "draws": 3,
        "seed": 9,
    }
    planning.evaluate(**given(planning.evaluate, **changed, clamp_to=["emp=1"], clamped_rho="2"))
    (_, (one, more)) = plan.of("evaluate")
    assert one == ("their session", FILE)
    assert more["baselines"] == {"ranges": "rule ranges", "rounding": "rule rounding"}
    assert (more["draws"], more["seed"], more["data"]) == (3, 9, "synthetic")
    assert plan.of("read_baseline")[0] == (("ranges", FILE, ["emp=1"], "2"), {})
    records: dict[str, Any] = {"records": None, "rows": 50, "seed": 9, "data": "confidential"}
    assert plan.of("other") == [((FILE,), {"command": "plan evaluate"} | records)]
    planning.evaluate(**given(planning.evaluate, records=Path("r"), rows=5, data="past"))
    assert plan.of("other")[1][1]["data"] == "past"
    assert plan.of("evaluate")[2][1]["data"] == "past"


# Questions to a published folder.


@pytest.fixture
def reader(asked: Asked, monkeypatch: Patch) -> Asked:
    answer = SimpleNamespace(
        rank=lambda: "ranks", replicates=lambda: SimpleNamespace(save=lambda p: asked.append(("save", p, 0)))
    )
    found = SimpleNamespace()
    for name in ("total", "share", "growth"):
        setattr(found, name, lambda *given, name=name, **more: asked.append((name, given, more)) or answer)
    monkeypatch.setattr(
        "recordwise.reader.reading.read", lambda folder: found if str(folder) == "d" else f"read {folder}"
    )
    asked.put(monkeypatch, "recordwise.reader.reading", "problems", [])
    asked.put(monkeypatch, asking, "_print")
    return asked


def question(**more: Any) -> None:
    import inspect

    usual = {name: each.default for name, each in inspect.signature(asking.ask).parameters.items()}
    asking.ask(**(usual | {"folder": Path("d"), "name": "emp", "debug": True} | more))


def test_a_question_is_about_totals_shares_or_growth(reader: Asked, capsys: Captured) -> None:
    usual: dict[str, Any] = {"by": None, "regions": None, "complete": None}
    question()
    assert reader.of("total") == [(("emp", None), {"nonnegative": False, "query": None} | usual)]
    assert reader.of("_print")[0][1] == {"verified": False, "as_csv": False, "as_json": False}
    question(where=["a=1"], by="county", nonnegative=True, complete=True, query=2, rank=3, verify=True)
    expected = {"by": "county", "regions": None, "complete": True, "nonnegative": True, "query": 2}
    assert reader.of("total")[1] == (("emp", "a in ('1')"), expected)
    assert reader.of("_print")[1] == (("ranks", 3), {"verified": True, "as_csv": False, "as_json": False})
    question(by="Zones.CSV", codes="county", share_of="all", each=True)
    assert reader.of("share") == [
        (
            ("emp", None),
            {"of": None, "each": True, "query": None, "by": "county", "regions": "Zones.CSV", "complete": None},
        )
    ]
    question(share_of="b=2", replicates=Path("r.csv"))
    assert reader.of("share")[1][1]["of"] == "b in ('2')"
    assert ("save", Path("r.csv"), 0) in reader
    question(growth_from=[Path("x"), Path("y")], where=["a=1"])
    assert reader.of("growth") == [(("emp", "read x", "read y"), {"where": "a in ('1')"} | usual)]


def test_files_that_changed_are_told_before_anything_is_read(
    asked: Asked, monkeypatch: Patch, capsys: Captured
) -> None:
    asked.put(monkeypatch, "recordwise.reader.reading", "problems", ["one", "two"])
    with pytest.raises(typer.Exit) as stopped:
        question(verify=True)
    assert stopped.value.exit_code == 2
    assert capsys.readouterr() == ("", "one\ntwo\n")


def test_an_attack_is_on_these_tables_or_with_earlier_ones(
    asked: Asked, monkeypatch: Patch, capsys: Captured, tmp_path: Path
) -> None:
    def attacked(what: Any) -> Any:
        return SimpleNamespace(
            counts=lambda: {"of": str(what)},
            summary=lambda: f"what {what} tells",
            assumptions=("nothing", "more"),
            save=lambda path: asked.append(("save", what, path)),
        )

    asked.put(monkeypatch, "recordwise.disclosure.attack", "attack", attacked)
    asked.put(monkeypatch, "recordwise.disclosure.attack", "read_description", "both")
    new = tmp_path / "i.csv"
    attacking.attack(tables=Path("t"), known=None, out=None, as_json=False, debug=True)
    hint = "Use --out FILE for the interval of each cell.\n"
    assert capsys.readouterr().out == f"These tables: what t tells\n\nAssumed: nothing\nAssumed: more\n{hint}"
    attacking.attack(tables=Path("t"), known=Path("k"), out=new, as_json=False, debug=True)
    assert asked.of("read_description") == [((Path("k"), Path("t")), {})]
    assert ("save", "both", new) in asked
    assert capsys.readouterr().out == (
        "The tables published earlier, alone: what k tells\nTogether with these tables: what both tells\n"
        "What the tables published earlier give away alone, no later release protects.\n\n"
        f"Assumed: nothing\nAssumed: more\nThe intervals are in {new}.\n"
    )
    attacking.attack(tables=Path("t"), known=None, out=None, as_json=True, debug=True)
    assert json.loads(capsys.readouterr().out) == {"These tables": {"of": "t"}}
    new.touch()
    with pytest.raises(ParameterError, match="already exists"):
        attacking.attack(tables=Path("t"), known=None, out=new, as_json=False, debug=True)


def test_the_studio_is_served_for_a_plan_or_a_folder(asked: Asked, monkeypatch: Patch, tmp_path: Path) -> None:
    asked.put(monkeypatch, "recordwise.studio.server", "serve")
    asked.put(monkeypatch, studying, "load_with_parameters")
    monkeypatch.chdir(tmp_path)

    def start(**more: Any) -> Any:
        usual: dict[str, Any] = {
            "plan": None,
            "records": None,
            "data": "confidential",
            "given": None,
            "no_browser": False,
        }
        studying.studio(**(usual | more), debug=True)
        (desk,), served = asked.of("serve")[-1]
        assert served["tell"] is typer.echo
        return desk, served["browser"]

    desk, browser = start()
    assert (desk.folder, desk.subject, browser) == (tmp_path, None, True)
    plan, records = tmp_path / "sub" / "p.toml", tmp_path / "r"
    records.touch()
    desk, browser = start(plan=plan, records=records, data="past", given=["a=1"], no_browser=True)
    assert (desk.folder, browser) == (plan.parent, False)
    subject = desk.subject
    assert (subject.plan, subject.records, subject.declared, subject.parameters) == (
        plan,
        records,
        "past",
        {"a": "1"},
    )
    for more, words in (({"records": Path("r")}, "--records needs a plan"), ({"given": ["a=1"]}, "--set needs a plan")):
        with pytest.raises(ParameterError, match=words):
            start(**more)


# A release and its stages.


@dataclass(frozen=True)
class Plan:
    """As much of a plan file as stages need."""

    stage: Any = None
    source: Any = "records"


def staged(file: Any, old: Path | None = None, **folders: Any) -> Any:
    named = dict.fromkeys(("refine", "carry", "revise", "tier_of")) | folders
    return release.with_stage(file, old, **named)


def test_a_stage_is_named_once(tmp_path: Path) -> None:
    from recordwise.plan.file.read import PlannedStage

    bare: Any = Plan()
    assert staged(bare) is bare
    assert staged(bare, carry=tmp_path).stage == PlannedStage(carry=tmp_path)
    assert staged(bare, Path("old"), revise=tmp_path).stage.old_records == ("old",)
    text = Csv("new.csv", encoding="cp1252")
    assert staged(Plan(source=text), Path("old.csv"), revise=tmp_path).stage.old_records == Csv(
        "old.csv", encoding="cp1252"
    )
    same: Any = Plan(stage=PlannedStage(carry=tmp_path / "x" / ".."))
    assert staged(same, carry=tmp_path).stage == same.stage
    with pytest.raises(ParameterError, match=r"--carry and \[stage\] of the plan name different folders"):
        staged(Plan(stage=PlannedStage(carry=tmp_path / "other")), carry=tmp_path)
    with pytest.raises(ParameterError, match=r"--tier-of and \[stage\] of the plan name different folders"):
        staged(same, tier_of=tmp_path)
    with pytest.raises(ParameterError, match="--refine is given with another stage"):
        staged(bare, refine=tmp_path, carry=tmp_path)


class Saving:
    """A release that can be saved in some folders only."""

    def __init__(self, *failing: str) -> None:
        self.failing, self.saved = failing, list[Any]()

    def save(self, folder: Path, formats: Any) -> None:
        self.saved.append((folder, formats))
        if {folder.name, folder.parent.name} & set(self.failing):
            raise OutputError(folder=str(folder), problem="cannot be written", advice="")


def test_a_release_that_cannot_be_saved_is_saved_elsewhere_or_kept(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(release, "writable", lambda done, formats: formats)
    monkeypatch.setattr(release.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    file: Any = SimpleNamespace(formats=("csv",), ledger=tmp_path / "books" / "l")
    out = tmp_path / "out"

    def save(*failing: str, recoverable: bool = False) -> Any:
        done = Saving(*failing)
        release.save_release(done, file, out, recoverable=recoverable)  # type: ignore[arg-type]
        return done

    assert save().saved == [(out, ("csv",))]
    with pytest.raises(OutputError, match="run the same command with --resume"):
        save("out", recoverable=True)
    with pytest.raises(OutputError, match=r"complete release was saved in .*/books/out-rescued instead"):
        save("out")
    with pytest.raises(OutputError, match=r"complete release was saved in .*/temporary/out-rescued instead"):
        save("out", "books")
    with pytest.raises(OutputError, match="the release is lost"):
        save("out", "books", "temporary")


class Refusing:
    """A release of which something cannot be made."""

    digest, head = "d", "h"

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses

    def made(self, *given: Any, **more: Any) -> Any:
        if self.refuses:
            raise ParameterError(parameter="p", problem="is wrong")
        return (given, more)

    basic = with_history = made


def test_what_cannot_be_added_to_a_release_is_told_and_left_out(capsys: Captured) -> None:
    basic = SimpleNamespace(fit="f", complete="c", units="u", rules="r")
    file: Any = SimpleNamespace(basic=basic)
    good: Any = Refusing(refuses=False)
    bad: Any = Refusing(refuses=True)
    assert release.with_basic(bad, SimpleNamespace(basic=None)) is bad  # type: ignore[arg-type]
    assert release.with_basic(good, file) == ((), {"fit": "f", "complete": "c", "units": "u", "rules": "r"})
    assert release.with_history(good, ["a", "b"]) == (("a", "b"), {})  # type: ignore[list-item]
    assert capsys.readouterr().err == ""
    assert release.with_basic(bad, file) is bad
    assert release.with_history(bad, []) is bad
    assert capsys.readouterr().err == (
        "recordwise: p is wrong. The release is saved without basic tables.\n"
        "recordwise: p is wrong. The page is saved without earlier periods.\n"
    )


def test_formats_that_cannot_hold_a_release_are_left_out(monkeypatch: Patch, capsys: Captured) -> None:
    registry = importlib.import_module("recordwise.release.formats.registry")
    monkeypatch.setattr(registry, "formats_named", lambda names: [SimpleNamespace(name=name) for name in names])

    def storable(content: Any, formats: Any) -> None:
        assert content == "content"
        if formats[0].name == "xlsx":
            raise ParameterError(parameter="xlsx", problem="is too small")

    monkeypatch.setattr(registry, "require_storable", storable)
    done: Any = SimpleNamespace(content=lambda: "content")
    assert release.writable(done, ("csv", "xlsx", "parquet")) == ("csv", "parquet")
    assert capsys.readouterr().err == "recordwise: xlsx is too small. The release is saved without it.\n"


def test_a_folder_is_complete_if_it_holds_this_release(monkeypatch: Patch) -> None:
    files = importlib.import_module("recordwise.release.files")
    done: Any = SimpleNamespace(digest="d", head="h")
    for digest, head, wanted in (("d", "h", True), ("x", "h", False), ("d", "x", False)):
        monkeypatch.setattr(files, "load_release", lambda out, d=digest, h=head: SimpleNamespace(digest=d, head=h))
        assert release.is_complete(Path("o"), done) is wanted

    def none(out: Path) -> Any:
        raise SourceError(source="o", problem="is none")

    monkeypatch.setattr(files, "load_release", none)
    assert release.is_complete(Path("o"), done) is False


@pytest.mark.parametrize("refused", [False, True])
def test_the_cost_is_confirmed_on_a_terminal(refused: bool, asked: Asked, monkeypatch: Patch, capsys: Captured) -> None:
    file: Any = SimpleNamespace(path="p.toml", parameters={"a": "1"}, ledger=Path("books/l.db"))
    monkeypatch.setattr(failing.sys, "stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(typer.Exit) as stopped:
        release.confirm(file)
    assert stopped.value.exit_code == 2
    assert "pass --yes. Nothing was spent." in capsys.readouterr().err
    monkeypatch.setattr(failing.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    found = SimpleNamespace(refusal="recordwise ledger amend PLAN" if refused else None, warnings=["a warning"])
    asked.put(monkeypatch, "recordwise.planning.check", "check", found)
    asked.put(monkeypatch, "recordwise.cli.check", "show_losses")
    asked.put(monkeypatch, failing.typer, "confirm", True)
    if refused:
        with pytest.raises(typer.Exit) as stopped:
            release.confirm(file)
        assert stopped.value.exit_code == 3
        assert capsys.readouterr().err == "recordwise: recordwise ledger amend p.toml --set a=1\n"
        assert asked.of("confirm") == []
    else:
        release.confirm(file)
        # Where the question is: standard output holds the report alone, which may be one JSON object.
        assert capsys.readouterr() == ("", "! a warning\n")
        words = "Charge this to l.db and publish? This cannot be undone."
        assert asked.of("confirm") == [((words,), {"err": True})]
        assert asked.of("show_losses") == [((found,), {})]
        asked.put(monkeypatch, failing.typer, "confirm", False)
        with pytest.raises(typer.Exit) as stopped:
            release.confirm(file)
        assert (stopped.value.exit_code, "not confirmed. Nothing was spent." in capsys.readouterr().err) == (2, True)
    assert asked.of("check")[:1] == [((file,), {"source": False})]


# What is done with a published folder.


def usual(command: Any, **more: Any) -> dict[str, Any]:
    import inspect

    found = {name: each.default for name, each in inspect.signature(command).parameters.items()}
    return found | {"debug": True} | more


def test_a_published_folder_is_fitted_with_what_was_asked(
    asked: Asked, monkeypatch: Patch, capsys: Captured, tmp_path: Path
) -> None:
    fitted = SimpleNamespace(
        save=lambda out, formats: asked.append(("save", out, formats)),
        published=SimpleNamespace(fit=SimpleNamespace(to_json=lambda: {"fit": 1})),
        to_json=lambda: {"made": 1},
    )
    found = SimpleNamespace()
    for name in ("consistent", "records"):
        setattr(found, name, lambda *given, name=name, **more: asked.append((name, given, more)) or fitted)
    asked.put(monkeypatch, "recordwise.release.files", "load_release", found)
    asked.put(monkeypatch, published, "show_fit")
    asked.put(monkeypatch, published, "show_records")
    out = tmp_path / "out"
    published.postprocess(**usual(published.postprocess, folder=Path("d"), out=out))
    shared: dict[str, Any] = {"method": "top_down", "priority": None, "complete": False, "gamma": 0.99, "slack": 0.01}
    assert asked.of("consistent") == [((), shared | {"zero_counts": False, "at_most": {}, "draws": None})]
    assert ("save", out, ("parquet", "csv")) in asked
    assert len(asked.of("show_fit")) == 1
    changed: dict[str, Any] = {
        "zero_counts": True,
        "at_most": ["a=b"],
        "draws": 5,
        "formats": ["parquet"],
        "gamma": 0.9,
    }
    published.postprocess(**usual(published.postprocess, folder=Path("d"), out=out, as_json=True, **changed))
    expected = {"zero_counts": True, "at_most": {"a": "b"}, "draws": 5, "gamma": 0.9}
    assert asked.of("consistent")[1] == ((), shared | expected)
    assert ("save", out, ("parquet",)) in asked
    assert json.loads(capsys.readouterr().out) == {"folder": str(out), "fit": 1}
    for kind in ("weighted", "whole"):
        more: dict[str, Any] = {"records": kind, "of": "n", "values": ["emp"]}
        published.postprocess(**usual(published.postprocess, folder=Path("d"), out=out, **more))
        weighted = {"weighted": kind == "weighted", "whole": kind == "whole", "of": "n", "values": ["emp"]}
        assert asked.of("records")[-1] == ((), shared | weighted)
    assert len(asked.of("show_records")) == 2
    published.postprocess(**usual(published.postprocess, folder=Path("d"), out=out, records="whole", as_json=True))
    assert asked.of("records")[-1][1]["values"] == ()
    assert json.loads(capsys.readouterr().out) == {"folder": str(out), "made": 1}


def test_changes_are_asked_for_from_before_to_now(
    asked: Asked, monkeypatch: Patch, capsys: Captured, tmp_path: Path
) -> None:
    found = SimpleNamespace(
        to_json=lambda: {"changed": 1}, save=lambda out, formats: asked.append(("save", out, formats))
    )

    def loaded(folder: Path) -> Any:
        return SimpleNamespace(
            name=str(folder),
            change=lambda before, **more: asked.append(("change", (str(folder), before.name), more)) or found,
        )

    monkeypatch.setattr(importlib.import_module("recordwise.release.files"), "load_release", loaded)
    asked.put(monkeypatch, published, "show_change")
    asked.put(monkeypatch, published, "_verify", lambda ledger, folders: str(ledger) == "good")
    asked.put(
        monkeypatch, published, "_code_pairs", lambda text, option, one, two: (f"{option} {one} {two}", [(text, "x")])
    )
    own = usual(published.change, before=Path("b"), now=Path("n"))
    published.change(**own)
    assert asked[0] == ("change", ("n", "b"), {"crosswalk": {}, "groups": {}})
    assert asked.of("show_change") == [((found, None), {})]
    out = tmp_path / "out"
    published.change(
        **(own | {"out": out, "crosswalk": ["w"], "groups": ["g"], "ledger": Path("good"), "as_json": True})
    )
    told = {"crosswalk": {"--crosswalk before now": [("w", "x")]}, "groups": {"--groups code region": {"g": "x"}}}
    assert ("change", ("n", "b"), told) in asked
    assert ("save", out, ["csv"]) in asked
    assert json.loads(capsys.readouterr().out) == {"changed": 1, "folder": str(out)}
    published.change(**(own | {"out": out, "formats": ["xlsx"]}))
    assert ("save", out, ["xlsx"]) in asked
    published.change(**(own | {"as_json": True}))
    assert json.loads(capsys.readouterr().out)["folder"] is None
    with pytest.raises(typer.Exit) as stopped:
        published.change(**(own | {"ledger": Path("bad")}))
    assert stopped.value.exit_code == 2
    assert asked.of("_verify")[-1] == ((Path("bad"), [Path("b"), Path("n")]), {})


def test_a_table_is_exported_in_another_format(asked: Asked, monkeypatch: Patch, capsys: Captured) -> None:
    found = SimpleNamespace(
        export=lambda out, **more: asked.append(("export", out, more)) or Path("made"), privacy_label="private"
    )
    asked.put(monkeypatch, "recordwise.release.files", "load_release", found)
    own = usual(published.export, folder=Path("d"), format="csv", out=Path("o"))
    published.export(**own)
    assert ("export", Path("o"), {"format": "csv", "table": None}) in asked
    assert capsys.readouterr().out == "Written to made.\n"
    published.export(**(own | {"table": "t", "as_json": True}))
    assert ("export", Path("o"), {"format": "csv", "table": "t"}) in asked
    assert json.loads(capsys.readouterr().out) == {"file": "made", "format": "csv", "privacy_label": "private"}


def test_goals_are_those_of_the_command_line(asked: Asked, monkeypatch: Patch) -> None:
    asked.put(monkeypatch, "recordwise.planning.search.goals", "plan_goals", "goals")
    own = SimpleNamespace(within=["0.1"], confidence=0.8, share="0.5", at_least=None, table=None, statistic=["s"])
    assert options.read_goals("session", "file", own) == "goals"  # type: ignore[arg-type]
    more: dict[str, Any] = {"within": "0.1", "confidence": 0.8, "share": "0.5", "at_least": 0, "tables": ()}
    assert asked == [("plan_goals", ("session", "file"), more | {"statistics": ["s"]})]
