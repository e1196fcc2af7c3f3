"""A real Kafka 4.4 controller and ours: the commands for both, and the differences between them."""

from __future__ import annotations

import datetime
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import attrs
from kio.schema.unregister_broker.v0 import request as goodbye

import kraftlake
from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.records.json_form import to_json
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from tests.controller.controlled_cluster import ControlledCluster
from tests.controller.kafka_rpc import KafkaRpc
from tests.kafka_node import KafkaNode

MINUTE = datetime.timedelta(minutes=1)
CAUGHT_UP = 1 << 40


def minutes(milliseconds: int) -> int:
    """A span in whole minutes: the two controllers' clocks are not the same."""
    return round(milliseconds / 60_000)


def wire_uuid(value: Uuid) -> uuid.UUID:
    return uuid.UUID(bytes=bytes(value))


@attrs.define
class Difference:
    """Where the two have not done the same."""

    step: str
    theirs: Any
    ours: Any


class BothSides:
    """Each command is run at both; `differences` are what was not equal, `steps` what was tried."""

    def __init__(self, node: KafkaNode, user: str | None = None, **config: Any) -> None:
        self.node = node
        self.rpc = KafkaRpc(node.controller, user)
        self.ours = ControlledCluster(
            broker_session_timeout_ms=600_000,
            static_configs={"log.index.size.max.bytes": "65536"},  # as `kafka_node` has it
            **config,
        )
        self.steps: list[str] = []
        self.differences: list[Difference] = []
        self._read_to = -1
        self._our_read_to = self.ours.log[-1].last_offset
        self._names: list[dict[str, str]] = [{}, {}]
        self._epochs: list[dict[int, int]] = [{}, {}]
        self._wait_until_active()

    def _wait_until_active(self) -> None:
        deadline = time.monotonic() + 60
        while self.rpc.ask(goodbye.UnregisterBrokerRequest(broker_id=999)).error_code == ErrorCode.NOT_CONTROLLER:
            assert time.monotonic() < deadline, "the controller did not become active"
            time.sleep(0.1)
        self._their_records()

    def _their_records(self) -> list[Message]:
        source = kraftlake.open(self.node.metadata_directory)
        messages: list[Message] = []
        for batch in source.batches(self._read_to + 1):
            if batch.base_offset > self._read_to:
                self._read_to = batch.last_offset
                if not batch.control:
                    messages += [record.message for record in batch.messages()]  # type: ignore[misc]
        return [message for message in messages if not self._is_background(message)]

    def _is_background(self, message: Message) -> bool:
        """Whether the node has written it unasked."""
        if isinstance(message, r.RegisterControllerRecord):
            return message.controller_id == self.node.node_id
        return isinstance(message, r.NoOpRecord)

    def _our_records(self) -> list[Message]:
        messages = [
            record.message
            for batch in self.ours.log
            if batch.base_offset > self._our_read_to
            for record in batch.messages()
        ]
        self._our_read_to = self.ours.log[-1].last_offset
        return messages  # type: ignore[return-value]

    def _step(self, name: str, theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
        self.steps.append(name)
        their_answer = theirs()
        try:
            our_answer = ours()
        except ControllerApiError as refusal:
            our_answer = int(refusal.error)
        if isinstance(our_answer, int) and isinstance(their_answer, list):
            our_answer = [our_answer] * len(their_answer)
        if their_answer != our_answer:
            self.differences.append(Difference(name, their_answer, our_answer))
        records = (self._normal(0, self._their_records()), self._normal(1, self._our_records()))
        if records[0] != records[1]:
            self.differences.append(Difference(name, *records))

    def _normal(self, side: int, messages: list[Message]) -> list[str]:
        """Records without what differs for good reasons: ids that are drawn, epochs that are offsets, their order."""
        names, epochs = self._names[side], self._epochs[side]
        for message in messages:
            if isinstance(message, r.TopicRecord):
                names[str(message.topic_id)] = f"topic:{message.name}"
            elif isinstance(message, r.AccessControlEntryRecord):
                names[str(message.id)] = f"acl:{message.principal}:{message.operation}:{message.resource_name}"
            elif isinstance(message, r.DelegationTokenRecord):
                names.setdefault(message.token_id, f"token:{len(names)}")
            elif isinstance(message, r.RegisterBrokerRecord):
                epochs.setdefault(message.broker_epoch, len(epochs))
        lines = []
        for message in messages:
            assert message.VERSIONS.high is not None
            form = to_json(message, message.VERSIONS.high)
            issued = form.get("issueTimestamp", 0)
            for key, value in form.items():
                if key.endswith("Timestamp"):
                    form[key] = minutes(value - issued)
                elif isinstance(value, str) and value in names:
                    form[key] = names[value]
                elif key in ("brokerEpoch",):
                    form[key] = f"epoch {epochs.get(value)}"
                elif isinstance(value, list) and key in ("endPoints", "features", "entity"):
                    form[key] = sorted(value, key=str)
            lines.append(f"{type(message).__name__} {json.dumps(form, sort_keys=True)}")
        return sorted(lines)

    def _epoch(self, side: int, broker: int) -> int:
        cluster = self.ours
        if side == 1:
            known = cluster.state.registration(broker)
            return -1 if known is None else known.epoch
        image = kraftlake.open(self.node.metadata_directory).replay().image
        theirs = image.cluster.brokers.get(broker)
        return -1 if theirs is None else theirs.epoch

    def _topic_id(self, side: int, name: str) -> Uuid:
        if side == 1:
            topic = self.ours.image.topics.get_topic(name)
        else:
            topic = kraftlake.open(self.node.metadata_directory).replay().image.topics.get_topic(name)
        return Uuid(b"nobody-has-this!") if topic is None else topic.id
