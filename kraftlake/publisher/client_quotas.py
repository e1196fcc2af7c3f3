"""The effective quota of a user, a client id or an address, resolved as in brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntFlag
from typing import Final

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.client_quotas_image import ClientQuotasImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.manifest import LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.inet_address import inet_address
from kraftlake.runtime.log import get_logger

QUOTA_KEYS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
"""The quotas of users and client ids, each resolved separately."""
CONNECTION_RATE_KEY: Final = "connection_creation_rate"
"""The quota of addresses."""


class QuotaTypes(IntFlag):
    """The kinds of entities that have a quota of one key. Source: QuotaTypes of org.apache.kafka.server.quota."""

    NONE = 0
    CLIENT_ID = 1
    USER = 2
    USER_AND_CLIENT_ID = 4


@attrs.frozen
class _Default:
    """The default entity of a type."""

    def __repr__(self) -> str:
        return "<default>"


DEFAULT: Final = _Default()
"""The name of a default entity."""
_Name = str | _Default | None
QuotaKey = tuple[_Name, _Name]
"""A user and a client id; None for an entity without that type."""


def _types_of(keys: Iterable[QuotaKey]) -> QuotaTypes:
    types = QuotaTypes.NONE
    for user, client_id in keys:
        if user is None:
            types |= QuotaTypes.CLIENT_ID
        else:
            types |= QuotaTypes.USER if client_id is None else QuotaTypes.USER_AND_CLIENT_ID
    return types


@attrs.frozen
class QuotaOverrides:
    """The quotas of one key, by user and client id; None for an entity without that type. Immutable."""

    values: Mapping[QuotaKey, float] = attrs.field(factory=dict)
    types: QuotaTypes = attrs.field(
        init=False, repr=False, default=attrs.Factory(lambda made: _types_of(made.values), takes_self=True)
    )
    """The kinds of entities present."""

    def limit(self, user: str, client_id: str) -> float | None:
        """The effective quota of `client_id` authenticated as `user`; None for no limit.

        Precedence: (user, client), (user, default client), (user), (default user, client), (default user, default
        client), (default user), (client), (default client). An empty user or client id counts as absent, as in Kafka.
        """
        key = self.deciding(user, client_id)
        return None if key is None else self.values[key]

    def deciding(self, user: str, client_id: str) -> QuotaKey | None:
        """The user and client id of the quota that `limit` returns; None for no limit."""
        return self._find(*self.tags(user, client_id))

    def tags(self, user: str, client_id: str) -> tuple[str, str]:
        """The user and client id by which a client is measured; "" for an ignored one.

        Clients with equal tags share the quota. Source: ClientQuotaCallback.quotaMetricTags.
        """
        types = self.types
        if types in (QuotaTypes.NONE, QuotaTypes.CLIENT_ID):
            return "", client_id
        if types == QuotaTypes.USER:
            return user, ""
        if types == QuotaTypes.USER_AND_CLIENT_ID:
            return user, client_id
        order: tuple[tuple[QuotaKey, tuple[str, str]], ...] = (
            ((user, client_id), (user, client_id)),
            ((user, DEFAULT), (user, client_id)),
            ((user, None), (user, "")),
            ((DEFAULT, client_id), (user, client_id)),
            ((DEFAULT, DEFAULT), (user, client_id)),
            ((DEFAULT, None), (user, "")),
        )
        return next((tags for key, tags in order if key in self.values), ("", client_id))

    def limit_of_tags(self, tags: tuple[str, str]) -> float | None:
        """The quota of the clients with these tags; None for no limit."""
        key = self._find(*tags)
        return None if key is None else self.values[key]

    def _find(self, user: str, client_id: str) -> QuotaKey | None:
        keys: tuple[QuotaKey, ...]
        if user and client_id:
            keys = ((user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT))
        elif user:
            keys = ((user, None), (DEFAULT, None))
        elif client_id:
            keys = ((None, client_id), (None, DEFAULT))
        else:
            keys = ()
        return next((key for key in keys if key in self.values), None)

    def with_changes(self, changes: Mapping[QuotaKey, float | None]) -> QuotaOverrides:
        """Return the overrides with quotas set, or removed where the value is None."""
        values = {**self.values, **changes}
        return QuotaOverrides({key: value for key, value in values.items() if value is not None})


class ClientQuotas(MetadataPublisher):
    """The current quotas. An update replaces immutable maps, so that readers take no lock.

    Source: kafka.server.metadata.ClientQuotaMetadataManager, org.apache.kafka.server.quota.ClientQuotaManager.
    """

    name = "DynamicClientQuotaPublisher"
    """Kafka's name of the publisher."""

    def __init__(self) -> None:
        self._overrides: Mapping[str, QuotaOverrides] = {key: QuotaOverrides() for key in QUOTA_KEYS}
        self.limits_requests = False
        """Whether there is a quota of a user or a client id."""
        self._connection_rates: Mapping[bytes | str | None, int] = {}
        self._log = get_logger(__name__)

    @classmethod
    def of(cls, image: ClientQuotasImage) -> ClientQuotas:
        """Return the quotas of an image."""
        values: dict[str, dict[QuotaKey, float]] = {key: {} for key in QUOTA_KEYS}
        rates: dict[bytes | str | None, int] = {}
        for entity, quotas in image.in_order():
            entries = dict(entity.entries)
            for key, value in quotas.quotas.items():
                if "ip" in entries and key == CONNECTION_RATE_KEY:
                    rates[_place(entries["ip"])] = int(value)
                elif "ip" not in entries and key in values:
                    values[key][_name(entries, "user"), _name(entries, "client-id")] = value
        made = cls()
        made._set({key: QuotaOverrides(of_key) for key, of_key in values.items()})
        made._connection_rates = rates
        return made

    def overrides(self, quota_key: str) -> QuotaOverrides:
        """The quotas of one of QUOTA_KEYS."""
        return self._overrides[quota_key]

    @property
    def limits_connections(self) -> bool:
        """Whether there is a quota of an address."""
        return bool(self._connection_rates)

    def limit(self, quota_key: str, *, user: str = "", client_id: str = "") -> float | None:
        """The quota of `quota_key` (one of QUOTA_KEYS) for a user and client id, None for no limit.

        Bytes a second, percent of a network and request handler thread, or mutations a second. Raises UsageError for an
        unknown key.
        """
        overrides = self._overrides.get(quota_key)
        if overrides is None:
            raise UsageError(f"There is no client quota {quota_key!r}; there are {', '.join(QUOTA_KEYS)}.")
        return overrides.limit(user, client_id)

    def connection_rate(self, address: str) -> int | None:
        """The connections per second that an address may create, None for no limit."""
        found = self.deciding_address(address)
        return None if found is None else found[1]

    def deciding_address(self, address: str) -> tuple[bool, int] | None:
        """Whether an address has its own quota, not the default, and its connections a second; None for no limit."""
        own, default = (self._connection_rates.get(key) for key in (_canonical(address), None))
        if own is not None:
            return True, own
        return None if default is None else (False, default)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Apply the changed quotas; unknown entities and keys are logged and ignored."""
        if delta.client_quotas_delta is None:
            return
        by_key: dict[str, dict[QuotaKey, float | None]] = {}
        rates: dict[bytes | str | None, int | None] = {}
        for entity, quotas in delta.client_quotas_delta.changes.items():
            entries = dict(entity.entries)
            for key, value in quotas.changes.items():
                if "ip" in entries and key == CONNECTION_RATE_KEY:
                    rates[_place(entries["ip"])] = None if value is None else int(value)
                elif "ip" in entries or key not in self._overrides or not entries.keys() & {"user", "client-id"}:
                    self._log.warning("quota_ignored", entity=entity.text, key=key)
                else:
                    by_key.setdefault(key, {})[_name(entries, "user"), _name(entries, "client-id")] = value
        if by_key:
            changed = {key: self._overrides[key].with_changes(changes) for key, changes in by_key.items()}
            self._set({**self._overrides, **changed})
        if rates:
            known = {**self._connection_rates, **rates}
            self._connection_rates = {place: rate for place, rate in known.items() if rate is not None}

    def _set(self, overrides: Mapping[str, QuotaOverrides]) -> None:
        self._overrides = overrides
        self.limits_requests = any(of_key.values for of_key in overrides.values())


def _name(entries: Mapping[str, str | None], kind: str) -> _Name:
    if kind not in entries:
        return None
    name = entries[kind]
    return DEFAULT if name is None else name


def _place(address: str | None) -> bytes | str | None:
    return None if address is None else _canonical(address)


def _canonical(address: str) -> bytes | str:
    """The bytes of an address, so that equal addresses find the same quota; a host name is unchanged."""
    known = inet_address(address)
    return address if known is None else known
