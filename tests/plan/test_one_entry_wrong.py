"""Each entry of a plan by itself: misspelled, of another type, or missing. Whatever else is right, it alone is refused."""

import copy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import tomli_w

from build import few
from recordwise.errors import PlanFileError
from recordwise.plan.file import load_plan

PLAN = """
dataset = "establishments"
source = ["a.csv", "b.csv"]
ledger = "establishments.ledger"
tuned_on = "public"
memory_limit = "2GB"
max_outside = "accept"
csv = { delimiter = ";", decimal = ",", encoding = "utf-8" }
series = { name = "establishments", period = "2024", revision = 1 }
labels = { emp = "employees" }
units = { emp = "people" }

[schema]
unit = "estab_id"
firm = "firm_id"
[schema.measures]
emp = 1
payann = { step = 0.25, bound = 50_000_000, null = "zero", signed = true }
rest = { derive = "payann - 45 * emp" }
[schema.columns]
county = "text"
naics = { type = "text", null = "refuse" }
size = { type = "integer", null = "category" }
founded = "date"

[hierarchies.place]
file = "counties.csv"
levels = ["nation", "state", "county"]
source = "public: a list"
titles = { state = "state_name" }
totals = { nation = "all" }

[[budget]]
rho = 3
[[budget]]
rho = 5
at = { emp = 20, payann = 1000 }
growth = "linear"
period = "2024"
[[budget]]
measure = "emp"
mechanism = { kind = "Gaussian", rho = 0.05, at = 40 }
[[budget]]
select = { rho = 0.1, delta = 1e-6, pieces = { emp = 50 } }

[mechanisms]
small = { kind = "Gaussian", rho = 0.05 }
split = { kind = "UnitSplit", at = { by = "naics", length = 2, values = { "44" = 50 }, default = 20 }, rho = 0.1 }
log = { kind = "LogTransform", offset = 2000, sigma = 0.5 }
any = { kind = "Additive", f = "log(x / 50 + 1)", scale = 3 }
wide = { kind = "Gaussian", rho = 0.05, at = 40 }

[keys]
areas = { product = { place = "county", naics = ["441110", "722511"] } }
listed = { rows = { county = ["06001", "06003"] } }
filed = { file = "counties.csv" }
sized = { rows = { county = ["06001"], people = [7] }, size = "people", sized_on = "public: a census" }
selected = { select = { rho = 0.1, delta = 1e-6 } }
domain = { select_from = { product = { county = ["06001"] }, rho = 0.1, threshold = 12, pieces = { emp = 50 } } }

[[queries]]
name = "areas"
title = "By area"
where = "emp < 5000"
group_by = ["county", "naics"]
keys = "areas"
count = "small"
sum.emp = { mechanism = "split", as = "people" }
sum.payann = { kind = "Gaussian", sigma = 40, as = "payroll" }
count_distinct.firm_id = { mechanism = "small", as = "firms" }

[[queries]]
group_by = [{ prefix = "county", length = 2, as = "region" }, { part = "year", of = "founded", as = "since" }]
keys = { rows = { region = ["06"], since = [2001] } }
sum.emp = "wide"

[[queries]]
levels = [{ by = [{ prefix = "naics", lengths = [2, 3] }], share = [0.5, 0.5] }]
keys = [{ rows = { naics2 = ["44"] } }, { rows = { naics3 = ["441"] } }]
sum.emp = "wide"
quantile.emp = { p = 0.5, grid = { log = [1, 1000], bits = 4 }, rho = 0.1 }

[[queries]]
sql = "SELECT county, COUNT(*) AS n, SUM(emp) FROM t GROUP BY county"
keys = "listed"
mechanisms.n = "small"
mechanisms.emp = { kind = "Clamped", to = 100, rho = 0.02 }

[outputs]
formats = ["parquet"]
confidence = 0.9

[examples]
shop = { emp = 4, payann = 140 }
"""
CODES = "state;county;state_name\n06;06001;California\n06;06003;California\n"
FREE = {
    ("schema", "columns", "size"),
    ("schema", "measures", "rest"),
    ("mechanisms", "log"),
    ("mechanisms", "any"),
    ("keys", "filed"),
    ("keys", "sized"),
    ("keys", "selected"),
    ("keys", "domain"),
    ("examples", "shop"),
    ("keys", "sized", "rows", "county"),
    ("keys", "domain", "select_from", "product", "county"),
}
"""Names that a plan may choose and does not refer to."""
Place = tuple[Any, ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("plan")
    (made / "counties.csv").write_text(CODES.replace(";", ","))
    return made


def problems(folder: Path, plan: dict[str, Any]) -> list[tuple[int | None, str]]:
    """What is wrong with a plan, with the number of the line."""
    path = folder / "plan.toml"
    path.write_text(tomli_w.dumps(plan))
    try:
        load_plan(path)
    except PlanFileError as error:
        return [(each.line, each.text) for each in cast("list[Any]", error.problems)]
    return []


def entries(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every entry of every table, and every item of every list."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*place, key)
            yield from entries(inner, (*place, key))


def at(plan: Any, place: Place) -> Any:
    for key in place:
        plan = plan[key]
    return plan


def with_entry(place: Place, value: Any) -> dict[str, Any]:
    plan = copy.deepcopy(WHOLE)
    at(plan, place[:-1])[place[-1]] = value
    return plan


def renamed(place: Place) -> dict[str, Any]:
    plan = copy.deepcopy(WHOLE)
    table = at(plan, place[:-1])
    table[f"{place[-1]}x"] = table.pop(place[-1])
    return plan


HALVES = pytest.mark.parametrize("half", few([0, 1], 1))
"""Every other entry in ``make test``, the rest in ``make test-slow``."""
WHOLE = tomllib.loads(PLAN)
PLACES = list(entries(WHOLE))
NAMED = [place for place in PLACES if isinstance(place[-1], str)]
MAY_BE_MISSING = set(
    """memory_limit max_outside csv csv.decimal csv.encoding series.revision labels labels.emp units units.emp
    schema.measures.payann.step schema.measures.payann.bound schema.measures.payann.null schema.measures.payann.signed
    schema.measures.rest schema.measures.rest.derive schema.columns.naics.type schema.columns.naics.null schema.columns.size
    schema.columns.size.type schema.columns.size.null hierarchies.place.titles hierarchies.place.titles.state
    budget budget.1.at.emp budget.1.at.payann budget.1.growth budget.1.period budget.3.select.pieces
    mechanisms.split.at.length mechanisms.split.at.default mechanisms.log mechanisms.any mechanisms.any.scale
    keys.filed keys.sized keys.selected keys.domain keys.domain.select_from.pieces
    queries.0.name queries.0.title queries.0.where queries.0.group_by queries.0.count queries.0.sum queries.0.sum.emp
    queries.0.sum.emp.as queries.0.sum.payann queries.0.sum.payann.as queries.0.count_distinct
    queries.0.count_distinct.firm_id queries.0.count_distinct.firm_id.as queries.1.group_by queries.2.levels
    queries.2.levels.0.share queries.2.sum queries.2.sum.emp queries.2.quantile queries.2.quantile.emp
    queries.2.quantile.emp.grid.bits outputs outputs.formats outputs.confidence
    examples examples.shop examples.shop.emp examples.shop.payann""".split()  # noqa: SIM905
)


MAY_BE_A_NUMBER = {"schema.measures.rest", "mechanisms.split.at"}
"""A measure is a table, or just its step; a threshold a table of groups, or one for all."""
UNUSED = {"keys.domain.select_from.product.county.0"}
"""Values of keys are compared with the columns of queries that use them."""


def of_another_type(value: Any) -> Any:
    """What no entry with such a value may be."""
    return 7 if isinstance(value, dict) else {"zz": "zz"} if isinstance(value, str | list) else "zz"


def spelled(place: Place) -> str:
    return ".".join(map(str, place))


def test_the_plan_itself_is_right(folder: Path) -> None:
    assert problems(folder, WHOLE) == []
    assert len(PLACES) > 150


@HALVES
@pytest.mark.costly
def test_an_entry_that_is_misspelled_is_refused(folder: Path, half: int) -> None:
    chosen = NAMED[half::2]
    assert {place for place in chosen if not problems(folder, renamed(place))} == FREE & set(chosen)


@HALVES
@pytest.mark.costly
def test_an_entry_of_another_type_is_refused_where_it_stands(folder: Path, half: int) -> None:
    accepted, chosen = [], PLACES[half::2]
    for place in chosen:
        plan = with_entry(place, of_another_type(at(WHOLE, place)))
        lines = tomli_w.dumps(plan).splitlines()
        found = problems(folder, plan)
        accepted += [] if found else [spelled(place)]
        if isinstance(place[-1], str) and not isinstance(at(WHOLE, place), dict | list):
            # Its line, that of its table, or the next, where tables begin on a line of their own.
            words = [str(each) for each in place[-2:]]
            near = {number for number, line in enumerate(lines, 1) if any(word in line for word in words)}
            named = near | {number + 1 for number in near}
            assert not found or {line for line, _ in found} & named, spelled(place)
    assert set(accepted) == (MAY_BE_A_NUMBER | UNUSED) & {spelled(place) for place in chosen}


@HALVES
@pytest.mark.costly
def test_an_entry_may_be_missing_only_if_the_rest_says_enough(folder: Path, half: int) -> None:
    may, chosen = set(), NAMED[half::2]
    for place in chosen:
        plan = copy.deepcopy(WHOLE)
        del at(plan, place[:-1])[place[-1]]
        may |= set() if problems(folder, plan) else {spelled(place)}
    assert may == MAY_BE_MISSING & {spelled(place) for place in chosen}
