"""Every error recordwise raises on purpose.

A message says what was refused, what state we are in, and what to do. None of them ever holds a value read from a record:
they are built from parameters, names and counts, and the parts are kept as attributes for programs.
"""


class RecordwiseError(Exception):
    """The common ancestor: catch it to catch everything recordwise refuses."""

    __context__: BaseException | None = None
    """Always: what was being handled can quote a record, and ``from None`` only keeps it from being printed."""


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


class BudgetError(RecordwiseError):
    """A query was refused because the budget does not cover it for every possible record."""

    def __init__(
        self, *, query: str, witness: dict[str, object] | None, needed: float, left: float, reason: str
    ) -> None:
        self.query = query
        self.witness = witness
        self.needed = needed
        self.left = left
        self.reason = reason
        if witness is None:
            why = f"it could not be proved to fit the budget ({reason})"
        else:
            shown = (f"{name}={'NULL' if value is None else value}" for name, value in witness.items())
            record = ", ".join(shown) or "every record"
            why = f"for {record} it needs {reason} {needed:.6g} and {left:.6g} is left"
        super().__init__(f"{query} was refused: {why}. Nothing was spent. Use more noise, or drop the query.")


class TuningError(RecordwiseError):
    """A plan was tuned on the confidential table itself, which no budget covers, or it is not said what it was tuned on."""

    def __init__(self, *, problem: str, advice: str) -> None:
        self.problem = problem
        self.advice = advice
        super().__init__(f"{problem}. Nothing was read and nothing was spent. {advice}")


class UnkeptLedgerWarning(UserWarning):
    """A session publishes without a ledger file: no later session will know what it spent."""


class OutputError(RecordwiseError):
    """The files of a release could not be written; nothing is left half done."""

    def __init__(self, *, folder: str, problem: str, advice: str = "") -> None:
        self.folder = folder
        self.problem = problem
        super().__init__(f"{folder} {problem}. No file was left behind." + (f" {advice}" if advice else ""))


class LedgerError(RecordwiseError):
    """The ledger cannot be used: it is damaged, belongs to something else, or the disk does not take it."""

    def __init__(self, *, path: str, problem: str, advice: str = "") -> None:
        self.path = path
        self.problem = problem
        self.advice = advice
        super().__init__(f"ledger {path} {problem}." + (f" {advice}" if advice else ""))


class DrawingError(RecordwiseError, RuntimeError):
    """Adding noise failed after the charge. Its own text can quote a total, so only the kind of failure is told."""

    def __init__(self, *, kind: str) -> None:
        self.kind = kind
        super().__init__(
            f"adding noise failed with {kind}; its message is withheld because it can quote confidential totals. "
            "The charge stays in the ledger and nothing was published. Please report this kind of failure."
        )


class ExternalError(RecordwiseError):
    """A mechanism from elsewhere was refused or failed. Its own text can quote a record, so only the kind of failure is told."""

    def __init__(self, *, mechanism: str, problem: str, state: str, advice: str = "") -> None:
        self.mechanism = mechanism
        self.problem = problem
        self.state = state
        self.advice = advice
        super().__init__(f"{mechanism} {problem}. {state}" + (f" {advice}" if advice else ""))


