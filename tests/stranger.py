"""A stranger's path, as the README prints it: the commands, a table of their own, and the blanks that only they can fill."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOPS = "shop_id,county,sales\n" + "".join(
    f"{number},{'001' if number % 3 else '003'},{number * number}\n" for number in range(1, 400)
)
FILLED = {
    'tuned_on = ""': 'tuned_on = "public"',
    'columns.county = ""': 'columns.county = "text"',
    'columns.sales = ""': "measures.sales = { step = 1, bound = 1_000_000 }",
    "# [[budget]]\n# rho = 1": "[[budget]]\nrho = 1\n\n[[budget]]\nrho = 1\nat = { sales = 5000 }",
    "rows = { county = [] }": 'rows = { county = ["001", "003"] }',
    '# sum.sales = { kind = "UnitSplit", at = "", rho = 0.1 }': 'sum.sales = { kind = "UnitSplit", at = 5000, rho = 0.1 }',
}


def blocks(language: str) -> list[str]:
    """The code blocks of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    """What is typed from nothing to a release of one's own CSV file and a look at its policy."""
    (install,) = re.findall(r"^pip install recordwise$", README, flags=re.MULTILINE)
    (own,) = blocks("sh")
    return [install, *own.splitlines()]


def fill(plan: Path) -> None:
    """Fill every blank of the plan that `recordwise init` wrote for the shops; each must be there to be filled."""
    text = plan.read_text(encoding="utf-8")
    for blank, value in FILLED.items():
        assert text.count(blank) == 1, blank
        text = text.replace(blank, value)
    plan.write_text(text, encoding="utf-8")
