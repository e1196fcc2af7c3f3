"""Pseudonyms of the names in a log: stable for a key, and prefixes of each other where the names are."""

from __future__ import annotations

import base64
import hmac
import ipaddress
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from kraftlake.image.kafka_names import CLUSTER_NAME
from kraftlake.image.topics.topic_names import INTERNAL_TOPICS
from kraftlake.records.schema import Names
from kraftlake.runtime.errors import UsageError

_LETTERS: Final = 10
"""The length of a pseudonym behind its kind: 50 bits."""
_DOMAIN: Final = ".invalid"
"""The end of a host's pseudonym, a domain that no resolver has (RFC 2606)."""
_ADDRESSES: Final = ipaddress.IPv6Network("2001:db8::/32")
"""The network of the pseudonyms of addresses, which no router knows (RFC 3849)."""
_KEPT: Final = {"", "*", "ANONYMOUS", CLUSTER_NAME}
_KEPT_HOSTS: Final = {"localhost", "0.0.0.0", "::", "::1"}  # noqa: S104 - nothing is bound to it
_MADE: Final = re.compile(
    rf"(?:{'|'.join(kind.value for kind in Names)})-[a-z2-7]{{{_LETTERS}}}(?:\.invalid)?|2001:db8:[0-9a-f:]*[0-9a-f]"
)


class Pseudonyms:
    """The pseudonyms that a key makes of names: `topic-`, `user-`, `host-` … and ten letters.

    `made` has the name of each pseudonym so far. A name that begins with a declared prefix, as one of a prefixed ACL,
    has a pseudonym that begins with the prefix's. Words that Kafka gives a meaning (`*`, `ANONYMOUS`, its internal
    topics, the addresses of the machine itself) stay as they are.
    """

    def __init__(self, key: bytes, made: Mapping[str, str] | None = None) -> None:
        self.key = key
        self.made: dict[str, str] = dict(made or {})
        self._prefixes: dict[Names, set[str]] = defaultdict(set)
        self._lengths: dict[Names, list[int]] = {}

    def declare_prefixes(self, kind: Names, prefixes: Iterable[str]) -> None:
        """Declare prefixes of names of a kind, before any name that begins with one has a pseudonym."""
        self._prefixes[kind].update(prefixes)
        self._lengths[kind] = sorted({*map(len, self._prefixes[kind])} - {0}, reverse=True)

    def of(self, kind: Names, name: str) -> str:
        """The pseudonym of a name. Raises UsageError where two names would share one, which another key mends."""
        if _is_kept(kind, name):
            return name
        for length in self._lengths.get(kind, ()):
            if length < len(name) and name[:length] in self._prefixes[kind]:
                return self.of(kind, name[:length]) + self.of(kind, name[length:])
        made = self._hashed(kind, name)
        if self.made.setdefault(made, name) != name:
            raise UsageError(f"{made} would stand for two names: make the pseudonyms by another key.")
        return made

    def check_new(self, names: Iterable[str]) -> None:
        """Raise UsageError for a pseudonym that is a name in the log already."""
        for name in names:
            if name in self.made:
                raise UsageError(f"The pseudonym {name} is a name in the log: make the pseudonyms by another key.")

    def _hashed(self, kind: Names, name: str) -> str:
        digest = hmac.digest(self.key, f"{kind.value}\0{name}".encode(errors="surrogatepass"), "sha256")
        if kind is Names.HOST and _is_address(name):
            return str(_ADDRESSES[int.from_bytes(digest[:12], "big")])
        letters = base64.b32encode(digest).decode().lower()[:_LETTERS]
        return f"{kind.value}-{letters}{_DOMAIN if kind is Names.HOST else ''}"


def translated(text: str, names: Mapping[str, str]) -> str:
    """Put the name in place of each pseudonym in a text; what is none stays. `names` are those by pseudonym.

    In a text that begins as JSON does, names are escaped as in JSON strings.
    """
    escaped = (lambda name: json.dumps(name)[1:-1]) if text.lstrip()[:1] in ("{", "[") else str
    return _MADE.sub(lambda found: escaped(names.get(found[0], found[0])), text)


def _is_kept(kind: Names, name: str) -> bool:
    if kind is Names.KAFKA or name in _KEPT:
        return True
    if kind is Names.HOST:
        return name in _KEPT_HOSTS or (_is_address(name) and ipaddress.ip_address(name).is_loopback)
    return kind is Names.TOPIC and name.startswith("__") and any(topic.startswith(name) for topic in INTERNAL_TOPICS)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
