"""The private solvers behind the fits. Every fit is one boxed least-squares problem; its shape decides who solves it.

Read in this order: ``boxed`` states the problem and what a solver returns; ``newton`` solves it (semismooth Newton on the dual),
given a way to solve its linear systems; ``refine`` finishes the few draws left above the tolerance. The linear systems come from
``dense`` (few queries), ``tree`` and ``forest`` (nested sums, by elimination), ``iterative`` (the rest, by conjugate gradients)
and ``bordered`` (a system plus a few extra queries). ``solve`` chooses among them. ``kernel``, ``tree_kernel`` and ``elimination``
are compiled or batched inner loops; ``trees`` and ``lattice`` describe how the groups of a workload nest.
"""
