"""TODO release."""
