"""The security of a node's own connections, to brokers and to controllers, by Kafka's settings.

Source: org.apache.kafka.common.network.ChannelBuilders (clientChannelBuilder),
org.apache.kafka.common.security.JaasContext (loadServerContext).
"""

from __future__ import annotations

from typing import Final

from kraftlake.protocol.client_config import PLAIN, ClientConfig, SaslConfig
from kraftlake.protocol.scram import HASHES
from kraftlake.protocol.tls_config import Properties, tls_config
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import in_words
from kraftlake.server.listener_security import protocol_of, server_logins
from kraftlake.server.node_config import NodeSettings

BETWEEN_BROKERS: Final = "sasl.mechanism.inter.broker.protocol"
TO_CONTROLLERS: Final = "sasl.mechanism.controller.protocol"
"""The settings of the mechanism by which a node logs in at a broker and at a controller."""
_MECHANISMS: Final = (PLAIN, *HASHES)


def node_client(settings: NodeSettings, listener: str, mechanism: str) -> ClientConfig:
    """The configuration by which a node connects to other nodes' listener of a name.

    `mechanism` names the setting of the mechanism. As in Kafka, the node shows its keystore as a client's certificate,
    and logs in as the user of the login module of its own listener of that name. Raises UsageError, never with a
    secret.
    """
    protocol = protocol_of(settings, listener, of_controller=mechanism == TO_CONTROLLERS)
    own = settings.of_listener(listener)
    return ClientConfig(
        file=settings.source,
        tls=tls_config(Properties(own.values, own.source)) if protocol.has_tls else None,
        sasl=_login(settings, listener, mechanism) if protocol.has_sasl else None,
    )


def _login(settings: NodeSettings, listener: str, setting: str) -> SaslConfig:
    mechanism = str(settings.value(setting))
    if mechanism not in _MECHANISMS:
        default = ", Kafka's default" if setting not in settings.values else ""
        raise UsageError(
            f"{setting} is {mechanism}{default}, in {settings.source}: nodes log in by {in_words(_MECHANISMS, 'or')}."
        )
    for entry in server_logins(settings.of_listener(listener), listener, mechanism):
        user, password = entry.options.get("username"), entry.options.get("password")
        if user and password:
            return SaslConfig(mechanism=mechanism, user=user, password=password)
    raise UsageError(
        f"This node has no login at the listener {listener}: give username and password in "
        f"{settings.prefix(listener)}{mechanism.lower()}.sasl.jaas.config, in {settings.source}."
    )
