"""A plan in TOML: whatever is accepted means the same when its entries are written anew in another order, and no number in it is
passed over."""

import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any
from zlib import crc32

from fuzz.mutation import mutated
from fuzz.target import ACCEPTED, WrongError
from fuzz.toml_text import toml_text
from recordwise.errors import RecordwiseError
from recordwise.plan.cost import plan_policy
from recordwise.plan.describe import plan_warnings
from recordwise.plan.file import PlanFile, load_plan
from recordwise.planning.check import check

WORDS = [word.encode() for word in (
    "rho = ", "sigma = ", 'kind = "', "UnitSplit", "LogTransform", "at = 50", "[[queries]]\n", "[[budget]]\n",
    "[keys.areas]\n", "[schema]\n",
    "group_by = ", "levels = { by = [", "prefix = ", "keys = ", "product = ", "count = ", "sum.emp = ", "where = ",
    '"emp < 5"', "variance = 2",
    "at_total = ", "signed = true", 'f = "log(x / 2 + 3)"', "share = [", "select = { rho = 0.1, delta = 1e-6 }",
    "quantile.emp = ", "1e400", "inf", "nan",
    "2024-01-01", "0x1F", '"1/3"', "true", "sum.rest = ", "sum.net = ", 'derive = "pay + emp / 3"',
    'combine.total = "rest + 45 * emp"', 'ratio.mean = { of = "rest", to = "emp" }',
    'null = "zero"', "[schema.collapse]\n", 'emp = "sum"', 'max_outside = "accept"', "[csv]\n",
    'delimiter = ";"', '{ part = "year", of = "opened" }', 'columns.opened = "date"', 'table = "t"', 'source = "s.db"',
)]  # fmt: skip
GAUSS = [
    "{ kind = 'Gaussian', rho = 0.05 }",
    "{ kind = 'Gaussian', sigma = 3 }",
    "{ kind = 'Gaussian', rho = 0.1, at = 20 }",
]
SUMS = [
    "{ kind = 'UnitSplit', at = 50, rho = 0.1 }",
    "{ kind = 'UnitSplit', at = { emp = 50, pay = 100 }, rho = 0.1 }",
    "{ kind = 'UnitSplit', at = { by = 'naics', length = 2, values = { 44 = 20 }, default = 50 }, rho = 0.5 }",
    "{ kind = 'Clamped', to = 100, rho = 0.02 }",
    "{ kind = 'LogTransform', offset = 2000, sigma = 0.5 }",
    "{ kind = 'RootTransform', degree = 4, offset = 10, sigma = 0.5 }",
    "{ kind = 'Transform', f = 'sqrt(x)', inverse = 'x ** 2', offset = 100, sigma = 20 }",
    *GAUSS[1:],
]
SIGNED = "{ kind = 'RootTransform', degree = 2, offset = 10, sigma = 0.5, signed = true }"
TOP = "dataset = 'd'\nsource = 's.parquet'\nledger = 'd.ledger'\ntuned_on = 'synthetic'\n"
SCHEMA = """[schema]
unit = "id"
firm = "firm"
measures.emp = 1
measures.pay = { step = 0.25, bound = 50_000, null = "zero" }
measures.net = { step = 1, bound = 1_000_000, signed = true }
measures.rest = { derive = "pay - 45 * emp" }
columns.county = "text"
columns.naics = { type = "text", null = "refuse" }
columns.size = { type = "integer", null = "category" }
columns.opened = "date"
"""
COLLAPSE = """[schema.collapse]
emp = "sum"
pay = "max"
county = "same"
naics = "same"
size = "min"
opened = "max"
firm = "same"
"""
NUMBERS = (
    "rho",
    "sigma",
    "at",
    "to",
    "offset",
    "degree",
    "delta",
    "scale",
    "bound",
    "step",
    "length",
    "threshold",
    "confidence",
)


class PlanText:
    def __init__(self) -> None:
        self._path = Path(mkdtemp()) / "plan.toml"

    def seeds(self) -> list[bytes]:
        return [seed for seed in (self.fresh(Random(f"seed {number}")) for number in range(40)) if self._accepted(seed)]

    def fresh(self, rng: Random) -> bytes:
        return plan_text(rng).encode()

    def mutate(self, rng: Random, data: bytes, other: bytes) -> bytes:
        if rng.random() < 0.5:
            return _other_lines(rng, data, other)
        return mutated(rng, data, other, WORDS)

    def check(self, data: bytes) -> str:
        read = self._load(data)
        rng = Random(crc32(data))
        tree = tomllib.loads(data.decode(), parse_float=Decimal)
        again = self._load(toml_text(tree, rng).encode())
        if meaning(again) != meaning(read):
            raise WrongError("a plan means something else when its entries stand in another order")
        if rng.random() < 0.1:
            check(read, source=False)
        if rng.random() < 0.3:
            self._check_a_number_counts(rng, tree, read)
        return ACCEPTED

    def _accepted(self, data: bytes) -> bool:
        try:
            self._load(data)
        except RecordwiseError:
            return False
        return True

    def _load(self, data: bytes) -> PlanFile:
        self._path.write_bytes(data)
        return load_plan(self._path)

    def _check_a_number_counts(self, rng: Random, tree: Any, read: PlanFile) -> None:
        """Change one parameter: the plan must be refused or be another one."""
        places = [
            (holder, name) for holder in holders(tree) for name in holder if name in NUMBERS and number(holder[name])
        ]
        if not places:
            return
        holder, name = rng.choice(places)
        value = number(holder[name])
        assert value is not None
        holder[name] = value + 1 if name in ("length", "degree", "threshold") else str(value / 2)
        try:
            other = self._load(toml_text(tree, rng).encode())
        except RecordwiseError:
            return
        if meaning(other) == meaning(read) and not _unused(holder, tree):
            raise WrongError(f"the number of {name} is passed over")


