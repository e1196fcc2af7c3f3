"""Requests to one node, in the newest version that both sides know.

Source: org.apache.kafka.clients.NetworkClient and NodeApiVersions; the schemas are kio's, made of Kafka's own.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i16, i32

from kraftlake.protocol.address import Address
from kraftlake.protocol.connection import Connection, NodeError

CLIENT_ID = "kraftlake"


class NodeClient:
    """A client of one node, for one thread. It closes its connection with itself and after a NodeError."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._correlation_id = 0
        self._versions: dict[int, tuple[int, int]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> Address:
        """The address of the node."""
        return self._connection.address

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, name: str, versions: range, make: Callable[[Any], Any]) -> Any:
        """The response to a request of the API `name` (`describe_quorum`), as kio declares it.

        `versions` are those that the caller understands; `make` gets kio's module of the request in the newest of them
        that the node has, and makes the request. Raises NodeError where there is none, or the node can't be asked.
        """
        if self._versions is None:
            self._versions = self._ask_versions()
        api_key = import_module(f"kio.schema.{name}.v{versions[0]}.request").__dict__[_class_name(name)].__api_key__
        lowest, highest = self._versions.get(api_key, (0, -1))
        common = range(max(lowest, versions.start), min(highest + 1, versions.stop))
        if not common:
            offered = f"only versions {lowest} to {highest}" if highest >= 0 else "nothing"
            raise NodeError(
                f"{self.address} offers {offered} of {_class_name(name, '')} (API {api_key}): is it a node "
                f"of a KRaft cluster?"
            )
        module = f"kio.schema.{name}.v{common[-1]}"
        response = import_module(f"{module}.response").__dict__[_class_name(name, "Response")]
        return self._exchange(make(import_module(f"{module}.request")), response)

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name="kraftlake", client_software_version="0")
        answer = self._exchange(request, ApiVersionsResponse)
        if answer.error_code is not ErrorCode.none:
            raise NodeError(
                f"{self.address} does not tell what it speaks ({answer.error_code.name}): Kafka 2.4 or later is needed."
            )
        return {int(api.api_key): (int(api.min_version), int(api.max_version)) for api in answer.api_keys}

    def _exchange(self, request: Any, response: type[Any]) -> Any:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header_class = request.__header_schema__
        buffer = io.BytesIO()
        entity_writer(header_class)(
            buffer,
            header_class(
                request_api_key=i16(request.__api_key__),
                request_api_version=i16(request.__version__),
                correlation_id=i32(self._correlation_id),
                client_id=CLIENT_ID,
            ),
        )
        entity_writer(type(request))(buffer, request)
        data = self._connection.exchange(buffer.getvalue())
        try:
            header, size = entity_reader(response.__header_schema__)(data, 0)
            if header.correlation_id != self._correlation_id:
                raise self._unreadable(f"the answer to request {header.correlation_id}, not to {self._correlation_id}")
            answer, _ = entity_reader(response)(data, size)
        except (SerialError, ValueError, TypeError, IndexError, OverflowError) as fault:
            raise self._unreadable(f"{len(data)} bytes that are no {response.__name__} ({fault})") from None
        return answer

    def _unreadable(self, what: str) -> NodeError:
        self.close()
        return NodeError(f"{self.address} does not speak Kafka's protocol: it sent {what}.")


def _class_name(name: str, suffix: str = "Request") -> str:
    return "".join(word.capitalize() for word in name.split("_")) + suffix
