"""What a log is configured with: the topic's configs over the broker's defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kraftlake.runtime.errors import UsageError

COMPACT: Final = "compact"
DELETE: Final = "delete"
_LARGEST_LONG: Final = (1 << 63) - 1
_DAY_MS: Final = 24 * 60 * 60 * 1000


@attrs.frozen(kw_only=True)
class LogConfig:
    """The topic configs of a log, by Kafka's names and with its defaults; times in ms, sizes in bytes.

    Source: org.apache.kafka.storage.internals.log.LogConfig.
    """

    cleanup_policy: tuple[str, ...] = (DELETE,)
    compression_type: str = "producer"
    delete_retention_ms: int = _DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = _LARGEST_LONG
    flush_ms: int = _LARGEST_LONG
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = _LARGEST_LONG
    max_message_bytes: int = 1024 * 1024 + 12
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    message_timestamp_before_max_ms: int = _LARGEST_LONG
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 7 * _DAY_MS
    segment_bytes: int = 1024 * 1024 * 1024
    segment_index_bytes: int = 10 * 1024 * 1024
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * _DAY_MS
    unclean_leader_election_enable: bool = False

    @property
    def is_compacted_only(self) -> bool:
        """Whether records go by compaction and never by age, size or request."""
        return COMPACT in self.cleanup_policy and DELETE not in self.cleanup_policy

    def overridden(self, configs: Mapping[str, str]) -> LogConfig:
        """This configuration with what is set for a topic; configs that no log here heeds are passed over.

        UsageError for a value that is not of the config's type.
        """
        known = {name: parse for name, parse in _PARSERS.items() if name in configs}
        return attrs.evolve(
            self, **{name.replace(".", "_"): parse(name, configs[name].strip()) for name, parse in known.items()}
        )


def _whole(name: str, text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        raise _no_value(name, text, "whole number")
    return int(text)


def _number(name: str, text: str) -> float:
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?", text) is None:
        raise _no_value(name, text, "number")
    return float(text.rstrip("dDfF"))


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _no_value(name, text, "true or false")
    return text.lower() == "true"


def _members(name: str, text: str) -> tuple[str, ...]:  # noqa: ARG001
    return tuple(member.strip().lower() for member in text.split(",")) if text else ()


def _text(name: str, text: str) -> str:  # noqa: ARG001
    return text


def _no_value(name: str, text: str, wanted: str) -> UsageError:
    return UsageError(f"The topic config {name} has the value {text!r}, which is not a {wanted}.")


_BY_TYPE: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "int": _whole,
    "float": _number,
    "bool": _truth,
    "str": _text,
    "tuple[str, ...]": _members,
}
_PARSERS: Final = {field.name.replace("_", "."): _BY_TYPE[str(field.type)] for field in attrs.fields(LogConfig)}
