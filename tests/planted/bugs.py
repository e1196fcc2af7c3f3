"""Bugs that are planted in the core rooms, each with the test that must catch it."""

from __future__ import annotations

import attrs


@attrs.frozen
class PlantedBug:
    """`planted` in place of `sound` in `file`; `test` is a pytest node that fails then."""

    name: str
    file: str
    sound: str
    planted: str
    test: str


_STATE_ENDS = "test_rows_at.py::test_a_state_that_ends_at_an_offset_is_no_longer_so_there"
_ELR = "tests/controller/replication/test_eligible_leader_replicas.py::test_eligible_leader_replicas"
_SNAPSHOTS = "tests/metadata_log/snapshots/test_snapshot_table.py"
_LOG = "tests/metadata_log/test_log.py"
_QUEUE = "tests/metadata_log/append/test_commit_queue.py"
_CLAIM = "tests/metadata_log/append/test_log_commit.py"
_VALUES = "tests/records/test_batch_values.py"
_PARTITION_CHANGE = "kraftlake/controller/replication/partition_change.py"

BUGS = (
    PlantedBug(
        "a-row-group-is-taken-whole-at-the-end-of-its-first-state",
        "kraftlake/tables/history/rows_at.py",
        "first_end is not None and first_end > offset",
        "first_end is not None and first_end >= offset",
        f"tests/tables/history/{_STATE_ENDS}",
    ),
    PlantedBug(
        "a-state-is-so-at-its-end",
        "kraftlake/tables/history/rows_at.py",
        "pc.greater(ends, at)",
        "pc.greater_equal(ends, at)",
        f"tests/tables/history/{_STATE_ENDS}",
    ),
    PlantedBug(
        "a-session-ends-at-its-timeout",
        "kraftlake/controller/cluster/heartbeats.py",
        "contact_ns + self.session_timeout_ns < now_ns",
        "contact_ns + self.session_timeout_ns <= now_ns",
        "tests/controller/cluster/test_brokers.py::test_a_session_expires_after_its_timeout_and_not_at_it",
    ),
    PlantedBug(
        "a-snapshot-keeps-an-open-transaction",
        "kraftlake/replay/loader/batch_loader.py",
        "        self.transaction = OpenTransaction()\n        self.delta.of_log = False\n",
        "        self.delta.of_log = False\n",
        "tests/replay/loader/test_batch_loader.py::test_a_snapshot_drops_the_transaction_that_was_open_before_it",
    ),
    PlantedBug(
        "an-isr-at-the-minimum-keeps-eligible-replicas",
        _PARTITION_CHANGE,
        "if len(self._isr) >= self._context.min_isr:",
        "if len(self._isr) > self._context.min_isr:",
        _ELR,
    ),
    PlantedBug(
        "an-unclean-shutdown-keeps-eligibility",
        _PARTITION_CHANGE,
        "if r not in self._isr and r != unclean)",
        "if r not in self._isr)",
        _ELR,
    ),
    PlantedBug(
        "an-eligible-replica-leads-while-the-isr-has-members",
        _PARTITION_CHANGE,
        "(not self._isr and replica in self._elr)",
        "replica in self._elr",
        _ELR,
    ),
    PlantedBug(
        "the-last-known-leader-is-elected-before-eligible-replicas",
        _PARTITION_CHANGE,
        "self._context.elr_enabled and not self._elr and not self._isr",
        "self._context.elr_enabled and not self._isr",
        _ELR,
    ),
    PlantedBug(
        "a-snapshot-batch-of-exactly-the-limit-is-cut",
        "kraftlake/kafka_files/snapshots/batches.py",
        "size + taken > MAX_BYTES_IN_BATCH",
        "size + taken >= MAX_BYTES_IN_BATCH",
        "tests/kafka_files/snapshots/test_batches.py::test_a_batch_may_have_exactly_as_many_bytes_as_kafkas_limit",
    ),
    PlantedBug(
        "the-offset-before-a-repeated-one-is-not-looked-at",
        "kraftlake/metadata_log/append/log_commit.py",
        "steps = pc.equal(steps_of(offsets), 1)",
        "steps = pc.greater_equal(steps_of(offsets), 0)",
        "tests/metadata_log/append/test_row_checks.py",
    ),
    PlantedBug(
        "epochs-may-go-down-within-an-append",
        "kraftlake/metadata_log/append/log_commit.py",
        "pc.greater_equal(steps_of(epochs), 0)",
        "pc.greater_equal(steps_of(epochs), -1)",
        "tests/metadata_log/append/test_row_checks.py",
    ),
    PlantedBug(
        "a-lost-compare-and-set-is-tried-again-over-another-append",
        "kraftlake/metadata_log/append/log_commit.py",
        "if commit.transactions or not _is_same_table(metadata, before):",
        "if not _is_same_table(metadata, before):",
        "tests/metadata_log/append/test_log_commit.py",
    ),
    PlantedBug(
        "a-commit-is-not-synced",
        "kraftlake/metadata_log/storage/disk.py",
        "            try:\n                self.fsync(path.parent)\n            except OSError as fault:\n",
        "            try:\n                pass\n            except OSError as fault:\n",
        "tests/metadata_log/test_power_cuts.py",
    ),
    PlantedBug(
        "a-replaced-file-is-not-synced-before-its-rename",
        "kraftlake/metadata_log/storage/disk.py",
        "            self.fsync(temporary)\n            self.rename(temporary, path)\n",
        "            self.rename(temporary, path)\n",
        "tests/metadata_log/test_power_cuts.py",
    ),
    PlantedBug(
        "the-high-watermark-does-not-wait-for-the-isr",
        "kraftlake/replica_manager/partition/in_sync_replicas.py",
        "                id_ in maximal or (state.is_caught_up",
        "                (state.is_caught_up",
        "tests/replica_manager/partition/test_partition.py",
    ),
    PlantedBug(
        "a-follower-joins-the-isr-below-the-high-watermark",
        "kraftlake/replica_manager/partition/isr_changes.py",
        "return end >= log.high_watermark and end >= epoch_start",
        "return end >= epoch_start",
        "tests/replica_manager/partition/test_partition.py",
    ),
    PlantedBug(
        "an-unchanged-leader-epoch-is-an-election",
        "kraftlake/delta/topics/changed_partition.py",
        "if previous is None or previous.leader_epoch != partition.leader_epoch:",
        "if previous is None or previous.partition_epoch != partition.partition_epoch:",
        "tests/delta/topics/test_local_changes.py",
    ),
    PlantedBug(
        "a-removed-replica-is-not-deleted",
        "kraftlake/delta/topics/changed_partition.py",
        "if previous is not None and broker in previous.replicas:",
        "if previous is not None and broker == previous.leader:",
        "tests/delta/topics/test_local_changes.py",
    ),
    PlantedBug(
        "a-topic-that-a-request-deletes-twice-is-deleted",
        "kraftlake/controller/replication/topics.py",
        '    answers = _duplicates(ids, "topic id")\n',
        "    answers: dict[Uuid, ApiError] = {}\n",
        "tests/controller/replication/test_topics.py::test_a_topic_that_a_request_names_twice_is_neither_deleted_nor_extended",
    ),
    PlantedBug(
        "a-range-ignores-its-last-bits",
        "kraftlake/runtime/inet_address.py",
        "ignored = 8 * len(address) - self.prefix_length",
        "ignored = 8 * (len(address) - self.prefix_length // 8)",
        "tests/publisher/test_authorizer.py::test_a_range_of_addresses",
    ),
    PlantedBug(
        "an-answer-of-an-earlier-leader-epoch-is-taken",
        "kraftlake/replica_manager/fetch/replica_fetcher.py",
        "or request.current_leader_epoch != state.current_leader_epoch",
        "or request.current_leader_epoch > state.current_leader_epoch",
        "tests/replica_manager/fetch/test_replica_fetcher.py::"
        "test_an_answer_of_an_earlier_leader_epoch_is_dropped_though_leader_and_offset_are_the_same",
    ),
    PlantedBug(
        "a-gap-in-a-producers-sequence-is-taken",
        "kraftlake/replica_manager/logs/producer_state.py",
        "wrong = first != wanted and",
        "wrong = first < wanted and",
        "tests/replica_manager/logs/test_producer_state.py",
    ),
    PlantedBug(
        "a-repeated-batch-is-appended-again",
        "kraftlake/replica_manager/logs/producer_state.py",
        "if (known.first_sequence, known.last_sequence) == wanted",
        "if (known.last_sequence, known.first_sequence) == wanted",
        "tests/replica_manager/logs/test_producer_state.py",
    ),
    PlantedBug(
        "a-segment-that-is-missing-is-passed-over",
        "kraftlake/kafka_files/segments/segment.py",
        "if base_offset > self.offset:",
        "if base_offset > self.offset + 10_000_000:",
        "tests/kafka_files/test_directory.py",
    ),
    PlantedBug(
        "a-commit-of-another-lake-joins-on",
        "kraftlake/metadata_log/delta_table/table_state.py",
        "if commit.info.get(CHAIN_BEFORE, chain) != chain:",
        "if commit.info.get(CHAIN_BEFORE, chain) is None:",
        "tests/metadata_log/test_chain.py",
    ),
    PlantedBug(
        "the-newest-rows-are-not-compared-with-the-chain",
        "kraftlake/metadata_log/append/log_commit.py",
        "if hash_of_rows(rows, before) != end.chain:",
        "if hash_of_rows(rows, before) == before:",
        "tests/metadata_log/test_chain.py",
    ),
    PlantedBug(
        "an-offset-may-be-repeated-in-a-data-file",
        "kraftlake/metadata_log/delta_table/scan.py",
        "pc.min(steps_of(column)).as_py() > 0",
        "pc.min(steps_of(column)).as_py() >= 0",
        "tests/metadata_log/delta_table/test_data_files.py",
    ),
    PlantedBug(
        "a-checksum-of-several-parts-is-the-last-ones",
        "kraftlake/metadata_log/snapshots/snapshot_rows.py",
        "total = _after_zeros(total, length) ^ _after_zeros(0, length) ^ checksum",
        "total = checksum",
        f"{_SNAPSHOTS}::test_a_snapshot_of_several_parts_is_held_to_the_checksum_of_all_of_them",
    ),
    PlantedBug(
        "a-snapshot-with-another-checksum-is-the-same",
        "kraftlake/metadata_log/snapshots/snapshot_table.py",
        "snapshot.record_count == record_count and snapshot.checksum in (None, checksum)",
        "snapshot.record_count == record_count",
        f"{_SNAPSHOTS}::test_parts_with_another_checksum_are_not_the_snapshot_that_is_there",
    ),
    PlantedBug(
        "a-snapshot-is-believed-whatever-its-checksum",
        "kraftlake/metadata_log/snapshots/snapshot_table.py",
        "(found := payload_checksum(rows)[0]) != self.checksum",
        "(found := payload_checksum(rows)[0]) < 0",
        f"{_SNAPSHOTS}::test_a_snapshot_with_a_part_of_another_one_is_damaged",
    ),
    PlantedBug(
        "a-follower-keeps-a-snapshot-that-its-log-has-not-reached",
        "kraftlake/replay/imports/follow_log.py",
        "            if snapshot.end_offset > self._log.end_offset:\n                continue\n",
        "",
        "tests/replay/imports/test_follow_log.py::test_a_snapshot_that_goes_further_than_the_log_waits_for_it",
    ),
    PlantedBug(
        "a-snapshot-of-a-later-epoch-commits-a-followed-log",
        "kraftlake/replay/live/committed_tail.py",
        "self._ends.committed_below(one.end_offset, one.epoch)",
        "one.end_offset",
        "tests/replay/imports/test_follow_log.py::test_a_snapshot_of_a_later_epoch_behind_the_log_commits_nothing_of_it",
    ),
    PlantedBug(
        "a-snapshot-of-a-later-epoch-commits-an-imported-log",
        "kraftlake/replay/reading/committed.py",
        "return last.epoch >= snapshot.epoch",
        "return last.epoch <= snapshot.epoch",
        "tests/replay/imports/test_follow_log.py::test_a_snapshot_of_a_later_epoch_behind_the_log_commits_nothing_of_it",
    ),
    PlantedBug(
        "a-header-may-state-a-later-time-than-its-records",
        "kraftlake/records/batch.py",
        "if timestamp != max(timestamps) or not",
        "if timestamp < max(timestamps) or not",
        "tests/records/test_batch.py::test_what_is_no_batch_of_a_metadata_log_is_refused",
    ),
    PlantedBug(
        "compiled-code-takes-a-header-with-a-later-time-than-its-records",
        "kraftlake/kernels/batches/record_values.py",
        "base_time + latest == max_time",
        "base_time + latest <= max_time",
        f"{_VALUES}::test_a_batch_whose_header_states_another_largest_time_than_its_records_ends_the_values",
    ),
    PlantedBug(
        "a-commit-of-exactly-the-byte-limit-is-cut",
        "kraftlake/metadata_log/append/log_commit.py",
        "size + more_bytes > most_bytes",
        "size + more_bytes >= most_bytes",
        f"{_LOG}::test_a_commit_of_an_import_may_have_exactly_the_bytes_and_rows_of_the_limits",
    ),
    PlantedBug(
        "a-commit-of-exactly-the-row-limit-is-cut",
        "kraftlake/metadata_log/append/log_commit.py",
        "rows + more_rows > most_rows",
        "rows + more_rows >= most_rows",
        f"{_LOG}::test_a_large_import_is_cut_between_batches",
    ),
    PlantedBug(
        "a-group-of-exactly-the-byte-limit-is-cut",
        "kraftlake/metadata_log/append/commit_queue.py",
        "size > self.limits.max_group_bytes):",
        "size >= self.limits.max_group_bytes):",
        "tests/metadata_log/append/test_commit_queue.py::test_a_group_is_bounded_by_bytes",
    ),
    PlantedBug(
        "a-group-of-exactly-the-byte-limit-waits",
        "kraftlake/metadata_log/append/commit_queue.py",
        "self._waiting_bytes >= self.limits.max_group_bytes",
        "self._waiting_bytes > self.limits.max_group_bytes",
        f"{_QUEUE}::test_exactly_the_bytes_of_the_limits_make_a_full_group_and_may_wait",
    ),
    PlantedBug(
        "exactly-the-bytes-that-may-wait-are-refused",
        "kraftlake/metadata_log/append/commit_queue.py",
        "self._bytes + size <= self.limits.max_waiting_bytes",
        "self._bytes + size < self.limits.max_waiting_bytes",
        f"{_QUEUE}::test_exactly_the_bytes_of_the_limits_make_a_full_group_and_may_wait",
    ),
    PlantedBug(
        "a-batch-of-exactly-the-byte-limit-is-refused",
        "kraftlake/records/batch.py",
        "if size > self.limits.batch_bytes:",
        "if size >= self.limits.batch_bytes:",
        "tests/records/test_batch.py::test_the_limits_hold",
    ),
    PlantedBug(
        "compiled-code-takes-a-batch-above-the-byte-limit",
        "kraftlake/kernels/batches/batch_walk.py",
        "stop - p > largest",
        "stop - p > largest + 1",
        f"{_VALUES}::test_a_batch_may_have_exactly_the_bytes_and_records_of_the_limits_and_no_more",
    ),
    PlantedBug(
        "records-of-exactly-the-byte-limit-are-not-decompressed",
        "kraftlake/records/compression.py",
        "if size > left:",
        "if size >= left:",
        "tests/records/test_batch.py::test_decompressed_records_may_have_exactly_the_bytes_of_the_limit",
    ),
    PlantedBug(
        "data-of-a-higher-epoch-is-appended-behind-a-claim",
        "kraftlake/metadata_log/append/log_commit.py",
        "batch.epoch < least or claimed_epoch not in (None, batch.epoch):",
        "batch.epoch < least:",
        f"{_CLAIM}::test_batches_of_a_higher_epoch_than_the_claimed_one_are_refused_in_every_form",
    ),
    PlantedBug(
        "rows-of-a-higher-epoch-are-appended-behind-a-claim",
        "kraftlake/metadata_log/append/log_commit.py",
        "            if claimed_epoch not in (None, found):",
        "            if claimed_epoch is not None and found < claimed_epoch:",
        f"{_CLAIM}::test_batches_of_a_higher_epoch_than_the_claimed_one_are_refused_in_every_form",
    ),
)
