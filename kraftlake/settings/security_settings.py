"""Settings of TLS, logins, delegation tokens and the authorizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import at_least, between, members, one_of, one_of_ignoring_case
from kraftlake.settings.config_key import PER_BROKER, ConfigKey
from kraftlake.settings.uses import (
    BY_ALL_NODES,
    BY_BROKERS,
    BY_CONTROLLERS,
    CERTIFICATES,
    CIPHERS,
    JAVA_CLASSES,
    LIVE_BY_ALL_NODES,
    OTHER_LOGINS,
)

SECURITY_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "authorizer.class.name": ConfigKey("STRING", "", use=BY_ALL_NODES),
    "connection.failed.authentication.delay.ms": ConfigKey("INT", "100", at_least(0), use=BY_ALL_NODES),
    "connections.max.reauth.ms": ConfigKey("LONG", "0", use=BY_ALL_NODES),
    "delegation.token.expiry.check.interval.ms": ConfigKey("LONG", "3600000", at_least(1), use=BY_CONTROLLERS),
    "delegation.token.expiry.time.ms": ConfigKey("LONG", "86400000", at_least(1), use=BY_CONTROLLERS),
    "delegation.token.max.lifetime.ms": ConfigKey("LONG", "604800000", at_least(1), use=BY_CONTROLLERS),
    "delegation.token.secret.key": ConfigKey("PASSWORD", None, use=BY_ALL_NODES),
    "listener.security.protocol.map": ConfigKey(
        "STRING",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        update=PER_BROKER,
        use=BY_ALL_NODES,
    ),
    "principal.builder.class": ConfigKey(
        "CLASS",
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        update=PER_BROKER,
        use=BY_ALL_NODES,
    ),
    "sasl.client.callback.handler.class": ConfigKey("CLASS", None, use=JAVA_CLASSES),
    "sasl.enabled.mechanisms": ConfigKey("LIST", "GSSAPI", members(), update=PER_BROKER, use=BY_ALL_NODES),
    "sasl.jaas.config": ConfigKey("PASSWORD", None, update=PER_BROKER, use=BY_ALL_NODES),
    "sasl.kerberos.kinit.cmd": ConfigKey("STRING", "/usr/bin/kinit", update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.kerberos.min.time.before.relogin": ConfigKey("LONG", "60000", update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.kerberos.principal.to.local.rules": ConfigKey(
        "LIST", "DEFAULT", members(), update=PER_BROKER, use=OTHER_LOGINS
    ),
    "sasl.kerberos.service.name": ConfigKey("STRING", None, update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.kerberos.ticket.renew.jitter": ConfigKey("DOUBLE", "0.05", update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.kerberos.ticket.renew.window.factor": ConfigKey("DOUBLE", "0.8", update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.login.callback.handler.class": ConfigKey("CLASS", None, use=OTHER_LOGINS),
    "sasl.login.class": ConfigKey("CLASS", None, use=OTHER_LOGINS),
    "sasl.login.connect.timeout.ms": ConfigKey("INT", None, use=OTHER_LOGINS),
    "sasl.login.read.timeout.ms": ConfigKey("INT", None, use=OTHER_LOGINS),
    "sasl.login.refresh.buffer.seconds": ConfigKey("SHORT", "300", update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.login.refresh.min.period.seconds": ConfigKey("SHORT", "60", update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.login.refresh.window.factor": ConfigKey("DOUBLE", "0.8", update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.login.refresh.window.jitter": ConfigKey("DOUBLE", "0.05", update=PER_BROKER, use=OTHER_LOGINS),
    "sasl.login.retry.backoff.max.ms": ConfigKey("LONG", "10000", use=OTHER_LOGINS),
    "sasl.login.retry.backoff.ms": ConfigKey("LONG", "100", use=OTHER_LOGINS),
    "sasl.mechanism.controller.protocol": ConfigKey("STRING", "GSSAPI", use=BY_ALL_NODES),
    "sasl.mechanism.inter.broker.protocol": ConfigKey("STRING", "GSSAPI", update=PER_BROKER, use=BY_ALL_NODES),
    "sasl.oauthbearer.allow.unverified.audience": ConfigKey("BOOLEAN", "false", use=OTHER_LOGINS),
    "sasl.oauthbearer.allow.unverified.issuer": ConfigKey("BOOLEAN", "false", use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.algorithm": ConfigKey(
        "STRING", "RS256", one_of_ignoring_case("ES256", "RS256"), use=OTHER_LOGINS
    ),
    "sasl.oauthbearer.assertion.claim.aud": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.claim.exp.seconds": ConfigKey("INT", "300", between(0, 86400), use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.claim.iss": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.claim.jti.include": ConfigKey("BOOLEAN", "false", use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": ConfigKey("INT", "60", between(0, 3600), use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.claim.sub": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.file": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.private.key.file": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.private.key.passphrase": ConfigKey("PASSWORD", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.assertion.template.file": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.client.credentials.client.id": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.client.credentials.client.secret": ConfigKey("PASSWORD", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.clock.skew.seconds": ConfigKey("INT", "30", use=OTHER_LOGINS),
    "sasl.oauthbearer.expected.audience": ConfigKey("LIST", "", members(), use=OTHER_LOGINS),
    "sasl.oauthbearer.expected.issuer": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": ConfigKey("LONG", "3600000", use=OTHER_LOGINS),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": ConfigKey("LONG", "10000", use=OTHER_LOGINS),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": ConfigKey("LONG", "100", use=OTHER_LOGINS),
    "sasl.oauthbearer.jwks.endpoint.url": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.jwt.retriever.class": ConfigKey(
        "CLASS", "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", use=OTHER_LOGINS
    ),
    "sasl.oauthbearer.jwt.validator.class": ConfigKey(
        "CLASS", "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", use=OTHER_LOGINS
    ),
    "sasl.oauthbearer.scope": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.oauthbearer.scope.claim.name": ConfigKey("STRING", "scope", use=OTHER_LOGINS),
    "sasl.oauthbearer.sub.claim.name": ConfigKey("STRING", "sub", use=OTHER_LOGINS),
    "sasl.oauthbearer.token.endpoint.url": ConfigKey("STRING", None, use=OTHER_LOGINS),
    "sasl.server.callback.handler.class": ConfigKey("CLASS", None, use=JAVA_CLASSES),
    "sasl.server.max.receive.size": ConfigKey("INT", "524288", use=BY_ALL_NODES),
    "security.inter.broker.protocol": ConfigKey(
        "STRING", "PLAINTEXT", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), use=BY_BROKERS
    ),
    "security.providers": ConfigKey("STRING", None, use=JAVA_CLASSES),
    "ssl.allow.dn.changes": ConfigKey("BOOLEAN", "false", use=CERTIFICATES),
    "ssl.allow.san.changes": ConfigKey("BOOLEAN", "false", use=CERTIFICATES),
    "ssl.cipher.suites": ConfigKey("LIST", "", members(), update=PER_BROKER, use=CIPHERS),
    "ssl.client.auth": ConfigKey(
        "STRING", "none", one_of("required", "requested", "none"), update=PER_BROKER, use=BY_ALL_NODES
    ),
    "ssl.enabled.protocols": ConfigKey("LIST", "TLSv1.2,TLSv1.3", members(), update=PER_BROKER, use=BY_ALL_NODES),
    "ssl.endpoint.identification.algorithm": ConfigKey("STRING", "https", update=PER_BROKER, use=BY_ALL_NODES),
    "ssl.engine.factory.class": ConfigKey("CLASS", None, update=PER_BROKER, use=JAVA_CLASSES),
    "ssl.key.password": ConfigKey("PASSWORD", None, update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.keymanager.algorithm": ConfigKey("STRING", "SunX509", update=PER_BROKER, use=JAVA_CLASSES),
    "ssl.keystore.certificate.chain": ConfigKey("PASSWORD", None, update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.keystore.key": ConfigKey("PASSWORD", None, update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.keystore.location": ConfigKey("STRING", None, update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.keystore.password": ConfigKey("PASSWORD", None, update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.keystore.type": ConfigKey("STRING", "JKS", update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.principal.mapping.rules": ConfigKey("STRING", "DEFAULT", use=BY_ALL_NODES),
    "ssl.protocol": ConfigKey("STRING", "TLSv1.3", update=PER_BROKER, use=CIPHERS),
    "ssl.provider": ConfigKey("STRING", None, update=PER_BROKER, use=JAVA_CLASSES),
    "ssl.secure.random.implementation": ConfigKey("STRING", None, update=PER_BROKER, use=JAVA_CLASSES),
    "ssl.trustmanager.algorithm": ConfigKey("STRING", "PKIX", update=PER_BROKER, use=JAVA_CLASSES),
    "ssl.truststore.certificates": ConfigKey("PASSWORD", None, update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.truststore.location": ConfigKey("STRING", None, update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.truststore.password": ConfigKey("PASSWORD", None, update=PER_BROKER, use=LIVE_BY_ALL_NODES),
    "ssl.truststore.type": ConfigKey("STRING", "JKS", update=PER_BROKER, use=LIVE_BY_ALL_NODES),
}

AUTHORIZER_SETTINGS: Final[Mapping[str, ConfigKey]] = {
    "allow.everyone.if.no.acl.found": ConfigKey("STRING", None, use=BY_ALL_NODES),
    "super.users": ConfigKey("STRING", None, use=BY_ALL_NODES),
}
"""Settings that Kafka's own authorizer reads and KafkaConfig does not define.

Source: org.apache.kafka.metadata.authorizer.StandardAuthorizer.
"""
