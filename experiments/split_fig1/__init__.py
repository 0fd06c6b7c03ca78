"""Figure 1 of Seeman et al.: the error of a clamped sum of heavy-tailed values, and the erratum in its axis."""
