"""Every linear system of the solvers, alone and with extra queries below it, against the dense matrix; and the digits of levels."""

from itertools import product
from threading import Lock
from typing import Any

import numpy as np
import pytest

from postprocess.oracles import dense
from recordwise.errors import ParameterError
from recordwise.postprocess import Workload
from recordwise.postprocess.measured import CellsAndSums
from recordwise.postprocess.solvers import boxed, crossed, tree
from recordwise.postprocess.solvers import solve as choice
from recordwise.postprocess.solvers.boxed import System
from recordwise.postprocess.solvers.solve import BorderedSystem
from recordwise.postprocess.solvers.trees import tree_digits

PLACE = {"nation": np.zeros(6), "state": [1, 0, 0, 1, 2, 0], "county": np.arange(6)}
SECTOR = {"all": np.zeros(4), "sector": [0, 0, 1, 2], "industry": np.arange(4)}
WORKLOADS = {
    "tree": Workload.hierarchy({"place": PLACE}, [("nation",), ("state",), ("county",)]),
    "crossed": Workload.hierarchy({"place": PLACE, "sector": SECTOR}, list(product(PLACE, SECTOR))),
    "margins of three": Workload.marginals((3, 4, 2), {"a": (0,), "bc": (1, 2), "ac": (0, 2), "cells": (0, 1, 2)}),
    "one long dimension": Workload.marginals((30, 3, 4), {"a": (0,), "c": (2,), "bc": (1, 2), "cells": (0, 1, 2)}),
    "another long one": Workload.marginals((4, 3, 30), {"c": (2,), "ab": (0, 1), "bc": (1, 2), "cells": (0, 1, 2)}),
    "weighted": Workload.matrix(np.vstack([[[1.0, 2, 0, 0], [0, 1, 3, 1], [1, 1, 1, 1]], np.eye(4)]), {"all": 7}),
}


def systems(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[System], Any]:
    """The system that is chosen where a dense one is too much work, and the dense one; and the matrix of the sums."""
    workload = WORKLOADS[name]
    parts = CellsAndSums.of(workload)
    found = []
    for work in (-1.0, np.inf):
        monkeypatch.setattr(choice, "DENSE_WORK", work)
        monkeypatch.setattr(crossed, "LEAST_LOCAL", 0)
        again = Workload(cells=workload.cells, groups=workload.groups, shape=workload.shape, levels=workload.levels)
        found.append(choice.system_of(again, parts))
    return found, dense(workload)[parts.sums]


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("extras", [0, 1, 3])
def test_every_system_sums_spreads_and_solves_like_its_matrix(
    name: str, extras: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(A R A^T + D) y = r for each of three draws, some cells not responding, each draw with its own extra queries."""
    found, matrix = systems(name, monkeypatch)
    rng = np.random.default_rng(extras)
    cells, rows = matrix.shape[1], len(matrix)
    member = (rng.random((3, extras, cells)) < 0.5).astype(float)
    response = 10.0 ** rng.uniform(-1, 1, (3, cells)) * (rng.random((3, cells)) < 0.7)
    diagonal, right = rng.uniform(0.2, 5, (3, rows + extras)), rng.normal(size=(3, rows + extras))
    x, y = rng.normal(size=(3, cells)), rng.normal(size=(3, rows + extras))
    for base in found:
        if extras and not hasattr(base, "take"):
            continue
        ours: System = BorderedSystem(base=base, member=member) if extras else base
        solved, sums, spread = ours.solver(response, diagonal)(right), ours.sums(x), ours.spread(y)
        for draw in range(3):
            whole = np.vstack([matrix, member[draw]])
            normal = (whole * response[draw]) @ whole.T + np.diag(diagonal[draw])
            assert solved[draw] == pytest.approx(np.linalg.solve(normal, right[draw]), rel=1e-8, abs=1e-9)
            assert sums[draw] == pytest.approx(whole @ x[draw])
            assert spread[draw] == pytest.approx(y[draw] @ whole)


def determined(coarse: Any, fine: Any) -> bool:
    """Whether leaves with the same fine label always have the same coarse one."""
    return len(set(zip(fine, coarse))) == len(set(fine))


@pytest.mark.parametrize("seed", range(12))
def test_a_level_has_the_digits_of_the_levels_it_determines_and_two_names_for_one_level_have_the_same(
    seed: int,
) -> None:
    """Levels of different size, and each with a second spelling, in any order and in two dimensions at once."""
    rng = np.random.default_rng(seed)
    trees: dict[str, dict[str, Any]] = {}
    for dimension in ("place", "sector"):
        leaves = np.arange(int(rng.integers(2, 9)))
        middle = leaves * int(rng.integers(1, len(leaves) + 1)) // len(leaves)
        named: dict[str, Any] = {"leaf": leaves, "middle": middle, "coarse": middle // 2, "one": 0 * leaves}
        named |= {f"{level} in words": [f"w{97 - label}" for label in labels] for level, labels in named.items()}
        order = rng.permutation(list(named))
        trees[dimension] = {f"{dimension} {level}": named[level] for level in order}
    found = tree_digits(trees)
    assert set(found) == {level for named in trees.values() for level in named}
    for (one, named), (other, others) in product(trees.items(), repeat=2):
        for fine, coarse in product(named, others):
            alone = len(set(map(str, others[coarse]))) == 1
            known = alone or (one == other and determined(list(others[coarse]), list(named[fine])))
            assert (found[coarse] <= found[fine]) == known, (fine, coarse)


def test_levels_that_cross_are_no_tree() -> None:
    with pytest.raises(ParameterError, match="cuts across"):
        tree_digits({"place": {"region": [0, 0, 1, 1], "zone": [0, 1, 0, 1], "leaf": [0, 1, 2, 3]}})
    with pytest.raises(ParameterError, match="cuts across"):
        tree_digits({"place": {"region": [0, 0, 1, 1], "zone": [0, 1, 2, 0]}})


@pytest.mark.parametrize("processors", [1, 2, 5])
@pytest.mark.parametrize("nodes", [1, 2 * tree.LEAST_NODES - 1, 2 * tree.LEAST_NODES, 7 * tree.LEAST_NODES + 3])
def test_parts_for_several_processors_are_every_node_once(
    processors: int, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    done = np.zeros(nodes, np.int64)
    lock = Lock()

    def work(part: slice) -> None:
        with lock:
            done[part] += 1

    tree.in_parallel(work, nodes)
    assert (done == 1).all()


def test_two_callers_at_once_leave_the_threads_of_matrix_libraries_as_they_were(monkeypatch) -> None:
    """The second begins while the first has limited them, and ends after it."""
    threads = [4]
    monkeypatch.setattr(boxed, "_matrix_libraries", lambda: [(lambda: threads[-1], threads.append)])
    first, second = boxed.one_thread(), boxed.one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads[-1] == 1
    second.__exit__(None, None, None)
    assert threads[-1] == 4
