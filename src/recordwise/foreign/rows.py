"""The rows of the split table a foreign mechanism sees, and what they cost a record."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from recordwise.describing import predicate_json, value_json
from recordwise.errors import PlanError
from recordwise.exact import Number, fraction_text
from recordwise.foreign.mechanism import Foreign
from recordwise.plan import Schema, Splitting
from recordwise.plan.analysis import check_policy, policy_measure
from recordwise.plan.checking import predicate_problems
from recordwise.plan.column_types import threshold_problems
from recordwise.plan.conditions import condition as policy_condition
from recordwise.plan.predicates import Predicate
from recordwise.plan.split_rows import PIECE
from recordwise.plan.trees import threshold_tree
from recordwise.plan.whitelist import parse_predicate
from recordwise.policy import By, Measure, Policy
from recordwise.policy import split as split_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRows:
    """Which rows a foreign mechanism sees: how records are split, and which of them take part."""

    splitting: Splitting
    condition: Predicate | None

    @classmethod
    def of(cls, split: Mapping[str, Number | By], where: str | None, column: str | None, schema: Schema) -> "SplitRows":
        """Checked against the schema before anything is read."""
        splitting = Splitting.of(split)
        condition = None if where is None else parse_predicate(where)
        problems = [] if condition is None else predicate_problems(condition, schema)
        problems += threshold_problems(dict(splitting.thresholds), schema)
        known = {schema.unit, schema.firm, *schema.column_names(), *schema.measure_names(), PIECE}
        if column is not None and column not in known:
            problems.append(f"'{column}' is not a column of the split table")
        if problems:
            raise PlanError(problems=tuple(problems))
        for measure, at in splitting.thresholds:
            threshold_tree(measure, at, schema)
        return cls(splitting=splitting, condition=condition)

    def policy(self, rho: Fraction, schema: Schema) -> Policy:
        """rho * pieces**2, for the records that take part (T-FOREIGN, T-WHERE)."""
        thresholds: dict[Measure | str, Number | By] = {
            policy_measure(name, schema): at for name, at in self.splitting.thresholds
        }
        whole = split_policy(rho, thresholds)
        return check_policy(whole if self.condition is None else whole.where(policy_condition(self.condition)), schema)

    def to_json(self, foreign: Foreign) -> dict[str, Any]:
        """For the ledger and release.json."""
        return {
            "foreign": foreign.name,
            "where": None if self.condition is None else predicate_json(self.condition),
            "split": {name: value_json(at) for name, at in self.splitting.thresholds},
            "column": foreign.column,
            "rho_per_row": fraction_text(foreign.rho),
            "loss_known_from": foreign.known_from,
        }
