from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.protocol.client_config import (
    ClientConfig,
    SaslConfig,
    parse_client_config,
    read_client_config,
)
from kraftlake.protocol.tls_config import StoreConfig, TlsConfig
from kraftlake.runtime.errors import UsageError

MODULE = "org.apache.kafka.common.security"
PLAIN = f'{MODULE}.plain.PlainLoginModule required username="alice" password="the-secret";'
SCRAM = PLAIN.replace("plain.Plain", "scram.Scram")
BEARER = f'{MODULE}.oauthbearer.OAuthBearerLoginModule required extension_cluster="c1";'
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}
TOKEN = LOGIN | {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": BEARER}
URL = "sasl.oauthbearer.token.endpoint.url"
SSL = {"security.protocol": "SSL"}


def read(**values: str) -> ClientConfig:
    return parse_client_config(values, "client.properties")


def test_an_empty_file_speaks_plaintext(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# nothing\nacks=all\n")
    assert read_client_config(file) == ClientConfig(file=str(file))
    assert read_client_config(file).principal == "User:ANONYMOUS"


def test_names_and_times_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(" client.id = me\t\nrequest.timeout.ms: 1500\n")
    assert read_client_config(str(file)) == ClientConfig(file=str(file), client_id="me", timeout=1.5)


def test_a_login_by_password_is_taken() -> None:
    config = read(**LOGIN)
    assert config.sasl == SaslConfig(mechanism="PLAIN", user="alice", password="the-secret")
    assert config.principal == "User:alice"
    assert read(**LOGIN | {"security.protocol": "SASL_SSL"}).tls == TlsConfig()
    with_token = SCRAM.replace(";", " tokenauth=true;")
    scram = read(**LOGIN | {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": with_token}).sasl
    assert scram is not None
    assert scram.extensions == {"tokenauth": "true"}


@pytest.mark.parametrize("url", ["file:///run/a%20token", "file:/run/a token", "FILE://localhost/run/a%20token"])
def test_a_token_comes_from_a_file(url: str) -> None:
    expected = SaslConfig(mechanism="OAUTHBEARER", token_file="/run/a token", extensions={"cluster": "c1"})
    assert read(**TOKEN, **{URL: url}).sasl == expected


def test_stores_are_taken_from_files_and_from_the_properties_themselves() -> None:
    config = read(**SSL, **{
        "ssl.truststore.location": "/t.p12", "ssl.truststore.password": "the-secret", "ssl.truststore.type": "pkcs12",
        "ssl.keystore.type": "PEM", "ssl.keystore.key": "KEY", "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.key.password": "the-secret", "ssl.enabled.protocols": "TLSv1.1, TLSv1.2",
    })  # fmt: skip
    trusted = StoreConfig(name="truststore", type="PKCS12", location="/t.p12", password="the-secret")
    shown = StoreConfig(name="keystore", type="PEM", certificates="CHAIN", key="KEY", key_password="the-secret")
    assert config.tls == TlsConfig(truststore=trusted, keystore=shown, versions=("TLSv1.2",))
    assert config.principal == "the user of the client certificate"


def test_an_empty_algorithm_turns_the_check_of_host_names_off_with_a_warning() -> None:
    key = "ssl.endpoint.identification.algorithm"
    config = read(**SSL, **{key: " "})
    assert config.tls == TlsConfig(check_host=False)
    assert config.warnings == (
        "client.properties turns the check of host names off (ssl.endpoint.identification.algorithm is empty): any "
        "node with a certificate of a trusted authority is taken for the right one",
    )
    assert not read(**{key: ""}).warnings, "without TLS it means nothing"
    assert not read(**SSL, **{key: "https"}).warnings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"security.protocol": "TLS"}, "is 'TLS': PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL is known"),
        (LOGIN | {"sasl.mechanism": ""}, r"is GSSAPI \(Kerberos\), Kafka's default; kraftlake speaks PLAIN, "),
        (LOGIN | {"sasl.mechanism": "A\x1bWS"}, r"sasl.mechanism is 'A\\+x1bWS'; kraftlake speaks PLAIN"),
        (LOGIN | {"sasl.jaas.config": ""}, "sasl.jaas.config is missing: PLAIN needs PlainLoginModule in it"),
        (LOGIN | {"sasl.jaas.config": PLAIN[:-1]}, "sasl.jaas.config does not end with a semicolon"),
        (LOGIN | {"sasl.jaas.config": SCRAM}, "names another login module than PlainLoginModule, which sasl.mechanism"),
        (LOGIN | {"sasl.jaas.config": PLAIN.replace("user", "x")}, "sasl.jaas.config has no username"),
        (LOGIN | {"sasl.jaas.config": PLAIN.replace("the-secret", "")}, "sasl.jaas.config has no password"),
        (TOKEN, f"{URL} is missing: give a file that holds the token, as in file:///run/secrets/token"),
        (TOKEN | {URL: "https://host/token"}, f"{URL} is no file: URL, and kraftlake asks no server for tokens"),
        (TOKEN | {URL: "file://host/token"}, f"{URL} is no file: URL"),
        (TOKEN | {"sasl.oauthbearer.jwt.retriever.class": "x.Y"}, "may be FileJwtRetriever only"),
        (SSL | {"ssl.truststore.type": "BKS"}, "ssl.truststore.type is 'BKS': JKS, PKCS12 or PEM is known"),
        (SSL | {"ssl.truststore.certificates": "C"}, "ssl.truststore.type must be PEM, since ssl.truststore.certif"),
        (SSL | {"ssl.keystore.type": "PEM", "ssl.keystore.key": "the-secret"}, "certificate.chain is missing"),
        (SSL | {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "C"}, "ssl.keystore.key is missing"),
        (
            SSL | {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "C", "ssl.truststore.location": "L"},
            "ssl.truststore.location is given together with PEM text",
        ),
        (SSL | {"ssl.enabled.protocols": "TLSv1"}, "ssl.enabled.protocols names none of TLSv1.2 and TLSv1.3"),
        (SSL | {"ssl.endpoint.identification.algorithm": "LDAPS"}, "must be https, or empty for no check"),
        ({"request.timeout.ms": "0"}, "request.timeout.ms must be a number of milliseconds above 0"),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms must be a number of milliseconds above 0"),
        ({"client.id": "é" * 17_000}, "client.id is longer than 32,767 bytes"),
        ({"config.providers": "file"}, "config.providers is not supported: write the values themselves"),
    ],
)  # fmt: skip
def test_the_error_names_the_file_and_the_key_and_no_secret(values: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=rf"^client\.properties: .*{message}") as caught:
        parse_client_config(values, "client.properties")
    assert "the-secret" not in str(caught.value)


