"""Folders of schemas: the example of AutoMQ's types, Kafka's own files, and folders that are refused."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

import kraftlake
from kraftlake.kafka_files.message_files import declared_types
from kraftlake.records.codec import decode_message
from kraftlake.records.foreign.registered import FOREIGN_RECORDS, registered
from kraftlake.records.json_form import to_json
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.schema import Message
from kraftlake.runtime.errors import UsageError
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY
from tests.foreign_logs import AUTOMQ
from tests.interop.jars import kafka_jars


def kafkas_files(folder: Path) -> None:
    """The schemas of Kafka's own records, as its jar holds them."""
    with zipfile.ZipFile(kafka_jars()["kafka-metadata"]) as jar:
        for name in jar.namelist():
            if name.startswith("common/metadata/") and name.endswith(".json"):
                (folder / Path(name).name).write_bytes(jar.read(name))


def test_the_example_declares_automqs_types() -> None:
    with registered(declared_types(str(AUTOMQ))):
        assert sorted(FOREIGN_RECORDS) == [*range(501, 519), 600]


@pytest.mark.spark
def test_kafkas_own_files_declare_nothing_foreign_and_decode_the_sample_as_the_declarations_do(tmp_path: Path) -> None:
    kafkas_files(tmp_path)
    shutil.copytree(AUTOMQ, tmp_path, dirs_exist_ok=True)
    declared = {one.cls.API_KEY: one.cls for one in declared_types(str(tmp_path))}
    with registered(declared_types(str(tmp_path))):
        assert not FOREIGN_RECORDS.keys() & METADATA_RECORDS.keys()
        assert len(FOREIGN_RECORDS) == 19
    assert declared.keys() - FOREIGN_RECORDS.keys() >= METADATA_RECORDS.keys()
    seen = set()
    for batch in kraftlake.open(DIRECTORY).batches():
        for record, value in () if batch.control else zip(batch.messages(), batch.values, strict=True):
            message = record.message
            assert isinstance(message, Message)
            again = decode_message(declared[message.API_KEY], record.version, value, 3)
            assert to_json(again, record.version) == to_json(message, record.version)
            seen.add(message.API_KEY)
    assert len(seen) > 20


def test_schemas_of_other_messages_are_passed_over(tmp_path: Path) -> None:
    shutil.copy(AUTOMQ / "KVRecord.json", tmp_path)
    (tmp_path / "FetchRequest.json").write_text('{"type": "request", "name": "FetchRequest", "later": 1, "fields": []}')
    (tmp_path / "README.md").write_text("no schema")
    assert [one.cls.__name__ for one in declared_types(str(tmp_path))] == ["KVRecord"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "{} has no file that declares a metadata record in Kafka's message format."),
        ({"a.json": b'{"type": "data", "name": "A", "fields": []}'},
         "{} has no file that declares a metadata record in Kafka's message format."),
        ({"a.json": b"\xff"}, "{}/a.json is not text in UTF-8."),
        ({"a.json": b" " * (1 << 20) + b"{}"}, "{}/a.json has more than 1,048,576 bytes, too many for a schema."),
    ],
)  # fmt: skip
def test_a_folder_without_sound_schemas_is_refused(tmp_path: Path, files: dict[str, bytes], words: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refused:
        declared_types(str(tmp_path))
    assert str(refused.value) == words.format(tmp_path)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        declared_types(str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="is no folder"):
        declared_types(str(AUTOMQ / "KVRecord.json"))


def test_the_example_is_of_names_numbers_and_types_alone() -> None:
    for file in at_least_one(sorted(AUTOMQ.glob("*.json"))):
        assert json.loads(file.read_text())["name"] == file.stem
        assert "about" not in file.read_text()
