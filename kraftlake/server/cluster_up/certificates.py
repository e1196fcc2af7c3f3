"""The certificates of a secure cluster: an authority of its own, and a certificate of it for each node.

Keys are of the curve P-256. PEM is what Kafka takes as well (KIP-651): a keystore holds the key and the certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.whole_file import write_whole

AUTHORITY: Final = timedelta(days=3650)
"""The validity of the authority."""
NODE: Final = timedelta(days=365)
"""The validity of a node's certificate, at most that of the authority."""
RENEWED_BEFORE: Final = timedelta(days=30)
"""The rest of its validity from which a certificate is renewed at a start of the cluster."""
_SKEW: Final = timedelta(hours=1)
"""The time before now from which certificates are valid: clocks of clients may be late."""
_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
READABLE: Final = 0o644


@attrs.frozen(kw_only=True)
class Authority:
    """A certificate authority in two files: the certificate, for clients, and the key, for its owner alone."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = attrs.field(repr=False)

    @classmethod
    def at(cls, folder: Path, now: datetime) -> Authority:
        """Read the authority in a folder (`ca.pem`, `ca.key`), which is made if there is none.

        Raises EnvironmentFaultError for damaged files, and for an authority that is about to expire: its clients need
        the next one.
        """
        certificate, key = folder / "ca.pem", folder / "ca.key"
        if not certificate.exists() and not key.exists():
            made = cls._new(now)
            write_whole(key, [_key_pem(made.key)])
            write_whole(certificate, [made.pem], mode=READABLE)
            return made
        with _file_faults(certificate, key, remedy=folder):
            found = cls(
                certificate=x509.load_pem_x509_certificate(certificate.read_bytes()), key=_key_in(key.read_bytes())
            )
        if found.certificate.public_key() != found.key.public_key():
            raise EnvironmentFaultError(f"{key} is not the key of {certificate}: {_anew(folder)}.")
        end = found.certificate.not_valid_after_utc
        if end - now < RENEWED_BEFORE:
            raise EnvironmentFaultError(
                f"The authority of {certificate} is valid until {end:%Y-%m-%d}: {_anew(folder)}."
            )
        return found

    @classmethod
    def _new(cls, now: datetime) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _named(f"kraftlake cluster, {now:%Y-%m-%d}")
        usage = x509.KeyUsage(
            key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False,
            key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
            decipher_only=False,
        )  # fmt: skip
        builder = _builder(name, name, key, now, now + AUTHORITY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        return cls(certificate=builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()), key=key)

    @property
    def pem(self) -> bytes:
        """The certificate in PEM form."""
        return self.certificate.public_bytes(Encoding.PEM)

    def keystore(self, file: Path, name: str, now: datetime) -> None:
        """Have `file` hold a key and a certificate of this authority for a node of this machine, named `name`.

        A certificate of another authority, or one that is about to expire, is replaced. Raises EnvironmentFaultError.
        """
        if file.exists() and self._is_good(file, now):
            return
        key = ec.generate_private_key(ec.SECP256R1())
        end = min(now + NODE, self.certificate.not_valid_after_utc)
        builder = _builder(_named(name), self.certificate.subject, key, now, end)
        builder = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(list(map(_host, _HOSTS))), critical=False)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
        )
        certificate = builder.sign(self.key, hashes.SHA256())
        write_whole(file, [_key_pem(key), certificate.public_bytes(Encoding.PEM)])

    def _is_good(self, file: Path, now: datetime) -> bool:
        with _file_faults(file, remedy=file):
            content = file.read_bytes()
            certificate = x509.load_pem_x509_certificate(content)
            is_ours = certificate.issuer == self.certificate.subject and _is_signed_by(certificate, self.certificate)
            is_whole = certificate.public_key() == _key_in(content).public_key()
        return is_ours and is_whole and certificate.not_valid_after_utc - now >= RENEWED_BEFORE


def _is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _anew(folder: Path) -> str:
    return f"remove {folder} to get another one, and give its ca.pem to all clients"


@contextmanager
def _file_faults(*files: Path, remedy: Path) -> Iterator[None]:
    """Raise EnvironmentFaultError for files that can't be read or hold something else; `remedy` is what to remove."""
    names = " or ".join(map(str, files))
    try:
        yield
    except OSError as fault:
        raise EnvironmentFaultError(f"{fault.filename or names} can't be read: {fault.strerror}.") from None
    except (ValueError, TypeError):
        raise EnvironmentFaultError(f"{names} is damaged: remove {remedy} to have it made anew.") from None


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(end)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    return x509.DNSName(host) if host[0].isalpha() else x509.IPAddress(ip_address(host))


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _key_in(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError
    return key
