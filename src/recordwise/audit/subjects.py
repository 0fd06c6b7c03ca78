"""The subjects of an audit: a query, its keys and records.

The records are present in half of the cells. The default catalog covers every mechanism, every statistic and
every kind of keys; the mechanisms of a plan are further subjects, whose queries run on made-up neighboring
tables, never on the plan's records.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from recordwise.errors import own_argument_errors, own_errors_of
from recordwise.exact.numbers import Number
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.gaussian import Gaussian, UnitSplit
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.mechanisms.registry import audit_examples
from recordwise.mechanisms.sized import ByGroup, Sized
from recordwise.plan.expressions import prefix
from recordwise.plan.keys.keys import Keys
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query, query
from recordwise.plan.schema import CollapseRule
from recordwise.plan.schema import Measure as SchemaMeasure
from recordwise.plan.sql.parse import parse_sql
from recordwise.plan.statistics import Drawable, SumAndCount
from recordwise.plan.statistics.base import SUM
from recordwise.policy.columns import Measure
from recordwise.policy.constructors import by
from recordwise.policy.policy import Policy

VALUE, SECOND, FORM, CELL, FIRM, KIND = "value", "second", "form", "cell", "firm", "kind"
DERIVED = SchemaMeasure.of(FORM, derive=f"{VALUE} - 3 * {SECOND}")
STRONGEST = 1.0
"""The loss at which the bound is closest to the truth, relative to it, for a hundred thousand samples (docs/trust.md)."""
LARGEST_STEPS = 2**53
Record: TypeAlias = Mapping[str, Any]
KeysOf: TypeAlias = Callable[[Sequence[str]], Keys]


def public_keys(cells: Sequence[str]) -> Keys:
    """Every cell, whatever the records are."""
    return Keys.of({CELL: list(cells)})


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One query to be audited."""

    name: str
    ask: Callable[[Keys], Query]
    records: Mapping[str, Record]
    """The records by name; a cell contains at most one of them."""
    others: tuple[Record, ...] = ()
    """The other records in every cell, with or without the record under test."""
    keys: str = "public"
    keys_of: KeysOf = public_keys
    step: Fraction = Fraction(1)
    """The step of ``value``; the measure ``second`` has step 1, and ``form`` is derived from both."""
    signed: bool = False
    """Whether ``value`` may be negative."""
    first: Callable[[Keys], Query] | None = None
    """The query of an earlier release, which ``ask`` refines; the loss is that of both."""
    tier: bool = False
    """Whether ``ask`` is a public tier of that release instead; the loss is that of the tier alone, and nothing is charged."""
    rows: int = 1
    """How many rows each record has in the file: with several, the largest ``value`` counts and ``second`` is added up."""

    def measure(self) -> SchemaMeasure:
        """The measure ``value`` as the schema declares it."""
        return SchemaMeasure.of(VALUE, step=self.step, signed=self.signed)

    def collapse(self) -> dict[str, CollapseRule] | None:
        """What makes one record of its rows."""
        return {VALUE: "max", SECOND: "sum", CELL: "same", KIND: "same", FIRM: "same"} if self.rows > 1 else None

    @property
    def lists_every_cell(self) -> bool:
        """Whether the release's rows must be exactly the public cells."""
        return self.keys == "public"

    def with_others(self, name: str, *others: Record) -> "Subject":
        """The same subject with other records in every cell.

        Args:
            name: The name of the new subject.
            others: The records.

        Returns:
            The new subject.
        """
        return replace(self, name=name, others=others)


def record(value: Number = 0, second: int = 0, kind: str = "plain") -> Record:
    return {VALUE: Fraction(value), SECOND: second, KIND: kind}


