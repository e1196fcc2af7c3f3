"""An active controller of a copy in memory: the decisions of a real one if brokers were lost, stopped or started."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from kraftlake.controller.cluster.brokers import (
    BrokerHeartbeatReply,
    maybe_fence_stale_broker,
    process_heartbeat,
    register_broker,
)
from kraftlake.controller.cluster.heartbeats import BrokerHeartbeats
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.errors import ApiError
from kraftlake.controller.quorum.active_controller import ActiveController
from kraftlake.controller.replication.alter_partition import ANY_EPOCH, IsrChange, alter_partition
from kraftlake.controller.replication.partitions import out_of_sync
from kraftlake.controller.replication.reassignments import PartitionName, alter_partition_reassignments
from kraftlake.controller.state import Command, ControllerState
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.endpoint import VersionRange, end_points_of, feature_levels_of
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.protocol.broker_requests import BrokerHeartbeatRequest, BrokerRegistrationRequest
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.runtime.clock import ManualClock

T = TypeVar("T")


class TrialController:
    """Runs the commands of an active controller against an image, and writes nothing anywhere.

    The controller starts as if just elected: every unfenced broker has a session. The settings are those in the image
    and Kafka's defaults; property files of nodes are unknown.
    """

    def __init__(self, image: MetadataImage) -> None:
        """Start with an image, which must have a metadata.version."""
        provenance = image.provenance
        self._clock = ManualClock(max(provenance.timestamp, 0))
        config = ControllerConfig(node_id=-1, cluster_id=provenance.cluster_id or "")
        self._session_ms = config.broker_session_timeout_ms
        state = ControllerState(
            config=config,
            image=image,
            next_offset=provenance.offset + 1,
            heartbeats=BrokerHeartbeats.of(
                (broker for _, broker in sorted(image.cluster.brokers.items())),
                session_timeout_ns=self._session_ms * 1_000_000,
                now_ns=self._clock.nanoseconds(),
            ),
            registration_offsets=dict.fromkeys(image.cluster.brokers, -1),
            random=random.Random(0),  # noqa: S311 - the same question has the same answer
        )
        self._active = ActiveController(state, epoch=max(provenance.epoch, 0) + 1, clock=self._clock)

    @property
    def image(self) -> MetadataImage:
        """The image after all commands so far."""
        return self.state.image

    @property
    def state(self) -> ControllerState:
        """The state that commands run against."""
        return self._active.state

    def lose(self, brokers: Iterable[int]) -> None:
        """Expire the sessions of brokers, one after another: the controller fences each, and elects other leaders."""
        for broker in brokers:
            self._pass_session_time(without=broker)
            while self.run(maybe_fence_stale_broker):
                pass

    def shut_down(self, broker: int) -> None:
        """Shut down an active broker in a controlled way: its leaderships move, then it stops, which fences it.

        A broker without permission to stop stops after a maximum wait.
        """
        for _ in range(2):  # leaderships move at the first request; the others' heartbeats let the second one finish
            for other in self._unfenced():
                if other.id != broker:
                    self._heartbeat(other)
            if self._heartbeat(self._registration(broker), want_shut_down=True).should_shut_down:
                return
        self.lose([broker])

    def register(self, broker: int, *, clean: bool) -> None:
        """Register a fenced broker as a new process with its previous registration; the broker stays fenced.

        `clean` means an orderly stop; otherwise the broker is no longer an eligible leader replica. The broker supports
        the finalized features. Raises ControllerApiError if the controller refuses its registration.
        """
        self._pass_session_time(without=broker)
        known = self._registration(broker)
        state = self.state
        levels = {name: VersionRange(level, level) for name, level in state.finalized_levels.items() if level}
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=state.config.cluster_id,
            incarnation_id=state.new_id(),
            listeners=end_points_of(known.listeners, BrokerEndpoint),
            features=feature_levels_of(levels | dict(known.supported_features), BrokerFeature),
            rack=known.rack,
            log_dirs=known.directories or (state.new_id(),),
            previous_broker_epoch=known.epoch if clean else -1,
        )
        self.run(lambda state: register_broker(state, request))

    def unfence(self, broker: int) -> None:
        """Unfence a fenced broker, which then leads the leaderless partitions that it may lead."""
        self._heartbeat(self._registration(broker))

    def reassign(self, targets: Mapping[PartitionName, Sequence[int]]) -> dict[PartitionName, ApiError]:
        """Start reassignments to target replicas; returns the answer for each partition."""
        return self.run(lambda state: alter_partition_reassignments(state, [*targets.items()]))

    def catch_up(self) -> None:
        """Mark all active replicas as caught up: the leaders add them to the ISRs, which completes reassignments."""
        state = self.state
        by_leader: dict[int, list[IsrChange]] = {}
        for name, number, partition in out_of_sync(self.image.topics):
            topic = state.topic(name)
            assert topic is not None, "it was found in the same image"
            joining = [one for one in partition.replicas if one not in partition.isr and self._is_up(one, partition)]
            if joining and state.is_active(partition.leader):
                change = IsrChange(
                    topic_id=topic.id,
                    partition_id=number,
                    leader_epoch=partition.leader_epoch,
                    partition_epoch=partition.partition_epoch,
                    new_isr=[(replica, ANY_EPOCH) for replica in (*partition.isr, *joining)],
                )
                by_leader.setdefault(partition.leader, []).append(change)
        for leader, changes in sorted(by_leader.items()):
            self.run(
                functools.partial(
                    alter_partition, broker_id=leader, broker_epoch=self._registration(leader).epoch, changes=changes
                )
            )

    def _is_up(self, broker: int, partition: PartitionRegistration) -> bool:
        """Whether a broker is active and has the directory of its replica online."""
        state, directory = self.state, partition.directory(broker)
        return state.is_active(broker) and directory is not None and state.has_online_dir(broker, directory)

    def run(self, command: Command[T]) -> T:
        """The answer to a command, whose records are in the image; raises ControllerApiError where it is refused."""
        executed = self._active.execute(command)
        self._active.committed_up_to(executed.answer_at)
        return executed.response

    def _registration(self, broker: int) -> BrokerRegistration:
        return self.image.cluster.brokers[broker]

    def _unfenced(self) -> list[BrokerRegistration]:
        return [broker for _, broker in sorted(self.image.cluster.brokers.items()) if not broker.fenced]

    def _pass_session_time(self, *, without: int) -> None:
        """Advance the clock by one session, in which all active brokers but one send heartbeats."""
        self._clock.advance(self._session_ms + 1)
        for broker in self._unfenced():
            if broker.id != without:
                self.state.heartbeats.touch_contact(broker.id, broker.epoch, self._clock.nanoseconds())

    def _heartbeat(self, broker: BrokerRegistration, *, want_shut_down: bool = False) -> BrokerHeartbeatReply:
        request = BrokerHeartbeatRequest(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            current_metadata_offset=self.state.next_offset - 1,
            want_shut_down=want_shut_down,
            cordoned_log_dirs=broker.cordoned_directories,
        )
        return self.run(lambda state: process_heartbeat(state, request))
