"""The states of the broker and of the log directory of a replica, and the remedies that bring such replicas back."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from kraftlake.diagnosis.doctor.help import Help
from kraftlake.diagnosis.leadership import DIRECTORY_FAILED, REMOVED, broker_words
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.runtime.words import counted


class ReplicaUse(enum.Enum):
    """Whether a replica can be used, and otherwise its fault; the first that applies."""

    NOT_REGISTERED = "not registered"
    NO_DIRECTORY = DIRECTORY_FAILED
    REPLACED = "made anew without its records"
    REMOVED = REMOVED
    FENCED = "fenced"
    SHUTTING_DOWN = "shutting down"
    ACTIVE = "active"

    @classmethod
    def of(cls, image: MetadataImage, partition: PartitionRegistration, broker: int) -> ReplicaUse:
        """The state of the replica of a partition on a broker; REPLACED and REMOVED are for the caller to know."""
        registration = image.cluster.brokers.get(broker)
        if registration is None:
            return cls.NOT_REGISTERED
        directory = partition.directory(broker)
        if directory is not None and not registration.has_online_dir(directory):
            return cls.NO_DIRECTORY
        if registration.fenced:
            return cls.FENCED
        return cls.SHUTTING_DOWN if registration.in_controlled_shutdown else cls.ACTIVE

    @property
    def is_lost(self) -> bool:
        """Whether starting the broker does not restore the replica: it, the broker or its disk has gone."""
        return self in (
            ReplicaUse.NOT_REGISTERED, ReplicaUse.NO_DIRECTORY, ReplicaUse.REPLACED, ReplicaUse.REMOVED
        )  # fmt: skip


def may_lead(partition: PartitionRegistration) -> tuple[int, ...]:
    """The brokers that may lead a partition without a loss of records: in sync, eligible, or the last known leader."""
    return (*partition.isr, *partition.elr) or partition.last_known_elr


def waits_for(partition: PartitionRegistration) -> list[int]:
    """The replicas of a reassignment that are not in sync yet."""
    return [broker for broker in partition.adding_replicas if broker not in partition.isr]


def states_of(image: MetadataImage, partition: PartitionRegistration, brokers: Iterable[int]) -> dict[int, ReplicaUse]:
    """The states of the replicas of a partition on some brokers."""
    return {broker: ReplicaUse.of(image, partition, broker) for broker in brokers}


def state_words(states: Mapping[int, ReplicaUse]) -> str:
    """`1 (fenced), 2`: brokers with the states of their replicas, except ACTIVE."""
    return ", ".join(
        f"{broker}" if state is ReplicaUse.ACTIVE else f"{broker} ({state.value})" for broker, state in states.items()
    )


class ReplicaStates:
    """The replicas of some partitions by state, each with the partitions concerned."""

    def __init__(self) -> None:
        self._found: dict[ReplicaUse, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))

    def add(self, state: ReplicaUse, broker: int, partition: str) -> None:
        """Add the state of a replica."""
        self._found[state][broker].add(partition)

    def helps(self, sentences: Mapping[ReplicaUse, str]) -> Iterator[Help]:
        """The sentence of each state that occurs, in their order, with its brokers and the number of partitions."""
        for state, sentence in sentences.items():
            found = self._found.get(state)
            if found:
                yield Help(action=_filled(sentence, found, set().union(*found.values())))


def _filled(sentence: str, brokers: Iterable[int], partitions: set[str]) -> str:
    ids = sorted(brokers)
    one = len(ids) == 1
    return sentence.format(
        brokers=broker_words(ids),
        of=counted(len(partitions), "partition"),
        it="it" if one else "them",
        they="it" if one else "they",
        s="s" if one else "",
        its="its" if one else "their",
        was="was" if one else "were",
        is_="is" if one else "are",
    )
