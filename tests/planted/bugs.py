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
_ELR = "tests/controller/test_eligible_leader_replicas.py::test_eligible_leader_replicas"
_PARTITION_CHANGE = "kraftlake/controller/partition_change.py"

BUGS = (
    PlantedBug(
        "a-row-group-is-taken-whole-at-the-end-of-its-first-state",
        "kraftlake/spark_jobs/history/rows_at.py",
        "first_end is not None and first_end > offset",
        "first_end is not None and first_end >= offset",
        f"tests/spark_jobs/history/{_STATE_ENDS}",
    ),
    PlantedBug(
        "a-state-is-so-at-its-end",
        "kraftlake/spark_jobs/history/rows_at.py",
        "pc.greater(ends, at)",
        "pc.greater_equal(ends, at)",
        f"tests/spark_jobs/history/{_STATE_ENDS}",
    ),
    PlantedBug(
        "a-session-ends-at-its-timeout",
        "kraftlake/controller/heartbeats.py",
        "contact_ns + self.session_timeout_ns < now_ns",
        "contact_ns + self.session_timeout_ns <= now_ns",
        "tests/controller/test_brokers.py::test_a_session_ends_behind_its_timeout_and_not_at_it",
    ),
    PlantedBug(
        "a-snapshot-keeps-an-open-transaction",
        "kraftlake/replay/batch_loader.py",
        "        self._transaction = OpenTransaction()\n        self.delta.of_log = False\n",
        "        self.delta.of_log = False\n",
        "tests/replay/test_batch_loader.py::test_a_snapshot_drops_the_transaction_that_was_open_before_it",
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
        "kraftlake/kafka_files/checkpoint.py",
        "self.size + taken > MAX_BYTES_IN_BATCH",
        "self.size + taken >= MAX_BYTES_IN_BATCH",
        "tests/kafka_files/test_checkpoint.py::test_a_batch_may_have_exactly_as_many_bytes_as_kafkas_limit",
    ),
    PlantedBug(
        "the-offset-before-a-repeated-one-is-not-looked-at",
        "kraftlake/metadata_log/appending.py",
        "steps = pc.equal(_steps(offsets), 1)",
        "steps = pc.greater_equal(_steps(offsets), 0)",
        "tests/metadata_log/test_appending.py",
    ),
    PlantedBug(
        "epochs-may-go-down-within-an-append",
        "kraftlake/metadata_log/appending.py",
        "pc.greater_equal(_steps(epochs), 0)",
        "pc.greater_equal(_steps(epochs), -1)",
        "tests/metadata_log/test_appending.py",
    ),
    PlantedBug(
        "a-lost-compare-and-set-is-tried-again-over-another-append",
        "kraftlake/metadata_log/append_protocol.py",
        "if commit.transactions or not _is_same_table(metadata, before):",
        "if not _is_same_table(metadata, before):",
        "tests/metadata_log/test_append_protocol.py",
    ),
    PlantedBug(
        "a-commit-is-not-synced",
        "kraftlake/metadata_log/disk.py",
        "            try:\n                self.fsync(path.parent)\n            except OSError as fault:\n",
        "            try:\n                pass\n            except OSError as fault:\n",
        "tests/metadata_log/test_power_cuts.py",
    ),
    PlantedBug(
        "a-replaced-file-is-not-synced-before-its-rename",
        "kraftlake/metadata_log/disk.py",
        "            self.fsync(temporary)\n            self.rename(temporary, path)\n",
        "            self.rename(temporary, path)\n",
        "tests/metadata_log/test_power_cuts.py",
    ),
    PlantedBug(
        "the-high-watermark-does-not-wait-for-the-isr",
        "kraftlake/replica_manager/in_sync_replicas.py",
        "                id_ in maximal or (state.is_caught_up",
        "                (state.is_caught_up",
        "tests/replica_manager/test_partition.py",
    ),
    PlantedBug(
        "a-follower-joins-the-isr-below-the-high-watermark",
        "kraftlake/replica_manager/in_sync_replicas.py",
        "return end >= log.high_watermark and end >= epoch_start",
        "return end >= epoch_start",
        "tests/replica_manager/test_partition.py",
    ),
    PlantedBug(
        "an-unchanged-leader-epoch-is-an-election",
        "kraftlake/delta/changed_partition.py",
        "if previous is None or previous.leader_epoch != partition.leader_epoch:",
        "if previous is None or previous.partition_epoch != partition.partition_epoch:",
        "tests/delta/test_local_changes.py",
    ),
    PlantedBug(
        "a-removed-replica-is-not-deleted",
        "kraftlake/delta/changed_partition.py",
        "if previous is not None and broker in previous.replicas:",
        "if previous is not None and broker == previous.leader:",
        "tests/delta/test_local_changes.py",
    ),
    PlantedBug(
        "a-topic-that-a-request-deletes-twice-is-deleted",
        "kraftlake/controller/topics.py",
        '    answers = _duplicates(ids, "topic id")\n',
        "    answers: dict[Uuid, ApiError] = {}\n",
        "tests/controller/test_topics.py::test_a_topic_that_a_request_deletes_or_grows_twice_is_refused_and_stays",
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
        "kraftlake/replica_manager/replica_fetcher.py",
        "or request.current_leader_epoch != state.current_leader_epoch",
        "or request.current_leader_epoch > state.current_leader_epoch",
        "tests/replica_manager/test_replica_fetcher.py::"
        "test_an_answer_of_an_earlier_leader_epoch_is_dropped_though_leader_and_offset_are_the_same",
    ),
    PlantedBug(
        "a-gap-in-a-producers-sequence-is-taken",
        "kraftlake/replica_manager/producer_state.py",
        "wrong = first != wanted and",
        "wrong = first < wanted and",
        "tests/replica_manager/test_producer_state.py",
    ),
    PlantedBug(
        "a-repeated-batch-is-appended-again",
        "kraftlake/replica_manager/producer_state.py",
        "if (known.first_sequence, known.last_sequence) == wanted",
        "if (known.last_sequence, known.first_sequence) == wanted",
        "tests/replica_manager/test_producer_state.py",
    ),
    PlantedBug(
        "a-segment-that-is-missing-is-passed-over",
        "kraftlake/kafka_files/segment.py",
        "if base_offset > self.offset:",
        "if base_offset > self.offset + 10_000_000:",
        "tests/kafka_files/test_directory.py",
    ),
    PlantedBug(
        "a-commit-of-another-lake-joins-on",
        "kraftlake/metadata_log/delta_log.py",
        "if commit.info.get(CHAIN_BEFORE, chain) != chain:",
        "if commit.info.get(CHAIN_BEFORE, chain) is None:",
        "tests/metadata_log/test_chain.py",
    ),
    PlantedBug(
        "the-newest-rows-are-not-compared-with-the-chain",
        "kraftlake/metadata_log/append_protocol.py",
        "if hash_of_rows(rows, before) != chain.hash:",
        "if hash_of_rows(rows, before) == before:",
        "tests/metadata_log/test_chain.py",
    ),
)
