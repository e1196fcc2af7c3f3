"""What feeds a broker with metadata, where something goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import cast

from kraftlake.protocol.abort import Abort
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.server.broker.metadata_feed import MetadataFeed
from tests.protocol.observer.fake_quorum import FakeQuorum
from tests.protocol.observer.test_quorum_observer import quorum_of
from tests.waiting import PATIENCE, wait_for


class FaultyLoader:
    def handle_commit(self, batches: Sequence[RecordBatch]) -> None:
        raise RuntimeError(f"{len(batches) > 0}: not foreseen")


def test_a_fault_of_our_own_is_reported_and_not_the_end_of_a_thread_alone() -> None:
    sentences: list[str] = []
    quorum = FakeQuorum(quorum_of())
    with quorum.serving() as addresses:
        observer = QuorumObserver(addresses, connect=NodeConnector(timeout=PATIENCE))
        with closing(MetadataFeed(observer, sentences.append, Abort())) as feed:
            feed.start(cast("MetadataLoader", FaultyLoader()))
            wait_for(lambda: sentences, "its fault is reported")
    (sentence,) = sentences
    assert sentence.startswith("the metadata log can't be followed: ")
    assert "True: not foreseen" in sentence
