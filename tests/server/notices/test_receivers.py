"""What a URL and a command get, and what is said where they don't take it."""

from __future__ import annotations

import base64
import json
import shlex
import sys
import threading
import time
from pathlib import Path

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.free_ports import free_ports
from kraftlake.server.notices import receivers
from kraftlake.server.notices.receivers import CommandReceiver, NotDeliveredError, UrlReceiver
from tests.at_least_one import at_least_one
from tests.server.notices.url_server import serving
from tests.waiting import wait_for

NOTICE = {"cluster": "east", "appeared": [{"check": "offline", "things": ["$(touch hacked); `x`\n-0"]}], "cleared": []}
STOP = threading.Event()


def python(code: str, *words: object) -> str:
    return shlex.join([sys.executable, "-c", code, *map(str, words)])


def test_a_url_gets_the_notice_as_json_with_its_query_and_login() -> None:
    with serving(204) as server:
        UrlReceiver(f"http://me:p%40ss@127.0.0.1:{server.port}/hook/s3cret?key=1").deliver(NOTICE, STOP)
    assert server.taken == [NOTICE]
    assert server.paths == ["/hook/s3cret?key=1"]
    assert server.headers[0]["Authorization"] == f"Basic {base64.b64encode(b'me:p@ss').decode()}"


@pytest.mark.parametrize("status", [302, 307, 400, 404, 500, 503])
def test_another_answer_is_no_receipt_and_its_sentence_has_no_secret(status: int) -> None:
    with serving(status) as server, serving(200) as other:
        server.location = f"http://127.0.0.1:{other.port}/"
        with pytest.raises(NotDeliveredError) as caught:
            UrlReceiver(f"http://me:pass@127.0.0.1:{server.port}/s3cret?key=1").deliver(NOTICE, STOP)
        assert other.asked == 0, "no redirect is followed"
    said = str(caught.value)
    assert said.startswith(f"http://127.0.0.1:{server.port} answers {status}")
    for secret in at_least_one(["me", "pass", "s3cret", "key"]):
        assert secret not in said.removeprefix("http://").replace("redirect: name the URL", "")


def test_a_host_that_is_not_there_is_named() -> None:
    (port,) = free_ports(1)
    with pytest.raises(NotDeliveredError, match=f"^http://127.0.0.1:{port} can't be reached: Connection refused.$"):
        UrlReceiver(f"http://127.0.0.1:{port}/s3cret").deliver(NOTICE, STOP)


@pytest.mark.parametrize(
    "url", ["ftp://h/s3cret", "s3cret", "http:///s3cret", "http://h:x/s3cret", "http://h/s3cret\n"]
)
def test_a_url_that_can_not_be_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(UsageError, match=r"^The URL of --notify ") as caught:
        UrlReceiver(url)
    assert "s3cret" not in str(caught.value)


def test_a_command_gets_the_notice_on_its_input_and_no_shell_sees_it(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    CommandReceiver(python(code, tmp_path / "$HOME; taken")).deliver(NOTICE, STOP)
    assert json.loads((tmp_path / "$HOME; taken").read_text()) == NOTICE
    assert [path.name for path in tmp_path.iterdir()] == ["$HOME; taken"]


def test_a_command_that_fails_or_is_missing_is_no_receipt() -> None:
    with pytest.raises(NotDeliveredError, match=r"ended with exit code 3\."):
        CommandReceiver(python("raise SystemExit(3)")).deliver(NOTICE, STOP)
    with pytest.raises(NotDeliveredError, match=r"^/no/where can't be run: No such file or directory\.$"):
        CommandReceiver("/no/where").deliver(NOTICE, STOP)


def test_a_command_that_reads_nothing_of_a_long_notice_is_no_fault() -> None:
    CommandReceiver(python("pass")).deliver({**NOTICE, "more": "x" * 1_000_000}, STOP)


def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    words = ["sh", "-c", 'sleep 600 & echo $! > "$0"; wait', str(tmp_path / "pid")]
    command = CommandReceiver(shlex.join(words), seconds=3)
    with pytest.raises(NotDeliveredError, match=r"did not end within 3 seconds and was killed\."):
        command.deliver(NOTICE, STOP)
    if (tmp_path / "pid").exists():
        pid = int((tmp_path / "pid").read_text())
        wait_for(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


def test_a_command_is_cut_short_when_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receivers, "_STOP_SECONDS", 0.1)
    stop = threading.Event()
    stop.set()
    begun = time.monotonic()
    with pytest.raises(NotDeliveredError):
        CommandReceiver(python("import time; time.sleep(600)"), seconds=600).deliver(NOTICE, stop)
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize("command", ["", "  ", "'unclosed"])
def test_a_command_that_can_not_be_is_refused(command: str) -> None:
    with pytest.raises(UsageError, match=r"^The command of --exec "):
        CommandReceiver(command)
