"""The configuration of a log: the topic's configs over the broker's defaults."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.java_values import parse_boolean, parse_double, parse_integer, split_list, trim

COMPACT: Final = "compact"
DELETE: Final = "delete"
_SEGMENT_BYTES: Final = "segment.bytes"
_INTERNAL_SEGMENT_BYTES: Final = "internal.segment.bytes"
_LARGEST_LONG: Final = (1 << 63) - 1
_DAY_MS: Final = 24 * 60 * 60 * 1000


@attrs.frozen(kw_only=True)
class LogConfig:
    """The topic configs of a log, with Kafka's names and defaults; times in ms, sizes in bytes.

    Source: org.apache.kafka.storage.internals.log.LogConfig.
    """

    cleanup_policy: tuple[str, ...] = (DELETE,)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = _DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = _LARGEST_LONG
    flush_ms: int = _LARGEST_LONG
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = _LARGEST_LONG
    max_decompressed_message_bytes: int = (1 << 31) - 9
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
        """Whether only compaction removes records, not age, size or a request."""
        return COMPACT in self.cleanup_policy and DELETE not in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment is rolled: what has to be compacted in time must not stay in the active one."""
        if COMPACT in self.cleanup_policy and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    def overridden(self, configs: Mapping[str, str]) -> LogConfig:
        """Return this configuration overridden by a topic's configs; configs without a field here are ignored.

        `internal.segment.bytes` overrides `segment.bytes`. Raises UsageError for a value that is not of the config's
        type.
        """
        values = {}
        if _INTERNAL_SEGMENT_BYTES in configs:
            configs = {**configs, _SEGMENT_BYTES: configs[_INTERNAL_SEGMENT_BYTES]}
        for name in _PARSERS.keys() & configs.keys():
            try:
                values[name.replace(".", "_")] = _PARSERS[name](trim(configs[name]))
            except ValueError as problem:
                raise UsageError(f"The topic config {name} has the value {configs[name]!r}: {problem}.") from None
        return attrs.evolve(self, **values)


def _members(text: str) -> tuple[str, ...]:
    return tuple(member.lower() for member in split_list(text)) if text else ()


_BY_TYPE: Final[Mapping[str, Callable[[str], Any]]] = {
    "int": functools.partial(parse_integer, bits=64),
    "float": parse_double,
    "bool": parse_boolean,
    "str": str,
    "tuple[str, ...]": _members,
}
_PARSERS: Final = {field.name.replace("_", "."): _BY_TYPE[str(field.type)] for field in attrs.fields(LogConfig)}
