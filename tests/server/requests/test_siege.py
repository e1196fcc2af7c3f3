"""Many who never finish a handshake, and many wrong passwords: others are served, and memory is bounded.

How long others wait meanwhile: `python -m benchmarks.siege`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server.requests.besieged import besieged

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
HALF_OPEN = 1000
WRONG = 4_000 if LONG else 40
ATTACKERS = 16 if LONG else 4


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_who_never_gets_in_costs_little_and_keeps_no_one_out(protocol: str, tmp_path: Path) -> None:
    with besieged(protocol, tmp_path) as town, town.pinged() as taken:
        before = town.memory_mb
        half = town.half_open(HALF_OPEN)
        pings = len(taken)
        with town.client("127.0.2.1") as client:
            assert client.log_in("SCRAM-SHA-256", "bob", "secret").error_code == 0
            assert client.who() == "User:bob"
        with ThreadPoolExecutor(ATTACKERS) as pool:
            share = WRONG // ATTACKERS
            hosts = [f"127.0.3.{number + 1}" for number in range(ATTACKERS)]
            refused = sum(pool.map(lambda host: town.wrong_passwords(share, host), hosts))
        assert refused == share * ATTACKERS
        assert len(taken) > pings, "another client is served meanwhile"
        assert town.memory_mb - before < 150
        for one in half:
            one.close()
