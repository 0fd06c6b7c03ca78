"""Search for the least noise that reaches a goal.

In reading order:

- ``goals``: goals, and the cell that decides whether one is met
- ``families``: candidates, and the amount of noise that planning sets
- ``fitness``: the smallest policy of each family that is accurate enough
- ``shares``: how a loss is split over levels
- ``fits``: what a family needs for the goals of one statistic
- ``allocate``: one budget over several tables
- ``reliable``: how many cells a status rule would call reliable
"""
