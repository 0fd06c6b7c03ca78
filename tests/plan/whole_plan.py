"""A plan with one of everything, and a way to change one line of it."""

WHOLE = """\
# line 1
dataset = "establishments"
source = "establishments.parquet"
ledger = "establishments.ledger"
tuned_on = "synthetic"

[schema]
unit = "estab_id"
firm = "firm_id"
measures.emp = 1
measures.payann = { step = 1, bound = 50_000_000 }
columns.county = "text"
columns.naics = { type = "text", null = "refuse" }
columns.size = { type = "integer", null = "category" }

[[budget]]
rho = 3

[[budget]]
rho = 5
at = { emp = 20, payann = 1000 }

[mechanisms]
small = { kind = "Gaussian", rho = 0.05 }

[keys.areas]
product = { county = ["06001", "06003"], naics = ["441110", "722511"] }

[[queries]]
where = "emp < 5000"
group_by = ["county", { prefix = "naics", length = 3 }]
keys = "areas"
count = "small"
sum.emp = { kind = "UnitSplit", at = 50, rho = 0.1 }
sum.payann = { kind = "LogTransform", offset = 2000, sigma = 0.5, as = "payroll" }
count_distinct.firm_id = { mechanism = "small", as = "firms" }

[[queries]]
sql = "SELECT county, COUNT(*) AS n, SUM(emp) FROM t GROUP BY county"
keys = { rows = { county = ["06001", "06003"] } }
mechanisms.n = "small"
mechanisms.emp = { kind = "Clamped", to = 100, rho = 0.02 }

[outputs]
formats = ["parquet"]
confidence = 0.9

[examples]
"corner shop" = { emp = 4, payann = 140 }
"""


def changed(old: str, new: str) -> str:
    """The plan with one text replaced, which must be there exactly once."""
    assert WHOLE.count(old) == 1, old
    return WHOLE.replace(old, new)


def line_of(text: str, part: str) -> int:
    """The line, from 1, on which a part stands."""
    (number,) = [number for number, line in enumerate(text.splitlines(), 1) if part in line]
    return number
