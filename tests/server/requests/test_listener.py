"""The listener of nodes that answer requests, on real sockets."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from queue import SimpleQueue
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.server.requests.client_connection import ClientConnection
from kraftlake.server.requests.dispatcher import Dispatcher, Peer, Respond
from kraftlake.server.requests.frame_buffer import LENGTH
from kraftlake.server.requests.listener import RequestListener, bound_socket
from kraftlake.server.requests.listener_limits import ListenerLimits
from kraftlake.server.requests.request_queue import Handle
from tests.protocol.fake_nodes import frame, receive, receive_frame
from tests.server.broker.test_refusals import framed
from tests.waiting import PATIENCE, unless_paused, wait_for

API_VERSIONS = frame(framed("api_versions", 3, b"\1\1\0", flexible=True))
LARGE = 16 << 20
"""More than the system's own buffers of a connection hold."""


def echo(data: bytes, peer: Peer, respond: Respond) -> None:
    respond(data)


@contextmanager
def listening(handle: Handle, **limits: int) -> Iterator[RequestListener]:
    listener = RequestListener("PLAINTEXT", "127.0.0.1", 0, handle, limits=ListenerLimits(**limits))
    listener.start()
    with closing(listener):
        yield listener


@contextmanager
def connected(listener: RequestListener) -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE)) as connection:
        yield connection


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def answers(connection: socket.socket, data: bytes = b"are you there?") -> bool:
    connection.sendall(frame(data))
    return receive_frame(connection) == data


class Held:
    """Keeps requests until the test answers them."""

    def __init__(self) -> None:
        self.requests: SimpleQueue[tuple[bytes, Respond]] = SimpleQueue()

    def handle(self, data: bytes, peer: Peer, respond: Respond) -> None:
        self.requests.put((data, respond))

    def take(self) -> tuple[bytes, Respond]:
        return self.requests.get(timeout=PATIENCE)


def test_requests_that_are_sent_ahead_are_answered_one_after_the_other() -> None:
    sent = [Random(number).randbytes(number * number + 1) for number in range(200)]
    at_work, most = set[int](), list[int]()

    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        at_work.add(id(respond))
        most.append(len(at_work))

        def later() -> None:
            at_work.clear()
            respond(data)

        pool.submit(later)

    with ThreadPoolExecutor(4) as pool, listening(handle) as listener, connected(listener) as client:
        sender = threading.Thread(target=client.sendall, args=[b"".join(map(frame, sent))])
        sender.start()
        assert [receive_frame(client) for _ in sent] == sent
        sender.join()
    assert max(most) == 1


def test_a_handler_learns_who_sends() -> None:
    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        respond(f"{peer.listener} {peer.host} {peer.principal}".encode())

    with listening(handle) as listener, connected(listener) as client:
        client.sendall(frame(b""))
        assert receive_frame(client) == b"PLAINTEXT 127.0.0.1 User:ANONYMOUS"


def test_connections_do_not_wait_for_each_other() -> None:
    held = Held()
    with listening(held.handle, num_io_threads=1) as listener, connected(listener) as one, connected(listener) as other:
        one.sendall(frame(b"one") + frame(b"next"))
        first, answer = held.take()
        assert first == b"one"
        other.sendall(frame(b"other"))
        data, respond = held.take()
        respond(data)
        assert receive_frame(other) == b"other"
        answer(b"done")
        assert receive_frame(one) == b"done"
        assert held.take()[0] == b"next"


