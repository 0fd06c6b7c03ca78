"""The Spark engine: records stay on the executors and cells come to the driver. pyspark is imported only when it is needed."""

from recordwise.engines.spark.engine import Spark
from recordwise.plan.sources import SparkMaster

__all__ = ["Spark", "SparkMaster"]
