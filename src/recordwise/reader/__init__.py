"""For readers of tables: open a release, ask it for totals.

Takes a folder or a zip of a release, returns tables and answers. Imports release and the rows below it; knows no records, no
engine and no session, and loads what answers need when the first one is asked for.

In reading order:

- ``reading``: a release for readers
- ``questions``: conditions, regions and the words of a question
- ``asking``: which published cells a question is about, and its best linear unbiased answer
- ``answers``: values with errors, covariances and the words to quote
- ``derived``: ranks, regressions and replicates
"""

from recordwise.reader.answers import Answer
from recordwise.reader.reading import ReaderRelease, read

__all__ = ["Answer", "ReaderRelease", "read"]
