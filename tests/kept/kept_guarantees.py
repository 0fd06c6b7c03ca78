"""What the guarantee rests on: mechanisms scaled to goals, policies compared and translated, plans described, losses counted."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import recordwise as rw
from build import CODES, COUNTIES, generous, records, session
from kept.leaves import leaves
from mechanisms.mechanism_catalogue import EVERY
from plan.test_identity import identity, loaded
from plan.whole_plan import WHOLE
from policy.test_dominance import related_pair
from random_policies import random_policy, random_record
from recordwise.errors import RecordwiseError
from recordwise.ledger.entries import periods_of, unit_losses
from recordwise.ledger.ledger import Ledger
from recordwise.noise import Seeded
from recordwise.plan import Plan
from recordwise.plan.cost import firm_policy, lattice_policy, plan_parts, plan_policy
from recordwise.plan.describe import plan_json, query_names, schema_json, used_schema
from recordwise.plan.file import load_plan
from recordwise.plan.file.first import CodeList, SizeList, SourceColumn, Wishes, first_plan, has_blanks, roles_of
from recordwise.plan.file.write import plan_text, statistic_lines
from recordwise.policy import Policy, constant, gaussian_sum
from recordwise.policy.series import Series
from recordwise.session.shares import best_shares


def told(ask: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """The answer, or that there is none."""
    try:
        return ask(*given, **named)
    except (RecordwiseError, NotImplementedError, TypeError):
        return "refused"


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


COSTLY = ("generalized gaussian", "polylog", "pareto", "additive")
"""Goals of these are searched with a certificate for each noise that is tried."""


def of_scaled(number: int) -> Iterator[tuple[str, Any]]:
    """A mechanism with a share, at another size, with other noise, and with as much noise as a goal allows."""
    entry = EVERY[number]
    made, step, third = entry.mechanism, entry.step, Fraction(1, 3)
    for change, ask, amount in (
        ("shared", made.shared, third),
        ("at a share", made.at_share, third),
        ("resized", made.resized, Fraction(7, 2)),
        ("at size", made.at_size, Fraction(700)),
        ("sigma", made.with_sigma, Fraction(13, 4)),
        ("noise scale", made.with_noise_scale, Fraction(13, 4)),
        ("amount", made.with_amount, Fraction(9)),
        ("scale times", made.with_scale_times, Fraction(5, 3)),
        ("offset", made.with_offset, Fraction(31)),
    ):
        yield change, repr(told(ask, amount))
    yield "further", repr(told(made.further))
    yield "edges", leaves(told(made.edges, 5000.0))
    sizes = np.array([3.0, 50.0, 8000.0])
    for what in ("variance_of", "smooth_error_quantiles"):
        how: dict[str, Any] = {"step": step} | ({"confidence": 0.8} if what != "variance_of" else {})
        yield what, leaves(told(getattr(made, what), sizes, **how))
    count = told(made.policy_of_count)
    yield "count", leaves(count if isinstance(count, str) else told(count.loss, {}))
    if entry.name.startswith(COSTLY):
        return
    for total, part in ((40.0, 0.5), (9000.0, 0.05)):
        for confidence in (0.6, 0.95):
            kept = (total, 0.0) if entry.measure.signed else total * 0.9 if made.to is not None else None
            how = {"confidence": confidence, "step": step, "kept": kept}
            yield f"most noise at {total}, {confidence}", repr(told(made.most_noise, total, total * part, **how))
    goals: list[dict[str, Any]] = [{"variance": 30}, {"relative_error": "0.2", "at_total": 700, "confidence": 0.7}]
    for goal in [*goals, {"rho": "0.2", "at": 30}]:
        yield f"{goal}", repr(told(made.recalibrated, **goal))


def of_compared_policies() -> Iterator[tuple[str, Any]]:
    """Verdicts with their witnesses, in one amount and in several."""
    rng = Random(29)
    for number in range(90):
        budget, policy = related_pair(rng)
        found = budget.dominates(policy, seconds=20)
        yield f"{number}", [found.answer, found.subject, *leaves(found.witness)]
        yield f"{number}, least", leaves([told(budget.minimum), told(policy.minimum)])
        bounds = {"emp": 1000, "pay": 5000, "net": 300}
        yield f"{number}, bounded", leaves(budget.dominates(policy, bounds=bounds, seconds=20).answer)


def of_translated_policies() -> Iterator[tuple[str, Any]]:
    """Policies as SQL, JavaScript and JSON, by digest."""
    for seed in range(40):
        rng = Random(1000 + seed)
        policy = random_policy(rng)
        record = random_record(rng)
        for dialect in ("duckdb", "spark"):
            yield f"{seed}, {dialect}", digest(policy.to_sql(dialect) + policy.delta_to_sql(dialect))
        yield f"{seed}, page", digest(policy.to_javascript())
        yield f"{seed}, saved", digest(json.dumps(policy.to_json()))
        yield f"{seed}, exact", str(told(policy.exact_loss, record))
        yield f"{seed}, pure", leaves(told(policy.epsilon_pure, record))
        yield f"{seed}, columns", sorted(f"{each.name} {each.length} {each.part}" for each in policy.columns())


def described(plan: Plan) -> Iterator[tuple[str, Any]]:
    """What the ledger and release.json say about a plan, and what its parts cost."""
    yield "queries", leaves(plan_json(plan))
    yield "schema", leaves([schema_json(plan.schema), schema_json(used_schema(plan))])
    yield "names", [query_names(plan), identity(plan)]
    lattice = lattice_policy(plan)
    policies = [plan_policy(plan), plan_policy(plan, tight=False), firm_policy(plan).policy()]
    yield "policies", [digest(json.dumps(each.to_json())) for each in policies]
    yield "lattice", leaves("none" if lattice is None else lattice.to_json())
    for number, part in enumerate(plan_parts(plan)):
        held = [part.record_policy(tight=tight).to_json() for tight in (True, False)]
        yield f"part {number}", [part.alias, part.stays, *map(repr, part.mechanisms), digest(json.dumps(held))]
        yield f"part {number}, firms", leaves([part.joint.to_json(), [each.to_json() for each in part.cells]])
    for number, table in enumerate(plan.tables()):
        yield (
            f"table {number}",
            [*map(repr, table.totals), *leaves(None if table.rest else plan.selection(table) is None)],
        )
    yield "lines", [line for query in plan.queries for line in statistic_lines(query)]


def of_plans() -> Iterator[tuple[str, Any]]:
    """Two plans with one of everything."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = loaded(folder)
        (folder / "whole.toml").write_text(WHOLE)
        other = load_plan(folder / "whole.toml")
        for about, each in {"every field": file, "whole": other}.items():
            for part, value in described(each.plan):
                yield f"{about}, {part}", value
            budget = Policy() if each.budget is None else each.budget
            yield f"{about}, budget", digest(json.dumps(budget.to_json()))
            yield f"{about}, file", leaves([each.examples, each.confidence, each.max_outside, each.reserve])
        words = {"dataset": "d", "source": "records.parquet", "ledger": "l.ledger", "tuned_on": "synthetic"}
        yield "written", plan_text(other.plan.queries, other.plan.schema, **words).text.splitlines()


