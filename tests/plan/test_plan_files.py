"""A plan file means what the builder would have said."""

import os
import re
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w

import recordwise as rw
from plan.whole_plan import WHOLE, changed
from recordwise.errors import PlanFileError
from recordwise.exact.functions import log, x
from recordwise.mechanisms.registry import mechanism_kinds
from recordwise.plan import Column, Measure, Plan, Schema, parse_sql
from recordwise.plan.file.node import Entry
from recordwise.plan.file.queries import NAMES, QUERY
from recordwise.plan.file.read import HIERARCHY, OUTPUTS, SECTIONS
from recordwise.plan.file.sections import CSV, MASTER, SERIES
from recordwise.plan.file.sections import SCHEMA as SCHEMA_ENTRIES
from recordwise.plan.file.write import exact_number
from recordwise.plan.statistics import KINDS
from recordwise.policy import constant, pieces, split
from recordwise.session import Session

SCHEMA = Schema.of(
    unit="estab_id",
    firm="firm_id",
    measures={"emp": 1, "payann": Measure.of("payann", bound=50_000_000)},
    columns={"county": "text", "naics": "text", "size": Column(name="size", type="integer", null="category")},
)


def test_the_whole_plan_is_the_one_the_builder_makes(load):
    found = load(WHOLE)
    areas = rw.Keys.product(county=["06001", "06003"], naics=["441110", "722511"])
    first = (
        rw.query()
        .where("emp < 5000")
        .group_by("county", rw.prefix("naics", 3), keys=areas)
        .count(rw.Gaussian(rho=0.05))
        .sum("emp", rw.UnitSplit(at=50, rho=0.1))
        .sum("payann", rw.LogTransform(offset=2000, sigma=0.5), alias="payroll")
        .count_distinct("firm_id", rw.Gaussian(rho=0.05), alias="firms")
    )
    second = parse_sql(
        "SELECT county, COUNT(*) AS n, SUM(emp) FROM t GROUP BY county",
        mechanisms={"n": rw.Gaussian(rho=0.05), "emp": rw.Clamped(to=100, rho=0.02)},
        keys=rw.Keys.of({"county": ["06001", "06003"]}),
    )
    assert found.plan == Plan(schema=SCHEMA, queries=(first, second))
    assert found.budget == constant(3) + split(5, {"emp": 20, "payann": 1000})
    assert (found.formats, found.confidence, found.dataset) == (("parquet",), 0.9, "establishments")
    assert found.source == (str(found.path.resolve().parent / "establishments.parquet"),)
    assert found.examples == {"corner shop": {"emp": 4, "payann": 140}}


def test_plans_that_still_say_level_for_confidence_are_read_alike(load):
    """The word was changed; plans written before must stay readable. Both words together are refused."""
    goal = "relative_error = 0.05, at_total = 1000, confidence = 0.9"
    text = WHOLE.replace('"Clamped", to = 100, rho = 0.02', f'"Clamped", to = 100, {goal}')
    old = load(text.replace("confidence = 0.9", "level = 0.9"))
    assert "level = 0.9 }" in old.path.read_text()
    assert (old.confidence, old.plan) == (0.9, load(text).plan)
    with pytest.raises(PlanFileError, match="old name of confidence"):
        load(WHOLE.replace("confidence = 0.9", "confidence = 0.9\nlevel = 0.8"))


