"""The records of the log that undid what a plan brings back."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from kraftlake.diagnosis.blaming import holding_since
from kraftlake.diagnosis.thing_changes import changes_after
from kraftlake.diagnosis.things import Thing
from kraftlake.diagnosis.undo.step import Evidence
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.queries.source import LogSource


class Undone(NamedTuple):
    """A thing, and the value that it had: None for nothing, True for any, a list or an object as `hashable`."""

    thing: Thing
    value: Any


def evidence_of(
    source: LogSource, undone: Iterable[Undone], begin: int, end: int, *, lenient: bool = False
) -> dict[Undone, Evidence]:
    """The record of the offsets (begin, end] since which each thing has not had its value, where there is one."""
    wanted = list(dict.fromkeys(undone))
    if not wanted or begin >= end:
        return {}
    lines = changes_after(source, (one.thing for one in wanted), begin, end, lenient=lenient).lines
    found = {}
    for one in wanted:
        change = holding_since(lines.get(one.thing, ()), partial(_is_other, one.value))
        if change is not None and not change.or_earlier:
            found[one] = Evidence(offset=change.offset, timestamp=change.timestamp, type=change.type)
    return found


def _is_other(had: Any, value: Any) -> bool:
    """Whether a value in JSON form is not the one that a thing had; of True each value but None is."""
    if had is True:
        return value is None
    return bool(hashable(value) != had)


def hashable(value: Any) -> Any:
    """A list or an object in JSON form as a tuple; other values as they are."""
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value


def acl_things(acl: StandardAcl, image: MetadataImage) -> list[Thing]:
    """The things of the ids that an ACL has in an image."""
    return [
        Thing("acl", id_)
        for id_, rule in sorted(image.acls.acls.items(), key=lambda item: bytes(item[0]))
        if rule == acl
    ]
