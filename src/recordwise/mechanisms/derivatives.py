"""Derivatives of function expressions in float64, by the chain rule."""

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.functions import Function, Log, Power, Sum, Variable


def jet(function: Function, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, first and second derivative."""
    match function:
        case Variable():
            return v, np.ones_like(v), np.zeros_like(v)
        case Sum(terms, shift):
            parts = [[float(weight) * part for part in jet(inner, v)] for weight, inner in terms]
            value, first, second = (np.asarray(sum(column)) for column in zip(*parts))
            return value + float(shift), first, second
        case Power(base, exponent):
            u, du, ddu = jet(base, v)
            e = float(exponent)
            return u**e, e * u ** (e - 1) * du, e * (e - 1) * u ** (e - 2) * du**2 + e * u ** (e - 1) * ddu
        case Log(argument):
            u, du, ddu = jet(argument, v)
            return np.log(u), du / u, ddu / u - (du / u) ** 2
        case _:
            raise TypeError(type(function).__name__)


def slope(function: Function, v: FloatArray) -> FloatArray:
    """The first derivative, infinite where it is."""
    return _value_and_slope(function, v)[1]


def _value_and_slope(function: Function, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    match function:
        case Variable():
            return v, np.ones_like(v)
        case Sum(terms, shift):
            parts = [[float(weight) * part for part in _value_and_slope(inner, v)] for weight, inner in terms]
            value, first = (np.asarray(sum(column)) for column in zip(*parts))
            return value + float(shift), first
        case Power(base, exponent):
            u, du = _value_and_slope(base, v)
            with np.errstate(divide="ignore"):
                return u ** float(exponent), float(exponent) * u ** (float(exponent) - 1) * du
        case Log(argument):
            u, du = _value_and_slope(argument, v)
            return np.log(u), du / u
        case _:
            raise TypeError(type(function).__name__)
