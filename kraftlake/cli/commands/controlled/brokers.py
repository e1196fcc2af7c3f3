"""`kraftlake brokers`: brokers of a controlled lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.cli.commands.controlled.change import LakeChange, change_group, changing
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import BROKER, CountParameter

if TYPE_CHECKING:
    from kraftlake.controller.cluster.brokers import BrokerHeartbeatReply

_ID = argument("broker", type=BROKER, metavar="ID", help="The broker's id.")


@change_group("Register, fence, unfence, shut down and unregister brokers.")
def brokers() -> None:
    """Act for brokers: send the requests that they would send, without a broker process.

    Examples:
        # a broker that leads from the start
        kraftlake brokers register 1 --unfence --lake cluster
    """


@changing(brokers, "Register a broker, or a new process of one.")
@_ID
@option("--rack", metavar="NAME", help="The broker's rack.")
@option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="The host of its listener.")
@option(
    "--port",
    type=CountParameter(0, 65535),
    default=9092,
    show_default=True,
    metavar="PORT",
    help="And its port.",
)
@option(
    "--directories",
    type=CountParameter(min=1),
    default=1,
    show_default=True,
    help="The number of log directories.",
)
@option("--unfence", is_flag=True, help="Unfence it, as if it had caught up at once.")
def register(
    change: LakeChange, *, broker: int, rack: str | None, host: str, port: int, directories: int, unfence: bool
) -> None:
    """Register broker ID with all features that this release supports; it starts fenced.

    An unfenced broker can't be registered again by another process: fence it first.

    Examples:
        # registered and unfenced at once
        kraftlake brokers register 1 --unfence --lake cluster
        # in a rack
        kraftlake brokers register 2 --rack b --unfence --lake cluster
        # with two disks, fenced
        kraftlake brokers register 3 --directories 2 --lake cluster
    """
    from kraftlake.controller.cluster.brokers import register_broker
    from kraftlake.controller.cluster.supported_features import SUPPORTED
    from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
    from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature

    state = change.controller.state
    request = BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id=state.config.cluster_id,
        incarnation_id=state.new_id(),
        listeners=(BrokerEndpoint(name="PLAINTEXT", host=host, port=port, security_protocol=0),),
        features=tuple(
            BrokerFeature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
            for name, levels in sorted(SUPPORTED.items())
        ),
        rack=rack,
        log_dirs=tuple(state.new_id() for _ in range(directories)),
    )
    reply = change.run(register_broker, request)
    fenced = _heartbeat(change, broker).is_fenced if unfence else True
    change.result(str(broker), epoch=reply.broker_epoch, fenced=fenced)


def _heartbeat(
    change: LakeChange, broker: int, *, fence: bool = False, shut_down: bool = False
) -> BrokerHeartbeatReply:
    from kraftlake.controller.cluster.brokers import process_heartbeat
    from kraftlake.controller.errors import ControllerApiError
    from kraftlake.protocol.broker_requests import BrokerHeartbeatRequest
    from kraftlake.protocol.error_code import ErrorCode

    state = change.controller.state
    registration = state.registration(broker)
    if registration is None:
        raise ControllerApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker} is not registered.")
    request = BrokerHeartbeatRequest(
        broker_id=broker,
        broker_epoch=registration.epoch,
        current_metadata_offset=state.next_offset - 1,
        want_fence=fence,
        want_shut_down=shut_down,
        cordoned_log_dirs=registration.cordoned_directories,
    )
    return change.run(process_heartbeat, request)


def _add_state(change: LakeChange, broker: int) -> None:
    state = change.controller.image.cluster.brokers[broker]
    change.result(str(broker), fenced=state.fenced, inControlledShutdown=state.in_controlled_shutdown)


@changing(brokers, "Fence a broker: remove it from all leaderships and ISRs, as if it had gone silent.")
@_ID
def fence(change: LakeChange, *, broker: int) -> None:
    """Fence broker ID. Partitions that no other broker may lead have no leader until it is unfenced.

    Examples:
        # broker 1 fails
        kraftlake brokers fence 1 --lake cluster
    """
    _heartbeat(change, broker, fence=True)
    _add_state(change, broker)


@changing(brokers, "Unfence a registered broker.")
@_ID
def unfence(change: LakeChange, *, broker: int) -> None:
    """Unfence broker ID. It leads partitions without a leader where it may; leaders add it to ISRs later.

    Examples:
        # broker 1 is back
        kraftlake brokers unfence 1 --lake cluster
    """
    _heartbeat(change, broker)
    _add_state(change, broker)


@changing(brokers, "Shut a broker down in order: its leaderships move first.")
@_ID
def shutdown(change: LakeChange, *, broker: int) -> None:
    """Run the controlled shutdown of broker ID until it may stop, which fences it.

    Examples:
        # broker 2 is stopped for an upgrade
        kraftlake brokers shutdown 2 --lake cluster
    """
    for _ in range(2):  # leaderships move at the first request; the others' heartbeats let the second one finish
        for other in sorted(change.controller.image.cluster.brokers):
            if other != broker and not change.controller.image.cluster.brokers[other].fenced:
                _heartbeat(change, other)
        if _heartbeat(change, broker, shut_down=True).should_shut_down:
            break
    _add_state(change, broker)


@changing(brokers, "Remove a broker for good.")
@_ID
def unregister(change: LakeChange, *, broker: int) -> None:
    """Remove broker ID. Partitions that have a replica on it keep it in their list.

    Examples:
        # broker 3 is gone
        kraftlake brokers unregister 3 --lake cluster
    """
    from kraftlake.controller.cluster.brokers import unregister_broker

    change.run(unregister_broker, broker)
    change.result(str(broker), unregistered=True)
