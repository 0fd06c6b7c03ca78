"""Handing over what was chosen: a plan file that ``check`` reads, the same in Python, and what a report shows.

Nothing is released here; the commands that do are only named.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from recordwise.errors import BudgetError, ParameterError, RecordError, own_argument_errors, own_errors_of
from recordwise.exact.numbers import fraction_text
from recordwise.exact.text import screen_number, screen_whole
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.plan.cost import plan_policy
from recordwise.plan.describe import query_names
from recordwise.plan.file.read import PlanFile, load_plan
from recordwise.plan.file.write import PlanText
from recordwise.plan.query import Query
from recordwise.plan.schema import TUNINGS
from recordwise.planning.check import Check, check, example_records, with_known_sizes
from recordwise.planning.losses import budget_words
from recordwise.planning.new_plan import carried_plan
from recordwise.planning.scope import scope_of, with_choice
from recordwise.policy.policy import Policy
from recordwise.session.session import plan_ledger
from recordwise.studio.form import plan_digest
from recordwise.studio.state import Setting, StudioState
from recordwise.studio.texts import MOST_YEARS, points, view
from recordwise.studio.trade import Trade

POSITION = "position"
INDENT = "    "
UNPROVED = "no proof was found in time that the budget covers it"


@own_argument_errors
def mechanisms(trade: Trade, state: StudioState) -> dict[str, Mechanism]:
    """Return the mechanisms that are chosen.

    Args:
        trade: The trade file.
        state: The state.

    Returns:
        The mechanism of each statistic, by its key.
    """
    chosen = points(trade, state.now.position, state.now.mechanisms)
    found = {each.key: mechanism_from_json(point.entry) for each, point in zip(trade.statistics, chosen)}
    if any(each is None for each in found.values()):
        raise ParameterError(
            parameter="trade file",
            problem="names a mechanism that is not installed",
            advice="Install the package that it is from.",
        )
    return {key: each for key, each in found.items() if each is not None}


@own_argument_errors
def with_mechanisms(file: PlanFile, chosen: Mapping[str, Mechanism]) -> tuple[Query, ...]:
    """Return the queries of a plan with other mechanisms.

    Args:
        file: The plan.
        chosen: Mechanisms by the key of the statistic, ``QUERY:NAME``; statistics without one keep theirs.

    Returns:
        The queries.

    Raises:
        ParameterError: The plan has no such statistic.
    """
    asked = scope_of(file.plan, file.plan.schema).asked()
    known = {f"{each.query + 1}:{each.statistic.alias}": each for each in asked}
    unknown = [key for key in chosen if key not in known]
    if unknown:
        raise ParameterError(
            parameter="mechanisms",
            problem=f"has '{unknown[0][:80]}', which is no statistic of the plan",
            advice=f"Use {', '.join(known)}.",
        )
    own = {known[key].place: each for key, each in chosen.items()}
    return with_choice(
        file.plan, [known[key] for key in chosen], lambda each: own.get(each.place, each.statistic.mechanism)
    )


# The plan file.


@own_argument_errors
def plan_of(
    plan: PlanFile,
    trade: Trade,
    state: StudioState,
    path: str | Path,
    *,
    tuning_reason: str | None = None,
    parameters: Mapping[str, str | int] | None = None,
) -> PlanText:
    """Return the plan file with the chosen mechanisms.

    The goals are at its top in words, with the reasons. Of a trade file made from confidential records it says
    ``tuned_on = "confidential"`` and is refused until it gives a reason.

    Args:
        plan: The plan that the trade file is about.
        trade: The trade file.
        state: The state.
        path: Where it will be, to which the paths in it are relative.
        tuning_reason: The reason for a release tuned on confidential records, which is published with it.
        parameters: The values with which the plan was read.

    Returns:
        The text of the plan.

    Raises:
        ParameterError: The plan was changed since the trade file was made.
    """
    if plan_digest(plan.path, plan.parameters) != trade.plan_digest:
        raise ParameterError(
            parameter="plan", problem="was changed since the trade file was made", advice="Make the trade file again."
        )
    made = carried_plan(
        plan.path,
        path,
        plan.plan.queries,
        with_mechanisms(plan, mechanisms(trade, state)),
        tuned_on=trade.data,
        tuning_reason=tuning_reason,
        comment="",
        parameters=plan.parameters if parameters is None else parameters,
    )
    comment = "".join(f"# {line}\n" for line in _comment(trade, state.now))
    return replace(made, text=f"{comment}\n{made.text.lstrip()}")


@own_argument_errors
def save_plan(
    plan: PlanFile,
    trade: Trade,
    state: StudioState,
    path: str | Path,
    *,
    tuning_reason: str | None = None,
    parameters: Mapping[str, str | int] | None = None,
) -> Path:
    """Write the plan file; see ``plan_of``.

    Args:
        plan: The plan that the trade file is about.
        trade: The trade file.
        state: The state.
        path: A new file.
        tuning_reason: The reason for a release tuned on confidential records, which is published with it.
        parameters: The values with which the plan was read.

    Returns:
        The file.
    """
    return plan_of(plan, trade, state, path, tuning_reason=tuning_reason, parameters=parameters).save(path)


def _comment(trade: Trade, now: Setting) -> list[str]:
    """Return the goals and reasons, a line each."""
    lines = ["Chosen in the studio:" if not trade.is_confidential else f"Chosen in the studio. {trade.label}."]
    told = _line(now.reasons.get(POSITION, ""))
    lines += [f"{trade.positions[now.position].goal}"] + ([f"  because: {told}"] if told else [])
    for each in trade.statistics:
        reason = _line(now.reasons.get(each.key, ""))
        lines.append(f"{each.key}, {now.mechanisms[each.key]}: {each.goals[now.position]}")
        lines += [f"  because: {reason}"] if reason else []
    return lines


def _line(text: str) -> str:
    """Return a text on one line, without what TOML forbids in comments."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


