"""The syntax of Java's regular expressions; `test_kafka_configs_agree.py` compares random patterns with a JVM."""

from __future__ import annotations

import pytest

from kraftlake.controller.configs.java_patterns import check_pattern

VALID = (
    "", "a++", "a{2}", "{2}", "a{2,}?", "]", "}", "a|", "(?i)a", "(?i-m:a)", "(?<n>a)\\k<n>", "\\p{Lu}\\PL",
    "[a&&[^b]]", "[]a]", "[a-z&&b]", "[^-]", "\\Qa[(\\E", "\\Q1", "\\07\\x41\\x{1F980}\\u0041\\cA", "\\b{g}",
    "\\R\\X\\h", "[\\d]", "(?<!ab)c", "\\_", "\\N{LATIN SMALL LETTER A}", "\\1", "[\\v-z]",
)  # fmt: skip
INVALID = (
    "*", "a**", "(", ")", "[", "[]", "[z-a]", "[a-\\d]", "a{", "a{2", "a{3,2}", "a{99999999999}", "\\", "\\y",
    "[\\b]", "\\p{Nope}", "\\p{", "\\x4", "\\x{110000}", "\\u00", "\\09", "\\c", "\\k<n>", "(?<n>a)(?<n>b)",
    "(?<1>a)", "(?q)a", "(?i", "[&&]", "\\b{g", "\\N{no such name}",
)  # fmt: skip


@pytest.mark.parametrize("text", VALID)
def test_a_pattern_that_java_compiles_is_valid(text: str) -> None:
    check_pattern(text)


@pytest.mark.parametrize("text", INVALID)
def test_a_pattern_that_java_refuses_is_invalid(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_pattern(text)