def test_the_first_answer_counts_from_whatever_thread() -> None:
    held = Held()
    with listening(held.handle) as listener, connected(listener) as client:
        client.sendall(frame(b"1"))
        _, respond = held.take()
        answered = threading.Barrier(8)

        def answer() -> None:
            answered.wait()
            respond(b"once")

        threads = [threading.Thread(target=answer) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert receive_frame(client) == b"once"
        client.sendall(frame(b"2"))
        _, second = held.take()
        respond(b"again")
        respond(None)
        second(b"twice")
        assert receive_frame(client) == b"twice"


def test_nothing_is_sent_where_no_answer_is_wanted_and_none_ends_the_connection() -> None:
    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        respond({b"silence": b"", b"end": None}.get(data, data))

    with listening(handle) as listener, connected(listener) as client:
        client.sendall(frame(b"silence") + frame(b"said") + frame(b"end") + frame(b"never"))
        assert receive_frame(client) == b"said"
        assert is_closed(client)


def test_a_fault_of_a_handler_ends_its_connection_alone(capfd: pytest.CaptureFixture[str]) -> None:
    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        if data == b"fail":
            raise RuntimeError("not foreseen")
        respond(data)

    with capture_logs() as logs, listening(handle, num_io_threads=1) as listener, connected(listener) as other:
        with connected(listener) as client:
            client.sendall(frame(b"fail"))
            assert is_closed(client)
        assert answers(other)
    assert [one["cause"] for one in logs] == ["RuntimeError('not foreseen')"]
    assert "Traceback" not in capfd.readouterr().err


@pytest.fixture(scope="module")
def served() -> Iterator[RequestListener]:
    with listening(Dispatcher({}, on_fault=lambda *_: None).handle, socket_request_max_bytes=1 << 20) as listener:
        yield listener


JUNK = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=60).map(frame),
    st.integers(min_value=-(2**31), max_value=2**31 - 1).map(LENGTH.pack),
    st.builds(lambda end: API_VERSIONS[:end], st.integers(min_value=0, max_value=len(API_VERSIONS))),
    st.builds(
        lambda at, byte: API_VERSIONS[:at] + bytes([byte]) + API_VERSIONS[at + 1 :],
        st.integers(min_value=0, max_value=len(API_VERSIONS) - 1),
        st.integers(min_value=0, max_value=255),
    ),
)


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(JUNK, max_size=4))
def test_what_is_no_request_ends_its_connection_alone(served: RequestListener, pieces: list[bytes]) -> None:
    with capture_logs(), connected(served) as stranger, connected(served) as other:
        with suppress(ConnectionError):
            for piece in pieces:
                stranger.sendall(piece)
            with suppress(OSError):  # it is closed already
                stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(1 << 16):
                pass  # answers to what happened to be requests
        other.sendall(API_VERSIONS)
        assert receive_frame(other)
    wait_for(lambda: served.buffered_bytes == 0)


@pytest.mark.parametrize("size", [-1, (1 << 20) + 1, 2**31 - 1])
def test_a_length_that_none_has_ends_the_connection_at_once(served: RequestListener, size: int) -> None:
    with capture_logs() as logs, connected(served) as stranger:
        stranger.sendall(LENGTH.pack(size))
        assert is_closed(stranger)
    assert [one["cause"] for one in logs] == [f"a message of {size} bytes"]


def test_an_announced_frame_holds_what_has_arrived() -> None:
    with listening(echo) as listener, connected(listener) as stranger, connected(listener) as other:
        stranger.sendall(LENGTH.pack(100 << 20) + b"abc")
        wait_for(lambda: listener.buffered_bytes == 7)
        assert answers(other)
    with listening(echo) as listener:
        with connected(listener) as stranger:
            stranger.sendall(LENGTH.pack(100 << 20) + b"abc")
            wait_for(lambda: listener.buffered_bytes == 7)
        wait_for(lambda: listener.buffered_bytes == 0)


def test_many_half_requests_cost_the_oldest_its_connection() -> None:
    with listening(echo, buffered_max_bytes=1_000_000) as listener, ExitStack() as stack:
        clients = [stack.enter_context(connected(listener)) for _ in range(4)]
        for number, client in enumerate(clients):
            client.sendall(LENGTH.pack(400_000) + bytes(300_000))
            if number < 3:
                wait_for(lambda held=300_004 * (number + 1): listener.buffered_bytes == held)  # type: ignore[misc]
        assert is_closed(clients[0])
        for client in clients[1:]:
            client.sendall(bytes(100_000))
            assert receive_frame(client) == bytes(400_000)


