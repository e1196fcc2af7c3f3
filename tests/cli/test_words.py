"""The small parts of the terminal form: visible strings, values as words, lines that fit, parameters."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from datetime import UTC, datetime, timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kraftlake.cli.options.parameters import TIME, TYPES
from kraftlake.cli.output.formats import json_text
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.visible import visible
from kraftlake.cli.output.words import amount, moment, size
from kraftlake.cli.selection.image_parts import PARTS, ImageSelection
from kraftlake.cli.selection.log_names import LogNames
from kraftlake.cli.views.lines import fit
from kraftlake.cli.views.record_summary import summary
from kraftlake.replay.queries.record_types import RECORD_TYPES
from kraftlake.runtime.words import counted
from tests.cli.running import DIRECTORY, ROOT, SAMPLE, run, unzipped_json

ANY_TEXT = st.text(st.characters(), max_size=80)  # surrogates included


@given(ANY_TEXT)
def test_a_visible_string_holds_nothing_that_steers_a_terminal(text: str) -> None:
    shown = visible(text)
    assert all(unicodedata.category(character)[0] != "C" for character in shown)
    assert not {"\u2028", "\u2029"} & set(shown)
    assert visible(shown) == shown


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_what_is_harmless_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(st.lists(st.tuples(ANY_TEXT, st.sampled_from(Style))), st.integers(0, 60))
def test_a_line_never_exceeds_its_room_and_is_whole_without_a_limit(pieces: list[tuple[str, Style]], room: int) -> None:
    whole = fit(pieces, None, colour=False)
    assert whole == "".join(visible(text) for text, _ in pieces)
    cut_line = fit(pieces, room, colour=False)
    assert cell_len(cut_line) <= room
    assert cut_line == whole or whole.startswith(cut_line.removesuffix("…").rstrip())


@pytest.mark.parametrize(
    ("value", "words"),
    [(-1, "–"), (None, "–"), (0, "1970-01-01 00:00:00.000Z"), (1_795_247_127_235, "2026-11-21 07:45:27.235Z"),
     (2**62, f"{2**62} ms"), ("(redacted)", "(redacted)")],
)  # fmt: skip
def test_a_moment_is_iso_in_utc(value: int | str | None, words: str) -> None:
    assert moment(value) == words


def test_amounts_counts_and_sizes_read_well() -> None:
    assert [amount(value) for value in (1048576.0, 12.25, 7, 1e300, float("nan"))] == [
        "1,048,576", "12.25", "7", "1e+300", "nan",
    ]  # fmt: skip
    assert [counted(1, "batch", "batches"), counted(2000, "batch", "batches")] == ["1 batch", "2,000 batches"]
    assert [size(n) for n in (1, 1023, 1024, 61_234, 5 * 1024**2, 3 * 1024**3)] == [
        "1 byte", "1,023 bytes", "1.0 KiB", "59.8 KiB", "5.0 MiB", "3.0 GiB",
    ]  # fmt: skip


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))
def test_a_time_is_read_as_iso_or_milliseconds(when: datetime) -> None:
    when = when.replace(microsecond=when.microsecond // 1000 * 1000)
    aware = when.replace(tzinfo=UTC)
    milliseconds = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    for text in (when.isoformat(), aware.isoformat(), str(milliseconds)):
        assert TIME.convert(text, None, None) == aware


@given(st.from_regex(r"[^\d\s][a-z ]{0,20}", fullmatch=True))
def test_any_other_text_is_refused_as_a_time(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        TIME.convert(text, None, None)


@given(ANY_TEXT.filter(lambda text: not any(character.isalpha() for character in text)))
def test_any_other_text_is_refused_as_a_record_type(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a record type"):
        TYPES.convert(text, None, None)


def test_numbers_that_json_lacks_are_written_as_strings() -> None:
    text = json_text({"a": [float("nan"), {"b": float("-inf")}, 1.5], "c": float("inf")})
    assert text == '{"a":["NaN",{"b":"-Infinity"},1.5],"c":"Infinity"}'


@pytest.mark.parametrize("name", RECORD_TYPES)
def test_every_record_type_is_understood_in_every_spelling(name: str) -> None:
    short = name.removesuffix("_RECORD")
    for spelling in (name, name.lower(), short, short.lower().replace("_", "-"), name.title().replace("_", "")):
        assert TYPES.convert(spelling, None, None) == (name,)


@pytest.mark.parametrize(
    ("type_", "data", "words"),
    [
        ("FENCE_BROKER_RECORD", {"id": 3, "epoch": 9}, "broker 3  fenced  epoch 9"),
        ("UNFENCE_BROKER_RECORD", {"id": 3, "epoch": 9}, "broker 3  unfenced  epoch 9"),
        ("ABORT_TRANSACTION_RECORD", {"reason": "gone"}, "gone"),
        ("ABORT_TRANSACTION_RECORD", {}, ""),
        ("CLEAR_ELR_RECORD", {"topicName": ""}, "all topics"),
        ("ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": 3}, '{"zkMigrationState": 3}'),
        ("REMOVE_TOPIC_RECORD", {"topicId": "abc"}, "- abc"),
        ("UNKNOWN", "AWMA", "AWMA"),
        (
            "PARTITION_CHANGE_RECORD",
            {
                "topicId": "abc", "partitionId": 1, "leader": -1, "isr": [], "eligibleLeaderReplicas": [2],
                "leaderRecoveryState": 1,
            },
            "abc-1  leader none, in sync –, eligible 2, recovering",
        ),
        (
            "PARTITION_CHANGE_RECORD",
            {"topicId": "abc", "partitionId": 1, "addingReplicas": [], "leaderRecoveryState": 0},
            "abc-1  adding –, recovered",
        ),
    ],
)  # fmt: skip
def test_a_record_is_summed_up(type_: str, data: object, words: str) -> None:
    pieces = summary(type_, data, LogNames())
    assert "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces) == words


def test_the_parts_of_an_image_are_all_its_keys() -> None:
    image = unzipped_json(SAMPLE / "expected" / "image-4592.json.gz")
    assert {key for keys in PARTS.values() for key in keys} == set(image) - {"offset", "epoch"}
    assert ImageSelection(parts=PARTS).cut(image) == image == ImageSelection().cut(image)


def test_logs_go_to_stderr_when_asked_for() -> None:
    program = (
        "from kraftlake.cli.output.logs import log_to_stderr\n"
        "import logging, structlog\n"
        "log_to_stderr(debug=False)\n"
        "logging.getLogger('room').info('shown')\n"
        "logging.getLogger('room').debug('hidden')\n"
        "structlog.get_logger().info('also shown')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert "INFO room: shown" in done.stderr
    assert "also shown" in done.stderr
    assert "hidden" not in done.stderr
    assert run("image", DIRECTORY, "--part", "features", "-vv").stdout


def test_a_picture_of_a_terminal_is_made() -> None:
    done = subprocess.run(
        [sys.executable, "tools/terminal_picture.py", "--lines", "4",
         sys.executable, "-m", "kraftlake.cli", "image", str(DIRECTORY)],
        cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "90"},
    )  # fmt: skip
    assert done.stdout.startswith("<svg")
    assert "VXUoBgBGTaWWfCM4Toybuw" in done.stdout
    assert "http" not in done.stdout.replace("http://www.w3.org", "").replace("https://www.textualize.io", "")
