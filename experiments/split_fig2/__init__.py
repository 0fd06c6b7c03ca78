"""[S] Figure 2: error against the share of records that pay more than rho, on simulated values and on dairy herds."""
