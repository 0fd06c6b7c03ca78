"""Optional dependencies: which source needs which, whether it is installed, and the command that installs it."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from recordwise.errors import ExtraError
from recordwise.plan.files import STAT_ENDINGS, StatFiles
from recordwise.plan.sources import Postgres

MODULES = {"postgres": "adbc_driver_postgresql", "stat": "pyreadstat", "spark": "pyspark"}
NEEDS = {"postgres": "a PostgreSQL source", "stat": "a source of SAS, Stata or SPSS", "spark": "engine 'spark'"}


def load_part(module: str, *, extra: str) -> Any:
    """Import an optional module when it is first needed."""
    try:
        return import_module(module)
    except ImportError:
        raise ExtraError(what=NEEDS[extra], extra=extra) from None


def missing_extra(given: Any, *, of_engine: str | None = None) -> ExtraError | None:
    """The extra that an engine or a source (even one whose files do not exist yet) needs and this installation lacks."""
    extra = of_engine or _extra_of(given)
    if extra is None or find_spec(MODULES[extra]) is not None:
        return None
    return ExtraError(what=NEEDS[extra], extra=extra)


def _extra_of(given: Any) -> str | None:
    if isinstance(given, Postgres):
        return "postgres"
    named = given if isinstance(given, list | tuple) else [given]
    stat = isinstance(given, StatFiles) or any(str(each).lower().endswith(STAT_ENDINGS) for each in named)
    return "stat" if stat else None
