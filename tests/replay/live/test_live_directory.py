"""The batches of a directory that a node writes: those that are known to be committed, or all of them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.follow import TruncatedLogError
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.replay.imports.follow_log import LogFollower
from kraftlake.replay.live.open_live import LiveLog, open_live
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import NotASourceError, OffsetError
from tests.replay.imports.test_follow_log import LiveDirectory as NodeDirectory
from tests.replay.imports.test_follow_log import Quorum, in_lake, lake_of, more, rewritten
from tests.replay.made_logs import leader_change, no_op, small_log


@pytest.fixture
def node(tmp_path: Path) -> NodeDirectory:
    return node_in(tmp_path)


def node_in(folder: Path) -> NodeDirectory:
    node = NodeDirectory(folder / "__cluster_metadata-0")
    node.append(*small_log())
    return node


def watching(node: NodeDirectory, **options: Any) -> LiveLog:
    return open_live(LogSource.open(node.path), poll=0.1, **options)


def taken(live: LiveLog) -> list[RecordBatch]:
    """What comes until nothing comes any more."""
    batches: list[RecordBatch] = []
    while step := live.step():
        batches += step
    return batches


def test_only_what_becomes_known_to_be_committed_comes(node: NodeDirectory) -> None:
    live = watching(node)
    assert live.reader.end_offset == 9
    assert (taken(live), live.seen_to) == ([], node.end)
    more(node, 1)
    leader = next(batch.base_offset for batch in node.batches if batch.epoch == 3)
    assert taken(live) == [batch for batch in node.batches if 9 <= batch.base_offset < leader]
    more(node, 2)
    node.snapshot(node.end, 3)
    assert taken(live) == node.batches[-4:]
    assert live.seen_to == node.end


def test_the_quorum_says_more_at_once(node: NodeDirectory) -> None:
    at = Quorum(3, node.end)
    live = watching(node, quorum=lambda: at)
    assert live.reader.end_offset == node.end
    more(node, 3)
    assert taken(live) == []
    at = Quorum(3, node.end - 1)
    assert taken(live) == node.batches[-3:-1]
    at = Quorum(4, node.end + 5)
    assert taken(live) == [], "this copy has nothing of the leader's epoch"


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["more", "leader", "roll", "snapshot", "rewrite"]), st.integers(1, 4)), max_size=14
)


@settings(max_examples=15)
@given(ACTIONS)
def test_it_gives_what_an_import_that_follows_appends(actions: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        node = node_in(Path(folder))
        follower = LogFollower(node.path, lake_of(node))
        live = watching(node)
        given_ = list(live.reader.batches(0, live.reader.end_offset - 1))
        epoch = 3
        for action, number in actions:
            if action == "more":
                more(node, number, epoch=epoch)
            elif action == "leader":
                epoch += 1
                node.append(leader_change(node.end, epoch))
            elif action == "roll":
                if node.end > node.base:
                    node.roll()
            elif action == "snapshot":
                node.snapshot(node.end, epoch)
            else:
                cut = max(node.end - number, node.base, given_[-1].last_offset + 1)
                if any(batch.base_offset == cut for batch in node.batches):
                    epoch += 1
                    node.truncate(cut)
                    node.append(leader_change(cut, epoch), no_op(cut + 1, epoch=epoch))
            given_ += taken(live)
            for _ in range(3):  # after a truncation it begins anew in a second step
                follower.step()
            assert given_ == in_lake(node)


def test_a_rewritten_tail_that_was_not_given_is_read_anew(node: NodeDirectory) -> None:
    live = watching(node)
    more(node, 4)
    taken(live)
    cut = node.end - 3
    rewritten(node, cut, 6)
    assert taken(live)[-1].last_offset == cut - 1
    assert live.trouble is None


def test_all_whole_batches_come_if_that_is_wanted_and_a_torn_tail_waits(node: NodeDirectory) -> None:
    live = watching(node, include_uncommitted=True)
    batch = no_op(node.end, epoch=3)
    data = encode_batch(batch)
    with node.segment.open("ab") as file:
        for place in range(0, len(data), 13):
            assert live.step() == []
            file.write(data[place : place + 13])
            file.flush()
    assert live.step() == [batch]


def test_a_shorter_log_is_waited_for_and_another_one_ends_the_watch(node: NodeDirectory) -> None:
    live = watching(node, include_uncommitted=True)
    more(node, 4)
    assert len(taken(live)) == 4
    last = node.batches[-2:]
    node.truncate(last[0].base_offset)
    assert live.step() == []
    assert "its tail was truncated" in str(live.trouble)
    node.append(*last)
    more(node, 1)
    assert taken(live) == node.batches[-1:]
    assert live.trouble is None
    rewritten(node, last[0].base_offset, 4)
    with pytest.raises(TruncatedLogError, match="may never have happened"):
        live.step()


def test_other_records_in_place_of_committed_ones_end_the_watch(node: NodeDirectory) -> None:
    live = watching(node, quorum=lambda: Quorum(3, node.end))
    more(node, 4)
    assert len(taken(live)) == 4
    rewritten(node, node.end - 2, 4)
    with pytest.raises(TruncatedLogError, match="has another batch"):
        live.step()


def test_what_comes_before_damage_is_given_first(node: NodeDirectory) -> None:
    live = watching(node, include_uncommitted=True)
    more(node, 3)
    whole = node.segment.stat().st_size
    more(node, 2)
    with node.segment.open("r+b") as file:
        file.seek(whole - 1)
        file.write(b"\xff")
    assert live.step() == node.batches[-5:-3]
    with pytest.raises(BrokenFileError, match=f"offset {node.batches[-3].base_offset}"):
        live.step()


@attrs.frozen
class Gone:
    """Something that ends a watch."""

    what: str
    error: type[Exception]
    message: str


@pytest.mark.parametrize(
    "gone", [Gone("folder", NotASourceError, "does not exist"), Gone("segment", OffsetError, "were deleted there")],
    ids=["folder", "segment"],
)  # fmt: skip
def test_a_directory_or_a_segment_that_was_deleted_ends_the_watch(node: NodeDirectory, gone: Gone) -> None:
    live = watching(node, include_uncommitted=True)
    assert live.step() == []
    if gone.what == "folder":
        shutil.rmtree(node.path)
    else:
        more(node, 2)
        old = node.segment
        node.roll()
        more(node, 2)
        old.unlink()
    with pytest.raises(gone.error, match=gone.message):
        live.step()
    live.close()


def test_a_log_of_which_nothing_is_known_to_be_committed_begins_empty(tmp_path: Path) -> None:
    node = NodeDirectory(tmp_path / "__cluster_metadata-0")
    node.append(leader_change(0, 1))
    live = watching(node)
    assert (live.reader.start_offset, live.reader.end_offset) == (0, 0)
    more(node, 2, epoch=1)
    node.append(leader_change(node.end, 2))
    more(node, 1, epoch=2)
    assert taken(live) == node.batches[:3]
