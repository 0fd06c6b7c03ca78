"""Synthetic establishments for the demo, the tests and the benchmarks, calibrated by a few public figures."""

from recordwise.generator.county_tables import CountyTable
from recordwise.generator.figures import public_keys
from recordwise.generator.synthetic import batches, establishments, write_establishments

__all__ = ["CountyTable", "batches", "establishments", "public_keys", "write_establishments"]
