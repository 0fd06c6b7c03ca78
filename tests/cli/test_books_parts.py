"""What ``ledger``, ``release``, ``check`` and commands on published folders read and print, part by part."""

import importlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import typer

from recordwise.cli import audit, check, ledger, published, release, screen
from recordwise.errors import OutputError, ParameterError
from recordwise.ledger.chain import Event
from recordwise.ledger.entries import PeriodState
from recordwise.plan.file.read import PlannedStage
from recordwise.policy import Policy, constant, gaussian_sum

Patch = pytest.MonkeyPatch
Captured = pytest.CaptureFixture[str]
ask: Any = importlib.import_module("recordwise.cli.ask")


@pytest.fixture(autouse=True)
def in_a_pipe(monkeypatch: Patch) -> None:
    monkeypatch.setattr(screen, "on_terminal", lambda: False)


def said(capsys: Captured) -> str:
    return " ".join(capsys.readouterr().out.split())


# The books.


def event(kind: str, sequence: int = 3, /, **body: Any) -> Event:
    return Event(sequence=sequence, time="2026-01-02T03:04:05.678901Z", kind=kind, body=body, digest="")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (event("opened", dataset="d"), "for 'd'"),
        (event("opened", dataset="d", period="2026"), "for 'd', period 2026"),
        (
            event("opened", dataset="d", amendments=[{"reason": "old"}, {"reason": "new"}]),
            "for 'd'; budget amended: new",
        ),
        (event("opened", dataset="d", amendments=[]), "for 'd'"),
        (event("reserved", revisions=2, reserved_by=7), "for 2 revision(s) of charge 7; no other release may use it"),
        (event("looked"), "confidential records were viewed; a later release needs tuning_reason"),
        (
            event("looked", command="preflight", plan="0123456789abcdef"),
            "preflight of plan 0123456789ab: confidential records were viewed; a later release needs tuning_reason",
        ),
        (
            event("looked", command="studio"),
            "studio: confidential records were viewed; a later release needs tuning_reason",
        ),
        (
            event("preflight", plan="0123456789abcdef"),
            "records were held against the keys of plan 0123456789ab, as an earlier version noted a look",
        ),
        (event("charged", query="q"), "q"),
        (event("charged", query="q", period="2026"), "q (2026)"),
        (event("charged", query="q", period="2026", revision=0), "q (2026)"),
        (event("charged", query="q", period="2026", revision=2), "q (2026, revision 2)"),
        (event("charged", query="q", refines=4), "q, refines charge 4"),
        (event("charged", query="q", tier={"of": 5}), "q, a tier of charge 5: nothing is charged"),
        (event("charged", query="q", tier=5), "q, a tier of charge 5: nothing is charged"),
        (event("charged", query="q", step={"kind": "carry", "follows": 6}), "q, carries the noise of charge 6"),
        (event("charged", query="q", step={"kind": "revise", "follows": 6}), "q, corrects charge 6"),
        (event("charged", query="q", step={"kind": "start", "follows": None}), "q"),
        (event("charged", query="q", step="revise", follows=6), "q, corrects charge 6"),
        (event("released", charge=3, digest="0123456789abcdef"), "charge 3, digest 0123456789ab"),
        (event("failed", charge=3, kind="ValueError"), "charge 3: ValueError; it stays spent"),
    ],
)
def test_an_entry_is_a_row(given: Event, what: str) -> None:
    assert ledger._row(given) == ["3", "2026-01-02 03:04:05", given.kind, what]


def test_the_running_sum_is_left_out_of_an_entry() -> None:
    body = dict.fromkeys(("spent", "details", "schema", "declared", "query", "policy"), 1)
    assert ledger._body(event("charged", **body)) == {"query": 1, "policy": 1}


def period(name: str, spent: Policy, budget: Policy | None = None, **more: Any) -> PeriodState:
    given: dict[str, Any] = {"charges": 1, "declared": "2026-01-01", "at_start": True}
    return PeriodState(name=name, spent=spent, budget=budget, **(given | more))


EMP = gaussian_sum("emp", sigma=1)


