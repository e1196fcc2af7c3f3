"""The configuration of `kraftlake controller`: Kafka's settings that a controller heeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kraftlake.controller import ControllerConfig
from kraftlake.metadata_log import SnapshotPolicy
from kraftlake.publisher import AuthorizerConfig
from kraftlake.runtime import UsageError, is_loopback
from kraftlake.server.node_config import ListenerAddress, NodeSettings, has_authorizer
from kraftlake.server.requests.listener_limits import ListenerLimits
from kraftlake.settings import TOPIC_CONFIGS

_LISTENER_LIMITS: Final = {
    field.name.replace("_", "."): field.name
    for field in attrs.fields(ListenerLimits)
    if field.name not in ("buffered_max_bytes", "queued_max_request_bytes")
}
_TOPIC_DEFAULTS: Final = frozenset(synonym for key in TOPIC_CONFIGS.values() for synonym in key.synonyms)
KNOWN: Final = frozenset(
    {
        "allow.everyone.if.no.acl.found", "authorizer.class.name", "auto.leader.rebalance.enable",
        "broker.heartbeat.interval.ms", "broker.session.timeout.ms", "controller.listener.names",
        "controller.quorum.fetch.timeout.ms", "default.replication.factor", "delegation.token.expiry.check.interval.ms",
        "delete.topic.enable", "leader.imbalance.check.interval.seconds", "listeners",
        "metadata.log.max.record.bytes.between.snapshots", "metadata.log.max.snapshot.interval.ms",
        "metadata.max.idle.interval.ms", "node.id", "num.partitions", "process.roles", "super.users",
        "unclean.leader.election.interval.ms", *_LISTENER_LIMITS, *_TOPIC_DEFAULTS,
    }
)  # fmt: skip
"""The settings that a controller heeds."""


@attrs.frozen(kw_only=True)
class ControllerServerConfig:
    """A controller of the lake at `lake`, with Kafka's settings for all that differs from Kafka's defaults.

    `insecure` allows listeners that other machines reach; listeners have neither TLS nor logins. Raises UsageError for
    a setting that has no value of its kind, and for a listener that would need `insecure`.
    """

    lake: str
    node_id: int
    listeners: tuple[ListenerAddress, ...]
    settings: NodeSettings = attrs.field(factory=NodeSettings)
    insecure: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.listeners:
            raise UsageError(
                "A controller needs a listener: give --listener, as in CONTROLLER://127.0.0.1:9093, or listeners in "
                "the file of --config."
            )
        names = [listener.name for listener in self.listeners]
        if len({*names}) < len(names):
            raise UsageError(f"Two listeners have the same name: {', '.join(names)}.")
        for listener in self.listeners:
            if not self.insecure and not is_loopback(listener.host):
                raise UsageError(
                    f"{listener} can be reached from other machines, and listeners have neither TLS nor logins: give "
                    f"127.0.0.1, or --insecure-listeners if that is meant."
                )
        roles = self.settings.names("process.roles")
        if roles and "controller" not in roles:
            raise UsageError(f"process.roles is {','.join(roles)} in {self.settings.source}, without controller.")
        assert self.controller("", ())
        assert self.limits
        assert self.snapshots
        self.authorizer  # noqa: B018 - raises for settings that can't be

    @classmethod
    def of(
        cls,
        lake: str,
        settings: NodeSettings,
        *,
        node_id: int | None = None,
        listeners: tuple[ListenerAddress, ...] = (),
        insecure: bool = False,
    ) -> ControllerServerConfig:
        """A configuration whose id and listeners are those of the settings where they are not given.

        Of the settings' `listeners` those count that `controller.listener.names` names. Raises UsageError as the
        class, and where there is no id.
        """
        if node_id is None and "node.id" not in settings.values:
            raise UsageError("A controller needs an id: give --id, or node.id in the file of --config.")
        if not listeners:
            names = settings.names("controller.listener.names")
            listeners = tuple(one for one in settings.listeners("listeners") if not names or one.name in names)
        return cls(
            lake=lake, node_id=settings.integer("node.id", 0) if node_id is None else node_id, listeners=listeners,
            settings=settings, insecure=insecure,
        )  # fmt: skip

    def controller(self, cluster_id: str, quorum_node_ids: tuple[int, ...]) -> ControllerConfig:
        """The settings of the quorum's controller."""
        settings = self.settings
        balances = settings.flag("auto.leader.rebalance.enable", default=True)
        return ControllerConfig(
            node_id=self.node_id,
            cluster_id=cluster_id,
            quorum_node_ids=quorum_node_ids,
            default_replication_factor=settings.integer("default.replication.factor", 1, least=1, most=32_767),
            num_partitions=settings.integer("num.partitions", 1, least=1),
            broker_session_timeout_ms=settings.integer("broker.session.timeout.ms", 9_000, least=1),
            max_idle_interval_ms=settings.integer("metadata.max.idle.interval.ms", 500) or None,
            leader_imbalance_check_interval_seconds=(
                settings.integer("leader.imbalance.check.interval.seconds", 300, least=1) if balances else None
            ),
            unclean_leader_election_interval_ms=settings.integer(
                "unclean.leader.election.interval.ms", 300_000, least=1
            ),
            quorum_fetch_timeout_ms=settings.integer("controller.quorum.fetch.timeout.ms", 2_000, least=1),
            delegation_token_expiry_check_interval_ms=settings.integer(
                "delegation.token.expiry.check.interval.ms", 3_600_000, least=1
            ),
            static_configs={name: value for name, value in settings.values.items() if name in _TOPIC_DEFAULTS},
        )

    @property
    def heartbeat_timeout_ms(self) -> float:
        """How long a heartbeat waits for the controller: half of the interval between two."""
        return self.settings.integer("broker.heartbeat.interval.ms", 2_000, least=1) / 2

    @property
    def delete_topic_enable(self) -> bool:
        """Whether topics may be deleted."""
        return self.settings.flag("delete.topic.enable", default=True)

    @property
    def limits(self) -> ListenerLimits:
        """What a listener takes at most."""
        values: dict[str, Any] = {
            field: self.settings.integer(name, 0, least=1)
            for name, field in _LISTENER_LIMITS.items()
            if name in self.settings.values
        }
        return ListenerLimits(**values)

    @property
    def authorizer(self) -> AuthorizerConfig | None:
        """The settings of the authorizer; None without one, which allows everything."""
        return AuthorizerConfig.of(self.settings.values) if has_authorizer(self.settings) else None

    @property
    def snapshots(self) -> SnapshotPolicy:
        """When the next snapshot is due."""
        name = "metadata.log.max.record.bytes.between.snapshots"
        return SnapshotPolicy(
            max_bytes=self.settings.integer(name, 20 * 1024 * 1024, least=1, most=2**63 - 1),
            max_interval_ms=self.settings.integer("metadata.log.max.snapshot.interval.ms", 3_600_000) or None,
        )

    @property
    def without_effect(self) -> Mapping[str, str]:
        """The settings that are not heeded, each with a hint where a known one is alike."""
        return self.settings.not_among(KNOWN)
