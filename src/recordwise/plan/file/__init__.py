"""Plans as TOML files. A file is checked as a whole, and every problem is reported at once with its line."""

from recordwise.plan.file.node import Problem
from recordwise.plan.file.read import PlanFile, load_plan

__all__ = ["PlanFile", "Problem", "load_plan"]
