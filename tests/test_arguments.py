"""Public functions refuse values of the wrong kind, each with a sentence of ours: no bare TypeError from inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake import api, spark_jobs
from kraftlake.api import Source
from kraftlake.controller.quorum.bootstrap import open_controlled
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.replay.imports.follow_log import LogFollower
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.live.open_quorum import observer_of
from kraftlake.replay.loader.fold import image_at, loader_at
from kraftlake.replay.queries.quorum_report import describe_quorum
from kraftlake.replay.restore.restore_files import check_target, write_restore
from kraftlake.replay.restore.restore_plan import plan_restore
from kraftlake.replica_manager.logs.log_dirs import check_log_dirs, compare_log_dirs
from kraftlake.replica_manager.replay.broker_replay import BrokerReplay
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs import (
    StreamOptions,
    build_snapshot,
    image_frame,
    image_stream,
    local_changes_frame,
    read_records,
    run_job,
    run_lakes,
    run_snapshot,
    run_tables,
    state_frame,
    table_frame,
)
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.history.state_at import state_at
from kraftlake.tables.image_partitions import partition_table
from kraftlake.tables.jobs import HISTORY
from tests.at_least_one import at_least_one
from tests.cli.made_logs import unreplayable_log
from tests.cli.running import DIRECTORY, fault
from tests.tables.sample_log import lake_of

NO_SPARK: Any = None
"""In place of a session: what is wrong is found before one is asked."""

PATHS = (5, 1.5, b"x", "", "a\0b", True, [], {}, object(), datetime(2026, 1, 1, tzinfo=UTC), Path())[:-1]
URIS = ("hdfs://x/lake", "gs://x", "file://")
NUMBERS = ("5", "", b"5", 1.5, float("nan"), True, [], {}, object(), 2**70)
OFFSETS = (*NUMBERS, datetime(2026, 1, 1, tzinfo=UTC))
COUNTS = (*OFFSETS, 0, -1)
NAMES = (5, b"x", 1.5, True, [], {}, object())
VOTERS = [(1, "localhost", 9093)]
LISTS = (5, 1.5, True, object(), "x", b"x", [5], [None])


class Ask:
    """The sample and a lake with histories, to be asked."""

    source: Source
    lake: Path
    folder: Path

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = kraftlake.open(DIRECTORY)
        self.lake = folder / "lake"
        lake_of(self.lake, commits=1, last=500)
        update_tables(self.lake, HISTORY.tables)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    return Ask(tmp_path_factory.mktemp("arguments"))


LAKES = (*PATHS, None, *URIS)
Call = Callable[[Ask, Any], object]
CALLS: dict[str, tuple[Call, tuple[Any, ...]]] = {
    "open": (lambda _, bad: kraftlake.open(bad), (*LAKES, "nowhere")),
    "open cluster_id": (lambda _, bad: kraftlake.open(DIRECTORY, cluster_id=bad), NAMES),
    "open command_config": (lambda _, bad: kraftlake.open("localhost:1", command_config=bad), PATHS),
    "observer_of": (lambda _, bad: observer_of(bad), (*NAMES, "", "localhost", "localhost:0", ":1")),
    "import_source": (lambda a, bad: import_source(bad, a.folder / "new"), LAKES),
    "import_source lake": (lambda _, bad: import_source(DIRECTORY, bad), LAKES),
    "import_source cluster_id": (lambda a, bad: import_source(a.source, a.folder / "new", cluster_id=bad), NAMES),
    "Source.batches": (lambda a, bad: list(a.source.batches(bad, 3)), OFFSETS),
    "Source.batches to": (lambda a, bad: list(a.source.batches(1, bad)), OFFSETS),
    "Source.records": (lambda a, bad: list(a.source.records(bad, 3)), (*NUMBERS, -1)),
    "Source.records to": (lambda a, bad: list(a.source.records(1, bad)), (*NUMBERS, -1)),
    "Source.records types": (lambda a, bad: list(a.source.records(1, 3, bad)), LISTS),
    "Source.offset_at": (lambda a, bad: a.source.offset_at(bad), NUMBERS),
    "Source.offset_since": (lambda a, bad: a.source.offset_since(bad), (*NUMBERS, 5, None)),
    "Source.image": (lambda a, bad: a.source.image(bad), (*NUMBERS, -1)),
    "Source.replay": (lambda a, bad: a.source.replay(bad), (*NUMBERS, -1)),
    "Source.local_changes broker": (lambda a, bad: a.source.local_changes(bad, 1, 3), (*OFFSETS, -1, None)),
    "Source.local_changes from": (lambda a, bad: a.source.local_changes(1, bad, 3), (*NUMBERS, None)),
    "Source.local_changes to": (lambda a, bad: a.source.local_changes(1, 1, bad), NUMBERS),
    "Source.changes": (lambda a, bad: list(a.source.changes(bad, 3)), NUMBERS),
    "Source.changes to": (lambda a, bad: list(a.source.changes(1, bad)), NUMBERS),
    "Source.watch": (lambda a, bad: a.source.watch(bad), (*NUMBERS, -1)),
    "Source.watch poll": (lambda a, bad: a.source.watch(poll=bad), (*NUMBERS[:3], *NUMBERS[4:9], 0, -1)),
    "Source.watch of_brokers": (lambda a, bad: a.source.watch(of_brokers=bad), (*LISTS[:6], [None], ["x"])),
    "Source.diff": (lambda a, bad: a.source.diff(bad, 3), NUMBERS),
    "Source.diff after": (lambda a, bad: a.source.diff(3, bad), NUMBERS),
    "Source.blame": (lambda a, bad: a.source.blame(bad), (*NAMES, "", "topic", "brokers/1")),
    "Source.blame at": (lambda a, bad: a.source.blame("feature/metadata.version", bad), (*NUMBERS, -1)),
    "Source.blame_all": (lambda a, bad: a.source.blame_all(bad), (*NAMES, "", "topic")),
    "Source.bisect": (lambda a, bad: a.source.bisect(bad), (*NAMES, "", "1", "nothing")),
    "Source.bisect from": (lambda a, bad: a.source.bisect("broker(1).fenced", bad), (*NUMBERS, -1)),
    "Source.bisect to": (lambda a, bad: a.source.bisect("broker(1).fenced", 1, bad), (*NUMBERS, -1)),
    "Source.page": (lambda a, bad: a.source.page(bad), PATHS),
    "Source.page from": (lambda a, bad: a.source.page(a.folder / "page.html", bad, 3), NUMBERS),
    "Source.page to": (lambda a, bad: a.source.page(a.folder / "page.html", 1, bad), NUMBERS),
    "Source.what_if": (
        lambda a, bad: a.source.what_if(bad),
        (*NAMES, "", "lose-broker", "lose-broker x", "catch-up 1"),
    ),
    "Source.what_if at": (lambda a, bad: a.source.what_if("catch-up", at=bad), (*NUMBERS, -1)),
    "Source.export": (lambda a, bad: a.source.export(bad, 3), PATHS),
    "Source.export at": (lambda a, bad: a.source.export(a.folder / "out.checkpoint", bad), NUMBERS),
    "describe_quorum": (lambda _, bad: describe_quorum(bad), (*LISTS[:4], *PATHS[:2], b"x", None)),
    "describe_quorum of several": (lambda _, bad: describe_quorum([DIRECTORY, bad]), LAKES),
    "plan_restore": (lambda _, bad: plan_restore(bad, voters=VOTERS), (*NAMES, None)),
    "plan_restore at": (lambda a, bad: plan_restore(a.source, bad, voters=VOTERS), (*NUMBERS, -1)),
    "plan_restore voters": (
        lambda a, bad: plan_restore(a.source, voters=bad),
        (*LISTS, [], [(1, "h")], [("1", "h", 1)]),
    ),
    "plan_restore dirs": (lambda a, bad: plan_restore(a.source, voters=VOTERS, broker_dirs=bad), (*LISTS, ["nowhere"])),
    "plan_restore margin": (lambda a, bad: plan_restore(a.source, voters=VOTERS, margin=bad), (*COUNTS, None)),
    "plan_restore version": (
        lambda a, bad: plan_restore(a.source, voters=VOTERS, kraft_version=bad),
        (*OFFSETS, 2, -1),
    ),
    "write_restore": (lambda a, bad: write_restore(bad, a.folder / "new"), (*NAMES, None)),
    "write_restore to": (lambda a, bad: write_restore(plan_restore(a.source, voters=VOTERS), bad), (*PATHS, None)),
    "check_target": (lambda _, bad: check_target(bad), (*PATHS, None)),
    "image_at": (lambda a, bad: image_at(a.source.reader, bad), (*OFFSETS, None)),
    "loader_at": (lambda a, bad: loader_at(a.source.reader, bad), (*OFFSETS, None)),
    "LogFollower": (lambda a, bad: LogFollower(bad, a.folder / "new"), PATHS),
    "LogFollower lake": (lambda _, bad: LogFollower(DIRECTORY, bad), LAKES),
    "lake_location": (lambda _, bad: lake_location(bad), LAKES),
    "MetadataLog.open": (lambda _, bad: MetadataLog.open(bad), (*LAKES, "nowhere")),
    "MetadataLog.create": (lambda _, bad: MetadataLog.create(bad), LAKES),
    "MetadataLog.create start": (lambda a, bad: MetadataLog.create(a.folder / "new", start_offset=bad), OFFSETS),
    "MetadataLog.batches": (lambda a, bad: list(MetadataLog.open(a.lake).batches(bad)), OFFSETS),
    "MetadataLog.claim": (lambda a, bad: MetadataLog.open(a.lake).claim(bad), (*OFFSETS, None)),
    "MetadataLog.offset_at_time": (lambda a, bad: MetadataLog.open(a.lake).offset_at_time(bad), OFFSETS),
    "open_controlled": (lambda _, bad: open_controlled(bad), (*LAKES, "nowhere")),
    "Upkeep": (lambda _, bad: Upkeep(bad), LAKES),
    "state_at": (lambda _, bad: state_at(bad, 5), LAKES),
    "state_at offset": (lambda a, bad: state_at(a.lake, bad), (*OFFSETS, None, -1)),
    "state_at table": (lambda a, bad: state_at(a.lake, 5, bad), (*NAMES, "events")),
    "state_at columns": (lambda a, bad: state_at(a.lake, 5, columns=bad), LISTS),
    "state_frame": (lambda _, bad: state_frame(NO_SPARK, bad, 5), LAKES),
    "state_frame offset": (lambda a, bad: state_frame(NO_SPARK, a.lake, bad), (*OFFSETS, None, -1)),
    "table_frame": (lambda _, bad: table_frame(NO_SPARK, bad, "events"), LAKES),
    "table_frame each": (lambda a, bad: table_frame(NO_SPARK, [a.lake, bad], "topic_history"), LAKES),
    "table_frame table": (lambda a, bad: table_frame(NO_SPARK, a.lake, bad), (*NAMES, "nothing")),
    "table_frame columns": (lambda a, bad: table_frame(NO_SPARK, a.lake, "topic_history", columns=bad), LISTS),
    "image_stream": (lambda _, bad: image_stream(NO_SPARK, bad, print), LAKES),
    "read_records": (lambda _, bad: read_records(NO_SPARK, bad), LAKES),
    "read_records type": (lambda a, bad: read_records(NO_SPARK, a.lake, bad), NAMES),
    "read_records start": (lambda a, bad: read_records(NO_SPARK, a.lake, None, bad), OFFSETS),
    "read_records end": (lambda a, bad: read_records(NO_SPARK, a.lake, None, 1, bad), OFFSETS),
    "read_records columns": (lambda a, bad: read_records(NO_SPARK, a.lake, columns=bad), LISTS),
    "image_frame": (lambda _, bad: image_frame(NO_SPARK, bad), LAKES),
    "image_frame at": (lambda a, bad: image_frame(NO_SPARK, a.lake, bad), OFFSETS),
    "local_changes_frame": (lambda _, bad: local_changes_frame(NO_SPARK, bad, 1), LAKES),
    "local_changes_frame from": (lambda a, bad: local_changes_frame(NO_SPARK, a.lake, bad), (*OFFSETS, None, -2)),
    "local_changes_frame to": (lambda a, bad: local_changes_frame(NO_SPARK, a.lake, 1, bad), OFFSETS),
    "build_snapshot": (lambda _, bad: build_snapshot(NO_SPARK, bad), LAKES),
    "build_snapshot at": (lambda a, bad: build_snapshot(NO_SPARK, a.lake, bad), OFFSETS),
    "run_snapshot": (lambda _, bad: run_snapshot(bad), LAKES),
    "run_snapshot at": (lambda a, bad: run_snapshot(a.lake, bad), OFFSETS),
    "run_job": (lambda a, bad: run_job(bad, a.lake), (*NAMES, None, "sing")),
    "run_job lake": (lambda _, bad: run_job("history", bad), LAKES),
    "run_job options": (lambda a, bad: run_job("history", a.lake, options=bad), NAMES),
    "run_lakes": (lambda a, bad: run_lakes(bad, [a.lake]), (*NAMES, None, "sing")),
    "run_lakes lakes": (lambda _, bad: run_lakes("history", bad), (*LAKES, "nowhere", Path("nowhere"))),
    "run_lakes each": (lambda a, bad: run_lakes("history", [a.lake, bad]), LAKES),
    "run_lakes bytes": (lambda a, bad: run_lakes("all", [a.lake], snapshot_every_bytes=bad), COUNTS),
    "run_tables": (lambda _, bad: run_tables("mine", bad, []), LAKES),
    "StreamOptions trigger": (lambda _, bad: StreamOptions(trigger=bad).check(), (*NAMES, None, "now")),
    "StreamOptions records": (lambda _, bad: StreamOptions(max_records=bad).check(), COUNTS),
    "StreamOptions until": (lambda _, bad: StreamOptions(until_offset=bad).check(), OFFSETS),
    "partition_table": (lambda _, bad: partition_table(bad), (*NAMES, None)),
    "BrokerReplay": (lambda _, bad: BrokerReplay(bad, 1), (*NAMES, None)),
    "BrokerReplay broker": (lambda a, bad: BrokerReplay(a.source, bad, 1, 3), (*OFFSETS, None, -1)),
    "BrokerReplay from": (lambda a, bad: BrokerReplay(a.source, 1, bad, 3), NUMBERS),
    "BrokerReplay to": (lambda a, bad: BrokerReplay(a.source, 1, 1, bad), NUMBERS),
    "BrokerReplay fetchers": (lambda a, bad: BrokerReplay(a.source, 1, 1, 3, num_replica_fetchers=bad), COUNTS),
    "check_log_dirs": (lambda _, bad: check_log_dirs(bad), LISTS),
    "compare_log_dirs": (lambda a, bad: compare_log_dirs(a.source.image(3), bad, []), (*OFFSETS, None, -1)),
    "generate_lake": (lambda _, bad: generate_lake(bad, Plan(topics=1)), (*PATHS, "s3://x/y")),
    "generate_lake plan": (lambda a, bad: generate_lake(a.folder / "new", bad), NAMES),
    **{
        f"Plan {name}": (lambda a, bad, name=name: generate_lake(a.folder / "new", Plan(**{name: bad})), NUMBERS)
        for name in ("brokers", "racks", "topics", "partitions", "replication_factor", "records", "seed", "start_ms")
    },
    "Plan patterns": (lambda a, bad: generate_lake(a.folder / "new", Plan(patterns=bad)), LISTS),
}

OF_OBJECTS = {
    "count_cluster", "count_partitions_of_brokers", "diff_images", "image_to_json", "min_insync_replicas",
    "partitions_of", "refuse_loss", "load_snapshot", "topics_from_arrow", "topics_to_arrow", "java_home",
    "counts_by_minute", "spark_session", "summary_to_json", "transition_to_json", "broken_ranges", "choose_base",
    "chunks_of", "decode_record", "readable_batches", "type_of", "usable_snapshots", "verify_source", "is_lake",
    "check_covered", "check_unbroken", "has_beginning", "is_under_min_isr", "leader_at", "open_live", "problem_of_name",
    "serve_fetch", "is_online", "as_literal", "matching", "mechanism_name", "part_of", "path_of", "root_node",
    "compare_copies", "compare_logs", "read_copy", "alone_words", "held_words", "comparison_sentence", "role_among",
    "known_mechanism", "double_text",
}  # fmt: skip
"""Functions that take no more than what other functions have made (the reader of a source, with offsets that were
checked already), or a session."""


def functions_of_doors() -> Iterator[str]:
    for door in (kraftlake, api, spark_jobs):
        for name in door.__all__:
            if inspect.isfunction(getattr(door, name)):
                yield name


def test_every_function_of_the_doors_is_tried() -> None:
    tried = {name.partition(" ")[0] for name in CALLS} | OF_OBJECTS
    assert {*functions_of_doors()} - {"open_source"} - tried == set()


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_value_is_refused_with_a_sentence_of_ours(ask: Ask, name: str) -> None:
    call, values = CALLS[name]
    for bad in at_least_one(values):
        with pytest.raises(KraftlakeError) as fault:
            call(ask, bad)
        assert str(fault.value), bad
    assert {path.name for path in ask.folder.iterdir()} == {"lake"}


def test_a_job_as_a_command_refuses_the_uri_of_another_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in ("hdfs://x", "HDFS://x/y", "abfss://c@a/z"):
        message = fault("spark", "events", uri, code=2)
        assert f"'{uri}' has a scheme that is not known here: give a path, or s3://…, or file://…" in message
    assert not [*tmp_path.iterdir()]


def test_a_path_that_is_odd_and_there_is_opened(tmp_path: Path) -> None:
    for name in ("a b", "x:y", "ä%20"):
        log = unreplayable_log(tmp_path / name)
        assert kraftlake.open(log).end_offset == 4
        import_source(log, tmp_path / name / "lake")
        assert MetadataLog.open(tmp_path / name / "lake").end_offset == 4
