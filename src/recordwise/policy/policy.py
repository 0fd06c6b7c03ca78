"""A policy function: the public privacy loss of every possible record.

A policy is in normal form, a sum of ``coefficient * [condition] * atom`` with exact rational coefficients.
Sums of the same few queries therefore stay short, equal policies are equal values, and a budget that is
spent exactly cancels exactly.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, overload

from recordwise.errors import ParameterError, own_argument_errors, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.functions import x
from recordwise.exact.numbers import Number, fraction_text, nonnegative
from recordwise.policy.atoms import AdditiveTable, Atom, CertifiedSum, ClampedSquare, LaplaceSum, One, Outside, PureOne
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn, Measure, check_one_measure_a_name, representatives
from recordwise.policy.conditions import (
    EVERY,
    NONE,
    AllOf,
    Among,
    AnyOf,
    Compare,
    Condition,
    InBand,
    Null,
    band_tables,
    both,
    columns_of,
    holds,
)
from recordwise.policy.evaluate.evaluator import Evaluator
from recordwise.policy.evaluate.tables import Record, Table

if TYPE_CHECKING:
    from recordwise.policy.dominance.prove import Verdict


# The terms of a policy: coefficients of conditions and atoms, added, scaled and restricted.


Key: TypeAlias = tuple[Condition, Atom]
Terms: TypeAlias = Mapping[Key, Fraction]


def merge(*parts: Terms) -> Terms:
    """Add the coefficients of equal terms.

    "No guarantee" plus "no guarantee" is "no guarantee".
    """
    return merged(chain.from_iterable(part.items() for part in parts))


def merged(terms: Iterable[tuple[Key, Fraction]]) -> Terms:
    """Return terms, the coefficients of equal ones added."""
    listed = list(terms)
    found: dict[Key, Fraction] = dict(listed)
    if len(found) == len(listed) and not any(isinstance(key[1], Outside) for key in found):
        return found
    found = {}
    for key, coefficient in listed:
        before = found.get(key)
        added = coefficient if before is None else before + coefficient
        found[key] = Fraction(1) if isinstance(key[1], Outside) else added
    return found


def scale_terms(terms: Terms, factor: Fraction) -> Terms:
    """The terms times a constant; "no guarantee" is unchanged."""
    if not factor:
        return {}
    return {key: Fraction(1) if isinstance(key[1], Outside) else factor * c for key, c in terms.items()}


def restrict_terms(terms: Terms, condition: Condition) -> Terms:
    """The terms, each also restricted to a condition."""
    narrowed = (((both(old, condition), atom), coefficient) for (old, atom), coefficient in terms.items())
    return {key: coefficient for key, coefficient in merged(narrowed).items() if key[0] != NONE}


def with_plain_constants(terms: Terms) -> Terms:
    """Return the terms with all constants in one."""
    if not any(isinstance(atom, PureOne) for _, atom in terms):
        return terms
    plain: list[Terms] = [
        {(where, One()): c * atom.row_rho} if isinstance(atom, PureOne) else {(where, atom): c}
        for (where, atom), c in terms.items()
    ]
    return merge(*plain)


def _rows(terms: Terms) -> list[Any]:
    """Return the saved form of terms, in display order."""
    return [
        [fraction_text(coefficient), condition.to_json(), atom.to_json()]
        for (condition, atom), coefficient in terms.items()
    ]


def _sorted_rows(terms: Terms) -> list[Any]:
    return sorted(_rows(terms), key=lambda row: json.dumps(row[1:], sort_keys=True))


# The policy.


T = TypeVar("T")
VERSION, PURE_VERSION = 1, 2
"""Of saved zCDP policies and of pure ones, whose numbers are epsilons; versions without pure policies refuse the second."""
RHO, EPSILON = "rho", "epsilon"
"""What the numbers of a policy are: zCDP losses, or pure epsilons."""


@own_errors_of
@dataclass(frozen=True, eq=False)
class Policy:
    """The privacy loss of every possible record.

    ``rho`` terms and, where keys are selected privately, ``delta`` terms. Get one from a mechanism's
    ``policy(measure)`` or from the functions of ``recordwise.policy``. Combine policies with ``+`` (one release
    after another: T-SEQ), ``where`` (only some records take part: T-PAR) and ``maximum``. ``pure()`` is the same
    release in pure differential privacy, where it has that: the losses are then epsilons.

    Example:
        >>> from recordwise.policy import constant, split
        >>> policy = constant("0.05") + split("0.1", {"emp": 50})
        >>> policy
        Policy(0.05 + 0.1 * max(1, ceil(emp / 50))^2)
        >>> policy.loss({"emp": 120})
        0.9500000000000001
    """

    rho: Terms = field(default_factory=dict)
    delta_terms: Terms = field(default_factory=dict)
    near_gaussian: bool = True
    """Every query is Gaussian noise of at least 1000 lattice steps: only then do the GDP numbers hold (MATH 6)."""
    unit: str = RHO
    """``"rho"`` for zCDP losses, ``"epsilon"`` for pure ones: what ``loss`` returns."""

    def __post_init__(self) -> None:
        if self.unit not in (RHO, EPSILON):
            raise ParameterError(parameter="unit", problem="must be 'rho' or 'epsilon'")
        if self.is_pure and (self.delta_terms or self.near_gaussian):
            raise ParameterError(
                parameter="unit", problem="must be 'rho' for Gaussian noise and where there is a delta"
            )
        for terms in self._both_terms():
            for coefficient in terms.values():
                # Told by the number of bits for all but the most extreme: comparing fractions takes longer than all else here.
                bits = coefficient.numerator.bit_length() - coefficient.denominator.bit_length()
                if abs(bits) < COEFFICIENT_BITS and coefficient.numerator > 0:
                    continue
                if not SMALLEST_COEFFICIENT <= coefficient <= LARGEST_COEFFICIENT:
                    raise ParameterError(
                        parameter="coefficient", problem="must be above 0 and between 2^-500 and 2^500"
                    )
        check_one_measure_a_name(self.measures())
        if not self.rho and not self.delta_terms and not self.is_pure:
            object.__setattr__(self, "near_gaussian", True)

    @property
    def is_pure(self) -> bool:
        """Whether its losses are pure epsilons."""
        return self.unit == EPSILON

    def __add__(self, other: "Policy") -> "Policy":
        return compose([self, other]) if isinstance(other, Policy) else NotImplemented

    def __radd__(self, other: object) -> "Policy":
        return self if other == 0 else NotImplemented

    def __mul__(self, factor: Number) -> "Policy":
        """Return the policy times a constant."""
        exact = nonnegative(factor, parameter="factor")
        if self.delta_terms and exact.denominator != 1:
            raise ParameterError(
                parameter="factor", problem="of a policy with delta must be a whole number of repetitions"
            )
        rho, delta = (scale_terms(terms, exact) for terms in (self.rho, self.delta_terms))
        return Policy(rho, delta, self.near_gaussian, self.unit)

    __rmul__ = __mul__

    def where(self, condition: Condition) -> "Policy":
        """Return this policy for records in ``condition``, 0 for all others.

        Parallel composition over a public partition.

        Args:
            condition: A public set of records, built with ``among``, ``compare`` and ``Null``.

        Returns:
            The restricted policy.

        Example:
            >>> from recordwise.policy import among, gaussian_sum
            >>> retail = gaussian_sum("emp", sigma=10).where(among("sector", ["44", "45"]))
            >>> retail
            Policy(0.005 * emp^2 if 'sector' is one of '44', '45')
            >>> retail.loss({"emp": 20, "sector": "44"}), retail.loss({"emp": 20, "sector": "11"})
            (2.0, 0.0)
        """
        rho, delta = (restrict_terms(terms, condition) for terms in (self.rho, self.delta_terms))
        return Policy(rho, delta, self.near_gaussian, self.unit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        return (frozenset(self.rho.items()), frozenset(self.delta_terms.items()), self.near_gaussian, self.unit)

    def measures(self) -> tuple[Measure, ...]:
        """The measures the loss is a function of, sorted by name."""
        found = {measure for terms in self._both_terms() for _, atom in terms for measure in atom.measures()}
        return tuple(sorted(found))

    def inputs(self) -> tuple[Measure, ...]:
        """Return the input measures of its loss, sorted by name."""
        return tuple(sorted({each for measure in self.measures() for each in measure.inputs()}))

    def columns(self) -> set[ConditionColumn]:
        """The columns that its conditions use."""
        return {
            column
            for terms in self._both_terms()
            for condition, atom in terms
            for column in guard_columns(condition, atom)
        }

    def bands(self) -> dict[str, BandTable]:
        """Return the band tables of its conditions, by digest.

        The saved form contains only their digests.
        """
        return {digest: table for terms in self._both_terms() for digest, table in terms_bands(terms).items()}

    def _both_terms(self) -> tuple[Terms, Terms]:
        return (self.rho, self.delta_terms)

    @overload
    def loss(self, records: Record) -> float: ...
    @overload
    def loss(self, records: Table) -> FloatArray: ...
    def loss(self, records: Record | Table) -> float | FloatArray:
        """Return the loss of a record or each row: rho, or of a pure policy epsilon.

        Never below the exact value.

        Args:
            records: One record as a mapping of scalars, or a table as a mapping of columns, an Arrow table or a data frame. It
                needs every measure and every column that the policy depends on; further columns are ignored.

        Returns:
            A float for one record, an array with one loss per row for a table.

        Raises:
            RecordError: If a column is missing or holds values that the policy is not defined for. No value is quoted.

        Example:
            >>> from recordwise.policy import split
            >>> policy = split("0.1", {"emp": 50})
            >>> policy.loss({"emp": 20})
            0.1
            >>> policy.loss({"emp": [20, 120]}).round(6)
            array([0.1, 0.9])
        """
        from recordwise.policy.evaluate.numpy import evaluate_upper

        return evaluate_upper(self.rho, records)

    @overload
    def delta(self, records: Record) -> float: ...
    @overload
    def delta(self, records: Table) -> FloatArray: ...
    def delta(self, records: Record | Table) -> float | FloatArray:
        """Return the delta of a record or each row.

        It is 0 unless keys are selected privately. Takes what ``loss`` takes.

        Args:
            records: One record as a mapping, or a table of any library.

        Returns:
            One number, or one for each row.
        """
        from recordwise.policy.evaluate.numpy import evaluate_upper

        return evaluate_upper(self.delta_terms, records)

    @overload
    def epsilon_pure(self, records: Record) -> float: ...
    @overload
    def epsilon_pure(self, records: Table) -> FloatArray: ...
    def epsilon_pure(self, records: Record | Table) -> float | FloatArray:
        """Return the pure-DP epsilon of a record or each row.

        Refused if a term has none, such as Gaussian noise.

        Args:
            records: One record as a mapping, or a table of any library.

        Returns:
            One number, or one for each row.
        """
        return self.pure().loss(records)

    def pure(self) -> "Policy":
        """Return the same release as a pure policy, in epsilons (T-PURE).

        They add up over queries, as zCDP losses do.

        Returns:
            The pure policy.

        Raises:
            ParameterError: Some of it has no pure loss, as Gaussian noise.

        Example:
            >>> from recordwise.policy import laplace_sum
            >>> noise = laplace_sum("emp", scale=10, grid=1)
            >>> (noise + noise).pure().loss({"emp": 20})
            4.0
        """
        if (problem := self.pure_problem()) is not None:
            raise ParameterError(
                parameter="policy", problem=f"has no pure epsilon: {problem}", advice="Use epsilon(rho, delta) instead."
            )
        return self if self.is_pure else Policy(_pure_terms(self.rho), {}, False, EPSILON)

    def pure_problem(self) -> str | None:
        """Return why it has no pure epsilon, or None."""
        if self.is_pure:
            return None
        if self.delta_terms:
            return "keys were selected with a delta"
        return next(filter(None, (_pure_problem(atom, c) for (_, atom), c in self.rho.items())), None)

    def in_unit_of(self, budget: "Policy") -> "Policy":
        """Return the policy in the unit of a budget: its pure one where that is pure.

        Args:
            budget: The budget.

        Returns:
            A policy whose losses can be compared with those of the budget.
        """
        return self.pure() if budget.is_pure else self

    def exact_loss(self, record: Record) -> Fraction:
        """Return the loss of one record, exact or rounded up.

        Args:
            record: One record as a mapping of scalars.

        Returns:
            The loss; a float above it where a logarithm or a power is in it.
        """
        from recordwise.policy.evaluate.numpy import canonical_record, exact_sum

        exact = exact_sum(self.rho, *canonical_record(self.rho, record))
        return Fraction(self.loss(record)) if exact is None else exact

    def minimum(self) -> float:
        """The smallest loss any record can have (PolicyMin), rounded up."""
        from recordwise.policy.dominance.regions import minimum

        return minimum(self)

    def dominates(
        self, other: "Policy", *, bounds: Mapping[str, Number] | None = None, seconds: float = 5.0
    ) -> "Verdict":
        """Return whether this budget covers ``other`` for EVERY possible record.

        Args:
            other: The policy to be covered.
            bounds: The largest amount, in absolute value, that a record can have in a measure. Without one a measure is unbounded.
            seconds: Processor time to search before the answer is "undecided"; a busy machine does not shorten the search.

        Returns:
            A verdict: proved, refuted with a record as witness, or undecided.

        Example:
            >>> from recordwise.policy import gaussian_sum, split
            >>> plan = gaussian_sum("emp", sigma=20) + gaussian_sum("pay", sigma=500)
            >>> budget = split(1, {"emp": 20, "pay": 500})
            >>> budget.dominates(plan).answer, budget.dominates(plan * 2).witness
            ('yes', {'emp': 20, 'pay': 500})
        """
        from recordwise.policy.dominance.prove import dominates

        return dominates(self, other, bounds=bounds, seconds=seconds)

    def to_json(self) -> dict[str, Any]:
        """Return the saved form: plain data with a version number.

        Equal policies have equal forms.
        """
        return _policy_json(self, _sorted_rows)

    @staticmethod
    def from_json(form: Any, bands: Mapping[str, BandTable] | None = None) -> "Policy":
        """Read a policy back from its saved form.

        A form this version does not know raises ``UnknownFormError``.

        Args:
            form: The saved form, as read from JSON.
            bands: The band tables that it names, by digest (``Policy.bands``).

        Returns:
            The policy.
        """
        from recordwise.policy.json import policy_from_json

        return policy_from_json(form, bands)

    def to_sql(self, dialect: str = "duckdb") -> str:
        """The loss as a SQL expression over the record's own columns.

        Missing numbers must be NULL, not NaN, and days of type DATE compared by their parts alone. A decimal is compared
        with a bound that is not whole as the float next to it.

        Args:
            dialect: "duckdb" or "spark".

        Returns:
            The expression.
        """
        from recordwise.policy.evaluate.sql import terms_sql

        return terms_sql(self.rho, dialect).sql(dialect=dialect, copy=False)

    def delta_to_sql(self, dialect: str = "duckdb") -> str:
        """The delta as a SQL expression.

        Args:
            dialect: "duckdb" or "spark".

        Returns:
            The expression.
        """
        from recordwise.policy.evaluate.sql import terms_sql

        return terms_sql(self.delta_terms, dialect).sql(dialect=dialect, copy=False)

    def to_javascript(self) -> str:
        """An arrow function from a record object to ``{rho, delta}``, self-contained."""
        from recordwise.policy.evaluate.javascript import policy_javascript

        return policy_javascript(self)

    def to_latex(self) -> str:
        """Return the loss as LaTeX, with any delta as a pair."""
        from recordwise.policy.render.latex import policy_latex

        return policy_latex(self)

    def in_words(self) -> str:
        """Describe the policy to readers who do not know differential privacy."""
        from recordwise.policy.render.text import policy_prose

        return policy_prose(self)

    def _repr_html_(self) -> str:
        from recordwise.policy.render.html import policy_html

        return policy_html(self)

    def __repr__(self) -> str:
        from recordwise.policy.render.text import policy_formula

        return f"Policy({policy_formula(self)})"


def policy_json_in_order(policy: Policy) -> dict[str, Any]:
    """Return the policy's saved form with its terms in display order."""
    return _policy_json(policy, _rows)


