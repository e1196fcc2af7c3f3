"""An HTTP server that takes notices, or refuses them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class UrlServer:
    """Answers each POST with the next of `answers`, the last one again and again; `taken` are those with 2xx."""

    def __init__(self, *answers: int) -> None:
        self.answers = [*answers]
        self.asked = 0
        self.taken: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.location = ""
        self.port = 0

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> int:
        status = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        self.paths.append(path)
        self.headers.append(headers)
        if 200 <= status < 300:
            self.taken.append(json.loads(body))
        return status


@contextmanager
def serving(*answers: int) -> Iterator[UrlServer]:
    made = UrlServer(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(made.answer(self.path, dict(self.headers), body))
            if made.location:
                self.send_header("Location", made.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_port
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)  # which ends that soon
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
