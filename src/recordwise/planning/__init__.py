"""Helps choose a mechanism: compare mechanisms, sweep thresholds, find what a goal requires, and write a plan.

Use public, synthetic or past records. Results computed from confidential records are confidential, and so are plans tuned on them.
"""

from recordwise.plan.file.write import PlanText, plan_text
from recordwise.planning.allocation import Allocation, allocate
from recordwise.planning.candidates import families
from recordwise.planning.changes import PlanChange
from recordwise.planning.compare import compare
from recordwise.planning.comparison import Candidate, ComparedTable, Comparison
from recordwise.planning.disclosure import Disclosure, MultiplicativeNoise, PercentRule
from recordwise.planning.errors import error_quantiles
from recordwise.planning.evaluate import EvaluatedGroup, Evaluation, evaluate
from recordwise.planning.fitness import FamilyFitness, Fitness, Fitted, fitness
from recordwise.planning.frontier import Frontier, frontier
from recordwise.planning.frontier_plans import FrontierPoint
from recordwise.planning.goals import Goal, plan_goals
from recordwise.planning.losses import Losses, LossPair
from recordwise.planning.metrics import METRICS
from recordwise.planning.recommend import Recommendation, recommend
from recordwise.planning.rehearse import Rehearsal, rehearse
from recordwise.planning.reliable_plan import ReliablePlan, most_reliable
from recordwise.planning.rivals import clamped
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
