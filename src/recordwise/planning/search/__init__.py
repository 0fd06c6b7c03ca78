"""Search for the least noise that reaches a goal.

In reading order:

- ``goals``: goals, the cells that decide them, and the candidates to meet them
- ``convex``: the shares that need the least, by an exact program
- ``shares``: which shares of a loss the tables of a plan get
- ``cheaper``: another family of noise that would cost every example less
- ``fits``: the most noise of each candidate that meets the goals of a table, a statistic, a plan
- ``reliable``: how many cells a status rule would call reliable
"""
