"""TLS by the standard library: contexts from the stores of clients and listeners, and descriptions of handshake errors.

Source: org.apache.kafka.common.security.ssl.DefaultSslEngineFactory.
"""

from __future__ import annotations

import re
import secrets
import socket
import ssl
import tempfile
import textwrap
from typing import Any, Final

import attrs

from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import read_limited
from kraftlake.protocol.node_error import AuthenticationError, NodeError
from kraftlake.protocol.tls_config import StoreConfig, TlsConfig
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.extras import require

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY_MODES: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_JKS_MAGIC: Final = bytes.fromhex("feedfeed")
_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----")
_NOT_YET_VALID, _EXPIRED, _WRONG_HOST, _WRONG_ADDRESS = 9, 10, 62, 64
"""Verification error codes of OpenSSL (X509_V_ERR_…)."""
_CERTIFICATE_ALERTS: Final = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
"""Parts of the names of alerts from a node that rejects the client's certificate, or misses one."""
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
"""The reasons of OpenSSL's errors if the peer does not speak TLS."""


@attrs.frozen(kw_only=True)
class Tls:
    """The client's side of TLS connections; `config` is for messages."""

    context: ssl.SSLContext
    config: TlsConfig

    def wrap(self, plain: socket.socket, host: str) -> ssl.SSLSocket:
        """Wrap the plain socket; the TLS handshake follows later. Raises OSError, ValueError."""
        return self.context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)

    def node_error(self, address: Address, fault: ssl.SSLError) -> NodeError:
        """Return the error for a connection's fault, with a sentence for the user."""
        if isinstance(fault, ssl.SSLCertVerificationError):
            return AuthenticationError(f"{address} {_certificate_fault(fault, self.config)}.")
        reason = fault.reason or ""
        if reason in _NO_TLS:
            return NodeError(f"{address} does not speak TLS, or broke it off: is it a listener for SSL or SASL_SSL?")
        if "ALERT" not in reason:
            return NodeError(f"{address} ended TLS ({_words(reason) or type(fault).__name__}).")
        if "HANDSHAKE_FAILURE" in reason and self.config.keystore is None:
            asks = "does it ask for a client certificate (ssl.keystore.location)?"
            return AuthenticationError(f"{address} refuses TLS ({_words(reason)}): {asks}")
        if not any(part in reason for part in _CERTIFICATE_ALERTS):
            return AuthenticationError(f"{address} refuses TLS ({_words(reason)}).")
        if self.config.keystore is not None:
            return AuthenticationError(f"{address} does not accept the certificate of ssl.keystore ({_words(reason)}).")
        return AuthenticationError(
            f"{address} asks for a client certificate ({_words(reason)}): give one in ssl.keystore.location."
        )


def open_stores(config: TlsConfig) -> Tls:
    """Open the stores of a configuration. Raises UsageError naming the file and the key at fault, never a secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.check_host
    _limit_versions(context, config)
    # As in Java, every certificate in the truststore is trusted, not only that of a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if config.truststore is None:
        context.load_default_certs()
    else:
        _trust(context, config.truststore)
    if config.keystore is not None:
        _show(context, config.keystore)
    return Tls(context=context, config=config)


def server_context(stores: TlsConfig, client_auth: str) -> ssl.SSLContext:
    """Open a listener's stores; `client_auth` is none, requested or required. Raises as `open_stores`.

    A client that is asked and shows a certificate of no trusted authority is refused, as in Kafka.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _limit_versions(context, stores)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = _VERIFY_MODES[client_auth]
    if client_auth != "none":
        if stores.truststore is None:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        else:
            _trust(context, stores.truststore)
    if stores.keystore is not None:
        _show(context, stores.keystore)
    return context


def _limit_versions(context: ssl.SSLContext, config: TlsConfig) -> None:
    context.minimum_version = min(_VERSIONS[version] for version in config.versions)
    context.maximum_version = max(_VERSIONS[version] for version in config.versions)


def _trust(context: ssl.SSLContext, store: StoreConfig) -> None:
    what = "ssl.truststore.certificates"
    if store.certificates is not None:
        pem = _pem(store.certificates)
    else:
        pem, what = _content(store)
        if store.type != "PEM":
            pem = _pkcs12_certificates(pem, store, what)
    try:
        context.load_verify_locations(cadata=pem.decode("ascii", "ignore"))  # comments may hold anything
    except (ssl.SSLError, ValueError):
        raise UsageError(f"{what} holds no certificates in PEM form.") from None


