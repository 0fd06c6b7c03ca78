"""The engine of a plan file: DuckDB unless it says Spark, and then on which master."""

import pytest

from plan.whole_plan import WHOLE
from recordwise.errors import PlanFileError
from recordwise.plan.sources import SparkMaster

SPARK = '[spark]\nmaster = "spark://host:7077"\noptions = { "spark.executor.memory" = "8g" }\n'


def test_a_plan_without_an_engine_runs_on_duckdb(load):
    found = load(WHOLE)
    assert (found.engine, found.spark) == ("duckdb", None)


@pytest.mark.parametrize("source", ["db.establishments", "hdfs://name/establishments"])
def test_a_plan_may_name_spark_its_master_its_options_and_what_only_spark_finds(load, source):
    text = 'engine = "spark"\n' + WHOLE.replace('source = "establishments.parquet"', f'source = "{source}"') + SPARK
    found = load(text)
    assert found.engine == "spark"
    assert found.spark == SparkMaster(url="spark://host:7077", options={"spark.executor.memory": "8g"})
    assert found.source == (source,)


@pytest.mark.parametrize(
    "text, problem",
    [
        ('engine = "spark"\n' + WHOLE, r"needs a table \[spark\]"),
        (WHOLE + SPARK, 'needs engine = "spark"'),
        ('engine = "sparc"\n' + WHOLE, "engine: is not a valid choice"),
        ('engine = "spark"\n' + WHOLE + '[spark]\noptions = { "a" = 1 }\n', "spark"),
        (
            'engine = "spark"\n'
            + WHOLE
            + '[spark]\nmaster = "local[2]"\noptions = { "spark.sql.ansi.enabled" = "false" }\n',
            "cannot be off",
        ),
    ],
)
def test_an_engine_that_cannot_be_had_is_a_problem_of_the_file(load, text, problem):
    with pytest.raises(PlanFileError, match=problem):
        load(text)