MECHANISMS = {
    'kind = "Gaussian", sigma = 3': rw.Gaussian(sigma=3),
    'kind = "Gaussian", rho = "1/3", at = 50': rw.Gaussian(rho=Fraction(1, 3), at=50),
    'kind = "Clamped", to = 100, rho = 0.02': rw.Clamped(to=100, rho="0.02"),
    'kind = "UnitSplit", at = { emp = 50, payann = 2000 }, rho = 0.1': rw.UnitSplit(
        at={rw.policy.Measure("emp"): 50, rw.policy.Measure("payann"): 2000}, rho="0.1"
    ),
    'kind = "UnitSplit", at = { by = "naics", length = 2, values = { 44 = 20 }, default = 50 }, rho = 0.1': rw.UnitSplit(
        at=rw.by(rw.policy.ConditionColumn("naics", 2), {"44": 20}, default=50), rho="0.1"
    ),
    'kind = "UnitSplit", at = { by = "size", values = { "-1" = 20, 7 = 5 }, default = 50 }, rho = 0.1': rw.UnitSplit(
        at=rw.by("size", {-1: 20, 7: 5}, default=50), rho="0.1"
    ),
    'kind = "Gaussian", relative_error = 0.05, at_total = 1000, confidence = 0.9': rw.Gaussian(
        relative_error="0.05", at_total=1000, confidence=0.9
    ),
    'kind = "UnitSplit", at = 50, variance = 100': rw.UnitSplit(at=50, variance=100),
    'kind = "GeneralizedGaussian", shape = 0.5, scale = 3': rw.GeneralizedGaussian(shape="0.5", scale=3),
    'kind = "GeneralizedGaussian", shape = 0.5, variance = 100, lattice = 1': rw.GeneralizedGaussian(
        shape="0.5", variance=100, lattice=1
    ),
    'kind = "Polylog", power = 2, rate = 1, offset = 3, scale = 5': rw.Polylog(power=2, rate=1, offset=3, scale=5),
    'kind = "Polylog", power = 2, rate = 1, offset = 3, relative_error = 0.1, at_total = 1000, confidence = 0.9': rw.Polylog(
        power=2, rate=1, offset=3, relative_error="0.1", at_total=1000, confidence=0.9
    ),
    'kind = "RootTransform", degree = 4, offset = 1, sigma = 0.1': rw.RootTransform(degree=4, offset=1, sigma="0.1"),
    'kind = "RootTransform", degree = 2, offset = 100, rho = 0.5, at = 50, noise = "laplace"': rw.RootTransform(
        degree=2, offset=100, rho="0.5", at=50, noise="laplace"
    ),
    'kind = "RootTransform", degree = 7, offset = 1, sigma = 0.1': rw.RootTransform(degree=7, offset=1, sigma="0.1"),
    'kind = "RootTransform", degree = "5/2", offset = 10, laplace_scale = 0.1': rw.RootTransform(
        degree="5/2", offset=10, laplace_scale="0.1"
    ),
    'kind = "Gaussian", relative_error = 0.05, at_total = 1000, step = 0.01': rw.Gaussian(
        relative_error="0.05", at_total=1000, step="0.01"
    ),
    'kind = "LogTransform", offset = 100, laplace_scale = 0.1': rw.LogTransform(offset=100, laplace_scale="0.1"),
    'kind = "LogTransform", offset = 100, variance = 25, at_total = 1000': rw.LogTransform(
        offset=100, variance=25, at_total=1000
    ),
    'kind = "Additive", f = "(x / 50) ** 0.5 + log(x / 10 + 1)"': rw.mechanisms.Additive(
        (x / 50) ** 0.5 + log(x / 10 + 1)
    ),
    'kind = "Transform", f = "sqrt(x)", inverse = "x ** 2", offset = 3, sigma = 1': rw.mechanisms.Transform(
        x**0.5, x**2, offset=3, sigma=1
    ),
}


@pytest.mark.parametrize("text", MECHANISMS)
def test_a_mechanism_is_the_one_python_builds_from_the_same_parameters(load, text):
    found = load(changed('{ kind = "UnitSplit", at = 50, rho = 0.1 }', "{ " + text + " }"))
    (chosen,) = [each.mechanism for each in found.plan.queries[0].statistics if each.alias == "sum_emp"]
    assert chosen == MECHANISMS[text]


def test_every_mechanism_of_the_package_has_a_kind():
    kinds = mechanism_kinds()
    assert set(kinds) == {
        name for name in rw.mechanisms.__all__ if name not in ("Estimates", "Grid", "Mechanism", "Noisy")
    }
    # Sized needs keys with sizes, ByGroup groups: test_sized.py and test_mechanism_by_group.py read them from plan files.
    others = {"Sized", "ByGroup"}
    assert {eval("dict(" + text + ")")["kind"] for text in MECHANISMS if "{" not in text} == set(kinds) - others


def test_a_decimal_number_is_read_exactly(load):
    found = load(WHOLE)
    assert found.plan.queries[0].statistics[0].mechanism.rho == Fraction(1, 20)
    assert Fraction(0.05) != Fraction(1, 20) == Fraction(Decimal("0.05"))


def test_plans_with_the_names_of_earlier_versions_are_read_alike(load):
    text = WHOLE.replace(
        'tuned_on = "synthetic"', 'tuned_on = "confidential"\ntuning_reason = "agreed"\nmax_outside = 0.5'
    )
    today = load(text)
    assert (today.tuning_reason, today.max_outside) == ("agreed", Fraction(1, 2))
    for name, old in {"tuning_reason": "accept_tuning", "max_outside": "outside"}.items():
        assert load(text.replace(name, old)) == today
        with pytest.raises(PlanFileError, match=f"line .*{old}: is the old name of {name}, which is also given"):
            load(text.replace(name, f'{old} = "accept"\n{name}'))


