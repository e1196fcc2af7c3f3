"""The derived tables of a lake: their descriptions, rows, catch-up, and states at an offset. Needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
    from kraftlake.replay.log.log_replay import LogReplay
    from kraftlake.replay.log.partition_changes import HAD, HAS, WRITTEN, PartitionChanges, changes_of_image
    from kraftlake.tables.catch_up.table_run import Progress, RunResult, TableRun, table_run
    from kraftlake.tables.catch_up.updating import update_by_job, update_tables, writers_of
    from kraftlake.tables.changes_writer import ChangesWriter
    from kraftlake.tables.cluster_id import cluster_id_of
    from kraftlake.tables.derived_tables import derived_table
    from kraftlake.tables.events.delta_events import DeltaEvents, EventChunk
    from kraftlake.tables.events.distinct_changes import distinct_changes, event_columns
    from kraftlake.tables.events.log_events import LogEvents
    from kraftlake.tables.events.partition_events import PartitionColumns
    from kraftlake.tables.events.table import KIND_WORDS, KINDS
    from kraftlake.tables.history.entity_history import EntityHistory
    from kraftlake.tables.history.entity_tables import ACLS, CONFIGS, SmallTable
    from kraftlake.tables.history.history_table import HistoryTable
    from kraftlake.tables.history.state_at import state_at
    from kraftlake.tables.image_partitions import partition_table
    from kraftlake.tables.jobs import JOBS, Job, job_named
    from kraftlake.tables.lake_table import LakeTable, TableDescription
    from kraftlake.tables.metrics.cluster_counts import ClusterCounter, topic_counts
    from kraftlake.tables.record_scan import RECORDS_A_PART, RecordScan, open_scanned, parts_of, read_part, type_of
    from kraftlake.tables.row_buffer import RowBuffer
    from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Chunk, Part, batch_of, chunk_of_fault, chunks_of
    from kraftlake.tables.shards.count_changes import CountChanges
    from kraftlake.tables.shards.faults import earliest, fault_to_json, raise_first
    from kraftlake.tables.shards.replayed import parts_of_step, replayed
    from kraftlake.tables.shards.results import (
        RESULT_SCHEMA,
        Results,
        names_in,
        one_row,
        read_stream,
        result_for_driver,
        result_of,
        shards_in,
        stream_of,
        topics_and_names,
        topics_in,
    )
    from kraftlake.tables.shards.shard_plan import (
        ShardPlan,
        check_piece,
        plan_fold,
        plans,
        provenance_at,
        read_chunks,
    )
    from kraftlake.tables.shards.shard_task import ShardDone, ShardTask
    from kraftlake.tables.shards.snapshot_layout import TopicRange, batches_of, head_of, ranges_of, tail_of
    from kraftlake.tables.shards.state_files import (
        StateFile,
        StateManifest,
        read_manifest,
        read_state,
        write_manifest,
        write_state,
    )
    from kraftlake.tables.shards.steps import DriverStep
    from kraftlake.tables.table_locks import hold_tables
    from kraftlake.tables.table_writer import TableWriter
    from kraftlake.tables.trimming import first_offsets, known_offset_since, trim_tables

__all__ = [
    "ACLS",
    "CHUNK_SCHEMA",
    "CONFIGS",
    "HAD",
    "HAS",
    "JOBS",
    "KINDS",
    "KIND_WORDS",
    "RECORDS_A_PART",
    "RESULT_SCHEMA",
    "WRITTEN",
    "ChangesWriter",
    "Chunk",
    "ClusterCounter",
    "CountChanges",
    "DeltaChunk",
    "DeltaEvents",
    "DriverStep",
    "EntityHistory",
    "EventChunk",
    "HistoryTable",
    "Job",
    "LakeTable",
    "LogBegin",
    "LogEvents",
    "LogReplay",
    "Part",
    "PartitionChanges",
    "PartitionColumns",
    "Progress",
    "RecordScan",
    "Results",
    "RowBuffer",
    "RunResult",
    "ShardDone",
    "ShardPlan",
    "ShardTask",
    "SmallTable",
    "StateFile",
    "StateManifest",
    "TableDescription",
    "TableRun",
    "TableWriter",
    "TopicRange",
    "batch_of",
    "batches_of",
    "changes_of_image",
    "check_piece",
    "chunk_of_fault",
    "chunks_of",
    "cluster_id_of",
    "derived_table",
    "distinct_changes",
    "earliest",
    "event_columns",
    "fault_to_json",
    "first_offsets",
    "head_of",
    "hold_tables",
    "job_named",
    "known_offset_since",
    "names_in",
    "one_row",
    "open_scanned",
    "partition_table",
    "parts_of",
    "parts_of_step",
    "plan_fold",
    "plans",
    "provenance_at",
    "raise_first",
    "ranges_of",
    "read_chunks",
    "read_manifest",
    "read_part",
    "read_state",
    "read_stream",
    "replayed",
    "result_for_driver",
    "result_of",
    "shards_in",
    "state_at",
    "stream_of",
    "table_run",
    "tail_of",
    "topic_counts",
    "topics_and_names",
    "topics_in",
    "trim_tables",
    "type_of",
    "update_by_job",
    "update_tables",
    "write_manifest",
    "write_state",
    "writers_of",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
