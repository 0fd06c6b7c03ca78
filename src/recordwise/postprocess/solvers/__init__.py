"""The private solvers behind the fits. Every fit is one boxed least-squares problem, and its shape determines the solver.

Read in this order: ``boxed`` states the problem and what a solver returns; ``newton`` solves it (semismooth Newton on the dual),
given a way to solve its linear systems; ``refine`` finishes the few draws left above the tolerance. The linear systems come from
``dense`` (few queries), ``tree`` and ``forest`` (nested sums, by elimination), ``factored`` (sums that cross, of which few share a
cell) and ``iterative`` (the rest, by conjugate gradients).
``prices`` solves nested sums in two passes, where Newton then starts. ``solve`` chooses among them and adds extra queries to a
system. ``kernel`` and ``tree_kernel`` are compiled inner loops;
``trees`` describes how the groups of a workload nest.
"""
