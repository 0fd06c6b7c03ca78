"""What a fuzz target is: seeds, a grammar, mutations, and an oracle that knows a wrong answer when it sees one."""

from random import Random
from typing import Protocol

REFUSED, ACCEPTED = "refused", "accepted"
LONGEST_MESSAGE = 20_000


class WrongError(Exception):
    """An input was accepted and led to something that is not true, or a refusal was no clear one."""


class Target(Protocol):
    """One door. Its state lives in the worker process; an input is bytes."""

    def seeds(self) -> list[bytes]:
        """Inputs that are accepted."""

    def fresh(self, rng: Random) -> bytes:
        """A new input, near enough to the truth to get past the first check."""

    def mutate(self, rng: Random, data: bytes, other: bytes) -> bytes:
        """A changed input; ``other`` may lend parts."""

    def check(self, data: bytes) -> str:
        """``refused`` or ``accepted``. Raises ``RecordwiseError`` for a refusal, too, and ``WrongError`` for a wrong answer."""


def clear_refusal(error: Exception) -> None:
    """A refusal is a sentence: not empty, not endless, without the marks of a traceback or of an object's address."""
    text = str(error)
    if not text.strip() or len(text) > LONGEST_MESSAGE:
        raise WrongError(f"the message of {type(error).__name__} has {len(text)} characters")
    for mark in ("Traceback (most recent", " at 0x", "<class '", "object at"):
        if mark in text:
            raise WrongError(f"the message of {type(error).__name__} holds {mark!r}")