FOUND = [
    SourceColumn(name="estab_id", kind="integer"),
    SourceColumn(name="firm_id", kind="text"),
    SourceColumn(name="county", kind="text"),
    SourceColumn(name="size class", kind="integer", coded=True),
    SourceColumn(name="emp", kind="integer"),
    SourceColumn(name="pay", kind="number", step="0.25"),
    SourceColumn(name="net", kind="number"),
    SourceColumn(name="opened", kind="date"),
    SourceColumn(name="perhaps"),
    SourceColumn(name="list", kind="other"),
]
PLACES = CodeList(name="place", path="lists/places.csv", levels=("state", "county"))
SIZED = SizeList(path="sizes.csv", columns={"emp": "jobs"}, all_keys=True)
WISHES = {
    "nothing said": Wishes(),
    "sums": Wishes(unit=("estab_id", "county"), sums={"emp": "40", "pay": "1e3"}, by=("county",), tuned_on="public"),
    "steps": Wishes(
        sums={"net": ""}, steps={"net": "1/3"}, by=("county", "size class"), keys={"size class": ("1", "2")}
    ),
    "codes": Wishes(sums={"emp": "40"}, keys={"county": ("01", "02")}, by=("county",), tuned_on="synthetic"),
    "levels": Wishes(sums={"emp": "40"}, code_lists=(PLACES,), by=("size class",), sizes=SIZED, tuned_on="public"),
    "levels, own list": Wishes(sums={"emp": "7/3"}, code_lists=(PLACES,), key_file="cells.csv", tuned_on="past"),
    "sized": Wishes(sums={"emp": "40", "pay": "9"}, by=("county",), sizes=SIZED),
}