@own_argument_errors
def sum_subject(name: str, mechanism: Mechanism, *, step: Fraction = Fraction(1)) -> Subject:
    """Return SUM with one mechanism, at records of three sizes.

    Chosen by its policy; negative ones where it publishes two parts.

    Args:
        name: What the audit calls it.
        mechanism: The mechanism of the sum.
        step: The step of the measure.

    Returns:
        The subject, for ``audit``.
    """
    bound, signed = mechanism.to, mechanism.signed
    policy = mechanism.policy(Measure(VALUE, step, signed))
    sizes = three_sizes(policy, step, most=None if bound is None else int(bound / step))
    return Subject(
        name=name,
        ask=statement(f"SELECT {CELL}, SUM({VALUE}) AS answer FROM t GROUP BY {CELL}", answer=mechanism),
        records={size: record(-value if signed else value) for size, value in sizes.items()},
        step=step,
        signed=signed,
    )


def statement(text: str, **mechanisms: Any) -> Callable[[Keys], Query]:
    """SQL text with a mechanism for each alias."""
    return lambda keys: parse_sql(text, mechanisms=mechanisms, keys=keys)


def three_sizes(policy: Policy, step: Fraction, *, most: int | None = None) -> dict[str, Fraction]:
    """Return a large record, one ten times smaller, and a giant.

    The large record is the largest whose loss is at most that of the strongest test. Where contributions are
    clamped, it is at the bound of ``most`` steps: a giant must lose no more.
    """

    def loss(steps: int) -> float:
        return float(policy.loss({VALUE: steps * step, SECOND: 0, KIND: "plain"}))

    low, high = 1, LARGEST_STEPS if most is None else most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if loss(middle) <= STRONGEST else (low, middle)
    return {"small": max(1, low // 10) * step, "large": low * step, "giant": min(low * 10**6, LARGEST_STEPS) * step}


CENT = Fraction(1, 100)
BY_CELL = f"FROM t GROUP BY {CELL}"
ANYBODY = {"any": record(5, 300)}
"""For statistics that cost every record the same."""


def count_subject(what: str) -> Subject:
    """A statistic to which every record contributes 1."""
    asked = statement(f"SELECT {CELL}, COUNT({what}) AS answer {BY_CELL}", answer=Gaussian(rho=1))
    return Subject(name="count" if what == "*" else "count of firms", ask=asked, records=ANYBODY)


def by_group() -> Subject:
    """Return cells that mix groups of different thresholds."""
    mechanism = UnitSplit(at=by(KIND, {"plain": 50, "large": 500}, default=5), rho="0.1")
    sizes = {"small": record(100, kind="plain"), "large": record(1500, kind="large"), "giant": record(10**8)}
    return Subject(
        name="unit split by group",
        ask=statement(f"SELECT {CELL}, SUM({VALUE}) AS answer {BY_CELL}", answer=mechanism),
        records=sizes,
    )


def by_mechanism() -> Subject:
    """Return a mechanism by group; cells of several groups have the default."""
    groups = {"plain": UnitSplit(at=50, rho="0.1")}
    mechanism = ByGroup(KIND, groups, default=UnitSplit(at=500, rho="0.1"))
    sizes = {"small": record(100, kind="plain"), "large": record(1500, kind="large"), "giant": record(10**8)}
    return Subject(
        name="a mechanism for each group",
        ask=statement(f"SELECT {CELL}, SUM({VALUE}) AS answer {BY_CELL}", answer=mechanism),
        records=sizes,
    )


def several(name: str, text: str, **mechanisms: Any) -> Subject:
    """Several statistics of one query, whose losses add up."""
    sizes = {"small": record(3, 100), "large": record(30, 1000), "giant": record(10**8, 10**9)}
    return Subject(name=name, ask=statement(f"SELECT {CELL}, {text} {BY_CELL}", **mechanisms), records=sizes)


def negative() -> Subject:
    """Negative values, and a positive one."""
    found = sum_subject("negative values", Gaussian(sigma=20))
    sizes = {name: record(-each[VALUE] if name != "small" else each[VALUE]) for name, each in found.records.items()}
    return replace(found, records=sizes, signed=True)


def derived_subject() -> Subject:
    """Return a linear form whose sum is combined and divided."""
    sums = f"SUM({FORM}) AS rest, SUM({SECOND}) AS other"
    text = f"{sums}, SUM({FORM}) + 3 * SUM({SECOND}) AS total, SUM({FORM}) / SUM({SECOND}) AS r"
    found = several("derived sum, combination and ratio", text, rest=Gaussian(sigma=20), other=Gaussian(sigma=1000))
    return replace(found, records={"small": record(3, 4), "large": record(0, 8), "giant": record(10**8, 10**6)})


def collapsed_subject() -> Subject:
    """Return several rows per record, at the cost of one record."""
    text = f"COUNT(*) AS n, SUM({VALUE}) AS total, SUM({SECOND}) AS other"
    return replace(several("collapsed rows", text, n=THIRD, total=SPLIT, other=SECOND_SPLIT), rows=3)


FLOOR, SIZE, LARGER = 100, 300.0, 900.0


def sized_subject() -> Subject:
    """Return a sum whose noise follows a public size."""
    mechanism = Sized(Gaussian(sigma="0.2"), floor=FLOOR)
    found = sum_subject("sized", mechanism.at_size(Fraction(2 * FLOOR)))
    ask = statement(f"SELECT {CELL}, SUM({VALUE}) AS answer {BY_CELL}", answer=mechanism)
    return replace(found, ask=ask, keys_of=sized_keys)


def sized_keys(cells: Sequence[str]) -> Keys:
    """Return every cell with its size, the last one larger."""
    sizes = [SIZE] * (len(cells) - 1) + [LARGER]
    return Keys.of({CELL: list(cells), "size": sizes}, size="size", sized_on="public: made up for the audit")


def refined_subject(name: str, before: Mechanism, after: Mechanism) -> Subject:
    """Return a sum that is published and then refined: both together cost what the second accuracy costs."""
    text = f"SELECT {CELL}, SUM({VALUE}) AS answer {BY_CELL}"
    return replace(sum_subject(name, after), first=statement(text, answer=before))


def tier_subject(name: str, before: Mechanism, after: Mechanism) -> Subject:
    """Return a sum that is a public tier of a finer one."""
    return replace(refined_subject(name, before, after), tier=True)


def levels_subject() -> Subject:
    """Return the same sum at two levels of a code."""
    return replace(several("two levels", "", answer=None), ask=two_level_query)


def two_level_query(keys: Keys) -> Query:
    asked = query().levels(prefix(CELL, [7, 8]), share=["1/4", "3/4"], keys=keys)
    return asked.sum(VALUE, UnitSplit(at=30, rho=1), alias="answer")


PIECES = {VALUE: 50}


def selected_subject(name: str, keys: str, keys_of: KeysOf) -> Subject:
    """Cells that appear because of their records or because of noise."""
    sizes = {"one piece": record(50), "two pieces": record(100), "giant": record(10**6)}
    asked = statement(f"SELECT {CELL}, COUNT(*) AS n {BY_CELL}", n=Gaussian(rho="0.1"))
    return Subject(name=name, ask=asked, records=sizes, keys=keys, keys_of=keys_of)


def alone() -> Subject:
    """Without the record its key does not exist."""
    return selected_subject(
        "found keys, alone", "selected", lambda _: Keys.select(rho="0.1", delta="0.2", pieces=PIECES)
    )


def beside_others() -> Subject:
    """With or without the record, the key nearly always appears."""
    found = selected_subject("", "selected", lambda _: Keys.select(rho="0.4", delta="0.001", pieces=PIECES))
    return found.with_others("found keys, beside others", record(1000))


def domain_keys(cells: Sequence[str]) -> Keys:
    return Keys.select_from({CELL: list(cells)}, rho="0.4", threshold=0, pieces=PIECES)


THIRD, SPLIT, SECOND_SPLIT = Gaussian(rho="0.33"), UnitSplit(at=30, rho="0.33"), UnitSplit(at=1000, rho="0.33")
HALVES = SumAndCount(sum=UnitSplit(at=30, rho="0.5"), count=Gaussian(rho="0.5"))
GRID = Grid.linear(0, 60, bits=2)
EVERYTHING = f"COUNT(*) AS n, SUM({VALUE}) AS total, AVG({VALUE}) AS mean, MEDIAN({VALUE}) AS middle"

CATALOGUE: dict[str, Callable[[], Subject]] = {
    "count": lambda: count_subject("*"),
    "count of firms": lambda: count_subject(f"DISTINCT {FIRM}"),
    "gaussian in cents": lambda: sum_subject("gaussian in cents", Gaussian(sigma="0.37"), step=CENT),
    "unit split of two measures": lambda: sum_subject(
        "unit split of two measures", UnitSplit(at={VALUE: 50, SECOND: 2000}, rho="0.1")
    ),
    "unit split by group": by_group,
    "a mechanism for each group": by_mechanism,
    "count and two sums": lambda: several(
        "count and two sums",
        f"COUNT(*) AS n, SUM({VALUE}) AS total, SUM({SECOND}) AS other",
        n=THIRD,
        total=SPLIT,
        other=SECOND_SPLIT,
    ),
    "negative values": negative,
    "derived sum, combination and ratio": derived_subject,
    "collapsed rows": collapsed_subject,
    "average": lambda: several("average", f"AVG({VALUE}) AS answer", answer=HALVES),
    "median": lambda: several("median", f"MEDIAN({VALUE}) AS answer", answer=TreeQuantile(grid=GRID, rho=1)),
    "count, sum, average and median": lambda: several(
        "count, sum, average and median",
        EVERYTHING,
        n=THIRD,
        total=SPLIT,
        mean=SumAndCount(sum=SPLIT, count=THIRD),
        middle=TreeQuantile(grid=GRID, rho="0.33"),
    ),
    "two levels": levels_subject,
    "sized": sized_subject,
    "refined": lambda: refined_subject("refined", Gaussian(sigma=28), Gaussian(sigma=20)),
    "refined on few steps": lambda: refined_subject(
        "refined on few steps", Gaussian(sigma="1.2"), Gaussian(sigma="0.8")
    ),
    "public tier": lambda: tier_subject("public tier", Gaussian(sigma=14), Gaussian(sigma=20)),
    "public tier on few steps": lambda: tier_subject(
        "public tier on few steps", Gaussian(sigma="0.36"), Gaussian(sigma="0.51")
    ),
    "found keys, alone": alone,
    "found keys, beside others": beside_others,
    "keys of a domain": lambda: selected_subject("keys of a domain", "domain", domain_keys),
}
"""Subjects by name, built when needed."""


def every_subject() -> dict[str, Callable[[], Subject]]:
    """Return the catalog and every mechanism's examples, built when needed."""
    return CATALOGUE | {name: partial(sum_subject, name, each) for name, each in audit_examples().items()}


def plan_subjects(plan: Plan) -> list[Subject]:
    """Return one subject per mechanism that can apply to a cell."""
    found: dict[tuple[str, Any, Fraction], Subject] = {}
    for part, statistic in plan.drawn():
        step = statistic.step(plan.schema)
        for mechanism in part.mechanisms:
            if (statistic.alias, mechanism, step) not in found:
                found[statistic.alias, mechanism, step] = _subject(statistic, mechanism, step)
    return list(found.values())


def _subject(statistic: Drawable, mechanism: Mechanism, step: Fraction) -> Subject:
    name = f"{statistic.alias}: {type(mechanism).__name__}"
    if statistic.contribution == SUM:
        return sum_subject(name, mechanism, step=step)
    asked = statement(f"SELECT {CELL}, {statistic.example_sql(VALUE)} AS answer {BY_CELL}", answer=mechanism)
    return Subject(name=name, ask=asked, records={"any": record(step)}, step=step)
