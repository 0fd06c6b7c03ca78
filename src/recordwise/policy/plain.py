"""Policies as plain text, for a terminal: one line for each term."""

from fractions import Fraction
from typing import TYPE_CHECKING

from recordwise.functions import Function, Log, Power, Sum
from recordwise.policy.atoms import Atom, One, Outside, Pieces, SelectionDelta, Square, Thresholds
from recordwise.policy.concave_atoms import Additive, AdditiveTable, GaussianTransform, LaplaceTransform
from recordwise.policy.conditions import EVERY
from recordwise.policy.policy import Maximum, Terms
from recordwise.policy.words import condition_words

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy


def policy_lines(policy: "Policy") -> list[str]:
    """The terms whose sum is the loss of a record."""
    return terms_lines(policy.rho) or ["0"]


def terms_lines(terms: Terms) -> list[str]:
    lines = []
    for (condition, atom), coefficient in terms.items():
        only = "" if condition == EVERY else f"   if {condition_words(condition)}"
        lines.append(term_text(atom, coefficient) + only)
    return lines


def term_text(atom: Atom, coefficient: Fraction) -> str:
    if isinstance(atom, One):
        return figure(coefficient)
    return atom_text(atom) if coefficient == 1 else f"{figure(coefficient)} * {atom_text(atom)}"


def figure(value: Fraction) -> str:
    return f"{float(value):.6g}"


def atom_text(atom: Atom) -> str:
    match atom:
        case Pieces(at):
            return f"{pieces_text(at)}^2"
        case Square(measure):
            return f"{measure.name}^2"
        case Outside(column):
            return f"no promise (a group of {column} that is not listed)"
        case Additive(bound="pure"):
            return f"({rise_text(atom.measure.name, atom.function)})"
        case Additive() | AdditiveTable():
            return f"[at most e*tanh(e/2), e = {rise_text(atom.measure.name, atom.function)}]"
        case GaussianTransform(measure):
            return f"({rise_text(measure.name, atom.function)})^2"
        case LaplaceTransform(measure):
            return f"[e - 1 + exp(-e), e = ({rise_text(measure.name, atom.function)}) / {figure(atom.scale)}]"
        case SelectionDelta(at):
            return f"P(Z >= threshold - {pieces_text(at)})"
        case Maximum(policies):
            return f"max({', '.join(' + '.join(terms_lines(policy.rho)) for policy in policies)})"
        case _:
            raise TypeError(type(atom).__name__)


def pieces_text(at: Thresholds) -> str:
    needs = [f"ceil({measure.name} / {figure(threshold)})" for measure, threshold in at]
    return f"max(1, {', '.join(needs)})"


def rise_text(name: str, function: Function) -> str:
    """f(x) - f(0), the grid left out: it is below a thousandth."""
    start = function_text(function, "0")
    return (
        function_text(function, name)
        if float(function.at_zero()) == 0
        else f"{function_text(function, name)} - {start}"
    )


def function_text(function: Function, name: str) -> str:
    """A function at a named argument; at "0" constants are worked out."""
    if name == "0":
        return f"{float(function.at_zero()):.6g}"
    match function:
        case Sum(terms, shift):
            parts = [_weighted(weight, function_text(part, name)) for weight, part in terms]
            return " + ".join(parts + ([figure(shift)] if shift else []))
        case Power(base, exponent):
            inner = function_text(base, name)
            return f"({inner})^{figure(exponent)}" if isinstance(base, Sum) else f"{inner}^{figure(exponent)}"
        case Log(argument):
            return f"ln({function_text(argument, name)})"
        case _:
            return name


def _weighted(weight: Fraction, text: str) -> str:
    if weight == 1:
        return text
    return f"{text} / {figure(1 / weight)}" if weight < 1 else f"{figure(weight)} * {text}"
