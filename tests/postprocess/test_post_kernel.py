"""The compiled loops, run as plain Python, against the matrices they stand for."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from postprocess.oracles import quadratic
from recordwise.postprocess.solvers import kernel
from recordwise.postprocess.solvers.boxed import LEVELS, LOOSE_LEVELS, BoxedProblem, curvature
from recordwise.postprocess.solvers.dense import ROUNDS, RULES, DenseSystem, Round, newton, solve_boxed
from recordwise.postprocess.solvers.prices import scan_numpy
from recordwise.postprocess.solvers.tree import eliminate_numpy

COMPILED = [name for name in vars(kernel) if hasattr(getattr(kernel, name), "py_func")]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The loops without their compiler."""
    for name in COMPILED:
        monkeypatch.setattr(kernel, name, getattr(kernel, name).py_func)
    return kernel


def random_rows(rng: np.random.Generator, head: int, queries: int, cells: int) -> Any:
    """Weighted rows, the leading ones without a common cell, no row empty."""
    rows = np.where(rng.random((queries, cells)) < 0.5, rng.normal(size=(queries, cells)), 0.0)
    rows[:head] = 0
    rows[rng.integers(0, max(head, 1), cells) if head else 0, np.arange(cells)] += rng.uniform(0.5, 2, cells)
    rows[np.arange(queries), rng.integers(0, cells, queries)] += 0 if head else 1
    return rows


def test_there_are_as_many_loops_as_are_held_here() -> None:
    assert set(COMPILED) == {
        *("evaluate", "assemble", "jacobian", "descend", "same", "along", "newton", "round_error", "solve_draws"),
        *("eliminate_nodes", "back", "add_products", "scan_corners", "fill"),
    }


@pytest.mark.parametrize("seed", range(6))
def test_cells_and_mismatches_at_some_multipliers(plain: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 0, 4, 7)
    system = DenseSystem.of(sparse.csr_array(rows))
    ease, target = rng.uniform(0.2, 2, 7), rng.normal(0, 3, 7)
    low, high = np.where(rng.random(7) < 0.5, 0.0, -2.0), np.where(rng.random(7) < 0.5, np.inf, 1.5)
    weight, answer, proximal = rng.uniform(0.2, 2, 4), rng.normal(0, 3, 4), rng.uniform(0, 1, 4)
    floor, ceiling = np.array([-np.inf, -1.0, 2.0, 0.0]), np.array([np.inf, 1.0, 2.0, np.inf])
    y, center = rng.normal(0, 2, 4), rng.normal(size=4)
    x, inside, slack, gap, size = np.zeros(7), np.zeros(7, bool), np.zeros(4, bool), np.full(4, 9.0), np.zeros(4)
    pattern, cells = (system.start, system.query, system.data[0]), (ease, target, low, high)
    worst = plain.evaluate(
        pattern, cells, (weight, answer, floor, ceiling, proximal), y, center, x, inside, slack, gap, size
    )
    free, loose = target + (y @ rows) * ease, answer - y / weight
    z = np.clip(loose, floor, ceiling)
    off = rows @ np.clip(free, low, high) - z + proximal * (y - center)
    assert x == pytest.approx(np.clip(free, low, high))
    assert inside.tolist() == ((free > low) & (free < high)).tolist()
    assert slack.tolist() == ((loose > floor) & (loose < ceiling)).tolist()
    assert gap == pytest.approx(off)
    assert size == pytest.approx(1 + np.abs(z))
    assert worst == pytest.approx(np.max(np.abs(off) / (1 + np.abs(z))))


@pytest.mark.parametrize("head", [0, 2, 4])
def test_newton_steps_solve_their_system_and_products_follow_the_cells_inside(plain: Any, head: int) -> None:
    rng = np.random.default_rng(head)
    rows = random_rows(rng, head, 5, 9)
    system = DenseSystem.of(sparse.csr_array(rows), head)
    pattern, ease = (system.start, system.query, system.data[0]), rng.uniform(0.2, 2, 9)
    gram, counted = np.zeros((5, 5)), np.zeros(9, bool)
    weight, proximal = rng.uniform(0.2, 2, 5), rng.uniform(0.1, 1, 5)
    slack, gap = np.array([True, False, True, True, False]), rng.normal(size=5)
    for inside in (rng.random(9) < 0.7, rng.random(9) < 0.4, np.ones(9, bool), np.zeros(9, bool)):
        plain.assemble(pattern, ease, inside, counted, gram)
        exact = (rows * (ease * inside)) @ rows.T
        assert counted.tolist() == inside.tolist()
        assert np.triu(gram) == pytest.approx(np.triu(exact), abs=1e-12)
        matrix, move = np.zeros((5, 5)), np.zeros(5)
        plain.jacobian(gram, weight, proximal, slack, matrix)
        whole = exact + np.diag(proximal + slack / weight)
        assert np.triu(matrix) == pytest.approx(np.triu(whole), abs=1e-12)
        plain.descend(matrix, head, gap, move)
        assert move == pytest.approx(-np.linalg.solve(whole, gap), rel=1e-9, abs=1e-12)
        assert plain.along(gap, move) == pytest.approx(float(gap @ move))
    assert plain.same(np.array([True, False]), np.array([True, False]))
    assert not plain.same(np.array([True, False]), np.array([True, True]))
    assert not plain.same(np.array([True, False]), np.array([False, True]))


