"""Every error recordwise raises on purpose.

A message says what was refused, what state things are in, and what to do. No message contains a value read from a record:
messages are built from parameters, names and counts, which are also attributes of the error.

    RecordwiseError
    ├── before anything is read
    │   ├── ParameterError (ValueError)       a parameter is out of range or of the wrong type
    │   │   ├── ChoiceError                   not exactly one of several parameters was given
    │   │   └── KindError (TypeError)         an argument of the wrong kind, or with a name that is not known
    │   ├── UnknownFormError (ValueError)     a saved policy or function this version does not know
    │   ├── PlanError (ValueError)            a plan does not fit its schema or its keys
    │   ├── PlanFileError (ValueError)        a plan file has problems, each listed with its line
    │   ├── SqlError (ValueError)             SQL text outside the whitelist
    │   ├── KeysError (ValueError)            public keys that overlap, do not match their columns, or are too many
    │   ├── TuningError                       a plan tuned on the confidential table itself
    │   ├── RangeError (ValueError)           a noise law whose draws would not fit 64 bits
    │   ├── ExtraError (ImportError)          an optional part of recordwise is not installed
    │   └── MissingPartError (RuntimeError)   a program or package is missing or too old
    ├── while records are read
    │   ├── SourceError (ValueError)          a table cannot be opened as declared
    │   ├── RecordError (ValueError)          a record or table does not fit a function or a schema
    │   ├── DataError (ValueError)            records break the declared schema
    │   ├── OutsideError                      too many records are outside the published cells
    │   ├── EngineError (RuntimeError)        DuckDB or Spark failed
    │   └── ServerError (RuntimeError)        a database server failed
    ├── while the budget is charged and noise is drawn
    │   ├── BudgetError                       the budget does not cover a query
    │   ├── AlreadyReleasedError              the same release was charged before
    │   ├── LedgerError                       the ledger is damaged, belongs to another dataset, or cannot be written
    │   ├── DrawingError (RuntimeError)       drawing noise failed after the charge
    │   ├── ExtremeDrawError (OverflowError)  a draw does not fit 64 bits
    │   └── ExternalError                     an external mechanism was refused or failed
    └── afterward
        ├── OutputError                       the files of a release could not be written
        ├── GroupLossError (ValueError)       no valid bound exists for the loss of a group
        └── SolverError (RuntimeError)        a fit did not converge

    UnkeptLedgerWarning (UserWarning)         a session publishes without a ledger file

The headings in lower case are stages, not classes: every error derives from ``RecordwiseError`` directly, except
``ChoiceError`` and ``KindError``.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from typing import Any, ParamSpec, TypeVar


class RecordwiseError(Exception):
    """Base class of every recordwise error."""

    __context__: BaseException | None = None
    """Always None: the exception being handled can quote a record, and ``from None`` only keeps it from being printed."""


def _sentence(problem: str) -> str:
    """Return a problem as a sentence, which may be a question.

    Args:
        problem: The problem.

    Returns:
        The same with a full stop, unless it ends in a question.
    """
    return problem if problem.endswith("?") else f"{problem}."


class ParameterError(RecordwiseError, ValueError):
    """A parameter out of range or of the wrong type."""

    def __init__(self, *, parameter: str, problem: str, advice: str = "") -> None:
        self.parameter = parameter
        self.problem = problem
        self.advice = advice
        super().__init__(f"{parameter} {_sentence(problem)}" + (f" {advice}" if advice else ""))


class ChoiceError(ParameterError):
    """Not exactly one of several alternative parameters was given."""

    def __init__(self, *, choices: Sequence[str], given: Sequence[str]) -> None:
        self.choices = tuple(choices)
        self.given = tuple(given)
        super().__init__(
            parameter="Give exactly one of",
            problem=f"{', '.join(choices)}; got {' and '.join(given) or 'none'}",
        )
        self.parameter = " or ".join(choices)


class RecordError(RecordwiseError, ValueError):
    """A record or table that does not fit; never quotes values.

    ``code`` names the kind of problem for a program, where one acts on it.
    """

    def __init__(
        self,
        *,
        column: str,
        problem: str,
        count: int | None = None,
        counted: str = "row",
        code: str = "",
        advice: str = "",
    ) -> None:
        self.advice = advice
        self.column = column
        self.problem = problem
        self.code = code
        self.count = count
        where = "" if count is None else f" in {count:,} {counted}{'s' if count != 1 else ''}"
        super().__init__(f"column '{column}' {problem}{where}.")


class KindError(ParameterError, TypeError):
    """An argument of the wrong kind, or with an unknown name."""


def expect_kind(value: object, kinds: Any, *, parameter: str, wanted: str, advice: str = "") -> None:
    """Refuse an argument of another kind, at the caller's line.

    Args:
        value: The argument.
        kinds: The classes that it may be of.
        parameter: Its name.
        wanted: What it must be, in words.
        advice: What to do.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds not in (bool, object)):
        raise KindError(parameter=parameter, problem=f"must be {wanted}, not {kind_text(value)}", advice=advice)


