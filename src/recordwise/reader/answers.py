"""Answers for readers: values with errors, covariances and the words to quote."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from recordwise.errors import ParameterError, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import number_text, share_decimals, share_text

if TYPE_CHECKING:
    import pyarrow as pa

    from recordwise.reader.derived import Ranks, Regression, Replicates

DRAWS = 2000
ROUNDING = 1e-9
MOST_NAMED = 8
"""Labels named in a note."""
SHARED_NOISE = "of a release that shares its noise with this one: one refines, carries or corrects the other"
CORNERS = (
    "Errors are not normal: the interval holds every quotient of the two intervals at {each} each, and so is right in at least "
    "{level} of cases."
)


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Answer:
    """One total or several, with standard errors, intervals and covariance."""

    question: str
    """What was asked, in words."""
    labels: tuple[str, ...]
    """What each value is about."""
    values: FloatArray
    sds: FloatArray
    lows: FloatArray
    highs: FloatArray
    covariance: FloatArray
    """The covariance of the errors of all values."""
    halves: FloatArray
    """What half a lattice step adds to the reach of each interval (T-HALFSTEP)."""
    confidence: float
    normal: bool
    """Whether errors are normal but for half a step; otherwise intervals are by the law of the error or from draws of it."""
    clipped: bool
    """Whether values and intervals are cut at 0."""
    sources: tuple[str, ...]
    """In words, which published numbers each of the first values is made of."""
    notes: tuple[str, ...]
    method: str
    of: str
    """Which statistic of which release."""
    release: Mapping[str, str]
    """Title, digest, privacy label and version, for the citation."""
    moments: bool = True
    """Whether values are unbiased with this covariance."""
    errors: Callable[..., FloatArray] | None = None
    """Simulated errors of all values, by number of draws, purpose and the standard deviation of what may be left out of each (by
    default nothing); None where they depend on the totals."""
    cells: int = 0
    """The noisy numbers that one draw of these errors takes, where that is known."""
    law: "Callable[[Any, Sequence[float]], Sequence[FloatArray] | None] | None" = None
    """Where errors are not normal: what those of weighted sums of the values stay within at several levels, if it is computed."""
    wides: FloatArray | None = None
    """Where errors are not normal: the reach of each interval at (1 + confidence)/2, for ratios."""
    codes: tuple[str, ...] = ()
    """The codes behind the labels, where a column was asked by."""
    left_out: tuple[str, ...] = ()
    """Regions with codes that no cell has."""
    percent: bool = False
    """Whether values are shares or growth rates, which are told in percent."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def value(self) -> float:
        """The value, where it is only one."""
        return float(self.values[self._only()])

    @property
    def sd(self) -> float:
        """Its standard error."""
        return float(self.sds[self._only()])

    @property
    def low(self) -> float:
        """The lower end of its interval."""
        return float(self.lows[self._only()])

    @property
    def high(self) -> float:
        """The upper end of its interval."""
        return float(self.highs[self._only()])

    @property
    def table(self) -> "pa.Table":
        """All values as Arrow: label, value, sd, low, high."""
        import pyarrow as pa

        ends = {"value": self.values, "sd": self.sds, "low": self.lows, "high": self.highs}
        return pa.table({"label": list(self.labels), **ends})

    def to_pandas(self) -> Any:
        """All values as a pandas frame."""
        return self.table.to_pandas()

    @property
    def citation(self) -> str:
        """Where the number is from: release, question, method, version."""
        return self.cited(self.method)

    def cited(self, method: str) -> str:
        """Return the citation of what a method made of these answers.

        Args:
            method: The method, in words.

        Returns:
            Release, question, method and version.
        """
        about = self.release
        return (
            f"{about['title']}, release {about['digest']} ({about['privacy_label']}). Question: {self.question}. "
            f"Method: {method}. recordwise {about['version']}."
        )

    @property
    def sentence(self) -> str:
        """The sentence to quote, for a single value; the first of several."""
        return self._sentence(0)

    def difference(self, first: str, second: str) -> "Answer":
        """Return the first value less the second, with their covariance.

        Args:
            first: The label of a value.
            second: The label of another.

        Returns:
            The difference.

        Raises:
            ParameterError: A label is unknown, or the intervals of the values are from draws.
        """
        one, other = self._pair(first, second)
        self.require_additive("differences")
        weights = np.zeros(len(self))
        weights[one] += 1
        weights[other] -= 1
        value, sd = weights @ self.values, np.sqrt(max(float(weights @ self.covariance @ weights), 0.0))
        reach = self._z * sd + self.halves[one] + self.halves[other]
        if not self.normal:
            reach = float(self._reaches(weights[None, :], f"{first}:{second}")[0][0])
        return self._derived(
            f"{first} less {second}",
            values=[value],
            sds=[sd],
            lows=[value - reach],
            highs=[value + reach],
            covariance=[[sd**2]],
        )

    def compare(self, first: str, second: str) -> str:
        """Return one sentence about which of two values is larger.

        Args:
            first: The label of a value.
            second: The label of another.

        Returns:
            The sentence, with the difference and its interval.
        """
        from recordwise.reader.derived import comparison

        return comparison(self, first, second)

    def rank(self) -> "Ranks":
        """Return confidence sets of the ranks of all values.

        Returns:
            For each value the ranks that it may have, alone and all at once.

        Raises:
            ParameterError: There is one value only, or errors depend on the totals.
        """
        from recordwise.reader.derived import ranks

        return ranks(self)

    def regress(self, covariates: "Mapping[str, Answer | Sequence[float]]", *, weights: Any = None) -> "Regression":
        """Return slopes of noisy covariates, corrected for their noise.

        Args:
            covariates: By name, answers to the same question of other statistics or releases, or exact numbers.
            weights: Positive weights that depend on no noisy number; by default all the same.

        Returns:
            Slopes with intervals, next to those of plain least squares.

        Raises:
            ParameterError: Values are cut or derived, errors are not independent, or covariates are mostly noise.
        """
        from recordwise.reader.derived import regress

        return regress(self, covariates, weights)

    def reliability(self) -> float:
        """Return the part of the values' spread that is not noise.

        For errors-in-variables regressions elsewhere: ``eivreg`` of Stata, ``eivtools`` of R.

        Returns:
            The reliability: 1 without noise, 0 or less if all is noise.
        """
        self.require_moments("reliabilities")
        count = len(self)
        added = float(np.trace(self.covariance) - np.sum(self.covariance) / count)
        return 1 - added / float(np.sum((self.values - np.mean(self.values)) ** 2))

    def replicates(self, count: int = 100) -> "Replicates":
        """Return the values with simulated errors, for any further computation.

        Args:
            count: The number of replicates.

        Returns:
            A table of them; its metadata has the formula.

        Raises:
            ParameterError: Values are cut or derived, or errors depend on the totals.
        """
        from recordwise.reader.derived import replicates

        return replicates(self, count)

    def ratio(self, first: str, second: str) -> "Answer":
        """Return the first value divided by the second, such as a share.

        The interval is Fieller's, with their covariance and half steps; where errors are not normal, it is that of the corners of
        two intervals (T-RATIO). The standard error is that of the linear approximation.

        Args:
            first: The label of a value.
            second: The label of another.

        Returns:
            The ratio.

        Raises:
            ParameterError: A label is unknown, or the second value is not clearly different from 0.
        """
        self._require_linear()
        top, bottom = (np.array([at]) for at in self._pair(first, second))
        found = _quotients(_side(self, top), _side(self, bottom), self.covariance[np.ix_(top, bottom)], self._kind())
        return self._derived(f"{first} divided by {second}", **found)._noted(self._kind())

    def share(self, first: str, of: str) -> "Answer":
        """Return the share of one value in another that contains it.

        Args:
            first: The label of a value.
            of: The label of the whole.

        Returns:
            The share, with the interval of a ratio.
        """
        return replace(self.ratio(first, of), labels=(f"{first} as a share of {of}",), percent=True)

    def shares(self, *, each: bool = False, of: str = "") -> "Answer":
        """Return all values but the last as shares of the last.

        Args:
            each: Whether the first half of the values are shares of the second half, one by one, instead.
            of: What they are shares of, in words.

        Returns:
            The shares, with the intervals of ratios. Those of a whole that is not clearly different from 0 are left out.
        """
        self._require_linear()
        count = len(self) // 2 if each else len(self) - 1
        parts, whole = np.arange(count), np.arange(count, 2 * count) if each else np.full(count, count)
        kind = self._kind()
        kept = self._clear(self.labels[:count], self._different(kind)[whole])
        parts, whole = parts[kept], whole[kept]
        found = _quotients(_side(self, parts), _side(self, whole), self.covariance[np.ix_(parts, whole)], kind)
        made = replace(
            self._derived(f"as a share of {of}" if of else "as a share", **found),
            labels=tuple(self.labels[at] for at in parts),
        )
        made = replace(made, percent=True, notes=(*self.notes, *self._unclear(self.labels[:count], kept)))
        return made._noted(kind)

    def per(self, other: "Answer") -> "Answer":
        """Return each value divided by that of another statistic or release.

        Such as pay per worker. The noise of both is independent.

        Args:
            other: The answers to the same question, with the same labels.

        Returns:
            The ratios; without those whose denominator is not clearly different from 0, which a note names.

        Raises:
            ParameterError: Labels differ, both are of the same statistic of one release, or no value of ``other`` is
                clearly different from 0.
        """
        self._require_independent(other)
        kind = self._kind(other)
        kept = self._clear(self.labels, other._different(kind))
        mine, theirs = (each._rows(kept) for each in (self, other))
        found = _quotients(_side(mine), _side(theirs), np.zeros_like(mine.covariance), kind)
        made = self._derived(f"divided by {other.question}", **found)
        made = replace(made, labels=mine.labels, notes=(*self.notes, *self._unclear(self.labels, kept)))
        return made._noted(kind)

    def _require_independent(self, other: "Answer") -> None:
        """Refuse other labels, and errors in common."""
        if self.labels != other.labels:
            raise ParameterError(parameter="other", problem="has other labels", advice="Ask both the same question.")
        if self.of == other.of:
            raise ParameterError(
                parameter="other",
                problem="is of the same statistic of the same release, so that errors are not independent",
                advice="Ask for both in one question and use ratio.",
            )
        if self.shares_noise(other):
            raise ParameterError(
                parameter="other", problem=f"is {SHARED_NOISE}", advice="Use the latest stage of each period."
            )
        for each in (self, other):
            each._require_linear()

    def shares_noise(self, other: "Answer") -> bool:
        """Return whether both are of releases that have noise in common, and not of one release."""
        shared = set(self.release["stages"].split()) & set(other.release["stages"].split())
        return bool(shared) and self.release["digest"] != other.release["digest"]

    def _carried(self, before: "Answer") -> float | None:
        """Return the part of an earlier answer's error that this one has; None where it does not follow it."""
        digest, _, carry = self.release.get("follows", "").partition(" ")
        same = self.labels == before.labels and self.of.partition(":")[2] == before.of.partition(":")[2]
        return float(carry) if digest and digest == before.release["digest"] and same else None

    def growth(self, before: "Answer") -> "Answer":
        """Return the growth since an earlier release, as a share.

        Args:
            before: The answers of the earlier release to the same question.

        Returns:
            The growth rates: 0.02 is 2 %.
        """
        return self.grown([before], [before.release["title"]])

    def grown(self, before: "Sequence[Answer]", names: Sequence[str]) -> "Answer":
        """Return the growth since each of several earlier answers.

        They have the errors of the later one in common, which their covariance says.

        Args:
            before: The answers of earlier releases to the same question.
            names: What the earlier releases are called, such as their years.

        Returns:
            The growth rates, first all labels since the first of them.
        """
        for each in before:
            if self._carried(each) is None:
                self._require_independent(each)
        kind = self._kind(*before)
        kept = self._clear(self.labels, np.all([each._different(kind) for each in before], axis=0))
        mine, earlier, times = self._rows(kept), [each._rows(kept) for each in before], len(before)
        now = _tiled(_side(mine), times)
        then = _joined([_side(each) for each in earlier])
        # Both fits have the same weights, so that errors are carried as answers are (T-SERIES).
        carried = [self._carried(each) or 0.0 for each in before]
        common = [part * np.tile(own.covariance, (times, 1)) for part, own in zip(carried, earlier)]
        found = _quotients(now, then, np.concatenate(common, axis=1), kind)
        ends = {name: each - 1 if name in ("values", "lows", "highs") else each for name, each in found.items()}
        labels = (
            mine.labels if times == 1 else tuple(f"{label}, since {name}" for name in names for label in mine.labels)
        )
        made = replace(self._derived(f"growth since {', '.join(names)}", **ends), labels=labels, percent=True)
        return replace(made, notes=(*self.notes, *self._unclear(self.labels, kept)))._noted(kind)

    def only(self, labels: Sequence[str]) -> "Answer":
        """Return some of the values.

        Args:
            labels: Their labels.

        Returns:
            The answers with these labels, in this order.
        """
        place = {label: at for at, label in enumerate(self.labels)}
        return self._rows(np.array([place[label] for label in labels], np.int64))

    def _rows(self, places: Any) -> "Answer":
        """Return the values at some places."""
        self._require_linear()
        if len(places) == len(self) and np.array_equal(places, np.arange(len(self))):
            return self
        errors, law, chosen = self.errors, self.law, np.eye(len(self))[places]
        return replace(
            self,
            labels=tuple(self.labels[at] for at in places),
            codes=tuple(self.codes[at] for at in places) if self.codes else (),
            **{name: getattr(self, name)[places] for name in ("values", "sds", "lows", "highs", "halves")},
            covariance=self.covariance[np.ix_(places, places)],
            sources=tuple(self.sources[at] for at in places if at < len(self.sources)),
            errors=None if errors is None else lambda *asked: errors(*asked)[:, places],
            law=None if law is None else lambda sums, levels: law(sums @ chosen, levels),
            wides=None if self.wides is None else self.wides[places],
        )

    def _kind(self, *others: "Answer") -> "Quotients":
        """Return how intervals of ratios are made: Fieller's sets, or corners if any errors are not normal."""
        corners = not all(each.normal for each in (self, *others))
        if corners and any(each.confidence != self.confidence for each in others):
            raise ParameterError(
                parameter="other", problem="has another confidence", advice="Ask both with the same confidence."
            )
        return Quotients(self._z, self.confidence if corners else None)

    def _noted(self, kind: "Quotients") -> "Answer":
        """Say how ratio intervals were made, where not by Fieller's sets."""
        if kind.corners is None:
            return self
        decimals = share_decimals((1 - kind.corners) / 2)
        said = CORNERS.format(each=share_text((1 + kind.corners) / 2, decimals), level=share_text(kind.corners))
        return replace(self, notes=(*self.notes, said), method=f"{self.method}, intervals by corners")

    def _different(self, kind: "Quotients") -> Any:
        """Which values are clearly different from 0."""
        return kind.different(_side(self))

    def wide_reach(self) -> FloatArray:
        """Return the reach of each interval at (1 + confidence)/2.

        Returns:
            Of normal errors by formula, of others as drawn.
        """
        if self.wides is not None:
            return self.wides
        return NormalDist().inv_cdf((3 + self.confidence) / 4) * self.sds + self.halves

    @staticmethod
    def _clear(labels: Sequence[str], different: Any) -> Any:
        """Return the places of clear denominators; refuse if there is none."""
        kept = np.flatnonzero(different)
        if not len(kept):
            raise _unclear_error(len(labels))
        return kept

    @staticmethod
    def _unclear(labels: Sequence[str], kept: Any) -> tuple[str, ...]:
        """Say which ratios are left out."""
        gone = [label for at, label in enumerate(labels) if at not in set(kept.tolist())]
        if not gone:
            return ()
        named = ", ".join(gone[:MOST_NAMED]) + (" ..." if len(gone) > MOST_NAMED else "")
        return (f"Left out, as the denominator is not clearly different from 0: {len(gone)} ({named}).",)

    def combined(self, weights: FloatArray, labels: Sequence[str]) -> "Answer":
        """Return weighted sums of the values.

        Args:
            weights: A row for each sum.
            labels: What the sums are called.

        Returns:
            The sums with their covariance.

        Raises:
            ParameterError: Values are cut or derived, or errors grow with the total.
        """
        self._require_linear()
        covariance, halves = weights @ self.covariance @ weights.T, np.abs(weights) @ self.halves
        values, sds = weights @ self.values, np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        reach, errors, law, wides = self._z * sds + halves, self.errors, self.law, None
        if not self.normal:
            reach, wides = self._reaches(weights, "combined")
        return replace(
            self,
            labels=tuple(labels),
            codes=(),
            values=values,
            sds=sds,
            lows=values - reach,
            highs=values + reach,
            covariance=covariance,
            halves=halves,
            sources=("the totals and their covariance",),
            errors=None if errors is None else lambda draws, purpose, *_: errors(draws, purpose) @ weights.T,
            law=None if law is None else lambda sums, levels: law(sums @ weights, levels),
            wides=wides,
        )

    @property
    def _z(self) -> float:
        return NormalDist().inv_cdf((1 + self.confidence) / 2)

    def require_moments(self, what: str) -> None:
        """Refuse values that are cut, derived, or without a known variance.

        Args:
            what: What is not computed of them.
        """
        if self.clipped or not self.moments:
            raise ParameterError(
                parameter="answer",
                problem=f"has values that are cut, derived or fitted under a transform, of which no {what} are computed",
                advice="Ask for totals without nonnegative; under transforms without complete.",
            )

    def require_additive(self, what: str) -> None:
        """Refuse values whose errors depend on the totals, or that are cut.

        Args:
            what: What is not computed of them.
        """
        if self.clipped or self.errors is None:
            raise ParameterError(
                parameter="answer",
                problem=f"has values that are cut or derived, or errors that grow with the total, of which no {what} are computed",
                advice="Ask for totals of statistics with additive noise, without nonnegative.",
            )

    def _reaches(self, weights: FloatArray, purpose: str) -> Sequence[FloatArray]:
        """Return what errors of weighted sums stay within, at the confidence and at (1 + confidence)/2: by law, or as drawn."""
        from recordwise.postprocess.linear import rank_of

        levels = (self.confidence, (1 + self.confidence) / 2)
        if self.law is not None and (found := self.law(weights, levels)) is not None:
            return found
        assert self.errors is not None
        one, other = (rank_of(DRAWS, level) - 1 for level in levels)
        drawn = np.partition(np.abs(self.errors(DRAWS, purpose) @ weights.T), (one, other), axis=0) * (1 + ROUNDING)
        return drawn[one], drawn[other]

    def _require_linear(self) -> None:
        if self.clipped or not (self.normal or self.wides is not None):
            raise ParameterError(
                parameter="answer",
                problem="has values that are cut or derived, or errors that grow with the total, of which no ratio is taken",
                advice="Ask for totals of statistics with additive noise, without nonnegative.",
            )

    def _pair(self, first: str, second: str) -> tuple[int, int]:
        """Return the places of two labels, or of their codes."""
        places = {each: at for names in (self.codes, self.labels) for at, each in enumerate(names)}
        for label in (first, second):
            if label not in places:
                some = ", ".join(self.labels[:MOST_NAMED])
                raise ParameterError(
                    parameter="label", problem=f"is not among the answers: {label!r}", advice=f"They are {some}."
                )
        return places[first], places[second]

    def _derived(self, words: str, **columns: Any) -> "Answer":
        """Return what was computed from these answers."""
        arrays: dict[str, Any] = {name: np.asarray(each, np.float64) for name, each in columns.items()}
        question = f"{self.question}: {words}"
        halves, sources = np.zeros(len(arrays["values"])), ("the totals and their covariance",)
        made = replace(self, question=question, labels=(words,), normal=False, halves=halves, sources=sources)
        made = replace(made, moments=False, errors=None, law=None, wides=None)
        return replace(made, method=f"{self.method}; derived with covariances", **arrays)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        columns = (self.labels, self.values, self.sds, self.lows, self.highs)
        rows = [
            {"label": str(label), "value": float(v), "sd": float(s), "low": float(low), "high": float(high)}
            for label, v, s, low, high in zip(*columns)
        ]
        return {
            "question": self.question,
            "confidence": self.confidence,
            "answers": rows,
            "covariance": self.covariance.tolist(),
            "sources": list(self.sources),
            "notes": list(self.notes),
            "sentence": self.sentence,
            "citation": self.citation,
            "release": dict(self.release),
        }

    @property
    def texts(self) -> list[tuple[str, str, str, str]]:
        """Value, standard error, low and high of each answer, as printed."""
        if not self.percent:
            return [
                tuple(number_text(float(each)) for each in row)  # type: ignore[misc]
                for row in zip(self.values, self.sds, self.lows, self.highs)
            ]
        # As many decimals as the smallest error asks for.
        decimals = share_decimals(float(np.min(self.sds, initial=1.0)))
        return [
            tuple(share_text(float(each), decimals) for each in row)  # type: ignore[misc]
            for row in zip(self.values, self.sds, self.lows, self.highs)
        ]

    def _sentence(self, at: int) -> str:
        what = self.question if len(self) == 1 else f"{self.question}: {self.labels[at]}"
        value, sd, low, high = self.texts[at]
        marked = "" if self.release["private"] else f" ({self.release['privacy_label']})"
        return (
            f"{what[:1].upper()}{what[1:]}: {value}{marked}, with a standard error of {sd} from noise "
            f"({share_text(self.confidence)} interval: {low} to {high})."
        )

    def _only(self) -> int:
        if len(self) != 1:
            raise ParameterError(
                parameter="value", problem=f"is one of {len(self)}", advice="Use values, sds, lows and highs, or table."
            )
        return 0

    def __repr__(self) -> str:
        if len(self) == 1:
            return "\n".join([self.sentence, *(f"From {each}." for each in self.sources), *self.notes])
        return f"<{len(self)} answers: {self.question}>"

    def _repr_html_(self) -> str:
        from recordwise.policy.render.html import element, preview_table

        rows = [[label, *row] for label, row in zip(self.labels, self.texts)]
        shown = preview_table(("", "value", "standard error", "low", "high"), rows)
        notes = [element("p", each) for each in (*self.notes, self.citation)]
        return element("div", element("p", element("b", self.question)), shown, *notes)


