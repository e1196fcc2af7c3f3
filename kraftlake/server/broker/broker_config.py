"""The configuration of `kraftlake broker`, and Kafka's broker settings in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kraftlake.protocol.client_config import ClientConfig
from kraftlake.publisher.authorizer import AuthorizerConfig
from kraftlake.publisher.effective_settings import EffectiveSettings, value_text
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.lifecycle.broker_lifecycle import LifecycleConfig
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.rates import Windows
from kraftlake.runtime.words import did_you_mean
from kraftlake.server.broker.log_cleaning import CLEANER_SETTINGS
from kraftlake.server.listener_security import ListenerSecurity, listener_security
from kraftlake.server.node_config import ListenerAddress, NodeSettings, check_reachable
from kraftlake.server.node_connections import BETWEEN_BROKERS, TO_CONTROLLERS, node_client
from kraftlake.server.requests.listener_limits import ListenerLimits, listener_limits
from kraftlake.settings.tables import NODE_SETTINGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
"""Settings that take effect only if they are set while the cluster runs."""


def _by_setting(config: type[Any]) -> dict[str, str]:
    return {field.name.replace("_", "."): field.name for field in attrs.fields(config)}


_REPLICATION_SETTINGS: Final = _by_setting(ReplicaManagerConfig)
_LIFECYCLE_SETTINGS: Final = _by_setting(LifecycleConfig)
RETENTION_CHECK: Final = "log.retention.check.interval.ms"
CHECKPOINT: Final = "log.flush.offset.checkpoint.interval.ms"
FIRST_UPKEEP: Final = "log.initial.task.delay.ms"
"""The initial delay of the periodic work on a broker's logs; its intervals are the two settings above."""
_INTER_BROKER: Final = "inter.broker.listener.name"
_BETWEEN_BROKERS: Final = (_INTER_BROKER, "security.inter.broker.protocol")
"""The settings of which one at most names the listener between brokers."""
_CORDONED: Final = "cordoned.log.dirs"
_ALL: Final = "*"
_DEFAULT_LISTENER: Final = ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=9092)
_AUTO_CREATE: Final = "auto.create.topics.enable"
_OF_LOGS: Final = {
    name: key for name, key in TOPIC_CONFIGS.items() if name.replace(".", "_") in attrs.fields_dict(LogConfig)
}
"""The topic configs that affect a log."""
REPLICATION_WINDOWS: Final = ("replication.quota.window.num", "replication.quota.window.size.seconds")
LOG_DIRS_WINDOWS: Final = (
    "alter.log.dirs.replication.quota.window.num", "alter.log.dirs.replication.quota.window.size.seconds",
)  # fmt: skip
"""The number and the length of the windows over which throttled rates are measured."""
USED_WITHOUT_CLIENTS: Final = frozenset(
    {
        *(synonym for key in _OF_LOGS.values() for synonym in key.synonyms), *_REPLICATION_SETTINGS,
        *_LIFECYCLE_SETTINGS, *REPLICATION_WINDOWS, *LOG_DIRS_WINDOWS,
        *CLEANER_SETTINGS, RETENTION_CHECK, CHECKPOINT, FIRST_UPKEEP, _CORDONED,
    }
    - {_INTER_BROKER, "replica.lag.time.max.ms"}
)  # fmt: skip
"""The settings that affect a broker that replicates and serves no clients."""