def test_the_error_names_a_file_that_is_none_of_properties(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    for content, message in (
        (b"a=\\u1", rf"^{file} is no properties file: \\u is not followed by four hexadecimal digits\.$"),
        (b"x" * 2_000_000, rf"^{file} is larger than 1,048,576 bytes: is it the right file\?"),
    ):
        file.write_bytes(content)
        with pytest.raises(UsageError, match=message):
            read_client_config(file)
    with pytest.raises(UsageError, match=rf"^{tmp_path} can't be read: Is a directory\.$"):
        read_client_config(tmp_path)
    with pytest.raises(UsageError, match="can't be read: that is no name of a file"):
        read_client_config("a\0b")


def test_secrets_are_in_no_repr() -> None:
    stores = {"ssl.truststore.location": "t", "ssl.truststore.password": "the-secret", "ssl.key.password": "the-secret",
              "ssl.keystore.location": "k", "ssl.keystore.password": "the-secret"}  # fmt: skip
    config = read(**LOGIN | {"security.protocol": "SASL_SSL"}, **stores)
    assert "the-secret" in str(config.sasl.password if config.sasl else "")
    assert "the-secret" not in repr(config)


@given(
    values=st.dictionaries(
        st.sampled_from([*LOGIN, *TOKEN, URL, "ssl.truststore.type", "ssl.keystore.key", "request.timeout.ms"]),
        st.sampled_from([*LOGIN.values(), *TOKEN.values(), "SSL", "SASL_SSL", "PEM", "file:///t", "file://[", "9", ""])
        | st.text(max_size=10),
    )
)
def test_any_values_are_a_configuration_or_one_error(values: dict[str, str]) -> None:
    try:
        parse_client_config(values, "client.properties")
    except UsageError:
        return
