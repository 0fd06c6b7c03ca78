"""The page's questions to an establishment, and its sentences about records.

It asks for the measures and columns that a loss depends on, with readable labels. It also chooses the initial
record of the page and the range of its charts, from the policy alone and never from the data.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.errors import RecordError
from recordwise.exact.text import GREAT_LOG_ODDS, amount_text, chance_text, factor_text, formula_text, share_text
from recordwise.mechanisms.inference import ValueWindow
from recordwise.plan.arrays import numpy_of
from recordwise.plan.keys.cells import encode_column
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import Measure, Truth, Value
from recordwise.policy.conditions import Among, Compare
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.meaning import likely_log_odds, power_beside_delta
from recordwise.policy.policy import Policy, example_date, tests_of

if TYPE_CHECKING:
    from recordwise.release.published import Published

AMOUNT, CHOICE, NUMBER, TEXT, DATE = "amount", "choice", "number", "text", "date"
LARGEST_TOLD_APART = 2**53 - 1
"""Browsers compute with floats, which are 2**53 for the number above it too."""
MISSING = "not known"
ANOTHER = "any other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One list entry: label and value (None if missing)."""

    label: str
    value: str | bool | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of the page."""

    name: str
    label: str
    kind: str
    step: Fraction = Fraction(1)
    signed: bool = False
    options: tuple[Option, ...] = ()

    def to_json(self) -> dict[str, Any]:
        options = [[option.label, option.value] for option in self.options]
        form = {"name": self.name, "label": self.label, "kind": self.kind, "signed": self.signed, "options": options}
        bound = LARGEST_TOLD_APART if self.kind == NUMBER else None
        return form | {"step": [self.step.numerator, self.step.denominator], "bound": bound}


def questions_of(policy: Policy, labels: Mapping[str, str], missing: Collection[str] = ()) -> tuple[Question, ...]:
    """Return measures, then columns; those in ``missing`` may be unknown."""
    measures = [
        Question(name=m.name, label=labels.get(m.name, m.name), kind=AMOUNT, step=m.step, signed=m.signed)
        for m in policy.inputs()
    ]
    known = {question.name for question in measures}
    names = sorted({column.name for column in policy.columns()} - known)
    return (*measures, *(_column_question(policy, name, labels, missing=name in missing) for name in names))


def _column_question(policy: Policy, name: str, labels: Mapping[str, str], *, missing: bool) -> Question:
    tests = [test for test in tests_of(policy) if test.column.name == name]
    label = labels.get(name, name)
    if any(test.column.part for test in tests):
        return Question(name=name, label=label, kind=DATE)
    if any(isinstance(test, Compare) for test in tests):
        return Question(name=name, label=label, kind=NUMBER)
    values = dict.fromkeys(value for test in tests if isinstance(test, Among) for value in test.values)
    if any(column.name == name for table in policy.bands().values() for column in table.columns):
        numbers = [value for table in policy.bands().values() for value in _listed_values(table, name)]
        return Question(name=name, label=label, kind=NUMBER if all(isinstance(v, Fraction) for v in numbers) else TEXT)
    lengths = {test.column.length for test in tests if isinstance(test, Among)}
    if len(lengths) > 1:
        return Question(name=name, label=label, kind=TEXT)
    if any(isinstance(value, Fraction) and abs(value) > LARGEST_TOLD_APART for value in values):
        # The page refuses such a number where it is typed: in a browser it is the same as its neighbor.
        return Question(name=name, label=label, kind=NUMBER)
    options = [Option(label=_value_label(name, value, labels), value=_plain(value)) for value in values]
    return Question(name=name, label=label, kind=CHOICE, options=(*options, *_rest(list(values), missing=missing)))


def _listed_values(table: BandTable, name: str) -> Iterator[Value]:
    """The values of a column that a table of bands lists."""
    for column, values in zip(table.columns, table.values):
        yield from (value for value in values if value is not None and column.name == name)


def _rest(values: list[Value], *, missing: bool) -> list[Option]:
    """Options beyond the listed values: something else, or missing."""
    rest = []
    if not all(isinstance(value, Truth) for value in values) or len(values) < 2:
        rest.append(Option(label=ANOTHER, value=_unlisted_value(values)))
    if missing:
        rest.append(Option(label=MISSING, value=None))
    return rest


def _unlisted_value(values: list[Value]) -> str | bool | float:
    """Return a value that differs, as its prefixes do, from these."""
    if values and all(isinstance(value, Truth) for value in values):
        return not any(value.value for value in values if isinstance(value, Truth))
    numbers = [float(value) for value in values if isinstance(value, Fraction)]
    if numbers:
        return max(numbers) + 1
    first = {text[:1] for text in values if isinstance(text, str)}
    return next(letter for letter in map(chr, range(0x7E, 0x10FFFF)) if letter not in first)


def _plain(value: Value) -> str | bool | float:
    if isinstance(value, Truth):
        return value.value
    return float(value) if isinstance(value, Fraction) else value


def _value_label(name: str, value: Value, labels: Mapping[str, str]) -> str:
    """Return a value's label with its code, as "naics=21" in ``labels``."""
    plain = _plain(value)
    code = (
        f"{formula_text(plain)}"
        if isinstance(plain, float)
        else {True: "yes", False: "no"}.get(plain, str(plain))
        if isinstance(plain, bool)
        else str(plain)
    )
    words = labels.get(f"{name}={code}")
    return f"{words} ({code})" if words else code


