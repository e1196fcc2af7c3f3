"""Requests that clients made, as authorizer logs and audit files show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import attrs

from kraftlake.diagnosis.attribution.authorizer_lines import AuthorizerLine

_GAP: Final = 200
"""The longest time in milliseconds between two lines of one request."""


LONGEST: Final = 1000
"""The longest time in milliseconds from the first to the last line of one request."""
ANY: Final = "*"
"""The operation and the resource's type in an entry of an audit file, which names neither."""


_Key: TypeAlias = tuple[str, str | None, str]


class Access(NamedTuple):
    """An allowed operation of a request on a resource."""

    operation: str
    resource_type: str
    resource: str


@attrs.frozen(kw_only=True)
class Request:
    """A request with the operations that were allowed to it, or entries of an audit file.

    The lines are of the times `first` to `last` (epoch ms). `names` are the resources that the lines name, and
    `names_all` whether those are all of the request's: a topic whose configs a client may not describe leaves no line
    in a request that creates topics.
    """

    principal: str
    host: str | None
    request: str
    first: int
    last: int
    accesses: frozenset[Access]
    names: frozenset[str]
    names_all: bool
    file: str

    @property
    def who(self) -> _Key:
        """The part that identifies a candidate: principal, host and request."""
        return self.principal, self.host, self.request


@attrs.define
class _Open:
    first: int
    last: int
    file: str
    seen: set[tuple[Access, bool]]
    everywhere: bool = False


def requests_of(lines: Iterable[tuple[int, AuthorizerLine, str]]) -> list[Request]:
    """The requests of one node's lines, each with its time and file, in the order of their first lines.

    Lines of one principal, host and request within a fraction of a second are one request, until one is repeated.
    """
    found: list[Request] = []
    open_: dict[_Key, _Open] = {}
    for time, line, file in sorted(lines, key=lambda one: one[0]):
        key = line.principal, line.host, line.request
        access = Access(line.operation, line.resource_type, line.resource), line.allowed
        one = open_.get(key)
        if one is None or time - one.last > _GAP or time - one.first > LONGEST or access in one.seen:
            if one is not None:
                found.append(_closed(key, one))
            one = open_[key] = _Open(first=time, last=time, file=file, seen=set())
        one.last = time
        one.seen.add(access)
        one.everywhere |= line.allowed and line.everywhere and line.operation == "DESCRIBE_CONFIGS"
    found += [_closed(key, one) for key, one in open_.items()]
    return sorted(found, key=lambda request: request.first)


def _closed(key: _Key, one: _Open) -> Request:
    principal, host, request = key
    accesses = frozenset(access for access, allowed in one.seen if allowed)
    named = (access.resource for access in accesses if access.resource_type != "CLUSTER")
    return Request(
        principal=principal, host=host, request=request, first=one.first, last=one.last, accesses=accesses,
        names=frozenset(filter(None, named)),
        names_all=one.everywhere, file=one.file,
    )  # fmt: skip
