"""Whether two policies describe the same noise, whichever version of the package computed their numbers."""

from fractions import Fraction
from typing import Any

from recordwise.exact.functions import x
from recordwise.policy.atoms import Atom, ClampedSquare, One
from recordwise.policy.concave_atoms import AdditiveTable, CertifiedSum, LaplaceSum
from recordwise.policy.policy import Maximum, Policy, Terms


def restates(kept: Policy, given: Policy) -> bool:
    """Whether a policy that was kept and one that is given now are equal but for how the loss of their noise was certified.

    A budget that names a mechanism is computed anew whenever its plan is read, and later versions charge less for the same noise.
    The budget of a ledger stays the one it was opened with.
    """
    return _noises(kept.rho) == _noises(given.rho) and dict(kept.delta_terms) == dict(given.delta_terms)


def _noises(terms: Terms) -> dict[Any, Fraction]:
    found: dict[Any, Fraction] = {}
    for (condition, atom), coefficient in terms.items():
        noise, times = _noise(atom)
        found[condition, noise] = found.get((condition, noise), Fraction(0)) + coefficient * times
    return found


def _noise(atom: Atom) -> tuple[Any, Fraction]:
    """What stands for an atom, and how often. A clamped sum was charged the constant of its bound."""
    match atom:
        case AdditiveTable(measure, function) | CertifiedSum(measure, function):
            return (measure, function), Fraction(1)
        case LaplaceSum(measure, _, scale):
            return (measure, x / scale), Fraction(1)
        case ClampedSquare(_, to):
            return One(), to**2
        case Maximum(policies):
            return frozenset(frozenset(_noises(policy.rho).items()) for policy in policies), Fraction(1)
        case _:
            return atom, Fraction(1)
