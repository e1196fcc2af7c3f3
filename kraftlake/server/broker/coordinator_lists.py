"""Empty lists of groups and transactions from a broker that serves no clients: tools query every broker for them.

Source: kafka.server.KafkaApis.handleListGroupsRequest and handleListTransactionsRequest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kraftlake.image.topics.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.requests.messages import AT_ONCE, answered, api_of, of_version

_TOPICS: Final = {"list_groups": GROUP_METADATA_TOPIC, "list_transactions": TRANSACTION_STATE_TOPIC}
"""The topic whose leaders are coordinators, by the API that lists a broker's groups or transactions."""


def list_coordinated(frame: bytes, leads: Callable[[str], bool]) -> bytes | None:
    """The answer to ListGroups or ListTransactions, without its length prefix; None for every other request.

    The broker coordinates nothing. If `leads` is true for a partition of the topic, unknown groups or transactions may
    exist: the answer is COORDINATOR_LOAD_IN_PROGRESS. Raises as `request_in`.
    """
    name = api_of(frame)
    if name not in _TOPICS:
        return None
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if leads(_TOPICS[name]) else ErrorCode.NONE

    def make(module: Any, _: Any) -> Any:
        kind = module.ListGroupsResponse if name == "list_groups" else module.ListTransactionsResponse
        return of_version(
            kind,
            throttle_time=AT_ONCE, error_code=error, groups=(), unknown_state_filters=(), transaction_states=(),
        )  # fmt: skip

    return answered(frame, make)
