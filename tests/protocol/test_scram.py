from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.protocol.scram import ScramError, scram_messages

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
PROOF = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def talk(*answers: bytes, mechanism: str = "SCRAM-SHA-256") -> list[bytes]:
    """What the client says; the last answer must end the exchange."""
    exchange = scram_messages(mechanism, user="user", password="pencil", nonce=NONCE)
    said = [next(exchange), *(exchange.send(answer) for answer in answers[:-1])]
    with pytest.raises(StopIteration):
        exchange.send(answers[-1])
    return said


def test_the_example_of_the_rfc_is_answered_as_there() -> None:
    assert talk(CHALLENGE, PROOF) == [FIRST, FINAL]


def test_a_user_name_and_extensions_are_written_as_kafka_does() -> None:
    exchange = scram_messages(
        "SCRAM-SHA-512", user="a=b,c", password="p", nonce=NONCE, extensions={"tokenauth": "true"}
    )
    assert next(exchange) == f"n,,n=a=3Db=2Cc,r={NONCE},tokenauth=true".encode()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"i=4096", b"i=4095", "asks for 4,095 iterations of SCRAM: 4,096 to 1,000,000 are accepted"),
        (b"i=4096", b"i=1000001", "asks for 1,000,001 iterations"),
        (b"i=4096", b"i=" + b"9" * 5000, "without a salt or a number"),
        (b"i=4096", b"i=-1", "without a salt or a number"),
        (b",i=4096", b"", "without a nonce, a salt or a number"),
        (b"s=W22Z", b"s=*", "without a nonce, a salt"),
        (b"W22ZaJ0SNY7soEsUEjb6gQ==", b"", "without a salt"),
        (b"r=rO", b"r=xO", "for another login"),
        (b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b"", "for another login"),
        (b"r=", b"\xff=", "no UTF-8"),
        (b"r=", b"x=" + b"y" * 9000 + b",r=", "of 9,"),
    ],
)
def test_a_challenge_that_breaks_the_protocol_is_refused(old: bytes, new: bytes, message: str) -> None:
    assert old in CHALLENGE
    with pytest.raises(ScramError, match=message):
        talk(CHALLENGE.replace(old, new))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"v=" + b"A" * 43 + b"=", "does not know the password"),
        (b"v=*", "without its signature"),
        (b"e=other-error", "without its signature"),
        (b"", "without its signature"),
    ],
)
def test_a_server_that_does_not_prove_itself_is_refused(answer: bytes, message: str) -> None:
    with pytest.raises(ScramError, match=message):
        talk(CHALLENGE, answer)


@given(answer=st.binary(max_size=200) | st.text("r=,si0v", max_size=40).map(str.encode))
def test_any_challenge_is_one_error(answer: bytes) -> None:
    with pytest.raises(ScramError):
        talk(answer)
