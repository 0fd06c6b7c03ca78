"""[S] Figure 1: the error of a clamped sum of heavy-tailed values, and the erratum in its axis."""
