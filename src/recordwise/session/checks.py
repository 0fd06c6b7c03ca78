"""Checks before a release: do its cells hold the records, are its sizes public, are its records those of an earlier one?

A list of keys that misses its records publishes noise, at full cost; a release learns only whether too many records are outside
(docs/limits.md). A release sized by our earlier output is admitted only if a declared budget of the ledger that was charged for
both covers them for every record (T-SIZE). A refusal by the budget says what would fit.
"""

import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from recordwise.errors import BudgetError, KeysError, OutsideError, ParameterError, RecordError, RecordwiseError
from recordwise.exact.arithmetic import largest_allowed
from recordwise.exact.numbers import Number, rational
from recordwise.exact.text import digits_text
from recordwise.ledger.entries import Charge, terms_before
from recordwise.ledger.ledger import Ledger
from recordwise.noise.randomness import KEY_BYTES, Secure
from recordwise.plan.arrays import numpy_of
from recordwise.plan.cost import plan_policy
from recordwise.plan.describe import query_names, table_name
from recordwise.plan.expressions import ALL_OTHER, Level, Predicate
from recordwise.plan.keys.keys import RELEASE, FromRelease, Keys, Sizes, as_sizes
from recordwise.plan.plan import FoundTotals, Plan, PlannedTable, TableTotals
from recordwise.plan.query import Query
from recordwise.plan.statistics import CountUnits, Total
from recordwise.plan.statistics.totals import Confidential
from recordwise.policy.bands import MOST_BANDS, BandTable
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series
from recordwise.release.tables import PRIVATE

# CONFIDENTIAL counts of records in the published cells of a plan, and whether too many are outside.


ACCEPT = "accept"
COUNTED = CountUnits()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Coverage(Confidential):
    """CONFIDENTIAL: a table's records, those in public cells, and empty cells.

    A record in the published rest of a coarser table is in no cell of a finer one, on purpose: it counts as
    inside.
    """

    name: str
    table: PlannedTable
    records: int
    inside: int
    in_rests: int
    """Those in an "all other" cell, of this table or of a coarser one (T-REST)."""
    cells: int
    empty: int

    @property
    def outside(self) -> int:
        return self.records - self.inside


def read_outside(given: Number | str | None) -> Fraction | None:
    """Return the share of records that may be outside; None for any."""
    if given is None or given == ACCEPT:
        return None
    share = rational(given, parameter="max_outside")
    if not 0 <= share < 1:
        raise ParameterError(
            parameter="max_outside",
            problem="must be a share of the records below 1, or 'accept'",
            advice="0.01 is one in a hundred.",
        )
    return share


def public_tables(plan: Plan) -> tuple[PlannedTable, ...]:
    """The tables whose cells are listed."""
    return tuple(table for table in plan.tables() if table.shape.groups and plan.selection(table) is None)


def covered_tables(plan: Plan) -> tuple[PlannedTable, ...]:
    """Return tables that count records by public cell, then by condition."""
    public = public_tables(plan)
    asked = [_with_count(table) if table in public else table for table in plan.tables()]
    wholes: dict[Predicate | None, PlannedTable] = {}
    for table in public:
        whole = Level((), Fraction(1))
        wholes.setdefault(
            table.condition, replace(table, level=-1 - len(wholes), shape=whole, totals=(COUNTED,), bins=(), rest=None)
        )
    return (*asked, *wholes.values())


def _with_count(table: PlannedTable) -> PlannedTable:
    return replace(table, totals=tuple(dict.fromkeys((*table.totals, COUNTED))))


Found = tuple[TableTotals | FoundTotals, ...]


def without_counts(plan: Plan, found: Found) -> Found:
    """What the plan itself asked for."""
    held = {_table_id(each.table): each for each in found}
    return tuple(replace(held[_table_id(table)], table=table) for table in plan.tables())