@attrs.frozen(kw_only=True)
class BrokerConfig:
    """The configuration of a broker of a `lake`'s cluster, or of a replicating broker of a KRaft cluster.

    `bootstrap` is HOST:PORT[,…] of controllers; `command_config` the path of a properties file for connections to
    controllers and leaders; if `cluster_id` is None, the quorum's id applies. `listener` is the one between brokers:
    its name is also that of the leaders' listener. A lake's broker may have others (`more_listeners`). `settings` are
    Kafka's broker settings (`log.retention.hours`, `num.replica.fetchers`) that differ from their defaults, read from
    `source`; the other fields take precedence. With `insecure`, listeners of a lake's broker without TLS may be
    reachable from other machines. Raises UsageError for a listener that needs `insecure`, for a setting whose value is
    not of its type and range, and, in a KRaft cluster, for an unknown setting.
    """

    broker_id: int
    bootstrap: str = ""
    lake: str | None = None
    log_dirs: tuple[str, ...]
    listener: ListenerAddress
    more_listeners: tuple[ListenerAddress, ...] = ()
    command_config: str | None = None
    cluster_id: str | None = None
    rack: str | None = None
    settings: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    source: str = "the settings"
    insecure: bool = False

    def __attrs_post_init__(self) -> None:
        for name in self.settings:
            if not self.serves and name not in USED_WITHOUT_CLIENTS:
                hint = (
                    did_you_mean(name, sorted(USED_WITHOUT_CLIENTS))
                    or "it is none for logs, replication or heartbeats."
                )
                raise UsageError(f"{name} is no broker setting that is known here: {hint}")
        self._node.check(self.broker_id)
        _between_brokers(self._node, self.listeners)
        if self.serves:
            for one in self.listeners:
                check_reachable(one, self.security(one.name).protocol, insecure=self.insecure)
            assert self.advertised
            self._check_logins()
        for directory in self.cordoned_log_dirs:
            if directory not in self.log_dirs:
                raise UsageError(f"{_CORDONED} names {directory}, which is none of the log directories.")
        self.authorizer  # noqa: B018 - raises for settings that can't be

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
        """Return the configuration of a lake's broker; the settings supply a missing id, listener, directory or rack.

        Raises UsageError as the class, and for a value that neither supplies.
        """
        broker_id = settings.node_id if broker_id is None else broker_id
        if broker_id is None:
            raise UsageError("A broker needs an id: give --id, or node.id in the file of --config.")
        roles = settings.names("process.roles")
        if roles and "broker" not in roles:
            raise UsageError(f"process.roles is {','.join(roles)} in {settings.source}, without broker.")
        of_controllers = settings.names("controller.listener.names")
        given = tuple(one for one in settings.listeners("listeners") if one.name not in of_controllers)
        between, others = _between_brokers(settings, (listener,) if listener else given or (_DEFAULT_LISTENER,))
        directories = log_dirs or settings.names("log.dirs") or settings.names("log.dir")
        if not directories:
            raise UsageError("A broker needs a folder for its logs: --log-dirs, or log.dirs in the file of --config.")
        return cls(
            broker_id=broker_id, lake=lake, listener=between, more_listeners=others, log_dirs=directories,
            rack=rack or settings.text("broker.rack"), settings=settings.values, source=settings.source,
            insecure=insecure,
        )  # fmt: skip

    @property
    def static_settings(self) -> Mapping[str, str]:
        """The settings as in a property file, including those that identify the broker."""
        rack = {} if self.rack is None else {"broker.rack": self.rack}
        id_ = str(self.broker_id)
        return {
            **self.settings, **rack, "broker.id": id_, "node.id": id_, "process.roles": "broker",
            "listeners": ",".join(map(str, self.listeners)), "log.dirs": ",".join(self.log_dirs),
        }  # fmt: skip

    @property
    def without_effect(self) -> Mapping[str, str]:
        """The settings that no node uses, each with the reason."""
        return self._node.without_effect

    @property
    def _node(self) -> NodeSettings:
        return NodeSettings(values=self.settings, source=self.source)

    @property
    def listeners(self) -> tuple[ListenerAddress, ...]:
        """All listeners, the one between brokers first."""
        return self.listener, *self.more_listeners

    @property
    def serves(self) -> bool:
        """Whether the broker serves clients: as a broker of a lake's cluster."""
        return self.lake is not None

    def windows(self, settings: tuple[str, str]) -> Windows:
        """The windows of a rate, by the settings of their number and their length in seconds."""
        return Windows.of_seconds(*map(self.value, settings))

    def value(self, name: str) -> Any:
        """The value of a setting by its name, or Kafka's default."""
        return self._node.value(name)

    @property
    def auto_create_topics(self) -> bool:
        """Whether a missing topic in a client's request is created (`auto.create.topics.enable`)."""
        return bool(self.value(_AUTO_CREATE))

    @property
    def advertised(self) -> Mapping[str, ListenerAddress]:
        """The addresses at which others reach the listeners, by name; port 0 is replaced by the bound port."""
        return self._node.advertised(self.listeners)

    def limits(self, listener: str) -> ListenerLimits:
        """The limits of a listener."""
        return listener_limits(self._node, listener)

    def security(self, listener: str) -> ListenerSecurity:
        """The security of a listener."""
        return listener_security(self._node, listener)

    @property
    def controller_listener(self) -> str | None:
        """The name of the listener at which the broker reaches controllers; None if their any one will do."""
        return next(iter(self._node.names("controller.listener.names")), None)

    @property
    def to_controllers(self) -> ClientConfig:
        """The configuration of connections to the controllers of a lake; plain if no listener of theirs is named."""
        listener = self.controller_listener
        return ClientConfig() if listener is None else node_client(self._node, listener, TO_CONTROLLERS)

    @property
    def to_brokers(self) -> ClientConfig:
        """The configuration of connections to the other brokers of a lake."""
        return node_client(self._node, self.listener.name, BETWEEN_BROKERS)

    def _check_logins(self) -> None:
        """Check that this node can log in at others, and others like it at this one. Source: KafkaConfig."""
        assert self.to_controllers
        login, own = self.to_brokers.sasl, self.security(self.listener.name).sasl
        if login is not None and own is not None and login.mechanism not in own.mechanisms:
            raise UsageError(
                f"{BETWEEN_BROKERS} is {login.mechanism} in {self.source}, which is none of sasl.enabled.mechanisms of "
                f"the listener {self.listener.name}."
            )

    @property
    def authorizer(self) -> AuthorizerConfig | None:
        """The settings of the authorizer, None without one (`authorizer.class.name`)."""
        return self._node.authorizer

    @property
    def replication(self) -> ReplicaManagerConfig:
        """The settings of the replica manager.

        Followers can't fetch from a broker that serves no clients, so such a broker never removes a follower from an
        ISR for not fetching.
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
    def log_defaults(self) -> LogConfig:
        """The default values of topic configs."""
        return log_defaults(self.settings)

    @property
    def cordoned_log_dirs(self) -> tuple[str, ...]:
        """The log directories that get no new replicas (KIP-1066)."""
        return cordoned_log_dirs(self.value(_CORDONED), self.log_dirs)

    def _values(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the explicit values; a time without a range in Kafka is at least 1 ms."""
        found = {}
        for name, field in names.items():
            if name in self.settings:
                value = self.value(name)
                found[field] = value if NODE_SETTINGS[name].check or not name.endswith(".ms") else max(1, value)
        return found


