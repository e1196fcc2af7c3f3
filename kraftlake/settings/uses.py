"""The use of Kafka's configs in a lake's cluster: the nodes that use a config, or the reason why none does."""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

BROKER_ROLE: Final = "broker"
CONTROLLER_ROLE: Final = "controller"


@attrs.frozen
class Ignored:
    """A config without effect in kraftlake; `reason` completes "NAME has no effect: …".

    `is_non_goal` means that the config's subject is a non-goal of kraftlake.
    """

    reason: str
    is_non_goal: bool = False


@attrs.frozen
class Heeded:
    """A config that nodes of the roles `by` use.

    `live` means that a running node applies a change where Kafka's does; otherwise the next start applies it, and only
    from the property file.
    """

    by: frozenset[str]
    live: bool = False


Use: TypeAlias = Heeded | Ignored

BY_BROKERS: Final = Heeded(frozenset({BROKER_ROLE}))
BY_CONTROLLERS: Final = Heeded(frozenset({CONTROLLER_ROLE}))
BY_ALL_NODES: Final = Heeded(frozenset({BROKER_ROLE, CONTROLLER_ROLE}))
LIVE_BY_BROKERS: Final = attrs.evolve(BY_BROKERS, live=True)
LIVE_BY_CONTROLLERS: Final = attrs.evolve(BY_CONTROLLERS, live=True)
LIVE_BY_ALL_NODES: Final = attrs.evolve(BY_ALL_NODES, live=True)

AT_START_ALONE: Final = Ignored("a node heeds it at its start alone, from its properties file")

NEVER_AT_START: Final = Ignored("it is heeded where it is made while the cluster runs, not in a properties file")

GROUPS: Final = Ignored("consumer, share and streams groups are not served", is_non_goal=True)
TRANSACTIONS: Final = Ignored("transactions are not served", is_non_goal=True)
VOTERS: Final = Ignored("the metadata log is the lake, without a KRaft quorum and files of its own", is_non_goal=True)

CLEANER_BUFFERS: Final = Ignored("the log cleaner reads half a MiB at once")
OTHER_LOGINS: Final = Ignored("logins by GSSAPI (Kerberos) and OAUTHBEARER are not served", is_non_goal=True)
CERTIFICATES: Final = Ignored("a changed certificate may have other names")
CIPHERS: Final = Ignored("OpenSSL chooses among the ciphers of ssl.enabled.protocols")
REMOTE_STORAGE: Final = Ignored("there is no tiered storage: all segments stay in the log directories")
JAVA_CLASSES: Final = Ignored("classes of Java are not loaded")
METRICS: Final = Ignored("metrics are counters and gauges without windows")
TELEMETRY: Final = Ignored("client telemetry is not collected")
PURGATORIES: Final = Ignored("what waits is taken out of its purgatory when it is done")
UNSTABLE: Final = Ignored("there are no unstable versions of APIs and features")
SLOW_EVENTS: Final = Ignored("slow events of a controller are not logged")
CONNECTING: Final = Ignored("a connection is tried for as long as its request may wait")
PREALLOCATION: Final = Ignored("segments grow as they are written")
