"""Commands as processes: exit codes, what goes to which stream, no traceback, and how quickly help comes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def process(*words, folder=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "recordwise", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(SOURCE)} | environment,
    )


@pytest.mark.process
def test_a_release_in_a_pipe_is_quiet(folder, warm):
    done = process("release", "plan.toml", "--out", "out", "--yes", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "Published in out" in done.stdout
    # A line for each thing that is done, and nothing else.
    assert {line.split(": ")[0] for line in done.stderr.splitlines()} == {"recordwise"}
    assert 5 <= len(done.stderr.splitlines()) <= 8
    assert done.stderr.splitlines()[-1].startswith("recordwise: finished (100%")
    verified = warm.run("-m", "recordwise", "ledger", "verify", "small.ledger", "--against", "out", folder=folder)
    assert verified.returncode == 0
    looked_up = process("loss", "out/policy.json", "emp=10", "payann=400", "--json", folder=folder)
    assert json.loads(looked_up.stdout)["loss"] > 0
    assert looked_up.stderr == ""


@pytest.mark.process
def test_a_stream_that_is_closed_ends_no_command(folder):
    def closing(streams, *words):
        begun = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-m", "recordwise", *words]
        own = os.environ | {"PYTHONPATH": str(SOURCE)}
        return subprocess.run(begun, cwd=folder, env=own, timeout=120, text=True, capture_output=True)

    asked = closing("<&-", "release", "plan.toml", "--out", "out")
    assert asked.returncode == 2
    assert "so nobody can confirm; pass --yes. Nothing was spent." in asked.stderr
    done = closing("2>&-", "release", "plan.toml", "--out", "out", "--yes")
    assert done.returncode == 0
    assert done.stdout.startswith("\nPublished in out\n")
    assert closing(">&-", "ask", "out", "emp").returncode == 0
    if Path("/dev/full").exists():
        helped = closing(">/dev/full", "--help")
        assert (helped.returncode, helped.stderr) == (2, "recordwise: a file: No space left on device\n")


@pytest.mark.process
def test_no_file_gets_the_number_of_a_closed_stream_and_what_libraries_print_is_lost(tmp_path):
    def begun(*calls):
        code = ["import os, sys", "from recordwise.cli.failing import hold_streams", *calls, "kept = open('kept', 'w')"]
        code += ["os.write(2, b'of C')", "print('of Python', file=sys.stderr)", "sys.stderr.write('of Python')"]
        words = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", "\n".join(code)]
        own = os.environ | {"PYTHONPATH": str(SOURCE)}
        done = subprocess.run(words, cwd=tmp_path, env=own, timeout=60, stdout=subprocess.DEVNULL)
        return done.returncode, (tmp_path / "kept").read_bytes()

    assert begun("hold_streams()") == (0, b"")
    assert begun() == (1, b"of C")


def answered(folder, answer, *words):
    """A command whose standard input and error are a terminal; what it shows there, and what it prints in a pipe."""
    terminal, theirs = os.openpty()
    command = [sys.executable, "-m", "recordwise", *words]
    options = {"cwd": folder, "env": os.environ | {"PYTHONPATH": str(SOURCE)}, "start_new_session": True}
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True, **options) as begun:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(terminal, 4096):
                shown += part
                if b"[y/N]" in shown and answer:
                    os.write(terminal, answer)
                    answer = b""
        except OSError:
            pass  # The other end is closed: the command has ended.
        printed = begun.stdout.read()
    os.close(terminal)
    return begun.returncode, " ".join(shown.decode().split()), printed


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no terminals of its own")
@pytest.mark.parametrize("answer", [b"n\n", b"\x04", b"y\n"])
def test_the_cost_is_shown_and_confirmed_on_the_terminal_while_standard_output_goes_elsewhere(folder, answer):
    code, shown, printed = answered(folder, answer, "release", "plan.toml", "--out", "out", "--json")
    assert "Losses at example records" in shown.partition("Charge this to small.ledger and publish?")[0]
    if answer == b"y\n":
        assert (code, json.loads(printed)["folder"]) == (0, "out")
    else:
        assert (code, printed) == (2, "")
        assert shown.endswith("recordwise: not confirmed. Nothing was spent.")
        assert not (folder / "out").exists()


@pytest.mark.process
def test_a_refused_budget_ends_with_3(folder):
    text = (folder / "plan.toml").read_text().replace("rho = 2\nat", "rho = 0.01\nat")
    (folder / "plan.toml").write_text(text)
    done = process("release", "plan.toml", "--out", "out", "--yes", folder=folder)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


GARBAGE = [
    ["check", "establishments.parquet"],
    ["check", "absent.toml"],
    ["check", "."],
    ["release", "establishments.parquet", "--out", "out", "--yes"],
    ["release", "plan.toml"],
    ["loss", "establishments.parquet", "emp=3"],
    ["loss", "absent.json"],
    ["ledger", "show", "establishments.parquet"],
    ["ledger", "verify", "plan.toml"],
    ["demo", "--establishments", "many"],
    ["nonsense"],
    ["check", "plan.toml", "--wrong"],
]


@pytest.mark.parametrize("words", GARBAGE, ids=" ".join)
def test_garbage_ends_with_2_and_a_sentence(folder, words, warm):
    done = warm.run("-m", "recordwise", *words, folder=folder)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_debug_shows_the_traceback(folder):
    done = process("check", "absent.toml", "--debug", folder=folder)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


@pytest.mark.process
def test_help_loads_neither_engine_nor_arrow(tmp_path):
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom recordwise.cli import app\n"
        "result = CliRunner().invoke(app, ['--help'])\n"
        "assert result.exit_code == 0 and 'check' in result.stdout\n"
        "print(sorted({'duckdb', 'pyarrow', 'sqlglot', 'numba', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.costly
def test_an_unexpected_failure_quotes_nothing(tmp_path, run, monkeypatch):
    import recordwise.plan.file.read

    def broken(*_given, **_named):
        raise KeyError("a secret")

    monkeypatch.setattr(recordwise.plan.file.read, "load_plan", broken)
    result = run("check", tmp_path / "plan.toml")
    assert result.exit_code == 1
    assert "KeyError" in result.stderr
    assert "secret" not in result.stderr + result.stdout


@pytest.mark.process
def test_a_command_loads_its_own_file_alone() -> None:
    """And the whole command line is there for help, unknown names and whoever imports it."""
    code = (
        "import sys\nfrom recordwise.cli import main\nsys.argv = ['recordwise', 'loss', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted(each for each in sys.modules if each.startswith('recordwise.cli.')))\n"
        "from recordwise.cli import HOMES, app\nprint(len(app.registered_commands) + len(app.registered_groups) == len(HOMES))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, every = done.stdout.splitlines()[-2:]
    assert "recordwise.cli.loss" in loaded
    assert not {"recordwise.cli.ask", "recordwise.cli.demo", "recordwise.cli.plan"} & set(re.findall(r"[\w.]+", loaded))
    assert every == "True"
