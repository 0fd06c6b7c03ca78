"""recordwise."""
