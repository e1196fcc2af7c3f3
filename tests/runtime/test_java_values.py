"""Values in text by Java's rules; `tests/controller/configs/test_kafka_configs_agree.py` holds them against a JVM."""

from __future__ import annotations

import math

import pytest

from kraftlake.runtime.java_values import (
    parse_boolean,
    parse_double,
    parse_duration,
    parse_integer,
    split,
    split_list,
    trim,
)


def test_blanks_and_control_characters_are_trimmed_and_no_others() -> None:
    assert trim(" \t\n\x00\x1f1\x01 ") == "1"
    assert trim("\xa01\u2003") == "\xa01\u2003"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-0", 0), ("+7", 7), ("2147483647", 2147483647), ("-2147483648", -2147483648), ("\u0661\uff12", 12)],
)
def test_whole_numbers(text: str, number: int) -> None:
    assert parse_integer(text, 32) == number


@pytest.mark.parametrize(
    "text", ["", "+", "1_0", " 1", "1.0", "2147483648", "-2147483649", "\U0001d7cf", "\u00b2", "nan"]
)
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is no whole number|it needs more than 32 bits"):
        parse_integer(text, 32)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.5f", 0.5), ("1D", 1.0), (".5", 0.5), ("5.", 5.0), ("1e400", math.inf), ("-Infinity", -math.inf),
     ("0x1p-1d", 0.5), ("0x1p99999", math.inf), ("-0x1p99999", -math.inf)],
)  # fmt: skip
def test_numbers(text: str, number: float) -> None:
    assert parse_double(text) == number
    assert math.isnan(parse_double("-NaN"))


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_0", "\u0661", "0x1", ".", "1e", "NaNf", "1 "])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="it is no number"):
        parse_double(text)


def test_truth_values_in_any_case() -> None:
    assert (parse_boolean("TrUe"), parse_boolean("fal\u017fe")) == (True, False)
    with pytest.raises(ValueError, match="neither true nor false"):
        parse_boolean("yes")


def test_lists() -> None:
    assert split_list("a ,\tb,,\xa0c,") == ["a", "b", "", "\xa0c", ""]
    assert [split(text) for text in ("", ",", "a,,", ",a")] == [[""], [], ["a"], ["", "a"]]


def test_durations() -> None:
    assert parse_duration("P1DT1H1M1.5S") == 90_061_500_000_000
    assert parse_duration("-PT0,5S") == -500_000_000
    assert parse_duration("P1Dt") == 86_400_000_000_000
    for text in ("PT", "P", "P1W", "PT1.1234567890S", "P106751991167301D", "P99999999999999999999D", "P\u0661D"):
        with pytest.raises(ValueError, match=r"duration|bits"):
            parse_duration(text)