PAGE = (Path(__file__).parents[2] / "docs" / "plan-file.md").read_text()
APART = {"mechanisms", *re.findall(r"`\[+(\w+)", "".join(re.findall(r"^## .*", PAGE, re.MULTILINE)))}
"""What has a heading of its own."""
DOCUMENTED = {
    "Top level": [each for each in SECTIONS if each.name not in APART],
    "`[csv]`": CSV,
    "`[spark]`": MASTER,
    "`[schema]`": [each for each in SCHEMA_ENTRIES if each.name != "collapse"],
    "`[series]`": SERIES,
    "`[hierarchies.NAME]`": HIERARCHY,
    "`[[queries]]`": [
        *(each for each in QUERY if each not in NAMES),
        *(Entry(kind.word, kind.read_entry) for kind in KINDS),
    ],
}


@pytest.mark.parametrize("heading", DOCUMENTED)
def test_the_page_lists_the_entries_that_are_read(heading):
    text = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)[^|]*\|([^|]*)\|", text, re.MULTILINE)
    assert {name for name, _ in rows} == {each.name for each in DOCUMENTED[heading]}
    if heading != "`[[queries]]`":
        assert {name for name, stated in rows if "required" in stated} == {
            each.name for each in DOCUMENTED[heading] if each.needed
        }


def test_every_section_has_a_place_on_the_page():
    for each in (*SECTIONS, *OUTPUTS):
        assert re.search(rf"[\[`.]{each.name}\b", PAGE), each.name


def test_levels_take_their_shares(load):
    text = changed(
        'group_by = ["county", { prefix = "naics", length = 3 }]',
        'group_by = "county"\nlevels = { by = [{ prefix = "naics", lengths = [2, 6] }], share = ["1/3", "2/3"] }',
    )
    tables = load(text).plan.queries[0].tables()
    assert [(level.names(), level.share) for level in tables] == [
        (("county", "naics2"), Fraction(1, 3)),
        (("county", "naics6"), Fraction(2, 3)),
    ]


def test_several_axes_of_levels_multiply(load):
    text = changed(
        'group_by = ["county", { prefix = "naics", length = 3 }]',
        'levels = [{ by = [{ prefix = "county", lengths = [2, 5] }] }, { by = [{ prefix = "naics", lengths = [2, 6] }] }]',
    )
    assert len(load(text).plan.queries[0].tables()) == 4


def test_a_prefix_may_have_a_name(load):
    text = changed("length = 3 }", 'length = 3, as = "industry" }')
    assert load(text).plan.queries[0].tables()[0].names() == ("county", "industry")


@pytest.mark.parametrize("name", ["keys.csv", "keys.parquet"])
def test_key_files_keep_leading_zeros(load, tmp_path, name):
    table = pa.table({"county": ["01001", "06003"], "naics": ["441110", "722511"]})
    if name.endswith("csv"):
        (tmp_path / name).write_text("county,naics\n01001,441110\n06003,722511\n")
    else:
        pq.write_table(table, tmp_path / name)
    text = changed('product = { county = ["06001", "06003"], naics = ["441110", "722511"] }', f'file = "{name}"')
    assert load(text).plan.queries[0].key_lists[0].table.to_pylist() == table.to_pylist()


def test_a_budget_may_be_what_a_mechanism_costs(load):
    part = (
        '[[budget]]\nmeasure = "payann"\nmechanism = { kind = "LogTransform", offset = 9, sigma = 0.5 }\n\n[mechanisms]'
    )
    found = load(changed("[mechanisms]", part))
    own = rw.LogTransform(offset=9, sigma="0.5").policy("payann")
    assert found.budget == constant(3) + split(5, {"emp": 20, "payann": 1000}) + own


def test_thresholds_of_a_measure_with_a_fine_step_stay_on_its_lattice(load):
    text = changed("measures.emp = 1", "measures.emp = 0.5").replace("at = 50, rho = 0.1", "at = 2.5, rho = 0.1")
    assert load(text).plan.queries[0].statistics[1].mechanism.at == Fraction(5, 2)
    with pytest.raises(PlanFileError, match="multiple of the step"):
        load(text.replace("at = 2.5", "at = 2.6"))


def test_a_session_opens_what_the_plan_declares(load, tmp_path):
    columns = {"estab_id": [1, 2], "firm_id": [1, 1], "emp": [3, 4], "payann": [5, 6], "size": [1, None]}
    table = pa.table(columns | {"county": ["06001", "06003"], "naics": ["441110", "722511"]})
    pq.write_table(table, tmp_path / "establishments.parquet")
    found = load(WHOLE)
    with Session.from_plan(found) as session:
        session.validate()
        assert session.schema == SCHEMA
        assert session.budget == found.budget
    assert (tmp_path / "establishments.ledger").exists()


