"""What the commands share: screens, failures, options and the words that they read, one by one."""

import errno
import importlib
import shutil
import signal
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from recordwise.cli import options
from recordwise.cli import plan as planning
from recordwise.errors import AlreadyReleasedError, BudgetError, OutputError, ParameterError, PlanFileError
from recordwise.plan.expressions import Prefix
from recordwise.planning.result import Result
from recordwise.policy import gaussian_sum

Patch = pytest.MonkeyPatch
Captured = pytest.CaptureFixture[str]
failing: Any = importlib.import_module("recordwise.cli.failing")
screen: Any = importlib.import_module("recordwise.cli.screen")


# The screen.


def test_a_pipe_gets_plain_lines(capsys: Captured) -> None:
    screen.heading("A heading")
    screen.paragraph("one\ntwo three", indent=2)
    screen.note("a warning")
    assert capsys.readouterr().out == "\nA heading\n  one\n  two three\n! a warning\n"


def test_lines_are_a_hundred_letters_wide_in_a_pipe(capsys: Captured) -> None:
    word = "x" * 9
    screen.paragraph(" ".join([word] * 11))
    assert capsys.readouterr().out.splitlines() == [" ".join([word] * 10), word]
    # Two letters of a warning are its mark.
    screen.note(" ".join([word] * 11))
    assert capsys.readouterr().out.splitlines() == [f"! {' '.join([word] * 9)}", f"  {word} {word}"]
    long = "y" * 120
    screen.paragraph(f"a {long} b-c")
    screen.note(f"a {long}")
    assert capsys.readouterr().out.splitlines() == ["a", long, "b-c", "! a", f"  {long}"]
    screen.paragraph("-".join([word] * 12))
    screen.note("-".join([word] * 12))
    assert [len(line) for line in capsys.readouterr().out.splitlines()] == [119, 121]


@pytest.mark.parametrize(("columns", "width"), [(80, 80), (120, 120), (121, 120)])
def test_a_terminal_is_filled_up_to_a_width(columns: int, width: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(screen, "on_terminal", lambda: True)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: SimpleNamespace(columns=columns))
    assert screen._width() == width


def test_columns_of_numbers_are_on_the_right_and_others_on_the_left(capsys: Captured) -> None:
    rows = [["a", "1", "1.5%", "±2", "", "none", "x"], ["long name", "1,000", "20%", "-3", "4", "-", "5"]]
    screen.table(["name", "n", "share", "off", "some", "known", "mixed"], rows)
    assert capsys.readouterr().out.splitlines() == [
        "name           n  share  off  some  known  mixed",
        "a              1   1.5%   ±2         none  x",
        "long name  1,000    20%   -3     4      -  5",
    ]
    screen.table(["name", "none"], [["a", ""]])
    assert capsys.readouterr().out.splitlines() == ["name  none", "a"]
    screen.table(["n"], [])
    assert capsys.readouterr().out.splitlines() == ["n"]


def test_a_terminal_gets_colors_and_a_drawn_table(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setattr(screen, "on_terminal", lambda: True)
    said: list[Any] = []
    monkeypatch.setattr(screen.typer, "secho", lambda text, **more: said.append((text, more)))
    screen.heading("A heading")
    screen.note("a warning")
    assert said == [("A heading", {"bold": True}), ("! a warning", {"fg": "yellow"})]
    screen.table(["name", "n"], [["a [b]", "1"], ["c", "20"]])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if "─" not in line and line] == [" name     n", " a [b]    1", " c       20"]
    monkeypatch.setattr(screen, "on_terminal", lambda: False)
    screen.heading("A heading")
    screen.note("a warning")
    assert said[2:] == [("A heading", {"bold": False}), ("! a warning", {"fg": None})]


def test_quiet_progress_says_nothing(capsys: Captured) -> None:
    with screen.progress(2, quiet=True) as tell:
        tell("something")
    assert capsys.readouterr() == ("", "")