def coverage(plan: Plan, found: Found) -> tuple[Coverage, ...]:
    """CONFIDENTIAL: what the counts of ``covered_tables`` say."""
    records = {each.table.condition: int(_counts(each).sum()) for each in found if each.table.level < 0}
    public = {_table_id(table) for table in public_tables(plan)}
    held = {_table_id(each.table): each for each in found if _table_id(each.table) in public}
    return tuple(_coverage(plan, each, held, records[each.table.condition]) for each in held.values())


def _table_id(table: PlannedTable) -> tuple[int, int]:
    return table.query, table.level


Held = Mapping[tuple[int, int], TableTotals | FoundTotals]


def _coverage(plan: Plan, found: TableTotals | FoundTotals, published: Held, records: int) -> Coverage:
    counts, above = _counts(found), _in_coarser_rests(found, published)
    return Coverage(
        name=table_name(plan, found.table),
        table=found.table,
        records=records,
        inside=int(counts.sum()) + above,
        in_rests=_in_own_rests(found) + above,
        cells=len(counts),
        empty=int((counts == 0).sum()),
    )


def _in_own_rests(found: TableTotals | FoundTotals) -> int:
    """The records in the "all other" cells of a table."""
    if found.table.rest is None:
        return 0
    assert isinstance(found, TableTotals)
    return int(_counts(found)[numpy_of(found.cells.column(ALL_OTHER))].sum())


def _in_coarser_rests(found: TableTotals | FoundTotals, published: Held) -> int:
    """Return the number of records in the rests of coarser tables (T-REST)."""
    own = found.table
    above = [each for each in published.values() if each.table.query == own.query and each.table.shape == own.rest]
    return sum(_in_own_rests(each) + _in_coarser_rests(each, published) for each in above)


def _counts(found: TableTotals | FoundTotals) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return found.exact.reveal().totals[COUNTED]


def too_many_outside(found: tuple[Coverage, ...], share: Fraction) -> bool:
    """Whether a table misses more than the share of its records."""
    return any(each.outside > share * each.records for each in found)


def check_coverage(found: tuple[Coverage, ...], share: Fraction) -> None:
    """Refuse to publish if too many records are outside.

    The error does not say which table or by how much: that is confidential.
    """
    if too_many_outside(found, share):
        raise OutsideError(share=float(share))


# Sizes that scale noise: those of earlier releases are read, and the band of a cell is raised until the budget covers it (T-SIZE).
# Nothing here sees a record.


MOST_RAISES = 400
FROM_ELSEWHERE = (
    "noise is scaled by sizes from elsewhere, fixed before the records were read; the losses hold unconditionally"
)
WITHIN_BUDGET = (
    "noise is scaled by sizes from an earlier release of the same records; the unconditional promise is the budget, which was "
    "fixed before the first charge and covers all charges for every record"
)
WITHIN_BUDGETS = (
    "noise is scaled by sizes from an earlier release of the series; the unconditional promise is the sum of the budgets of its "
    "periods, if all of them were declared before the first charge of the series"
)
SINCE_AMENDED = (
    "noise is scaled by sizes from an earlier release of the same records; charges stay within the budget, which was amended after "
    "earlier releases, so that no total was fixed in advance"
)
NOTHING_PROMISED = (
    "noise is scaled by sizes from an earlier release that no declared budget of this ledger covers; over time, nothing is "
    "promised"
)
DECLARE = "Declare a budget that covers both releases, before the first of them."
SAME_LEDGER = (
    "Sizes from our own releases hold only under a declared budget of the ledger that was charged for both: publish on the ledger "
    "of that release, in a series if it was another period, or take sizes from a public table."
)


def with_sizes(plan: Plan) -> Plan:
    """The plan with the sizes of earlier releases read and verified, and then its best shares found.

    Raises:
        KeysError: A release cannot be read, was changed, is not private, or has no such column at these keys.
    """
    waiting = {id(keys): keys for query in plan.queries for keys in query.key_lists if _waits(keys)}
    if not waiting:
        return with_shares(plan)
    read: dict[int, Keys] = {own: _read_waiting(keys) for own, keys in waiting.items()}
    return with_shares(replace(plan, queries=tuple(_with_lists(query, read) for query in plan.queries)))


