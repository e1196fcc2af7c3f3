"""The names of the files in a metadata directory, and the offsets and epochs in them.

Source: org.apache.kafka.storage.internals.log.LogFileUtils (segments) and org.apache.kafka.snapshot.Snapshots.
"""

from __future__ import annotations

import re

METADATA_DIRECTORY = "__cluster_metadata-0"
META_PROPERTIES = "meta.properties"
BOOTSTRAP_NAME = "bootstrap.checkpoint"

ARCHIVE_SUFFIXES = (
    ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tzst", ".tar.bz2", ".tbz2", ".zip",
)  # fmt: skip
_PACKED = re.compile(r"(.+)\.(?:gz|bz2|xz|zst)", re.DOTALL)
_SEGMENT = re.compile(r"([0-9]{20})\.log")
_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_PARTITION_DIRECTORY = re.compile(r"(.+)-([0-9]+)")
_MAX_OFFSET = 2**63 - 1
_MAX_EPOCH = 2**31 - 1


def segment_base_offset(name: str) -> int | None:
    """The base offset in a segment's name; None for any other file, such as `*.log.deleted`."""
    match = _SEGMENT.fullmatch(name)
    if match is None or int(match[1]) > _MAX_OFFSET:
        return None
    return int(match[1])


def segment_name(base_offset: int) -> str:
    """The name of the segment whose first offset is `base_offset`."""
    return f"{base_offset:020d}.log"


def snapshot_id(name: str) -> tuple[int, int] | None:
    """The end offset and the epoch in a snapshot's name; None for any other file, such as `*.checkpoint.part`."""
    match = _SNAPSHOT.fullmatch(name)
    if match is None or int(match[1]) > _MAX_OFFSET or int(match[2]) > _MAX_EPOCH:
        return None
    return int(match[1]), int(match[2])


def snapshot_name(end_offset: int, epoch: int) -> str:
    """The name of the snapshot of all offsets below `end_offset`, the last of which has `epoch`."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


def partition_of(directory_name: str) -> str | None:
    """`foo-0` for the folder of a data topic's partition; None for any other folder."""
    match = _PARTITION_DIRECTORY.fullmatch(directory_name)
    return directory_name if match is not None and directory_name != METADATA_DIRECTORY else None


def is_log_file(name: str) -> bool:
    """Whether a file name in a metadata directory belongs to a part of the log or a snapshot, perhaps compressed."""
    plain = unpacked_name(name)
    return segment_base_offset(plain) is not None or snapshot_id(plain) is not None


def unpacked_name(name: str) -> str:
    """The name without a codec's suffix for compressed files; any other name is unchanged."""
    match = _PACKED.fullmatch(name)
    return name if match is None else match[1]


def is_packed_log_file(name: str) -> bool:
    """Whether the name belongs to a segment or a snapshot that is compressed on its own: `….log.gz`."""
    return unpacked_name(name) != name and is_log_file(name)