def test_a_budget_may_grow_with_the_number_of_pieces(load):
    part = '[[budget]]\nrho = 0.1\nat = { emp = 50 }\ngrowth = "linear"\n\n[mechanisms]'
    found = load(changed("[mechanisms]", part))
    assert found.budget == constant(3) + split(5, {"emp": 20, "payann": 1000}) + pieces("0.1", {"emp": 50})
    same = load(changed("[mechanisms]", part.replace("linear", "square")))
    assert same.budget == constant(3) + split(5, {"emp": 20, "payann": 1000}) + split("0.1", {"emp": 50})
    with pytest.raises(PlanFileError, match="growth"):
        load(changed("[mechanisms]", part.replace("linear", "cubic")))


def test_a_budget_may_hold_a_selection_and_its_delta(load):
    part = "[[budget]]\nselect = { rho = 0.1, delta = 1e-6, pieces = { emp = 50 } }\n\n[mechanisms]"
    own = rw.Keys.select(rho="0.1", delta="0.000001", pieces={"emp": 50}).selection.policy(SCHEMA)
    assert load(changed("[mechanisms]", part)).budget.delta_terms == own.delta_terms


def test_labels_are_words_for_measures_columns_and_values(load):
    labels = {"emp": "employees", "naics": "industry", "naics=44": "Retail trade"}
    text = "".join(f'"{name}" = "{words}"\n' for name, words in labels.items())
    assert load(f"{WHOLE}\n[labels]\n{text}").words.labels == labels
    assert load(WHOLE).words.labels == {}


def test_a_notebook_shows_a_plan_file_with_its_queries_and_cost(load):
    shown = load(WHOLE)._repr_html_()
    assert "county × naics3" in shown
    assert "UnitSplit(at=50, rho=0.1)" in shown
    assert "Only records where &#x27;emp&#x27; is below 5,000." in shown


@pytest.mark.parametrize(
    "text", ["0.1", "-0.125", "7", "1/3", "-22/7", f"{10**40 + 1}/{2**60}", f"3/{5**70}", str(10**30)]
)
def test_every_number_is_written_and_read_back_exactly(text):
    number = Fraction(text)
    written = tomli_w.dumps({"it": exact_number(number)})
    assert Fraction(tomllib.loads(written, parse_float=Decimal)["it"]) == number


OWN_LIST = """
dataset = "shops"
source = {source}
ledger = "shops.ledger"
tuned_on = "public"
schema = {{ unit = "id", measures = {{ emp = 1 }}, columns = {{ county = "text" }} }}
keys.cells = {{ file = "{listed}" }}
[[queries]]
group_by = ["county"]
keys = "cells"
count = {{ kind = "Gaussian", rho = 0.1 }}
"""


@pytest.mark.parametrize(
    ("source", "listed"),
    [
        ('"shops.csv"', "shops.csv"),
        ('"shops.csv"', "./folder/../shops.csv"),
        ('"shops.csv"', "linked.csv"),
        ('["shops.csv"]', "shops.csv"),
        ('"shop*.csv"', "shops.csv"),
        ('"folder"', "folder/below/shops.parquet"),
        ('"folder/**/*.parquet"', "folder/below/shops.parquet"),
    ],
)
def test_records_are_no_list_of_their_own_keys(source, listed, tmp_path):
    """The cells that have records would be published, and that is no public fact."""
    (tmp_path / "folder" / "below").mkdir(parents=True)
    for name in ("shops.csv", "cells.csv"):
        (tmp_path / name).write_text("county\n001\n003\n")
    pq.write_table(pa.table({"county": ["001", "003"]}), tmp_path / "folder" / "below" / "shops.parquet")
    os.link(tmp_path / "shops.csv", tmp_path / "linked.csv")
    plan = tmp_path / "plan.toml"
    plan.write_text(OWN_LIST.format(source=source, listed=listed))
    with pytest.raises(PlanFileError, match=r"keys\.cells\.file: is the table of records itself"):
        rw.load_plan(plan)
    plan.write_text(OWN_LIST.format(source=source, listed="cells.csv"))
    assert rw.load_plan(plan).dataset == "shops"
    # Nor are those of the release that it revises, which may be named beside the plan.
    assert rw.load_plan(plan, old_records=tmp_path / "shops.csv").dataset == "shops"
    with pytest.raises(PlanFileError, match=r"keys\.cells\.file: is the table of records itself"):
        rw.load_plan(plan, old_records=tmp_path / "cells.csv")