def with_shares(plan: Plan) -> Plan:
    """Return the plan with best shares where queries ask (T-FITSHARES)."""
    if all(query.best is None or query.best.found is not None for query in plan.queries):
        return plan
    from recordwise.session.shares import best_shares

    made = list(plan.queries)
    for number, query in enumerate(plan.queries):
        if query.best is not None and query.best.found is None:
            shares = best_shares(plan, number, goal=dict(query.best.goal) or None, complete=query.best.complete)
            made[number] = shares.applied(query)
    return replace(plan, queries=tuple(made))


def query_with_sizes(query: Query) -> Query:
    """Return a query with sizes of earlier releases read and verified."""
    return _with_lists(query, {id(keys): _read_waiting(keys) for keys in query.key_lists if _waits(keys)})


def _with_lists(query: Query, read: Mapping[int, Keys]) -> Query:
    return replace(query, key_lists=tuple(read.get(id(keys), keys) for keys in query.key_lists))


def _waits(keys: Keys) -> bool:
    return keys.sizes is not None and bool(keys.sizes.waiting)


def _read_waiting(keys: Keys) -> Keys:
    sizes = keys.sizes
    assert sizes is not None
    for name, given in sizes.waiting.items():
        sizes = sizes.joined(name, *_sizes_of_release(keys, given))
    return Keys(keys.domain, sizes=sizes)


def _sizes_of_release(keys: Keys, given: FromRelease) -> tuple[Any, str]:
    """Return the published column at the keys' cells, and the digest."""
    from recordwise.release.files import load_release

    release = load_release(given.release)
    if not release.private:
        raise KeysError(
            column=f"the release '{given.release}'",
            problem="is NOT PRIVATE, so its numbers may tell the totals: it cannot be a size",
            advice="Use a private release or a public table.",
        )
    wanted = set(keys.table.column_names)
    having = [each for each in release.tables if set(each.keys) <= wanted and given.column in each.data.column_names]
    fitting = [each for each in having if set(each.keys) == wanted]
    # Keys may have columns for coarser levels of their codes, by which the release need not be.
    fitting = fitting or [each for each in having if each.keys and keys.are_distinct_by(each.keys)]
    if len(fitting) != 1:
        raise KeysError(
            column=f"the release '{given.release}'",
            problem=f"has no single table by {' x '.join(sorted(wanted))} with a column '{given.column}'",
        )
    data = fitting[0].data
    return keys.match_values(data, as_sizes(given.column, data.column(given.column))), f"{RELEASE}{release.digest}"


def raise_bands(plan: Plan, ledger: Ledger) -> Plan:
    """Raise bands of release-sized cells until the budget covers the charge."""
    if ledger.budget is None or not _release_digests(plan):
        return plan
    for _ in range(MOST_RAISES):
        policy = plan_policy(plan)
        try:
            ledger.check(policy, query=query_names(plan))
        except BudgetError as refusal:
            found = _raised_at(plan, refusal.witness)
            if found is None:
                raise
            plan = found
        else:
            return plan
    return plan


def _release_digests(plan: Plan) -> list[str]:
    """The digests of the earlier releases of ours that sizes are from."""
    sources = dict.fromkeys(source for sizes in _all_sizes(plan) for source in sizes.sized_on)
    return [source.removeprefix(RELEASE) for source in sources if source.startswith(RELEASE)]


def check_release_sizes(plan: Plan, ledger: Ledger) -> None:
    """Refuse sizes from an earlier release unless a budget covers both (T-SIZE).

    A declared budget of this ledger must cover that release and what is charged now.

    Raises:
        KeysError: No budget is declared, or the ledger was not charged for the release.
    """
    problem = _budget_problem(_release_digests(plan), ledger)
    if problem is not None:
        folders = dict.fromkeys(each.release for sizes in _all_sizes(plan) for each in sizes.read.values())
        column = f"the release {' or '.join(map(repr, folders))}" if folders else "the release that sizes are from"
        raise KeysError(column=column, problem=problem, advice=DECLARE if ledger.budget is None else SAME_LEDGER)


