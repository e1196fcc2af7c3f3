"""Validation of listeners in a running broker's changed settings.

Source: kafka.server.DynamicListenerConfig, org.apache.kafka.server.config.AbstractKafkaConfig (listenerListToEndPoints,
effectiveListenerSecurityProtocolMap).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from kraftlake.runtime.java_values import split_list, trim
from kraftlake.server.listener_security import security_protocols

_LISTENER: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_CONTROLLERS: Final = "controller.listener.names"


def problem_of_listeners(before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """The reason why a broker with the settings `before` can't have the listeners of `after`, or None."""
    try:
        old, new, protocols = _listeners(before), _listeners(after), security_protocols(after)
        old_protocols = security_protocols(before)
    except ValueError as problem:
        return f"{problem}."
    if not {*old} <= {*new}:
        return f"{sorted({*old} - {*new})[0]} is a listener that other nodes know: it stays."
    if named := [name for name in new if name in _controllers(after)]:
        return f"{named[0]} is a listener of controllers, and this is a broker."
    for name in (*new, *_controllers(after)):
        if name not in protocols:
            return f"listener.security.protocol.map has no protocol of the listener {name}."
        if name in old and protocols[name] != old_protocols.get(name):
            return f"The listener {name} keeps its security protocol."
    ports = Counter(port for port in new.values() if port)
    return next((f"Two listeners have the port {port}." for port, count in ports.items() if count > 1), None)


def _controllers(settings: Mapping[str, str]) -> list[str]:
    return [name.upper() for name in split_list(settings.get(_CONTROLLERS, "CONTROLLER"))]


def _listeners(settings: Mapping[str, str]) -> dict[str, int]:
    """Return the ports by listener name."""
    found = dict[str, int]()
    for one in split_list(trim(settings.get("listeners", "PLAINTEXT://:9092"))):
        match = _LISTENER.fullmatch(one)
        if match is None:
            raise ValueError(f"{one!r} is no listener: give its name, host and port as in PLAINTEXT://127.0.0.1:9092")
        name = match[1].upper()
        if name in found:
            raise ValueError(f"Two listeners have the name {name}")
        found[name] = int(match[3])
    return found
