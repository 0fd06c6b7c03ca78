"""The state of the studio as one value, and the pure function that every control goes through.

The page has the same function in JavaScript; tests compare the two on the same events. Only whole numbers and text are in a
state, so that both write the same JSON and the same digest.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from recordwise.errors import ParameterError, own_argument_errors, own_errors_of
from recordwise.studio import form
from recordwise.studio.trade import Trade

MOST_KEPT = 4
MOST_STEPS = 200
"""So many steps can be undone."""
MOST_TEXT = 2_000
"""The most letters of a reason or name, in UTF-16 code units as JavaScript counts them."""
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A setting that stands next to others."""

    name: str
    position: int
    mechanisms: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is chosen."""

    position: int
    mechanisms: dict[str, str]
    """The name of the candidate, by the key of the statistic."""
    reasons: dict[str, str]
    """By the key of the statistic, or "position" for the main control; without a reason there is no entry."""
    kept: tuple[Kept, ...]
    draw: int
    """Which draw of the three places is shown, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a state may hold, from its trade file."""

    positions: int
    candidates: dict[str, tuple[str, ...]]
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A state as saved; its limits are its trade file's."""

    version: int
    now: Setting
    past: tuple[Setting, ...]
    future: tuple[Setting, ...]
    last: str
    """The kind of the last event; moves that follow each other are undone together."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class StudioState:
    """Everything the page remembers."""

    limits: Limits
    now: Setting
    past: tuple[Setting, ...] = ()
    """For undo, the latest last."""
    future: tuple[Setting, ...] = ()
    """For redo, the next one last."""
    last: str = ""

    @classmethod
    def first(cls, trade: Trade) -> "StudioState":
        """Return the plan as it stands.

        Args:
            trade: The trade file.

        Returns:
            The state in which the studio begins.
        """
        own = {each.key: each.today for each in trade.statistics}
        now = Setting(position=trade.today, mechanisms=own, reasons={}, kept=(), draw=0)
        return cls(limits=limits_of(trade), now=now)

    def to_json(self) -> dict[str, Any]:
        """Return the state for JSON, without its limits."""
        saved = Saved(version=VERSION, now=self.now, past=self.past, future=self.future, last=self.last)
        found: dict[str, Any] = form.write(saved)
        return found

    @classmethod
    def from_json(cls, content: Any, trade: Trade) -> "StudioState":
        """Read a saved state.

        Args:
            content: What ``to_json`` returned.
            trade: The trade file that it is about.

        Returns:
            The state.

        Raises:
            ParameterError: It has another form, or is about another trade file.
        """
        saved = form.read(Saved, content, what="state")
        limits = limits_of(trade)
        settings = (saved.now, *saved.past, *saved.future)
        if saved.version != VERSION or len(settings) > 2 * MOST_STEPS + 1:
            raise ParameterError(parameter="state", problem="is of another version", advice="Begin again.")
        if not all(_fits(each, limits) for each in settings):
            raise ParameterError(parameter="state", problem="is about another trade file", advice="Begin again.")
        return cls(limits=limits, now=saved.now, past=saved.past, future=saved.future, last=saved.last)

    def text(self) -> str:
        """Return the JSON whose digest is in the address."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def digest(self) -> str:
        """Return the digest for the address: 16 hexadecimal digits of SHA-256."""
        return hashlib.sha256(self.text().encode("utf-8", "replace")).hexdigest()[:16]

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of a saved state."""
        return form.json_schema(Saved, title="recordwise studio state")


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What a person did.

    Args:
        kind: "move" (to ``number``), "choose" (for ``key`` the candidate ``text``), "keep" (under the name ``text``), "drop" (the
            kept setting ``number``), "show" (the kept setting ``number`` again), "reason" (for ``key``, ``text``),
            "another_draw", "undo" or "redo".
        number: A position, or the place of a kept setting.
        key: The key of a statistic, or "position".
        text: A candidate, a name or a reason.
    """

    kind: str
    number: int = 0
    key: str = ""
    text: str = ""

    @classmethod
    def from_json(cls, content: Any) -> "Event":
        """Read an event; fields that are left out are empty.

        Args:
            content: An object with ``kind``.

        Returns:
            The event.
        """
        empty = {"kind": "", "number": 0, "key": "", "text": ""}
        return form.read(cls, empty | content if isinstance(content, dict) else content, what="event")


