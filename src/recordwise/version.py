"""The version of recordwise, in a module of its own so that a release can state it."""

__version__ = "0.1.0"
