"""Policies in words, for the establishment that looks its own loss up."""

from fractions import Fraction
from typing import TYPE_CHECKING

from recordwise.policy.atoms import Atom, One, Outside, Pieces, SelectionDelta, Square, Thresholds
from recordwise.policy.concave_atoms import Additive, AdditiveTable, GaussianTransform, LaplaceTransform
from recordwise.policy.conditions import EVERY, AllOf, Among, AnyOf, Column, Compare, Condition, Null
from recordwise.policy.literals import Truth, Value
from recordwise.policy.policy import Maximum, Terms

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy

CLOSING = (
    "The loss bounds how much anybody can learn about one record from everything published, whatever else they know: "
    "0 means nothing at all, below 0.1 very little; each time it quadruples, what can be learned about doubles."
)


def policy_words(policy: "Policy") -> str:
    """What the loss depends on, part by part, and what the number means."""
    if not policy.rho and not policy.delta_terms:
        return "Nothing is published from these records, so the privacy loss of every record is 0."
    sentences = ["The privacy loss of a record is the sum of these parts: " + "; ".join(_terms(policy.rho)) + "."]
    if policy.delta_terms:
        sentences.append("Besides, there is " + "; ".join(_terms(policy.delta_terms)) + ".")
    return " ".join([*sentences, CLOSING])


def _terms(terms: Terms) -> list[str]:
    rows = []
    for (condition, atom), coefficient in terms.items():
        only = "" if condition == EVERY else f", only for records with {condition_words(condition)}"
        rows.append(atom_words(atom, coefficient) + only)
    return rows or ["nothing"]


def figure(value: Fraction) -> str:
    return f"{float(value):,.6g}"


def pieces_words(at: Thresholds) -> str:
    limits = " and ".join(f"{figure(threshold)} of '{measure.name}'" for measure, threshold in at)
    return f"pieces of at most {limits} that the record is cut into" if at else "record"


def atom_words(atom: Atom, coefficient: Fraction) -> str:
    times = "" if coefficient == 1 else f"{figure(coefficient)} times "
    match atom:
        case One():
            return f"{figure(coefficient)}, the same for every record"
        case Pieces(at):
            return f"{times}the squared number of {pieces_words(at)} (1 for a small record)"
        case Square(measure):
            return f"{times}the square of '{measure.name}'"
        case Outside(column):
            return f"no promise where '{column}' is a group that was not listed"
        case Additive(measure) | AdditiveTable(measure):
            return (
                f"{times}a slowly growing function of '{measure.name}' (noise with heavy tails was added to its sums)"
            )
        case GaussianTransform(measure) | LaplaceTransform(measure):
            return f"{times}a slowly growing function of '{measure.name}' (noise was added to a root or logarithm of its sums)"
        case SelectionDelta(at):
            return f"a chance, growing with the number of {pieces_words(at)}, that a group is listed because of this record"
        case Maximum(policies):
            inner = "; or ".join(", plus ".join(_terms(policy.rho)) for policy in policies)
            return f"{times}the largest of: {inner}"
        case _:
            raise TypeError(type(atom).__name__)


def condition_words(condition: Condition) -> str:
    match condition:
        case AllOf(parts):
            return " and ".join(condition_words(part) for part in parts) or "anything"
        case AnyOf(parts):
            return "(" + " or ".join(condition_words(part) for part in parts) + ")" if parts else "nothing"
        case Null(column, inside):
            return f"{column_words(column)} {'missing' if inside else 'present'}"
        case Among(column, values, inside):
            listed = ", ".join(value_words(value) for value in values)
            joined = listed if len(values) == 1 else f"one of {listed}"
            return f"{column_words(column)} being {'' if inside else 'not '}{joined}"
        case Compare(column, order, bound):
            name = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}[order]
            return f"{column_words(column)} {name} {figure(bound)}"
        case _:
            raise TypeError(type(condition).__name__)


def column_words(column: Column) -> str:
    return f"'{column.name}'" if column.length is None else f"the first {column.length} characters of '{column.name}'"


def value_words(value: Value) -> str:
    if isinstance(value, Truth):
        return "true" if value.value else "false"
    return figure(value) if isinstance(value, Fraction) else f"'{value}'"
