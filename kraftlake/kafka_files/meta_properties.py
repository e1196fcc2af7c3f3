"""The cluster id, from the `meta.properties` that every log directory of a node has.

Source: org.apache.kafka.metadata.properties.MetaProperties.
"""

from __future__ import annotations

import re
from pathlib import Path

from kraftlake.kafka_files.file_names import META_PROPERTIES

MAX_SIZE = 64 * 1024
_CLUSTER_ID = re.compile(rb"^[ \t]*cluster\.id[ \t]*[=: \t][ \t]*([\x21-\x7e]{1,255})[ \t]*\r?$", re.MULTILINE)


def cluster_id_in(content: bytes) -> str | None:
    """The `cluster.id` of a `meta.properties`, the last one where it is repeated; None without one."""
    found = _CLUSTER_ID.findall(content[:MAX_SIZE])
    return found[-1].decode("ascii") if found else None


def find_cluster_id(directory: Path) -> str | None:
    """The cluster id that a `meta.properties` in `directory`, beside it or one level above says; the nearest counts."""
    here = directory.absolute()
    for folder in (here, here.parent, here.parent.parent):
        file = folder / META_PROPERTIES
        try:
            if not file.is_file():
                continue
            with file.open("rb") as stream:
                cluster_id = cluster_id_in(stream.read(MAX_SIZE))
        except OSError:
            continue
        if cluster_id is not None:
            return cluster_id
    return None