# The same in Python.


@own_argument_errors
def python_of(plan: PlanFile, trade: Trade, state: StudioState) -> str:
    """Return Python code that makes the same queries and checks their cost.

    Args:
        plan: The plan that the trade file is about.
        trade: The trade file.
        state: The state.

    Returns:
        The code; it is run in the folder of the plan.
    """
    chosen = mechanisms(trade, state)
    lines = [f"# {line}" for line in _comment(trade, state.now)]
    given = f", parameters={dict(plan.parameters)!r}" if plan.parameters else ""
    loaded = f"rw.load_plan({plan.path.name!r}{given})"
    if trade.is_confidential:
        tuned = max(plan.tuned_on, trade.data, key=TUNINGS.index)
        lines += ["# A release also needs tuning_reason, which is published with it."]
        lines += ["from dataclasses import replace", ""]
        loaded = f"replace({loaded}, tuned_on={tuned!r})"
    lines += ["import recordwise as rw", "", f"file = {loaded}", "mechanisms = {"]
    lines += [f"{INDENT}{key!r}: {expression(each)}," for key, each in chosen.items()]
    lines += ["}", "queries = rw.studio.with_mechanisms(file, mechanisms)", ""]
    lines += ["with rw.Session.from_plan(file) as session:"]
    lines += [f"{INDENT}policy = session.policy_of(*queries)", f"{INDENT}print(policy)"]
    lines += [f"{INDENT}# release = session.run(*queries)  charges the ledger and draws noise"]
    return "\n".join(lines) + "\n"


def expression(mechanism: Mechanism) -> str:
    """Return a mechanism as Python code.

    Args:
        mechanism: The mechanism.

    Returns:
        A call such as ``rw.Gaussian(sigma='8')``.
    """
    given = ", ".join(f"{name}={_literal(value)}" for name, value in mechanism.given_parameters().items())
    return f"{_home(type(mechanism))}({given})"


def _home(kind: type) -> str:
    import recordwise

    name = kind.__name__
    return f"rw.{name}" if name in recordwise.__all__ else f"rw.mechanisms.{name}"


def _literal(value: Any) -> str:
    if isinstance(value, Mechanism):
        return expression(value)
    if isinstance(value, Fraction):
        return repr(fraction_text(value))
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{_literal(group)}: {_literal(each)}" for group, each in value) + "}"
    return repr(value)


