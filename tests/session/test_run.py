"""What a run does, in what order, and what it leaves behind."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import CODES, COUNTIES, employers, generous, keys, question, records, session
from recordwise.errors import BudgetError, DataError, DrawingError, ParameterError, PlanError, RangeError, TuningError
from recordwise.ledger.ledger import FIXED_IN_ADVANCE, WITHIN_BUDGET
from recordwise.noise import Secure, Seeded
from recordwise.policy import Policy, constant
from recordwise.release.tables import NOT_PRIVATE


def kinds(opened: rw.Session) -> list[str]:
    return [event.kind for event in opened.history()]


def simple(rho: str = "0.1") -> object:
    return rw.query().group_by("county", "naics", keys=keys()).count(rw.Gaussian(rho=rho), alias="n")


@pytest.mark.usefixtures("on_both_engines")
def test_every_public_cell_is_published_with_value_error_and_interval() -> None:
    with session(records()) as opened:
        release = opened.run(question())
    assert [table.name for table in release.tables] == ["county_by_naics2", "county_by_naics3"]
    table = release["county_by_naics3"]
    cells = list(zip(table["county"].to_pylist(), table["naics3"].to_pylist()))
    assert cells == [(county, code) for county in COUNTIES for code in CODES]
    ends = ["", "_sd", "_cv", "_low", "_high"]
    wanted = [name + end for name in ("n", "sum_emp") for end in ends]
    wanted += [f"sum_pay{end}" for end in (*ends, "_noisy", "_sigma", "_variance")]
    assert table.column_names == ["county", "naics3", *wanted]
    for name in ("n", "sum_emp"):
        low, value, high = (table[name + end].to_numpy() for end in ("_low", "", "_high"))
        assert np.all((low <= value) & (value <= high))
    # An unbiased value of a transform may be negative; its interval starts at 0.
    assert np.all(table["sum_pay_low"].to_numpy() >= 0)
    assert np.all(table["sum_pay_low"].to_numpy() < table["sum_pay_high"].to_numpy())


@pytest.mark.usefixtures("on_both_engines")
def test_values_are_the_exact_totals_plus_the_noise_of_the_mechanism() -> None:
    rows = records()
    with session(rows) as opened:
        table = opened.run(rw.query().group_by("county", keys=keys()).sum("emp", rw.UnitSplit(at=1, rho=10**6))).table
    frame = rows.to_pandas().groupby("county")["emp"].sum()
    # sigma is 0.0007 steps: another value than the total has probability below 1e-300000.
    assert table["sum_emp"].to_pylist() == [*frame.tolist(), 0]
    assert table["sum_emp"].type == pa.int64()


@pytest.mark.parametrize(("listed", "default"), [(1, 10**9), (10**9, 1)])
def test_each_cell_gets_its_own_total_and_the_noise_of_its_own_group(listed: int, default: int) -> None:
    """At a threshold of 1 there is no noise to speak of; at 10**9, sigma is 700,000 employees."""
    rows = records()
    at = rw.by("county", {"02": listed}, default=default)
    asked = rw.query().group_by("county", keys=keys()).sum("emp", rw.UnitSplit(at=at, rho=10**6))
    with session(rows) as opened:
        values = opened.run(asked, rng=rw.noise.Seeded(1)).table["sum_emp"].to_pylist()
    exact = [*rows.to_pandas().groupby("county")["emp"].sum().tolist(), 0]
    for county, value, total in zip(COUNTIES, values, exact):
        without_noise = (listed if county == "02" else default) == 1
        assert (value == total) == without_noise
        assert without_noise or abs(value - total) > 1000


def test_a_sum_in_cents_is_published_in_units_with_the_noise_of_its_mechanism() -> None:
    rows = pa.table({"id": [1, 2, 3], "county": ["01", "01", "02"], "pay": [0.25, 10.5, 7.07]})
    asked = rw.query().group_by("county", keys=rw.Keys.of({"county": ["01", "02"]}))
    with employers(rows, "county", measures={"pay": "0.01"}, tuned_on="public") as opened:
        exact = opened.run(asked.sum("pay", rw.UnitSplit(at="0.01", rho=10**6))).table
        noisy = opened.run(asked.sum("pay", rw.Gaussian(sigma=5))).table
    assert exact["sum_pay"].to_pylist() == [10.75, 7.07]
    assert noisy["sum_pay_sd"].to_numpy() == pytest.approx(5, rel=1e-6)


def test_totals_beyond_64_bits_do_not_wrap(opens) -> None:
    # Five quarters of what 64 bits hold: a wrapped total would be a quarter, whatever the noise.
    rows = pa.table({"id": [1, 2, 3, 4, 5], "county": ["01"] * 5, "emp": [2**62] * 5})
    measures = {"emp": rw.Measure.of("emp", bound=2**62)}
    with employers(rows, measures=measures, **opens.session_options()) as opened:
        asked = rw.query().group_by("county", keys=rw.Keys.product(county=["01"])).sum("emp", rw.Gaussian(sigma=1))
        (value,) = opened.run(asked).table["sum_emp"].to_pylist()
    assert value == 2**63 - 1


@pytest.mark.usefixtures("on_both_engines")
def test_the_ledger_is_charged_after_the_records_were_read_and_before_noise_is_drawn(tmp_path) -> None:
    seen = []
    with session(records(), tmp_path / "l") as opened:
        opened.run(question(), progress=lambda stage: seen.append((stage, kinds(opened))))
        after = kinds(opened)
    assert seen == [
        ("reading records", ["opened"]),
        ("charging the ledger", ["opened"]),
        ("drawing noise", ["opened", "charged"]),
        ("recording the release", ["opened", "charged"]),
    ]
    assert after == ["opened", "charged", "released"]


def test_no_bit_is_drawn_before_the_charge_is_in_the_books(tmp_path) -> None:
    drawn = []

    class Watched(rw.noise.Seeded):
        def fill(self, words) -> None:
            drawn.append(kinds(opened))
            super().fill(words)

    with session(records(), tmp_path / "l") as opened:
        opened.run(question(), rng=Watched(1))
    assert len(drawn) > 2
    assert all(seen == ["opened", "charged"] for seen in drawn)


def test_what_is_charged_is_the_policy_told_before() -> None:
    with session(records()) as opened:
        told = opened.policy_of(question())
        release = opened.run(question())
        assert release.policy == opened.spent() == told
        assert release.paper_policy == opened.policy_of(question(), tight=False)
        charged = opened.history()[1].body
    assert Policy.from_json(charged["policy"]) == told
    assert charged["query"] == "n, sum_emp, sum_pay"


@pytest.mark.usefixtures("on_both_engines")
def test_a_refused_query_reads_no_record_and_spends_nothing() -> None:
    place = records().column_names.index("county")
    broken = records().set_column(place, "county", pa.array([None] * 500, pa.string()))
    with session(broken, budget=constant("0.1")) as opened:
        with pytest.raises(BudgetError, match="does not cover n: "):
            opened.run(simple("0.2"))
        with pytest.raises(DataError, match="'county'"):
            opened.run(simple("0.1"))
        assert kinds(opened) == ["opened"]
        assert opened.remaining({}) == pytest.approx(0.1, abs=1e-15)


@pytest.mark.parametrize(
    "change, error",
    [
        ({"confidence": 1.5}, ParameterError),
        ({"rng": 42}, ParameterError),
        ({"rng": np.random.default_rng(1)}, ParameterError),
    ],
)
def test_a_bad_argument_is_refused_before_anything_is_spent(change: dict, error: type) -> None:
    with session(records()) as opened:
        with pytest.raises(error):
            opened.run(question(), **change)
        assert kinds(opened) == ["opened"]


def test_a_cell_without_a_threshold_is_refused_before_anything_is_spent() -> None:
    at = rw.by("county", {"01": 5, "02": 5, "03": 5})
    asked = rw.query().group_by("county", keys=keys()).sum("emp", rw.UnitSplit(at=at, rho="0.1"))
    with session(records()) as opened:
        with pytest.raises(PlanError, match="no threshold"):
            opened.run(asked)
        assert kinds(opened) == ["opened"]


def test_a_noise_law_out_of_range_is_refused_before_anything_is_spent() -> None:
    asked = rw.query().group_by("county", keys=keys()).sum("emp", rw.Gaussian(sigma=10**18))
    with session(records()) as opened:
        with pytest.raises(RangeError, match="2\\^62"):
            opened.run(asked)
        assert kinds(opened) == ["opened"]


class Broken(Secure):
    """A source that fails in the middle of a draw, with a text that must not be seen."""

    def fill(self, words) -> None:
        raise OverflowError("Python integer 123456789 out of bounds")


@pytest.mark.usefixtures("on_both_engines")
def test_a_failure_after_the_charge_is_booked_and_its_text_withheld() -> None:
    with session(records()) as opened:
        with pytest.raises(DrawingError, match="OverflowError") as failed:
            opened.run(question(), rng=Broken())
        assert "123456789" not in str(failed.value)
        assert failed.value.__cause__ is None
        assert failed.value.__suppress_context__
        assert kinds(opened) == ["opened", "charged", "failed"]
        assert opened.history()[2].body == {"charge": 2, "kind": "OverflowError"}
        assert opened.spent() == opened.policy_of(question())


def test_an_interrupt_after_the_charge_is_booked_and_passed_on() -> None:
    def interrupt(stage: str) -> None:
        if stage == "recording the release":
            raise KeyboardInterrupt

    with session(records()) as opened:
        with pytest.raises(KeyboardInterrupt):
            opened.run(question(), progress=interrupt)
        assert kinds(opened) == ["opened", "charged", "failed"]


@pytest.mark.usefixtures("on_both_engines")
def test_groups_served_by_different_mechanisms_come_back_in_the_order_of_the_cells() -> None:
    at = rw.by("county", {"02": 5}, default=50)
    asked = rw.query().group_by("county", keys=keys()).sum("emp", rw.UnitSplit(at=at, rho="0.1"))
    with session(records()) as opened:
        sd = opened.run(asked).table["sum_emp_sd"].to_numpy()
    assert sd[1] < sd[0] == sd[2] == sd[3]


def test_a_session_tuned_on_its_own_records_is_refused_unless_a_reason_is_given(tmp_path) -> None:
    with session(records(), tuned_on="confidential") as opened:
        with pytest.raises(TuningError):
            opened.run(question())
        with pytest.raises(TuningError):
            opened.run_external(len, split={"emp": 5}, rho=1)
        assert kinds(opened) == ["opened"]
    with session(records(), tuned_on="confidential", tuning_reason="agreed with the board") as opened:
        assert opened.run(question()).to_json()["accept_tuning"] == "agreed with the board"


def test_releases_and_ledger_say_what_the_guarantee_rests_on() -> None:
    with session(records()) as free, session(records(), budget=generous()) as bound:
        assert free.run(question()).to_json()["guarantee"] == FIXED_IN_ADVANCE
        assert free.history()[0].body["guarantee"] == FIXED_IN_ADVANCE
        assert bound.run(question()).to_json()["guarantee"] == WITHIN_BUDGET


def test_a_release_says_its_level_and_whether_its_ledger_is_kept(tmp_path) -> None:
    with session(records()) as free, session(records(), tmp_path / "l") as kept:
        assert free.run(question()).to_json()["ledger_storage"].startswith("in memory only")
        stated = kept.run(question(), confidence=0.9).to_json()
    assert (stated["ledger_storage"], stated["interval_level"]) == ("kept in a file", 0.9)


def test_seeded_runs_repeat_and_secure_ones_do_not() -> None:
    with session(records()) as opened:
        seeded = [opened.run(question(), rng=Seeded(3)).digest for _ in range(2)]
        secure = [opened.run(question()).digest for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert secure[0] != secure[1]


class Boasting:
    """A source of somebody's own that calls itself private."""

    private = True

    def fill(self, words) -> None:
        Seeded(5).fill(words)


