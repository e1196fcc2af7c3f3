"""Requests that change the configs of one broker: only that broker and the active controller take them.

Source: kafka.server.ConfigAdminManager.
"""

from __future__ import annotations

from typing import Final

from kraftlake.publisher import ConfigType
from kraftlake.server.requests.messages import api_of, request_in

_CHANGES: Final = frozenset({"alter_configs", "incremental_alter_configs"})


def changes_configs_of(frame: bytes, broker_id: int) -> bool:
    """Whether a request changes the configs of the broker. Raises as `request_in`."""
    if api_of(frame) not in _CHANGES:
        return False
    asked = request_in(frame)
    return asked is not None and any(
        resource.resource_type == ConfigType.BROKER and resource.resource_name == str(broker_id)
        for resource in asked.resources
    )