def of_first_plans() -> Iterator[tuple[str, Any]]:
    """First plans by what was said about a table, without their comments, and what each column is taken for."""
    for name, said in WISHES.items():
        for looked in (False, True):
            csv = {"delimiter": ";"} if looked else None
            text = first_plan({"source": "t.csv"}, FOUND, dataset="d", looked=looked, csv=csv, wishes=said)
            lines = [line.partition("  #")[0] for line in text.splitlines() if not line.startswith("# ")]
            yield f"{name}, {looked}", [has_blanks(text), *filter(None, lines)]
        roles = roles_of(FOUND, said)
        taken = [[each.name, each.kind, each.step] for each in (*roles.measures, *roles.columns)]
        yield f"{name}, roles", [list(roles.unit), roles.firm, taken]
        yield f"{name}, said", [said.chosen(), list(said.names()), sorted(said.levels())]


def of_ledgers() -> Iterator[tuple[str, Any]]:
    """Charges, reserves, amendments and periods, and what is left after each."""
    cost = gaussian_sum("emp", sigma=10)
    budget = constant(1) + cost * 3
    emp, nothing = {"emp": 7}, {"emp": 0}

    def opened(period: str, revision: int = 0, **more: Any) -> Ledger:
        own = Series(name="s", period=period, revision=revision, every_period=budget, more={"2026": cost})
        return Ledger(path, dataset="d", budget=budget, series=own, **more)

    with TemporaryDirectory() as name:
        path = Path(name) / "own.ledger"
        steps: list[tuple[str, int, Policy, dict[str, Any]]] = [
            ("2025", 0, cost, {"reserve": 1}),
            ("2025", 0, constant("0.5"), {}),
            ("2025", 0, cost * 2, {}),
            ("2025", 1, cost, {}),
            ("2025", 1, cost * Fraction(1, 100), {}),
            ("2026", 0, cost * 3, {"reserve": 2}),
            ("2026", 0, cost, {}),
            ("2026", 0, constant(1), {}),
        ]
        for number, (period, revision, policy, more) in enumerate(steps):
            with closing(opened(period, revision, **more)) as ledger:
                yield f"{number}, check", str(told(ledger.check, policy, query="q"))
                done = told(ledger.charge, policy, query=f"q{number}")
                yield f"{number}, charged", "refused" if done == "refused" else done.sequence
                for about, held in {"spent": ledger.spent(), "reserved": ledger.reserved()}.items():
                    yield f"{number}, {about}", leaves([held.loss(emp), held.loss(nothing)])
        with closing(Ledger.existing(path)) as ledger:
            events = ledger.history()
            yield "events", [f"{event.sequence} {event.kind}" for event in events]
            yield "bodies", [leaves({k: v for k, v in event.body.items() if k != "versions"}) for event in events]
            yield (
                "periods",
                [
                    [each.name, each.charges, *leaves([each.spent.loss(emp), each.reserved.loss(emp)])]
                    for each in periods_of(events)
                ],
            )
            yield "by period", leaves({period: each.loss(emp) for period, each in ledger.spent_by_period().items()})
            history = {"2025": {"emp": 7}, "2025/1": {"emp": 3}, "2026": {"emp": 7}}
            yield "of one unit", leaves(unit_losses(events, history))
            yield "problems", ledger.problems()


