"""Every place that lists record types or history columns lists all of them: a forgotten one fails here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

import kraftlake
from kraftlake.cli.selection import log_records
from kraftlake.cli.views import record_summary
from kraftlake.delta import metadata_delta
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics import bulk_change
from kraftlake.delta.topics.topics_delta import TOPIC_RECORDS
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.row_lists import LISTS
from kraftlake.kernels import partition_fields, record_types
from kraftlake.kernels.partition_row import HEAP_LISTS
from kraftlake.records import control_records, metadata_records
from kraftlake.records.json_form import to_json
from kraftlake.records.redaction import redact_record_json
from kraftlake.records.schema import Message, Versions, field_specs, type_name
from kraftlake.tables.events import non_topic_events
from kraftlake.tables.history.entity_table import EntityTable, RowTable
from kraftlake.tables.history.entity_tables import SMALL_TABLES
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY

ROOT = Path(__file__).resolve().parents[1]
Types = Iterable[type[Message]]

METADATA = tuple(metadata_records.METADATA_RECORDS.values())
CONTROL = tuple(control_records.CONTROL_RECORDS.values())

WITHOUT_HISTORY = {
    "NO_OP_RECORD",
    "BEGIN_TRANSACTION_RECORD",
    "END_TRANSACTION_RECORD",
    "ABORT_TRANSACTION_RECORD",
    "ZK_MIGRATION_STATE_RECORD",
    "PRODUCER_IDS_RECORD",
}
"""Types that belong to no history table on purpose."""


PRINTED_AS_JSON = {"ZK_MIGRATION_STATE_RECORD"}
"""Types that `kraftlake log` prints as JSON on purpose: Kafka 4 does not write them."""


@attrs.frozen(kw_only=True)
class MadeUpRecord(Message):
    """A type that no place but the declarations knows."""

    API_KEY = 120
    VERSIONS = Versions.parse("0")

    topic_id: str = ""


def fields_of(cls: type[Message]) -> set[str]:
    return {field.name for field in attrs.fields(cls)}


def unregistered(types: Types) -> set[str]:
    registered = {type_name(cls) for cls in (*METADATA, *CONTROL)}
    return {type_name(cls) for cls in types} - registered


def unnamed_in_the_log(types: Types) -> set[str]:
    """Control records that `kraftlake log` has no name for."""
    return {str(cls.API_KEY) for cls in types if cls not in METADATA} - {*map(str, control_records.CONTROL_NAMES)}


def not_replayed(types: Types) -> set[str]:
    known = {*TOPIC_RECORDS, *metadata_delta._HANDLERS, *metadata_delta._TRANSACTION_MARKERS, *CONTROL}
    return {type_name(cls) for cls in types if cls not in known}


def without_words(types: Types) -> set[str]:
    """Types for which `kraftlake log` prints raw JSON instead of a line."""
    worded = {*record_summary._SILENT, *record_summary._FORMS}
    names = {control_records.CONTROL_NAMES.get(cls.API_KEY) if cls in CONTROL else type_name(cls) for cls in types}
    return {str(name) for name in names - worded - PRINTED_AS_JSON}


def not_found_by_topic_id(types: Types) -> set[str]:
    """Types with a topic's id that `kraftlake log --topic` leaves out."""
    return {type_name(cls) for cls in types if "topic_id" in fields_of(cls)} - {*log_records._WITH_AN_ID}


def in_no_history(types: Types) -> set[str]:
    kinds = {cls.API_KEY for table in SMALL_TABLES for cls in table.key_of_record}
    kinds |= {cls.API_KEY for cls in TOPIC_RECORDS}
    names = {type_name(cls) for cls in types if cls not in CONTROL and cls.API_KEY not in kinds}
    return names - WITHOUT_HISTORY


def beyond_compiled_code(types: Types) -> set[str]:
    """Types whose number is past the end of the compiled loop's counts."""
    return {type_name(cls) for cls in types if cls.API_KEY >= record_types.TYPES}