def _policy_json(policy: Policy, rows: Callable[[Terms], list[Any]]) -> dict[str, Any]:
    if policy.is_pure:
        return {"recordwise_policy": PURE_VERSION, "epsilon": rows(policy.rho)}
    return {
        "recordwise_policy": VERSION,
        "rho": rows(policy.rho),
        "delta": rows(policy.delta_terms),
        "near_gaussian": policy.near_gaussian,
    }


@dataclass(frozen=True, slots=True)
class Maximum(Atom):
    """The largest of several policies.

    The loss of a record that takes part in one of several releases, unknown which.
    """

    kind: ClassVar[str] = "maximum"
    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        if any(policy.delta_terms for policy in self.policies):
            raise ParameterError(
                parameter="policies", problem="with delta have no maximum here", advice="Add them instead."
            )
        if any(nested_maxima(policy) >= MOST_NESTED_MAXIMA for policy in self.policies):
            raise ParameterError(parameter="policies", problem=f"nest more than {MOST_NESTED_MAXIMA} maxima")

    def measures(self) -> tuple[Measure, ...]:
        return tuple(sorted({measure for policy in self.policies for measure in policy.measures()}))

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        raise TypeError("a maximum has conditions inside; evaluate it term by term")

    def pure(self) -> tuple[Atom, Fraction] | None:
        if any(policy.pure_problem() is not None for policy in self.policies):
            return None
        return Maximum(_sorted(policy.pure() for policy in self.policies)), Fraction(1)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "policies": [policy.to_json() for policy in self.policies]}


