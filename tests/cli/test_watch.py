"""`kraftlake watch`: the events of `kraftlake events`, as they come; on a terminal above a line with the state."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.api import WatchState
from kraftlake.cli.views.watch_view import status_pieces
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from tests.at_least_one import at_least_one
from tests.cli.made_logs import hostile_log, unreplayable_log
from tests.cli.running import DIRECTORY, ROOT, fault, run
from tests.replay.live.growing import cut, empty_directory, segment_bytes

LAST = 96
"""The last offset of the sample that the logs here grow to."""


@pytest.fixture(scope="module")
def batches() -> list[RecordBatch]:
    return list(kraftlake.open(DIRECTORY).batches(0, LAST))


@pytest.fixture(autouse=True)
def _nothing_waits_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that runs here has to end before it waits."""

    def ended() -> None:
        raise AssertionError("the watch waits for more")

    monkeypatch.setattr("kraftlake.cli.commands.watch.check_reader", ended)


def lines_of(*words: object) -> list[str]:
    return run(*words).stdout.splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ["--last", "12s", "--kind", "fenced,shutdown", "--tz", "+01:00"],
        ["--from", 5300, "--topic", "t-2*", "--json"],
        ["--from", 5300, "--partition", "big-a-5", "--kind", "isr"],
        ["--from", 5300, "--broker", 3, "--hosted", "--kind", "leader"],
    ],
)
def test_the_lines_are_those_of_events_with_the_same_options(words: list[object]) -> None:
    expected = lines_of("events", DIRECTORY, *words)
    assert len(expected) > 2
    count = len(expected) if "--last" in words else 2
    shown = lines_of("watch", DIRECTORY, "--include-uncommitted", *words, "--limit", count)
    assert shown == expected[:count]


def test_of_a_directory_what_is_known_to_be_committed_is_shown_and_said_to_be() -> None:
    result = run("watch", DIRECTORY, "--from", 4500, "--limit", 1)
    assert "only what the log itself shows to be committed is shown" in result.stderr
    assert "--quorum" in result.stderr


def test_names_that_nothing_has_yet_are_reported_and_waited_for() -> None:
    words = ["--from", 5300, "--kind", "fenced", "--broker", "9,3", "--limit", 1]
    result = run("watch", DIRECTORY, "--include-uncommitted", *words)
    assert "broker 9 is not registered at offset 5299" in result.stderr
    assert "broker 3" not in result.stderr


def test_hostile_names_are_shown_as_escapes_and_skipped_records_are_reported(tmp_path: Path) -> None:
    log = hostile_log(tmp_path / "hostile")
    shown = run("watch", log, "--include-uncommitted", "--from", 0, "--limit", 5).stdout
    assert "\x1b" not in shown
    assert r"\x1b[31mred" in shown
    log = unreplayable_log(tmp_path)
    words = ["watch", log, "--include-uncommitted", "--from", 0]
    stopped = run(*words, code=1)
    assert "topic foo is created" in stopped.stdout
    assert "offset 2" in stopped.stderr


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (
            [DIRECTORY / "00000000000000000000.log"],
            2,
            "can't be watched: only a lake, the directory of a node and a quorum grow",
        ),
        ([DIRECTORY, "--quorum", "localhost:1", "--include-uncommitted"], 2, "give one of them"),
        ([DIRECTORY, "--from", 0, "--last", "1m"], 2, "Give either --last or where the range begins"),
        ([DIRECTORY, "--hosted"], 2, "give --broker"),
        ([DIRECTORY, "--from", 99999], 1, "Offset 99999 is not in __cluster_metadata-0"),
        (["nowhere"], 1, "nowhere does not exist"),
    ],
)
def test_what_cannot_be_watched_is_one_sentence(words: list[object], code: int, sentence: str) -> None:
    assert sentence in fault("watch", *words, code=code)


@contextmanager
def watching(*words: object, within: Sequence[str] = (), **streams: Any) -> Iterator[subprocess.Popen[str]]:
    """`kraftlake watch` in a process of its own, which is killed where a test would wait for it without end.

    `within` is a program that becomes the command.
    """
    command = [*within, sys.executable, "-m", "kraftlake.cli", "watch", *map(str, words), "--poll", "0.01"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    with subprocess.Popen(command, cwd=ROOT, text=True, **streams) as process:
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def made_lake(path: Path) -> MetadataLog:
    return MetadataLog.create(path, cluster_id=kraftlake.open(DIRECTORY).cluster_id, durability="os")


def events_up_to(offset: int) -> list[Any]:
    return [json.loads(line) for line in lines_of("events", DIRECTORY, "--to", offset, "--json")]


def read_json(process: subprocess.Popen[str], count: int) -> list[Any]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(count)]