def _between_brokers(
    settings: NodeSettings, listeners: tuple[ListenerAddress, ...]
) -> tuple[ListenerAddress, tuple[ListenerAddress, ...]]:
    """Return the listener between brokers, which two settings can name, and the others.

    A name is not needed for the only listener, nor for PLAINTEXT. Raises UsageError. Source: AbstractKafkaConfig
    (getInterBrokerListenerNameAndSecurityProtocol).
    """
    names = [one.name for one in listeners]
    if len({*names}) < len(names):
        raise UsageError(f"Two listeners have the same name: {', '.join(names)}.")
    named = [name for name in _BETWEEN_BROKERS if name in settings.values]
    if len(named) > 1:
        raise UsageError(f"Both {' and '.join(named)} are set in {settings.source}: drop one.")
    if not named and len(names) > 1 and _DEFAULT_LISTENER.name not in names:
        raise UsageError(f"{_INTER_BROKER} is missing in {settings.source}: it is one of {', '.join(names)}.")
    wanted = settings.text(named[0]) if named else names[0] if len(names) == 1 else _DEFAULT_LISTENER.name
    if wanted not in names:
        raise UsageError(f"{named[0]} is {wanted}, which is none of the listeners {', '.join(names)}.")
    return (
        next(one for one in listeners if one.name == wanted),
        tuple(one for one in listeners if one.name != wanted),
    )


def cordoned_log_dirs(named: Sequence[str], log_dirs: tuple[str, ...]) -> tuple[str, ...]:
    """The directories that `cordoned.log.dirs` names; * names all."""
    return log_dirs if [*named] == [_ALL] else tuple(named)


def log_defaults(settings: Mapping[str, str]) -> LogConfig:
    """Return the topic configs that broker settings provide as defaults.

    Of several settings for one config, the finest unit applies.
    """
    node = EffectiveSettings(settings)
    set_ = (config for config, key in _OF_LOGS.items() if not settings.keys().isdisjoint(key.synonyms))
    return LogConfig().overridden({config: value_text(node.of_topics(config)) for config in set_})
