"""Are ids unique? Exactly, and without a table of groups: numbers that differ prove that what they were computed from differs.

Each id has a 64-bit number that equal ids share (``fingerprints_tree``). If all numbers are different, so are the ids. If two are
equal, ids may be repeated or a hash may have met another by chance, and the engine counts them itself (T-UNIQUE).
"""

from recordwise.engines.connection import Connection
from recordwise.engines.different import all_different
from recordwise.plan.records import Stored
from recordwise.plan.schema import Schema
from recordwise.plan.validation import REPEATED, fingerprints_tree, repeated_tree

FEWEST, MOST = 200_000, 12_000_000
"""Below, a count is as fast; above, the numbers and two copies of their halves would take more than 192 MB."""


def repeated_ids(connection: Connection, schema: Schema, stored: Stored, *, records: int, unknown: int) -> int:
    """How many ids are not new; ``unknown`` ids are NULL and none of them."""
    if not unknown and FEWEST <= records <= MOST and _proved_different(connection, schema, stored, records):
        return 0
    (found,) = connection.fetch(repeated_tree(schema)).to_pylist()
    return int(found[REPEATED])


def _proved_different(connection: Connection, schema: Schema, stored: Stored, records: int) -> bool:
    numbers = connection.fetch_numbers(fingerprints_tree(schema, stored), rows=records)
    return numbers is not None and all_different(numbers)
