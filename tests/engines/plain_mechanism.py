"""A mechanism that only has a policy: enough for everything before noise."""

from dataclasses import dataclass, replace
from fractions import Fraction

from recordwise.mechanisms.base import Mechanism
from recordwise.policy import By, constant, gaussian_sum, split


@dataclass(frozen=True)
class Plain(Mechanism):
    rho: Fraction = Fraction(1, 10)
    at: object = Fraction(1)

    def policy(self, measure, *, tight=True):
        if not tight:
            return split(self.rho, {measure: self.at})
        return split(self.rho, {measure: self.at}) if isinstance(self.at, By) else gaussian_sum(measure, sigma=self.at)

    def policy_of_count(self):
        return constant(self.rho)

    def threshold(self, measure):
        return self.at

    def resolved(self, at):
        return replace(self, at=at)

    def shared(self, share):
        return replace(self, rho=self.rho * share)
