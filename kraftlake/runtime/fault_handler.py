"""What becomes of a fault in a part that runs on its own: somebody is told, by name, and decides."""

from __future__ import annotations

from typing import Protocol

from kraftlake.runtime.log import get_logger


class FaultHandler(Protocol):
    """Takes what went wrong. Source: org.apache.kafka.server.fault.FaultHandler."""

    def handle_fault(self, what: str, cause: BaseException | None = None) -> None:
        """Take a fault: `what` says in a few words which part failed at what, `cause` is the exception, if any."""
        ...


class LoggingFaultHandler:
    """Logs each fault and counts it; the part that failed goes on (Kafka's LoggingFaultHandler)."""

    def __init__(self, name: str) -> None:
        self._log = get_logger().bind(fault_handler=name)
        self.faults = 0
        """How many were handled."""

    def handle_fault(self, what: str, cause: BaseException | None = None) -> None:
        """Log and count."""
        self.faults += 1
        self._log.error("fault", what=what, cause=None if cause is None else f"{type(cause).__name__}: {cause}")