def _pure_problem(atom: Atom, coefficient: Fraction) -> str | None:
    if _pure(atom) is None:
        where = ", ".join(f"'{each.name}'" for each in atom.measures())
        part = f"what it loses by {where}" if where else "a part that is the same for every record"
        return f"{part} is Gaussian or a zCDP budget"
    return None if coefficient.denominator == 1 else "it was scaled by a fraction"


def _pure_terms(terms: Terms) -> Terms:
    """Return the terms in pure epsilon; each must have one."""
    found = []
    for (condition, atom), times in terms.items():
        pure = _pure(atom)
        assert pure is not None
        found.append(((condition, pure[0]), times * pure[1]))
    return merged(found)


@lru_cache(maxsize=1024)
def _pure(atom: Atom) -> tuple[Atom, Fraction] | None:
    """Return the pure loss of an atom; a policy has the same few under many conditions."""
    return atom.pure()


def policy_of(
    atom: Atom, coefficient: Fraction, *, near_gaussian: bool = False, condition: Condition = EVERY
) -> Policy:
    """A policy of one term."""
    terms = {(condition, atom): coefficient} if coefficient and condition != NONE else {}
    return Policy(terms, {}, near_gaussian)


COEFFICIENT_BITS = 500
SMALLEST_COEFFICIENT, LARGEST_COEFFICIENT = (Fraction(2) ** bits for bits in (-COEFFICIENT_BITS, COEFFICIENT_BITS))
MOST_NESTED_MAXIMA = 4


