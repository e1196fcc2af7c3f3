"""The filter of a DescribeClientQuotas request."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import attrs

from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotasImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.runtime.errors import UsageError


class QuotaFilterError(UsageError):
    """A filter contradicts itself, or names an unknown type."""

    def __init__(self, reason: str, error: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        super().__init__(reason)
        self.error = error


class Match(IntEnum):
    """The match type of a filter's component. Source: DescribeClientQuotasRequest."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@attrs.frozen
class FilterComponent:
    """A condition on one entity type: exactly `name`, the default entity, or any entity of the type.

    `match` is a Match, or an unknown number that a request has.
    """

    entity_type: str
    match: int
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
    """The quotas of the matching entities; raises QuotaFilterError for a wrong filter.

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
    return component.match == Match.SPECIFIED or entries[component.entity_type] == component.name


def _check(wanted: QuotaFilter) -> None:
    seen: set[str] = set()
    for component in wanted.components:
        kind = component.entity_type
        if kind in seen:
            raise QuotaFilterError(f"A quota filter names the type {kind} more than once.")
        seen.add(kind)
        if kind not in {"ip", "user", "client-id"}:
            reason = f"A quota filter takes the types user, client-id and ip, not {kind!r}."
            raise QuotaFilterError(reason, ErrorCode.UNSUPPORTED_VERSION if kind else ErrorCode.INVALID_REQUEST)
        if component.match not in {one.value for one in Match}:
            raise QuotaFilterError(f"A quota filter has no match type {component.match}.")
        if (component.match == Match.EXACT) != (component.name is not None):
            raise QuotaFilterError(f"A quota filter names a {kind} if and only if it matches exactly that.")
    if "ip" in seen and len(seen) > 1:
        raise QuotaFilterError("A quota filter takes an ip, or a user and a client-id, not both.")
