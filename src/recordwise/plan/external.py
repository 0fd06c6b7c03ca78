"""A plan for an external mechanism: its rows and their cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordwise.errors import PlanError
from recordwise.exact.numbers import Number, fraction_text
from recordwise.mechanisms.base import parameter_json
from recordwise.mechanisms.external import ExternalMechanism
from recordwise.plan.cost import check_policy
from recordwise.plan.describe import predicate_json
from recordwise.plan.expressions import Predicate
from recordwise.plan.expressions import condition as policy_condition
from recordwise.plan.plan import predicate_problems
from recordwise.plan.schema import Schema, policy_measure, threshold_problems
from recordwise.plan.statistics.totals import PIECE, Splitting, check_thresholds
from recordwise.policy.columns import Measure
from recordwise.policy.constructors import By, constant, pure_constant, pure_split
from recordwise.policy.constructors import split as split_policy
from recordwise.policy.firms import PURE, FirmPart, FirmPolicy, Joint
from recordwise.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRows:
    """Rows an external mechanism sees: the split and the included records."""

    splitting: Splitting
    condition: Predicate | None

    @classmethod
    def of(
        cls, split: Mapping[str, Number | By] | None, where: str | None, column: str | None, schema: Schema
    ) -> "SplitRows":
        """Check against the schema before anything is read; without a split every record is one row."""
        from recordwise.plan.sql.grammar import parse_predicate

        splitting = Splitting(()) if split is None else Splitting.of(split)
        condition = None if where is None else parse_predicate(where)
        problems = [] if condition is None else predicate_problems(condition, schema)
        problems += threshold_problems(dict(splitting.thresholds), schema)
        known = {*schema.id_columns(), *schema.column_names(), *schema.measure_names(), PIECE}
        if column is not None and column not in known:
            problems.append(f"'{column}' is not a column of the split table")
        if problems:
            raise PlanError(problems=tuple(problems))
        check_thresholds(splitting, schema)
        return cls(splitting=splitting, condition=condition)

    def policy(self, external: ExternalMechanism, schema: Schema) -> Policy:
        """Return the policy of the participating records (T-EXTERNAL, T-WHERE)."""
        thresholds: dict[Measure | str, Number | By] = {
            policy_measure(name, schema): at for name, at in self.splitting.thresholds
        }
        epsilon, rho = external.epsilon, external.rho
        if epsilon is None:
            whole = split_policy(rho or 0, thresholds) if thresholds else constant(rho or 0)
        elif thresholds:
            whole = pure_split(thresholds, epsilon=epsilon, rho=rho)
        else:
            whole = pure_constant(epsilon, rho=rho)
        return check_policy(whole if self.condition is None else whole.where(policy_condition(self.condition)), schema)

    def firms(self, external: ExternalMechanism, schema: Schema) -> FirmPolicy:
        """Return the joint loss of a firm's units, whatever their cells (T-CELLS)."""
        joint = Joint() if external.epsilon is None else Joint(kind=PURE)
        return FirmPolicy(parts=(FirmPart(policy=self.policy(external, schema), joint=joint),))

    def to_json(self, external: ExternalMechanism) -> dict[str, Any]:
        """For the ledger and release.json."""
        return {
            "external": external.name,
            "where": None if self.condition is None else predicate_json(self.condition),
            "split": {name: parameter_json(at) for name, at in self.splitting.thresholds} or None,
            "column": external.column,
            **_row_losses(external),
            "loss_known_from": external.known_from,
        }


def _row_losses(external: ExternalMechanism) -> dict[str, str]:
    known = {"rho_per_row": external.rho, "epsilon_per_row": external.epsilon}
    return {name: fraction_text(loss) for name, loss in known.items() if loss is not None}
