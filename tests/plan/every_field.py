"""A plan with one of everything that the digest of what is charged must know or must not know, and its files."""

from fractions import Fraction
from typing import Any

from recordwise.exact.functions import x
from recordwise.mechanisms import Gaussian, GeneralizedGaussian
from recordwise.mechanisms.quantile import Grid

PLAN = """\
source = "records.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"
tuning_reason = "asked for"
memory_limit = "700MB"
max_outside = 0.5

[dataset]
name = "small"
publisher = "Bureau"

[parameters]
year = 2025

[series]
name = "small ones"
period = "${year}"
revision = 1

[schema]
unit = "id"
firm = "firm"
measures.emp = { step = 1, bound = 100000, null = "refuse" }
measures.pay = { step = 1, bound = 100000, number = { thousands = ",", prefix = "$" } }
measures.unused = { step = 1, bound = 100000 }
measures.profit = { step = 1, bound = 100000, signed = true }
measures.other = { derive = "pay - 15 * emp" }
columns.county = "text"
columns.naics = "text"
columns.unread = "text"
columns.active = { type = "boolean", null = "category" }
columns.opened = "date"

[schema.collapse]
emp = "sum"
pay = "sum"
unused = "sum"
profit = "sum"
county = "same"
naics = "same"
unread = "same"
active = "same"
opened = "max"
firm = "same"

[hierarchies.place]
file = "counties.csv"
levels = ["region", "state", "county"]
source = "public: made up"
titles = { county = "County" }
labels = { county = "name" }

[[budget]]
rho = 60

[keys.cells]
product = { place = "county" }
size = { file = "sizes.csv", column = "emp" }
sized_on = "public: made up"

[keys.codes]
product = { county = ["01001", "02001"], naics = ["111", "221"] }

[[queries]]
name = "places"
title = "Places"
where = "NOT (emp > 5000 OR naics IN ('999', '998')) AND active IS NOT NULL AND SUBSTR(naics, 1, 1) <> '9'"
levels = { by = ["state", "county"], share = ["1/4", "3/4"] }
keys = "cells"
count = { kind = "Gaussian", rho = 0.5, as = "heads" }
count_distinct.id = { kind = "Gaussian", rho = 0.25, as = "units" }
sum.emp = { kind = "Sized", floor = 100, mechanism = { kind = "Gaussian", sigma = 0.05 } }
sum.pay = { kind = "UnitSplit", at = { by = "naics", length = 2, values = { 11 = 20 }, default = 50 }, rho = 0.5 }
sum.other = { kind = "Gaussian", sigma = 500 }
median = ["sum_pay"]
sum.profit = { kind = "Clamped", to = 100, rho = 0.5 }
avg.pay = { sum = { kind = "Gaussian", sigma = 40 }, count = { kind = "Gaussian", rho = 0.3 }, as = "mean_pay" }
combine.together = "sum_emp + 2 * sum_other"
ratio.pay_per_head = { of = "sum_pay", to = "heads" }
quantile.emp = { p = 0.5, rho = 0.5, grid = { log = [1, 1000], bits = 6 }, as = "median_emp" }

[[queries]]
levels = { by = [{ prefix = "naics", lengths = [1, 2] }] }
group_by = ["county"]
keys = "codes"
all_other = "publish"
count = { kind = "Gaussian", rho = 0.4 }

[[queries]]
levels = [{ by = [[], "county"] }, { by = [[], "naics"] }]
table_share = [0.1, 0.2, 0.3, 0.4]
keys = "codes"
count = { kind = "Gaussian", rho = 0.35 }

[[queries]]
group_by = [{ part = "year", of = "opened" }]
keys = { select = { rho = 0.5, delta = 1e-6, pieces = { emp = 50 } } }
count = { kind = "Gaussian", rho = 0.7 }

[[queries]]
group_by = ["naics"]
keys = { select_from = { product = { naics = ["111", "112", "221"] }, rho = 0.5, threshold = 5 } }
count = { kind = "Gaussian", rho = 0.8 }

[[queries]]
sql = "SELECT CASE WHEN emp < 20 THEN 'small' ELSE 'large' END AS class, COUNT(*) AS n FROM t GROUP BY class"
keys = { rows = { class = ["small", "large"] } }
mechanisms.n = { kind = "Gaussian", rho = 0.9 }

[outputs]
formats = ["parquet"]
confidence = 0.9
tables = ["research", "basic"]

[outputs.status]
reliable = 0.2

[examples]
"corner shop" = { emp = 4 }

[labels]
emp = "employees"

[units]
pay = "dollars"
"""
COUNTIES = "region,state,county,name\nW,01,01001,Adams\nW,01,01002,Baker\nE,02,02001,Clark\nE,02,02002,Dover\n"
SIZES = "county,emp\n01001,150\n01002,900\n02001,30\n02002,4000\n"
Changes = dict[str, list[list[tuple[str, str]]]]
"""For each field the plans that differ in it: which texts of the files above are replaced."""
CHANGES: Changes = {
    "Schema.unit": [[('unit = "id"', 'unit = "ident"'), ("count_distinct.id", "count_distinct.ident")]],
    "Schema.collapse": [[('emp = "sum"', 'emp = "max"')], [('opened = "max"', 'opened = "min"')]],
    "Measure.name": [
        [
            ("measures.profit", "measures.gain"),
            ('profit = "sum"', 'gain = "sum"'),
            ("sum.profit = {", "sum.gain = {"),
        ]
    ],
    "Measure.step": [[("pay = { step = 1,", "pay = { step = 0.5,")]],
    "Measure.bound": [[("pay = { step = 1, bound = 100000", "pay = { step = 1, bound = 200000")]],
    "Measure.null": [[('null = "refuse" }', 'null = "zero" }')]],
    "Measure.signed": [[("emp = { step = 1, bound = 100000,", "emp = { step = 1, bound = 100000, signed = true,")]],
    "Measure.derive": [[("pay - 15 * emp", "pay - 16 * emp")]],
    "Measure.number": [[(', number = { thousands = ",", prefix = "$" }', "")]],
    "NumberFormat.thousands": [[('thousands = ","', 'thousands = "_"')]],
    "NumberFormat.decimal": [[('thousands = ","', 'thousands = ".", decimal = ","')]],
    "NumberFormat.prefix": [[('prefix = "$"', 'prefix = "€"')]],
    "NumberFormat.suffix": [[('prefix = "$"', 'suffix = "$"')]],
    "Column.name": [
        [("columns.opened", "columns.begun"), ('opened = "max"', 'begun = "max"'), ('"opened" }', '"begun" }')]
    ],
    "Column.type": [[('active = { type = "boolean"', 'active = { type = "text"')]],
    "Column.null": [[('type = "boolean", null = "category"', 'type = "boolean", null = "refuse"')]],
    "Column.date": [[('columns.opened = "date"', 'columns.opened = { date = "%d.%m.%Y" }')]],
    "Column.trim": [[('columns.naics = "text"', 'columns.naics = { type = "text", trim = true }')]],
    "Hierarchy.codes": [[("02,02002", "01,02002")]],
    "And.parts": [[(" AND active IS NOT NULL", "")]],
    "Or.parts": [[("emp > 5000 OR ", "")]],
    "Not.part": [[("NOT (emp > 5000", "(emp > 5000")]],
    "Compare.operand": [[("emp > 5000", "pay > 5000")]],
    "Compare.operator": [[("emp > 5000", "emp >= 5000")]],
    "Compare.literal": [[("emp > 5000", "emp > 5001")]],
    "In.operand": [[("naics IN ('999', '998')", "county IN ('999', '998')")]],
    "In.literals": [[("'999', '998'", "'999'")]],
    "IsNull.operand": [[("active IS NOT NULL", "naics IS NOT NULL")]],
    "Field.name": [[("emp > 5000", "pay > 5000")]],
    "Prefix.column": [[("SUBSTR(naics, 1, 1)", "SUBSTR(county, 1, 1)")]],
    "Prefix.length": [[("SUBSTR(naics, 1, 1)", "SUBSTR(naics, 1, 2)")]],
    "DatePart.column": [
        [("columns.opened", "columns.begun"), ('opened = "max"', 'begun = "max"'), ('"opened" }', '"begun" }')]
    ],
    "DatePart.part": [[('part = "year"', 'part = "quarter"')]],
    "Case.branches": [[("emp < 20", "emp < 21")]],
    "Case.default": [[("ELSE 'large'", "ELSE 'other'"), ('"large"]', '"other"]')]],
    "Group.expression": [[('{ part = "year", of = "opened" }', '"naics"')]],
    "Query.groups": [
        [('group_by = [{ part = "year", of = "opened" }]', 'group_by = [{ part = "year", of = "opened" }, "naics"]')]
    ],
    "Query.table_shares": [
        [("table_share = [0.1, 0.2, 0.3, 0.4]", "table_share = [0.2, 0.1, 0.3, 0.4]")],
        [("table_share = [0.1, 0.2, 0.3, 0.4]\n", "")],
    ],
    "Choice.share": [[('share = ["1/4", "3/4"]', 'share = ["1/2", "1/2"]')]],
    "Query.best": [
        [('share = ["1/4", "3/4"]', 'share = "best"')],
        [('share = ["1/4", "3/4"] }', 'share = "best" }\nshare_goal = { 100 = 0.1 }')],
    ],
    "Query.all_other": [[('all_other = "publish"\n', "")]],
    "Rows.table": [[('naics = ["111", "221"]', 'naics = ["111", "331"]')]],
    "Sizes.columns": [[("01002,900", "01002,90000")]],
    "Selection.rho": [
        [("select = { rho = 0.5", "select = { rho = 0.6")],
        [("rho = 0.5, threshold", "rho = 0.6, threshold")],
    ],
    "Selection.delta": [[("delta = 1e-6", "delta = 1e-7")]],
    "Selection.threshold": [[("threshold = 5", "threshold = 6")]],
    "Selection.splitting": [
        [(", pieces = { emp = 50 }", "")],
        [("threshold = 5", "threshold = 5, pieces = { emp = 50 }")],
    ],
    "Splitting.thresholds": [
        [("pieces = { emp = 50 }", "pieces = { emp = 60 }")],
        [("pieces = { emp = 50 }", "pieces = { pay = 50 }")],
    ],
    "Product.columns": [[('["111", "112", "221"]', '["111", "113", "221"]')]],
    "Count.mechanism": [[("rho = 0.5, as", "rho = 0.6, as")]],
    "CountDistinct.mechanism": [[("rho = 0.25", "rho = 0.26")]],
    "CountDistinct.counted": [[("count_distinct.id", "count_distinct.firm")]],
    "Sum.measure": [[("sum.other = {", "sum.unused = {"), ("2 * sum_other", "2 * sum_unused")]],
    "Sum.mechanism": [[("sigma = 500", "sigma = 501")]],
    "Average.measure": [[("avg.pay = {", "avg.emp = {")]],
    "Average.sum": [[("sigma = 40", "sigma = 41")]],
    "Average.count": [[("rho = 0.3 }", "rho = 0.31 }")], [(', count = { kind = "Gaussian", rho = 0.3 }', "")]],
    "Combination.terms": [[("+ 2 * sum_other", "+ 3 * sum_other")]],
    "Ratio.top": [[('of = "sum_pay"', 'of = "sum_emp"')]],
    "Ratio.bottom": [[('to = "heads"', 'to = "units"')]],
    "Quantile.measure": [[("quantile.emp", "quantile.pay")]],
    "Quantile.p": [[("p = 0.5, rho", "p = 0.25, rho")]],
    "Quantile.mechanism": [[("p = 0.5, rho = 0.5", "p = 0.5, rho = 0.6")]],
    "TreeQuantile.rho": [[("p = 0.5, rho = 0.5", "p = 0.5, rho = 0.7")]],
    "Grid.spacing": [[("{ log = [1, 1000]", "{ linear = [1, 1000]")]],
    "Grid.low": [[("log = [1, 1000]", "log = [2, 1000]")]],
    "Grid.high": [[("log = [1, 1000]", "log = [1, 1001]")]],
    "Grid.bits": [[("bits = 6", "bits = 7")]],
    "Gaussian.rho": [[("rho = 0.4", "rho = 0.41")]],
    "Gaussian.at": [[('{ kind = "Gaussian", sigma = 500 }', '{ kind = "Gaussian", rho = 1, at = 500 }')]],
    "Gaussian.sigma": [[("sigma = 500", "sigma = 502")]],
    "Clamped.to": [[("to = 100", "to = 101")]],
    "Clamped.rho": [[("to = 100, rho = 0.5", "to = 100, rho = 0.6")]],
    "UnitSplit.rho": [[("default = 50 }, rho = 0.5", "default = 50 }, rho = 0.6")]],
    "By.column": [[("length = 2, values", "length = 1, values"), ("{ 11 = 20 }", "{ 1 = 20 }")]],
    "ConditionColumn.length": [[("length = 2, values", "length = 1, values"), ("{ 11 = 20 }", "{ 1 = 20 }")]],
    "ConditionColumn.name": [[('by = "naics", length', 'by = "county", length')]],
    "By.values": [[("{ 11 = 20 }", "{ 11 = 30 }")]],
    "By.default": [[("default = 50", "default = 60")]],
    "Sized.mechanism": [[("sigma = 0.05", "sigma = 0.06")]],
    "Sized.floor": [[("floor = 100", "floor = 200")]],
    "Sized.low": [
        [("sigma = 0.05 }", 'sigma = 0.05 }, low = { kind = "GeneralizedGaussian", shape = 0.5, scale = 0.02 }')]
    ],
    "Series.name": [[('name = "small ones"', 'name = "large ones"')]],
    "Series.period": [[("year = 2025", "year = 2026")]],
    "Series.revision": [[("revision = 1", "revision = 2")]],
    "Series.carry": [],
}
"""What is drawn, for whom it is drawn, or for which period: each changes the digest."""
KEEPS: Changes = {
    "PlanFile.path": [],
    "PlanFile.dataset": [[('name = "small"\n', 'name = "little"\n')]],
    "PlanFile.source": [[('"records.parquet"', '"others.csv"')]],
    "PlanFile.ledger": [[('"small.ledger"', '"other.ledger"')]],
    "PlanFile.tuned_on": [[('tuned_on = "synthetic"', 'tuned_on = "public"')]],
    "PlanFile.tuning_reason": [[("asked for", "needed")]],
    "PlanFile.budget": [[("rho = 60", "rho = 61")]],
    "PlanFile.reserve": [[('tuned_on = "synthetic"', 'tuned_on = "synthetic"\nreserve = { revisions = 1 }')]],
    "PlanFile.earlier": [[("revision = 1", 'revision = 1\nearlier = ["out/2024"]')]],
    "PlanFile.stage": [],
    "PlanFile.max_outside": [[("max_outside = 0.5", 'max_outside = "accept"')]],
    "PlanFile.memory_limit": [[("700MB", "800MB")]],
    "PlanFile.engine": [[('memory_limit = "700MB"', 'engine = "spark"\nspark = { master = "local[2]" }')]],
    "PlanFile.spark": [],
    "PlanFile.formats": [[('formats = ["parquet"]', 'formats = ["parquet", "csv"]')]],
    "PlanFile.basic": [
        [
            ('tables = ["research", "basic"]', 'tables = ["research"]'),
            ("[outputs.status]\nreliable = 0.2\n", ""),
        ],
        [("reliable = 0.2", "reliable = 0.3")],
    ],
    "PlanFile.confidence": [[("confidence = 0.9", "confidence = 0.95")]],
    "PlanFile.examples": [[('"corner shop"', '"shop"')]],
    "PlanFile.parameters": [[("year = 2025", 'year = 2025\nmore = "x"'), ("asked for", "asked for ${more}")]],
    "PlanFile.hidden": [],
    "PlanFile.words": [
        [('emp = "employees"', 'emp = "jobs"')],
        [('"dollars"', '"euros"')],
        [("Bureau", "Office")],
        [("confidence = 0.9", "confidence = 0.9\nnames = false")],
    ],
    "Plan._cells": [],
    "Plan._parts": [],
    "Plan._tables": [],
    "Schema.firm": [[('firm = "firm"', 'firm = "owner"'), ('firm = "same"', 'owner = "same"')]],
    "Hierarchy.name": [
        [("[hierarchies.place]", "[hierarchies.area]"), ('{ place = "county" }', '{ area = "county" }')]
    ],
    "Hierarchy.levels": [[('levels = ["region", "state", "county"]', 'levels = ["state", "county"]')]],
    "Hierarchy.source": [[('source = "public: made up"', 'source = "public: a list"')]],
    "Hierarchy.digest": [[("Adams", "Adam")]],
    "Hierarchy.titles": [[('titles = { county = "County" }', 'titles = { county = "Counties" }')]],
    "Hierarchy.labels": [[('labels = { county = "name" }\n', "")]],
    "Hierarchy.finer": [],
    "Query.name": [[('name = "places"', 'name = "areas"')]],
    "Query.title": [[('title = "Places"', 'title = "Areas"')], [('title = "Places"\n', "")]],
    "Query.median": [[('median = ["sum_pay"]', 'median = ["sum_pay", "heads"]')], [('median = ["sum_pay"]\n', "")]],
    "Group.name": [
        [('"opened" }', '"opened", as = "since" }')],
        [("END AS class", "END AS kind"), ("GROUP BY class", "GROUP BY kind"), ("{ class =", "{ kind =")],
    ],
    "Keys.made_bands": [],
    "Sizes.waiting": [],
    "Sizes.read": [],
    "Sizes.raised": [],
    "Sizes.sized_on": [[('sized_on = "public: made up"', 'sized_on = "public: a list"')]],
    "Count.alias": [[('as = "heads"', 'as = "number"'), ('to = "heads"', 'to = "number"')]],
    "CountDistinct.alias": [[('as = "units"', 'as = "different"')]],
    "Sum.alias": [[("sigma = 500 }", 'sigma = 500, as = "rest" }'), ("2 * sum_other", "2 * rest")]],
    "Average.alias": [[('as = "mean_pay"', 'as = "mean"')]],
    "Quantile.alias": [[('as = "median_emp"', 'as = "median"')]],
    "Combination.alias": [[("combine.together", "combine.both")]],
    "Ratio.alias": [[("ratio.pay_per_head", "ratio.each")]],
    "Series.every_period": [[("rho = 60", "rho = 61")]],
    "Series.staying": [[("revision = 1", "revision = 1\nstaying = [{ rho = 1 }]")]],
    "Series.more": [[("rho = 60", 'rho = 60\n\n[[budget]]\nrho = 5\nperiod = "2026"')]],
}
"""Words, paths, checks before the charge, what is done with the numbers afterwards, and what is computed from other fields."""
PARTS = [
    "PlanFile.plan",
    "PlanFile.series",
    "Plan.schema",
    "Plan.queries",
    "Schema.measures",
    "Schema.columns",
    "Schema.hierarchies",
    "Query.condition",
    "Query.axes",
    "Query.key_lists",
    "Query.statistics",
    "Choice.group",
    "Keys.sizes",
    "Keys.domain",
    "Keys.selection",
    "UnitSplit.at",
    "TreeQuantile.grid",
    "Sized.low_below",
    "ConditionColumn.part",
]
"""Fields whose own fields are in the lists above. The last two are not set in this plan."""
SIZED = {"floor": 100, "mechanism": Gaussian(sigma="0.05")}
GROUPS: dict[str, Any] = {"by": "county", "values": {"1": Gaussian(sigma=5)}, "default": Gaussian(sigma=7)}
LOW = GeneralizedGaussian(shape="0.5", scale="0.02")
FAT = {"scale": 30}
SLOW = {"offset": 100, "sigma": "0.5"}
ROOT = {"f": x ** Fraction(1, 2), "inverse": x**2, "offset": 100, "sigma": 5}
MECHANISMS: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "Gaussian": ({"sigma": 5}, {"sigma": {"sigma": 6}, "rho": {"rho": 1, "at": 5}, "at": {"rho": 1, "at": 6}}),
    "Clamped": ({"to": 100, "rho": 1}, {"to": {"to": 101, "rho": 1}, "rho": {"to": 100, "rho": 2}}),
    "UnitSplit": ({"at": 50, "rho": 1}, {"at": {"at": 51, "rho": 1}, "rho": {"at": 50, "rho": 2}}),
    "GeneralizedGaussian": (
        {"shape": "0.5", **FAT},
        {
            "shape": {"shape": "0.6", **FAT},
            "scale": {"shape": "0.5", "scale": 31},
            "coarse_lattice": {"shape": "0.5", **FAT, "lattice": "0.5"},
        },
    ),
    "Polylog": (
        {"power": 2, "rate": 1, "offset": 20, **FAT},
        {
            "power": {"power": "2.5", "rate": 1, "offset": 20, **FAT},
            "rate": {"power": 2, "rate": "1.5", "offset": 20, **FAT},
            "offset": {"power": 2, "rate": 1, "offset": 30, **FAT},
            "scale": {"power": 2, "rate": 1, "offset": 20, "scale": 31},
            "coarse_lattice": {"power": 2, "rate": 1, "offset": 20, **FAT, "lattice": "0.5"},
        },
    ),
    "RootTransform": (
        {"degree": 2, **SLOW},
        {
            "degree": {"degree": 3, **SLOW},
            "offset": {"degree": 2, **SLOW, "offset": 101},
            "sigma": {"degree": 2, **SLOW, "sigma": "0.6"},
            "laplace_scale": {"degree": 2, "offset": 100, "laplace_scale": "0.5"},
            "signed": {"degree": 2, **SLOW, "signed": True},
        },
    ),
    "LogTransform": (
        SLOW,
        {
            "offset": {**SLOW, "offset": 101},
            "sigma": {**SLOW, "sigma": "0.6"},
            "laplace_scale": {"offset": 100, "laplace_scale": "0.5"},
            "signed": {**SLOW, "signed": True},
        },
    ),
    "Additive": (
        {"f": x ** Fraction(1, 2), **FAT},
        {
            "f": {"f": x ** Fraction(1, 2), "scale": 31},
            "coarse_lattice": {"f": x ** Fraction(1, 2), **FAT, "lattice": "0.5"},
        },
    ),
    "Transform": (
        ROOT,
        {
            "f": {**ROOT, "f": x ** Fraction(1, 3), "inverse": x**3},
            "f_inverse": {**ROOT, "inverse": Fraction(1, 4) * (2 * x) ** 2},
            "offset": {**ROOT, "offset": 101},
            "sigma": {**ROOT, "sigma": 6},
            "laplace_scale": {"f": x ** Fraction(1, 2), "inverse": x**2, "offset": 100, "laplace_scale": 5},
            "signed": {**ROOT, "signed": True},
        },
    ),
    "Sized": (
        SIZED,
        {
            "mechanism": {**SIZED, "mechanism": Gaussian(sigma="0.06")},
            "floor": {**SIZED, "floor": 200},
            "low": {**SIZED, "low": LOW},
            "low_below": {**SIZED, "low": LOW, "low_below": 300},
        },
    ),
    "ByGroup": (
        GROUPS,
        {
            "by": {**GROUPS, "by": "region"},
            "values": {**GROUPS, "values": {"1": Gaussian(sigma=6)}},
            "default": {**GROUPS, "default": Gaussian(sigma=8)},
            "length": {**GROUPS, "length": 1},
        },
    ),
    "TreeQuantile": (
        {"grid": Grid.log(1, 1000, bits=6), "rho": 1},
        {"grid": {"grid": Grid.log(1, 1000, bits=7), "rho": 1}, "rho": {"grid": Grid.log(1, 1000, bits=6), "rho": 2}},
    ),
}
"""For each mechanism its parameters, and for each of its fields parameters that differ in it."""
