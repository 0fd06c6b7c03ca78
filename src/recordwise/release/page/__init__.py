"""The page saved with a release, report.html. It makes no requests.

In reading order:

- ``page``: the file
- ``view``: everything it shows, computed once
- ``questions``: what an establishment is asked, and the sentences it reads
- ``value_change``: the loss of a change in a value
- ``charts``: losses and errors over size
- ``results``: headline numbers, ranked cells, sums and a map
- ``cells``: the tables
- ``history``: earlier periods

``scripts`` has what runs in the browser and how it looks, ``templates`` the sections.
"""
