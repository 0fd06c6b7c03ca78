"""Helps choose a mechanism: compare mechanisms, sweep thresholds, find what a goal requires, and write a plan.

Use public, synthetic or past records. Results computed from confidential records are confidential, and so are plans tuned on them.
"""

from recordwise.plan.file.write import PlanText, plan_text
from recordwise.planning.compare import (
    Candidate,
    ComparedTable,
    Comparison,
    Disclosure,
    MultiplicativeNoise,
    PercentRule,
    compare,
)
from recordwise.planning.frontier import Frontier, ReliablePlan, frontier, most_reliable
from recordwise.planning.losses import Losses, LossPair
from recordwise.planning.new_plan import PlanChange
from recordwise.planning.recommend import Recommendation, recommend
from recordwise.planning.search.allocate import Allocation, allocate
from recordwise.planning.search.families import error_quantiles, families
from recordwise.planning.search.fitness import FamilyFitness, Fitness, Fitted, fitness
from recordwise.planning.search.goals import Goal, plan_goals
from recordwise.planning.search.reliable import FrontierPoint
from recordwise.planning.simulate.baselines import clamped
from recordwise.planning.simulate.evaluate import METRICS, EvaluatedGroup, Evaluation, evaluate
from recordwise.planning.simulate.rehearse import Rehearsal, rehearse
from recordwise.planning.sweep import Sweep, SweepPoint, sweep

__all__ = [
    "Allocation",
    "Candidate",
    "PlanChange",
    "ComparedTable",
    "Comparison",
    "Disclosure",
    "EvaluatedGroup",
    "Evaluation",
    "FamilyFitness",
    "Fitness",
    "Fitted",
    "Frontier",
    "FrontierPoint",
    "Goal",
    "LossPair",
    "Losses",
    "METRICS",
    "MultiplicativeNoise",
    "PercentRule",
    "PlanText",
    "Recommendation",
    "Rehearsal",
    "ReliablePlan",
    "Sweep",
    "SweepPoint",
    "allocate",
    "clamped",
    "compare",
    "error_quantiles",
    "evaluate",
    "families",
    "fitness",
    "frontier",
    "most_reliable",
    "plan_goals",
    "plan_text",
    "recommend",
    "rehearse",
    "sweep",
]
