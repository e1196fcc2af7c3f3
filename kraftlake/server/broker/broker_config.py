"""The configuration of `kraftlake broker`, and Kafka's broker settings in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kraftlake.publisher import AuthorizerConfig
from kraftlake.replica_manager import LifecycleConfig, LogConfig, ReplicaManagerConfig
from kraftlake.runtime import UsageError, did_you_mean, is_loopback, parse_integer, split_list, trim
from kraftlake.server.node_config import ListenerAddress, NodeSettings, has_authorizer
from kraftlake.settings import TOPIC_CONFIGS

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_LOG_SETTINGS: Final[Mapping[str, tuple[str, int]]] = {
    "log.cleanup.policy": ("cleanup.policy", 0),
    "compression.gzip.level": ("compression.gzip.level", 1),
    "compression.lz4.level": ("compression.lz4.level", 1),
    "compression.type": ("compression.type", 0),
    "compression.zstd.level": ("compression.zstd.level", 1),
    "log.cleaner.delete.retention.ms": ("delete.retention.ms", 1),
    "log.segment.delete.delay.ms": ("file.delete.delay.ms", 1),
    "log.flush.interval.messages": ("flush.messages", 1),
    "log.flush.interval.ms": ("flush.ms", 1),
    "log.index.interval.bytes": ("index.interval.bytes", 1),
    "log.index.size.max.bytes": ("segment.index.bytes", 1),
    "message.max.bytes": ("max.message.bytes", 1),
    "min.insync.replicas": ("min.insync.replicas", 1),
    "log.retention.bytes": ("retention.bytes", 1),
    "log.retention.hours": ("retention.ms", _HOUR_MS),
    "log.retention.minutes": ("retention.ms", _MINUTE_MS),
    "log.retention.ms": ("retention.ms", 1),
    "log.roll.hours": ("segment.ms", _HOUR_MS),
    "log.roll.ms": ("segment.ms", 1),
    "log.roll.jitter.hours": ("segment.jitter.ms", _HOUR_MS),
    "log.roll.jitter.ms": ("segment.jitter.ms", 1),
    "log.segment.bytes": ("segment.bytes", 1),
    "unclean.leader.election.enable": ("unclean.leader.election.enable", 0),
}
"""The topic config that a broker's setting is the default of, and its unit in that of the topic config (0: a text).

Of several for one topic config the last counts. Source: org.apache.kafka.server.config.ServerTopicConfigSynonyms.
"""
DYNAMIC_SETTINGS: Final = frozenset(name for name, (_, unit) in _LOG_SETTINGS.items() if unit in (0, 1))
"""The settings that are heeded, too, when they are made while the cluster runs."""

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
"""Settings that are heeded only when they are made while the cluster runs."""


def _by_setting(config: type[Any]) -> dict[str, str]:
    return {field.name.replace("_", "."): field.name for field in attrs.fields(config)}


@attrs.frozen(kw_only=True)
class UpkeepConfig:
    """Kafka's settings of how often logs are worked on, with its names and defaults; times in ms.

    Source: org.apache.kafka.server.config.ServerLogConfigs.
    """

    log_retention_check_interval_ms: int = 300_000
    log_flush_offset_checkpoint_interval_ms: int = 60_000


_REPLICATION_SETTINGS: Final = _by_setting(ReplicaManagerConfig)
_LIFECYCLE_SETTINGS: Final = _by_setting(LifecycleConfig)
_UPKEEP_SETTINGS: Final = _by_setting(UpkeepConfig)
_CORDONED: Final = "cordoned.log.dirs"
_ALL: Final = "*"
_LARGEST: Final = {32: 2**31 - 1, 64: 2**63 - 1}
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys({*_REPLICATION_SETTINGS, *_LIFECYCLE_SETTINGS, *_UPKEEP_SETTINGS}, (1, _LARGEST[64])),
    **dict.fromkeys(
        ("replica.fetch.backoff.ms", "replica.fetch.wait.max.ms", "replica.fetch.min.bytes", "replica.fetch.max.bytes"),
        (0, _LARGEST[32]),
    ),
    "log.segment.bytes": (14, _LARGEST[32]),
    "log.index.size.max.bytes": (4, _LARGEST[32]),
    "log.index.interval.bytes": (0, _LARGEST[32]),
    "message.max.bytes": (0, _LARGEST[32]),
    "min.insync.replicas": (1, _LARGEST[32]),
    **dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), (0, _LARGEST[64])),
}
"""The smallest and the largest value of settings that mean nothing outside of that, or that no file has room for."""
_DEFAULT_LISTENER: Final = ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=9092)
_AUTO_CREATE: Final = "auto.create.topics.enable"
_AUTHORIZER: Final = "authorizer.class.name"
_SERVING_SETTINGS: Final = {_AUTO_CREATE, _AUTHORIZER, "super.users", "allow.everyone.if.no.acl.found"}
HEEDED_SETTINGS: Final = frozenset(
    {
        *_LOG_SETTINGS, *_REPLICATION_SETTINGS, *_LIFECYCLE_SETTINGS, *_UPKEEP_SETTINGS, _CORDONED, *_SERVING_SETTINGS,
    }
)  # fmt: skip
"""The settings that a broker of a lake's cluster heeds."""
_OF_THE_NODE: Final = {"node.id", "process.roles", "listeners", "log.dirs", "log.dir", "broker.rack"}
"""Those that say which broker it is."""
_NOT_TO_BE_SET: Final = {"inter.broker.listener.name", "replica.lag.time.max.ms"}


