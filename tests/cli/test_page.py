"""`kraftlake page`: the file it writes, what it says of it, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC
from pathlib import Path

import pytest

import kraftlake
from kraftlake.diagnosis.attribution.attributed_events import with_clients
from kraftlake.diagnosis.page import writing
from kraftlake.records import metadata_records as r
from tests.cli.made_logs import HOSTILE, batch_of, directory_of, hostile_log, unreplayable_log
from tests.cli.running import DIRECTORY, SAMPLE, SAMPLES, TORN, fault, run, run_json
from tests.diagnosis.page.unpacked import Unpacked

SECRET = r.ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value="hunter2")


def test_it_says_what_it_wrote_where(tmp_path: Path) -> None:
    file = tmp_path / "cluster.html"
    shown = run("page", DIRECTORY, "-o", file).stdout
    assert re.fullmatch(
        rf"page +{file}, [\d.]+ KiB\n"
        r"holds +offsets 0 to 5736: 5,583 events of 592 partitions and 4 brokers\n"
        rf"link +{file}#at=5736 opens it at that offset\n",
        shown,
    )
    report = run_json("page", DIRECTORY, "-o", file)
    assert report == {
        "clusterId": "VXUoBgBGTaWWfCM4Toybuw",
        "path": str(file),
        "bytes": file.stat().st_size,
        "fromOffset": 0,
        "toOffset": 5736,
        "brokers": 4,
        "topics": sum(event["kind"] == "topic_created" for event in kraftlake.open(DIRECTORY).events()),
        "partitions": 592,
        "events": 5583,
        "skipped": 0,
    }


def test_equal_logs_give_equal_pages(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        run("page", DIRECTORY, "-o", tmp_path / name, "--from", 310, "--to", 1664)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


@pytest.mark.parametrize(
    ("words", "moments"),
    [
        (("--from", 310, "--to", 1664), (310, 1664)),
        (("--from", "2026-11-21T07:46:00Z", "--to", "07:47"), ("2026-11-21T07:46:00Z", "07:47")),
        (("--last", "1m"), ("now-1m",)),
    ],
)
def test_a_range_begins_with_the_state_before_it(
    tmp_path: Path, words: tuple[object, ...], moments: tuple[int | str, ...]
) -> None:
    run("page", DIRECTORY, *words, "-o", tmp_path / "page.html")
    page = Unpacked.of_page(tmp_path / "page.html")
    source = kraftlake.open(DIRECTORY)
    first, last = source.offset_range(*moments)
    assert first is not None
    assert (page.about["from"], page.about["to"]) == (first, 5736 if last is None else last)
    assert page.about["begins"]
    assert page.offsets[0] == first - 1
    assert len(page.at(first - 1)) == source.image(first - 1).topics.partition_count
    assert page.sentences() == [(e["offset"], e["kind"], e["sentence"]) for e in source.events(first, last)]


def test_its_policy_names_its_own_scripts_and_style_and_nothing_of_a_log_is_markup(tmp_path: Path) -> None:
    run("page", hostile_log(tmp_path), "-o", tmp_path / "page.html", "--cluster-id", "<b>" + HOSTILE)
    page = (tmp_path / "page.html").read_text("utf-8")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy is not None
    own = [
        *re.findall(r"<script>(.*?)</script>", page, re.DOTALL),
        *re.findall(r"<style>(.*?)</style>", page, re.DOTALL),
    ]
    sums = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in own]
    scripts, style = " ".join(f"'sha256-{one}'" for one in sums[:-1]), f"'sha256-{sums[-1]}'"
    assert policy[1] == (
        f"default-src 'none'; script-src {scripts}; style-src {style}; base-uri 'none'; form-action 'none'"
    )
    assert len(own) == 10
    other = tmp_path / "other.html"
    run("page", DIRECTORY, "-o", other)
    data = re.compile(r'(?<=id="data">)[A-Za-z0-9+/=\s]*(?=</script>)')
    assert data.sub("", page) == data.sub("", other.read_text("utf-8"))
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\(", data.sub("", page))


def test_progress_is_reported_up_to_the_end(tmp_path: Path) -> None:
    reported: list[tuple[str, int, int]] = []
    kraftlake.open(DIRECTORY).page(tmp_path / "page.html", 310, progress=lambda *step: reported.append(step))
    assert [done for _, done, _ in reported] == sorted(done for _, done, _ in reported)
    assert reported[-1][0] == "replaying"
    assert reported[-1][2] == 5737 - 310


def test_secrets_are_redacted(tmp_path: Path) -> None:
    log = directory_of(tmp_path, [batch_of(0, SECRET), batch_of(1, r.NoOpRecord())])
    run("page", log, "-o", tmp_path / "page.html")
    sentences = [sentence for _, _, sentence in Unpacked.of_page(tmp_path / "page.html").sentences()]
    assert any("ssl.key.password" in sentence and "(redacted)" in sentence for sentence in sentences)
    assert not any("hunter2" in sentence for sentence in sentences)
    assert "hunter2" in str([*kraftlake.open(log).events(show_secrets=True)])


def test_what_cannot_be_replayed_is_an_error_or_left_out_and_said(tmp_path: Path) -> None:
    log, file = unreplayable_log(tmp_path), tmp_path / "page.html"
    assert "offset 2" in fault("page", log, "-o", file)
    assert not file.exists()
    done = run("page", log, "-o", file, "--lenient")
    assert "1 record skipped" in done.stderr
    assert Unpacked.of_page(file).about["skipped"] == 1


def test_a_torn_log_and_a_lake_are_sources_and_a_snapshot_is_none(tmp_path: Path) -> None:
    run("page", TORN, "-o", tmp_path / "torn.html")
    run("import", DIRECTORY, tmp_path / "lake")
    run("page", tmp_path / "lake", "-o", tmp_path / "lake.html", "--from", 4000)
    page = Unpacked.of_page(tmp_path / "lake.html")
    assert page.about["source"] == "lake"
    assert page.offsets[-1] == 5736
    snapshot = next((SAMPLE / "log").rglob("*.checkpoint"))
    assert "no changes" in fault("page", snapshot, "-o", tmp_path / "none.html")


def test_a_source_with_nothing_after_its_first_image_says_so(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    snapshot = DIRECTORY / "00000000000000003038-0000000002.checkpoint"
    (tmp_path / "alone" / snapshot.name).write_bytes(snapshot.read_bytes())
    sentence = fault("page", tmp_path / "alone", "-o", tmp_path / "none.html")
    assert "Nothing happened in alone after offset 3037, of which it has its first image" in sentence
    run("format", tmp_path / "lake")
    assert "Nothing has happened" in fault("page", tmp_path / "lake", "-o", tmp_path / "none.html")


def test_where_it_cannot_write_it_says_so_and_leaves_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "page.html"
    assert "does not exist" in fault("page", DIRECTORY, "-o", tmp_path / "nowhere" / "page.html")
    assert "no regular file" in run("page", DIRECTORY, "-o", tmp_path, code=2).stderr
    assert "no regular file" in run("page", DIRECTORY, "-o", "-", code=2).stderr
    file.write_text("what was there")

    def torn(_: bytes) -> object:
        yield b"half"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "document", torn)
    assert fault("page", DIRECTORY, "-o", file) == f"{file} can't be written: No space left on device."
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert file.read_text() == "what was there"


def test_events_of_a_page_name_the_clients_that_made_them(tmp_path: Path) -> None:
    log = SAMPLES / "authorized"
    directory, logs = log / "log" / "__cluster_metadata-0", [log / "node-1" / "kafka-authorizer.log.gz"]
    words = ("page", directory, "-o", tmp_path / "who.html", "--log-tz", "UTC", "--authorizer-log", *logs)
    assert "45 events" in run(*words).stdout
    source = kraftlake.open(directory)
    who = source.attribution(logs, log_zone=UTC)
    page = source.page(attribution=who)
    assert page.html == (tmp_path / "who.html").read_bytes()
    assert page.size > source.page().size
    rows = with_clients(source.events(54, 55).to_table(), who)
    assert rows.column("sentence").to_pylist() == [
        "topic t-0 is created with 1 partition, replication factor 1, by User:alice from 127.0.0.1, CreateTopics"
    ]
