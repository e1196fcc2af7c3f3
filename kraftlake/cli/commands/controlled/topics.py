"""`kraftlake topics`: topics and partitions of a controlled lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.commands.controlled.change import LakeChange, change_group, changing
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import BROKERS, CONFIG_PAIR, NAMED_PARTITION
from kraftlake.cli.options.shared import pairs_option

if TYPE_CHECKING:
    from kraftlake.image.topics.partition_registration import PartitionRegistration
    from kraftlake.protocol.error_code import ErrorCode

_NAME = argument("name", metavar="NAME", help="The topic's name.")
_PARTITION = argument(
    "partition", type=NAMED_PARTITION, metavar="NAME-PARTITION", help="A partition, such as orders-0."
)
_PARTITIONS = argument(
    "partitions", type=NAMED_PARTITION, metavar="NAME-PARTITION…", nargs=-1, help="Partitions; all where none is named."
)


@change_group("Create, delete, grow and reassign topics, and elect leaders.")
def topics() -> None:
    """Change topics and partitions, with Kafka's rules and errors.

    Examples:
        # a topic
        kraftlake topics create payments --partitions 3 --lake cluster
    """


@changing(topics, "Create a topic.")
@_NAME
@option("--partitions", type=int, default=-1, metavar="N", help="The number of partitions; 1 by default.")
@option("--replication-factor", type=int, default=-1, metavar="N", help="Replicas; 1 by default.")
@option("--assign", type=BROKERS, multiple=True, metavar="IDS", help="A partition's replicas, 1,2,3; in order.")
@pairs_option("--config", type=CONFIG_PAIR, help="A config of the topic.")
@option("--validate-only", is_flag=True, help="Check and report only; change nothing.")
def create(
    change: LakeChange,
    *,
    name: str,
    partitions: int,
    replication_factor: int,
    assign: tuple[tuple[int, ...], ...],
    config: dict[str, str],
    validate_only: bool,
) -> None:
    """Create topic NAME.

    Examples:
        # replicas where the placer puts them
        kraftlake topics create orders --partitions 3 --lake cluster
        # by hand
        kraftlake topics create bills --assign 1 --assign 1 --lake cluster
        # with a config
        kraftlake topics create clicks --config retention.ms=60000 --lake cluster
    """
    from kraftlake.controller.replication.topics import CreatableTopic, create_topics

    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=list(enumerate(assign)),
        configs=config,
    )
    made = change.run(create_topics, [topic], validate_only=validate_only)[name]
    change.result(
        name, made.error, id=str(made.topic_id), partitions=made.num_partitions, replicas=made.replication_factor
    )


@changing(topics, "Give a topic more partitions.")
@_NAME
@option("--partitions", type=int, required=True, metavar="N", help="The new number of partitions.")
@option("--assign", type=BROKERS, multiple=True, metavar="IDS", help="A new partition's replicas, 1,2,3; in order.")
def grow(change: LakeChange, *, name: str, partitions: int, assign: tuple[tuple[int, ...], ...]) -> None:
    """Add partitions to topic NAME.

    Examples:
        # four in all
        kraftlake topics grow orders --partitions 4 --lake cluster
    """
    from kraftlake.controller.replication.topics import NewPartitions, create_partitions

    more = NewPartitions(name=name, count=partitions, assignments=list(assign) or None)
    error = change.run(create_partitions, [more])[name]
    change.result(name, error, partitions=partitions)


@changing(topics, "Elect leaders.")
@_PARTITIONS
@option("--unclean", is_flag=True, help="Where there is no leader, take one that isn't in sync.")
def elect(change: LakeChange, *, partitions: tuple[tuple[str, int], ...], unclean: bool) -> None:
    """Give partitions their preferred leaders, or with --unclean any leader at all, which may lose data.

    Examples:
        # the first replica of every partition
        kraftlake topics elect --lake cluster --json
        # any replica, where there is no leader
        kraftlake topics elect --unclean --lake cluster --json
    """
    from kraftlake.controller.replication.elections import ElectionType, elect_leaders

    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    answers = change.run(elect_leaders, kind, list(partitions) or None)
    for (name, number), error in answers.items():
        topic = change.controller.image.topics.get_topic(name)
        leader = None if error.is_failure or topic is None else topic.partitions[number].leader
        change.result(f"{name}-{number}", error, leader=leader)


@changing(topics, "Change an ISR, as the leader would.")
@_PARTITION
@argument("replicas", type=BROKERS, metavar="IDS", help="The brokers that are in sync: 1,2,3.")
def isr(change: LakeChange, *, partition: tuple[str, int], replicas: tuple[int, ...]) -> None:
    """Change the ISR of a partition as its leader would.

    Examples:
        # only the leader
        kraftlake topics isr orders-0 1 --lake cluster
    """
    from kraftlake.controller.errors import ApiError
    from kraftlake.controller.replication.alter_partition import ANY_EPOCH, IsrChange, alter_partition
    from kraftlake.protocol.error_code import ErrorCode

    name, number = partition
    named = f"{name}-{number}"
    topic = change.controller.image.topics.get_topic(name)
    state = None if topic is None else topic.partitions.get(number)
    leader = None if state is None else change.controller.image.cluster.brokers.get(state.leader)
    if topic is None or state is None or leader is None:
        unknown = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no {named}, or it has no leader.")
        change.result(named, unknown)
        return
    wish = IsrChange(
        topic_id=topic.id,
        partition_id=number,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr=[(broker, ANY_EPOCH) for broker in replicas],
    )
    (answer,) = change.run(alter_partition, leader.id, leader.epoch, [wish])
    # NEW_LEADER_ELECTED: the reassignment is complete, only the old leader gets this as an error.
    done = answer.error is ErrorCode.NEW_LEADER_ELECTED
    error = None if done else ApiError(answer.error, _why_not(answer.error, state))
    after = change.controller.image.topics.topics_by_id()[topic.id].partitions[number]
    change.result(named, error, isr=list(after.isr), leader=after.leader)


def _why_not(error: ErrorCode, partition: PartitionRegistration) -> str | None:
    """An explanation of an error that brokers get as a code only."""
    if error.name == "INVALID_REQUEST":
        shown = ",".join(map(str, partition.replicas))
        return f"An ISR has the leader {partition.leader} and others of the replicas {shown}, each once."
    if error.name == "INELIGIBLE_REPLICA":
        return "A replica that is fenced, shutting down or not registered can't be in sync."
    return None


@changing(topics, "Move partitions to other brokers, or take a move back.")
@_PARTITION
@option("--replicas", type=BROKERS, metavar="IDS", help="The new replicas: 1,2,3.")
@option("--cancel", is_flag=True, help="Cancel the move.")
def reassign(change: LakeChange, *, partition: tuple[str, int], replicas: tuple[int, ...] | None, cancel: bool) -> None:
    """Begin to move a partition; the move is complete when the new replicas are in sync (see `topics isr`).

    Examples:
        # to brokers 2 and 1
        kraftlake topics reassign orders-0 --replicas 2,1 --lake cluster
        # not after all
        kraftlake topics reassign orders-0 --cancel --lake cluster
    """
    from kraftlake.controller.replication.reassignments import alter_partition_reassignments

    if (replicas is None) != cancel:
        raise click.UsageError("Give either --replicas or --cancel.")
    name, number = partition
    answers = change.run(alter_partition_reassignments, [(partition, replicas)])
    assignment = {}
    topic = change.controller.image.topics.get_topic(name)
    if topic is not None and number in topic.partitions:
        after = topic.partitions[number]
        assignment = {
            "replicas": list(after.replicas),
            "adding": list(after.adding_replicas),
            "removing": list(after.removing_replicas),
        }
    change.result(f"{name}-{number}", answers[partition], **assignment)


@changing(topics, "Delete a topic.")
@_NAME
def delete(change: LakeChange, *, name: str) -> None:
    """Delete topic NAME.

    Examples:
        # with its configs
        kraftlake topics delete clicks --lake cluster
    """
    from kraftlake.controller.errors import ApiError
    from kraftlake.controller.replication.topics import delete_topics
    from kraftlake.protocol.error_code import ErrorCode

    topic = change.controller.image.topics.get_topic(name)
    if topic is None:
        change.result(name, ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}."))
        return
    error = change.run(delete_topics, [topic.id])[topic.id]
    change.result(name, error, deleted=True)
