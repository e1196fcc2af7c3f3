"""The facts in the log directories of brokers: their replicas, and the logs that go furthest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.node.broker_directory import BrokerDirectory, ReplicaLog
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import UsageError

TopicPartition = tuple[Uuid, int]
"""A partition: the id of its topic, and its number."""


@attrs.frozen(kw_only=True)
class FoundReplica:
    """A replica's log, and the id of the log directory that holds it."""

    log: ReplicaLog
    directory_id: Uuid | None


@attrs.frozen(kw_only=True)
class BrokerFacts:
    """The log directories that were given, by broker and by partition.

    `complete` are the brokers whose registered log directories were all given, as far as registrations show: replicas
    that are not in them do not exist on these brokers. `clean_epochs` has the broker epoch of each given broker's
    orderly shutdown, None for a broker without one.
    """

    directories: tuple[BrokerDirectory, ...] = ()
    complete: frozenset[int] = frozenset()
    clean_epochs: Mapping[int, int | None] = attrs.field(factory=dict)
    replicas: Mapping[TopicPartition, Mapping[int, FoundReplica]] = attrs.field(factory=dict, repr=False)

    def of_partition(self, topic_id: Uuid, partition: int) -> Mapping[int, FoundReplica]:
        """The replicas of a partition that were found, by broker."""
        return self.replicas.get((topic_id, partition), {})


def broker_facts(directories: Sequence[BrokerDirectory], newest: MetadataImage) -> BrokerFacts:
    """Combine the directories; `newest` has the registrations with the directories of each broker.

    Raises UsageError for a directory that is given twice, and for a partition that two directories of a broker hold.
    """
    replicas: dict[TopicPartition, dict[int, FoundReplica]] = {}
    found: dict[int, list[BrokerDirectory]] = {}
    for directory in directories:
        others = found.setdefault(directory.node_id, [])
        if any(other.path.resolve() == directory.path.resolve() for other in others):
            raise UsageError(f"{directory.path} is given twice: give each log directory once.")
        others.append(directory)
        for log in directory.replicas:
            of_partition = replicas.setdefault((log.topic_id, log.partition), {})
            if directory.node_id in of_partition:
                raise UsageError(
                    f"{directory.path} holds {log.name} of broker {directory.node_id}, and another directory given "
                    "does, too: give the directories as they are now."
                )
            of_partition[directory.node_id] = FoundReplica(log=log, directory_id=directory.directory_id)
    return BrokerFacts(
        directories=tuple(directories),
        complete=frozenset(id_ for id_, given in found.items() if _are_all(id_, given, newest)),
        clean_epochs={id_: _clean_epoch(given) for id_, given in found.items()},
        replicas=replicas,
    )


def _are_all(broker: int, given: Iterable[BrokerDirectory], newest: MetadataImage) -> bool:
    registration = newest.cluster.brokers.get(broker)
    return registration is None or set(registration.directories) <= {one.directory_id for one in given}


def _clean_epoch(given: Iterable[BrokerDirectory]) -> int | None:
    """The broker epoch of an orderly shutdown; a broker writes one into each log directory, Kafka takes the highest."""
    return max((one.clean_epoch for one in given if one.clean_epoch is not None), default=None)
