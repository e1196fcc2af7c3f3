from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from kraftlake.server.principal_mapping import PrincipalMapper, subject_of
from tests.certificates import authority, issued


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
        ("", "CN=alice", None),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
        ("RULE:^CN=(.*?),.*$/$1/L,DEFAULT", "CN=ALICE,O=x", "alice"),
        ("RULE:^CN=(.*?),.*$/$1/U", "CN=alice,O=x", "ALICE"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/", "CN=a,OU=b,O=c", "a@b"),
        ("RULE:^CN=(.*?)$/$1-$2-$12/", "CN=a", "a-$2-a2"),
        (r"RULE:^CN=(.*?)$/\$1\//", "CN=a", "$1/"),
        ("RULE:CN=b/x/ , RULE:CN=(a)/$1/", "CN=a", "a"),
        ("RULE:CN=b/x/", "CN=a", None),
        ("RULE:A/x/", "CN=A", None),
    ],
)
def test_the_first_rule_that_matches_the_whole_subject_makes_the_name(
    rules: str, subject: str, name: str | None
) -> None:
    assert PrincipalMapper.of(rules).name(subject) == name


@pytest.mark.parametrize("rules", ["RULE:a", "default", "RULE:(/x/", "DEFAULT,x"])
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="has "):
        PrincipalMapper.of(rules)


def test_a_subject_is_written_as_in_java() -> None:
    made = issued(authority(), 'a, "b" + c')
    assert subject_of(made.certificate.public_bytes(Encoding.DER)) == r"CN=a\, \"b\" \+ c"
