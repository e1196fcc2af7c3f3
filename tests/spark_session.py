"""One Spark session for all tests: it takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOR_FEW_ROWS = (
    {}
    if os.environ.get("KRAFTLAKE_TESTS") == "long"
    else {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "1",
    }
)
"""Options of the quick run: Spark interprets a plan, since to compile it costs more than the rows of a test do."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from kraftlake.spark_jobs import spark_session

    session = spark_session("kraftlake tests")
    for setting in FOR_FEW_ROWS.items():
        session.conf.set(*setting)
    yield session
    session.stop()