def random_problem(seed: int, draws: int = 1) -> tuple[BoxedProblem, DenseSystem, Any]:
    """Cells of which some are not measured, some capped, and sums of which some are held or bounded."""
    rng = np.random.default_rng(seed)
    head = seed % 3
    rows = np.abs(random_rows(rng, head, 4, 6))
    table = rng.gamma(1.0, 4.0, 6)
    exact = rows @ table
    held = np.array([False, seed % 2 == 0, False, False])
    bounded = np.array([False, False, seed % 4 == 1, False])
    problem = BoxedProblem(
        precision=np.where(rng.random((1, 6)) < 0.25, 0.0, rng.uniform(0.1, 2, (1, 6))),
        target=table + rng.normal(0, 4, (draws, 6)),
        low=np.zeros((1, 6)),
        high=np.where(rng.random((1, 6)) < 0.3, table + 1, np.inf),
        weight=rng.uniform(0.1, 2, (1, 4)),
        answer=exact + rng.normal(0, 4, (draws, 4)),
        floor=np.where(held, exact, np.where(bounded, exact - 1, -np.inf))[None],
        ceiling=np.where(held, exact, np.where(bounded, exact + 1, np.inf))[None],
    )
    return problem, DenseSystem.of(sparse.csr_array(rows), head), rows


