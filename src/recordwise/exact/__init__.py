"""TODO exact."""
