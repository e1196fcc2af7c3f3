"""Bundles: the same log for every question, with no name, host or secret of the original in any byte."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.message_files import declared_types
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionRecord, Voter, VoterEndpoint, VotersRecord
from kraftlake.records.foreign.registered import registered
from kraftlake.records.redaction import is_sensitive_config
from kraftlake.records.schema import ForeignRecord, Names, Struct, field_specs
from kraftlake.records.serde import UnknownRecord
from kraftlake.records.uuid import Uuid
from kraftlake.replay.bundle import bundle_file
from kraftlake.replay.bundle.bundle_file import write_bundle
from kraftlake.replay.bundle.bundle_plan import plan_bundle
from kraftlake.replay.bundle.key_file import new_pseudonyms, read_key, write_key
from kraftlake.replay.bundle.pseudonyms import Pseudonyms, translated
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.errors import (
    CorruptDataError,
    EnvironmentFaultError,
    NotASourceError,
    ReplayError,
    UnknownRecordError,
    UsageError,
)
from tests.cli.made_logs import HOSTILE, hostile_log
from tests.foreign_logs import AUTOMQ, foreign_log
from tests.replay.made_logs import log_of, small_log, topic, write_directory
from tests.replay.sample_logs import directory_of, without_first_segments

LOGS = (
    "crash-torn", "legacy-33", "hostile", "made", "trimmed", "voters", "foreign",
    *(("kafka-4.4", "lake", "generated") if os.environ.get("KRAFTLAKE_TESTS") == "long" else ()),
)  # fmt: skip
KEY = bytes(32)


def log_named(name: str, folder: Path) -> Path:
    if name == "hostile":
        return hostile_log(folder / name)
    if name == "made":
        return write_directory(folder / name, small_log(), cuts=(6, 9))
    if name == "generated":
        generate_lake(folder / name, Plan(topics=8, partitions=3, records=3_000, seed=5))
        return folder / name
    if name == "trimmed":  # it begins with a snapshot
        return without_first_segments("kafka-4.4", folder / name, 3038)
    if name == "voters":
        return write_directory(folder / name, [*small_log(), voters_batch(small_log()[-1].last_offset + 1)])
    if name == "foreign":
        return foreign_log(folder / name)
    if name == "lake":
        import_source(directory_of("crash-torn"), folder / name)
        return folder / name
    return directory_of(name)


def voters_batch(offset: int) -> RecordBatch:
    """The voters of a dynamic quorum, with their hosts."""
    hosts = ("controller-a.corp.example", "controller-b.corp.example")
    voters = tuple(
        Voter(voter_id=3000 + number, endpoints=(VoterEndpoint(name="CONTROLLER", host=host, port=9093),))
        for number, host in enumerate(hosts)
    )
    return RecordBatch.control_of(offset, 9, 0, [KRaftVersionRecord(k_raft_version=1), VotersRecord(voters=voters)])


@pytest.fixture(scope="module", params=LOGS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Path]]:
    """A log, its bundle under pseudonyms, and the key; a fork's types are known while its log is looked at."""
    types = declared_types(str(AUTOMQ)) if request.param == "foreign" else ()
    with registered(types):
        yield bundled(request, tmp_path_factory)


def bundled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("bundle")
    log, bundle, key = log_named(request.param, folder), folder / "handover.tar.gz", folder / "ours.key"
    plan = plan_bundle(LogSource.open(log), pseudonyms=new_pseudonyms(key))
    size = write_bundle(plan, bundle, key_file=key)
    assert size == bundle.stat().st_size
    return log, bundle, key