def test_what_is_spent_reserved_and_allowed_is_listed() -> None:
    one = period("d", constant(1), constant(3), reserved=constant(1))
    assert ledger._sums(None, (one,), constant(1), constant(3)) == [
        ("Spent", constant(1)),
        ("Reserved for revisions", constant(1)),
        ("Budget", constant(3)),
    ]
    bare = period("d", constant(1))
    assert ledger._sums(None, (bare,), constant(1), None) == [("Spent", constant(1)), ("Budget", None)]
    years = (one, period("e", constant(2), at_start=False))
    assert [title for title, _ in ledger._sums("s", years, constant(1), None)] == [
        "Spent in d",
        "Reserved in d for revisions",
        f"Budget of d, {one.declared_text()}",
        "Spent in e",
        "Budget of e, no budget",
    ]


def test_an_example_is_priced_in_each_period() -> None:
    periods = (
        period("2025", EMP, constant(1) + EMP * 3, reserved=EMP),
        period("2026", constant(2), None),
        period("2027", gaussian_sum("pay", sigma=1), constant(9)),
    )
    # Of 4 employees: 8 of 1 + 24, with another 8 kept; 2; and nothing that is known of a payroll.
    assert ledger._example({"emp": 4}, periods) == [
        {"period": "2025", "loss": 8.0, "left": 9.0},
        {"period": "2026", "loss": 2.0, "left": None},
        {"period": "2027", "loss": None, "left": None},
    ]


def test_the_table_of_an_example_adds_up_what_is_known(capsys: Captured) -> None:
    rows = [
        {"period": "2025", "loss": 8.0, "left": 9.0},
        {"period": "2026", "loss": 2.25, "left": None},
        {"period": "2027", "loss": None, "left": None},
    ]
    ledger._show_example(rows)
    assert capsys.readouterr().out.splitlines() == [
        "period        loss  left",
        "2025             8     9",
        "2026          2.25",
        "2027",
        "all periods  10.25",
    ]


def test_each_charge_costs_a_record_what_it_does() -> None:
    events = [
        event("opened", 1, dataset="d"),
        event("charged", 2, policy=EMP.to_json(), period="2025"),
        event("released", 3, charge=2),
        event("charged", 4, policy=gaussian_sum("pay", sigma=1).to_json(), refines=2),
        event("charged", 5, policy=constant(1).to_json(), tier={"of": 2}),
    ]
    assert ledger._charges({"emp": 4}, events) == [
        {"charge": 2, "period": "2025", "loss": 8.0},
        {"charge": 4, "refines": 2, "loss": None},
        {"charge": 5, "tier": 2, "loss": 1.0},
    ]


def test_charges_are_listed_where_one_follows_another(capsys: Captured) -> None:
    ledger._show_charges([{"charge": 2, "loss": 8.0}, {"charge": 4, "loss": 1.0}])
    assert capsys.readouterr().out == ""
    ledger._show_charges([{"charge": 2, "loss": 8.0}, {"charge": 4, "refines": 2, "loss": None}])
    assert capsys.readouterr().out.splitlines() == [
        "charge  what              loss",
        "     2                       8",
        "     4  refines charge 2",
    ]
    rows = [
        {"charge": 2, "period": "2025", "step": "start", "follows": None, "loss": 8.0},
        {"charge": 4, "period": "2026", "step": "carry", "follows": 2, "loss": 9.0, "staying": 1.5},
    ]
    ledger._show_charges(rows)
    assert capsys.readouterr().out.splitlines() == [
        "charge  what                                   loss  if it stays as it is",
        "     2  (2025)                                    8",
        "     4  (2026), carries the noise of charge 2     9                   1.5",
    ]


