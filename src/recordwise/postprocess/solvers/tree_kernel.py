"""The compiled elimination of tree.py: one node at a time, on the upper triangle, without LAPACK.

Threaded LAPACK is inefficient for many small matrices: its threads spend more time waiting for each other than working.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numba
import numpy as np

compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@compiled
def eliminate_nodes(beta, root, factor, cross):
    """With C = I + s B s = U'U (s = ``root``): U into ``factor``, U'^-1 s B into ``cross``, and B - B s C^-1 s B over ``beta``."""
    nodes, m = root.shape
    for n in range(nodes):
        b, s, u, v = beta[n], root[n], factor[n], cross[n]
        for i in range(m):
            for j in range(m):
                v[i, j] = s[i] * b[i, j]
                u[i, j] = v[i, j] * s[j]
            u[i, i] += 1.0
        for j in range(m):
            pivot = 1.0 / np.sqrt(u[j, j])
            for k in range(j, m):
                u[j, k] *= pivot
            for k in range(m):
                v[j, k] *= pivot
            for i in range(j + 1, m):
                share = u[j, i]
                if share != 0.0:
                    for k in range(i, m):
                        u[i, k] -= share * u[j, k]
                    for k in range(m):
                        v[i, k] -= share * v[j, k]
        for k in range(m):
            for i in range(m):
                share = v[k, i]
                if share != 0.0:
                    for j in range(i, m):
                        b[i, j] -= share * v[k, j]
        for i in range(m):
            for j in range(i):
                b[i, j] = b[j, i]


@compiled
def back(root, factor, cross, vector):
    """(I + s^2 B)^-1 vector = vector - s U^-1 (cross vector), node by node, in place."""
    nodes, m = root.shape
    work = np.zeros(m)
    for n in range(nodes):
        for i in range(m):
            value = 0.0
            for j in range(m):
                value += cross[n, i, j] * vector[n, j]
            work[i] = value
        for i in range(m - 1, -1, -1):
            value = work[i]
            for j in range(i + 1, m):
                value -= factor[n, i, j] * work[j]
            work[i] = value / factor[n, i, i]
        for i in range(m):
            vector[n, i] -= root[n, i] * work[i]


@compiled
def add_products(ends, bounds, weights, values, found):
    """For crossed.py: for each parent and each query, the sum over the nodes of weight x values x values'."""
    for parent in range(ends.size - 1):
        total = found[parent]
        for node in range(ends[parent], ends[parent + 1]):
            own = values[node]
            for query in range(bounds.size - 1):
                low, high = bounds[query], bounds[query + 1]
                for i in range(low, high):
                    share = weights[node, query] * own[i]
                    if share != 0.0:
                        for j in range(low, high):
                            total[i, j] += share * own[j]


@compiled
def scan_corners(first, price, bend, jump, base, amount, ray):
    """For prices.py: the amount at every corner of a polyline and its last slope, from the changes of slope and the jumps."""
    for n in range(base.size):
        slope, value = 0.0, base[n]
        for i in range(first[n], first[n + 1]):
            if i > first[n]:
                value += slope * (price[i] - price[i - 1])
            amount[i] = value
            value += jump[i]
            slope += bend[i]
        ray[n] = slope


@compiled
def fill(starts, neighbors, limit):
    """How many numbers the factor of a symmetric system has below its diagonal, in its order; ``limit + 1`` if more than that.

    Row by row along the elimination tree: what is eliminated connects those of its neighbors that are left.
    """
    size = len(starts) - 1
    parent, seen, count = np.full(size, -1), np.full(size, -1), 0
    for row in range(size):
        seen[row] = row
        for place in range(starts[row], starts[row + 1]):
            node = neighbors[place]
            while node < row and seen[node] != row:
                if parent[node] == -1:
                    parent[node] = row
                seen[node] = row
                count += 1
                node = parent[node]
        if count > limit:
            return limit + 1
    return count
