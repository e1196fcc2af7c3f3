"""The authority of a secure cluster and its nodes' certificates: kept, renewed, or refused with a sentence."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.server.cluster_up.certificates import AUTHORITY, NODE, RENEWED_BEFORE, Authority

NOW = datetime(2026, 11, 29, 22, tzinfo=UTC)
DAY = timedelta(days=1)


def certificate(keystore: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(keystore.read_bytes())


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    Authority.at(tmp_path, NOW).keystore(tmp_path / "keystore.pem", "broker 1", NOW)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"ca.key": 0o600, "ca.pem": 0o644, "keystore.pem": 0o600}


def test_a_certificate_is_good_for_this_machine_as_server_and_as_client(tmp_path: Path) -> None:
    authority = Authority.at(tmp_path, NOW)
    authority.keystore(tmp_path / "keystore.pem", "broker 1", NOW)
    found = certificate(tmp_path / "keystore.pem")
    found.verify_directly_issued_by(authority.certificate)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one.value) for one in names] == ["localhost", "127.0.0.1", "::1"]
    assert found.not_valid_before_utc < NOW
    assert found.not_valid_after_utc == NOW + NODE
    assert found.subject.rfc4514_string() == "CN=broker 1"


def test_the_next_start_uses_what_there_is(tmp_path: Path) -> None:
    Authority.at(tmp_path, NOW).keystore(tmp_path / "keystore.pem", "broker 1", NOW)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    later = NOW + NODE - RENEWED_BEFORE
    Authority.at(tmp_path, later).keystore(tmp_path / "keystore.pem", "broker 1", later)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_nodes_certificate_that_is_about_to_expire_is_renewed_by_the_same_authority(tmp_path: Path) -> None:
    Authority.at(tmp_path, NOW).keystore(tmp_path / "keystore.pem", "broker 1", NOW)
    authority = (tmp_path / "ca.pem").read_bytes()
    late = NOW + NODE - RENEWED_BEFORE + DAY
    Authority.at(tmp_path, late).keystore(tmp_path / "keystore.pem", "broker 1", late)
    assert certificate(tmp_path / "keystore.pem").not_valid_after_utc == late + NODE
    assert (tmp_path / "ca.pem").read_bytes() == authority


def test_a_certificate_ends_with_its_authority_at_the_latest(tmp_path: Path) -> None:
    Authority.at(tmp_path, NOW)
    late = NOW + AUTHORITY - 100 * DAY
    authority = Authority.at(tmp_path, late)
    authority.keystore(tmp_path / "keystore.pem", "broker 1", late)
    assert certificate(tmp_path / "keystore.pem").not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_a_certificate_of_another_authority_or_without_its_key_is_replaced(tmp_path: Path) -> None:
    keystore = tmp_path / "keystore.pem"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Authority.at(tmp_path / name, NOW).keystore(keystore, "broker 1", NOW)
    authority = Authority.at(tmp_path / "b", NOW)
    found = certificate(keystore)
    found.verify_directly_issued_by(authority.certificate)
    other = tmp_path / "other.pem"
    authority.keystore(other, "broker 2", NOW)
    mixed = (
        other.read_bytes().partition(b"-----BEGIN CERTIFICATE")[0] + keystore.read_bytes().partition(b"EY-----\n")[2]
    )
    keystore.write_bytes(mixed[: mixed.index(b"-----BEGIN CERT")] + mixed[mixed.rindex(b"-----BEGIN CERT") :])
    authority.keystore(keystore, "broker 1", NOW)
    assert certificate(keystore).serial_number != found.serial_number


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        (
            NOW + AUTHORITY - RENEWED_BEFORE + DAY,
            r"The authority of .*ca.pem is valid until 2036-11-26: remove .* to get",
        ),
        (NOW + AUTHORITY + DAY, "is valid until 2036-11-26"),
    ],
)
def test_an_authority_that_is_about_to_expire_is_refused(tmp_path: Path, at: datetime, sentence: str) -> None:
    Authority.at(tmp_path, NOW)
    with pytest.raises(EnvironmentFaultError, match=sentence):
        Authority.at(tmp_path, at)


@pytest.mark.parametrize("damaged", ["ca.pem", "ca.key"])
def test_damaged_files_are_reported_and_not_replaced(tmp_path: Path, damaged: str) -> None:
    Authority.at(tmp_path, NOW)
    file = tmp_path / damaged
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(EnvironmentFaultError, match=r"ca\.pem or .*ca\.key is damaged: remove "):
        Authority.at(tmp_path, NOW)
    file.unlink()
    with pytest.raises(EnvironmentFaultError, match=rf"{damaged} can't be read: No such file"):
        Authority.at(tmp_path, NOW)


def test_a_key_of_another_authority_is_reported(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Authority.at(tmp_path / name, NOW)
    (tmp_path / "a/ca.key").write_bytes((tmp_path / "b/ca.key").read_bytes())
    with pytest.raises(EnvironmentFaultError, match=r"ca\.key is not the key of .*ca\.pem: remove "):
        Authority.at(tmp_path / "a", NOW)


def test_a_damaged_keystore_is_reported_without_the_folder_of_the_nodes_logs(tmp_path: Path) -> None:
    keystore = tmp_path / "keystore.pem"
    authority = Authority.at(tmp_path, NOW)
    keystore.write_text("-----BEGIN CERTIFICATE-----")
    with pytest.raises(EnvironmentFaultError, match=rf"keystore\.pem is damaged: remove {keystore} to have"):
        authority.keystore(keystore, "broker 1", NOW)
