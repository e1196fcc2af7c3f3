"""The judge of histories, on a real Kafka whose brokers are killed and paused: it finds nothing there either."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.server.broker.cluster import BROKERS, started_cluster
from tests.server.client_history import Readers, RecordedLoad
from tests.server.history_checker import History, violations

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
PARTITIONS, ROUNDS = 4, 6


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="make test-long: a cluster of five nodes of Kafka's")
def test_the_clients_of_a_real_kafka_see_what_one_list_may_do(tmp_path: Path) -> None:
    history = History()
    with started_cluster(tmp_path) as cluster:
        names = cluster.create("kept", *[[*BROKERS]] * PARTITIONS, min_insync_replicas=1)
        cluster.await_isr({*BROKERS}, *names)
        readers = Readers({"bootstrap.servers": cluster.bootstrap}, "kept", PARTITIONS, history)
        with readers, RecordedLoad(cluster.bootstrap, names, history) as load:
            for number in range(ROUNDS):
                load.await_more()
                victim = cluster.nodes[BROKERS[number % len(BROKERS)]]
                if number % 3 == 2:
                    victim.signal(signal.SIGSTOP)
                    load.await_more()
                    victim.signal(signal.SIGCONT)
                else:
                    victim.kill()
                    load.await_more()
                    victim.start()
                cluster.await_isr({*BROKERS}, *names)
        readers.read_to_the_end()
    assert not violations(history)
    assert len(history.reads) > len(history.appends) >= 100 * ROUNDS
