"""TODO policy.render."""
