"""The chain of the second attack: rehearse on the confidential source, take the NOT PRIVATE table as public sizes, and publish.

The noise of the release would tell every total within a factor of 2, and release.json would say that nobody looked.
"""

import shutil

import pytest

from recordwise.plan import sources

SIZED = """
[keys.counties]
rows = { county = ["06037", "17031"] }
size = { file = "sizes.FORMAT", column = "sum_emp" }
sized_on = "public: a table that somebody found"

[[queries]]
name = "sized"
group_by = ["county"]
keys = "counties"
sum.emp = { kind = "Sized", floor = 100, mechanism = { kind = "UnitSplit", at = 0.2, rho = 0.5 } }
"""


@pytest.fixture
def chained(folder, run, terminal):
    """The plan after a rehearsal on its own source, with sizes from the rehearsed table of a copy of the plan."""

    def made(kind, *given):
        plan = (folder / "plan.toml").read_text()
        first = plan.partition("[[queries]]")[0] + SIZED.partition("size =")[0]
        first += '[[queries]]\ngroup_by = ["county"]\nkeys = "counties"\nsum.emp = { kind = "UnitSplit", at = 20, rho = 0.5 }\n'
        (folder / "first.toml").write_text(first)
        words = ("--records", folder / "establishments.parquet", "--out", folder / "made", *given)
        rehearsed = run("rehearse", folder / "first.toml", *words)
        assert rehearsed.exit_code == 0, rehearsed.output
        shutil.copy(folder / "made" / f"county.{kind}", folder / f"sizes.{kind}")
        (folder / "plan.toml").write_text(plan.partition("[[queries]]")[0] + SIZED.replace("FORMAT", kind))
        return run("release", folder / "plan.toml", "--out", folder / "out", "--yes")

    return made


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.costly
def test_the_table_is_refused_even_if_nobody_noted_the_look(chained, folder, kind):
    """The records were falsely declared, so the ledger knows nothing: the label of the table alone must stop it."""
    refused = chained(kind, "--data", "public")
    assert refused.exit_code == 2
    assert "NOT PRIVATE" in refused.stderr
    assert not (folder / "out").exists()
    assert not (folder / "small.ledger").exists()


@pytest.fixture
def unlabeled(monkeypatch):
    """As if another program had copied the table."""
    read = sources.read_code_file

    def without_comment(path):
        if path.suffix == ".csv":
            path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("# ")))
        return read(path).replace_schema_metadata(None)

    monkeypatch.setattr(sources, "refuse_own_table", lambda table, name: None)
    monkeypatch.setattr("recordwise.plan.file.keys.read_code_file", without_comment)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_look_is_known_even_if_the_label_is_lost(chained, folder, kind, unlabeled):
    refused = chained(kind)
    assert refused.exit_code == 2
    assert "were viewed before this release (1 look: rehearse 1)" in " ".join(refused.stderr.split())
    assert not (folder / "out").exists()


@pytest.mark.costly
def test_only_a_false_declaration_and_a_lost_label_together_pass(chained, folder, unlabeled):
    """Both tests above can fail: without the two refusals the release is made."""
    assert chained("csv", "--data", "public").exit_code == 0
    assert (folder / "out").exists()
