"""The state of one partition to restore: placed as at the offset, led by replicas that lack no record.

A restored leader must have all acknowledged records, whatever its leader and ISR are in the state at the offset:
followers truncate their logs to the leader's. Leader and ISR are therefore facts about the brokers' disks, taken from
the logs where these are shown, else from the newest image; the state at the offset decides only the set of replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kraftlake.image.topics.directory_id import MIGRATING, UNASSIGNED
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.records.uuid import Uuid
from kraftlake.replay.restore.broker_facts import FoundReplica

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