def _show(context: ssl.SSLContext, store: StoreConfig) -> None:
    """Load the certificate of a keystore into a TLS context."""
    if store.certificates is not None and store.key is not None:
        what, pem = "ssl.keystore.key with ssl.keystore.certificate.chain", _pem(f"{store.key}\n{store.certificates}")
    else:
        pem, what = _content(store)
    password = store.key_password or ""
    if store.type != "PEM":
        password = secrets.token_urlsafe()
        pem = _pkcs12_key(pem, store, what, password)
    # OpenSSL reads keys from files only. What was encrypted is so in this file, which only its owner may read.
    with tempfile.NamedTemporaryFile(prefix="kraftlake-", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=password)
        except (ssl.SSLError, ValueError) as fault:
            raise UsageError(f"{what} {_keystore_fault(fault, pem, store)}.") from None


def _pem(text: str) -> bytes:
    """Restore the line breaks of PEM text, which a multi-line value in a properties file has lost."""

    def lines(match: re.Match[str]) -> str:
        body = "\n".join(textwrap.wrap("".join(match[2].split()), 64))
        return f"\n-----BEGIN {match[1]}-----\n{body}\n-----END {match[1]}-----\n"

    return _PEM_BLOCK.sub(lines, text).encode()


def _keystore_fault(fault: Exception, pem: bytes, store: StoreConfig) -> str:
    if isinstance(fault, ssl.SSLError) and fault.reason == "KEY_VALUES_MISMATCH":
        return "holds a key that does not belong to its certificate"
    if store.type != "PEM":
        return "holds a key or a certificate that TLS can not use"
    if b"ENCRYPTED" in pem:
        return "holds an encrypted key, which ssl.key.password does not open"
    return "does not hold a private key and its certificates in PEM form"


def _content(store: StoreConfig) -> tuple[bytes, str]:
    """Return the content of a store's file, and its name for messages. A file of another type is refused."""
    key = f"ssl.{store.name}.location"
    content = read_limited(store.location or "", f"{key}={store.location}")
    what = f"{store.location} ({key})"
    if content.startswith(_JKS_MAGIC):
        raise UsageError(
            f"{what} is a JKS store, which only Java reads: make a copy by `keytool -importkeystore -srckeystore "
            f"{store.location} -destkeystore {store.name}.p12 -deststoretype PKCS12`, and name that one."
        )
    if store.type != "PEM" and b"-----BEGIN " in content:
        raise UsageError(f"{what} is PEM, not {store.type}: set ssl.{store.name}.type=PEM.")
    return content, what


def _pkcs12_certificates(content: bytes, store: StoreConfig, what: str) -> bytes:
    found = _pkcs12(content, store, what)
    certificates = [entry.certificate for entry in (found.cert, *found.additional_certs) if entry is not None]
    if not certificates:
        raise UsageError(f"{what} holds no certificates.")
    from cryptography.hazmat.primitives.serialization import Encoding

    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def _pkcs12_key(content: bytes, store: StoreConfig, what: str, password: str) -> bytes:
    """Return key and certificates in PEM form, the key encrypted by `password`."""
    found = _pkcs12(content, store, what)
    if found.key is None or found.cert is None:
        raise UsageError(f"{what} holds no private key with a certificate.")
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    chain = [found.cert, *found.additional_certs]
    return bytes(key) + b"".join(entry.certificate.public_bytes(Encoding.PEM) for entry in chain)


def _pkcs12(content: bytes, store: StoreConfig, what: str) -> Any:
    require("cryptography", "PKCS12 stores")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509 import InvalidVersion

    try:
        return pkcs12.load_pkcs12(content, None if store.password is None else store.password.encode())
    except InvalidVersion:
        raise UsageError(f"{what} holds a certificate of another version than TLS has.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UsageError(f"{what} is no PKCS12 store, or ssl.{store.name}.password does not open it.") from None


def _certificate_fault(fault: ssl.SSLCertVerificationError, config: TlsConfig) -> str:
    """Describe the fault by the code of OpenSSL's verification."""
    if fault.verify_code == _EXPIRED:
        return "shows a certificate that has expired"
    if fault.verify_code == _NOT_YET_VALID:
        return "shows a certificate that is not valid yet: is this machine's clock right?"
    if fault.verify_code in (_WRONG_HOST, _WRONG_ADDRESS):
        return f"shows a certificate for another host: {_sentence(fault.verify_message)}"
    why = _sentence(fault.verify_message)
    if config.truststore is None:
        return f"shows a certificate that this system does not trust ({why}): name its authority in ssl.truststore"
    return f"shows a certificate that no authority of ssl.truststore has signed ({why})"


def _sentence(text: str) -> str:
    return text.rstrip(".")


def _words(reason: str) -> str:
    """Convert an OpenSSL reason to words: `alert certificate required` for TLSV13_ALERT_CERTIFICATE_REQUIRED."""
    words = reason.lower().split("_")
    return " ".join(words[1:] if words[0].startswith(("tlsv", "sslv")) else words)
