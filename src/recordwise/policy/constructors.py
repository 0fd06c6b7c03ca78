"""The policies of mechanisms by their parameters, and thresholds by group."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from recordwise.errors import ParameterError, own_argument_errors, own_errors_of
from recordwise.exact.functions import Function
from recordwise.exact.numbers import Number, float_upper, moderate, nonnegative, positive
from recordwise.policy.atoms import (
    Additive,
    AdditiveTable,
    CertifiedSum,
    ClampedSquare,
    GaussianTransform,
    LaplaceSum,
    LaplaceTransform,
    One,
    Outside,
    PieceCount,
    Pieces,
    PureOne,
    PurePieces,
    SelectionDelta,
    Square,
    Thresholds,
)
from recordwise.policy.columns import ConditionColumn, Measure, Value, literal
from recordwise.policy.conditions import EVERY, NONE, Condition, among, both, complement
from recordwise.policy.evaluate.evaluator import Steps
from recordwise.policy.meaning import pure_to_zcdp
from recordwise.policy.policy import EPSILON, Policy, Terms, compose, policy_of

MeasureName: TypeAlias = Measure | str


@own_errors_of
@dataclass(frozen=True, slots=True)
class By:
    """A parameter that depends on a public group of the record.

    See ``by``.
    """

    column: ConditionColumn
    values: tuple[tuple[Value, Fraction], ...]
    default: Fraction | None

    def cases(self) -> Iterator[tuple[Condition, Fraction | None]]:
        """Yield the parts of a partition with their parameters.

        None where there is no guarantee.
        """
        for value, parameter in self.values:
            yield among(self.column, [value]), parameter
        yield complement(among(self.column, [value for value, _ in self.values])), self.default


@own_argument_errors
def by(column: str | ConditionColumn, values: Mapping[str | int | bool, Number], default: Number | None = None) -> By:
    """A threshold for each public group.

    Args:
        column: The column that holds the group, or a prefix of a text column.
        values: The threshold of each group.
        default: The threshold of all other groups. Without it those records have no guarantee, and evaluating their loss is
            refused.

    Returns:
        The thresholds, to be given wherever a mechanism takes one.

    Raises:
        ParameterError: If ``values`` is empty or a threshold is not positive.

    Example:
        >>> split("0.1", {"emp": by("industry", {"Mining": 500}, default=100)}).loss({"emp": 200, "industry": "Mining"})
        0.1
    """
    if not isinstance(values, Mapping) or not values:
        raise ParameterError(parameter="values", problem="must map at least one group to its threshold")
    name = column if isinstance(column, ConditionColumn) else ConditionColumn(column)
    parameter = f"by('{name.name}')"
    rows = tuple(
        (literal(value), moderate(positive(number, parameter=parameter), parameter=parameter))
        for value, number in values.items()
    )
    if len({value for value, _ in rows}) != len(rows):
        raise ParameterError(parameter=f"by('{name.name}')", problem="names a group twice")
    return By(name, rows, None if default is None else positive(default, parameter="default"))


@own_argument_errors
def constant(rho: Number, *, near_gaussian: bool = False) -> Policy:
    """The same loss for every record: a zCDP query, or a budget.

    Args:
        rho: The loss, 0 or more.
        near_gaussian: Whether the noise is Gaussian with a sigma of at least 1000 lattice steps.

    Returns:
        The policy.

    Example:
        >>> constant("0.5")
        Policy(0.5)
    """
    return policy_of(One(), moderate(nonnegative(rho, parameter="rho"), parameter="rho"), near_gaussian=near_gaussian)


@own_argument_errors
def split(rho: Number, at: Mapping[MeasureName, Number | By], *, near_gaussian: bool = False) -> Policy:
    """Return the unit-splitting policy rho * pieces**2 (T-SPLIT).

    ``pieces`` is the largest number that any measure needs at its threshold.

    Args:
        rho: The loss of a record of one piece.
        at: The threshold of each measure: a number, or ``by(...)`` for one that differs by group.
        near_gaussian: Whether the noise is Gaussian with a sigma of at least 1000 lattice steps.

    Returns:
        The policy.

    Raises:
        ParameterError: If ``at`` is empty or a threshold is not a positive multiple of its measure's step.

    Example:
        >>> split("0.1", {"emp": 50}).loss({"emp": 120})
        0.9
    """
    return _in_pieces(Pieces, rho, at, near_gaussian=near_gaussian)


@own_argument_errors
def pieces(rho: Number, at: Mapping[MeasureName, Number | By]) -> Policy:
    """Return the policy rho * pieces, linear in the number of pieces.

    ``pieces`` is the largest number that any measure needs at its threshold; a record of size 0 is one piece.
    The loss grows with the size of a record, not its square as in ``split``. It is the policy of an epsilon-DP
    mechanism on split rows, with rho = epsilon (T-SPLIT), and a budget for mechanisms that grow no faster.

    Args:
        rho: The loss of a record of one piece.
        at: The threshold of each measure: a number, or ``by(...)`` for one that differs by group.

    Returns:
        The policy.

    Raises:
        ParameterError: If ``at`` is empty or a threshold is not a positive multiple of its measure's step.

    Example:
        >>> pieces("0.1", {"emp": 50}).loss({"emp": [150, 50, 20]}).round(6)
        array([0.3, 0.1, 0.1])
    """
    return _in_pieces(PieceCount, rho, at, near_gaussian=False)


def _in_pieces(
    kind: type[Pieces] | type[PieceCount], rho: Number, at: Mapping[MeasureName, Number | By], *, near_gaussian: bool
) -> Policy:
    exact = moderate(nonnegative(rho, parameter="rho"), parameter="rho")
    if not sorted_items(at):
        raise ParameterError(parameter="at", problem="must name at least one measure")
    parts = [Policy({}, {}, near_gaussian)]
    for condition, thresholds in threshold_cases(at):
        if isinstance(thresholds, str):
            parts.append(policy_of(Outside(thresholds), Fraction(1), near_gaussian=near_gaussian, condition=condition))
        else:
            parts.append(policy_of(kind(thresholds), exact, near_gaussian=near_gaussian, condition=condition))
    return compose(parts)


@own_argument_errors
def pure_split(at: Mapping[MeasureName, Number | By], *, epsilon: Number, rho: Number | None = None) -> Policy:
    """Return the policy of an epsilon-DP mechanism on split rows (T-EXTERNAL).

    The loss of m pieces is m eps tanh(m eps/2).

    Args:
        at: The threshold of each measure: a number, or ``by(...)`` for one that differs by group.
        epsilon: The pure loss of one row.
        rho: Its zCDP loss, if a smaller one is known than eps tanh(eps/2).

    Returns:
        The policy.

    Example:
        >>> pure_split({"emp": 50}, epsilon=1).loss({"emp": 5000})
        100.0
    """
    exact = moderate(positive(epsilon, parameter="epsilon"), parameter="epsilon")
    row_rho = Fraction(pure_to_zcdp(float_upper(exact))) if rho is None else positive(rho, parameter="rho")
    if not sorted_items(at):
        raise ParameterError(parameter="at", problem="must name at least one measure")
    parts = [Policy({}, {}, near_gaussian=False)]
    for condition, thresholds in threshold_cases(at):
        if isinstance(thresholds, str):
            parts.append(policy_of(Outside(thresholds), Fraction(1), condition=condition))
        else:
            parts.append(policy_of(PurePieces(thresholds, exact, row_rho), Fraction(1), condition=condition))
    return compose(parts)


@own_argument_errors
def pure_constant(epsilon: Number, *, rho: Number | None = None) -> Policy:
    """Return the policy of a count with a pure loss: the same for every record (T-PURE).

    Args:
        epsilon: The pure loss of a record.
        rho: Its zCDP loss, if a smaller one is known than eps tanh(eps/2).

    Returns:
        The zCDP policy, of which ``pure()`` is epsilon.

    Example:
        >>> policy = pure_constant(1)
        >>> round(policy.loss({}), 6), policy.epsilon_pure({})
        (0.462117, 1.0)
    """
    exact = moderate(positive(epsilon, parameter="epsilon"), parameter="epsilon")
    known = Fraction(pure_to_zcdp(float_upper(exact)))
    return policy_of(PureOne(exact, known if rho is None else positive(rho, parameter="rho")), Fraction(1))


@own_argument_errors
def pure_budget(epsilon: Number, at: Mapping[MeasureName, Number | By] | None = None) -> Policy:
    """Return a budget in pure epsilon, which admits only pure losses.

    Args:
        epsilon: The most that a record may lose in all; with ``at``, for each of its pieces.
        at: The threshold of each measure, as in ``pieces``; without it every record may lose the same.

    Returns:
        The pure policy.

    Example:
        >>> budget = pure_budget("0.1", {"emp": 50})
        >>> budget, budget.loss({"emp": 200})
        (Policy(pure epsilon 0.1 * max(1, ceil(emp / 50))), 0.4)
    """
    given = moderate(nonnegative(epsilon, parameter="epsilon"), parameter="epsilon")
    made = constant(given) if at is None else pieces(given, at)
    return Policy(made.rho, {}, False, EPSILON)


def sorted_items(at: Mapping[MeasureName, Any]) -> list[tuple[MeasureName, Any]]:
    """Return the thresholds sorted by measure, so equal splits are equal."""
    if not isinstance(at, Mapping):
        raise ParameterError(parameter="at", problem="must map each measure to its threshold")
    return sorted(at.items(), key=lambda item: Measure.of(item[0]))


def threshold_cases(at: Mapping[MeasureName, Number | By]) -> list[tuple[Condition, Thresholds | str]]:
    """Return the parts that the thresholds define, each with its thresholds.

    A part without a threshold has the column that leaves it undefined.
    """
    cases: list[tuple[Condition, Thresholds | str]] = [(EVERY, ())]
    for key, threshold in sorted_items(at):
        measure = Measure.of(key)
        if not isinstance(threshold, By):
            options = [(EVERY, positive(threshold, parameter=f"at['{measure.name}']"))]
            column = ""
        else:
            options = list(threshold.cases())  # type: ignore[arg-type]
            column = threshold.column.name
        cases = [
            (narrowed, _extend(old, measure, value, column))
            for condition, old in cases
            for option, value in options
            if (narrowed := both(condition, option)) != NONE
        ]
    return cases


def _extend(old: Thresholds | str, measure: Measure, value: Fraction | None, column: str) -> Thresholds | str:
    if isinstance(old, str):
        return old
    return column if value is None else (*old, (measure, value))


@own_argument_errors
def gaussian_sum(measure: MeasureName, *, sigma: Number, near_gaussian: bool = False) -> Policy:
    """A sum with Gaussian noise: x**2 / (2 sigma**2) (T-GAUSS).

    Args:
        measure: The measure that is summed.
        sigma: The standard deviation of the noise.
        near_gaussian: Whether the noise is Gaussian with a sigma of at least 1000 lattice steps.

    Returns:
        The policy.

    Example:
        >>> gaussian_sum("emp", sigma=10).loss({"emp": 20})
        2.0
    """
    exact = positive(sigma, parameter="sigma")
    return policy_of(Square(Measure.of(measure)), gaussian_factor(exact), near_gaussian=near_gaussian)


@own_argument_errors
def clamped_sum(measure: MeasureName, *, to: Number, sigma: Number, near_gaussian: bool = False) -> Policy:
    """Return the policy of a clamped sum with Gaussian noise (T-CLAMP).

    The loss is min(x, to)**2 / (2 sigma**2).

    Args:
        measure: The measure that is summed.
        to: The bound, a multiple of the measure's step.
        sigma: The noise's parameter, in the measure's units.
        near_gaussian: Whether the noise is Gaussian with a sigma of at least 1000 lattice steps.

    Returns:
        The policy.

    Example:
        >>> clamped_sum("emp", to=50, sigma=10).loss({"emp": [20, 50, 800]})
        array([ 2. , 12.5, 12.5])
    """
    atom = ClampedSquare(Measure.of(measure), positive(to, parameter="to"))
    return policy_of(atom, gaussian_factor(positive(sigma, parameter="sigma")), near_gaussian=near_gaussian)


def gaussian_factor(sigma: Fraction) -> Fraction:
    """1/(2 sigma**2)."""
    return 1 / (2 * moderate(sigma, parameter="sigma") ** 2)


@own_argument_errors
def additive(measure: MeasureName, function: Function, *, bound: str = "tanh") -> Policy:
    """Additive noise with density exp(-f(|z|)) (T-ADD).

    Args:
        measure: The measure that is summed.
        function: The concave exponent f.
        bound: ``"pure"`` for the paper's eps = f(x) - f(0), ``"tanh"`` for the smaller eps*tanh(eps/2).

    Returns:
        The policy.
    """
    return policy_of(Additive(Measure.of(measure), function, bound), Fraction(1))


def additive_table(measure: MeasureName, function: Function, steps: Steps) -> Policy:
    """Return the policy of additive noise with certified lattice losses (T-TABLE).

    Args:
        measure: The measure that is summed.
        function: The concave exponent f.
        steps: The certified losses at numbers of lattice steps, ascending.

    Returns:
        The policy.
    """
    return policy_of(AdditiveTable(Measure.of(measure), function, steps), Fraction(1))


def certified_sum(measure: MeasureName, function: Function, knots: Steps, *, less: Number) -> Policy:
    """Return the policy of additive noise certified at knots (T-KNOTS).

    Beyond the last knot the loss is f(x) - f(0) - ``less``.

    Args:
        measure: The measure that is summed.
        function: The concave exponent f of the noise.
        knots: Pairs of a number of the measure's steps and a loss, both increasing; straight lines hold between them.
        less: What is taken off f(x) - f(0) beyond the last knot; at most half of it there.

    Returns:
        The policy.
    """
    exact = nonnegative(less, parameter="less")
    return policy_of(CertifiedSum(Measure.of(measure), function, knots, exact), Fraction(1))


@own_argument_errors
def laplace_sum(measure: MeasureName, *, scale: Number, grid: Number) -> Policy:
    """Laplace noise drawn on the lattice ``grid``, by its closed form (T-LAPLACE).

    Args:
        measure: The measure that is summed.
        scale: The scale of the noise, in the measure's units.
        grid: The lattice it is drawn on, which divides the measure's step.

    Returns:
        The policy.

    Example:
        >>> round(laplace_sum("emp", scale=10, grid="0.01").loss({"emp": 20}), 6)
        1.135335
    """
    atom = LaplaceSum(Measure.of(measure), positive(grid, parameter="grid"), positive(scale, parameter="laplace_scale"))
    return policy_of(atom, Fraction(1))


@own_argument_errors
def gaussian_transform(measure: MeasureName, function: Function, *, sigma: Number, grid: Number) -> Policy:
    """Return the policy of Gaussian noise on the scale of f.

    The loss is (F(x) + grid)**2 / (2 sigma**2) (T-TRANSFORM, T-GRID).

    Args:
        measure: The measure that is summed.
        function: The function f, from ``recordwise.exact.functions``.
        sigma: The standard deviation of the noise.
        grid: The step of the grid on the scale of f.

    Returns:
        The policy.
    """
    exact, step = positive(sigma, parameter="sigma"), positive(grid, parameter="grid")
    atom = GaussianTransform(Measure.of(measure), function, step)
    return policy_of(atom, gaussian_factor(exact), near_gaussian=exact >= 1000 * step)


@own_argument_errors
def laplace_transform(measure: MeasureName, function: Function, *, scale: Number, grid: Number) -> Policy:
    """Return the policy of Laplace noise on f's scale (T-LAPLACE, T-GRID).

    Args:
        measure: The measure that is summed.
        function: The function f, from ``recordwise.exact.functions``.
        scale: The scale of the noise.
        grid: The step of the grid on the scale of f.

    Returns:
        The policy.
    """
    step, exact = positive(grid, parameter="grid"), positive(scale, parameter="laplace_scale")
    return policy_of(LaplaceTransform(Measure.of(measure), function, step, exact), Fraction(1))


@own_argument_errors
def selection(sigma: Number, at: Mapping[MeasureName, Number | By], deltas: Steps) -> Policy:
    """Return the policy of private key selection (T-SELECT).

    rho is pieces**2/(2 sigma**2); delta is the lattice tail ``deltas`` by number of pieces.

    Args:
        sigma: The standard deviation of the noise on a count.
        at: The threshold of each measure; empty if every record is one piece.
        deltas: Pairs of a number of pieces and a delta; empty if the keys come from a public domain.

    Returns:
        The policy.
    """
    weight = gaussian_factor(positive(sigma, parameter="sigma"))
    parts = [Policy({}, {}, near_gaussian=False)]
    for condition, thresholds in threshold_cases(at):
        if isinstance(thresholds, str):
            parts.append(policy_of(Outside(thresholds), Fraction(1), condition=condition))
            continue
        parts.append(policy_of(Pieces(thresholds) if thresholds else One(), weight, condition=condition))
        if deltas:
            chance: Terms = {(condition, SelectionDelta(thresholds, deltas)): Fraction(1)}
            parts.append(Policy({}, chance, near_gaussian=False))
    return compose(parts)