@pytest.mark.parametrize(
    ("folders", "problems", "out", "code"),
    [
        ([], [], "l.db is in order.", None),
        (["a"], [], "l.db is in order and agrees with 1 release.", None),
        (["a", "b"], [], "l.db is in order and agrees with 2 releases.", None),
        (["a"], ["one", "two"], "", 2),
    ],
)
def test_books_are_in_order_or_not(
    folders: list[str], problems: list[str], out: str, code: int | None, capsys: Captured, monkeypatch: Patch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("recordwise.release.verify.verify", lambda file, against: asked.append(against) or problems)
    given: dict[str, Any] = {
        "against": [Path(each) for each in folders[:1]],
        "more": [Path(each) for each in folders[1:]],
    }
    for as_json in (False, True):
        try:
            ledger.verify(file=Path("l.db"), **given, as_json=as_json)
            ended = None
        except typer.Exit as stopped:
            ended = stopped.exit_code
        found = capsys.readouterr()
        assert ended == code
        if as_json:
            told = {"ledger": "l.db", "in_order": not problems, "problems": problems}
            assert (json.loads(found.out), found.err) == (told, "")
        else:
            assert found == (f"{out}\n" if out else "", "".join(f"l.db: {each}\n" for each in problems))
    assert asked == [[Path(each) for each in folders]] * 2


# A release.


def test_pairs_of_codes_need_their_step(tmp_path: Path, monkeypatch: Patch) -> None:
    @dataclass(frozen=True)
    class Stage:
        carry: Any = None
        crosswalk: Any = None

    @dataclass(frozen=True)
    class File:
        stage: Any = None

    monkeypatch.setattr("recordwise.plan.file.read.read_pairs", lambda path: f"pairs of {path}")
    bare: Any = File()
    assert release.with_crosswalk(bare, []) is bare
    for other in (bare, File(Stage())):
        with pytest.raises(ParameterError, match="is for --carry"):
            release.with_crosswalk(other, ["a=b.csv"])
    carried: Any = File(Stage(carry="x"))
    for wrong in ("a", "=b", "a="):
        with pytest.raises(ParameterError, match="COLUMN=FILE"):
            release.with_crosswalk(carried, [wrong])
    found: Any = release.with_crosswalk(carried, ["a=b.csv", "c=d.csv"])
    assert found.stage.crosswalk == {"a": "pairs of b.csv", "c": "pairs of d.csv"}


def test_old_records_need_their_step() -> None:
    """They were ignored without it, and the release was charged in full."""

    @dataclass(frozen=True)
    class File:
        stage: Any = None
        source: Any = ("now",)

    for stage in (None, PlannedStage(tier_of=Path("a"))):
        file: Any = File(stage)
        with pytest.raises(ParameterError, match=r"--old-records is for --carry and --revise\. Nothing was spent\."):
            release.with_stage(file, Path("old"), carry=None, revise=None)
        assert release.with_stage(file, None, carry=None, revise=None) is file
    planned: Any = File(PlannedStage(carry=Path("a"), old_records=("planned",)))
    found: Any = release.with_stage(planned, Path("old"), carry=None, revise=None)
    assert (found.stage.carry, found.stage.old_records) == (Path("a"), ("old",))


def test_a_folder_must_be_new_and_writable(tmp_path: Path) -> None:
    release.check_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a").iterdir()) == []
    (tmp_path / "a" / ".b.staging-1-1").mkdir()
    release.check_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a").iterdir()) == [], "what a killed process left is removed"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for taken in (tmp_path / "a", tmp_path / "link"):
        with pytest.raises(OutputError, match=r"already exists\. .* Nothing was spent\. Choose a new folder"):
            release.check_folder(taken)
    with pytest.raises(OutputError, match=r"already exists\. No file was left behind\. It is kept\. Choose"):
        release.check_folder(tmp_path / "a", state="It is kept.")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"cannot be written \(.*\)\. No file was left behind\. Nothing was spent"):
        release.check_folder(tmp_path / "file" / "b")


def planned(*tables: tuple[int, int, int, bool]) -> Any:
    """Tables by their rows, groups, statistics, and whether their keys are selected."""
    made = [SimpleNamespace(query=at, shape=SimpleNamespace(groups=("g",) * each[1])) for at, each in enumerate(tables)]
    return SimpleNamespace(
        tables=lambda: made,
        selection=lambda table: "s" if tables[table.query][3] else None,
        queries=[SimpleNamespace(statistics=("s",) * each[2]) for each in tables],
        cells=lambda table: SimpleNamespace(num_rows=tables[table.query][0]),
    )


def test_the_size_of_a_release_is_estimated_from_its_public_cells() -> None:
    """Of 1,000 cells with two groups and three variables of six columns each: 20 columns of 40 bytes."""
    assert release.expected_bytes(planned((1000, 2, 3, False))) == 800_000
    assert release.expected_bytes(planned((1000, 2, 3, False), (10, 1, 1, False))) == 800_000 + 10 * 7 * 40
    assert release.expected_bytes(planned((1000, 2, 3, True), (1, 0, 3, False))) == 0


