"""The comparison of a snapshot with what a log's replay gives at its end."""

from __future__ import annotations

import attrs

from kraftlake.image.configurations_image import TOPIC_RESOURCE
from kraftlake.image.diff import diff_images
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.reading.open_reader import SnapshotReader
from kraftlake.replay.verify.findings import Findings
from kraftlake.runtime.words import counted

_SHOWN_DIFFERENCES = 3


def compare_snapshot(
    findings: Findings, snapshot: SnapshotReader, image: MetadataImage, log: MetadataImage | None, *, epoch: int
) -> bool:
    """Compare a snapshot's image with the log's, which is of an epoch there; whether the log has one."""
    offset = snapshot.end_offset - 1
    if snapshot.epoch != epoch:
        findings.add(
            f"the snapshot says that offset {offset} is of epoch {snapshot.epoch}, the log has epoch {epoch}.",
            offset=offset,
            file=snapshot.name,
        )
    if log is None:
        findings.note(f"{snapshot.name} was not compared: records before its end could not be replayed.")
        return False
    image = _without_leftovers(findings, log, snapshot, image)
    differences = diff_images(log, image).changes
    if differences:
        shown = "; ".join(change.describe() for change in differences[:_SHOWN_DIFFERENCES])
        more = len(differences) - _SHOWN_DIFFERENCES
        findings.add(
            f"the snapshot is not what replaying the log up to its end gives (log → snapshot): {shown}"
            + (f"; and {more} more." if more > 0 else "."),
            offset=offset,
            file=snapshot.name,
        )
    return True


def _without_leftovers(
    findings: Findings, log: MetadataImage, snapshot: SnapshotReader, image: MetadataImage
) -> MetadataImage:
    """The snapshot's image without the configs that Kafka keeps for topics that it deletes while catching up.

    A node that loads a topic's creation, config and removal in one delta leaves the config in its image, and so in
    its snapshots. The leftover is not damage, and every node that was restarted may have it.
    """
    ours, theirs = log.configs.resource_data, image.configs.resource_data
    gone = [
        one
        for one in theirs
        if one.type == TOPIC_RESOURCE and one not in ours and image.topics.get_topic(one.name) is None
    ]
    if not gone:
        return image
    names = sorted(one.name for one in gone)
    more = f" and {len(names) - _SHOWN_DIFFERENCES} more" if len(names) > _SHOWN_DIFFERENCES else ""
    findings.note(
        f"{snapshot.name} has configs of {counted(len(names), 'topic')} that had been deleted before "
        f"({', '.join(names[:_SHOWN_DIFFERENCES])}{more}): Kafka keeps them where it catches up in one delta, and "
        "a new topic of that name gets them."
    )
    for one in gone:
        theirs = theirs.remove(one)
    return attrs.evolve(image, configs=attrs.evolve(image.configs, resource_data=theirs))