def expect_flags(**given: object) -> None:
    """Refuse arguments other than True or False, at the caller's line.

    Args:
        given: The arguments by name.
    """
    for name, value in given.items():
        expect_kind(value, bool, parameter=name, wanted="True or False")


def kind_text(value: object) -> str:
    """Return what a value is.

    Args:
        value: Anything.

    Returns:
        The name of its class, or that it is a class itself.
    """
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def near_name(name: str, known: Iterable[str]) -> str:
    """Return a question for the known name that is nearest.

    Args:
        name: What was written.
        known: The names that there are.

    Returns:
        ``: did you mean 'state'?`` where one is near, and nothing elsewhere.
    """
    import difflib

    folded = {each.casefold(): each for each in known if each != name}
    near = difflib.get_close_matches(str(name).casefold(), list(folded), n=1, cutoff=0.6)
    return f": did you mean '{folded[near[0]]}'?" if near else ""


P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


def own_argument_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Let a public function refuse misspelled, missing and unfit arguments.

    Args:
        function: The function.

    Returns:
        The function, with the same signature.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (TypeError, AttributeError, ValueError, LookupError) as error:
            if isinstance(error, RecordwiseError):
                raise
            inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            refusal = _kind_error(function, args, kwargs) if inside else _argument_error(function, args, kwargs)
            if refusal is None:
                raise
            raise refusal from None

    return call


def own_errors_of(cls: type[C]) -> type[C]:
    """Let all public methods of a class refuse wrong arguments.

    Args:
        cls: The class.

    Returns:
        The class itself.
    """
    for name, each in list(vars(cls).items()):
        plain = getattr(each, "__func__", each)
        public = inspect.isfunction(plain) and (name == "__init__" or not name.startswith("_"))
        if public and (plain.__code__.co_argcount + plain.__code__.co_kwonlyargcount > 1 or name == "__init__"):
            made = own_argument_errors(plain)
            setattr(cls, name, type(each)(made) if isinstance(each, classmethod | staticmethod) else made)
    return cls


def _kind_error(
    function: Callable[..., object], args: Sequence[object], given: Mapping[str, object]
) -> KindError | None:
    """Return the refusal of an argument of the wrong kind.

    Args:
        function: What was called, and failed.
        args: The arguments by position.
        given: The arguments by name.

    Returns:
        The error, or None where all of them fit.
    """
    from recordwise.kinds import wrong_kind

    return wrong_kind(function, args, given)


