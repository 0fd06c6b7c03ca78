"""Labels that must not be lost: reproducible noise is never called private, and tuning on the records is always disclosed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from recordwise.audit.audit import Finding, Runs
from recordwise.errors import TuningError
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.noise.randomness import Secure, Seeded
from recordwise.plan.query import query
from recordwise.policy.constructors import constant
from recordwise.release.formats import known_formats
from recordwise.release.formats.registry import privacy_labels
from recordwise.release.tables import PRIVATE
from recordwise.session import Session


class Inherited(Secure):
    """A custom bit source that poses as the secure one."""

    private = True

    def fill(self, words: Any) -> None:
        Seeded(1).fill(words)


SOURCES: dict[str, Callable[[], Any]] = {
    "noise from a seeded generator": lambda: Seeded(1),
    "noise from a source of one's own": Inherited,
}
LOOKS: dict[str, Callable[[Session], object]] = {
    "the owner's view": lambda session: session.owner_view(),
    "a summary of losses": lambda session: session.loss_summary(constant(1)),
}


def audit_marks(folder: Path, how: Runs) -> list[Finding]:
    """Publish with noise that is not secret, and after the owner looked at the records."""
    path = folder / "marked.parquet"
    pyarrow.parquet.write_table(pa.table({"id": [1, 2, 3], "value": [1, 2, 3]}), path)
    found = {}
    for number, (name, source) in enumerate(SOURCES.items()):
        with _opened(path, folder / f"marked{number}.ledger", how) as session:
            out = session.run(_asked(), rng=source()).save(folder / f"marked{number}")
            found[f"mark of {name}"] = _called_private(out, session)
    for number, (name, look) in enumerate(LOOKS.items()):
        found[f"mark of {name}"] = _untold(path, folder / f"looked{number}.ledger", look, how)
    return [Finding.without_numbers(name, samples=1, problems=problems) for name, problems in found.items()]


def _asked() -> Any:
    return query().sum("value", Gaussian(sigma=3))


def _opened(path: Path, ledger: Path, how: Runs) -> Session:
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {}}
    return Session(path, ledger=ledger, tuned_on="public", engine=how.engine, spark=how.spark, **roles)


def _called_private(out: Path, session: Session) -> tuple[str, ...]:
    """Files and ledger must state what the noise was."""
    told = {json.loads((out / name).read_text(encoding="utf-8"))["mark"] for name in ("release.json", "policy.json")}
    told |= {*privacy_labels(out, known_formats().values()).values(), session.history()[-1].body["mark"]}
    return ("calls itself private",) if PRIVATE in told else ()


def _untold(path: Path, ledger: Path, look: Callable[[Session], object], how: Runs) -> tuple[str, ...]:
    """Neither the session that looked nor a later one on its ledger may publish without stating the reason."""
    problems = []
    with _opened(path, ledger, how) as session:
        look(session)
        problems += ["calls itself untuned after a look"] if _published(session) else []
    with _opened(path, ledger, how) as later:
        problems += ["calls itself untuned after a look in another session"] if _published(later) else []
    return tuple(problems)


def _published(session: Session) -> bool:
    try:
        session.run(_asked())
    except TuningError:
        return False
    return True