@pytest.mark.parametrize(
    ("formats", "needed"), [(0, 2_200_000), (1, 2_200_000), (2, 2_200_000), (3, 2_600_000), (4, 3_000_000)]
)
def test_a_disk_has_room_for_all_formats_or_is_refused(
    formats: int, needed: int, tmp_path: Path, monkeypatch: Patch
) -> None:
    """A million, and 800,000 bytes for each pair of formats, with a copy next to the ledger."""
    for free, refused in ((needed, False), (needed - 1, True)):
        monkeypatch.setattr("shutil.disk_usage", lambda place, free=free: SimpleNamespace(free=free))
        if refused:
            megabytes = f"{needed / 1e6:,.0f}"
            with pytest.raises(OutputError, match=f"needs about {megabytes} MB, and only {megabytes} MB are free"):
                release.check_room(planned((1000, 2, 3, False)), tmp_path / "out", formats=formats)
        else:
            release.check_room(planned((1000, 2, 3, False)), tmp_path / "out", formats=formats)
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=2_200_000))
    release.check_room(planned((1000, 2, 3, False)), tmp_path / "out")


def test_a_name_in_use_gets_a_number(tmp_path: Path) -> None:
    assert release._unused_name(tmp_path / "a").name == "a"
    (tmp_path / "a").mkdir()
    assert release._unused_name(tmp_path / "a").name == "a-2"
    (tmp_path / "a-2").mkdir()
    assert release._unused_name(tmp_path / "a").name == "a-3"


# A plan before its release.


def test_a_rehearsal_has_the_first_free_folder(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    for wanted in ("p-rehearsal", "p-rehearsal-2", "p-rehearsal-3"):
        assert str(check.unused_folder(Path("somewhere/p.toml"))) == wanted
        Path(wanted).mkdir()


@pytest.mark.parametrize("name", ["release.json", "datapackage.json", "policy.json"])
def test_a_look_is_not_written_into_a_release(name: str, tmp_path: Path) -> None:
    inside = tmp_path / "out" / "deep"
    inside.mkdir(parents=True)
    check.check_new_file(inside / "look.txt")
    with pytest.raises(OutputError, match="lies in a folder that does not exist"):
        check.check_new_file(tmp_path / "nowhere" / "look.txt")
    with pytest.raises(OutputError, match="exists already"):
        check.check_new_file(inside)
    (tmp_path / "out" / name).touch()
    with pytest.raises(OutputError, match="lies in the folder of a release"):
        check.check_new_file(inside / "look.txt")
    (tmp_path / "link").symlink_to(inside)
    with pytest.raises(OutputError, match="lies in the folder of a release"):
        check.check_new_file(tmp_path / "link" / "look.txt")


def test_a_look_is_printed_into_a_file_of_its_owner(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "look.txt"
    with check._printing_to(path):
        print("a look")
    assert path.read_text() == "a look\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["look.txt"]
    with check._printing_to(None):
        print("here")
    assert capsys.readouterr().out == "here\n"


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ("public", "computed from public records: "),
        ("synthetic", "computed from synthetic records: "),
        ("past", "CONFIDENTIAL: "),
        ("confidential", "CONFIDENTIAL: "),
    ],
)
def test_numbers_of_records_have_a_label(data: str, wanted: str) -> None:
    assert check.label(data) == wanted


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("rests", [False, True])
@pytest.mark.parametrize(("data", "reason"), [("synthetic", None), ("confidential", None), ("confidential", "because")])
def test_the_coverage_of_a_plan_is_shown(
    failed: bool, rests: bool, data: str, reason: str | None, capsys: Captured, monkeypatch: Patch
) -> None:
    asked: list[Any] = []
    counts = SimpleNamespace(name="t", records=1000, outside=30, cells=12, empty=5, in_rests=7)
    monkeypatch.setattr("recordwise.session.checks.too_many_outside", lambda found, most: asked.append(most) or failed)
    session: Any = SimpleNamespace(owner=SimpleNamespace(preflight=lambda *given, **more: [counts]))
    query = SimpleNamespace(all_other=rests)
    file: Any = SimpleNamespace(
        plan=SimpleNamespace(queries=(SimpleNamespace(all_other=False), query)),
        max_outside=Fraction(1, 50),
        tuning_reason=reason,
    )
    assert check.show_coverage(file, session, data) is not failed
    expected = "records outside cells empty cells", "1,000 30 12 5"
    if rests:
        expected = f"{expected[0]} in an all other cell", f"{expected[1]} 7"
    text = f"{check.label(data)}records and published cells table {expected[0]} t {expected[1]} "
    text += (
        "! more than 0.02 of the records of a table are outside: the release will be refused. Correct codes that are written "
        'differently, or state max_outside = "accept" in the plan.'
        if failed
        else "The release will be made as far as the keys are concerned."
    )
    if data == "confidential":
        note = check.CHECKED if reason is None else check.VIEWED_WITH_REASON.format(reason=reason)
        text += f" ! {note}"
    assert said(capsys) == text
    assert asked == [Fraction(1, 50)]
    file.max_outside = None
    assert check.show_coverage(file, session, data) is True
    assert asked == [Fraction(1, 50)]