def _argument_error(
    function: Callable[..., object], args: Sequence[object], given: Mapping[str, object]
) -> KindError | None:
    """Return the refusal of a call, with the nearest argument name.

    Args:
        function: What was called.
        args: The arguments by position.
        given: The arguments by name.

    Returns:
        The error, or None for arguments that it takes.
    """
    takes, called = inspect.signature(function), function.__qualname__.removesuffix(".__init__")
    names = [name for name, each in takes.parameters.items() if each.kind not in POSITIONS and name not in SELF]
    for name in given:
        if name not in names:
            near = near_name(name, names)
            return KindError(
                parameter=f"'{name}'",
                problem=f"is no argument of {called}{near}",
                advice="" if near else f"It takes {', '.join(names) or 'none by name'}.",
            )
    try:
        takes.bind(*args, **given)
    except TypeError as error:
        why = str(error)
    else:
        return None
    missing = [each for each in names if why.endswith(f"'{each}'") and "missing" in why]
    problem = f"needs {missing[0]}" if missing else f"was called with arguments that it does not take ({why})"
    return KindError(parameter=called, problem=problem)


POSITIONS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
SELF = ("self", "cls")


class UnknownFormError(RecordwiseError, ValueError):
    """A saved policy or function of a form unknown to this version."""

    def __init__(self, *, what: str, found: object) -> None:
        self.what = what
        self.found = found
        super().__init__(
            f"unknown {what} {value_text(found)}: this version of recordwise does not know what it guarantees. "
            "Use the version that wrote it."
        )


class BudgetError(RecordwiseError):
    """A query that the budget does not cover for every possible record."""

    def __init__(
        self,
        *,
        query: str,
        witness: dict[str, object] | None,
        needed: float,
        left: float,
        reason: str,
        record: str = "",
        most: str = "",
        ways: tuple[str, ...] = (),
    ) -> None:
        self.query = query
        self.witness = witness
        self.needed = needed
        self.left = left
        self.reason = reason
        self.record = record
        """The record in words."""
        self.most = most
        """What needs most of it, in words; empty where that is not known."""
        self.ways = ways
        """What would fit, line by line, to paste into a plan; empty where that is not known."""
        if witness is None:
            why = f"it could not be proved to fit ({reason})"
        else:
            # Where both look alike, the difference says how far they are apart.
            less = f"{needed - left:.2g}" if needed > left else "slightly"
            short = f"{left:.6g} is" if f"{left:.6g}" != f"{needed:.6g}" else f"{less} less is"
            why = f"for {record or 'every record'} it needs {reason} {needed:.6g} and {short} left"
        self.summary = f"the budget does not cover {query}: {why}.{most and f' {most}'} Nothing was spent."
        advice = "".join(f"\n{line}" for line in ways) or " Add noise or drop the query."
        super().__init__(f"{self.summary}{advice}")


class TuningError(RecordwiseError):
    """A plan tuned on the confidential table, or of unknown tuning."""

    def __init__(self, *, problem: str, advice: str) -> None:
        self.problem = problem
        self.advice = advice
        super().__init__(f"{problem}. Nothing was read and nothing was spent. {advice}")


class UnkeptLedgerWarning(UserWarning):
    """A session without a ledger file, whose spending nobody will know."""


class OutputError(RecordwiseError):
    """A failure to write a release's files; no partial output remains."""

    def __init__(self, *, folder: str, problem: str, advice: str = "") -> None:
        self.folder = folder
        self.problem = problem
        super().__init__(f"{folder} {problem}. No file was left behind." + (f" {advice}" if advice else ""))


class LedgerError(RecordwiseError):
    """A ledger that is damaged, of another dataset, or not writable."""

    def __init__(self, *, path: str, problem: str, advice: str = "") -> None:
        self.path = path
        self.problem = problem
        self.advice = advice
        super().__init__(f"ledger {path} {problem}." + (f" {advice}" if advice else ""))


RELEASED, UNFINISHED, WASTED, DRAWING = "released", "unfinished", "wasted", "drawing"
STATES = {
    RELEASED: "was already released (charge {charge}, {date})",
    UNFINISHED: "was charged and drawn before (charge {charge}, {date}), and its folder was not finished",
    WASTED: "was charged before (charge {charge}, {date}), and what was drawn did not reach the disk",
    DRAWING: "was charged (charge {charge}, {date}) by a process that is still drawing it",
}
WAYS_ON = {
    RELEASED: "To publish it again, state a revision, or pay for a second release with --again.",
    UNFINISHED: "Finish it with --resume: that draws nothing and costs nothing.",
    WASTED: "The charge stays spent. Only --again draws a new release and pays for it again.",
    DRAWING: "Wait until that process has ended, then run the same command again with --resume.",
}


