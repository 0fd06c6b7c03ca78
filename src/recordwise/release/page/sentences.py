"""The sentences of the page about a record, kept in one place: Python fills them in at first, the script after each change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from recordwise.exact.text import GREAT_LOG_ODDS, chance_text, factor_text, share_text
from recordwise.policy.meaning import likely_log_odds, power_beside_delta

DELTA = 1e-5
SENTENCES = {
    "nothing": "Nothing in these tables depends on you: your privacy loss is 0.",
    "no promise": "These tables give no guarantee to a record of this group.",
    "odds": "These tables change the odds of any statement about you by a factor of at most {mean}, on average",
    "but": ", except for a probability of {own} that a cell is listed only because of you",
    "great odds": (
        "These tables could change the odds of a statement about you by a factor of {mean}; that you are in them is hardly hidden"
    ),
    "no limit": "That you are in these tables is not protected: they set no practical limit on the odds of a statement about you",
    "band": "no one can use them to reliably tell {bands}",
    "one band": "{low} from {high} {label}",
    "open band": "{low} from any larger number of {label}",
    "exactly": "your exact number of {label} is not hidden",
    "tail": "The odds change by more than a factor of {tail} in at most one case in twenty, whatever was believed before.",
    "selected": "With probability at most {own} a cell is listed only because of you; in that case there is no guarantee.",
    "no band": "How well your size is hidden cannot be stated as a simple range here: {reason}.",
    "test": (
        "A membership test with a 5% false-positive rate detects your record with probability at most {power} "
        "(without the publication: 5%)."
    ),
    "reliably": (
        "“Reliably” means: a test between two numbers in that range, run by someone who knows everything else about you and "
        "every other record, with a 5% false-positive rate, is right at most half the time."
    ),
}
LIMITLESS = 100.0
"""Losses from which a factor would be meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The values of a measure that cannot be distinguished from the record's own, as text; ``high`` is None if unlimited."""

    label: str
    low: str
    high: str | None


def lead(rho: float, bands: Sequence[Band], own: float = 0.0) -> str:
    """The first sentence: odds and bands; ``own`` is the record's delta."""
    if rho == 0:
        return SENTENCES["nothing"]
    if math.isinf(rho):
        return SENTENCES["no promise"]
    odds = SENTENCES["no limit" if rho > LIMITLESS else "great odds" if rho > GREAT_LOG_ODDS else "odds"].format(
        mean=factor_text(rho)
    )
    odds += SENTENCES["but"].format(own=chance_text(own)) if own else ""
    hidden = [_told(band) for band in bands if band.low != band.high]
    exact = [SENTENCES["exactly"].format(label=band.label) for band in bands if band.low == band.high]
    clauses = ([SENTENCES["band"].format(bands=listed(hidden))] if hidden else []) + exact
    return "; ".join([odds, *clauses]) + "."


def listed(clauses: Sequence[str]) -> str:
    """a, b or c."""
    return " or ".join([*([", ".join(clauses[:-1])] if clauses[:-1] else []), clauses[-1]])


def _told(band: Band) -> str:
    if band.high is None:
        return SENTENCES["open band"].format(low=band.low, label=band.label)
    return SENTENCES["one band"].format(low=band.low, high=band.high, label=band.label)


def details(rho: float, own: float) -> list[str]:
    """The sentences below it."""
    told = [SENTENCES["test"].format(power=f"{share_text(power_beside_delta(rho, own), 1)}")]
    if own:
        told.append(SENTENCES["selected"].format(own=chance_text(own)))
    if 0 < rho <= LIMITLESS:
        told.append(SENTENCES["tail"].format(tail=factor_text(likely_log_odds(rho))))
    return told