def test_unmatched_codes_and_losses_are_shown(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setattr("recordwise.plan.cost.plan_policy", lambda plan: f"policy of {plan}")
    monkeypatch.setattr("recordwise.session.checks.with_sizes", lambda plan: "sized")
    summary = SimpleNamespace(share_above=lambda loss: loss / 1000)
    asked: list[Any] = []
    owner = SimpleNamespace(
        unmatched=lambda *given, **more: {"t": [(("01", "x"), 1200), (("02", None), 3)]},
        loss_summary=lambda policy, data: asked.append((policy, data)) or summary,
    )
    file: Any = SimpleNamespace(plan=SimpleNamespace(queries=()))
    check.show_looks(file, SimpleNamespace(owner=owner), "public")  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines() == [
        "",
        "computed from public records: most frequent cells of t that no key names",
        "cell      records",
        "01, x       1,200",
        "02, None        3",
        "",
        "computed from public records: records by their loss",
        "loss above  share of the records",
        "       0.1                0.010%",
        "         1                0.100%",
        "        10                1.000%",
        "       100               10.000%",
    ]
    assert asked == [("policy of sized", "public")]


# A published folder.


@pytest.mark.parametrize(
    ("kind", "of", "values", "tables_only", "words"),
    [
        (None, None, None, True, None),
        ("weighted", "n", ["emp"], False, None),
        ("whole", None, None, False, None),
        ("half", None, None, False, "must be weighted or whole"),
        (None, "n", None, False, "are for records"),
        (None, None, ["emp"], False, "are for records"),
        ("whole", None, None, True, "takes no --zero-counts"),
    ],
)
def test_options_of_records_belong_together(
    kind: str | None, of: str | None, values: Any, tables_only: bool, words: str | None
) -> None:
    def asked() -> None:
        published._check_records(kind, of, values, tables_only=tables_only)

    if words is None:
        asked()
    else:
        with pytest.raises(ParameterError, match=words):
            asked()


def test_pairs_of_columns_are_read() -> None:
    assert published._columns_of(["a=b", "c=b"]) == {"a": "b", "c": "b"}
    for wrong in ("a", "=b", "a="):
        with pytest.raises(ParameterError, match="SMALLER=LARGER"):
            published._columns_of([wrong])
    with pytest.raises(ParameterError, match="names 'a' as the smaller variable twice"):
        published._columns_of(["a=b", "a=c"])


def test_pairs_of_codes_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text("before,now,more\n01,1e3,x\nNA,,y\n")
    assert published._code_pairs(f"county={path}", "--crosswalk", "before", "now") == (
        "county",
        [("01", "1e3"), ("NA", "")],
    )
    for wrong in ("county", f"={path}", "county="):
        with pytest.raises(ParameterError, match="--groups is not of the form COLUMN=FILE"):
            published._code_pairs(wrong, "--groups", "code", "region")
    with pytest.raises(ParameterError, match="is not a CSV file with the columns code and region"):
        published._code_pairs(f"county={path}", "--groups", "code", "region")


def test_records_are_told_with_the_least_errors_they_can_have(capsys: Captured) -> None:
    about = {"kind": "weighted", "of": "n", "total": 1234.6, "method": "top_down"}
    made: Any = SimpleNamespace(data=pa.table({"a": range(1500)}), about=about, sums=(), no_bound="it is so")
    published.show_records(made, Path("out"))
    told = (
        "Records in out 1,500 weighted records of n, 1,235 in all, by top_down. Made of published tables alone: no row is a "
        "respondent, and nothing was spent."
    )
    assert said(capsys) == f"{told} ! No bound on their errors: it is so."
    made.sums = (SimpleNamespace(table="t", cells=2000, noise=1.5, least_sum_error=2.5, least_cell_error=0.25),)
    published.show_records(made, Path("out"))
    assert said(capsys) == (
        f"{told} table finest cells noise least error of its sums least error of cells t 2,000 1.5 2.5 0.25 ! Root mean squared "
        "errors in the worst case, whatever the method: of sums over records whose cells are as good as the noisy ones, and of "
        "cells if the sums are as good as the noisy ones (T-UNCERTAIN)."
    )


def test_changes_are_counted_where_intervals_leave_out_zero(capsys: Captured) -> None:
    @dataclass(frozen=True)
    class Change:
        confidence: Any
        tables: Any

        def __getitem__(self, name: str) -> Any:
            return self.tables[name]

    data = pa.table(
        {
            "n_change_low": [1.0, 0.0, -5.0, None, -1.0],
            "n_change_high": [9.0, 4.0, -1.0, None, 0.0],
            "n_change_sd": [1.0, 2.0, 6.0, None, 8.0],
            "m_change_low": pa.array([None] * 5, pa.float64()),
            "m_change_high": pa.array([None] * 5, pa.float64()),
            "m_change_sd": pa.array([None] * 5, pa.float64()),
        }
    )
    found: Any = Change({"t.n": 0.95, "t.m": 0.9}, {"t": data})
    published.show_change(found, Path("out"))
    expected = (
        "Changes between the two releases table variable cells in both median sd clearly changed confidence "
        "t n 4 4 2 95% t m 0 none 0 90%"
    )
    assert said(capsys) == f"{expected} Every cell is in out. Nothing was spent."
    published.show_change(found, None)
    assert said(capsys) == expected


@pytest.mark.parametrize(("problems", "wanted"), [([], True), (["one", "two"], False)])
def test_folders_are_verified_against_their_ledger(
    problems: list[str], wanted: bool, capsys: Captured, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("recordwise.release.verify.verify", lambda ledger, against: problems)
    assert published._verify(Path("l"), [Path("a")]) is wanted
    assert capsys.readouterr().err == "".join(f"l: {each}\n" for each in problems)


# Questions.


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ([], None),
        (["county=1,2"], "county in ('1', '2')"),
        (["county = '1'"], "(county = '1')"),
        (["a=1", "not b = 2"], "a in ('1') and (not b = 2)"),
        (["a!=1"], "(a!=1)"),
        (["a="], "(a=)"),
    ],
)
def test_conditions_are_short_or_long(texts: list[str], wanted: str | None) -> None:
    assert ask._condition(texts) == wanted
    assert ask._quoted("it's") == "'it''s'"