def of_owners() -> Iterator[tuple[str, Any]]:
    """Losses, cells and contributors of records as they are, and releases drawn in memory."""
    keys = rw.Keys.product(county=[*COUNTIES[:2], "99"], naics=CODES[:2])
    areas = rw.query().group_by("county", keys=keys).levels(rw.prefix("naics", [1, 3]))
    queries = {
        "sums": areas.where("emp > 1").count(rw.Gaussian(sigma=3)).sum("emp", rw.UnitSplit(at=20, rho="0.3")),
        "curved": areas.sum("pay", rw.LogTransform(offset=100, sigma="0.4")).sum("emp", rw.Clamped(to=30, rho=1)),
        "firms": rw.query().group_by("county", keys={"county": COUNTIES}).count_distinct("firm", rw.Gaussian(sigma=2)),
    }
    with session(records(300), budget=generous(), max_outside="accept") as opened:
        owner, view = opened.owner, opened.owner.view(data="synthetic")
        for name, query in queries.items():
            edges = [0.0001, 0.01, 0.1, 1.0, 30.0]
            how: dict[str, Any] = {"edges": edges, "data": "synthetic"}
            yield f"{name}, preflight", leaves(list(owner.preflight(query, data="synthetic")))
            yield f"{name}, unmatched", leaves(owner.unmatched(query, at_most=4, data="synthetic"))
            policy = opened.policy_of(query)
            for about, found in {
                "losses": told(owner.loss_summary, policy, **how),
                "firms": told(owner.firm_loss_summary, query, **how),
                "units of firms": told(owner.firm_loss_summary, policy, bound="simple", **how),
                "realized": told(owner.realized_loss_summary, query, **how),
                "realized firms": told(owner.realized_loss_summary, query, firms=True, **how),
            }.items():
                held = "refused" if found == "refused" else [found.counts, found.quantile(0.5), found.quantile(0.99)]
                yield f"{name}, {about}", leaves(held)
            for each in view.cell_totals(query):
                yield f"{name}, {each.name}, totals", leaves([each.cells, each.totals])
            simulated = view.simulation(query)
            for table in simulated.tables():
                yield f"{name}, {table.name}, exact", leaves([table.exact, table.kept])
            drawn = simulated.draw(Seeded(4))
            yield f"{name}, drawn", [leaves(each.data) for each in drawn.tables]
        shape = rw.query().group_by("county", "naics", keys=keys)
        for by_firm in (False, True):
            found = view.contributors(shape.sum("emp", rw.Gaussian(sigma=1)), "emp", by_firm=by_firm)
            yield (
                f"contributors, {by_firm}",
                leaves([found.number, found.total, found.largest, found.second, found.squares]),
            )
        counts = view.value_counts(["emp", "county"])
        yield (
            "values",
            leaves([len(counts.records), sorted(counts.records.tolist())[-40:]] if counts is not None else "none"),
        )


def of_best_shares() -> Iterator[tuple[str, Any]]:
    """Shares over levels, from lists and sizes."""
    sizes = np.exp(np.random.default_rng(7).normal(5, 2, 12)).astype(int) + 1
    counties = [f"{state}{number}" for state in ("01", "02") for number in range(3)]
    cells = {"county": np.repeat(counties, 2), "naics": ["11", "12"] * 6, "size": sizes}
    keys = rw.Keys.of(cells, size={"emp": "size"}, sized_on="public: a table")
    schema = rw.plan.Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text", "naics": "text"})
    by = rw.query().levels(rw.prefix("county", 2), "county").levels((), "naics", keys=keys)
    nested = rw.query().levels((), rw.prefix("county", 2), "county", keys=keys)
    for shape, asked in {"crossed": by, "nested": nested}.items():
        for name, mechanism in {
            "plain": rw.Gaussian(sigma=50),
            "sized": rw.Sized(rw.Gaussian(sigma="0.05"), floor=50),
        }.items():
            plan = Plan(schema=schema, queries=(asked.sum("emp", mechanism).count(rw.Gaussian(sigma=2)),))
            for goal in (None, {100: "0.5", 1000: "0.05"}):
                for complete in (False, True):
                    found = told(best_shares, plan, goal=goal, complete=complete)
                    held = "refused" if found == "refused" else found.to_json()
                    yield f"{shape}, {name}, {goal}, {complete}", leaves(held)


SUBJECTS = {
    **{f"{number} {entry.name}, scaled": partial(of_scaled, number) for number, entry in enumerate(EVERY)},
    "compared policies": of_compared_policies,
    "translated policies": of_translated_policies,
    "plans": of_plans,
    "first plans": of_first_plans,
    "ledgers": of_ledgers,
    "owners": of_owners,
    "best shares": of_best_shares,
}
