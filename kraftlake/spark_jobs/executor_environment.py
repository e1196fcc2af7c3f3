"""The environment variables with which executors access a lake's object store: Spark sends them with the tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from typing import Final

_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_PLACE: Final = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ALLOW_HTTP",
)


def store_access() -> dict[str, str]:
    """The variables by which this process reaches an object store: the endpoint, the region, the keys."""
    return {name: os.environ[name] for name in (*_PLACE, *_KEYS) if name in os.environ}


def lend(access: Mapping[str, str], given: MutableMapping[str, str]) -> None:
    """Add another process's `store_access` to an environment, whose own variables stay; keys are never mixed.

    A classic session lends it to the Python workers of executors with the tasks, and not by Spark's configuration,
    which web pages and event logs show: `spark.executorEnv.…` has precedence.
    """
    has_keys = any(name in given for name in _KEYS)
    for name, value in access.items():
        if name in _PLACE or not has_keys:
            given.setdefault(name, value)
