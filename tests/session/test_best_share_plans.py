"""share = "best": found before anything is charged, from public lists alone, the same again, and stated where it is used."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import recordwise as rw
from build import PLAN, generous, records, session, write_records
from recordwise.errors import AlreadyReleasedError, ParameterError, PlanFileError
from recordwise.plan.cost import plan_policy
from recordwise.plan.file import load_plan
from recordwise.plan.plan import Plan
from recordwise.release.files import load_release
from recordwise.session.checks import with_sizes
from recordwise.session.shares import best_shares

KEYS = rw.Keys.product(county=["01", "02", "03"], naics=["111", "112", "221"])
LEVELS = """levels = [{ by = [[], "county"], share = "best" }]
keys = { rows = { county = ["01", "02", "03"] } }
"""


def asked(share: Any = "best") -> Any:
    return rw.query().levels((), "county", share=share, keys=KEYS).sum("emp", rw.UnitSplit(at=20, rho="0.5"))


def shares(query: Any) -> list[Fraction]:
    return [level.share for level in query.tables()]


def plan_file(folder: Path, levels: str = LEVELS) -> Path:
    write_records(folder / "records.parquet", 200)
    path = folder / "plan.toml"
    start, end = PLAN.index("group_by"), PLAN.index("count = ")
    path.write_text(PLAN[:start] + levels + PLAN[end:])
    return path


def test_the_best_shares_are_charged_published_and_recognized(tmp_path: Path) -> None:
    with session(records(200), tmp_path / "l") as opened:
        plan = with_sizes(Plan(schema=opened.schema, queries=(asked(),)))
        (query,) = plan.queries
        found = best_shares(plan, 0)
        assert shares(query) == list(found.axes[0])
        assert shares(query) != [Fraction(1, 2)] * 2
        assert opened.policy_of(asked()) == plan_policy(plan)
        done = opened.run(asked(), refuse_repeat=True)
        assert opened.spent() == plan_policy(plan)
        (stated,) = json.loads(json.dumps(opened.history()[-2].body["details"]))
        assert stated["shares"] == "best"
        assert [Fraction(each["share"]) for each in stated["tables"]] == shares(query)
        for same in (asked(), query):
            with pytest.raises(AlreadyReleasedError):
                opened.run(same, refuse_repeat=True)
        opened.run(asked([Fraction(1, 4), Fraction(3, 4)]), refuse_repeat=True)
    assert [Fraction(each.shape.share) for each in plan.tables()] == shares(query)
    assert done.policy == plan_policy(plan)


def test_a_retry_is_recognized_although_other_shares_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version or machine may find another last digit: the release is the same, and is not paid for twice."""
    from recordwise.session import shares as module

    with session(records(200), tmp_path / "l") as opened:
        opened.run(asked(), refuse_repeat=True)
    other = module.BestShares(
        query=0, variables=(), axes=((Fraction(1, 5), Fraction(4, 5)),), now=1.0, equal=1.0, sized=False
    )
    monkeypatch.setattr(module, "best_shares", lambda *given, **more: other)
    with session(records(200), tmp_path / "l") as opened, pytest.raises(AlreadyReleasedError):
        opened.run(asked(), refuse_repeat=True)


def crossed(rho: str = "0.5") -> Any:
    """Crossing levels with sizes that make shares of tables worth it."""
    cells = {"county": ["01"] * 3 + ["02"] * 3 + ["03"] * 3, "naics": ["111", "112", "221"] * 3}
    sizes = [10, 20000, 100, 50, 400, 3, 900, 30, 5000]
    keys = rw.Keys.of({**cells, "size": sizes}, size={"emp": "size"}, sized_on="public: a list")
    found = rw.query().levels((), "county", share="best").levels((), "naics", share="best", keys=keys)
    return found.sum("emp", rw.UnitSplit(at=20, rho=rho))


@contextmanager
def products() -> Iterator[None]:
    """Shares of crossing levels as versions before found them: always products."""

    def found(*given: Any, **more: Any) -> Any:
        return replace(best_shares(*given, **more), tables=())

    with patch("recordwise.session.shares.best_shares", found):
        yield


def stated_shares(plan: Any) -> list[Fraction]:
    return [Fraction(each["share"]) for each in plan[0]["tables"]]