def _budget_problem(digests: list[str], ledger: Ledger) -> str | None:
    """Return why no declared budget covers some releases, or None."""
    if not digests:
        return None
    if ledger.budget is None:
        return "cannot be the size of cells without a declared budget: what is promised over time would depend on noise"
    events = ledger.history()
    released = {event.body.get("digest"): event.body for event in events if event.kind == "released"}
    for digest in digests:
        closing = released.get(digest)
        if closing is None or closing.get("mark") != PRIVATE:
            return "was not charged to this ledger as a private release, so it cannot be the size of cells"
        charge = events[int(closing["charge"]) - 1]
        terms = terms_before(events, charge.sequence, period=charge.body.get("period"))
        if terms is None or terms.body.get("budget") is None:
            return "was charged in a period without a declared budget, so it cannot be the size of cells"
    return None


def _all_sizes(plan: Plan) -> list[Sizes]:
    lists = [keys for query in plan.queries for keys in query.key_lists]
    return [keys.sizes for keys in lists if keys.sizes is not None]


def _raised_at(plan: Plan, witness: dict[str, Any] | None) -> Plan | None:
    """Raise the witness's band by one; None where nothing can rise."""
    if witness is None:
        return None
    changes: dict[str, BandTable] = {}
    for digest, table in _tables(plan).items():
        # The policy of a table with one band only does not look at the columns of its cells.
        band = table.band_of(_canonical(witness, table)) if len(table.edges) > 1 else 0
        if band + 1 < MOST_BANDS:
            changes[digest] = _one_up(table, band)
    if not changes:
        return None
    queries = []
    for query in plan.queries:
        lists = tuple(_with_bands(keys, changes) for keys in query.key_lists)
        queries.append(replace(query, key_lists=lists))
    return replace(plan, queries=tuple(queries))


def _tables(plan: Plan) -> dict[str, BandTable]:
    """Return all statistics' band tables, including those with one band."""
    return {part.bands.digest: part.bands for part in plan.parts() if part.bands is not None}


def _canonical(witness: dict[str, Any], table: BandTable) -> dict[str, Any]:
    from recordwise.policy.evaluate.tables import cell_of

    return {column.name: cell_of(witness, column.name) for column in table.columns}


def _one_up(table: BandTable, band: int) -> BandTable:
    """Move the cells of a band to the next one.

    The lowest band is also that of cells that are not listed: its edge is raised.
    """
    if band == 0:
        higher = table.edges[1:] or (table.edges[0] * 2,)
        return BandTable(table.columns, higher, table.values, table.places, np.maximum(table.bands - 1, 0), table.level)
    edges = table.edges if band + 1 < len(table.edges) else (*table.edges, table.edges[-1] * 2)
    bands = np.where(table.bands == band, band + 1, table.bands)
    return BandTable(table.columns, edges, table.values, table.places, bands, table.level)


def _with_bands(keys: Keys, changes: dict[str, BandTable]) -> Keys:
    if keys.sizes is None:
        return keys
    # A table that was raised before is raised further; the one it replaces is that of the sizes.
    raised = {first: changes.get(now.digest, now) for first, now in keys.sizes.raised.items()}
    known = {now.digest for now in keys.sizes.raised.values()}
    raised |= {digest: table for digest, table in changes.items() if digest not in known}
    return Keys(keys.domain, sizes=replace(keys.sizes, raised=raised))


def size_sources(plan: Plan) -> dict[str, str]:
    """Return the sources of cell sizes, each with the sizes' digest."""
    return {", ".join(sizes.sized_on): sizes.digest() for sizes in _all_sizes(plan)} if _tables(plan) else {}


def promise(plan: Plan, ledger: Ledger) -> str:
    """Return a sized release's promise over time; empty without sized noise."""
    if not _all_sizes(plan) or not _tables(plan):
        return ""
    if not _release_digests(plan):
        return FROM_ELSEWHERE
    within = WITHIN_BUDGET if ledger.series is None else WITHIN_BUDGETS
    if ledger.amendments():
        within = SINCE_AMENDED
    return within if _budget_problem(_release_digests(plan), ledger) is None else NOTHING_PROMISED


