from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.protocol.scram import HASHES, ScramError, scram_messages
from kraftlake.protocol.scram_server import ClientFirst, ScramServer
from tests.protocol.test_scram import CHALLENGE, FINAL, FIRST, PROOF


@attrs.frozen
class Stored:
    """What a server keeps of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, password: str, salt: bytes, iterations: int = 4096, mechanism: str = "SCRAM-SHA-256") -> Stored:
        name = HASHES[mechanism]
        salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
        stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
        return cls(salt, iterations, stored, hmac.digest(salted, b"Server Key", name))


# RFC 7677, section 3.
SALT = b64decode(b"W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def server(mechanism: str = "SCRAM-SHA-256", password: str = "pencil", first: bytes = FIRST) -> ScramServer:
    stored = Stored.of(password, SALT, mechanism=mechanism)
    return ScramServer(mechanism, ClientFirst.parse(first), stored, SERVER_NONCE)


def test_the_example_of_the_rfc_is_answered_as_there() -> None:
    asked = server()
    assert asked.challenge == CHALLENGE
    assert asked.finish(FINAL) == PROOF


@given(
    st.text(min_size=1),
    st.sampled_from(sorted(HASHES)),
    st.text(st.characters(codec="ascii", min_codepoint=1), min_size=1),
)
def test_a_client_that_knows_the_password_comes_in_and_another_does_not(
    password: str, mechanism: str, user: str
) -> None:
    for said in (password, f"{password}x"):
        client = scram_messages(mechanism, user=user, password=said, nonce="n")
        first = next(client)
        parsed = ClientFirst.parse(first)
        assert parsed.name == user
        asked = ScramServer(mechanism, parsed, Stored.of(password, b"salt", mechanism=mechanism), "server")
        last = client.send(asked.challenge)
        if said == password:
            with pytest.raises(StopIteration):
                client.send(asked.finish(last))
        else:
            with pytest.raises(ScramError, match="does not know the password"):
                asked.finish(last)


def test_extensions_and_escapes_of_the_first_message_are_read() -> None:
    first = ClientFirst.parse(b"n,,n=t=2C1,r=nonce,tokenauth=true,x=y")
    assert (first.name, first.nonce, dict(first.extensions)) == ("t,1", "nonce", {"tokenauth": "true", "x": "y"})


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,n=a", b"y,,n=a,r=x", b"n,,n=,r=x", b"n,,n=a=b,r=x", b"n,a=b,n=a,r=x", b"\xff",
     b"n,,n=a,r=" + b"x" * 9000],
)  # fmt: skip
def test_what_is_no_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(ScramError):
        ClientFirst.parse(message)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"r=rO", b"r=xO"), (b"k0", b""), (b"c=biws", b"c=eSws"), (b",p=", b",q="), (b"p=dHzb", b"p=AHzb"),
     (b"ndVQ=", b"")],
)  # fmt: skip
def test_what_is_no_last_message_of_this_login_is_refused(old: bytes, new: bytes) -> None:
    assert old in FINAL
    with pytest.raises(ScramError):
        server().finish(FINAL.replace(old, new))


def test_a_weak_credential_lets_no_one_in() -> None:
    with pytest.raises(ScramError, match="too few"):
        ScramServer("SCRAM-SHA-256", ClientFirst.parse(FIRST), Stored.of("pencil", SALT, 4095), "n")
