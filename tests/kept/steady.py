"""What a subject tells on any machine.

Errors that are simulated take their seed from the digest of a release, and fitted or transformed numbers in it may differ
in their last digit from one processor to the next. Here the seed comes from the purpose alone.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from recordwise.noise.randomness import Seeded
from recordwise.reader import asking, derived
from recordwise.release import consistent, spread

USERS = (consistent, spread, derived, asking)
_seed = spread.public_seed


def _steady(digest: str, *purpose: str) -> Seeded:
    return _seed("a digest", *purpose)


def told(ask: Callable[[], Iterator[tuple[str, Any]]], as_kept: Callable[[Any], Any] = lambda value: value) -> Any:
    """Return the parts of a subject by name, each as it is kept."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for user in USERS:
            stack.enter_context(patch.object(user, "public_seed", _steady))
        return {part: as_kept(value) for part, value in ask()}