# Failures.


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (BudgetError.__new__(BudgetError), 3, None),
        (AlreadyReleasedError.__new__(AlreadyReleasedError), 4, None),
        (ParameterError(parameter="p", problem="is wrong"), 2, "p is wrong."),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.toml"), 2, "a.toml: No such file"),
        (OSError(), 2, "a file: OSError"),
        (ValueError("a secret"), 1, "unexpected ValueError. Run again with --debug for the traceback."),
    ],
)
def test_an_error_has_a_code_and_a_sentence(error: Exception, code: int, words: str | None) -> None:
    assert failing.exit_code(error) == code
    if words is not None:
        assert failing.message(error) == words


@pytest.mark.parametrize("text", ["1", "1.5", "1e-5", "-2", "nan"])
def test_plain_numbers_are_read(text: str) -> None:
    assert str(failing.plain_float(text)) == str(float(text))


@pytest.mark.parametrize("text", ["1_000", "٣", "1_0", "x"])
def test_numbers_in_other_digits_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"plain|convert"):
        failing.plain_float(text)
    assert failing.plain_float(2.5) == 2.5


def ended(error: BaseException | None, **given: Any) -> Any:
    @failing.ends_well
    def command(**_: Any) -> str:
        if error is not None:
            raise error
        return "done"

    return command(**given)


def test_a_command_that_fails_says_so_on_standard_error(capsys: Captured) -> None:
    assert ended(None) == "done"
    with pytest.raises(typer.Exit) as stopped:
        ended(ParameterError(parameter="p", problem="is wrong"))
    assert stopped.value.exit_code == 2
    assert capsys.readouterr() == ("", "recordwise: p is wrong.\n")
    with pytest.raises(typer.Exit) as stopped:
        ended(ParameterError(parameter="p", problem="is wrong"), as_json=True)
    assert stopped.value.exit_code == 2
    assert capsys.readouterr() == ('{"error": "ParameterError", "message": "p is wrong."}\n', "")
    with pytest.raises(typer.Exit) as stopped:
        ended(KeyboardInterrupt())
    assert stopped.value.exit_code == 130
    words = "No partial files were left behind; what the ledger shows as charged stays spent."
    assert capsys.readouterr() == ("", f"recordwise: interrupted. {words}\n")


@pytest.mark.parametrize("error", [typer.Exit(7), typer.Abort(), BrokenPipeError()])
def test_an_end_that_is_meant_is_left_alone(error: Exception, capsys: Captured) -> None:
    with pytest.raises(type(error)) as stopped:
        ended(error)
    assert stopped.value is error
    assert capsys.readouterr() == ("", "")


def test_with_debug_an_error_is_itself() -> None:
    for error in (ValueError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as stopped:
            ended(error, debug=True)
        assert stopped.value is error


def test_hints_repeat_what_the_command_was_given() -> None:
    def hint(text: str, **given: Any) -> str:
        return failing._with_command(text, given)

    assert hint("run recordwise init FILE", file=Path("a b.csv")) == "run recordwise init 'a b.csv'"
    assert hint("run recordwise init FILE") == "run recordwise init FILE"
    text = "recordwise ledger amend PLAN --reason"
    assert hint(text, plan=Path("p.toml")) == "recordwise ledger amend p.toml --reason"
    assert hint(text, plan_file=Path("q.toml"), given=None) == "recordwise ledger amend q.toml --reason"
    given = ["year=2 6", "a=b"]
    assert (
        hint(text, plan=Path("p.toml"), given=given)
        == "recordwise ledger amend p.toml --set 'year=2 6' --set a=b --reason"
    )
    assert hint(text) == text


def test_problems_of_a_plan_are_told_by_their_lines() -> None:
    error = PlanFileError.__new__(PlanFileError)
    error.problems = (SimpleNamespace(line=3, place="a.b", text="is wrong"), "a sentence")  # type: ignore[assignment]
    assert failing.problems_json(error) == [
        {"line": 3, "place": "a.b", "text": "is wrong"},
        {"line": None, "place": "", "text": "a sentence"},
    ]


def test_what_was_released_before_is_told_with_its_charge() -> None:
    error = AlreadyReleasedError.__new__(AlreadyReleasedError)
    error.state, error.charge, error.date = "finished", 7, "2026-01-02"
    told = failing.error_json(error)
    assert {name: told[name] for name in ("error", "state", "charge", "date")} == {
        "error": "AlreadyReleasedError",
        "state": "finished",
        "charge": 7,
        "date": "2026-01-02",
    }
    assert set(failing.error_json(ValueError())) == {"error", "message"}


def test_exit_codes_are_in_order_and_those_of_the_command() -> None:
    assert list(failing.exit_codes("release")) == [0, 1, 2, 3, 4, 130]
    assert list(failing.exit_codes("ask")) == [0, 1, 2, 130]
    assert failing.exit_codes("audit")[1] == "a guarantee was broken, or unexpected error"
    assert failing.epilog("nothing").endswith("130 interrupted.")
    assert failing.epilog("check").endswith("\n\nExample: recordwise check plan.toml")


# Standard streams that are closed or full.


def test_nothing_is_said_where_there_is_no_standard_error(monkeypatch: Patch, capsys: Captured) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    failing.say("a sentence")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("closed", ["stdin", "stderr"])
def test_nobody_confirms_without_standard_input_or_error(closed: str, monkeypatch: Patch, capsys: Captured) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys, closed, None)
    with pytest.raises(typer.Exit) as stopped:
        failing.require_terminal("Nothing was spent.")
    assert stopped.value.exit_code == 2
    assert capsys.readouterr().out == ""


