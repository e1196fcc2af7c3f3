"""Changes of settings while nodes run: of all that Kafka's own broker describes, with right, wrong and odd values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tests.server.matrix.setting_values import BOOLEAN, LIST, few_values_of, good_value_of, values_of
from tests.server.matrix.sides import CONTROLLER, LONG, NODES, Side, Sides

_TOPIC, _BROKER, _LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_ONE, _ALL = "1", ""
_LISTENER: Final = "listener.name.plaintext."
_OF_A_NODE: Final = frozenset({"listeners", "log.dirs", "cordoned.log.dirs", "controller.quorum.voters"})
"""Settings whose values differ between any two clusters."""


def resource(kind: int, name: str, *configs: tuple[str, int, str | None]) -> dict[str, Any]:
    """A resource of IncrementalAlterConfigs: each config with an operation and a value."""
    return {
        "resource_type": kind, "resource_name": name,
        "configs": [
            {"name": key, "config_operation": operation, "value": value} for key, operation, value in configs
        ],
    }  # fmt: skip


def _asked(side: Side, kind: int, name: str, keys: Sequence[str] | None = None, to: int = 1) -> Any:
    """What a node says of the configs of a resource, without the values that are its own."""
    answer = side.ask(
        "describe_configs", 4, to, include_synonyms=True, include_documentation=False,
        resources=[{"resource_type": kind, "resource_name": name, "configuration_keys": keys}],
    )  # fmt: skip
    (result,) = answer.results
    return replace(result, configs=tuple(map(_without_own, result.configs)))


def _without_own(config: Any) -> Any:
    synonyms = tuple(replace(one, value="its own") if one.name in _OF_A_NODE else one for one in config.synonyms)
    value = "its own" if config.name in _OF_A_NODE else config.value
    return replace(config, value=value, synonyms=synonyms)


def _settings(side: Side, kind: int, name: str) -> dict[str, Any]:
    """The configs that a broker describes, by name, in an order that is the same on both sides."""
    return {one.name: one for one in sorted(_asked(side, kind, name).configs, key=lambda one: one.name)}


def _try(side: Side, label: str, *resources: dict[str, Any], to: int = 1) -> None:
    """Ask what a change would do."""
    side.call(label, "incremental_alter_configs", 1, to, resources=resources, validate_only=True)


def change(side: Side, label: str, resource: dict[str, Any]) -> None:
    """Make a change that has to succeed."""
    answer = side.call(label, "incremental_alter_configs", 1, resources=[resource], validate_only=False)
    (response,) = answer.responses
    assert response.error_code == 0, f"{side.name}: {label}: {response.error_message}"


def _one_value(config: Any, number: int) -> list[str]:
    """One of few values by turns; of a setting that a running broker does not take the right one."""
    few = few_values_of(config.config_type)
    return few[:1] if config.read_only else few[number % len(few) :][:1]


def values_of_brokers(_: Sides, side: Side) -> None:
    """Each setting of brokers with each value, for one broker and for all."""
    for number, (setting, one) in enumerate(_settings(side, _BROKER, _ONE).items()):
        for value in values_of(one.config_type) if LONG and not one.read_only else _one_value(one, number):
            change = (setting, _SET, value)
            _try(side, f"{setting}={value}", resource(_BROKER, _ONE, change), resource(_BROKER, _ALL, change))


def values_of_listeners(_: Sides, side: Side) -> None:
    """Each setting of brokers for one listener."""
    for number, (setting, one) in enumerate(_settings(side, _BROKER, _ONE).items()):
        if one.read_only and not LONG:
            continue
        for value in few_values_of(one.config_type) if LONG else _one_value(one, number):
            for prefix in (_LISTENER, "listener.name.OTHER.") if LONG else (_LISTENER,):
                change = (prefix + setting, _SET, value)
                _try(side, f"{prefix}{setting}={value}", resource(_BROKER, _ONE, change), resource(_BROKER, "", change))


def operations_on_settings(_: Sides, side: Side) -> None:
    """Each setting of brokers deleted, appended to, subtracted from and set to null."""
    for setting, one in _settings(side, _BROKER, _ONE).items():
        for label, operation, value in (
            ("delete", _DELETE, None), ("append", _APPEND, "1"), ("subtract", _SUBTRACT, "1"), ("null", _SET, None),
        ):  # fmt: skip
            if not LONG and (one.read_only or one.config_type not in (BOOLEAN, LIST)):
                continue
            change = (setting, operation, value)
            _try(side, f"{label} {setting}", resource(_BROKER, _ONE, change), resource(_BROKER, _ALL, change))


_COMBINATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "local above retention": {"log.retention.ms": "1000", "log.local.retention.ms": "2000"},
    "local as retention": {"log.retention.ms": "1000", "log.local.retention.ms": "1000"},
    "local unlimited": {"log.retention.bytes": "1000", "log.local.retention.bytes": "-1"},
    "all unlimited": {"log.retention.ms": "-1", "log.local.retention.ms": "-1"},
    "lag above local": {"log.remote.copy.lag.ms": "3000", "log.local.retention.ms": "2000"},
    "lag above retention": {"log.remote.copy.lag.bytes": "3000", "log.retention.bytes": "2000"},
    "lag below retention": {"log.remote.copy.lag.bytes": "1000", "log.retention.bytes": "2000"},
    "unlimited, oddly": {"log.retention.ms": "-7"}, "retention of no time": {"log.retention.ms": "0"},
    "segments of no time": {"log.roll.ms": "0"}, "jitter": {"log.roll.jitter.ms": "5", "log.roll.ms": "1"},
    "threads of the cleaner": {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097152"},
    "more for the cleaner": {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097154"},
    "nobody but some": {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:100"},
    "no host": {"max.connections.per.ip.overrides": ":100"}, "twice": {"max.connections.per.ip.overrides": "a:1,a:2"},
    "a space": {"max.connections.per.ip.overrides": "127.0.0.1 : 100 , b:7"},
    "one wrong": {"message.max.bytes": "1000", "log.retention.ms": "x"},
    "one unknown": {"message.max.bytes": "1000", "no.such": "x"},
    "one fixed": {"message.max.bytes": "1000", "log.dirs": "/x"},
    "minimal lag above maximal": {
        "log.cleaner.min.compaction.lag.ms": "2000", "log.cleaner.max.compaction.lag.ms": "1000",
    },
    "threads of both kinds": {"num.io.threads": "4", "num.replica.fetchers": "2", "background.threads": "20"},
    "threads, one too many": {"num.io.threads": "4", "num.replica.fetchers": "3"},
    "what a listener keeps": {"listener.name.plaintext.ssl.protocol": "TLSv1.2", "sasl.kerberos.kinit.cmd": "x"},
    "what a listener does not keep": {"listener.name.plaintext.ssl.protocol": "TLSv1.2"},
    "of a key store": {"listener.name.plaintext.ssl.keystore.type": "JKS", "sasl.kerberos.kinit.cmd": "x"},
    "threads of a listener": {"listener.name.plaintext.num.network.threads": "2"},
    "too many threads of a listener": {"listener.name.plaintext.num.network.threads": "3"},
    "no connections of a listener": {"listener.name.plaintext.max.connections": "0"},
    "connections of a listener": {"listener.name.plaintext.max.connections": "10"},
    "rate of a listener": {"listener.name.plaintext.max.connection.creation.rate": "0"},
    "listeners elsewhere": {"listeners": "PLAINTEXT://127.0.0.1:1"},
    "listeners, another": {"listeners": "PLAINTEXT://127.0.0.1:1,OTHER://127.0.0.1:2"},
    "listeners, another with a protocol": {
        "listeners": "PLAINTEXT://127.0.0.1:1,OTHER://127.0.0.1:0",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    },
    "listeners, of controllers": {"listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"},
    "listeners, one port": {
        "listeners": "PLAINTEXT://127.0.0.1:1,OTHER://127.0.0.1:1",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    },
    "listeners, none": {"listeners": "OTHER://127.0.0.1:1"}, "listeners, wrong": {"listeners": "PLAINTEXT:127.0.0.1"},
    "listeners, in small letters": {"listeners": "plaintext://:0"}, "listeners, nobody": {"listeners": ""},
    "another protocol": {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SSL"},
    "another protocol of controllers": {"listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT"},
    "no such protocol": {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:TLS"},
    "a cordoned directory": {"cordoned.log.dirs": "/no/such"}, "all and one": {"cordoned.log.dirs": "*,/no/such"},
    "reporters": {"metric.reporters": ""}, "prefix": {"no.such.config": "1", "": "2"},
    "long": {"no.such.config": "x" * 32_767}, "too long": {"no.such.config": "x" * 32_768},
    "long name": {"x" * 32_767: "1"}, "group": {"group.consumer.assignment.interval.ms": "15000"},
    "group, above": {"group.consumer.assignment.interval.ms": "15001"},
    "group, share": {"group.share.assignment.interval.ms": "15001"},
    "group, streams": {"group.streams.assignment.interval.ms": "15001"},
    "quotas": {"leader.replication.throttled.rate": "0", "follower.replication.throttled.rate": "9223372036854775807"},
    "quotas, wrong": {"leader.replication.throttled.rate": "9223372036854775808"},
    "directories' quota": {"replica.alter.log.dirs.io.max.bytes.per.second": "-1"},
}  # fmt: skip


def combinations(_: Sides, side: Side) -> None:
    """Settings that are right or wrong together, in both APIs, of one broker and of all, at brokers and controllers."""
    for label, settings in _COMBINATIONS.items():
        for node in NODES:
            changes = [(name, _SET, value) for name, value in settings.items()]
            resources = [resource(_BROKER, name, *changes) for name in (_ONE, _ALL, "2", "101", "x", "+1", "01")]
            _try(side, f"{label} at {node}", *resources, to=node)
            side.call(
                f"{label} at {node}", "alter_configs", 2, node, resources=resources, validate_only=True
            )  # fmt: skip


def descriptions(_: Sides, side: Side) -> None:
    """Of all kinds of resources, when nothing is changed."""
    for kind, name in (
        (_BROKER, _ONE), (_BROKER, _ALL), (_BROKER, "+1"), (_BROKER, "01"), (_BROKER, "101"), (_GROUP, "some-group"),
        (_GROUP, ""), (_CLIENT_METRICS, "some-metrics"), (_CLIENT_METRICS, ""), (_LOGGER, ""), (_LOGGER, "2"),
        (_LOGGER, "x"), (0, "x"), (1, "x"), (3, "x"),
    ):  # fmt: skip
        side.keep(f"configs of {kind} {name}", _asked(side, kind, name))
    for kind, name in ((_BROKER, _ALL), (_BROKER, "1"), (_BROKER, "x"), (_LOGGER, "1"), (_GROUP, "some-group")):
        side.keep(f"configs of {kind} {name} at the controller", _asked(side, kind, name, to=CONTROLLER))
    own = ("node.id", "broker.id", "process.roles", "controller.listener.names", "listeners", "log.retention.hours")
    side.keep("what a controller is", _asked(side, _BROKER, str(CONTROLLER), own, to=CONTROLLER))
    for keys in ((), ("log.retention.ms",), ("no.such",), ("log.roll.hours", "log.roll.ms", "log.roll.ms")):
        side.keep(f"configs {keys}", _asked(side, _BROKER, _ONE, keys))


_NOT_HERE: Final = frozenset(
    {"config.providers", "metric.reporters", "principal.builder.class", "ssl.engine.factory.class"}
)
"""Settings that name classes of Java."""


_NEW_TOPIC: Final = {
    "name": "new", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": [],
}  # fmt: skip


def changed_settings(_: Sides, side: Side) -> None:
    """All settings that a running broker takes, set for one broker, for all, and taken away again."""
    dynamic = {
        one.name: good_value_of(one.name, one.config_type)
        for one in _settings(side, _BROKER, _ONE).values()
        if not one.read_only and one.name not in _NOT_HERE and one.name != "min.insync.replicas"
    }
    quotas = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    own = {
        **{name: value for name, value in dynamic.items() if not name.startswith(("ssl.key", "ssl.trust"))},
        **dict.fromkeys(quotas, "0123456"), "no.such.config": "x", f"{_LISTENER}max.connections": " 900",
        f"{_LISTENER}ssl.keystore.password": "secret", f"{_LISTENER}ssl.keystore.type": "PKCS12",
        "listener.name.other.plain.sasl.jaas.config": "secret", "listener.name.other.log.dirs": "x",
    }  # fmt: skip
    side.create("of-changed-settings", [1], retention_ms="0500", cleanup_policy="delete,delete")
    side.seen.clear()
    per_broker = {"cordoned.log.dirs", "listeners", "listener.security.protocol.map"}
    of_all = {
        name: value for name, value in own.items()
        if name not in per_broker and not name.startswith(("ssl.", "sasl.", "listener.name."))
    } | {f"{_LISTENER}max.connections": "800"}  # fmt: skip
    steps: Mapping[str, tuple[str, Mapping[str, str], int]] = {
        "set for all": (_ALL, {**of_all, "log.cleaner.backoff.ms": "1"}, _SET),
        "set for one": (_ONE, {**own, "log.cleaner.backoff.ms": "2"}, _SET),
        "removed for all": (_ALL, of_all, _DELETE), "removed for one": (_ONE, own, _DELETE),
        "the last": (_ALL, {"log.cleaner.backoff.ms": "3"}, _SET),
        "the last of one": (_ONE, {"log.cleaner.backoff.ms": "4"}, _SET),
    }  # fmt: skip
    for label, (name, settings, operation) in list(steps.items())[: None if LONG else 4]:
        changes = [(key, operation, value if operation == _SET else None) for key, value in settings.items()]
        change(side, label, resource(_BROKER, name, *changes))
        await_setting(side, name, next(iter(settings)), operation)
        side.call(label, "create_topics", 7, timeout=30_000, validate_only=True, topics=[_NEW_TOPIC])
        for described in (_ONE, _ALL):
            side.keep(f"{label}: configs of {described or 'all'}", _asked(side, _BROKER, described))
        for kind, other in ((_TOPIC, "of-changed-settings"), (_GROUP, "some-group")):
            side.keep(f"{label}: configs of {other}", _asked(side, kind, other))
    for name in (_ALL, _ONE):
        change(side, f"nothing for {name or 'all'}", resource(_BROKER, name, ("log.cleaner.backoff.ms", _DELETE, None)))
        await_setting(side, name, "log.cleaner.backoff.ms", _DELETE)
    side.keep("nothing", _asked(side, _BROKER, _ONE))


def await_setting(side: Side, name: str, setting: str, operation: int) -> None:
    """Wait until the broker knows of a change."""
    source = 2 if name else 3

    def is_there() -> bool:
        configs = _asked(side, _BROKER, _ONE, (setting,)).configs
        found = {one.source for config in configs for one in config.synonyms}
        return (source in found) == (operation == _SET)

    side.wait_for(is_there, f"broker 1 to know of {setting}")


def values_of_topics(_: Sides, side: Side) -> None:
    """Each config of topics, groups and client metrics with each value."""
    side.create("of-all-values", [1])
    side.seen.clear()
    for kind, name in ((_TOPIC, "of-all-values"), (_GROUP, "some-group"), (_CLIENT_METRICS, "some-metrics")):
        for number, (config, one) in enumerate(_settings(side, kind, name).items()):
            for value in values_of(one.config_type) if LONG else _one_value(one, number):
                _try(side, f"{kind} {config}={value}", resource(kind, name, (config, _SET, value)))
            operations = (_DELETE, _APPEND, _SUBTRACT)
            for operation in operations if LONG else operations[number % 3 :][:1]:
                _try(side, f"{kind} {config}, {operation}", resource(kind, name, (config, operation, "1")))


def changed_resources(sides: Sides, side: Side) -> None:
    """Configs of topics, groups and client metrics that are set, described, appended to and removed."""
    side.create("of-changed-configs", [1])
    side.seen.clear()
    changes: Mapping[tuple[int, str], Mapping[str, str]] = {
        (_TOPIC, "of-changed-configs"): {
            "cleanup.policy": " compact , delete ", "retention.ms": " +5 ", "min.cleanable.dirty.ratio": "0.0001",
            "preallocate": "TRUE", "unclean.leader.election.enable": " true", "segment.bytes": "01048576",
            "follower.replication.throttled.replicas": "0:1, 0:2", "message.timestamp.type": "LogAppendTime",
            "max.compaction.lag.ms": "9223372036854775807", "compression.type": " gzip ",
        },
        (_GROUP, "a-group"): {
            "consumer.session.timeout.ms": "050000", "share.auto.offset.reset": "by_duration:PT1H",
            "share.renew.acknowledge.enable": "FALSE", "streams.num.warmup.replicas": "1",
        },
        (_CLIENT_METRICS, "a-subscription"): {
            "interval.ms": "01000", "match": "client_id=a , client_source_port=5", "metrics": "org.x , org.y",
        },
    }  # fmt: skip
    for (kind, name), configs in changes.items():
        change(side, f"set {name}", resource(kind, name, *((key, _SET, value) for key, value in configs.items())))
        side.wait_for(lambda: _is_set(side, kind, name, len(configs)), "the configs")  # noqa: B023
        side.keep(f"configs of {name}", _asked(side, kind, name))
        side.keep(f"some of {name}", _asked(side, kind, name, (next(iter(configs)), "no.such")))
        _listed(sides, side, f"with {name}")
        change(side, f"remove from {name}", resource(kind, name, *((key, _DELETE, None) for key in configs)))
        side.wait_for(lambda: _is_set(side, kind, name, 0), "no configs")  # noqa: B023
        side.keep(f"configs of {name}, removed", _asked(side, kind, name))
    _listed(sides, side, "after that")


def _listed(sides: Sides, side: Side, when: str) -> None:
    """Keep the lists of resources; topics, of which other cases delete some, are not compared."""
    for version in sides.versions("list_config_resources"):
        for label, kinds in {
            "groups": (_GROUP,), "metrics": (_CLIENT_METRICS,), "nodes": (_BROKER, _LOGGER), "unknown": (_GROUP, 99),
            "all but topics": (_BROKER, _LOGGER, _CLIENT_METRICS, _GROUP),
        }.items():  # fmt: skip
            side.call(f"{label} {when}", "list_config_resources", version, resource_types=kinds)


def _is_set(side: Side, kind: int, name: str, count: int) -> bool:
    own = {_TOPIC: 1, _CLIENT_METRICS: 7, _GROUP: 8}[kind]
    return sum(one.config_source == own for one in _asked(side, kind, name).configs) == count


CASES = (
    values_of_brokers,
    values_of_listeners,
    operations_on_settings,
    combinations,
    descriptions,
    changed_settings,
    values_of_topics,
    changed_resources,
)
