"""The whole metadata log of a history, judged by Kafka's specifications."""

from __future__ import annotations

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.spec.judge import judge_log
from simulator.invariants import violated
from simulator.lake_disk import LakeDisk
from simulator.lake_store import BUCKET, LakeStore


def check_specification(lake: LakeStore | LakeDisk, name: str) -> int:
    """Judge all records of a lake, which is the folder `name` of its store or disk; gives how many properties had any.

    Raises InvariantError for the first violation that is not a known bug of Kafka 4.4 itself.
    """
    place = lake.root / name if isinstance(lake, LakeDisk) else f"{BUCKET}/{name}"
    report = judge_log(LakeReader(MetadataLog.open(place)))
    for one in report.violations:
        if one.known_bug is not None and one.known_bug.mended is None:
            continue
        violated(f"offset {one.offset} of the metadata log, {one.record}, {one.name}: {one.sentence}")
    if report.stopped is not None:
        violated(f"the metadata log was judged up to {report.to_offset}: {report.stopped}")
    return sum(count > 0 for count in report.judged.values())
