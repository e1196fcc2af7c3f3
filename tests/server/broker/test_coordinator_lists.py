"""What a broker that serves nobody says of groups and transactions."""

from __future__ import annotations

import io
from typing import Any

import pytest
from kio.serial import entity_writer

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.broker.coordinator_lists import list_coordinated
from kraftlake.server.broker.refusals import is_of_any_broker
from kraftlake.server.requests.messages import of_version, request_type, versions_of
from tests.server.broker.test_refusals import framed, read

TOPICS = {"list_groups": "__consumer_offsets", "list_transactions": "__transaction_state"}


def asked(name: str, version: int) -> bytes:
    kind: Any = request_type(name, version)
    body = io.BytesIO()
    made = of_version(kind, states_filter=(), types_filter=(), state_filters=(), producer_id_filters=())
    entity_writer(kind)(body, made)
    return framed(name, version, body.getvalue(), flexible=kind.__flexible__)


@pytest.mark.parametrize(("name", "version"), [(name, version) for name in TOPICS for version in versions_of(name)])
def test_it_coordinates_nothing_unless_it_leads_where_that_is_kept(name: str, version: int) -> None:
    frame = asked(name, version)
    assert not is_of_any_broker(frame)
    for leads, error in ((set[str](), ErrorCode.NONE), ({TOPICS[name]}, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)):
        answer = list_coordinated(frame, leads.__contains__)
        assert answer is not None
        response = read(name, version, answer)
        assert response.error_code == error
        assert (response.groups if name == "list_groups" else response.transaction_states) == ()


def test_other_requests_are_left_alone() -> None:
    assert list_coordinated(framed("metadata", 9, b"", flexible=True), lambda _: True) is None
