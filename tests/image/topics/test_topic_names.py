"""Valid topic names."""

from __future__ import annotations

from kraftlake.image.topics.topic_names import problem_of_name


def test_a_name_has_legal_characters_and_at_most_249() -> None:
    assert problem_of_name("a.B_9-") is None
    assert problem_of_name("x" * 249) is None
    assert all(problem_of_name(name) for name in ("", ".", "..", "a b", "ä", "x" * 250, "a/b", "a\n"))
