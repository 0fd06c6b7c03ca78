"""The interface between a statistic and the rest of the package. A new one subclasses ``Drawable`` and joins ``KINDS``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np

from recordwise.errors import SqlError
from recordwise.mechanisms.base import count_policy, has_policy, noise_steps
from recordwise.mechanisms.described import given_parameters
from recordwise.noise.randomness import BitSource, Secure
from recordwise.plan.column_types import threshold_problems
from recordwise.plan.schema import Schema
from recordwise.plan.statistics.answers import Answer, NoisyColumn, Part
from recordwise.plan.statistics.totals import CountBins, ExactTable, Total
from recordwise.policy.constructors import By
from recordwise.policy.firms import Joint
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from sqlglot import exp

    from recordwise.plan.cost import CellMechanism
    from recordwise.plan.file.node import Node

COUNT, SUM, OTHER = "count", "sum", "other"


class EntryReader(Protocol):
    """What reading a plan-file entry needs: the schema, and the mechanisms named in the file."""

    @property
    def schema(self) -> Schema:
        """The schema of the plan."""

    def mechanism(self, node: "Node") -> Any | None:
        """A mechanism, by name or inline; None if it has a problem, which is recorded."""

    def built(self, kind: Any, node: "Node", entries: "Mapping[str, Node]") -> Any | None:
        """A mechanism of a given kind, whose parameters are among the entries of a node."""

    def named(self, node: "Node") -> tuple[str | None, Any | None]:
        """The published name of a statistic (``as``), and its mechanism."""


@dataclass(slots=True)
class NamedMechanisms:
    """The mechanisms given with a SQL statement, and which of them have been used."""

    given: Mapping[str, Any]
    used: set[str] = field(default_factory=set)

    def take(self, alias: str | None, default: str) -> Any:
        """The mechanism given under the alias of a statistic, or otherwise under its column."""
        name = alias if alias in self.given else default
        if name is None or name not in self.given:
            raise SqlError(construct=f"no mechanism for '{(alias or default)[:40]}'", advice="Add it to mechanisms.")
        self.used.add(name)
        return self.given[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(ABC):
    """A statistic of a query. Other modules use only what is declared here and in ``Drawable``."""

    alias: str = ""
    """The published name."""

    word: ClassVar[str]
    """Its key in a plan file."""
    names_column: ClassVar[bool] = True
    """Whether its key in a plan file is followed by a column, or by its own name."""
    names_itself: ClassVar[bool] = False
    """Whether what follows the key is the name it is published under."""
    sql_key: ClassVar[str | None] = None
    """The parameter that identifies a plan file's mechanism for SQL text as belonging to this statistic."""
    contribution: ClassVar[str] = OTHER
    """``count``: a record changes it by 1 or not at all; ``sum``: by its value; ``other``: neither."""
    fitted: ClassVar[bool] = False
    """Whether a consistent release fits it to the tables it adds up in."""
    counts_records: ClassVar[bool] = False
    """Whether a cell where it is 0 holds no record."""
    means: ClassVar[str] = "a statistic of {of}"
    """What it is, for the data dictionary; ``of`` is the label of what it is about."""
    derived: ClassVar[bool] = False
    """Whether it is computed from other noisy statistics instead of being drawn itself."""

    def __post_init__(self) -> None:
        if not self.alias:
            object.__setattr__(self, "alias", self.default_alias())

    @abstractmethod
    def default_alias(self) -> str:
        """The published name unless another is given."""

    @property
    def of(self) -> str | None:
        """The measure or id that the statistic uses."""
        return None

    @classmethod
    def adds_up(cls, of: str | None, *, firm: str | None) -> bool:
        """Whether its exact values of finer cells add up to those of coarser ones."""
        return True

    @property
    def planned_as(self) -> str | None:
        """Its name in planning: "count", or the name of a measure; None if planning offers no mechanisms for it."""
        return None

    @abstractmethod
    def mechanisms(self) -> tuple[Any, ...]:
        """The mechanisms given for it."""

    @abstractmethod
    def problems(self, schema: Schema) -> list[str]:
        """Problems with the schema, as sentences without a final period."""

    def with_mechanisms(self, chosen: "Chosen", drawn: Sequence["Drawable"]) -> "Statistic":
        """The same statistic where what it is computed from has the chosen mechanisms; ``drawn`` is what its query draws now."""
        return self

    def among(self, asked: Sequence["Statistic"]) -> "Statistic":
        """The statistic as it joins a query that asks for others already."""
        return self

    def missing(self, drawn: Sequence["Drawable"], schema: Schema) -> list[str]:
        """What it lacks beside the statistics its query draws."""
        return []

    @abstractmethod
    def parts(self, drawn: Sequence["Drawable"]) -> tuple["Drawable", ...]:
        """The drawn statistics it is computed from: those of ``drawn`` that fit, otherwise its own."""

    def bins(self) -> tuple[CountBins, ...]:
        """The counts along a grid it needs from an engine."""
        return ()

    def forms(self, drawn: Sequence["Drawable"]) -> tuple["Form", "Form"]:
        """What it is computed as: a linear form of its parts, divided by another; the second is empty where nothing is divided."""
        return tuple((part, Fraction(1)) for part in self.parts(drawn)), ()

    @abstractmethod
    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        """The published column, computed from the noisy answers of its parts."""

    def confidence_of_parts(self, confidence: float) -> float:
        """The confidence at which its parts are estimated for an interval of ``confidence``."""
        return confidence

    def description(self) -> dict[str, Any]:
        """The statistic as in release.json and the ledger; the caller converts parameters and mechanisms to JSON."""
        return {"name": self.alias, "kind": type(self).__name__, "of": self.of}

    def entry(self) -> Any:
        """Its entry in a plan file, without its name: what ``read_entry`` reads back."""
        raise NotImplementedError

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> "Statistic | None":
        """The statistic of a plan-file entry; None if it has a problem, which is recorded at its line."""
        return None

    @classmethod
    def read_sql_mechanism(cls, node: "Node", reader: EntryReader) -> Any | None:
        """What a plan file gives for this statistic in SQL text; called only if the entry contains ``sql_key``."""
        return reader.mechanism(node)

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> "Statistic | None":
        """The statistic of a SQL aggregate; None if the aggregate is a different statistic."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawable(Statistic):
    """A statistic that noise is drawn for. The defaults fit a total to which every record contributes at most 1."""

    mechanism: Any

    def mechanisms(self) -> tuple[Any, ...]:
        return (self.mechanism,)

    def with_mechanisms(self, chosen: "Chosen", drawn: Sequence["Drawable"]) -> "Statistic":
        return replace(self, mechanism=chosen(self))

    def description(self) -> dict[str, Any]:
        return Statistic.description(self) | {"mechanism": self.mechanism}

    def entry(self) -> dict[str, Any]:
        return mechanism_entry(self.mechanism)

    def problems(self, schema: Schema) -> list[str]:
        return mechanism_problems([self.mechanism], schema)

    def parts(self, drawn: Sequence["Drawable"]) -> tuple["Drawable", ...]:
        return (self,)

    @abstractmethod
    def totals(self, schema: Schema) -> tuple[Total, ...]:
        """The exact totals it needs of an engine: one, or the two parts of a signed sum, or none if it needs bins."""

    def step(self, schema: Schema) -> Fraction:
        """The unit of its total."""
        return Fraction(1)

    def threshold(self, mechanism: Any, schema: Schema) -> Fraction | By | None:
        """The threshold at which its mechanism splits records, if any."""
        return None

    def cost(self, mechanism: Any, schema: Schema, *, tight: bool) -> Policy:
        """Its cost to a record of a cell for which ``mechanism`` is used."""
        return count_policy(mechanism)

    def joint(self, mechanism: Any, schema: Schema) -> Joint:
        """What bounds the loss of several records in one cell, beside the square of the sum of their roots (T-CELLS)."""
        return Joint()

    def lattice_noise(self, mechanism: Any, schema: Schema) -> tuple[Fraction, int] | None:
        """The sigma of Gaussian noise in lattice steps, and how many such numbers a record changes; None for other noise."""
        steps = noise_steps(mechanism, self.step(schema))
        return None if steps is None else (steps, 1)

    def example_sql(self, column: str) -> str:
        """The same question in SQL about one column of a made-up table, for the audit."""
        return "COUNT(*)"

    def dry_run(self, mechanism: Any, schema: Schema, *, confidence: float) -> None:
        """Serve one empty cell, so that whatever the mechanism refuses it refuses before anything is spent.

        The noise is that of a release and is thrown away; numpy's generators would be imported for this alone.
        """
        parts = len(self.totals(schema))
        empty = np.zeros((parts, 1) if parts > 1 else 1, dtype=np.int64)
        tried = mechanism.release(empty, step=self.step(schema), rng=Secure())
        mechanism.estimate(tried, confidence=confidence)

    def draw(
        self,
        exact: ExactTable,
        served: Sequence["CellMechanism"],
        schema: Schema,
        rng: BitSource,
        *,
        asked: Sequence[Statistic],
        confidence: float,
    ) -> Any:
        """Add noise, once. ``asked`` are the statistics of the query, ``confidence`` that of their intervals."""
        held, step = [exact.totals[each] for each in self.totals(schema)], self.step(schema)
        totals = held[0] if len(held) == 1 else np.stack(held)
        parts = []
        for each in served:
            rows = each.run.rows if len(served) > 1 else slice(None)
            parts.append(Part(rows, each.mechanism, each.mechanism.release(totals[..., rows], step=step, rng=rng)))
        return Answer(parts, exact.cells)

    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        (answer,) = answers
        column: NoisyColumn = answer.column(self.alias, confidence)
        return column


Chosen: TypeAlias = Callable[[Drawable], Any]
"""The mechanism of each drawn statistic."""
Form: TypeAlias = tuple[tuple[Drawable, Fraction], ...]
"""Drawn statistics with their coefficients."""


def mechanism_entry(mechanism: Any) -> dict[str, Any]:
    """A mechanism as a plan file writes it; values are made TOML by the caller."""
    given = given_parameters(mechanism)
    inner = {name: mechanism_entry(value) for name, value in given.items() if has_policy(value)}
    return {"kind": type(mechanism).__name__, **given, **inner}


def mechanism_problems(mechanisms: Iterable[Any], schema: Schema) -> list[str]:
    """Where the thresholds of mechanisms do not fit the schema."""
    return [problem for each in mechanisms for problem in threshold_problems(getattr(each, "at", None), schema)]


def published(
    asked: Sequence[Statistic], drawn: Sequence[Drawable], answers: Mapping[str, Any], *, confidence: float
) -> tuple[NoisyColumn, ...]:
    """The statistics of a query, followed by the others drawn for them, given the noisy answers by alias.

    All noise is drawn, so that they can be computed side by side.
    """

    def column(statistic: Statistic) -> NoisyColumn:
        return statistic.column([answers[part.alias] for part in statistic.parts(drawn)], confidence=confidence)

    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(column, (*asked, *(each for each in drawn if each not in asked))))
