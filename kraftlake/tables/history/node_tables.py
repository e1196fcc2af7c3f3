"""The histories of the nodes of a cluster: what brokers and controllers were registered as."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from kraftlake.image.kafka_names import SECURITY_PROTOCOLS, name_of
from kraftlake.records import metadata_records as r
from kraftlake.tables.history.entity_table import TEXTS, EntityTable, State, column

_OF_NODES: Final = (
    column("listeners", TEXTS, "its endpoints: NAME://host:port/SECURITY_PROTOCOL, by name"),
    column("features", TEXTS, "the levels of features that it supports: name=min-max, by name"),
)


def _listeners(node: State) -> list[str]:
    return [
        f"{name}://{e.host}:{e.port}/{name_of(SECURITY_PROTOCOLS, e.security_protocol)}"
        for name, e in sorted(node.listeners.items())
    ]


def _features(node: State) -> list[str]:
    return [f"{name}={levels.min}-{levels.max}" for name, levels in sorted(node.supported_features.items())]


def _broker_row(broker: int, state: State) -> tuple[Any, ...]:
    cordoned = state.cordoned_directories
    return (
        broker,
        state.epoch,
        str(state.incarnation_id),
        state.fenced,
        state.in_controlled_shutdown,
        state.rack,
        _listeners(state),
        _features(state),
        [str(directory) for directory in state.directories],
        None if cordoned is None else [str(directory) for directory in cordoned],
    )


BROKERS: Final = EntityTable(
    name="broker_history",
    comment="What each broker was registered as, from when to when",
    key=("broker",),
    key_of_record={
        r.RegisterBrokerRecord: attrgetter("broker_id"),
        r.UnregisterBrokerRecord: attrgetter("broker_id"),
        r.BrokerRegistrationChangeRecord: attrgetter("broker_id"),
        r.FenceBrokerRecord: attrgetter("id"),
        r.UnfenceBrokerRecord: attrgetter("id"),
    },
    own_columns=(
        column("broker", pa.int32(), "the broker's id"),
        column("broker_epoch", pa.int64(), "the offset of its registration; each start of the broker has another one"),
        column("incarnation_id", pa.string(), "the id that the broker's process generated when it started"),
        column("fenced", pa.bool_(), "whether it is fenced: without heartbeats, it neither leads nor is in sync"),
        column("in_controlled_shutdown", pa.bool_(), "whether it is in controlled shutdown"),
        column("rack", pa.string(), "its rack; null where it has none", nullable=True),
        *_OF_NODES,
        column("directories", TEXTS, "the ids of its log directories that are online"),
        column(
            "cordoned_directories",
            TEXTS,
            "the ids of directories that get no new partitions; null where the broker never named any",
            nullable=True,
        ),
    ),
    keys=lambda image: image.cluster.brokers.keys(),
    look=lambda image, key: image.cluster.brokers.get(key),
    row=_broker_row,
)

CONTROLLERS: Final = EntityTable(
    name="controller_history",
    comment="What each controller was registered as, from when to when",
    key=("controller",),
    key_of_record={
        r.RegisterControllerRecord: attrgetter("controller_id"),
        r.UnregisterControllerRecord: attrgetter("controller_id"),
    },
    own_columns=(
        column("controller", pa.int32(), "the controller's id"),
        column("incarnation_id", pa.string(), "the id that the controller's process generated when it started"),
        column("zk_migration_ready", pa.bool_(), "whether it was ready for a migration from ZooKeeper"),
        *_OF_NODES,
    ),
    keys=lambda image: image.cluster.controllers.keys(),
    look=lambda image, key: image.cluster.controllers.get(key),
    row=lambda key, state: (
        key,
        str(state.incarnation_id),
        state.zk_migration_ready,
        _listeners(state),
        _features(state),
    ),
)