def test_events_and_findings_are_the_same_under_the_key(pair: tuple[Path, Path, Path]) -> None:
    log, bundle, key = pair
    names = read_key(key)[1]

    def of(source: Path) -> tuple[list[str], list[str]] | str:
        opened = kraftlake.open(source)
        try:
            opened.image()
        except ReplayError as refused:  # the metadata.version of the oldest sample
            return str(refused)
        events = [
            translated(f"{event['offset']} {event['kind']} {event['sentence']}", names) for event in opened.events()
        ]
        findings = [
            translated(f"{finding.check} {finding.severity} {finding.since} {finding.sentence}", names)
            for finding in diagnose(source).findings
            if not finding.check.startswith(("quorum_", "torn_"))  # they are about the files at hand
        ]
        return sorted(events), sorted(findings)

    assert of(bundle) == of(log)


def test_offsets_times_and_places_stay(pair: tuple[Path, Path, Path]) -> None:
    log, bundle, _ = pair
    one, other = kraftlake.open(log), kraftlake.open(bundle)
    assert (other.start_offset, other.end_offset, other.cluster_id) == (
        one.start_offset,
        one.end_offset,
        one.cluster_id,
    )
    assert [snapshot.end_offset for snapshot in usable_snapshots(other.reader)] == [
        snapshot.end_offset for snapshot in usable_snapshots(one.reader)
    ]
    assert shape(other) == shape(one)
    assert other.verify().sound == one.verify().sound or one.torn is not None


def shape(source: LogSource) -> list[Any]:
    return [
        (batch.base_offset, batch.epoch, batch.timestamps, batch.control_types, len(batch.values))
        for batch in source.batches()
    ]


def test_no_name_host_or_secret_is_in_any_byte(pair: tuple[Path, Path, Path]) -> None:
    log, bundle, key = pair
    content = gzip.decompress(bundle.read_bytes())
    for pseudonym in read_key(key)[1]:  # `topic-2` begins some
        content = content.replace(pseudonym.encode(), b"")
    opened = LogSource.open(log)
    hidden = {word for word in words_of(opened) if len(word) > 3 and word not in KNOWN and word[:4] != b"127."}
    if log.parent.name == "hostile":  # where it is the name of listeners, too
        hidden = {word for word in hidden if word not in HOSTILE.encode()}
    assert [word for word in hidden if word in content] == []
    assert str(log.parent).encode() not in content


KNOWN = {
    *map(str.encode, ("localhost", "127.0.0.1", "0.0.0.0", "kafka-cluster", "User:*", "ANONYMOUS", "User:ANONYMOUS")),
    *map(str.encode, ("__consumer_offsets", "__transaction_state", "__share_group_state", "true", "false")),
}


def words_of(source: LogSource) -> Iterator[bytes]:
    """The names and secrets of a log and its snapshots, as bytes."""
    readers = [source.batches(), *(snapshot.batches() for snapshot in usable_snapshots(source.reader))]
    for batches in readers:
        for batch in batches:
            for message in batch.messages():
                yield from (word if isinstance(word, bytes) else word.encode() for word in words_in(message.message))


def words_in(message: Any) -> Iterator[str | bytes]:
    match message:
        case r.TopicRecord():
            yield message.name
        case r.RegisterBrokerRecord() | r.RegisterControllerRecord():
            yield from (point.host for point in message.end_points)
            yield getattr(message, "rack", None) or ""
        case r.ConfigRecord():
            yield message.resource_name
            if is_sensitive_config(message.resource_type, message.name) and message.value is not None:
                yield message.value
        case r.AccessControlEntryRecord():
            yield from (message.resource_name, message.host, message.principal, message.principal.partition(":")[2])
        case r.ClientQuotaRecord():
            yield from (entity.entity_name or "" for entity in message.entity)
        case r.UserScramCredentialRecord():
            yield from (message.name, message.salt, message.stored_key, message.server_key)
        case r.DelegationTokenRecord():
            yield from (message.owner, message.requester, message.token_id, *message.renewers)
        case VotersRecord():
            yield from (point.host for voter in message.voters for point in voter.endpoints)
        case ForeignRecord():
            yield from texts_in(message)


