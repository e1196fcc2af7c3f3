"""The controller: turns commands into validated records, appends them, and answers when they are durable.

The logic is pure: a command is a function of `ControllerState`, and `ActiveController` runs the commands of one epoch
against the pending image. `QuorumController` adds threads and an election; `EmbeddedController` runs a few commands in
a tool. The exported names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.controller.cluster.supported_features import SUPPORTED
    from kraftlake.controller.config import ControllerConfig
    from kraftlake.controller.configs.config_keys import ConfigKey
    from kraftlake.controller.configs.config_schema import TOPIC_CONFIGS, in_milliseconds
    from kraftlake.controller.errors import ApiError, ControllerApiError, Errors
    from kraftlake.controller.quorum.active_controller import ActiveController, Executed
    from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
    from kraftlake.controller.quorum.embedded import EmbeddedController
    from kraftlake.controller.quorum.quorum_controller import QuorumController
    from kraftlake.controller.result import ControllerResult
    from kraftlake.controller.state import Command, ControllerState


__all__ = [
    "SUPPORTED",
    "TOPIC_CONFIGS",
    "ActiveController",
    "ApiError",
    "BootstrapMetadata",
    "BootstrapSnapshot",
    "Command",
    "ConfigKey",
    "ControllerApiError",
    "ControllerConfig",
    "ControllerResult",
    "ControllerState",
    "EmbeddedController",
    "Errors",
    "Executed",
    "QuorumController",
    "in_milliseconds",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
