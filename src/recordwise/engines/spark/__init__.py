"""The Spark engine: records stay on the executors, cells come to the driver.

pyspark is imported only when it is needed.

In reading order:

- ``session``: where Spark runs, and the settings our statements need
- ``sources``: what Spark can read
- ``store``: records on the executors, cells on the driver, and SQL in Spark's dialect
- ``engine``: binding, checking and reading records
"""
