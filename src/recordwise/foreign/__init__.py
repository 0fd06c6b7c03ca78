"""Mechanisms from elsewhere, run on the unit-split table: a Python callable with a declared loss, or an OpenDP measurement.

Theorem T-FOREIGN (docs/theory/foreign.md): what is rho-zCDP when one row is added or removed costs a record of m pieces at most
rho * m**2, because the record is m rows of the split table. Recordwise cannot check a declared loss; it says so in the release.
"""

from recordwise.foreign.mechanism import Foreign
from recordwise.foreign.reading import read_foreign
from recordwise.foreign.rows import SplitRows

__all__ = ["Foreign", "SplitRows", "read_foreign"]