# What a report shows, and the numbers of the policy itself.


def commands(plan: str, parameters: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the commands that follow; none is run here.

    Args:
        plan: The name of the plan file.
        parameters: The values with which it is read.

    Returns:
        The lines to type.
    """
    words = "".join(f" --set {name}={shlex.quote(value)}" for name, value in (parameters or {}).items())
    return (
        f"recordwise check {plan}{words}",
        f"recordwise rehearse {plan}{words} --out rehearsal",
        f"recordwise release {plan}{words} --out release",
    )


@own_argument_errors
def report(plan: PlanFile, trade: Trade, state: StudioState, *, name: str = "plan-chosen.toml") -> dict[str, Any]:
    """Return everything that the report for the committee holds.

    Args:
        plan: The plan that the trade file is about.
        trade: The trade file.
        state: The state.
        name: What the new plan is called.

    Returns:
        The label, the texts of the page, the trade file and state for its controls, the plan, the code and the commands.
    """
    return {
        "label": trade.label,
        "title": trade.title,
        "texts": view(trade, state),
        "reasons": {key: text for key, text in state.now.reasons.items() if text},
        "trade": trade.to_json(),
        "state": state.to_json(),
        "plan": plan_of(plan, trade, state, plan.path.with_name(name)).text,
        "python": python_of(plan, trade, state),
        "commands": list(commands(name, plan.parameters)),
    }


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exact:
    """The numbers of the policy itself, for when the control rests."""

    file: PlanFile
    trade: Trade

    @classmethod
    def of(cls, plan: PlanFile | str | Path, trade: Trade) -> "Exact":
        """Read the public sizes of a plan once.

        Args:
            plan: The plan that the trade file is about.
            trade: The trade file.

        Returns:
            What ``texts`` is asked of.
        """
        given = plan if isinstance(plan, PlanFile) else load_plan(plan)
        return cls(file=with_known_sizes(given), trade=trade)

    def texts(self, state: StudioState) -> dict[str, str]:
        """Return the losses of the examples from the policy, and whether the budget covers it for every possible record.

        Args:
            state: The state.

        Returns:
            Texts by key, as in ``view``: ``example/NUMBER/loss``, ``years`` and ``budget``.
        """
        queries = with_mechanisms(self.file, mechanisms(self.trade, state))
        policy = plan_policy(replace(self.file.plan, queries=queries))
        records = example_records(self.file, policy)
        found: dict[str, str] = {}
        for number, each in enumerate(self.trade.examples):
            try:
                found[f"example/{number}/loss"] = screen_number(float(policy.loss(records[each.name])))
            except (KeyError, RecordError):
                continue
        return found | self._budget(policy)

    def _budget(self, policy: Policy) -> dict[str, str]:
        if self.file.budget is None:
            return {"budget": "no budget is declared", "years": "no budget"}
        with plan_ledger(self.file) as ledger:
            named = query_names(self.file.plan)

            def refused(times: int) -> BudgetError | None:
                try:
                    ledger.check(policy * times, query="the plan", named=named, reserve=0)
                except BudgetError as error:
                    return error
                return None

            first = refused(1)
            if first is not None:
                if first.witness is None:
                    # It has pages of reasons, which ``check`` prints.
                    return {"budget": UNPROVED}
                return {"budget": f"the budget does not cover it: {budget_words(first)}", "years": screen_whole(0)}
            covered, over = 1, 2
            while over <= MOST_YEARS and refused(over) is None:
                covered, over = over, 2 * over
            while covered + 1 < min(over, MOST_YEARS + 2):
                middle = (covered + over) // 2
                covered, over = (middle, over) if refused(middle) is None else (covered, middle)
        told = f"more than {screen_whole(MOST_YEARS)}" if covered > MOST_YEARS else screen_whole(covered)
        return {"budget": "the budget covers it for every possible record", "years": told}


def checked(path: str | Path) -> Check:
    """Check a plan that was handed over, without its records.

    Args:
        path: The plan file.

    Returns:
        What ``recordwise check`` says.
    """
    return check(path, source=False)