def texts_in(value: Any) -> Iterator[str | bytes]:
    """All texts and bytes of a foreign record."""
    if isinstance(value, Struct):
        for name, _ in field_specs(type(value)):
            yield from texts_in(getattr(value, name))
    elif isinstance(value, tuple):
        for one in value:
            yield from texts_in(one)
    elif isinstance(value, (str, bytes)) and not isinstance(value, Uuid):
        yield value


def test_without_pseudonyms_names_stay_and_secrets_go(tmp_path: Path) -> None:
    log = directory_of("kafka-4.4")
    plan = plan_bundle(LogSource.open(log))
    write_bundle(plan, tmp_path / "bundle.tar.gz")
    one, other = kraftlake.open(log).image(), kraftlake.open(tmp_path / "bundle.tar.gz").image()
    assert other.topics == one.topics
    assert other.acls == one.acls
    content = gzip.decompress((tmp_path / "bundle.tar.gz").read_bytes())
    keys = {
        message.message.salt
        for batch in LogSource.open(log).batches()
        for message in batch.messages()
        if isinstance(message.message, r.UserScramCredentialRecord)
    }
    assert keys
    assert [key for key in keys if key in content] == []
    assert plan.secrets["USER_SCRAM_CREDENTIAL_RECORD"] >= len(keys)
    assert plan.secrets["DELEGATION_TOKEN_RECORD"] >= 10
    assert plan.names == {}


