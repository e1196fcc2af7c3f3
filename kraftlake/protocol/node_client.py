"""Requests to one node, in the newest version that both sides support.

Source: org.apache.kafka.clients.NetworkClient and NodeApiVersions; the schemas are kio's, generated from Kafka's own.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Self, TypeVar

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.response_header.v0.header import ResponseHeader as PlainHeader
from kio.schema.response_header.v1.header import ResponseHeader as FlexibleHeader
from kio.serial import entity_writer
from kio.serial.errors import SerialError

from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import ClientConfig, SaslConfig
from kraftlake.protocol.connection import Connection
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.message_scan import read_message
from kraftlake.protocol.node_error import ClosedConnectionError, NodeError
from kraftlake.protocol.sasl import authenticate
from kraftlake.records.varint import MalformedError
from kraftlake.runtime.clock import Clock, SystemClock

_NO_LOGIN = float("-inf")
_API_VERSIONS = int(ApiVersionsRequest.__api_key__)
REQUEST_HEADER = struct.Struct(">hhih")
"""API key, version, correlation id, length of the client id."""
_NO_TAGS = b"\0"
_UNREADABLE = (
    SerialError, ValueError, TypeError, IndexError, KeyError, OverflowError, struct.error, MalformedError
)  # fmt: skip
"""Exceptions raised for bytes that are no message; kio raises them also for unknown tagged fields."""
T = TypeVar("T")


class NodeClient:
    """A client of one node, for one thread. The client closes its connection with itself and after a NodeError.

    The first request fetches the node's versions, and logs in if `config` requires it; a login with a limited lifetime
    is renewed on the same connection before it ends.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        config: ClientConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._connection = connection
        self._config = config or ClientConfig()
        self._client_id = self._config.client_id.encode()
        self._clock = clock or SystemClock()
        self._login_ends_ns = _NO_LOGIN
        self._correlation_id = 0
        self._answered = False
        self._versions: dict[int, tuple[int, int]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> Address:
        """The address of the node."""
        return self._connection.address

    @property
    def principal(self) -> str:
        """The client's principal, for messages: the user that the node's ACLs name."""
        return self._config.principal

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def versions_of(self, api_key: int) -> range:
        """The versions of an API that the node offers; empty for an API that it lacks. Raises NodeError."""
        lowest, highest = self._prepared().get(api_key, (0, -1))
        return range(lowest, highest + 1)

    def offers(self, name: str, versions: range) -> bool:
        """Whether the node offers the API `name` in one of the versions. Raises NodeError."""
        offered = self.versions_of(_api_key(name, versions))
        return max(offered.start, versions.start) < min(offered.stop, versions.stop)

    def ask(self, name: str, versions: range, make: Callable[[Any], Any], *, timeout: float | None = None) -> Any:
        """Send a request of the API `name` (`describe_quorum`); returns the response in kio's class.

        `versions` are those that the caller supports; `make` gets kio's module of the request in the newest common
        version, and makes the request. `timeout` (seconds) replaces the connection's for this request. Raises NodeError
        without a common version, or if the node does not answer.
        """
        api_key = _api_key(name, versions)
        module, response = _schemas(name, self._newest(api_key, versions, _class_name(name, "")))
        return self._ask(make(module), response, timeout=timeout)

    def ask_encoded(
        self,
        api_key: int,
        versions: range,
        encode: Callable[[int], bytes],
        decode: Callable[[bytes, int], T],
        *,
        timeout: float | None = None,
    ) -> T:
        """Send a request that the caller encodes and decodes; for messages too large for kio.

        All `versions` have tagged fields (KIP-482); `encode` gets the newest common version, and makes the body.
        `decode` gets bytes, and the position of the response's body in them. Raises as `ask`.
        """
        body = encode(version := self._newest(api_key, versions, f"API {api_key}"))
        data, position = self._exchange(api_key, version, body, flexible=True, timeout=timeout)
        try:
            return decode(data, position)
        except _UNREADABLE as fault:
            raise self._unreadable(
                f"{len(data) - position} bytes that are no answer of API {api_key} ({fault})"
            ) from None

    def _newest(self, api_key: int, versions: range, name: str) -> int:
        offered = self.versions_of(api_key)
        common = range(max(offered.start, versions.start), min(offered.stop, versions.stop))
        if not common:
            what = f"only versions {offered[0]} to {offered[-1]}" if offered else "nothing"
            raise NodeError(f"{self.address} offers {what} of {name} (API {api_key}): is it a node of a KRaft cluster?")
        return common[-1]

    def _prepared(self) -> dict[int, tuple[int, int]]:
        """Return the lowest and highest version of each API, once the connection may be used."""
        if self._versions is None:
            self._versions = self._ask_versions()
        if self._config.sasl is not None and self._clock.nanoseconds() >= self._login_ends_ns:
            self._log_in(self._config.sasl)
        return self._versions

    def _log_in(self, sasl: SaslConfig) -> None:
        began = self._clock.nanoseconds()
        try:
            self._login_ends_ns = began + 1e9 * authenticate(self._ask, self.address, sasl)
        except BaseException:
            self.close()
            raise

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name="kraftlake", client_software_version="0")
        error, versions = self._ask_for("ApiVersionsResponse", request, _versions_in)
        if error != ErrorCode.NONE:
            raise NodeError(
                f"{self.address} does not tell what it speaks ({error.name}): Kafka 2.4 or later is needed."
            )
        return versions

    def _ask(self, request: Any, response: type[Any], *, timeout: float | None = None) -> Any:
        return self._ask_for(response.__name__, request, lambda data: read_message(response, data, 0)[0], timeout)

    def _ask_for(self, what: str, request: Any, read: Callable[[bytes], T], timeout: float | None = None) -> T:
        """Send a request, and read the body of its response by `read`."""
        buffer = io.BytesIO()
        entity_writer(type(request))(buffer, request)
        data, position = self._exchange(
            int(request.__api_key__), int(request.__version__), buffer.getvalue(),
            flexible=request.__flexible__, timeout=timeout,
        )  # fmt: skip
        body = data[position:]
        try:
            return read(body)
        except _UNREADABLE as fault:
            raise self._unreadable(f"{len(body)} bytes that are no {what} ({fault})") from None

    def _exchange(
        self, api_key: int, version: int, body: bytes, *, flexible: bool, timeout: float | None
    ) -> tuple[bytes, int]:
        """Send a request (header 1, or 2 if flexible); returns its response, and the position after its header."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = REQUEST_HEADER.pack(api_key, version, self._correlation_id, len(self._client_id)) + self._client_id
        payload = b"".join((header, _NO_TAGS if flexible else b"", body))
        try:
            data = self._connection.exchange(payload, timeout=timeout)
        except ClosedConnectionError as fault:
            raise ClosedConnectionError(f"{str(fault).rstrip('.')}{self._likely_cause(api_key)}.") from None
        # The response of ApiVersions has header 0 in every version (KIP-511).
        header_type = FlexibleHeader if flexible and api_key != _API_VERSIONS else PlainHeader
        try:
            answered, size = read_message(header_type, data, 0)
        except _UNREADABLE as fault:
            raise self._unreadable(f"{len(data)} bytes without a response header ({fault})") from None
        if answered.correlation_id != self._correlation_id:
            raise self._unreadable(f"the answer to request {answered.correlation_id}, not to {self._correlation_id}")
        self._answered = self._answered or api_key != _API_VERSIONS
        return data, size

    def _likely_cause(self, api_key: int) -> str:
        """Return the likely reason why a node closes the connection instead of answering one of the first requests."""
        if self._answered:
            return ""
        tls = self._config.tls
        if api_key == _API_VERSIONS and tls is None:
            return ": it may be no Kafka node, or want TLS (security.protocol in the file of --command-config)"
        if api_key == _API_VERSIONS and tls is not None and tls.keystore is None:
            return ": it may ask for a client certificate (ssl.keystore.location)"
        if api_key == _API_VERSIONS:
            return ": it may not accept the certificate of ssl.keystore"
        if self._config.sasl is None:
            return ": its listener wants a login (security.protocol=SASL_… in the file of --command-config)"
        return ""

    def _unreadable(self, what: str) -> NodeError:
        self.close()
        return NodeError(f"{self.address} does not speak Kafka's protocol: it sent {what}.")


@lru_cache(maxsize=64)
def _versions_in(body: bytes) -> tuple[ErrorCode, dict[int, tuple[int, int]]]:
    """The error of an ApiVersions response, and the versions by API; most connections get the same response."""
    answer, _ = read_message(ApiVersionsResponse, body, 0)
    versions = {int(api.api_key): (int(api.min_version), int(api.max_version)) for api in answer.api_keys}
    return ErrorCode(answer.error_code), versions


@cache
def _schemas(name: str, version: int) -> tuple[Any, Any]:
    """kio's module of a request, and the class of its response."""
    module = f"kio.schema.{name}.v{version}"
    response = import_module(f"{module}.response").__dict__[_class_name(name, "Response")]
    return import_module(f"{module}.request"), response


@cache
def _api_key(name: str, versions: range) -> int:
    request = import_module(f"kio.schema.{name}.v{versions[0]}.request").__dict__[_class_name(name)]
    return int(request.__api_key__)


def _class_name(name: str, suffix: str = "Request") -> str:
    return "".join(word.capitalize() for word in name.split("_")) + suffix
