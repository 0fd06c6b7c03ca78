"""TODO plan.sql."""