USUAL_LOSS = 0.2
LARGE_LOSS = 1.0
REACH = 1000
"""A chart ends at a thousand times the size at which a measure alone costs ``LARGE_LOSS``."""
MOST = 2.0**53


def start_record(policy: Policy, questions: Sequence[Question]) -> dict[str, Any]:
    """Return an initial record with usual losses and first column values."""
    record: dict[str, Any] = {each.name: _start(each, policy) for each in questions}
    for measure in policy.inputs():
        size = size_at_loss(policy, measure, record, USUAL_LOSS)
        record[measure.name] = _on_lattice(_one_digit(size), measure)
    return record


def _start(question: Question, policy: Policy) -> Any:
    if question.kind == DATE:
        return example_date(policy, question.name).isoformat()
    if question.kind == CHOICE:
        return question.options[0].value
    return 0 if question.kind in (AMOUNT, NUMBER) else ""


def reach_of(policy: Policy, measure: Measure, record: Mapping[str, Any], bound: float) -> float:
    """Return a chart's right end, at least four decades above the step."""
    size = size_at_loss(policy, measure, record, LARGE_LOSS)
    step = float(measure.step)
    wanted = max(10 ** math.ceil(math.log10(size * REACH) - 1e-9), step * 1e4)
    return float(min(wanted, max(bound, 10 * step), step * MOST))


def size_at_loss(policy: Policy, measure: Measure, record: Mapping[str, Any], loss: float) -> float:
    """Return the approximate first size whose loss passes ``loss``."""
    others = {each.name: 0 for each in policy.inputs()}
    sizes = [0.0, *(float(measure.step) * size for size in SIZES)]
    losses = losses_along(policy, {**record, **others}, measure.name, sizes)
    if not math.isfinite(losses[0]):
        return 100 * float(measure.step)
    passing = (size for size, found in zip(sizes, losses) if found - losses[0] > loss)
    return next(passing, 100 * float(measure.step))


SIZES = sorted({round(2 ** (power / 8)) for power in range(8 * 52)})
"""Whole numbers, eight per doubling."""


