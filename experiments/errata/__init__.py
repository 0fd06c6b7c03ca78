"""The errata of the papers, each with a computation that shows it: what is printed, what holds."""
