"""A small log with everything that histories depend on: transactions of each kind, ELRs, racks, lost disks, voters."""

from __future__ import annotations

from typing import Any, Final

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
    VoterEndpoint,
    VotersRecord,
)
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from tests.replay.made_logs import TIME, abort, begin, end, uuid_of

TOPIC, OTHER, THIRD = uuid_of(1), uuid_of(2), uuid_of(3)
DISKS: Final = {broker: (uuid_of(10 * broker), uuid_of(10 * broker + 1)) for broker in (1, 2, 3, 4)}
_VERSIONS: Final = {r.RegisterBrokerRecord: 4, r.BrokerRegistrationChangeRecord: 3, r.PartitionRecord: 2,
                    r.PartitionChangeRecord: 2}  # fmt: skip

SNAPSHOT_END: Final = 30
"""The first offset after a batch, where a snapshot of this log can end."""


def broker(number: int, incarnation: int = 0, **fields: Any) -> r.RegisterBrokerRecord:
    values: dict[str, Any] = {"rack": f"r{number % 2}", "log_dirs": DISKS[number], **fields}
    end_point = r.BrokerEndpoint(name="PLAINTEXT", host=f"h{number}", port=9092, security_protocol=0)
    inner = r.BrokerEndpoint(name="INNER", host=f"h{number}", port=9093, security_protocol=1)
    return r.RegisterBrokerRecord(
        broker_id=number, incarnation_id=uuid_of(100 + 10 * number + incarnation), broker_epoch=number + incarnation,
        end_points=(end_point, inner),
        features=(r.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),),
        **values,
    )  # fmt: skip


def changed(number: int, **fields: Any) -> r.BrokerRegistrationChangeRecord:
    return r.BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=number, **fields)


def controller(number: int, port: int) -> r.RegisterControllerRecord:
    end_point = r.ControllerEndpoint(name="CONTROLLER", host=f"c{number}", port=port, security_protocol=0)
    feature = r.ControllerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1)
    return r.RegisterControllerRecord(
        controller_id=number, incarnation_id=uuid_of(number), zk_migration_ready=False, end_points=(end_point,),
        features=(feature,),
    )  # fmt: skip


def placed(topic: Any, number: int, replicas: tuple[int, ...], **fields: Any) -> r.PartitionRecord:
    values: dict[str, Any] = {"isr": replicas, "leader": replicas[0], **fields}
    return r.PartitionRecord(
        topic_id=topic, partition_id=number, replicas=replicas, leader_epoch=0, partition_epoch=0,
        directories=tuple(DISKS[replica][0] for replica in replicas), **values,
    )  # fmt: skip