@pytest.mark.costly
def test_tables_of_crossing_levels_have_shares_of_their_own_and_are_recognized(tmp_path: Path) -> None:
    with session(records(200), tmp_path / "l") as opened:
        (query,) = with_sizes(Plan(schema=opened.schema, queries=(crossed(),))).queries
        assert query.best is not None
        assert query.best.tables == query.table_shares
        assert sum(query.table_shares) == 1
        opened.run(crossed(), refuse_repeat=True)
        (stated,) = opened.history()[-2].body["details"]
        assert stated["shares"] == "best"
        assert stated_shares([stated]) == shares(query)
        for same in (crossed(), query):
            with pytest.raises(AlreadyReleasedError):
                opened.run(same, refuse_repeat=True)
        opened.run(query.with_shares(*query.table_shares), refuse_repeat=True)
        text = rw.planning.plan_text(
            (query,), opened.schema, dataset="small", source="records.parquet", ledger="l", tuned_on="synthetic"
        ).text
    assert text.count('share = "best"') == 2
    assert "table_share" not in text
    goal = query.with_share_goal({100: "0.1"})
    assert goal.has_best_shares
    assert not goal.table_shares


def test_a_charge_for_products_of_shares_is_recognized_and_resumed(tmp_path: Path) -> None:
    with products(), session(records(200), tmp_path / "l") as opened:
        drawn = opened.run(crossed(), refuse_repeat=True, keep=True)
    with session(records(200), tmp_path / "l") as opened:
        with pytest.raises(AlreadyReleasedError):
            opened.run(crossed(), refuse_repeat=True)
        resumed = opened.unfinished.resume(crossed())
    assert resumed is not None
    assert resumed.digest == drawn.digest
    assert stated_shares(resumed.published.plan_forms) == stated_shares(drawn.published.plan_forms)


@pytest.mark.costly
def test_a_release_with_products_of_shares_is_refined_with_its_own(tmp_path: Path) -> None:
    with session(records(200), tmp_path / "l", generous()) as opened:
        with products():
            opened.run(crossed("0.1")).save(tmp_path / "first")
        first = load_release(tmp_path / "first")
        refined = opened.run(crossed("0.4"), refine=first)
        tier = opened.run(crossed("0.05"), tier_of=first)
        now = with_sizes(Plan(schema=opened.schema, queries=(crossed("0.4"),))).queries[0]
        with pytest.raises(ParameterError, match="the same condition"):
            opened.run(crossed("0.9").with_share_goal({100: "0.1"}), refine=first)
    kept = stated_shares(refined.published.plan_forms)
    assert kept == stated_shares(first.published.plan_forms) != shares(now)
    assert refined.published.plan_forms[0]["shares"] == "best"
    assert stated_shares(tier.published.plan_forms) == kept


def test_shares_that_were_changed_after_they_were_found_are_another_release(tmp_path: Path) -> None:
    with session(records(200), tmp_path / "l") as opened:
        (query,) = with_sizes(Plan(schema=opened.schema, queries=(asked(),))).queries
        opened.run(query, refuse_repeat=True)
        from recordwise.session.shares import with_axis_shares

        changed = with_axis_shares(query, [[Fraction(1, 5), Fraction(4, 5)]])
        opened.run(changed, refuse_repeat=True)
        assert opened.history()[-2].body["details"][0]["tables"][0]["share"] == "1/5"


def test_a_plan_file_says_best_and_is_written_back_so(tmp_path: Path) -> None:
    file = load_plan(plan_file(tmp_path))
    assert file.plan.queries[0].best is not None
    with rw.Session.from_plan(file) as opened:
        written = rw.planning.plan_text(
            file.plan.queries,
            opened.schema,
            dataset="small",
            source="records.parquet",
            ledger="l",
            tuned_on="synthetic",
        )
    assert 'share = "best"' in written.text
    checked = rw.planning.check(file)
    assert checked.file.plan.queries[0].best is not None
    assert [level.share for level in checked.file.plan.queries[0].tables()] != [Fraction(1, 2)] * 2


@pytest.mark.parametrize("given", [("best", None), (None, "best"), ("best", ["1/2", "1/2"])])
def test_best_is_for_all_levels_of_a_query(given: tuple[Any, Any]) -> None:
    first, second = given
    with pytest.raises(ParameterError, match="for some levels of a query only"):
        rw.query().levels((), "county", share=first, keys=KEYS).levels((), "naics", share=second)
    with pytest.raises(ParameterError, match='or "best"'):
        rw.query().levels((), "county", share="equal", keys=KEYS)


def test_another_word_in_a_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanFileError, match="share"):
        load_plan(plan_file(tmp_path, LEVELS.replace('"best"', '"better"')))


