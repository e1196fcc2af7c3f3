"""The same commands at a real Kafka 4.4 controller and at ours: brokers are stood in for, in both by the same words."""

from __future__ import annotations

import datetime
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from kio.schema.allocate_producer_ids.v0 import request as producer_ids
from kio.schema.alter_client_quotas.v1 import request as quotas
from kio.schema.alter_partition.v3 import request as isr
from kio.schema.alter_partition_reassignments.v1 import request as moves
from kio.schema.alter_user_scram_credentials.v0 import request as scram_rpc
from kio.schema.assign_replicas_to_dirs.v0 import request as dirs
from kio.schema.broker_heartbeat.v2 import request as beat
from kio.schema.broker_registration.v4 import request as registration
from kio.schema.create_acls.v3 import request as new_acls
from kio.schema.create_partitions.v3 import request as growth
from kio.schema.create_topics.v7 import request as new_topics
from kio.schema.delete_acls.v3 import request as old_acls
from kio.schema.delete_topics.v6 import request as old_topics
from kio.schema.elect_leaders.v2 import request as elections_rpc
from kio.schema.incremental_alter_configs.v1 import request as configs_rpc
from kio.schema.unregister_broker.v0 import request as goodbye
from kio.schema.update_features.v1 import request as features_rpc

import kraftlake
from kraftlake.controller.acls import AclFilter, create_acls, delete_acls
from kraftlake.controller.alter_partition import IsrChange, alter_partition
from kraftlake.controller.brokers import unregister_broker
from kraftlake.controller.client_quotas import QuotaAlteration, alter_client_quotas
from kraftlake.controller.configs import ConfigOperation, OpType, incremental_alter_configs
from kraftlake.controller.directories import assign_replicas_to_dirs
from kraftlake.controller.elections import ElectionType, elect_leaders
from kraftlake.controller.errors import ControllerApiError, Errors
from kraftlake.controller.features import FeatureUpdate, UpgradeType, update_features
from kraftlake.controller.producer_ids import allocate_producer_ids
from kraftlake.controller.reassignments import alter_partition_reassignments
from kraftlake.controller.scram import ScramDeletion, ScramUpsertion, alter_user_scram_credentials
from kraftlake.controller.topics import CreatableTopic, NewPartitions, create_partitions, create_topics, delete_topics
from kraftlake.image import ConfigResource, StandardAcl
from kraftlake.records import metadata_records as r
from kraftlake.records.json_form import to_json
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from tests.controller.cluster import ALL_FEATURES, ControlledCluster, directory, incarnation
from tests.controller.kafka_rpc import KafkaRpc
from tests.kafka_node import KafkaNode

MINUTE = datetime.timedelta(minutes=1)
CAUGHT_UP = 1 << 40
_BACKGROUND = (r.NoOpRecord, r.RegisterControllerRecord)


def _uuid(value: Uuid) -> uuid.UUID:
    return uuid.UUID(bytes=bytes(value))


@attrs.define
class Difference:
    """Where the two have not done the same."""

    step: str
    theirs: Any
    ours: Any


