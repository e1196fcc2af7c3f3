"""Values that settings are given: of their type, of another, at the ends of ranges, and written oddly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(1, 10)
"""Kafka's numbers of types. Source: org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType."""

_WRONG: Final = ("", " ", "x", "null")
_NUMBERS: Final = (
    "-9223372036854775809", "-9223372036854775808", "-2147483649", "-2147483648", "-131073", "-131072", "-32769", "-3",
    "-2", "-1", "0", "1", "2", "3", "4", "5", "6", "7", "9", "10", "11", "16", "17", "18", "20", "21", "22", "23", "64",
    "524287", "524288", "1048575", "1048576", "1048577", "2097152", "2147483639", "2147483640", "2147483647",
    "2147483648", "9223372036854775807", "9223372036854775808", " 5 ", "+5", "5.0", "1e3", "0x10", "5k", "007", "٥",
    "1_000",
)  # fmt: skip
_FRACTIONS: Final = (
    "-0.1", "0", "0.0", "0.5", "1", "1.0", "1.0000001", "-1", "NaN", "Infinity", "-Infinity", "1e400", "1d", "0x1p3",
    " .5 ", "5.", "1,5", "inf",
)  # fmt: skip
_FLAGS: Final = ("true", "false", "TRUE", " True ", "yes", "1", "0", "t")
_NAMES: Final = (
    "producer", "gzip", "GZIP", " gzip ", "uncompressed", "none", "CreateTime", "LogAppendTime", "createtime",
    "required", "requested", "PLAINTEXT:PLAINTEXT", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,X:SSL", "127.0.0.1:5", "127.0.0.1:5,localhost:0", "127.0.0.1:x",
    "127.0.0.1", "no.such.host.invalid:5", "127.0.0.1:-1", "TLSv1.2", "read_committed", "read_uncommitted", "latest",
    "earliest", "by_duration:PT1H", "by_duration:-PT1H", "by_duration:1h", "a.topic", "a topic", "dlq.x",
)  # fmt: skip
_LISTS: Final = (
    "delete", "compact", "compact,delete", " compact , delete ", "delete,delete", "compact,", ",", ",compact", "a,b",
    "*", "*,*", "0:1", "0:1,1:2", "0:1,", "0:x", "client_id=a", "client_id=a.*,client_id=b", "client_id=(", "x=a",
    "org.apache.kafka.common.metrics.JmxReporter", "no.such.Class", "java.lang.String", "PLAIN", "TLSv1.2",
)  # fmt: skip
_CLASSES: Final = (
    "java.lang.String", "no.such.Class", " java.lang.String ",
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
)  # fmt: skip

_OF_TYPE: Final[Mapping[int, Sequence[str]]] = {
    BOOLEAN: _FLAGS, STRING: _NAMES, INT: _NUMBERS, SHORT: _NUMBERS, LONG: _NUMBERS, DOUBLE: _FRACTIONS, LIST: _LISTS,
    CLASS: _CLASSES, PASSWORD: ("secret", " secret "),
}  # fmt: skip


def values_of(kind: int) -> list[str]:
    """Values for a setting of a type."""
    return list(dict.fromkeys((*_OF_TYPE.get(kind, _NAMES), *_WRONG)))


def few_values_of(kind: int) -> list[str]:
    """A right, a wrong and an odd one."""
    return [_OF_TYPE.get(kind, _NAMES)[0], "x", "2" if kind in (INT, SHORT, LONG) else ""]


_GOOD: Final[Mapping[str, str]] = {
    "background.threads": " 12 ", "cordoned.log.dirs": "*", "listeners": "PLAINTEXT://:0",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OTHER:SSL",
    "log.cleaner.dedupe.buffer.size": "200000000", "log.cleaner.threads": "2", "log.cleanup.policy": "delete",
    "log.local.retention.bytes": "100", "log.local.retention.ms": "100", "log.message.timestamp.type": "LogAppendTime",
    "log.retention.bytes": "1000000000", "log.retention.ms": "+00100000000", "log.segment.bytes": "1048576",
    "max.connections.per.ip.overrides": "10.0.0.1:100", "num.io.threads": "3", "num.network.threads": "2",
    "num.recovery.threads.per.data.dir": "1", "num.replica.fetchers": "2", "compression.type": "gzip",
    "compression.gzip.level": "5", "group.coordinator.cached.buffer.max.bytes": "600000",
    "share.coordinator.cached.buffer.max.bytes": "600000", "remote.log.index.file.cache.total.size.bytes": "100",
    "remote.log.manager.follower.thread.pool.size": "3", "ssl.client.auth": "required",
    "errors.deadletterqueue.topic.name.prefix": " x. ", "message.max.bytes": "2000000",
    "max.decompressed.message.bytes": "100000000", "max.connections": "1000", "max.connections.per.ip": "1000",
    "max.connection.creation.rate": "1000",
}  # fmt: skip
"""Values of settings that may not have just any of their type."""


def good_value_of(name: str, kind: int) -> str:
    """A value that a running broker may be given, another than the default."""
    of_type = {
        BOOLEAN: " TRUE ", DOUBLE: "0.25", LONG: "0100", INT: "15", SHORT: "15", LIST: "a , b", STRING: " a ",
        PASSWORD: "secret",
    }  # fmt: skip
    return _GOOD.get(name) or of_type[kind]
