"""``recordwise audit [PLAN]``: tests stated losses on made-up neighboring tables."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well
from recordwise.cli.options import Set, load_with_parameters

if TYPE_CHECKING:
    from recordwise.audit.audit import Finding, Runs
    from recordwise.audit.subjects import Subject

BROKEN = 1
"""The exit code of an audit that found something, and of an unexpected failure; in either case, do not publish."""
Named = list[tuple[str, "Callable[[], Subject]"]]


@ends_well
def audit(
    plan: Annotated[Path | None, typer.Argument(help="A plan whose mechanisms to audit.", show_default=False)] = None,
    engine: Annotated[str, typer.Option(help="The engine to use: duckdb or spark.")] = "duckdb",
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[2]",
    mechanism: Annotated[list[str] | None, typer.Option(help="Part of a subject's name; may be repeated.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of complete releases of each query.")] = 2,
    cells: Annotated[
        int, typer.Option(min=2000, help="Number of cells with each record; as many again without it.")
    ] = 50_000,
    given: Set = None,
    listed: Annotated[bool, typer.Option("--list", help="List the subjects and exit.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Attack our releases to test their stated losses.

    Lower bounds on the loss, from the files alone, must not exceed the policy (or exit code 1).
    """
    import json

    from recordwise.audit.audit import Runs
    from recordwise.engines.registry import engine_kind

    spark = master if "spark" in engine_kind(engine).needs else None
    how = Runs(engine=engine, spark=spark, cells=cells, runs=runs)
    named = choose_subjects(plan, mechanism or [], given)
    if listed:
        typer.echo("\n".join(name for name, _ in named))
        return
    found = all_findings(named, how, quiet=as_json, whole=not mechanism)
    if as_json:
        typer.echo(json.dumps(findings_json(found), allow_nan=False))
    else:
        show(found)
    if any(each.broken for each in found):
        raise typer.Exit(BROKEN)


def choose_subjects(plan: Path | None, parts: list[str], given: list[str] | None = None) -> Named:
    """Return the subjects whose name contains one of the parts."""
    from recordwise.audit.subjects import every_subject
    from recordwise.errors import ParameterError

    named: Named = list(every_subject().items())
    if plan is not None:
        from recordwise.audit.subjects import plan_subjects

        named = [(each.name, lambda each=each: each) for each in plan_subjects(load_with_parameters(plan, given).plan)]  # type: ignore[misc]
    kept = [(name, make) for name, make in named if not parts or any(part in name for part in parts)]
    if not kept:
        names = "; ".join(name for name, _ in named)
        raise ParameterError(parameter="--mechanism", problem=f"must be part of one of these names: {names}")
    return kept


def all_findings(named: Named, how: "Runs", *, quiet: bool, whole: bool) -> "list[Finding]":
    """Every finding, including the checks without numbers if nothing was left out."""
    from tempfile import TemporaryDirectory

    from recordwise.audit.audit import audit as audited
    from recordwise.audit.checks import (
        audit_carried,
        audit_reentry,
        audit_refusals,
        audit_threads,
        audit_two_periods,
        audit_two_stages,
    )
    from recordwise.audit.forking import audit_forks
    from recordwise.cli import screen

    found: list[Finding] = []
    with screen.progress(len(named) * how.runs + 7 * whole, quiet=quiet) as tell:
        for _, make in named:
            found += audited(make(), how, tell=tell)
        if whole:
            with TemporaryDirectory(prefix="recordwise-audit-") as folder:
                tell("what must be refused")
                found += audit_refusals(Path(folder), how)
                tell("forked processes")
                found.append(audit_forks(Path(folder)))
                tell("threads that share a session")
                found.append(audit_threads(Path(folder), how))
                tell("draws within a draw")
                found.append(audit_reentry())
                tell("a series of two periods")
                found.append(audit_two_periods(Path(folder), how))
                tell("two stages")
                found.append(audit_two_stages(Path(folder), how))
                tell("carried noise")
                found.append(audit_carried(Path(folder), how))
    return found


def findings_json(found: "list[Finding]") -> dict[str, Any]:
    from recordwise.audit.audit import FALSE_ALARM

    rows = []
    for each in found:
        numbers = {name: getattr(each, name) for name in ("policy", "delta", "bound")}
        rows.append(
            {
                "subject": each.subject,
                "keys": each.keys,
                "engine": each.engine,
                "record": each.record,
                **{name: None if value != value else value for name, value in numbers.items()},
                "samples": each.samples,
                "verdict": each.verdict,
                "problems": list(each.problems),
            }
        )
    return {"kept": not any(each.broken for each in found), "false_alarm": FALSE_ALARM, "findings": rows}


def show(found: "list[Finding]") -> None:
    from recordwise.audit.audit import FALSE_ALARM
    from recordwise.cli import screen
    from recordwise.exact.text import figure, formula_text

    rows = []
    for each in found:
        numbers = ["-" if n != n else figure(n) for n in (each.policy, each.delta, each.bound)]
        rows.append([each.subject, each.keys, each.record, *numbers, f"{each.samples:,}", each.verdict])
    screen.table(["subject", "keys", "record", "policy", "delta", "lost at least", "samples", "verdict"], rows)
    for each in found:
        for problem in each.problems:
            screen.note(f"{each.subject}, {each.record}: {problem}")
    broken = sum(each.broken for each in found)
    screen.paragraph(
        f"\n{len(found)} comparisons, {broken} broken. With probability at least 1 - {formula_text(FALSE_ALARM)} every number "
        "under 'lost at least' is at most the true loss; it must not exceed the policy."
    )
