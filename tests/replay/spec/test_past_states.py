"""The partitions after each operation of a chunk are those of the image there, whatever follows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kraftlake.controller.replication.topics import delete_topics
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.reading.chunks import chunks_of
from kraftlake.replay.spec.partition_states import PartitionStates
from kraftlake.replay.spec.past_states import PastStates
from tests.controller.controlled_cluster import ControlledCluster
from tests.replay.made_logs import MadeLog

State = tuple[str, int, int, tuple[int, ...]]
LIFE: tuple[Callable[[ControlledCluster], object], ...] = (
    lambda cluster: cluster.assigned("orders", (1, 2), (2, 1)),
    lambda cluster: cluster.heartbeat(2, want_fence=True),
    lambda cluster: cluster.assigned("bills", (1,)),
    lambda cluster: cluster.heartbeat(2),
    lambda cluster: cluster.run(lambda state: delete_topics(state, [cluster.topic_id("orders")])),
    lambda cluster: cluster.assigned("orders", (2,)),
)


def of_image(image: MetadataImage) -> list[State]:
    return sorted(
        (topic.name, number, one.leader, one.isr)
        for topic in image.topics.topics_by_name().values()
        for number, one in topic.partitions.items()
    )


def of_states(states: PartitionStates) -> list[State]:
    isr = states.list_of("isr")
    names = [states.names.topics[topic].as_py() for topic in states.topics.tolist()]
    lists = [tuple(isr.take(np.array([row])).members.tolist()) for row in range(len(states))]
    return sorted(zip(names, states.partitions.tolist(), states.leaders.tolist(), lists, strict=True))


def test_the_partitions_after_each_operation_are_those_of_the_image_there() -> None:
    cluster = ControlledCluster()
    cluster.start(1, 2)
    images = {}
    for command in LIFE:
        command(cluster)
        images[cluster.log[-1].last_offset] = cluster.image
    log, replay = MadeLog(records=tuple(cluster.log)), LogReplay()
    (chunk,) = [chunk for chunks in replay.steps_of(iter(chunks_of(log, 0, log.end_offset - 1))) for chunk in chunks]
    past = PastStates(replay.store.rows(), chunk.partitions, chunk.partitions.deltas)
    ends = chunk.boundaries.offsets.tolist()
    found = {offset: of_states(past.after(ends.index(offset))) for offset in images}
    assert found == {offset: of_image(image) for offset, image in images.items()}
    assert of_states(past.after(0)) == []
