"""Six tables from file to release: every command says what transcripts.md and the worked example print."""

import re
import shlex
from pathlib import Path

import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from cli import transcript_tables as tables
from recordwise.cli import screen
from recordwise.ledger.ledger import Ledger
from recordwise.release.verify import verify

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("establishments", "dairies", "zips", "utilities", "loans", "farms")


def blocks(page):
    """The code blocks of a page: language and text."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


BLOCKS = blocks(Path(__file__).with_name("transcripts.md"))
EXAMPLE = blocks(DOCS / "worked-example.md")


@pytest.fixture
def entered(tmp_path, monkeypatch, run):
    """Run a line of the page in a folder of its own; preflight is shown a terminal. Its words, and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def enter(line):
        program, *words = shlex.split(line)
        assert program == "recordwise"
        with monkeypatch.context() as patch:
            patch.setattr(screen, "on_terminal", lambda: words[0] == "preflight")
            result = run(*words)
        shown = result.stdout + (result.stderr if result.exit_code else "")
        return shown.replace(f"{tmp_path}/", ""), result.exit_code

    return enter


def dataset(text):
    return re.search(r'^dataset = "(\w+)"', text, flags=re.MULTILINE)[1]


def plans():
    """Every plan of the page, by its dataset."""
    return {dataset(text): text for language, text in BLOCKS if language == "toml"}


def words(text, *, drawn):
    """What was said; the numbers of a release are drawn anew each time."""
    bare = re.sub(r"\x1b\[[0-9;]*m|[─]+", " ", text).split()
    return [re.sub(r"[\d.,]+(?:e[+-]?\d+)?%?(?:\)\.)?$", "#", each) if drawn else each for each in bare]


def comes_back(said, shown, *, drawn):
    """Whether a command said what the page prints, where dots stand for lines left out."""
    parts = [" ".join(words(part, drawn=drawn)) for part in re.split(r"^\.\.\.$", said, flags=re.MULTILINE)]
    return re.fullmatch(".*".join(map(re.escape, parts)), " ".join(words(shown, drawn=drawn))) is not None


def typed(text):
    """A command of a page, and what it says comes back."""
    line, _, said = text.removeprefix("$ ").partition("\n")
    return line, said


READ, TYPED, WAITED = 100, 120, 3
"""Words a minute of what is read with care, characters a minute, and seconds for each command."""
NUMBERS = {"ten": 10, "fifteen": 15, "twenty": 20}


def minutes(page):
    """How long a newcomer needs, by a rule: read all of it, type the commands, wait for them."""
    commands = re.findall(r"^\$ (.*)$", page, flags=re.MULTILINE)
    return len(page.split()) / READ + sum(map(len, commands)) / TYPED + len(commands) * WAITED / 60


def test_the_minutes_of_the_worked_example_are_those_of_the_rule():
    page = (DOCS / "worked-example.md").read_text()
    stated = NUMBERS[re.search(r"You need (\w+) minutes", page)[1]]
    assert stated - 2.5 < minutes(page) <= stated + 2.5
    assert f"{READ} words read and {TYPED} characters typed a minute" in page


@pytest.mark.costly
def test_every_command_says_what_is_printed(entered, tmp_path):
    tables.write(tmp_path, None)
    ran = {}
    for language, text in BLOCKS:
        if language == "toml":
            (tmp_path / f"{dataset(text)}.toml").write_text(text)
        elif language == "text":
            assert (tmp_path / f"{dataset(text)}.toml").read_text() == text
        else:
            assert language == "console"
            line, said = typed(text)
            shown, code = entered(line)
            assert words(shown, drawn="release" in line) == words(said, drawn="release" in line), line
            assert code == (2 if "was refused" in said else 0)
            ran.setdefault(line, []).append(shown)
    commands = [line.split()[1] for line, shown in ran.items() for _ in shown]
    assert [commands.count(each) for each in ("init", "check", "preflight", "release")] == [6, 5, 4, 7]
    for name in NAMES:
        assert verify(tmp_path / f"{name}.ledger", against=[tmp_path / "published" / name]) == []
    the_worked_example_is_printed_as_it_runs({line: shown[0] for line, shown in ran.items()}, entered, tmp_path)


def the_worked_example_is_printed_as_it_runs(ran, entered, folder):
    """Its commands that were just run for the farms, and the others, and what it shows of a plan and of a refusal."""
    for language, text in EXAMPLE:
        if language == "toml":
            assert text in (folder / "farms.toml").read_text()
        elif language == "text":
            assert any(" ".join(text.split()) in " ".join(shown.split()) for shown in ran.values())
        else:
            line, said = typed(text)
            shown = ran.get(line) or entered(line)[0]
            drawn = "release" in line or "ask" in line
            assert comes_back(said, shown, drawn=drawn), (line, shown)
            assert not comes_back(said.upper(), shown, drawn=drawn)
    assert [language for language, _ in EXAMPLE].count("console") == 7


@pytest.mark.costly
def test_exact_answers_of_the_utilities_are_those_of_their_collapsed_rows(entered, tmp_path):
    """With next to no noise the release of a state is its sum over units and months, by hand in pandas."""
    tables.utilities(tmp_path, units=300)
    plan = plans()["utilities"].replace("sigma = 0.3", "sigma = 0.000001").replace("rho = 0.1", "rho = 100_000")
    (tmp_path / "utilities.toml").write_text(plan)
    assert entered("recordwise release utilities.toml --out out --yes")[1] == 0
    rows = pq.ParquetFile(tmp_path / "out" / "q1_state.parquet").read().to_pandas().set_index("state")
    frame = pyarrow.feather.read_feather(str(tmp_path / "utilities.feather"))
    units = frame.groupby("utility_id").agg({"state": "first", "kwh": "sum", "customers": "max", "profit": "sum"})
    truth = units.groupby("state").agg({"kwh": "sum", "customers": "sum", "profit": "sum"}).loc[rows.index]
    assert rows["sum_customers"].to_numpy() == pytest.approx(truth["customers"].to_numpy(), abs=20)
    assert rows["sum_kwh"].to_numpy() == pytest.approx(truth["kwh"].to_numpy(), rel=1e-4)
    assert rows["sum_profit"].to_numpy() == pytest.approx(truth["profit"].to_numpy(), rel=1e-3, abs=1e3)
    assert (truth["profit"] < 0).any() or (units["profit"] < 0).any()
    ratio = truth["kwh"] / truth["customers"]
    assert rows["kwh_per_customer"].to_numpy() == pytest.approx(ratio.to_numpy(), rel=1e-3)


@pytest.mark.slow
def test_the_same_plans_release_the_real_tables(entered, tmp_path):
    """The public files themselves where they are (RECORDWISE_DATA, or beside the checkout); elsewhere their look-alikes."""
    from experiments.frame.data import data_folder

    tables.write(tmp_path, data_folder(tables.COUNTIES, tables.DAIRIES, tables.ZIPS))
    for name, text in plans().items():
        file = {"establishments": "establishments.parquet", "dairies": "dairies.csv.gz --header", "zips": "zips"}
        file |= {"loans": "loans.csv --header"}
        assert entered(f"recordwise init {file.get(name, 'utilities.feather')} --out {name}.toml")[1] == 0
        (tmp_path / f"{name}.toml").write_text(text)
        for line in ("check {}.toml", "preflight {}.toml --data public", "release {}.toml --out published/{} --yes"):
            shown, code = entered("recordwise " + line.format(name, name))
            assert code == 0, shown
        assert Ledger.existing(tmp_path / f"{name}.ledger").looks() == {}
