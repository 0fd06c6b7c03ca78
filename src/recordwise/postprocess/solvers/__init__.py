"""TODO postprocess.solvers."""
