"""Every error recordwise raises on purpose.

A message says what was refused, what state we are in, and what to do. None of them ever holds a value read from a record:
they are built from parameters, names and counts, and the parts are kept as attributes for programs.
"""


class RecordwiseError(Exception):
    """The common ancestor: catch it to catch everything recordwise refuses."""


class ParameterError(RecordwiseError, ValueError):
    """A parameter makes no sense; raised when the object is built, before anything happens."""

    def __init__(self, *, parameter: str, problem: str, advice: str = "") -> None:
        self.parameter = parameter
        self.problem = problem
        self.advice = advice
        super().__init__(f"{parameter} {problem}." + (f" {advice}" if advice else ""))


class RecordError(RecordwiseError, ValueError):
    """A record or a table does not fit the function it is given to. Names columns and counts, never values."""

    def __init__(self, *, column: str, problem: str, count: int | None = None) -> None:
        self.column = column
        self.problem = problem
        self.count = count
        where = "" if count is None else f" in {count:,} row{'s' if count != 1 else ''}"
        super().__init__(f"column '{column}' {problem}{where}.")


class UnknownFormError(RecordwiseError, ValueError):
    """A saved policy or function has a form this version does not know; it is refused, never guessed."""

    def __init__(self, *, what: str, found: object) -> None:
        self.what = what
        self.found = found
        super().__init__(
            f"unknown {what} {shown(found)}: this version of recordwise cannot tell what it promises. "
            "Use the version that wrote it."
        )


class GroupLossError(RecordwiseError, ValueError):
    """A loss of several records together was asked for where no valid bound exists."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"no group loss: {reason}.")


LONGEST_SHOWN = 60


def shown(value: object) -> str:
    """A parameter as a message shows it: short scalars as they are, everything else by its type, so that no input can make the
    message itself fail or fill the screen."""
    if isinstance(value, int) and value.bit_length() > 4 * LONGEST_SHOWN:
        return "a whole number of too many digits"
    if not isinstance(value, (str, int, float)) and value is not None:
        return type(value).__name__
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
