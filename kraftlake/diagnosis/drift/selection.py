"""The part of a description that a question is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kraftlake.diagnosis.drift.comparison import Drift
from kraftlake.diagnosis.drift.description import PARTS, ClusterDescription, is_internal
from kraftlake.image.configurations_image import TOPIC_RESOURCE
from kraftlake.image.kafka_names import ResourceType
from kraftlake.runtime.name_patterns import matches

KINDS: Final[Mapping[str, str]] = {
    "topic": "topics",
    "config": "configs",
    "acl": "acls",
    "quota": "clientQuotas",
    "scram": "scram",
    "feature": "features",
}
"""The parts of a description by the word for an entry of each."""


def selected(
    described: ClusterDescription, *, topics: Sequence[str] = (), kinds: Sequence[str] = (), internal: bool = True
) -> ClusterDescription:
    """The entries of a description that are selected, as `is_selected`."""

    def part(name: str) -> dict[Any, Any]:
        return {
            key: value
            for key, value in described.part(name).items()
            if is_selected(name, key, topics=topics, kinds=kinds, internal=internal)
        }

    fields: dict[str, Any] = {"client_quotas" if name == "clientQuotas" else name: part(name) for name in PARTS}
    return attrs.evolve(described, **fields)


def is_selected(
    part: str, key: Any, *, topics: Sequence[str] = (), kinds: Sequence[str] = (), internal: bool = True
) -> bool:
    """Whether an entry is of one of the `kinds` (words of KINDS), and of a topic of these names or shell patterns.

    A topic has its configs, and the ACLs on its name or on a prefix that the patterns match. Internal topics are
    selected only with `internal`, or by name.
    """
    if kinds and part not in [KINDS[kind] for kind in kinds]:
        return False
    if topics:
        name = topic_of(part, key)
        return name is not None and matches(name, topics)
    return internal or not is_internal(part, key)


def selected_changes(drift: Drift, topics: Sequence[str] = (), kinds: Sequence[str] = ()) -> Drift:
    """The differences of selected entries, as `is_selected`, without those of internal topics unless named."""
    changes = drift.changes
    return attrs.evolve(
        drift,
        changes=tuple(
            one for one in changes if is_selected(one.change.part, one.key, topics=topics, kinds=kinds, internal=False)
        ),
    )


def topic_of(part: str, key: Any) -> str | None:
    """The name of the topic that an entry is about, None for another entry."""
    name: str | None = None
    if part == "topics":
        name = key
    elif part == "configs" and key.type == TOPIC_RESOURCE:
        name = key.name
    elif part == "acls" and key.resource_type == ResourceType.TOPIC:
        name = key.resource_name
    return name
