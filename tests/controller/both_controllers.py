"""The same commands for a real Kafka 4.4 controller and for ours; the tests stand in for the brokers of both."""

from __future__ import annotations

from typing import Any

from kio.schema.allocate_producer_ids.v0 import request as producer_ids
from kio.schema.assign_replicas_to_dirs.v0 import request as dirs
from kio.schema.broker_heartbeat.v2 import request as beat
from kio.schema.broker_registration.v4 import request as registration
from kio.schema.controller_registration.v0 import request as joining
from kio.schema.unregister_broker.v0 import request as goodbye

from kraftlake.controller.cluster.brokers import unregister_broker
from kraftlake.controller.cluster.controllers import (
    ControllerRegistrationRequest,
    register_controller,
    unregister_controller,
)
from kraftlake.controller.cluster.producer_ids import allocate_producer_ids
from kraftlake.controller.replication.directories import assign_replicas_to_dirs
from kraftlake.records import metadata_records as r
from tests.controller.both_partitions import PartitionCommands
from tests.controller.both_settings import SettingCommands
from tests.controller.both_sides import CAUGHT_UP, wire_uuid
from tests.controller.controlled_cluster import ALL_FEATURES, directory, incarnation


class BothControllers(PartitionCommands, SettingCommands):
    """Each method is one command at both."""

    def register(
        self, broker: int, *, rack: str | None = None, process: int = 0, dirs: int = 1, clean: bool = False
    ) -> None:
        previous = [self._epoch(side, broker) if clean else -1 for side in (0, 1)]
        request = registration.BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=self.node.cluster_id,
            incarnation_id=wire_uuid(incarnation(broker, process)),
            listeners=(
                registration.Listener(name="PLAINTEXT", host="127.0.0.1", port=9092 + broker, security_protocol=0),
            ),
            features=tuple(
                registration.Feature(
                    name=f.name,
                    min_supported_version=f.min_supported_version,
                    max_supported_version=f.max_supported_version,
                )
                for f in ALL_FEATURES
            ),
            rack=rack,
            log_dirs=tuple(wire_uuid(directory(broker, number)) for number in range(dirs)),
            previous_broker_epoch=previous[0],
        )

        def ours() -> int:
            self.ours.register(broker, rack=rack, process=process, dirs=dirs, clean=previous[1])
            return 0

        self._step(f"register {broker}", lambda: self.rpc.ask(request).error_code, ours)

    def heartbeat(
        self, broker: int, *, offline: int | None = None, cordoned: bool | None = None, **wishes: bool
    ) -> None:
        offline_dirs = () if offline is None else (directory(broker, offline),)
        cordoned_dirs = None if cordoned is None else (directory(broker),) if cordoned else ()
        request = beat.BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=self._epoch(0, broker),
            current_metadata_offset=CAUGHT_UP,
            want_fence=wishes.get("want_fence", False),
            want_shut_down=wishes.get("want_shut_down", False),
            offline_log_dirs=tuple(map(wire_uuid, offline_dirs)),
            cordoned_log_dirs=None if cordoned_dirs is None else tuple(map(wire_uuid, cordoned_dirs)),
        )

        def theirs() -> Any:
            answer = self.rpc.ask(request)
            if answer.error_code:
                return int(answer.error_code)
            return [answer.is_caught_up, answer.is_fenced, answer.should_shut_down]

        def ours() -> Any:
            reply = self.ours.heartbeat(
                broker, offset=CAUGHT_UP, offline_log_dirs=offline_dirs, cordoned_log_dirs=cordoned_dirs, **wishes
            )
            return [reply.is_caught_up, reply.is_fenced, reply.should_shut_down]

        self._step(f"heartbeat {broker} {wishes or ''}", theirs, ours)

    def unregister(self, broker: int) -> None:
        request = goodbye.UnregisterBrokerRequest(broker_id=broker)

        def ours() -> int:
            self.ours.run(lambda state: unregister_broker(state, broker))
            return 0

        self._step(f"unregister {broker}", lambda: self.rpc.ask(request).error_code, ours)

    def register_controller(self, controller: int, *, process: int = 0) -> None:
        request = joining.ControllerRegistrationRequest(
            controller_id=controller,
            incarnation_id=wire_uuid(incarnation(controller, process)),
            zk_migration_ready=False,
            listeners=(joining.Listener(name="CONTROLLER", host="127.0.0.1", port=9093, security_protocol=0),),
            features=(joining.Feature(name="metadata.version", min_supported_version=7, max_supported_version=33),),
        )
        ours = ControllerRegistrationRequest(
            controller_id=controller,
            incarnation_id=incarnation(controller, process),
            listeners=(r.ControllerEndpoint(name="CONTROLLER", host="127.0.0.1", port=9093, security_protocol=0),),
            features=(r.ControllerFeature(name="metadata.version", min_supported_version=7, max_supported_version=33),),
        )
        self._step(
            f"register controller {controller}",
            lambda: int(self.rpc.ask(request).error_code),
            lambda: self.ours.run(lambda state: register_controller(state, ours)) or 0,
        )

    def unregister_controller(self, controller: int) -> None:
        """`controller` 0 stands for the active one: it has another id at both."""
        ids = (controller or self.node.node_id, controller or self.ours.config.node_id)
        self._step(
            f"unregister controller {controller}",
            lambda: self.rpc.unregister_controller(ids[0]),
            lambda: self.ours.run(lambda state: unregister_controller(state, ids[1])) or 0,
        )

    def allocate(self, broker: int, *, stale: bool = False) -> None:
        request = producer_ids.AllocateProducerIdsRequest(broker_id=broker, broker_epoch=self._epoch(0, broker) + stale)

        def theirs() -> Any:
            answer = self.rpc.ask(request)
            return int(answer.error_code) or [answer.producer_id_start, answer.producer_id_len]

        def ours() -> Any:
            epoch = self._epoch(1, broker) + stale
            block = self.ours.run(lambda state: allocate_producer_ids(state, broker, epoch))
            return [block.first, block.size]

        self._step(f"producer ids for {broker}", theirs, ours)

    def assign(self, broker: int, number: int, name: str, partition: int) -> None:
        place = dirs.TopicData(
            topic_id=wire_uuid(self._topic_id(0, name)), partitions=(dirs.PartitionData(partition_index=partition),)
        )
        request = dirs.AssignReplicasToDirsRequest(
            broker_id=broker,
            broker_epoch=self._epoch(0, broker),
            directories=(dirs.DirectoryData(id_=wire_uuid(directory(broker, number)), topics=(place,)),),
        )
        places = {directory(broker, number): [(self._topic_id(1, name), partition)]}

        def theirs() -> list[int]:
            answer = self.rpc.ask(request)
            return [int(p.error_code) for d in answer.directories for t in d.topics for p in t.partitions]

        def ours() -> list[int]:
            epoch = self._epoch(1, broker)
            answers = self.ours.run(lambda state: assign_replicas_to_dirs(state, broker, epoch, places))
            return [int(error) for error in answers.values()]

        self._step(f"assign {name}-{partition} of {broker} to {number}", theirs, ours)
