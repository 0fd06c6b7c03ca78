"""``recordwise release --refine``: preliminary, then final, from plan files to what each command says about it."""

import json
from unittest.mock import patch

import pytest

from build import PLAN, write_records
from recordwise.errors import OutputError
from recordwise.policy.meaning import meaning
from recordwise.release.files import load_release
from recordwise.release.page.view import view_of
from recordwise.release.release import Release

FINAL = (
    PLAN.replace("rho = 0.1 }", "rho = 0.2 }").replace("rho = 0.5 }", "rho = 1 }")
    + "\n[examples]\nshop = { emp = 20 }\n"
)


@pytest.fixture
def place(tmp_path, run):
    write_records(tmp_path / "records.parquet", 60)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "final.toml").write_text(FINAL)
    assert run("release", tmp_path / "plan.toml", "--out", tmp_path / "first", "--yes").exit_code == 0
    return tmp_path


@pytest.mark.costly
def test_a_final_release_pays_the_difference_and_every_command_says_so(place, run):
    done = run("release", place / "final.toml", "--refine", place / "first", "--out", place / "second", "--yes")
    assert done.exit_code == 0, done.output
    assert "only the difference was charged" in done.output
    assert (
        run("ledger", "verify", place / "small.ledger", "--against", place / "first", place / "second").exit_code == 0
    )
    shown = run("ledger", "show", place / "small.ledger", "--plan", place / "final.toml")
    assert "refines charge 2" in shown.output
    told = json.loads(run("ledger", "show", place / "small.ledger", "--plan", place / "final.toml", "--json").output)
    losses = [each["loss"] for each in told["charges"]["shop"]]
    assert losses == pytest.approx([0.6, 0.6])
    found = json.loads(run("loss", place / "second" / "policy.json", "emp=20", "--json").output)
    assert (found["loss"], found["all_stages"]["loss"]) == pytest.approx((0.6, 1.2))
    assert found["all_stages"]["epsilon_from"] == "the zCDP loss"
    assert "all stages" in run("loss", place / "second" / "policy.json", "emp=20").output
    (place / "firm.csv").write_text("county,emp\n01,20\n02,20\n")
    firm = ("loss", place / "second" / "policy.json", "--firm", place / "firm.csv")
    told = json.loads(run(*firm, "--json").output)
    assert (told["loss"], told["all_stages"]["loss"]) == pytest.approx((1.2, 2.4))
    assert "all stages" in run(*firm).output
    page = (place / "second" / "report.html").read_text()
    assert "answers are averages of both draws" in page


@pytest.mark.costly
def test_what_a_refined_release_tells_is_said_with_the_losses_of_all_stages(place, run):
    """Averages of two draws tell what both cost; the further draws alone would say less than the truth."""
    assert (
        run("release", place / "final.toml", "--out", place / "second", "--refine", place / "first", "-y").exit_code
        == 0
    )
    refined, record = load_release(place / "second"), {"emp": 20, "county": "01"}
    assert (refined.policy.loss(record), view_of(refined, {}).release.policy.loss(record)) == pytest.approx((0.6, 1.2))
    assert sum(part.policy.loss(record) for part in refined.parts) == pytest.approx(1.2)
    assert refined.values is None
    power = meaning(1.2).power
    report = ("loss", place / "second" / "policy.json", "emp=20")
    found = json.loads(run(*report, "--json").output)
    assert (found["power_of_a_5_percent_test"], found["sentence"]) == (
        pytest.approx(power),
        found["all_stages"]["sentence"],
    )
    assert "told" not in found
    alone = place / "policy.json"
    alone.write_bytes((place / "second" / "policy.json").read_bytes())
    away = json.loads(run("loss", alone, "emp=20", "--json").output)
    assert (away["loss"], away["all_stages"]) == (found["loss"], found["all_stages"]), "a file away from its folder"
    assert found["all_stages"]["sentence"] in " ".join(run(*report).output.split())
    page = (place / "second" / "report.html").read_text()
    assert "losses on this page are those of all stages" in page


