"""A policy for people to read.

In reading order:

- ``text``: sentences and formulas
- ``latex``: formulas for a methodology paper
- ``html``: elements, axes and the chart of a notebook
"""
