"""Generated lakes that several benchmarks read, and their sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan

PARTITIONS_OF_A_TOPIC: Final = 20
_UNITS = {"k": 1_000, "M": 1_000_000}


@attrs.frozen(kw_only=True)
class Size:
    """The size of a generated log."""

    records: int
    partitions: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """RECORDS:PARTITIONS, each with k or M behind it."""
        records, _, partitions = text.partition(":")
        return cls(records=number(records), partitions=number(partitions or records))

    def __str__(self) -> str:
        return f"{short(self.records)} records over {short(self.partitions)} partitions"


def number(text: str) -> int:
    """A number that may end in k or M."""
    return int(float(text[:-1]) * _UNITS[text[-1]]) if text[-1] in _UNITS else int(text)


def short(count: int) -> str:
    """The number as people say it."""
    return f"{count / 1e6:g} M" if count >= 1_000_000 else f"{count / 1e3:g} k"


def lake_of(name: str, folder: Path, records: int, partitions: int) -> Path:
    """A generated lake, made where it is not there."""
    lake = folder / f"{name}-{records}-{partitions}"
    if not lake.exists():
        topics = max(1, partitions // PARTITIONS_OF_A_TOPIC)
        plan = Plan(brokers=60, topics=topics, partitions=PARTITIONS_OF_A_TOPIC, records=records)
        if name == "no-op":
            # Nothing but a config a day and what an idle controller writes each half second.
            plan = Plan(topics=topics, records=records, patterns=("config-changes",), quiet_ms=86_400_000)
        elif name == "topics":  # the busy one without the records that are of no topic
            patterns = ("isr-flaps", "reassignment-storm", "topic-churn")
            plan = attrs.evolve(plan, patterns=patterns)
        elif name == "cluster":  # brokers and configs change all the time, and hardly a partition
            patterns = ("rolling-restart", "config-changes", "config-changes")
            plan = Plan(brokers=60, topics=5, partitions=4, records=records, patterns=patterns, quiet_ms=0)
        generate_lake(lake, plan)
    return lake