# What would fit where the budget refuses a plan. Only the plan and the ledger are looked at, both of which are public.


LEAST_SHARES, HALVINGS = (Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2)), 12
WAYS_SECONDS = 20.0
"""Processor time after which no further way out is searched for."""
SHORT = Context(prec=2)


def explain_refusal(refusal: BudgetError, plan: Plan, ledger: Ledger) -> BudgetError:
    """Return a refusal that says what needs most, and what would fit as lines to paste."""
    if refusal.witness is None:
        return _without_pure(refusal, plan, ledger) or _unproved(refusal, ledger)
    ways = ("What would fit, each alone:", *_ways(plan, ledger, refusal))
    return _explained(refusal, most=needs_most(plan, refusal), ways=ways)


def _explained(refusal: BudgetError, *, most: str, ways: tuple[str, ...]) -> BudgetError:
    """Return the same refusal with what needs most and what would fit."""
    return BudgetError(
        query=refusal.query,
        witness=refusal.witness,
        needed=refusal.needed,
        left=refusal.left,
        reason=refusal.reason,
        record=refusal.record,
        most=most,
        ways=ways,
    )


def _unproved(refusal: BudgetError, ledger: Ledger) -> BudgetError:
    """Return a refusal without a record, with what the ledger says about it."""
    most = "The budget was charged before, for this release or another." if _is_charged(ledger) else ""
    ways = ("What may fit:", "- more noise, or fewer statistics", _larger_budget(ledger))
    return _explained(refusal, most=most, ways=ways)


def _without_pure(refusal: BudgetError, plan: Plan, ledger: Ledger) -> BudgetError | None:
    """Return the refusal of a plan without a pure epsilon, with Laplace noise of the same standard errors to paste.

    None where that is not why it was refused.
    """
    others = {each.alias: each.statistic for each in plan.parts() if each.record_policy().pure_problem() is not None}
    if ledger.budget is None or not ledger.budget.is_pure or not others:
        return None
    lines = [
        f'- {name}: {{ kind = "GeneralizedGaussian", shape = 1, scale = {digits_text(float(sigma) / 2**0.5, 3)} }}'
        for name, each in others.items()
        if each is not None and each.mechanism.to is None and (sigma := each.mechanism.noise_sigma) is not None
    ]
    return _explained(
        refusal,
        most=f"Without a pure epsilon: {', '.join(others)}.",
        ways=(
            "State the budget in rho, or use noise with a pure epsilon: Laplace noise, or transforms with laplace_scale.",
            *(["Laplace noise with the same standard errors:"] if lines else []),
            *lines,
        ),
    )


def needs_most(plan: Plan, refusal: BudgetError) -> str:
    """Name the statistic and the table that need most for the record of a refusal."""
    costs = {(table_name(plan, each.table), each.alias): _loss(each.record_policy(), refusal) for each in plan.parts()}
    if len(costs) < 2:
        return ""
    (table, alias), most = max(costs.items(), key=lambda each: each[1])
    return f"Most of it is {alias} in table {table}, {digits_text(most, 3)}."


def _loss(policy: Policy, refusal: BudgetError) -> float:
    record: dict[str, Any] = dict(refusal.witness or {})
    try:
        return float(policy.delta(record) if refusal.reason == "delta" else policy.loss(record))
    except RecordError:
        return float("inf")


def _ways(plan: Plan, ledger: Ledger, refusal: BudgetError) -> Iterator[str]:
    """Yield lines: more noise, fewer statistics, a larger budget."""
    until = time.thread_time() + WAYS_SECONDS

    def covered(changed: Plan, *, reserve: int = ledger.reserve) -> bool:
        if time.thread_time() > until:
            return False
        try:
            ledger.check(plan_policy(changed), query=refusal.query, reserve=reserve)
        except RecordwiseError:
            return False
        return True

    if ledger.reserve and covered(plan, reserve=0):
        yield "- the plan without a reserve: reserve = { revisions = 0 }"
    yield from _more_noise(plan, covered)
    yield from _fewer_statistics(plan, covered, refusal)
    yield _larger_budget(ledger)


