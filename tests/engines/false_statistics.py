"""Parquet files whose footers state something else than their columns hold."""

import struct

import pyarrow.parquet as pq


def whole(number):
    """A 64-bit number as a footer states it."""
    return struct.pack("<q", number)


NO_NULLS = ((b"\x16\x02\x28", b"\x16\x00\x28"),)
"""The field that counts missing values, which comes between the least and the largest value: from one to none."""


def write_false(table, path, swaps):
    """Write a table and replace bytes of its footer by as many others; each must be there."""
    pq.write_table(table, path, compression="none", use_dictionary=False, store_schema=False)
    written = path.read_bytes()
    length = struct.unpack("<I", written[-8:-4])[0]
    pages, footer, end = written[: -8 - length], written[-8 - length : -8], written[-8:]
    for old, new in swaps:
        assert len(old) == len(new)
        assert old in footer
        footer = footer.replace(old, new)
    path.write_bytes(pages + footer + end)
