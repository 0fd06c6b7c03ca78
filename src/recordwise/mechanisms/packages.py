"""Which packages state a loss that recordwise did not prove: mechanisms and statistics whose class is not one of ours."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import distribution, packages_distributions
from typing import Any

from recordwise.mechanisms.base import has_policy

OURS = "recordwise"
DECLARED = "declared by its package, not proved by recordwise"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Declared:
    """A class of another package, whose loss the package answers for."""

    name: str
    """The class."""
    package: str
    """The package as it was installed, or the module where it was not."""
    version: str = ""
    """Empty where the module belongs to no installed package."""

    def words(self) -> str:
        """In a sentence."""
        return f"{self.name} of {self.package} {self.version or '(a module that no installed package has)'}"

    def to_json(self) -> dict[str, Any]:
        """What release.json says about it."""
        return {"name": self.name, "package": self.package, "version": self.version or None, "policy": DECLARED}


def declared_function(call: Any, *, name: str) -> Declared:
    """An external mechanism, by the module that its function or its class is from."""
    module = getattr(call, "__module__", None) or type(call).__module__
    package, version = _installed(module.partition(".")[0])
    return Declared(name=name, package=package, version=version)


def declared_by(value: Any) -> Iterator[Declared]:
    """The class of a mechanism or statistic, and those of the mechanisms within it, that are not ours."""
    root = type(value).__module__.partition(".")[0]
    if root != OURS:
        name, version = _installed(root)
        yield Declared(name=type(value).__name__, package=name, version=version)
    for part in (getattr(value, each.name) for each in fields(value)) if is_dataclass(value) else ():
        if has_policy(part):
            yield from declared_by(part)


@cache
def _installed(root: str) -> tuple[str, str]:
    """The package that a module was installed with, and its version."""
    names = packages_distributions().get(root)
    return (names[0], distribution(names[0]).version) if names else (root, "")
