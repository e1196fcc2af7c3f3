"""Which simulated brokers may lose something, and where Kafka promises nothing any more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftlake.controller.cluster.brokers import register_broker
from simulator import scheduler as scheduling
from simulator.cluster import VirtualCluster
from simulator.invariants import InvariantError, NothingPromisedError, violated
from tests.controller import controlled_cluster
from tests.controller.controlled_cluster import ControlledCluster


@pytest.fixture(autouse=True)
def real_time() -> Iterator[None]:
    """Real time again behind the test."""
    yield
    scheduling.activate(None)


def ended(cluster: VirtualCluster) -> type[Exception]:
    """How a violation ends the history of a cluster."""
    scheduling.activate(cluster.scheduler)
    with pytest.raises((InvariantError, NothingPromisedError)) as caught:
        violated("nothing is lost")
    return caught.type


def test_a_broker_that_counts_as_crashed_is_one_of_those_that_others_wait_for() -> None:
    cluster = VirtualCluster(1)
    one, two, *_ = cluster.brokers.values()
    assert cluster.promise.may_lose(one)
    cluster.promise.counts_as_crashed(two)
    assert (cluster.promise.may_lose(one), cluster.promise.may_crash(one)) == (False, True)
    assert ended(cluster) is InvariantError


def test_nothing_is_promised_where_another_broker_has_lost_something() -> None:
    cluster = VirtualCluster(1)
    one, two, *_ = cluster.brokers.values()
    cluster.promise.ended_unclean(one, lossy=True)
    cluster.promise.counts_as_crashed(two)
    assert ended(cluster) is NothingPromisedError


@pytest.mark.parametrize(("previous", "is_counted"), [("an earlier one", True), ("unknown", False), ("known", False)])
def test_a_registration_of_which_its_broker_did_not_learn_makes_the_next_one_count_so(
    previous: str, is_counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated, controlled = VirtualCluster(1), ControlledCluster()
    (replaced,) = simulated.promise.replaced().items()
    assert replaced[0] is register_broker
    monkeypatch.setattr(controlled_cluster, "register_broker", replaced[1])
    known = controlled.register(1)
    controlled.clock.advance(60_000)
    controlled.register(1, process=1, clean={"an earlier one": known - 1, "unknown": -1, "known": known}[previous])
    assert simulated.promise.may_lose(simulated.brokers[2]) != is_counted