def test_without_standard_output_there_is_no_terminal(monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert not screen.on_terminal()


def test_what_cannot_be_printed_outside_of_a_command_is_a_sentence(
    interrupts: Any, monkeypatch: Patch, capsys: Captured
) -> None:
    ended_output: list[bool] = []
    monkeypatch.setattr(failing, "_discard", lambda _: ended_output.append(True))
    monkeypatch.setattr(sys, "argv", ["recordwise", "--help"])

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SystemExit) as stopped:
        failing.run(full)
    assert (stopped.value.code, ended_output) == (2, [True])
    assert capsys.readouterr() == ("", "recordwise: a file: No space left on device\n")
    monkeypatch.setattr(sys, "argv", ["recordwise", "check", "--debug"])
    with pytest.raises(OSError, match="No space left"):
        failing.run(full)


# An interrupt that a library turns into something else.


@pytest.fixture
def interrupts(monkeypatch: Patch) -> Any:
    """With the handlers as they were afterwards."""
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield failing.Interrupts()
    signal.signal(signal.SIGINT, before)


def stopping(code: Any, *, interrupted: bool) -> Any:
    def command() -> None:
        if interrupted:
            handler: Any = signal.getsignal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                handler(signal.SIGINT, None)
        raise SystemExit(code)

    return command


