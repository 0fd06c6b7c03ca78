"""What the help of each command says below its options: exit codes and examples."""

import typer

EVERY = {
    0: "success",
    1: "unexpected error",
    2: "bad input, or files that cannot be read or written",
    130: "interrupted",
}
MORE: dict[str, dict[int, str]] = {
    "check": {3: "the budget does not cover the plan"},
    "rehearse": {3: "the budget does not cover the plan"},
    "preflight": {2: "bad input, or too many records outside the published cells"},
    "release": {3: "the budget does not cover the plan", 4: "released before; nothing was charged"},
    "ledger verify": {2: "bad input, or something does not verify"},
    "reproduce": {1: "an experiment failed, or unexpected error"},
    "audit": {1: "a guarantee was broken, or unexpected error"},
}
EXAMPLES: dict[str, str] = {
    "init": "recordwise init shops.csv --header --out plan.toml",
    "check": "recordwise check plan.toml",
    "rehearse": "recordwise rehearse plan.toml --rows 100000 --out rehearsal",
    "preflight": "recordwise preflight plan.toml",
    "release": "recordwise release plan.toml --out published --yes",
    "postprocess": "recordwise postprocess published --out fitted",
    "export": "recordwise export published --format xlsx --out tables.xlsx",
    "change": "recordwise change published-2025 published-2026 --out change",
    "loss": "recordwise loss published/policy.json emp=1000 payann=52000",
    "demo": "recordwise demo --establishments 100000",
    "reproduce": "recordwise reproduce split-fig1",
    "audit": "recordwise audit --cells 20000",
    "bench": "recordwise bench",
    "ledger show": "recordwise ledger show shops.ledger --plan plan.toml",
    "ledger verify": "recordwise ledger verify shops.ledger --against published",
    "plan compare": "recordwise plan compare plan.toml --statistic emp --variance 400 --at-total 1000",
    "plan sweep": "recordwise plan sweep plan.toml --threshold emp=20 --threshold emp=100 --rho 0.1",
    "plan fitness": "recordwise plan fitness plan.toml --within 0.1 --share 0.9",
    "plan allocate": "recordwise plan allocate plan.toml --within 0.1 --share 0.9",
    "plan recommend": "recordwise plan recommend plan.toml --within 0.1 --share 0.9 --out new.toml",
    "plan frontier": "recordwise plan frontier plan.toml --data synthetic",
    "plan evaluate": "recordwise plan evaluate plan.toml --by county:2 --baseline multiplicative --rows 100000",
}


def exit_codes(command: str) -> dict[int, str]:
    """The exit codes of a command with their meanings, in order."""
    return dict(sorted((EVERY | MORE.get(command, {})).items()))


def epilog(command: str) -> str:
    """The paragraphs below the options of a command."""
    codes = ", ".join(f"{code} {meaning}" for code, meaning in exit_codes(command).items())
    example = f"\n\nExample: {EXAMPLES[command]}" if command in EXAMPLES else ""
    return f"Exit codes: {codes}.{example}"


def document(group: typer.Typer, name: str) -> None:
    """Give every command of a group its paragraphs."""
    for info in group.registered_commands:
        own = info.name or getattr(info.callback, "__name__", "")
        info.epilog = epilog(f"{name} {own}".strip())
