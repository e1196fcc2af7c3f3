"""The moves that empty a broker: only its own replicas, onto brokers whose racks keep them apart, evenly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from kraftlake.diagnosis.trial.reassignment_file import PartitionName
from kraftlake.image.metadata_image import MetadataImage


@attrs.frozen(kw_only=True)
class Moves:
    """The target replicas of the partitions of a broker, and the names of partitions that can't move well, or at all.

    `gained` is the number of replicas that each broker gets. `fewer_racks` move, but have replicas in fewer racks
    afterwards; `stuck` have no broker to go to.
    """

    targets: Mapping[PartitionName, tuple[int, ...]]
    gained: Mapping[int, int]
    fewer_racks: tuple[str, ...]
    stuck: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """The file that kafka-reassign-partitions takes."""
        partitions = [
            {"topic": topic, "partition": number, "replicas": list(replicas)}
            for (topic, number), replicas in self.targets.items()
        ]
        return {"version": 1, "partitions": partitions}


def moves_from(image: MetadataImage, broker: int) -> Moves:
    """The moves that leave no replica on a broker, by topic and partition.

    A replica keeps its place in the list. Of the brokers that are active, not shutting down, and have a directory that
    is not cordoned, it goes to one in a rack that the other replicas are not in, of these to the one with the fewest
    replicas, and where it is the preferred one, with the fewest preferred replicas.
    """
    racks = {id_: one.rack for id_, one in image.cluster.brokers.items()}
    able = [id_ for id_ in _able(image) if id_ != broker]
    held, preferred = Counter[int](), Counter[int]()
    hosted: list[tuple[PartitionName, tuple[int, ...]]] = []
    for name, replicas in _replicas(image):
        held.update(replicas)
        preferred[replicas[0]] += 1
        if broker in replicas:
            hosted.append((name, replicas))
    targets, gained, fewer, stuck = dict[PartitionName, tuple[int, ...]](), Counter[int](), [], []
    for name, replicas in sorted(hosted, key=lambda one: (one[1][0] != broker, one[0])):  # the others even out the rest
        others = [replica for replica in replicas if replica != broker]
        used, is_first = {racks.get(replica) for replica in others}, replicas[0] == broker
        free = [id_ for id_ in able if id_ not in others]
        if not free:
            stuck.append(f"{name[0]}-{name[1]}")
            continue
        chosen = min(free, key=lambda id_: (racks[id_] in used, is_first and preferred[id_], held[id_], id_))
        held[chosen] += 1
        gained[chosen] += 1
        preferred[chosen] += is_first
        targets[name] = tuple(chosen if replica == broker else replica for replica in replicas)
        if len(used | {racks[chosen]}) < len(used | {racks.get(broker)}):
            fewer.append(f"{name[0]}-{name[1]}")
    return Moves(
        targets=dict(sorted(targets.items())),
        gained=gained,
        fewer_racks=tuple(sorted(fewer)),
        stuck=tuple(sorted(stuck)),
    )


def _replicas(image: MetadataImage) -> Iterator[tuple[PartitionName, tuple[int, ...]]]:
    """The replicas of each partition, without those that a reassignment under way removes."""
    for topic, one in image.topics.topics_by_name().items():
        for number, state in one.partitions.items():
            kept = tuple(replica for replica in state.replicas if replica not in state.removing_replicas)
            yield (topic, number), kept or state.replicas


def _able(image: MetadataImage) -> Sequence[int]:
    """The brokers that new replicas can go to."""
    return [
        id_
        for id_, one in sorted(image.cluster.brokers.items())
        if not one.fenced
        and not one.in_controlled_shutdown
        and (not one.directories or not {*one.directories} <= {*(one.cordoned_directories or ())})
    ]