def test_a_pipe_gets_each_line_at_once_and_an_interrupt_ends_without_a_word(
    tmp_path: Path, batches: Sequence[RecordBatch]
) -> None:
    log = made_lake(tmp_path / "lake")
    with watching(tmp_path / "lake", "--json", "--from", 0) as process:
        received: list[Any] = []
        for piece in at_least_one(cut(batches, [4, 20, 21, 60])):
            log.append(piece)
            expected = events_up_to(log.end_offset - 1)
            received += read_json(process, len(expected) - len(received))
            assert received == expected
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "")
        assert process.returncode == 128 + signal.SIGINT


def test_a_directory_in_the_making_is_followed_until_the_reader_goes(
    tmp_path: Path, batches: Sequence[RecordBatch]
) -> None:
    directory, segment = empty_directory(tmp_path)
    content = segment_bytes(batches)
    with watching(directory, "--json", "--include-uncommitted", "--from", 0) as process:
        received: list[Any] = []
        with segment.open("ab", buffering=0) as file:
            for begin, end in ((0, 5000), (5000, 5001), (5001, len(content) - 7), (len(content) - 7, len(content))):
                file.write(content[begin:end])
        expected = events_up_to(LAST)
        received = read_json(process, len(expected))
        assert [{**event, "clusterId": "of-the-tests"} for event in expected] == received
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 141, "nothing more is written, and yet it is seen that nobody reads"
        assert process.stderr is not None
        assert process.stderr.read() == ""


ERASED = "\r\x1b[J"


class Screen:
    """The main side of a pseudo terminal."""

    def __init__(self, rows: int, columns: int) -> None:
        self._main, self.child = pty.openpty()
        self._pending = ""
        self.resize(rows, columns)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, text: str) -> str:
        """What is received next, up to and including a text."""
        while text not in self._pending:
            try:
                self._pending += os.read(self._main, 65536).decode()
            except OSError:
                raise AssertionError(f"{text!r} never came: {self._pending!r}") from None
        received, found, self._pending = self._pending.partition(text)
        return received + found

    def press(self, key: str) -> None:
        os.write(self._main, key.encode())


def test_a_terminal_has_the_state_below_the_events(tmp_path: Path, batches: Sequence[RecordBatch]) -> None:
    log = made_lake(tmp_path / "lake")
    log.append(batches[:8])
    screen = Screen(20, 100)
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    with watching(
        tmp_path / "lake", within=["setsid", "--ctty"],  # for Ctrl-C
        stdin=screen.child, stdout=screen.child, stderr=screen.child,
        env={**environment, "TERM": "xterm-256color", "NO_COLOR": "1"},
    ) as process:  # fmt: skip
        os.close(screen.child)
        state = "── 0 offline partitions · {} · offset {} · leader 3000 · epoch 1\r"
        assert screen.read_until("\r") + screen.read_until("\r") == ERASED + state.format("1 fenced broker", 7)
        log.append(batches[8:])
        shown = screen.read_until(state.format("0 fenced brokers", LAST))
        newest = events_up_to(LAST)[-1]
        assert f"\r\n{newest['offset']:>8}  " in shown
        assert newest["sentence"] in shown
        assert shown.startswith(f"{ERASED}── 2026-11-21 UTC\r\n"), "the state before gives way to the events"
        screen.resize(20, 50)
        screen.read_until(f"{ERASED}── 0 offline partitions · 0 fenced brokers\r")
        screen.press("\x03")
        screen.read_until(ERASED)
        assert process.wait() == 128 + signal.SIGINT
    with pytest.raises(AssertionError, match="never came: ''"):
        screen.read_until("anything after the line was erased")


STATE = WatchState(
    leader=3000, epoch=7, offset=123456, timestamp=1795247176256, counts=count_cluster(MetadataImage.EMPTY),
    seen_to=123457, trouble=None,
)  # fmt: skip


@pytest.mark.parametrize("room", range(40, 140, 7))
def test_the_state_has_as_many_facts_as_there_is_room_for(room: int) -> None:
    line = "".join(piece if isinstance(piece, str) else piece[0] for piece in status_pieces(STATE, room))
    whole = (
        "── 0 offline partitions · 0 fenced brokers · offset 123456 · leader 3000 · epoch 7 · 2026-11-21 07:46:16.256Z"
    )
    facts = whole.split(" · ")
    fitting = max(count for count in range(1, len(facts) + 1) if len(" · ".join(facts[:count])) <= room)
    assert line == " · ".join(facts[:fitting])