@unless_paused(0.3)
def test_an_idle_client_is_closed_and_so_is_one_that_sends_a_byte_now_and_then() -> None:
    with listening(echo, connections_max_idle_ms=1000) as listener, ExitStack() as stack:
        idle, slow, lively = (stack.enter_context(connected(listener)) for _ in range(3))
        wait_for(lambda: listener.connections == 3)
        ended = threading.Event()

        def send_slowly() -> None:
            with suppress(OSError):
                slow.sendall(LENGTH.pack(1000))
                while not ended.wait(0.02):
                    slow.sendall(b"x")

        sender = threading.Thread(target=send_slowly)
        sender.start()
        begin = time.monotonic()
        while listener.connections > 1:
            assert answers(lively)
            assert time.monotonic() < begin + PATIENCE
            time.sleep(0.01)
        assert is_closed(idle)
        assert is_closed(slow)
        ended.set()
        sender.join()
        assert answers(lively)


@unless_paused(0.02)
def test_a_client_that_waits_for_its_answer_is_not_idle() -> None:
    held = Held()
    with listening(held.handle, connections_max_idle_ms=50) as listener, connected(listener) as client:
        client.sendall(frame(b"a long poll"))
        _, respond = held.requests.get(timeout=5)
        with connected(listener) as idle:
            assert is_closed(idle)
        time.sleep(0.2)  # several times the limit
        respond(b"at last")
        assert receive_frame(client) == b"at last"


@unless_paused(0.1)
def test_a_client_that_reads_nothing_holds_one_answer_and_is_closed() -> None:
    handled: list[bytes] = []

    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        handled.append(data)
        respond(bytes(LARGE) if data == b"large" else data)

    with listening(handle, connections_max_idle_ms=400) as listener, connected(listener) as other:
        with connected(listener) as slow:
            slow.sendall(frame(b"large") * 5)
            wait_for(lambda: listener.buffered_bytes > LARGE / 4)
            assert listener.buffered_bytes < LARGE + 100
            while listener.connections > 1:
                assert answers(other)
            assert handled.count(b"large") == 1
        wait_for(lambda: listener.buffered_bytes == 0)


