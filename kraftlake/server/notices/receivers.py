"""The receivers of notices: a URL, or a command on this machine."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shlex
import signal
import ssl
import subprocess
import threading
import time
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from kraftlake.runtime.errors import KraftlakeError, UsageError

_REQUEST_SECONDS: Final = 10.0
COMMAND_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.05


class NotDeliveredError(KraftlakeError):
    """A notice was not taken; the sentence names no secret of its receiver."""


class Receiver(Protocol):
    """Takes a notice, or raises NotDeliveredError."""

    @property
    def name(self) -> str:
        """The receiver in logs, without secrets."""

    def deliver(self, notice: dict[str, Any], stop: threading.Event) -> None:
        """Deliver a notice; cut short once `stop` is set."""


class UrlReceiver:
    """Posts notices as JSON to a URL. Any answer from 200 to 299 is a receipt; redirects are not followed.

    The path, the query and the login of a URL may be secrets, so that logs and errors have its scheme and host alone.
    """

    def __init__(self, url: str) -> None:
        """Check the URL; raises UsageError, which does not show it."""
        try:
            parts = urlsplit(url)
            self._port = parts.port
        except ValueError:
            raise UsageError("The URL of --notify can't be read: give https://HOST/PATH.") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("The URL of --notify has to begin with https:// or http:// and a host.")
        if any(ord(c) <= 32 or ord(c) > 126 for c in url):
            raise UsageError("The URL of --notify has blanks or other characters in it that a URL has to escape.")
        self._parts: SplitResult = parts
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.name = f"{parts.scheme}://{host}" + ("" if self._port is None else f":{self._port}")

    def deliver(self, notice: dict[str, Any], stop: threading.Event) -> None:  # noqa: ARG002 - it ends by its timeout
        """See Receiver."""
        connection = self._connection()
        try:
            target = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
            connection.request("POST", target, json.dumps(notice).encode(), self._headers())
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as fault:
            reason = getattr(fault, "strerror", None) or type(fault).__name__
            raise NotDeliveredError(f"{self.name} can't be reached: {reason}.") from None
        finally:
            connection.close()
        if 300 <= status < 400:
            raise NotDeliveredError(f"{self.name} answers {status}, a redirect: name the URL that it leads to.")
        if not 200 <= status < 300:
            raise NotDeliveredError(f"{self.name} answers {status}.")

    def _connection(self) -> http.client.HTTPConnection:
        host = self._parts.hostname or ""
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, self._port, timeout=_REQUEST_SECONDS, context=context)
        return http.client.HTTPConnection(host, self._port, timeout=_REQUEST_SECONDS)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "kraftlake"}
        if self._parts.username is not None:
            login = f"{unquote(self._parts.username)}:{unquote(self._parts.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        return headers


class CommandReceiver:
    """Runs a command with the notice as JSON on its standard input, without a shell; exit code 0 is a receipt.

    Names in findings are those of topics and hosts, which may be hostile: they are no words of the command. A command
    that takes longer than `seconds` is killed with its process group.
    """

    def __init__(self, command: str, *, seconds: float = COMMAND_SECONDS) -> None:
        """Split a command into words as a shell would; raises UsageError for none."""
        try:
            self._words = shlex.split(command)
        except ValueError as fault:
            raise UsageError(f"The command of --exec can't be split into words: {fault}.") from fault
        if not self._words:
            raise UsageError("The command of --exec is empty: give a program and its words.")
        self._seconds = seconds
        self.name = self._words[0]

    def deliver(self, notice: dict[str, Any], stop: threading.Event) -> None:
        """See Receiver."""
        try:
            process = subprocess.Popen(  # noqa: S603 - the words of the configuration alone
                self._words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except OSError as fault:
            raise NotDeliveredError(f"{self.name} can't be run: {fault.strerror}.") from None
        feeder = threading.Thread(target=_feed, args=(process, json.dumps(notice).encode()), daemon=True)
        feeder.start()
        try:
            code = self._ended(process, stop)
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            feeder.join()
        if code is None:
            raise NotDeliveredError(f"{self.name} did not end within {self._seconds:g} seconds and was killed.")
        if code:
            raise NotDeliveredError(f"{self.name} ended with exit code {code}.")

    def _ended(self, process: subprocess.Popen[bytes], stop: threading.Event) -> int | None:
        """The exit code; None if the command takes too long, or longer than a moment once `stop` is set."""
        until = time.monotonic() + self._seconds
        while time.monotonic() < until:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_LOOK_SECONDS)
            if stop.is_set():
                until = min(until, time.monotonic() + _STOP_SECONDS)
                stop = threading.Event()  # the moment is over once
        return None


def _feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write to the standard input of a command, which may end without reading it."""
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin:
        process.stdin.write(data)
