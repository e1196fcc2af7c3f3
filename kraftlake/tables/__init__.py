"""The derived tables of a lake: their descriptions, rows, catch-up, and states at an offset. Needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
    from kraftlake.replay.log.effective_records import (
        UNKNOWN_KIND,
        EffectiveRecords,
        TransactionReader,
        standing_alone,
    )
    from kraftlake.replay.log.log_replay import LogReplay
    from kraftlake.replay.log.partition_changes import HAD, HAS, WRITTEN, PartitionChanges, changes_of_image
    from kraftlake.replay.log.partition_store import TOPIC_KINDS, PartitionStore
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
    from kraftlake.tables.shards.driver_fold import fold_driver
    from kraftlake.tables.shards.driver_step import DriverState, DriverStep
    from kraftlake.tables.shards.faults import fault_to_json, raise_first
    from kraftlake.tables.shards.fold_plan import (
        FoldPlan,
        base_is_sound,
        check_piece,
        plan_fold,
        plans,
        provenance_at,
        read_chunks,
    )
    from kraftlake.tables.shards.folded import (
        FOLDED_SCHEMA,
        Collected,
        one_row,
        read_stream,
        row_of_fault,
        row_of_others,
        row_of_shard,
        shards_in,
        stream_of,
        topics_in,
    )
    from kraftlake.tables.shards.routing import Router
    from kraftlake.tables.shards.shard_fold import ShardFold
    from kraftlake.tables.shards.shard_task import ShardDone, ShardTask
    from kraftlake.tables.shards.snapshot_layout import TopicRange, batches_of, head_of, ranges_of, tail_of
    from kraftlake.tables.shards.state_files import (
        StateFile,
        StateManifest,
        read_driver,
        read_manifest,
        read_shard,
        write_driver,
        write_manifest,
    )
    from kraftlake.tables.table_locks import hold_tables
    from kraftlake.tables.table_writer import TableWriter
    from kraftlake.tables.trimming import first_offsets, known_offset_since, trim_tables

__all__ = [
    "ACLS",
    "CHUNK_SCHEMA",
    "CONFIGS",
    "FOLDED_SCHEMA",
    "HAD",
    "HAS",
    "JOBS",
    "KINDS",
    "KIND_WORDS",
    "RECORDS_A_PART",
    "TOPIC_KINDS",
    "UNKNOWN_KIND",
    "WRITTEN",
    "ChangesWriter",
    "Chunk",
    "ClusterCounter",
    "Collected",
    "CountChanges",
    "DeltaChunk",
    "DeltaEvents",
    "DriverState",
    "DriverStep",
    "EffectiveRecords",
    "EntityHistory",
    "EventChunk",
    "FoldPlan",
    "HistoryTable",
    "Job",
    "LakeTable",
    "LogBegin",
    "LogEvents",
    "LogReplay",
    "Part",
    "PartitionChanges",
    "PartitionColumns",
    "PartitionStore",
    "Progress",
    "RecordScan",
    "Router",
    "RowBuffer",
    "RunResult",
    "ShardDone",
    "ShardFold",
    "ShardTask",
    "SmallTable",
    "StateFile",
    "StateManifest",
    "TableDescription",
    "TableRun",
    "TableWriter",
    "TopicRange",
    "TransactionReader",
    "base_is_sound",
    "batch_of",
    "batches_of",
    "changes_of_image",
    "check_piece",
    "chunk_of_fault",
    "chunks_of",
    "cluster_id_of",
    "derived_table",
    "distinct_changes",
    "event_columns",
    "fault_to_json",
    "first_offsets",
    "fold_driver",
    "head_of",
    "hold_tables",
    "job_named",
    "known_offset_since",
    "one_row",
    "open_scanned",
    "partition_table",
    "parts_of",
    "plan_fold",
    "plans",
    "provenance_at",
    "raise_first",
    "ranges_of",
    "read_chunks",
    "read_driver",
    "read_manifest",
    "read_part",
    "read_shard",
    "read_stream",
    "row_of_fault",
    "row_of_others",
    "row_of_shard",
    "shards_in",
    "standing_alone",
    "state_at",
    "stream_of",
    "table_run",
    "tail_of",
    "topic_counts",
    "topics_in",
    "trim_tables",
    "type_of",
    "update_by_job",
    "update_tables",
    "write_driver",
    "write_manifest",
    "writers_of",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
