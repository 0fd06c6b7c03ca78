"""Search for the least noise that reaches a goal.

In reading order:

- ``goals``: goals, the cells that decide them, and the candidates to meet them
- ``convex``: the shares that need the least, by an exact program
- ``shares``: which shares of a loss the tables of a plan get
- ``fits``: the most noise of each candidate that meets the goals of a table, a statistic, a plan
- ``cheaper``: what would cost less: another family of noise, or a looser goal
- ``reliable``: how many cells a status rule would call reliable
"""
