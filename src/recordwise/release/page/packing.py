"""Columns as few bytes: numbers as digits and a power of ten, codes as they are, each byte of all rows together.

The bytes of one place lie side by side, so that those that hardly vary cost almost nothing once compressed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import numpy_of

DIGITS = 6
"""The digits of a number that is not whole. The files beside the page have every digit."""
PLANES = 10
"""Bytes of a number: seven of its digits, its sign, two of its power of ten."""
MISSING = 2
"""In the place of the sign of a number that is missing."""
SHIFT = 1024
"""Added to a power of ten, so that it is never negative."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Numbers as whole numbers times powers of ten."""

    whole: np.ndarray
    power: np.ndarray
    sign: np.ndarray

    def planes(self) -> bytes:
        """The bytes of all rows."""
        return packed_codes(self.whole, 7) + packed_codes(self.sign, 1) + packed_codes(self.power + SHIFT, 2)

    def values(self) -> list[int | float | None]:
        """The numbers as the page shows them."""
        return [
            None if sign == MISSING else _number(-whole if sign else whole, power)
            for whole, power, sign in zip(self.whole.tolist(), self.power.tolist(), self.sign.tolist())
        ]

    def rows(self, places: np.ndarray) -> "Digits":
        """Some of the numbers."""
        return Digits(self.whole[places], self.power[places], self.sign[places])

    @classmethod
    def read(cls, raw: bytes, rows: int) -> "Digits":
        """What ``planes`` wrote."""
        bytes_of = np.frombuffer(raw, np.uint8, count=PLANES * rows).reshape(PLANES, rows).astype(np.int64)
        whole = sum((bytes_of[at] << (8 * at) for at in range(7)), np.zeros(rows, np.int64))
        return cls(whole, bytes_of[8] + (bytes_of[9] << 8) - SHIFT, bytes_of[7].astype(np.uint8))


def packed_codes(codes: np.ndarray, planes: int) -> bytes:
    """Whole numbers that are not negative, a byte of every row after the other."""
    wide = np.asarray(codes, np.uint64)
    return b"".join((wide >> np.uint64(8 * at)).astype(np.uint8).tobytes() for at in range(planes))


def packed_numbers(column: pa.Array | pa.ChunkedArray) -> Digits:
    """Whole numbers unchanged, others to six digits; what is not finite counts as missing."""
    whole = pa.types.is_integer(column.type)
    values = numpy_of(column)
    if whole and column.null_count == 0 and _exact(values):
        return Digits(np.abs(values).astype(np.int64), np.zeros(len(values), np.int64), (values < 0).astype(np.uint8))
    return _digits(values.astype(np.float64), whole)


def _exact(values: np.ndarray) -> bool:
    return len(values) == 0 or bool(values.max() <= 2**53 and values.min() >= -(2**53))


def _digits(values: FloatArray, whole: bool) -> Digits:
    known = np.isfinite(values)
    size = np.where(known, np.abs(values), 0.0)
    keep = whole & (size <= 2**53)
    small = (size < 1e-290) | keep
    with np.errstate(divide="ignore"):
        power = np.where(small, 0, np.floor(np.log10(np.where(small, 1.0, size))) - (DIGITS - 1)).astype(np.int64)
    digits = np.where(keep, size, np.where(small, 0.0, np.rint(size / 10.0**power)))
    more = ~keep & (digits >= 10**DIGITS)
    digits, power = np.where(more, digits / 10, digits), np.where(more, power + 1, power)
    sign = np.where(known, (values < 0) & (digits > 0), MISSING)
    return Digits(digits.astype(np.int64), power, sign.astype(np.uint8))


def _number(whole: int, power: int) -> Any:
    """The decimal number, correctly rounded; a whole one where it is one."""
    value = float(f"{whole}e{power}")
    return int(value) if value == int(value) and abs(value) < 2**53 else value
