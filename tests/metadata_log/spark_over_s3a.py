"""Reads a lake's log in an object store by Spark, and by a stream of it; run with `-m` and the lake's s3a:// address.

It says, as JSON, the offsets that each of them read. A process of its own: its JVM starts with Hadoop's S3 client.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

from kraftlake.spark_jobs import spark_session

HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.5.0"


def read(lake: str) -> dict[str, list[int]]:
    session = spark_session("lakes over s3a", extra_packages=[HADOOP_AWS])
    for name, value in {
        "fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL"],
        "fs.s3a.endpoint.region": os.environ["AWS_REGION"],
        "fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
        "fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "fs.s3a.path.style.access": "true",
    }.items():
        session.sparkContext._jsc.hadoopConfiguration().set(name, value)
    table = session.read.format("delta").load(f"{lake}/log")
    with tempfile.TemporaryDirectory() as checkpoint:
        stream = session.readStream.format("delta").option("ignoreDeletes", "true").load(f"{lake}/log")
        query = (
            stream.writeStream.format("memory")
            .queryName("streamed")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        streamed = session.table("streamed")
        found = {
            "read": sorted(row.offset for row in table.select("offset").collect()),
            "streamed": sorted(row.offset for row in streamed.select("offset").collect()),
        }
    session.stop()
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(read(sys.argv[1])))
