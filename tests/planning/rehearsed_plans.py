"""Two plans that between them have every kind of column, measure and key list that a plan file allows."""

from pathlib import Path

PLACES = "region,state,county\nSouth,01,01001\nSouth,01,01003\nWest,02,02013\nWest,02,02016\nSouth,13,13001\n"
SIZES = "county,emp_2016,estabs_2016\n01001,900,90\n01003,100,10\n02013,2000,100\n02016,10,5\n13001,50,20\n"
EVERYTHING = """\
source = "nobody-opens-this.parquet"
ledger = "everything.ledger"
tuned_on = "public"

[dataset]
name = "everything"
title = "All there is"

[schema]
unit = "id"
firm = "owner"
measures.emp = 1
measures.payann = { step = 0.01, bound = 50_000 }
measures.profit = { step = 10, bound = 900_000, signed = true }
measures.exports = { step = 1, null = "zero" }
measures.other = { derive = "payann - 0.5 * emp" }
columns.county = "text"
columns.naics = "text"
columns.size = { type = "integer", null = "category" }
columns.public = "boolean"
columns.opened = "date"
columns.form = "text"

[hierarchies.place]
file = "places.csv"
levels = ["region", "state", "county"]
source = "public: a list of places"

[keys.areas]
product = { county = ["01001", "02013", "13001"], naics = ["441110", "441120", "722511"] }

[keys.states]
product = { place = "state" }

[[queries]]
name = "areas"
where = "form <> 'trust' AND EXTRACT(year FROM opened) >= 2019"
group_by = ["county"]
levels = { by = [{ prefix = "naics", lengths = [2, 6] }] }
keys = "areas"
count = { kind = "Gaussian", rho = 0.1 }
sum.emp = { kind = "UnitSplit", at = { by = "naics", length = 2, values = { 44 = 20 }, default = 50 }, rho = 0.5 }
sum.payann = { kind = "Clamped", to = 200, rho = 0.1 }
sum.profit = { kind = "RootTransform", degree = 2, offset = 100, sigma = 30, signed = true }
ratio.pay = { of = "payann", to = "emp" }

[[queries]]
name = "states"
group_by = ["state"]
keys = "states"
count_distinct.owner = { kind = "Gaussian", rho = 0.1 }
sum.exports = { kind = "UnitSplit", at = 10, rho = 0.1 }
sum.other = { kind = "UnitSplit", at = 100, rho = 0.1 }

[[queries]]
name = "years"
group_by = [{ part = "year", of = "opened", as = "opened_year" }, { part = "month", of = "opened", as = "month" }, "public"]
keys = { product = { opened_year = [2020, 2021], month = [2, 11], public = [true, false] } }
count = { kind = "Gaussian", rho = 0.1 }
quantile.payann = { p = 0.5, rho = 0.1, grid = { log = [1, 1e5], bits = 6 } }

[[queries]]
name = "sizes"
sql = "SELECT size, CASE WHEN emp < 20 THEN 'small' ELSE 'large' END AS class, COUNT(*) AS n FROM t GROUP BY size, class"
keys = { product = { size = [1, 2, 3], class = ["small", "large"] } }
mechanisms.n = { kind = "Gaussian", rho = 0.1 }

[[queries]]
name = "forms"
group_by = ["form"]
keys = { select = { rho = 0.5, delta = 1e-6 } }
count = { kind = "Gaussian", rho = 0.1 }

[outputs]
formats = ["parquet", "csv", "sdmx-csv"]
"""
MONTHLY = """\
dataset = "monthly reports"
source = "nobody-opens-this.parquet"
ledger = "monthly.ledger"
tuned_on = "public"

[schema]
unit = "plant"
measures.kwh = { step = 0.5, bound = 1_000_000 }
measures.balance = { step = 1, bound = 10_000, signed = true }
measures.customers = 1
measures.lines = 1
columns.county = "text"
columns.last = "integer"

[schema.collapse]
kwh = "sum"
balance = "sum"
customers = "max"
lines = "min"
county = "same"
last = "max"

[keys.sized]
file = "sizes.csv"
size = { customers = "emp_2016", count = "estabs_2016" }
sized_on = "public: county tables of 2016"

[[queries]]
group_by = ["county"]
keys = "sized"
count = { kind = "Sized", floor = 10, mechanism = { kind = "Gaussian", sigma = 0.05 } }
sum.kwh = { kind = "UnitSplit", at = 100, rho = 0.1 }
sum.balance = { kind = "UnitSplit", at = 100, rho = 0.1 }
sum.customers = { kind = "UnitSplit", at = 100, rho = 0.1 }
avg.lines = { sum = { kind = "UnitSplit", at = 5, rho = 0.1 } }

[outputs]
tables = ["research", "basic"]
"""
SELECTED = """\
dataset = "selected"
source = "nobody-opens-this.parquet"
ledger = "selected.ledger"
tuned_on = "public"

[schema]
unit = "id"
columns.naics = "text"

[[queries]]
group_by = [{ prefix = "naics", length = 2 }]
keys = { select = { rho = 0.5, delta = 1e-6 } }
count = { kind = "Gaussian", rho = 0.1 }

[outputs]
tables = ["research", "basic"]
"""


def write_plans(folder: Path) -> tuple[Path, Path]:
    """Both plans with their lists; there is no source beside them."""
    (folder / "places.csv").write_text(PLACES)
    (folder / "sizes.csv").write_text(SIZES)
    paths = folder / "everything.toml", folder / "monthly.toml"
    for path, text in zip(paths, (EVERYTHING, MONTHLY)):
        path.write_text(text)
    return paths