@pytest.mark.parametrize(
    ("code", "interrupted", "ends", "said"),
    [
        (0, False, 0, False),
        (2, False, 2, False),
        (2, True, 130, True),
        (1, True, 130, True),
        (130, True, 130, False),
        (0, True, 0, False),
        (None, True, None, False),
    ],
)
def test_a_failure_after_an_interrupt_is_told_as_one(
    code: int | None, interrupted: bool, ends: int | None, said: bool, interrupts: Any, capsys: Captured
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(SystemExit) as stopped:
        failing.run(stopping(code, interrupted=interrupted))
    assert stopped.value.code == ends
    assert capsys.readouterr().err == (f"recordwise: {failing.STOPPED}\n" if said else "")


def test_a_shell_that_ignores_the_signal_is_left_alone(interrupts: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    made = failing.Interrupts()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert not made.seen


def test_an_interrupt_that_was_lost_is_repeated_until_it_arrives(interrupts: Any, monkeypatch: Patch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(
        failing.threading,
        "Thread",
        lambda *, target, daemon: SimpleNamespace(start=lambda: started.append((target, daemon))),
    )
    other: list[Any] = []
    monkeypatch.setattr(sys, "__unraisablehook__", other.append)
    failure: Any = SimpleNamespace(exc_type=ValueError)
    interrupts.repeat_lost(failure)
    assert (other, started) == ([failure], [])
    interrupts.repeat_lost(SimpleNamespace(exc_type=KeyboardInterrupt))
    assert (other, started) == ([failure], [(interrupts._repeat, True)])
    sent: list[Any] = []

    def kill(process: int, number: int) -> None:
        sent.append(number)
        if len(sent) == 3:
            with pytest.raises(KeyboardInterrupt):
                interrupts(signal.SIGINT, None)

    monkeypatch.setattr(failing.os, "kill", kill)
    slept: list[float] = []
    monkeypatch.setattr(failing.time, "sleep", slept.append)
    interrupts._repeat()
    assert sent == [signal.SIGINT] * 3
    assert slept == [0.01] * 4
    interrupts._repeat()
    assert len(sent) == 3


# The words of options.


@pytest.mark.parametrize("given", [["year"], ["=2"], [""]])
def test_a_value_without_a_name_is_refused(given: list[str]) -> None:
    with pytest.raises(ParameterError, match="NAME=VALUE"):
        options.given_values(given)


def test_values_are_read_by_name() -> None:
    assert options.given_values(None) == {}
    assert options.given_values(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(ParameterError, match="--set a is given twice"):
        options.given_values(["a=1", "a=1"])
    file: Any = SimpleNamespace(parameters={"a": "1", "b": "x y"})
    assert options.set_words(file) == " --set a=1 --set b='x y'"


def test_a_number_is_for_all_or_by_name() -> None:
    def read(*words: str) -> Any:
        return options.by_measure(list(words), "--within")

    assert options.by_measure(None, "--within") is None
    assert read("0.1") == "0.1"
    assert read("emp=0.1", "pay=0.2") == {"emp": "0.1", "pay": "0.2"}
    with pytest.raises(ParameterError, match="--within is given twice"):
        read("0.1", "0.2")
    with pytest.raises(ParameterError, match="--within emp= is given twice"):
        read("emp=0.1", "emp=0.2")
    for words in (("0.1", "emp=0.2"), ("=0.1",), ("emp=1", "=2")):
        with pytest.raises(ParameterError, match="all of the form NAME=NUMBER"):
            read(*words)
    assert options.lists_by_measure(["1", "2"], "--rho") == ["1", "2"]
    assert options.lists_by_measure(["a=1", "b=3", "a=2"], "--rho") == {"a": ["1", "2"], "b": ["3"]}
    assert options.lists_by_measure([], "--rho") == []


@pytest.mark.parametrize("text", ["1.200", "-12.345", "+999.000", "1,200", "1 200", "$5", "x"])
def test_numbers_that_can_be_read_in_two_ways_are_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        options.plain_number("emp", text)


@pytest.mark.parametrize("text", ["1200", "0.200", "1234.500", "1.2000", "1.20", "-5", "+5", "1/3", "1e3", "01.200"])
def test_numbers_that_are_plain_are_kept(text: str) -> None:
    assert options.plain_number("emp", text) == text


def test_a_value_stays_within_its_public_bound() -> None:
    policy = gaussian_sum("emp", sigma=3)
    for value in (50, -50):
        options.check_bound(policy, "emp", value, {"emp": Fraction(50)})
    for value in (51, -51):
        with pytest.raises(ParameterError, match="beyond its public bound, 50"):
            options.check_bound(policy, "emp", value, {"emp": Fraction(50)})
    for name in ("emp", "other"):
        for value in (2**62, -(2**62)):
            options.check_bound(policy, name, value, {})
        with pytest.raises(ParameterError, match=r"beyond 2\^62 steps"):
            options.check_bound(policy, name, 2**62 + 1, {"pay": Fraction(1)})


@pytest.mark.parametrize("name", ["a.png", "b.SVG", "c.pdf"])
def test_figures_are_drawn_into_three_kinds_of_files(name: str, monkeypatch: Patch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(options, "load_with_parameters", lambda *given: asked.append(given) or "file")
    monkeypatch.setattr(options, "for_owner", lambda data: asked.append(data))
    assert options.open_plan(Path("p"), [Path(name)], ["a=1"], data="public") == "file"
    assert asked == [(Path("p"), ["a=1"]), "public"]
    asked.clear()
    with pytest.raises(ParameterError, match=r"d\.gif is not a \.png"):
        options.open_plan(Path("p"), [Path(name), Path("d.gif")], None, data="public")
    assert asked == []


def test_what_is_confidential_is_not_saved_in_the_folder_of_a_release(tmp_path: Path) -> None:
    class Found(Result):
        data = "confidential"

        def to_json(self) -> dict[str, Any]:
            return {"emp": 5}

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "release.json").touch()
    (tmp_path / "link.json").symlink_to(tmp_path / "out" / "new.json")
    with pytest.raises(OutputError, match="lies in the folder of a release"):
        options.open_plan(Path("p"), [tmp_path / "out" / "drawn.svg"], None, data="past")
    with pytest.raises(OutputError, match="lies in the folder of a release"):
        Found().save(tmp_path / "out" / "found.json")
    with pytest.raises(ParameterError, match="already exists"):
        Found().save(tmp_path / "link.json")
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["release.json"]
    assert Found().save(tmp_path / "found.json").read_text() == '{"emp": 5}'


@pytest.mark.parametrize(
    ("data", "terminal", "refused"),
    [
        ("confidential", False, True),
        ("confidential", True, False),
        ("past", False, True),
        ("past", True, False),
        ("public", False, False),
        ("synthetic", False, False),
    ],
)
@pytest.mark.costly
def test_numbers_of_confidential_records_go_to_a_terminal(
    data: str, terminal: bool, refused: bool, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(screen, "on_terminal", lambda: terminal)
    if refused:
        with pytest.raises(ParameterError, match=r"Nothing was read\. If the records are public"):
            options.for_owner(data)
        with pytest.raises(ParameterError, match=r"Nothing was read\. So\."):
            options.for_owner(data, advice="So.")
    else:
        options.for_owner(data)
    if data == "confidential":
        assert options.for_owner.__defaults__ == ("confidential",)


def test_a_result_is_json_or_begins_with_its_label(capsys: Captured) -> None:
    found = SimpleNamespace(to_json=lambda: {"a": 1}, privacy_label="SYNTHETIC records")
    assert options.print_as_json(found, True) is True
    assert capsys.readouterr().out == '{"a": 1}\n'
    assert options.print_as_json(found, False) is False
    assert capsys.readouterr().out == "! SYNTHETIC records\n"
    found.privacy_label = "CONFIDENTIAL: x"
    assert options.print_as_json(found, False) is False
    said = " ".join(capsys.readouterr().out.split())
    assert said == f"! CONFIDENTIAL: x ! {options.VIEWED}"


def test_lines_are_left_out_of_json(capsys: Captured) -> None:
    options.say("a", SimpleNamespace(as_json=False))
    options.say("b", SimpleNamespace(as_json=True))
    assert capsys.readouterr().out == "a\n"


@pytest.mark.parametrize(
    ("needs", "budget", "told"),
    [
        (False, None, ""),
        (True, None, "The plan had no budget: the new one has a budget that covers it and a revision.\n"),
        (True, "some", "The new one has a budget that covers it and a revision.\n"),
    ],
)
def test_a_plan_that_is_written_says_what_to_do_next(needs: bool, budget: Any, told: str, capsys: Captured) -> None:
    asked: list[Any] = []

    def save(*given: Any, **more: Any) -> str:
        asked.append((given, more))
        return "new.toml"

    found = SimpleNamespace(save_like=save, needs_budget=needs)
    file: Any = SimpleNamespace(path="old.toml", parameters={"a": "1"}, budget=budget)
    options.save_plan(found, file, SimpleNamespace(out="o", tuning_reason="r", as_json=False))
    assert asked == [(("old.toml", "o"), {"tuning_reason": "r", "parameters": {"a": "1"}})]
    assert capsys.readouterr().out == f"wrote new.toml; check it with: recordwise check new.toml --set a=1\n{told}"


def test_figures_are_saved_to_every_file(tmp_path: Path, capsys: Captured) -> None:
    saved: list[Path] = []
    figure = SimpleNamespace(savefig=saved.append)
    paths = [tmp_path / "a.png", tmp_path / "b.pdf"]
    asked = SimpleNamespace(plot=paths, data="confidential", as_json=False)
    options.save_figures(asked, lambda: figure)
    assert saved == paths
    assert capsys.readouterr().out == "".join(f"drew {path}\n" for path in paths)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in paths)
    options.save_figures(SimpleNamespace(plot=None), lambda: 1 / 0)

    def missing() -> Any:
        raise ModuleNotFoundError("matplotlib")

    with pytest.raises(ParameterError, match=r"recordwise\[plots\]"):
        options.save_figures(asked, missing)


def test_quantiles_of_families_are_drawn_in_their_order(monkeypatch: Patch) -> None:
    def family(name: str, most: float) -> Any:
        rho = SimpleNamespace(quantile=lambda share: share * most, maximum=most)
        return SimpleNamespace(name=name, losses=SimpleNamespace(rho=rho))

    asked: list[Any] = []
    monkeypatch.setattr("recordwise.planning.plots.plot_fitness", lambda *given, **more: asked.append((given, more)))
    options.quantile_rows(SimpleNamespace(ranking=lambda: [family("a", 10.0), family("b", 1.0)], privacy_label="l"))
    expected = {"median": [5.0, 0.5], "99th percentile": [9.9, 0.99], "maximum": [10.0, 1.0]}
    assert asked == [((["a", "b"], expected), {"privacy_label": "l"})]


def test_as_many_lines_are_drawn_as_can_be_told_apart(monkeypatch: Patch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("recordwise.planning.plots.MOST_LINES", 2)
    monkeypatch.setattr("recordwise.planning.plots.plot_loss_shares", lambda given, **more: asked.append((given, more)))
    options.loss_shares(SimpleNamespace(curves=lambda: {"a": 1, "b": 2, "c": 3}, privacy_label="l"))
    assert asked == [({"a": 1, "b": 2}, {"privacy_label": "l"})]


def test_levels_are_fitted_where_it_is_asked_for() -> None:
    for given, wanted in ((True, True), (False, None)):
        found = options.fits(SimpleNamespace(fitted=given, complete=not given))
        assert found == {"fitted": wanted, "complete": None if given else True}


def test_an_option_shows_its_default_if_it_has_one() -> None:
    for default, shown in ((None, False), (..., False), (0.5, True), (0, True)):
        kind, given = options.option(float, "help", default=default)
        assert given is default
        assert kind.__metadata__[0].show_default is shown
        assert (type(None) in getattr(kind.__origin__, "__args__", ())) is (default is None)
    assert options.flag("--x", "help")[1] is False


# What the plan commands read.


def test_records_with_the_loss_they_may_have() -> None:
    found = planning._records(["emp=100,naics=0441 , kind=a b:1.5", "emp=0:2"])
    assert found == [({"emp": 100, "naics": "0441", "kind": "a b"}, 1.5), ({"emp": 0}, 2.0)]
    for wrong in ("emp=1", "emp:1", "=1:1", "emp=1,:2", ""):
        with pytest.raises(ParameterError, match="RECORD:LOSS"):
            planning._records([wrong])
    assert planning._records(["emp=1.5:1"]) == [({"emp": "1.5"}, 1.0)]


def test_groups_are_columns_or_prefixes() -> None:
    assert planning.read_by("county:2") == Prefix("county", 2)
    assert [planning.read_by(each) for each in (None, "size", "county:", "county:x")] == [
        None,
        "size",
        "county:",
        "county:x",
    ]


def test_baselines_are_named_in_one_option_or_in_several() -> None:
    given = ["suppression, rounding,", "release:a,b", "plan:c,d.toml", " ", "clamped"]
    assert planning.named_baselines(given) == ["suppression", "rounding", "release:a,b", "plan:c,d.toml", "clamped"]


def test_a_bound_is_of_a_measure() -> None:
    assert planning._clamp_bound("emp=500") == ("emp", "500")
    for wrong in ("emp", "=5", "emp="):
        with pytest.raises(ParameterError, match="MEASURE=BOUND"):
            planning._clamp_bound(wrong)


def test_a_metric_is_a_name_or_a_function_of_a_module(tmp_path: Path, monkeypatch: Patch) -> None:
    assert planning.read_metric("bias") == "bias"
    (tmp_path / "a_metric_of_ours.py").write_text("def off(): ...\nnumber = 1\n")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert planning.read_metric("a_metric_of_ours:off").__name__ == "off"
    for wrong, words in (
        ("a_metric_of_ours:number", "has no function 'number'"),
        ("a_metric_of_ours:none", "has no function 'none'"),
        ("no_such_module_of_ours:off", "cannot be imported"),
    ):
        with pytest.raises(ParameterError, match=words):
            planning.read_metric(wrong)
    assert sys.path == before


def test_a_release_is_fitted_as_asked_or_as_planned() -> None:
    asked: list[Any] = []
    release = SimpleNamespace(
        consistent=lambda **more: asked.append(more) or "fitted", basic=lambda **more: asked.append(more) or "basic"
    )
    basic = SimpleNamespace(fit="f", complete="c", units="u", rules="r", other="o")
    file: Any = SimpleNamespace(basic=basic)
    assert planning.read_fit(None, SimpleNamespace(basic=None)) is None  # type: ignore[arg-type]
    assert planning.read_fit("ols", file)(release) == "fitted"
    assert planning.read_fit(None, file)(release) == "basic"
    assert asked == [{"method": "ols"}, {"fit": "f", "complete": "c", "units": "u", "rules": "r"}]


def test_older_rules_are_known_by_name(monkeypatch: Patch) -> None:
    from recordwise.disclosure.rules import Coarsening, PercentRule, Ranges, Rounding, Suppression, ThresholdRule

    rules = (PercentRule(), ThresholdRule())
    expected = {
        "p-percent": PercentRule(),
        "suppression": Suppression(rules),
        "coarsening": Coarsening(rules),
        "rounding": Rounding(),
        "ranges": Ranges(rules),
    }
    file: Any = object()
    assert {name: planning.read_baseline(name, file, None, "0.5") for name in expected} == expected
    asked: list[Any] = []
    monkeypatch.setattr(
        "recordwise.planning.simulate.baselines.clamped", lambda *given, **more: asked.append((given, more)) or "c"
    )
    monkeypatch.setattr("recordwise.release.files.load_release", lambda name: f"release {name}")
    monkeypatch.setattr(planning, "_queries", lambda name: f"queries of {name}")
    assert planning.read_baseline("clamped", file, ["emp=5"], "0.5") == "c"
    assert planning.read_baseline("clamped", file, None, "2") == "c"
    assert asked == [((file,), {"to": {"emp": "5"}, "rho": "0.5"}), ((file,), {"to": {}, "rho": "2"})]
    assert planning.read_baseline("release:out", file, None, "1") == "release out"
    assert planning.read_baseline("plan:p.toml", file, None, "1") == "queries of p.toml"
    assert type(planning.read_baseline("multiplicative", file, None, "1")).__name__ == "MultiplicativeNoise"
    with pytest.raises(ParameterError, match=r"does not know 'nothing'.*suppression"):
        planning.read_baseline("nothing", file, None, "1")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"threshold": ["1"]}, "--rho must be given together"),
        ({"clamp": ["1"]}, "--rho must be given together"),
        ({"rho": ["1"]}, "--rho must be given together"),
        ({"rho": ["1"], "clamp": ["1"], "plot": [Path("a.png")]}, "draws thresholds"),
    ],
)
def test_comparisons_that_lack_something_are_refused(given: dict[str, Any], words: str) -> None:
    usual = dict.fromkeys(("threshold", "clamp", "rho", "plot"))
    with pytest.raises(ParameterError, match=words):
        planning.compare(**(usual | given), plan_file=Path("nowhere.toml"), debug=True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"clamps": True, "by_table": True}, "--clamps is for the families"),
        ({"clamps": True, "keep_mechanisms": True}, "--clamps is for the families"),
        ({"out": Path("a"), "by_table": True}, "--out is for the plan of the best family"),
        ({"new_budget": True, "keep_mechanisms": True}, "--new-budget is for the plan of the best family"),
    ],
)
def test_recommendations_that_do_not_fit_together_are_refused(given: dict[str, Any], words: str) -> None:
    usual = {"clamps": False, "by_table": False, "keep_mechanisms": False, "new_budget": False, "out": None}
    with pytest.raises(ParameterError, match=words):
        planning.recommend(**(usual | given), plan_file=Path("nowhere.toml"), debug=True)
