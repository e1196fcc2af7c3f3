"""The listener of a broker that serves nobody."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from kio.serial.errors import SerialError

from kraftlake.protocol import Address
from kraftlake.records.varint import MalformedError
from kraftlake.runtime import EnvironmentFaultError, get_logger
from kraftlake.server.broker.refusals import api_versions, is_of_any_broker, refusal

_LENGTH: Final = struct.Struct(">i")
_LONGEST: Final = 100 * 1024 * 1024
"""socket.request.max.bytes."""
_AT_ONCE: Final = 500
"""The number of connections that are open at a time; more are closed."""
_IDLE_SECONDS: Final = 600.0
"""connections.max.idle.ms."""
_CONNECT_SECONDS: Final = 3.0
_UNREADABLE: Final = (SerialError, ValueError, TypeError, IndexError, OverflowError, struct.error, MalformedError)
_Stream: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class BrokerListener:
    """Answers clients in a thread of its own, from `start` to `close`.

    Clients take any broker of a cluster for the one to ask. What every broker answers alike goes to the first of the
    `neighbours` that can be reached, and its answer back; requests for data are refused, see `refusal`. Where there is
    no neighbour, ApiVersions alone is answered besides. Where none may be asked (`neighbours` returns None), each
    connection is closed at once: clients take a broker that goes away for a fault that passes. A request that is for
    controllers instead, as `controllers` says, goes to the first of them that can be reached.
    """

    def __init__(
        self,
        host: str,
        port: int,
        neighbours: Callable[[], Sequence[Address] | None],
        controllers: Callable[[bytes], Sequence[Address] | None] = lambda _: None,
    ) -> None:
        self._where = (host, port)
        self._neighbours = neighbours
        self._controllers = controllers
        self._open = 0
        self._loop = asyncio.new_event_loop()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="broker-listener", daemon=True)
        self._log = get_logger(__name__)

    @property
    def port(self) -> int:
        """The port that is listened on, once started."""
        assert self._socket is not None, "it was started"
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Begin to listen. Raises EnvironmentFaultError where that is not possible."""
        host, port = self._where
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._socket = socket.create_server(address[:2], family=family, backlog=50)
        except OSError as fault:
            raise EnvironmentFaultError(
                f"{host}:{port} can't be listened on: {fault.strerror or fault}. Give an address of this machine and a "
                f"free port with --listener."
            ) from None
        self._thread.start()

    def close(self) -> None:
        """Close all connections, and end the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(self._talk, sock=self._socket))
        loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        upstream: _Stream | None = None
        try:
            neighbours = self._neighbours()
            if neighbours is not None and self._open <= _AT_ONCE:
                upstream = await _connected(neighbours)
                async with asyncio.timeout(None) as limit:
                    while True:
                        limit.reschedule(self._loop.time() + _IDLE_SECONDS)
                        answer = await self._answer(await _read_frame(reader), upstream)
                        if answer is None:
                            break
                        writer.write(_LENGTH.pack(len(answer)) + answer)
                        await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client or its neighbour went away, or the client is sent away
        except _UNREADABLE as fault:
            peer = writer.get_extra_info("peername")
            self._log.warning("unreadable_request", peer=str(peer), cause=f"{type(fault).__name__}: {fault}")
        finally:
            self._open -= 1
            for one in (writer, *(() if upstream is None else (upstream[1],))):
                with suppress(OSError, RuntimeError):
                    one.close()

    async def _answer(self, frame: bytes, upstream: _Stream | None) -> bytes | None:
        """The answer to a request; None where the connection has to be closed."""
        if not is_of_any_broker(frame):
            return refusal(frame)
        controllers = self._controllers(frame)
        if controllers is not None:
            return await _asked(controllers, frame)
        return api_versions(frame) if upstream is None else await _forwarded(upstream, frame)


async def _asked(addresses: Sequence[Address], frame: bytes) -> bytes | None:
    """The answer of the first of the addresses that can be reached, over a connection of its own."""
    stream = await _connected(addresses)
    if stream is None:
        return None
    try:
        return await _forwarded(stream, frame)
    finally:
        stream[1].close()


async def _forwarded(upstream: _Stream, frame: bytes) -> bytes:
    reader, writer = upstream
    writer.write(_LENGTH.pack(len(frame)) + frame)
    return await _read_frame(reader)


async def _connected(addresses: Sequence[Address]) -> _Stream | None:
    """A connection to the first of the addresses that can be reached."""
    for address in addresses:
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await asyncio.open_connection(address.host, address.port)
    return None


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if not 0 < size <= _LONGEST:
        raise ValueError(f"a message of {size} bytes")
    return await reader.readexactly(size)
