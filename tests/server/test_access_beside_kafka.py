"""Who comes in where, and may do what then: the same as at a node of Kafka's with the same settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.access_sides import Login, Side, logins, started_sides

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("access_beside_kafka")]
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SAMPLE = (
    "alice by SCRAM-SHA-512 at BOTH", "bob by SCRAM-SHA-256 at LOGINS", "alice by certificate at TLS",
    "alice by PLAIN, wrong password at LOGINS", "eve by SCRAM-SHA-512 at BOTH", "bob by PLAIN at BOTH",
)  # fmt: skip
ALL = logins()


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    with started_sides(tmp_path_factory.mktemp("access") / "both") as found:
        yield found


def check(sides: tuple[Side, Side], login: Login) -> None:
    ours, theirs = (side.outcomes(login) for side in sides)
    different = {
        name: (ours.get(name), theirs.get(name)) for name in ours | theirs if ours.get(name) != theirs.get(name)
    }
    print(f"{len(theirs)} outcomes for {login.name}: {sorted({*theirs.values()})}")
    assert not different, different


@pytest.mark.parametrize("login", [one for one in ALL if LONG or one.name in SAMPLE], ids=lambda one: one.name)
def test_a_client_may_do_what_it_may_do_at_kafka(sides: tuple[Side, Side], login: Login) -> None:
    check(sides, login)


@pytest.mark.skipif(not LONG, reason="make test-long: another node of Kafka's")
def test_what_no_acl_is_about_is_everybodys_where_the_setting_says_so(tmp_path: Path) -> None:
    with started_sides(tmp_path / "both", allow_everyone_if_no_acl_found="true") as sides:
        alice, bob, certified = (next(one for one in ALL if one.name == name) for name in SAMPLE[:3])
        check(sides, alice)
        check(sides, bob)
        check(sides, certified)
        found = sides[0].outcomes(alice)
        assert (found["write none"], found["write owned"]) == ("0", "29")


def test_the_sample_and_all_of_it_are_as_many_as_is_claimed() -> None:
    assert {one.name for one in ALL} > {*SAMPLE}
    assert len({one.name for one in ALL}) == len(ALL) == 30
