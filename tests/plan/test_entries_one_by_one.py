"""Entries of a plan file one by one: what is refused, at which line and by which words, and what its neighbor is read as."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from recordwise.errors import PlanFileError
from recordwise.plan.file import load_plan
from recordwise.plan.file.read import PlanFile, read_pairs
from recordwise.policy import constant

TOP = """dataset = "small"
source = "records.csv"
ledger = "small.ledger"
tuned_on = "public"
"""
REST = """
[schema]
unit = "id"
firm = "firm"
measures = { emp = 1, pay = { step = 0.5, bound = 90 } }
columns = { county = "text", size = "integer", open = "boolean", since = "date" }
"""
QUERY = """
[[queries]]
group_by = ["county"]
keys = { rows = { county = ["01", "02"] } }
count = { kind = "Gaussian", rho = 0.05 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plan")
    (made / "codes.csv").write_text("county,emp,pay\n01,5,7\n02,6,8\n")
    (made / "pairs.csv").write_text("before,now\n1,2\n3,4\n")
    (made / "other.csv").write_text("old,now\n1,2\n")
    return made


def load(folder: Path, top: str = "", rest: str = "", query: str = "") -> PlanFile:
    """The plan with lines after its first ones, before its queries, or in place of its query."""
    path = folder / "plan.toml"
    path.write_text(f"{TOP}{top}\n{REST}{rest}\n{query or QUERY}", encoding="utf-8")
    return load_plan(path)


def told(folder: Path, **parts: str) -> list[tuple[int, str, str]]:
    """Line, the text of the line, and words of each problem."""
    try:
        load(folder, **parts)
    except PlanFileError as error:
        lines = (folder / "plan.toml").read_text(encoding="utf-8").splitlines()
        return [(each.line, lines[each.line - 1], each.text) for each in cast("list[Any]", error.problems)]
    return []


def asked(line: str) -> str:
    """A query with one more statistic or shape on a line of its own."""
    return QUERY + line + "\n"


def shaped(*lines: str) -> str:
    return "\n[[queries]]\n" + "\n".join(lines) + '\ncount = { kind = "Gaussian", rho = 0.05 }\n'


def keyed(keys: str) -> str:
    return shaped('group_by = ["county"]', f"keys = {keys}")


TOPS: dict[str, str] = {
    'memory_limit = "700 KB"': "must be a size like",
    'memory_limit = "MB"': "must be a size like",
    "memory_limit = 5": "text",
    'memory_limit = "7.5GB"': "must be a size like",
    "max_outside = 1": "must be a share below 1",
    "max_outside = -0.1": "must be a share below 1",
    "reserve = { revisions = -1 }": "must be for 0, 1, 2",
    "reserve = { revisions = 1 }": "needs a",
    "reserve = {}": "'revisions' is missing",
    'engine = "spark"': "needs a table .spark.",
    'engine = "sparks"': "(?i)duckdb|spark",
    'spark = { master = "local[2]" }': 'needs engine = "spark"',
    'table = "t"': "is only for a source that starts with postgresql",
    'csv = { delimiter = 5 }': "text",
    'tuning_reasons = "x"': "tuning_reason",
    'stage = {}': "needs one of refine, carry, revise and tier_of",
    'stage = { refine = "a", revise = "b" }': "has refine and revise",
    'stage = { refine = "a", old_records = "b" }': "is of the same records",
    'stage = { revise = "a" }': "needs old_records",
    'stage = { revise = "a", old_records = "b.csv", crosswalk = { county = "pairs.csv" } }': "is for carry",
    'stage = { carry = "a", old_records = "b.csv", crosswalk = { county = "other.csv" } }': "has not the columns before and now",
    'stage = { refine = "a", fixed_in_advance = 5 }': "true or false",
    'outputs = { tables = ["basic"] }': "must include research",
    'outputs = { tables = ["research"], basic = { complete = true } }': "is for basic tables",
    'outputs = { round = { emp = 10 } }': "is for basic tables",
    'outputs = { status = { good = 0.1 } }': "is for basic tables",
    'outputs = { tables = ["research", "basic"], status = { good = 0.3, fair = 0.1 } }': "positive and increase",
    'outputs = { tables = ["research", "basic"], basic = { fit = "best" } }': "top_down",
    'outputs = { formats = ["parquet"], csv = true }': "is replaced by formats",
    "outputs = { confidence = 1 }": "(?i)between 0 and 1|share",
    "outputs = { confidence = 0 }": "(?i)between 0 and 1|share",
    "budget = []": "must have at least one part",
    "budget = [{ rho = 0 }]": "(?i)positive|above 0",
    'budget = [{ rho = 1, period = "2024" }]': "needs a table .series.",
    "budget = [{ rho = 1 }, { pure_epsilon = 1 }]": "mixes parts in pure_epsilon",
    "budget = [{ pure_epsilon = 1, rho = 2 }]": "must contain pure_epsilon alone, or with at",
    'budget = [{ pure_epsilon = 1, at = { emp = 5 }, growth = "linear" }]': "must contain pure_epsilon alone, or with at",
    "budget = [{ epsilon = 1, delta = 1e-6, for = { emp = 5 } }]": "must contain epsilon, delta, for and growth",
    'budget = [{ epsilon = 1, delta = 1e-6, for = { emp = 5 }, growth = "square", rho = 1 }]': "must contain epsilon, delta",
    'budget = [{ epsilon = 1, delta = 1e-6, for = { emp = 5 }, growth = "square" }, { rho = 1 }]': "in epsilon next to others",
    'budget = [{ rho = 1, growth = "linear" }]': "must contain rho, rho and at",
    'budget = [{ rho = 1, at = { emp = 5 }, growth = "cube" }]': "square",
    "budget = [{ rho = 1, at = {} }]": "must name at least one measure",
    "budget = [{ rho = 1, at = { county = 5 } }]": "is not a measure",
    'budget = [{ measure = "emq", mechanism = { kind = "Gaussian", rho = 1, at = 5 } }]': "'emq' is not a measure",
    'budget = [{ measure = "emp" }]': "must contain rho, rho and at",
    'budget = [{ measure = "emp", mechanism = { kind = "Gaussian", rho = 1, at = 5 }, pure = true }]': "(?i)pure",
    "budget = [{ select = { rho = 1 } }]": "'delta' is missing",
    "budget = [{ rho = 1, sigma = 2 }]": "sigma",
}  # fmt: skip
QUERIES: dict[str, tuple[str, str]] = {
    "no kind": (asked("sum.emp = { rho = 0.1 }"), "'kind' is missing"),
    "another kind": (asked('sum.emp = { kind = "Gausian", rho = 0.1, at = 3 }'), "'Gausian' is not a kind of mechanism.*Gaussian"),
    "a kind of quantiles": (asked('sum.emp = { kind = "TreeQuantile", rho = 0.1 }'), "is for quantiles"),
    "no mechanism": (asked("sum.emp = 5"), "must be a mechanism"),
    "no such mechanism": (asked('sum.emp = "small"'), "there is no mechanism named 'small'"),
    "group by no column": (
        asked('sum.emp = { kind = "ByGroup", by = "countx", values = { "01" = { kind = "Gaussian", sigma = 5 } } }'),
        "'countx' is not a column",
    ),
    "groups of another type": (
        asked('sum.emp = { kind = "ByGroup", by = "size", values = { "x" = { kind = "Gaussian", sigma = 5 } } }'),
        "'x' is not a value of a column of type integer",
    ),
    "groups of zeros": (
        asked('sum.emp = { kind = "ByGroup", by = "size", values = { "01" = { kind = "Gaussian", sigma = 5 } } }'),
        "'01' is not a value of a column of type integer",
    ),
    "groups of truth": (
        asked('sum.emp = { kind = "ByGroup", by = "open", values = { "True" = { kind = "Gaussian", sigma = 5 } } }'),
        "'True' is not a value of a column of type boolean",
    ),
    "thresholds by no column": (
        asked('sum.emp = { kind = "UnitSplit", rho = 1, at = { by = "countx", values = { "01" = 5 } } }'),
        "'countx' is not a column",
    ),
    "thresholds without groups": (
        asked('sum.emp = { kind = "UnitSplit", rho = 1, at = { by = "county" } }'),
        "'values' is missing",
    ),
    "thresholds without a column": (
        asked('sum.emp = { kind = "UnitSplit", rho = 1, at = { values = { "01" = 5 } } }'),
        "'by' is missing",
    ),
    "sum of no measure": (asked('sum.emq = { kind = "Gaussian", sigma = 5 }'), "'emq' is summed but is not a measure.*emp"),
    "name of two prefixes": (
        shaped('group_by = [{ prefix = "county", lengths = [1, 2], as = "x" }]', 'keys = { rows = { county = ["01"] } }'),
        "can name only a single prefix",
    ),
    "two ways of a length": (
        shaped('group_by = [{ prefix = "county", length = 1, lengths = [1, 2] }]', 'keys = { rows = { county = ["01"] } }'),
        "either length or lengths",
    ),
    "no length": (
        shaped('group_by = [{ prefix = "county" }]', 'keys = { rows = { county = ["01"] } }'),
        "either length or lengths",
    ),
    "part of nothing": (
        shaped('group_by = [{ part = "year" }]', "keys = { rows = { since_year = [1] } }"),
        "'of' is missing",
    ),
    "part of another kind": (
        shaped('group_by = [{ part = "day", of = "since" }]', "keys = { rows = { since_year = [1] } }"),
        "year",
    ),
    "shares beside the best": (
        shaped('levels = { by = [[], "county"], share = "best" }', "table_share = [0.5]", 'keys = { rows = { county = ["1"] } }'),
        'cannot be given with share = "best"',
    ),
    "goal without the best": (
        shaped('levels = { by = [[], "county"] }', "share_goal = { 10 = 0.1 }", 'keys = { rows = { county = ["01"] } }'),
        'is for levels with share = "best"',
    ),
    "rests in other words": (
        shaped('levels = { by = [[], "county"] }', 'all_other = "yes"', 'keys = { rows = { county = ["01"] } }'),
        "publish",
    ),
    "keys of another name": (keyed('"areas"'), "there are no keys named 'areas'"),
    "keys of two ways": (keyed('{ rows = { county = ["01"] }, file = "codes.csv" }'), "must contain one of product, rows, file"),
    "keys of no way": (keyed("{}"), "must contain one of product, rows, file"),
    "keys of two lengths": (
        keyed('{ rows = { county = ["01", "02"], size = [1] } }'),
        "columns of different lengths",
    ),
    "sizes of selected keys": (
        keyed('{ select = { rho = 1, delta = 1e-6 }, size = "emp", sized_on = "public: x" }'),
        "has sizes, but its keys are selected",
    ),
    "source of selected keys": (
        keyed('{ select = { rho = 1, delta = 1e-6 }, sized_on = "public: x" }'),
        "has sizes, but its keys are selected",
    ),
    "selection without a threshold": (
        keyed('{ select_from = { rows = { county = ["01"] }, rho = 1 } }'),
        "'threshold' is missing",
    ),
    "selection without rho": (
        keyed('{ select_from = { rows = { county = ["01"] }, threshold = 9 } }'),
        "'rho' is missing",
    ),
    "selection from two lists": (
        keyed('{ select_from = { rows = { county = ["01"] }, file = "codes.csv", rho = 1, threshold = 9 } }'),
        "must contain one of product, rows or file",
    ),
    "a value of another type": (keyed('{ rows = { county = ["01", 2] } }'), "mixes types"),
    "a file that is missing": (keyed('{ file = "none.csv" }'), "none.csv"),
}  # fmt: skip


@pytest.mark.parametrize("line", TOPS)
def test_an_entry_at_the_top_is_refused_alone_and_at_its_line(line: str, folder: Path) -> None:
    found = told(folder, top=line)
    assert [where for _, where, _ in found] == [line], found
    with pytest.raises(PlanFileError, match=TOPS[line]):
        load(folder, top=line)


@pytest.mark.parametrize("name", QUERIES)
def test_an_entry_of_a_query_is_refused_alone_and_in_its_query(name: str, folder: Path) -> None:
    text, words = QUERIES[name]
    found = told(folder, query=text)
    assert len(found) == 1, found
    assert found[0][1] in text
    with pytest.raises(PlanFileError, match=f"(?s){words}"):
        load(folder, query=text)


def budget(file: PlanFile, **record: Any) -> Any:
    assert file.budget is not None
    return file.budget.loss({"emp": 0, "pay": 0} | record)


READ: dict[str, tuple[Callable[[PlanFile], Any], Any]] = {
    'memory_limit = "700MB"': (lambda file: file.memory_limit, "700MB"),
    'memory_limit = "4GB"': (lambda file: file.memory_limit, "4GB"),
    "max_outside = 0": (lambda file: file.max_outside, 0),
    "max_outside = 0.99": (lambda file: file.max_outside, Fraction(99, 100)),
    'max_outside = "accept"': (lambda file: file.max_outside, None),
    "": (lambda file: (file.max_outside, file.reserve, file.engine, file.budget), (None, None, "duckdb", None)),
    "reserve = { revisions = 0 }": (lambda file: file.reserve, 0),
    "budget = [{ rho = 2 }]\nreserve = { revisions = 2 }": (lambda file: (file.reserve, file.budget), (2, constant(2))),
    "budget = [{ rho = 2 }, { rho = 0.5 }]": (budget, 2.5),
    "budget = [{ rho = 2, at = { emp = 5, pay = 9 } }]": (lambda file: budget(file, emp=11, pay=10), 18.0),
    'budget = [{ rho = 2, at = { emp = 5 }, growth = "linear" }]': (lambda file: budget(file, emp=11), 6.0),
    'budget = [{ measure = "emp", mechanism = { kind = "Gaussian", rho = 2, at = 5 } }]': (
        lambda file: budget(file, emp=10),
        8.0,
    ),
    "budget = [{ pure_epsilon = 2 }]": (lambda file: (file.budget.is_pure, budget(file)), (True, 2.0)),  # type: ignore[union-attr]
    "budget = [{ pure_epsilon = 2, at = { emp = 5 } }]": (lambda file: budget(file, emp=11), 6.0),
    "budget = [{ select = { rho = 0.5, delta = 1e-6, pieces = { emp = 5 } } }]": (
        lambda file: round(budget(file, emp=11) / budget(file, emp=5)),
        9,
    ),
    'stage = { refine = "a" }': (
        lambda file: (file.stage.refine, file.stage.fixed_in_advance, file.stage.old_records),  # type: ignore[union-attr]
        ("a", False, None),
    ),
    'stage = { carry = "a", old_records = "b.csv", fixed_in_advance = true, crosswalk = { county = "pairs.csv" } }': (
        lambda file: (file.stage.fixed_in_advance, file.stage.crosswalk),  # type: ignore[union-attr]
        (True, {"county": [("1", "2"), ("3", "4")]}),
    ),
    'outputs = { tables = ["research", "basic"] }': (
        lambda file: (file.basic.fit, file.basic.complete, file.basic.units),  # type: ignore[union-attr]
        ("top_down", False, {}),
    ),
    'outputs = { tables = ["research", "basic"], basic = { fit = "nnls", complete = true }, round = { emp = 10 } }': (
        lambda file: (file.basic.fit, file.basic.complete, file.basic.units),  # type: ignore[union-attr]
        ("nnls", True, {"emp": 10}),
    ),
    'outputs = { tables = ["research", "basic"], status = { good = 0.1, otherwise = "bad", withhold = ["bad"] } }': (
        lambda file: (file.basic.rules.limits, file.basic.rules.otherwise, file.basic.rules.withheld),  # type: ignore[union-attr]
        ((("good", 0.1),), "bad", ("bad",)),
    ),
    "outputs = { csv = true }": (lambda file: file.formats, ("parquet", "csv")),
    "outputs = { csv = false }": (lambda file: file.formats, ("parquet",)),
    'outputs = { formats = ["csv", "parquet"], confidence = 0.8 }': (
        lambda file: (file.formats, file.confidence),
        (("csv", "parquet"), 0.8),
    ),
    'engine = "spark"\nspark = { master = "local[2]", options = { a = "b" } }': (
        lambda file: (file.engine, file.spark.url, dict(file.spark.options)),  # type: ignore[union-attr]
        ("spark", "local[2]", {"a": "b"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", READ)
def test_an_entry_at_the_top_is_read_as_it_is_written(line: str, folder: Path) -> None:
    ask, expected = READ[line]
    found = ask(load(folder, top=line))
    if isinstance(expected, tuple) and expected and isinstance(found[0], Path):
        found = (found[0].relative_to(folder).as_posix(), *found[1:])
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_a_series_has_budgets_by_period_and_what_was_declared(folder: Path) -> None:
    series = 'series = { name = "s", period = "2024", revision = 2, earlier = ["out/2023"], staying = [{ rho = 0.5 }] }'
    parts = 'budget = [{ rho = 2 }, { rho = 3, period = "2024" }, { rho = 4, period = "2025" }]'
    file = load(folder, top=f"{series}\n{parts}")
    assert file.series is not None
    assert (file.series.period, file.series.revision, file.series.staying) == ("2024", 2, constant("0.5"))
    assert file.series.every_period == constant(2)
    assert dict(file.series.more) == {"2024": constant(3), "2025": constant(4)}
    assert [each.relative_to(folder).as_posix() for each in file.earlier] == ["out/2023"]
    law = 'for = { emp = 5 }, growth = "square"'
    of_laws = ", ".join(f'{{ epsilon = {n}, delta = 1e-6, {law}, period = "{y}" }}' for n, y in ((1, 2024), (2, 2025)))
    assert load(folder, top=f"{series}\nbudget = [{of_laws}]").series is not None
    for more in ("{ rho = 1 }", '{ rho = 1, period = "2025" }'):
        found = told(folder, top=f"{series}\nbudget = [{of_laws}, {more}]")
        assert [words[:30] for _, _, words in found] == ["has a part in epsilon next to "]


def test_what_those_who_stay_may_lose_is_the_same_in_every_period(folder: Path) -> None:
    series = 'series = { name = "s", period = "2024", staying = [{ rho = 0.5, period = "2024" }] }'
    found = told(folder, top=f"{series}\nbudget = [{{ rho = 2 }}]")
    assert [words for _, _, words in found] == [
        "cannot stand in staying, which holds in every period of the series; remove it"
    ]


def test_pairs_of_codes_are_texts(folder: Path) -> None:
    assert read_pairs(folder / "pairs.csv") == [("1", "2"), ("3", "4")]


def test_keys_of_every_way_list_their_cells(folder: Path) -> None:
    for keys in (
        '{ rows = { county = ["02", "01"] } }',
        '{ product = { county = ["01", "02"] } }',
        '{ file = "codes.csv" }',
    ):
        file = load(folder, query=keyed(keys))
        (table,) = file.plan.tables()
        assert file.plan.cells(table).to_pydict() == {"county": ["01", "02"]}
    sized = '{ file = "codes.csv", size = { emp = "emp", count = { file = "codes.csv", column = "pay" } }, sized_on = "public: x" }'
    sizes = load(folder, query=keyed(sized)).plan.queries[0].key_lists[0].sizes
    assert sizes is not None
    assert {name: held.tolist() for name, held in sizes.columns.items()} == {"emp": [5.0, 6.0], "count": [7.0, 8.0]}
    assert sizes.sized_on == ("public: x",)
    selected = load(
        folder, query=keyed('{ select_from = { file = "codes.csv", rho = 0.5, threshold = 9, pieces = { emp = 4 } } }')
    )
    (keys_of,) = selected.plan.queries[0].key_lists
    assert keys_of.selection is not None
    assert (keys_of.selection.rho, keys_of.selection.threshold) == (Fraction(1, 2), 9)
    assert keys_of.selection.splitting is not None
    assert keys_of.selection.splitting.thresholds == (("emp", Fraction(4)),)
