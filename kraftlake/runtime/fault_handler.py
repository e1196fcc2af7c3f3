"""Handlers of faults in parts that run in the background."""

from __future__ import annotations

from typing import Protocol

from kraftlake.runtime.log import get_logger


class FaultHandler(Protocol):
    """Handles faults. Source: org.apache.kafka.server.fault.FaultHandler."""

    def handle_fault(self, what: str, cause: BaseException | None = None) -> None:
        """Handle a fault: `what` names the action that failed, `cause` is the exception, if any."""
        ...


class LoggingFaultHandler:
    """Logs each fault and counts it; the failed part continues (Kafka's LoggingFaultHandler)."""

    def __init__(self, name: str) -> None:
        self._log = get_logger().bind(fault_handler=name)
        self.faults = 0
        """The number of handled faults."""

    def handle_fault(self, what: str, cause: BaseException | None = None) -> None:
        """Log and count the fault."""
        self.faults += 1
        self._log.error("fault", what=what, cause=None if cause is None else f"{type(cause).__name__}: {cause}")
