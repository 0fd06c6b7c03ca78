"""TODO policy.dominance."""
