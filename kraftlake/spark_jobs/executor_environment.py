"""The environment variables with which executors access a lake's object store: Spark sends them with the tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
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
    """Send this process's access to the object store to the Python workers of executors.

    The endpoint, the region and the keys of this process's environment go to them with the tasks, and not into Spark's
    configuration, which web pages and event logs show. Variables that the session sets by `spark.executorEnv.…` stay,
    and if it sets one of the keys, none of this process's keys is sent.
    """
    _lend(store_access(), context.environment)


def store_access() -> dict[str, str]:
    """The variables by which this process reaches an object store."""
    return {name: os.environ[name] for name in (*_PLACE, *_KEYS) if name in os.environ}


def take_store_access(access: Mapping[str, str]) -> None:
    """Set the access of another process, its `store_access`, to the store, except for variables set here."""
    _lend(access, os.environ)


def _lend(access: Mapping[str, str], given: MutableMapping[str, str]) -> None:
    """Add access variables to an environment; keys of two origins are never mixed."""
    has_keys = any(name in given for name in _KEYS)
    for name, value in access.items():
        if name in _PLACE or not has_keys:
            given.setdefault(name, value)
