"""Offsets of brokers, which no lake stores: queried from the nodes themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs
from kio.static.primitive import i32, i64

from kraftlake.image.broker_partitions import partitions_of
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.server.requests.messages import of_version

_PERIOD_SECONDS: Final = 1.0
_TIMEOUT: Final = 2.0
_MOST_PARTITIONS: Final = 1_000
"""The maximum number of partitions queried from one broker: a query must stay cheap for the broker."""
_LATEST: Final = -1
_CONSUMER: Final = -1
_LIST_OFFSETS: Final = range(2, 8)


@attrs.frozen(kw_only=True)
class LedOffsets:
    """The sum of the high watermarks of partitions that a broker leads, over the `partitions` queried."""

    partitions: int
    high_watermarks: int


class NodeOffsets:
    """Queries each broker about once a second, in a thread of its own; `newest` has the last answers by broker.

    A broker that leads nothing is not queried, and one that does not answer has no entry. `image` returns the newest
    image, `addresses` are those of the brokers to query, over connections configured by `client`.
    """

    def __init__(
        self, image: Callable[[], MetadataImage], addresses: Mapping[int, Address], client: ClientConfig
    ) -> None:
        self._image = image
        self._client = client
        self._addresses = addresses
        self._clients: dict[int, NodeClient] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node-offsets", daemon=True)
        self.newest: Mapping[int, LedOffsets] = {}

    def start(self) -> None:
        """Start the queries."""
        self._thread.start()

    def close(self) -> None:
        """Stop the queries; a query in progress ends by itself."""
        self._closed.set()

    def _run(self) -> None:
        connect = NodeConnector(config=self._client, timeout=_TIMEOUT)
        image: MetadataImage | None = None
        while not self._closed.wait(_PERIOD_SECONDS):
            newest = self._image()
            if newest is not image:
                image = newest
                led = {broker: partitions_of(image, broker).led[:_MOST_PARTITIONS] for broker in self._addresses}
            answers = {}
            for broker, partitions in led.items():
                if not partitions:  # it may be starting
                    answers[broker] = LedOffsets(partitions=0, high_watermarks=0)
                    continue
                try:
                    if broker not in self._clients:
                        self._clients[broker] = connect(self._addresses[broker])
                    answers[broker] = _led_offsets(self._clients[broker], partitions)
                except NodeError:  # it is not up, or busy; its client has closed itself
                    self._clients.pop(broker, None)
            self.newest = answers
        for client in self._clients.values():
            client.close()


def _led_offsets(client: NodeClient, led: Iterable[tuple[str, int]]) -> LedOffsets:
    """Query the led offsets of one broker. Raises NodeError."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in led:
        by_topic.setdefault(topic, []).append(partition)

    def request(module: Any) -> Any:
        return of_version(
            module.ListOffsetsRequest,
            replica_id=_CONSUMER,
            isolation_level=0,
            topics=tuple(
                module.ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        of_version(
                            module.ListOffsetsPartition,
                            partition_index=i32(number), current_leader_epoch=i32(-1), timestamp=i64(_LATEST),
                        )
                        for number in numbers
                    ),
                )
                for topic, numbers in by_topic.items()
            ),
        )  # fmt: skip

    answer = client.ask("list_offsets", _LIST_OFFSETS, request, timeout=_TIMEOUT)
    answered = [one for topic in answer.topics for one in topic.partitions if one.error_code == ErrorCode.NONE]
    return LedOffsets(partitions=len(answered), high_watermarks=sum(int(one.offset) for one in answered))
