"""Logarithmic axes, and numbers as a person reads them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WORDS = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAxis:
    """From a value at one point of the paper to another value at another point, by their logarithms."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Where a value stands; what is beyond the ends is put a little outside them."""
        share = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return self.start + (self.end - self.start) * min(max(share, -0.2), 1.2)

    def decades(self, most: int = 7) -> list[float]:
        """Powers of ten on the axis, evenly thinned to at most so many."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        stride = max(1, math.ceil((last - first + 1) / most))
        return [10.0**power for power in range(first, last + 1, stride)]


def number_text(value: float) -> str:
    """Four digits, with thousands apart: for losses and spreads."""
    if not math.isfinite(value):
        return "without limit"
    if value != 0 and (abs(value) >= 1e15 or abs(value) < 1e-4):
        return f"{value:.3g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size_text(value: float) -> str:
    """A size on an axis: 1,000, 1 million."""
    for unit, word in WORDS:
        if value >= unit:
            return f"{value / unit:,.6g} {word}"
    return f"{value:,.6g}"


def spread(step: float, high: float, points: int) -> list[float]:
    """Multiples of a step, about evenly spread over the logarithm, from the step itself to ``high``."""
    ratio = (high / step) ** (1 / (points - 1))
    return sorted({step * round(ratio**number) for number in range(points)})


def ladder(values: Sequence[float]) -> list[float]:
    """The powers of ten between the ends of a spread."""
    low, high = values[0], values[-1]
    powers: Iterable[int] = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    return [10.0**power for power in powers]