def topics_unknown_to_compiled_code(types: Types) -> set[str]:
    """Types of topics that compiled code would pass over as records of something else."""
    t = record_types
    known = {t.TOPIC, t.PARTITION, t.CHANGE, t.REMOVE, t.CLEAR_ELR}
    of_topics = (cls for cls in types if fields_of(cls) & {"topic_id", "topic_name"})
    return {type_name(cls) for cls in of_topics if cls.API_KEY not in known}


CHECKS: tuple[Callable[[Types], set[str]], ...] = (
    unregistered,
    unnamed_in_the_log,
    not_replayed,
    without_words,
    not_found_by_topic_id,
    in_no_history,
    beyond_compiled_code,
    topics_unknown_to_compiled_code,
)


@pytest.mark.parametrize("forgotten_by", CHECKS)
def test_no_record_type_is_forgotten(forgotten_by: Callable[[Types], set[str]]) -> None:
    declared = {
        cls
        for module in (metadata_records, control_records)
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Message) and cls.__module__ == module.__name__
    }
    assert len(declared) == len(METADATA) + len(CONTROL)
    assert forgotten_by(declared) == set()


@pytest.mark.parametrize("forgotten_by", CHECKS)
def test_a_made_up_type_is_missed_everywhere(forgotten_by: Callable[[Types], set[str]]) -> None:
    assert forgotten_by([*METADATA, *CONTROL, MadeUpRecord])


def test_compiled_code_numbers_the_types_as_the_declarations_do() -> None:
    r = metadata_records
    numbers = {
        "TOPIC": r.TopicRecord, "PARTITION": r.PartitionRecord, "CHANGE": r.PartitionChangeRecord,
        "REMOVE": r.RemoveTopicRecord, "NO_OP": r.NoOpRecord, "CLEAR_ELR": r.ClearElrRecord,
        "BEGIN_TRANSACTION": r.BeginTransactionRecord, "END_TRANSACTION": r.EndTransactionRecord,
        "ABORT_TRANSACTION": r.AbortTransactionRecord,
    }  # fmt: skip
    named = {name: number for name, number in vars(record_types).items() if name.isupper() and name != "TYPES"}
    assert named == {name: cls.API_KEY for name, cls in numbers.items()}


@pytest.mark.parametrize("cls", METADATA, ids=type_name)
def test_every_secret_of_a_record_is_redacted(cls: type[Message]) -> None:
    secrets = [field for field in attrs.fields(cls) if not field.repr]
    values: dict[str, Any] = {f.name: b"hush hush" if isinstance(f.default, bytes) else "hush hush" for f in secrets}
    message = cls(**values)
    shown = redact_record_json(type_name(cls), to_json(message, cls.VERSIONS.high))
    assert {shown.get(name) for name in map(_camel, values)} <= {"(redacted)", None}
    assert "hush" not in str(shown)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def test_events_look_at_every_part_of_an_image() -> None:
    elsewhere = {"topics_delta", "producer_ids_delta", "features_delta"}  # a diff always looks at the features
    parts = {name for name in vars(MetadataDelta(MetadataImage.EMPTY)) if name.endswith("_delta")}
    assert parts - elsewhere == {part for part, _ in non_topic_events._CHANGES.values()}


_MAKERS = """
import sys
import pyarrow as pa
from kraftlake.tables import partition_columns
if sys.argv[2] == "planted":
    partition_columns.PARTITION_STATE += ((pa.field("made_up", pa.int32()), "a column that no maker fills"),)
    partition_columns.PARTITION_SCHEMA = pa.schema([field for field, _ in partition_columns.PARTITION_STATE])
from tests.replay.made_logs import data, partition, topic
batch = data(0, topic(1), partition(1))
if sys.argv[1] == "partition_table":
    from kraftlake.delta.metadata_delta import MetadataDelta
    from kraftlake.image.metadata_image import MetadataImage; from kraftlake.image.provenance import MetadataProvenance
    from kraftlake.tables.image_partitions import partition_table
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay_all([record.message for record in batch.messages()])
    rows = partition_table(delta.apply(MetadataProvenance.EMPTY).topics)
else:
    from kraftlake.records.rows import to_rows
    from kraftlake.replay.log.delta_chunk import LogBegin
    from kraftlake.replay.log.log_replay import LogReplay
    from kraftlake.tables.history.writers import PartitionHistoryWriter
    replay, writer = LogReplay(), PartitionHistoryWriter()
    writer.open(replay, LogBegin())
    replay.take(to_rows([batch]))
    (rows,) = writer.open_tables()
assert rows.num_rows == 1
"""


