"""The quotas in effect for a client, with the entity that each is of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from kraftlake.diagnosis.effective.subject import Subject
from kraftlake.diagnosis.things import Thing
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.client_quotas import CONNECTION_RATE_KEY, DEFAULT, QUOTA_KEYS, ClientQuotas, QuotaKey
from kraftlake.runtime.inet_address import inet_address

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"


@attrs.frozen(kw_only=True)
class QuotaLayer:
    """A quota that may count for a client: its entity, and its value, None where it is not set."""

    entity: ClientQuotaEntity
    value: float | None

    def to_json(self) -> dict[str, Any]:
        """The entity, in which null is a default, and the value."""
        return {"entity": dict(self.entity.entries), "value": self.value}


@attrs.frozen(kw_only=True)
class EffectiveQuota:
    """A quota in effect; `value` None is no limit. `layers` are those that may count, by Kafka's precedence.

    `entity` is the one that decides; `set_by` is its path, for `blame`.
    """

    quota: str
    value: float | None
    entity: ClientQuotaEntity | None
    layers: tuple[QuotaLayer, ...]

    @property
    def set_by(self) -> str | None:
        """The path of the quota; None for no limit."""
        return None if self.entity is None else Thing("quota", (self.entity, self.quota)).text

    def to_json(self) -> dict[str, Any]:
        """A line of `kraftlake effective --json`."""
        return {
            "quota": self.quota,
            "value": self.value,
            "entity": None if self.entity is None else dict(self.entity.entries),
            "setBy": self.set_by,
            "layers": [layer.to_json() for layer in self.layers],
        }


def effective_quotas(image: MetadataImage, client: Subject) -> list[EffectiveQuota]:
    """The quotas in effect for a client in an image: those of its user and client id, and of its address."""
    quotas = ClientQuotas.of(image.client_quotas)
    found = []
    for quota in QUOTA_KEYS if client.user or client.client_id else ():
        key = quotas.overrides(quota).deciding(client.user, client.client_id)
        layers = [_layer(image, quota, _entity(*one)) for one in _precedence(client.user, client.client_id)]
        entity = None if key is None else _entity(*key)
        value = quotas.limit(quota, user=client.user, client_id=client.client_id)
        found.append(EffectiveQuota(quota=quota, value=value, entity=entity, layers=tuple(layers)))
    if client.ip:
        own, default = _of_address(image, client.ip), ClientQuotaEntity(((_IP, None),))
        rate = quotas.deciding_address(client.ip)
        layers = [_layer(image, CONNECTION_RATE_KEY, one) for one in (own, default)]
        entity = None if rate is None else own if rate[0] else default
        value = None if rate is None else float(rate[1])
        found.append(EffectiveQuota(quota=CONNECTION_RATE_KEY, value=value, entity=entity, layers=tuple(layers)))
    return found


def _precedence(user: str, client_id: str) -> Iterator[QuotaKey]:
    """The entities by precedence, as far as the client has a user and a client id."""
    for one in (user, DEFAULT) if user else ():
        if client_id:
            yield one, client_id
            yield one, DEFAULT
        yield one, None
    if client_id:
        yield None, client_id
        yield None, DEFAULT


def _of_address(image: MetadataImage, ip: str) -> ClientQuotaEntity:
    """The entity of an address, which may be written in another form in the log."""
    address = inet_address(ip)
    for entity in image.client_quotas.entities if address is not None else ():
        (kind, name), *others = entity.entries
        if kind == _IP and name is not None and not others and inet_address(name) == address:
            return entity
    return ClientQuotaEntity(((_IP, ip),))


_NAMES: Final = (_USER, _CLIENT_ID)


def _entity(*names: Any) -> ClientQuotaEntity:
    entries = (
        (kind, None if name is DEFAULT else name) for kind, name in zip(_NAMES, names, strict=True) if name is not None
    )
    return ClientQuotaEntity(tuple(sorted(entries)))


def _layer(image: MetadataImage, quota: str, entity: ClientQuotaEntity) -> QuotaLayer:
    held = image.client_quotas.entities.get(entity)
    return QuotaLayer(entity=entity, value=None if held is None else held.quotas.get(quota))
