"""Figure 2 of Seeman et al.: error against the share of records that pay more than rho, on simulated values and on counties."""
