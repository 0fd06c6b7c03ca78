"""Policies as LaTeX, for a methodology paper."""

from fractions import Fraction
from typing import TYPE_CHECKING

from recordwise.exact.text import latex_factor, latex_number
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
    Transformed,
)
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn, Measure, Truth, Value
from recordwise.policy.conditions import EVERY, AllOf, Among, AnyOf, Compare, Condition, InBand, Null
from recordwise.policy.policy import Maximum, Terms, with_plain_constants
from recordwise.policy.render.text import LONG_LIST, MOST_LISTED

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy


def policy_latex(policy: "Policy") -> str:
    """The loss; with a delta, the pair."""
    rho = terms_latex(policy.rho)
    return rho if not policy.delta_terms else rf"\left({rho},\; {terms_latex(policy.delta_terms)}\right)"


def terms_latex(terms: Terms) -> str:
    plain = with_plain_constants(terms)
    parts = [term_latex(condition, atom, coefficient) for (condition, atom), coefficient in plain.items()]
    return " + ".join(parts) if parts else "0"


def term_latex(condition: Condition, atom: Atom, coefficient: Fraction) -> str:
    indicator = "" if condition == EVERY else rf"\mathbf{{1}}[{condition_latex(condition)}]\,"
    if isinstance(atom, One):
        return indicator + latex_number(coefficient)
    return indicator + latex_factor(coefficient) + atom_latex(atom)


def name_latex(name: str) -> str:
    return r"\mathrm{" + text_latex(name) + "}"


def measure_latex(measure: Measure) -> str:
    """A measure, or the linear form that a derived one is."""
    if not measure.derived:
        return name_latex(measure.name)
    text = ""
    for base, share in sorted(measure.derived, key=lambda item: item[1] < 0):
        sign = (" - " if share < 0 else " + ") if text else ("-" if share < 0 else "")
        text += sign + ("" if abs(share) == 1 else latex_number(abs(share)) + r"\,") + name_latex(base.name)
    return text


