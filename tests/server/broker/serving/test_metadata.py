"""Metadata: what requests that name very many topics cost."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.server.broker.serving.context import ServingContext
from kraftlake.server.broker.serving.metadata import MetadataHandler
from kraftlake.server.requests.dispatcher import Peer

MANY = 1_000
PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")


class Work:
    """How often names and topics were hashed or compared."""

    times = 0


class Name(str):
    """A name that counts what is done with it."""

    __slots__ = ()

    def __str__(self) -> str:
        return self

    def __eq__(self, other: object) -> bool:
        Work.times += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        Work.times += 1
        return str.__hash__(self)


class Topic(SimpleNamespace):
    """A topic of a request, which counts comparisons."""

    def __eq__(self, other: object) -> bool:
        Work.times += 1
        return self is other

    __hash__ = object.__hash__


@pytest.fixture
def work() -> type[Work]:
    Work.times = 0
    return Work


def handler(*, hidden: bool = False) -> MetadataHandler:
    authorization: Any = SimpleNamespace(
        allows=lambda *_, **__: not hidden, allows_on_cluster=lambda *_, **__: not hidden
    )
    manager: Any = None
    return MetadataHandler(
        ServingContext(
            broker_id=1, cluster_id="c", cache=MetadataCache(1), manager=manager, authorization=authorization
        )
    )


def answered(name: str, version: int, **body: Any) -> tuple[Any, Any]:
    """A request, and the list that gets its answer."""
    answers: list[Any] = []
    module = import_module(f"kio.schema.{name}.v{version}.response")
    request = SimpleNamespace(
        name=name, body=SimpleNamespace(**body), module=module, version=version, peer=PEER, answer=answers.append,
        fail=answers.append,
    )  # fmt: skip
    return request, answers


def test_a_name_is_looked_up_once(work: type[Work]) -> None:
    request, answers = answered("metadata", 12, topics=[Topic(name=Name(f"t{n}"), topic_id=None) for n in range(MANY)])
    answers.append(handler().metadata(request))
    assert [topic.error_code for topic in answers[0].topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * MANY
    assert work.times < 30 * MANY


def test_an_id_is_looked_up_once(work: type[Work]) -> None:
    request, answers = answered("metadata", 12, topics=[Topic(name=None, topic_id=uuid4()) for _ in range(MANY)])
    answers.append(handler().metadata(request))
    assert [topic.error_code for topic in answers[0].topics] == [ErrorCode.UNKNOWN_TOPIC_ID] * MANY
    assert work.times < 30 * MANY


def test_a_hidden_name_is_looked_up_once(work: type[Work]) -> None:
    request, answers = answered(
        "describe_topic_partitions", 0, topics=[Topic(name=Name(f"t{n}")) for n in range(MANY)], cursor=None,
        response_partition_limit=1,
    )  # fmt: skip
    answers.append(handler(hidden=True).describe_topic_partitions(request))
    assert [topic.error_code for topic in answers[0].topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * MANY
    assert work.times < 30 * MANY


def test_a_topic_without_name_and_id_is_refused() -> None:
    request, _ = answered("metadata", 12, topics=[Topic(name=None, topic_id=None)])
    with pytest.raises(ControllerApiError) as refused:
        handler().metadata(request)
    assert refused.value.error is ErrorCode.INVALID_REQUEST