class Inherited(Secure):
    def fill(self, words) -> None:
        Seeded(5).fill(words)


@pytest.mark.parametrize("source", [Boasting, Inherited])
@pytest.mark.costly
def test_noise_from_any_other_than_the_secure_source_is_marked_whatever_it_says_of_itself(source, tmp_path) -> None:
    with session(records(), tmp_path / "l") as opened:
        release = opened.run(simple(), rng=source())
        assert opened.history()[-1].body["mark"] == NOT_PRIVATE
        assert opened.run(simple(), rng=Secure()).private
    assert not release.private
    release.save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "release.json").read_text())["mark"] == NOT_PRIVATE


@pytest.mark.usefixtures("on_both_engines")
def test_sql_and_builder_are_the_same_release() -> None:
    mechanisms = {"*": rw.Gaussian(rho="0.1"), "emp": rw.UnitSplit(at=50, rho="0.1")}
    text = "SELECT county, COUNT(*) AS n, SUM(emp) FROM t GROUP BY county"
    asked = rw.query().group_by("county", keys=keys()).count(mechanisms["*"], alias="n").sum("emp", mechanisms["emp"])
    with session(records()) as opened:
        by_text = opened.sql(text, mechanisms=mechanisms, keys=keys(), rng=Seeded(1))
        by_hand = opened.run(asked, rng=Seeded(1))
    assert by_text.table.equals(by_hand.table)
    assert by_text.policy == by_hand.policy


