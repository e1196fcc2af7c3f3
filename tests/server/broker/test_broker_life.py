"""What ends a broker of a lake, and what it does until then."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.controller import unregister_broker
from kraftlake.server.broker.broker_life import BrokerEndedError
from tests.server.broker.lake_cluster import lake_cluster


def test_a_broker_ends_when_another_process_has_its_id(tmp_path: Path) -> None:
    with lake_cluster(tmp_path, brokers=(1, 2)) as cluster:
        first = cluster.members.pop(1)
        node = cluster.members[101].server.node
        node.run(lambda state: unregister_broker(state, 1), lambda reply: reply).result(30)
        cluster.folder = tmp_path / "other"
        cluster.start_broker(1)
        cluster.await_unfenced(1, 2)
        first.thread.join(30)
        with pytest.raises(BrokerEndedError, match="another process has registered as broker 1"):
            first.check()