@pytest.mark.parametrize("seed", range(8))
def test_draws_are_solved_as_a_quadratic_program_solves_them_one_after_another(plain: Any, seed: int) -> None:
    problem, system, rows = random_problem(seed, draws=2)
    levels = LEVELS if np.all(problem.precision > 0) else LOOSE_LEVELS
    x, y, iterations = np.zeros((2, 6)), np.zeros((2, 4)), np.zeros(2, np.int64)
    given = (system.start, system.query, system.data, problem.arrays, curvature(problem, system), problem.bounded)
    plain.solve_draws(*given, system.head, RULES, levels, ROUNDS, x, y, iterations)
    numpy_x = solve_boxed(problem, system)
    for draw in range(2):
        matrix = np.vstack([np.eye(6), rows])
        aim = np.concatenate([problem.target[draw], problem.answer[draw]])
        weights = np.concatenate([problem.precision[0], problem.weight[0]])
        wide = np.full(6, 1e6)
        low = np.concatenate([-wide, np.maximum(problem.floor[0], -1e6)])
        high = np.concatenate([np.minimum(problem.high[0], 1e6), np.minimum(problem.ceiling[0], 1e6)])
        known = quadratic(matrix, aim, weights, low, high) if np.all(problem.precision > 0) else numpy_x.x[draw]
        assert rows @ x[draw] == pytest.approx(rows @ known, abs=1e-5)
        measured = problem.precision[0] > 0
        assert x[draw][measured] == pytest.approx(known[measured], abs=1e-5)
        assert rows @ x[draw] == pytest.approx(rows @ numpy_x.x[draw], abs=1e-7)
    assert (iterations > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_run_of_newton_steps_and_the_error_that_is_left_are_those_of_numpy(plain: Any, seed: int) -> None:
    problem, system, _ = random_problem(seed)
    cells, queries = curvature(problem, system)
    measured = problem.precision > 0
    rng = np.random.default_rng(seed)
    center, before = rng.normal(size=(1, 4)), rng.uniform(0, 3, (1, 6))
    stage = Round(
        problem=problem,
        system=system,
        precision=np.where(measured, problem.precision, 0.01 * cells),
        target=np.where(measured, problem.target, before),
        proximal=0.05 * queries * problem.bounded,
        center=center,
    )
    point, _ = newton(stage)
    x, y = np.zeros(6), np.zeros(4)
    flags = tuple(np.zeros(n, bool) for n in (6, 4, 6, 4))
    work = tuple(np.zeros(4) for _ in range(4))
    pattern = (system.start, system.query, system.data[0])
    ease = 1 / stage.precision[0]
    own = (ease, stage.target[0], problem.low[0], problem.high[0])
    asked = (problem.weight[0], problem.answer[0], problem.floor[0], problem.ceiling[0], stage.proximal[0])
    steps = plain.newton(
        pattern, own, asked, system.head, RULES, y, center[0], x, flags, work, (np.zeros((4, 4)), np.zeros((4, 4)))
    )
    assert 0 < steps < 100
    assert x == pytest.approx(point.x[0], abs=1e-9)
    assert y == pytest.approx(point.y[0], abs=1e-8)
    left = plain.round_error(pattern, ease, stage.target[0], measured[0], stage.proximal[0], y, center[0], x, work[1])
    rows = system.rows.toarray()
    dual = np.max(stage.proximal[0] * np.abs(y - center[0]) / work[1])
    pull = np.abs(y) @ np.abs(rows) + np.sqrt(stage.precision[0])
    moved = np.where(measured[0], 0.0, stage.precision[0] * np.abs(x - before[0]) / pull)
    assert left == pytest.approx(max(dual, np.max(moved)))


def test_nodes_are_eliminated_as_by_their_inverses(plain: Any) -> None:
    rng = np.random.default_rng(5)
    rows = np.where(rng.random((5, 4, 9)) < 0.5, rng.uniform(0.5, 2, (5, 4, 9)), 0.0)
    beta, omega = rows @ rows.transpose(0, 2, 1), rng.random((5, 4)) * (rng.random((5, 4)) < 0.7)
    known_back, known = eliminate_numpy(beta.copy(), omega)
    reduced, factor, cross = beta.copy(), np.zeros_like(beta), np.zeros_like(beta)
    plain.eliminate_nodes(reduced, np.sqrt(omega), factor, cross)
    assert reduced == pytest.approx(known, abs=1e-12)
    vector = rng.normal(size=(5, 4))
    found = vector.copy()
    plain.back(np.sqrt(omega), factor, cross, found)
    assert found == pytest.approx(known_back(vector), abs=1e-12)
    for node in range(5):
        inverse = np.linalg.inv(np.eye(4) + omega[node][:, None] * beta[node])
        assert found[node] == pytest.approx(inverse @ vector[node], abs=1e-12)


def test_products_of_values_are_added_up_by_parent_within_each_query(plain: Any) -> None:
    rng = np.random.default_rng(6)
    ends, bounds = np.array([0, 2, 3, 5]), np.array([0, 2, 3])
    weights, values = rng.random((5, 2)), rng.normal(size=(5, 3)) * (rng.random((5, 3)) < 0.8)
    found = np.ones((3, 3, 3))
    plain.add_products(ends, bounds, weights, values, found)
    known = np.ones((3, 3, 3))
    for parent, nodes in enumerate(([0, 1], [2], [3, 4])):
        for node in nodes:
            known[parent, :2, :2] += weights[node, 0] * np.outer(values[node, :2], values[node, :2])
            known[parent, 2, 2] += weights[node, 1] * values[node, 2] ** 2
    assert found == pytest.approx(known)


def test_polylines_are_followed_corner_by_corner(plain: Any) -> None:
    """The first node rises by 1, then 3 for each unit of price, with a jump of 2 at its second corner."""
    first = np.array([0, 3, 4])
    price, bend = np.array([0.0, 2, 5, -1]), np.array([1.0, 2, 0, 4])
    jump, base = np.array([0.0, 2, 0, 0]), np.array([10.0, 20])
    amount, ray = np.zeros(4), np.zeros(2)
    plain.scan_corners(first, price, bend, jump, base, amount, ray)
    assert (amount.tolist(), ray.tolist()) == ([10, 12, 12 + 2 + 9, 20], [3, 4])
    again = scan_numpy(first, price, bend, jump, base)
    assert (again[0].tolist(), again[1].tolist()) == (amount.tolist(), ray.tolist())


def test_the_fill_of_a_system_is_counted_up_to_a_limit(plain: Any) -> None:
    """A star eliminated from its middle fills up; from its leaves it does not; a ring gains a chord."""

    def fill(pairs: list[tuple[int, int]], size: int, limit: int = 100) -> int:
        matrix = np.eye(size)
        for one, other in pairs:
            matrix[one, other] = matrix[other, one] = 1
        made = sparse.csr_array(matrix)
        return int(plain.fill(made.indptr, made.indices, limit))

    assert fill([], 3) == 0
    assert fill([(0, 1), (0, 2), (0, 3)], 4) == 6
    assert fill([(3, 0), (3, 1), (3, 2)], 4) == 3
    assert fill([(0, 1), (1, 2), (2, 3), (3, 0)], 4) == 5
    assert fill([(0, 1), (0, 2), (0, 3)], 4, limit=6) == 6
    assert fill([(0, 1), (0, 2), (0, 3)], 4, limit=5) == 6
    assert fill([(0, 1), (0, 2), (0, 3)], 4, limit=2) == 3