class AlreadyReleasedError(RecordwiseError):
    """A repeated charge for the same release. Nothing was charged.

    The same queries, keys, sizes and mechanisms, for the same period and revision.
    """

    def __init__(self, *, ledger: str, charge: int, date: str, state: str) -> None:
        self.ledger = ledger
        self.charge = charge
        self.date = date
        self.state = state
        what = STATES[state].format(charge=charge, date=date)
        super().__init__(f"this release {what}, according to {ledger}. Nothing was charged now. {WAYS_ON[state]}")


class DrawingError(RecordwiseError, RuntimeError):
    """A failure to add noise after the charge.

    The original message can quote a total, so only the exception type is reported.
    """

    def __init__(self, *, kind: str) -> None:
        self.kind = kind
        super().__init__(
            f"adding noise failed with {kind}; its message is withheld because it can quote confidential totals. "
            "The charge stays in the ledger and nothing was published. Please report this exception type as a bug."
        )


class ExternalError(RecordwiseError):
    """An external mechanism that was refused or failed.

    Its message can quote a record, so only the exception type is reported.
    """

    def __init__(self, *, mechanism: str, problem: str, state: str, advice: str = "") -> None:
        self.mechanism = mechanism
        self.problem = problem
        self.state = state
        self.advice = advice
        super().__init__(f"{mechanism} {problem}. {state}" + (f" {advice}" if advice else ""))


