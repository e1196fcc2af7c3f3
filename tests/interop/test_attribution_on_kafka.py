"""Changes of a real cluster by three principals, and the principals that its authorizer's lines name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path

import pytest

import kraftlake
from kraftlake.diagnosis.attribution.attribution import Attribution
from kraftlake.diagnosis.attribution.witnesses import Witnesses
from tests.interop.authorized_nodes import PRINCIPALS, Authorized, Made, authorized_nodes, change, prepare, records_of
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: three nodes, two minutes"),
]
COUNT = 100


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authorized]:
    with authorized_nodes(tmp_path_factory.mktemp("authorized") / "nodes") as running:
        yield running


def judged(cluster: Authorized, made: Sequence[Made]) -> tuple[int, list[str]]:
    """The number of changes whose principal, host and request are named and right, and what is named wrongly."""
    wait_for(lambda: {one.identity for one in made} <= records_of(kraftlake.open(cluster.metadata)).keys())
    source = kraftlake.open(cluster.metadata)
    logs = [log for log in cluster.logs if Path(log).stat().st_size]
    attribution = Attribution(source, Witnesses(authorizer_logs=tuple(logs), log_zone=UTC))
    offsets, right, wrong = records_of(source), 0, list[str]()
    for one in made:
        finding = attribution.of(offsets[one.identity]).authorizer
        assert finding is not None
        possible = [(each.principal, each.request) for each in finding.candidates]
        expected = one.principal, one.request
        if finding.named is not None:
            right += possible == [expected]
        if possible and expected not in possible:
            wrong.append(f"{one}: {possible}")
    return right, wrong


def test_changes_a_second_apart_are_named_and_none_wrongly(cluster: Authorized) -> None:
    principals = [PRINCIPALS[(number // 6 + number) % 3] for number in range(COUNT)]
    prepare(cluster, range(COUNT), principals)
    made = []
    for number, principal in enumerate(principals):
        time.sleep(1)  # what is tried is a second between changes
        make, one = change(cluster, number, principal)
        make()
        made.append(one)
    right, wrong = judged(cluster, made)
    print(f"{right} of {COUNT} changes a second apart are named")
    assert not wrong
    assert right >= 90


def test_of_changes_at_once_none_is_named_wrongly(cluster: Authorized) -> None:
    numbers = range(1_000, 1_000 + COUNT)
    principals = [PRINCIPALS[(number // 6 + number) % 3] for number in numbers]
    prepare(cluster, numbers, principals)
    changes = [change(cluster, *pair) for pair in zip(numbers, principals, strict=True)]
    with ThreadPoolExecutor(COUNT) as pool:
        for future in [pool.submit(make) for make, _ in changes]:
            future.result()
    right, wrong = judged(cluster, [one for _, one in changes])
    print(f"{right} of {COUNT} changes at once are named")
    assert not wrong
