"""Synthetic establishments for the demo, the tests and the benchmarks, calibrated to a few public figures."""

from recordwise.synthetic.county_tables import CountyTable
from recordwise.synthetic.establishments import batches, establishments, public_keys, write_establishments

__all__ = ["CountyTable", "batches", "establishments", "public_keys", "write_establishments"]
