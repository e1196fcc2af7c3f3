"""The settings of a controller, under Kafka's names in Python spelling, with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from rpds import HashTrieMap


@attrs.frozen(kw_only=True)
class ControllerConfig:
    """The settings of a controller; names of times end in their unit.

    `static_configs` are the configs of the node's property file, the fallback of a topic's effective configs.
    `quorum_node_ids` are the controllers that must support a new feature level, by default only the node itself.
    Without `max_idle_interval_ms`, or if it is above half of `quorum_fetch_timeout_ms`, a no-op record is written each
    quarter of the fetch timeout: standbys consider a silent controller dead. Without
    `leader_imbalance_check_interval_seconds` leaders are never balanced (Kafka's `auto.leader.rebalance.enable=false`).
    """

    node_id: int
    cluster_id: str
    quorum_node_ids: tuple[int, ...] = ()
    default_replication_factor: int = 1
    num_partitions: int = 1
    broker_session_timeout_ms: int = 9_000
    max_idle_interval_ms: int | None = 500
    leader_imbalance_check_interval_seconds: int | None = 300
    unclean_leader_election_interval_ms: int = 300_000
    max_elections_per_imbalance: int = 1_000
    quorum_fetch_timeout_ms: int = 2_000
    delegation_token_secret_key: str | None = attrs.field(default=None, repr=False)
    delegation_token_max_lifetime_ms: int = 7 * 24 * 3_600_000
    delegation_token_expiry_time_ms: int = 24 * 3_600_000
    delegation_token_expiry_check_interval_ms: int = 3_600_000
    static_configs: Mapping[str, str] = attrs.field(factory=HashTrieMap, repr=False)
