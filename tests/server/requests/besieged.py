"""A listener in a process of its own, clients who try to get in, and what others wait for meanwhile.

python -m tests.server.requests.besieged PROTOCOL    # serves until stdin ends; prints its port
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from kraftlake.protocol.error_code import ErrorCode
from tests.certificates import authority, issued
from tests.server.requests.login_wire import LoginClient, listening, security, upsertion, users

ROOT = Path(__file__).resolve().parents[3]


def serve(protocol: str) -> None:
    """Listen, with the user bob and the certificate in the folder of the environment's SIEGE."""
    keys = {}
    if protocol.endswith("SSL"):
        folder = Path(os.environ["SIEGE"])
        keys = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(folder / "node.pem")}
    known, _ = users(upsertion("bob", "secret"))
    with listening(security(protocol, **keys, connection_failed_authentication_delay_ms="100"), known) as listener:
        print(listener.port, flush=True)
        sys.stdin.read()


@attrs.define
class Besieged:
    """The listener's process, and how to get in; `authority` is the file of who signed its certificate."""

    port: int
    pid: int
    authority: Path | None
    context: ssl.SSLContext | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        if self.authority is not None:
            self.context = ssl.create_default_context(cafile=str(self.authority))

    def client(self, host: str = "127.0.0.1") -> LoginClient:
        """A client that has connected from an address on loopback, over TLS where the listener has it."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=120, source_address=(host, 0))
        if self.context is None:
            return LoginClient(self.port, connection=plain)
        return LoginClient(self.port, connection=self.context.wrap_socket(plain, server_hostname="127.0.0.1"))

    def half_open(self, count: int) -> list[socket.socket]:
        """Connections from a few addresses that begin a handshake or a login, and leave it at that."""
        begun = []
        for number in range(count):
            one = socket.create_connection(
                ("127.0.0.1", self.port), timeout=120, source_address=(f"127.0.1.{number % 5 + 1}", 0)
            )
            one.sendall(b"\0\0\x10" if self.context is None else bytes.fromhex("160301010001"))
            begun.append(one)
        return begun

    def wrong_passwords(self, count: int, host: str) -> int:
        """Log in by wrong passwords, one after the other; returns how often the listener refused one in words."""
        refused = 0
        for number in range(count):
            with suppress(OSError, EOFError), self.client(host) as client:
                answer = client.log_in("SCRAM-SHA-256", ("bob", "nobody")[number % 2], "wrong")
                refused += answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        return refused

    @property
    def memory_mb(self) -> float:
        """The resident memory of the process."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    @contextmanager
    def pinged(self) -> Iterator[list[float]]:
        """The seconds of the exchanges of a client that has logged in, gathered until the end."""
        taken: list[float] = []
        done = threading.Event()

        def ping() -> None:
            with self.client("127.0.0.9") as client:
                assert client.log_in("SCRAM-SHA-256", "bob", "secret").error_code == 0
                while not done.is_set():
                    begun = time.perf_counter()
                    assert client.who() == "User:bob"
                    taken.append(time.perf_counter() - begun)
                    time.sleep(0.002)

        with ThreadPoolExecutor(1) as pool:
            pinging = pool.submit(ping)
            while not taken and not pinging.done():
                time.sleep(0.01)
            try:
                yield taken
            finally:
                done.set()
            pinging.result(timeout=60)


@contextmanager
def besieged(protocol: str, folder: Path) -> Iterator[Besieged]:
    """A listener for a protocol."""
    ca = authority()
    node = issued(ca, "node")
    (folder / "node.pem").write_text(node.key_pem() + node.pem)
    command = [sys.executable, "-m", "tests.server.requests.besieged", protocol]
    environment = {**os.environ, "SIEGE": str(folder)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        port = int(process.stdout.readline())
        (folder / "ca.pem").write_text(ca.pem)
        yield Besieged(port=port, pid=process.pid, authority=folder / "ca.pem" if protocol.endswith("SSL") else None)
        process.stdin.close()


if __name__ == "__main__":
    serve(sys.argv[1])