@pytest.mark.usefixtures("on_both_engines")
def test_neither_release_nor_session_nor_books_tell_how_many_records_there_are(tmp_path) -> None:
    """The same with 503 records: all that is written, but noise and digests, is the same text."""
    texts = []
    for rows in (500, 503):
        folder = tmp_path / str(rows)
        with session(records(503).slice(0, rows), folder.with_suffix(".ledger"), generous()) as opened:
            release = opened.run(question(), rng=Seeded(1))
            shown = repr(opened) + repr(release) + json.dumps([event.body for event in opened.history()[:2]])
        described = {
            name: part for name, part in release.to_json().items() if name not in ("digest", "ledger", "accuracy")
        }
        texts.append(json.dumps(described) + shown.replace(str(folder.with_suffix(".ledger")), "THE LEDGER"))
    assert texts[0] == texts[1]


@pytest.mark.process
def test_importing_recordwise_brings_in_no_extra_and_a_session_no_opendp() -> None:
    script = """
        import sys
        import recordwise as rw
        rw.Session
        found = {"opendp", "pandas", "polars", "matplotlib", "pyspark", "numba"} & set(sys.modules)
        assert not found, found
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


@pytest.mark.costly
def test_names_that_look_alike_become_different_files(tmp_path) -> None:
    groups = [rw.plan.Group("naics 2", rw.prefix("naics", 2)), rw.plan.Group("naics_2", rw.prefix("naics", 3))]
    asked = rw.query().levels(*groups, keys=keys()).count(rw.Gaussian(rho="0.1"))
    with session(records()) as opened:
        release = opened.run(asked)
    assert [table.name for table in release.tables] == ["naics_2", "naics_2_2"]
    assert len(list(release.save(tmp_path / "out", formats=["parquet"]).glob("*.parquet"))) == 2


@pytest.mark.parametrize("share", [None, ["1/4", "3/4"]])
def test_a_sum_split_by_two_measures_is_drawn_like_one_with_the_threshold_of_the_measure_summed(share) -> None:
    asked = rw.query().group_by("county", keys=keys())
    asked = asked if share is None else asked.levels(rw.prefix("naics", [2, 3]), share=share)
    with session(records()) as opened:
        joint = opened.run(asked.sum("emp", rw.UnitSplit(at={"emp": 50, "pay": 2000}, rho="0.1")), rng=Seeded(3))
        plain = opened.run(asked.sum("emp", rw.UnitSplit(at=50, rho="0.1")), rng=Seeded(3))
    assert joint.policy == plain.policy
    assert [table.data.to_pydict() for table in joint.tables] == [table.data.to_pydict() for table in plain.tables]


def test_what_remains_is_the_budget_less_what_was_spent(tmp_path) -> None:
    budget = rw.policy.constant(2)
    with session(records(), tmp_path / "l", budget) as opened:
        opened.run(simple("0.5"))
        assert opened.remaining({}) == pytest.approx(1.5)
    with session(records(), tmp_path / "m") as unlimited:
        assert unlimited.remaining({}) == float("inf")
