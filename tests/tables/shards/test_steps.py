"""However a log is dealt out to shards and cut into steps, the tables have the rows that one process makes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.runtime.errors import KraftlakeError, UnwritableMetadataError
from kraftlake.tables.jobs import ALL
from kraftlake.tables.shards.state_files import read_state, write_state
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import UNDECODABLE, UNKNOWN, begin, data, end, metadata_version, partition, topic, uuid_of
from tests.tables.folding import fold_into
from tests.tables.logs_for_writers import cut, generated_log, real_log
from tests.tables.shards.one_process import by_shards, in_process

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


@few_examples
@given(
    log=metadata_logs(max_steps=60),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    shards=st.integers(1, 5),
)
def test_shards_and_driver_make_the_rows_of_one_process(log: list[RecordBatch], cuts: list[int], shards: int) -> None:
    assert by_shards(cut(log, cuts), shards) == in_process(log)


@given(log=metadata_logs(max_steps=40), cuts=st.lists(st.integers(0, 20), min_size=1, max_size=3))
@settings(max_examples=settings.default.max_examples // 5)  # type: ignore[union-attr]
def test_states_go_through_files(log: list[RecordBatch], cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder)

        def stored(state: ReplayState) -> ReplayState:
            return read_state(lake, write_state(lake, "events/0", state))

        def check(state: ReplayState) -> None:
            try:
                again = stored(state)
            except UnwritableMetadataError:
                return
            assert (again.image, again.quorum, again.open_since) == (state.image, state.quorum, state.open_since)
            assert again.image.provenance == state.image.provenance
            assert again.held.offsets.tolist() == state.held.offsets.tolist()

        assert by_shards(cut(log, cuts), 2, stored=stored, check=check) == in_process(log)


def test_a_log_in_which_everything_happens_has_the_rows_of_one_process() -> None:
    sample = ((real_log("kafka-4.4"), 2),) if LONG else ()  # Spark makes its tables in the quick run, in any steps
    for log, shards in ((generated_log(3), 3), *sample):
        rows = in_process(log)
        assert all(rows[name] for name in ("events", "local_changes", "cluster_metrics", "partition_history"))
        assert by_shards(cut(log, range(0, len(log), 1 + len(log) // 4)), shards) == rows


CHANGE = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(3), leader=2)


@pytest.mark.parametrize(
    "records",
    [
        (CHANGE, r.PartitionChangeRecord(partition_id=7, topic_id=uuid_of(3), leader=2)),
        (r.RemoveTopicRecord(topic_id=uuid_of(50)),),
        (topic(50, "topic-3"),),
        (r.ClearElrRecord(topic_name="none"),),
        (end(),),
        (begin(), CHANGE, begin()),
        (UNKNOWN,),
        (UNDECODABLE,),
        (r.FenceBrokerRecord(id=77, epoch=1),),
    ],
    ids=str,
)
def test_a_record_that_can_not_be_replayed_is_the_same_error(tmp_path: Path, records: tuple[Message, ...]) -> None:
    topics = [message for number in range(1, 9) for message in (topic(number), partition(number))]
    log = [data(0, metadata_version(), *topics), data(17, CHANGE), data(18, *records)]
    lake = MetadataLog.create(tmp_path / "lake")
    lake.append(log)
    faults = []
    for way in (
        lambda: fold_into(lake, [writer for writer in ALL.new_writers() if "history" not in writer.description.name]),
        lambda: by_shards([log[:2], log[2:]], 3),
        lambda: by_shards([log], 1),
    ):
        with pytest.raises(KraftlakeError) as fault:
            way()
        faults.append((type(fault.value), str(fault.value), getattr(fault.value, "offset", None)))
    assert faults[1:] == faults[:1] * 2
