"""What must hold of the metadata of a simulated cluster: its log in the lake, and the images of all nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kraftlake.controller.quorum.active_controller import ActiveController
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.metadata_cache import MetadataCache
from simulator.invariants import violated
from simulator.replica_watch import ReplicaWatch
from simulator.scheduler import Process, active
from simulator.specification import METADATA_LOG_MATCHING, MIN_ISR_RECOVERY_QUORUM, recovery_problem
from simulator.states import states_of

_COMMIT = re.compile(r"lake/log/_delta_log/(\d{20})\.json")
_PARTS = [field.name for field in attrs.fields(MetadataImage) if field.name != "provenance"]


def _is_same(name: str, images: Sequence[MetadataImage], compared: Sequence[MetadataImage]) -> bool:
    """Whether two images have the same part; they do where each has that of two images that were compared before."""
    one, other = getattr(images[0], name), getattr(images[1], name)
    if one is other or (one is getattr(compared[0], name) and other is getattr(compared[1], name)):
        return True
    return bool(one == other)


class MetadataWatch:
    """Checks each commit to the log, and each image that a node has."""

    def __init__(self, replicas: ReplicaWatch) -> None:
        self.replicas = replicas
        self.commits = 0
        self.claims = 0
        self.end_offset = 0
        self.epoch = -1
        self.images_compared = 0
        self.states: set[int] = set()
        """The abstract states that partitions were in, see `states_of`."""
        self.answers = 0
        """How many answers of active controllers were checked."""
        self.note: Callable[[str], None] = lambda what: None
        self._writer: Process | None = None
        self._commits: list[tuple[int, int, Process]] = []
        """Where the log ended by each version, in which epoch, and who had begun that."""
        self._shown = -1
        """The last offset that a controller has shown as committed."""
        self._images: dict[int, MetadataImage] = {}

    def hooks(self) -> list[tuple[Any, str, Any]]:
        """Objects, names of their attributes, and the values to give them."""
        update, committed_up_to = MetadataCache.update, ActiveController.committed_up_to

        def new_update(cache: MetadataCache, new_image: MetadataImage, *more: Any, **options: Any) -> Any:
            self.saw(new_image)
            return update(cache, new_image, *more, **options)

        def new_committed_up_to(controller: ActiveController, offset: int) -> None:
            committed_up_to(controller, offset)
            self._shown = max(self._shown, offset)
            self.saw(controller.committed)

        return [
            (MetadataCache, "update", new_update), (ActiveController, "committed_up_to", new_committed_up_to),
            *((QuorumController, name, self._watched(getattr(QuorumController, name))) for name in ("submit", "read")),
        ]  # fmt: skip

    def _watched(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        """A way to ask a controller, of which one answers as the active one only if none has claimed a later epoch.

        Whoever reads from a store that shows commits only later can't know of a claim.
        """

        def asked(controller: QuorumController, *arguments: Any, **options: Any) -> Any:
            epoch, process = self.epoch, active().process
            answer = ask(controller, *arguments, **options)

            def check(_: Any) -> None:
                answers_in = controller.epoch
                if answers_in >= 0 and answer.exception() is None and not process.extra.get("lake_lag"):
                    self.answers += 1
                    if answers_in < epoch:
                        violated(f"{process.name} answers in epoch {answers_in} what was asked in epoch {epoch}")

            answer.add_done_callback(check)
            return answer

        return asked

    def put(self, key: str, data: bytes, writer: Process) -> None:
        """An object was put into the lake."""
        found = _COMMIT.fullmatch(key)
        if found is None:
            return
        version, actions = int(found[1]), [json.loads(line) for line in data.splitlines()]
        if version != len(self._commits):
            violated(f"version {version} of the metadata log follows {len(self._commits) - 1}")
        self.commits += 1
        self._check_commit(actions, writer)
        self._commits.append((self.end_offset, self.epoch, self._writer or writer))

    def cut_back(self, version: int) -> None:
        """The lake has lost the versions after one, with all nodes that saw them: no controller has shown one."""
        lost = len(self._commits) - 1 - version
        if lost <= 0:
            return
        del self._commits[version + 1 :]
        self.end_offset, self.epoch, self._writer = self._commits[-1]
        self.note(f"the lake has lost {lost} versions, and ends at {self.end_offset} in epoch {self.epoch}")
        if self._shown >= self.end_offset:
            violated(f"the metadata log ends at {self.end_offset}, and {self._shown} was committed")
        self._images = {offset: image for offset, image in self._images.items() if offset < self.end_offset}
        self.replicas.newest = self._images[max(self._images)]
        self.replicas.forget_epochs()

    def _check_commit(self, actions: list[Any], writer: Process) -> None:
        transactions = {one["txn"]["appId"]: one["txn"]["version"] for one in actions if "txn" in one}
        end, epoch = transactions.get("kraftlake.end_offset"), transactions.get("kraftlake.epoch")
        if end is None or epoch is None:
            return
        adds = [one["add"] for one in actions if "add" in one and one["add"]["dataChange"]]
        records = sum(json.loads(add["stats"])["numRecords"] for add in adds)
        if end != self.end_offset + records:
            violated(f"the metadata log ends at {end} with {records} records after {self.end_offset}")
        self.end_offset = end
        if epoch < self.epoch:
            violated(f"epoch {epoch} of the metadata log follows {self.epoch}")
        if epoch > self.epoch:
            self.claims += 1
            self._writer = writer
        elif writer is not self._writer:
            names = f"{writer.name} and {self._writer.name if self._writer else None}"
            violated(f"{names} both write in epoch {epoch} of the metadata log")
        self.epoch = epoch

    def saw(self, image: MetadataImage) -> None:
        """A node has an image: all that have one of that offset have the same."""
        offset = image.provenance.offset
        known = self._images.setdefault(offset, image)
        if known is not image:
            self.images_compared += 1
            compared = active().process.extra.get("compared_images", (MetadataImage.EMPTY,) * 2)
            other = [name for name in _PARTS if not _is_same(name, (known, image), compared)]
            active().process.extra["compared_images"] = (known, image)
            if other:
                violated(
                    f"{active().process.name} has other {', '.join(other)} at offset {offset}", METADATA_LOG_MATCHING
                )
        if offset > self.replicas.newest.provenance.offset:
            self._check_leaders(self.replicas.newest, image)
            self._note_changes(self.replicas.newest, image)
            self.states.update(states_of(self.replicas.newest, image))
            self.replicas.newest = image

    def _check_leaders(self, before: MetadataImage, after: MetadataImage) -> None:
        """Leaders are in their ISRs, and in service; who joins an ISR or comes back to be elected has all records."""
        if before.topics is after.topics and before.cluster is after.cluster:
            return
        back = {
            id_
            for id_, broker in after.cluster.brokers.items()
            if not broker.fenced and ((earlier := before.cluster.brokers.get(id_)) is None or earlier.fenced)
        }
        for topic in after.topics.topics_by_id().values():
            for number, state in topic.partitions.items():
                leader = after.cluster.brokers.get(state.leader)
                was = before.topics.get_partition(topic.id, number)
                name = TopicPartition(topic.name, number)
                candidates = back & {*state.isr, *state.elr}
                if was is not None and was is not state:
                    candidates |= set(state.isr) - set(was.isr)
                    self.replicas.check_quorum(name, topic.id, state, after)
                    if problem := recovery_problem(state):
                        violated(f"{name} {problem}", MIN_ISR_RECOVERY_QUORUM)
                self.replicas.check_candidates(name, topic.id, candidates, after)
                if state.leader >= 0 and (state.leader not in state.isr or leader is None or leader.fenced):
                    violated(f"{topic.name}-{number} is led by {state.leader}, which may not: {state}")

    def _note_changes(self, before: MetadataImage, after: MetadataImage) -> None:
        """Note the partitions and brokers that have changed."""
        for topic in after.topics.topics_by_id().values() if before.topics is not after.topics else ():
            for number, state in topic.partitions.items():
                was = before.topics.get_partition(topic.id, number)
                if was != state:
                    lists = f"ISR {state.isr} ELR {state.elr} of {state.replicas}"
                    self.note(f"{topic.name}-{number}: leader {state.leader} in epoch {state.leader_epoch}, {lists}")
        for id_, broker in after.cluster.brokers.items() if before.cluster is not after.cluster else ():
            was_there = before.cluster.brokers.get(id_)
            if was_there is None or (was_there.epoch, was_there.fenced) != (broker.epoch, broker.fenced):
                self.note(f"broker-{id_}: epoch {broker.epoch}, {'fenced' if broker.fenced else 'in service'}")
