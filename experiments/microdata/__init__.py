"""Tables 1 and 2 of Abowd et al.: errors of five ways to make noisy tables nonnegative and consistent."""
