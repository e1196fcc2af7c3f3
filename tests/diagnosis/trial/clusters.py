"""Small clusters in any state that a controller may leave, as hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid

BROKERS = range(1, 6)


def image_of(*messages: Message) -> MetadataImage:
    """The image that records make, at the offset of the last one."""
    delta = MetadataDelta(MetadataImage.EMPTY)
    for offset, message in enumerate(messages):
        delta.replay(message, offset)
    return delta.apply(MetadataProvenance(offset=len(messages) - 1, epoch=3, timestamp=1_700_000_000_000))


def directory(broker: int, number: int = 0) -> Uuid:
    """The id of a broker's log directory."""
    return Uuid(f"directory-{broker:03d}-{number:02d}".encode())


def topic_id(number: int) -> Uuid:
    """The id of a topic."""
    return Uuid(f"topic-{number:010d}".encode())


def broker(id_: int, *, rack: str | None = None, **fields: Any) -> r.RegisterBrokerRecord:
    """The registration of a broker, by default an active one."""
    made = {"fenced": False, "log_dirs": (directory(id_),), "incarnation_id": Uuid.random()} | fields
    return r.RegisterBrokerRecord(broker_id=id_, broker_epoch=id_, rack=rack, **made)


def features(*, elr: bool = False, level: int = 27) -> list[Message]:
    """The records of a cluster's features."""
    found = [r.FeatureLevelRecord(name="metadata.version", feature_level=level)]
    if elr:
        found.append(r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
    return [*found]


def config(name: str, value: str, topic: str = "") -> r.ConfigRecord:
    """A config of a topic; of the cluster for no topic."""
    return r.ConfigRecord(resource_type=2 if topic else 4, resource_name=topic, name=name, value=value)


@st.composite
def partitions(
    draw: Callable[..., Any], topic: int, number: int, *, elr: bool, with_directories: bool
) -> r.PartitionRecord:
    """A partition: its ISR may be the last replica that is left, or empty, it may be moving or without a leader."""
    replicas = draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True))
    isr = draw(st.lists(st.sampled_from(replicas), unique=True, min_size=0 if elr else 1))
    others = [one for one in replicas if one not in isr]
    eligible = draw(st.lists(st.sampled_from(others), unique=True)) if elr and others else []
    leader = draw(st.sampled_from([*isr, -1]))
    known = draw(st.sampled_from([(), (replicas[0],)])) if elr and leader < 0 else ()
    moving = draw(st.integers(0, 4)) == 0
    adding = draw(st.lists(st.sampled_from(replicas), unique=True, max_size=1)) if moving else []
    removing = draw(st.lists(st.sampled_from(replicas), unique=True, max_size=2)) if moving else []
    return r.PartitionRecord(
        partition_id=number,
        topic_id=topic_id(topic),
        replicas=tuple(replicas),
        isr=tuple(isr),
        leader=leader,
        leader_recovery_state=draw(st.sampled_from([0, 0, 0, 1])),
        adding_replicas=tuple(adding),
        removing_replicas=tuple(one for one in removing if one not in adding),
        eligible_leader_replicas=tuple(eligible) or None,
        last_known_elr=known or None,
        directories=tuple(directory(one, draw(st.sampled_from([0, 0, 0, 1]))) for one in replicas if with_directories),
    )


@st.composite
def clusters(draw: Callable[..., Any]) -> MetadataImage:
    """A cluster of five brokers in some racks, of which some are fenced or shutting down, with configs of topics."""
    level = draw(st.sampled_from([7, 17, 27, 27, 30]))
    elr = level >= 27 and draw(st.booleans())
    with_directories = from_feature_level(level).is_directory_assignment_supported
    messages = features(elr=elr, level=level)
    for id_ in BROKERS:
        state = draw(st.sampled_from(["active", "active", "active", "fenced", "shutting down"]))
        rack = draw(st.sampled_from(["a", "b", None]))
        fields = {"fenced": state == "fenced", "in_controlled_shutdown": state == "shutting down"}
        log_dirs = (directory(id_),) if with_directories else ()
        messages.append(broker(id_, rack=rack, log_dirs=log_dirs, **fields))
    messages += [config(*one) for one in draw(st.lists(st.sampled_from(CONFIGS), unique=True, max_size=3))]
    for topic in range(draw(st.integers(1, 4))):
        messages.append(r.TopicRecord(name=f"t{topic}", topic_id=topic_id(topic)))
        messages += [
            draw(partitions(topic, number, elr=elr, with_directories=with_directories))
            for number in range(draw(st.integers(1, 4)))
        ]
    return image_of(*messages)


CONFIGS = [
    (name, value, topic)
    for topic in ("", "t0", "t1")
    for name, value in (
        ("min.insync.replicas", "2"),
        ("min.insync.replicas", "9"),
        ("unclean.leader.election.enable", "true"),
    )
]
