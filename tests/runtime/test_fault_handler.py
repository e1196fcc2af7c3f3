from structlog.testing import capture_logs

from kraftlake.runtime.fault_handler import LoggingFaultHandler


def test_a_fault_is_logged_with_its_cause_and_counted() -> None:
    with capture_logs() as logs:
        handler = LoggingFaultHandler("metadata loader")
        handler.handle_fault("Replaying offset 7", ValueError("no such topic"))

    assert handler.faults == 1
    assert logs == [
        {
            "event": "fault",
            "log_level": "error",
            "fault_handler": "metadata loader",
            "what": "Replaying offset 7",
            "cause": "ValueError: no such topic",
        }
    ]
