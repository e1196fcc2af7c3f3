from __future__ import annotations

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.credentials import CredentialProvider, DelegationTokenCache, describe_scram_credentials
from kraftlake.records import metadata_records as r
from tests.publisher.updates import cluster


def credential(user: str, iterations: int = 4096, mechanism: int = 1) -> r.UserScramCredentialRecord:
    return r.UserScramCredentialRecord(
        name=user, mechanism=mechanism, salt=b"salt", stored_key=b"stored", server_key=b"server", iterations=iterations
    )


def token(token_id: str, owner: str = "User:alice", expires: int = 100) -> r.DelegationTokenRecord:
    return r.DelegationTokenRecord(
        owner=owner, requester=owner, renewers=(), issue_timestamp=0, max_timestamp=200, expiration_timestamp=expires,
        token_id=token_id,
    )  # fmt: skip


def test_credentials_are_found_by_mechanism_and_user() -> None:
    provider = CredentialProvider()
    made = cluster(credential("alice"), credential("alice", 8192, mechanism=2))
    made.introduce(provider)
    found = provider.credential(2, "alice")
    assert found is not None
    assert found.iterations == 8192
    made.change(credential("alice", 5000), r.RemoveUserScramCredentialRecord(name="alice", mechanism=2))
    made.change(r.RemoveUserScramCredentialRecord(name="nobody", mechanism=1))
    changed = provider.credential(1, "alice")
    assert changed is not None
    assert changed.iterations == 5000
    assert provider.credential(2, "alice") is None


def test_tokens_are_found_by_id_and_owner_until_they_expire() -> None:
    cache = DelegationTokenCache()
    made = cluster(token("b"), token("a"), token("c", "User:bob"))
    made.introduce(cache)
    assert [t.token_id for t in cache.tokens_of("User:alice")] == ["a", "b"]
    assert cache.usable("a", 100) is not None
    assert cache.usable("a", 101) is None
    assert cache.token("a") is not None
    made.change(token("a", expires=150), r.RemoveDelegationTokenRecord(token_id="b"))
    assert cache.usable("a", 150) is not None
    assert cache.token("b") is None


def test_credentials_are_described_without_keys() -> None:
    image = cluster(credential("bob", 8192, 2), credential("alice"), credential("alice", 5000, 2)).image.scram
    assert [(d.user, d.iterations) for d in describe_scram_credentials(image)] == [
        ("alice", {1: 4096, 2: 5000}),
        ("bob", {2: 8192}),
    ]
    answers = describe_scram_credentials(image, ["bob", "carol", "bob"])
    assert [(d.user, d.error) for d in answers] == [
        ("bob", ErrorCode.DUPLICATE_RESOURCE),
        ("carol", ErrorCode.RESOURCE_NOT_FOUND),
    ]
