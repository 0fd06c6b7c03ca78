"""Spark: records stay on the executors, cells travel to the driver. Nothing here imports pyspark before it is needed."""

from recordwise.engines.spark.engine import Spark
from recordwise.plan.sources import SparkMaster

__all__ = ["Spark", "SparkMaster"]
