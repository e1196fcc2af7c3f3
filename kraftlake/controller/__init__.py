"""The controller: turns commands into validated records, appends them, and answers when they are durable.

The logic is pure: a command is a function of `ControllerState`, and `ActiveController` runs the commands of one epoch
against the pending image. `QuorumController` gives it threads and an election, `EmbeddedController` a moment. What is
re-exported here is imported when it is first asked for, so that naming the room costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraftlake.controller.active_controller import ActiveController, Executed
    from kraftlake.controller.bootstrap import BootstrapMetadata, BootstrapSnapshot
    from kraftlake.controller.config import ControllerConfig
    from kraftlake.controller.embedded import EmbeddedController
    from kraftlake.controller.errors import ApiError, ControllerApiError, Errors
    from kraftlake.controller.quorum_controller import QuorumController
    from kraftlake.controller.result import ControllerResult
    from kraftlake.controller.state import Command, ControllerState

_HOMES = {
    "ActiveController": "active_controller",
    "ApiError": "errors",
    "BootstrapMetadata": "bootstrap",
    "BootstrapSnapshot": "bootstrap",
    "Command": "state",
    "ControllerApiError": "errors",
    "ControllerConfig": "config",
    "ControllerResult": "result",
    "ControllerState": "state",
    "EmbeddedController": "embedded",
    "Errors": "errors",
    "Executed": "active_controller",
    "QuorumController": "quorum_controller",
}

__all__ = [
    "ActiveController",
    "ApiError",
    "BootstrapMetadata",
    "BootstrapSnapshot",
    "Command",
    "ControllerApiError",
    "ControllerConfig",
    "ControllerResult",
    "ControllerState",
    "EmbeddedController",
    "Errors",
    "Executed",
    "QuorumController",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