def _larger_budget(ledger: Ledger) -> str:
    if _is_charged(ledger):
        return "- a larger budget, which the page then says: recordwise ledger amend PLAN --reason TEXT"
    return "- a larger [[budget]] in the plan: nothing was charged to it yet"


def _is_charged(ledger: Ledger) -> bool:
    """Return whether the budget in force was charged: in a series each period has its own."""
    return any(event.kind == "charged" and event.body.get("period") == ledger.period for event in ledger.history())


def _more_noise(plan: Plan, covered: Callable[[Plan], bool]) -> Iterator[str]:
    """Yield the statistics with the least additional noise that fits."""
    from recordwise.plan.file.write import statistic_lines

    def at(share: Fraction) -> Plan:
        return replace(plan, queries=tuple(_at_share(query, share) for query in plan.queries))

    def fits(share: Fraction) -> bool:
        try:
            return covered(at(share))
        except (RecordwiseError, ArithmeticError):
            return False

    # Fat-tailed noise changes its shape with its share, and may have no law at a small one.
    least = next(filter(fits, LEAST_SHARES), None)
    if least is None:
        return
    share = largest_allowed(fits, least, Fraction(1), rounded=_two_digits, rounds=HALVINGS)
    factor = digits_text(float(share) ** -0.5, 3)
    yield f"- all noise {factor} times as large, at {digits_text(float(share), 2)} of the loss that the plan asks for:"
    for number, query in enumerate(at(share).queries, 1):
        yield f"    # query {query.name or number}"
        yield from (f"    {line}" for line in statistic_lines(query))


def _two_digits(value: float) -> Fraction:
    return Fraction(SHORT.create_decimal(Decimal(value)))


def _at_share(query: Query, share: Fraction) -> Query:
    """Return a query whose statistics have a share of their loss."""
    drawn = query.draws()
    made = tuple(each.with_mechanisms(lambda own: own.mechanism.at_share(share), drawn) for each in query.statistics)
    return replace(query, statistics=made)


def _fewer_statistics(plan: Plan, covered: Callable[[Plan], bool], refusal: BudgetError) -> Iterator[str]:
    """Yield the cheapest query, or else statistic, without which the rest fits."""
    for dropped, rest in sorted(_without_one(plan), key=lambda each: -_loss(plan_policy(each[1]), refusal)):
        if covered(rest):
            yield f"- the plan without {dropped}"
            return


def _without_one(plan: Plan) -> Iterator[tuple[str, Plan]]:
    queries = plan.queries
    if len(queries) > 1:
        for number, query in enumerate(queries):
            named = f"query {query.name or number + 1}"
            yield named, replace(plan, queries=(*queries[:number], *queries[number + 1 :]))
        return
    for number, each in enumerate(queries[0].statistics):
        rest = replace(queries[0], statistics=(*queries[0].statistics[:number], *queries[0].statistics[number + 1 :]))
        if rest.statistics and not any(one.missing(rest.draws(), plan.schema) for one in rest.statistics):
            yield each.alias, replace(plan, queries=(rest,))


# The totals that a release was made from, as keyed digests in a file of its owner (MATH3 section 4). Neither the key nor the
# digests are in the ledger, which is public, and the totals themselves are stored nowhere.


OWN_PLAN = "Publish it by a plan of its own."
TOTALS_SUFFIX = ".totals"


def stage_refusal(problem: str, advice: str = OWN_PLAN, kind: str = "refine") -> ParameterError:
    """Return an error that refuses a release made with another one."""
    return ParameterError(parameter=kind, problem=problem, advice=f"Nothing was spent. {advice}")


def totals_file(ledger: Ledger) -> Path:
    """Return the owner's file of keyed digests, next to a ledger."""
    return Path(f"{ledger.real_path}{TOTALS_SUFFIX}")