def test_the_bundle_says_what_it_holds_and_nothing_of_the_machine(tmp_path: Path) -> None:
    plan = plan_bundle(LogSource.open(directory_of("kafka-4.4")), pseudonyms=Pseudonyms(KEY))
    write_bundle(plan, tmp_path / "bundle.tar.gz", key_file=tmp_path / "key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle.tar.gz", "key"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        members = archive.getmembers()
        listed = archive.extractfile("bundle.json")
        assert listed is not None
        assert json.load(listed) == json.loads(json.dumps(plan.to_json()))
    assert {(member.uname, member.gname, member.uid, member.mtime) for member in members} == {("", "", 0, 0)}
    log = "__cluster_metadata-0"
    assert [member.name for member in members] == [
        "bundle.json", "meta.properties", f"{log}/00000000000000003038-0000000002.checkpoint",
        f"{log}/00000000000000004593-0000000002.checkpoint", f"{log}/00000000000000000000.log",
    ]  # fmt: skip


def test_segments_end_at_their_size_and_at_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_directory(tmp_path / "log", small_log(), cuts=(6, 9))
    (log / "00000000000000000006.log").unlink()
    with pytest.raises(BrokenFileError):
        plan_bundle(LogSource.open(log))
    plan = plan_bundle(LogSource.open(log), lenient=True)
    assert len(plan.faults) == 1
    assert plan.faults[0].startswith("Offsets 6 to 8 are missing")
    write_bundle(plan, tmp_path / "bundle.tar.gz")
    assert segments(tmp_path / "bundle.tar.gz") == [0, 9]
    monkeypatch.setattr(bundle_file, "_SEGMENT_BYTES", 1)
    write_bundle(plan, tmp_path / "bundle.tar.gz")
    made = kraftlake.open(tmp_path / "bundle.tar.gz")
    starts = [batch.base_offset for part in (made.batches(0, 5), made.batches(9)) for batch in part]
    assert segments(tmp_path / "bundle.tar.gz") == starts
    assert len(starts) > 5


def segments(bundle: Path) -> list[int]:
    with tarfile.open(bundle) as archive:
        return [int(Path(name).stem) for name in archive.getnames() if name.endswith(".log")]


def test_a_damaged_snapshot_is_refused_or_left_out(tmp_path: Path) -> None:
    log = tmp_path / "__cluster_metadata-0"
    shutil.copytree(directory_of("kafka-4.4"), log)
    (snapshot,) = log.glob("*4593*.checkpoint")
    broken = bytearray(snapshot.read_bytes())
    broken[len(broken) // 2] ^= 1
    snapshot.write_bytes(broken)
    with pytest.raises(CorruptDataError, match=r"4593.*: --lenient makes a bundle of the rest, and says so in it\.$"):
        plan_bundle(LogSource.open(log))
    plan = plan_bundle(LogSource.open(log), lenient=True)
    assert plan.snapshots == ("00000000000000003038-0000000002.checkpoint",)
    assert len(plan.faults) == 1


def test_a_cut_end_is_said_inside(tmp_path: Path) -> None:
    plan = plan_bundle(LogSource.open(directory_of("crash-torn")))
    assert "torn at position" in plan.to_json()["faults"][0]


def test_unknown_records_are_refused_or_no_ops(tmp_path: Path) -> None:
    batches = log_of(1, [topic(1), UnknownRecord(4242, 0, b"\x01\x92\x21\x00hunter2"), topic(2)])
    log = write_directory(tmp_path, batches)
    with pytest.raises(UnknownRecordError, match="Offset 2: a record of type 4242"):
        plan_bundle(LogSource.open(log))
    plan = plan_bundle(LogSource.open(log), lenient=True)
    write_bundle(plan, tmp_path / "bundle.tar.gz")
    assert (plan.unknown_records, plan.to_json()["unknownRecords"]) == (1, 1)
    assert b"hunter2" not in gzip.decompress((tmp_path / "bundle.tar.gz").read_bytes())
    assert len(kraftlake.open(tmp_path / "bundle.tar.gz").image().topics.topics_by_name()) == 2


def test_a_source_without_a_log_is_refused(tmp_path: Path) -> None:
    bootstrap = tmp_path / "bootstrap.checkpoint"
    with pytest.raises(NotASourceError):
        plan_bundle(LogSource.open(bootstrap))


def test_a_pseudonym_that_is_a_topic_is_refused(tmp_path: Path) -> None:
    taken = Pseudonyms(KEY).of(Names.TOPIC, "orders")
    log = write_directory(tmp_path, log_of(1, [topic(1, "orders"), topic(2, taken)]))
    with pytest.raises(UsageError, match=f"The pseudonym {taken} is a name in the log"):
        plan_bundle(LogSource.open(log), pseudonyms=Pseudonyms(KEY))


def test_a_key_goes_on_with_its_pseudonyms(tmp_path: Path) -> None:
    one = write_directory(tmp_path / "one", log_of(1, [topic(1, "orders")]))
    other = write_directory(tmp_path / "other", log_of(1, [topic(1, "orders"), topic(2, "bills")]))
    key = tmp_path / "ours.key"
    write_bundle(plan_bundle(LogSource.open(one), pseudonyms=new_pseudonyms(key)), tmp_path / "1.tar.gz", key_file=key)
    first = read_key(key)[1]
    with pytest.raises(EnvironmentFaultError, match=r"ours\.key exists already: give --extend-key"):
        new_pseudonyms(key)
    again = new_pseudonyms(key, extend=True)
    write_bundle(plan_bundle(LogSource.open(other), pseudonyms=again), tmp_path / "2.tar.gz", key_file=key)
    assert first.items() <= read_key(key)[1].items()
    assert sorted(read_key(key)[1].values()) == ["bills", "orders"]


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"version": 1, "key": "00", "names": {}}', "\xff", '"key"'])
def test_another_file_is_no_key(content: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    with pytest.raises(CorruptDataError, match="is no key file of a bundle: give the file that --pseudonyms made"):
        read_key(path)


def test_a_missing_key_and_a_missing_folder_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFaultError, match="key can't be read: No such file"):
        read_key(tmp_path / "key")
    with pytest.raises(EnvironmentFaultError, match="does not exist"):
        new_pseudonyms(tmp_path / "no" / "key")
    (tmp_path / "key").mkdir()
    with pytest.raises(EnvironmentFaultError, match="key can't be written: Is a directory"):
        write_key(tmp_path / "key", Pseudonyms(KEY))
