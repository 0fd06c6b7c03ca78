"""The output formats of a release: one file each.

In reading order:

- ``format``: the interface
- ``registry``: the formats by name, with those of other packages
- ``parquet``: in every release
- ``csv``: safe to open in a spreadsheet
- ``xlsx``: accessible workbooks
- ``workbook``: how the parts of one are put together
- ``statistical``: SAS, Stata and functions for R
- ``sdmx_csv``: an observation on each line, as SDMX or plain
- ``cbp``: the layout of County Business Patterns
- ``records``: microdata that add up to the tables
"""

from recordwise.release.formats.format import Format
from recordwise.release.formats.registry import formats_named, known_formats

__all__ = ["Format", "formats_named", "known_formats"]
