"""Plans as TOML files: read, checked as a whole, every problem reported at once with its line."""

from recordwise.plan.file.node import Problem
from recordwise.plan.file.read import PlanFile, load_plan

__all__ = ["PlanFile", "Problem", "load_plan"]
