"""The start of each of a cluster's troubles, by one pass over the log. Imports numpy."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import attrs

from kraftlake.diagnosis.doctor.activity import Activity
from kraftlake.diagnosis.doctor.directory_moves import DirectoryMove, DirectoryMoves
from kraftlake.diagnosis.doctor.partition_times import (
    AffectedPartition,
    PartitionKey,
    PartitionTimes,
    UncleanElection,
    concerned_in,
)
from kraftlake.diagnosis.doctor.registration_history import RegistrationHistory
from kraftlake.diagnosis.doctor.setting_history import SettingChange, SettingHistory
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.replay_base import has_beginning, usable_snapshots
from kraftlake.runtime.errors import KraftlakeError


@attrs.frozen(kw_only=True)
class Timeline:
    """The result of a pass over the log, up to the offset of an image.

    `partitions` has the partitions of the image that meet each of CONDITIONS, by topic and number. The image's
    `min.insync.replicas` applies to the past too. `unclean` are the unclean elections and `settings` the changes of
    configs and ACLs, both of the recent time and by offset. `late_begin` is the first offset that was read, where the
    log has earlier ones of the recent time, None else. `registrations` are those of all nodes, `activity` the counts,
    `moves` the replicas that moved to another log directory. `begin` is the first offset that was read, None where that
    is the first with a change that the source knows, and all later offsets are sound.
    """

    partitions: Mapping[str, tuple[AffectedPartition, ...]]
    unclean: tuple[UncleanElection, ...]
    settings: tuple[SettingChange, ...]
    registrations: RegistrationHistory
    activity: Activity
    moves: tuple[DirectoryMove, ...]
    late_begin: int | None = None
    begin: int | None = None


def read_timeline(
    source: LogSource, image: MetadataImage, *, recent_ms: int, window_ms: int, thorough: bool = True
) -> Timeline:
    """Read the log of a source up to the offset of its image.

    The recent time begins at `recent_ms`, the window of the counts at `window_ms` (epoch ms).

    A log with damage or a gap is read from the newest snapshot after it, and a snapshot file has no past at all.
    Without `thorough` a log is read from the newest snapshot before the recent time.
    """
    now = concerned_in(image)
    at = image.provenance.offset
    begins = _begins(source, at) if thorough else _recent_begins(source, at, recent_ms)
    is_sound = not any(broken.first <= at for broken in source.broken_ranges)
    for begin in begins:
        with suppress(KraftlakeError):
            found = _read(source, begin, image, now, recent_ms=recent_ms, window_ms=window_ms)
            return found if is_sound and begin == begins[0] else attrs.evolve(found, begin=begin)
    return attrs.evolve(_read(source, at + 1, image, now, recent_ms=recent_ms, window_ms=window_ms), begin=at + 1)


def _begins(source: LogSource, at: int) -> list[int]:
    """The offsets from which the log can be read up to `at`: the lowest, then the highest."""
    start = source.start_offset
    if at >= source.end_offset:
        return []
    ends = [s.end_offset for s in usable_snapshots(source.reader) if start <= s.end_offset <= at + 1]
    last_gap = max((broken.last for broken in source.broken_ranges if broken.first <= at), default=-1)
    begins = sorted(begin for begin in {*ends, *([0] if has_beginning(source.reader) else [])} if begin > last_gap)
    return begins[:1] + begins[1:][-1:]


def _recent_begins(source: LogSource, at: int, recent_ms: int) -> list[int]:
    """The offset from which the recent time is known, then the highest from which the log can be read up to `at`."""
    early = [
        snapshot.end_offset
        for snapshot in usable_snapshots(source.reader)
        if source.start_offset <= snapshot.end_offset <= at + 1
        and 0 <= snapshot.last_contained_log_timestamp <= recent_ms
    ]
    begins = _begins(source, at)
    return [early[-1], *(begin for begin in begins[-1:] if begin > early[-1])] if early else begins


def _read(
    source: LogSource,
    begin: int,
    image: MetadataImage,
    now: Mapping[str, dict[PartitionKey, AffectedPartition]],
    *,
    recent_ms: int,
    window_ms: int,
) -> Timeline:
    at, deltas, before, quorum = image.provenance.offset, LogReplay(), MetadataImage.EMPTY, None
    if begin > at:
        before = image
    elif begin > 0:
        replay = source.replay(begin - 1, from_snapshot=True)
        before, quorum = replay.image, replay.quorum
    deltas.begin(before, quorum)
    settings, partitions = SettingHistory(before), PartitionTimes(image, now)
    registrations, activity = RegistrationHistory(before), Activity(window_ms, before.provenance.epoch)
    moves = DirectoryMoves()
    for chunk in deltas.read(source.reader, at):
        partitions.take(chunk.partitions)
        settings.take(chunk)
        registrations.take(chunk.others)
        activity.take(chunk)
        moves.take(chunk.partitions)
    is_late = begin > source.start_offset and before.provenance.timestamp >= recent_ms
    return Timeline(
        partitions={name: tuple(found.values()) for name, found in partitions.found.items()},
        unclean=tuple(one for one in partitions.unclean if (one.at.timestamp or -1) >= recent_ms),
        settings=tuple(settings.changed(begin, recent_ms)),
        registrations=registrations,
        activity=activity,
        moves=tuple(moves.found),
        late_begin=begin if is_late else None,
    )
