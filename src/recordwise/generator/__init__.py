"""Synthetic establishments for the demo, the tests and the benchmarks, calibrated by a few public figures."""

from recordwise.generator.figures import public_keys
from recordwise.generator.synthetic import batches, establishments, write_establishments

__all__ = ["batches", "establishments", "public_keys", "write_establishments"]
