"""Groups of segments that are cleaned into one segment, so that segments do not get smaller and smaller.

Source: org.apache.kafka.storage.internals.log.Cleaner.groupSegmentsBySize.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kraftlake.replica_manager.logs.disk.log_segment import LARGEST_RELATIVE_OFFSET, LogSegment
from kraftlake.replica_manager.logs.log_config import LogConfig


def segment_groups(segments: Sequence[LogSegment], config: LogConfig, end: int) -> list[list[LogSegment]]:
    """Consecutive segments in groups, each of which is at most as large as one segment may be.

    `end` is the offset after the last one.
    """
    groups: list[list[LogSegment]] = []
    ends = [after.base_offset for _, after in pairwise(segments)] + [end]
    for segment, segment_end in zip(segments, ends, strict=True):
        group = groups[-1] if groups else []
        if group and _fits([*group, segment], segment_end, config):
            group.append(segment)
        else:
            groups.append([segment])
    return groups


def _fits(group: Sequence[LogSegment], end: int, config: LogConfig) -> bool:
    sizes = [sum(column) for column in zip(*(segment.file_sizes for segment in group), strict=True)]
    limits = (config.segment_bytes, config.segment_index_bytes, config.segment_index_bytes)
    if any(size > limit for size, limit in zip(sizes, limits, strict=True)):
        return False
    return group[-1].size == 0 or end - 1 - group[0].base_offset <= LARGEST_RELATIVE_OFFSET
