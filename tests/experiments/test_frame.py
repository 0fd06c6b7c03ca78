"""The frame of the experiments: claims, files, pages, the data folder."""

import ast
import csv
import importlib
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments.frame import Claim, Picture, Reproduction, data_folder, data_note, new_figure, tidy, write, write_index
from recordwise.errors import ParameterError

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


def finished(**other):
    figure, axes = new_figure(size=(3, 2))
    axes[0, 0].plot([1, 2], [1, 4])
    tidy(axes[0, 0], title="A title", xlabel="x", ylabel="y")
    shown = Picture(name="line", figure=figure, caption="Four < five", alt='A rising "line"')
    made = {
        "name": "made-up",
        "title": "Something <done>",
        "source": "[X] Nobody",
        "setting": ("One sentence.",),
        "data": "No data.",
        "runs": 3,
        "seed": 4,
        "claims": [
            Claim(statement="a", paper="1", ours="1 & 1", agrees=True),
            Claim(statement="b", paper="1", ours="2", agrees=False, why="because"),
            Claim(statement="c", paper="1", ours="?", agrees=None, why="too few runs"),
        ],
        "tables": {"numbers": [{"x": 1, "y": 0.5}, {"x": 2, "y": 12345.678}]},
        "pictures": [shown],
        "numbers": {"largest": 4},
        "shown": ("numbers",),
    }
    return Reproduction(**(made | other))


class Tags(HTMLParser):
    """Every tag with its attributes, and whether they close in order."""

    VOID = frozenset({"meta", "img"})

    def __init__(self, text):
        super().__init__()
        self.seen, self.open = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_claim_that_does_not_agree_needs_a_reason():
    for verdict in (False, None):
        with pytest.raises(ParameterError, match="why"):
            Claim(statement="a", paper="1", ours="2", agrees=verdict)


@pytest.mark.costly
def test_the_files_hold_the_numbers_the_claims_and_the_figure(tmp_path):
    write(finished(), tmp_path, seconds=1.26)
    told = json.loads((tmp_path / "reproduction.json").read_text())
    assert told["seconds"] == 1.3
    assert [claim["agrees"] for claim in told["claims"]] == [True, False, None]
    assert told["claims"][1]["why"] == "because"
    with (tmp_path / "numbers.csv").open() as file:
        assert list(csv.DictReader(file)) == [{"x": "1", "y": "0.5"}, {"x": "2", "y": "12345.678"}]
    assert (tmp_path / "line.png").read_bytes().startswith(b"\x89PNG")


def test_a_number_that_is_not_json_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write(finished(numbers={"bad": float("nan")}), tmp_path)


def test_the_page_is_well_formed_self_contained_and_named_for_those_who_cannot_see(tmp_path):
    write(finished(), tmp_path)
    text = (tmp_path / "reproduction.html").read_text()
    tags = Tags(text).seen
    assert dict(tags)["html"] == {"lang": "en"}
    assert [name for name, _ in tags].count("h1") == 1
    (image,) = (given for name, given in tags if name == "img")
    assert image["alt"] == 'A rising "line"'
    assert image["src"].startswith("data:image/png;base64,")
    assert all("scope" in given for name, given in tags if name == "th")
    assert not any(given.get("src", "data:").startswith("http") for _, given in tags)
    assert "Something &lt;done&gt;" in text
    assert "does not agree" in text
    assert "because" in text
    assert "12,346" in text


def test_the_index_lists_results_and_failures(tmp_path):
    write_index(tmp_path, {"made-up": finished(), "broken": "no <file>"}, {"made-up": 61.4})
    text = (tmp_path / "index.html").read_text()
    links = [given["href"] for name, given in Tags(text).seen if name == "a"]
    assert links == ["made-up/reproduction.html"]
    assert "1 of 3" in text
    assert "failed: no &lt;file&gt;" in text


def test_without_the_files_there_is_no_folder_and_the_note_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("RECORDWISE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder("a.csv") is None
    assert "RECORDWISE_DATA" in data_note("the real files", "a.csv")
    (tmp_path / "a.csv").touch()
    assert data_note("the real files", "a.csv") == "the real files"


def recordwise_imports(path):
    """What a file imports from recordwise: module and name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((each.name, None) for each in node.names if each.name.split(".")[0] == "recordwise")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "recordwise":
            yield from ((node.module, each.name) for each in node.names)


PUBLIC_MODULES = {
    "recordwise.errors",
    "recordwise.exact.functions",
    "recordwise.planning.plots",
}
"""Modules without a list of their public names; a leading underscore marks the others."""


@pytest.mark.parametrize(
    "path",
    sorted(set(EXPERIMENTS.rglob("*.py")) - {EXPERIMENTS / "command.py"}),
    ids=lambda path: path.relative_to(EXPERIMENTS).as_posix(),
)
def test_experiments_use_public_names_only(path):
    """All but the command that runs them, which prints and fails as the commands of the package do."""
    for module, name in recordwise_imports(path):
        if module in PUBLIC_MODULES:
            assert not (name or "").startswith("_")
            continue
        listed = importlib.import_module(module).__all__
        assert name is None or name in listed, f"{name} is not public in {module}"


def test_every_experiment_says_what_it_does_and_how_often():
    for path in sorted(EXPERIMENTS.glob("*/run.py")):
        module = importlib.import_module(f"experiments.{path.parent.name}.run")
        first = ast.get_docstring(ast.parse((path.parent / "__init__.py").read_text())) or ""
        assert first
        assert module.RUNS >= 1
        assert module.STEPS >= 1
        assert callable(module.reproduce)
