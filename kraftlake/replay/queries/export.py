"""Exports the image at an offset as a KRaft snapshot file, which Kafka's own tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from kraftlake.image.writer_options import CollectedLosses, refuse_loss
from kraftlake.kafka_files.file_names import snapshot_name
from kraftlake.kafka_files.writer import write_checkpoint
from kraftlake.replay.loader.fold import Replay
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import OffsetError, UnwritableMetadataError, UsageError
from kraftlake.runtime.json_names import fields_as_json
from kraftlake.runtime.moments import Moment
from kraftlake.runtime.whole_file import check_folder_of


@attrs.frozen(kw_only=True)
class ExportReport:
    """A snapshot file that was written.

    `offset` is its last offset, `suggested_name` the file name that Kafka expects, None where the offset is unknown.
    `losses` are sentences on state that its metadata.version could not express, `notes` on state that Kafka 4.4 ignores
    anyway.
    """

    path: str
    offset: int
    epoch: int
    size_in_bytes: int
    suggested_name: str | None
    kraft_version: int
    losses: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake export --json`."""
        return fields_as_json(self)


def export(
    source: LogSource, path: Path, at: Moment | None = None, *, allow_loss: bool = False, lenient: bool = False
) -> ExportReport:
    """Write the image at `at` (an offset or a time, None is the end) to `path`; in a folder, under Kafka's name.

    Records have the versions that the image's metadata.version allows. State that it can't express raises
    UnwritableMetadataError, or with `allow_loss` is left out and listed. kraft.version and voters are those of the log,
    or of the snapshot that the image was loaded from. A snapshot holds whole batches, so an offset inside of a batch
    raises OffsetError unless `allow_loss`; a diverged image raises UnwritableMetadataError likewise. Raises UsageError
    for a folder where the offset is unknown, which the name would state.
    """
    replay = source.replay(at, lenient=lenient)
    image, losses = replay.image, CollectedLosses()
    if not allow_loss:
        check_exportable(source, replay, "export")
    name = snapshot_name(image.provenance.offset + 1, image.provenance.epoch) if source.has_offsets else None
    if path.is_dir() and name is None:
        raise UsageError(
            f"The offset of {source.name} is unknown, so its snapshot has no name in {path}: name the file."
        )
    target = path / name if path.is_dir() and name else path
    check_folder_of(target)
    options = image.writer_options(loss_handler=losses if allow_loss else refuse_loss)
    quorum, words = replay.quorum, image.configs.ignored_words
    size = write_checkpoint(
        target,
        image.write_bulk(options),
        epoch=image.provenance.epoch,
        timestamp=image.provenance.timestamp,
        kraft_version=quorum.kraft_version,
        voters=quorum.voters if quorum.kraft_version >= 1 else None,
    )
    return ExportReport(
        path=str(target),
        offset=image.provenance.offset,
        epoch=image.provenance.epoch,
        size_in_bytes=size,
        suggested_name=name,
        kraft_version=quorum.kraft_version,
        losses=losses.losses,
        notes=(f"configs that Kafka 4.4 does not know are not in it: {words}",) if words else (),
    )


def check_exportable(source: LogSource, replay: Replay, verb: str) -> None:
    """Raise for an image that the cluster never had: UnwritableMetadataError where it has diverged, else OffsetError.

    A batch takes effect as a whole: there is no state between its records. `verb` is the user's action with the image.
    """
    if replay.diverged:
        first = replay.skipped[0]
        raise UnwritableMetadataError(
            f"The image of {source.name} has diverged: {len(replay.skipped)} records could not be replayed, the first "
            f"at offset {first.offset}. Use --allow-loss to write it without them."
        )
    if not replay.image.provenance.batch_aligned:
        offset = replay.image.offset
        batch = next(iter(source.batches(offset, offset)))
        before = f"{batch.base_offset - 1} or " if batch.base_offset > source.start_offset else ""
        raise OffsetError(
            f"Offset {offset} lies inside of a batch, which took effect as a whole: {verb} offset "
            f"{before}{batch.last_offset}."
        )