def number(value: Any) -> Fraction | int | None:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, Decimal))
        or (isinstance(value, Decimal) and not value.is_finite())
    ):
        return None
    return value if isinstance(value, int) else Fraction(value)


def holders(tree: Any) -> list[dict[str, Any]]:
    """Every table of the file."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found.append(node)
        waiting.extend(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
    return found


def _unused(holder: Any, tree: Any) -> bool:
    """Whether a table lies on a shelf no query takes it from, where it may say what it likes."""
    shelved = [node for name in ("mechanisms", "keys", "examples") for node in holders(tree.get(name, {}))]
    return any(holder is node for node in shelved)


def meaning(read: PlanFile) -> tuple[Any, ...]:
    """Everything a release of the plan would depend on."""
    plan_warnings(read.plan)
    policies = plan_policy(read.plan), plan_policy(read.plan, tight=False)
    stated = (
        read.dataset,
        read.source,
        read.ledger,
        read.tuned_on,
        read.tuning_reason,
        read.memory_limit,
        read.formats,
        read.max_outside,
        read.confidence,
    )
    return (*stated, read.plan, read.budget, read.examples, *policies)


def _other_lines(rng: Random, data: bytes, other: bytes) -> bytes:
    """Drop, repeat, swap or borrow whole lines."""
    lines, lent = data.split(b"\n"), other.split(b"\n")
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(lines))
        match rng.randrange(4):
            case 0 if len(lines) > 1:
                del lines[place]
            case 1:
                lines.insert(place, lines[rng.randrange(len(lines))])
            case 2:
                lines.insert(place, rng.choice(lent))
            case _:
                lines[place] = mutated(rng, lines[place], rng.choice(lent), WORDS)
    return b"\n".join(lines)


def plan_text(rng: Random) -> str:
    parts = [
        TOP + rng.choice(("", "max_outside = 'accept'\n", "max_outside = 0.05\n")),
        SCHEMA,
        rng.choice(("", COLLAPSE)),
    ]
    for _ in range(rng.choice((0, 1, 2))):
        parts.append("[[budget]]\nrho = 3\n" + rng.choice(("", "at = { emp = 20, pay = 1000 }\n")))
    parts.append("[mechanisms]\nsmall = { kind = 'Gaussian', rho = 0.05 }\n")
    parts.append("[keys.areas]\nproduct = { county = ['1', '2'], naics = ['441110', '722511'] }\n")
    parts += [query_text(rng) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.3:
        parts.append('[outputs]\nformats = ["parquet"]\nlevel = 0.9\n[examples]\nshop = { emp = 4, pay = 140 }\n')
    return "\n".join(parts)


def query_text(rng: Random) -> str:
    if rng.random() < 0.25:
        return (
            '[[queries]]\nsql = "SELECT county, COUNT(*) AS n, SUM(emp) FROM t WHERE size > 3 GROUP BY county"\n'
            "keys = { rows = { county = ['1', '2'] } }\nmechanisms.n = 'small'\n"
            f"mechanisms.emp = {rng.choice(SUMS[:1] + SUMS[3:])}\n"
        )
    groups = rng.choice(
        (
            "['county']",
            "['county', { prefix = 'naics', length = 3 }]",
            "[{ prefix = 'naics', length = 2, as = 'branch' }, 'county']",
            "['county']\nwhere = \"EXTRACT(YEAR FROM opened) = 2024\"",
        )
    )
    lines = ["[[queries]]", f"group_by = {groups}", "keys = 'areas'"]
    if rng.random() < 0.4 and "where" not in groups:
        lines.append("where = \"emp < 5000 AND county <> '9'\"")
    chosen = rng.sample(
        [
            "count = " + rng.choice(("'small'", *GAUSS[:2])),
            f"sum.emp = {rng.choice(SUMS)}",
            f"sum.pay = {rng.choice(SUMS[3:])}",
            "count_distinct.firm = { mechanism = 'small', as = 'firms' }",
            "avg.emp = { sum = { kind = 'UnitSplit', at = 50, rho = 0.1 }, count = 'small' }",
            "quantile.pay = { p = 0.5, rho = 0.1, grid = { log = [1, 1e4], bits = 5 } }",
        ],
        rng.randint(1, 3),
    )
    if rng.random() < 0.3:
        lines.append(f"sum.net = {rng.choice([*GAUSS[1:], SIGNED])}")
    if rng.random() < 0.3 and any(each.startswith("sum.emp") for each in chosen):
        lines += [f"sum.rest = {rng.choice([*GAUSS[1:], SIGNED])}", "combine.total = 'rest + 45 * emp'"]
        lines.append("ratio.mean = { of = 'total', to = 'emp' }")
    return "\n".join([*lines, *chosen, ""])
