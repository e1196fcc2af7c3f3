"""The cluster and the node that a log belongs to, from the `meta.properties` in each log directory of a node.

Source: org.apache.kafka.metadata.properties.MetaProperties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import attrs

from kraftlake.kafka_files.file_names import META_PROPERTIES
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.java_properties import parse_properties
from kraftlake.runtime.whole_file import write_whole

MAX_SIZE = 64 * 1024
_LEVELS = 2
"""The maximum number of levels above a metadata directory at which the file may lie."""
_WORD = re.compile(r"[\x21-\x7e]{1,255}")
_ESCAPED = re.compile(r"[\\=:#!]")
_NODE_ID = re.compile(r"[0-9]{1,10}")


@attrs.frozen(kw_only=True)
class MetaProperties:
    """The properties in a `meta.properties`; None for missing or malformed ones."""

    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: Uuid | None = None


def read_properties(content: bytes) -> MetaProperties:
    """Parse a `meta.properties`; of repeated properties, the last one counts."""
    try:
        found = parse_properties(content[:MAX_SIZE])
    except ValueError:
        found = {}
    cluster_id, node_id = found.get("cluster.id", "").strip(), found.get("node.id", "").strip()
    return MetaProperties(
        cluster_id=cluster_id if _WORD.fullmatch(cluster_id) else None,
        node_id=int(node_id) if _NODE_ID.fullmatch(node_id) and int(node_id) < 2**31 else None,
        directory_id=_uuid(found.get("directory.id", "").strip()),
    )


def find_properties(directory: Path) -> MetaProperties:
    """Return the properties of the nearest `meta.properties` with a cluster id, up to two levels above `directory`."""
    here = directory.absolute()
    for folder in (here, *here.parents[:_LEVELS]):
        file = folder / META_PROPERTIES
        try:
            if not file.is_file():
                continue
            with file.open("rb") as stream:
                properties = read_properties(stream.read(MAX_SIZE))
        except OSError:
            continue
        if properties.cluster_id is not None:
            return properties
    return MetaProperties()


def write_meta_properties(folder: Path, *, cluster_id: str, node_id: int, directory_id: Uuid) -> None:
    """Write a `meta.properties` atomically; raises OSError, and as `meta_properties`."""
    content = meta_properties(cluster_id=cluster_id, node_id=node_id, directory_id=directory_id)
    write_whole(folder / META_PROPERTIES, [content])


def meta_properties(*, cluster_id: str, node_id: int, directory_id: Uuid) -> bytes:
    """The content of a `meta.properties` of version 1, as `kafka-storage format` writes it.

    A node does not start on a directory of another cluster or node. Raises UsageError for a cluster id that is not a
    single word.
    """
    if not _WORD.fullmatch(cluster_id):
        raise UsageError(f"{cluster_id!r} is no cluster's id: it has 1 to 255 visible characters of ASCII.")
    escaped = _ESCAPED.sub(r"\\\g<0>", cluster_id)
    lines = {"cluster.id": escaped, "directory.id": directory_id, "node.id": node_id, "version": 1}
    return "".join(f"{key}={value}\n" for key, value in lines.items()).encode()


def nearest_properties(found: Mapping[str, MetaProperties], folder: str) -> MetaProperties:
    """The same as `find_properties`, among the properties `found` in the folders of an archive."""
    parts = folder.split("/") if folder else []
    for depth in range(len(parts), max(len(parts) - _LEVELS - 1, -1), -1):
        properties = found.get("/".join(parts[:depth]))
        if properties is not None and properties.cluster_id is not None:
            return properties
    return MetaProperties()


def _uuid(text: str) -> Uuid | None:
    try:
        return Uuid.from_string(text)
    except ValueError:
        return None
