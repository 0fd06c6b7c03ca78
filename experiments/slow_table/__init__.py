"""Loss against record size and error against total for all mechanisms of Finley et al. and ours, at variance 2."""
