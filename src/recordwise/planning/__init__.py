"""Choose mechanisms: compare them, find what a goal requires, write the plan.

The eight functions are ``check``, ``explain``, ``compare``, ``recommend``, ``recommend_within``, ``frontier``, ``evaluate`` and
``rehearse``. What else is shown is made by a user: goals (``Goal``, ``plan_goals``), candidates (``families``),
baselines (``PercentRule``, ``MultiplicativeNoise``, ``clamped``) and plan files (``plan_text``). The classes of results
can be imported from here, for annotations, and so can ``best_shares``, which ``check`` and plans with ``share = "best"`` use.
Use public, generated or past records. Results computed from confidential records are confidential, and so are plans tuned on them.
Imports the session and everything below it.

In reading order:

- ``result``: the base of all results
- ``scope``: a plan and the tables and statistics selected from it
- ``losses``: the distribution of losses over records or firms
- ``check``: what a plan would cost, before any record is read
- ``page``: the page that explains a plan
- ``explain``: what is on it, for those who decide
- ``sweep``: thresholds and clamps over a grid
- ``compare``: mechanisms side by side
- ``search``: goals, candidates, shares and the search among them
- ``recommend``: from goals to a plan file
- ``frontier``: what records lose against how many cells are reliable
- ``new_plan``: a plan that continues another one
- ``simulate``: rehearsals, metrics and baselines
- ``plots``: the figures
"""

from recordwise.disclosure.rules import Coarsening as Coarsening
from recordwise.disclosure.rules import PercentRule
from recordwise.disclosure.rules import Ranges as Ranges
from recordwise.disclosure.rules import Rounding as Rounding
from recordwise.disclosure.rules import Suppression as Suppression
from recordwise.disclosure.rules import ThresholdRule as ThresholdRule
from recordwise.plan.file.write import PlanText as PlanText
from recordwise.plan.file.write import plan_text
from recordwise.planning.check import Check as Check
from recordwise.planning.check import check
from recordwise.planning.compare import Comparison as Comparison
from recordwise.planning.compare import compare
from recordwise.planning.explain import explain
from recordwise.planning.frontier import Frontier as Frontier
from recordwise.planning.frontier import ReliablePlan as ReliablePlan
from recordwise.planning.frontier import frontier, recommend_within
from recordwise.planning.page import Explanation as Explanation
from recordwise.planning.recommend import Recommendation as Recommendation
from recordwise.planning.recommend import recommend
from recordwise.planning.search.goals import Goal, families, plan_goals
from recordwise.planning.search.shares import Allocation as Allocation
from recordwise.planning.simulate.baselines import MultiplicativeNoise, clamped
from recordwise.planning.simulate.evaluate import METRICS as METRICS
from recordwise.planning.simulate.evaluate import Evaluation as Evaluation
from recordwise.planning.simulate.evaluate import evaluate
from recordwise.planning.simulate.rehearse import Rehearsal as Rehearsal
from recordwise.planning.simulate.rehearse import rehearse
from recordwise.planning.sweep import Sweep as Sweep
from recordwise.session.shares import BestShares as BestShares
from recordwise.session.shares import best_shares as best_shares

__all__ = [
    "Goal",
    "MultiplicativeNoise",
    "PercentRule",
    "check",
    "clamped",
    "compare",
    "evaluate",
    "explain",
    "families",
    "frontier",
    "plan_goals",
    "plan_text",
    "recommend",
    "recommend_within",
    "rehearse",
]


def __dir__() -> list[str]:
    return sorted(__all__)
