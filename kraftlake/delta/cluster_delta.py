"""Changes of broker and controller registrations."""

from __future__ import annotations

import attrs

from kraftlake.delta.with_changes import drop_missing, with_changes
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.records.metadata_records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from kraftlake.runtime.errors import ReplayError

_FENCING = {1: True, 0: None, -1: False}
_CONTROLLED_SHUTDOWN = {1: True, 0: None}


class ClusterDelta:
    """`changed_brokers` and `changed_controllers` have the new registration by id, None for a removed one."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.changed_brokers: dict[int, BrokerRegistration | None] = {}
        self.changed_controllers: dict[int, ControllerRegistration | None] = {}

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        """The current registration."""
        if broker_id in self.changed_brokers:
            return self.changed_brokers[broker_id]
        return self.image.brokers.get(broker_id)

    def finish_snapshot(self) -> None:
        """Remove the nodes that the snapshot lacks."""
        drop_missing(self.image.brokers, self.changed_brokers)
        drop_missing(self.image.controllers, self.changed_controllers)

    def replay_register_broker(self, record: RegisterBrokerRecord) -> None:
        """Register, replacing an earlier registration."""
        self.changed_brokers[record.broker_id] = BrokerRegistration.from_record(record)

    def replay_unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        """Remove the broker; an unknown broker is not an error, as in Kafka."""
        self.changed_brokers[record.broker_id] = None

    def replay_register_controller(self, record: RegisterControllerRecord) -> None:
        """Register, replacing an earlier registration."""
        self.changed_controllers[record.controller_id] = ControllerRegistration.from_record(record)

    def replay_unregister_controller(self, record: UnregisterControllerRecord) -> None:
        """Remove the controller."""
        self.changed_controllers[record.controller_id] = None

    def replay_fence_broker(self, record: FenceBrokerRecord) -> None:
        """Fence a broker; ReplayError if that incarnation of the broker is not registered."""
        self.changed_brokers[record.id] = attrs.evolve(self._registered(record.id, record.epoch), fenced=True)

    def replay_unfence_broker(self, record: UnfenceBrokerRecord) -> None:
        """Unfence a broker; ReplayError if that incarnation of the broker is not registered."""
        self.changed_brokers[record.id] = attrs.evolve(self._registered(record.id, record.epoch), fenced=False)

    def replay_broker_registration_change(self, record: BrokerRegistrationChangeRecord) -> None:
        """Change the fields that the record sets; fields with 0, no directories or null stay unchanged.

        ReplayError if that incarnation of the broker is not registered, or a number has no meaning.
        """
        broker = self._registered(record.broker_id, record.broker_epoch)
        if record.fenced not in _FENCING:
            raise ReplayError(f"fenced is {record.fenced}, which is none of 1, 0 and -1.")
        if record.in_controlled_shutdown not in _CONTROLLED_SHUTDOWN:
            raise ReplayError(f"inControlledShutdown is {record.in_controlled_shutdown}, which is neither 1 nor 0.")
        fenced = _FENCING[record.fenced]
        shutdown = _CONTROLLED_SHUTDOWN[record.in_controlled_shutdown]
        cordoned = record.cordoned_log_dirs
        changed = attrs.evolve(
            broker,
            fenced=broker.fenced if fenced is None else fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown if shutdown is None else shutdown,
            directories=record.log_dirs or broker.directories,
            cordoned_directories=broker.cordoned_directories if cordoned is None else cordoned,
        )
        if changed != broker:
            self.changed_brokers[record.broker_id] = changed

    def apply(self) -> ClusterImage:
        """The image after the changes; the same object if there are none."""
        image = self.image
        brokers = with_changes(image.brokers, self.changed_brokers)
        controllers = with_changes(image.controllers, self.changed_controllers)
        if brokers is image.brokers and controllers is image.controllers:
            return image
        return ClusterImage(brokers=brokers, controllers=controllers)

    def _registered(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self.broker(broker_id)
        if broker is None:
            raise ReplayError(f"broker {broker_id} is not registered.")
        if broker.epoch != epoch:
            raise ReplayError(f"broker {broker_id} is named with epoch {epoch}, but is registered with {broker.epoch}.")
        return broker
