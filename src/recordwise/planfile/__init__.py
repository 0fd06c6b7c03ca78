"""Plans as TOML files: read, checked as a whole, every problem told at once with its line."""

from recordwise.planfile.node import Problem
from recordwise.planfile.planfile import PlanFile, load_plan

__all__ = ["PlanFile", "Problem", "load_plan"]
