"""Readers of stores of keys and certificates."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, pkcs12
from cryptography.x509.oid import NameOID

from kraftlake.protocol.tls import open_stores
from kraftlake.protocol.tls_config import StoreConfig, TlsConfig
from tests.fuzzing.of_logs import in_a_file
from tests.fuzzing.target import FILES, Target

KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
OF_PASSWORDS = (b"\x2a\x86\x48\x86\xf7\x0d\x01\x05", b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01")
"""The beginnings of the names of algorithms that take a password: those of PKCS5, and those of PKCS12."""


def open_pem(data: bytes) -> None:
    """A store of certificates, or of a key with them, in PEM form: the first byte chooses which."""
    _open(data, "PEM")


def open_pkcs12(data: bytes) -> None:
    """The same in the form of PKCS12, without a password.

    How long a store with one takes is in the store (its iterations), and in the library that reads it.
    """
    if not any(name in data for name in OF_PASSWORDS):
        _open(data, "PKCS12")


def _open(data: bytes, form: str) -> None:
    def read(path: Path) -> None:
        store = StoreConfig(name=name, type=form, location=str(path))
        if name == "keystore":
            trusted = StoreConfig(name="truststore", type="PEM", certificates=_certificate_pem())
            open_stores(TlsConfig(truststore=trusted, keystore=store))
        else:
            open_stores(TlsConfig(truststore=store))

    if data:
        name = ("truststore", "keystore")[data[0] % 2]
        in_a_file(data[1:], "fuzzed.store", read)


@lru_cache
def _certificate() -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    made = x509.CertificateBuilder(name, name, KEY.public_key(), 1, datetime(2026, 1, 1), datetime(2046, 1, 1))
    return made.sign(KEY, None)


@lru_cache
def _certificate_pem() -> str:
    return _certificate().public_bytes(Encoding.PEM).decode()


def pem_stores() -> Iterable[bytes]:
    """Blocks without content."""
    block = b"-----BEGIN %s-----\nMIIB\n-----END %s-----\n"
    certificate = block.replace(b"%s", b"CERTIFICATE")
    return [b"\0" + certificate, b"\1" + block.replace(b"%s", b"PRIVATE KEY") + certificate]


def pkcs12_stores() -> Iterable[bytes]:
    """A keystore and a truststore, each without the checksum that no change at random would make right."""
    certificate = _certificate()
    trusted = [pkcs12.PKCS12Certificate(certificate, b"ca")]
    for number, store in enumerate((
        pkcs12.serialize_java_truststore(trusted, NoEncryption()),
        pkcs12.serialize_key_and_certificates(b"it", KEY, certificate, [certificate], NoEncryption()),
    )):  # fmt: skip
        content = store[4 : store.rindex(b"\x30\x41\x30\x31")]  # behind the whole's length, before the checksum
        yield bytes([number]) + b"\x30\x82" + len(content).to_bytes(2, "big") + content


TARGETS = {
    "stores": Target(open_pem, FILES, pem_stores),
    "pkcs12": Target(open_pkcs12, FILES, pkcs12_stores),
}
