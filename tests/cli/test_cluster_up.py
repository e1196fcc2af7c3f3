"""`kraftlake cluster up` as a user runs it: for a script, on a terminal, and with what can't be."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kraftlake.metadata_log.log import MetadataLog
from tests.cli.running import fault, run
from tests.waiting import PATIENCE, is_alive, wait_for

ONE_EACH = ("--brokers", "1", "--controllers", "1", "--override", "controller.quorum.fetch.timeout.ms=1000")
ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes stdin the terminal whose Ctrl-C this process gets, and becomes the command."""
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@contextmanager
def command(*words: object, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "kraftlake", *map(str, words)], **streams)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_script_gets_one_line_and_no_node_outlives_the_command_that_is_killed(tmp_path: Path) -> None:
    words = ("cluster", "up", tmp_path / "lake", "--json", *ONE_EACH)
    with (tmp_path / "stderr").open("wb") as stderr, command(*words, stdout=subprocess.PIPE, stderr=stderr) as up:
        assert up.stdout is not None
        with up.stdout as stdout:
            line = json.loads(stdout.readline())
            pids = [node["pid"] for node in line["nodes"]]
            assert [(node["kind"], node["id"]) for node in line["nodes"]] == [("broker", 1), ("controller", 101)]
            assert line["bootstrap"] == line["nodes"][0]["address"]
            assert line["controllers"] == line["nodes"][1]["address"]
            host, port = line["bootstrap"].split(":")
            socket.create_connection((host, int(port)), timeout=PATIENCE).close()
            topic = NewTopic("orders", 1, config={"preallocate": "true"})
            admin = AdminClient({"bootstrap.servers": line["bootstrap"]})
            admin.create_topics([topic])["orders"].result(timeout=PATIENCE)
            wait_for((tmp_path / "stderr").read_text, "the screen has the warning")
            log = tmp_path / "lake-data/controller-101/log.jsonl"
            wait_for(lambda: "config_without_effect" in log.read_text(), "the log has it, too")
            assert all(map(is_alive, pids))
            up.kill()
            assert stdout.read() == b""
        wait_for(lambda: not any(map(is_alive, pids)), "the nodes are gone")
    warning = "segments grow as they are written"
    assert (tmp_path / "stderr").read_text() == f"warning: preallocate of topic orders has no effect: {warning}\n"
    lines = [json.loads(one) for one in log.read_text().splitlines()]
    (logged,) = [one for one in lines if one["event"] == "config_without_effect"]
    assert (logged["resource"], logged["config"], logged["why"]) == (
        "topic orders", "preallocate", warning,
    )  # fmt: skip
    assert (tmp_path / "lake-data" / "broker-1" / "logs" / "meta.properties").exists()


class Screen:
    """A terminal of 110 × 36 cells with a command on it, and all that it was sent."""

    def __init__(self, *words: object) -> None:
        self._main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 110, 0, 0))
        variables = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
        kraftlake = [sys.executable, "-m", "kraftlake", *map(str, words)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_TERMINAL, *kraftlake], stdin=child, stdout=child, stderr=child,
            start_new_session=True, env={**variables, "TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(child)
        os.set_blocking(self._main, False)
        self.received = ""

    def shows(self, pattern: str) -> re.Match[str] | None:
        """The last place of a pattern in what was sent so far."""
        try:
            while piece := os.read(self._main, 65536):
                self.received += ANSI.sub("", piece.decode(errors="replace"))
        except (BlockingIOError, OSError):
            pass
        return max(re.finditer(pattern, self.received), key=re.Match.start, default=None)

    def press_ctrl_c(self) -> None:
        os.write(self._main, b"\x03")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._main)


def test_a_terminal_shows_the_nodes_and_ctrl_c_ends_them(tmp_path: Path) -> None:
    with closing(Screen("cluster", "up", tmp_path / "lake", *ONE_EACH[:1], "2", *ONE_EACH[2:])) as screen:
        row = r"{} +127\.0\.0\.1:\d+ +{}.* (\d+)\s"
        wait_for(lambda: screen.shows(row.format("broker 1", "up")), "a broker is up")
        second = wait_for(lambda: screen.shows(row.format("broker 2", "up")), "the other is up")
        wait_for(lambda: screen.shows(row.format("controller 101", "active")), "the controller is active")
        wait_for(lambda: screen.shows(r"led by controller 101 in epoch \d"), "it leads")
        wait_for(lambda: screen.shows("broker 1 is unfenced"), "the log shows the broker")
        os.kill(int(second[1]), signal.SIGKILL)
        sentence = r"broker 2 is down \(killed by SIGKILL\) and is not started again; the others go on"
        wait_for(lambda: screen.shows(sentence), "the dead broker is reported")
        wait_for(lambda: screen.shows(r"broker 2 +\S+ +down, killed by SIGKILL"), "its row says so")
        screen.press_ctrl_c()
        assert wait_for(lambda: (screen.shows("$"), screen.process.poll() is not None)[1], "it has ended")
        assert screen.process.returncode == 0
        wait_for(lambda: screen.shows(r"broker 1 +\S+ +left"), "the broker has left")
        wait_for(lambda: screen.shows(r"controller 101 +\S+ +left"), "the controller has left")


def test_a_node_that_cannot_start_ends_the_command(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        result = run("cluster", "up", tmp_path / "lake", *ONE_EACH, "--port", port, code=1)
    errors = result.stderr
    assert result.stdout.startswith(f"starting 2 nodes of the lake {tmp_path / 'lake'}; their logs are in ")
    assert f"note: broker 1: error: 127.0.0.1:{port} can't be listened on" in errors
    assert "broker 1 has ended before the cluster was up: exit code 1" in errors
    log = tmp_path / "lake-data" / "broker-1" / "log.jsonl"
    assert str(log) in errors
    assert f"127.0.0.1:{port} can't be listened on" in log.read_text()


def test_what_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "imported", "MkU3OEVBNTcwNTJENDM2Qg")
    assert "imported lake" in fault("cluster", "up", tmp_path / "imported")
    assert "--data is needed" in run("cluster", "up", "s3://bucket/lake", code=2).stderr
    assert "65535" in fault("cluster", "up", tmp_path / "lake", "--port", "65535", code=2)
    assert "num.partitions" in fault("cluster", "up", tmp_path / "lake", "--override", "num.partitions=none", code=2)
    (tmp_path / "settings").write_text("no.such.setting=1\nnum.partitions=none\n")
    options = ("--config", tmp_path / "settings", "--override", "num.partitions=2")
    errors = run("cluster", "up", tmp_path / "imported", *options, code=1).stderr
    assert "no.such.setting has no effect: Kafka has no such setting" in errors
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("words", [("cluster",), ("cluster", "up", "--help")])
def test_help_says_what_it_does(words: tuple[str, ...]) -> None:
    code = 0 if "--help" in words else 2
    result = run(*words, code=code)
    assert "cluster up cluster" in result.stdout + result.stderr
