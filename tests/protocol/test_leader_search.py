"""The search for a leader: which node is asked next, and the error at its end."""

from __future__ import annotations

import pytest

from kraftlake.protocol.address import Address
from kraftlake.protocol.leader_search import LeaderSearch
from kraftlake.protocol.node_error import AuthenticationError, NodeError, NoLeaderError, OlderLeaderError

ONE, TWO, THREE = (Address("host", port) for port in (1, 2, 3))


def test_each_address_is_asked_once_in_order() -> None:
    search = LeaderSearch([ONE, TWO, ONE])
    assert [search.next(), search.next()] == [ONE, TWO]
    with pytest.raises(NodeError, match=r"^No controller is known yet\.$"):
        search.next()


def test_a_named_leader_is_asked_next_unless_it_was_asked_before() -> None:
    search = LeaderSearch([ONE, TWO])
    assert search.next() == ONE
    search.failed(NoLeaderError("one does not lead.", [THREE]))
    assert search.next() == THREE
    search.failed(NoLeaderError("three does not lead.", [ONE]))
    assert search.next() == TWO


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        ([NodeError("a."), NodeError("b.")], NodeError),
        ([AuthenticationError("a."), AuthenticationError("b.")], AuthenticationError),
        ([AuthenticationError("a."), NodeError("b.")], NodeError),
        ([AuthenticationError("a."), NoLeaderError("b.")], NoLeaderError),
        ([OlderLeaderError("a."), NodeError("b.")], OlderLeaderError),
        ([OlderLeaderError("a."), NoLeaderError("b.")], NoLeaderError),
    ],
)
def test_the_error_has_all_reasons_and_the_kind_that_helps_most(faults: list[NodeError], kind: type[NodeError]) -> None:
    search = LeaderSearch([ONE])
    search.next()
    for fault in faults:
        search.failed(fault)
    with pytest.raises(kind, match=r"^a; b\.$") as caught:
        search.next()
    assert type(caught.value) is kind


def test_equal_reasons_are_given_once_and_a_question_stays_one() -> None:
    search = LeaderSearch([])
    for reason in ("it is away: is it running?", "it is away: is it running?"):
        search.failed(NodeError(reason))
    with pytest.raises(NodeError, match=r"^it is away: is it running\?$"):
        search.next()