DOUBLINGS, HALVINGS = 200, 120


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Numerators or denominators of ratios."""

    values: FloatArray
    covariance: FloatArray
    halves: FloatArray
    wides: FloatArray
    """The reach of each at (1 + confidence)/2."""


def _side(answer: Answer, places: Any = None) -> Side:
    """Return some values of an answer, or all."""
    at = np.arange(len(answer)) if places is None else places
    return Side(answer.values[at], answer.covariance[np.ix_(at, at)], answer.halves[at], answer.wide_reach()[at])


def _tiled(side: Side, times: int) -> Side:
    """Return the same values several times."""
    values, halves, wides = (np.tile(each, times) for each in (side.values, side.halves, side.wides))
    return Side(values, np.tile(side.covariance, (times, times)), halves, wides)


def _joined(sides: Sequence[Side]) -> Side:
    """Return independent values one after the other."""
    columns = ([each.values, each.halves, each.wides] for each in sides)
    values, halves, wides = (np.concatenate(each) for each in zip(*columns))
    return Side(values, _blocks([each.covariance for each in sides]), halves, wides)


@dataclass(frozen=True, slots=True)
class Quotients:
    """How intervals of ratios are made."""

    z: float
    """The normal quantile of Fieller's sets."""
    corners: float | None
    """Where errors are not normal: the confidence, with intervals by corners (T-RATIO)."""

    def different(self, side: Side) -> Any:
        """Which values are clearly different from 0."""
        reach = side.wides if self.corners is not None else self.z * np.sqrt(np.diagonal(side.covariance)) + side.halves
        return np.abs(side.values) > reach

    def ends(self, top: Side, bottom: Side, cross: FloatArray) -> list[FloatArray]:
        """Return the ends of the intervals."""
        if self.corners is None:
            return _fieller(top, bottom, cross, self.z)
        # A quotient is monotone in both, as no interval of a denominator holds 0.
        signs = ((one, other) for one in (-1, 1) for other in (-1, 1))
        found = [(top.values + one * top.wides) / (bottom.values + other * bottom.wides) for one, other in signs]
        return [np.min(found, axis=0), np.max(found, axis=0)]