@attrs.frozen(kw_only=True)
class BrokerConfig:
    """A broker: of the cluster of a `lake`, or of a KRaft cluster where it replicates and serves nobody.

    `bootstrap` is HOST:PORT[,…] of controllers; `command_config` the path of a properties file for connections to
    controllers and leaders; `cluster_id` None is that of the quorum. The listener's name is also that of the leaders'
    listener. `settings` are Kafka's broker settings (`log.retention.hours`, `num.replica.fetchers`) that differ from
    their defaults. `insecure` allows a broker of a lake a listener that other machines reach: it has neither TLS nor
    logins. Raises UsageError for a listener that needs `insecure`, for a setting that has no value of its type and
    range, and, beside a real cluster, for one that is not known here.
    """

    broker_id: int
    bootstrap: str = ""
    lake: str | None = None
    log_dirs: tuple[str, ...]
    listener: ListenerAddress
    command_config: str | None = None
    cluster_id: str | None = None
    rack: str | None = None
    settings: Mapping[str, str] = attrs.field(factory=dict)
    insecure: bool = False

    def __attrs_post_init__(self) -> None:
        if self.serves and not self.insecure and not is_loopback(self.listener.host):
            raise UsageError(
                f"{self.listener} can be reached from other machines, and listeners have neither TLS nor logins: give "
                f"127.0.0.1, or --insecure-listeners if that is meant."
            )
        known = HEEDED_SETTINGS - _SERVING_SETTINGS - _NOT_TO_BE_SET
        for name in self.settings:
            if not self.serves and name not in known:
                hint = did_you_mean(name, sorted(known)) or "it is none for logs, replication or heartbeats."
                raise UsageError(f"{name} is no broker setting that is known here: {hint}")
        for directory in self.cordoned_log_dirs:
            if directory not in self.log_dirs:
                raise UsageError(f"{_CORDONED} names {directory}, which is none of the log directories.")
        assert self.replication
        assert self.lifecycle
        assert self.upkeep
        assert self.log_defaults
        self.authorizer  # noqa: B018 - raises for settings that can't be
        self.auto_create_topics  # noqa: B018

    @classmethod
    def of(
        cls,
        lake: str,
        settings: NodeSettings,
        *,
        broker_id: int | None = None,
        listener: ListenerAddress | None = None,
        log_dirs: tuple[str, ...] = (),
        rack: str | None = None,
        insecure: bool = False,
    ) -> BrokerConfig:
        """A broker of a lake, by the settings where its id, listener, directories and rack are not given.

        Raises UsageError as the class, and for what is given nowhere.
        """
        if broker_id is None and "node.id" not in settings.values:
            raise UsageError("A broker needs an id: give --id, or node.id in the file of --config.")
        roles = settings.names("process.roles")
        if roles and "broker" not in roles:
            raise UsageError(f"process.roles is {','.join(roles)} in {settings.source}, without broker.")
        listeners = (listener,) if listener else settings.listeners("listeners") or (_DEFAULT_LISTENER,)
        if len(listeners) > 1:
            raise UsageError(f"listeners names {len(listeners)} in {settings.source}: a broker of a lake has one.")
        directories = log_dirs or settings.names("log.dirs") or settings.names("log.dir")
        if not directories:
            raise UsageError("A broker needs a folder for its logs: --log-dirs, or log.dirs in the file of --config.")
        return cls(
            broker_id=settings.integer("node.id", 0) if broker_id is None else broker_id,
            lake=lake, listener=listeners[0], log_dirs=directories, rack=rack or settings.text("broker.rack"),
            settings={name: value for name, value in settings.values.items() if name not in _OF_THE_NODE},
            insecure=insecure,
        )  # fmt: skip

    @property
    def without_effect(self) -> Mapping[str, str]:
        """The settings that are not heeded, each with a hint where a known one is alike."""
        return NodeSettings(values=self.settings).not_among(HEEDED_SETTINGS)

    @property
    def serves(self) -> bool:
        """Whether it answers clients: as a broker of a lake's cluster."""
        return self.lake is not None

    @property
    def auto_create_topics(self) -> bool:
        """Whether a topic that clients ask for is created (`auto.create.topics.enable`)."""
        return NodeSettings(values=self.settings).flag(_AUTO_CREATE, default=True)

    @property
    def authorizer(self) -> AuthorizerConfig | None:
        """The settings of the authorizer, None without one (`authorizer.class.name`)."""
        return AuthorizerConfig.of(self.settings) if has_authorizer(NodeSettings(values=self.settings)) else None

    @property
    def replication(self) -> ReplicaManagerConfig:
        """The settings of the replica manager.

        Followers can't fetch from a broker that serves nobody, so it never takes one out of an ISR for not fetching.
        """
        values: dict[str, Any] = {"inter_broker_listener_name": self.listener.name}
        if not self.serves:
            values["replica_lag_time_max_ms"] = 2**31 - 1
        values["num_replica_alter_log_dirs_threads"] = len(self.log_dirs)
        return ReplicaManagerConfig(**values | self._values(_REPLICATION_SETTINGS))

    @property
    def lifecycle(self) -> LifecycleConfig:
        """The settings of registration and heartbeats."""
        return LifecycleConfig(**self._values(_LIFECYCLE_SETTINGS))

    @property
    def upkeep(self) -> UpkeepConfig:
        """The settings of the work on logs."""
        return UpkeepConfig(**self._values(_UPKEEP_SETTINGS))

    @property
    def log_defaults(self) -> LogConfig:
        """The configs of topics that set none."""
        return log_defaults(self.settings)

    @property
    def cordoned_log_dirs(self) -> tuple[str, ...]:
        """The log directories that are to get no new replicas (KIP-1066)."""
        named = tuple(filter(None, split_list(self.settings.get(_CORDONED, ""))))
        return self.log_dirs if named == (_ALL,) else named

    def _values(self, names: Mapping[str, str]) -> dict[str, Any]:
        return {field: _number(name, self.settings[name]) for name, field in names.items() if name in self.settings}


