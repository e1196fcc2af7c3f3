"""What the authorizer's decisions are, and which of them are logged, in the words of Kafka's own logger."""

from __future__ import annotations

import gzip
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import structlog

from kraftlake.cli.output.logs import log_as_service
from kraftlake.diagnosis.attribution.authorizer_lines import parse_line
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.kafka_names import AclOperation, AclPermissionType, PatternType, ResourceType
from kraftlake.publisher.authorizer import AuthorizerConfig, StandardAuthorizer
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Peer
from tests.diagnosis.attribution.sample import LOGS
from tests.replay.made_logs import uuid_of

ALICE = Peer(listener="SASL_SSL", host="127.0.0.1", principal="User:alice")
ADMIN = attrs.evolve(ALICE, principal="User:admin")
READS = StandardAcl(
    resource_type=ResourceType.TOPIC, resource_name="t-", pattern_type=PatternType.PREFIXED, principal="User:alice",
    host="*", operation=AclOperation.READ, permission_type=AclPermissionType.ALLOW,
)  # fmt: skip


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What a node writes to its log, at the level of the test's parameter."""
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    log_as_service(as_json=True, debug=request.param == logging.DEBUG, colours=False)
    yield written
    structlog.reset_defaults()


debug = pytest.mark.parametrize("lines", [logging.DEBUG], indirect=True)
info = pytest.mark.parametrize("lines", [logging.INFO], indirect=True)


def authorization(**config: Any) -> Authorization:
    acls = [(uuid_of(1), READS)]
    return Authorization(
        StandardAuthorizer.of(acls, AuthorizerConfig(super_users=frozenset({"User:admin"}), **config))
    )  # fmt: skip


def asks(peer: Peer, name: str = "create_topics") -> Any:
    @attrs.frozen
    class Asked:
        """The parts of a request that are authorized."""

        name: str
        peer: Peer

    return Asked(name, peer)


def may_read(authorized: Authorization, peer: Peer, topic: str, **more: Any) -> bool:
    return authorized.allows(asks(peer, "fetch"), AclOperation.READ, ResourceType.TOPIC, topic, **more)


def logged(lines: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


@debug
def test_a_line_is_that_of_kafkas_logger(lines: io.StringIO) -> None:
    authorized = authorization()
    assert may_read(authorized, ALICE, "t-1", count=3)
    assert authorized.allows_on_cluster(asks(ADMIN), AclOperation.ALTER_CONFIGS)
    assert not may_read(authorized, ALICE, "other")
    allowed, by_super_user, denied = logged(lines)
    assert allowed["event"] == (
        "Principal = User:alice is Allowed operation = READ from host = 127.0.0.1 on resource = Topic:LITERAL:t-1 for "
        "request = Fetch with resourceRefCount = 3 based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, "
        "resourceName=t-, patternType=PREFIXED, principal=User:alice, host=*, operation=READ, permissionType=ALLOW])"
    )
    assert allowed["level"] == "debug"
    assert by_super_user["event"] == (
        "Principal = User:admin is Allowed operation = ALTER_CONFIGS from host = 127.0.0.1 on resource = "
        "Cluster:LITERAL:kafka-cluster for request = CreateTopics with resourceRefCount = 1 based on rule SuperUser"
    )
    assert denied["event"].endswith(" based on rule DefaultDeny")
    assert denied["level"] == "info"
    assert {one["logger"] for one in (allowed, by_super_user, denied)} == {"kafka.authorizer.logger"}


@debug
def test_the_lines_are_read_as_those_of_a_kafka_node(lines: io.StringIO) -> None:
    authorized = authorization()
    may_read(authorized, ALICE, "t-1")
    found = parse_line(lines.getvalue())
    assert found is not None
    assert found.time is not None
    assert found.time.has_zone
    assert (found.principal, found.host, found.request) == ("User:alice", "127.0.0.1", "Fetch")
    assert (found.operation, found.resource_type, found.resource) == ("READ", "TOPIC", "t-1")


@debug
def test_the_words_are_those_of_a_real_controllers_lines(lines: io.StringIO) -> None:
    """Each kind of line of the sample, asked for again, is written alike."""
    with gzip.open(LOGS[0], "rt") as file:
        real = [line for line in file if "based on rule SuperUser" in line]
    one = next(line for line in real if "BrokerHeartbeat" in line)
    authorized = Authorization(
        StandardAuthorizer.of([], AuthorizerConfig(super_users=frozenset({"User:ANONYMOUS"})))
    )  # fmt: skip
    sender = Peer(listener="CONTROLLER", host="127.0.0.1")
    authorized.allows_on_cluster(asks(sender, "broker_heartbeat"), AclOperation.CLUSTER_ACTION)
    assert logged(lines)[0]["event"] in one


@info
def test_of_a_node_that_does_not_log_in_detail_only_refusals_are_logged(lines: io.StringIO) -> None:
    authorized = authorization()
    assert may_read(authorized, ALICE, "t-1")
    assert not may_read(authorized, ALICE, "other")
    (only,) = logged(lines)
    assert " is Denied operation = READ " in only["event"]


@debug
def test_a_decision_that_grants_or_asks_for_nothing_is_not_logged(lines: io.StringIO) -> None:
    authorized = authorization()
    assert authorized.operations(asks(ALICE), ResourceType.TOPIC, "t-1") == sum(
        1 << one for one in (AclOperation.READ, AclOperation.DESCRIBE)
    )
    assert not may_read(authorized, ALICE, "other", log_denied=False)
    assert not lines.getvalue()


@debug
def test_without_an_authorizer_all_is_allowed_and_nothing_logged(lines: io.StringIO) -> None:
    assert may_read(Authorization(None), ALICE, "other")
    assert not lines.getvalue()
