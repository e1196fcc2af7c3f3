"""The check of an upgrade against the state at an offset of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from kraftlake.diagnosis.blaming import newest_changes
from kraftlake.diagnosis.upgrade.level_obstacles import current_level, level_obstacles
from kraftlake.diagnosis.upgrade.obstacle import Obstacle, RecordPlace
from kraftlake.diagnosis.upgrade.release_obstacles import migration_obstacle, release_obstacles, version_obstacle
from kraftlake.diagnosis.upgrade.target import Target
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records.metadata_records import FeatureLevelRecord, RegisterControllerRecord, ZkMigrationStateRecord
from kraftlake.records.metadata_version import MINIMUM_OF_KAFKA_4
from kraftlake.records.schema import Message
from kraftlake.replay.loader.fold import Replay
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.loader.quorum_state import QuorumState, leader_change_at
from kraftlake.replay.loader.record_faults import type_of
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import chunks_of, chunks_of_snapshot, cut
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.errors import OffsetError


@attrs.frozen(kw_only=True)
class UpgradeCheck:
    """The obstacles of an upgrade at an offset, those that refuse it first; `current` is the level of its feature."""

    provenance: MetadataProvenance
    target: Target
    current: int
    obstacles: tuple[Obstacle, ...]
    skipped: tuple[SkippedRecord, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether nothing refuses the upgrade."""
        return not any(one.refuses for one in self.obstacles)

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake upgrade-check --json`."""
        return self.provenance.to_json() | {
            "target": self.target.to_json(),
            "current": self.current,
            "allowed": self.allowed,
            "obstacles": [one.to_json() for one in self.obstacles],
        }


def check_upgrade(source: LogSource, target: Target, at: int, *, lenient: bool = False) -> UpgradeCheck:
    """Check an upgrade at the offset `at`. Raises OffsetError for a log without metadata.version, else as `replay`.

    Of a level, the obstacles are those for which the active controller refuses it. For a release, running nodes of an
    older one are to be restarted and refuse nothing.
    """
    leftovers = [] if target.release is None else [*_leftovers(source, target, at)]
    if leftovers and leftovers[-1].check == "metadata_version_too_low":  # of such a log there is no image
        return UpgradeCheck(
            provenance=attrs.evolve(MetadataProvenance.EMPTY, offset=at),
            target=target,
            current=_newest_level(source, at),
            obstacles=tuple(leftovers),
        )
    replay = source.replay(at, lenient=lenient)
    image, quorum = replay.image, _quorum(source, replay, at)
    if image.features.metadata_version is None:
        raise OffsetError(f"{source.name} has no {METADATA_VERSION} at offset {at}, so nothing can be upgraded there.")
    found = list(level_obstacles(target, image, quorum))
    if target.release is not None:
        found = [_of_release(one) for one in found if one.check != "metadata_lost"]
        found = [*release_obstacles(target, image), *leftovers, *found]
    found.sort(key=lambda one: not one.refuses)
    return UpgradeCheck(
        provenance=image.provenance,
        target=target,
        current=current_level(target.feature, image, quorum),
        obstacles=tuple(_with_records(source, found, at, lenient=lenient)),
        skipped=tuple(replay.skipped),
    )


def _of_release(obstacle: Obstacle) -> Obstacle:
    """The obstacle of a release's level: running nodes of an older release are those that get the new one."""
    return attrs.evolve(obstacle, refuses=obstacle.refuses and obstacle.check != "unsupported_level")


def _quorum(source: LogSource, replay: Replay, at: int) -> QuorumState:
    """The state of the quorum with the leader of the offset's epoch, as far as the log has the begin of that epoch."""
    quorum = replay.quorum
    if quorum.leader_id is not None or source.kind is SourceKind.SNAPSHOT:
        return quorum
    newest = leader_change_at(source.reader, at)
    return attrs.evolve(quorum, leader_id=newest.leader_id, static_voters=newest.static_voters)


def _leftovers(source: LogSource, target: Target, at: int) -> Iterator[Obstacle]:
    """The obstacles that no image has: a migration from ZooKeeper, and a metadata.version of before Kafka 3.3."""
    for place, message in _newest(source, ZkMigrationStateRecord, at)[-1:]:
        obstacle = migration_obstacle(message.zk_migration_state)
        if obstacle is not None:
            yield attrs.evolve(obstacle, record=place)
    obstacle = version_obstacle(target, _newest_level(source, at))
    if obstacle is not None and obstacle.check == "metadata_version_too_low":
        records = _newest(source, FeatureLevelRecord, at)
        yield attrs.evolve(obstacle, record=next((place for place, one in reversed(records) if _is_version(one)), None))


def _newest_level(source: LogSource, at: int) -> int:
    """The level of metadata.version by its newest record up to an offset, whether it can be replayed or not."""
    found = [one.feature_level for _, one in _newest(source, FeatureLevelRecord, at) if _is_version(one)]
    return int(found[-1]) if found else MINIMUM_OF_KAFKA_4.level


def _is_version(record: Any) -> bool:
    return bool(record.name == METADATA_VERSION)


def _with_records(source: LogSource, obstacles: Iterable[Obstacle], at: int, *, lenient: bool) -> Iterator[Obstacle]:
    """The obstacles with the records behind them."""
    held = list(obstacles)
    changes = newest_changes(source, [one.thing for one in held if one.thing is not None], at, lenient=lenient)
    of_controllers: dict[str, RecordPlace] = {}
    if any(one.things and one.things[0].startswith("controller ") for one in held):
        for place, message in _newest(source, RegisterControllerRecord, at):
            of_controllers[f"controller {message.controller_id}"] = place
    for one in held:
        change = None if one.thing is None else changes.get(one.thing)
        if change is not None:
            type_ = None if change.or_earlier else change.type
            yield attrs.evolve(one, record=RecordPlace(offset=change.offset, timestamp=change.timestamp, type=type_))
        else:
            yield attrs.evolve(one, record=one.record or of_controllers.get(next(iter(one.things), "")))


def _newest(source: LogSource, type_: type[Message], at: int) -> list[tuple[RecordPlace, Any]]:
    """The records of a type up to an offset, in order; those of the oldest snapshot first where the log lacks them."""
    from kraftlake.replay.log.effective_records import standing_alone  # imports numpy

    reader, found = source.reader, list[tuple[RecordPlace, Any]]()
    snapshots = [one for one in usable_snapshots(reader) if one.end_offset <= at + 1]
    for snapshot in snapshots[:1] if reader.start_offset > 1 or source.kind is SourceKind.SNAPSHOT else ():
        for part in chunks_of_snapshot(snapshot):
            records = standing_alone(part)
            for number in records.are_of((type_.API_KEY,)).nonzero()[0].tolist():
                place = RecordPlace(offset=snapshot.end_offset - 1, timestamp=None, type=None)
                found.append((place, records.message(number)))
    if source.kind is SourceKind.SNAPSHOT:
        return found
    for part in chunks_of(reader, reader.start_offset, min(at, reader.end_offset - 1)):
        records = standing_alone(cut(part, reader.start_offset, at))
        for number in records.are_of((type_.API_KEY,)).nonzero()[0].tolist():
            time, message = int(records.times[number]), records.message(number)
            place = RecordPlace(
                offset=int(records.offsets[number]), timestamp=None if time < 0 else time, type=type_of(message)
            )
            found.append((place, message))
    return found
