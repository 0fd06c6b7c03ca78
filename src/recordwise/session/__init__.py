"""Sessions, where plan, engine, ledger and noise meet.

Imports everything below it; only planning, audit and cli import it.

In reading order:

- ``session``: one table of records and one budget
- ``publisher``: how a release is made, in order
- ``stages``: a release that refines another one
- ``tiers``: a public tier with more noise, made from a finer release
- ``carried``: a release that follows another one on other records: the next period, or corrections
- ``checks``: before a release: do its cells hold the records, are its sizes public, are its records the same as before?
- ``shares``: the best shares of a loss over the tables of a query, from public lists and sizes
- ``split``: shares for which the largest of several costs is smallest
- ``owner``: what the owner of the data may examine; every look is entered in the ledger first
- ``simulated``: releases drawn again and again, in memory
"""

from recordwise.session.session import Session

__all__ = ["Session"]
