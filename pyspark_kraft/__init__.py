"""Where Spark finds the data source `kraft` by itself: `DefaultSource` of an installed `pyspark_…` package."""

from kraftlake.spark_jobs.data_source import KraftDataSource as DefaultSource

__all__ = ["DefaultSource"]
