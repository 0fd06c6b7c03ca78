"""Reproduces Tables 1 and 2 of [A] Abowd et al., "An Uncertainty Principle is a Price of Privacy-Preserving Microdata" (2021)."""

from experiments.microdata.run import main

__all__ = ["main"]
