"""A door with known holes, to see that every kind of finding is found. Not among the targets of ``make fuzz``."""

import os
import signal
from random import Random

from fuzz.target import ACCEPTED, WrongError
from recordwise.errors import ParameterError

KINDS = [b"crash", b"hang", b"traceback", b"wrong", b"unclear", b"memory", b"fine"]


class Planted:
    def __init__(self) -> None:
        self._made = 0

    def seeds(self) -> list[bytes]:
        return [b"fine"]

    def fresh(self, rng: Random) -> bytes:
        """By the name in the number of the input, so that each kind comes once."""
        return rng.choice(KINDS)

    def mutate(self, rng: Random, data: bytes, other: bytes) -> bytes:
        return data

    def check(self, data: bytes) -> str:
        match data:
            case b"crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            case b"hang":
                while True:
                    self._made += 1
            case b"traceback":
                raise KeyError("planted")
            case b"wrong":
                raise WrongError("planted")
            case b"unclear":
                raise ParameterError(parameter="x", problem="<class 'planted'>")
            case b"memory":
                bytearray(64 << 30)
        return ACCEPTED
