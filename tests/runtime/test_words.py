from __future__ import annotations

from kraftlake.runtime.words import did_you_mean, shown


def test_strings_from_outside_are_escaped_and_cut() -> None:
    assert shown("a\n\x1b\u202eb") == "a\\n\\x1b\\u202eb"
    assert shown("x" * 500, 10) == "x" * 10 + "…"


def test_a_name_that_is_not_known_is_asked_after_by_the_nearest_ones() -> None:
    assert did_you_mean("LEADR", ["leader", "isr"]) == "did you mean leader?"
    assert did_you_mean("orders*", ["orders-eu", "orders-us", "x"], most=1) == "did you mean orders-us?"
    assert did_you_mean("min", ["replicas.min.isr", "x"]) == "did you mean replicas.min.isr?"
    assert did_you_mean("TopicRecord", ["TOPIC_RECORD"], lambda name: name.replace("_", "").lower())
    assert did_you_mean("q", ["quota", "acl"]) == did_you_mean("", ["quota"]) == did_you_mean("a", []) == ""
