"""The security of a listener, by Kafka's settings of a node.

Source: org.apache.kafka.common.network.ChannelBuilders, org.apache.kafka.common.config.internals.BrokerSecurityConfigs,
org.apache.kafka.server.config.AbstractKafkaConfig (effectiveListenerSecurityProtocolMap).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kraftlake.protocol.client_config import PLAIN, read_limited
from kraftlake.protocol.jaas import JaasEntry, parse_jaas, parse_jaas_file
from kraftlake.protocol.scram import HASHES
from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.protocol.tls_config import Properties, TlsConfig, tls_config
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.java_values import split, split_list, trim
from kraftlake.runtime.words import in_words, shown
from kraftlake.server.node_config import NodeSettings
from kraftlake.server.principal_mapping import PrincipalMapper
from kraftlake.settings.security_settings import SECURITY_SETTINGS

DEFAULT_PRINCIPALS: Final = SECURITY_SETTINGS["principal.builder.class"].default
"""The one class of principals."""
SERVED_MECHANISMS: Final = (PLAIN, *HASHES)
"""The SASL mechanisms that listeners can have."""
MAP: Final = "listener.security.protocol.map"
_MECHANISMS: Final = "sasl.enabled.mechanisms"
_MAX_REAUTH: Final = "connections.max.reauth.ms"
_JAAS: Final = "sasl.jaas.config"
_CLIENT_AUTH: Final = "ssl.client.auth"
_RULES: Final = "ssl.principal.mapping.rules"
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_JAAS_FILE: Final = "-Djava.security.auth.login.config="
_SERVER_ENTRY: Final = "KafkaServer"


@attrs.frozen(kw_only=True)
class ServerTls:
    """TLS of a listener: its stores, whether clients have to show a certificate, and their names by it.

    `client_auth` is none, requested or required.
    """

    stores: TlsConfig
    client_auth: str = "none"
    mapper: PrincipalMapper = PrincipalMapper.of("DEFAULT")


@attrs.frozen(kw_only=True)
class ServerSasl:
    """Logins of a listener: the mechanisms, and for each its login modules and the longest session in ms (0: no limit).

    `max_receive_bytes` limits a request before the login.
    """

    mechanisms: tuple[str, ...]
    logins: Mapping[str, tuple[JaasEntry, ...]] = attrs.field(factory=dict, repr=False)
    max_reauth_ms: Mapping[str, int] = attrs.field(factory=dict)
    max_receive_bytes: int = 524_288

    def plain_password(self, user: str) -> str | None:
        """The password of a user of PLAIN, from the options `user_NAME` of its login module; None if unknown."""
        for entry in self.logins.get(PLAIN, ()):
            if entry.module == _PLAIN_MODULE:
                return entry.options.get(f"user_{user}")
        return None


@attrs.frozen(kw_only=True)
class ListenerSecurity:
    """What a listener asks of a connection before it takes requests; `tls` and `sasl` are None without them."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: ServerTls | None = None
    sasl: ServerSasl | None = None
    failed_authentication_delay_ms: int = 100
    """The delay of the answer to a failed login, and of the end of its connection."""


PLAINTEXT: Final = ListenerSecurity()


def security_protocols(values: Mapping[str, str], controllers: Iterable[str] = ()) -> dict[str, SecurityProtocol]:
    """The security protocols by listener name (upper case), of a node's settings.

    Listeners of controllers, those of the settings and `controllers`, are plain unless the settings map them, or name
    any listener after a protocol with TLS or logins. Raises ValueError for a malformed map.
    """
    text = values.get(MAP)
    if text is None:
        found = dict(SecurityProtocol.__members__)
        of_settings = split_list(trim(values.get("controller.listener.names", "CONTROLLER")))
        plain = [name.upper() for name in (*of_settings, *controllers)]
        listeners = [one.partition("://")[0].upper() for one in split_list(trim(values.get("listeners", "")))]
        if all(found.get(name, SecurityProtocol.PLAINTEXT) is found["PLAINTEXT"] for name in (*plain, *listeners)):
            found |= dict.fromkeys(plain, SecurityProtocol.PLAINTEXT)
        return found
    found = {}
    for one in split(trim(text)):
        name, colon, protocol = one.rpartition(":")
        if not colon or trim(protocol).upper() not in SecurityProtocol.__members__:
            raise ValueError(f"{one!r} is no pair LISTENER:PROTOCOL of {MAP}")
        found[trim(name).upper()] = SecurityProtocol[trim(protocol).upper()]
    return found


def protocol_of(settings: NodeSettings, listener: str, *, of_controller: bool = False) -> SecurityProtocol:
    """The security protocol of a listener; raises UsageError if the settings have none."""
    try:
        protocol = security_protocols(settings.values, [listener] if of_controller else ()).get(listener.upper())
    except ValueError as problem:
        raise UsageError(f"{problem} in {settings.source}.") from None
    if protocol is None:
        raise UsageError(f"{MAP} has no protocol of the listener {listener} in {settings.source}.")
    return protocol


