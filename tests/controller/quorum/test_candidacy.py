"""How long a standby waits before it claims the log."""

from __future__ import annotations

import pytest

from kraftlake.controller.quorum.candidacy import Candidacy


@pytest.fixture
def candidacy() -> Candidacy:
    return Candidacy(since_ns=1_000, timeout_ns=2_000)


def test_it_claims_after_its_timeout_without_news(candidacy: Candidacy) -> None:
    assert [candidacy.is_due(at) for at in (1_000, 2_999, 3_000)] == [False, False, True]
    candidacy.heard(2_999)
    assert [candidacy.is_due(at) for at in (3_000, 4_998, 4_999)] == [False, False, True]


def test_it_waits_a_tenth_after_a_resignation(candidacy: Candidacy) -> None:
    candidacy.resigned(2_000)
    assert [candidacy.is_due(at) for at in (2_199, 2_200)] == [False, True]


def test_it_does_not_wait_after_the_end_of_the_active_controller_whatever_it_heard_before(candidacy: Candidacy) -> None:
    candidacy.heard(2_000)
    candidacy.ended()
    assert candidacy.is_due(2_000)
    candidacy.resigned(2_001)  # the news of it comes late
    assert candidacy.is_due(2_001)


def test_news_of_the_log_end_the_hurry(candidacy: Candidacy) -> None:
    candidacy.ended()
    candidacy.heard(2_000)
    assert [candidacy.is_due(at) for at in (2_000, 3_999, 4_000)] == [False, False, True]


def test_without_a_timeout_it_claims_at_once() -> None:
    assert Candidacy(since_ns=5, timeout_ns=0).is_due(5)


def test_a_new_wait_is_a_whole_one(candidacy: Candidacy) -> None:
    candidacy.ended()
    candidacy.restart(10_000, 500)
    assert [candidacy.is_due(at) for at in (10_499, 10_500)] == [False, True]
