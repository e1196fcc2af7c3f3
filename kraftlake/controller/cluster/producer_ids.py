"""Allocation of producer ids in blocks. Source: org.apache.kafka.controller.ProducerIdControlManager."""

from __future__ import annotations

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import ProducerIdsRecord
from kraftlake.records.serde import ApiMessageAndVersion

BLOCK_SIZE = 1_000


@attrs.frozen(kw_only=True)
class ProducerIdsBlock:
    """`size` ids that start with `first`, for one broker."""

    first: int
    size: int = BLOCK_SIZE


def allocate_producer_ids(
    state: ControllerState, broker_id: int, broker_epoch: int
) -> ControllerResult[ProducerIdsBlock]:
    """Allocate the next block to a broker."""
    state.check_broker_epoch(broker_id, broker_epoch)
    first = max(0, state.image.producer_ids.next_producer_id)
    if first > (1 << 63) - 1 - BLOCK_SIZE:
        raise ControllerApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been handed out.")
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE)
    return ControllerResult((ApiMessageAndVersion(record, 0),), ProducerIdsBlock(first=first))
