"""Choose mechanisms: compare them, find what a goal requires, write the plan.

Use public, generated or past records. Results computed from confidential records are confidential, and so are plans tuned on them.
Imports the session and everything below it.

In reading order:

- ``result``: the base of all results
- ``scope``: a plan and the tables and statistics selected from it
- ``losses``: the distribution of losses over records or firms
- ``check``: what a plan would cost, before any record is read
- ``compare``: mechanisms side by side
- ``sweep``: unit splitting over a grid of thresholds
- ``search``: goals, candidates, shares and the search among them
- ``recommend``: from goals to a plan file
- ``frontier``: what records lose against how many cells are reliable
- ``new_plan``: a plan that continues another one
- ``simulate``: rehearsals, metrics and baselines
- ``plots``: the figures
"""

from recordwise.plan.file.write import PlanText, plan_text
from recordwise.planning.check import Check, check
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
    "Check",
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
    "check",
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
