"""What executors need to know of the object store in which a lake lies: it goes along with their tasks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import SparkContext

_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_PLACE: Final = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ALLOW_HTTP",
)


def lend_store_access(context: SparkContext) -> None:
    """Let the Python workers of executors reach the store that this process reaches.

    Its endpoint and region, and the keys where this environment has any, go to them with the tasks, as Spark itself
    does with what Hadoop's client reads; not into Spark's configuration, which pages and event logs show. What the
    session was told by `spark.executorEnv.…` stays, and with one of the keys there none of ours is sent.
    """
    told = context.environment
    wanted = _PLACE if any(name in told for name in _KEYS) else (*_PLACE, *_KEYS)
    for name in wanted:
        if name in os.environ:
            told.setdefault(name, os.environ[name])