def text_latex(text: str) -> str:
    escapes = {"\\": r"\backslash ", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$"}
    return "".join(escapes.get(letter, letter) for letter in text)


def pieces_latex(at: Thresholds) -> str:
    quotients = [rf"\lceil |{measure_latex(measure)}| / {latex_number(threshold)} \rceil" for measure, threshold in at]
    return rf"\max\left(1, {', '.join(quotients)}\right)" if quotients else "1"


def rise_latex(atom: Additive | AdditiveTable | Transformed) -> str:
    value = rf"|{measure_latex(atom.measure)}|"
    return rf"{atom.function.to_latex(value)} - \left({atom.function.to_latex('0')}\right)"


def atom_latex(atom: Atom) -> str:
    match atom:
        case Pieces(at):
            return pieces_latex(at) + "^{2}"
        case PieceCount(at):
            return pieces_latex(at)
        case Square(measure):
            value = measure_latex(measure)
            return (rf"\left({value}\right)" if measure.derived else value) + "^{2}"
        case ClampedSquare(measure, to):
            return rf"\min\left(|{measure_latex(measure)}|, {latex_number(to)}\right)^{{2}}"
        case PurePieces(at, pure, rho):
            count, one = pieces_latex(at), latex_number(pure)
            linear = rf"{one} m \tanh({one} m / 2)"
            return rf"\min\left({latex_factor(rho)}m^{{2}},\; {linear}\right)\big|_{{m = {count}}}"
        case Outside():
            return r"\infty"
        case Additive(bound="pure"):
            return rf"\left({rise_latex(atom)}\right)"
        case Additive():
            return rf"\varepsilon\tanh(\varepsilon/2)\big|_{{\varepsilon = {rise_latex(atom)}}}"
        case AdditiveTable(measure):
            return rf"\mathrm{{table}}_{{{len(atom.steps)}}}\left({measure_latex(measure)}\right)"
        case CertifiedSum(measure, knots=knots):
            return rf"\mathrm{{certified}}_{{{len(knots)}}}\left({measure_latex(measure)}\right)"
        case LaplaceSum(measure, grid, scale):
            start = rf"\varepsilon = |{measure_latex(measure)}| / {latex_number(scale)}"
            return rf"\left({_laplace_latex(grid / scale)}\right)\big|_{{{start}}}"
        case GaussianTransform(measure):
            shift = rf"\left({rise_latex(atom)} + {latex_number(atom.grid)}\right)^{{2}}"
            return rf"\mathbf{{1}}[{measure_latex(measure)} \neq 0]\,{shift}"
        case PureTransform():
            rise = rf"\left({rise_latex(atom)} + {latex_number(atom.grid)}\right)"
            return rf"\mathbf{{1}}[{measure_latex(atom.measure)} \neq 0]\,{rise} / {latex_number(atom.scale)}"
        case LaplaceTransform():
            epsilon = rf"\varepsilon = \left({rise_latex(atom)} + {latex_number(atom.grid)}\right) / {latex_number(atom.scale)}"
            formula = _laplace_latex(atom.grid / atom.scale)
            return rf"\mathbf{{1}}[{measure_latex(atom.measure)} \neq 0]\,\left({formula}\right)\big|_{{{epsilon}}}"
        case SelectionDelta(at):
            return rf"P\left(Z \geq \tau - {pieces_latex(at)}\right)"
        case Maximum(policies):
            return rf"\max\left({', '.join(terms_latex(policy.rho) for policy in policies)}\right)"
        case _:
            raise TypeError(type(atom).__name__)


def _laplace_latex(one_step: Fraction) -> str:
    ratio = latex_number(one_step)
    return rf"\varepsilon - \frac{{{ratio}}}{{\sinh({ratio})}}\left(1 - e^{{-\varepsilon}}\right)"


def condition_latex(condition: Condition) -> str:
    match condition:
        case AllOf(parts):
            return r" \wedge ".join(condition_latex(part) for part in parts)
        case AnyOf(parts):
            return r"\left(" + r" \vee ".join(condition_latex(part) for part in parts) + r"\right)"
        case Null(column, inside):
            return rf"{column_latex(column)} \text{{ is {'' if inside else 'not '}missing}}"
        case InBand(table, bands):
            cells = ", ".join(column_latex(column) for column in table.columns)
            listed = r" \cup ".join(_band_latex(table, band) for band in bands)
            return rf"s({cells}) \in {listed}"
        case Among(column, values, inside) if len(values) == 1:
            symbol = "=" if inside else r"\neq"
            return f"{column_latex(column)} {symbol} {value_latex(values[0])}"
        case Among(column, values, inside):
            shown = values[: MOST_LISTED if len(values) > LONG_LIST else None]
            listed = ", ".join(value_latex(value) for value in shown) + (r", \dots" if len(shown) < len(values) else "")
            symbol = r"\in" if inside else r"\notin"
            return rf"{column_latex(column)} {symbol} \{{{listed}\}}"
        case Compare(column, order, bound):
            symbol = {"<=": r"\leq", ">=": r"\geq"}.get(order, order)
            return rf"{column_latex(column)} {symbol} {latex_number(bound)}"
        case _:
            raise TypeError(type(condition).__name__)


def _band_latex(table: BandTable, band: int) -> str:
    """Return the sizes in a band."""
    low = latex_number(table.edges[band]) if band else "0"
    end = r"\infty" if band + 1 == len(table.edges) else latex_number(table.edges[band + 1])
    return f"[{low}, {end})"


def column_latex(column: ConditionColumn) -> str:
    name = name_latex(column.name)
    if column.part:
        return rf"\mathrm{{{column.part}}}({name})"
    return name if column.length is None else rf"{name}_{{1..{column.length}}}"


def value_latex(value: Value) -> str:
    if isinstance(value, Fraction):
        return latex_number(value)
    return rf"\text{{{text_latex(str(value.value if isinstance(value, Truth) else value))}}}"