class Answered:
    """An answer with what is printed of it."""

    question, sentence, citation, notes = "total of x", "It is 5.", "Cited.", ("a note",)
    sources, labels, texts = ("a table",), ("total",), [["5", "1", "3", "7"]]
    table = pa.table({"label": ["=total"], "value": [5.0]})

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def to_json(self) -> dict[str, Any]:
        return {"value": 5}


@pytest.mark.parametrize("verified", [False, True])
def test_an_answer_is_a_sentence_or_a_table(verified: bool, capsys: Captured) -> None:
    def printed(count: int = 1, **more: Any) -> str:
        found: Any = Answered(count)
        ask._print(found, None, verified=verified, **({"as_csv": False, "as_json": False} | more))
        return capsys.readouterr().out

    checked = "Every file is the one that was saved, by its digest.\n" if verified else ""
    assert printed() == f"It is 5.\nFrom a table.\n! a note\n{checked}Cited.\n"
    assert printed(2).split("\n", 2)[:2] == ["", "Total of x"]
    assert printed(2).endswith(f"To quote: It is 5.\n! a note\n{checked}Cited.\n")
    assert "standard error" in printed(2)
    assert json.loads(printed(as_json=True)) == {"value": 5, "verified": verified}
    assert printed(as_csv=True) == "label,value,citation\n'=total,5.0,Cited.\n"