class GroupLossError(RecordwiseError, ValueError):
    """A loss of several records together was asked for where no valid bound exists."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"no group loss: {reason}.")


class PlanError(RecordwiseError, ValueError):
    """A plan does not fit its schema or its keys. Lists every problem found, not only the first."""

    def __init__(self, *, problems: tuple[str, ...]) -> None:
        self.problems = problems
        listed = "; ".join(problems)
        super().__init__(f"the plan was refused: {listed}. Nothing was read and nothing was spent.")


class PlanFileError(RecordwiseError, ValueError):
    """A plan file cannot be used. Lists every problem found, each with its line."""

    def __init__(self, *, path: str, problems: tuple[object, ...]) -> None:
        self.path = path
        self.problems = problems
        listed = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"{path} was refused; nothing was read and nothing was spent:{listed}")


class SqlError(RecordwiseError, ValueError):
    """SQL text holds something that is not on the whitelist. It names the construct; nothing of the text has run."""

    def __init__(self, *, construct: str, advice: str = "") -> None:
        self.construct = construct
        self.advice = advice
        super().__init__(f"SQL was refused: {construct}. Nothing ran." + (f" {advice}" if advice else ""))


class KeysError(RecordwiseError, ValueError):
    """Public keys are no partition of the cells, or too many."""

    def __init__(self, *, column: str, problem: str, advice: str = "") -> None:
        self.column = column
        self.problem = problem
        self.advice = advice
        super().__init__(f"keys were refused: {column} {problem}." + (f" {advice}" if advice else ""))


class SourceError(RecordwiseError, ValueError):
    """A table cannot be opened as declared: a missing file, a missing column, another type. No record was read."""

    def __init__(self, *, source: str, problem: str, advice: str = "") -> None:
        self.source = source
        self.problem = problem
        self.advice = advice
        super().__init__(f"{source} was refused: {problem}. No record was read." + (f" {advice}" if advice else ""))


class DataError(RecordwiseError, ValueError):
    """Records break what the schema promises. Counts and column names, never a value; for the owner of the data only."""

    def __init__(self, *, problems: tuple[RecordError, ...]) -> None:
        self.problems = problems
        listed = " ".join(str(problem) for problem in problems)
        super().__init__(f"the table was refused: {listed} Nothing was spent. Correct the rows or the declared schema.")


class EngineError(RecordwiseError, RuntimeError):
    """The engine failed. Its own text can quote a record, so only the kind of failure is told."""

    def __init__(self, *, engine: str, kind: str) -> None:
        self.engine = engine
        self.kind = kind
        super().__init__(f"{engine} failed with {kind}; its message is withheld because it can quote records.")


class MissingPartError(RecordwiseError, RuntimeError):
    """Something optional that was asked for needs a program or a package that is not here, or is too old."""

    def __init__(self, *, needed_by: str, part: str, advice: str, found: str = "") -> None:
        self.needed_by = needed_by
        self.part = part
        self.found = found
        self.advice = advice
        state = f"; found {found}" if found else ", which is not here"
        super().__init__(f"{needed_by} needs {part}{state}. No record was read. {advice}")


class ServerError(RecordwiseError, RuntimeError):
    """A database server failed or went away while it was read. Records are read before a charge, so nothing was charged."""

    def __init__(self, *, server: str, problem: str) -> None:
        self.server = server
        self.problem = problem
        super().__init__(
            f"{server}: {problem}; its message is withheld because it can quote records. "
            "Nothing was charged and nothing is kept of what had been read. Run again when the server is well."
        )


class ExtraError(RecordwiseError, ImportError):
    """An optional part of recordwise is not installed."""

    def __init__(self, *, what: str, extra: str) -> None:
        self.what = what
        self.extra = extra
        self.command = f"pip install 'recordwise[{extra}]'"
        super().__init__(
            f"{what} needs the extra '{extra}', which is not installed. Nothing was read. Run: {self.command}"
        )


class RangeError(RecordwiseError, ValueError):
    """A noise law reaches beyond 64-bit integers too often to be drawn."""

    def __init__(self, *, law: str, log10_probability: float) -> None:
        self.law = law
        self.log10_probability = log10_probability
        super().__init__(
            f"{law} was refused: it exceeds 2^62 steps with probability 10^{log10_probability:.1f}; 10^-30 is the most allowed. "
            "Nothing was drawn. Take a coarser step, a smaller scale or a lighter tail."
        )


class ExtremeDrawError(RecordwiseError, OverflowError):
    """A draw of the exact law does not fit a 64-bit integer; it is neither wrapped nor clipped."""

    def __init__(self, *, count: int) -> None:
        self.count = count
        super().__init__(
            f"{count} draw{'s do' if count != 1 else ' does'} not fit 64 bits. Nothing was returned. "
            "Add noise with add_to, which clips only total + noise."
        )


class SolverError(RecordwiseError, RuntimeError):
    """A numerical code gave up; the fit is not returned, because it would not be what it is called."""

    def __init__(self, *, problem: str, status: str) -> None:
        self.problem = problem
        self.status = status
        super().__init__(f"{problem} was not solved: {status}. Nothing was released. Rescale the answers, or use nnls.")


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