@pytest.mark.parametrize("maker", ["partition_history", "partition_table"])
def test_a_column_of_partitions_that_a_maker_forgets_is_an_error(maker: str) -> None:
    def run(how: str) -> int:
        command = [sys.executable, "-c", _MAKERS, maker, how]
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode

    assert run("as declared") == 0
    assert run("planted") != 0


OF_IMAGES = [table for table in SMALL_TABLES if not isinstance(table, RowTable)]


@pytest.mark.parametrize("table", OF_IMAGES, ids=lambda table: table.name)
def test_rows_of_a_history_have_a_value_for_each_column(table: EntityTable) -> None:
    image = kraftlake.open(DIRECTORY).image()
    for key in at_least_one(table.keys(image)):
        assert len(table.row(key, table.look(image, key))) == len(table.own_columns)


FIELDS_OF_ROWS = {
    "replicas": 0,
    "isr": 1,
    "directories": 2,
    "adding_replicas": 3,
    "removing_replicas": 4,
    "eligible_leader_replicas": 5,
    "last_known_elr": 6,
    "leader": partition_fields.LEADER_FIELD,
    "leader_recovery_state": partition_fields.RECOVERY_FIELD,
}
"""The fields of partition records that rows have a place for, by the numbers that compiled code has for them."""


def digits_of(number: int, count: int) -> list[int]:
    return [number >> 4 * place & 15 for place in range(count)]


def tags_of(cls: type[Message]) -> dict[int, int]:
    return {spec.tag: FIELDS_OF_ROWS[name] for name, spec in field_specs(cls) if spec.tag is not None}


def plain_fields_of(cls: type[Message]) -> list[str]:
    return [name for name, spec in field_specs(cls) if spec.tag is None]


def test_compiled_code_reads_and_writes_each_field_of_a_partitions_record() -> None:
    """A field that is added needs a place in a row: see kernels/partition_fields.py."""
    partition, change = metadata_records.PartitionRecord, metadata_records.PartitionChangeRecord
    for cls, tags in ((partition, partition_fields.PARTITION_TAGS), (change, partition_fields.CHANGE_TAGS)):
        found = dict(enumerate(digits_of(tags, partition_fields.TAGS)))
        assert {tag: field for tag, field in found.items() if field != partition_fields.NO_FIELD} == tags_of(cls)
        assert max(tags_of(cls)) == bulk_change._LAST_TAGS[cls.API_KEY]
        for name, spec in field_specs(cls):
            if name in FIELDS_OF_ROWS:
                assert spec.versions.low == partition_fields.FIRST_VERSIONS >> 4 * FIELDS_OF_ROWS[name] & 15
    assert max(tags_of(partition)) == partition_fields.PARTITION_LAST_TAG
    names = {number: name for name, number in FIELDS_OF_ROWS.items()}
    lists = [names[number] for number in digits_of(partition_fields.LISTS_IN_ORDER, partition_fields.ORDERED)]
    numbers = ["leader", "leader_epoch", "partition_epoch", "directories"]
    assert plain_fields_of(partition) == ["partition_id", "topic_id", *lists, *numbers]
    assert plain_fields_of(change) == ["partition_id", "topic_id"]


def test_the_lists_of_a_row_have_the_same_numbers_everywhere() -> None:
    short = {"eligible_leader_replicas": "elr"}
    lists = {short.get(name, name): number for name, number in FIELDS_OF_ROWS.items() if number < HEAP_LISTS}
    assert lists == LISTS