def _unclear_error(count: int) -> ParameterError:
    problem = "has a denominator that is" if count == 1 else "has denominators all of which are"
    return ParameterError(
        parameter="ratio",
        problem=f"{problem} not clearly different from 0",
        advice="Take larger regions, or a difference.",
    )


def _blocks(matrices: Sequence[FloatArray]) -> FloatArray:
    """Return matrices along a diagonal."""
    size = sum(map(len, matrices))
    found, start = np.zeros((size, size)), 0
    for each in matrices:
        found[start : start + len(each), start : start + len(each)] = each
        start += len(each)
    return found


def _quotients(top: Side, bottom: Side, cross: FloatArray, kind: Quotients) -> dict[str, Any]:
    """Return ratios with their intervals, errors and covariance."""
    if not np.all(kind.different(bottom)):
        raise _unclear_error(1)
    tops, bottoms = top.values, bottom.values
    values, ends = tops / bottoms, kind.ends(top, bottom, cross)
    # The linear approximation: the errors of top / bottom are those of (top - r bottom) / bottom.
    covariance = (
        top.covariance - values[:, None] * cross.T - cross * values + np.outer(values, values) * bottom.covariance
    )
    covariance = covariance / np.outer(bottoms, bottoms)
    sds = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    return {"values": values, "sds": sds, "lows": ends[0], "highs": ends[1], "covariance": covariance}


def _fieller(top: Side, bottom: Side, cross: FloatArray, z: float) -> list[FloatArray]:
    """Return the ends of Fieller's sets.

    The ratios r with top - r bottom within its reach: z standard errors of it and its half steps, convex in r. A set
    is an interval where the bottom is further from 0 than its own reach; otherwise it is refused.
    """
    tops, bottoms, top_half, bottom_half = top.values, bottom.values, top.halves, bottom.halves
    own, other, both = (np.diagonal(each) for each in (top.covariance, bottom.covariance, cross))

    def error(r: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(np.maximum(own - 2 * r * both + r**2 * other, 0.0)))

    def outside(r: FloatArray) -> Any:
        return np.abs(tops - r * bottoms) > z * error(r) + top_half + np.abs(r) * bottom_half

    values = tops / bottoms
    ends = []
    for sign in (-1.0, 1.0):
        far = np.maximum(error(values) / np.abs(bottoms), np.finfo(np.float64).tiny)
        for _ in range(DOUBLINGS):
            if np.all(beyond := outside(values + sign * far)):
                break
            far = np.where(beyond, far, 2 * far)
        near = np.zeros(len(tops))
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            beyond = outside(values + sign * middle)
            near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
        ends.append(values + sign * far)
    return ends
