"""Makes the tables of a release nonnegative and additive. The noisy answers stay; fitted columns are added beside them.

Public keys need not list every cell, so a coarser total may include records of no published finer cell: each published coarser
cell gets one unpublished cell for that remainder, unless the keys are declared complete. How the tables of a query nest is read
from the release's own description, so this also works on saved files. It is post-processing: no record is read, no budget is
spent, and the ledger gets no entry.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import has_two_parts
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.plan.statistics import statistic_kind
from recordwise.plan.statistics.base import SUM
from recordwise.postprocess.least_squares import nnls, ols
from recordwise.postprocess.maxfit import max_fit
from recordwise.postprocess.result import Fit
from recordwise.postprocess.reweighted import reweighted_fit
from recordwise.postprocess.sequential import sequential_fit
from recordwise.postprocess.workload import Workload
from recordwise.release.edit_rules import Rules, chain_to, is_fitted, read_rules
from recordwise.release.release import Release
from recordwise.release.tables import FITTED, ReleasedTable, digest_of

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Groups: TypeAlias = Sequence[Mapping[str, Any]]
"""The ``by`` of a table in release.json: for each group, its name and its column or prefix."""
SEPARATOR = "\x1f"
OUTSIDE = -1


def source_of(group: Mapping[str, Any], finer: Groups) -> str | None:
    """The column of the finer table that determines a group; None if there is none."""
    for candidate in finer:
        if candidate == group:
            return str(candidate["name"])
        if "prefix_of" not in group:
            continue
        if candidate.get("column") == group["prefix_of"]:
            return str(candidate["name"])
        if candidate.get("prefix_of") == group["prefix_of"] and candidate["length"] >= group["length"]:
            return str(candidate["name"])
    return None


def nests(coarser: Groups, finer: Groups) -> bool:
    """Whether every cell of the finer table lies in one cell of the coarser."""
    return all(source_of(group, finer) is not None for group in coarser)


def parents(coarser: ReleasedTable, coarser_by: Groups, finer: ReleasedTable, finer_by: Groups) -> IntArray:
    """For each row of the finer table, its row in the coarser one; ``OUTSIDE`` if that cell is not published."""
    if not coarser_by:
        return np.zeros(finer.data.num_rows, dtype=np.int64)
    derived = []
    for group in coarser_by:
        column = finer.data.column(source_of(group, finer_by) or "")
        derived.append(pc.utf8_slice_codeunits(column, 0, group["length"]) if "prefix_of" in group else column)
    own = [coarser.data.column(str(group["name"])) for group in coarser_by]
    found = pc.index_in(_joined(derived), value_set=_joined(own))
    return np.asarray(found.fill_null(OUTSIDE).to_numpy(), np.int64)


def _joined(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """One text for each cell; a NULL key has a text of its own."""
    texts = [pc.fill_null(pc.cast(column, pa.string()), "\x00") for column in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, SEPARATOR)


METHODS: dict[str, Callable[..., Fit]] = {
    "ols": ols,
    "nnls": nnls,
    "max_fit": max_fit,
    "sequential": sequential_fit,
    "reweighted": reweighted_fit,
}
REFITS = 3
"""The number of refits with weights at the fitted totals, where the variance depends on them: bias below a thousandth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The tables of one query, finest first, and its cells: those of the finest table and the unpublished remainders."""

    tables: tuple[ReleasedTable, ...]
    rows: Any
    """Every published cell as a sum of cells, table by table."""
    sizes: dict[str, int]
    statistics: tuple[Mapping[str, Any], ...]
    signed: frozenset[str]
    """The measures that may be negative."""

    @property
    def own(self) -> int:
        """The number of cells that belong to the finest table."""
        return int(self.tables[0].data.num_rows)


def consistent(
    release: Release,
    *,
    method: str = "nnls",
    priority: Sequence[str] | None = None,
    complete: bool = False,
    zero_counts: bool = False,
    at_most: Mapping[str, str] | None = None,
) -> Release:
    """A release with a column ``NAME_fit`` beside every count and sum; see ``Release.consistent``."""
    plan, below = release.description["plan"], dict(at_most or {})
    _check(release, method, priority, below, zero_counts=zero_counts)
    fitted: dict[str, dict[str, FloatArray]] = {table.name: {} for table in release.tables}
    residuals: dict[str, Any] = {}
    for number, (query, rules) in enumerate(zip(plan, read_rules(below, plan)), 1):
        family = _family(release, query, complete=complete)
        order = _order(family, priority)
        for name, columns, residual in _fits(family, method, order, zero_counts=zero_counts, rules=rules):
            residuals[f"q{number}:{name}"] = residual
            for table, column in zip(family.tables, columns):
                fitted[table.name][name + FITTED] = column
    note = {"method": method, "complete": complete, "zero_counts": zero_counts, "at_most": below}
    tables = tuple(_with_columns(table, fitted[table.name]) for table in release.tables)
    # The ledger records what was drawn; this digest shows whether the fitted columns are still those of the fit.
    digest = digest_of({table.name: table.data for table in tables}, release.policy)
    fit = {**note, "fits": residuals, "digest": digest}
    return replace(release, tables=tables, description={**release.description, "consistent": fit})


def _check(
    release: Release, method: str, priority: Sequence[str] | None, at_most: Mapping[str, str], *, zero_counts: bool
) -> None:
    """Refuse arguments that fit no query of the release."""
    if method not in METHODS:
        raise ParameterError(parameter="method", problem=f"must be one of {', '.join(METHODS)}, not {method!r}")
    if method == "ols" and at_most:
        raise ParameterError(parameter="at_most", problem="cannot be enforced by ols", advice="Use nnls.")
    if any("statistics" not in query for query in release.description["plan"]):
        raise ParameterError(
            parameter="release", problem="comes from an external mechanism, so its tables have no known cells to fit"
        )
    names = [table.name for table in release.tables]
    if priority is not None and sorted(priority) != sorted(names):
        raise ParameterError(parameter="priority", problem=f"must order exactly these tables: {', '.join(names)}")


def _family(release: Release, query: Mapping[str, Any], *, complete: bool) -> Family:
    by = {table["name"]: table["by"] for table in query["tables"]}
    if any("keys" in table for table in query["tables"]):
        raise ParameterError(
            parameter="release", problem="has privately selected keys, so its tables have no fixed cells to fit"
        )
    tables = sorted(
        (t for t in release.tables if t.name in by), key=lambda t: (len(by[t.name]), t.data.num_rows), reverse=True
    )
    finest = next((t for t in tables if all(nests(by[other.name], by[t.name]) for other in tables)), None)
    if finest is None:
        names = ", ".join(table.name for table in tables)
        raise ParameterError(parameter="release", problem=f"has no table in which all of these are nested: {names}")
    ordered = (finest, *(table for table in tables if table is not finest))
    rows = _rows(ordered, by, complete=complete)
    sizes = {table.name: table.data.num_rows for table in ordered}
    declared = release.description.get("schema", {}).get("measures", ())
    signed = frozenset(str(each["name"]) for each in declared if each.get("signed"))
    return Family(tables=ordered, rows=rows, sizes=sizes, statistics=tuple(query["statistics"]), signed=signed)


def _rows(tables: Sequence[ReleasedTable], by: Mapping[str, Any], *, complete: bool) -> Any:
    """The incidence of published cells and fitted cells: the finest table's cells first, then every other table's remainders."""
    owners = tables[:1] if complete else tables
    grid = []
    for table in tables:
        blocks = []
        for owner in owners:
            shape = (table.data.num_rows, owner.data.num_rows)
            if owner is table:
                blocks.append(sparse.eye_array(shape[0], format="csr"))
            elif nests(by[table.name], by[owner.name]) and by[table.name] != by[owner.name]:
                up = parents(table, by[table.name], owner, by[owner.name])
                inside = np.flatnonzero(up != OUTSIDE)
                blocks.append(sparse.csr_array((np.ones(len(inside)), (up[inside], inside)), shape=shape))
            else:
                blocks.append(sparse.csr_array(shape))
        grid.append(blocks)
    return sparse.csr_array(sparse.block_array(grid, format="csr"))


def _order(family: Family, priority: Sequence[str] | None) -> list[str]:
    """The groups in order of priority for the sequential fit; by default the coarsest table first."""
    names = [table.name for table in reversed(family.tables)]
    return names if priority is None else [name for name in priority if name in names]


def _fits(
    family: Family, method: str, order: list[str], *, zero_counts: bool, rules: Rules
) -> list[tuple[str, list[FloatArray], dict[str, Any]]]:
    """Each count and sum fitted; with ``zero_counts`` sums are 0 where the fitted count is. Sums of a measure that may be negative
    are fitted by least squares, whatever the method: nothing else here is for them."""
    wanted = [s for s in family.statistics if is_fitted(s)]
    counts = {str(s["name"]) for s in wanted if _counts_records(s)}
    if zero_counts and counts & (set(rules) | set(rules.values())):
        raise ParameterError(
            parameter="at_most", problem="names a count, which zero_counts fits before all other variables"
        )
    kept = np.ones(family.rows.shape[1], dtype=bool)
    found = []
    for statistic in sorted(
        (s for s in wanted if s["name"] not in rules), key=lambda s: statistic_kind(s["kind"]).contribution == SUM
    ):
        chain = chain_to(statistic, wanted, rules)
        signed = [str(s["name"]) for s in chain if s["of"] in family.signed]
        if signed and len(chain) > 1:
            raise ParameterError(
                parameter="at_most", problem=f"names '{signed[0]}', which may be negative and is fitted without rules"
            )
        for each, x, residual in _solve(family, chain, "ols" if signed else method, order, kept):
            found.append((each, _published(family, x), residual))
        if zero_counts and _counts_records(statistic):
            rests = np.ones(family.rows.shape[1] - family.own, dtype=bool)
            kept = np.concatenate([found[-1][1][0] > 0, rests])
    return found


def _counts_records(statistic: Mapping[str, Any]) -> bool:
    return statistic_kind(statistic["kind"]).counts_records


def _published(family: Family, x: FloatArray) -> list[FloatArray]:
    ends = np.cumsum(list(family.sizes.values()))[:-1]
    return list(np.split(np.asarray(family.rows @ x), ends))


def _solve(
    family: Family, statistics: list[Mapping[str, Any]], method: str, order: list[str], kept: Any
) -> list[tuple[str, FloatArray, dict[str, Any]]]:
    """Fit one variable, or several of which each includes the previous one, such as quarter and year = quarter + rest."""
    cells, layers = family.rows.shape[1], len(statistics)
    used = sparse.csr_array(family.rows[:, np.flatnonzero(kept)])
    asked = np.diff(used.indptr) > 0
    block = sparse.csr_array(sparse.kron(np.tril(np.ones((layers, layers))), used[asked], format="csr"))
    answers = np.concatenate([_column(family, s, "")[asked] for s in statistics])
    spreads = [_variance(family, statistic) for statistic in statistics]
    workload = Workload.matrix(block, _group_sizes(family, asked, statistics))
    totals: list[FloatArray | None] = [None] * layers
    for _ in range(REFITS + 1 if any(callable(spread) for spread in spreads) else 1):
        variances = np.concatenate([_at(spread, total)[asked] for spread, total in zip(spreads, totals)])
        fit = _run(method, workload, answers, variances, order, statistics)
        fitted = [np.zeros(len(asked)) for _ in statistics]
        for layer, part in enumerate(np.split(workload.answer(fit.x), layers)):
            fitted[layer][asked] = part
        totals = list(fitted)
    return [
        (
            str(s["name"]),
            _scattered(np.add.reduce(np.split(fit.x, layers)[: i + 1]), kept, cells),
            _residuals(fit),
        )
        for i, s in enumerate(statistics)
    ]


def _residuals(fit: Fit) -> dict[str, Any]:
    """The residuals the fit reached, so that a reader can tell whether it converged."""
    return {
        "kkt": float(np.max(fit.kkt)),
        "primal": float(np.max(fit.primal)),
        "converged": bool(np.all(fit.converged)),
    }


def _run(
    method: str, workload: Workload, answers: FloatArray, variances: FloatArray, order: list[str], statistics: list[Any]
) -> Fit:
    if method != "sequential":
        return METHODS[method](workload, answers, variances, noise="gaussian")
    groups = [f"{statistic['name']}:{table}" for table in order for statistic in statistics]
    present = {group.name for group in workload.groups}
    return sequential_fit(workload, answers, variances, noise="gaussian", priority=[g for g in groups if g in present])


def _group_sizes(family: Family, asked: Any, statistics: list[Mapping[str, Any]]) -> dict[str, int]:
    ends = np.cumsum([0, *family.sizes.values()])
    sizes = {name: int(asked[start:stop].sum()) for name, start, stop in zip(family.sizes, ends, ends[1:])}
    return {f"{s['name']}:{name}": size for s in statistics for name, size in sizes.items() if size}


def _scattered(x: FloatArray, kept: Any, cells: int) -> FloatArray:
    full = np.zeros(cells)
    full[np.flatnonzero(kept)] = x
    return full


def _column(family: Family, statistic: Mapping[str, Any], end: str) -> FloatArray:
    name = f"{statistic['name']}{end}"
    return np.concatenate([table.data.column(name).to_numpy().astype(np.float64) for table in family.tables])


def _variance(family: Family, statistic: Mapping[str, Any]) -> Any:
    """The variance of each answer: a column or, for a transform, a function of the totals."""
    raw = _column(family, statistic, "_sd") ** 2
    mechanism = mechanism_from_json(statistic["mechanism"])
    if mechanism is None or has_two_parts(mechanism) or not getattr(mechanism, "variance_varies", False):
        return raw
    scale = _column(family, statistic, "_sigma")
    parts = [(scale == each, mechanism.with_noise_scale(Fraction(float(each)))) for each in np.unique(scale)]
    return lambda totals: _spread_at(parts, totals, raw)


def _spread_at(parts: list[tuple[Any, Any]], totals: FloatArray | None, raw: FloatArray) -> FloatArray:
    if totals is None:
        return raw
    spread = np.empty_like(raw)
    for rows, mechanism in parts:
        spread[rows] = mechanism.variance(np.maximum(totals[rows], 0.0))
    return spread


def _at(spread: Any, totals: FloatArray | None) -> FloatArray:
    return np.asarray(spread(totals) if callable(spread) else spread)


def _with_columns(table: ReleasedTable, columns: Mapping[str, FloatArray]) -> ReleasedTable:
    data = table.data
    for name, column in columns.items():
        data = data.append_column(name, pa.array(column))
    return replace(table, data=data)
