"""A cluster that is read from its metadata log, as an observer of its controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kraftlake.diagnosis.doctor.replica_states import waits_for
from kraftlake.diagnosis.drift.description import ClusterDescription, describe, describe_topic
from kraftlake.diagnosis.trial.standing import Standing
from kraftlake.diagnosis.undo.step import Action, Step
from kraftlake.diagnosis.undo.subjects import acl_of
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.protocol.node_error import NodeError
from kraftlake.replay.live.open_live import LiveLog, open_live
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.queries.source import LogSource

_POLL_SECONDS = 0.1


class ObservedCluster:
    """Keeps the image of a quorum's committed log, for one thread; `close` ends the connection."""

    def __init__(self, source: LogSource) -> None:
        """Begin at the end of a quorum's log as it was opened."""
        self._live: LiveLog = open_live(source, poll=_POLL_SECONDS)
        reader = self._live.reader
        self._replay = LogReplay()
        self._replay.begin_at(reader, reader.end_offset - 1, cluster_id=source.cluster_id)

    def close(self) -> None:
        """Close the connection."""
        self._live.close()

    def read(self, step: Step) -> ClusterDescription:
        """The cluster as the quorum has committed it now; covers the subject of a step. Raises NodeError."""
        image = self.image()
        match step.action:
            case Action.ALTER_CONFIGS:
                return ClusterDescription(configs=image.configs.resource_data)
            case Action.ALTER_QUOTAS:
                return ClusterDescription(client_quotas=image.client_quotas.entities)
            case Action.CREATE_ACL | Action.DELETE_ACL:
                wanted = acl_of(step)
                return ClusterDescription(acls={rule: rule for rule in image.acls.acls.values() if rule == wanted})
            case Action.DELETE_SCRAM | Action.UPDATE_FEATURE | Action.NONE:
                return describe(attrs.evolve(image, topics=TopicsImage.EMPTY))
            case _:
                name = step.subject["topic"]
                topic = image.topics.get_topic(name)
                described = {} if topic is None else {name: describe_topic(topic, ("placement",))}
                return ClusterDescription(topics=described)

    def whole(self) -> ClusterDescription:
        """The whole cluster as the quorum has committed it now. Raises NodeError."""
        return describe(self.image(), also=("placement",))

    def moving(self) -> Mapping[str, Sequence[int]]:
        """The partitions that move, with the brokers that they wait for and that do not run. Raises NodeError."""
        image = self.image()
        brokers, found = image.cluster.brokers, {}
        for name in Standing.of(image).reassigning:
            topic, _, number = name.rpartition("-")
            one = image.topics.get_topic(topic)
            assert one is not None, "it is one of the image"
            waits = waits_for(one.partitions[int(number)])
            found[name] = [id_ for id_ in waits if id_ not in brokers or brokers[id_].fenced]
        return found

    def node_of(self, step: Step) -> None:
        """None: the controller that leads takes every step."""

    def image(self) -> MetadataImage:
        """The image of everything that the quorum has committed now. Raises NodeError."""
        while batches := self._live.step():
            for _ in self._replay.take_parts(batches):
                pass
        if self._live.trouble is not None:
            raise NodeError(f"{self._live.trouble[0].upper()}{self._live.trouble[1:]}.")
        return self._replay.image
