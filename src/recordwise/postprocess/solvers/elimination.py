"""Small matrices by the thousand: (I + omega B)^-1 and (I + B omega)^-1 B for every node of a level (tree.py)."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from recordwise.postprocess.solvers.boxed import FloatArray

Back: TypeAlias = Callable[[FloatArray], FloatArray]
"""Applies (I + omega B)^-1, node by node."""
LEAST_NODES = 16
"""Nodes worth a thread of their own."""


def eliminate(beta: FloatArray, omega: FloatArray) -> tuple[Back, FloatArray]:
    """For every node the inverse as a function, and (I + B omega)^-1 B; ``beta`` is overwritten."""
    if beta.shape[-1] == 1:
        inverse = 1.0 / (1.0 + beta[:, :, 0] * omega)
        return lambda vector: inverse * vector, beta * inverse[:, :, None]
    try:
        from recordwise.postprocess.solvers import tree_kernel
    except ImportError:
        return eliminate_numpy(beta, omega)
    root, factor, cross = np.sqrt(omega), np.empty_like(beta), np.empty_like(beta)
    each_part(lambda part: tree_kernel.eliminate_nodes(beta[part], root[part], factor[part], cross[part]), len(beta))

    def back(vector: FloatArray) -> FloatArray:
        result = np.array(vector, order="C")
        each_part(lambda part: tree_kernel.back(root[part], factor[part], cross[part], result[part]), len(beta))
        return result

    return back, beta


def eliminate_numpy(beta: FloatArray, omega: FloatArray) -> tuple[Back, FloatArray]:
    """The same by LAPACK."""
    matrix = beta * omega[:, None, :]
    every = np.arange(beta.shape[-1])
    matrix[:, every, every] += 1.0
    inverse = np.linalg.inv(matrix)
    return lambda vector: np.einsum("nji,nj->ni", inverse, vector), inverse @ beta


def times(beta: FloatArray, vector: FloatArray) -> FloatArray:
    """Matrix times vector, node by node."""
    return np.asarray(np.einsum("nij,nj->ni", beta, vector))


def each_part(work: Callable[[slice], None], nodes: int) -> None:
    """Do the nodes in one piece per processor; the kernels let go of the interpreter."""
    workers = min(os.cpu_count() or 1, nodes // LEAST_NODES)
    if workers <= 1:
        work(slice(0, nodes))
        return
    ends = [nodes * k // workers for k in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, (slice(start, stop) for start, stop in pairwise(ends))))
