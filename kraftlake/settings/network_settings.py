"""Settings of listeners, connections and requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, members, some_members
from kraftlake.settings.config_key import CLUSTER_WIDE, PER_BROKER, ConfigKey
from kraftlake.settings.uses import BY_ALL_NODES, BY_BROKERS, CONNECTING, LIVE_BY_ALL_NODES, Ignored

NETWORK_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "advertised.listeners": ConfigKey("LIST", None, some_members(), use=BY_ALL_NODES),
    "background.threads": ConfigKey(
        "INT", "10", at_least(1), update=CLUSTER_WIDE, use=Ignored("each kind of upkeep has a thread of its own")
    ),
    "connections.max.idle.ms": ConfigKey("LONG", "600000", use=BY_ALL_NODES),
    "early.start.listeners": ConfigKey("LIST", None, members(), use=Ignored("all listeners of a node start together")),
    "fetch.max.bytes": ConfigKey("INT", "57671680", at_least(1024), use=BY_BROKERS),
    "inter.broker.listener.name": ConfigKey("STRING", None, use=BY_BROKERS),
    "listeners": ConfigKey("LIST", "PLAINTEXT://:9092", some_members(), update=PER_BROKER, use=BY_ALL_NODES),
    "max.connection.creation.rate": ConfigKey(
        "INT", "2147483647", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_ALL_NODES
    ),
    "max.connections": ConfigKey("INT", "2147483647", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_ALL_NODES),
    "max.connections.per.ip": ConfigKey("INT", "2147483647", at_least(0), update=CLUSTER_WIDE, use=LIVE_BY_ALL_NODES),
    "max.connections.per.ip.overrides": ConfigKey("STRING", "", update=CLUSTER_WIDE, use=LIVE_BY_ALL_NODES),
    "max.incremental.fetch.session.cache.slots": ConfigKey("INT", "1000", at_least(0), use=BY_BROKERS),
    "max.request.partition.size.limit": ConfigKey("INT", "2000", at_least(1), use=BY_BROKERS),
    "num.io.threads": ConfigKey("INT", "8", at_least(1), update=CLUSTER_WIDE, use=BY_ALL_NODES),
    "num.network.threads": ConfigKey(
        "INT", "3", at_least(1), update=CLUSTER_WIDE, use=Ignored("one thread reads all connections of a listener")
    ),
    "queued.max.request.bytes": ConfigKey("LONG", "-1", use=BY_ALL_NODES),
    "queued.max.requests": ConfigKey("INT", "500", at_least(1), use=BY_ALL_NODES),
    "request.timeout.ms": ConfigKey("INT", "30000", use=Ignored("each request of a node has a time of its own")),
    "socket.connection.setup.timeout.max.ms": ConfigKey("LONG", "30000", use=CONNECTING),
    "socket.connection.setup.timeout.ms": ConfigKey("LONG", "10000", use=CONNECTING),
    "socket.listen.backlog.size": ConfigKey("INT", "50", at_least(1), use=BY_ALL_NODES),
    "socket.receive.buffer.bytes": ConfigKey("INT", "102400", use=BY_ALL_NODES),
    "socket.request.max.bytes": ConfigKey("INT", "104857600", at_least(1), use=BY_ALL_NODES),
    "socket.send.buffer.bytes": ConfigKey("INT", "102400", use=BY_ALL_NODES),
}
