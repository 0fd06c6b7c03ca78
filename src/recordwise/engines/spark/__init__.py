"""The Spark engine: records stay on the executors and cells come to the driver. pyspark is imported only when it is needed."""
