"""Number formats for readers: formulas, prose, tables and axes.

All number formatting is in this module, and what a text must not begin with: a spreadsheet would run it.
"""

import math
from decimal import ROUND_CEILING, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from recordwise.exact.numbers import float_upper

MOST_DIGITS = 30
SHORT = Context(prec=12, rounding=ROUND_CEILING)
UNITS = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))
GREAT_LOG_ODDS = 14.0
"""Log-odds above which a factor is given as a power of ten."""
UNSEEN = r"\s\p{Z}\p{C}\p{M}\x{115f}\x{1160}\x{2065}\x{2800}\x{3164}\x{ffa0}\x{fff0}-\x{fff8}\x{e0000}-\x{e0fff}"
"""Letters that take no place of their own, or an empty one: blanks, controls, joiners, marks, fillers, selectors."""
FORMULA = (
    rf"^['\t\r\n]|^[{UNSEEN}]*"
    r"[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}\x{fe66}\x{fe62}\x{fe63}\x{fe6b}\x{2212}]"
)
"""Text that a spreadsheet treats as a formula, also with full-width and small signs and behind letters that are not seen; and text
that begins with an apostrophe. A pattern of RE2, as Arrow has it."""
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def latex_number(value: Fraction) -> str:
    """Return a fraction as LaTeX.

    A short decimal, or a short fraction, or otherwise twelve digits rounded up.
    """
    for digits in range(10):
        scaled = value * 10**digits
        if scaled.denominator == 1 and scaled.numerator.bit_length() < 3 * MOST_DIGITS:
            whole, part = divmod(abs(scaled.numerator), 10**digits)
            sign = "-" if value < 0 else ""
            return f"{sign}{whole}" + (f".{part:0{digits}d}" if digits else "")
    if max(abs(value.numerator), value.denominator) < 10**6:
        return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    mantissa, _, exponent = f"{SHORT.create_decimal(Decimal(float_upper(value))):g}".partition("e")
    return mantissa if not exponent else rf"{mantissa}\cdot 10^{{{int(exponent)}}}"


def latex_factor(value: Fraction) -> str:
    """A fraction in front of a term; nothing for 1."""
    return "" if value == 1 else latex_number(value) + r"\,"


def formula_text(value: Fraction | float) -> str:
    """Six digits, for a formula in plain text."""
    return f"{float(value):.6g}"


def prose_text(value: Fraction | float) -> str:
    """Six digits with thousands separators, for a sentence."""
    return f"{float(value):,.6g}"


