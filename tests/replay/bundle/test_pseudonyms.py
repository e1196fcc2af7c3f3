"""Pseudonyms: stable for a key, of Kafka's forms, prefixes where the names are."""

from __future__ import annotations

import ipaddress
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.schema import Names
from kraftlake.replay.bundle.pseudonyms import Pseudonyms, translated
from kraftlake.runtime.errors import UsageError

KEY = bytes(32)
names = st.text(st.sampled_from("ab-.é"), min_size=1, max_size=8)


def test_a_name_has_one_pseudonym_of_its_kind() -> None:
    one, other = Pseudonyms(KEY), Pseudonyms(b"another")
    assert one.of(Names.TOPIC, "orders") == one.of(Names.TOPIC, "orders") == Pseudonyms(KEY).of(Names.TOPIC, "orders")
    assert one.of(Names.TOPIC, "orders") != one.of(Names.TOPIC, "bills")
    assert one.of(Names.TOPIC, "orders")[6:] != one.of(Names.GROUP, "orders")[6:]
    assert one.of(Names.TOPIC, "orders") != other.of(Names.TOPIC, "orders")


def test_hosts_resolve_nowhere_and_addresses_stay_addresses() -> None:
    pseudonyms = Pseudonyms(KEY)
    assert pseudonyms.of(Names.HOST, "b1.example").endswith(".invalid")
    for address in ("10.0.0.4", "fe80::1"):
        assert ipaddress.ip_address(pseudonyms.of(Names.HOST, address)) in ipaddress.ip_network("2001:db8::/32")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Names.TOPIC, "__consumer_offsets"), (Names.TOPIC, "__"), (Names.TOPIC, ""), (Names.GROUP, "*"),
        (Names.USER, "ANONYMOUS"), (Names.HOST, "*"), (Names.HOST, "localhost"), (Names.HOST, "127.0.0.1"),
        (Names.HOST, "::1"), (Names.HOST, "0.0.0.0"), (Names.KAFKA, "orders"),
    ],
)  # fmt: skip
def test_words_with_a_meaning_of_their_own_stay(kind: Names, name: str) -> None:
    pseudonyms = Pseudonyms(KEY)
    assert pseudonyms.of(kind, name) == name
    assert not pseudonyms.made


@given(st.sets(names, max_size=4), st.sets(names, min_size=1, max_size=6))
def test_a_prefix_begins_the_pseudonyms_of_the_same_names(prefixes: set[str], topics: set[str]) -> None:
    pseudonyms = Pseudonyms(KEY)
    pseudonyms.declare_prefixes(Names.TOPIC, prefixes)
    for prefix in prefixes:
        for topic in topics:
            begins = pseudonyms.of(Names.TOPIC, topic).startswith(pseudonyms.of(Names.TOPIC, prefix))
            assert begins == topic.startswith(prefix)
    made = {pseudonyms.of(Names.TOPIC, topic) for topic in topics}
    assert len(made) == len(topics)


@given(st.dictionaries(names, st.sampled_from([Names.TOPIC, Names.USER, Names.HOST, Names.TEXT]), min_size=1))
def test_an_answer_is_translated_back(found: dict[str, Names]) -> None:
    pseudonyms = Pseudonyms(KEY)
    pseudonyms.declare_prefixes(Names.TOPIC, ["a"])
    answer = " ".join(f"{kind.value} <{pseudonyms.of(kind, name)}-3>" for name, kind in found.items())
    assert translated(answer, pseudonyms.made) == " ".join(f"{kind.value} <{name}-3>" for name, kind in found.items())


def test_names_are_escaped_in_json() -> None:
    pseudonyms = Pseudonyms(KEY)
    name = 'CN="a"\n'
    answer = json.dumps({"user": pseudonyms.of(Names.USER, name)})
    assert json.loads(translated(answer, pseudonyms.made)) == {"user": name}


def test_a_pseudonym_that_is_a_name_already_is_refused() -> None:
    made = Pseudonyms(KEY).of(Names.TOPIC, "orders")
    pseudonyms = Pseudonyms(KEY)
    for name in ("orders", made):
        pseudonyms.of(Names.TOPIC, name)
    with pytest.raises(UsageError, match=f"^The pseudonym {made} is a name in the log: make the pseudonyms by another"):
        pseudonyms.check_new(["orders", made])


def test_two_names_never_share_a_pseudonym() -> None:
    made = Pseudonyms(KEY).of(Names.TOPIC, "orders")
    with pytest.raises(UsageError, match="would stand for two names"):
        Pseudonyms(KEY, {made: "bills"}).of(Names.TOPIC, "orders")
