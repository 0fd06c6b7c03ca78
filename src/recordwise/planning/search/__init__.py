"""Search for noise that reaches a goal: goals, candidates, shares over levels and fits."""
