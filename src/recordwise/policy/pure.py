"""The pure-DP side of a policy: epsilon(r), where every query has one."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from recordwise.errors import ParameterError
from recordwise.policy.atoms import Atom
from recordwise.policy.concave_atoms import Additive, AdditiveTable, LaplaceTransform
from recordwise.policy.evaluators import Evaluator
from recordwise.policy.measure import Measure

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy, Terms

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Epsilon(Atom):
    """The pure loss of another atom, as a function of its own."""

    kind: ClassVar[str] = "epsilon"
    of: Additive | AdditiveTable | LaplaceTransform

    def measures(self) -> tuple[Measure, ...]:
        return self.of.measures()

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return self.of.epsilon(evaluator, columns)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "of": self.of.to_json()}


def pure_terms(policy: "Policy") -> "Terms":
    """The policy's terms with each atom replaced by its epsilon; refused where one has none."""
    from recordwise.policy.policy import Key

    if policy.delta_terms:
        raise ParameterError(parameter="policy", problem="has a delta, so it has no pure epsilon")
    terms: dict[Key, Fraction] = {}
    for (condition, atom), coefficient in policy.rho.items():
        if not isinstance(atom, (Additive, AdditiveTable, LaplaceTransform)):
            raise ParameterError(
                parameter="policy",
                problem=f"has no pure epsilon: its part '{atom.kind}' is Gaussian or a budget",
                advice="Use epsilon(rho, delta) instead.",
            )
        if coefficient.denominator != 1:
            raise ParameterError(parameter="policy", problem="was scaled by a fraction, so it has no pure epsilon")
        key = (condition, Epsilon(atom))
        terms[key] = terms.get(key, Fraction(0)) + coefficient
    return terms
