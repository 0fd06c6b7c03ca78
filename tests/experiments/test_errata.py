"""The errata: every one borne out by its evidence, and every one with a command that exists."""

import re
from pathlib import Path

import pytest

from experiments.command import names
from experiments.errata.__main__ import main
from experiments.errata.evidence import Evidence
from experiments.errata.run import SHOWN, collected, reproduce

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8").split("\n## Errata of the sources\n")[1]


@pytest.fixture(scope="module")
def found():
    return collected(lambda _: None)


@pytest.mark.costly
def test_every_erratum_is_borne_out(found):
    assert [each.name for each in found if not each.holds] == []
    assert len({each.name for each in found}) == len(SHOWN)


def test_the_page_and_the_evidence_name_the_same_errata(found):
    listed = re.findall(r"`errata ([a-z0-9-]+)`", TEXT)
    assert sorted(listed) == sorted(each.name for each in found)


def test_every_entry_of_the_page_has_a_command_and_none_is_owed():
    entries = re.split(r"\n- ", TEXT)[1:]
    without = [
        entry[:60] for entry in entries if not re.search(r" `(?:errata )?[a-z0-9-]+`\s*$", entry.split("\n\n")[0])
    ]
    assert without == []
    assert len(entries) > 20
    assert "owed" not in TEXT
    assert set(re.findall(r"`([a-z0-9-]+)`", TEXT)) <= set(names())


def test_an_erratum_that_is_not_borne_out_is_called_a_defect():
    wrong = Evidence(name="n", source="[X]", printed="p", shown="s", holds=False, correction="c")
    assert wrong.claim().agrees is True
    assert "defect" in wrong.claim().why
    assert "NOT BORNE OUT" in wrong.text()


@pytest.mark.costly
def test_the_command_prints_one_and_refuses_an_unknown_one(capsys):
    assert main(["lemma-7"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("lemma-7")
    assert "0.90" in printed
    assert "lemma-6" not in printed
    assert main(["nothing"]) == 2
    assert "lemma-7" in capsys.readouterr().err


@pytest.mark.costly
def test_the_page_of_all_errata_is_made():
    done = reproduce(runs=1, seed=1, tell=lambda _: None)
    assert done.numbers["borne_out"] == done.numbers["of"] == len(SHOWN)