class GroupLossError(RecordwiseError, ValueError):
    """A joint loss of several records without a valid bound."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"no bound for the group loss: {reason}.")


class PlanError(RecordwiseError, ValueError):
    """A plan that does not fit its schema or keys.

    Lists every problem, not only the first.
    """

    def __init__(self, *, problems: tuple[str, ...]) -> None:
        self.problems = problems
        listed = _sentence("; ".join(problems))
        super().__init__(f"the plan was refused: {listed} Nothing was read and nothing was spent.")


class PlanFileError(RecordwiseError, ValueError):
    """A plan file cannot be used. Lists every problem with its line."""

    def __init__(self, *, path: str, problems: tuple[object, ...]) -> None:
        self.path = path
        self.problems = problems
        listed = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"{path} was refused; nothing was read and nothing was spent:{listed}")


class SqlError(RecordwiseError, ValueError):
    """SQL text with something outside the whitelist.

    Names the construct; no part of the text was run.
    """

    def __init__(self, *, construct: str, advice: str = "") -> None:
        self.construct = construct
        self.advice = advice
        super().__init__(f"SQL was refused: {_sentence(construct)} Nothing ran." + (f" {advice}" if advice else ""))


class KeysError(RecordwiseError, ValueError):
    """Public keys overlap, do not match their columns, or are too many."""

    def __init__(self, *, column: str, problem: str, advice: str = "") -> None:
        self.column = column
        self.problem = problem
        self.advice = advice
        super().__init__(f"keys were refused: {column} {_sentence(problem)}" + (f" {advice}" if advice else ""))


class SourceError(RecordwiseError, ValueError):
    """A table that cannot be opened as declared.

    A missing file, a missing column, a different type. Nothing was spent. ``unreachable``: its server did not answer, which says
    nothing about the plan.
    """

    def __init__(
        self, *, source: str, problem: str, advice: str = "", read: bool = False, unreachable: bool = False
    ) -> None:
        self.source = source
        self.problem = problem
        self.advice = advice
        self.unreachable = unreachable
        state = "Nothing was spent." if read else "No record was read."
        super().__init__(f"{source} was refused: {_sentence(problem)} {state}" + (f" {advice}" if advice else ""))


class DataError(RecordwiseError, ValueError):
    """Records that break the declared schema.

    States counts and column names, never a value; for the owner of the data only.
    """

    def __init__(self, *, problems: tuple[RecordError, ...]) -> None:
        self.problems = problems
        listed = " ".join(str(problem) for problem in problems)
        advice = " ".join(dict.fromkeys(problem.advice for problem in problems if problem.advice))
        told = advice or "Correct the rows or the declared schema."
        super().__init__(f"the table was refused: {listed} Nothing was spent. {told}")


class OutsideError(RecordwiseError):
    """Too many records outside the published cells.

    The keys probably do not match the codes in the records.
    """

    def __init__(self, *, share: float) -> None:
        self.share = share
        super().__init__(
            f"more than {share:.3g} of the records of a table are outside its published cells. Nothing was spent. See which "
            "table with `recordwise preflight PLAN` or session.owner.preflight(...), a look that the ledger notes; correct the "
            'keys, or state max_outside = "accept".'
        )


class EngineError(RecordwiseError, RuntimeError):
    """A failure of the engine.

    Its message can quote a record, so only the exception type is reported.
    """

    def __init__(self, *, engine: str, kind: str) -> None:
        self.engine = engine
        self.kind = kind
        super().__init__(f"{engine} failed with {kind}; its message is withheld because it can quote records.")


class MissingPartError(RecordwiseError, RuntimeError):
    """A program or package that is missing or too old."""

    def __init__(self, *, needed_by: str, part: str, advice: str, found: str = "") -> None:
        self.needed_by = needed_by
        self.part = part
        self.found = found
        self.advice = advice
        state = f"; found {found}" if found else ", which was not found"
        super().__init__(f"{needed_by} needs {part}{state}. No record was read. {advice}")


class ServerError(RecordwiseError, RuntimeError):
    """A database server that failed while it was read.

    Records are read before the budget is charged, so nothing was charged.
    """

    def __init__(self, *, server: str, problem: str) -> None:
        self.server = server
        self.problem = problem
        super().__init__(
            f"{server}: {problem}; its message is withheld because it can quote records. "
            "Nothing was charged and nothing that had been read was kept. Run again when the server is available."
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
    """A noise law exceeds 64-bit integers too often to be drawn."""

    def __init__(self, *, law: str, log10_probability: float) -> None:
        self.law = law
        self.log10_probability = log10_probability
        super().__init__(
            f"{law} was refused: it exceeds 2^62 steps with probability 10^{log10_probability:.1f}; at most 10^-30 is allowed. "
            "Nothing was drawn. Use a coarser step, a smaller scale or a lighter tail."
        )


class ExtremeDrawError(RecordwiseError, OverflowError):
    """A draw that does not fit a 64-bit integer.

    It is from the exact law, and neither wrapped nor clipped.
    """

    def __init__(self, *, count: int) -> None:
        self.count = count
        super().__init__(
            f"{count} draw{'s do' if count != 1 else ' does'} not fit 64 bits. Nothing was returned. "
            "Use add_to, which clips only the sum of total and noise."
        )


class SolverError(RecordwiseError, RuntimeError):
    """A numerical solver that did not converge.

    No fit is returned, because it would not be the minimizer it claims to be.
    """

    def __init__(self, *, problem: str, status: str) -> None:
        self.problem = problem
        self.status = status
        super().__init__(f"{problem} was not solved: {status}. Nothing was released. Rescale the answers or use nnls.")


LONGEST_SHOWN = 60


def value_text(value: object) -> str:
    """Return a parameter as messages show it.

    Short scalars verbatim, everything else by its type, so that no input can break the message or flood the
    screen.

    Args:
        value: Anything a user passed.

    Returns:
        A short text.
    """
    if isinstance(value, int) and value.bit_length() > 4 * LONGEST_SHOWN:
        return "an integer with too many digits"
    if isinstance(value, Fraction):
        whole = value.denominator == 1
        return (
            value_text(value.numerator) if whole else f"{value_text(value.numerator)}/{value_text(value.denominator)}"
        )
    if not isinstance(value, (str, int, float)) and value is not None:
        return type(value).__name__
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
