from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.protocol.address import Address
from kraftlake.protocol.describe import OtherClusterError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import AuthenticationError, NodeError, NoLeaderError
from kraftlake.protocol.quorum_client import QuorumClient, QuorumPosition
from kraftlake.runtime.errors import ImportConflictError
from tests.protocol.fake_nodes import CLUSTER_ID, FakeController, frame, receive_frame, serving
from tests.waiting import unless_paused

NOWHERE = Address("127.0.0.1", 1)
HERE = QuorumPosition(leader_id=9, leader_epoch=4, high_watermark=7)


def asking(*addresses: Address) -> QuorumClient:
    return QuorumClient(addresses, cluster_id=CLUSTER_ID)


def test_one_connection_serves_several_requests() -> None:
    node = FakeController()
    with serving(node) as address, asking(address) as client:
        assert client.describe() == HERE
        node.high_watermark = 8
        assert client.describe().high_watermark == 8
        assert node.connections == 1


def test_the_next_address_is_tried_if_one_fails_and_the_error_names_all_if_all_fail() -> None:
    node = FakeController()
    with serving(node) as address, asking(NOWHERE, address) as client:
        assert client.describe() == HERE
    with pytest.raises(NodeError, match=rf"127\.0\.0\.1:1 refuses .*; {address} refuses .*"):
        asking(NOWHERE, address).describe()


def test_a_restarted_node_gets_a_new_connection() -> None:
    node = FakeController()
    with serving(node) as address, asking(address) as client:
        client.describe()
        node.shift = 1
        with pytest.raises(NodeError, match="the answer to request 2, not to 1"):
            client.describe()
        node.shift = 0
        assert client.describe() == HERE


def test_a_controller_that_does_not_lead_names_the_leader() -> None:
    leading, following = FakeController(), FakeController()
    following.quorum_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with serving(leading) as leader, serving(following) as follower, asking(follower) as client:
        with pytest.raises(NoLeaderError, match=f"^{follower} is a controller that does not lead, and knows no leader"):
            client.describe()
        following.leader = follower
        with pytest.raises(NodeError, match=f"^{follower} is a controller that does not lead"):
            client.describe()
        following.leader = leader
        assert client.describe() == HERE
        assert leading.connections == 1
        leading.quorum_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        following.quorum_error = ErrorCode.NONE
        assert client.describe() == HERE, "the lead changed hands"


@unless_paused(0.1)
def test_a_broker_that_waits_for_a_controller_counts_as_a_node_without_a_leader() -> None:
    broker = FakeController()
    broker.silent_apis.add(55)
    with (
        serving(broker) as address,
        QuorumClient([address], cluster_id=CLUSTER_ID, connect=NodeConnector(timeout=0.2)) as client,
    ):
        with pytest.raises(NoLeaderError, match=r"did not answer within 0\.2 s"):
            client.describe()
        broker.silent_apis.clear()
        assert client.describe() == HERE
        broker.silent_apis.add(60)
        client.close()
        with pytest.raises(NodeError, match="did not answer") as caught:
            client.describe()
        assert not isinstance(caught.value, NoLeaderError), "it may be of any cluster"


def test_a_node_of_another_cluster_gets_no_further_requests() -> None:
    node = FakeController()
    node.cluster_id = "anotherTestClusterBB"
    message = f"is a node of cluster anotherTestClusterBB, not of {CLUSTER_ID}"
    with serving(node) as address, asking(address) as client, pytest.raises(OtherClusterError, match=message):
        client.describe()
    assert issubclass(OtherClusterError, ImportConflictError)


def test_a_cluster_that_is_not_named_is_that_of_the_first_node_that_answers() -> None:
    first, second = FakeController(), FakeController()
    second.cluster_id = "anotherTestClusterBB"
    with serving(first) as one, serving(second) as two, QuorumClient([NOWHERE, one, two]) as client:
        assert client.describe() == HERE
        client.close()
        first.quorum_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        with pytest.raises(OtherClusterError, match=f"^{two} is a node of cluster another.*, not of {CLUSTER_ID}"):
            client.describe()


def test_nodes_that_all_refuse_the_client_need_another_configuration() -> None:
    def refuse(address: Address) -> NodeClient:
        raise AuthenticationError(f"{address} refuses it.") if address != NOWHERE else NodeError("it is away.")

    with pytest.raises(AuthenticationError, match=r"^one:1 refuses it; two:2 refuses it\.$"):
        QuorumClient([Address("one", 1), Address("two", 2)], connect=refuse).describe()
    with pytest.raises(NodeError, match=r"^one:1 refuses it; it is away\.$") as caught:
        QuorumClient([Address("one", 1), NOWHERE], connect=refuse).describe()
    assert not isinstance(caught.value, AuthenticationError), "the node that is away may take it"


def test_a_controller_that_asks_for_an_acl_before_it_describes_its_cluster_names_it() -> None:
    node = FakeController()
    node.cluster_error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    message = r"does not tell its cluster: User:ANONYMOUS needs an ACL for Alter on the cluster \(a broker"
    with serving(node) as address, asking(address) as client, pytest.raises(NodeError, match=message):
        client.describe()


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({18: (0, 4), 60: (0, 1)}, r"offers nothing of DescribeQuorum \(API 55\): is it a node of a KRaft cluster"),
        ({18: (0, 4), 55: (7, 9), 60: (0, 1)}, "offers only versions 7 to 9 of DescribeQuorum"),
    ],
)
def test_the_error_names_a_node_without_the_api(versions: dict[int, tuple[int, int]], message: str) -> None:
    node = FakeController()
    node.versions = versions
    with serving(node) as address, asking(address) as client, pytest.raises(NodeError, match=message):
        client.describe()


def test_the_message_has_the_error_of_the_node_in_words() -> None:
    node = FakeController()
    node.quorum_error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with serving(node) as address, asking(address) as client:
        with pytest.raises(NodeError, match="User:ANONYMOUS needs an ACL for Describe on the cluster"):
            client.describe()
        node.quorum_error = ErrorCode.UNKNOWN_SERVER_ERROR
        with pytest.raises(NodeError, match="unknown_server_error"):
            client.describe()


@given(answers=st.lists(st.binary(max_size=60), min_size=1, max_size=3))
def test_any_bytes_in_a_frame_are_one_error(answers: Sequence[bytes]) -> None:
    def talk(connection: object) -> None:
        for answer in answers:
            correlation_id = receive_frame(connection)[4:8]  # type: ignore[arg-type]
            connection.sendall(frame(correlation_id + answer))  # type: ignore[attr-defined]

    assert struct.calcsize(">i") == 4
    with serving(talk) as address, asking(address) as client, pytest.raises(NodeError):
        client.describe()
