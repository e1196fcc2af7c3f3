"""The part of Kafka's network protocol that a client of the quorum needs: the leader and its high watermark.

What is re-exported here is imported when it is first asked for: the schemas (kio) take 150 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.protocol.abort import Abort
    from kraftlake.protocol.address import Address, are_addresses, joined_addresses, parse_addresses
    from kraftlake.protocol.broker_requests import (
        BrokerHeartbeatRequest,
        BrokerHeartbeatResponse,
        BrokerRegistrationRequest,
        BrokerRegistrationResponse,
    )
    from kraftlake.protocol.client_config import (
        ClientConfig,
        SaslConfig,
        StoreConfig,
        TlsConfig,
        parse_client_config,
        read_client_config,
    )
    from kraftlake.protocol.connection import Connection
    from kraftlake.protocol.describe import (
        BROKERS,
        CONTROLLERS,
        METADATA_TOPIC,
        NoLeaderError,
        OtherClusterError,
        ReplicaOfQuorum,
    )
    from kraftlake.protocol.error_code import ErrorCode
    from kraftlake.protocol.fetch_request import FETCH, FETCH_VERSIONS, FetchHeader, encode_fetch, encode_partition
    from kraftlake.protocol.fetch_response import FetchResponse, PartitionResponse, decode_fetch
    from kraftlake.protocol.ids import kafka_id, wire_id
    from kraftlake.protocol.message_scan import MessageScan, end_of_message, read_message
    from kraftlake.protocol.node_client import REQUEST_HEADER, NodeClient
    from kraftlake.protocol.node_connector import NodeConnector, connector_of
    from kraftlake.protocol.node_error import AuthenticationError, NodeError
    from kraftlake.protocol.observer.observed_log import DivergedLogError, ObservedLog
    from kraftlake.protocol.observer.quorum_observer import (
        OlderLeaderError,
        QuorumObserver,
        SnapshotGoneError,
        SnapshotNeededError,
    )
    from kraftlake.protocol.observer.raw_batch import RawBatch
    from kraftlake.protocol.observer.requests import METADATA_TOPIC_ID, OffsetAndEpoch
    from kraftlake.protocol.quorum_client import QuorumClient, QuorumPosition
    from kraftlake.protocol.quorum_watch import QuorumWatch


__all__ = [
    "BROKERS",
    "CONTROLLERS",
    "FETCH",
    "FETCH_VERSIONS",
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "REQUEST_HEADER",
    "Abort",
    "Address",
    "AuthenticationError",
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
    "ClientConfig",
    "Connection",
    "DivergedLogError",
    "ErrorCode",
    "FetchHeader",
    "FetchResponse",
    "MessageScan",
    "NoLeaderError",
    "NodeClient",
    "NodeConnector",
    "NodeError",
    "ObservedLog",
    "OffsetAndEpoch",
    "OlderLeaderError",
    "OtherClusterError",
    "PartitionResponse",
    "QuorumClient",
    "QuorumObserver",
    "QuorumPosition",
    "QuorumWatch",
    "RawBatch",
    "ReplicaOfQuorum",
    "SaslConfig",
    "SnapshotGoneError",
    "SnapshotNeededError",
    "StoreConfig",
    "TlsConfig",
    "are_addresses",
    "client_config",
    "connector_of",
    "decode_fetch",
    "encode_fetch",
    "encode_partition",
    "end_of_message",
    "joined_addresses",
    "kafka_id",
    "parse_addresses",
    "parse_client_config",
    "read_client_config",
    "read_message",
    "wire_id",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