def losses_along(policy: Policy, record: Mapping[str, Any], name: str, sizes: Sequence[float]) -> list[float]:
    """Return the losses along one measure; infinite where not covered."""
    columns: dict[str, Any] = {column: [value] * len(sizes) for column, value in record.items()}
    amounts = {each.name for each in policy.inputs()} & record.keys()
    columns |= {column: np.full(len(sizes), float(record[column])) for column in amounts}
    try:
        return [float(loss) for loss in policy.loss(columns | {name: np.asarray(sizes, np.float64)})]
    except RecordError:
        return [math.inf] * len(sizes)


def loss_or_infinity(policy: Policy, record: Mapping[str, Any]) -> float:
    """The loss; infinite where the policy does not cover the record's group."""
    try:
        return float(policy.loss(dict(record)))
    except RecordError:
        return math.inf


def _one_digit(value: float) -> float:
    unit = 10.0 ** math.floor(math.log10(value))
    return math.floor(value / unit) * unit


def _on_lattice(value: float, measure: Measure) -> float:
    steps = max(1, round(value / float(measure.step)))
    found = measure.step * steps
    return int(found) if found.denominator == 1 else float(found)


# The places of a firm's establishments: what the page asks for, and the levels that it finds from public lists of
# codes.


MOST_CODES = 20_000
"""A longer list would make the page large; its levels are asked for."""


@dataclass(frozen=True, slots=True)
class FirmColumns:
    """The columns that say which establishments of a firm share a cell."""

    needed: tuple[str, ...] = ()
    """Those typed for a firm, because no question asks for them as they are."""
    shared: tuple[str, ...] = ()
    """Those that a question asks for as text, so that its answer says the place as well."""
    lists: tuple[pa.Table, ...] = ()
    """Lists of codes, the finest level last, with the coarser levels that are found from it."""

    @classmethod
    def of(cls, firms: FirmPolicy | None, questions: Sequence[Question], lists: Iterable[pa.Table]) -> "FirmColumns":
        """Return the needs of a release, with finest codes per list."""
        if firms is None:
            return cls()
        columns, used = firms.columns(), []
        for listed in lists:
            *coarser, finest = listed.column_names
            levels = [level for level in coarser if level in columns]
            if levels and listed.num_rows <= MOST_CODES:
                used.append(listed.select([*levels, finest]))
        finest_of = {level: each.column_names[-1] for each in used for level in each.column_names}
        wanted = tuple(dict.fromkeys(finest_of.get(name, name) for name in columns))
        typed = {question.name for question in questions if question.kind == TEXT}
        amounts = {question.name for question in questions if question.kind == AMOUNT}
        return cls(
            needed=tuple(name for name in wanted if name not in typed | amounts),
            shared=tuple(name for name in wanted if name in typed),
            lists=tuple(used),
        )

    def found_levels(self) -> list[str]:
        """The levels that the page finds."""
        return [level for listed in self.lists for level in listed.column_names[:-1]]

    def to_json(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """What the script of the page needs."""
        return {
            "places": [[name, labels.get(name, name)] for name in self.needed],
            "shared": list(self.shared),
            "lists": [_list_json(listed) for listed in self.lists],
        }


def _list_json(listed: pa.Table) -> dict[str, Any]:
    *levels, finest = listed.column_names
    return {
        "finest": finest,
        "codes": [str(code) for code in listed.column(finest).to_pylist()],
        "levels": {level: _level_json(listed.column(level)) for level in levels},
    }


def _level_json(column: pa.ChunkedArray) -> dict[str, Any]:
    """Return a level's values, and each code's index among them."""
    coded = encode_column(column)
    return {"values": [str(value) for value in coded.dictionary.to_pylist()], "at": numpy_of(coded.indices).tolist()}


# The sentences of the page about a record, all in one place: Python fills them in at first, the script after each
# change.


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
    "never": "The odds never change by more than a factor of {tail}, whatever was believed before.",
    "selected": "With probability at most {own} a cell is listed only because of you; in that case there is no guarantee.",
    "no band": "How well your size is hidden cannot be stated as a simple range here: {reason}.",
    "test": (
        "A membership test with a 5% false-positive rate detects your record with probability at most {power} "
        "(without the publication: 5%)."
    ),
    "told": (
        "Someone who knows every other record, and everything about you but one number, can tell {values} at best: a range "
        "that is right 95% of the time, whatever that number is, reaches so far or farther at least half the time."
    ),
    "told exactly": "your exact {label}",
    "told within": "your {label} within ± {reach}{unit}",
    "told between": "your {label} as {low} to {high}{unit}",
    "told from": "your {label} as {low}{unit} or more",
    "reliably": (
        "“Reliably” means: a test between two numbers in that range, run by someone who knows everything else about you and "
        "every other record, with a 5% false-positive rate, is right at most half the time."
    ),
}
LIMITLESS = 100.0
"""Losses from which a factor would be meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Values indistinguishable from a record's; ``high`` None if unlimited."""

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
    hidden = [_band_sentence(band) for band in bands if band.low != band.high]
    exact = [SENTENCES["exactly"].format(label=band.label) for band in bands if band.low == band.high]
    clauses = ([SENTENCES["band"].format(bands=or_list(hidden))] if hidden else []) + exact
    return "; ".join([odds, *clauses]) + "."


