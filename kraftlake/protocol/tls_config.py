"""TLS settings of clients and listeners: stores and versions, from properties under Kafka's names.

Source: org.apache.kafka.common.config.SslConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.java_values import parse_integer, split_list, trim
from kraftlake.runtime.words import in_words, shown

_STORE_SETTINGS: Final = {
    "keystore": ("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"),
    "truststore": ("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password"),
}
_STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
_TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")


@attrs.frozen(kw_only=True)
class StoreConfig:
    """A store of certificates: a file, or PEM text in the properties file itself (`certificates`, `key`).

    `name` is `truststore` or `keystore`. `password` opens a PKCS12 file, `key_password` an encrypted key.
    """

    name: str
    type: str = "JKS"
    location: str | None = None
    certificates: str | None = attrs.field(default=None, repr=False)
    key: str | None = attrs.field(default=None, repr=False)
    password: str | None = attrs.field(default=None, repr=False)
    key_password: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class TlsConfig:
    """TLS settings: trusted authorities (None: the system's), the client's certificate, and the checks."""

    truststore: StoreConfig | None = None
    keystore: StoreConfig | None = None
    check_host: bool = True
    versions: tuple[str, ...] = _TLS_VERSIONS


def tls_config(properties: Properties) -> TlsConfig:
    """The TLS settings among the properties. Raises UsageError, which names the key."""
    truststore = _store(properties, "truststore", certificates="ssl.truststore.certificates")
    keystore = _store(properties, "keystore", certificates="ssl.keystore.certificate.chain", key="ssl.keystore.key")
    versions = tuple(split_list(properties.text("ssl.enabled.protocols") or ",".join(_TLS_VERSIONS)))
    if not set(versions) & set(_TLS_VERSIONS):
        raise properties.fault("ssl.enabled.protocols", f"names none of {in_words(_TLS_VERSIONS)}")
    algorithm = properties.text("ssl.endpoint.identification.algorithm")
    if algorithm not in (None, "") and algorithm.upper() != "HTTPS":
        raise properties.fault("ssl.endpoint.identification.algorithm", "must be https, or empty for no check")
    return TlsConfig(
        truststore=truststore,
        keystore=keystore,
        check_host=algorithm != "",
        versions=tuple(version for version in _TLS_VERSIONS if version in versions),
    )


def _store(properties: Properties, name: str, *, certificates: str, key: str | None = None) -> StoreConfig | None:
    type_key, location_key, password_key = _STORE_SETTINGS[name]
    store = StoreConfig(
        name=name,
        type=properties.choice(type_key, _STORE_TYPES, "JKS"),
        location=properties.text(location_key) or None,
        certificates=properties.text(certificates) or None,
        key=(properties.text(key) or None) if key else None,
        password=properties.text(password_key),
        key_password=properties.text("ssl.key.password") if key else None,
    )
    inline = store.certificates is not None or store.key is not None
    if not inline:
        return None if store.location is None else store
    if store.type != "PEM":
        raise properties.fault(type_key, f"must be PEM, since {certificates if store.certificates else key} is given")
    if store.location is not None:
        raise properties.fault(location_key, "is given together with PEM text in the same file: leave one of them out")
    for lacking, value in ((certificates, store.certificates), (key, store.key)):
        if lacking and value is None:
            raise properties.fault(lacking, "is missing")
    return store


class Properties:
    """The values of properties, `file` for messages, with a record of the keys that were read."""

    def __init__(self, values: Mapping[str, str], file: str) -> None:
        self._values = values
        self._file = file
        self._read: set[str] = set()

    def text(self, key: str) -> str | None:
        """The value without surrounding blanks; None if not set."""
        self._read.add(key)
        value = self._values.get(key)
        return None if value is None else trim(value)

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        """The value in upper case, which must be one of `known`. Raises UsageError."""
        value = (self.text(key) or default).upper()
        if value not in known:
            raise self.fault(key, f"is {shown(value)!r}: {in_words(known, 'or')} is known")
        return value

    def milliseconds(self, key: str, default: float) -> float:
        """Return a duration, converted from ms to seconds."""
        value = self.text(key)
        try:
            if value is None or (found := parse_integer(value, 32)) > 0:
                return default if value is None else found / 1000
        except ValueError:
            pass
        raise self.fault(key, "must be a number of milliseconds above 0")

    def fault(self, key: str, what: str) -> UsageError:
        """The error for the value of a key."""
        return UsageError(f"{self._file}: {key} {what}.")

    def unread(self) -> set[str]:
        """The keys that no one has read."""
        return self._values.keys() - self._read
