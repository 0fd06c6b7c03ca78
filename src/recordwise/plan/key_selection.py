"""Keys that are not listed in advance: selected privately from the data, or from a public domain."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from recordwise.errors import ParameterError, PlanError
from recordwise.exact.numbers import Number, fraction_text, positive, rational
from recordwise.exact.text import whole_text
from recordwise.mechanisms.key_selection import SelectionLaw, selection_sigma
from recordwise.plan.column_types import threshold_problems
from recordwise.plan.domains import AnyDomain, as_domain
from recordwise.plan.fields import Group
from recordwise.plan.schema import Schema, policy_measure
from recordwise.plan.splitting import Splitting, threshold_steps
from recordwise.plan.statistics import CountPieces, CountUnits
from recordwise.policy.constructors import By, selection
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

MOST_EMPTY_CELLS = 10_000_000
PiecesAt: TypeAlias = Mapping[str, Number | By]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What both kinds of selection share: the loss of one piece, and what counts as a piece."""

    rho: Fraction
    splitting: Splitting | None
    """None if whole records are counted, each as one piece."""

    @property
    def law(self) -> SelectionLaw:
        raise NotImplementedError

    @property
    def alias(self) -> str:
        """The name of the noisy counts used for the selection; its ending says so."""
        return "rows_selected_on" if self.splitting is None else "pieces_selected_on"

    def total(self) -> CountUnits | CountPieces:
        """The total that an engine counts in each cell."""
        return CountUnits() if self.splitting is None else CountPieces(self.splitting)

    def piece_thresholds(self, schema: Schema) -> dict[Measure | str, Fraction | By]:
        """The thresholds in the policy language."""
        found: dict[Measure | str, Fraction | By] = {}
        for name, at in self.splitting.thresholds if self.splitting else ():
            found[policy_measure(name, schema)] = at
        return found

    def piece_problems(self, schema: Schema) -> list[str]:
        """The problems of the thresholds, found before any record is read."""
        problems = threshold_problems(dict(self.splitting.thresholds), schema) if self.splitting else []
        for name, at in self.splitting.thresholds if self.splitting else ():
            if isinstance(at, By) and at.default is None:
                problems.append(
                    f"the thresholds of '{name}' by '{at.column.name}' need a default, because keys are selected on its pieces"
                )
            numbers = [number for _, number in at.values] if isinstance(at, By) else [at]
            for number in numbers + ([at.default] if isinstance(at, By) and at.default else []):
                try:
                    threshold_steps(number, name, schema)
                except PlanError as error:
                    problems += error.problems
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectKeys(Selection):
    """Keys found in the data: a key is published if and only if its noisy number of pieces reaches a threshold (T-SELECT)."""

    delta: Fraction
    """The largest probability that a key appears because of a single piece."""

    @classmethod
    def of(cls, *, rho: Number, delta: Number, pieces: PiecesAt | None) -> "SelectKeys":
        built = cls(
            rho=positive(rho, parameter="rho"),
            delta=rational(delta, parameter="delta"),
            splitting=None if pieces is None else Splitting.of(pieces),
        )
        _ = built.law
        return built

    @property
    def law(self) -> SelectionLaw:
        return SelectionLaw.for_delta(rho=self.rho, delta=self.delta)

    def covers(self, groups: tuple[Group, ...]) -> bool:
        """Any group can be selected from the data."""
        return True

    def shared(self, share: Fraction) -> "SelectKeys":
        """The same selection with a level's share of the budget, applied to both rho and delta."""
        return replace(self, rho=self.rho * share, delta=self.delta * share)

    def policy(self, schema: Schema) -> Policy:
        law = self.law
        return selection(law.sigma, self.piece_thresholds(schema), law.deltas())

    def problems(self, groups: tuple[Group, ...], schema: Schema) -> list[str]:
        return self.piece_problems(schema)

    def to_json(self) -> dict[str, Any]:
        return {"selected": "from the data", "delta": fraction_text(self.delta), **described(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectFrom(Selection):
    """Keys selected from a public domain: every cell gets noise, even an empty one, so there is no delta (T-EMPTY)."""

    threshold: int
    domain: AnyDomain

    @classmethod
    def of(cls, domain: Any, *, rho: Number, threshold: int, pieces: PiecesAt | None) -> "SelectFrom":
        if isinstance(threshold, bool) or not isinstance(threshold, int) or abs(threshold) > 2**53:
            raise ParameterError(parameter="threshold", problem="must be a whole number of pieces or rows")
        splitting = None if pieces is None else Splitting.of(pieces)
        return cls(
            rho=positive(rho, parameter="rho"), threshold=threshold, splitting=splitting, domain=as_domain(domain)
        )

    @property
    def law(self) -> SelectionLaw:
        return SelectionLaw(sigma=selection_sigma(self.rho), threshold=self.threshold)

    def covers(self, groups: tuple[Group, ...]) -> bool:
        return self.domain.covers(groups)

    def shared(self, share: Fraction) -> "SelectFrom":
        """The same selection with a level's share of the budget; the threshold is unchanged."""
        return replace(self, rho=self.rho * share)

    def policy(self, schema: Schema) -> Policy:
        return selection(self.law.sigma, self.piece_thresholds(schema), ())

    def problems(self, groups: tuple[Group, ...], schema: Schema) -> list[str]:
        """Also refuses a threshold so low that noise alone would publish more cells than a table may have."""
        problems = self.piece_problems(schema)
        expected = self.domain.bound(groups, schema).size * float(self.law.noise.sf(self.threshold))
        if expected > MOST_EMPTY_CELLS:
            problems.append(
                f"about {whole_text(expected)} empty cells would reach the threshold {self.threshold}; "
                f"at most {MOST_EMPTY_CELLS:,} may: raise it"
            )
        return problems

    def to_json(self) -> dict[str, Any]:
        return {"selected": "from a public domain", **described(self)}


KeySelection: TypeAlias = SelectKeys | SelectFrom


def described(keys: KeySelection) -> dict[str, Any]:
    """The public parameters of a selection."""
    law = keys.law
    pieces = None
    if keys.splitting is not None:
        pieces = {
            name: fraction_text(at) if isinstance(at, Fraction) else str(at) for name, at in keys.splitting.thresholds
        }
    return {
        "rho": fraction_text(keys.rho),
        "sigma": fraction_text(law.sigma),
        "threshold": law.threshold,
        "pieces": pieces,
        "counts": keys.alias,
    }
