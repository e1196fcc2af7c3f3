"""Configuration of client connections: their security, from the properties file of Kafka's own tools.

Source: org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.common.config.SslConfigs and SaslConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import attrs

from kraftlake.protocol.jaas import JaasEntry, parse_jaas
from kraftlake.protocol.scram import HASHES
from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.protocol.tls_config import Properties, TlsConfig, tls_config
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.java_properties import parse_properties
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.words import in_words, shown

CLIENT_ID: Final = "kraftlake"
TIMEOUT: Final = 5.0
PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, *HASHES, OAUTHBEARER)
MAX_FILE_BYTES: Final = 1024 * 1024
"""The maximum size of a properties file, a store or a token; a larger file is considered another kind of file."""
_LONGEST_STRING: Final = 32767
SECURITY_PROTOCOLS: Final = tuple(SecurityProtocol.__members__)
_MODULES: Final = {
    PLAIN: "PlainLoginModule",
    **dict.fromkeys(HASHES, "ScramLoginModule"),
    OAUTHBEARER: "OAuthBearerLoginModule",
}
_EXTENSION: Final = "extension_"
_log = get_logger("kraftlake", "protocol")


@attrs.frozen(kw_only=True)
class SaslConfig:
    """A login by `mechanism`: a user with a password, or OAUTHBEARER with a token from a file.

    `extensions` are sent with the login: those of OAUTHBEARER, or `tokenauth` for SCRAM with a delegation token.
    """

    mechanism: str
    user: str = ""
    password: str = attrs.field(default="", repr=False)
    token_file: str | None = None
    extensions: Mapping[str, str] = attrs.field(factory=dict, repr=False)


@attrs.frozen(kw_only=True)
class ClientConfig:
    """The client configuration that `read_client_config` reads from a file; the default is PLAINTEXT.

    `file` is for messages. `timeout` is in seconds. `warnings` are sentences for the user.
    """

    file: str | None = None
    tls: TlsConfig | None = None
    sasl: SaslConfig | None = None
    client_id: str = CLIENT_ID
    timeout: float = TIMEOUT
    warnings: tuple[str, ...] = ()

    @property
    def principal(self) -> str:
        """The client's principal, for messages: the user that the node's ACLs name."""
        if self.sasl is not None:
            return f"User:{shown(self.sasl.user)}" if self.sasl.user else "the user of the token"
        if self.tls is not None and self.tls.keystore is not None:
            return "the user of the client certificate"
        return "User:ANONYMOUS"


def read_client_config(path: str | Path) -> ClientConfig:
    """Read a properties file as for the option `--command-config` of Kafka's tools.

    Keys that do not concern connections are ignored, as in Kafka. Raises UsageError naming the file and the key, never
    a secret.
    """
    content = read_limited(path, str(path))
    try:
        values = parse_properties(content)
    except ValueError as fault:
        raise UsageError(f"{path} is no properties file: {fault}.") from None
    return parse_client_config(values, str(path))


def read_limited(path: str | Path, what: str) -> bytes:
    """Return the content of a small file. Raises UsageError, which names the file as `what`."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as fault:
        reason = (fault.strerror if isinstance(fault, OSError) else None) or "that is no name of a file"
        raise UsageError(f"{what} can't be read: {reason}.") from None
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{what} is larger than {MAX_FILE_BYTES:,} bytes: is it the right file?")
    return content


def parse_client_config(values: Mapping[str, str], file: str) -> ClientConfig:
    """Convert the values of a properties file into a configuration; `file` names them in messages.

    Raises UsageError.
    """
    properties = Properties(values, file)
    if properties.text("config.providers"):
        raise properties.fault("config.providers", "is not supported: write the values themselves into the file")
    protocol = properties.choice("security.protocol", SECURITY_PROTOCOLS, "PLAINTEXT")
    tls = tls_config(properties) if protocol.endswith("SSL") else None
    sasl = _sasl(properties) if protocol.startswith("SASL") else None
    client_id = properties.text("client.id") or CLIENT_ID
    if len(client_id.encode()) > _LONGEST_STRING:
        raise properties.fault("client.id", f"is longer than {_LONGEST_STRING:,} bytes")
    config = ClientConfig(
        file=file,
        tls=tls,
        sasl=sasl,
        client_id=client_id,
        timeout=properties.milliseconds("request.timeout.ms", TIMEOUT),
        warnings=()
        if tls is None or tls.check_host
        else (
            f"{file} turns the check of host names off (ssl.endpoint.identification.algorithm is empty): any node with "
            f"a certificate of a trusted authority is taken for the right one",
        ),
    )
    _log.debug("properties_ignored", file=file, keys=sorted(map(shown, properties.unread())))
    return config


def _sasl(properties: Properties) -> SaslConfig:
    mechanism = properties.text("sasl.mechanism") or "GSSAPI"
    if mechanism not in MECHANISMS:
        what = "is GSSAPI (Kerberos), Kafka's default" if mechanism == "GSSAPI" else f"is {shown(mechanism)!r}"
        raise properties.fault("sasl.mechanism", f"{what}; kraftlake speaks {in_words(MECHANISMS)}")
    entry = _jaas(properties, mechanism)
    if mechanism == OAUTHBEARER:
        extensions = {
            key.removeprefix(_EXTENSION): value
            for key, value in entry.options.items()
            if key.startswith(_EXTENSION) and key != _EXTENSION
        }
        return SaslConfig(mechanism=mechanism, token_file=_token_file(properties), extensions=extensions)
    for option in ("username", "password"):
        if not entry.options.get(option):
            raise properties.fault("sasl.jaas.config", f"has no {option}")
    by_token = mechanism in HASHES and entry.options.get("tokenauth", "").lower() == "true"
    return SaslConfig(
        mechanism=mechanism,
        user=entry.options["username"],
        password=entry.options["password"],
        extensions={"tokenauth": "true"} if by_token else {},
    )


def _jaas(properties: Properties, mechanism: str) -> JaasEntry:
    """Return the login module, which must match the mechanism."""
    key, module = "sasl.jaas.config", _MODULES[mechanism]
    text = properties.text(key)
    if not text:
        raise properties.fault(key, f"is missing: {mechanism} needs {module} in it (a JVM's JAAS file is not read)")
    try:
        entry = parse_jaas(text)
    except ValueError as fault:
        raise properties.fault(key, str(fault)) from None
    if entry.module.rpartition(".")[2] != module:
        raise properties.fault(key, f"names another login module than {module}, which sasl.mechanism={mechanism} needs")
    return entry


def _token_file(properties: Properties) -> str:
    key = "sasl.oauthbearer.token.endpoint.url"
    retriever = properties.text("sasl.oauthbearer.jwt.retriever.class")
    if retriever and retriever.rpartition(".")[2] not in ("DefaultJwtRetriever", "FileJwtRetriever"):
        raise properties.fault("sasl.oauthbearer.jwt.retriever.class", "may be FileJwtRetriever only")
    form = "give a file that holds the token, as in file:///run/secrets/token"
    url = properties.text(key)
    if not url:
        raise properties.fault(key, f"is missing: {form}")
    try:
        parts = urlsplit(url)
        if parts.scheme.lower() == "file" and parts.netloc in ("", "localhost") and parts.path:
            return unquote(parts.path)
    except ValueError:
        pass
    raise properties.fault(key, f"is no file: URL, and kraftlake asks no server for tokens: {form}")
