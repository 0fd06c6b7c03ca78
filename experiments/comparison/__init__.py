"""The older rules and our plans on the same tables: how many cells can be used, and what an attacker can tell."""
