"""The cells of a question, and its best linear answer (T-ASK)."""

import math
from collections.abc import Iterator, Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass, replace
from importlib.metadata import version
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from recordwise.errors import ParameterError, near_name
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import digits_text
from recordwise.plan.arrays import array_of, null_as, numpy_of, texts_of
from recordwise.plan.expressions import Field
from recordwise.plan.statistics.base import SUM
from recordwise.postprocess.linear import LinearModel, rank_of
from recordwise.reader.answers import Answer
from recordwise.reader.questions import MOST_CODES, Among, Question, Regions, with_label
from recordwise.release.nesting import (
    Nesting,
    finest_of,
    joint_queries,
    key_values,
    nesting_of,
    nests,
    rest_rows,
    source_of,
)
from recordwise.release.published import PublishedGroup, PublishedQuery, PublishedStatistic, PublishedTable
from recordwise.release.release import Release
from recordwise.release.spread import (
    REFITS,
    AnswerNoise,
    MovedSums,
    Shape,
    SummedErrors,
    adds_up,
    chunks,
    draws_for,
    in_common,
    linear,
    noise_of,
    public_seed,
    total_intervals,
)
from recordwise.release.tables import ReleasedTable, noise_read

NO_CODE = -1
MOST_NAMED, MOST_WORDS = 4, 12
"""Cells named in a sentence, answers whose sources are given in words."""
MAIN = 0.5
"""Published numbers with at least this weight are given in words."""
RAW = 1e-9
"""Weights that differ by less from the question are those of a plain sum."""
FINE = 25.0
"""Lattice steps in a standard deviation from which half a step is a hundredth of the interval's reach."""
MOST_MOVED = 4_000_000
"""Numbers of which variances or laws are computed together."""
MOST_SUMMED = 64_000_000
"""Up to this many weights of answers in questions, the law of each error is computed; beyond, errors are drawn."""
OPEN = (
    "A plain sum of noisy answers: the keys are not declared complete and no rest is published, so that coarser cells may hold "
    "records of no finer cell. If the keys list every cell that can hold records, complete=True is more accurate."
)
ALONE = "A plain sum of noisy answers: no other table says anything about it."
LISTED = "It adds up the cells that the table {table} lists; records in no listed cell are not in it."
MOVED = "Noise grows with the total: the interval holds the totals under which the estimate is not surprising, and is approximate."
SIZES = (0.0, 0.5, 1.0, 2.0)
CUT = "Cut at 0, which raises values near 0; do not add such values up. Bias in standard errors, by true total in standard errors: "


# Which statistic of which query a name means.


def statistics_asked(release: Release, question: Question) -> list[tuple[PublishedQuery, PublishedStatistic]]:
    """Return what a name means in each query, or refuse it."""
    queries = joint_queries(release.published.queries, at_most={}, zero_counts=False)
    every = [(query, each) for query in queries for each in query.statistics]
    sums = [(query, each) for query, each in every if _may_add(release, each)]
    for means in (_named, _counts, _sums):
        found = [pair for pair in every if means(pair[1], question.name)]
        if found:
            break
    adding = [pair for pair in found if pair in sums]
    if not adding:
        offered = ", ".join(dict.fromkeys(each.name for _, each in sums)) or "none"
        near = near_name(question.name, [name for _, each in sums for name in (each.name, each.of) if name])
        problem = (
            "is not added up: finer cells of it do not add up to coarser ones" if found else f"is not published{near}"
        )
        raise ParameterError(
            parameter=f"'{question.name}'",
            problem=problem,
            advice=f"Totals can be asked of: {offered}. Divide two of them for an average.",
        )
    wanted = [pair for pair in adding if question.query is None or question.query in pair[0].numbers]
    if not wanted:
        having = sorted({number for query, _ in adding for number in query.numbers})
        raise ParameterError(
            parameter="query",
            problem=f"{question.query} has no '{question.name}'",
            advice=f"Queries that have it: {', '.join(map(str, having))}.",
        )
    return wanted


def _may_add(release: Release, each: PublishedStatistic) -> bool:
    return each.rules.fitted and each.rules.adds_up(each.of, firm=release.published.firm)


def _named(each: PublishedStatistic, name: str) -> bool:
    return name in (each.name, *each.names)


def _counts(each: PublishedStatistic, name: str) -> bool:
    return name == "count" and each.rules.counts_records


