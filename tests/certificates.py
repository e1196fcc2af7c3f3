"""Certificates made on the fly, in the forms that Kafka and its clients take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

PASSWORD = "store-secret"
_DAY = timedelta(days=1)


@attrs.frozen(kw_only=True)
class Identity:
    """A key with its certificate, which `issuer` signed (itself where it is None)."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuer: Identity | None = None

    @property
    def pem(self) -> str:
        """The certificate."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        """The key, encrypted by the password if there is one."""
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def write_keystore(self, file: Path) -> Path:
        """A PKCS12 store with the key, its certificate and that of the issuer."""
        more = [self.issuer.certificate] if self.issuer else None
        file.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"it", self.key, self.certificate, more, BestAvailableEncryption(PASSWORD.encode())
            )
        )
        return file

    def write_truststore(self, file: Path) -> Path:
        """A PKCS12 store that trusts this certificate, as Java reads it."""
        trusted = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        file.write_bytes(pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(PASSWORD.encode())))
        return file


def authority(name: str = "a test authority") -> Identity:
    """A certificate authority of its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    named = _named(name)
    return Identity(key=key, certificate=_builder(named, named, key, ca=True).sign(key, hashes.SHA256()))


def issued(
    by: Identity, name: str, *, hosts: tuple[str, ...] = ("127.0.0.1", "localhost"), expired: bool = False
) -> Identity:
    """A certificate of an authority for a server at `hosts`, or for a client."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_named(name), by.certificate.subject, key, ca=False, expired=expired)
    names = [_host(host) for host in hosts]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Identity(key=key, certificate=builder.sign(by.key, hashes.SHA256()), issuer=by)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool, expired: bool = False
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 3 * _DAY)
        .not_valid_after(now - _DAY if expired else now + 30 * _DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