def nested_maxima(policy: Policy) -> int:
    """How deeply maxima are nested."""
    inner = [part for _, atom in policy.rho if isinstance(atom, Maximum) for part in atom.policies]
    return 1 + max(map(nested_maxima, inner)) if inner else 0


@own_argument_errors
def maximum(policies: Iterable[Policy]) -> Policy:
    """Return the pointwise maximum of policies without a delta.

    Args:
        policies: The policies, without a delta.

    Returns:
        The policy.
    """
    unique = _sorted(policies)
    if not unique:
        raise ParameterError(parameter="policies", problem="must not be empty")
    if any(policy.delta_terms for policy in unique):
        raise ParameterError(
            parameter="policies", problem="with delta have no maximum here", advice="Add them instead."
        )
    if len(unique) == 1:
        return unique[0]
    gaussian = all(policy.near_gaussian for policy in unique)
    return Policy({(EVERY, Maximum(unique)): Fraction(1)}, {}, gaussian, common_unit(unique))


def _sorted(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    return tuple(sorted(set(policies), key=lambda policy: json.dumps(policy.to_json(), sort_keys=True)))


def compose(policies: Sequence[Policy]) -> Policy:
    """Return the sum of several policies (T-SEQ), merged at once."""
    rho, delta = merge(*(each.rho for each in policies)), merge(*(each.delta_terms for each in policies))
    unit = common_unit(policies)
    return Policy(rho, delta, unit == RHO and all(each.near_gaussian for each in policies), unit)


def common_unit(policies: Iterable[Policy]) -> str:
    """Return the unit of policies; rho and epsilon do not mix."""
    units = {each.unit for each in policies if each.rho or each.delta_terms or each.is_pure}
    if len(units) > 1:
        raise ParameterError(
            parameter="policies",
            problem="are in different units: some in pure epsilon, some in zCDP",
            advice="Use policy.pure() for all of them, or zCDP policies alone.",
        )
    return next(iter(units), RHO)


def guard_columns(condition: Condition, atom: Atom) -> set[ConditionColumn]:
    inner = (policy.columns() for policy in atom.policies) if isinstance(atom, Maximum) else ()
    return columns_of(condition).union(*inner)


def terms_bands(terms: Terms) -> dict[str, BandTable]:
    """The band tables of all conditions, those inside maxima too."""
    found = band_tables(condition for condition, _ in terms)
    for _, atom in terms:
        for policy in atom.policies if isinstance(atom, Maximum) else ():
            found |= policy.bands()
    return found


# Whether two policies describe the same noise, whichever version of the package computed their numbers.


def restates(recorded: Policy, given: Policy) -> bool:
    """Return whether two policies differ only in loss certification.

    A budget that names a mechanism is computed again whenever its plan is read, and later versions charge less
    for the same noise. The budget of a ledger stays the one it was opened with.
    """
    same = recorded.unit == given.unit and dict(recorded.delta_terms) == dict(given.delta_terms)
    return same and _noises(recorded.rho) == _noises(given.rho)


def _noises(terms: Terms) -> dict[Any, Fraction]:
    found: dict[Any, Fraction] = {}
    for (condition, atom), coefficient in terms.items():
        noise, times = _noise(atom)
        found[condition, noise] = found.get((condition, noise), Fraction(0)) + coefficient * times
    return found


def _noise(atom: Atom) -> tuple[Any, Fraction]:
    """Return an atom's representative and its multiple."""
    match atom:
        case AdditiveTable(measure, function) | CertifiedSum(measure, function):
            return (measure, function), Fraction(1)
        case LaplaceSum(measure, _, scale):
            return (measure, x / scale), Fraction(1)
        case ClampedSquare(_, to):
            return One(), to**2
        case PureOne(_, rho):
            return One(), rho
        case Maximum(policies):
            return frozenset(frozenset(_noises(policy.rho).items()) for policy in policies), Fraction(1)
        case _:
            return atom, Fraction(1)


# The elementary tests in a policy's conditions, used to ask for a record's values and to choose the groups of a
# chart.


Test: TypeAlias = Among | Compare | Null


def tests_of(policy: Policy) -> Iterator[Test]:
    """Yield every test of every condition in order of the terms."""
    for terms in (policy.rho, policy.delta_terms):
        for condition, atom in terms:
            yield from _leaves(condition)
            for inner in atom.policies if isinstance(atom, Maximum) else ():
                yield from tests_of(inner)


def constants_of(policy: Policy, name: str) -> Iterator[str | bool | Fraction]:
    """Yield every constant compared with a column, in term order."""
    for terms in (policy.rho, policy.delta_terms):
        for condition, atom in terms:
            yield from _compared_with(condition, name)
            for inner in atom.policies if isinstance(atom, Maximum) else ():
                yield from constants_of(inner, name)


def _compared_with(condition: Condition, name: str) -> Iterator[str | bool | Fraction]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _compared_with(part, name)
        case Among(column, values) if column.name == name:
            yield from (value if isinstance(value, (str, Fraction)) else bool(value.value) for value in values)
        case Compare(column, _, bound) if column.name == name:
            yield bound
        case InBand(table, _):
            for column, held in zip(table.columns, table.values):
                listed = (value for value in held[:ENOUGH] if value is not None and column.name == name)
                yield from (value if isinstance(value, (str, Fraction)) else bool(value.value) for value in listed)
        case _:
            return


ENOUGH = 20
"""This many values of a table of bands show its type."""


def example_date(policy: Policy, name: str) -> date:
    """Return a date that meets as many tests as possible."""
    tests = [test for test in tests_of(policy) if test.column.name == name and test.column.part]
    constants = [(test.column.part, value) for test in tests for value in _constants(test)]
    return max(representatives(constants), key=lambda day: sum(holds(test, {name: day}) for test in tests))


def _constants(test: Test) -> Iterator[Fraction]:
    if isinstance(test, Compare):
        yield test.bound
    elif isinstance(test, Among):
        yield from (value for value in test.values if isinstance(value, Fraction))


def _leaves(condition: Condition) -> Iterator[Test]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _leaves(part)
        case Among() | Compare() | Null():
            yield condition
