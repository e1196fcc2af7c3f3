"""Delivery: in order, again after failures, on after a new start, and never the end of the thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from structlog.testing import capture_logs

from kraftlake.runtime.backoff import Backoff
from kraftlake.server.notices.notifier import Notifier
from kraftlake.server.notices.outbox import Outbox
from kraftlake.server.notices.receivers import UrlReceiver
from tests.server.notices.test_outbox import FENCED, OFFLINE
from tests.server.notices.url_server import UrlServer, serving
from tests.waiting import wait_for

QUICK = Backoff(base=0.01, cap=0.02)


@contextmanager
def delivering(folder: Path, server: UrlServer) -> Iterator[Notifier]:
    url = f"http://127.0.0.1:{server.port}/s3cret"
    notifier, stop = Notifier(Outbox(folder / "url.json"), UrlReceiver(url), backoff=QUICK), threading.Event()
    thread = threading.Thread(target=notifier.run, args=(stop,))
    thread.start()
    try:
        yield notifier
    finally:
        stop.set()
        notifier.outbox.wake()
        thread.join(60)
        assert not thread.is_alive()


def test_a_url_that_answers_500_for_long_gets_everything_in_order_in_the_end(tmp_path: Path) -> None:
    with capture_logs() as logs, serving(*[500] * 30, 200) as server, delivering(tmp_path, server) as notifier:
        notifier.offer("east", [OFFLINE])
        notifier.offer("west", [FENCED])
        notifier.offer("east", [])
        wait_for(lambda: len(server.taken) == 3)
        assert [(one["cluster"], len(one["appeared"])) for one in server.taken] == [
            ("east", 1),
            ("west", 1),
            ("east", 0),
        ]
        wait_for(lambda: (notifier.delivered, notifier.failures, len(notifier.outbox)) == (3, 30, 0))
    assert {one["event"] for one in logs} == {"notice_failed"}
    assert not [one for one in logs if "s3cret" in str(one)]


def test_what_waits_is_delivered_after_a_new_start(tmp_path: Path) -> None:
    with serving(503) as server, delivering(tmp_path, server) as notifier:
        notifier.offer("east", [OFFLINE])
        wait_for(lambda: server.asked > 1)
    with serving(200) as server, delivering(tmp_path, server) as notifier:
        wait_for(lambda: len(server.taken) == 1)
        assert server.taken[0]["appeared"] == [OFFLINE]
        notifier.offer("east", [OFFLINE])
        notifier.offer("east", [OFFLINE, FENCED])
        wait_for(lambda: len(server.taken) == 2)
        assert server.taken[1]["appeared"] == [FENCED]


def test_a_queue_that_can_not_be_written_is_logged_and_tried_with_the_next_offer(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    with serving(200) as server, delivering(tmp_path / "queue", server) as notifier:
        (tmp_path / "queue").rmdir()
        with capture_logs() as logs:
            notifier.offer("east", [OFFLINE])
        assert [one["event"] for one in logs] == ["notice_not_kept"]
        (tmp_path / "queue").mkdir()
        notifier.offer("east", [OFFLINE])
        wait_for(lambda: len(server.taken) == 1)
