"""Random but valid histories of a cluster: records that a controller could write, in the versions it would use.

`histories()` gives lists of `ApiMessageAndVersion`. The first record sets metadata.version; what a level does not have
is not written at it, so every image on the way can be written back without loss. Ids and names come from small pools,
so that things are changed, deleted and created again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kraftlake.records import metadata_records as r
from kraftlake.records.metadata_version import ALL, MetadataVersion, from_feature_level
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

LOWEST_LEVEL, HIGHEST_LEVEL = 7, len(ALL)
BROKER_IDS = range(1, 6)
TOPIC_NAMES = ("foo", "bar", "föö", "__consumer_offsets", "a.b-c")
USERS = ("alice", "bob", "u\x1b[31m", "")
CONFIGS = (
    "retention.ms",
    "cleanup.policy",
    "interval.ms",
    "message.format.version",
    "sasl.jaas.config",
    "no.such.config",
)
MIGRATING = Uuid.ZERO

Draw = Callable[[st.SearchStrategy[Any]], Any]


def uuid_of(number: int) -> Uuid:
    """A uuid that tests can tell apart: uuid_of(1) and uuid_of(2) are Kafka's UNASSIGNED and LOST."""
    return Uuid(number.to_bytes(16, "big"))


class World:
    """What the records so far have made, as far as the next one needs it."""

    def __init__(self, draw: Draw, level: int, first_id: int) -> None:
        self.draw = draw
        self.level = level
        self.elr = False
        self.records: list[ApiMessageAndVersion] = []
        self.brokers: dict[int, int] = {}
        self.controllers: set[int] = set()
        self.topics: dict[Uuid, str] = {}
        self.partitions: dict[tuple[Uuid, int], tuple[int, ...]] = {}
        self.assigned: set[tuple[Uuid, int]] = set()
        self.acls: list[Uuid] = []
        self.next_id = first_id
        self.write(r.FeatureLevelRecord(name="metadata.version", feature_level=level))

    @property
    def version(self) -> MetadataVersion:
        return from_feature_level(self.level)

    def write(self, message: Message, version: int = 0) -> None:
        self.records.append(ApiMessageAndVersion(message, version))

    def one_of(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def new_id(self) -> Uuid:
        self.next_id += 1
        return uuid_of(self.next_id)

    # brokers and controllers

    def register_broker(self) -> None:
        broker = self.one_of(*BROKER_IDS)
        epoch = self.brokers[broker] = len(self.records)
        with_dirs, with_cordoned = self.level >= 17, self.level >= 30
        self.write(
            r.RegisterBrokerRecord(
                broker_id=broker,
                is_migrating_zk_broker=self.level >= 8 and self.one_of(False, False, True),
                incarnation_id=self.new_id(),
                broker_epoch=epoch,
                end_points=(
                    r.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092 + broker, security_protocol=0),
                    r.BrokerEndpoint(name="SASL", host="::1", port=65535, security_protocol=2),
                )[: self.one_of(1, 2)],
                features=(r.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=33),),
                rack=self.one_of(None, "", "rack-1"),
                fenced=self.one_of(True, False),
                in_controlled_shutdown=self.one_of(False, True),
                log_dirs=self.some_dirs() if with_dirs else (),
                cordoned_log_dirs=self.one_of(None, (), (uuid_of(201),)) if with_cordoned else None,
            ),
            self.version.register_broker_record_version,
        )

    def some_dirs(self) -> tuple[Uuid, ...]:
        return self.one_of((), (uuid_of(201),), (uuid_of(202), uuid_of(201)), (Uuid(b"\xff" * 16), uuid_of(203)))

    def change_broker(self) -> None:
        if self.brokers:
            broker = self.one_of(*sorted(self.brokers))
            with_dirs, with_cordoned = self.level >= 17, self.level >= 30
            self.write(
                r.BrokerRegistrationChangeRecord(
                    broker_id=broker,
                    broker_epoch=self.brokers[broker],
                    fenced=self.one_of(-1, 0, 1),
                    in_controlled_shutdown=self.one_of(0, 1),
                    log_dirs=self.some_dirs() if with_dirs else (),
                    cordoned_log_dirs=self.one_of(None, (), (uuid_of(202),)) if with_cordoned else None,
                ),
                self.version.broker_registration_change_record_version,
            )

    def fence_broker(self) -> None:
        if self.brokers:
            broker = self.one_of(*sorted(self.brokers))
            cls = self.one_of(r.FenceBrokerRecord, r.UnfenceBrokerRecord)
            self.write(cls(id=broker, epoch=self.brokers[broker]))

    def unregister_broker(self) -> None:
        if self.brokers:
            broker = self.one_of(*sorted(self.brokers))
            self.write(r.UnregisterBrokerRecord(broker_id=broker, broker_epoch=self.brokers.pop(broker)))

    def register_controller(self) -> None:
        if self.level >= 15:
            controller = self.one_of(3000, 3001)
            self.controllers.add(controller)
            self.write(
                r.RegisterControllerRecord(
                    controller_id=controller,
                    incarnation_id=self.new_id(),
                    zk_migration_ready=self.one_of(False, True),
                    end_points=(r.ControllerEndpoint(name="C", host="c", port=9093, security_protocol=3),),
                    features=(
                        r.ControllerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1),
                    ),
                )
            )

    def unregister_controller(self) -> None:
        if self.level >= 33 and self.controllers:
            controller = self.one_of(*sorted(self.controllers))
            self.controllers.discard(controller)
            self.write(r.UnregisterControllerRecord(controller_id=controller))

    # topics

    def create_topic(self) -> None:
        free = sorted(set(TOPIC_NAMES) - set(self.topics.values()))
        if free:
            name, topic_id = self.one_of(*free), self.new_id()
            self.topics[topic_id] = name
            self.write(r.TopicRecord(name=name, topic_id=topic_id))
            for partition in range(self.one_of(0, 1, 1, 3)):
                self.write_partition(topic_id, partition)

    def add_partition(self) -> None:
        if self.topics:
            topic_id = self.one_of(*sorted(self.topics))
            self.write_partition(topic_id, sum(of == topic_id for of, _ in self.partitions))

    def rewrite_partition(self) -> None:
        if self.partitions:
            self.write_partition(*self.one_of(*sorted(self.partitions)))

    def write_partition(self, topic_id: Uuid, partition: int) -> None:
        replicas = self.some_replicas()
        directories = self.directories_of(len(replicas)) if self.level >= 17 else ()
        self.note(topic_id, partition, replicas, directories)
        with_elr = self.elr
        self.write(
            r.PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas[:2],
                removing_replicas=self.one_of((), (), (5,)),
                adding_replicas=self.one_of((), (), replicas[:1]),
                leader=self.one_of(-1, *replicas),
                leader_recovery_state=self.one_of(0, 0, 1),
                leader_epoch=self.one_of(0, 7),
                partition_epoch=self.one_of(0, 9),
                directories=directories,
                eligible_leader_replicas=self.one_of(None, replicas[-1:]) if with_elr else None,
                last_known_elr=self.one_of(None, replicas[:1]) if with_elr else None,
            ),
            self.version.partition_record_version,
        )

    def some_replicas(self) -> tuple[int, ...]:
        return tuple(self.draw(st.permutations(BROKER_IDS))[: self.one_of(1, 2, 3)])

    def directories_of(self, replicas: int) -> tuple[Uuid, ...]:
        some = st.sampled_from((MIGRATING, uuid_of(1), uuid_of(2), uuid_of(201), uuid_of(202)))
        return self.one_of((), (MIGRATING,) * replicas, tuple(self.draw(some) for _ in range(replicas)))

    def note(self, topic_id: Uuid, partition: int, replicas: tuple[int, ...], directories: tuple[Uuid, ...]) -> None:
        self.partitions[topic_id, partition] = replicas
        if any(directory != MIGRATING for directory in directories):
            self.assigned.add((topic_id, partition))
        else:
            self.assigned.discard((topic_id, partition))

    def change_partition(self) -> None:
        if not self.partitions:
            return
        topic_id, partition = self.one_of(*sorted(self.partitions))
        old = self.partitions[topic_id, partition]
        replicas = self.one_of(None, None, old, old[::-1], self.some_replicas())
        new = old if replicas is None else replicas
        directories = None
        if self.level >= 17:
            directories = self.one_of(None, self.directories_of(len(new)))
            if directories is None and len(new) != len(old) and (topic_id, partition) in self.assigned:
                directories = (uuid_of(203),) * len(new)
        if directories is not None:
            self.note(topic_id, partition, new, directories)
        self.partitions[topic_id, partition] = new
        self.write(
            r.PartitionChangeRecord(
                partition_id=partition,
                topic_id=topic_id,
                isr=self.one_of(None, (), new[:1], new),
                leader=self.one_of(-2, -2, -1, *new),
                replicas=replicas,
                removing_replicas=self.one_of(None, (), (4,)),
                adding_replicas=self.one_of(None, (), (4,)),
                leader_recovery_state=self.one_of(-1, -1, 0, 1),
                directories=directories,
                eligible_leader_replicas=self.one_of(None, (), new[-1:]) if self.elr else None,
                last_known_elr=self.one_of(None, (), new[:1]) if self.elr else None,
            ),
            self.version.partition_change_record_version,
        )

    def clear_elr(self) -> None:
        if self.level >= 23:
            self.write(r.ClearElrRecord(topic_name=self.one_of("", *sorted(self.topics.values()))))

    def delete_topic(self) -> None:
        if self.topics:
            topic_id = self.one_of(*sorted(self.topics))
            del self.topics[topic_id]
            self.partitions = {key: value for key, value in self.partitions.items() if key[0] != topic_id}
            self.assigned = {key for key in self.assigned if key[0] != topic_id}
            self.write(r.RemoveTopicRecord(topic_id=topic_id))

    # the small parts

    def config(self) -> None:
        type_, name = self.one_of(
            *((2, topic) for topic in TOPIC_NAMES), (4, ""), (4, "1"), (8, "1"), (16, "m"), (32, "g")
        )
        value = self.one_of(None, "", "1", "ü")
        self.write(r.ConfigRecord(resource_type=type_, resource_name=name, name=self.one_of(*CONFIGS), value=value))

    def client_quota(self) -> None:
        entity = self.one_of(
            (("user", "alice"),),
            (("user", None),),
            (("client-id", "c"), ("user", "alice")),
            (("user", "alice"), ("client-id", None)),
            (("ip", "127.0.0.1"),),
        )
        self.write(
            r.ClientQuotaRecord(
                entity=tuple(r.EntityData(entity_type=type_, entity_name=name) for type_, name in entity),
                key=self.one_of("producer_byte_rate", "request_percentage"),
                value=self.one_of(0.0, 1.5, 1e9),
                remove=self.one_of(False, True),
            )
        )

    def producer_ids(self) -> None:
        self.write(r.ProducerIdsRecord(broker_id=1, broker_epoch=3, next_producer_id=self.one_of(0, 1000, 2**63 - 1)))

    def add_acl(self) -> None:
        acl_id = self.one_of(self.new_id(), *self.acls)
        self.acls.append(acl_id)
        self.write(
            r.AccessControlEntryRecord(
                id=acl_id,
                resource_type=self.one_of(2, 3, 4, 99),
                resource_name=self.one_of("*", "foo"),
                pattern_type=self.one_of(3, 4),
                principal=self.one_of("User:*", "User:alice"),
                host=self.one_of("*", "10.0.0.1"),
                operation=self.one_of(2, 3, 15, 16),
                permission_type=self.one_of(2, 3),
            )
        )

    def remove_acl(self) -> None:
        if self.acls:
            acl_id = self.one_of(*sorted(set(self.acls)))
            self.acls = [other for other in self.acls if other != acl_id]
            self.write(r.RemoveAccessControlEntryRecord(id=acl_id))

    def scram(self) -> None:
        if self.level >= 11:
            user, mechanism = self.one_of(*USERS), self.one_of(1, 2, 2, 3, -1)
            key = self.one_of(b"", b"k", b"\xff" * 32)
            self.write(
                self.one_of(
                    r.RemoveUserScramCredentialRecord(name=user, mechanism=mechanism),
                    r.UserScramCredentialRecord(
                        name=user, mechanism=mechanism, salt=b"s", stored_key=key, server_key=b"t", iterations=4096
                    ),
                )
            )

    def delegation_token(self) -> None:
        if self.level >= 14:
            token_id = self.one_of("t1", "t2")
            self.write(
                self.one_of(
                    r.RemoveDelegationTokenRecord(token_id=token_id),
                    r.DelegationTokenRecord(
                        owner="User:alice",
                        requester="User:a:b",
                        renewers=self.one_of((), ("User:bob", "User:")),
                        issue_timestamp=1,
                        max_timestamp=3,
                        expiration_timestamp=self.one_of(2, 3),
                        token_id=token_id,
                    ),
                )
            )

    def feature(self) -> None:
        name = self.one_of("group.version", "kraft.version", "x")
        self.write(r.FeatureLevelRecord(name=name, feature_level=self.one_of(0, 1, 2)))

    def switch_elr(self) -> None:
        if self.level >= 23:
            self.elr = not self.elr
            if not self.elr:
                self.write(r.ClearElrRecord(topic_name=""))
            self.write(r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=int(self.elr)))

    def upgrade(self) -> None:
        self.level = self.draw(st.integers(self.level, HIGHEST_LEVEL))
        self.write(r.FeatureLevelRecord(name="metadata.version", feature_level=self.level))

    def nothing(self) -> None:
        self.write(self.one_of(r.NoOpRecord(), r.ZkMigrationStateRecord(zk_migration_state=1)))


