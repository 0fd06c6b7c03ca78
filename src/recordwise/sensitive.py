"""A box for what came from records and has not met noise yet."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Sensitive(Generic[T]):
    """Holds a confidential value. It prints nothing, cannot be pickled, compared or hashed; only the session opens it."""

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The exact value. Call it only where noise is added in the next line."""
        return self._value

    def __repr__(self) -> str:
        return "<Sensitive>"

    def __eq__(self, other: object) -> bool:
        raise TypeError("a sensitive value is not compared")

    def __reduce__(self) -> str:
        raise TypeError("a sensitive value is not pickled")
