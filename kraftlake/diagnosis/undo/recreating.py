"""The steps that make a described cluster from nothing."""

from __future__ import annotations

from kraftlake.diagnosis.drift.comparison import compare
from kraftlake.diagnosis.drift.description import ClusterDescription
from kraftlake.diagnosis.undo.drafts import Sides, drafts_of
from kraftlake.diagnosis.undo.order import in_order
from kraftlake.diagnosis.undo.step import Step
from kraftlake.image.metadata_image import MetadataImage


def steps_to(image: MetadataImage, described: ClusterDescription) -> list[Step]:
    """The steps from an empty cluster to a description made of an image; features are chosen when one is formatted."""
    sides = Sides(present=image, past=image, now=ClusterDescription(), then=described)
    found = compare(sides.now, sides.then, internal=True).changes
    drafts = [draft for one in found if one.change.part != "features" for draft in drafts_of(sides, one)]
    return in_order(draft.step for draft in drafts)
