"""From exact totals to published files: draw noise, save, reload and verify.

Takes totals from the session, returns tables and folders. Imports plan and the rows below it; knows no engine.

In reading order:

- ``draw``: the only place where totals meet noise
- ``tables``: published tables, their digest, and what is said about their columns and parts
- ``published``: what release.json says, read and written
- ``release``: the result of a run
- ``dictionary``: what each column means
- ``content``: what the files say
- ``formats``: the file formats
- ``page``: the page saved with a release
- ``staging``: folders made in one step
- ``files``: save, reload, export
- ``verify``: a ledger and the folders that refer to it
- ``nesting``: how the tables of a query nest
- ``spread``: the public noise behind every answer
- ``consistent``: nonnegative and additive tables, and the best linear estimate
- ``basic``: rounded tables with a status
- ``change``: from an earlier release to a later one
"""
