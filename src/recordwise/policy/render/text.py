"""Policies as text: sentences for an establishment, formulas for a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from recordwise.exact.functions import Function, Log, Power, Sum
from recordwise.exact.text import digits_text, formula_text, prose_text, whole_text
from recordwise.policy.atoms import (
    Additive,
    AdditiveTable,
    Atom,
    CertifiedSum,
    ClampedSquare,
    GaussianTransform,
    LaplaceSum,
    LaplaceTransform,
    One,
    Outside,
    PieceCount,
    Pieces,
    PurePieces,
    PureTransform,
    SelectionDelta,
    Square,
    Thresholds,
)
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn, Measure, Truth, Value
from recordwise.policy.conditions import (
    EVERY,
    AllOf,
    Among,
    AnyOf,
    Compare,
    Condition,
    InBand,
    Null,
    band_tables,
    split_bands,
)
from recordwise.policy.evaluate.tables import cell_of
from recordwise.policy.policy import Maximum, Policy, Terms, with_plain_constants

CLOSING = (
    "The loss limits how much anyone can learn about one record from everything that is published, whatever else they know: "
    "0 means nothing at all, and below 0.1 means very little. Each time the loss quadruples, what can be learned roughly doubles."
)

PURE_CLOSING = (
    "Whatever anyone believed about a record before, everything that is published together changes the odds by a factor of at most "
    "e to the epsilon, in every case: 0 means nothing at all can be learned."
)


FEW_SIZES = 4
"""Up to this many statistics whose noise follows sizes, all their bands are described."""


def policy_prose(policy: "Policy") -> str:
    """Explain the loss term by term, and what the number means; of many sizes of cells the smallest and the largest."""
    if not policy.rho and not policy.delta_terms:
        return "Nothing is published from these records, so the privacy loss of every record is 0."
    ends = ends_by_size(policy)
    if ends is not None and not policy.delta_terms:
        small, large = ("; ".join(_terms(each.rho)) for each in ends)
        return (
            f"The privacy loss of a record depends on the public sizes of its cells. {SMALLEST.capitalize()} it is the sum of "
            f"these parts: {small}. {LARGEST.capitalize()} it is: {large}. {CLOSING}"
        )
    what = "pure privacy loss (epsilon)" if policy.is_pure else "privacy loss"
    sentences = [f"The {what} of a record is the sum of these parts: " + "; ".join(_terms(policy.rho)) + "."]
    if policy.delta_terms:
        sentences.append("In addition, there is " + "; ".join(_terms(policy.delta_terms)) + ".")
    return " ".join([*sentences, PURE_CLOSING if policy.is_pure else CLOSING])


SMALLEST, LARGEST = "where all of them are small or not listed", "where all of them are among the largest"


def ends_by_size(policy: Policy, *, few: int = FEW_SIZES) -> tuple[Policy, Policy] | None:
    """Return the losses in the smallest and the largest cells.

    None where noise follows no sizes, or those of few statistics only, which can be described one by one.
    """
    smallest: dict[Any, Fraction] = {}
    largest: dict[Any, Fraction] = {}
    followed = set()
    for (condition, atom), coefficient in policy.rho.items():
        bands, rest = split_bands(condition)
        followed |= {(each.table.digest, atom) for each in bands}
        if all(0 in each.bands for each in bands):
            smallest[rest, atom] = smallest.get((rest, atom), Fraction(0)) + coefficient
        if all(len(each.table.edges) - 1 in each.bands for each in bands):
            largest[rest, atom] = largest.get((rest, atom), Fraction(0)) + coefficient
    if len(followed) <= few:
        return None
    return replace(policy, rho=smallest), replace(policy, rho=largest)


def _terms(terms: Terms) -> list[str]:
    rows = []
    for (condition, atom, coefficient), *more in _falling(terms):
        only = "" if condition == EVERY else f", only for records where {condition_prose(condition)}"
        rows.append(atom_prose(atom, coefficient) + only + _less_prose(more))
    return rows or ["nothing"]


Term: TypeAlias = tuple[Condition, Atom, Fraction]


def _falling(terms: Terms) -> list[list[Term]]:
    """Return the terms, grouping falling coefficients of the same atom."""
    found: list[list[Term]] = []
    for (condition, atom), coefficient in with_plain_constants(terms).items():
        before = found[-1][-1] if found else None
        falls = before is not None and before[1] == atom and before[2] > coefficient
        if falls and before is not None and _is_next(before[0], condition):
            found[-1].append((condition, atom, coefficient))
        else:
            found.append([(condition, atom, coefficient)])
    return found


def _is_next(before: Condition, condition: Condition) -> bool:
    """Return whether a condition is the next larger size band."""
    if not isinstance(before, InBand) or not isinstance(condition, InBand) or before.table != condition.table:
        return False
    return (before.bands[-1] + 1,) == condition.bands


def _less_prose(more: list[Term]) -> str:
    """What larger cells pay."""
    if not more:
        return ""
    condition, atom, coefficient = more[-1]
    assert isinstance(condition, InBand)
    steps = "" if len(more) == 1 else f" in {whole_text(len(more))} steps"
    where = _bands_prose(condition.table, condition.bands)
    return f", and less in larger cells, down{steps} to {atom_prose(atom, coefficient)} where it is {where}"


def measure_prose(measure: Measure) -> str:
    """Return a measure's name with its formula or absolute value.

    A formula for a derived measure, the absolute value for a signed one.
    """
    formula = f" ({linear_formula(measure)})" if measure.derived else ""
    return f"{'the absolute value of ' if measure.signed else ''}'{measure.name}'{formula}"


def measure_text(measure: Measure) -> str:
    """The size of a measure in a formula."""
    text = linear_formula(measure) if measure.derived else measure.name
    return f"|{text}|" if measure.signed else f"({text})" if measure.derived else text


def linear_formula(measure: Measure) -> str:
    """A derived measure as the linear form it is."""
    text = ""
    for base, share in sorted(measure.derived, key=lambda item: item[1] < 0):
        sign = (" - " if share < 0 else " + ") if text else ("-" if share < 0 else "")
        text += sign + ("" if abs(share) == 1 else f"{formula_text(abs(share))} * ") + base.name
    return text


def pieces_prose(at: Thresholds) -> str:
    limits = " and ".join(f"{prose_text(threshold)} of {measure_prose(measure)}" for measure, threshold in at)
    return f"pieces of at most {limits} the record is split into" if at else "record"


def atom_prose(atom: Atom, coefficient: Fraction) -> str:
    times = "" if coefficient == 1 else f"{prose_text(coefficient)} times "
    match atom:
        case One():
            return f"{prose_text(coefficient)}, the same for every record"
        case Pieces(at):
            return f"{times}the square of the number of {pieces_prose(at)} (1 for a small record)"
        case PieceCount(at):
            return f"{times}the number of {pieces_prose(at)} (1 for a small record)"
        case Square(measure):
            return f"{times}the square of {measure_prose(measure).removeprefix('the absolute value of ')}"
        case ClampedSquare(measure, to):
            return f"{times}the square of {measure_prose(measure)}, or of {prose_text(to)} where it is larger"
        case PurePieces(at, epsilon):
            return (
                f"{times}a part that grows with the number of {pieces_prose(at)}:"
                f" with its square at first, by at most {prose_text(epsilon)} for each one"
            )
        case Outside(column):
            return f"no guarantee where '{column}' is a group that is not listed"
        case Additive(measure) | AdditiveTable(measure) | CertifiedSum(measure) | LaplaceSum(measure):
            return f"{times}a slowly growing function of {measure_prose(measure)} (heavy-tailed noise was added to its sums)"
        case GaussianTransform(measure) | LaplaceTransform(measure):
            noise = "noise was added to a root or logarithm of its sums"
            return f"{times}a slowly growing function of {measure_prose(measure)} ({noise})"
        case SelectionDelta(at):
            return f"a probability, growing with the number of {pieces_prose(at)}, that a group is listed because of this record"
        case Maximum(policies):
            inner = "; or ".join(", plus ".join(_terms(policy.rho)) for policy in policies)
            return f"{times}the largest of: {inner}"
        case _:
            raise TypeError(type(atom).__name__)


LONG_LIST, MOST_LISTED = 40, 10
"""Of a list of more values than the first number, this many are shown; policy.json has them all."""


def condition_prose(condition: Condition) -> str:
    match condition:
        case AllOf(parts):
            return " and ".join(condition_prose(part) for part in parts) or "anything holds"
        case AnyOf(parts):
            return "(" + " or ".join(condition_prose(part) for part in parts) + ")" if parts else "nothing holds"
        case Null(column, inside):
            return f"{column_prose(column)} {verb_to_be(column)} {'missing' if inside else 'present'}"
        case InBand(table, bands):
            cells = " and ".join(column_prose(column) for column in table.columns)
            level = " and ".join(f"'{name}'" for name in table.level)
            cells = f"{level}, found by {cells}" if level else cells
            return f"the public size of its cell ({cells}) is {_bands_prose(table, bands)}"
        case Among(column, values, inside):
            listed = ", ".join(
                value_prose(value) for value in values[: MOST_LISTED if len(values) > LONG_LIST else None]
            )
            listed += f" and {len(values) - MOST_LISTED:,} more" if len(values) > LONG_LIST else ""
            joined = listed if len(values) == 1 else f"one of {listed}"
            return f"{column_prose(column)} {verb_to_be(column)} {'' if inside else 'not '}{joined}"
        case Compare(column, order, bound):
            name = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}[order]
            return f"{column_prose(column)} {verb_to_be(column)} {name} {code_prose(bound) if column.part else prose_text(bound)}"
        case _:
            raise TypeError(type(condition).__name__)


def _bands_prose(table: BandTable, bands: tuple[int, ...]) -> str:
    return " or ".join(band_prose(table, band) for band in bands)


def band_prose(table: BandTable, band: int) -> str:
    """Return the sizes in a band in words.

    The lowest includes all smaller and unknown sizes, the highest all larger ones.
    """
    if band + 1 == len(table.edges):
        return f"at least {_edge_prose(table.edges[band])}" if band else "anything"
    end = _edge_prose(table.edges[band + 1])
    return f"below {end} or not listed" if not band else f"from {_edge_prose(table.edges[band])} to below {end}"


def _edge_prose(edge: Fraction) -> str:
    return whole_text(float(edge)) if edge.denominator == 1 else prose_text(edge)


PART_WORDS = {"week": "ISO week", "isoyear": "ISO year"}


def column_prose(column: ConditionColumn) -> str:
    if column.part:
        return f"the {PART_WORDS.get(column.part, column.part)} of '{column.name}'"
    return f"'{column.name}'" if column.length is None else f"the first {column.length} characters of '{column.name}'"


def verb_to_be(column: ConditionColumn) -> str:
    return "is" if column.length is None else "are"


def value_prose(value: Value) -> str:
    if isinstance(value, Truth):
        return "true" if value.value else "false"
    return code_prose(value) if isinstance(value, Fraction) else f"'{value}'"


def code_prose(value: Fraction) -> str:
    """Return a number that names something, without grouped digits."""
    return str(value.numerator) if value.denominator == 1 else prose_text(value)


SHOWN_TERMS = 4
LONGEST_TERM = 120


def policy_formula(policy: "Policy") -> str:
    """The loss on one line, long ones shortened; with a delta, both."""
    rho = _one_line(policy.rho)
    if policy.is_pure:
        return f"pure epsilon {rho}"
    return rho if not policy.delta_terms else f"{rho}, delta = {_one_line(policy.delta_terms)}"


def _one_line(terms: Terms) -> str:
    lines = [line.replace("   if ", " if ") for line in terms_lines(terms)] or ["0"]
    shown = [line if len(line) <= LONGEST_TERM else line[:LONGEST_TERM] + "..." for line in lines[:SHOWN_TERMS]]
    if len(lines) > 1:
        shown = [f"({line})" if " if " in line else line for line in shown]
    more = len(lines) - len(shown)
    return " + ".join(shown) + (f" + {more} more term{'s' if more > 1 else ''}" if more else "")


def policy_lines(policy: "Policy") -> list[str]:
    """The terms whose sum is the loss of a record."""
    lines = terms_lines(policy.rho) or ["0"]
    return [f"pure epsilon {lines[0]}", *lines[1:]] if policy.is_pure else lines


def terms_lines(terms: Terms) -> list[str]:
    lines = []
    for (condition, atom), coefficient in with_plain_constants(terms).items():
        only = "" if condition == EVERY else f"   if {condition_prose(condition)}"
        lines.append(term_text(atom, coefficient) + only)
    return lines


def term_text(atom: Atom, coefficient: Fraction) -> str:
    if isinstance(atom, One):
        return formula_text(coefficient)
    return atom_text(atom) if coefficient == 1 else f"{formula_text(coefficient)} * {atom_text(atom)}"


def atom_text(atom: Atom) -> str:
    match atom:
        case Pieces(at):
            return f"{pieces_text(at)}^2"
        case PieceCount(at):
            return pieces_text(at)
        case Square(measure):
            return f"({linear_formula(measure)})^2" if measure.derived else f"{measure.name}^2"
        case ClampedSquare(measure, to):
            return f"min({measure_text(measure)}, {formula_text(to)})^2"
        case PurePieces(at, epsilon, rho):
            one = formula_text(epsilon)
            return f"[min({formula_text(rho)} * m^2, {one} * m * tanh({one} * m / 2)), m = {pieces_text(at)}]"
        case Outside(column):
            return f"no guarantee (a group of {column} that is not listed)"
        case Additive(bound="pure"):
            return f"({rise_text(measure_text(atom.measure), atom.function)})"
        case Additive() | AdditiveTable() | CertifiedSum():
            return f"[at most e*tanh(e/2), e = {rise_text(measure_text(atom.measure), atom.function)}]"
        case GaussianTransform(measure):
            return f"({rise_text(measure_text(measure), atom.function)})^2"
        case LaplaceSum(measure, _, scale):
            return f"[e - 1 + exp(-e), e = {measure_text(measure)} / {formula_text(scale)}]"
        case PureTransform(measure):
            return f"({rise_text(measure_text(measure), atom.function)}) / {formula_text(atom.scale)}"
        case LaplaceTransform(measure):
            return f"[e - 1 + exp(-e), e = ({rise_text(measure_text(measure), atom.function)}) / {formula_text(atom.scale)}]"
        case SelectionDelta(at):
            return f"P(Z >= threshold - {pieces_text(at)})"
        case Maximum(policies):
            return f"max({', '.join(' + '.join(terms_lines(policy.rho)) for policy in policies)})"
        case _:
            raise TypeError(type(atom).__name__)


def pieces_text(at: Thresholds) -> str:
    needs = [f"ceil({measure_text(measure)} / {formula_text(threshold)})" for measure, threshold in at]
    return f"max(1, {', '.join(needs)})"


def rise_text(name: str, function: Function) -> str:
    """f(x) - f(0), without the grid, which is below a thousandth."""
    start = function_text(function, "0")
    return (
        function_text(function, name)
        if float(function.at_zero()) == 0
        else f"{function_text(function, name)} - {start}"
    )


def function_text(function: Function, name: str) -> str:
    """A function of a named argument; at "0" its value."""
    if name == "0":
        return f"{digits_text(float(function.at_zero()), 6)}"
    match function:
        case Sum(terms, shift):
            parts = [_weighted_text(weight, function_text(part, name)) for weight, part in terms]
            return " + ".join(parts + ([formula_text(shift)] if shift else []))
        case Power(base, exponent):
            inner = function_text(base, name)
            return (
                f"({inner})^{formula_text(exponent)}" if isinstance(base, Sum) else f"{inner}^{formula_text(exponent)}"
            )
        case Log(argument):
            return f"ln({function_text(argument, name)})"
        case _:
            return name


def _weighted_text(weight: Fraction, text: str) -> str:
    if weight == 1:
        return text
    return f"{text} / {formula_text(1 / weight)}" if weight < 1 else f"{formula_text(weight)} * {text}"


# The public size of a record's cell, in words: for somebody who looks up a loss that depends on it (T-SIZE).


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOfCell:
    """A band table in words: its subject and each band's sizes."""

    about: str
    table: BandTable
    words: tuple[str, ...]

    def text_for(self, record: Mapping[str, Any]) -> str:
        """The words for the cell of a record."""
        shown = {column.name: cell_of(dict(record), column.name) for column in self.table.columns}
        return self.words[self.table.band_of(shown)]


