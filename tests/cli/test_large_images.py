"""`kraftlake image` of large clusters, which it asks their columns about: it prints what it prints of small ones."""

from __future__ import annotations

import os

import pytest

from kraftlake.image import json_form
from kraftlake.image.topics import topics_image
from tests.cli.running import DIRECTORY, run

OFFSETS = [458, 3300, 4592]
"""Partitions are offline after the first, under-replicated after the second, and there are wide ones at the last."""

ASKED = [
    (),
    ("--topic", "big-*"),
    ("--topic", "elr-a", "--topic", "nothing*"),
    ("--topic-id", "nANz2uTcTHue83qLIJ1OVA"),
    ("--topic-id", "95eekTTkQIyb_UAiwezePg", "--topic", "elr-a"),
    ("--broker", "2"),
    ("--unavailable-partitions",),
    ("--under-replicated-partitions",),
    ("--unavailable-partitions", "--under-replicated-partitions", "--topic", "t-*"),
    ("--broker", "2", "--topic", "t-1*"),
    ("--under-replicated-partitions", "--broker", "1"),
    ("--under-min-isr-partitions",),
    ("--at-min-isr-partitions", "--topic", "t-*"),
    ("--at-min-isr-partitions", "--under-replicated-partitions"),
    ("--part", "features"),
    ("--part", "topics", "--all"),
    ("--part", "topics", "--part", "configs", "--broker", "1"),
]


LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
IMAGES = [
    (offset, asked) for number, asked in enumerate(ASKED) for offset in (OFFSETS if LONG else [OFFSETS[number % 3]])
]
"""Each question at one of the offsets in turn, in the long profile at all of them."""


@pytest.mark.parametrize(("offset", "asked"), IMAGES, ids=str)
def test_a_large_image_is_shown_as_a_small_one(
    monkeypatch: pytest.MonkeyPatch, offset: int, asked: tuple[str, ...]
) -> None:
    def outputs() -> list[tuple[str, str]]:
        given = ("image", DIRECTORY, "--at-offset", offset, *asked)
        return [(shown.stdout, shown.stderr) for shown in (run(*given, width=120), run(*given, "--json"))]

    small = outputs()
    monkeypatch.setattr(topics_image, "PACK_FROM", 0)
    assert outputs() == small


def test_no_topic_is_read_that_nobody_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    partition_json = json_form.partition_json

    def counting(*given):  # type: ignore[no-untyped-def]
        nonlocal read
        read += 1
        return partition_json(*given)

    monkeypatch.setattr(topics_image, "PACK_FROM", 0)
    monkeypatch.setattr(json_form, "partition_json", counting)
    run("image", DIRECTORY, "--topic", "elr-a")
    assert 0 < read < 10
    read = 0
    run("image", DIRECTORY, "--part", "features")
    assert read == 0
