"""Topic names that metrics can't tell apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.controller.replication.topic_names import colliding_topic, unified

names = st.text("ab._", min_size=1, max_size=6)


@given(names, st.sets(names, max_size=40))
def test_a_name_collides_with_a_name_that_metrics_cannot_tell_from_it(name: str, others: set[str]) -> None:
    alike = {other for other in others if unified(other) == unified(name) and set(other) & set("._")}
    found = colliding_topic(name, others)
    assert (found in alike) if alike else found is None


def test_a_plain_name_collides_with_nothing() -> None:
    assert colliding_topic("orders", {"orders", "or.ders"}) is None