def sizes_of_cells(policy: Policy, labels: Mapping[str, str] | None = None) -> tuple[SizeOfCell, ...]:
    """Return a policy's band tables in the order of its terms."""
    known, measures = labels or {}, dict[str, list[str]]()
    for condition, atom in policy.rho:
        for digest in band_tables([condition]):
            named = [known.get(measure.name, measure.name) for measure in atom.measures()] or ["count"]
            measures.setdefault(digest, []).extend(named)
    return tuple(_size_of_cell(table, measures.get(digest, []), known) for digest, table in policy.bands().items())


def _size_of_cell(table: BandTable, measures: Sequence[str], labels: Mapping[str, str]) -> SizeOfCell:
    level = [labels.get(name, name) for name in table.level]
    cells = " and ".join(level or (_column(column, labels) for column in table.columns))
    about = f"{', '.join(dict.fromkeys(measures)) or 'all'} by {cells}"
    words = tuple(band_prose(table, band) for band in range(len(table.edges)))
    return SizeOfCell(about=about, table=table, words=words)


def _column(column: ConditionColumn, labels: Mapping[str, str]) -> str:
    name = labels.get(column.name, column.name)
    if column.part:
        return f"{PART_WORDS.get(column.part, column.part)} of {name}"
    return name if column.length is None else f"the first {column.length} characters of {name}"