@pytest.mark.costly
def test_check_and_resume_know_the_stage_of_a_plan(place, run):
    stage = '\n[stage]\nrefine = "first"\nfixed_in_advance = true\n'
    (place / "stage.toml").write_text(FINAL + stage)
    told = json.loads(run("check", place / "stage.toml", "--json").output)
    assert [each["loss"] for each in told["examples"]] == pytest.approx([0.6])
    assert [each["loss_of_all_stages"] for each in told["examples"]] == pytest.approx([1.2])
    tried = run("rehearse", place / "stage.toml", "--rows", "200", "--out", place / "tried")
    assert "averages of a first draw and a further one" in tried.output.replace("\n", " ")
    kinds = {each["mechanism"]["kind"] for each in load_release(place / "tried").published.plan_forms[0]["statistics"]}
    assert kinds == {"Refined"}
    assert run("release", place / "stage.toml", "--out", place / "second", "--yes").exit_code == 0
    again = run("release", place / "stage.toml", "--out", place / "third", "--yes")
    assert again.exit_code == 4
    found = json.loads(run("loss", place / "second" / "policy.json", "emp=20", "--json").output)
    assert found["all_stages"]["epsilon_from"] == "the exact law of the noise"
    other = run("release", place / "stage.toml", "--refine", place / "second", "--out", place / "third", "--yes")
    assert "different folders" in other.output


@pytest.mark.costly
def test_a_public_tier_is_made_from_the_release_for_researchers_and_every_command_says_so(place, run):
    coarser = PLAN.replace("rho = 0.1 }", "rho = 0.025 }").replace("rho = 0.5 }", "rho = 0.125 }")
    (place / "public.toml").write_text(coarser + "\n[examples]\nshop = { emp = 20 }\n")
    (place / "stage.toml").write_text((place / "public.toml").read_text() + '\n[stage]\ntier_of = "first"\n')
    told = json.loads(run("check", place / "stage.toml", "--json").output)
    assert [each["loss"] for each in told["examples"]] == pytest.approx([0.15], rel=1e-4)
    assert any("nothing is charged" in each for each in told["warnings"])
    tried = run("rehearse", place / "stage.toml", "--rows", "200", "--out", place / "tried")
    assert "noise on top of noise" in tried.output.replace("\n", " "), tried.output
    arguments = ["release", place / "public.toml", "--tier-of", place / "first", "--yes"]
    full = OutputError(folder="second", problem="cannot be written", advice="")
    with patch.object(Release, "save", side_effect=full):
        assert run(*arguments, "--out", place / "tier").exit_code != 0
    done = run(*arguments, "--out", place / "tier", "--resume")
    assert "nothing was charged" in " ".join(done.output.split())
    assert run("ledger", "verify", place / "small.ledger", "--against", place / "first", place / "tier").exit_code == 0
    for more in ((), ("--again",)):
        assert run("release", place / "stage.toml", "--out", place / "third", "--yes", *more).exit_code != 0
    shown = run("ledger", "show", place / "small.ledger", "--plan", place / "public.toml")
    assert "a tier of charge 2: nothing is charged" in " ".join(shown.output.split())
    losses = json.loads(run("ledger", "show", place / "small.ledger", "--plan", place / "public.toml", "--json").output)
    assert [each["loss"] for each in losses["charges"]["shop"]] == pytest.approx([0.6, 0])
    assert [each.get("tier") for each in losses["charges"]["shop"]] == [None, 2]
    found = json.loads(run("loss", place / "tier" / "policy.json", "emp=20", "--json").output)
    assert found["loss"] == pytest.approx(0.15, rel=1e-4)
    assert found["epsilon_from"] == "the zCDP loss"
    page = (place / "tier" / "report.html").read_text()
    assert "learns at most what that entry charged" in page


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('tier_of = "first"\nold_records = "records.parquet"', "leave old_records out"),
        ('carry = "first"', "needs old_records"),
        ('revise = "first"\nrefine = "first"', "refine and revise, and there is no proof"),
        ('refine = "first"\nold_records = "records.parquet"', "leave old_records out"),
        ("fixed_in_advance = true", "needs one of refine"),
        ('refine = "first"\nfixed_in_advance = 1', "fixed_in_advance"),
    ],
)
@pytest.mark.costly
def test_what_a_stage_cannot_do_is_refused_by_name(place, run, entry, words):
    (place / "stage.toml").write_text(f"{FINAL}\n[stage]\n{entry}\n")
    refused = run("check", place / "stage.toml")
    assert refused.exit_code == 2
    assert words in refused.output


@pytest.mark.costly
def test_a_final_release_that_could_not_be_saved_is_resumed_at_no_cost(place, run):
    arguments = ["release", place / "final.toml", "--refine", place / "first", "--yes"]
    full = OutputError(folder="second", problem="cannot be written", advice="")
    with patch.object(Release, "save", side_effect=full):
        assert run(*arguments, "--out", place / "second").exit_code != 0
    assert run(*arguments, "--out", place / "second", "--resume").exit_code == 0
    assert load_release(place / "second").published.refinement.charge == 2
    told = json.loads(run("ledger", "show", place / "small.ledger", "--json").output)
    assert sum(each["kind"] == "charged" for each in told["events"]) == 2
