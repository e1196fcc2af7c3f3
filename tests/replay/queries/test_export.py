"""Export: an image as a snapshot file that reads back as the same image."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.api import Source
from kraftlake.image.diff import diff_images
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionRecord, VotersRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.queries.export import ExportReport
from kraftlake.runtime.errors import EnvironmentFaultError, OffsetError, UnwritableMetadataError, UsageError
from tests.at_least_one import at_least_one
from tests.cli.running import run
from tests.few_examples import few_examples
from tests.histories import histories
from tests.replay.made_logs import (
    TIME,
    MadeLog,
    log_of,
    metadata_version,
    partition,
    small_log,
    topic,
    write_directory,
)
from tests.replay.sample_logs import NAMES, directory_of, expected, expected_images

NAME_3038 = "00000000000000003038-0000000002.checkpoint"


def records_of(path: Path) -> Counter[tuple[str, int]]:
    return Counter((record.type, record.version) for record in kraftlake.open(path).records())


@pytest.mark.parametrize("sample", NAMES)
def test_every_image_of_the_samples_reads_back_as_it_was(sample: str, tmp_path: Path) -> None:
    source = kraftlake.open(directory_of(sample))
    for at, path in at_least_one(expected_images(sample)):
        inside_a_batch = not source.image(at).provenance.batch_aligned
        if expected(path)["metadataVersion"] is None:
            with pytest.raises(UnwritableMetadataError, match=f"offset {at} has no metadata"):
                source.export(tmp_path / "out.checkpoint", at, allow_loss=inside_a_batch)
            continue
        report = source.export(tmp_path / "out.checkpoint", at, allow_loss=inside_a_batch)
        named = (tmp_path / "out.checkpoint").rename(tmp_path / report.suggested_name)
        back = kraftlake.open(named)
        assert diff_images(source.image(at), back.image()).is_empty()
        assert back.image().provenance.offset == at
        assert (report.offset, report.losses) == (at, ())
        assert back.verify().sound


def test_the_export_at_a_snapshots_end_holds_what_kafka_wrote(tmp_path: Path) -> None:
    source = kraftlake.open(directory_of("kafka-4.4"))
    report = source.export(tmp_path, 3037)
    assert report.path == str(tmp_path / NAME_3038)
    kafkas = directory_of("kafka-4.4") / NAME_3038
    assert records_of(tmp_path / NAME_3038) == records_of(kafkas)
    assert diff_images(kraftlake.open(tmp_path / NAME_3038).image(), kraftlake.open(kafkas).image()).is_empty()
    assert report.size_in_bytes == kafkas.stat().st_size


def test_no_name_is_suggested_where_the_offset_is_unknown(tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.checkpoint"
    renamed.write_bytes((directory_of("kafka-4.4") / NAME_3038).read_bytes())
    source = kraftlake.open(renamed)
    assert source.export(tmp_path / "out.checkpoint").suggested_name is None
    with pytest.raises(UsageError, match=r"The offset of renamed\.checkpoint is unknown"):
        source.export(tmp_path)
    printed = run("export", renamed, tmp_path / "again.checkpoint").stdout
    assert printed.endswith("\nKafka looks for it under a name with its offset, which is unknown\n")


def test_kraft_version_and_voters_are_those_of_the_log_or_of_the_snapshot_it_started_from(tmp_path: Path) -> None:
    source = kraftlake.open(directory_of("kafka-4.4"))
    import_source(directory_of("kafka-4.4"), tmp_path / "lake")
    for place in (source, kraftlake.open(tmp_path / "lake")):
        for at, version in ((260, 0), (2000, 1), (2013, 1), (5736, 1)):
            path = tmp_path / "out.checkpoint"
            assert place.export(path, at).kraft_version == version
            control = [record.type for record in kraftlake.open(path).records() if record.control]
            quorum = ["KRAFT_VERSION", "KRAFT_VOTERS"] if version else []
            assert control == ["SNAPSHOT_HEADER", *quorum, "SNAPSHOT_FOOTER"]
    voters = {at: source.replay(at, from_snapshot=False).quorum.voters for at in (2000, 2013, 5736)}
    assert [len(v.voters) for v in voters.values() if v is not None] == [1, 2, 1]


def test_a_lake_exports_the_same_file_as_the_directory(tmp_path: Path) -> None:
    import_source(directory_of("crash-torn"), tmp_path / "lake")
    kraftlake.open(directory_of("crash-torn")).export(tmp_path / "a.checkpoint")
    kraftlake.open(tmp_path / "lake").export(tmp_path / "b.checkpoint")
    assert (tmp_path / "a.checkpoint").read_bytes() == (tmp_path / "b.checkpoint").read_bytes()


def test_what_the_metadata_version_can_not_express_is_an_error_or_a_loss_that_is_listed(tmp_path: Path) -> None:
    token = r.DelegationTokenRecord(owner="User:a", requester="User:a", token_id="t", renewers=())
    batches = log_of(1, [metadata_version(7), topic(1), partition(1), token])
    source = kraftlake.open(write_directory(tmp_path, batches))
    with pytest.raises(UnwritableMetadataError, match=r"3\.3-IV3"):
        source.export(tmp_path / "out.checkpoint")
    assert not (tmp_path / "out.checkpoint").exists()
    report = source.export(tmp_path / "out.checkpoint", allow_loss=True)
    assert len(report.losses) == 1
    assert set(kraftlake.open(tmp_path / "out.checkpoint").image().topics.topics_by_name()) == {"topic-1"}
    assert report.to_json()["losses"] == list(report.losses)


def test_an_image_without_a_metadata_version_can_not_be_written(tmp_path: Path) -> None:
    source = kraftlake.open(write_directory(tmp_path, log_of(1, [topic(1)])))
    with pytest.raises(UnwritableMetadataError, match="offset 1 has no metadata"):
        source.export(tmp_path / "out.checkpoint")


def test_an_image_that_has_diverged_is_written_only_with_loss_allowed(tmp_path: Path) -> None:
    from kraftlake.replay.queries.export import export

    source = kraftlake.open(write_directory(tmp_path, log_of(1, [metadata_version(), partition(9)])))
    with pytest.raises(UnwritableMetadataError, match=r"diverged: 1 records could not .* first at offset 2"):
        export(source, tmp_path / "out.checkpoint", lenient=True)
    assert export(source, tmp_path / "out.checkpoint", lenient=True, allow_loss=True).offset == 2


def test_an_offset_within_a_batch_is_written_only_with_loss_allowed(tmp_path: Path) -> None:
    source = kraftlake.open(write_directory(tmp_path, log_of(1, [metadata_version()], [topic(1), topic(2)])))
    with pytest.raises(OffsetError, match=r"Offset 2 lies inside of a batch.*: export offset 1 or 3\."):
        source.export(tmp_path / "out.checkpoint", 2)
    assert not (tmp_path / "out.checkpoint").exists()
    assert source.export(tmp_path / "out.checkpoint", 2, allow_loss=True).offset == 2


def test_an_offset_that_is_not_there_writes_nothing(tmp_path: Path) -> None:
    source = kraftlake.open(write_directory(tmp_path, small_log()))
    with pytest.raises(OffsetError, match="past the end"):
        source.export(tmp_path / "out.checkpoint", 18)
    with pytest.raises(EnvironmentFaultError, match=r"the folder .*missing does not exist"):
        source.export(tmp_path / "missing" / "out.checkpoint")
    assert not (tmp_path / "out.checkpoint").exists()


@few_examples
@given(records=histories(), dynamic=st.booleans())
def test_any_image_reads_back_as_it_was(
    records: list[ApiMessageAndVersion], dynamic: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    control: list[RecordBatch] = []
    if dynamic:
        head = [KRaftVersionRecord(version=0, k_raft_version=1), VotersRecord(version=0)]
        control.append(RecordBatch.control_of(len(records), 1, TIME, head))
    log = MadeLog(records=(RecordBatch.of(0, 1, TIME, records), *control))
    source = Source(log, SourceKind.DIRECTORY, "made", None)
    report: ExportReport = source.export(tmp_path_factory.mktemp("out"))
    back = kraftlake.open(report.path)
    assert diff_images(source.image(), back.image()).is_empty()
    assert back.image().provenance == source.image().provenance
    assert back.replay().quorum.kraft_version == (1 if dynamic else 0)