def exact_text(value: Fraction) -> str:
    """An exact number with thousands separators, as a decimal or a fraction."""
    rest, digits = value.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        digits = max(digits, power)
    if rest != 1:
        return f"{value.numerator:,}/{value.denominator}"
    whole, part = divmod(abs(value.numerator) * 10**digits // value.denominator, 10**digits)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole:,}" + (f".{part:0{digits}d}" if digits else "")


def digits_text(value: float, digits: int) -> str:
    """So many significant digits."""
    return f"{value:.{digits}g}"


def whole_text(value: float) -> str:
    """The nearest whole number, with thousands separators."""
    return f"{value:,.0f}"


def amount_text(value: Fraction, decimals: int) -> str:
    """An amount on its lattice, with thousands separators and this many decimals."""
    return f"{float(value):,.{decimals}f}"


def share_text(share: float, decimals: int = 0) -> str:
    """A share or a confidence as a percentage with this many decimals."""
    return f"{share:,.{decimals}%}"


def share_decimals(error: float) -> int:
    """Return the decimals of a percentage that its error leaves a meaning: two digits of the error."""
    return 1 if not 0 < error < 1 else min(8, max(1, -math.floor(math.log10(error)) - 1))


def coarse_share_text(share: float) -> str:
    """A share as a reader remembers it: 97%, 12%, 0.4%, < 0.1%; 0% and 100% only if exact."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 0.001:
        return "< 0.1%"
    return (
        f"{share:.1%}" if share < 0.0095 or 0.995 < share < 0.9995 else f"{share:.0%}" if share < 0.9995 else "> 99.9%"
    )


def tick_text(share: float) -> str:
    """Return an axis tick as a percentage with its decimals."""
    return _trim_zeros(f"{share * 100:.10f}") + "%"


def residual_text(value: float) -> str:
    """A number of which only the order of magnitude matters."""
    return f"{value:.1e}"


def factor_text(log_odds: float, *, plain: bool = False) -> str:
    """Return e to the log-odds as a factor.

    A large one as a power of ten, in ``plain`` characters where there are no superscripts.
    """
    if log_odds > GREAT_LOG_ODDS:
        power = f"{log_odds / math.log(10):.0f}"
        return f"10^{power}" if plain else "10" + superscript(power)
    value = math.exp(log_odds)
    return f"{value:.2f}" if value < 100 else whole_text(value)


def number_text(value: float) -> str:
    """Four digits with thousands separators, for losses and standard deviations."""
    if not math.isfinite(value):
        return "without limit"
    if value != 0 and (abs(value) >= 1e15 or abs(value) < 1e-4):
        return f"{value:.3g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    return _trim_zeros(f"{value:,.{digits}f}")


def loss_text(loss: float) -> str:
    """Three digits."""
    return f"{loss:.3g}" if math.isfinite(loss) else "without limit"


def figure(value: float | None, *, infinite: str = "none") -> str:
    """Return four digits with thousands separators."""
    if value is None or math.isnan(value):
        return "none"
    if math.isinf(value):
        return infinite
    if value == 0 or 0.001 <= abs(value) < 1000:
        return f"{value:.4g}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def cell_text(value: float | None) -> str:
    """Return a published number without noisy digits, whole from 100."""
    if value is None:
        return ""
    size = abs(value)
    return _trim_zeros(f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4}f}")


def meaningful_text(value: float, unit: float) -> str:
    """Return a number from 100 on, rounded to the power of ten at most a unit."""
    if not unit >= 1 or not math.isfinite(unit) or abs(value) < 100:
        return cell_text(value)
    return f"{round(value, -math.floor(math.log10(unit))):,.0f}"


def size_text(value: float) -> str:
    """A size on an axis: 1,000, 1 million."""
    for unit, word in UNITS:
        if value >= unit:
            return f"{value / unit:,.6g} {word}"
    return f"{value:,.6g}"


def brief_text(value: float) -> str:
    """Three digits, with words from a million on: 616,825,359 is 617 million."""
    rounded = float(f"{value:.3g}")
    sign = "-" if rounded < 0 else ""
    return sign + size_text(abs(rounded)) if math.isfinite(rounded) else "without limit"


def percent_text(share: float) -> str:
    """A coefficient of variation: one decimal below 10%, whole above."""
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}" if share < 10 else "> 1000%"


def chance_text(chance: float) -> str:
    """A probability to three digits; small ones as a power of ten."""
    if chance >= 1e-4:
        return f"{chance:.3g}"
    digits, _, power = f"{chance:.2e}".partition("e")
    return f"{float(digits):g} × 10⁻{superscript(str(-int(power)))}"


def superscript(digits: str) -> str:
    """Digits as an exponent."""
    return digits.translate(SUPERSCRIPTS)


def _trim_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


# Texts that Python and the page of the studio both write: ties are rounded up, as toPrecision and toFixed do.


THREE = Context(prec=3, rounding=ROUND_HALF_UP)


def screen_number(value: float) -> str:
    """Three digits with thousands separators; small numbers as below a thousandth."""
    if value < 0:
        return "-" + screen_number(-value)
    if 0 < value < 0.001:
        return "< 0.001"
    return _trim_zeros(f"{THREE.create_decimal(Decimal(value)):,f}")


def screen_whole(value: float) -> str:
    """The nearest whole number, with thousands separators."""
    text = f"{_half_up(abs(value), '1'):,f}"
    return "-" + text if value < 0 and text != "0" else text


def screen_share(share: float) -> str:
    """A share in percent with one decimal; 0% only if exact."""
    percent = share * 100
    if share in (0.0, 1.0):
        return "0%" if share == 0 else "100%"
    if percent < 0.1:
        return "< 0.1%"
    return "> 99.9%" if percent > 99.9 else f"{_half_up(percent, '0.1'):f}%"


def screen_error(share: float) -> str:
    """A relative error: one decimal below 10%, whole above."""
    percent = share * 100
    if percent > 1000:
        return "> 1000%"
    return f"{_half_up(percent, '0.1' if percent < 10 else '1'):f}%"


def _half_up(value: float, unit: str) -> Decimal:
    return Decimal(value).quantize(Decimal(unit), rounding=ROUND_HALF_UP)
