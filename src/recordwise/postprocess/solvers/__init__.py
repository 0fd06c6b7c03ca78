"""The private solvers behind the fits: every fit is one boxed least-squares problem.

In reading order:

- ``boxed``: the problem, and what a solver returns
- ``trees``: how the groups of a workload nest
- ``solve``: which solver, and what finishes the few draws above the tolerance
- ``dense``: semismooth Newton on the dual, with few queries
- ``tree``: nested sums, by elimination
- ``crossed``: two crossed trees, by elimination along one
- ``places``: the linear fit where tables cross, by recursion over places
- ``prices``: nested sums in two passes, where Newton starts
- ``iterative``: the rest, by conjugate gradients
- ``kernel``: compiled inner loops
"""
