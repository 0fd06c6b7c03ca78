"""The engines a session can open, by name.

Their names and plan-file settings are in ``recordwise.plan.sources``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recordwise.engines.duckdb.engine import DuckDB
from recordwise.engines.engine import Engine, missing_extra
from recordwise.engines.sources.files import is_untyped
from recordwise.errors import ParameterError, SourceError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import DUCKDB, SPARK, names_spark_table, open_source


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """How a session opens one kind of engine."""

    name: str
    open_source: Callable[[Any], Any]
    """Turns a path, a frame or a table into a source before the schema is known; reads only names and types."""
    open: Callable[..., Engine]
    """Called with the source, the schema, ``memory_limit`` and, by name, the ``needs`` that were given."""
    check: Callable[[], None] = lambda: None
    """Raises ``MissingPartError`` if a dependency is not installed."""
    needs: tuple[str, ...] = ()
    """Arguments of ``Session`` that apply only to this engine."""
    extra: str | None = None
    """The optional part of the package that it needs."""
    finds: Callable[[str], bool] = lambda name: False
    """Whether a source of this name is found by the engine itself instead of being a file."""


def _spark_source(source: Any) -> Any:
    from recordwise.engines.spark.sources import open_spark_source

    return open_spark_source(source)


def _spark(*given: Any, **named: Any) -> Engine:
    from recordwise.engines.spark.engine import Spark

    return Spark(*given, **named)


def _check_java() -> None:
    from recordwise.engines.spark.session import check_java

    check_java()


ENGINES = {
    kind.name: kind
    for kind in (
        EngineKind(name=DUCKDB, open_source=open_source, open=DuckDB),
        EngineKind(
            name=SPARK,
            open_source=_spark_source,
            open=_spark,
            check=_check_java,
            needs=("spark",),
            extra=SPARK,
            finds=names_spark_table,
        ),
    )
}


def engine_kind(name: str) -> EngineKind:
    """Look up an engine by name."""
    if name not in ENGINES:
        known = " or ".join(map(repr, ENGINES))
        raise ParameterError(parameter="engine", problem=f"is not known: {name!r}", advice=f"Use {known}.")
    return ENGINES[name]


def opened_source(engine: str | Engine, source: Any) -> Any:
    """Open a source.

    A frame whose types depend on its values is opened once the schema is known.
    """
    if is_untyped(source):
        return source
    return (engine_kind(engine).open_source if isinstance(engine, str) else open_source)(source)


def open_engine(engine: str | Engine, source: Any, schema: Any, *, memory_limit: str, needs: dict[str, Any]) -> Engine:
    """Return the engine, or open the engine of that name.

    With the records bound; ``needs`` that are not set are None.
    """
    own = engine_kind(engine).needs if isinstance(engine, str) else ()
    for name, given in needs.items():
        if given is not None and name not in own:
            wanted = next(kind.name for kind in ENGINES.values() if name in kind.needs)
            raise ParameterError(
                parameter=name, problem="does not apply to the engine in use", advice=f"Use engine={wanted!r}."
            )
    if not isinstance(engine, str):
        return engine
    chosen = {name: needs[name] for name in own}
    return engine_kind(engine).open(source, schema, memory_limit=memory_limit, **chosen)


# Does a plan fit its source? Names and types are read, no record; what cannot be reached from here is said to be so.


FITS = "has the declared columns, in types they can be read from"
UNREAD = (
    "has the declared columns. Stored as text: {}; no value was read, so whether all are written as declared shows when the "
    "records are read"
)


def source_state(given: Any, schema: Schema, *, engine: str) -> str:
    """What is known about the source of a plan, in words.

    Raises:
        SourceError: It is not there, or does not fit the schema.
    """
    from recordwise.engines.spark.sources import RemotePaths, SparkTable

    missing = missing_extra(given)
    if missing is not None:
        return f"not read, because the extra '{missing.extra}' is not installed"
    opened = engine_kind(engine).open_source(given)
    if isinstance(opened, RemotePaths | SparkTable):
        return "not read, because only Spark can find it"
    try:
        with DuckDB(opened, schema) as bound:
            unread = bound.unread()
    except SourceError as error:
        if error.unreachable:
            return f"not read: {error.problem}"
        raise
    return FITS if not unread else UNREAD.format(", ".join(unread))