def test_a_goal_decides_what_is_best_and_is_another_release(tmp_path: Path) -> None:
    sizes = rw.Keys.of(
        {"county": ["01", "02", "03"], "emp": [50, 500, 20000]}, size={"emp": "emp"}, sized_on="public: a list"
    )
    query = rw.query().levels((), "county", share="best", keys=sizes).sum("emp", rw.UnitSplit(at=20, rho="0.5"))
    goal = query.with_share_goal({15000: "0.05", 100000: "0.5"})
    with session(records(200), tmp_path / "l") as opened:
        plain, own = (with_sizes(Plan(schema=opened.schema, queries=(each,))) for each in (query, goal))
        wanted = best_shares(plain, 0, goal={15000: "0.05", 100000: "0.5"})
        assert shares(own.queries[0]) == list(wanted.axes[0])
        assert shares(own.queries[0]) != shares(plain.queries[0])
        opened.run(query, refuse_repeat=True)
        opened.run(goal, refuse_repeat=True)
        with pytest.raises(AlreadyReleasedError):
            opened.run(query.with_share_goal({"100000": Fraction(1, 2), 15000: "1/20"}), refuse_repeat=True)
        assert opened.history()[-2].body["details"][0]["shares"] == "best (1/20 from 15000 on, 1/2 from 100000 on)"
        text = rw.planning.plan_text(
            (goal,), opened.schema, dataset="small", source="records.parquet", ledger="l", tuned_on="synthetic"
        )
    write_records(tmp_path / "records.parquet", 200)
    assert load_plan(text.save(tmp_path / "plan.toml")).plan.queries[0].best == goal.best


@pytest.mark.parametrize(
    "goal, told",
    [
        ("{}", "must name a size and an error"),
        ("{ 100 = -1 }", "share_goal"),
        ("{ many = 0.1 }", "share_goal"),
        ("5", "must be a table"),
    ],
)
def test_a_goal_that_is_none_is_refused(tmp_path: Path, goal: str, told: str) -> None:
    with pytest.raises(PlanFileError, match=told):
        load_plan(plan_file(tmp_path, LEVELS.replace("keys =", f"share_goal = {goal}\nkeys =")))
    with pytest.raises(PlanFileError, match='is for levels with share = "best"'):
        load_plan(
            plan_file(
                tmp_path, LEVELS.replace(', share = "best"', "").replace("keys =", "share_goal = { 1 = 1 }\nkeys =")
            )
        )


PLACES = """
[hierarchies.places]
file = "places.csv"
levels = ["area", "county"]
source = "public: a list"

[outputs]
tables = ["research", "basic"]
basic = { complete = true }
"""


@pytest.mark.costly
def test_a_recommended_plan_says_best_and_finds_its_shares_again(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("area,county\na,01\na,02\nb,03\n")
    levels = 'levels = [{ by = ["area", "county"] }]\nkeys = { product = { places = "county" } }\n'
    path = plan_file(tmp_path, levels)
    text = path.read_text()
    path.write_text(text.replace("[[queries]]", f"{PLACES}\n[[queries]]", 1))
    file = load_plan(path)
    assert file.plan.queries[0].best is None
    with rw.Session.from_plan(file, data="synthetic") as opened:
        goals = rw.planning.plan_goals(opened, file, within="0.3", at_least=10)
        found = rw.planning.recommend(opened, goals, plan=file, data="synthetic", new_budget=True)
        raw = rw.planning.recommend(opened, goals, plan=file, data="synthetic", new_budget=True, fitted=False)
    assert found.best.losses.rho.quantile(0.5) < raw.best.losses.rho.quantile(
        0.5
    )  # basic tables are complete, so fits count
    saved = found.save_like(path, tmp_path / "new.toml")
    assert 'share = "best"' in saved.read_text()
    again = rw.planning.check(load_plan(saved))
    assert shares(again.file.plan.queries[0]) == shares(found.queries()[0])
    assert again.budget == "covers the plan"
    assert again.file.reserve == 1


@pytest.mark.costly
def test_the_most_reliable_plan_within_losses_says_best_and_finds_its_shares_again(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("area,county\na,01\na,02\nb,03\n")
    levels = 'levels = [{ by = ["area", "county"] }]\nkeys = { product = { places = "county" } }\n'
    path = plan_file(tmp_path, levels)
    path.write_text(path.read_text().replace("[[queries]]", f"{PLACES}\n[[queries]]", 1))
    file = load_plan(path)
    with rw.Session.from_plan(file, data="synthetic") as opened:
        gaussian = {"Gaussian": rw.Gaussian(sigma=1)}
        found = rw.planning.recommend_within(opened, file, median="0.01", candidates=gaussian, data="synthetic")
    assert 0.0095 < found.loss("median") <= 0.01
    saved = found.save_like(path, tmp_path / "new.toml")
    assert 'share = "best"' in saved.read_text()
    again = rw.planning.check(load_plan(saved))
    assert shares(again.file.plan.queries[0]) == shares(found.queries[0]) != shares(file.plan.queries[0])
    assert plan_policy(again.file.plan) == plan_policy(replace(file.plan, queries=found.queries))
