"""What a listener costs: with its handler threads, and that of a broker without clients, with a thread a connection.

    python -m benchmarks.listener [--exchanges N]

Both read by asyncio. They are processes of their own, on loopback, and answer at once, so that what is measured is the
way to the handler and back. In turn, the first turn does not count: the time of one exchange at a time (the request and
the answer are small); megabytes a second of requests and of answers of 1 MiB; what idle connections cost. Besides, an
exchange of ApiVersions by a `Dispatcher`.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.follow import cpu_seconds, memory_mb
from kraftlake.server.broker.broker_listener import BrokerListener
from kraftlake.server.requests.dispatcher import Dispatcher
from kraftlake.server.requests.listener import RequestListener
from tests.protocol.fake_nodes import frame, receive_frame
from tests.server.broker.test_refusals import framed

POOL, THREADS, DISPATCHER = "handler threads", "a thread a connection", "ApiVersions"
SMALL, LARGE = 40, 1 << 20
TURNS = 4
CONNECTIONS, IDLE_SECONDS = 1_000, 5.0
MANY = 50
"""Connections that the listener of a broker without clients is measured with: as many as its backlog has room for."""


def answer(request: bytes) -> bytes:
    """As long as the request wishes, by its last bytes."""
    return bytes(struct.unpack(">i", request[-4:])[0])


def serve(kind: str) -> None:
    if kind == POOL:
        listener = RequestListener("x", "127.0.0.1", 0, lambda data, _, respond: respond(answer(data)))
    elif kind == DISPATCHER:
        listener = RequestListener("x", "127.0.0.1", 0, Dispatcher({}, on_fault=print).handle)
    else:
        listener = BrokerListener("127.0.0.1", 0, list, own=answer)
    listener.start()
    print(listener.port, flush=True)
    sys.stdin.read()
    listener.close()


@contextmanager
def server(kind: str) -> Iterator[tuple[int, int]]:
    """A listener's process and port."""
    command = [sys.executable, "-m", "benchmarks.listener", "--serve", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()


def request(size: int, wanted: int) -> bytes:
    return frame(framed("fetch", 13, bytes(size) + struct.pack(">i", wanted), flexible=True))


def exchange(port: int, sent: bytes, count: int) -> list[float]:
    """Seconds of each exchange."""
    taken = []
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            begin = time.perf_counter()
            client.sendall(sent)
            receive_frame(client)
            taken.append(time.perf_counter() - begin)
    return taken


def idle(pid: int, port: int, count: int) -> str:
    used = memory_mb(pid)[1]
    begin = time.perf_counter()
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    connected = time.perf_counter() - begin
    time.sleep(1)
    more, cpu = memory_mb(pid)[1] - used, cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    cpu = cpu_seconds(pid) - cpu
    for client in clients:
        client.close()
    memory, seconds = 1024 * more / count, int(IDLE_SECONDS)
    return (
        f"{count} idle connections: made in {connected:.2f} s, {memory:.1f} kB each, {cpu:.2f} s of CPU in {seconds} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=4_000)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    small: dict[str, list[float]] = {POOL: [], THREADS: [], DISPATCHER: []}
    rates: dict[str, list[tuple[float, float]]] = {POOL: [], THREADS: []}
    for turn in range(TURNS):
        for kind in small:
            with server(kind) as (_, port):
                asked = frame(framed("api_versions", 3, b"\1\1\0", flexible=True))
                times = exchange(port, asked if kind == DISPATCHER else request(0, SMALL), options.exchanges)
                small[kind] += times if turn else []
                if kind in rates and turn:
                    count = options.exchanges // 20
                    of_requests = sum(exchange(port, request(LARGE, SMALL), count))
                    rates[kind].append((count / of_requests, count / sum(exchange(port, request(0, LARGE), count))))
    for kind, taken in small.items():
        p50, p99 = (1e6 * statistics.quantiles(taken, n=100)[at] for at in (49, 98))
        print(f"{kind:22}  one exchange p50 {p50:4.0f} µs, p99 {p99:4.0f} µs")
    for kind, pairs in rates.items():
        of_requests, of_answers = map(statistics.median, zip(*pairs, strict=True))
        print(f"{kind:22}  requests {of_requests:5.0f} MiB/s, answers {of_answers:5.0f} MiB/s")
    for kind, count in ((POOL, CONNECTIONS), (THREADS, MANY)):
        with server(kind) as (pid, port):
            print(f"{kind:22}  {idle(pid, port, count)}")


if __name__ == "__main__":
    main()
