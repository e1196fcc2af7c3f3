"""What a broken and a refused connection say of the active controller."""

from __future__ import annotations

from kraftlake.server.controller.leader_contact import LeaderContact


def answered(epoch: int) -> LeaderContact:
    """The contact of a standby that the leader of an epoch has answered."""
    contact = LeaderContact()
    contact.answered(epoch)
    return contact


def test_a_refusal_after_a_broken_connection_is_the_end() -> None:
    contact = answered(3)
    assert contact.broke()
    assert contact.has_ended(3)


def test_a_refusal_alone_is_not() -> None:
    assert not LeaderContact().has_ended(3), "it may never have listened there"
    assert not answered(3).has_ended(3), "the connection that there is goes on"


def test_a_broken_connection_without_an_answer_of_the_leader_is_not() -> None:
    contact = LeaderContact()
    contact.broke()
    assert not contact.has_ended(3)


def test_the_end_of_an_earlier_leader_says_nothing_of_a_later_one() -> None:
    contact = answered(3)
    contact.broke()
    assert not contact.has_ended(4)


def test_an_answer_over_the_next_connection_makes_it_whole() -> None:
    contact = answered(3)
    contact.broke()
    contact.answered(3)
    assert not contact.has_ended(3)


def test_it_connects_again_at_once_one_time_for_each_answer() -> None:
    contact = answered(3)
    assert [contact.broke(), contact.broke(), contact.broke()] == [True, False, False]
    contact.answered(3)
    assert contact.broke()
