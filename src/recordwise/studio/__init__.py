"""The studio: choose on a screen what a publication shows and what it gives away.

A plan and records (public, generated or, after a look is entered in the ledger, confidential) come in; a plan file that ``check``
accepts and a report for the committee go out. Nothing is released here. Imports planning and everything below it.

In reading order:

- ``form``: frozen dataclasses as JSON, with a schema
- ``trade``: the trade file, everything the page shows
- ``state``: the state of the page as one value, and its pure step
- ``words``: goals in words, written and read by one grammar
- ``profile``: records, examples and firms that stand for all
- ``places``: states, and three places that are drawn
- ``make``: the computation of a trade file
- ``view``: every text that the page shows in a state
- ``page``: the page's own files, and all of them in one file as a report
- ``worker``: one thread for heavy work, with progress and cancel
- ``desk``: what the server does for its page, in one folder
- ``guard``: who may talk to the server
- ``server``: the server for one browser on this machine
"""
