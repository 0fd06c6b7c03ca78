"""The compiled form of dense.py for problems with few queries.

One draw at a time, with no allocation inside the loops. Imported only when needed, because numba takes half a
second to load. A test checks that both forms give the same answer. Constants are passed as arguments
(``RULES`` of dense.py), because a constant of another module would keep the value it had when the kernel was
first compiled.
"""

from typing import Any

import numba
import numpy as np

# mypy: disable-error-code="no-untyped-def"
compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@compiled
def evaluate(pattern, cells, queries, y, center, x, inside, slack, gap, size):
    """Compute cells and mismatches of sums, and return the largest mismatch."""
    start, query, data = pattern
    ease, target, low, high = cells
    weight, answer, floor, ceiling, proximal = queries
    for q in range(len(y)):
        loose = answer[q] - y[q] / weight[q]
        z = min(max(loose, floor[q]), ceiling[q])
        slack[q] = floor[q] < loose < ceiling[q]
        gap[q] = proximal[q] * (y[q] - center[q]) - z
        size[q] = 1.0 + abs(z)
    for i in range(len(x)):
        push = 0.0
        for k in range(start[i], start[i + 1]):
            push += data[k] * y[query[k]]
        free = target[i] + push * ease[i]
        x[i] = min(max(free, low[i]), high[i])
        inside[i] = low[i] < free < high[i]
        if x[i] != 0.0:
            for k in range(start[i], start[i + 1]):
                gap[query[k]] += data[k] * x[i]
    worst = 0.0
    for q in range(len(y)):
        worst = max(worst, abs(gap[q]) / size[q])
    return worst


@compiled
def assemble(pattern, ease, inside, counted, gram):
    """Update the upper triangle of M S D^-1 M' for changed cells."""
    start, query, data = pattern
    for i in range(len(inside)):
        if inside[i] != counted[i]:
            counted[i] = inside[i]
            signed = ease[i] if inside[i] else -ease[i]
            for k in range(start[i], start[i + 1]):
                scaled = data[k] * signed
                if scaled != 0.0:
                    for m in range(k, start[i + 1]):
                        gram[query[k], query[m]] += scaled * data[m]


@compiled
def jacobian(gram, weight, proximal, slack, matrix):
    """Compute the Newton matrix: sums over cells plus the queries' response."""
    matrix[:] = gram
    for q in range(len(weight)):
        matrix[q, q] += proximal[q] + (1.0 / weight[q] if slack[q] else 0.0)


@compiled
def descend(matrix, head, gap, move):
    """Compute the Newton step by elimination of the upper triangle in place.

    The leading ``head`` queries share no cell, so their block is diagonal; in a sparse table most of their rows
    are zero and are skipped.
    """
    n = len(matrix)
    for j in range(n):
        move[j] = -gap[j]
    for j in range(n):
        row = matrix[j]
        row[j] = 1.0 / max(row[j], 1e-300)
        for i in range(max(j + 1, head), n):
            share = row[i] * row[j]
            if share != 0.0:
                other = matrix[i]
                for k in range(i, n):
                    other[k] -= share * row[k]
                move[i] -= share * move[j]
    for j in range(n - 1, -1, -1):
        row = matrix[j]
        value = move[j]
        for i in range(max(j + 1, head), n):
            value -= row[i] * move[i]
        move[j] = value * row[j]


@compiled
def same(inside, counted):
    """Return whether the step stayed on its linear piece."""
    changed = 0
    for i in range(len(inside)):
        changed += inside[i] != counted[i]
    return changed == 0


@compiled
def along(gap, move):
    """The slope of the dual function along the step."""
    slope = 0.0
    for q in range(len(gap)):
        slope += gap[q] * move[q]
    return slope


@compiled
def newton(pattern, cells, queries, head, rules, y, center, x, flags, work, matrices):
    """Run line-searched Newton steps from ``center``, and return their number."""
    tolerance, small, near, overshoot, max_steps, line_search = rules
    inside, slack, counted, loose = flags
    gap, size, move, trial = work
    gram, matrix = matrices
    gram[:] = 0.0
    counted[:] = False
    weight, proximal = queries[0], queries[4]
    y[:] = center
    worst = evaluate(pattern, cells, queries, y, center, x, inside, slack, gap, size)
    settled, before = False, np.inf
    for steps in range(max_steps):
        stuck = worst > 0.5 * before
        if worst <= tolerance or (settled and (stuck or worst < small)) or (stuck and worst < near):
            return steps
        before = worst
        assemble(pattern, cells[0], inside, counted, gram)
        jacobian(gram, weight, proximal, slack, matrix)
        descend(matrix, head, gap, move)
        loose[:] = slack
        slope, length = along(gap, move), 1.0
        for _ in range(line_search):
            for q in range(len(y)):
                trial[q] = y[q] + length * move[q]
            worst = evaluate(pattern, cells, queries, trial, center, x, inside, slack, gap, size)
            end = along(gap, move)
            if end <= overshoot * abs(slope):
                break
            length *= min(max(-slope / (end - slope), 0.1), 0.9)
        y[:] = trial
        settled = length == 1.0 and same(inside, counted) and same(slack, loose)
    return max_steps