class BothControllers:
    """Each method is one command at both; `differences` are what was not equal, `steps` what was tried."""

    def __init__(self, node: KafkaNode) -> None:
        self.node = node
        self.rpc = KafkaRpc(node.controller)
        self.ours = ControlledCluster(
            broker_session_timeout_ms=600_000,
            static_configs={"log.index.size.max.bytes": "65536"},  # as `kafka_node` has it
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
        while self.rpc.ask(goodbye.UnregisterBrokerRequest(broker_id=999)).error_code == Errors.NOT_CONTROLLER:
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
        return [message for message in messages if not isinstance(message, _BACKGROUND)]

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
            elif isinstance(message, r.RegisterBrokerRecord):
                epochs.setdefault(message.broker_epoch, len(epochs))
        lines = []
        for message in messages:
            assert message.VERSIONS.high is not None
            form = to_json(message, message.VERSIONS.high)
            for key, value in form.items():
                if isinstance(value, str) and value in names:
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

    def register(
        self, broker: int, *, rack: str | None = None, process: int = 0, dirs: int = 1, clean: bool = False
    ) -> None:
        previous = [self._epoch(side, broker) if clean else -1 for side in (0, 1)]
        request = registration.BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=self.node.cluster_id,
            incarnation_id=_uuid(incarnation(broker, process)),
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
            log_dirs=tuple(_uuid(directory(broker, number)) for number in range(dirs)),
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
            offline_log_dirs=tuple(map(_uuid, offline_dirs)),
            cordoned_log_dirs=None if cordoned_dirs is None else tuple(map(_uuid, cordoned_dirs)),
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

    def create(
        self, name: str, *partitions: Sequence[int], configs: Mapping[str, str | None] | None = None, **counts: int
    ) -> None:
        count, factor = counts.get("count", -1), counts.get("factor", -1)
        request = new_topics.CreateTopicsRequest(
            topics=(
                new_topics.CreatableTopic(
                    name=name,
                    num_partitions=count,
                    replication_factor=factor,
                    assignments=tuple(
                        new_topics.CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(replicas))
                        for number, replicas in enumerate(partitions)
                    ),
                    configs=tuple(
                        new_topics.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
                    ),
                ),
            ),
            timeout=MINUTE,
        )
        topic = CreatableTopic(
            name=name,
            num_partitions=count,
            replication_factor=factor,
            assignments=list(enumerate(partitions)),
            configs=configs or {},
        )

        def theirs() -> Any:
            (answer,) = self.rpc.ask(request).topics
            if answer.error_code:
                return int(answer.error_code)
            shown = {config.name: config.value for config in answer.configs or ()}
            return [answer.num_partitions, answer.replication_factor, shown]

        def ours() -> Any:
            answer = self.ours.run(lambda state: create_topics(state, [topic]))[name]
            if answer.error.is_failure:
                return int(answer.error.error)
            return [answer.num_partitions, answer.replication_factor, dict(answer.configs)]

        self._step(f"create {name}", theirs, ours)

    def delete(self, name: str) -> None:
        state = old_topics.DeleteTopicState(name=None, topic_id=_uuid(self._topic_id(0, name)))
        request = old_topics.DeleteTopicsRequest(topics=(state,), timeout=MINUTE)
        topic_id = self._topic_id(1, name)
        self._step(
            f"delete {name}",
            lambda: [int(answer.error_code) for answer in self.rpc.ask(request).responses],
            lambda: [int(e.error) for e in self.ours.run(lambda state: delete_topics(state, [topic_id])).values()],
        )

    def grow(self, name: str, count: int, *assignments: Sequence[int]) -> None:
        chosen = tuple(growth.CreatePartitionsAssignment(broker_ids=tuple(replicas)) for replicas in assignments)
        topic = growth.CreatePartitionsTopic(name=name, count=count, assignments=chosen or None)
        request = growth.CreatePartitionsRequest(topics=(topic,), timeout=MINUTE, validate_only=False)
        more = NewPartitions(name=name, count=count, assignments=assignments or None)
        self._step(
            f"grow {name} {count}",
            lambda: [int(answer.error_code) for answer in self.rpc.ask(request).results],
            lambda: [int(e.error) for e in self.ours.run(lambda state: create_partitions(state, [more])).values()],
        )

    def alter_isr(self, name: str, leader: int, *replicas: int, number: int = 0, **changes: int) -> None:
        topic = self.ours.image.topics.get_topic(name)
        assert topic is not None
        partition = topic.partitions[number]
        leader_epoch = partition.leader_epoch + changes.get("leader_epoch", 0)
        partition_epoch = partition.partition_epoch + changes.get("partition_epoch", 0)
        states = tuple(isr.BrokerState(broker_id=replica, broker_epoch=self._epoch(0, replica)) for replica in replicas)
        data = isr.PartitionData(
            partition_index=number,
            leader_epoch=leader_epoch,
            new_isr_with_epochs=states,
            leader_recovery_state=changes.get("recovery", 0),
            partition_epoch=partition_epoch,
        )
        request = isr.AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=self._epoch(0, leader),
            topics=(isr.TopicData(topic_id=_uuid(self._topic_id(0, name)), partitions=(data,)),),
        )
        change = IsrChange(
            topic_id=topic.id,
            partition_id=number,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            new_isr=[(replica, self._epoch(1, replica)) for replica in replicas],
            leader_recovery_state=changes.get("recovery", 0),
        )

        def theirs() -> Any:
            answer = self.rpc.ask(request)
            if answer.error_code:
                return int(answer.error_code)
            ((one,),) = [topic.partitions for topic in answer.topics]
            return int(one.error_code) or [one.leader_id, list(one.isr), one.leader_epoch, one.partition_epoch]

        def ours() -> Any:
            (one,) = self.ours.run(lambda state: alter_partition(state, leader, self._epoch(1, leader), [change]))
            after = one.partition
            return int(one.error) or (
                after and [after.leader, list(after.isr), after.leader_epoch, after.partition_epoch]
            )

        self._step(f"isr {name}-{number} {replicas} {changes or ''}", theirs, ours)

    def move(self, name: str, replicas: Sequence[int] | None, number: int = 0, *, any_factor: bool = True) -> None:
        wanted = None if replicas is None else tuple(replicas)
        partition = moves.ReassignablePartition(partition_index=number, replicas=wanted)
        request = moves.AlterPartitionReassignmentsRequest(
            timeout=MINUTE,
            allow_replication_factor_change=any_factor,
            topics=(moves.ReassignableTopic(name=name, partitions=(partition,)),),
        )

        def theirs() -> list[int]:
            return [int(p.error_code) for topic in self.rpc.ask(request).responses for p in topic.partitions]

        def ours() -> list[int]:
            answers = self.ours.run(
                lambda state: alter_partition_reassignments(
                    state, [((name, number), wanted)], allow_replication_factor_change=any_factor
                )
            )
            return [int(error.error) for error in answers.values()]

        self._step(f"move {name}-{number} {replicas}", theirs, ours)

    def elect(self, kind: ElectionType, *partitions: tuple[str, int]) -> None:
        named = tuple(elections_rpc.TopicPartitions(topic=name, partitions=(number,)) for name, number in partitions)
        request = elections_rpc.ElectLeadersRequest(
            election_type=kind.value, topic_partitions=named or None, timeout=MINUTE
        )

        def theirs() -> Any:
            answers = self.rpc.ask(request).replica_election_results
            return sorted((t.topic, p.partition_id, int(p.error_code)) for t in answers for p in t.partition_result)

        def ours() -> Any:
            answers = self.ours.run(lambda state: elect_leaders(state, kind, list(partitions) or None))
            return sorted((name, number, int(error.error)) for (name, number), error in answers.items())

        self._step(f"elect {kind.name} {partitions}", theirs, ours)

    def assign(self, broker: int, number: int, name: str, partition: int) -> None:
        place = dirs.TopicData(
            topic_id=_uuid(self._topic_id(0, name)), partitions=(dirs.PartitionData(partition_index=partition),)
        )
        request = dirs.AssignReplicasToDirsRequest(
            broker_id=broker,
            broker_epoch=self._epoch(0, broker),
            directories=(dirs.DirectoryData(id_=_uuid(directory(broker, number)), topics=(place,)),),
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

    def configure(self, kind: int, resource: str, name: str, op: OpType, value: str | None = None) -> None:
        config = configs_rpc.AlterableConfig(name=name, config_operation=op.value, value=value)
        request = configs_rpc.IncrementalAlterConfigsRequest(
            resources=(
                configs_rpc.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=(config,)),
            ),
            validate_only=False,
        )
        changes = {ConfigResource(kind, resource): {name: ConfigOperation(op, value)}}
        self._step(
            f"config {kind}:{resource} {op.name} {name}={value}",
            lambda: [int(answer.error_code) for answer in self.rpc.ask(request).responses],
            lambda: [
                int(error.error)
                for error in self.ours.run(
                    lambda state: incremental_alter_configs(state, changes, forwarded=False)
                ).values()
            ],
        )

    def quota(self, entity: Mapping[str, str | None], **ops: float | None) -> None:
        entry = quotas.EntryData(
            entity=tuple(quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
            ops=tuple(quotas.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops.items()),
        )
        request = quotas.AlterClientQuotasRequest(entries=(entry,), validate_only=False)
        alteration = QuotaAlteration(entity=tuple(entity.items()), ops=list(ops.items()))
        self._step(
            f"quota {entity} {ops}",
            lambda: [int(answer.error_code) for answer in self.rpc.ask(request).entries],
            lambda: [
                int(error.error)
                for error in self.ours.run(lambda state: alter_client_quotas(state, [alteration])).values()
            ],
        )

    def add_acl(self, acl: StandardAcl) -> None:
        creation = new_acls.AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        request = new_acls.CreateAclsRequest(creations=(creation,))
        self._step(
            f"add {acl}",
            lambda: [int(answer.error_code) for answer in self.rpc.ask(request).results],
            lambda: [int(error.error) for error in self.ours.run(lambda state: create_acls(state, [acl]))],
        )

    def remove_acls(self, wanted: AclFilter) -> None:
        filter_ = old_acls.DeleteAclsFilter(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission_type,
        )
        request = old_acls.DeleteAclsRequest(filters=(filter_,))

        def theirs() -> Any:
            return [(int(a.error_code), len(a.matching_acls)) for a in self.rpc.ask(request).filter_results]

        def ours() -> Any:
            answers = self.ours.run(lambda state: delete_acls(state, [wanted]))
            return [(int(answer.error.error), len(answer.acls)) for answer in answers]

        self._step(f"remove {wanted}", theirs, ours)

    def scram(self, *changes: ScramUpsertion | ScramDeletion) -> None:
        upsertions = [change for change in changes if isinstance(change, ScramUpsertion)]
        deletions = [change for change in changes if isinstance(change, ScramDeletion)]
        request = scram_rpc.AlterUserScramCredentialsRequest(
            deletions=tuple(scram_rpc.ScramCredentialDeletion(name=d.name, mechanism=d.mechanism) for d in deletions),
            upsertions=tuple(
                scram_rpc.ScramCredentialUpsertion(
                    name=u.name, mechanism=u.mechanism, iterations=u.iterations, salt=u.salt,
                    salted_password=u.salted_password,
                )
                for u in upsertions
            ),
        )  # fmt: skip
        self._step(
            f"scram {changes}",
            lambda: sorted(int(answer.error_code) for answer in self.rpc.ask(request).results),
            lambda: sorted(
                int(error.error)
                for error in self.ours.run(
                    lambda state: alter_user_scram_credentials(state, deletions, upsertions)
                ).values()
            ),
        )

    def feature(self, kind: UpgradeType = UpgradeType.UPGRADE, **levels: int) -> None:
        named = {name.replace("_", "."): level for name, level in levels.items()}
        request = features_rpc.UpdateFeaturesRequest(
            timeout=MINUTE,
            feature_updates=tuple(
                features_rpc.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind.value)
                for name, level in named.items()
            ),
        )
        updates = {name: FeatureUpdate(level, kind) for name, level in named.items()}
        self._step(
            f"features {named} {kind.name}",
            lambda: int(self.rpc.ask(request).error_code),
            lambda: int(self.ours.run(lambda state: update_features(state, updates)).error),
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
