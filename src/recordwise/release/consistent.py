"""Make the tables of a release nonnegative and additive.

This also gives the best unbiased linear estimate of every cell. The noisy answers stay; fitted columns are added next to them.
How the tables of a query nest is read from the release's own description (``nesting.py``), so this also works on saved files. It is
post-processing: no record is read, no budget is spent, and the ledger gets no entry.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.statistics.base import SUM
from recordwise.policy.meaning import check_share
from recordwise.postprocess.least_squares import CONFIDENCE, nnls, ols, reweighted_fit
from recordwise.postprocess.maxfit import SLACK, max_fit
from recordwise.postprocess.measured import Fit
from recordwise.postprocess.sequential import sequential_fit
from recordwise.postprocess.top_down import Forest, Grid, top_down
from recordwise.postprocess.workload import Workload
from recordwise.progress import reported, tracked
from recordwise.release.nesting import Nesting, Rules, chain_to, joint_queries, nesting_of, read_rules
from recordwise.release.published import PublishedStatistic
from recordwise.release.release import Release
from recordwise.release.spread import (
    BOOTSTRAP,
    MOVED,
    RAW,
    REFITS,
    AnswerNoise,
    FittedColumn,
    FixedNoise,
    JoinedNoise,
    adds_up,
    best_fit,
    chunks,
    draws_for,
    linear,
    noise_of,
    public_seed,
)
from recordwise.release.tables import (
    BEST,
    FITTED,
    ClassBias,
    FitNote,
    ReleasedTable,
    VariableFit,
    digest_of,
    with_flags,
    without_fits,
)

# What release.json and the files say about fitted columns: what each is, where its intervals come from, which are
# biased.


BIASED = "biased: fitted to be nonnegative, which raises small cells; NAME is unbiased, and so is NAME_best"
CUT = "that of NAME_best, cut at 0 and widened to hold NAME_fit"
WIDENED = "that of NAME_best, widened to hold NAME_fit"
NEARLY = "nearly unbiased: the weights of the fit depend on the fitted totals"
UNCHANGED = (
    "The public keys are not declared complete and no rest is published, so coarser cells may contain records of no finer cell: "
    "the best linear estimate of every cell is its own noisy answer."
)
MEASURED_MOVED = (
    "when measured, such intervals held in 94 to 99 of 100 cells of every size at .95 (docs/consistent.md); where the relative "
    "error is above a half the interval is that of NAME itself, made to contain NAME_best"
)


def flags_of(name: str, *, biased: bool, best: FittedColumn) -> dict[str, str]:
    """The fitted columns of a variable that are not unbiased, and why."""
    found = {name + FITTED: BIASED.replace("NAME", name)} if biased else {}
    return found | ({name + BEST: NEARLY} if best.how in (BOOTSTRAP, MOVED) else {})


def _how(column: FittedColumn) -> dict[str, Any]:
    found: dict[str, Any] = {"intervals": column.how}
    found |= {"draws": column.draws} if column.draws else {}
    return found | ({"accuracy": MEASURED_MOVED} if column.how == MOVED else {})


def columns_json(method: str, *, drawn: bool) -> dict[str, str]:
    """A description of every kind of column that is added."""
    kind = (
        "fitted by least squares" if method == "ols" else f"fitted to be nonnegative ({method}), biased in small cells"
    )
    return {
        f"NAME{FITTED}": f"the value of NAME {kind}; finer cells add up to coarser ones",
        **({f"NAME{FITTED}_sd": f"the root mean squared error of NAME{FITTED}, by draws"} if drawn else {}),
        f"NAME{FITTED}_low": "the lower end of its interval",
        f"NAME{FITTED}_high": "the upper end of its interval",
        f"NAME{BEST}": "the best linear unbiased estimate from all tables of the query; it may be negative",
        f"NAME{BEST}_sd": "its standard error",
        f"NAME{BEST}_low": "the lower end of its interval",
        f"NAME{BEST}_high": "the upper end of its interval",
    }


# The fit.


LEAST_SD = 1e-9
"""Standard errors below this part of the largest count as this."""

METHODS: dict[str, Callable[..., Fit]] = {
    "ols": ols,
    "nnls": nnls,
    "max_fit": max_fit,
    "sequential": sequential_fit,
    "reweighted": reweighted_fit,
}
TOP_DOWN = "top_down"
"""The method that hands the best linear estimate down, and the default."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """What all fits of a call share."""

    method: str
    order: list[str]
    zero_counts: bool
    rules: Rules
    confidence: float
    draws: int | None
    digest: str
    count: Iterator[str]
    """How many of all fits are begun: "3 of 9"."""
    gamma: float = CONFIDENCE
    slack: float = SLACK

    def __post_init__(self) -> None:
        check_share(self.gamma, "gamma")

    def options(self, noises: Sequence[AnswerNoise]) -> dict[str, Any]:
        """Return what the method takes besides answers and variances."""
        own = {"reweighted": {"confidence": self.gamma}, "max_fit": {"slack": self.slack}}.get(self.method, {})
        return {"noise": "laplace" if all(is_laplace(noise) for noise in noises) else "gaussian", **own}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedVariable:
    """One variable: its best linear estimate and its fit."""

    name: str
    best: FittedColumn
    fit: FittedColumn
    biased: bool
    reached: Fit
    """The solution of the method, whose residuals tell a reader whether it converged."""
    left: tuple[ClassBias, ...] = ()
    """What nonnegativity leaves in cells of each size class."""

    def note(self) -> VariableFit:
        """What release.json says about it."""
        return VariableFit(
            kkt=float(np.max(self.reached.kkt)),
            primal=float(np.max(self.reached.primal)),
            converged=bool(np.all(self.reached.converged)),
            fit=_how(self.fit),
            best=_how(self.best),
            note=UNCHANGED if self.best.how == RAW else "",
            left=self.left,
        )


@reported
def consistent(
    release: Release,
    *,
    method: str = TOP_DOWN,
    priority: Sequence[str] | None = None,
    complete: bool = False,
    zero_counts: bool = False,
    at_most: Mapping[str, str] | None = None,
    draws: int | None = None,
    gamma: float = CONFIDENCE,
    slack: float = SLACK,
) -> Release:
    """Add ``NAME_fit`` and ``NAME_best`` columns; see ``Release.consistent``."""
    release = _without_fits(release)
    plan, below = release.published.queries, dict(at_most or {})
    check_method(release, method, priority)
    if method == "ols" and at_most:
        raise ParameterError(parameter="at_most", problem="cannot be enforced by ols", advice="Use top_down.")
    columns: dict[str, dict[str, FloatArray]] = {table.name: {} for table in release.tables}
    flags: dict[str, dict[str, str]] = {table.name: {} for table in release.tables}
    fits: dict[str, FittedVariable] = {}
    rules = read_rules(below, plan)
    queries = joint_queries(plan, at_most=below, zero_counts=zero_counts)
    several = sum(sum(each.rules.fitted for each in query.statistics) for query in queries)
    count = (f"{number} of {several}" for number in range(1, several + 1))
    for query in tracked(queries, "reading how tables nest"):
        nesting = nesting_of(release, query, complete=complete)
        setting = Setting(
            method=method,
            order=order_of(nesting, priority),
            zero_counts=zero_counts,
            rules=rules[query.numbers[0] - 1],
            confidence=release.published.confidence,
            draws=draws,
            digest=f"{release.digest}:q{query.numbers[0]}",
            count=count,
            gamma=gamma,
            slack=slack,
        )
        for found in _fits(nesting, setting):
            statistic = next(each for each in nesting.statistics if each.name == found.name)
            fits |= {f"q{number}:{name}": found for number, name in zip(query.numbers, statistic.names)}
            for table, own in _names_by_table(nesting, statistic):
                flags[table] |= flags_of(own, biased=found.biased, best=found.best)
            for end, column in ((FITTED, found.fit), (BEST, found.best)):
                for name, values in _named_columns(end, column):
                    for (table, own), part in zip(_names_by_table(nesting, statistic), nesting.by_table(values)):
                        columns[table][own + name] = part
    tables = tuple(_with_columns(table, columns[table.name], flags[table.name]) for table in release.tables)
    note = FitNote(
        method=method,
        complete=complete,
        zero_counts=zero_counts,
        at_most=below,
        together=tuple(tuple(table.name for table in query.tables) for query in queries if len(query.numbers) > 1),
        fits={name: found.note() for name, found in fits.items()},
        columns=columns_json(method, drawn=method == "ols" or draws is not None),
        options={"reweighted": {"gamma": gamma}, "max_fit": {"slack": slack}}.get(method, {}),
        # The ledger records what was drawn; this digest shows whether the fitted columns are still those of the fit.
        digest=digest_of({table.name: table.data for table in tables}, release.policy),
    )
    return replace(release, tables=tables, published=release.published.with_fit(note))


def _names_by_table(nesting: Nesting, statistic: PublishedStatistic) -> Iterator[tuple[str, str]]:
    """Each table, and the name under which it publishes a statistic."""
    yield from ((table.name, statistic.in_table(table.name).name) for table in nesting.tables)


def _named_columns(name: str, column: FittedColumn) -> Iterator[tuple[str, FloatArray]]:
    yield name, column.value
    # The error of a nonnegative column is known by draws only, which are made on request.
    for end in ("low", "high") if column.how in (CUT, WIDENED) and not column.draws else ("sd", "low", "high"):
        yield f"{name}_{end}", getattr(column, end)


def _without_fits(release: Release) -> Release:
    """Return the release without an earlier fit or basic tables."""
    if release.published.fit is None:
        return release
    added = release.published.added
    tables = tuple(replace(table, data=without_fits(table.data, added)) for table in release.tables)
    return replace(release, tables=tables, basic_tables=(), published=release.published.as_drawn())


def check_method(release: Release, method: str, priority: Sequence[str] | None) -> None:
    """Refuse a method or an order that fits no query."""
    known = (TOP_DOWN, *METHODS)
    if method not in known:
        raise ParameterError(parameter="method", problem=f"must be one of {', '.join(known)}, not {method!r}")
    if any(query.external for query in release.published.queries):
        raise ParameterError(
            parameter="release", problem="comes from an external mechanism, so its tables have no known cells to fit"
        )
    names = [table.name for table in release.tables]
    if priority is not None and sorted(priority) != sorted(names):
        raise ParameterError(parameter="priority", problem=f"must order exactly these tables: {', '.join(names)}")


def order_of(nesting: Nesting, priority: Sequence[str] | None) -> list[str]:
    """Return the groups by priority, by default the coarsest first."""
    names = [table.name for table in reversed(nesting.tables)]
    return names if priority is None else [name for name in priority if name in names]


def _fits(nesting: Nesting, setting: Setting) -> list[FittedVariable]:
    """Fit each count and sum.

    With ``zero_counts`` sums are 0 where the fitted count is. Sums of a measure that may be negative are fitted
    by least squares, whatever the method: nothing else here is for them.
    """
    rules = setting.rules
    wanted = [s for s in nesting.statistics if s.rules.fitted]
    counts = {s.name for s in wanted if s.rules.counts_records}
    if setting.zero_counts and counts & (set(rules) | set(rules.values())):
        raise ParameterError(
            parameter="at_most", problem="names a count, which zero_counts fits before all other variables"
        )
    kept = np.ones(nesting.rows.shape[1], dtype=bool)
    found: list[FittedVariable] = []
    ordered = sorted((s for s in wanted if s.name not in rules), key=lambda s: s.rules.contribution == SUM)
    for statistic in tracked(ordered, lambda s: f"fitting {next(setting.count)}: {s.name}"):
        chain = chain_to(statistic, wanted, rules)
        signed = [s.name for s in chain if s.of in nesting.signed]
        if signed and len(chain) > 1:
            raise ParameterError(
                parameter="at_most", problem=f"names '{signed[0]}', which may be negative and is fitted without rules"
            )
        found += _solve(nesting, chain, replace(setting, method="ols") if signed else setting, kept)
        if setting.zero_counts and statistic.rules.counts_records:
            rests = np.ones(nesting.rows.shape[1] - nesting.finest_count, dtype=bool)
            kept = np.concatenate([found[-1].fit.value[: nesting.finest_count] > 0, rests])
    return found


def _solve(
    nesting: Nesting, statistics: list[PublishedStatistic], setting: Setting, free: Any
) -> Iterator[FittedVariable]:
    """Fit one variable, or several of which each includes the previous."""
    noises = [noise_of(nesting, statistic) for statistic in statistics]
    best = [_best(nesting, s, noise, setting) for s, noise in zip(statistics, noises)]
    if not np.any(free):
        yield from (_nothing(s, each, setting) for s, each in zip(statistics, best))
        return
    solved = solution_of(nesting, statistics, setting, free, noises, best)
    problem, variances, fitted = solved.problem, solved.variances, solved.totals
    left: list[tuple[ClassBias, ...]] = [()] * len(statistics)
    if setting.method == "ols" and np.all(free):
        # The same estimate: ends that are 0 or on a lattice stay there, which a difference and a sum would not ensure.
        columns = [replace(each, value=value) for each, value in zip(best, fitted)]
    else:
        columns = [_around(each, value, cut=setting.method != "ols") for each, value in zip(best, fitted)]
        again = _Again(problem, nesting, noises, variances)
        if setting.draws is not None:
            columns = [replace(c, sd=sd, draws=setting.draws) for c, sd in zip(columns, again.errors(fitted))]
        if setting.method != "ols":
            left = again.bias(fitted, [each.sd for each in best])
    for statistic, estimate, column, own in zip(statistics, best, columns, left):
        yield FittedVariable(
            name=statistic.name,
            best=estimate,
            fit=column,
            biased=setting.method != "ols",
            reached=solved.fit,
            left=own,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """One variable, or several nested ones, fitted cell by cell."""

    problem: "Problem"
    variances: FloatArray
    fit: Fit
    totals: list[FloatArray]
    """The fitted answers of each variable; 0 without a cell."""


def solution_of(
    nesting: Nesting,
    statistics: list[PublishedStatistic],
    setting: Setting,
    free: Any,
    noises: list[AnswerNoise],
    best: list[FittedColumn] | None = None,
) -> Solution:
    """Fit variables by the method of the setting; the best linear estimates are made where it needs them."""
    handed = setting.method == TOP_DOWN
    if best is None:
        pairs = list(zip(statistics, noises))
        best = [_best(nesting, s, noise, setting) if handed else _raw(nesting, s) for s, noise in pairs]
    problem = Problem.of(nesting, statistics, setting, free, noises, best)
    raw = np.concatenate([nesting.column(s, "")[problem.answered] for s in statistics])
    totals: list[FloatArray | None] = [None] * len(statistics)
    for _ in range(REFITS + 1 if any(noise.varies for noise in noises) and not handed else 1):
        variances = np.concatenate([noise.variance(total)[problem.answered] for noise, total in zip(noises, totals)])
        fit = problem.fit(problem.best if handed else raw, variances)
        parts = np.split(problem.workload.answer(fit.x), len(statistics))
        totals = [_scatter(part, problem.answered) for part in parts]
    fitted = [np.zeros(len(problem.answered)) if total is None else total for total in totals]
    return Solution(problem=problem, variances=variances, fit=fit, totals=fitted)


def _raw(nesting: Nesting, statistic: PublishedStatistic) -> FittedColumn:
    """Return the noisy answers as they are, for methods that fit these."""
    value, sd, low, high = (nesting.column(statistic, end) for end in ("", "_sd", "_low", "_high"))
    return FittedColumn(value=value, sd=sd, low=low, high=high, how=RAW)


def is_laplace(noise: AnswerNoise) -> bool:
    """Return whether all answers have Laplace noise."""
    if isinstance(noise, FixedNoise):
        return noise.laplace
    return isinstance(noise, JoinedNoise) and all(is_laplace(part) for _, part in noise.parts)


def _nothing(statistic: PublishedStatistic, best: FittedColumn, setting: Setting) -> FittedVariable:
    """Return a variable that is 0 everywhere, because every count is."""
    zeros, biased = np.zeros(len(best.value)), setting.method != "ols"
    reached = Fit(x=zeros[:0], fitted=zeros, kkt=zeros[:1], primal=zeros[:1], iterations=np.zeros(1, dtype=np.int64))
    column = _around(best, zeros, cut=biased)
    return FittedVariable(name=statistic.name, best=best, fit=column, biased=biased, reached=reached)


def _around(best: FittedColumn, value: FloatArray, *, cut: bool) -> FittedColumn:
    """Return a fitted column with the linear estimate's intervals (T-CUT).

    They are cut at 0, which no total of an unsigned measure is below, and widened to hold the fitted value.
    """
    least = 0.0 if cut else -np.inf
    return FittedColumn(
        value=value,
        sd=np.full(len(value), np.nan),
        low=np.minimum(np.fmax(best.low, least), value),
        high=np.maximum(np.maximum(best.high, least), value),
        how=CUT if cut else WIDENED,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """What a method fits: answers over cells, and their unbiased estimates."""

    workload: Workload
    answered: Any
    """The answers that have a free cell."""
    shape: Forest | Grid | None
    setting: Setting
    statistics: list[PublishedStatistic]
    noises: list[AnswerNoise]
    best: FloatArray
    sd: FloatArray

    @classmethod
    def of(
        cls,
        nesting: Nesting,
        statistics: list[PublishedStatistic],
        setting: Setting,
        free: Any,
        noises: list[AnswerNoise],
        best: list[FittedColumn],
    ) -> "Problem":
        """Return the joint problem of variables of which each includes the previous."""
        full, shape = len(statistics) == 1 and bool(np.all(free)), None
        if full and setting.method != "sequential":
            workload, answered = nesting.workload, np.diff(nesting.rows.indptr) > 0
        else:
            used = sparse.csr_array(nesting.rows[:, np.flatnonzero(free)])
            answered = np.diff(used.indptr) > 0
            included = np.tril(np.ones((len(statistics), len(statistics))))
            block = sparse.csr_array(sparse.kron(included, used[answered], format="csr"))
            workload = Workload.matrix(block, _group_sizes(nesting, answered, statistics))
        if setting.method == TOP_DOWN and len(statistics) == 1:
            shape = nesting.descent if full else Forest.of(block)
        spread = np.concatenate([each.sd[answered] for each in best])
        least = np.finfo(np.float64).tiny if not np.any(spread > 0) else float(np.nanmax(spread)) * LEAST_SD
        return cls(
            workload=workload,
            answered=answered,
            shape=shape,
            setting=setting,
            statistics=statistics,
            noises=noises,
            best=np.concatenate([each.value[answered] for each in best]),
            sd=np.fmax(spread, least),
        )

    def fit(self, answers: FloatArray, variances: FloatArray) -> Fit:
        """Return the fit by the chosen method; ``top_down`` takes estimates for answers."""
        if self.setting.method == TOP_DOWN:
            return top_down(self.workload, answers, self.sd, shape=self.shape)
        options = self.setting.options(self.noises)
        if self.setting.method == "sequential":
            groups = [f"{statistic.name}:{table}" for table in self.setting.order for statistic in self.statistics]
            present = {group.name for group in self.workload.groups}
            options |= {"priority": [group for group in groups if group in present]}
        return METHODS[self.setting.method](self.workload, answers, variances, **options)


SIZES = (0.0, 1.0, 3.0, 10.0)
"""The largest sizes of the classes of cells whose bias is estimated, in standard errors; a last class has all larger ones."""
ENOUGH_CELLS = 3_000
MOST_REFITS = 5
"""Noise is drawn again until it was drawn for this many cells, at least once and at most this often."""


@dataclass(frozen=True, slots=True, eq=False)
class _Again:
    """Errors of a fit, from noise redrawn around the fitted values."""

    problem: Problem
    nesting: Nesting
    noises: list[AnswerNoise]
    variances: FloatArray

    def errors(self, fitted: list[FloatArray]) -> list[FloatArray]:
        """Return each answer's root mean squared error; NaN without a cell."""
        draws = self.problem.setting.draws
        assert draws is not None
        start = np.concatenate([total[self.problem.answered] for total in fitted])
        squares = np.zeros(len(start))
        for refitted, _ in self._refits(fitted, draws, "fit"):
            squares += np.sum((refitted - start) ** 2, axis=0)
        parts = np.split(np.sqrt(squares / draws), len(fitted))
        return [_scatter(part, self.problem.answered, np.nan) for part in parts]

    def bias(self, fitted: list[FloatArray], sds: list[FloatArray]) -> list[tuple[ClassBias, ...]]:
        """Return the average error by size class of each variable.

        The best linear estimate is unbiased around the values from which noise is drawn, so that the mean difference from it is the
        bias, almost without noise of its own.
        """
        answered = self.problem.answered
        count = int(np.sum(answered)) * len(fitted)
        draws = min(MOST_REFITS, max(1, -(-ENOUGH_CELLS // max(count, 1))))
        moved = np.zeros(count)
        for refitted, best in self._refits(fitted, draws, "bias"):
            moved += np.sum(refitted - best, axis=0)
        found = []
        for part, total, sd in zip(np.split(moved / draws, len(fitted)), fitted, sds):
            known = sd[answered] > 0
            spread = sd[answered][known]
            number = np.searchsorted(SIZES, total[answered][known] / spread, side="left")
            cells = np.bincount(number, minlength=len(SIZES) + 1)
            sums = np.bincount(number, part[known] / spread, minlength=len(SIZES) + 1)
            found.append(
                tuple(
                    ClassBias(up_to=up_to, cells=int(n), bias=float(total_error / n))
                    for up_to, n, total_error in zip((*SIZES, None), cells, sums)
                    if n
                )
            )
        return found

    def _refits(self, fitted: list[FloatArray], draws: int, seed: str) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield answers fitted to new noise and their best linear estimates, some draws at a time."""
        problem = self.problem
        sources = [public_seed(problem.setting.digest, each.name, seed) for each in problem.statistics]
        count = sum(map(len, fitted))
        for some in tracked(list(chunks(draws, count)), "fitting noise drawn again"):
            drawn = [total + n.errors(total, some, source) for n, total, source in zip(self.noises, fitted, sources)]
            best = self._joined(self._linear(drawn, fitted))
            answers = best if problem.setting.method == TOP_DOWN else self._joined(drawn)
            yield problem.workload.answer(problem.fit(answers, self.variances).x), best

    def _joined(self, parts: list[FloatArray]) -> FloatArray:
        return np.concatenate([each[:, self.problem.answered] for each in parts], axis=1)

    def _linear(self, drawn: list[FloatArray], fitted: list[FloatArray]) -> list[FloatArray]:
        """Return the best linear estimates of draws."""
        if self.nesting.undetermined:
            return drawn
        pairs = zip(self.problem.statistics, self.noises, drawn, fitted)
        return [
            linear(self.nesting, noise.variance(total if noise.varies else None)).fit(each)
            if adds_up(self.nesting, statistic)
            else each
            for statistic, noise, each, total in pairs
        ]


def _best(nesting: Nesting, statistic: PublishedStatistic, noise: AnswerNoise, setting: Setting) -> FittedColumn:
    return best_fit(
        nesting,
        statistic,
        noise,
        confidence=setting.confidence,
        draws=draws_for(len(nesting.rows.indptr) if nesting.tree is None else 0, setting.confidence, setting.draws),
        source=public_seed(setting.digest, statistic.name, "best"),
    )


def _group_sizes(nesting: Nesting, answered: Any, statistics: list[PublishedStatistic]) -> dict[str, int]:
    ends = np.cumsum([0, *nesting.sizes.values()])
    sizes = {name: int(answered[start:stop].sum()) for name, start, stop in zip(nesting.sizes, ends, ends[1:])}
    return {f"{s.name}:{name}": size for s in statistics for name, size in sizes.items() if size}


def _scatter(part: FloatArray, answered: Any, absent: float = 0.0) -> FloatArray:
    full = np.full(len(answered), absent)
    full[answered] = part
    return full


def _with_columns(table: ReleasedTable, columns: Mapping[str, FloatArray], flags: Mapping[str, str]) -> ReleasedTable:
    data = table.data
    for name, column in columns.items():
        data = data.append_column(name, pa.array(column, mask=np.isnan(column)))
    known = table.flags()
    return replace(table, data=with_flags(data, {**known, **flags}))
