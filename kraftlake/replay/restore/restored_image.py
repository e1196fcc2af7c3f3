"""The image to restore: the cluster at an offset, with the changes that the brokers' present state requires.

A partition is placed as at the offset, and led by replicas that lack no record: a restored leader must have all
acknowledged records, whatever its leader and ISR are in the state at the offset, as followers truncate their logs to
the leader's. Leader and ISR are therefore facts about the brokers' disks, taken from the logs where these are shown,
else from the newest image; the state at the offset decides only the set of replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import attrs
from rpds import HashTrieMap

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.producer_ids_image import ProducerIdsImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.directory_id import MIGRATING, UNASSIGNED
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.uuid import Uuid
from kraftlake.replay.restore.broker_facts import BrokerFacts, FoundReplica
from kraftlake.runtime.errors import UnwritableMetadataError

CRASHED: Final = -1
"""The broker epoch that a broker states when it registers after an unclean shutdown."""


@attrs.frozen(kw_only=True)
class RestoredPartitions:
    """Names of partitions that were not restored as they were at the offset, by the kind of deviation.

    `moved` come back as reassignments from the replicas that have their records; `lacking` had in-sync replicas
    whose logs lack records; `unseen` have in-sync replicas whose logs were not shown, though others' were; `missing`
    have no log in any directory, though all directories of an in-sync replica were shown; `leaderless` have no replica
    that is known to have all records.
    """

    moved: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    leaderless: tuple[str, ...] = ()


def restored_image(
    at: MetadataImage,
    newest: MetadataImage,
    facts: BrokerFacts,
    *,
    provenance: MetadataProvenance,
    voters: Collection[int],
    margin: int,
) -> tuple[MetadataImage, RestoredPartitions]:
    """The image to restore from the one `at` an offset, where `newest` is the newest known one.

    Brokers are fenced until they register anew, controllers other than `voters` are left out, partitions are those of
    `restored_partition`, the next block of producer ids begins `margin` above the highest that is known. Everything
    else is unchanged. Raises UnwritableMetadataError for an epoch that exceeds Kafka's 32 bits.
    """
    topics, special = _topics(at.topics, newest.topics, facts, margin=margin)
    controllers = HashTrieMap({id_: one for id_, one in at.cluster.controllers.items() if id_ in voters})
    next_producer_id = max(0, at.producer_ids.next_producer_id, newest.producer_ids.next_producer_id) + margin
    image = attrs.evolve(
        at,
        provenance=provenance,
        cluster=ClusterImage(brokers=_brokers(at, newest, facts), controllers=controllers),
        topics=topics,
        producer_ids=ProducerIdsImage(next_producer_id=next_producer_id),
    )
    return image, special


def _brokers(at: MetadataImage, newest: MetadataImage, facts: BrokerFacts) -> HashTrieMap[int, BrokerRegistration]:
    """The registrations at the offset, and those of brokers that came later, fenced.

    A controller assumes that a registering broker's disk lost records unless the broker states the epoch of its
    registration, and then removes the broker from ISRs (KIP-966). The broker states the epoch of its clean shutdown,
    else none; where its directories were given, that epoch is known, and its logs were examined.
    """
    later = {
        # features of the newest metadata.version may be more than the one at the offset can express
        id_: attrs.evolve(broker, directories=(), cordoned_directories=None)
        for id_, broker in newest.cluster.brokers.items()
    }
    restored = {}
    for id_, broker in (later | dict(at.cluster.brokers.items())).items():
        known = newest.cluster.brokers.get(id_, broker)
        epoch = known.epoch
        if id_ in facts.clean_epochs:
            clean = facts.clean_epochs[id_]
            epoch = CRASHED if clean is None else clean
        restored[id_] = attrs.evolve(broker, epoch=epoch, fenced=True, in_controlled_shutdown=False)
    return HashTrieMap(restored)


def _topics(
    at: TopicsImage, newest: TopicsImage, facts: BrokerFacts, *, margin: int
) -> tuple[TopicsImage, RestoredPartitions]:
    topics: dict[Uuid, TopicImage] = {}
    special: dict[str, list[str]] = {field.name: [] for field in attrs.fields(RestoredPartitions)}
    for topic_id, topic in at.topics_by_id().items():
        known = newest.get_topic_by_id(topic_id)
        topics[topic_id] = _topic(topic, known, facts, special, margin=margin)
    named = {kind: tuple(sorted(names)) for kind, names in special.items()}
    return TopicsImage.EMPTY.changed({}, topics), RestoredPartitions(**named)


def _topic(
    topic: TopicImage,
    known: TopicImage | None,
    facts: BrokerFacts,
    special: Mapping[str, list[str]],
    *,
    margin: int,
) -> TopicImage:
    partitions = {}
    for number, at in topic.partitions.items():
        name = f"{topic.name}-{number}"
        newest = None if known is None else known.partitions.get(number)
        found = facts.of_partition(topic.id, number)
        in_sync = in_sync_replicas(newest or at, found, facts.complete)
        made = restored_partition(at, newest, found, in_sync, margin=margin)
        if max(made.leader_epoch, made.partition_epoch) > MAX_EPOCH:
            raise UnwritableMetadataError(
                f"The epochs of {name} would exceed Kafka's 32 bits with {margin:,} added: give a smaller --margin."
            )
        partitions[number] = made
        for kind, is_so in (
            ("moved", bool(made.isr) and not set(made.isr) & set(at.replicas)),
            ("lacking", bool(in_sync.lacking)),
            ("unseen", bool(in_sync.unseen)),
            ("missing", bool(in_sync.missing)),
            ("leaderless", not made.isr),
        ):
            if is_so:
                special[kind].append(name)
    return TopicImage(name=topic.name, id=topic.id, partitions=HashTrieMap(partitions))


MAX_EPOCH: Final = 2**31 - 1


@attrs.frozen(kw_only=True)
class RestoredIsr:
    """The replicas that may lead a partition.

    `lacking` are in-sync replicas by the newest image whose logs lack records; `unseen` are those whose logs were not
    shown although others' were; `missing` are those of which no log was found although all their directories were
    shown, where no replica has one.
    """

    brokers: tuple[int, ...]
    lacking: tuple[int, ...] = ()
    unseen: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()


def in_sync_replicas(
    known: PartitionRegistration, found: Mapping[int, FoundReplica], complete: frozenset[int]
) -> RestoredIsr:
    """The replicas that certainly have every acknowledged record of a partition.

    `known` is its newest known state, `found` its replicas in the directories given, `complete` the brokers whose
    directories were all given. The log of the highest rank has every acknowledged record, as that of the last leader or
    of a follower that has a prefix of it; a log with the same end is the same log. An in-sync replica whose log was not
    shown is trusted as long as no log has a later leader epoch than the newest image; next to such a replica, only
    in-sync replicas are trusted.
    """
    trusted = known.isr or known.elr
    if not found:
        return RestoredIsr(brokers=trusted, missing=tuple(one for one in trusted if one in complete))
    best = max((replica.log for replica in found.values()), key=lambda log: log.rank)
    furthest = tuple(broker for broker, replica in sorted(found.items()) if replica.log.position == best.position)
    unseen = tuple(broker for broker in trusted if broker not in found and broker not in complete)
    lacking = tuple(broker for broker in trusted if broker not in furthest and broker not in unseen)
    brokers = furthest
    if unseen and best.highest_epoch <= known.leader_epoch:
        brokers = (*(broker for broker in furthest if broker in trusted), *unseen)
    return RestoredIsr(brokers=brokers, lacking=lacking, unseen=unseen)


def restored_partition(
    at: PartitionRegistration,
    newest: PartitionRegistration | None,
    found: Mapping[int, FoundReplica],
    in_sync: RestoredIsr,
    *,
    margin: int,
) -> PartitionRegistration:
    """The state to restore of a partition that was `at` at the offset; `newest` is its newest known state, if any.

    The partition has no leader, as in Kafka when all its brokers are gone: the first broker of the ISR that returns is
    elected, under the next leader epoch. Leader epoch and partition epoch are `margin` above the highest that either
    state or a log shows. Where none of the replicas at the offset is in sync, the partition has moved since: it is
    restored as being moved back, a reassignment under way from the replicas that have its records.
    """
    replicas, adding, removing = at.replicas, at.adding_replicas, at.removing_replicas
    isr = tuple(broker for broker in replicas if broker in in_sync.brokers)
    if in_sync.brokers and not isr:
        isr = removing = in_sync.brokers
        adding = tuple(broker for broker in replicas if broker not in at.removing_replicas)
        replicas = (*adding, *removing)
    states = [at] if newest is None else [at, newest]
    logs = [replica.log.highest_epoch for replica in found.values()]
    without_isr = () if isr else states[-1].last_known_elr
    return attrs.evolve(
        at,
        replicas=replicas,
        directories=_directories(replicas, at, newest, found),
        isr=isr,
        adding_replicas=adding,
        removing_replicas=removing,
        elr=(),
        last_known_elr=tuple(broker for broker in without_isr if broker in replicas),
        leader=NO_LEADER,
        leader_recovery_state=states[-1].leader_recovery_state,
        leader_epoch=max((*(state.leader_epoch for state in states), *logs)) + margin,
        partition_epoch=max(state.partition_epoch for state in states) + margin,
    )


def _directories(
    replicas: Iterable[int],
    at: PartitionRegistration,
    newest: PartitionRegistration | None,
    found: Mapping[int, FoundReplica],
) -> tuple[Uuid, ...]:
    """The directory of each replica: of its log where found, else by the states, the newest first.

    A replica whose directory is not one of its broker's is offline to Kafka. Where the state at the offset has no
    directories, its metadata.version may have none.
    """
    if at.all_migrating:
        return (MIGRATING,) * len(tuple(replicas))
    directories = []
    for broker in replicas:
        known = (
            found[broker].directory_id if broker in found else None,
            None if newest is None else newest.directory(broker),
            at.directory(broker),
        )
        directories.append(next((one for one in known if one not in (None, MIGRATING)), None) or UNASSIGNED)
    return tuple(directories)
