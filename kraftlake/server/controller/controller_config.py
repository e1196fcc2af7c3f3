"""The configuration of `kraftlake controller`: Kafka's settings that a controller uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kraftlake.controller.config import ControllerConfig
from kraftlake.metadata_log.snapshots.snapshot_policy import SnapshotPolicy
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.publisher.authorizer import AuthorizerConfig
from kraftlake.runtime.errors import UsageError
from kraftlake.server.listener_security import ListenerSecurity, listener_security
from kraftlake.server.node_config import ListenerAddress, NodeSettings, check_reachable
from kraftlake.server.node_connections import TO_CONTROLLERS, node_client
from kraftlake.server.requests.listener_limits import ListenerLimits, listener_limits
from kraftlake.server.requests.tokens import SECRET_KEY


def token_settings(settings: NodeSettings) -> dict[str, Any]:
    """The settings of delegation tokens, by their names in ControllerConfig."""
    value = settings.value
    return {
        "delegation_token_secret_key": value(SECRET_KEY) or None,
        **{
            name.replace(".", "_"): value(name)
            for name in (
                "delegation.token.max.lifetime.ms",
                "delegation.token.expiry.time.ms",
                "delegation.token.expiry.check.interval.ms",
            )
        },
    }


@attrs.frozen(kw_only=True)
class ControllerServerConfig:
    """The configuration of a controller of the lake at `lake`, with Kafka's settings that differ from Kafka's defaults.

    With `insecure`, listeners without TLS may be reachable from other machines. Raises UsageError for a setting whose
    value is not of its type, and for a listener that needs `insecure`.
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
            check_reachable(listener, self.security(listener.name).protocol, insecure=self.insecure)
        roles = self.settings.names("process.roles")
        if roles and "controller" not in roles:
            raise UsageError(f"process.roles is {','.join(roles)} in {self.settings.source}, without controller.")
        self.settings.check(self.node_id)
        assert self.advertised
        assert self.to_controllers
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
        """Return a configuration; the settings supply a missing id and missing listeners.

        Of the settings' `listeners`, only those named in `controller.listener.names` count. Raises UsageError as the
        class, and without an id.
        """
        node_id = settings.node_id if node_id is None else node_id
        if node_id is None:
            raise UsageError("A controller needs an id: give --id, or node.id in the file of --config.")
        if not listeners:
            names = settings.names("controller.listener.names")
            listeners = tuple(one for one in settings.listeners("listeners") if not names or one.name in names)
        return cls(
            lake=lake, node_id=node_id, listeners=listeners,
            settings=settings, insecure=insecure,
        )  # fmt: skip

    def controller(self, cluster_id: str, quorum_node_ids: tuple[int, ...]) -> ControllerConfig:
        """The settings of the quorum's controller."""
        value = self.settings.value
        balances = value("auto.leader.rebalance.enable")
        return ControllerConfig(
            node_id=self.node_id,
            cluster_id=cluster_id,
            quorum_node_ids=quorum_node_ids,
            default_replication_factor=value("default.replication.factor"),
            num_partitions=value("num.partitions"),
            broker_session_timeout_ms=max(1, value("broker.session.timeout.ms")),
            max_idle_interval_ms=value("metadata.max.idle.interval.ms") or None,
            leader_imbalance_check_interval_seconds=(
                value("leader.imbalance.check.interval.seconds") if balances else None
            ),
            unclean_leader_election_interval_ms=value("unclean.leader.election.interval.ms"),
            quorum_fetch_timeout_ms=max(1, value("controller.quorum.fetch.timeout.ms")),
            static_configs=dict(self.settings.values),
            **token_settings(self.settings),
        )

    @property
    def advertised(self) -> Mapping[str, ListenerAddress]:
        """The addresses at which other nodes reach the listeners, by name; port 0 is replaced by the bound port."""
        return self.settings.advertised(self.listeners)

    @property
    def between_controllers(self) -> str:
        """The name of the listener at which controllers reach each other: the first of `controller.listener.names`."""
        names = [one.name for one in self.listeners]
        return next((name for name in self.settings.names("controller.listener.names") if name in names), names[0])

    @property
    def to_controllers(self) -> ClientConfig:
        """The configuration of connections to the other controllers."""
        return node_client(self.settings, self.between_controllers, TO_CONTROLLERS)

    @property
    def heartbeat_timeout_ms(self) -> float:
        """The maximum time a heartbeat waits for the controller: half of the heartbeat interval."""
        return float(max(1, self.settings.value("broker.heartbeat.interval.ms")) / 2)

    @property
    def delete_topic_enable(self) -> bool:
        """Whether topics may be deleted."""
        return bool(self.settings.value("delete.topic.enable"))

    def limits(self, listener: str) -> ListenerLimits:
        """The limits of a listener."""
        return listener_limits(self.settings, listener)

    def security(self, listener: str) -> ListenerSecurity:
        """The security of a listener."""
        return listener_security(self.settings, listener, of_controller=True)

    @property
    def authorizer(self) -> AuthorizerConfig | None:
        """The settings of the authorizer; None without one, which allows everything."""
        return self.settings.authorizer

    @property
    def snapshots(self) -> SnapshotPolicy:
        """The policy that decides when the next snapshot is due."""
        return SnapshotPolicy(
            max_bytes=self.settings.value("metadata.log.max.record.bytes.between.snapshots"),
            max_interval_ms=self.settings.value("metadata.log.max.snapshot.interval.ms") or None,
        )

    @property
    def without_effect(self) -> Mapping[str, str]:
        """The settings that no node uses, each with the reason."""
        return self.settings.without_effect