def listener_security(settings: NodeSettings, listener: str, *, of_controller: bool = False) -> ListenerSecurity:
    """The security of a listener; its own settings (`listener.name.NAME.…`) go over those of the node.

    Raises UsageError, which names the setting and never a secret. Stores are not opened yet.
    """
    protocol = protocol_of(settings, listener, of_controller=of_controller)
    own = settings.of_listener(listener)
    mapper = own.value("principal.builder.class")
    if mapper != DEFAULT_PRINCIPALS:
        raise UsageError(
            f"principal.builder.class is {mapper} in {settings.source}: there is only {DEFAULT_PRINCIPALS}."
        )
    return ListenerSecurity(
        protocol=protocol,
        tls=_tls(settings, own, listener, protocol) if protocol.has_tls else None,
        sasl=_sasl(settings, own, listener) if protocol.has_sasl else None,
        failed_authentication_delay_ms=own.value("connection.failed.authentication.delay.ms"),
    )


def _tls(node: NodeSettings, own: NodeSettings, listener: str, protocol: SecurityProtocol) -> ServerTls:
    stores = tls_config(Properties(own.values, own.source))
    if stores.keystore is None:
        raise UsageError(
            f"The listener {listener} speaks {protocol.name} and has no certificate: give ssl.keystore.location, or "
            f"ssl.keystore.key and ssl.keystore.certificate.chain, in {own.source}."
        )
    # as in Kafka, the setting of the whole node does not concern listeners with logins
    asks = own if protocol is SecurityProtocol.SSL or f"{node.prefix(listener)}{_CLIENT_AUTH}" in node.values else None
    try:
        mapper = PrincipalMapper.of(own.value(_RULES))
    except ValueError as problem:
        raise UsageError(f"{_RULES} in {own.source} {problem}.") from None
    return ServerTls(stores=stores, client_auth=asks.value(_CLIENT_AUTH) if asks else "none", mapper=mapper)


def _sasl(node: NodeSettings, own: NodeSettings, listener: str) -> ServerSasl:
    mechanisms = tuple(dict.fromkeys(own.value(_MECHANISMS)))
    unknown = [name for name in mechanisms if name not in SERVED_MECHANISMS]
    if unknown or not mechanisms:
        what = f"names {shown(unknown[0])}" if unknown else "is empty"
        default = ", Kafka's default," if _MECHANISMS not in own.values else ""
        raise UsageError(
            f"{_MECHANISMS} of the listener {listener} {what}{default} in {own.source}: "
            f"{in_words(SERVED_MECHANISMS)} are known."
        )
    return ServerSasl(
        mechanisms=mechanisms,
        logins={one: server_logins(own, listener, one) for one in mechanisms},
        max_reauth_ms={one: _max_reauth_ms(node, own, listener, one) for one in mechanisms},
        max_receive_bytes=own.value("sasl.server.max.receive.size"),
    )


def _max_reauth_ms(node: NodeSettings, own: NodeSettings, listener: str, mechanism: str) -> int:
    name = f"{node.prefix(listener)}{mechanism.lower()}.{_MAX_REAUTH}"
    return int(node.value(name) if name in node.values else own.value(_MAX_REAUTH))


def server_logins(own: NodeSettings, listener: str, mechanism: str) -> tuple[JaasEntry, ...]:
    """The login modules of a listener's mechanism: of its setting, else of the JAAS file that KAFKA_OPTS names.

    `own` are the settings of the listener. Without either, SCRAM has none: its users are in the metadata log. Raises
    UsageError. Source: org.apache.kafka.common.security.JaasContext.loadServerContext.
    """
    name = f"{mechanism.lower()}.{_JAAS}"
    text = own.values.get(name)
    if text is not None:
        try:
            return (parse_jaas(text),)
        except ValueError as problem:
            raise UsageError(f"{own.prefix(listener)}{name} in {own.source} {problem}.") from None
    entries = _jaas_file()
    found = entries.get(f"{listener.lower()}.{_SERVER_ENTRY}", entries.get(_SERVER_ENTRY))
    if found is None and mechanism == PLAIN:
        raise UsageError(
            f"PLAIN of the listener {listener} has no users: give {own.prefix(listener)}{name} in {own.source}, or a "
            f"JAAS file with {_SERVER_ENTRY} by KAFKA_OPTS={_JAAS_FILE}FILE."
        )
    return found or ()


def _jaas_file() -> Mapping[str, tuple[JaasEntry, ...]]:
    """Read the JAAS file of KAFKA_OPTS, where Kafka's own scripts take it; empty without one."""
    words = shlex.split(os.environ.get("KAFKA_OPTS", ""))
    path = next((word.removeprefix(_JAAS_FILE) for word in words if word.startswith(_JAAS_FILE)), None)
    if path is None:
        return {}
    what = f"{path} (java.security.auth.login.config in KAFKA_OPTS)"
    try:
        return parse_jaas_file(read_limited(path, what).decode())
    except ValueError as problem:
        raise UsageError(f"{what} {problem}.") from None
