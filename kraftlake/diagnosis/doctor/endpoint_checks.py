"""The check of addresses that other nodes can't reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from operator import attrgetter
from typing import Final

import attrs

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected, latest
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.diagnosis.leadership import node_words
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.kafka_names import SECURITY_PROTOCOLS, name_of
from kraftlake.runtime.words import in_words

_LOCAL_NAMES: Final = ("localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost")


@attrs.frozen(kw_only=True)
class _Address:
    """A listener of a node, as it advertises it."""

    node: str
    listener: str
    host: str
    port: int
    protocol: str = ""
    fenced: bool = False

    @property
    def text(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"

    @property
    def is_of_one_machine(self) -> bool:
        """Whether the host is the local machine on each machine: a loopback or unspecified address."""
        host = self.host.strip("[]").lower().rstrip(".")
        if host in _LOCAL_NAMES:
            return True
        try:
            address = ip_address(host)
        except ValueError:
            return False
        return address.is_loopback or address.is_unspecified

    @property
    def is_nowhere(self) -> bool:
        """Whether the address reaches no node, not even on the same machine."""
        return not self.host.strip() or not 0 < self.port < 65_536


def _addresses(kind: str, nodes: Mapping[int, BrokerRegistration | ControllerRegistration]) -> list[_Address]:
    return [
        _Address(
            node=f"{kind} {id_}",
            listener=name,
            host=one.host,
            port=one.port,
            protocol=name_of(SECURITY_PROTOCOLS, one.security_protocol),
            fenced=getattr(node, "fenced", False),
        )
        for id_, node in sorted(nodes.items())
        for name, one in sorted(node.listeners.items())
    ]


@attrs.frozen
class _Fault:
    """A fault of some addresses, and whether nodes or clients fail because of it."""

    severity: Severity
    reason: str
    nodes: tuple[str, ...]


def _unreachable(addresses: Sequence[_Address]) -> Iterator[_Fault]:
    """Addresses of one machine in a cluster of several; on a single machine they are sound."""
    local = [one for one in addresses if one.is_of_one_machine and not one.is_nowhere]
    others = [one for one in addresses if not one.is_of_one_machine and not one.is_nowhere]
    if not others or len({one.node for one in addresses}) < 2:
        return
    nodes, listeners = {one.node for one in others}, {one.listener for one in others}
    for one in local:
        if one.node in nodes and one.listener not in listeners:
            yield _Fault(Severity.INFO, f"{one.text} is reached from its own machine alone", (one.node,))
        else:
            yield _Fault(Severity.WARNING, f"{one.text} can't be reached from other machines", (one.node,))


def _nowhere(addresses: Sequence[_Address]) -> Iterator[_Fault]:
    for one in addresses:
        if one.is_nowhere:
            yield _Fault(Severity.WARNING, f"{one.text} is no address", (one.node,))


def _shared(addresses: Sequence[_Address]) -> Iterator[_Fault]:
    """Nodes that advertise the same host and port: a fenced one may be the registration of a node that is gone."""
    by_place: dict[tuple[str, int], list[_Address]] = {}
    for one in addresses:
        if not one.is_nowhere:
            by_place.setdefault((one.host.lower(), one.port), []).append(one)
    for some in by_place.values():
        nodes = tuple(dict.fromkeys(one.node for one in some))
        if len(nodes) > 1:
            running = {one.node for one in some if not one.fenced}
            severity = Severity.WARNING if len(running) > 1 else Severity.INFO
            fenced = "" if severity is Severity.WARNING else ", of which one at most is not fenced"
            yield _Fault(severity, f"{some[0].text} is advertised by {node_words(nodes)}{fenced}", nodes)


def _uneven(addresses: Sequence[_Address]) -> Iterator[_Fault]:
    """Listeners that some nodes lack: brokers reach each other by a listener that all of them have."""
    names: dict[str, set[str]] = {}
    for one in addresses:
        if not one.fenced:
            names.setdefault(one.node, set()).add(one.listener)
    if len(names) < 2:
        return
    every = set.union(*names.values())
    common = set.intersection(*names.values())
    if not common:
        nodes_of: dict[str, list[str]] = {}
        for node, some in names.items():
            nodes_of.setdefault(in_words(sorted(some)), []).append(node)
        listener_words = "; ".join(f"{some} on {node_words(nodes)}" for some, nodes in nodes_of.items())
        yield _Fault(Severity.WARNING, f"no listener is common to all: {listener_words}", tuple(names))
        return
    for listener in sorted(every - common):
        lacking = tuple(node for node, some in names.items() if listener not in some)
        yield _Fault(Severity.INFO, f"listener {listener} of others is missing", lacking)


def _other_protocols(addresses: Sequence[_Address]) -> Iterator[_Fault]:
    """Listeners whose security protocol differs between nodes: each node connects with its own."""
    by_listener: dict[str, dict[str, list[str]]] = {}
    for one in addresses:
        if not one.fenced:
            by_listener.setdefault(one.listener, {}).setdefault(one.protocol, []).append(one.node)
    for listener, protocols in by_listener.items():
        if len(protocols) > 1:
            protocol_words = " and ".join(f"{protocol} on {node_words(nodes)}" for protocol, nodes in protocols.items())
            every = tuple(node for nodes in protocols.values() for node in nodes)
            yield _Fault(Severity.WARNING, f"listener {listener} is {protocol_words}", every)


def _voters(case: CheckInput) -> list[_Address]:
    """The endpoints in the voters' record, which nodes of the quorum use to reach each other."""
    voters = case.quorum.furthest.quorum.voters
    return [
        _Address(node=f"voter {voter.voter_id}", listener=one.name, host=one.host, port=one.port)
        for voter in (() if voters is None else voters.voters)
        for one in voter.endpoints
    ]


