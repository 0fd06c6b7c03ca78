"""Roots in whole numbers: where f is a root of a weighted total, its nearest grid point needs no arbitrary precision."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from flint import fmpz

from recordwise.functions import Function, Power, Sum, Variable


@dataclass(frozen=True, slots=True)
class Root:
    """(weight * total + shift) ** (1/degree)."""

    weight: Fraction
    shift: Fraction
    degree: int

    def nearest(self, totals: Iterable[int], step: Fraction, grid: Fraction) -> list[int]:
        """floor(r + 1/2) for r = root/grid of each total, because n - 1/2 <= r exactly where (2n - 1)**degree <= (2r)**degree."""
        unit = (2 / grid) ** self.degree
        slope, start = self.weight * step * unit, self.shift * unit
        below = lcm(slope.denominator, start.denominator)
        a, b = int(slope * below), int(start * below)
        powers = ((a * total + b) // below for total in totals)
        if self.degree == 1:
            return [(power + 1) // 2 for power in powers]
        return [(int(fmpz(power).root(self.degree)) + 1) // 2 for power in powers]


def root_of(function: Function) -> Root | None:
    """The function as a root of an affine map of x, if it is written as one."""
    base, degree = function, 1
    if isinstance(function, Power) and function.exponent.numerator == 1:
        base, degree = function.base, function.exponent.denominator
    match base:
        case Variable():
            return Root(Fraction(1), Fraction(0), degree)
        case Sum(((weight, Variable()),), shift):
            return Root(weight, shift, degree)
        case _:
            return None