# The audit.


def finding(**changed: Any) -> Any:
    given = {"subject": "s", "keys": "public", "engine": "duckdb", "record": "one", "policy": 1.5, "delta": 0.0}
    given |= {"bound": 1.25, "samples": 4000, "problems": (), "broken": False, "verdict": "kept"}
    return SimpleNamespace(**(given | changed))


def test_findings_are_a_table_with_their_problems(capsys: Captured) -> None:
    nan = float("nan")
    checked = finding(subject="c", record="-", keys="-", policy=nan, delta=nan, bound=nan, samples=1)
    broken = finding(record="two", problems=("bad", "worse"), broken=True, verdict="BROKEN")
    audit.show([finding(), checked, broken])
    assert said(capsys) == (
        "subject keys record policy delta lost at least samples verdict s public one 1.5 0 1.25 4,000 kept c - - - - - 1 kept "
        "s public two 1.5 0 1.25 4,000 BROKEN ! s, two: bad ! s, two: worse 3 comparisons, 1 broken. With probability at least 1 "
        "- 1e-09 every number under 'lost at least' is at most the true loss; it must not exceed the policy."
    )
    told = audit.findings_json([finding(), checked])
    assert (told["kept"], told["false_alarm"], len(told["findings"])) == (True, 1e-9, 2)
    assert told["findings"][0] == {
        "subject": "s",
        "keys": "public",
        "engine": "duckdb",
        "record": "one",
        "policy": 1.5,
        "delta": 0.0,
        "bound": 1.25,
        "samples": 4000,
        "verdict": "kept",
        "problems": [],
    }
    assert [told["findings"][1][name] for name in ("policy", "delta", "bound")] == [None] * 3
    assert audit.findings_json([finding(), broken])["kept"] is False


@pytest.mark.parametrize("whole", [False, True])
def test_a_whole_audit_tries_everything_once(whole: bool, monkeypatch: Patch, capsys: Captured) -> None:

    def noting(name: str, many: bool = False) -> Callable[..., Any]:
        return lambda *given, **more: [name] if many else name

    checks = importlib.import_module("recordwise.audit.checks")
    names = ("audit_carried", "audit_reentry", "audit_threads", "audit_two_periods", "audit_two_stages")
    for name in names:
        monkeypatch.setattr(checks, name, noting(name))
    monkeypatch.setattr(checks, "audit_refusals", noting("refusals", many=True))
    monkeypatch.setattr("recordwise.audit.forking.audit_forks", noting("forks"))
    module = importlib.import_module("recordwise.audit.audit")
    monkeypatch.setattr(
        module, "audit", lambda subject, how, tell: [tell(f"{subject} {at}") or subject for at in range(2)]
    )
    how: Any = SimpleNamespace(runs=2)
    named: Any = [("a", lambda: "A"), ("b", lambda: "B")]
    found = audit.all_findings(named, how, quiet=False, whole=whole)
    rest = [
        "refusals",
        "forks",
        "audit_threads",
        "audit_reentry",
        "audit_two_periods",
        "audit_two_stages",
        "audit_carried",
    ]
    assert found == ["A", "A", "B", "B", *(rest if whole else [])]
    told = [line.partition(" s)")[0].rpartition(", ")[0] for line in capsys.readouterr().err.splitlines()]
    last = "recordwise: carried noise (91%" if whole else "recordwise: B 1 (75%"
    assert told[-2:] == [last, "recordwise: finished (100%"]
    assert len(told) == (12 if whole else 5)


def test_subjects_are_chosen_by_parts_of_their_names() -> None:
    names = [name for name, _ in audit.choose_subjects(None, ["found keys", "sized"])]
    assert names == ["sized", "found keys, alone", "found keys, beside others"]
    assert len(audit.choose_subjects(None, [])) == 37
