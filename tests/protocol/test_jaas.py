from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.protocol.jaas import parse_jaas, parse_jaas_file

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{PLAIN} required;", {}),
        (f'{PLAIN} required username="alice" password="a b;\'=";', {"username": "alice", "password": "a b;'="}),
        (
            f"{PLAIN} Required\n  username=alice\n  password='sec\"ret' ;\n",
            {"username": "alice", "password": 'sec"ret'},
        ),
        (f"{PLAIN} required a=x-y_z$1.2/3@b;", {"a": "x-y_z$1.2/3@b"}),
        (f'{PLAIN} required /* one\n two */ a="1" // three\n b = "2";', {"a": "1", "b": "2"}),
        (rf'{PLAIN} required a="\"\\\n\t\101\q";', {"a": '"\\\n\tAq'}),
        (f'{PLAIN} required a="http://x/*y";', {"a": "http://x/*y"}),
    ],
)
def test_a_login_module_and_its_options_are_read(text: str, options: dict[str, str]) -> None:
    entry = parse_jaas(text)
    assert (entry.module, entry.options) == (PLAIN, options)
    assert "alice" not in repr(entry)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not begin with a login module"),
        (f"{PLAIN}", "does not begin with a login module and the word 'required'"),
        (f'{PLAIN} password="secret";', "does not begin with a login module"),
        (f'"{PLAIN}" required;', "does not begin with a login module"),
        (f'{PLAIN} required password="secret"', "does not end with a semicolon"),
        (f'{PLAIN} required password="secret', "that is not closed"),
        (f"{PLAIN} required /* secret", "that is not closed|no KEY=VALUE"),
        (f"{PLAIN} required user=alice password secret;", "no KEY=VALUE as option 2"),
        (f"{PLAIN} required password=secret=;", "no KEY=VALUE as option 2"),
        (f"{PLAIN} required password=;", "no KEY=VALUE as option 1"),
        (f"{PLAIN} required; {PLAIN} required;", "something after the semicolon"),
    ],
)
def test_the_error_says_what_is_wrong_without_a_value(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        parse_jaas(text)
    assert "secret" not in str(caught.value)


@given(password=st.text(min_size=1), quote=st.sampled_from("\"'"))
def test_any_password_can_be_quoted(password: str, quote: str) -> None:
    names = {"\n": "\\n", "\r": "\\r", "\\": "\\\\", quote: f"\\{quote}"}
    written = "".join(names.get(c, c) for c in password)
    assert parse_jaas(f"{PLAIN} required password={quote}{written}{quote};").options == {"password": password}


@given(text=st.text(st.sampled_from(" \t\n\"'=;/*\\abc"), max_size=60))
def test_any_text_is_an_entry_or_one_error(text: str) -> None:
    try:
        parse_jaas(text)
    except ValueError:
        return


def test_many_blanks_before_an_error_take_no_time_that_grows_with_their_square() -> None:
    with pytest.raises(ValueError, match="not closed"):
        parse_jaas(f'{PLAIN} required {" " * 100_000}"')


def test_a_file_has_login_modules_by_the_name_of_their_entry() -> None:
    found = parse_jaas_file(
        """
        // of the broker
        KafkaServer {
            a.PlainLoginModule required user_alice="a;{b}" user_bob=b;
            a.ScramLoginModule required;
        };
        internal.KafkaServer { a.PlainLoginModule required; };
        """
    )
    modules = {name: [entry.module for entry in entries] for name, entries in found.items()}
    assert modules == {
        "KafkaServer": ["a.PlainLoginModule", "a.ScramLoginModule"], "internal.KafkaServer": ["a.PlainLoginModule"],
    }  # fmt: skip
    assert found["KafkaServer"][0].options == {"user_alice": "a;{b}", "user_bob": "b"}
    assert parse_jaas_file("") == {}


@pytest.mark.parametrize(
    "text", ["A", "A {", "A { }", "A { m required; }", "A { m required };", "A m required;", "{ };"]
)
def test_what_is_no_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"has|does not"):
        parse_jaas_file(text)
