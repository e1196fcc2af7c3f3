"""The changes of ISRs in a lake's log, and how many there were each minute."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table
def isr_changes() -> DataFrame:
    """The records of partitions that change an ISR, as the log gets them."""
    log = spark.readStream.format("kraft").option("type", "PartitionChangeRecord")
    records = log.load(spark.conf.get("kraftlake.lake"))
    return records.where("isr IS NOT NULL").select("offset", "timestamp", "topic_id", "partition_id", "isr")


@dp.materialized_view
def isr_changes_by_minute() -> DataFrame:
    """The number of changes in each minute, and the smallest ISR."""
    minute = f.date_trunc("minute", "timestamp").alias("minute")
    return (
        spark.read.table("isr_changes")
        .groupBy(minute)
        .agg(f.count("*").alias("changes"), f.min(f.size("isr")).alias("smallest"))
    )
