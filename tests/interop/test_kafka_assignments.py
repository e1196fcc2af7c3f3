"""Our AssignmentsManager beside Kafka 4.4's own, over random scripts by one clock."""

from __future__ import annotations

import heapq
import itertools
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.assignments_manager import (
    MOST_IN_A_REQUEST,
    AssignmentsManager,
    AssignReplicasRequest,
    AssignReplicasResponse,
)
from kraftlake.runtime.log import without_logs
from tests.at_least_one import at_least_one
from tests.interop.kafka_classes import KafkaClasses
from tests.replica_manager.brokers import FOO, tp

pytestmark = pytest.mark.spark

Step = dict[str, Any]

SCRIPTS = 1_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 60
PARTITIONS = 12
TIMEOUT = -1
GLOBAL_ERRORS = (TIMEOUT, ErrorCode.INVALID_REQUEST.value, ErrorCode.STALE_BROKER_EPOCH.value)
ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER.value, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.value)


class Ours:
    """Does the steps of a script; the clock is the script's."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.image = MetadataImage.EMPTY
        self.sent: list[dict[str, int]] = []
        self.accepted: list[str] = []
        self.waiting: tuple[AssignReplicasRequest, Callable[[AssignReplicasResponse], None]] | None = None
        self.manager = AssignmentsManager(
            1, lambda: 100, lambda: self.image, self, schedule=self.schedule, on_failure=lambda _: None
        )

    def schedule(self, delay_ms: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.timers, (self.now + delay_ms, next(self.order), action))

    def assign_replicas_to_dirs(
        self, request: AssignReplicasRequest, on_answer: Callable[[AssignReplicasResponse], None]
    ) -> None:
        self.waiting = (request, on_answer)
        self.sent.append(
            {str(key.topic_partition.partition): id_.sort_key()[1] for key, id_ in request.directories.items()}
        )

    def step(self, step: Step) -> Step:
        what = step["what"]
        if what == "image":
            self.become(step["partitions"])
        elif what == "advance":
            self.now += step["ms"]
        elif what == "answer":
            self.answer(step)
        else:
            for number in step["partitions"]:
                name = f"{step['id']}/{number}"
                directory = Uuid(step["directory"].to_bytes(16, "big"))
                self.manager.handle_assignment(
                    TopicIdPartition(FOO, tp(number)), directory, "test", lambda name=name: self.accepted.append(name)
                )
        while self.timers and self.timers[0][0] <= self.now:
            heapq.heappop(self.timers)[2]()
        seen = {"waiting": self.manager.waiting, "sent": self.sent, "accepted": sorted(self.accepted)}
        self.sent, self.accepted = [], []
        return seen

    def become(self, partitions: dict[str, bool]) -> None:
        delta = MetadataDelta(MetadataImage.EMPTY)
        if partitions:
            delta.replay(r.TopicRecord(name="foo", topic_id=FOO))
        for number, ours in partitions.items():
            broker = 1 if ours else 2
            delta.replay(
                r.PartitionRecord(
                    partition_id=int(number), topic_id=FOO, replicas=(broker,), isr=(broker,), leader=broker
                )
            )
        self.image = delta.apply(MetadataProvenance(offset=1, epoch=1))

    def answer(self, step: Step) -> None:
        if self.waiting is None:
            return
        (request, on_answer), self.waiting = self.waiting, None
        if step["error"]:
            error = ErrorCode.NETWORK_EXCEPTION if step["error"] == TIMEOUT else ErrorCode(step["error"])
            on_answer(AssignReplicasResponse(error=error))
            return
        results = {}
        for partition in request.directories:
            number = partition.topic_partition.partition
            if number not in step["unnamed"]:
                results[partition] = ErrorCode(step["errors"].get(str(number), 0))
        on_answer(AssignReplicasResponse(results=results))


def script(chance: random.Random) -> list[Step]:
    """Assignments, time, answers and images in random turn."""
    steps: list[Step] = [{"what": "image", "partitions": {str(number): True for number in range(PARTITIONS)}}]
    for number in range(chance.randrange(10, 60)):
        what = chance.choices(("assign", "advance", "answer", "image"), (4, 5, 4, 1))[0]
        if what == "assign":
            some = chance.sample(range(PARTITIONS), chance.randrange(1, 4))
            steps.append({"what": what, "partitions": some, "directory": chance.randrange(1, 4), "id": number})
        elif what == "advance":
            steps.append({"what": what, "ms": chance.choice((1, 30, 50, 99, 100, 150, 200, 400, 3_000, 20_000))})
        elif what == "answer":
            failed = chance.random() < 0.4
            numbers = chance.sample(range(PARTITIONS), 4) if chance.random() < 0.5 else []
            steps.append(
                {
                    "what": what,
                    "error": chance.choice(GLOBAL_ERRORS) if failed else 0,
                    "errors": {str(number): chance.choice(ERRORS) for number in numbers},
                    "unnamed": [] if chance.random() < 0.7 else chance.sample(range(PARTITIONS), 3),
                }
            )
        else:
            there = {str(number): chance.random() < 0.8 for number in range(PARTITIONS) if chance.random() < 0.9}
            steps.append({"what": what, "partitions": {} if chance.random() < 0.2 else there})
    return steps


def full_requests() -> list[Step]:
    """More than a request holds, before and while one is on its way; one directory, for its order is Kafka's own."""
    some = {str(number): True for number in range(3 * MOST_IN_A_REQUEST)}
    answered = {"what": "answer", "error": 0, "errors": {}, "unnamed": []}
    full = {"what": "assign", "directory": 1, "id": 0}
    return [
        {"what": "image", "partitions": some},
        full | {"partitions": list(range(5))},
        {"what": "advance", "ms": 30},
        full | {"partitions": list(range(5, MOST_IN_A_REQUEST + 1))},
        full | {"partitions": list(range(MOST_IN_A_REQUEST + 1, 2 * MOST_IN_A_REQUEST + 100))},
        {"what": "advance", "ms": 100},
        answered,
        {"what": "advance", "ms": 99},
        {"what": "advance", "ms": 1},
        answered | {"error": TIMEOUT},
        {"what": "advance", "ms": 199},
        {"what": "advance", "ms": 1},
        answered,
        {"what": "advance", "ms": 100},
        answered,
    ]


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaClasses]:
    classes = KafkaClasses(Path(__file__).with_name("KafkaAssignments.java"))
    yield classes
    classes.close()


def compared(
    kafka: KafkaClasses, steps: list[Step], note: str, of: Callable[[Step], object] = lambda seen: seen
) -> None:
    theirs = kafka.ask(json.dumps(steps))["seen"]
    ours = Ours()
    with without_logs():
        for number, (step, seen) in enumerate(zip(at_least_one(steps), theirs, strict=True)):
            assert of(ours.step(step)) == of(seen), f"{note}, step {number}: {steps[: number + 1]}"


def test_random_scripts_end_as_kafka_s_own_manager_ends_them(kafka: KafkaClasses) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED") or 0)
    for number in range(SCRIPTS):
        compared(kafka, script(random.Random(seed * 10_000 + number)), f"seed {seed}, script {number}")


def test_full_requests_go_when_kafka_s_go(kafka: KafkaClasses) -> None:
    def sizes(seen: Step) -> object:
        return seen["waiting"], [len(request) for request in seen["sent"]], len(seen["accepted"])

    compared(kafka, full_requests(), "full requests", sizes)
