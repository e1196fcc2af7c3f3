"""The replicas in log directories that their brokers do not have online. Imports numpy."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from kraftlake.diagnosis.image_columns import ImageColumns
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.uuid import Uuid


def offline_replicas(image: MetadataImage) -> dict[tuple[int, Uuid], list[tuple[str, int]]]:
    """The partitions (topic, number) with a replica in an offline directory, by registered broker and directory."""
    brokers = image.cluster.brokers
    columns = ImageColumns.of(image)
    replicas = columns.states.hosts.replicas
    pairs, which = columns.directories()
    offline = [id_ in brokers and not brokers[id_].has_online_dir(directory) for id_, directory in pairs]
    places = np.flatnonzero(np.array(offline, np.bool_)[which])
    rows = np.repeat(np.arange(len(replicas)), replicas.lengths)[places]
    found: dict[tuple[int, Uuid], list[tuple[str, int]]] = defaultdict(list)
    for (topic, _, number), place in zip(columns.at(rows), which[places].tolist(), strict=True):
        found[pairs[place]].append((topic, number))
    return {pair: sorted(some) for pair, some in sorted(found.items(), key=lambda item: (item[0][0], str(item[0][1])))}
