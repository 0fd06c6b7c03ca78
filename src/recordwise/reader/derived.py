"""What follows from answers: ranks, regressions with noisy columns, and replicates.

Everything is computed from published numbers and the public noise laws; errors that are simulated come from a generator that is
seeded by the release's digest and has nothing to do with that of the release.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Integral
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.errors import OutputError, ParameterError, expect_kind
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import digits_text, number_text, share_text
from recordwise.plan.keys.codes import code_pairs
from recordwise.postprocess.linear import rank_of
from recordwise.reader.answers import SHARED_NOISE, Answer
from recordwise.reader.asking import followed
from recordwise.reader.questions import MOST_CODES, Regions
from recordwise.release.change import read_crosswalk, typed_side
from recordwise.release.release import Release
from recordwise.release.spread import NORMAL, NORMAL_STEPS, draws_for, public_seed

if TYPE_CHECKING:
    from recordwise.reader.reading import ReaderRelease

# Ranks: pairs of values whose difference is larger than noise makes any difference (docs/theory/fits.md, T-RANK).


DRAWS = 2000
MOST_PAIRED = 400
"""Up to this many values all pairs are looked at; beyond, their simultaneous intervals (Sidak)."""
MOST_DRAWN, LEAST_DRAWS = 20_000_000, 500
"""Noisy numbers that are drawn, unless these are fewer draws: the order statistic of any number of draws holds (T-FITVAR)."""
LEFT_OUT, WIDER = 1e-6, 1e-4
"""What may be missing in a simulated error as a part of the smallest error of a pair, and by what quantiles are larger for it."""
LEAST = 2
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Ranks:
    """Confidence sets of ranks; the largest value has rank 1."""

    answer: Answer
    best: Any
    """The best rank of each value, at the confidence for this value alone."""
    worst: Any
    all_best: Any
    """The best rank of each value, at the confidence for all of them at once."""
    all_worst: Any
    method: str

    @property
    def labels(self) -> tuple[str, ...]:
        """What is ranked."""
        return self.answer.labels

    @property
    def table(self) -> pa.Table:
        """All ranks as Arrow, the largest value first."""
        order = np.argsort(-self.answer.values, kind="stable")
        columns = {"best": self.best, "worst": self.worst, "all_best": self.all_best, "all_worst": self.all_worst}
        ranked = {name: np.asarray(each)[order] for name, each in columns.items()}
        labels, values = [self.labels[at] for at in order], self.answer.values[order]
        return pa.table({"label": labels, "value": values, "rank": np.arange(1, len(order) + 1), **ranked})

    def top(self, count: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return which are for certain among the largest, and which possibly.

        Both at once for all values, at the confidence of the answer.

        Args:
            count: How many are the largest, such as 10.

        Returns:
            The labels that are for certain among them, and those that may be.
        """
        expect_kind(count, Integral, parameter="count", wanted="a whole number")
        certain, possible = self.all_worst <= count, self.all_best <= count
        return (
            tuple(label for label, each in zip(self.labels, certain) if each),
            tuple(label for label, each in zip(self.labels, possible) if each),
        )

    def sentence(self, count: int = 10) -> str:
        """Return the sentence to quote.

        Args:
            count: How many are the largest.

        Returns:
            The sentence.
        """
        expect_kind(count, Integral, parameter="count", wanted="a whole number of at least 1")
        if count < 1:
            raise ParameterError(parameter="count", problem="must be a whole number of at least 1")
        certain, possible = (len(each) for each in self.top(count))
        what = self.answer.question
        return (
            f"{what[:1].upper()}{what[1:]}: for certain among the top {count}: {certain}; possibly: {possible} "
            f"(all at once with {share_text(self.answer.confidence)} confidence)."
        )

    @property
    def citation(self) -> str:
        """Where the ranks are from."""
        return self.answer.cited(self.method)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "question": self.answer.question,
            "confidence": self.answer.confidence,
            "ranks": self.table.to_pylist(),
            "sentence": self.sentence(),
            "citation": self.citation,
        }

    def __repr__(self) -> str:
        return self.sentence()

    def _repr_html_(self) -> str:
        rows = [
            [row["label"], number_text(row["value"]), *(f"{row[low]} to {row[high]}" for low, high in RANK_SETS)]
            for row in self.table.to_pylist()
        ]
        return _html(
            self.sentence(), ("", "value", "rank, this one alone", "rank, all at once"), rows, (self.citation,)
        )


