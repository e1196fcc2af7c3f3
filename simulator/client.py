"""Clients of the simulated cluster: they find leaders, produce, consume and administrate by real frames."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from kio.static.primitive import i32Timedelta

from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.uuid import Uuid
from simulator.scheduler import active

METADATA_VERSIONS = range(12, 13)
_TIMEOUT_SECONDS = 60.0


def milliseconds(value: int) -> i32Timedelta:
    """A duration as kio has it."""
    return i32Timedelta.parse(timedelta(milliseconds=value))


class Client:
    """Connections to brokers, and what Metadata has answered; for one task."""

    def __init__(self, bootstrap: list[Address]) -> None:
        self._bootstrap = bootstrap
        self._nodes: dict[Address, NodeClient] = {}
        self.brokers: dict[int, Address] = {}
        self.leaders: dict[tuple[str, int], int] = {}
        self.ids: dict[str, Uuid] = {}

    def ask(self, address: Address, name: str, versions: range, make: Callable[[Any], Any]) -> Any:
        """Ask a node, over the connection that there is or a new one. Raises NodeError."""
        try:
            node = self._nodes.get(address)
            if node is None:
                # the connector is made here, since its clock is the virtual one
                node = self._nodes[address] = NodeConnector(timeout=_TIMEOUT_SECONDS)(address)
            return node.ask(name, versions, make)
        except NodeError:
            self._nodes.pop(address, None)
            raise

    def ask_any(self, name: str, versions: range, make: Callable[[Any], Any]) -> Any:
        """Ask a broker, any that answers. Raises NodeError."""
        addresses = list(self.brokers.values()) or list(self._bootstrap)
        active().process.chance.shuffle(addresses)
        for address in addresses[:-1]:
            try:
                return self.ask(address, name, versions, make)
            except NodeError:
                continue
        return self.ask(addresses[-1], name, versions, make)

    def refresh(self) -> bool:
        """Ask for Metadata; returns whether a broker has answered."""

        def make(module: Any) -> Any:
            return module.MetadataRequest(
                topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
            )

        try:
            answer = self.ask_any("metadata", METADATA_VERSIONS, make)
        except NodeError:
            self.brokers = {}
            return False
        self.brokers = {int(one.node_id): Address(one.host, int(one.port)) for one in answer.brokers}
        self.ids = {str(topic.name): Uuid(topic.topic_id.bytes) for topic in answer.topics if topic.topic_id}
        self.leaders = {
            (str(topic.name), int(one.partition_index)): int(one.leader_id)
            for topic in answer.topics
            for one in topic.partitions
            if one.error_code == ErrorCode.NONE
        }
        return True

    def leader_of(self, topic: str, partition: int) -> Address | None:
        """Where the leader of a partition is, None while that is not known."""
        return self.brokers.get(self.leaders.get((topic, partition), -1))
