"""Keystores of a running broker that are changed by `kafka-configs`: at once for new connections, wrong ones never."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.certificates import authority, issued
from tests.server.broker.secured_cluster import Secured, secured_cluster
from tests.waiting import wait_for


def alter(admin: AdminClient, **values: str) -> None:
    """Set configs of the listener SSL at broker 1."""
    entries = [
        ConfigEntry(f"listener.name.ssl.{name.replace('_', '.')}", value, incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(20)


def issuer(secured: Secured) -> str:
    """Who has signed the certificate of the listener."""
    way = secured.way("SSL")
    shown = ssl.get_server_certificate(("127.0.0.1", way.port))
    from cryptography import x509

    return x509.load_pem_x509_certificate(shown.encode()).issuer.rfc4514_string()


def test_a_new_keystore_counts_for_new_connections_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    other = authority("another authority")
    file = tmp_path / "node.pem"
    with secured_cluster(tmp_path) as secured:
        admin = AdminClient(secured.way("PLAINTEXT").of_librdkafka())
        with pytest.raises(KafkaException, match="can't be read"):
            alter(admin, ssl_keystore_location=str(file), ssl_keystore_key="", ssl_keystore_certificate_chain="")
        assert issuer(secured) == "CN=a test authority"
        new = issued(other, "node")
        file.write_text(new.key_pem() + new.pem)
        alter(admin, ssl_keystore_location=str(file), ssl_keystore_key="", ssl_keystore_certificate_chain="")
        wait_for(lambda: issuer(secured) == "CN=another authority", "the new certificate")
        newest = issued(authority("a third one"), "node")
        file.write_text(newest.key_pem() + newest.pem)
        alter(admin, ssl_keystore_password="x")
        wait_for(lambda: issuer(secured) == "CN=a third one", "the file to be read anew")