@compiled
def round_error(pattern, ease, target, measured, proximal, y, center, x, size):
    """How much the proximal terms still distort the solution, in relative terms."""
    start, query, data = pattern
    error = 0.0
    for q in range(len(y)):
        error = max(error, proximal[q] * abs(y[q] - center[q]) / size[q])
    for i in range(len(x)):
        if not measured[i]:
            pull = np.sqrt(1.0 / ease[i])
            for k in range(start[i], start[i + 1]):
                pull += abs(data[k] * y[query[k]])
            error = max(error, abs(x[i] - target[i]) / (ease[i] * pull))
    return error


@compiled
def solve_draws(start, query, data, boxed, scale, bounded, head, rules, levels, rounds, x, y, iterations):
    """Solve every draw by proximal rounds of Newton runs."""
    outer_tolerance, max_rounds = rounds
    precision_, target_, low_, high_, weight_, answer_, floor_, ceiling_ = boxed
    draws, n = x.shape
    m = y.shape[1]
    flags = (np.zeros(n, np.bool_), np.zeros(m, np.bool_), np.zeros(n, np.bool_), np.zeros(m, np.bool_))
    work = (np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m))
    matrices = (np.zeros((m, m)), np.zeros((m, m)))
    center, measured = np.zeros(m), np.zeros(n, np.bool_)
    ease, target, proximal = np.zeros(n), np.zeros(n), np.zeros(m)
    for r in range(draws):
        pattern = (start, query, data[r * (len(data) > 1)])
        own_precision, own_target = precision_[r * (len(precision_) > 1)], target_[r * (len(target_) > 1)]
        cell_scale, query_scale = scale[0][r * (len(scale[0]) > 1)], scale[1][r * (len(scale[1]) > 1)]
        holds = bounded[r * (len(bounded) > 1)]
        cells = (ease, target, low_[r * (len(low_) > 1)], high_[r * (len(high_) > 1)])
        queries = (
            weight_[r * (len(weight_) > 1)],
            answer_[r * (len(answer_) > 1)],
            floor_[r * (len(floor_) > 1)],
            ceiling_[r * (len(ceiling_) > 1)],
            proximal,
        )
        for turn in range(max_rounds):
            later = min(turn, 1)
            for i in range(n):
                measured[i] = own_precision[i] > 0
                ease[i] = 1.0 / (own_precision[i] if measured[i] else levels[1][later] * cell_scale[i])
                target[i] = own_target[i] if measured[i] else x[r, i]
            proximal[:] = levels[0][later] * query_scale * holds
            center[:] = y[r]
            iterations[r] += newton(pattern, cells, queries, head, rules, y[r], center, x[r], flags, work, matrices)
            if round_error(pattern, ease, target, measured, proximal, y[r], center, x[r], work[1]) <= outer_tolerance:
                break


# The compiled elimination of tree.py: one node at a time, on the upper triangle, without LAPACK. Threaded LAPACK is
# inefficient for many small matrices: its threads spend more time waiting for each other than working.


# mypy: disable-error-code="no-untyped-def"


compiled_tree: Any = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@compiled_tree
def eliminate_nodes(beta, root, factor, cross):
    """Eliminate the sums of each node, in place.

    With C = I + s B s = U'U (s = ``root``): U into ``factor``, U'^-1 s B into ``cross``, and B - B s C^-1 s B
    over ``beta``.
    """
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


@compiled_tree
def back(root, factor, cross, vector):
    """Apply (I + s^2 B)^-1 to each node's vector, in place."""
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


@compiled_tree
def add_products(ends, bounds, weights, values, found):
    """Add sums over nodes of weight x values x values'."""
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


@compiled_tree
def scan_corners(first, price, bend, jump, base, amount, ray):
    """Compute a polyline's amount at every corner, and its last slope."""
    for n in range(base.size):
        slope, value = 0.0, base[n]
        for i in range(first[n], first[n + 1]):
            if i > first[n]:
                value += slope * (price[i] - price[i - 1])
            amount[i] = value
            value += jump[i]
            slope += bend[i]
        ray[n] = slope


@compiled_tree
def fill(starts, neighbors, limit):
    """Return the number of factor entries below the diagonal.

    Of a symmetric system in its order; ``limit + 1`` if there are more than ``limit``. Row by row along the
    elimination tree: what is eliminated connects those of its neighbors that are left.
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