def log_defaults(settings: Mapping[str, str]) -> LogConfig:
    """The topic configs that broker settings are the defaults of; others are ignored.

    Raises UsageError for a value that is not of the setting's type, or out of its range.
    """
    configs = {}
    for name, (config, unit) in _LOG_SETTINGS.items():
        if name in settings:
            value = settings[name]
            configs[config] = value if unit == 0 else str(_in_unit(_number(name, value), unit))
            if unit == 0 or name == config:
                _check_as_topics(name, value, config)
    return LogConfig().overridden(configs)


def throttled_rate(name: str, settings: Mapping[str, str]) -> int | None:
    """The bytes per second that a setting of throttled replication allows; None without a limit.

    Raises UsageError for a value that is no such number.
    """
    return _number(name, settings[name]) if name in settings else None


def check_dynamic_setting(name: str, value: str) -> None:
    """Raises UsageError for a value that a setting can't get while the broker runs; what is not heeded may have any."""
    if name in (LEADER_RATE, FOLLOWER_RATE):
        throttled_rate(name, {name: value})
    elif name in DYNAMIC_SETTINGS:
        log_defaults({name: value})


def _check_as_topics(name: str, value: str, config: str) -> None:
    try:
        TOPIC_CONFIGS[config].parse(value)
    except ValueError as problem:
        raise UsageError(f"The broker setting {name} has the value {value!r}: {problem}.") from None


def synonyms_of(name: str) -> list[str]:
    """The settings of the same thing in other units, with `name` among them, in Kafka's order: the finest first."""
    config, _ = _LOG_SETTINGS.get(name, (None, 0))
    return [other for other, (its, _) in reversed(list(_LOG_SETTINGS.items())) if its == config] or [name]


def default_settings() -> dict[str, str | None]:
    """The settings that are known here as they are when nothing sets them; None where another unit has the default."""
    of_logs, defaults = LogConfig(), dict[str, str | None]()
    for name, (config, unit) in _LOG_SETTINGS.items():
        value = getattr(of_logs, config.replace(".", "_"))
        text = ",".join(value) if isinstance(value, tuple) else str(value).lower()
        defaults[name] = None if name != synonyms_of(name)[-1] else str(value // unit) if unit > 1 else text
    for names, made in (
        (_REPLICATION_SETTINGS, ReplicaManagerConfig()),
        (_LIFECYCLE_SETTINGS, LifecycleConfig()),
        (_UPKEEP_SETTINGS, UpkeepConfig()),
    ):
        defaults |= {name: str(getattr(made, field)) for name, field in names.items()}
    # as many as there are log directories
    defaults |= {"num.replica.alter.log.dirs.threads": None, _CORDONED: ""}
    return {name: value for name, value in defaults.items() if name not in _NOT_TO_BE_SET}


def _in_unit(value: int, unit: int) -> int:
    return value if value < 0 else value * unit  # −1 is "without limit" in every unit


def _number(name: str, value: str) -> int:
    try:
        number = parse_integer(trim(value), bits=64)
    except ValueError as problem:
        raise UsageError(f"The broker setting {name} has the value {value!r}: {problem}.") from None
    least, most = _RANGES.get(name, (number, number))
    if not least <= number <= most:
        raise UsageError(f"The broker setting {name} has the value {value!r}: it goes from {least} to {most}.")
    return number
