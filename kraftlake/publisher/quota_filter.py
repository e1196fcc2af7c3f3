"""The filter of a DescribeClientQuotas request."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import attrs

from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotasImage
from kraftlake.runtime.errors import UsageError


class Match(IntEnum):
    """The match type of a filter's component. Source: DescribeClientQuotasRequest."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@attrs.frozen
class FilterComponent:
    """A condition on one entity type: exactly `name`, the default entity, or any entity of the type."""

    entity_type: str
    match: Match
    name: str | None = None


@attrs.frozen
class QuotaFilter:
    """Matches entities that have all components and, if `strict`, no other types.

    An empty filter matches all entities, or none if `strict`.
    """

    components: tuple[FilterComponent, ...] = ()
    strict: bool = False


def describe_client_quotas(
    image: ClientQuotasImage, wanted: QuotaFilter
) -> dict[ClientQuotaEntity, Mapping[str, float]]:
    """The quotas of the matching entities; raises UsageError for a contradictory filter.

    Source: org.apache.kafka.image.ClientQuotasImage.describe.
    """
    _check(wanted)
    return {
        entity: quotas.quotas
        for entity, quotas in image.in_order()
        if all(_fits(dict(entity.entries), component) for component in wanted.components)
        and (not wanted.strict or len(entity.entries) == len(wanted.components) > 0)
    }


def _fits(entries: Mapping[str, str | None], component: FilterComponent) -> bool:
    if component.entity_type not in entries:
        return False
    return component.match is Match.SPECIFIED or entries[component.entity_type] == component.name


def _check(wanted: QuotaFilter) -> None:
    types = [component.entity_type for component in wanted.components]
    for component in wanted.components:
        if component.entity_type not in {"ip", "user", "client-id"}:
            raise UsageError(f"A quota filter takes the types user, client-id and ip, not {component.entity_type!r}.")
        if types.count(component.entity_type) > 1:
            raise UsageError(f"A quota filter names the type {component.entity_type} more than once.")
        if (component.match is Match.EXACT) != (component.name is not None):
            raise UsageError(f"A quota filter names a {component.entity_type} if and only if it matches exactly that.")
    if "ip" in types and len(types) > 1:
        raise UsageError("A quota filter takes an ip, or a user and a client-id, not both.")
