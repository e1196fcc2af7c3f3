"""What goes to executors of the environment by which this process reaches an object store."""

from __future__ import annotations

import pytest

from kraftlake.spark_jobs.executor_environment import lend, store_access

KEYS = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
PLACE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_REGION": "here", "AWS_ALLOW_HTTP": "true"}


def lent(environment: dict[str, str]) -> dict[str, str]:
    lend(store_access(), environment)
    return environment


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in (KEYS | PLACE | {"AWS_PROFILE": "of this machine", "SECRET": "of another"}).items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_what_reaches_the_store_goes_along_and_nothing_else() -> None:
    assert lent({"PYTHONHASHSEED": "0"}) == KEYS | PLACE | {"PYTHONHASHSEED": "0"}


def test_what_the_session_was_given_stays(environment: pytest.MonkeyPatch) -> None:
    of_session = {"AWS_REGION": "there", "AWS_ENDPOINT": "http://inside:9000"}
    assert lent({**of_session}) == KEYS | PLACE | of_session
    environment.setenv("AWS_REGION", "elsewhere")
    given = dict[str, str]()
    assert lent(given) == lent(given) == KEYS | PLACE | {"AWS_REGION": "elsewhere"}


def test_keys_of_two_environments_are_never_mixed() -> None:
    of_session = {"AWS_ACCESS_KEY_ID": "theirs", "AWS_SECRET_ACCESS_KEY": "their secret"}
    assert lent({**of_session}) == PLACE | of_session


def test_without_keys_here_the_executors_use_their_own(environment: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        environment.delenv(name)
    assert lent({}) == PLACE
