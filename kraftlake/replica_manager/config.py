"""The configuration of a broker's replica manager."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class ReplicaManagerConfig:
    """Kafka's broker settings for replication, with its names and defaults; times in ms, sizes in bytes.

    `inter_broker_listener_name` is the listener of leaders that followers connect to. In Kafka the default of
    `num_replica_alter_log_dirs_threads` is the number of log directories. Source:
    org.apache.kafka.server.config.ReplicationConfigs.
    """

    inter_broker_listener_name: str = "PLAINTEXT"
    num_replica_fetchers: int = 1
    replica_lag_time_max_ms: int = 30_000
    replica_socket_timeout_ms: int = 30_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_min_bytes: int = 1
    replica_fetch_max_bytes: int = 1024 * 1024
    replica_fetch_response_max_bytes: int = 10 * 1024 * 1024
    replica_fetch_backoff_ms: int = 1_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    num_replica_alter_log_dirs_threads: int = 1
    max_incremental_fetch_session_cache_slots: int = 1_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
