"""TODO policy.evaluate."""