_STEPS = (
    World.register_broker, World.change_broker, World.fence_broker, World.unregister_broker,
    World.register_controller, World.unregister_controller,
    World.create_topic, World.create_topic, World.add_partition, World.rewrite_partition,
    World.change_partition, World.change_partition, World.change_partition, World.clear_elr, World.delete_topic,
    World.config, World.config, World.client_quota, World.producer_ids, World.add_acl, World.remove_acl,
    World.scram, World.scram, World.delegation_token, World.feature, World.switch_elr, World.upgrade, World.nothing,
)  # fmt: skip
_TOPIC_STEPS = (
    World.create_topic, World.create_topic, World.add_partition, World.rewrite_partition, World.change_partition,
    World.change_partition, World.change_partition, World.clear_elr, World.delete_topic, World.switch_elr,
)  # fmt: skip


@st.composite
def histories(
    draw: Draw,
    *,
    min_steps: int = 0,
    max_steps: int = 40,
    lowest_level: int = LOWEST_LEVEL,
    topics_only: bool = False,
    first_id: int = 1000,
) -> list[ApiMessageAndVersion]:
    """A valid history of `min_steps` to `max_steps` steps (some are several records, some none).

    Histories of different clusters take a `first_id` each, so that they share no topic id.
    """
    world = World(draw, draw(st.integers(lowest_level, HIGHEST_LEVEL)), first_id)
    steps = _TOPIC_STEPS if topics_only else _STEPS
    for _ in range(draw(st.integers(min_steps, max_steps))):
        draw(st.sampled_from(steps))(world)
    return world.records


@st.composite
def split_histories(draw: Draw, **options: Any) -> list[list[ApiMessageAndVersion]]:
    """A history cut into batches anywhere; empty batches occur."""
    records = draw(histories(**options))
    cuts = sorted(draw(st.lists(st.integers(0, len(records)), max_size=12)))
    return [records[start:end] for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True)]