RANK_SETS = (("best", "worst"), ("all_best", "all_worst"))


def _html(heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Return a table for notebooks, with text above and below it."""
    from recordwise.policy.render.html import element, preview_table

    below = [element("p", each) for each in notes]
    return element("div", element("p", element("b", heading)), preview_table(tuple(columns), rows), *below)


def ranks(answer: Answer) -> Ranks:
    """Return confidence sets of the ranks of all values."""
    answer.require_additive("ranks")
    if len(answer) < LEAST:
        raise ParameterError(parameter="rank", problem="needs at least two values", advice="Ask with by or regions.")
    if len(answer) > MOST_PAIRED and answer.normal:
        best, worst = _by_intervals(answer)
        how = "ranks by simultaneous intervals (Sidak)"
        return Ranks(answer=answer, best=best, worst=worst, all_best=best, all_worst=worst, method=how)
    single, together, spread = _quantiles(answer)
    halves = answer.halves[:, None] + answer.halves if answer.normal else 0.0
    less = answer.values[:, None] - answer.values

    def sets(reach: FloatArray) -> tuple[Any, Any]:
        above, below = np.sum(-less > reach, axis=1), np.sum(less > reach, axis=1)
        return 1 + above, len(answer) - below

    best, worst = sets(single[:, None] * spread + halves)
    all_best, all_worst = sets(together * spread + halves)
    how = "ranks by all pairs of values, the largest simulated error of a pair"
    return Ranks(answer=answer, best=best, worst=worst, all_best=all_best, all_worst=all_worst, method=how)


def _quantiles(answer: Answer) -> tuple[FloatArray, float, FloatArray]:
    """Return bounds on errors of pairs, in standard deviations.

    For the pairs of each value alone, for all pairs, and these standard deviations.
    """
    own = np.diagonal(answer.covariance)
    squared = own[:, None] + own - 2 * answer.covariance
    least = ROUNDING * float(np.max(own))
    inverse = np.divide(1.0, np.sqrt(np.maximum(squared, 0.0)), out=np.zeros_like(squared), where=squared > least)
    errors = _normal_errors(answer) if answer.normal else _drawn_errors(answer, float(np.max(inverse)))
    by_value = _largest_of_pairs(errors, inverse)
    place, more = rank_of(len(errors), answer.confidence) - 1, 1 + (ROUNDING if answer.normal else WIDER)
    single = np.partition(by_value, place, axis=0)[place]
    together = np.partition(np.max(by_value, axis=1), place)[place]
    return single * more, float(together) * more, np.sqrt(np.maximum(squared, 0.0))


def _largest_of_pairs(errors: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return each value's largest scaled difference from another, by draw."""
    by_value = np.ascontiguousarray(errors.T)
    found = np.zeros_like(by_value)
    for place, own in enumerate(by_value[:-1]):
        pairs = by_value[place + 1 :] - own
        pairs *= inverse[place, place + 1 :, None]
        np.abs(pairs, out=pairs)
        np.maximum(found[place], np.max(pairs, axis=0), out=found[place])
        np.maximum(found[place + 1 :], pairs, out=found[place + 1 :])
    return found.T


def _normal_errors(answer: Answer) -> FloatArray:
    """Draw normal errors with the covariance of the answers."""
    values, vectors = np.linalg.eigh(answer.covariance)
    source = public_seed(answer.of, answer.question, "rank")
    drawn = NORMAL.draw(DRAWS * len(answer), source).values.astype(np.float64).reshape(DRAWS, len(answer))
    return np.asarray((drawn / NORMAL_STEPS * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _drawn_errors(answer: Answer, inverse: float) -> FloatArray:
    """Draw errors through the estimate; ``inverse`` is of the least deviation."""
    assert answer.errors is not None
    fewer = max(LEAST_DRAWS, MOST_DRAWN // max(answer.cells, 1), draws_for(answer.cells, answer.confidence, None))
    return answer.errors(min(DRAWS, fewer), "rank", LEFT_OUT / inverse if inverse > 0 else 0.0)


def _by_intervals(answer: Answer) -> tuple[Any, Any]:
    """Return rank sets from intervals that hold all at once."""
    level = answer.confidence ** (1 / len(answer))
    reach = NormalDist().inv_cdf((1 + level) / 2) * answer.sds + answer.halves
    lows, highs = answer.values - reach, answer.values + reach
    above = len(answer) - np.searchsorted(np.sort(lows), highs, side="right")
    below = np.searchsorted(np.sort(highs), lows, side="left")
    return 1 + above, len(answer) - below


# Regression with columns whose error variances are known (docs/theory/fits.md, T-EIV).


SAFE = 3.0
"""What is left of a column's spread without noise must be this many times the error of that number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Regression:
    """Slopes of noisy columns, corrected for their noise."""

    response: Answer
    names: tuple[str, ...]
    slopes: FloatArray
    """The corrected slopes; NaN where the noise leaves no point, only a set."""
    sds: FloatArray
    lows: FloatArray
    highs: FloatArray
    """Both ends of the confidence set; infinite if it is not bounded."""
    intercept: float
    naive: FloatArray
    """Least squares as if there were no noise, which is biased."""
    reliabilities: FloatArray
    """The part of each column's spread that is not noise."""
    notes: tuple[str, ...]

    @property
    def table(self) -> pa.Table:
        """A row for each covariate, as Arrow."""
        columns = {"slope": self.slopes, "sd": self.sds, "low": self.lows, "high": self.highs, "naive": self.naive}
        return pa.table({"covariate": list(self.names), **columns, "reliability": self.reliabilities})

    @property
    def sentence(self) -> str:
        """The sentence to quote, for the first covariate."""
        slope, sd, low, high, naive = (
            digits_text(float(each[0]), 4) for each in (self.slopes, self.sds, self.lows, self.highs, self.naive)
        )
        level = share_text(self.response.confidence)
        if np.isnan(self.slopes[0]):
            return f"Slope of {self.names[0]}: too much noise for a number ({level} set: {low} to {high})."
        return (
            f"Slope of {self.names[0]}: {slope}, standard error {sd} ({level} interval: {low} to {high}; "
            f"without the correction {naive})."
        )

    @property
    def citation(self) -> str:
        """Where the slopes are from."""
        on = ", ".join(self.names)
        return self.response.cited(f"least squares on {on}, corrected for known error variances (Fuller 1987)")

    def _repr_html_(self) -> str:
        columns = (self.slopes, self.sds, self.lows, self.highs, self.naive, self.reliabilities)
        rows = [[name, *(digits_text(float(each), 4) for each in row)] for name, *row in zip(self.names, *columns)]
        heading = ("", "slope", "standard error", "low", "high", "without the correction", "reliability")
        return _html(self.sentence, heading, rows, (*self.notes, self.citation))

    def reliability_text(self) -> str:
        """Return the reliabilities as lines for Stata and R.

        Returns:
            A line for ``eivreg`` of Stata and one for ``eivtools`` of R.
        """
        pairs = [(name, digits_text(float(each), 6)) for name, each in zip(self.names, self.reliabilities)]
        stata = " ".join(f"{name} {value}" for name, value in pairs)
        listed = ", ".join(f"{name} = {value}" for name, value in pairs)
        names = " ".join(self.names)
        return (
            f"Stata: eivreg y {names}, reliab({stata})\n"
            f"R: eivtools::eivreg(y ~ {' + '.join(self.names)}, data, reliability = c({listed}))"
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values; what is not finite is null."""
        rows = [
            {name: value if not isinstance(value, float) or np.isfinite(value) else None for name, value in row.items()}
            for row in self.table.to_pylist()
        ]
        return {
            "question": self.response.question,
            "confidence": self.response.confidence,
            "slopes": rows,
            "intercept": self.intercept if np.isfinite(self.intercept) else None,
            "notes": list(self.notes),
            "sentence": self.sentence,
            "citation": self.citation,
        }

    def __repr__(self) -> str:
        return "\n".join([self.sentence, *self.notes])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noisy:
    """Centered columns with weights and the covariances of their errors."""

    columns: FloatArray
    response: FloatArray
    weights: FloatArray
    column_errors: FloatArray
    """A matrix for each column."""
    response_errors: FloatArray

    @property
    def added(self) -> FloatArray:
        """What noise adds to the spread of each column, on average."""
        total = float(np.sum(self.weights))
        own = np.einsum("kii,i->k", self.column_errors, self.weights)
        return np.asarray(own - np.einsum("i,kij,j->k", self.weights, self.column_errors, self.weights) / total)

    @property
    def spread(self) -> FloatArray:
        """The weighted products of the columns, with their noise."""
        return np.asarray(self.columns.T @ (self.weights[:, None] * self.columns))

    @property
    def products(self) -> FloatArray:
        """The weighted products of columns and response."""
        return np.asarray(self.columns.T @ (self.weights * self.response))

    def uncertain(self) -> FloatArray:
        """The standard error, from noise, of each column's spread without noise."""
        scaled = self.weights[:, None] * self.column_errors * self.weights
        linear = np.einsum("ik,kij,jk->k", self.columns, scaled, self.columns)
        twice = np.einsum(
            "kij,kji->k", self.weights[:, None] * self.column_errors, self.weights[:, None] * self.column_errors
        )
        return np.asarray(np.sqrt(np.maximum(4 * linear - 2 * twice, 0.0)))

    def scores(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the variance of the sum of scores of one column as a quadratic in the slope.

        With errors that differ cells share, as those of fitted numbers do; what they would take away counts as 0 where the
        variance would be negative at some slope.
        """
        x, w, errors = self.columns[:, 0], self.weights, self.column_errors[0]
        factor = len(x) / (len(x) - LEAST)
        first, second = w * x * self.response, w * (x**2 - np.diagonal(errors))
        pulled = w * x
        shared, answered = (_off_diagonal(each) for each in (errors, self.response_errors))
        own = np.array([np.sum(first**2), np.sum(second**2)]) * factor
        more = np.array([pulled @ answered @ pulled, pulled @ shared @ pulled + w @ shared**2 @ w])
        between = factor * np.sum(first * second)
        if np.any(own + more <= 0) or np.prod(own + more) < between**2:
            more = np.maximum(more, 0.0)
        none, two = own + more
        return none, between, two

    def rests_on_few(self, z: float) -> bool:
        """Return whether every slope would fit a single column without noise too, as few rows carry the weight."""
        own = self.weights * self.columns[:, 0] ** 2
        factor = len(own) / (len(own) - LEAST)
        return bool(np.sum(own) ** 2 <= z**2 * factor * np.sum(own**2))

    def sandwich(self, slopes: FloatArray) -> FloatArray:
        """The covariance of the sums of scores of several columns."""
        size, count = self.columns.shape
        rest = self.response - self.columns @ slopes
        own = np.diagonal(self.column_errors, axis1=1, axis2=2).T
        scores = self.weights[:, None] * (self.columns * rest[:, None] + own * slopes)
        pulled, shared = self.weights[:, None] * self.columns, _off_diagonal(self.column_errors)
        error = _off_diagonal(self.response_errors) + np.einsum("k,kij->ij", slopes**2, shared)
        product = np.einsum("i,kij,lij,j->kl", self.weights, shared, shared, self.weights)
        found = size / (size - count - 1) * scores.T @ scores
        more = pulled.T @ error @ pulled + np.outer(slopes, slopes) * product
        if np.linalg.eigvalsh(found + more)[0] <= 0:
            sizes, along = np.linalg.eigh(more)
            more = along * np.maximum(sizes, 0.0) @ along.T
        return np.asarray(found + more)


EVERY = "Every slope fits: the noise is larger than what it hides."
FEW_ROWS = (
    "A few rows carry nearly all the weight, too few to tell how far slopes vary: weight them less, or leave them out."
)


def _off_diagonal(matrix: FloatArray) -> FloatArray:
    return np.asarray(matrix * (1 - np.eye(matrix.shape[-1])))


def regress(response: Answer, covariates: Mapping[str, Any], weights: Sequence[float] | None = None) -> Regression:
    """Return slopes of noisy columns, corrected for their noise."""
    model = _noisy(response, covariates, weights)
    added, spread = model.added, model.spread
    kept = spread - np.diag(added)
    scales = np.sqrt(np.diagonal(spread))
    largest = [float(np.max(np.abs(_value(each)))) for each in covariates.values()]
    varies = bool(np.all(scales > ROUNDING * np.array(largest)))
    if not varies or np.linalg.matrix_rank(spread / np.outer(scales, scales), hermitian=True) < len(covariates):
        raise ParameterError(
            parameter="covariates", problem="do not vary, or one follows from the others", advice="Leave one out."
        )
    z = NormalDist().inv_cdf((1 + response.confidence) / 2)
    inverse = np.linalg.inv(kept) if np.linalg.eigvalsh(kept)[0] > 0 else None
    safe = inverse is not None and bool(np.all(1 / np.diagonal(inverse) > SAFE * model.uncertain()))
    if not safe and len(covariates) > 1:
        raise ParameterError(
            parameter="covariates",
            problem="are mostly noise, or nearly the same without it, so that no slope can be told",
            advice="Take larger regions or one covariate.",
        )
    naive, notes = np.asarray(np.linalg.solve(spread, model.products), np.float64), []
    if safe:
        assert inverse is not None
        slopes = inverse @ model.products
        sds = np.sqrt(np.diagonal(inverse @ model.sandwich(slopes) @ inverse))
    else:
        slopes, sds = np.full(len(naive), np.nan), np.full(len(naive), np.nan)
        notes.append("So much of the covariate is noise that no slope is stated, only the set of those that fit.")
    lows, highs = slopes - z * sds, slopes + z * sds
    if len(covariates) == 1:
        low, high, open_ended = _slope_set(model, float(kept[0, 0]), z)
        lows, highs = np.array([low]), np.array([high])
        if open_ended and model.rests_on_few(z):
            notes += ["Every slope fits." if open_ended == EVERY else open_ended, FEW_ROWS]
        else:
            notes += [open_ended] if open_ended else []
    means = [_mean(_value(each), model.weights) for each in covariates.values()]
    return Regression(
        response=response,
        names=tuple(covariates),
        slopes=slopes,
        sds=sds,
        lows=lows,
        highs=highs,
        intercept=float(_mean(response.values, model.weights) - slopes @ np.array(means)),
        naive=naive,
        reliabilities=1 - added / np.diagonal(spread),
        notes=tuple(notes),
    )


def _noisy(response: Answer, covariates: Mapping[str, Any], weights: Sequence[float] | None) -> Noisy:
    """Check and center columns."""
    size, count = len(response), len(covariates)
    if not count or size < count + 3:
        raise ParameterError(
            parameter="covariates", problem=f"must be at least one, and three fewer than the {size} values"
        )
    answers = [each for each in (response, *covariates.values()) if isinstance(each, Answer)]
    if len({each.of for each in answers}) < len(answers):
        raise ParameterError(
            parameter="covariates",
            problem="are of the same statistic of one release, so that their errors are not independent",
            advice="Take another statistic or another release.",
        )
    if any(one.shares_noise(other) for one, other in combinations(answers, 2)):
        raise ParameterError(
            parameter="covariates",
            problem=f"or the response are {SHARED_NOISE}",
            advice="Use the latest stage of each.",
        )
    for each in (response, *covariates.values()):
        if isinstance(each, Answer):
            each.require_moments("regressions")
            if each.labels != response.labels:
                raise ParameterError(
                    parameter="covariates", problem="have other labels", advice="Ask the same question."
                )
        elif len(each) != size:
            raise ParameterError(parameter="covariates", problem=f"must have {size} values")
        elif not np.all(np.isfinite(_value(each))):
            raise ParameterError(parameter="covariates", problem="must be finite numbers")
    given = np.ones(size) if weights is None else np.asarray(weights, np.float64)
    if given.shape != (size,) or not np.all(np.isfinite(given) & (given > 0)):
        raise ParameterError(parameter="weights", problem=f"must be {size} positive numbers")
    # Only their ratios count: the inverse of a variance in cents is as good as in millions.
    given = given / given.max()
    given = given / given.mean()
    none = np.zeros((size, size))
    columns = np.array([_value(each) for each in covariates.values()]).T
    return Noisy(
        columns=columns - _mean(columns, given),
        response=response.values - _mean(response.values, given),
        weights=given,
        column_errors=np.array([each.covariance if isinstance(each, Answer) else none for each in covariates.values()]),
        response_errors=response.covariance,
    )


def _value(column: Any) -> FloatArray:
    return np.asarray(column.values if isinstance(column, Answer) else column, np.float64)


def _mean(column: FloatArray, weights: FloatArray) -> Any:
    return weights @ column / np.sum(weights)


def _slope_set(model: Noisy, kept: float, z: float) -> tuple[float, float, str]:
    """Return the slopes b with |sum psi(b)| <= z sqrt(sum psi(b)^2), and a note if they have no end."""
    none, one, two = model.scores()
    product = float(model.products[0])
    squared, linear, constant = kept**2 - z**2 * two, kept * product - z**2 * one, product**2 - z**2 * none
    root = float(linear**2 - squared * constant)
    if squared > 0:
        # The corrected slope is always in the set, so that it has two ends.
        reach = np.sqrt(max(root, 0.0))
        return float((linear - reach) / squared), float((linear + reach) / squared), ""
    if root <= 0 or squared == 0:
        return -np.inf, np.inf, EVERY
    ends = sorted(float(linear + sign * np.sqrt(root)) / float(squared) for sign in (-1, 1))
    between = " and ".join(digits_text(each, 4) for each in ends)
    return -np.inf, np.inf, f"Every slope fits but those between {between}."


# Replicates: the published numbers with simulated errors, for the error of whatever is computed from them (T-REPLICATE).


FORMULA = (
    "Simulated errors: each replicate is the value plus errors drawn from the public noise law, with the covariance of the values. "
    "For a smooth function theta of the values: variance = mean over replicates of (theta_r - theta)^2, theta of the value column."
)
KEY = b"recordwise"
FEWEST, MOST = 20, 10_000
ENDINGS = (".parquet", ".pq", ".csv")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicates:
    """Values with simulated errors; ``formula`` says how they are used."""

    answer: Answer
    table: pa.Table
    """label, value, replicate_1, ..., with the formula and the citation in its metadata."""
    formula: str = FORMULA

    @property
    def citation(self) -> str:
        """Where the numbers are from."""
        return self.answer.cited(f"{self.answer.method}; simulated errors")

    def save(self, path: str | Path) -> Path:
        """Write Parquet or CSV, by the ending of its name.

        Inside a release it belongs into a folder of its own (``cbp-2026/replicates/emp.parquet``), as Parquet files
        next to release.json are its tables.

        Args:
            path: The file, which must not exist.

        Returns:
            The file.
        """
        import pyarrow.csv
        import pyarrow.parquet

        from recordwise.release.formats.csv import label_line, without_formulas

        expect_kind(path, (str, Path), parameter="path", wanted="the path of a new file")
        file = Path(path)
        if file.exists():
            raise ParameterError(parameter=f"the path {file}", problem="exists already", advice="Give a new name.")
        if file.suffix.lower() not in ENDINGS:
            raise ParameterError(
                parameter=f"the path {file}", problem="has no known ending", advice=f"Use {' or '.join(ENDINGS)}."
            )
        if (file.parent / "release.json").exists():
            raise ParameterError(
                parameter="path", problem="is among the tables of a release", advice="Give it a folder: replicates/."
            )
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix.lower() == ".csv":
                with file.open("wb") as target:
                    target.write(label_line(self.answer.release["privacy_label"]))
                    pyarrow.csv.write_csv(without_formulas(self.table), target)
            else:
                pyarrow.parquet.write_table(self.table, file)
        except OSError as error:
            raise OutputError(folder=str(file), problem=f"cannot be written ({error.strerror})") from None
        return file


def replicates(answer: Answer, count: int) -> Replicates:
    """Return the values with simulated errors."""
    answer.require_additive("replicates")
    expect_kind(count, Integral, parameter="count", wanted="a whole number")
    if count < FEWEST:
        raise ParameterError(parameter="count", problem=f"must be at least {FEWEST}")
    if count > MOST:
        raise ParameterError(parameter="count", problem=f"must be at most {MOST:,}")
    assert answer.errors is not None
    drawn = answer.values + answer.errors(count, "replicates")
    columns = {f"replicate_{number + 1}": row for number, row in enumerate(drawn)}
    made = Replicates(answer=answer, table=pa.table({"label": list(answer.labels), "value": answer.values, **columns}))
    about = {b"formula": FORMULA.encode(), b"citation": made.citation.encode(), KEY: b"simulated errors, not data"}
    return Replicates(answer=answer, table=made.table.replace_schema_metadata(about))


def comparison(answer: Answer, first: str, second: str) -> str:
    """Return one sentence about which of two values is larger."""
    less = answer.difference(first, second)
    value, low, high = (number_text(abs(each)) for each in (less.value, less.low, less.high))
    level = share_text(answer.confidence)
    if less.low > 0:
        return f"{first} is larger than {second}, by {value} ({level} interval: {low} to {high})."
    if less.high < 0:
        return f"{first} is smaller than {second}, by {value} ({level} interval: {high} to {low})."
    signed = [number_text(each) for each in (less.value, less.low, less.high)]
    return (
        f"Which of {first} and {second} is larger cannot be told: the difference is {signed[0]} "
        f"({level} interval: {signed[1]} to {signed[2]})."
    )


# Growth over years: releases whose units agree and whose codes are brought to what both have in common.


def growth(
    now: "ReaderRelease",
    before: "Sequence[ReaderRelease]",
    name: str,
    where: Any,
    regions: Any,
    crosswalk: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Answer:
    """Return the growth since each earlier release."""
    column = options["by"]
    made = None if regions is None else Regions.of(regions, column)
    column = column if made is None else made.column
    own = {} if where is not None else _renamed_since(now, before)
    if not crosswalk and column in own:
        crosswalk = {str(column): own[column]}
    pairs = read_crosswalk(crosswalk or {})
    if pairs.columns and set(pairs.columns) != {column}:
        raise ParameterError(parameter="crosswalk", problem="must be of the column of by or of the regions")
    for listed in (crosswalk or {}).values():
        _require_effect(str(column), code_pairs(listed), now, before)
    common = pairs.columns.get(str(column))
    later = now.total(name, where, regions=made, **options)
    _require_all(later, now)
    if common is not None and made is None:
        later = _merged(later, common[1])
    if own and (column not in own or _same_codes((crosswalk or {})[str(column)], own[column])):
        later = replace(later, release={**later.release, "follows": followed(now, renamed=True)})
    earlier, notes = [], list(later.notes)
    for each in before:
        _require_comparable(now, each, name)
        asked = made if made is None or common is None else _earlier_regions(made, common)
        found = each.total(name, where, regions=asked, **options)
        _require_all(found, each)
        earlier.append(found if common is None or made is not None else _merged(found, common[0]))
        notes += [f"The list {listed} changed since {_period(each)}." for listed in _changed_lists(now, each)]
    shared = [label for label in later.labels if all(label in each.labels for each in earlier)]
    for answer, release in zip((later, *earlier), (now, *before)):
        if gone := [label for label in answer.labels if label not in shared]:
            named = ", ".join(gone[:MOST_CODES])
            notes.append(f"Left out, as not every release has it: {len(gone)} of {_period(release)}: {named}.")
    if not shared:
        raise ParameterError(parameter="before", problem="has no code in common with this release")
    now_only = replace(later.only(shared), notes=tuple(notes))
    return now_only.grown([each.only(shared) for each in earlier], [_period(each) for each in before])


def _renamed_since(now: Release, before: Sequence[Release]) -> dict[str, list[tuple[Any, Any]]]:
    """Return the codes that were renamed since the release whose noise this one carries on, by column."""
    step, follows = now.published.step, now.published.follows
    if step is None or not any(follows[:1] == (each.digest,) for each in before):
        return {}
    pairs = {name: [each for each in codes.items() if each[1] is not None] for name, codes in step.renamed.items()}
    return {name: each for name, each in pairs.items() if each}


def _same_codes(given: Any, own: Sequence[tuple[Any, Any]]) -> bool:
    """Return whether a crosswalk is the one that noise was carried by."""
    pairs = given.items() if isinstance(given, Mapping) else given
    return {(str(old), str(new)) for old, new in pairs} == {(str(old), str(new)) for old, new in own}


def _period(release: Release) -> str:
    published = release.published.series.period or release.words.publication.period
    return published or release.words.publication.title or release.digest[:12]


def _changed_lists(now: Release, before: Release) -> list[str]:
    lists = [{name: each.table() for name, each in one.published.lists.lists.items()} for one in (now, before)]
    return [name for name, codes in lists[0].items() if name in lists[1] and not codes.equals(lists[1][name])]


def _require_comparable(now: Release, before: Release, name: str) -> None:
    """Refuse the same release, and other units."""
    if now.digest == before.digest:
        raise ParameterError(parameter="before", problem="is this release itself")
    for each in (name, f"sum_{name}", name.removeprefix("sum_")):
        units = [one.words.units.get(each) for one in (now, before)]
        if None not in units and units[0] != units[1]:
            raise ParameterError(
                parameter="before", problem=f"has another unit of '{each}': {units[1]}, not {units[0]}"
            )
    one, other = (_period(each) for each in (now, before))
    if one == other:
        raise ParameterError(
            parameter="before", problem=f"is of the same period, {one}", advice="A revision is not growth."
        )


def _require_effect(
    column: str, pairs: Sequence[tuple[Any, Any]], now: Release, before: "Sequence[ReaderRelease]"
) -> None:
    """Refuse a crosswalk of codes that no release has."""
    old, new = ([pair[at] for pair in pairs] for at in (0, 1))
    if not any(typed_side(each, column, codes)[1] for each, codes in ((now, new), *((each, old) for each in before))):
        raise ParameterError(
            parameter=f"crosswalk of '{column}'", problem="has no code that occurs in a column of this name"
        )


def _require_all(answer: Answer, release: Release) -> None:
    if answer.left_out:
        raise ParameterError(
            parameter="regions",
            problem=f"have codes without a cell in the release of {_period(release)}: {', '.join(answer.left_out[:MOST_CODES])}",
            advice="Give a crosswalk of the codes that changed.",
        )


def _earlier_regions(regions: Regions, common: Any) -> Regions:
    """Return regions of earlier codes that hold whole groups of codes."""
    before, now = ({str(code): text for code, text in side.items()} for side in common)
    listed: dict[str, list[tuple[str, float]]] = {}
    for code, region, share in zip(regions.codes, regions.regions, regions.shares):
        listed.setdefault(code, []).append((region, float(share)))
    rows = [(code, *pair) for code, pairs in listed.items() if code not in now for pair in pairs]
    for text in dict.fromkeys(now[code] for code in listed if code in now):
        found = {tuple(sorted(listed.get(code, ()))) for code, each in now.items() if each == text}
        if len(found) > 1:
            raise ParameterError(parameter="regions", problem=f"divide codes that were or became one: {text}")
        rows += [(code, *pair) for code, each in before.items() if each == text for pair in next(iter(found))]
    codes, names, shares = zip(*rows)
    return replace(regions, codes=codes, regions=names, shares=np.array(shares, np.float64))


def _merged(answer: Answer, common: Mapping[Any, str]) -> Answer:
    """Add up the values of codes that have a common code."""
    texts = {str(code): text for code, text in common.items()}
    labels = [texts.get(code, label) for code, label in zip(answer.codes, answer.labels)]
    names = list(dict.fromkeys(labels))
    weights = np.zeros((len(names), len(labels)))
    weights[[names.index(label) for label in labels], np.arange(len(labels))] = 1.0
    return answer.combined(weights, names)