@unless_paused(0.3)
def test_a_client_that_reads_slowly_gets_all() -> None:
    with listening(echo, connections_max_idle_ms=1000) as listener, connected(listener) as slow:
        threading.Thread(target=slow.sendall, args=[frame(bytes(LARGE)) * 2], daemon=True).start()
        begin = time.monotonic()
        for _ in range(2):
            (size,) = LENGTH.unpack(receive(slow, 4))
            while size:
                size -= len(receive(slow, min(size, LARGE // 8)))
                time.sleep(0.1)
        assert time.monotonic() > begin + 1


def test_slow_readers_together_hold_what_the_limit_allows() -> None:
    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        respond(bytes(LARGE))

    with listening(handle, buffered_max_bytes=2 * LARGE) as listener, ExitStack() as stack:
        clients = [stack.enter_context(connected(listener)) for _ in range(6)]
        wait_for(lambda: listener.connections == 6)
        for client in clients[:5]:
            client.sendall(frame(b"large"))
        wait_for(lambda: listener.connections < 6)
        clients[-1].sendall(frame(b"large"))
        assert receive_frame(clients[-1]) == bytes(LARGE)
        assert listener.buffered_bytes <= 2 * LARGE


def test_more_connections_than_allowed_wait() -> None:
    with listening(echo, max_connections=2) as listener, ExitStack() as stack:
        one, two, three = (stack.enter_context(connected(listener)) for _ in range(3))
        assert answers(one)
        assert answers(two)
        three.sendall(frame(b"now"))
        three.settimeout(0.1)
        with pytest.raises(TimeoutError):
            three.recv(1)
        one.close()
        three.settimeout(PATIENCE)
        assert receive_frame(three) == b"now"
        two.close()
        with connected(listener) as four:
            assert answers(four)


WITH_FEW_FILES = """
import resource, sys
from kraftlake.server.requests.listener import RequestListener, bound_socket
resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
listener = RequestListener("x", "127.0.0.1", 0, lambda data, peer, respond: respond(data))
listener.start()
print(listener.port, flush=True)
sys.stdin.read()
listener.close()
"""


def test_a_process_that_has_no_file_descriptor_left_accepts_again_later() -> None:
    command = [sys.executable, "-c", WITH_FEW_FILES]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    begin = time.monotonic()
    with subprocess.Popen(command, **pipes) as process, ExitStack() as stack:  # type: ignore[call-overload]
        where = ("127.0.0.1", int(process.stdout.readline()))
        clients = [stack.enter_context(socket.create_connection(where, timeout=PATIENCE)) for _ in range(40)]
        assert answers(clients[0])
        clients[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            answers(clients[-1])
        for client in clients[:20]:
            client.close()
        clients[-1].settimeout(PATIENCE)
        assert receive_frame(clients[-1])
        _, stderr = process.communicate()
    assert b"Traceback" not in stderr
    assert stderr.count(b"\n") < 5 + (time.monotonic() - begin), "not more than a line a second"


def test_more_connections_of_one_address_than_allowed_are_closed() -> None:
    with listening(echo, max_connections_per_ip=2) as listener, connected(listener) as one, connected(listener) as two:
        assert answers(one)
        assert answers(two)
        with connected(listener) as three:
            assert is_closed(three)
        two.close()
        wait_for(lambda: listener.connections == 1)
        with connected(listener) as four:
            assert answers(four)


@pytest.mark.parametrize("limits", [{"queued_max_requests": 2}, {"queued_max_request_bytes": 3 << 20}])
def test_while_too_many_requests_wait_no_connection_is_read_and_none_fails(limits: dict[str, int]) -> None:
    go, at_work = threading.Event(), SimpleQueue[bytes]()

    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        at_work.put(data)
        assert go.wait(PATIENCE)
        respond(data[:1])

    with listening(handle, num_io_threads=2, **limits) as listener, ExitStack() as stack:
        clients = [stack.enter_context(connected(listener)) for _ in range(12)]
        for number, client in enumerate(clients[:4]):
            client.sendall(frame(bytes([number]) * (1 << 20)))
        for _ in range(2):
            at_work.get(timeout=PATIENCE)
        senders = [
            threading.Thread(target=client.sendall, args=[frame(bytes([number]) * LARGE)])
            for number, client in enumerate(clients[4:], 4)
        ]
        for sender in senders:
            sender.start()
        time.sleep(0.2)  # time enough for all of it, were it read
        assert listener.buffered_bytes < LARGE / 2
        assert all(sender.is_alive() for sender in senders)
        go.set()
        assert [receive_frame(client) for client in clients] == [bytes([number]) for number in range(12)]
        for sender in senders:
            sender.join()
        wait_for(lambda: listener.buffered_bytes == 0)


def many_topics(count: int) -> bytes:
    """A Metadata request for topics without a name, in two bytes each."""
    return REQUEST_HEADER.pack(3, 0, 7, -1) + count.to_bytes(4, "big") + b"\0\0" * count


def test_requests_of_very_many_elements_are_handled_one_at_a_time_and_keep_no_thread_from_others() -> None:
    go, begun, at_work = threading.Event(), threading.Semaphore(0), list[int]()
    most: list[int] = []

    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        if len(data) > 1000:
            at_work.append(1)
            most.append(len(at_work))
            begun.release()
            assert go.wait(PATIENCE)
            at_work.pop()
        respond(data[:4])

    large = many_topics(100_001)
    with listening(handle, num_io_threads=2) as listener, ExitStack() as stack:
        clients = [stack.enter_context(connected(listener)) for _ in range(5)]
        for client in clients[:4]:
            client.sendall(frame(large))
        assert begun.acquire(timeout=PATIENCE)
        clients[4].sendall(frame(many_topics(1)))
        assert receive_frame(clients[4]) == large[:4], "it did not wait"
        go.set()
        assert [receive_frame(client) for client in clients[:4]] == [large[:4]] * 4
    assert most == [1] * 4


def test_a_thousand_idle_connections_do_not_slow_others() -> None:
    with listening(echo) as listener, ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(connected(listener))
        wait_for(lambda: listener.connections == 1000)
        used = time.process_time()
        with connected(listener) as client:
            for _ in range(200):
                assert answers(client)
        assert time.process_time() - used < 5


@unless_paused(0.3)
def test_the_end_is_quick_and_sends_what_was_answered() -> None:
    held, before = Held(), {*threading.enumerate()}
    with ExitStack() as stack:
        listener = stack.enter_context(listening(held.handle))
        idle, pending, half, reader = (stack.enter_context(connected(listener)) for _ in range(4))
        pending.sendall(frame(b"pending"))
        _, late = held.take()
        half.sendall(frame(b"half")[:6])
        reader.sendall(frame(b"large"))
        _, respond = held.take()
        respond(bytes(LARGE))
        begin = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            read = pool.submit(receive_frame, reader)
            listener.close()
            assert read.result(PATIENCE) == bytes(LARGE)
        assert time.monotonic() - begin < 2
        assert all(map(is_closed, (idle, pending, half, reader)))
        late(b"too late")
        with pytest.raises(ConnectionRefusedError):
            stack.enter_context(connected(listener))
    assert {*threading.enumerate()} <= before


def test_a_client_that_comes_with_the_end_does_not_keep_it_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ClientConnection.connection_made

    def end_meanwhile(connection: ClientConnection, transport: asyncio.BaseTransport) -> None:
        made(connection, transport)
        running._end()

    with ExitStack() as stack:
        listener = stack.enter_context(listening(echo))
        running = listener._run
        monkeypatch.setattr(ClientConnection, "connection_made", end_meanwhile)
        client = stack.enter_context(connected(listener))
        assert is_closed(client)
        running._thread.join(PATIENCE)
        assert not running._thread.is_alive()


@unless_paused(0.3)
def test_neither_a_client_that_reads_nothing_nor_a_handler_at_work_keeps_it_from_ending() -> None:
    go, at_work = threading.Event(), threading.Event()

    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        if data == b"large":
            respond(bytes(LARGE))
        else:
            at_work.set()
            go.wait(PATIENCE)

    with ExitStack() as stack:
        listener = stack.enter_context(listening(handle))
        slow, other = (stack.enter_context(connected(listener)) for _ in range(2))
        slow.sendall(frame(b"large"))
        wait_for(lambda: listener.buffered_bytes > 0)
        other.sendall(frame(b"work"))
        assert at_work.wait(PATIENCE)
        begin = time.monotonic()
        listener.close()
        assert time.monotonic() - begin < 4
        go.set()


def test_a_port_that_is_taken_is_named() -> None:
    with listening(echo) as listener:
        other = RequestListener("PLAINTEXT", "127.0.0.1", listener.port, echo)
        with pytest.raises(EnvironmentFaultError, match=f"127.0.0.1:{listener.port} can't be listened on"):
            other.start()
        other.close()


def test_a_name_that_no_host_can_have_is_named() -> None:
    with pytest.raises(EnvironmentFaultError, match=r"^a\.\.b:9092 can't be listened on: "):
        RequestListener("PLAINTEXT", "a..b", 9092, echo).start()


def test_connections_have_the_buffers_of_the_limits() -> None:
    limits = ListenerLimits(socket_send_buffer_bytes=16_384, socket_receive_buffer_bytes=32_768)
    with (
        closing(bound_socket("127.0.0.1", 0, limits)) as bound,
        closing(socket.create_connection(bound.getsockname(), timeout=20)),
    ):
        bound.setblocking(True)
        with closing(bound.accept()[0]) as taken:
            sizes = [taken.getsockopt(socket.SOL_SOCKET, one) for one in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
    assert sizes in ([16_384, 32_768], [32_768, 65_536])  # Linux keeps as much again for itself


@unless_paused(0.1)
def test_a_muted_client_is_not_read_and_holds_no_thread() -> None:
    handled = SimpleQueue[float]()

    def handle(data: bytes, peer: Peer, respond: Respond) -> None:
        handled.put(time.monotonic())
        if data == b"mute":
            assert peer.mute is not None
            peer.mute(400)
        respond(data)

    with listening(handle, num_io_threads=1) as listener, connected(listener) as client, connected(listener) as other:
        client.sendall(frame(b"mute") + frame(b"ahead"))
        assert receive_frame(client) == b"mute"
        client.sendall(frame(b"later"))
        assert answers(other)
        muted, served = handled.get(), handled.get()
        assert [receive_frame(client) for _ in range(2)] == [b"ahead", b"later"]
        assert served - muted < 0.4 <= handled.get() - muted