def limits_of(trade: Trade) -> Limits:
    """Return what states of a trade file may hold."""
    return Limits(
        positions=len(trade.positions),
        candidates={each.key: tuple(own.name for own in each.candidates) for each in trade.statistics},
        draws=trade.draws,
    )


@own_argument_errors
def step(state: StudioState, event: Event) -> StudioState:
    """Return the state after an event.

    An event that means nothing here (a position that does not exist, a fifth setting to keep, nothing to undo) changes nothing: the
    page may send it twice, or late.

    Args:
        state: The state.
        event: What a person did.

    Returns:
        The next state.
    """
    if event.kind == "undo":
        return _turned(state, state.past, state.future) if state.past else state
    if event.kind == "redo":
        return _turned(state, state.past, state.future, back=False) if state.future else state
    after = _after(state.now, event, state.limits)
    if after is None or after == state.now:
        return state
    # A control that is dragged sends many moves, which are undone together; so are the letters of one reason.
    label = event.kind if event.kind != "reason" else f"reason {event.key}"
    together = label == state.last and (event.kind == "move" or event.kind == "reason")
    past = state.past if together and state.past else (*state.past, state.now)[-MOST_STEPS:]
    return replace(state, now=after, past=past, future=(), last=label)


def _turned(
    state: StudioState, past: tuple[Setting, ...], future: tuple[Setting, ...], *, back: bool = True
) -> StudioState:
    if back:
        return replace(state, now=past[-1], past=past[:-1], future=(*future, state.now), last="")
    return replace(state, now=future[-1], past=(*past, state.now), future=future[:-1], last="")


def _after(now: Setting, event: Event, limits: Limits) -> Setting | None:
    """Return the setting after an event; None if the event means nothing."""
    match event.kind:
        case "move" if 0 <= event.number < limits.positions:
            return replace(now, position=event.number)
        case "choose" if event.text in limits.candidates.get(event.key, ()):
            return replace(now, mechanisms=now.mechanisms | {event.key: event.text})
        case "keep" if len(now.kept) < MOST_KEPT:
            made = Kept(name=_short(event.text), position=now.position, mechanisms=now.mechanisms)
            return replace(now, kept=(*now.kept, made))
        case "drop" if 0 <= event.number < len(now.kept):
            return replace(now, kept=now.kept[: event.number] + now.kept[event.number + 1 :])
        case "show" if 0 <= event.number < len(now.kept):
            chosen = now.kept[event.number]
            return replace(now, position=chosen.position, mechanisms=chosen.mechanisms)
        case "reason" if event.key == "position" or event.key in limits.candidates:
            rest = {key: text for key, text in now.reasons.items() if key != event.key}
            told = _short(event.text)
            return replace(now, reasons=rest | ({event.key: told} if told.strip() else {}))
        case "another_draw":
            return replace(now, draw=(now.draw + 1) % limits.draws)
    return None


def _short(text: str) -> str:
    """Cut a text as JavaScript would, and leave out half letters."""
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * MOST_TEXT]
    return units.decode("utf-16-le", "ignore")


def _fits(setting: Setting, limits: Limits) -> bool:
    chosen = [(setting.position, setting.mechanisms), *((each.position, each.mechanisms) for each in setting.kept)]
    known = {*limits.candidates, "position"}
    texts = [*setting.reasons.values(), *(each.name for each in setting.kept)]
    return (
        all(0 <= place < limits.positions and _known(own, limits) for place, own in chosen)
        and 0 <= setting.draw < limits.draws
        and len(setting.kept) <= MOST_KEPT
        and set(setting.reasons) <= known
        and all(each == _short(each) for each in texts)
    )


def _known(mechanisms: dict[str, str], limits: Limits) -> bool:
    return set(mechanisms) == set(limits.candidates) and all(
        name in limits.candidates[key] for key, name in mechanisms.items()
    )