def or_list(clauses: Sequence[str]) -> str:
    """a, b or c."""
    return " or ".join([*([", ".join(clauses[:-1])] if clauses[:-1] else []), clauses[-1]])


def _band_sentence(band: Band) -> str:
    if band.high is None:
        return SENTENCES["open band"].format(low=band.low, label=band.label)
    return SENTENCES["one band"].format(low=band.low, high=band.high, label=band.label)


def told_sentence(windows: Sequence[ValueWindow], labels: Mapping[str, str], units: Mapping[str, str]) -> str:
    """How closely an attacker can tell the values of a record (T-INFER)."""
    return SENTENCES["told"].format(values=" and ".join(_told(each, labels, units) for each in windows))


def _told(window: ValueWindow, labels: Mapping[str, str], units: Mapping[str, str]) -> str:
    decimals = len(str(window.step.denominator - 1)) if window.step.denominator > 1 else 0
    low, high, reach = (
        None if end is None else amount_text(end, decimals) for end in (window.low, window.high, window.reach)
    )
    kind = "exactly" if low == high else "within" if reach is not None else "from" if high is None else "between"
    unit = f" ({units[window.measure]})" if units.get(window.measure) else ""
    label = labels.get(window.measure, window.measure)
    return SENTENCES[f"told {kind}"].format(label=label, unit=unit, low=low, high=high, reach=reach)


def details(rho: float, own: float, told_values: str = "", pure: float | None = None) -> list[str]:
    """The sentences below it."""
    told = [SENTENCES["test"].format(power=f"{share_text(power_beside_delta(rho, own), 1)}")]
    if told_values:
        told.append(told_values)
    if own:
        told.append(SENTENCES["selected"].format(own=chance_text(own)))
    if 0 < rho <= LIMITLESS:
        likely = likely_log_odds(rho, pure)
        told.append(SENTENCES["never" if likely == pure else "tail"].format(tail=factor_text(likely)))
    return told


def as_listed(described: "Published", record: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a record with codes in place of their names, and the columns whose code is in no public list."""
    found, unlisted = dict(record), []
    for listed in described.lists.tables().values():
        for column in listed.column_names:
            given = record.get(column)
            if not isinstance(given, str):
                continue
            codes = {str(code) for code in listed[column].unique().to_pylist()}
            labels = described.words.values(column).items()
            wanted = given.casefold()
            named = [code for code, label in labels if wanted in (label.casefold(), f"{code} {label}".casefold())]
            # Codes are read as they are written.
            if given not in codes and len(named) == 1 and named[0] in codes and named[0].casefold() != wanted:
                found[column] = named[0]
            elif given not in codes:
                unlisted.append(column)
    return found, unlisted
