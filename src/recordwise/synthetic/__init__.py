"""Generated establishments for the demo, the tests and the benchmarks.

In reading order:

- ``establishments``: as skewed as real ones, from a few public figures
- ``states``: ten made-up states in two years, with code lists and public sizes
- ``county_tables``: from the county tables of County Business Patterns
"""

from recordwise.synthetic.county_tables import CountyTable
from recordwise.synthetic.establishments import batches, establishments, public_keys, write_establishments

__all__ = ["CountyTable", "batches", "establishments", "public_keys", "write_establishments"]