def moved(topic: Any, number: int, **fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(topic_id=topic, partition_id=number, **fields)


def config(kind: int, resource: str, name: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def voters(*ports: int) -> VotersRecord:
    return VotersRecord(
        voters=tuple(
            Voter(
                voter_id=3000 + number, voter_directory_id=uuid_of(number),
                endpoints=(VoterEndpoint(name="CONTROLLER", host="c", port=port),),
            )
            for number, port in enumerate(ports)
        )
    )  # fmt: skip


def quota(value: float, *, remove: bool = False) -> r.ClientQuotaRecord:
    entity = (
        r.EntityData(entity_type="user", entity_name="alice"),
        r.EntityData(entity_type="client-id", entity_name=None),
    )
    return r.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=value, remove=remove)


def acl(operation: int) -> r.AccessControlEntryRecord:
    return r.AccessControlEntryRecord(
        id=uuid_of(7), resource_type=2, resource_name="a", pattern_type=4, principal="User:alice", host="*",
        operation=operation, permission_type=3,
    )  # fmt: skip


def scram(iterations: int) -> r.UserScramCredentialRecord:
    return r.UserScramCredentialRecord(
        name="alice", mechanism=1, salt=bytes(iterations % 256), stored_key=b"k", server_key=b"s", iterations=iterations
    )


def token(expires: int) -> r.DelegationTokenRecord:
    return r.DelegationTokenRecord(
        owner="User:a", requester="User:a", renewers=(), issue_timestamp=1, max_timestamp=9,
        expiration_timestamp=expires, token_id="t",
    )  # fmt: skip


def feature(name: str, level: int) -> r.FeatureLevelRecord:
    return r.FeatureLevelRecord(name=name, feature_level=level)


def leader(number: int) -> LeaderChangeMessage:
    named = tuple(Voter(voter_id=voter) for voter in (3001, 3000))
    return LeaderChangeMessage(leader_id=number, voters=named, granting_voters=named[:1])


MIN_ISR: Final = "min.insync.replicas"
_GROUPS: Final[tuple[tuple[Message, ...], ...]] = (
    (leader(3000),),
    (KRaftVersionRecord(k_raft_version=1), voters(9093)),
    # What a batch has behind the end of a transaction is of its delta.
    (begin(), feature("metadata.version", 30), feature("eligible.leader.replicas.version", 1), end(),
     controller(3000, 9093)),
    (broker(1), broker(2), broker(3, rack=None), broker(4)),
    tuple(changed(number, fenced=-1) for number in (1, 2, 3, 4)),
    (config(4, "", MIN_ISR, "2"), config(4, "1", "log.cleaner.threads", "2"),
     config(4, "1", "sasl.jaas.config", "pass")),
    (r.TopicRecord(name="a", topic_id=TOPIC), placed(TOPIC, 0, (1, 2, 3)), placed(TOPIC, 1, (2, 3))),
    (r.TopicRecord(name="b", topic_id=OTHER), placed(OTHER, 0, (4, 1)), config(2, "b", MIN_ISR, " 1"),
     config(2, "b", "no.such", "1")),
    (quota(5.0), acl(3), scram(4096), token(5)),
    # Here a snapshot can end: what follows changes what it has.
    (moved(TOPIC, 0, isr=(1,), eligible_leader_replicas=(2,)), changed(4, fenced=1), quota(7.5), acl(4), token(7)),
    # A transaction over batches, with a leader that is elected from the ELR at its end.
    (r.NoOpRecord(), begin(), moved(TOPIC, 0, isr=(), leader=-1, eligible_leader_replicas=(1, 2), last_known_elr=(1,))),
    (moved(TOPIC, 0, isr=(2,), leader=2, eligible_leader_replicas=(1,), last_known_elr=()),
     r.TopicRecord(name="c", topic_id=THIRD)),
    (placed(THIRD, 0, (3, 4)), config(2, "a", MIN_ISR, "many"), scram(8192), end(), r.NoOpRecord()),
    (r.ClearElrRecord(topic_name="b"), moved(TOPIC, 1, replicas=(2, 3, 4), adding_replicas=(4,), directories=(
        DISKS[2][0], DISKS[3][0], DISKS[4][0]))),
    (moved(TOPIC, 1, replicas=(2, 3, 1), adding_replicas=(1,), directories=(DISKS[2][0], DISKS[3][0], DISKS[1][0])),
     controller(3000, 9094)),
    (moved(TOPIC, 1, replicas=(2, 3), adding_replicas=(), directories=(DISKS[2][0], DISKS[3][1])),
     moved(TOPIC, 0, isr=(2, 3))),
    (r.ClearElrRecord(topic_name=""), placed(OTHER, 1, (1, 2, 4)), config(2, "b", MIN_ISR, "3")),
    # Disks that are lost, a rack that is another, a broker that starts anew, and one that is gone.
    (changed(2, log_dirs=DISKS[2][1:], cordoned_log_dirs=DISKS[2][1:]), changed(3, in_controlled_shutdown=1)),
    (moved(OTHER, 1, isr=(2, 4), leader=2, leader_recovery_state=1), broker(1, 1, rack="r9", log_dirs=DISKS[1][:1])),
    (moved(OTHER, 1, leader_recovery_state=0), broker(2, 1, rack="r0", fenced=False),
     r.UnregisterBrokerRecord(broker_id=3)),
    # What a controller leaves that dies is never so; control records are, whatever is open.
    (begin(), r.RemoveTopicRecord(topic_id=TOPIC), quota(0.0, remove=True)),
    (leader(3001), voters(9095, 9096)),
    (abort(),),
    (r.RemoveTopicRecord(topic_id=OTHER), feature("eligible.leader.replicas.version", 0), quota(0.0, remove=True)),
    (r.RemoveAccessControlEntryRecord(id=uuid_of(7)), r.RemoveDelegationTokenRecord(token_id="t"),
     r.RemoveUserScramCredentialRecord(name="alice", mechanism=1), r.UnregisterControllerRecord(controller_id=3000)),
    (r.TopicRecord(name="b", topic_id=uuid_of(4)), r.RemoveTopicRecord(topic_id=uuid_of(4))),
    (voters(9095),),
    (begin(), moved(TOPIC, 0, isr=(1, 2, 3)), config(2, "a", MIN_ISR, "1")),
    (moved(TOPIC, 1, leader=3),),
)  # fmt: skip


def dense_log() -> list[RecordBatch]:
    """The log from offset 0; the transaction at its end is open. The time of every fifth batch is not known."""
    batches: list[RecordBatch] = []
    offset, epoch = 0, 0
    for number, group in enumerate(_GROUPS):
        epoch += isinstance(group[0], LeaderChangeMessage)
        time = -1 if number % 5 == 4 else TIME + 10 * offset
        if isinstance(group[0], LeaderChangeMessage | KRaftVersionRecord | VotersRecord):
            batches.append(RecordBatch.control_of(offset, epoch, time, [*group]))
        else:
            records = [ApiMessageAndVersion(message, _VERSIONS.get(type(message), 0)) for message in group]
            batches.append(RecordBatch.of(offset, epoch, time, records))
        offset = batches[-1].last_offset + 1
    return batches