def note_totals(ledger: Ledger, charge: Charge, described: Any, found: Iterable[TableTotals | FoundTotals]) -> None:
    """Note keyed digests of the totals of a charge.

    A disk that refuses them does not stop the release, which then cannot be refined; nor does a ledger in memory.
    """
    if not ledger.on_disk:
        return
    words = np.empty(KEY_BYTES // 8, np.uint64)
    Secure().fill(words)
    key = words.tobytes()
    noted = {"charge": charge.sequence, "head": charge.head.digest, "key": key.hex()}
    line = json.dumps(noted | {"totals": _digests(key, ledger.series, described, found)}) + "\n"
    with suppress(OSError):
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(totals_file(ledger), flags, 0o600)
        try:
            # One that was there before may have been readable by others.
            os.fchmod(handle, 0o600)
            os.write(handle, line.encode())
        finally:
            os.close(handle)


def check_totals(
    ledger: Ledger,
    charge: Charge,
    described: Any,
    found: Iterable[TableTotals | FoundTotals],
    *,
    series: Series | None = None,
    kind: str = "refine",
) -> None:
    """Refuse totals other than those that a charge was drawn from.

    Told to the owner alone, before anything is charged or written. ``series`` is that of the charge, if not the ledger's.
    """
    noted = _noted(totals_file(ledger), charge)
    if noted is None:
        raise stage_refusal(
            f"has no digest of its totals in {totals_file(ledger).name}, so that nobody can tell whether records are the same",
            "Releases of earlier versions, and ledgers copied without that file, cannot be refined or followed.",
            kind,
        )
    own = _digests(bytes.fromhex(noted["key"]), series or ledger.series, described, found)
    different = [name for name, digest in own.items() if not hmac.compare_digest(noted["totals"].get(name, ""), digest)]
    if different:
        raise stage_refusal(
            "was made from other records: answers made of both would be biased",
            "Refine it on the records it was made from, or publish a revision."
            if kind == "refine"
            else "Give the old records as they were when that release was made.",
            kind,
        )


def _noted(path: Path, charge: Charge) -> dict[str, Any] | None:
    """Return the latest digests of a charge, or None."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            noted = json.loads(line)
            if (noted["charge"], noted["head"]) == (charge.sequence, charge.head.digest):
                # Raises where it is not what was noted.
                bytes.fromhex(noted["key"])
                return {"key": noted["key"], "totals": {str(name): str(each) for name, each in noted["totals"].items()}}
    return None


def _digests(
    key: bytes, series: Series | None, described: Any, found: Iterable[TableTotals | FoundTotals]
) -> dict[str, str]:
    """Return one keyed digest of all totals of each query with public keys, under a digest of what they are.

    All totals of a query together: next to its key, the digest of a few numbers could be found again by trying them.
    """
    period = None if series is None else [series.name, series.period, series.revision]
    texts: dict[int, list[tuple[bytes, bytes]]] = {}
    for each in found:
        if isinstance(each, FoundTotals):
            continue
        query = described[each.table.query]
        form = query["tables"][each.table.level]
        held = each.exact.reveal().totals
        # What only coverage is checked with is no total of the plan.
        for total, values in ((total, held[total]) for total in each.table.totals):
            about = [period, query["where"], form["by"], form.get("rest"), _total_name(total)]
            name = json.dumps(about, sort_keys=True, default=str).encode()
            texts.setdefault(each.table.query, []).append((name, _bytes(values)))
    made = {}
    for several in texts.values():
        several.sort()
        public = hashlib.sha256(b"\n".join(name for name, _ in several)).hexdigest()
        # The length in front of each part: no other parts give the same bytes.
        parts = [part for pair in several for part in pair]
        whole = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
        made[public] = hmac.new(key, whole, hashlib.sha256).hexdigest()
    return made


def _total_name(total: Total) -> list[Any]:
    return [type(total).__name__, asdict(total)]


def _bytes(values: Any) -> bytes:
    """Return whole numbers as bytes, the same whatever their type."""
    numbers = np.asarray(values)
    if numbers.dtype == object and any(abs(int(each)) >= 2**63 for each in numbers):
        return ",".join(str(int(each)) for each in numbers).encode()
    return numbers.astype("<i8").tobytes()
