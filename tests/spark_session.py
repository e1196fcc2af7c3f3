"""One Spark session for all tests: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from kraftlake.spark_jobs import spark_session

    session = spark_session("kraftlake tests")
    yield session
    session.stop()