def _endpoints(case: CheckInput) -> Iterator[CheckResult]:
    cluster = case.image.cluster
    brokers = _addresses("broker", cluster.brokers)
    controllers = _addresses("controller", _current(case, cluster.controllers))
    faults = [
        fault
        for addresses in (brokers, controllers, _voters(case))
        for find in (_unreachable, _nowhere, _shared, _other_protocols)
        for fault in find(addresses)
    ]
    faults += _uneven(brokers)
    history = case.timeline.registrations
    for severity, what in _WORDS.items():
        some = [fault for fault in faults if fault.severity is severity]
        if some:
            nodes = sorted({node for fault in some for node in fault.nodes}, key=_by_id)
            yield CheckResult(
                sentence=f"addresses of {node_words(nodes)} {what}",
                groups=tuple(
                    Affected(
                        reason=fault.reason,
                        things=fault.nodes,
                        since=latest(history.unchanged_since(node, attrgetter("listeners")) for node in fault.nodes),
                    )
                    for fault in some
                ),
                severity=severity,
                command=case.command(_COMMANDS[min(node.split()[0] for node in nodes)]),
            )


def _by_id(node: str) -> tuple[str, int]:
    kind, id_ = node.split()
    return kind, int(id_)


_WORDS: Final = {Severity.WARNING: "can't be reached by others", Severity.INFO: "are not reached by all others"}

_COMMANDS: Final = {
    "broker": "image {source} --part brokers{at}",
    "controller": "image {source} --part controllers{at}",
    "voter": "quorum {sources}",
}
"""The command that shows the addresses, by kind of node."""


def _current(case: CheckInput, controllers: Mapping[int, ControllerRegistration]) -> dict[int, ControllerRegistration]:
    """The controllers that are voters, where the log names the voters: other registrations may be left over."""
    voters = {voter.id for voter in case.quorum.voters}
    return {id_: one for id_, one in controllers.items() if not voters or id_ in voters}


ENDPOINT_CHECKS = (
    Check(
        name="unreachable_endpoints",
        severity=Severity.WARNING,
        text="addresses that others can't reach: loopback among several machines, one address of two nodes",
        command="image {source} --part brokers{at}",
        helps=safe(
            "Set advertised.listeners of these nodes to a name or an address that all brokers, controllers and clients "
            "reach, and restart them. The listener of inter.broker.listener.name must be on every broker."
        ),
        find=_endpoints,
    ),
)
"""The checks of addresses."""
