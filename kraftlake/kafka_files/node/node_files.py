"""The metadata logs of several nodes, as a bundle of folders or an archive holds them, and the choice of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from kraftlake.kafka_files.node.meta_properties import MetaProperties
from kraftlake.runtime import Value, shown
from kraftlake.runtime.errors import NotASourceError

if TYPE_CHECKING:
    from kraftlake.kafka_files.directory import MetadataDirectory

_NAMED = 8
"""How many nodes a message names."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class NodeFiles(Value):
    """The metadata log of one node.

    `folder` is where it lies: a path, or a folder of the `archive` of that path. `properties` are those of the
    `meta.properties` near it, `quorum_state` is the content of its file `quorum-state`, None where there is none.
    `open` opens the log, and raises CorruptDataError for a broken one.
    """

    folder: str
    archive: str | None = None
    properties: MetaProperties = MetaProperties()
    quorum_state: bytes | None = None
    open: Callable[[], MetadataDirectory] = attrs.field(repr=False, eq=False)

    def __str__(self) -> str:
        id_ = self.properties.node_id
        return f"node {'?' if id_ is None else id_} in {shown(self.folder)}"


def node_named(nodes: Sequence[NodeFiles], node: int | None, where: str) -> NodeFiles:
    """The files of the node with an id among those found in `where`; None stands for the only one.

    Raises NotASourceError that names what was found, where that chooses none or more than one.
    """
    found = [one for one in nodes if node is None or one.properties.node_id == node]
    if len(found) == 1:
        return found[0]
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    named = f"{', '.join(map(str, nodes[:_NAMED]))}{more}"
    if not found:
        raise NotASourceError(f"{where} holds no metadata log of node {node}: there is {named}")
    ids = [one.properties.node_id for one in found]
    way_out = "choose one with --node ID" if len({*ids} - {None}) == len(ids) else "name one of these"
    count = "" if node is None else f" of node {node}"
    raise NotASourceError(f"{where} holds {len(found)} metadata directories{count} ({named}): {way_out}")