def _sums(each: PublishedStatistic, name: str) -> bool:
    return each.of == name and each.rules.contribution == SUM and each.rules.fitted


# Which cells of which table make up a question: those of the coarsest table that tells all of its columns.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Weights of published cells for each question."""

    labels: tuple[str, ...]
    rows: Any
    """A row for each question, a column for each published cell of the nesting."""
    table: str
    notes: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Regions with codes that no cell has."""


def groups_asked(release: Release, query: PublishedQuery, columns: Sequence[str]) -> dict[str, PublishedGroup]:
    """Return the groups or levels of lists that columns name."""
    found = {}
    for column in columns:
        group = query.group(column) or _level(release, column)
        if group is None:
            names = dict.fromkeys(each.name for table in query.tables for each in table.by)
            raise ParameterError(
                parameter=f"'{column}'",
                problem=f"is no column of the tables{near_name(column, names)}",
                advice=f"Columns are {', '.join(names) or 'none'}.",
            )
        found[column] = group
    return found


def _level(release: Release, name: str) -> PublishedGroup | None:
    for listed in release.published.lists.lists.values():
        if name in listed.levels[:-1]:
            finer = listed.levels[listed.levels.index(name) + 1 :]
            below = tuple(each for each in finer if (name, each) not in listed.not_nested)
            return PublishedGroup(name=name, expression=Field(name), hierarchy=listed.name, determined_by=below)
    return None


def table_asked(
    release: Release, query: PublishedQuery, groups: Mapping[str, PublishedGroup]
) -> tuple[PublishedTable, PublishedQuery]:
    """Return the coarsest table with all columns, and the usable tables."""
    sizes = {table.name: table.data.num_rows for table in release.tables}
    telling = [
        table for table in query.tables if all(source_of(each, table.by) is not None for each in groups.values())
    ]
    if not telling:
        raise ParameterError(
            parameter="where",
            problem=f"names columns of which no single table has all: {', '.join(groups)}",
            advice=f"The tables are {', '.join(table.name for table in query.tables)}.",
        )
    # A coarser table also holds the records that are in no listed cell of a finer one.
    coarsest = [each for each in telling if not any(_coarser(other, each) for other in telling)]
    chosen = min(coarsest, key=lambda table: (sizes[table.name], len(table.by)))
    if finest_of([table.by for table in query.tables]) is not None:
        return chosen, query
    inside = tuple(table for table in query.tables if table is chosen or nests(table.by, chosen.by))
    return chosen, replace(query, tables=inside)


def _coarser(table: PublishedTable, other: PublishedTable) -> bool:
    return nests(table.by, other.by) and not nests(other.by, table.by)


def cells_asked(
    nesting: Nesting, chosen: PublishedTable, groups: Mapping[str, PublishedGroup], question: Question
) -> Cells:
    """Return the weights of the cells of a table for each question."""
    table = next(each for each in nesting.tables if each.name == chosen.name)
    kept = np.ones(table.data.num_rows, dtype=bool)
    if question.where is not None:

        def told(test: Among) -> tuple[Any, Any]:
            texts = _texts(nesting, table, groups[test.column])
            _require_listed(test.column, test.codes, texts, table.name)
            inside = np.asarray(numpy_of(pc.is_in(texts, value_set=texts_of(test.codes))), bool)
            return inside, ~inside & np.asarray(numpy_of(pc.is_valid(texts)), bool)

        kept = question.where.truth(told)[0]
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    if question.regions is not None:
        column = str(question.regions.column)
        texts = _texts(nesting, table, groups[column])
        labels, weights, notes, missing = _region_weights(question.regions, column, texts)
    elif question.by is not None:
        texts = _texts(nesting, table, groups[question.by])
        values = pc.unique(texts.filter(array_of(kept))).drop_null().sort()
        labels, weights = tuple(values.to_pylist()), _incidence(texts, values)
    else:
        labels, weights = ("total",), sparse.csr_array(np.ones((1, len(kept))))
    inside = sparse.csr_array(weights * kept[None, :])
    inside.eliminate_zeros()
    start = sum(size for name, size in _before(nesting, table.name))
    count = nesting.rows.shape[0]
    entries = inside.tocoo()
    rows = sparse.csr_array((entries.data, (entries.row, entries.col + start)), shape=(len(labels), count))
    asked = np.flatnonzero(np.diff(rows.indptr) > 0)
    if not len(asked):
        raise ParameterError(parameter="where", problem=f"leaves no cell of the table {table.name}")
    return Cells(
        labels=tuple(labels[at] for at in asked), rows=rows[asked], table=table.name, notes=notes, left_out=missing
    )


def _before(nesting: Nesting, name: str) -> Iterator[tuple[str, int]]:
    for each, size in nesting.sizes.items():
        if each == name:
            return
        yield each, size


def _texts(nesting: Nesting, table: ReleasedTable, group: PublishedGroup) -> Any:
    """The values of a group in each row, as text or NULL."""
    by = {name: each.by for name, each in nesting.described.items()}
    values = key_values(table, nesting.tables, by, group, nesting.published.lists)
    texts = pc.cast(values, pa.string())
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _require_listed(column: str, codes: Sequence[str], texts: Any, table: str) -> None:
    known = numpy_of(pc.is_in(texts_of(codes), value_set=pc.unique(texts)))
    unknown = [code for code, listed in zip(codes, known) if not listed]
    if unknown:
        raise ParameterError(
            parameter=f"'{column}'",
            problem=f"has codes without a cell in the table {table}: {', '.join(unknown[:MOST_CODES])}",
            advice="Codes are written as in the tables, with leading zeros.",
        )


def _incidence(texts: Any, values: Any) -> Any:
    """A row for each value: the cells that have it."""
    found = np.asarray(null_as(pc.index_in(texts, value_set=values), NO_CODE), np.int64)
    cells = np.flatnonzero(found != NO_CODE)
    return sparse.csr_array((np.ones(len(cells)), (found[cells], cells)), shape=(len(values), len(found)))


def _region_weights(
    regions: Regions, column: str, texts: Any
) -> tuple[tuple[str, ...], Any, tuple[str, ...], tuple[str, ...]]:
    """Return regions, the weight of each cell, and what is missing."""
    codes, names = pc.unique(texts_of(regions.codes)), pc.unique(texts_of(regions.regions))
    of_code = numpy_of(pc.index_in(texts_of(regions.codes), value_set=codes))
    of_region = numpy_of(pc.index_in(texts_of(regions.regions), value_set=names))
    shares = sparse.csr_array((regions.shares, (of_region, of_code)), shape=(len(names), len(codes)))
    listed = np.asarray(numpy_of(pc.is_in(codes, value_set=pc.unique(texts))), bool)
    partly = np.bincount(of_region, ~listed[of_code], minlength=len(names))
    some = np.bincount(of_region, listed[of_code], minlength=len(names)) > 0
    notes = []
    if np.any(~some):
        notes.append(f"{int(np.sum(~some))} regions have no code of {column} in the table and are left out.")
    if np.any(short := (partly > 0) & some):
        named = ", ".join(names.filter(array_of(short)).to_pylist()[:MOST_CODES])
        notes.append(f"Codes of {int(np.sum(short))} regions are not in the table and add nothing there: {named}.")
    missing = tuple(names.filter(array_of(partly > 0)).to_pylist())
    return tuple(names.to_pylist()), shares @ _incidence(texts, codes), tuple(notes), missing


# The answer.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """The noisy answers of one statistic, ready for questions."""

    nesting: Nesting
    statistic: PublishedStatistic
    noise: AnswerNoise
    linear: LinearModel
    estimates: FloatArray
    """The best linear unbiased estimate of every published cell."""

    @classmethod
    def of(cls, release: Release, query: PublishedQuery, statistic: PublishedStatistic, *, complete: bool) -> "Model":
        """Return the model, or refuse noise whose errors are not known."""
        nesting = nesting_of(release, query, complete=complete)
        noise = in_common(noise_of(nesting, statistic))
        answers, spread = nesting.column(statistic, ""), noise.variance(None)
        if not (noise.known and adds_up(nesting, statistic) and np.all(np.isfinite(answers) & np.isfinite(spread))):
            raise ParameterError(
                parameter=f"'{statistic.name}'",
                problem="has noise whose law or variance the release does not state",
                advice="Use the intervals of single cells in the tables.",
            )
        weights = linear(nesting, spread)
        estimates = np.asarray(weights.fit(answers))
        # Where noise grows with the total, weights are those at the fitted totals.
        for _ in range(REFITS if noise.varies and not np.array_equal(estimates, answers) else 0):
            spread = noise.variance(estimates)
            weights = linear(nesting, spread)
            estimates = np.asarray(weights.fit(answers))
        return cls(
            nesting=nesting,
            statistic=statistic,
            noise=noise,
            linear=LinearModel(answers, weights, spread, estimates),
            estimates=estimates,
        )

    @property
    def step(self) -> float:
        """The lattice of Gaussian noise."""
        return float(getattr(self.noise, "step", 0.0))

    def law(self, rows: Any) -> SummedErrors | None:
        """Return the law of the noise, where that of the errors of questions is computed from it."""
        return SummedErrors.of(self.noise) if rows.shape[0] * len(self.linear.answers) <= MOST_SUMMED else None

    def reaches(self, rows: Any, levels: Sequence[float]) -> Sequence[FloatArray] | None:
        """Return what errors of questions stay within by their law; None where it is not computed."""
        law = self.law(rows)
        if law is None:
            return None
        block, asked = max(1, MOST_MOVED // len(self.linear.answers)), sparse.csr_array(rows)
        starts = range(0, asked.shape[0], block)
        found = [law.reaches(self.linear.influences(asked[start : start + block]), levels) for start in starts]
        return [np.concatenate(each) for each in zip(*found)]

    def errors(self, rows: Any, draws: int, seed: str, left_out: float = 0.0) -> FloatArray:
        """Return simulated errors of questions, a row for each draw.

        The public noise law is drawn with a generator of its own and goes through the estimate. No record is read. Where tails are
        light, a part of each error with the standard deviation ``left_out`` may be missing.
        """
        size, found = len(self.linear.answers), []
        source = public_seed(seed, self.statistic.name, "ask")
        light = left_out > 0 and rows.shape[0] < draws and SummedErrors.of(self.noise) is not None
        weights = self._large_weights(rows, left_out) if light else None
        for some in chunks(draws, size):
            drawn = self.noise.errors(self.linear.answers, some, source).T
            # A draw goes through the estimate, or only the questions do, once for all draws.
            found.append((rows @ self.linear.weights.fit(drawn.T).T if weights is None else weights @ drawn).T)
        return np.concatenate(found)

    def _large_weights(self, rows: Any, left_out: float) -> Any:
        """Return the weights of answers in questions, without negligible ones.

        What is missing in the error of each question has at most the standard deviation ``left_out``.
        """
        size, sds = len(self.linear.answers), np.sqrt(self.linear.spread)
        block, least, kept = max(1, MOST_MOVED // size), left_out / math.sqrt(size), []
        for start in range(0, rows.shape[0], block):
            own = self.linear.influences(rows[start : start + block])
            kept.append(sparse.csr_array(np.where(np.abs(own) * sds > least, own, 0.0)))
        return sparse.csr_array(sparse.vstack(kept))


def answer(release: Release, question: Question, confidence: float, models: MutableMapping[Any, Any]) -> Answer:
    """Return the best linear unbiased answer from all tables of a query.

    Where several queries ask for the same records, the one whose answers have the smallest errors.
    """
    found = statistics_asked(release, question)
    if any(query.where != found[0][0].where for query, _ in found):
        numbers = ", ".join(str(query.numbers[0]) for query, _ in found)
        raise ParameterError(
            parameter="query", problem=f"must be given: '{question.name}' is of different records in queries {numbers}"
        )
    answers, refused = [], None
    for query, statistic in found:
        try:
            answers.append(_answer(release, query, statistic, question, confidence, models))
        except ParameterError as error:
            refused = refused or error
    if not answers:
        assert refused is not None
        raise refused
    return min(answers, key=lambda each: float(np.mean(each.sds)))


def _answer(
    release: Release,
    query: PublishedQuery,
    statistic: PublishedStatistic,
    question: Question,
    confidence: float,
    models: MutableMapping[Any, Any],
) -> Answer:
    question = _with_column(release, query, question)
    groups = groups_asked(release, query, question.columns)
    chosen, used = table_asked(release, query, groups)
    fit = release.published.fit
    complete = question.complete if question.complete is not None else fit is not None and fit.complete
    key = (tuple(table.name for table in used.tables), statistic.name, complete)
    if key not in models:
        models[key] = Model.of(release, used, statistic, complete=complete)
    model: Model = models[key]
    cells = cells_asked(model.nesting, chosen, groups, question)
    if question.whole is not None:
        cells = _with_whole(cells, release, used, model, question.whole)
    seed = f"{release.digest}:{question.text({})}"
    numbers, weights = _numbers(model, cells, confidence, seed, release.published.confidence)
    labels, some = release.words.labels, cells.rows[:MOST_WORDS]
    weights = model.linear.influences(some) if weights is None else weights[:MOST_WORDS]
    # No other estimate has the variance of the best one.
    alone = cells.rows.power(2) @ model.linear.spread
    plain = bool(np.all(np.abs(alone - numbers["sds"] ** 2) <= RAW * alone))
    normal = bool(model.noise.normal)
    found = Answer(
        question=question.text(labels),
        labels=_labels_of(question, cells.labels, labels),
        codes=cells.labels,
        left_out=cells.left_out,
        confidence=confidence,
        normal=normal,
        moments=plain or not model.noise.varies,
        clipped=False,
        sources=tuple(_sources(model.nesting, own, asked, labels) for own, asked in zip(weights, some.toarray())),
        notes=(*cells.notes, *_notes(model, chosen, groups, plain=plain, complete=complete)),
        method=_method(used, cells, model, plain=plain),
        of=f"{release.digest}:{statistic.name}",
        release=_about(release),
        errors=None
        if model.noise.varies
        else lambda draws, purpose, *left: model.errors(cells.rows, draws, seed + purpose, *left),
        cells=len(model.linear.answers),
        law=None if normal else lambda sums, levels: model.reaches(sparse.csr_array(sums) @ cells.rows, levels),
        **numbers,
    )
    return _clipped(found, model) if question.nonnegative else found


def _with_whole(cells: Cells, release: Release, used: PublishedQuery, model: Model, whole: Question) -> Cells:
    """Add what shares are of as the last questions, to the same tables: one whole for all, or one for each."""
    whole = _with_column(release, used, whole)
    groups = groups_asked(release, used, whole.columns)
    other = cells_asked(model.nesting, table_asked(release, used, groups)[0], groups, whole)
    rows = other.rows
    if whole.columns and (whole.by or whole.regions):
        # What has no whole is left out of shares: none of its cells meets the condition of the whole.
        place = {label: at for at, label in enumerate(other.labels)}
        kept = [at for at, label in enumerate(cells.labels) if label in place]
        cells = replace(cells, labels=tuple(cells.labels[at] for at in kept), rows=cells.rows[kept])
        rows = rows[[place[label] for label in cells.labels]]
        other = replace(other, labels=cells.labels)
    return replace(
        cells, labels=(*cells.labels, *other.labels), rows=sparse.csr_array(sparse.vstack([cells.rows, rows]))
    )


def _numbers(
    model: Model, cells: Cells, confidence: float, seed: str, stated: float
) -> tuple[dict[str, Any], FloatArray | None]:
    """Return estimates, errors and intervals of questions, and the weights of answers in a few of them."""
    fine = model.step > 0 and bool(np.all(model.linear.spread >= (FINE * model.step) ** 2))
    levels, reached = (confidence, (1 + confidence) / 2), list[list[FloatArray]]()
    law = None if model.noise.normal or model.noise.varies else model.law(cells.rows)
    use = None if law is None else lambda weights: reached.append(law.reaches(weights, levels))
    answered = model.linear.answer(cells.rows, fine=fine, use=use)
    values, sds = answered.estimates, np.sqrt(np.maximum(np.diag(answered.covariance), 0.0))
    halves = model.step / 2 * answered.largest
    wides = None
    if model.noise.varies:
        lows, highs = _moved_ends(model, cells, confidence, stated)
    else:
        if model.noise.normal:
            reach = NormalDist().inv_cdf((1 + confidence) / 2) * sds + halves
        elif law is not None:
            reach, wides = (np.concatenate(each) for each in zip(*reached))
        else:
            reach, wides = _drawn_reaches(model, cells, levels, seed)
        lows, highs = values - reach, values + reach
    numbers = {
        "values": values,
        "sds": sds,
        "lows": lows,
        "highs": highs,
        "covariance": answered.covariance,
        "halves": halves,
        "wides": wides,
    }
    return numbers, answered.weights


def _moved_ends(model: Model, cells: Cells, confidence: float, stated: float) -> tuple[FloatArray, FloatArray]:
    """Return the totals under which estimates are not surprising (T-MOVED).

    Where errors are large, what the published intervals of the single cells add up to.
    """
    if not math.isclose(confidence, stated):
        raise ParameterError(
            parameter="confidence", problem=f"must be that of the release, {stated:g}, as noise grows with the total"
        )
    shape, size = model.noise.shape(confidence), len(model.linear.spread)
    if not math.isfinite(shape.reach):
        raise ParameterError(
            parameter=f"'{model.statistic.name}'",
            problem="has noise that grows with the total and has no formula for the error of a sum",
            advice="Single cells have intervals in the tables.",
        )
    ends = [model.nesting.column(model.statistic, end) for end in ("_low", "_high")]
    lows, highs, block = [], [], max(1, MOST_MOVED // size)
    for start in range(0, cells.rows.shape[0], block):
        rows = cells.rows[start : start + block]
        moved = MovedSums.of(
            model.linear.influences(rows),
            model.linear.spread,
            value=np.asarray(rows @ model.estimates),
            totals=np.maximum(model.estimates, 0.0),
            variances=model.noise.variance_at,
        )
        own = Shape(rows @ shape.offset, np.asarray(rows @ shape.log.astype(np.float64)) > 0, shape.reach)
        found = total_intervals(moved, own, *(_added(rows, each) for each in ends))
        lows.append(found[0])
        highs.append(found[1])
    return np.concatenate(lows), np.concatenate(highs)


def _added(rows: Any, ends: FloatArray) -> FloatArray:
    """Add up ends of intervals; infinite where one is missing."""
    missing = rows @ np.isnan(ends).astype(np.float64) > 0
    return np.where(missing, np.inf, rows @ np.nan_to_num(ends))


def _with_column(release: Release, query: PublishedQuery, question: Question) -> Question:
    """Find the only column that has codes of the regions."""
    regions = question.regions
    if regions is None or regions.column is not None:
        return question
    codes, found = texts_of(regions.codes), []
    for name, home in {each.name: table.name for table in query.tables for each in table.by}.items():
        texts = pc.cast(release[home].column(name), pa.string())
        if pc.any(pc.is_in(codes, value_set=pc.unique(texts))).as_py():
            found.append(name)
    if len(found) != 1:
        raise ParameterError(
            parameter="by",
            problem="must say which column the codes of the regions are of",
            advice=f"Columns with such codes: {', '.join(found) or 'none'}.",
        )
    return replace(question, regions=replace(regions, column=found[0]))


def _labels_of(question: Question, cells: Sequence[str], labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(with_label(question.by, each, labels) for each in cells) if question.by else tuple(cells)


def _drawn_reaches(model: Model, cells: Cells, levels: Sequence[float], seed: str) -> tuple[FloatArray, ...]:
    """Return what draws of the noise through the estimate stay within, at several levels of confidence."""
    draws = draws_for(len(model.linear.answers), max(levels), None)
    places = [rank_of(draws, level) - 1 for level in levels]
    drawn = np.partition(np.abs(model.errors(cells.rows, draws, seed)), places, axis=0)
    # An error on a lattice may be the order statistic itself, and must not be missed by a rounding.
    return tuple(np.asarray(drawn[place] * (1 + RAW)) for place in places)


def bias_text() -> str:
    """Return what cutting at 0 adds on average, by size: sd (phi(t) - t (1 - Phi(t))) at a total of t sd."""
    law = NormalDist()
    biases = [(each, law.pdf(each) - each * law.cdf(-each)) for each in SIZES]
    return ", ".join(f"{digits_text(bias, 2)} at {digits_text(size, 1)}" for size, bias in biases)


def _clipped(found: Answer, model: Model) -> Answer:
    """Cut values and intervals of unsigned totals at 0 (T-CUT)."""
    if model.statistic.of in model.nesting.signed:
        raise ParameterError(
            parameter="nonnegative", problem=f"is not for '{model.statistic.of}', which may be negative"
        )
    values, lows = np.maximum(found.values, 0.0), np.maximum(found.lows, 0.0)
    highs = np.maximum(found.highs, values)
    ends: dict[str, Any] = {"values": values, "lows": np.minimum(lows, values), "highs": highs}
    return replace(
        found, clipped=True, notes=(*found.notes, f"{CUT}{bias_text()}."), method=f"{found.method}, cut at 0", **ends
    )


# Words.


def _about(release: Release) -> dict[str, str]:
    title = release.words.publication.title or release.published.dataset
    marked = {"private": "yes"} if release.private else {"private": ""}
    return {
        "title": title,
        "digest": release.digest,
        "privacy_label": release.privacy_label,
        "stages": " ".join(sorted(release.published.lineage(release.digest))),
        "follows": followed(release),
        "version": version("recordwise"),
        **marked,
    }


def _method(query: PublishedQuery, cells: Cells, model: Model, *, plain: bool) -> str:
    named = table_names([each.name for each in query.tables])
    how = f"sum of noisy answers of the table {cells.table}" if plain else f"best linear unbiased estimate from {named}"
    if model.noise.normal:
        return how
    drawn = "draws of the noise law" if model.law(cells.rows) is None else "the law of its error"
    return f"{how}, interval by {'totals under which it is not surprising' if model.noise.varies else drawn}"


def _notes(
    model: Model,
    chosen: PublishedTable,
    groups: Mapping[str, PublishedGroup],
    *,
    plain: bool,
    complete: bool,
) -> Iterator[str]:
    nesting = model.nesting
    if model.noise.varies:
        yield MOVED
    if nesting.query.where is not None:
        yield f"Of the records that query {nesting.query.numbers[0]} is about, not of all."
    if plain:
        yield OPEN if nesting.remainders and len(nesting.tables) > 1 else ALONE
    added = set(chosen.by) - set(groups.values())
    if added and not complete and not chosen.rest and not _lists_all(nesting, chosen, added):
        yield LISTED.format(table=chosen.name)


def _lists_all(nesting: Nesting, chosen: PublishedTable, added: Set[PublishedGroup]) -> bool:
    """Whether a table has every pair of its codes, and every code of public lists where it is added up."""
    lists, table = nesting.published.lists, next(each for each in nesting.tables if each.name == chosen.name)
    count = 1
    for group in chosen.by:
        listed = lists.lists.get(lists.hierarchy_of(group) or "")
        if group in added and (listed is None or group.level not in listed.levels):
            return False
        own = len(pc.unique(table.data.column(group.name)))
        if group in added and listed is not None and own != len(pc.unique(listed.level(str(group.level)))):
            return False
        count *= own
    return bool(count == table.data.num_rows)


def _sources(nesting: Nesting, weights: FloatArray, asked: FloatArray, labels: Mapping[str, str]) -> str:
    """Say which published numbers make up most of an estimate."""
    least = MAIN * float(np.max(np.abs(asked), initial=0.0))
    added, taken, small = [], [], []
    for table, own in zip(nesting.tables, nesting.by_table(weights)):
        added += _cells_text(table, np.flatnonzero(own >= least), labels)
        taken += _cells_text(table, np.flatnonzero(own <= -least), labels)
        small += [table.name] if np.any((np.abs(own) < least) & (np.abs(own) > RAW)) else []
    text = " and ".join(added)
    if taken:
        text = f"{text} less {' and '.join(taken)}"
    if not small:
        return text
    named = table_names(small)
    return (
        f"mainly {text}, with small weights of other cells of {named}"
        if added
        else f"a weighted sum of cells of {named}"
    )


def table_names(names: Sequence[str]) -> str:
    """Return a few names, or how many with the first and last."""
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} tables ({names[0]} to {names[-1]})"


def _cells_text(table: ReleasedTable, rows: Any, labels: Mapping[str, str]) -> list[str]:
    """The cells of a table by name, or how many."""
    if not len(rows):
        return []
    keys = [key for key in table.keys if key in table.data.column_names]
    if len(rows) > MOST_NAMED or not keys:
        return [f"{len(rows)} cells of {table.name}" if keys else table.name]
    some, rests = table.data.select(keys).take(array_of(rows)).to_pylist(), rest_rows(table)[rows]
    named = [
        " / ".join(
            labels.get(f"{key}={value}", str(value)) for key, value in row.items() if not isinstance(value, bool)
        )
        for row in some
    ]
    return [f"{', '.join('the rest of ' * bool(r) + name for name, r in zip(named, rests))} ({table.name})"]


def followed(release: Release, *, renamed: bool = False) -> str:
    """Return the release whose noise a release carries in all its cells, and the part that it carries; else nothing.

    Where codes were renamed, only whoever brings both releases to the same codes may use it (``renamed``).
    """
    step, follows = release.published.step, release.published.follows
    if step is None or not follows or step.relisted or (step.renamed and not renamed):
        return ""
    drawn = [noise_read(each) for query in release.published.queries for each in query.statistics if each.noise]
    # With the variances of before, fits have the weights of before.
    same = all(getattr(each, "keeps_variance", False) for each in drawn)
    return f"{follows[0]} {float(step.carry)!r}" if same else ""
