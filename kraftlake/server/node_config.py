"""The configuration of a node by Kafka's names: a properties file, and settings that override it.

Source: kafka.server.KafkaConfig and kafka.Kafka (--override).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import attrs

from kraftlake.protocol.address import Address, parse_addresses
from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.publisher.authorizer import AuthorizerConfig
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.java_properties import parse_properties
from kraftlake.runtime.java_values import split_list, trim
from kraftlake.runtime.metrics_address import is_loopback
from kraftlake.runtime.words import did_you_mean
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.node_combinations import problem_of_combination
from kraftlake.settings.tables import DYNAMIC_ONLY, NODE_SETTINGS, base_of
from kraftlake.settings.uses import NEVER_AT_START

_MISTYPED: Final = 0.9
"""The similarity from which an unknown name counts as a misspelling of a known one: many of Kafka's names are alike."""
_ADVERTISED: Final = "advertised.listeners"
_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - refused, not bound
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@attrs.frozen(kw_only=True)
class ListenerAddress:
    """A listener's name and bind address; port 0 selects any free port."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{Address(self.host, self.port)}"


def parse_listener(text: str) -> ListenerAddress:
    """Parse `NAME://HOST:PORT`, as in Kafka's `listeners`; without a host, the loopback address.

    Raises UsageError for anything else.
    """
    name, scheme, where = trim(text).partition("://")
    problem = UsageError(f"{text!r} is no listener: give its name, host and port as in CONTROLLER://127.0.0.1:9093.")
    if not scheme or not name or "," in where:
        raise problem
    if where.startswith(":"):
        where = f"127.0.0.1{where}"
    if where.endswith(":0"):
        return ListenerAddress(name=name, host=where[:-2].strip("[]"), port=0)
    (address,) = parse_addresses(where)
    return ListenerAddress(name=name, host=address.host, port=address.port)


@attrs.frozen(kw_only=True)
class NodeSettings:
    """The settings of a node by Kafka's names; all getters raise UsageError for a value of the wrong type."""

    values: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    source: str = "the settings"
    """The source of the settings, for messages."""

    @classmethod
    def read(cls, path: str | None, overrides: Iterable[tuple[str, str]] = ()) -> NodeSettings:
        """Read the file's settings, overridden by `overrides`. Raises UsageError if the file can't be read."""
        values: dict[str, str] = {}
        if path is not None:
            try:
                values = parse_properties(Path(path).read_bytes())
            except OSError as fault:
                raise UsageError(f"{path} can't be read: {fault.strerror}.") from None
            except ValueError as fault:
                raise UsageError(f"{path} is no properties file: {fault}.") from None
        return cls(values={**values, **dict(overrides)}, source=path or "the settings")

    def check(self, node_id: int | None = None) -> None:
        """Raise UsageError for a value, or a combination of values, that Kafka refuses at a node's start.

        `node_id` takes precedence over the setting.
        """
        if node_id is not None:
            attrs.evolve(self, values={**self.values, "node.id": str(node_id)}).check()
            return
        for name, text in self.values.items():
            key = _key_of(name)
            if key is not None and name not in DYNAMIC_ONLY:
                self._parsed(key, name, text)
        problem = self._problem_of_ids() or problem_of_combination(self.value)
        if problem is not None:
            raise UsageError(f"{self.source} can't be those of a node: {problem}.")

    def _problem_of_ids(self) -> str | None:
        """Check that both names of the id have one value, even if one is the default. Source: AbstractKafkaConfig."""
        ids = {name: self.value(name) for name in ("node.id", "broker.id") if name in self.values}
        return None if len({*ids.values()}) < 2 else f"broker.id is {ids['broker.id']}, and node.id is {ids['node.id']}"

    def value(self, name: str) -> Any:
        """The value of a setting, parsed by its definition; Kafka's default if not set, which may be None."""
        key = NODE_SETTINGS[base_of(name)]
        text = self.values.get(name, key.default)
        return None if text is None else self._parsed(key, name, text)

    @property
    def node_id(self) -> int | None:
        """The id of the node; None if not set. Source: AbstractKafkaConfig (populateSynonyms)."""
        named = next((name for name in ("node.id", "broker.id") if name in self.values), None)
        return None if named is None else int(self.value(named))

    @property
    def authorizer(self) -> AuthorizerConfig | None:
        """The settings of the authorizer; None without `authorizer.class.name`, which allows everything.

        Raises UsageError for any authorizer but Kafka's own.
        """
        name = self.text("authorizer.class.name")
        if not name:
            return None
        if name != STANDARD_AUTHORIZER:
            raise UsageError(f"authorizer.class.name is {name}: there is only {STANDARD_AUTHORIZER}.")
        return AuthorizerConfig.of(self.values)

    @property
    def without_effect(self) -> dict[str, str]:
        """The settings that no node uses, each with the reason."""
        found = {}
        for name, text in sorted(self.values.items()):
            key = _key_of(name)
            if key is None:
                near = get_close_matches(name, sorted(NODE_SETTINGS), n=1, cutoff=_MISTYPED)
                found[name] = did_you_mean(name, near) or "Kafka has no such setting"
            elif name in DYNAMIC_ONLY:
                found[name] = NEVER_AT_START.reason
            elif (ignored := key.why_ignored(text)) is not None:
                found[name] = ignored.reason
        return found

    @staticmethod
    def prefix(listener: str) -> str:
        """The prefix of a listener's own settings."""
        return f"listener.name.{listener.lower()}."

    def of_listener(self, listener: str) -> NodeSettings:
        """The settings of a listener, where its own ones go over those of the node, without their prefix."""
        prefix = self.prefix(listener)
        own = {name.removeprefix(prefix): text for name, text in self.values.items() if name.startswith(prefix)}
        return attrs.evolve(self, values={**self.values, **own})

    def text(self, name: str, default: str | None = None) -> str | None:
        """A text setting without surrounding blanks."""
        value = self.values.get(name)
        return default if value is None else trim(value)

    def listeners(self, name: str) -> tuple[ListenerAddress, ...]:
        """A list of listeners."""
        return tuple(parse_listener(one) for one in self.names(name))

    def advertised(self, listeners: Iterable[ListenerAddress]) -> dict[str, ListenerAddress]:
        """The addresses that other nodes and clients use, by listener: `advertised.listeners`, else the bound address.

        Raises UsageError, as Kafka does, for a name that is none of them, and for the address 0.0.0.0.
        """
        bound = {one.name: one for one in listeners}
        given = {one.name: one for one in self.listeners(_ADVERTISED)}
        others = {one.name for one in self.listeners("listeners")}  # of the other role of a file for both
        if unknown := sorted(given.keys() - bound.keys() - others):
            raise UsageError(f"{_ADVERTISED} names {unknown[0]}, which is none of the listeners {', '.join(bound)}.")
        found = {name: given.get(name, one) for name, one in bound.items()}
        for one in found.values():
            if one.host == _EVERYWHERE:
                raise UsageError(f"{one} is no address that others can connect to: give one in {_ADVERTISED}.")
        return found

    def names(self, name: str) -> tuple[str, ...]:
        """A list of non-empty texts."""
        return tuple(filter(None, map(trim, split_list(trim(self.values.get(name, ""))))))

    def _parsed(self, key: ConfigKey, name: str, text: str) -> Any:
        try:
            return key.parse(text)
        except ValueError as problem:
            raise UsageError(f"{name} has the value {text!r} in {self.source}: {problem}.") from None


def _key_of(name: str) -> ConfigKey | None:
    return NODE_SETTINGS.get(base_of(name))


def check_reachable(listener: ListenerAddress, protocol: SecurityProtocol, *, insecure: bool) -> None:
    """Raise UsageError for a listener without TLS that other machines can reach, unless that is meant."""
    if not protocol.has_tls and not insecure and not is_loopback(listener.host):
        lack = "shows records to whoever reads along" if protocol.has_sasl else "has neither TLS nor logins"
        raise UsageError(
            f"{listener} can be reached from other machines, and {protocol.name} {lack}: give 127.0.0.1, a protocol "
            f"with TLS (SSL, SASL_SSL) in listener.security.protocol.map, or --insecure-listeners if that is meant."
        )
