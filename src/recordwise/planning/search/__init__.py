"""Search for the least noise that reaches a goal.

In reading order:

- ``goals``: goals, and the cell that decides whether one is met
- ``families``: candidates, and the amount of noise that planning sets
- ``shares``: how a loss is split over levels
- ``fits``: the most noise of each candidate that meets the goals of a table, a statistic, a plan
- ``allocate``: one budget over several tables
- ``reliable``: how many cells a status rule would call reliable
"""
